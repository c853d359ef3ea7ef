/* Gradients of lms: the hot loops.
 *
 * A lane is one repetition of one agent. Lanes are done sixteen at a time, whether they are repetitions of one agent or agents of one
 * repetition; arrays have the lanes of a coordinate next to each other. A lane's operations and their order do not depend on the other
 * lanes. The normals of a sample are: M for u, one for v and, if there are outliers, one that decides whether it is one.
 *
 *   residual   e = v + sum_m u(m) (target(m) - w(m)), clipped if the loss says so
 *   gradient   sum over the mini-batch of u (-e / size)
 */
#include "base/memory.h"
#include "num/rng.h"
#include "problem/lms.h"

#include <math.h>
#include <string.h>

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline)) /* so that the usual 16 lanes are a constant */
#else
#define INLINE static inline
#endif

typedef struct lane_group {
    const rfi_lms *lms;
    const reef_batch *batch;
    rfi_normal_stream stream;
    float factor;   /* -1 / size */
    float *data;    /* blocks_of x lanes: u, v, and what decides on outliers */
    float *root;    /* M x lanes: square roots of diagonal covariances; unused otherwise */
    float *optimum; /* M: w^o of this round */
    float *target;  /* M: the optimum of the agent; 0 for lanes of several agents */

    /* Where the models are and the gradients go: the caller's memory, or for lanes of several agents the two arrays below. */
    const float *model;
    float *gradient;
    ptrdiff_t stride; /* from one coordinate to the next */
    float *excess;    /* M x lanes: w - target */
    float *sum;       /* M x lanes */

    ptrdiff_t slot[RFI_LANES], lane[RFI_LANES]; /* place of the agent in the batch; lane of the caller's */
    uint32_t agent[RFI_LANES], repetition[RFI_LANES];
    float sigma[RFI_LANES];
} lane_group;

/* Normals of a sample, rounded up to whole blocks of the generator. */
static ptrdiff_t blocks_of(const rfi_lms *lms)
{
    return (lms->width + (lms->params.outliers > 0 ? 2 : 1) + 3) / 4 * 4;
}

static void lay_out(rfi_arena *arena, const rfi_lms *lms, ptrdiff_t lanes, lane_group *g)
{
    const ptrdiff_t gathered = lanes % RFI_LANES == 0 ? 0 : lms->width;
    g->optimum = rfi_arena_take(arena, lms->width, 1, sizeof(float));
    g->target = rfi_arena_take(arena, lms->width, 1, sizeof(float));
    g->data = rfi_arena_take(arena, blocks_of(lms), RFI_LANES, sizeof(float));
    g->root = rfi_arena_take(arena, lms->root ? lms->width : 0, RFI_LANES, sizeof(float));
    g->excess = rfi_arena_take(arena, gathered, RFI_LANES, sizeof(float));
    g->sum = rfi_arena_take(arena, gathered, RFI_LANES, sizeof(float));
}

size_t rfi_lms_work_size(const void *state, ptrdiff_t size, ptrdiff_t lanes)
{
    rfi_arena measure = {0};
    lane_group g;
    (void)size;
    lay_out(&measure, state, lanes, &g);
    return (size_t)measure.used;
}

/* ---- a group of lanes ---- */

static float target_of(const lane_group *g, ptrdiff_t k, ptrdiff_t m)
{
    const float *offset = g->lms->offset;
    return offset ? g->optimum[m] + offset[k * g->lms->width + m] : g->optimum[m];
}

/* Lane l of n is pair first + l of (agent of the batch, repetition): slot[l] and lane[l]. */
static void place(lane_group *g, ptrdiff_t first, ptrdiff_t n)
{
    const rfi_lms *lms = g->lms;
    ptrdiff_t a = first / g->batch->lanes;
    ptrdiff_t r = first % g->batch->lanes;
    for (ptrdiff_t l = 0; l < n; l++) {
        const ptrdiff_t k = g->batch->agents[a];
        g->slot[l] = a;
        g->lane[l] = r;
        g->agent[l] = (uint32_t)k;
        g->repetition[l] = (uint32_t)(g->batch->repetition + r);
        g->sigma[l] = rfi_lms_sigma(lms, k);
        for (ptrdiff_t m = 0; lms->root && m < lms->width; m++) {
            g->root[m * n + l] = lms->root[k * lms->width + m];
        }
        r++;
        if (r == g->batch->lanes) {
            r = 0;
            a++;
        }
    }
}

