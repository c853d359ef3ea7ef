/* Linear regression, the problem of Section 4 of the paper: parameters, what differs between agents, and how the optimum moves. */
#include "problem/lms.h"

#include "base/error.h"
#include "base/fields.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"
#include "num/gamma.h"
#include "num/rng.h"
#include "num/special.h"
#include "problem/problem.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const char *const covariance_words[] = {"identity", "diagonal", "ar1", NULL};
static const char *const loss_words[] = {"square", "huber", NULL};

#define REAL(key, default, least, most, of, text)                                                                      \
    {                                                                                                                  \
        .name = #key, .type = REEF_FIELD_REAL, .offset = offsetof(rfi_lms_params, key), .preset = (default),           \
        .min = (least), .max = (most), .unit = (of), .help = (text)                                                    \
    }
#define WORD(key, default, text)                                                                                       \
    {                                                                                                                  \
        .name = #key, .type = REEF_FIELD_WORD, .offset = offsetof(rfi_lms_params, key), .preset = (default),           \
        .unit = "", .help = (text), .words = key##_words                                                               \
    }

static const reef_field fields[] = {
    {.name = "dimension",
     .type = REEF_FIELD_INT,
     .offset = offsetof(rfi_lms_params, dimension),
     .preset = "10",
     .min = 1,
     .max = 100000000,
     .unit = "",
     .help = "M, numbers in a model"},
    REAL(noise, "0.01", 0, 1e12, "variance", "variance of the noise in the targets"),
    REAL(noise_spread, "1", 1, 1e6, "factor",
         "each agent's noise variance is multiplied by one in 1/s..s, log-uniform"),
    WORD(covariance, "identity",
         "covariance of the features: identity, diagonal (each agent its own), or ar1 (rho^|i-j|)"),
    REAL(spread, "4", 1, 1e6, "factor", "diagonal: the elements lie in 1/s..s, log-uniform"),
    REAL(rho, "0.5", -0.999, 0.999, "", "ar1: correlation of neighbouring features"),
    {.name = "optimum",
     .type = REEF_FIELD_TEXT,
     .offset = offsetof(rfi_lms_params, optimum),
     .preset = "random",
     .unit = "",
     .help =
         "the model to be found: random direction, ones (all equal), axis (the first), or its M numbers, as (1,0,-2)"},
    REAL(norm, "1", 0, 1e6, "", "length of that model, unless its numbers are given"),
    REAL(heterogeneity, "0", 0, 1e6, "standard deviation",
         "spread of each coordinate of an agent's own optimum around the common one (heterogeneity)"),
    REAL(drift, "0", 0, 1e6, "standard deviation", "step of each coordinate's random walk, per round"),
    REAL(outliers, "0", 0, 0.5, "probability", "probability that a sample's noise is an outlier"),
    REAL(outlier_noise, "100", 0, 1e12, "variance", "variance of the noise of outliers"),
    WORD(loss, "square", "square, or huber: residuals are clipped (robust adaptation)"),
    REAL(threshold, "1.345", 1e-6, 1e6, "standard deviations of the noise", "huber: where residuals are clipped"),
};

/* What differs between agents: local steps of the streams of RFI_PURPOSE_AGENT. */
enum { DRAW_NOISE, DRAW_COVARIANCE, DRAW_OFFSET };

float rfi_lms_sigma(const rfi_lms *lms, ptrdiff_t k)
{
    return lms->sigma ? lms->sigma[k] : lms->common_sigma;
}

/* ---- the optimum and its walk ---- */

/* w += factor * n_time, coordinates from..from+count-1. */
static void add_normals(const rfi_lms *lms, uint64_t time, double factor, ptrdiff_t from, ptrdiff_t count, double *w)
{
    const uint32_t zero = 0;
    float n[RFI_LMS_PART];
    rfi_normal_stream stream = rfi_normal_open(lms->seed, RFI_PURPOSE_DRIFT, (int64_t)time, 0);
    lms->lanes->normals(&stream, &zero, &zero, 1, from, count, n);
    for (ptrdiff_t m = 0; m < count; m++) {
        w[m] += factor * (double)n[m];
    }
}

/* A random walk that can be evaluated at any time (Levy's construction): its value at a power of two is that at the one before plus
 * independent normals, and in between it is found by halving: given the ends of an interval of length L, the middle is their mean plus
 * normals of variance L / 4. Each time has one set of normals, so the walk is a pure function of time. About 2 log2(round) sets. */
