/* The contents of a reef_plan: one aggregation from rows to result.
 *
 *   raw rows --fetch--> points of a column --mix (matrix C)--> mixed rows --column rule or weighted sum--> out
 *
 * K     rows the plan is made for          n_raw    rows in use (weight > 0, not dropped)
 * P     points: rows, origin, centre       n_mixed  rows after the pre-aggregators (= n_raw without them)
 * A pass sums the Gram matrix of its points over all coordinates: first that of the raw rows, for pre-aggregators and
 * for the rule; then, if the rule measures from the median of its own mixed rows, or in each segment, that of the mixed rows.
 *
 * Rules that remember senders have one pass too: it sums lengths and sketches of residuals instead (recall.h).
 *
 * Files: plan.c lays out memory, begin.c starts an aggregation, fetch.c reads columns, observe.c and gram.c sum, solve.c turns
 * sums into shares, combine.c with its parts (combine.h) makes the result, driver.c is the loop around them (across.c over ranks, apply.c for data
 * in memory), report.c and state.c do the rest.
 */
#ifndef RFI_AGG_PLAN_H
#define RFI_AGG_PLAN_H

#include "agg/driver.h"
#include "agg/pipeline.h"
#include "agg/recall.h"
#include "base/memory.h"
#include "io/array.h"
#include "num/kernels/kernels.h"
#include "num/treesum.h"

#include <stdatomic.h>

/* Coordinates fetched at a time. */
enum { RFI_CHUNK = 64 };

/* Coordinates that a Gram kernel takes at a time: a part of a tile. */
enum { RFI_GRAM_CHUNK = 1024 };
/* Numbers from row to row of such a chunk: a power of two would put all rows into the same few places of the cache. */
enum { RFI_GRAM_STRIDE = RFI_GRAM_CHUNK + 8, RFI_SINGLE_STRIDE = RFI_GRAM_CHUNK + 16 };

/* Which rows a Gram matrix is about. */
typedef struct rfi_space {
    bool mixed;  /* of the mixed rows, else of the raw ones */
    bool origin; /* 0 is a point */
    bool centre; /* the remembered centre is a point */
} rfi_space;

/* Coordinates of mixed rows made at a time: for rules of single coordinates, and for Gram sums and what goes with them. A power of two from row
 * to row would put all rows into the same few places of the cache. */
enum { RFI_MIX_CHUNK = 256, RFI_MIX_APART = 16 };

/* How a mixed row is made. */
enum { RFI_MIX_RAW, RFI_MIX_MEAN, RFI_MIX_COPY, RFI_MIX_SCALED, RFI_MIX_SUM };

/* The mixing matrix as kernels go about it. */
typedef struct rfi_mixing {
    unsigned char *
        way; /* K: of each mixed row: it is a raw row, a mean of many, the same as another, a raw row made smaller, or a sum */
    ptrdiff_t *first;  /* K: the first raw row that is part of it, or the mixed row that is the same */
    bool *core;        /* K: raw rows that most of the means have */
    rfi_mean *mean;    /* K */
    uint16_t *changes; /* n_raw of each mean; for at most RFI_MEANS_ROWS rows in use */
    ptrdiff_t means;
} rfi_mixing;

