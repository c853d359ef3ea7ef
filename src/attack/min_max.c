/* min_max: as far from the mean as possible without standing out by distance.
 *
 *   out = mu + gamma d,   d = -sigma (std), -(mu - r)/|mu - r| (unit), -sign(mu - r) (sign), r the reference
 *   limit=max: the largest gamma with max_i |out - x_i|   <= max_ij |x_i - x_j|          (Min-Max)
 *   limit=sum:                        sum_i |out - x_i|^2 <= max_i sum_j |x_i - x_j|^2   (Min-Sum)
 *
 * With a_i = |mu - x_i|^2, b_i = (mu - x_i)'d, c = |d|^2 the distance to x_i is a_i + 2 b_i gamma + c gamma^2, so that gamma is the root of a
 * quadratic for each i, and the least of them: no search is needed. The same holds for the sums. And since
 * sum_j |x_i - x_j|^2 = n a_i + sum_j a_j, only the largest distance of all pairs costs n^2 passes; pairs=mean takes the root mean
 * square distance of the remotest row to the others for it, a lower bound, and needs 2 n.
 */
#include "attack/attack.h"

#include <assert.h>
#include <math.h>

typedef struct min_max_params {
    int direction;
    int limit;
    int pairs;
    int reference;
} min_max_params;

enum { STD, UNIT, SIGN };
enum { LIMIT_MAX, LIMIT_SUM };
enum { PAIRS_ALL, PAIRS_MEAN };
static const char *const directions[] = {"std", "unit", "sign", NULL};
static const char *const limits[] = {"max", "sum", NULL};
static const char *const pairings[] = {"all", "mean", NULL};

static const reef_field min_max_fields[] = {
    {.name = "direction",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(min_max_params, direction),
     .preset = "std",
     .unit = "",
     .help = "move against the standard deviations, the mean update, or its signs",
     .words = directions},
    {.name = "limit",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(min_max_params, limit),
     .preset = "max",
     .unit = "",
     .help = "max: no farther from any honest vector than these are apart; sum: the same by sums of squared distances",
     .words = limits},
    {.name = "pairs",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(min_max_params, pairs),
     .preset = "all",
     .unit = "",
     .help = "for limit=max: the largest distance of all pairs of vectors, or a lower bound that costs less",
     .words = pairings},
    RFI_FIELD_REFERENCE(min_max_params, "previous"),
};

/* ---- direction ---- */

static void minus_deviations(const reef_attack_view *view, float *out)
{
    double mean[RFI_ATTACK_BLOCK];
    double deviation[RFI_ATTACK_BLOCK];
    for (ptrdiff_t from = 0; from < view->length; from += RFI_ATTACK_BLOCK) {
        ptrdiff_t count = rfi_block_count(view, from);
        rfi_attack_moments(view, from, count, mean, deviation);
        for (ptrdiff_t i = 0; i < count; i++) {
            out[from + i] = rfi_to_float(-deviation[i]);
        }
    }
}

static void minus_signs(const reef_attack_view *view, const float *mean, const float *reference, float *out)
{
    for (ptrdiff_t i = 0; i < view->length; i++) {
        float origin = reference ? reference[i] : 0;
        out[i] = (float)((mean[i] < origin) - (mean[i] > origin));
    }
}

/* One group of lanes. */
static void minus_unit(const reef_attack_view *view, ptrdiff_t first, const float *mean, const float *reference,
                       float *out)
{
    double norm[RFI_LANE_GROUP];
    ptrdiff_t count = rfi_lane_count(view, first);
    rfi_lane_products(view, first, count, mean, reference, NULL, norm);
    for (ptrdiff_t j = 0; j < count; j++) {
        norm[j] = norm[j] > 0 ? sqrt(norm[j]) : 1;
    }
    for (ptrdiff_t i = first; i < view->length; i += view->lanes) {
        for (ptrdiff_t j = 0; j < count; j++) {
            double origin = reference ? (double)reference[i + j] : 0;
            out[i + j] = rfi_to_float((origin - (double)mean[i + j]) / norm[j]);
        }
    }
}

static void find_direction(const min_max_params *p, const reef_attack_view *view, const float *mean, float *out)
{
    const float *reference = rfi_reference_row(view, p->reference);
    if (p->direction == STD) {
        minus_deviations(view, out);
    } else if (p->direction == SIGN) {
        minus_signs(view, mean, reference, out);
    } else {
        for (ptrdiff_t first = 0; first < view->lanes; first += RFI_LANE_GROUP) {
            minus_unit(view, first, mean, reference, out);
        }
    }
}

/* ---- how far: all for one group of lanes ---- */

typedef struct group {
    const min_max_params *params;
    const reef_attack_view *view;
    const float *mean, *direction;
    ptrdiff_t first, count;
    double a_sum[RFI_LANE_GROUP], a_max[RFI_LANE_GROUP]; /* of a_i */
    double c[RFI_LANE_GROUP];
    double limit[RFI_LANE_GROUP]; /* squared */
    double gamma[RFI_LANE_GROUP];
} group;