static void add_walk(const rfi_lms *lms, uint64_t round, ptrdiff_t from, ptrdiff_t count, double *w)
{
    const double drift = lms->params.drift;
    double right[RFI_LMS_PART];
    uint64_t low = 1;
    add_normals(lms, low, drift, from, count, w);
    for (; 2 * low <= round; low *= 2) {
        add_normals(lms, 2 * low, drift * sqrt((double)low), from, count, w);
    }
    for (ptrdiff_t m = 0; m < count; m++) {
        right[m] = w[m];
    }
    uint64_t length = low;
    if (low < round) {
        add_normals(lms, 2 * low, drift * sqrt((double)low), from, count, right);
    }
    while (low < round) { /* w at low, right at low + length, low < round < low + length */
        double middle[RFI_LMS_PART];
        for (ptrdiff_t m = 0; m < count; m++) {
            middle[m] = 0.5 * (w[m] + right[m]);
        }
        length /= 2;
        add_normals(lms, low + length, drift * sqrt(0.5 * (double)length), from, count, middle);
        const bool above = low + length <= round;
        low += above ? length : 0;
        for (ptrdiff_t m = 0; m < count; m++) {
            w[m] = above ? middle[m] : w[m];
            right[m] = above ? right[m] : middle[m];
        }
    }
}

void rfi_lms_optimum(const rfi_lms *lms, int64_t round, ptrdiff_t from, ptrdiff_t count, double *w)
{
    assert(from % 4 == 0 && count >= 0 && count <= RFI_LMS_PART && from + count <= lms->width);
    for (ptrdiff_t m = 0; m < count; m++) {
        w[m] = lms->optimum[from + m];
    }
    if (lms->params.drift > 0 && round > 0) {
        add_walk(lms, (uint64_t)round, from, count, w);
    }
}

/* "1,0,-2": exactly M numbers. */
static reef_status read_optimum(rfi_lms *lms, reef_error *error)
{
    const char *text = lms->params.optimum;
    rfi_slice rest = {text, strlen(text)};
    bool more = true;
    ptrdiff_t count = 0;
    for (; more; count++) {
        double value = 0;
        rfi_slice word = rfi_trim(rfi_cut(rest, ',', &rest, &more));
        if (!rfi_read_real(word, &value) || !(fabs(value) <= 1e12)) {
            return rfi_fail(
                error, REEF_E_SYNTAX,
                "lms: optimum = '%.40s' is not allowed; it takes random, ones, axis, or numbers, as (1,0,-2)", text);
        }
        if (count < lms->width) {
            lms->optimum[count] = value;
        }
    }
    if (count != lms->width) {
        return rfi_fail(error, REEF_E_RANGE, "lms: optimum has %td numbers, but dimension = %td", count, lms->width);
    }
    return REEF_OK;
}

static reef_status choose_optimum(rfi_lms *lms, reef_error *error)
{
    const bool random = strcmp(lms->params.optimum, "random") == 0;
    const bool ones = strcmp(lms->params.optimum, "ones") == 0;
    rfi_rng rng;
    double square = 0;
    if (!random && !ones && strcmp(lms->params.optimum, "axis") != 0) {
        return read_optimum(lms, error);
    }
    rfi_rng_init(&rng, lms->seed, RFI_PURPOSE_OPTIMUM, 0, 0, 0);
    for (ptrdiff_t m = 0; m < lms->width; m++) {
        lms->optimum[m] = random ? rfi_rng_normal(&rng) : (ones || m == 0);
        square += lms->optimum[m] * lms->optimum[m];
    }
    for (ptrdiff_t m = 0; m < lms->width; m++) {
        lms->optimum[m] *= lms->params.norm / sqrt(square);
    }
    return REEF_OK;
}

/* ---- agents ---- */

/* Log-uniform in 1/s..s. */
static double log_uniform(rfi_rng *rng, double s)
{
    return s * rfi_exact_exp(-2 * rfi_rng_uniform(rng) * rfi_exact_log(s));
}

static void choose_noise(rfi_lms *lms)
{
    for (ptrdiff_t k = 0; lms->sigma && k < lms->agents; k++) {
        rfi_rng rng;
        rfi_rng_init(&rng, lms->seed, RFI_PURPOSE_AGENT, (uint32_t)k, 0, DRAW_NOISE);
        lms->sigma[k] = (float)sqrt(lms->params.noise * log_uniform(&rng, lms->params.noise_spread));
    }
}

