/* A trial: rows, weights and what an aggregator made of them. Sizes are fixed, so a trial is a plain (static) variable. */
#ifndef TESTS_SUPPORT_TRIAL_H
#define TESTS_SUPPORT_TRIAL_H

#include <reef/reef.h>

enum { ROWS_MAX = 100, LENGTH_MAX = 72 };

typedef struct trial {
    /* input */
    ptrdiff_t n, m;
    reef_dtype dtype;
    double x[ROWS_MAX][LENGTH_MAX]; /* rounded to float by trial_apply if dtype is REEF_F32 */
    bool weighted;
    double weights[ROWS_MAX];
    bool has_self;
    ptrdiff_t self;
    int64_t round;
    reef_state *state;

    /* outcome */
    reef_status status;
    reef_error error;
    bool untouched; /* no byte of out was written */
    double out[LENGTH_MAX];
    double shares[ROWS_MAX * LENGTH_MAX]; /* [l * m + i] */
    double centre[LENGTH_MAX];
    double trust[ROWS_MAX];
    double rejected[ROWS_MAX];
    reef_reason reason[ROWS_MAX];
    ptrdiff_t dropped;
    int64_t masked;
    double centre_share;
    double mean_iterations;
    int max_iterations;
    int64_t unconverged;
    double efficiency;
    ptrdiff_t dominant;
} trial;

/* What the rows look like. All but HEAVY are multiples of 2^-12 below 64, so that shifting by whole numbers and scaling by
 * small ones is exact in float32 too. */
typedef enum rows_kind {
    ROWS_GAUSS,  /* standard normal */
    ROWS_OFFSET, /* normal around 20 */
    ROWS_TIES,   /* integers -2..2 */
    ROWS_SPARSE, /* mostly zero */
    ROWS_HEAVY,  /* normal / uniform: outliers of any size */
    ROWS_KINDS,
} rows_kind;

/* Resets the trial and fills in n x m rows; equal weights. */
void trial_fill(trial *t, rows_kind kind, ptrdiff_t n, ptrdiff_t m, reef_dtype dtype, uint32_t seed);
/* Unequal weights between 0.2 and 2 (not normalised). */
void trial_weigh(trial *t, uint32_t seed);
/* Leaves out the rows marked true; self moves along. */
void trial_remove(const trial *from, const bool *out, trial *to);

/* Aggregates; every outcome field is filled in when status is REEF_OK. Also without a report, which must change
 * nothing. */
void trial_apply(trial *t, const reef_agg *agg);
/* The same by spec; a spec that cannot be created gives its status. */
void trial_run(trial *t, const char *spec);
/* The same, and status must be REEF_OK. */
void trial_must_run(trial *t, const char *spec);

/* Weight a_l, sum 1. */
double trial_weight(const trial *t, ptrdiff_t l);
/* Largest finite |x|. */
double trial_magnitude(const trial *t);
/* Fails unless both outcomes have the same bits in out. */
void trial_same_out(const trial *a, const trial *b, const char *what);
/* Fails unless out agrees within tol. */
void trial_close_out(const trial *a, const trial *b, double tol, const char *what);

/* An aggregator that must exist. */
reef_agg *make_agg(const char *spec);
/* Unit roundoff times two of a type: 2^-23 or 2^-52. */
double dtype_epsilon(reef_dtype dtype);

#endif
