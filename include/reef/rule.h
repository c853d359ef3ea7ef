/* What an aggregation rule is, for authors of rules. Users of rules need only agg.h.
 *
 * A rule is a const reef_rule. It works in one of four ways, depending on which entries it fills in:
 *   column            elementwise: each coordinate on its own (median, trimmed mean, REF)
 *   weigh             one share per row from the rows' geometry, then a weighted sum (Krum, geometric median)
 *   weigh + column    rows with share 0 are dropped, then elementwise on the rest (Bulyan)
 *   mix               pre-aggregator: replaces the rows by affine combinations of them (NNM, clipping)
 * No entry may allocate, print or keep static state; all are called from several threads at once.
 *
 * Notation: n rows x_l with weights a_l (> 0, sum 1), f malicious rows expected, abar_l the effective weights (shares):
 *   out(m) = sum_l abar_l(m) x_l(m)  (+ a share of the origin or of a remembered centre)
 */
#ifndef REEF_RULE_H
#define REEF_RULE_H

#include <reef/context.h>
#include <reef/registry.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Claims, each checked by the conformance tests for every rule that makes it. */
typedef enum reef_trait {
    REEF_TRAIT_WEIGHTS = 1 << 0,     /* uses unequal weights; without it they are refused */
    REEF_TRAIT_REPLICATION = 1 << 1, /* an integer weight equals that many copies of the row */
    REEF_TRAIT_PERMUTATION = 1 << 2, /* order of the rows does not matter */
    REEF_TRAIT_TRANSLATION = 1 << 3, /* shifting all rows shifts the result */
    REEF_TRAIT_SCALE = 1 << 4,       /* scaling all rows scales the result */
    REEF_TRAIT_HULL = 1 << 5,        /* each coordinate is between the smallest and largest input */
    REEF_TRAIT_ROBUST = 1 << 6,      /* f far-away rows (its own bound) have bounded influence */
    REEF_TRAIT_CENTRE = 1 << 7,      /* remembers a centre: has a state */
    REEF_TRAIT_SELF = 1 << 8,        /* can use the receiver's own row */
    REEF_TRAIT_ELEMENTWISE =
        1 << 9,                   /* set by the library: a coordinate of the result depends on that coordinate alone */
    REEF_TRAIT_SENDERS = 1 << 10, /* remembers every sender by its id: has a state, cannot follow a pre-aggregator */
} reef_trait;

/* One coordinate as an elementwise rule sees it. */
typedef struct reef_column {
    ptrdiff_t n;      /* values, >= 1 */
    const double *x;  /* finite, |x| <= 2^1000 */
    const double *a;  /* weights, > 0, sum 1 */
    bool equal;       /* all weights are the same */
    bool single;      /* the data is float32: tolerances may be wider */
    ptrdiff_t f;      /* malicious rows to expect, 0 <= f <= bound(n) */
    ptrdiff_t self;   /* which value is the receiver's own, or -1 */
    double tuned;     /* what `tune` returned for this number of values; 0 without it */
    double floor;     /* smallest scale to use (0: none); see scale_floor of ref */
    double *work;     /* 4 n doubles of scratch */
    ptrdiff_t *index; /* 2 n indices of scratch */
} reef_column;

/* What an iteration needed. */
typedef struct reef_effort {
    int iterations; /* 0 for rules that do not iterate */
    bool converged; /* true for rules that do not iterate */
} reef_effort;

/* Many neighbouring coordinates at once, for rules with a fast path. The values that `column` gets per coordinate hold for the whole span;
 * with `weigh`, its rows are those that have a share, as for `column`. */
struct reef_kernels;
/* The coordinates of a span: see above. */
typedef struct reef_span {
    const void *const *rows; /* n pointers to the first coordinate, any alignment; may hold NaN and Inf */
    const double *a;         /* n weights, > 0, sum 1 */
    bool equal;              /* all weights are the same */
    bool single;             /* float32, else float64 */
    bool mixed;              /* rows made by pre-aggregators; `column` may see them with other rounding errors */
    ptrdiff_t n;             /* rows */
    ptrdiff_t count;         /* coordinates, 1..4096 */
    ptrdiff_t f;             /* as in reef_column, like the next three */
    ptrdiff_t self;          /* the receiver's own row, or -1 */
    double tuned;            /* what `tune` returned */
    double floor;            /* smallest scale */
    double half_tol;         /* relative tolerance for comparisons with half of the weight (weighted medians) */
    void *out;               /* count numbers of the same type */
    double *share;           /* n sums of effective weights to add to, or NULL: not wanted */
    int64_t *rejected;       /* n counts of coordinates with share 0 to add to; only with share */
    bool reported; /* set by the rule if it has filled in share and rejected; otherwise `column` computes them */
    unsigned char
        *none;   /* n x count zeros; the rule writes 1 where a row has share 0; NULL: not wanted; only with share */
    bool marked; /* set by the rule if it has filled in none */
    bool fair; /* set by the rule if every row has its own weight everywhere; the library then fills in share itself */
    int64_t iterations; /* to add to */
    int max_iterations; /* to raise */
    int32_t *
        hard; /* room for `count` coordinates that `column` must do, in ascending order; ~m: for the report only, out[m] is done */
    void *scratch;                      /* 7 n x 64 bytes, 64-byte aligned */
    const struct reef_kernels *kernels; /* the library's own vector code */
} reef_span;

