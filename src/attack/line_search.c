/* line_search: the best factor for a known direction. All malicious agents send mu + t d, with the t that moves the result of the
 * rule in use farthest from mu:
 *
 *   direction=alie   d = sigma,       t = z of ALIE to begin with
 *   direction=ipm    d = -(mu - r),   t = 1 + epsilon of IPM, 1.5 to begin with; r the reference
 *
 * After the first t its halves and doubles are tried in turn, then golden section on log t between the neighbours of the best one. The
 * result is never worse than the first t. Without a rule, or if it always fails, the first t is sent.
 */
#include "attack/attack.h"

#include <assert.h>
#include <math.h>

typedef struct line_search_params {
    int direction;
    int reference;
    int64_t evaluations;
} line_search_params;

enum { ALIE, IPM };
static const char *const directions[] = {"alie", "ipm", NULL};

static const reef_field line_search_fields[] = {
    {.name = "direction",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(line_search_params, direction),
     .preset = "alie",
     .unit = "",
     .help = "direction of the search: along the standard deviations (alie), or against the mean update (ipm)",
     .words = directions},
    RFI_FIELD_REFERENCE(line_search_params, "previous"),
    {.name = "evaluations",
     .type = REEF_FIELD_INT,
     .offset = offsetof(line_search_params, evaluations),
     .preset = "20",
     .min = 1,
     .max = 1000,
     .unit = "",
     .help = "maximum number of trials of the rule"},
};

typedef struct search {
    const reef_attack_view *view;
    const float *mean, *direction;
    float *result;
    float *out;
    int64_t left;       /* evaluations */
    double best, value; /* best t, and the squared distance it reaches; value < 0: none yet */
} search;

static void place(const search *s, double t)
{
    for (ptrdiff_t i = 0; i < s->view->length; i++) {
        s->out[i] = rfi_to_float((double)s->mean[i] + t * (double)s->direction[i]);
    }
}

/* How far t moves the result, squared; -1 if the rule fails. */
static double evaluate(search *s, double t)
{
    double value = -1;
    place(s, t);
    s->left--;
    if (rfi_attack_try(s->view, s->out, s->result)) {
        rfi_lane_products(s->view, 0, 1, s->result, s->mean, NULL, &value);
        value = isnan(value) ? -1 : value;
    }
    if (value > s->value) {
        s->value = value;
        s->best = t;
    }
    return value;
}

/* Golden section for log2 t in [low, high]. */
static void refine(search *s, double low, double high)
{
    const double golden = 0.6180339887498949;
    double a = high - golden * (high - low);
    double b = low + golden * (high - low);
    double at_a = s->left > 0 ? evaluate(s, exp2(a)) : 0;
    double at_b = s->left > 0 ? evaluate(s, exp2(b)) : 0;
    while (s->left > 0 && high - low > 1e-3) {
        if (at_a > at_b) {
            high = b;
            b = a;
            at_b = at_a;
            a = high - golden * (high - low);
            at_a = evaluate(s, exp2(a));
        } else {
            low = a;
            a = b;
            at_a = at_b;
            b = low + golden * (high - low);
            at_b = evaluate(s, exp2(b));
        }
    }
}

static double find_factor(search *s, double first)
{
    double base = fabs(first) > 0.25 ? fabs(first) : 0.25;
    int64_t refining = s->left / 2;
    s->best = first;
    s->value = -1;
    if (!s->view->aggregate) {
        return first;
    }
    double at_first = evaluate(s, first);
    for (int step = 1; s->left > refining && step <= 60; step++) {
        /* +1, -1, +2, -2, ... */
        (void)evaluate(s, ldexp(base, step % 2 ? (step + 1) / 2 : -step / 2));
    }
    if (s->value > 0 && s->best > 0) {
        double middle = log2(s->best);
        refine(s, middle - 1, middle + 1);
    }
    assert(s->left >= 0 && s->value >= at_first); /* no more trials than allowed, and never worse than the first */
    (void)at_first;
    return s->best;
}

static void find_direction(const line_search_params *p, const reef_attack_view *view, float *mean, float *direction)
{
    const float *reference = rfi_reference_row(view, p->reference);
    double mu[RFI_ATTACK_BLOCK];
    double deviation[RFI_ATTACK_BLOCK];
    for (ptrdiff_t from = 0; from < view->length; from += RFI_ATTACK_BLOCK) {
        ptrdiff_t count = rfi_block_count(view, from);
        rfi_attack_moments(view, from, count, mu, deviation);
        for (ptrdiff_t i = 0; i < count; i++) {
            double origin = reference ? (double)reference[from + i] : 0;
            mean[from + i] = rfi_to_float(mu[i]);
            direction[from + i] = rfi_to_float(p->direction == ALIE ? deviation[i] : origin - mu[i]);
        }
    }
}

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const line_search_params *p = params;
    float *mean = rfi_attack_row(view, 0);
    float *direction = rfi_attack_row(view, 1);
    search s = {.view = view, .mean = mean, .direction = direction, .result = rfi_attack_row(view, 2), .out = out};
    s.left = p->evaluations;
    find_direction(p, view, mean, direction);
    place(&s, find_factor(&s, p->direction == ALIE ? rfi_alie_z(view->honest, view->malicious_count, false) : 1.5));
    return true;
}

static unsigned traits_of(const void *params)
{
    const line_search_params *p = params;
    return REEF_ATTACK_ROWS | REEF_ATTACK_RULE |
           (p->direction == ALIE ? REEF_ATTACK_SAME : rfi_reference_trait(p->reference));
}

const reef_attack_kind rfi_attack_line_search = {
    .kind = {.name = "line_search",
             .summary = "ALIE or IPM with the factor that moves the rule in force farthest",
             .citation = "Allouah, Farhadkhani, Guerraoui, Gupta, Pinot, Stephan, Fixing by mixing (2023)",
             .fields = line_search_fields,
             .field_count = RFI_COUNT(line_search_fields),
             .params_size = sizeof(line_search_params)},
    .traits = REEF_ATTACK_ROWS | REEF_ATTACK_RULE,
    .work_rows = 3,
    .message = message,
    .traits_of = traits_of,
};
