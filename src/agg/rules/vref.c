/* vref: one Tukey weight per agent and block, from the norm of its residual over the block.
 *
 *   m0 = coordinatewise median;  r_l = ||x_l - m||;  T = kappa_B median_l ||x_l - m0||, fixed
 *   b_l = (1 - min(r_l / T, 1)^2)^2;  m <- sum a b x / sum a b, iterated
 *
 * kappa_B = max(c_B / chi_B, 2) gives the requested efficiency for blocks of B coordinates; the floor 2 keeps the iteration from
 * collapsing onto one agent when B is large, and with weights also kappa^2 >= 1 + 8 max a_l. Colluders who stay inside the spread of each
 * coordinate, and so deceive elementwise rules, stand out in the norm. Needs no bound on the number of malicious rows.
 * All iterates after m0 are convex combinations of the rows, so the Gram matrix around m0 is all that is needed. */
#include "agg/rules/gramspace.h"
#include "agg/rules/rules.h"
#include "num/order.h"
#include "num/tuning.h"

#include <math.h>
#include <string.h>

typedef struct vref_params {
    double efficiency;
    int64_t block; /* > 0: that many coordinates; -1: whole, -2: segment */
    double tol;
    int64_t max_iter;
} vref_params;

static const char *const block_words[] = {"whole", "segment", NULL};

static const reef_field vref_fields[] = {
    {.name = "efficiency",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(vref_params, efficiency),
     .preset = "0.98",
     .min = RFI_EFFICIENCY_MIN,
     .max = RFI_EFFICIENCY_MAX,
     .unit = "",
     .help = "efficiency for Gaussian data relative to the mean (more where the floor on the radius binds)"},
    {.name = "block",
     .type = REEF_FIELD_INT,
     .offset = offsetof(vref_params, block),
     .preset = "whole",
     .min = 1,
     .max = 1e15,
     .unit = "coordinates",
     .help = "what one weight per agent covers: the whole model, each segment (layer), or blocks of this size",
     .words = block_words},
    {.name = "tol",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(vref_params, tol),
     .preset = "1e-9",
     .min = 1e-14,
     .max = 1,
     .unit = "radii",
     .help = "stop when a step is shorter"},
    {.name = "max_iter",
     .type = REEF_FIELD_INT,
     .offset = offsetof(vref_params, max_iter),
     .preset = "100",
     .min = 1,
     .max = 1e6,
     .unit = "steps",
     .help = "cap on the number of steps"},
};

static double vref_constant(const void *params, double size)
{
    const vref_params *p = params;
    return rfi_joint_kappa(size, p->efficiency);
}

static int64_t vref_scope(const void *params)
{
    const vref_params *p = params;
    if (p->block > 0) {
        return p->block;
    }
    return p->block == -1 ? REEF_SCOPE_WHOLE : REEF_SCOPE_SEGMENT;
}

static unsigned vref_needs(const void *params)
{
    (void)params;
    return REEF_NEED_GRAM | REEF_NEED_MEDIAN;
}

/* T from the distances to the coordinatewise median. */
static double rejection_radius(const reef_points *points, const double *r, double *spare)
{
    double largest = 0;
    for (ptrdiff_t l = 0; l < points->n; l++) {
        spare[l] = isfinite(r[l]) ? r[l] : 1e300;
        largest = points->a[l] > largest ? points->a[l] : largest;
    }
    double kappa = fmax(points->constant, sqrt(1 + 8 * largest));
    return kappa * rfi_median(spare, points->n, RFI_MEDIAN_AVERAGE);
}

/* w_l = a_l b_l / sum; with T = 0 only the rows at the centre count. */
static void weigh_rows(const reef_points *points, const double *r, double radius, double *w)
{
    double sum = 0;
    for (ptrdiff_t l = 0; l < points->count; l++) {
        w[l] = 0;
        if (l < points->n) {
            double q = radius > 0 ? fmin(r[l] / radius, 1) : (double)(r[l] > 0);
            w[l] = points->a[l] * (1 - q * q) * (1 - q * q);
        }
        sum += w[l];
    }
    for (ptrdiff_t l = 0; l < points->n; l++) {
        w[l] /= sum;
    }
}

/* |d| in Gram space, d = next - share, from G share and G next: no further product is needed. */
static double step_length(const double *share, const double *next, const double *product, const double *product_next,
                          ptrdiff_t count)
{
    double squared = 0;
    for (ptrdiff_t p = 0; p < count; p++) {
        double d = next[p] - share[p];
        if (d != 0) { /* a far point, whose products are undefined, has no share before and after */
            squared += d * (product_next[p] - product[p]);
        }
    }
    return sqrt(squared > 0 ? squared : 0);
}

static reef_status vref_weigh(const void *params, const reef_points *points, double *share, reef_effort *effort,
                              reef_error *error)
{
    const vref_params *p = params;
    ptrdiff_t count = points->count;
    double *r = points->work;
    double *product = r + count;
    double *next = product + count;
    double *spare = next + count; /* G next */
    (void)error;
    for (ptrdiff_t l = 0; l < points->n; l++) {
        r[l] = points->far[l] ? (double)INFINITY : sqrt(points->gram[l * count + l]);
    }
    double radius = rejection_radius(points, r, spare);
    weigh_rows(points, r, radius, share);
    effort->iterations = 1;
    effort->converged = radius == 0;
    double square = effort->converged ? 0 : rfi_gram_product(points, share, product);
    while (!effort->converged && effort->iterations < p->max_iter) {
        rfi_gram_spread(points, product, square, r);
        weigh_rows(points, r, radius, next);
        square = rfi_gram_product(points, next, spare);
        double gone = step_length(share, next, product, spare, count);
        memcpy(share, next, (size_t)count * sizeof *share);
        memcpy(product, spare, (size_t)count * sizeof *product);
        effort->iterations++;
        effort->converged = gone <= p->tol * radius;
    }
    return REEF_OK;
}

const reef_rule rfi_agg_vref = {
    .kind = {.name = "vref",
             .summary = "VREF: one robust weight per agent and block; catches shifts that no single coordinate shows",
             .citation = "Reef; after Maronna (1976) and Vlaski et al. (EUSIPCO 2022)",
             .fields = vref_fields,
             .field_count = RFI_COUNT(vref_fields),
             .params_size = sizeof(vref_params)},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_PERMUTATION | REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE |
              REEF_TRAIT_HULL | REEF_TRAIT_ROBUST,
    .needs = vref_needs,
    .scope = vref_scope,
    .constant = vref_constant,
    .weigh = vref_weigh,
};