/* Rows as points of a space, as `weigh` and `mix` see them: points 0..n-1 are the rows; the origin and the remembered
 * centre may be points too. Everything a rule needs follows from the Gram matrix around mu, the coordinatewise median of
 * the rows. A point that is so far away that its squared distance overflows is marked far; its Gram entries are then undefined. */
struct reef_recall;
/* The points: see above. */
typedef struct reef_points {
    ptrdiff_t n;        /* rows */
    ptrdiff_t count;    /* points: n, plus one for the origin, plus one for the centre, as asked for */
    ptrdiff_t origin;   /* which point is 0, or -1 */
    ptrdiff_t centre;   /* which point is the remembered centre, or -1 */
    const double *gram; /* count x count: (p - mu)'(q - mu) */
    const bool *far;    /* count */
    const double *a;    /* n weights, > 0, sum 1 */
    bool equal;         /* all weights are the same */
    ptrdiff_t f;        /* malicious rows to expect, 0 <= f <= bound(n) */
    double size;        /* number of coordinates over which the Gram matrix was summed */
    double constant;    /* what the rule's `constant` returned for that size; 0 without it */
    int64_t round;      /* number of this aggregation, for rules that draw random numbers */
    struct reef_recall
        *recall;      /* for rules that remember senders: their memory; such rules have no gram, far, work and index */
    double *work;     /* 8 count doubles and count x count doubles of scratch */
    ptrdiff_t *index; /* 4 count indices of scratch */
} reef_points;

/* Squared distance between two points (not NULL): >= 0, +Inf if one of them is far, never NaN. For rules that remember senders it is that of the
 * residuals, or of their sketches. */
REEF_API double reef_points_distance2(const reef_points *points, ptrdiff_t i, ptrdiff_t j);

/* What `weigh` and `mix` need besides the rows (bits of `needs`). */
typedef enum reef_need {
    REEF_NEED_GRAM = 1 << 0,   /* distances */
    REEF_NEED_ORIGIN = 1 << 1, /* the point 0: norms of the rows as they are */
    REEF_NEED_CENTRE = 1 << 2, /* the remembered centre; at first it is 0, or the coordinatewise median with MEDIAN */
    REEF_NEED_MEDIAN = 1 << 3, /* distances from the coordinatewise median of exactly these rows */
    REEF_NEED_SELF = 1 << 4,   /* the receiver's own row must be given */
} reef_need;

/* The coordinates for which one set of shares holds (`scope`): all, each segment on its own, or blocks of that many. */
#define REEF_SCOPE_WHOLE 0
/* Each segment on its own. */
#define REEF_SCOPE_SEGMENT (-1)

/* ---- Memory per sender ----
 *
 * A rule with REEF_TRAIT_SENDERS remembers every sender by its id from one aggregation to the next. It fills in `weigh` and `memory`; its
 * `needs` are 0 or REEF_NEED_SELF, and its scope is the whole model. The library keeps the memory in a reef_state: by id, whatever the order and
 * number of rows per call. It grows with the senders heard, is saved and loaded with checks, and is not changed by an aggregation that fails.
 *
 *   n rows x_l      m0 = coordinatewise median of the rows      d_l = x_l - m0, the residual: all its numbers, or a sketch of D of them
 *
 * Sketches are linear, so that an average of sketches is the sketch of the average, and they preserve lengths within about sqrt(2 / D).
 * One aggregation: the library observes the residuals, looks the senders up, and calls `weigh`, which reads the memory and proposes records;
 * when the result is complete, it adopts these and calls `commit` for the vectors and pairs. examples/own_memory.c is a complete rule. */

