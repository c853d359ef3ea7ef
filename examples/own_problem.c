/* A learning problem of your own: robust location. Every agent holds a few measurements of a point in the plane, some of them outliers, and
 * its risk is a smooth version of the mean distance to them,
 *
 *   J_k(w) = mean over its points x of  sqrt(1 + |w - x|^2) - 1,      gradient  mean of (w - x) / sqrt(1 + |w - x|^2)
 *
 * The program lets eight agents descend together by averaging their gradients, and prints how these shrink.
 */
#include <reef/reef.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { AGENTS = 8, POINTS = 25, PLANE = 2 };

/* --- parameters: described once, for presets, specs and messages --- */

typedef struct location_params {
    double x, y; /* where the point is */
    double wild; /* share of measurements that have nothing to do with the point */
} location_params;

static const reef_field location_fields[] = {
    {.name = "x",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(location_params, x),
     .preset = "3",
     .unit = "",
     .help = "first coordinate"},
    {.name = "y",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(location_params, y),
     .preset = "-2",
     .unit = "",
     .help = "second coordinate"},
    {.name = "wild",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(location_params, wild),
     .preset = "0.2",
     .max = 1,
     .unit = "share",
     .help = "of wild measurements"},
};

/* --- the state: what create makes and the others only read --- */

typedef struct location {
    ptrdiff_t agents;
    float (*points)[POINTS][PLANE]; /* per agent */
} location;

/* Uniform in -1..1, from a generator of our own: all data is made here, once. */
static double uniform(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return (double)(z >> 11) * 0x1p-52 - 1;
}

static reef_status location_create(const void *params, const reef_problem_setup *setup, void **state, reef_error *error)
{
    const location_params *p = params;
    uint64_t random = setup->seed;
    location *made = malloc(sizeof *made);
    float(*points)[POINTS][PLANE] = malloc((size_t)setup->agents * sizeof *points);
    (void)error; /* the status says enough here */
    if (!made || !points) {
        free(made);
        free(points);
        return REEF_E_NOMEM;
    }
    for (ptrdiff_t i = 0; i < setup->agents * POINTS; i++) {
        double spread = uniform(&random) < 2 * p->wild - 1 ? 100 : 0.5;
        points[i / POINTS][i % POINTS][0] = (float)(p->x + spread * uniform(&random));
        points[i / POINTS][i % POINTS][1] = (float)(p->y + spread * uniform(&random));
    }
    *made = (location){.agents = setup->agents, .points = points};
    *state = made;
    return REEF_OK;
}

static void location_destroy(void *state)
{
    free(((location *)state)->points);
    free(state);
}

static ptrdiff_t location_dimension(const void *state)
{
    (void)state;
    return PLANE;
}

static size_t location_work_size(const void *state, ptrdiff_t size, ptrdiff_t lanes)
{
    (void)state;
    (void)size;
    (void)lanes;
    return 0;
}

static ptrdiff_t location_samples(const void *state, ptrdiff_t agent)
{
    (void)state;
    (void)agent;
    return POINTS;
}

/* Uses all points of the agent every time and ignores batch->size. */
static void location_gradients(const void *state, const reef_batch *batch)
{
    const location *l = state;
    for (ptrdiff_t a = 0; a < batch->count; a++) {
        const float *w = batch->models[a];
        double sum[PLANE] = {0};
        for (int i = 0; i < POINTS; i++) {
            const float *x = l->points[batch->agents[a]][i];
            double dx = (double)w[0] - (double)x[0];
            double dy = (double)w[1] - (double)x[1];
            double length = sqrt(1 + dx * dx + dy * dy);
            sum[0] += dx / length;
            sum[1] += dy / length;
        }
        batch->gradients[a][0] = (float)(sum[0] / POINTS);
        batch->gradients[a][1] = (float)(sum[1] / POINTS);
    }
}

static const reef_problem_kind location_kind = {
    .kind = {.name = "location",
             .summary = "robust location of a point in the plane",
             .citation = "",
             .fields = location_fields,
             .field_count = sizeof location_fields / sizeof location_fields[0],
             .params_size = sizeof(location_params)},
    .create = location_create,
    .destroy = location_destroy,
    .dimension = location_dimension,
    .work_size = location_work_size,
    .gradients = location_gradients,
    .samples = location_samples,
};

/* --- using it --- */

/* One round: every agent's gradient at w, then a step along their average. Returns the average's length. */
static double descend(const reef_problem *problem, int64_t round, float step, float w[PLANE])
{
    int32_t agents[AGENTS];
    const float *models[AGENTS];
    float gradient[AGENTS][PLANE];
    float *gradients[AGENTS];
    double mean[PLANE] = {0};
    for (int k = 0; k < AGENTS; k++) {
        agents[k] = k;
        models[k] = w;
        gradients[k] = gradient[k];
    }
    reef_batch batch = {
        .count = AGENTS, .agents = agents, .models = models, .gradients = gradients, .round = round, .lanes = 1};
    reef_problem_kind_of(problem)->gradients(reef_problem_state(problem), &batch);
    for (int k = 0; k < AGENTS; k++) {
        mean[0] += (double)gradient[k][0] / AGENTS;
        mean[1] += (double)gradient[k][1] / AGENTS;
    }
    w[0] -= step * (float)mean[0];
    w[1] -= step * (float)mean[1];
    return hypot(mean[0], mean[1]);
}

int main(void)
{
    reef_problem *problem = NULL;
    reef_error error = {REEF_OK, ""};
    char spec[200];
    float w[PLANE] = {0, 0};
    double length = 1;
    if (reef_problem_create_own(NULL, &problem, &location_kind, NULL, AGENTS, 1, &error) != REEF_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    (void)reef_problem_print(problem, spec, sizeof spec);
    printf("%s, %td agents\n", spec, reef_problem_agents(problem));
    for (int round = 0; round <= 60; round++) {
        length = descend(problem, round, 0.5F, w);
        if (round % 10 == 0) {
            printf("round %2d: gradient %.6f, now at (%.3f, %.3f)\n", round, length, (double)w[0], (double)w[1]);
        }
    }
    reef_problem_destroy(&problem);
    return length < 1e-3 && fabs((double)w[0] - 3) < 0.2 && fabs((double)w[1] + 2) < 0.2 ? 0 : 1;
}