static void sum_distances(group *g)
{
    double a[RFI_LANE_GROUP];
    for (ptrdiff_t l = 0; l < g->view->known; l++) {
        rfi_lane_products(g->view, g->first, g->count, g->mean, g->view->rows[l], NULL, a);
        for (ptrdiff_t j = 0; j < g->count; j++) {
            g->a_sum[j] += a[j];
            g->a_max[j] = a[j] > g->a_max[j] ? a[j] : g->a_max[j];
        }
    }
}

static void find_limit(group *g)
{
    double n = (double)g->view->known;
    double distance[RFI_LANE_GROUP];
    bool exact = g->params->limit == LIMIT_MAX && g->params->pairs == PAIRS_ALL;
    for (ptrdiff_t j = 0; j < g->count; j++) {
        double remotest = n * g->a_max[j] + g->a_sum[j]; /* sum_j |x_i - x_j|^2 */
        g->limit[j] = g->params->limit == LIMIT_SUM ? remotest : exact || n < 2 ? 0 : remotest / (n - 1);
    }
    for (ptrdiff_t l = 1; l < g->view->known && exact; l++) {
        for (ptrdiff_t k = 0; k < l; k++) {
            rfi_lane_products(g->view, g->first, g->count, g->view->rows[l], g->view->rows[k], NULL, distance);
            for (ptrdiff_t j = 0; j < g->count; j++) {
                g->limit[j] = distance[j] > g->limit[j] ? distance[j] : g->limit[j];
            }
        }
    }
}

/* The largest gamma with a + 2 b gamma + c gamma^2 <= limit, 0 if there is none (by rounding). */
static double largest_root(double a, double b, double c, double limit)
{
    double room = limit - a;
    if (!(room > 0) || !(c > 0)) {
        return 0;
    }
    double root = sqrt(b * b + c * room);
    return b > 0 ? room / (b + root) : (root - b) / c;
}

static void find_gamma(group *g)
{
    double n = (double)g->view->known;
    double a[RFI_LANE_GROUP];
    double b[RFI_LANE_GROUP];
    for (ptrdiff_t j = 0; j < g->count; j++) {
        /* sum_i b_i = 0 */
        bool sums = g->params->limit == LIMIT_SUM;
        g->gamma[j] = sums ? largest_root(g->a_sum[j], 0, n * g->c[j], g->limit[j]) : (double)INFINITY;
    }
    for (ptrdiff_t l = 0; l < g->view->known && g->params->limit == LIMIT_MAX; l++) {
        rfi_lane_products(g->view, g->first, g->count, g->mean, g->view->rows[l], NULL, a);
        rfi_lane_products(g->view, g->first, g->count, g->mean, g->view->rows[l], g->direction, b);
        for (ptrdiff_t j = 0; j < g->count; j++) {
            double gamma = largest_root(a[j], b[j], g->c[j], g->limit[j]);
            g->gamma[j] = gamma < g->gamma[j] ? gamma : g->gamma[j];
        }
    }
}

static void move_lanes(const min_max_params *p, const reef_attack_view *view, ptrdiff_t first, const float *mean,
                       float *out)
{
    group g = {.params = p, .view = view, .mean = mean, .direction = out, .first = first};
    g.count = rfi_lane_count(view, first);
    rfi_lane_products(view, first, g.count, out, NULL, NULL, g.c);
    sum_distances(&g);
    find_limit(&g);
    find_gamma(&g);
    for (ptrdiff_t j = 0; j < g.count; j++) {
        assert(!(g.gamma[j] < 0)); /* away from the mean, not across it; NaN where honest rows are */
    }
    for (ptrdiff_t i = first; i < view->length; i += view->lanes) {
        for (ptrdiff_t j = 0; j < g.count; j++) {
            out[i + j] = rfi_to_float((double)mean[i + j] + g.gamma[j] * (double)out[i + j]);
        }
    }
}

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const min_max_params *p = params;
    float *mean = rfi_attack_row(view, 0);
    if (view->known == 0) {
        return rfi_attack_honest(view, out);
    }
    rfi_attack_mean(view, mean);
    find_direction(p, view, mean, out);
    for (ptrdiff_t first = 0; first < view->lanes; first += RFI_LANE_GROUP) {
        move_lanes(p, view, first, mean, out);
    }
    return true;
}

static unsigned traits_of(const void *params)
{
    const min_max_params *p = params;
    return REEF_ATTACK_LANES | REEF_ATTACK_ROWS |
           (p->direction == STD ? REEF_ATTACK_SAME : rfi_reference_trait(p->reference));
}

const reef_attack_kind rfi_attack_min_max = {
    .kind = {.name = "min_max",
             .summary = "as far from the honest mean as the honest vectors are from each other",
             .citation = "Shejwalkar, Houmansadr, Manipulating the Byzantine: optimizing model poisoning attacks and "
                         "defenses for federated learning (2021)",
             .fields = min_max_fields,
             .field_count = RFI_COUNT(min_max_fields),
             .params_size = sizeof(min_max_params)},
    .traits = REEF_ATTACK_LANES | REEF_ATTACK_ROWS,
    .work_rows = 1,
    .message = message,
    .traits_of = traits_of,
};