/* What a rule keeps, for its parameters and a model. */
typedef struct reef_memory_sizes {
    ptrdiff_t
        numbers; /* D: the length of the model, or a power of two from 16 to 1024 that is less than it: a sketch */
    ptrdiff_t vectors; /* vectors of D numbers kept per sender */
    size_t record;     /* bytes kept per sender in addition: a struct of the rule's, without padding and pointers */
    size_t shared;     /* bytes kept once: likewise */
    /* float32 numbers kept per unordered pair of senders, pairs of a sender with itself included; 0: none. Senders have places, in the order in
     * which they were first heard. Pairs are kept for places below pair_places that are in the same block of pair_block, so that memory
     * and time stay linear in the number of senders. */
    ptrdiff_t pair_numbers;
    ptrdiff_t pair_block;  /* see pair_numbers */
    ptrdiff_t pair_places; /* see pair_numbers */
    int64_t forget;        /* a sender that was absent for more aggregations than this starts afresh; 0: never */
    double
        largest; /* no number of a vector or pair is larger in magnitude; 0: any finite one may be. Checked when a state is loaded. */
    size_t work; /* bytes of scratch that `weigh` and `commit` share in one aggregation */
    bool
        secret; /* the state draws a seed from the system when it is created, unless the caller sets one (reef_state_set_seed) */
} reef_memory_sizes;

/* One aggregation, as a rule with a memory sees it. Arrays are by row. */
struct reef_senders;
/* What a rule with a memory sees of one aggregation. */
typedef struct reef_recall {
    ptrdiff_t n;            /* rows */
    ptrdiff_t numbers;      /* D */
    ptrdiff_t self;         /* which row is the receiver's own, or -1 */
    double step;            /* step size of the recursion that the result feeds, 0: unknown */
    int64_t rounds;         /* aggregations so far, including this one */
    uint64_t seed;          /* of the state, 0 without one */
    const double *residual; /* n x D: d_l; 0 where the norm is +Inf */
    const double *norm;     /* length of the whole residual, +Inf if it overflows */
    const int64_t *ids;     /* of the senders, no two the same */
    const int64_t
        *heard;     /* number of the aggregation in which the sender was last heard; 0: it is new, or starts afresh */
    int64_t *age;   /* aggregations it took part in, including this one; the rule may lower it, but not below 1 */
    void *records;  /* n records, as they will be after this aggregation; the rule may change them */
    void *shared;   /* likewise */
    double *factor; /* n x factor_count: what each test left of a sender's weight; 1 at first */
    double *number; /* number_count: what the rule reports about the round; 0 at first */
    void *work;     /* scratch, aligned to 64 bytes; `commit` finds what `weigh` left in it */
    bool idle;      /* set by the rule if there was nothing to learn; the memory then stays as it is */
    struct reef_senders *memory;        /* the library's; NULL: nothing is remembered */
    const ptrdiff_t *place;             /* the library's */
    const struct reef_kernels *kernels; /* the library's own vector code for doubles; NULL: none */
} reef_recall;

/* For this function and the next three, recall is not NULL. Reads vector number `vector` of the sender of a row; zeros if it is new. */
REEF_API void reef_recall_read(const reef_recall *recall, ptrdiff_t row, ptrdiff_t vector, double *numbers);
/* In `commit` only: sets it. It is kept in float32 if the rows or sketches are. */
REEF_API void reef_recall_write(const reef_recall *recall, ptrdiff_t row, ptrdiff_t vector, const double *numbers);
/* In `commit` only: updates it, vector += rate (factor d_l - vector). */
REEF_API void reef_recall_average(const reef_recall *recall, ptrdiff_t row, ptrdiff_t vector, double rate,
                                  double factor);
/* The pair_numbers numbers of the senders of two rows (or of one with itself), zeros at first; NULL: nothing is kept for that pair, or not yet.
 * They may be written in `commit` only. */
REEF_API float *reef_recall_pair(const reef_recall *recall, ptrdiff_t row, ptrdiff_t other);

/* What a rule reports besides its result: a name ("long window") and what it means. */
typedef struct reef_diagnostic {
    const char *name;    /* a few words */
    const char *meaning; /* a sentence */
} reef_diagnostic;
enum { REEF_FACTORS_MAX = 16, REEF_NUMBERS_MAX = 32 };

