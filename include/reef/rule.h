/* What an aggregation rule is, for those who write one. Users of rules need only agg.h.
 *
 * A rule is a const reef_rule. It works in one of four ways, told by which entries it fills in:
 *   column            elementwise: each coordinate on its own (median, trimmed mean, REF)
 *   weigh             one share per row from the rows' geometry, then a weighted sum (Krum, geometric median)
 *   weigh + column    rows with share 0 leave, then elementwise on the rest (Bulyan)
 *   mix               pre-aggregator: replaces the rows by affine combinations of them (NNM, clipping)
 * No entry may allocate, print or keep static state; all are called from several threads at once.
 *
 * Notation: n rows x_l with weights a_l (> 0, sum 1), f liars expected, abar_l the effective weights (shares):
 *   out(m) = sum_l abar_l(m) x_l(m)  (+ a share of the origin or of a remembered centre)
 */
#ifndef REEF_RULE_H
#define REEF_RULE_H

#include <reef/context.h>
#include <reef/field.h>
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
    REEF_TRAIT_HULL = 1 << 5,        /* each coordinate lies between the smallest and largest input */
    REEF_TRAIT_ROBUST = 1 << 6,      /* f far-away rows (its own bound) cannot carry the result away */
    REEF_TRAIT_CENTRE = 1 << 7,      /* remembers a centre: has a state */
    REEF_TRAIT_SELF = 1 << 8,        /* can use the receiver's own row */
    REEF_TRAIT_ELEMENTWISE =
        1 << 9,                   /* set by the library: a coordinate of the result depends on that coordinate alone */
    REEF_TRAIT_SENDERS = 1 << 10, /* remembers every sender by its id: has a state, stands behind no pre-aggregator */
} reef_trait;

/* One coordinate as an elementwise rule sees it. */
typedef struct reef_column {
    ptrdiff_t n;      /* values, >= 1 */
    const double *x;  /* finite, |x| <= 2^1000 */
    const double *a;  /* weights, > 0, sum 1 */
    bool equal;       /* all weights are the same */
    bool single;      /* the data are float32: tolerances may be wider */
    ptrdiff_t f;      /* liars to expect, 0 <= f <= bound(n) */
    ptrdiff_t self;   /* which value is the receiver's own, or -1 */
    double tuned;     /* what `tune` said for this number of values; 0 without it */
    double floor;     /* least scale to use (0: none); see scale_floor of ref */
    double *work;     /* 4 n doubles of scratch */
    ptrdiff_t *index; /* 2 n indices of scratch */
} reef_column;

typedef struct reef_effort {
    int iterations;
    bool converged; /* true for rules that do not iterate */
} reef_effort;

/* Many neighbouring coordinates at once, for rules with a fast path. All values that `column` gets per coordinate hold for the span. */
struct rfi_kernels;
typedef struct reef_span {
    const void *const *rows; /* n pointers to the first coordinate, any alignment; may hold NaN and Inf */
    const double *a;         /* n weights, > 0, sum 1 */
    bool equal;              /* all weights are the same */
    bool single;             /* float32, else float64 */
    ptrdiff_t n;
    ptrdiff_t count; /* coordinates, 1..4096 */
    ptrdiff_t f;
    ptrdiff_t self;
    double tuned;
    double floor;
    void *out;         /* count numbers of the same type */
    double *share;     /* n sums of effective weights to add to, or NULL: not wanted */
    int64_t *rejected; /* n counts of coordinates with share 0 to add to, with share only */
    bool reported; /* set by the rule if it has filled in share and rejected; otherwise `column` is asked for them */
    bool fair;     /* set by the rule if every row has its weight everywhere: the library then fills in share itself */
    int64_t iterations;                /* to add to */
    int max_iterations;                /* to raise */
    int32_t *hard;                     /* count places to list coordinates in that `column` must do, ascending */
    void *scratch;                     /* 7 n x 64 bytes, 64-byte aligned */
    const struct rfi_kernels *kernels; /* the library's own vector code */
} reef_span;

/* Rows as points of a space, as `weigh` and `mix` see them: points 0..n-1 are the rows; the origin and the remembered
 * centre may be points too. Everything a rule needs follows from the Gram matrix around mu, the coordinatewise median of
 * the rows. A point so far away that its squared distance overflows is marked far; its Gram entries are then undefined. */
struct rfi_recall;
typedef struct reef_points {
    ptrdiff_t n;               /* rows */
    ptrdiff_t count;           /* points: n, plus one for the origin, plus one for the centre, as asked for */
    ptrdiff_t origin;          /* which point is 0, or -1 */
    ptrdiff_t centre;          /* which point is the remembered centre, or -1 */
    const double *gram;        /* count x count: (p - mu)'(q - mu) */
    const bool *far;           /* count */
    const double *a;           /* n weights, > 0, sum 1 */
    bool equal;                /* all weights are the same */
    ptrdiff_t f;               /* liars to expect, 0 <= f <= bound(n) */
    double size;               /* number of coordinates the Gram matrix was summed over */
    double constant;           /* what the rule's `constant` said for that size; 0 without it */
    int64_t round;             /* number of this aggregation, for rules that draw random numbers */
    struct rfi_recall *recall; /* of the library's own rules that remember senders; they have no gram, far and work */
    double *work;              /* 8 count doubles and count x count doubles of scratch */
    ptrdiff_t *index;          /* 4 count indices of scratch */
} reef_points;