/* Sixteen repetitions of one agent: everything stays where it is. */
static void aim(lane_group *g)
{
    const ptrdiff_t a = g->slot[0];
    const ptrdiff_t r = g->lane[0];
    for (ptrdiff_t m = 0; m < g->lms->width; m++) {
        g->target[m] = target_of(g, g->batch->agents[a], m);
    }
    g->model = g->batch->models[a] + r;
    g->gradient = g->batch->gradients[a] + r;
    g->stride = g->batch->lanes;
}

/* Lanes of several agents are gathered, */
static void gather(lane_group *g, ptrdiff_t n)
{
    const ptrdiff_t lanes = g->batch->lanes;
    for (ptrdiff_t l = 0; l < n; l++) {
        const float *restrict model = g->batch->models[g->slot[l]] + g->lane[l];
        float *restrict excess = g->excess + l;
        for (ptrdiff_t m = 0; m < g->lms->width; m++) {
            excess[m * n] = model[m * lanes] - target_of(g, g->agent[l], m);
        }
    }
    memset(g->target, 0, (size_t)g->lms->width * sizeof *g->target);
    g->model = g->excess;
    g->gradient = g->sum;
    g->stride = n;
}

/* and their gradients sent back. */
static void scatter(const lane_group *g, ptrdiff_t n)
{
    const ptrdiff_t lanes = g->batch->lanes;
    for (ptrdiff_t l = 0; l < n; l++) {
        const float *restrict sum = g->sum + l;
        float *restrict gradient = g->batch->gradients[g->slot[l]] + g->lane[l];
        for (ptrdiff_t m = 0; m < g->lms->width; m++) {
            gradient[m * lanes] = sum[m * n];
        }
    }
}

/* ---- samples ---- */

/* Standard normals -> u ~ N(0, R_k), in place. */
INLINE void colour(const lane_group *g, ptrdiff_t n)
{
    const rfi_lms *lms = g->lms;
    float *restrict u = g->data;
    const float *restrict root = g->root;
    if (lms->root) {
        for (ptrdiff_t i = 0; i < lms->width * n; i++) {
            u[i] *= root[i];
        }
    } else if (lms->params.covariance == RFI_LMS_AR1) {
        const float rho = (float)lms->params.rho;
        const float rest = (float)sqrt(1 - lms->params.rho * lms->params.rho);
        for (ptrdiff_t m = 1; m < lms->width; m++) {
            const float *restrict before = u + (m - 1) * n;
            float *restrict here = u + m * n;
            for (ptrdiff_t l = 0; l < n; l++) {
                here[l] = rho * before[l] + rest * here[l];
            }
        }
    }
}

/* error = v, with its outliers. */
INLINE void add_noise(const lane_group *g, ptrdiff_t n, float *restrict error)
{
    const rfi_lms *lms = g->lms;
    const float *restrict v = g->data + lms->width * n;
    for (ptrdiff_t l = 0; l < n; l++) {
        error[l] = g->sigma[l] * v[l];
    }
    if (lms->params.outliers > 0) {
        const float large = (float)sqrt(lms->params.outlier_noise);
        for (ptrdiff_t l = 0; l < n; l++) {
            error[l] = v[n + l] < lms->contaminated ? large * v[l] : error[l];
        }
    }
}

/* Robust adaptation: residuals count for no more than threshold * sigma. */
INLINE void clip(const lane_group *g, ptrdiff_t n, float *restrict error)
{
    const float threshold = (float)g->lms->params.threshold;
    for (ptrdiff_t l = 0; l < n; l++) {
        const float most = threshold * g->sigma[l];
        const float least = error[l] < most ? error[l] : most;
        error[l] = least > -most ? least : -most;
    }
}