typedef struct rfi_worker {
    /* type of the rows under way (the plan's, or one that rfi_plan_reads), and the kernels for them */
    rfi_type type;
    const rfi_kernels *row_kernels;

    const void **rows;       /* K: row pointers of the range under way */
    const void **used;       /* K + 1: rows handed to a kernel */
    const void **rows_mixed; /* K: raw rows under way, while mixed ones are made of them */
    double *used_weights;    /* K + 1 */
    int32_t *hard;           /* RFI_SPAN_MAX */
    void *scratch;           /* for kernels */
    double *centred_rows;    /* (K + 2) x RFI_GRAM_STRIDE, for Gram kernels */
    double *medians;         /* RFI_GRAM_CHUNK */
    float *single_rows;      /* the same in single precision, in the same place; so the next ones */
    double *single_sums;     /* packed: Gram sums of a chunk */
    double *repaired_sums;   /* packed, of half the points: those of points close together, in double precision */
    const void **close_rows; /* K */
    ptrdiff_t *close_points; /* K + 2 */
    bool *close;             /* K + 2: such points */
    double *room;            /* for sketches of residuals: RFI_RESIDUAL_ROOM(K), and one set of sums */
    double *signs;           /* RFI_SPAN_MAX, with it */
    void *median_row;        /* RFI_SPAN_MAX numbers of the plan type, for rules whose centre may be the median */
    void *mixed;         /* K x mix_stride numbers of the plan's type: mixed rows, for rules behind pre-aggregators */
    double *mixed_sums;  /* K, with it: sums of the shares of mixed rows */
    int64_t *mixed_none; /* K: numbers of coordinates at which they have none */
    unsigned char *none_at; /* (K + 1) x RFI_MIX_CHUNK: where that is; and the same for a raw row */
    double *tile;           /* RFI_CHUNK columns of K raw values */
    bool *hole;             /* RFI_CHUNK x K: entry left out (nan=drop-coordinate) */
    double *points;         /* K + 2 values of one column of a space */
    bool *gap;              /* K: mixed row has no value at this column */
    double *refill;         /* K: factor by which the rest of a mixed row stands in for its holes */
    double *centred;        /* (K + 2) x RFI_CHUNK, for Gram sums */
    double *share;          /* K + 2: effective weights on the points of the rule's space */
    double *raw_share;      /* K + 1: effective weights on raw rows, and on origin or centre together */
    double *x;              /* K: values handed to the column rule */
    double *a;              /* K: their weights */
    double *x_share;        /* K: its answer */
    ptrdiff_t *where;       /* K: which point each value is */
    double *work;           /* 4 K, for the rule */
    ptrdiff_t *index;       /* 2 K, for the rule */
    double *chosen_sums;    /* K: the report on rows that were chosen (chosen.c), and the next */
    int64_t *chosen_rejected;
    double *scales;     /* RFI_TILE, for scale floors relative to a tile */
    double *block_gram; /* (K+2)^2 and, for shares solved inside combine, what solve needs */
    double *block_share;
    double *solve_work;
    ptrdiff_t *solve_index;
    bool *far;
    rfi_treesum gram;
    rfi_treesum trust;
    double *packed;    /* one finished Gram sum */
    int64_t *rejected; /* K */
    int64_t masked;
    int64_t iterations;
    int64_t solved; /* columns, blocks or vectors that iterations counts */
    int64_t unconverged;
    int64_t covered; /* coordinates observed or combined since the last solve */
    /* where the next piece of a stretch handed over in pieces must start */
    ptrdiff_t open_segment, open_at;
    int max_iterations;
    double sizes[2],
        constants[2]; /* the rule's constant for the last two sizes: a block, and the shorter one at the end */
} rfi_worker;

typedef struct rfi_memory {
    ptrdiff_t *offsets;     /* segments + 1: where each starts when all are laid end to end */
    ptrdiff_t *lengths;     /* segments */
    ptrdiff_t *slot_starts; /* segments + 1 */
    ptrdiff_t *parts;       /* segments + 1: number of each segment's first stretch of the grain */
    double *weights;        /* K: a_l, sum 1 over rows of positive weight */
    double *raw_weights;    /* K: those of the rows in use, sum 1 */
    double *mixed_weights;  /* K */
    double *stage_weights;  /* K */
    ptrdiff_t *active;      /* K: raw row -> row of the caller */
    unsigned char *reason;  /* K: reef_reason */
    atomic_bool *suspect;   /* K: row seen with non-finite values */
    rfi_mixing mixing;      /* with mixed rows made by kernels */
    double *matrix;         /* K x (K + 1): C, mixed rows from raw rows and origin */
    double *stage_matrix;   /* K x (K + 2): from the points of the stage */
    double *next_matrix;    /* K x (K + 1) */
    double *gram;           /* (K + 2)^2 */
    double *next_gram;      /* (K + 2)^2 */
    atomic_bool *seen;      /* slots: observed in this pass */
    double *gram_slots;     /* slots x packed length */
    double *trust_slots;    /* slots x (K + 1) */
    double *shares;         /* sets x (K + 2): solved shares, one set or one per segment */
    rfi_worker *workers;
} rfi_memory;

