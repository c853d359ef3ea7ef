/* Gradients of lms: the hot loops.
 *
 * A lane is one repetition of one agent. Lanes are done sixteen at a time, whether they are repetitions of one agent or agents of one
 * repetition; arrays have the lanes of a coordinate next to each other. A lane's operations and their order do not depend on the other
 * lanes. Of a sample the normals are: M for u, one for v and, if there are outliers, one that decides.
 *
 *   target - w   per coordinate and lane         residual e = u' (target - w) + v
 *   sum          of u e over the mini-batch      gradient -sum / size
 */
#include "base/memory.h"
#include "num/rng.h"
#include "problem/lms.h"

#include <math.h>
#include <string.h>

enum { LANES = 16 };

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline)) /* so that the usual 16 lanes are a constant */
#else
#define INLINE static inline
#endif

typedef struct lane_group {
    const rfi_lms *lms;
    const reef_batch *batch;
    rfi_normal_stream stream;
    float *optimum; /* M: w^o of this round */
    float *miss;    /* M x lanes: target - w */
    float *sum;     /* M x lanes */
    float *data;    /* blocks_of x lanes: u, v, and what decides on outliers */
    float *root;    /* M x lanes: square roots of diagonal covariances; unused otherwise */
    uint32_t agent[LANES], repetition[LANES];
    float sigma[LANES];
} lane_group;

/* Normals of a sample, rounded up to whole blocks of the generator. */
static ptrdiff_t blocks_of(const rfi_lms *lms)
{
    return (lms->width + (lms->params.outliers > 0 ? 2 : 1) + 3) / 4 * 4;
}

static void lay_out(rfi_arena *arena, const rfi_lms *lms, lane_group *g)
{
    g->optimum = rfi_arena_take(arena, lms->width, 1, sizeof(float));
    g->miss = rfi_arena_take(arena, lms->width, LANES, sizeof(float));
    g->sum = rfi_arena_take(arena, lms->width, LANES, sizeof(float));
    g->data = rfi_arena_take(arena, blocks_of(lms), LANES, sizeof(float));
    g->root = rfi_arena_take(arena, lms->root ? lms->width : 0, LANES, sizeof(float));
}

size_t rfi_lms_work_size(const void *state, ptrdiff_t size, ptrdiff_t lanes)
{
    rfi_arena measure = {0};
    lane_group g;
    (void)size;
    (void)lanes;
    lay_out(&measure, state, &g);
    return (size_t)measure.used;
}

/* ---- a group of lanes ---- */

/* Lane l of n is pair first + l of (agent of the batch, repetition). */
static void fetch(lane_group *g, ptrdiff_t first, ptrdiff_t n)
{
    const rfi_lms *lms = g->lms;
    const ptrdiff_t width = lms->width;
    const ptrdiff_t lanes = g->batch->lanes;
    for (ptrdiff_t l = 0; l < n; l++) {
        const ptrdiff_t a = (first + l) / lanes;
        const ptrdiff_t r = (first + l) % lanes;
        const ptrdiff_t k = g->batch->agents[a];
        const float *model = g->batch->models[a] + r;
        g->agent[l] = (uint32_t)k;
        g->repetition[l] = (uint32_t)(g->batch->repetition + r);
        g->sigma[l] = rfi_lms_sigma(lms, k);
        for (ptrdiff_t m = 0; m < width; m++) {
            const float target = lms->offset ? g->optimum[m] + lms->offset[k * width + m] : g->optimum[m];
            g->miss[m * n + l] = target - model[m * lanes];
        }
        for (ptrdiff_t m = 0; lms->root && m < width; m++) {
            g->root[m * n + l] = lms->root[k * width + m];
        }
    }
}

static void deliver(const lane_group *g, ptrdiff_t first, ptrdiff_t n)
{
    const ptrdiff_t lanes = g->batch->lanes;
    const float factor = -1.0F / (float)(g->batch->size > 1 ? g->batch->size : 1);
    for (ptrdiff_t l = 0; l < n; l++) {
        float *gradient = g->batch->gradients[(first + l) / lanes] + (first + l) % lanes;
        for (ptrdiff_t m = 0; m < g->lms->width; m++) {
            gradient[m * lanes] = g->sum[m * n + l] * factor;
        }
    }
}