/* What a rule remembers of the senders, and how. */
typedef struct reef_memory {
    size_t size; /* sizeof of this struct, so that later versions can add members; 0: as version 0.2 has it */
    /* To be incremented when the meaning of what is kept changes: states saved with another version are refused. */
    int64_t version;
    /* For a model of `length` coordinates; rows: the most that one aggregation has, for `work`. */
    void (*sizes)(const void *params, ptrdiff_t rows, ptrdiff_t length, reef_memory_sizes *sizes);
    /* Optional: the key of the sketch, from the seed; NULL: the seed is the key. */
    uint64_t (*key)(const void *params, uint64_t seed);
    /* Optional: fills in the record of a new sender, which is 0. */
    void (*start)(const void *params, void *record);
    /* Stores what `weigh` learned: vectors and pairs. Records and ages are already the new ones; vectors and pairs of new senders are 0. */
    void (*commit)(const void *params, reef_recall *recall);
    /* Optional: false if no aggregation can have left such a record, after `age` of `rounds` aggregations. Loading then fails. */
    bool (*is_sane)(const void *record, int64_t age, int64_t rounds);
    /* Optional: the same for what all senders share. */
    bool (*is_sane_shared)(const void *shared);
    /* Tests of a sender: each leaves a share of its weight, 0 to 1. At most REEF_FACTORS_MAX. */
    const reef_diagnostic *factors;
    ptrdiff_t factor_count; /* of them */
    /* Numbers that describe the round as a whole. At most REEF_NUMBERS_MAX. */
    const reef_diagnostic *numbers;
    ptrdiff_t number_count; /* of them */
} reef_memory;

/* A rule: how it works depends on which entries it fills in (above). */
typedef struct reef_rule {
    reef_kind kind;  /* name, summary, citation, fields */
    unsigned traits; /* reef_trait bits, true for the default parameters */

    /* Optional: called once after the fields are read; derives constants, checks combinations of fields. */
    reef_status (*prepare)(void *params, reef_error *error);
    /* Optional: traits for these parameters, if they differ from `traits`. */
    unsigned (*traits_of)(const void *params);
    /* Rules with a REEF_FIELD_MALICIOUS field: the most malicious among n >= 1 rows that it tolerates, >= 0, and the reason in words. */
    ptrdiff_t (*bound)(const void *params, ptrdiff_t n);
    const char *bound_text; /* for instance "n >= 2 f + 3" */
    /* For rules with weigh or mix; optional for those that remember senders (NULL: nothing). */
    unsigned (*needs)(const void *params);
    int64_t (*scope)(const void *params); /* optional; NULL: REEF_SCOPE_WHOLE */
    /* Optional: false if n rows with f malicious ones would take too long to compute; limit_text says what is possible. */
    bool (*feasible)(const void *params, ptrdiff_t n, ptrdiff_t f);
    const char *limit_text; /* what `feasible` allows, in words */
    /* Optional, elementwise rules: a constant that depends on the number of values (with weights 1 / sum a_l^2), computed once and
     * passed to every column. */
    double (*tune)(const void *params, double n);
    /* Optional: the efficiency for Gaussian data, relative to the mean, to which the rule is tuned for n values. */
    double (*efficiency)(const void *params, double n);
    /* Optional, elementwise rules: smallest scale, relative to the typical one of 4096 neighbouring coordinates. */
    double (*relative_floor)(const void *params);
    double (*scale)(const void *params, const reef_column *column); /* the scale that floor refers to */

    /* Result of one coordinate; share receives the n effective weights (>= 0, sum 1). */
    double (*column)(const void *params, const reef_column *column, double *share, reef_effort *effort);
    /* Optional fast path besides column: does what it can and returns how many coordinates it listed as hard. For those, which include all with
     * values that are not finite, it must leave share and rejected alone. -1: nothing done, use column throughout. For which coordinates
     * `column` makes the result must not depend on whether a report is wanted. */
    ptrdiff_t (*span)(const void *params, reef_span *span);
    /* Optional, for weigh: a number that depends only on the parameters and the size (of points) and is worth keeping between
     * aggregations. */
    double (*constant)(const void *params, double size);
    /* share receives `points->count` coefficients (>= 0, sum 1). */
    reef_status (*weigh)(const void *params, const reef_points *points, double *share, reef_effort *effort,
                         reef_error *error);
    /* The number of rows that n rows become, 1 <= result <= n. */
    ptrdiff_t (*mixed)(const void *params, ptrdiff_t n);
    /* matrix receives mixed(n) x points->count coefficients, each row >= 0 with sum 1 (zeroed before the call);
     * weights receives the weight of each new row (sum 1). */
    reef_status (*mix)(const void *params, const reef_points *points, double *matrix, double *weights,
                       reef_error *error);
    const reef_memory *memory; /* rules with REEF_TRAIT_SENDERS, else NULL */
} reef_rule;

#ifdef __cplusplus
}
#endif
#endif
