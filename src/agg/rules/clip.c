/* clip: static clipping. Each row longer than c is shortened to length c: x <- x min(1, c / ||x||). Meant for updates, not for whole
 * models. In points: the row moves towards the origin, z = d x + (1 - d) 0. */
#include "agg/rules/rules.h"

#include <math.h>
#include <string.h>

typedef struct clip_params {
    double c;
} clip_params;

static const reef_field clip_fields[] = {
    {.name = "c",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(clip_params, c),
     .preset = "2",
     .min = 0,
     .max = 1e300,
     .unit = "norm",
     .help = "greatest length of an input"},
};

static ptrdiff_t clip_mixed(const void *params, ptrdiff_t n)
{
    (void)params;
    return n;
}

static reef_status clip_mix(const void *params, const reef_points *points, double *matrix, double *weights,
                            reef_error *error)
{
    const clip_params *p = params;
    (void)error;
    for (ptrdiff_t l = 0; l < points->n; l++) {
        double norm = sqrt(reef_points_distance2(points, l, points->origin));
        rfi_shorten(points, l, norm > p->c ? p->c / norm : 1, matrix);
    }
    memcpy(weights, points->a, (size_t)points->n * sizeof *weights);
    return REEF_OK;
}

static unsigned clip_needs(const void *params)
{
    (void)params;
    return REEF_NEED_GRAM | REEF_NEED_ORIGIN;
}

const reef_rule rfi_agg_clip = {
    .kind = {.name = "clip",
             .summary = "shortens every input to length c at most (for updates)",
             .citation = "static clipping as in Allouah et al., Adaptive gradient clipping (2024) and ByzFL",
             .fields = clip_fields,
             .field_count = RFI_COUNT(clip_fields),
             .params_size = sizeof(clip_params)},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_REPLICATION | REEF_TRAIT_PERMUTATION | REEF_TRAIT_ROBUST,
    .needs = clip_needs,
    .mixed = clip_mixed,
    .mix = clip_mix,
};