/* Sixteen repetitions of one agent: the same without strides. */
static void fetch_agent(lane_group *g, ptrdiff_t first)
{
    const rfi_lms *lms = g->lms;
    const ptrdiff_t lanes = g->batch->lanes;
    const ptrdiff_t a = first / lanes;
    const ptrdiff_t k = g->batch->agents[a];
    const float *model = g->batch->models[a] + first % lanes;
    const float sigma = rfi_lms_sigma(lms, k);
    for (ptrdiff_t l = 0; l < LANES; l++) {
        g->agent[l] = (uint32_t)k;
        g->repetition[l] = (uint32_t)(g->batch->repetition + first % lanes + l);
        g->sigma[l] = sigma;
    }
    for (ptrdiff_t m = 0; m < lms->width; m++) {
        const float target = lms->offset ? g->optimum[m] + lms->offset[k * lms->width + m] : g->optimum[m];
        const float *restrict from = model + m * lanes;
        float *restrict miss = g->miss + m * LANES;
        for (ptrdiff_t l = 0; l < LANES; l++) {
            miss[l] = target - from[l];
        }
        for (ptrdiff_t l = 0; lms->root && l < LANES; l++) {
            g->root[m * LANES + l] = lms->root[k * lms->width + m];
        }
    }
}

static void deliver_agent(const lane_group *g, ptrdiff_t first)
{
    const ptrdiff_t lanes = g->batch->lanes;
    const float factor = -1.0F / (float)(g->batch->size > 1 ? g->batch->size : 1);
    float *gradient = g->batch->gradients[first / lanes] + first % lanes;
    for (ptrdiff_t m = 0; m < g->lms->width; m++) {
        const float *restrict sum = g->sum + m * LANES;
        float *restrict to = gradient + m * lanes;
        for (ptrdiff_t l = 0; l < LANES; l++) {
            to[l] = sum[l] * factor;
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

INLINE void add_sample(const lane_group *g, ptrdiff_t sample, ptrdiff_t n)
{
    const rfi_lms *lms = g->lms;
    const ptrdiff_t width = lms->width;
    const ptrdiff_t count = blocks_of(lms);
    const float *restrict u = g->data;
    const float *restrict miss = g->miss;
    float *restrict sum = g->sum;
    float error[LANES];
    lms->normals(&g->stream, g->agent, g->repetition, n, sample * count, count, g->data);
    colour(g, n);
    add_noise(g, n, error);
    for (ptrdiff_t m = 0; m < width; m++) {
        for (ptrdiff_t l = 0; l < n; l++) {
            error[l] += u[m * n + l] * miss[m * n + l];
        }
    }
    if (lms->params.loss == RFI_LMS_HUBER) {
        clip(g, n, error);
    }
    for (ptrdiff_t m = 0; m < width; m++) {
        for (ptrdiff_t l = 0; l < n; l++) {
            sum[m * n + l] += u[m * n + l] * error[l];
        }
    }
}

INLINE void add_samples(const lane_group *g, ptrdiff_t n)
{
    memset(g->sum, 0, (size_t)(g->lms->width * n) * sizeof *g->sum);
    add_sample(g, 0, n);
    for (ptrdiff_t s = 1; s < g->batch->size; s++) {
        add_sample(g, s, n);
    }
}

void rfi_lms_gradients(const void *state, const reef_batch *batch)
{
    const rfi_lms *lms = state;
    lane_group g = {.lms = lms, .batch = batch};
    rfi_arena arena = {.base = batch->work};
    lay_out(&arena, lms, &g);
    g.stream = rfi_normal_open(lms->seed, RFI_PURPOSE_DATA, batch->round, batch->step);
    double part[RFI_LMS_PART];
    for (ptrdiff_t from = 0; from < lms->width; from += RFI_LMS_PART) {
        const ptrdiff_t count = lms->width - from < RFI_LMS_PART ? lms->width - from : RFI_LMS_PART;
        rfi_lms_optimum(lms, batch->round, from, count, part);
        for (ptrdiff_t m = 0; m < count; m++) {
            g.optimum[from + m] = (float)part[m];
        }
    }
    const ptrdiff_t pairs = batch->count * batch->lanes;
    for (ptrdiff_t first = 0; first < pairs; first += LANES) {
        const ptrdiff_t n = pairs - first < LANES ? pairs - first : LANES;
        if (batch->lanes % LANES == 0) {
            fetch_agent(&g, first);
            add_samples(&g, LANES);
            deliver_agent(&g, first);
            continue;
        }
        fetch(&g, first, n);
        if (n == LANES) {
            add_samples(&g, LANES);
        } else if (n == 1) {
            add_samples(&g, 1);
        } else {
            add_samples(&g, n);
        }
        deliver(&g, first, n);
    }
}