struct reef_plan {
    const reef_agg *agg;
    const reef_rule *rule; /* the last stage */
    const void *params;
    void *owned; /* memory to release on destroy, NULL for a plan in the caller's memory */

    ptrdiff_t rows; /* K */
    ptrdiff_t segments;
    ptrdiff_t total; /* coordinates of all segments */
    reef_dtype dtype;
    ptrdiff_t worker_count;
    const rfi_kernels *kernels; /* NULL: the scalar rules do everything */
    /* the same for rows of float16 and bfloat16; NULL: none, or not possible with the rule */
    const rfi_kernels *halved[2];
    bool mixes;           /* mixed rows are made by kernels */
    ptrdiff_t mix_chunk;  /* so many coordinates at most, with it */
    ptrdiff_t mix_stride; /* numbers from one mixed row to the next */
    unsigned needs;       /* of the rule */
    int64_t scope;        /* of the rule: REEF_SCOPE_* or a block length */
    bool gram_any;        /* some pass sums Gram matrices */
    bool brief;           /* short vectors, and a rule that is one call of a kernel: apply.c has a short way for them */
    bool recalls;         /* the rule remembers every sender */
    rfi_recall recall;    /* with it */
    rfi_space spaces[2];
    ptrdiff_t passes;
    bool mix_early;   /* no pre-aggregator looks at the rows: the matrix is found before the first pass */
    int slot_levels;  /* a slot is 2^slot_levels tiles */
    int block_levels; /* a block is at most 2^block_levels tiles */
    ptrdiff_t grain;
    ptrdiff_t piece; /* what combine takes ends at a multiple of it; what is observed ends at one of RFI_TILE */

    rfi_memory m;

    /* the aggregation under way */
    bool begun;
    bool settled;   /* what begin.c finds out about the rows holds for all aggregations with equal weights */
    double tuned;   /* the rule's constant then, for a brief plan */
    reef_span span; /* all there is, for a brief plan that is settled; rows, self and out are those of a call */
    ptrdiff_t pass; /* passes solved so far */
    reef_input input;
    reef_report *report;
    ptrdiff_t n_raw, n_mixed, n_positive, dropped;
    bool equal_raw, equal_mixed;
    ptrdiff_t malicious_count[RFI_STAGES_MAX];
    ptrdiff_t self; /* row of the rule's own space that is the receiver's, or -1 */
    bool centre_known;
    bool keeps_centre; /* the state remembers the result */
    atomic_bool any_suspect;
};

/* begin.c: leaves out rows that are known to hold NaN or Inf, as reef_plan_drop does with those it has met. */
reef_status rfi_plan_exclude(reef_plan *plan, const bool *rows, reef_error *error);

/* begin.c: reef_plan_scan of rows of a type. */
reef_status rfi_plan_scan(reef_plan *plan, rfi_type type, ptrdiff_t segment, ptrdiff_t m0, ptrdiff_t m1,
                          const void *const *rows, reef_error *error);

/* plan.c: the type of the plan's own numbers; which type the rows have that a worker is handed from now on. */
rfi_type rfi_plan_type(const reef_plan *plan);
void rfi_plan_rows(const reef_plan *plan, rfi_worker *worker, rfi_type type);