static void choose_covariance(rfi_lms *lms)
{
    for (ptrdiff_t k = 0; lms->root && k < lms->agents; k++) {
        rfi_rng rng;
        rfi_rng_init(&rng, lms->seed, RFI_PURPOSE_AGENT, (uint32_t)k, 0, DRAW_COVARIANCE);
        for (ptrdiff_t m = 0; m < lms->width; m++) {
            lms->root[k * lms->width + m] = (float)sqrt(log_uniform(&rng, lms->params.spread));
        }
    }
}

static void choose_offsets(rfi_lms *lms)
{
    const uint32_t zero = 0;
    const float h = (float)lms->params.heterogeneity;
    rfi_normal_stream stream = rfi_normal_open(lms->seed, RFI_PURPOSE_AGENT, DRAW_OFFSET, 0);
    for (ptrdiff_t k = 0; lms->offset && k < lms->agents; k++) {
        const uint32_t agent = (uint32_t)k;
        float *own = lms->offset + k * lms->width;
        lms->lanes->normals(&stream, &agent, &zero, 1, 0, lms->width, own);
        for (ptrdiff_t m = 0; m < lms->width; m++) {
            own[m] *= h;
        }
    }
}

/* ---- the problem ---- */

static void destroy(void *state)
{
    rfi_lms *lms = state;
    rfi_release(lms->context, lms->optimum);
    rfi_release(lms->context, lms->sigma);
    rfi_release(lms->context, lms->root);
    rfi_release(lms->context, lms->offset);
    rfi_release(lms->context, lms);
}

/* The arrays the parameters call for; false if one cannot be had. */
static bool allocate(rfi_lms *lms)
{
    const bool spread = lms->params.noise_spread > 1;
    const bool diagonal = lms->params.covariance == RFI_LMS_DIAGONAL;
    const bool own = lms->params.heterogeneity > 0;
    ptrdiff_t cells = 0;
    if ((diagonal || own) && !rfi_mul(lms->agents, lms->width, &cells)) {
        return false;
    }
    lms->optimum = rfi_allocate_many(lms->context, lms->width, sizeof *lms->optimum);
    lms->sigma = spread ? rfi_allocate_many(lms->context, lms->agents, sizeof *lms->sigma) : NULL;
    lms->root = diagonal ? rfi_allocate_many(lms->context, cells, sizeof *lms->root) : NULL;
    lms->offset = own ? rfi_allocate_many(lms->context, cells, sizeof *lms->offset) : NULL;
    return lms->optimum && (lms->sigma || !spread) && (lms->root || !diagonal) && (lms->offset || !own);
}

static reef_status create(const void *params, const reef_problem_setup *setup, void **state, reef_error *error)
{
    rfi_lms *lms = rfi_allocate(setup->context, sizeof *lms);
    if (!lms) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for lms");
    }
    *lms = (rfi_lms){.context = setup->context,
                     .params = *(const rfi_lms_params *)params,
                     .seed = setup->seed,
                     .agents = setup->agents,
                     .lanes = rfi_lanes_find()};
    lms->width = (ptrdiff_t)lms->params.dimension;
    lms->common_sigma = (float)sqrt(lms->params.noise);
    lms->contaminated = (float)rfi_normal_quantile(lms->params.outliers);
    if (!allocate(lms)) {
        reef_status status =
            rfi_fail(error, REEF_E_NOMEM, "not enough memory for lms with %td agents and dimension %td", setup->agents,
                     lms->width);
        destroy(lms);
        return status;
    }
    reef_status status = choose_optimum(lms, error);
    if (status != REEF_OK) {
        destroy(lms);
        return status;
    }
    choose_noise(lms);
    choose_covariance(lms);
    choose_offsets(lms);
    *state = lms;
    return REEF_OK;
}

static ptrdiff_t dimension(const void *state)
{
    return ((const rfi_lms *)state)->width;
}

const reef_problem_kind rfi_problem_lms = {
    .kind =
        {
            .name = "lms",
            .summary = "linear regression on streaming data, as in Section 4 of the paper",
            .citation = "Vlaski, Schroth, Muma and Zoubir, Robust and efficient aggregation for distributed learning, "
                        "EUSIPCO 2022",
            .fields = fields,
            .field_count = RFI_COUNT(fields),
            .params_size = sizeof(rfi_lms_params),
        },
    .traits = REEF_PROBLEM_LANES | REEF_PROBLEM_OPTIMUM,
    .create = create,
    .destroy = destroy,
    .dimension = dimension,
    .work_size = rfi_lms_work_size,
    .gradients = rfi_lms_gradients,
    .optimum = rfi_lms_minimiser,
    .excess = rfi_lms_excess,
    .theory = rfi_lms_theory,
    .variance = rfi_lms_variance,
};
