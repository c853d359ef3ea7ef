/* A rule and a pre-aggregator of your own, registered at run time and used in a pipeline like the built-in ones.
 *
 *   shorth   elementwise: the mean of the n - f values that lie closest together
 *   pair     pre-aggregator: each row becomes its average with the row nearest to it
 */
#include <reef/reef.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- shorth: parameters, described once for spec strings, messages and `reef list` alike --- */

typedef struct shorth_params {
    reef_malicious f;
} shorth_params;

static const reef_field shorth_fields[] = {
    {.name = "f",
     .type = REEF_FIELD_MALICIOUS,
     .offset = offsetof(shorth_params, f),
     .preset = "max",
     .unit = "agents",
     .help = "malicious inputs to tolerate"},
};

/* The most malicious rows that n rows tolerate; Reef refuses more, and turns f=25% or f=max into column->f. */
static ptrdiff_t shorth_bound(const void *params, ptrdiff_t n)
{
    (void)params;
    return (n - 1) / 2;
}

/* Insertion sort of the indices 0..n-1 by value. */
static void sort_indices(const double *x, ptrdiff_t n, ptrdiff_t *order)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        ptrdiff_t j = i;
        for (; j > 0 && x[order[j - 1]] > x[i]; j--) {
            order[j] = order[j - 1];
        }
        order[j] = i;
    }
}

/* One coordinate. Besides the result, state the effective weights: the report is made from them. */
static double shorth_column(const void *params, const reef_column *column, double *share, reef_effort *effort)
{
    const double *x = column->x;
    ptrdiff_t *order = column->index; /* scratch, so that nothing is allocated here */
    ptrdiff_t kept = column->n - column->f;
    ptrdiff_t best = 0;
    double value = 0;
    (void)params;
    (void)effort; /* only for rules that iterate */
    sort_indices(x, column->n, order);
    for (ptrdiff_t i = 1; i + kept <= column->n; i++) {
        if (x[order[i + kept - 1]] - x[order[i]] < x[order[best + kept - 1]] - x[order[best]]) {
            best = i;
        }
    }
    memset(share, 0, (size_t)column->n * sizeof *share);
    for (ptrdiff_t i = best; i < best + kept; i++) {
        share[order[i]] = 1 / (double)kept;
        value += share[order[i]] * x[order[i]];
    }
    return value;
}

static const reef_rule shorth = {
    .kind = {.name = "shorth",
             .summary = "mean of the n - f values that lie closest together",
             .citation = "Andrews et al., Robust estimates of location (1972)",
             .fields = shorth_fields,
             .field_count = 1,
             .params_size = sizeof(shorth_params)},
    .traits = REEF_TRAIT_TRANSLATION | REEF_TRAIT_HULL | REEF_TRAIT_ROBUST, /* no WEIGHTS: Reef refuses unequal ones */
    .bound = shorth_bound,
    .bound_text = "n >= 2 f + 1",
    .column = shorth_column,
};

/* --- pair: sees the rows as points with distances, never their coordinates --- */

static unsigned pair_needs(const void *params)
{
    (void)params;
    return REEF_NEED_GRAM;
}

static ptrdiff_t pair_mixed(const void *params, ptrdiff_t n)
{
    (void)params;
    return n;
}

static reef_status pair_mix(const void *params, const reef_points *points, double *matrix, double *weights,
                            reef_error *error)
{
    (void)params;
    (void)error;
    for (ptrdiff_t l = 0; l < points->n; l++) {
        ptrdiff_t nearest = l;
        double least = INFINITY;
        for (ptrdiff_t k = 0; k < points->n; k++) {
            double distance = reef_points_distance2(points, l, k);
            if (k != l && distance < least) {
                least = distance;
                nearest = k;
            }
        }
        matrix[l * points->count + l] += 0.5;
        matrix[l * points->count + nearest] += 0.5;
        weights[l] = points->a[l];
    }
    return REEF_OK;
}

static const reef_rule pair = {
    .kind = {.name = "pair", .summary = "averages each row with the row nearest to it", .citation = ""},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE | REEF_TRAIT_HULL,
    .needs = pair_needs,
    .mixed = pair_mixed,
    .mix = pair_mix,
};

/* --- using them --- */

enum { AGENTS = 7, LENGTH = 4 };

/* Honest rows are near 1, 2, 3, 4; the last two rows are malicious. */
static double off_by(reef_context *context, const char *spec, reef_error *error)
{
    double data[AGENTS][LENGTH];
    double out[LENGTH];
    const void *rows[AGENTS];
    double worst = 0;
    reef_agg *agg = NULL;
    for (int l = 0; l < AGENTS; l++) {
        rows[l] = data[l];
        for (int m = 0; m < LENGTH; m++) {
            data[l][m] = l < AGENTS - 2 ? m + 1 + 0.01 * (l - 2) : 1000.0 * l;
        }
    }
    reef_status status = reef_agg_create(context, &agg, spec, error);
    if (status == REEF_OK) {
        status = reef_agg_apply(agg, &(reef_input){.rows = rows}, AGENTS, LENGTH, REEF_F64, out, NULL, error);
    }
    reef_agg_destroy(&agg);
    if (status != REEF_OK) {
        return (double)INFINITY;
    }
    for (int m = 0; m < LENGTH; m++) {
        double off = fabs(out[m] - (m + 1));
        worst = off > worst ? off : worst;
    }
    return worst;
}

int main(void)
{
    static const char *const specs[] = {"shorth", "shorth:f=2", "nnm:f=2 | shorth:f=2", "pair | shorth:f=2"};
    reef_context *context = NULL; /* your rules live in a context; other contexts do not see them */
    reef_error error = {REEF_OK, ""};
    int failed = 0;
    if (reef_context_create(&context, NULL, &error) != REEF_OK ||
        reef_kind_register(context, REEF_FAMILY_RULE, &shorth.kind, &error) != REEF_OK ||
        reef_kind_register(context, REEF_FAMILY_RULE, &pair.kind, &error) != REEF_OK) {
        fprintf(stderr, "%s\n", error.text);
        reef_context_destroy(&context);
        return 1;
    }
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        double worst = off_by(context, specs[i], &error);
        printf("%-22s off by %.3f\n", specs[i], worst);
        failed += !(worst <= 0.02);
    }
    /* Messages and checks come from the field table and the bound; nothing else had to be written. */
    failed += off_by(context, "shorth:f=4", &error) < (double)INFINITY;
    printf("%-22s refused: %s\n", "shorth:f=4", error.text);
    failed += off_by(context, "shorth:g=1", &error) < (double)INFINITY;
    printf("%-22s refused: %s\n", "shorth:g=1", error.text);
    reef_context_destroy(&context);
    return failed ? 1 : 0;
}