/* Whether an input's weights (NULL: none are given) are all the same: then they are as good as none. */
bool rfi_weights_equal(const reef_plan *plan, const double *given);

/* apply.c: what the short way of reef_plan_apply needs, for a brief plan, once the rows in use are known. */
void rfi_short_begin(reef_plan *plan);

/* Forgets what was observed: before every pass. */
void rfi_plan_unsee(reef_plan *plan);

/* fetch.c */
ptrdiff_t rfi_space_rows(const reef_plan *plan, const rfi_space *space);
ptrdiff_t rfi_space_points(const reef_plan *plan, const rfi_space *space);
/* Reads `count` <= RFI_CHUNK coordinates of the rows in use, offset coordinates after where rows point. */
void rfi_fetch(reef_plan *plan, rfi_worker *worker, const void *const *rows, ptrdiff_t offset, ptrdiff_t count);
/* Fills worker->points and worker->gap with column t of the fetched chunk as seen in a space; m is the coordinate in the
 * segment. Returns the number of rows that have a value there. */
ptrdiff_t rfi_column_points(reef_plan *plan, rfi_worker *worker, const rfi_space *space, ptrdiff_t t, ptrdiff_t segment,
                            ptrdiff_t m);
/* A number of a row, in double precision. */
double rfi_load_from(rfi_type type, const void *row, ptrdiff_t index);
double rfi_load(reef_dtype dtype, const void *base, ptrdiff_t index);
void rfi_store(reef_dtype dtype, void *base, ptrdiff_t index, double value);
double rfi_smallest_normal(reef_dtype dtype);
/* Median of the rows of worker->points that have a value. */
double rfi_points_median(rfi_worker *worker, ptrdiff_t rows);

/* gram.c: adds `count` fetched coordinates to the worker's Gram leaf. */
void rfi_gram_chunk(reef_plan *plan, rfi_worker *worker, const rfi_space *space, ptrdiff_t segment, ptrdiff_t m,
                    ptrdiff_t count);
ptrdiff_t rfi_packed_length(ptrdiff_t points);
/* Numbers that a pass sums, with so many rows and points in use. */
ptrdiff_t rfi_sum_length(const reef_plan *plan, ptrdiff_t rows, ptrdiff_t points);

/* recall.c: for rules that remember senders. */
reef_status rfi_recall_describe(reef_plan *plan, reef_error *error);
void rfi_recall_lay_out(reef_plan *plan, rfi_arena *arena);
/* Adds `count` coordinates of a tile to the worker's sums, or keeps their residuals. */
void rfi_recall_tile(reef_plan *plan, rfi_worker *worker, ptrdiff_t segment, ptrdiff_t m, ptrdiff_t count, ptrdiff_t m0,
                     const void *const *rows);
/* When the rows in use are known: no sender twice, the key of the sketch, room for new senders. */
reef_status rfi_recall_begin(reef_plan *plan, reef_error *error);
/* Shares from the sums of a pass. */
reef_status rfi_recall_weigh(reef_plan *plan, const double *sums, double *share, reef_error *error);
/* Hands what was learned over to the memory. */
void rfi_recall_commit(reef_plan *plan);

/* Adds coordinates m .. m + count - 1 of a tile (count <= RFI_TILE) to the worker's Gram leaf; rows point to coordinate m0. */
void rfi_gram_tile(reef_plan *plan, rfi_worker *worker, const rfi_space *space, ptrdiff_t segment, ptrdiff_t m,
                   ptrdiff_t count, ptrdiff_t m0, const void *const *rows);
/* Rows in use, moved to coordinate m (rows point to m0), in worker->used. */
void rfi_rows_used(const reef_plan *plan, rfi_worker *worker, ptrdiff_t m, ptrdiff_t m0, const void *const *rows);

