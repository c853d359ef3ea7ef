/* Memory per sender: what a rule keeps of everyone it hears, and how it looks at the rows of an aggregation.
 *
 *   n rows x_l of the senders l      m0      coordinatewise median of the rows
 *   d_l = x_l - m0 (residual), or a sketch of it: D numbers        r_l = ||d_l||
 *   E_jl  average of clipped, scaled residuals of sender l over window j
 *
 * Observing sums r_l^2 and the sketches tile by tile along the canonical tree; with full memory (D = M) the residuals
 * themselves are kept. The sketch is linear and seeded: 64 neighbouring coordinates go to 64 different places (to 16 or 32
 * of them in turn, if it is shorter), turned by a random number of places per 64, each with a random sign. Lengths are kept
 * within about sqrt(2/D).
 * Solving reads the memory and leaves it alone; the end of an aggregation commits. Files: recall.c (plan's side), sketch.c,
 * senders.c (the memory itself). */
#ifndef RFI_AGG_RECALL_H
#define RFI_AGG_RECALL_H

#include "base/memory.h"

#include <reef/agg.h>

enum { RFI_WINDOWS = 3 };

/* By which test a sender was judged at one window. */
enum { RFI_BY_WINDOW, RFI_BY_SPLIT, RFI_BY_RHYTHM, RFI_BY_COPIES, RFI_BY_COUNT };

/* One sender, beside its averages. No padding: it is saved as it is. */
typedef struct rfi_trace {
    int64_t id;
    int64_t age;                              /* aggregations it took part in */
    int64_t seen;                             /* number of the last of them */
    int64_t judged[RFI_WINDOWS];              /* its age when window j was last evaluated */
    double tail;                              /* T: mean square of q - 1, the tail of its distances */
    double energy;                            /* V: mean square of its clipped distances */
    double rhythm[RFI_WINDOWS];               /* F_j: mean square of its distances at window j */
    double factor[RFI_WINDOWS][RFI_BY_COUNT]; /* weights as last evaluated */
} rfi_trace;

/* The senders a receiver remembers. */
typedef struct rfi_senders {
    ptrdiff_t capacity, count;
    ptrdiff_t numbers; /* D */
    bool single;       /* averages are float32, else float64 */
    int64_t rounds;    /* t: aggregations so far */
    double spread[RFI_WINDOWS];
    double separation[RFI_WINDOWS];
    rfi_trace *traces; /* capacity */
    void *averages;    /* capacity x RFI_WINDOWS x D */
    int32_t *table;    /* hash table of places, -1: empty */
    ptrdiff_t table_size;
} rfi_senders;

/* One aggregation, as the rule sees it. */
typedef struct rfi_recall {
    bool full;                  /* D = M */
    ptrdiff_t numbers;          /* D */
    bool sketches;              /* by the kernel for sketches of 64 numbers */
    ptrdiff_t chunk;            /* coordinates observed at a time */
    uint64_t key;               /* of the sketch */
    ptrdiff_t n;                /* rows */
    ptrdiff_t self;             /* which row is the receiver's own, or -1 */
    double step;                /* step size, 0: unknown */
    double *residual;           /* K x D: d_l */
    double *norm;               /* K: r_l, +Inf if it overflows */
    const rfi_senders *senders; /* NULL: nothing is remembered */
    int64_t rounds;             /* t, this aggregation counted */
    ptrdiff_t *place;           /* K: where the sender stands in `senders`, -1: it is new */
    rfi_trace *traces;          /* K: as they will be after this aggregation */
    double *clip;               /* K: y_l = clip_l d_l is what enters the averages */
    double *gate;               /* K: weight by the distance now */
    double *weight;             /* K: smallest of all, shared with copies */
    double *by_energy;          /* K */
    double *by_copies;          /* K: the largest of all windows */
    double *average;            /* K x D: E_j of the window under way */
    double *work;               /* RFI_RECALL_WORK K */
    double *matrix;             /* sample^2 of distances, or two Gram matrices of at most that size */
    double *line;               /* 3 D */
    ptrdiff_t *index;           /* 3 K */
    int64_t window[RFI_WINDOWS];
    double spread[RFI_WINDOWS];     /* H_j: 0 honest noise only .. 1 honest agents differ for good */
    double separation[RFI_WINDOWS]; /* I_j of the split, 0: none was made */
    bool idle;                      /* most rows are equal: nothing was learned */
} rfi_recall;

enum { RFI_RECALL_WORK = 10 };
/* Rows among which the centre and the axis of the split are looked for, if there are more of them. */
enum { RFI_RECALL_SAMPLE = 256 };

/* ---- sketch.c ---- */

/* to[row * D ..] += sketch of `count` centred coordinates of n rows; `at`: absolute number of the first, a multiple of 64. */
void rfi_sketch_add(uint64_t key, ptrdiff_t numbers, const double *centred, ptrdiff_t stride, ptrdiff_t n, int64_t at,
                    ptrdiff_t count, double *to);
/* Signs and turns of the groups from coordinate `at` on, for the kernel that makes sketches of 64 numbers. */
void rfi_sketch_turns(uint64_t key, int64_t at, ptrdiff_t count, bool single, void *sign, unsigned char *shift);
/* sum[row] += squared length of these coordinates. */
void rfi_squares_add(const double *centred, ptrdiff_t stride, ptrdiff_t n, ptrdiff_t count, double *sum);

/* ---- senders.c ---- */

/* Takes the memory from an arena; with a measuring one only sizes count. */
void rfi_senders_lay_out(rfi_senders *senders, rfi_arena *arena);
void rfi_senders_reset(rfi_senders *senders);
/* Place of a sender, -1 if it is not remembered. */
ptrdiff_t rfi_senders_find(const rfi_senders *senders, int64_t id);
/* Average of window j of the sender at a place, as doubles. */
void rfi_senders_read(const rfi_senders *senders, ptrdiff_t place, int window, double *average);
/* Rate of the average of window j after `age` aggregations. */
double rfi_recall_rate(const rfi_recall *recall, int window, int64_t age);
/* Takes over what an aggregation found. */
void rfi_senders_commit(rfi_senders *senders, const rfi_recall *recall);
size_t rfi_senders_size(const rfi_senders *senders);
void rfi_senders_save(const rfi_senders *senders, unsigned char *bytes);
/* False, and nothing changed, if no memory can look like that. `bytes` has rfi_senders_size of them. */
bool rfi_senders_load(rfi_senders *senders, const unsigned char *bytes);

#endif