/* Squared distance between two points: >= 0, +Inf if one of them is far, never NaN. */
REEF_API double reef_points_distance2(const reef_points *points, ptrdiff_t i, ptrdiff_t j);

/* What `weigh` and `mix` need beside the rows (bits of `needs`). */
typedef enum reef_need {
    REEF_NEED_GRAM = 1 << 0,    /* distances */
    REEF_NEED_ORIGIN = 1 << 1,  /* the point 0: norms of the rows as they are */
    REEF_NEED_CENTRE = 1 << 2,  /* the remembered centre; at first it is 0, or the coordinatewise median with MEDIAN */
    REEF_NEED_MEDIAN = 1 << 3,  /* distances from the coordinatewise median of exactly these rows */
    REEF_NEED_SELF = 1 << 4,    /* the receiver's own row must be given */
    REEF_NEED_SENDERS = 1 << 5, /* a memory per sender instead of distances; the library's own rules only */
} reef_need;

/* Over which coordinates one set of shares holds (`scope`): all, each segment on its own, or blocks of that many. */
#define REEF_SCOPE_WHOLE 0
#define REEF_SCOPE_SEGMENT (-1)

typedef struct reef_rule {
    const char *name;
    const char *summary;  /* one line */
    const char *citation; /* one line, "" if none */
    unsigned traits;      /* reef_trait bits, true for the default parameters */
    const reef_field *fields;
    ptrdiff_t field_count; /* at most 32 */
    size_t params_size;

    /* Optional: called once after the fields are read; derives constants, checks combinations of fields. */
    reef_status (*prepare)(void *params, reef_error *error);
    /* Optional: traits for these parameters where they differ from `traits`. */
    unsigned (*traits_of)(const void *params);
    /* Rules with a REEF_FIELD_LIARS field: the most liars that n >= 1 rows can bear, >= 0, and its reason in words. */
    ptrdiff_t (*bound)(const void *params, ptrdiff_t n);
    const char *bound_text; /* for instance "n >= 2 f + 3" */
    /* Rules with weigh or mix. */
    unsigned (*needs)(const void *params);
    int64_t (*scope)(const void *params); /* optional; NULL: REEF_SCOPE_WHOLE */
    /* Optional: false if n rows with f liars take too long to compute; limit_text says what is possible. */
    bool (*feasible)(const void *params, ptrdiff_t n, ptrdiff_t f);
    const char *limit_text;
    /* Optional, elementwise rules: a constant that depends on the number of values (with weights 1 / sum a_l^2), found once and
     * handed to every column. */
    double (*tune)(const void *params, double n);
    /* Optional: efficiency at Gaussian data, relative to the mean, that the rule is tuned to for n values. */
    double (*efficiency)(const void *params, double n);
    /* Optional, elementwise rules: least scale relative to the typical one of 4096 neighbouring coordinates. */
    double (*relative_floor)(const void *params);
    double (*scale)(const void *params, const reef_column *column); /* the scale that floor refers to */

    /* Result of one coordinate; share receives the n effective weights (>= 0, sum 1). */
    double (*column)(const void *params, const reef_column *column, double *share, reef_effort *effort);
    /* Optional fast path beside column: does what it can and returns how many coordinates it listed as hard (in those, values that are not
     * finite among them, it must leave share and rejected alone); -1: nothing done, use column throughout. */
    ptrdiff_t (*span)(const void *params, reef_span *span);
    /* Optional, for weigh: a number that depends on the parameters and the size (of points) alone and is worth keeping between
     * aggregations. */
    double (*constant)(const void *params, double size);
    /* share receives `points->count` coefficients (>= 0, sum 1). */
    reef_status (*weigh)(const void *params, const reef_points *points, double *share, reef_effort *effort,
                         reef_error *error);
    /* Number of rows that n rows become, 1 <= result <= n. */
    ptrdiff_t (*mixed)(const void *params, ptrdiff_t n);
    /* matrix receives mixed(n) x points->count coefficients, each row >= 0 with sum 1 (zeroed before the call);
     * weights receives the weight of each new row (sum 1). */
    reef_status (*mix)(const void *params, const reef_points *points, double *matrix, double *weights,
                       reef_error *error);
} reef_rule;

/* Adds a rule to a context; the struct must live as long as the context. A name that exists already is refused. */
REEF_API reef_status reef_agg_register(reef_context *context, const reef_rule *rule, reef_error *error);

/* The registry: built-in rules first, then the user's. index out of range or unknown name: NULL. */
REEF_API ptrdiff_t reef_rule_count(const reef_context *context);
REEF_API const reef_rule *reef_rule_at(const reef_context *context, ptrdiff_t index);
REEF_API const reef_rule *reef_rule_find(const reef_context *context, const char *name);

#ifdef __cplusplus
}
#endif
#endif