/* solve.c: the mixing matrix of all pre-aggregators; `gram`: from, and on to, the Gram matrix. */
reef_status rfi_mix_all(reef_plan *plan, bool gram, reef_error *error);
/* solve.c: packed Gram sum -> full matrix; then the rule's shares from it. */
void rfi_unpack(const double *packed, ptrdiff_t points, double *gram);
reef_status rfi_weigh(reef_plan *plan, rfi_worker *worker, const rfi_space *space, const double *gram, double size,
                      double *share, reef_error *error);

/* Checks a worker number and a range. piece > 0: the range must start at a multiple of the grain, or where the worker's last piece
 * has ended, and end at a multiple of the piece. */
reef_status rfi_check_range(const reef_plan *plan, ptrdiff_t worker, ptrdiff_t segment, ptrdiff_t m0, ptrdiff_t m1,
                            const void *const *rows, ptrdiff_t piece, reef_error *error);

/* combine_column.c: n, or with weights the number of equal ones that would be as good, 1 / sum a^2. */
double rfi_effective_count(const double *a, ptrdiff_t n, bool equal);
/* combine.c: the scalar rule at the coordinates listed in the first worker's `hard`, for a brief plan that is settled. False: it failed, or a row holds NaN or
 * Inf. */
bool rfi_combine_hard(reef_plan *plan, const void *const *rows, void *out, ptrdiff_t hard);
/* The rule's tuning constant for rows of these weights. */
double rfi_plan_tune(const reef_plan *plan, const double *a, ptrdiff_t n, bool equal);

/* report.c */
reef_status rfi_report_fits(const reef_report *report, ptrdiff_t rows, reef_error *error);
void rfi_report_begin(reef_plan *plan);
void rfi_report_end(reef_plan *plan);
/* Which tests lowered whose weight. */
void rfi_report_tests(const reef_plan *plan);
/* Keeps abar of a raw row (-1: of origin and centre) at a coordinate, if the caller wants it. */
void rfi_report_share(reef_plan *plan, ptrdiff_t raw_row, ptrdiff_t segment, ptrdiff_t m, double share);

/* state.c */
bool rfi_state_fits(const reef_state *state, const reef_plan *plan);
bool rfi_state_known(const reef_state *state);
double rfi_state_value(const reef_state *state, ptrdiff_t segment, ptrdiff_t m);
void rfi_state_propose(reef_state *state, ptrdiff_t segment, ptrdiff_t m, double value);
/* Where the remembered centre of a segment has coordinate m. */
const void *rfi_state_place(const reef_state *state, ptrdiff_t segment, ptrdiff_t m);
void rfi_state_commit(reef_state *state);
/* What a state remembers of senders; NULL if it does not. */
rfi_senders *rfi_state_senders(const reef_state *state);

/* mixed.c: how the rows of the mixing matrix are best made, when it is known. */
void rfi_mix_prepare(reef_plan *plan);
/* Mixed rows of at most mix_chunk coordinates, by kernels: worker->used then points to them, numbers of the plan's type. `rows` point to
 * the first coordinate, and may not be worker->used. False if a value is known not to be finite; others may not be either. */
bool rfi_mix_rows(const reef_plan *plan, rfi_worker *worker, const void *const *rows, ptrdiff_t count);
/* An elementwise rule on the mixed rows of at most RFI_MIX_CHUNK coordinates, by kernels (mixed.c). `rows` point to the first of them.
 * share: of a rule that chooses mixed rows, NULL: it has all. *reported: trust is wanted, and after the call whether it was given. Returns the number of hard coordinates, or -1: nothing done. */
ptrdiff_t rfi_span_mixed(const reef_plan *plan, rfi_worker *worker, const void *const *rows, ptrdiff_t count,
                         const double *share, double tuned, double floor, void *out, bool *reported);
/* The rule's fast path on those of the span's rows, in worker->used, that have a share (chosen.c); as `span` of the rule, but the report is
 * on all rows. */
ptrdiff_t rfi_span_chosen(const reef_plan *plan, rfi_worker *worker, const double *share, reef_span *span);

#endif
