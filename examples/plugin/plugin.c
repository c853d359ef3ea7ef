/* A plug-in: one rule, one attack and one problem of your own, available by name in rule strings, experiment files, `reef list` and Python.
 *
 *   midmean   rule: the mean of the middle half of the values, coordinate by coordinate
 *   drift     attack: moves away a little further in every round
 *   points    problem: agent k has a point x_k, and all agents look for the model w closest to all points,
 *             J_k(w) = |w - x_k|^2 / 2,   gradient w - x_k,   minimiser of the sum: the mean of the points
 *
 * Build:  cc -shared -fPIC plugin.c -o plugin.so $(pkg-config --cflags reef) -lm
 * Run:    reef --plugin ./plugin.so run plugin.yaml
 */
#include <reef/reef.h>
#include <stdint.h>
#include <stdlib.h>

/* --- the rule --- */

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

static double midmean_column(const void *params, const reef_column *column, double *share, reef_effort *effort)
{
    ptrdiff_t n = column->n;
    ptrdiff_t out = n / 4; /* left out at either end */
    double value = 0;
    (void)params;
    (void)effort;
    sort_indices(column->x, n, column->index);
    for (ptrdiff_t i = 0; i < n; i++) {
        ptrdiff_t l = column->index[i];
        share[l] = i >= out && i < n - out ? 1 / (double)(n - 2 * out) : 0;
        value += share[l] * column->x[l];
    }
    return value;
}

static const reef_rule midmean = {
    .kind = {.name = "midmean", .summary = "mean of the middle half of the values", .citation = ""},
    .traits = REEF_TRAIT_TRANSLATION | REEF_TRAIT_HULL,
    .column = midmean_column,
};

/* --- the attack --- */

typedef struct drift_params {
    double speed;
} drift_params;

static const reef_field drift_fields[] = {
    {.name = "speed",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(drift_params, speed),
     .preset = "1",
     .min = 0,
     .max = 1e6,
     .unit = "",
     .help = "distance per round, in every coordinate"},
};

static bool drift_message(const void *params, const reef_attack_view *view, float *out)
{
    const drift_params *p = params;
    for (ptrdiff_t i = 0; i < view->length; i++) {
        out[i] = (float)((double)view->own[i] + p->speed * (double)(view->round + 1));
    }
    return true;
}

static const reef_attack_kind drift = {
    .kind = {.name = "drift",
             .summary = "walks away a little further in every round",
             .citation = "",
             .fields = drift_fields,
             .field_count = 1,
             .params_size = sizeof(drift_params)},
    .traits = REEF_ATTACK_LANES, /* each number is independent, so repetitions may be side by side */
    .message = drift_message,
};

/* --- the problem --- */

typedef struct points_params {
    int64_t dimension;
    double spread;
} points_params;

static const reef_field points_fields[] = {
    {.name = "dimension",
     .type = REEF_FIELD_INT,
     .offset = offsetof(points_params, dimension),
     .preset = "3",
     .min = 1,
     .max = 1e6,
     .unit = "",
     .help = "coordinates of a point"},
    {.name = "spread",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(points_params, spread),
     .preset = "1",
     .min = 0,
     .max = 1e6,
     .unit = "",
     .help = "points lie within so much of (1, 1, ...), uniformly"},
};

typedef struct points {
    points_params params;
    ptrdiff_t agents;
    uint64_t seed;
} points;

/* Coordinate m of agent k's point: a function of the seed alone, so nothing is stored and any thread may call it. */
static double coordinate(const points *p, ptrdiff_t k, ptrdiff_t m)
{
    uint64_t z = p->seed + 0x9E3779B97F4A7C15U * (uint64_t)(k * p->params.dimension + m + 1);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return 1 + p->params.spread * ((double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1);
}

static reef_status points_create(const void *params, const reef_problem_setup *setup, void **state, reef_error *error)
{
    points *made = malloc(sizeof *made);
    (void)error; /* the status says enough here */
    if (!made) {
        return REEF_E_NOMEM;
    }
    *made = (points){*(const points_params *)params, setup->agents, setup->seed};
    *state = made;
    return REEF_OK;
}

static ptrdiff_t points_dimension(const void *state)
{
    return (ptrdiff_t)((const points *)state)->params.dimension;
}

static size_t points_work_size(const void *state, ptrdiff_t size, ptrdiff_t lanes)
{
    (void)state;
    (void)size;
    (void)lanes;
    return 0;
}

static void points_gradients(const void *state, const reef_batch *batch)
{
    const points *p = state;
    for (ptrdiff_t a = 0; a < batch->count; a++) {
        for (ptrdiff_t m = 0; m < p->params.dimension; m++) {
            double x = coordinate(p, batch->agents[a], m);
            batch->gradients[a][m] = (float)((double)batch->models[a][m] - x);
        }
    }
}

/* Of agent k, or (-1) of the sum of all risks with weights p. */
static void points_optimum(const void *state, ptrdiff_t agent, const double *p, int64_t round, ptrdiff_t repetition,
                           double *w)
{
    const points *s = state;
    (void)round;
    (void)repetition;
    for (ptrdiff_t m = 0; m < s->params.dimension; m++) {
        double sum = 0;
        double weight = 0;
        for (ptrdiff_t k = agent < 0 ? 0 : agent; k < (agent < 0 ? s->agents : agent + 1); k++) {
            double share = agent < 0 && p ? p[k] : 1;
            sum += share * coordinate(s, k, m);
            weight += share;
        }
        w[m] = sum / weight;
    }
}

static const reef_problem_kind points_kind = {
    .kind = {.name = "points",
             .summary = "the model nearest to the points of all agents",
             .citation = "",
             .fields = points_fields,
             .field_count = 2,
             .params_size = sizeof(points_params)},
    .traits = REEF_PROBLEM_OPTIMUM,
    .create = points_create,
    .destroy = free,
    .dimension = points_dimension,
    .work_size = points_work_size,
    .gradients = points_gradients,
    .optimum = points_optimum,
};

/* --- what the command and Python call --- */

REEF_PLUGIN(registry, error)
{
    reef_status status = registry->add(registry->context, REEF_FAMILY_RULE, &midmean.kind, error);
    if (status == REEF_OK) {
        status = registry->add(registry->context, REEF_FAMILY_ATTACK, &drift.kind, error);
    }
    return status == REEF_OK ? registry->add(registry->context, REEF_FAMILY_PROBLEM, &points_kind.kind, error) : status;
}
