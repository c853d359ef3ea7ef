/* fang_krum: directed deviation against rules that choose a row. All malicious agents send r - lambda s, where r is the model of
 * the previous round and s the signs of mu - r, with the largest lambda for which the rule in use still chooses that row.
 *
 * lambda starts at a bound of the paper's, (2 (h - 2) / max(h - f - 1, 1) + 1) max_i |x_i - r| / sqrt(M), and is halved until the rule
 * chooses; then the gap to the last refusal is bisected. Without a rule lambda = max_i |x_i - r| / sqrt(M).
 */
#include "attack/attack.h"

#include <math.h>

typedef struct fang_krum_params {
    int64_t evaluations;
} fang_krum_params;

static const reef_field fang_krum_fields[] = {
    {.name = "evaluations",
     .type = REEF_FIELD_INT,
     .offset = offsetof(fang_krum_params, evaluations),
     .preset = "20",
     .min = 1,
     .max = 1000,
     .unit = "",
     .help = "maximum number of trials of the rule"},
};

/* max_i |x_i - r| / sqrt(M) */
static double row_radius(const reef_attack_view *view)
{
    double largest = 0;
    double distance = 0;
    for (ptrdiff_t l = 0; l < view->known; l++) {
        rfi_lane_products(view, 0, 1, view->rows[l], view->previous, NULL, &distance);
        largest = distance > largest ? distance : largest;
    }
    return sqrt(largest / (double)view->length);
}

static double first_lambda(const reef_attack_view *view, double radius)
{
    double h = (double)view->honest;
    double spare = h - (double)view->malicious_count - 1;
    double others = h > 2 ? h - 2 : 0;
    return (2 * others / (spare > 1 ? spare : 1) + 1) * radius;
}

static void place(const reef_attack_view *view, const float *mean, double lambda, float *out)
{
    for (ptrdiff_t i = 0; i < view->length; i++) {
        double r = (double)view->previous[i];
        double s = mean[i] > view->previous[i] ? 1 : -1;
        out[i] = rfi_to_float(r - lambda * s);
    }
}

/* Whether the rule returns the malicious agents' row. */
static bool is_chosen(const reef_attack_view *view, const float *mean, double lambda, float *out)
{
    float *result = rfi_attack_row(view, 1);
    place(view, mean, lambda, out);
    if (!rfi_attack_try(view, out, result)) {
        return false;
    }
    double worst = 0;
    for (ptrdiff_t i = 0; i < view->length; i++) {
        double miss = fabs((double)result[i] - (double)out[i]);
        worst = miss <= worst ? worst : miss; /* NaN is carried on */
    }
    return worst <= 1e-3 * lambda;
}

static double find_lambda(const fang_krum_params *p, const reef_attack_view *view, const float *mean, float *out)
{
    double radius = row_radius(view);
    double lambda = first_lambda(view, radius);
    double refused = lambda;
    int64_t left = p->evaluations;
    if (!view->aggregate) {
        return radius;
    }
    while (left > 0 && !is_chosen(view, mean, lambda, out)) {
        refused = lambda;
        lambda /= 2;
        left--;
    }
    for (; left > 1 && refused > 1.01 * lambda; left--) {
        double middle = 0.5 * (lambda + refused);
        if (is_chosen(view, mean, middle, out)) {
            lambda = middle;
        } else {
            refused = middle;
        }
    }
    return lambda;
}

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    float *mean = rfi_attack_row(view, 0);
    if (view->known == 0) {
        return rfi_attack_honest(view, out);
    }
    rfi_attack_mean(view, mean);
    place(view, mean, find_lambda(params, view, mean, out), out);
    return true;
}

const reef_attack_kind rfi_attack_fang_krum = {
    .kind = {.name = "fang_krum",
             .summary = "as far against the mean update as a rule that selects an input still selects it",
             .citation =
                 "Fang, Cao, Jia, Gong, Local model poisoning attacks to Byzantine-robust federated learning (2020)",
             .fields = fang_krum_fields,
             .field_count = RFI_COUNT(fang_krum_fields),
             .params_size = sizeof(fang_krum_params)},
    .traits = REEF_ATTACK_ROWS | REEF_ATTACK_RULE | REEF_ATTACK_SAME_PREVIOUS,
    .work_rows = 2,
    .message = message,
};
