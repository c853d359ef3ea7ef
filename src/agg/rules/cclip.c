/* cclip: centered clipping around a remembered centre v.
 *
 *   L times:  v <- v + sum a_l (x_l - v) min(1, tau / ||x_l - v||)
 *
 * v is the last result, kept in a reef_state; before the first aggregation it is 0 or the coordinatewise median. In Gram space v is
 * an affine combination of the rows and the centre, so the L steps need one pass. */
#include "agg/rules/gramspace.h"
#include "agg/rules/rules.h"

#include <math.h>

typedef struct cclip_params {
    double tau;
    int64_t steps;
    int start;
} cclip_params;

enum { ZERO, MEDIAN };
static const char *const starts[] = {"zero", "median", NULL};

static const reef_field cclip_fields[] = {
    {.name = "tau",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(cclip_params, tau),
     .preset = "100",
     .min = 1e-300,
     .max = 1e300,
     .unit = "distance",
     .help = "radius around the centre beyond which an input is clipped"},
    {.name = "L",
     .type = REEF_FIELD_INT,
     .offset = offsetof(cclip_params, steps),
     .preset = "1",
     .min = 1,
     .max = 1e6,
     .unit = "steps",
     .help = "clipping steps per aggregation"},
    {.name = "start",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(cclip_params, start),
     .preset = "zero",
     .unit = "",
     .help = "centre before anything is remembered: 0 (updates), or the coordinatewise median (models)",
     .words = starts},
};

static reef_status cclip_weigh(const void *params, const reef_points *points, double *share, reef_effort *effort,
                               reef_error *error)
{
    const cclip_params *p = params;
    double *product = points->work;
    double *distance = product + points->count;
    (void)error;
    for (ptrdiff_t q = 0; q < points->count; q++) {
        share[q] = q == points->centre;
    }
    for (; effort->iterations < p->steps; effort->iterations++) {
        double pulled = 0;
        rfi_gram_distances(points, share, product, distance);
        for (ptrdiff_t l = 0; l < points->n; l++) {
            distance[l] = points->a[l] * fmin(1, p->tau / distance[l]); /* now the pull of row l */
            pulled += distance[l];
        }
        for (ptrdiff_t q = 0; q < points->count; q++) {
            share[q] = share[q] * fmax(0, 1 - pulled) + (q < points->n ? distance[q] : 0);
        }
    }
    return REEF_OK;
}

static unsigned cclip_needs(const void *params)
{
    const cclip_params *p = params;
    return REEF_NEED_GRAM | REEF_NEED_CENTRE | (p->start == MEDIAN ? REEF_NEED_MEDIAN : 0);
}

static unsigned cclip_traits(const void *params)
{
    const cclip_params *p = params;
    /* the median counts rows, so that copies of one move it */
    unsigned by_count = rfi_agg_cclip.traits & ~(unsigned)REEF_TRAIT_REPLICATION;
    return p->start == MEDIAN ? by_count | REEF_TRAIT_TRANSLATION : rfi_agg_cclip.traits;
}

const reef_rule rfi_agg_cclip = {
    .kind = {.name = "cclip",
             .summary = "centered clipping: mean of the inputs clipped to a ball around the last result",
             .citation = "Karimireddy, He, Jaggi, Learning from history for Byzantine robust optimization (ICML 2021)",
             .fields = cclip_fields,
             .field_count = RFI_COUNT(cclip_fields),
             .params_size = sizeof(cclip_params)},
    .traits =
        REEF_TRAIT_WEIGHTS | REEF_TRAIT_REPLICATION | REEF_TRAIT_PERMUTATION | REEF_TRAIT_ROBUST | REEF_TRAIT_CENTRE,
    .traits_of = cclip_traits,
    .needs = cclip_needs,
    .weigh = cclip_weigh,
};