/* The two steps for fewer lanes than a vector has; in the same order as there. */
INLINE void residual(const lane_group *g, ptrdiff_t n, float *restrict error)
{
    const float *restrict u = g->data;
    const float *restrict model = g->model;
    for (ptrdiff_t m = 0; m < g->lms->width; m++) {
        for (ptrdiff_t l = 0; l < n; l++) {
            error[l] += u[m * n + l] * (g->target[m] - model[m * n + l]);
        }
    }
}

INLINE void scale(const lane_group *g, bool add, ptrdiff_t n, const float *restrict factor)
{
    const float *restrict u = g->data;
    float *restrict sum = g->gradient;
    for (ptrdiff_t m = 0; m < g->lms->width; m++) {
        for (ptrdiff_t l = 0; l < n; l++) {
            const float product = u[m * n + l] * factor[l];
            sum[m * n + l] = add ? product + sum[m * n + l] : product;
        }
    }
}

INLINE void add_sample(const lane_group *g, ptrdiff_t sample, ptrdiff_t n)
{
    const rfi_lms *lms = g->lms;
    const ptrdiff_t count = blocks_of(lms);
    float error[RFI_LANES];
    lms->lanes->normals(&g->stream, g->agent, g->repetition, n, sample * count, count, g->data);
    colour(g, n);
    add_noise(g, n, error);
    if (n == RFI_LANES) {
        lms->lanes->residual(g->data, g->target, g->model, g->stride, lms->width, error);
    } else {
        residual(g, n, error);
    }
    if (lms->params.loss == RFI_LMS_HUBER) {
        clip(g, n, error);
    }
    for (ptrdiff_t l = 0; l < n; l++) {
        error[l] *= g->factor;
    }
    if (n == RFI_LANES) {
        lms->lanes->scale(g->data, error, sample > 0, g->stride, lms->width, g->gradient);
    } else {
        scale(g, sample > 0, n, error);
    }
}

INLINE void add_samples(const lane_group *g, ptrdiff_t n)
{
    add_sample(g, 0, n);
    for (ptrdiff_t s = 1; s < g->batch->size; s++) {
        add_sample(g, s, n);
    }
}

/* w^o of the round, part by part. */
static void find_optimum(lane_group *g)
{
    const ptrdiff_t width = g->lms->width;
    double part[RFI_LMS_PART];
    for (ptrdiff_t from = 0; from < width; from += RFI_LMS_PART) {
        const ptrdiff_t count = width - from < RFI_LMS_PART ? width - from : RFI_LMS_PART;
        rfi_lms_optimum(g->lms, g->batch->round, from, count, part);
        for (ptrdiff_t m = 0; m < count; m++) {
            g->optimum[from + m] = (float)part[m];
        }
    }
}

/* Lanes of several agents, or fewer than sixteen. */
static void run_gathered(lane_group *g, ptrdiff_t n)
{
    gather(g, n);
    if (n == RFI_LANES) {
        add_samples(g, RFI_LANES);
    } else if (n == 1) {
        add_samples(g, 1);
    } else {
        add_samples(g, n);
    }
    scatter(g, n);
}

void rfi_lms_gradients(const void *state, const reef_batch *batch)
{
    const rfi_lms *lms = state;
    lane_group g = {.lms = lms, .batch = batch, .factor = -1 / (float)(batch->size > 1 ? batch->size : 1)};
    rfi_arena arena = {.base = batch->work};
    lay_out(&arena, lms, batch->lanes, &g);
    g.stream = rfi_normal_open(lms->seed, RFI_PURPOSE_DATA, batch->round, batch->step);
    find_optimum(&g);
    const ptrdiff_t pairs = batch->count * batch->lanes;
    for (ptrdiff_t first = 0; first < pairs; first += RFI_LANES) {
        const ptrdiff_t n = pairs - first < RFI_LANES ? pairs - first : RFI_LANES;
        place(&g, first, n);
        if (batch->lanes % RFI_LANES == 0) {
            aim(&g);
            add_samples(&g, RFI_LANES);
        } else {
            run_gathered(&g, n);
        }
    }
}
