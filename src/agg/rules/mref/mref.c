/* mref: MREF, weights from memory, values from now. The rule itself; see mref.h for notation and constants.
 *
 *   b_l = min of: gate (far away now), windows (averages far from the others'), split (a group of its own), rhythm and energy
 *         (restless, though the averages look well); over c_l, the number of those who send what l sends
 *   out = sum a_l b_l x_l / sum a_l b_l
 *
 * Most rows equal: their value, and nothing is learned. At most five rows, the receiver's own among them: its own average is the centre,
 * and the result is the geometric median with weights a_l b_l (in the sketch, if there is one). All weights vanish: the mean of the half
 * nearest to the median. */
#include "agg/rules/mref/mref.h"

#include "agg/rules/rules.h"
#include "base/error.h"
#include "num/order.h"

#include <math.h>
#include <string.h>

static const char *const horizon_words[] = {"auto", NULL};
static const char *const sketch_words[] = {"auto", "full", NULL};
static const char *const seed_words[] = {"auto", NULL};
static const char *const part_words[] = {
    "nothing", "gate",  "short",  "middle",    "long",     "split",     "rhythm",  "energy",  "medoid",    "spread",
    "tail",    "floor", "copies", "precision", "together", "probation", "balance", "opinion", "additions", NULL};

static const reef_field mref_fields[] = {
    {.name = "horizon",
     .type = REEF_FIELD_INT,
     .offset = offsetof(rfi_mref_params, horizon),
     .preset = "auto",
     .min = 16,
     .max = 1e6,
     .unit = "rounds",
     .help = "longest window; auto: 10 / step size of the strategy, rounded up to a power of two; 512 if the step size "
             "is unknown",
     .words = horizon_words},
    {.name = "sketch",
     .type = REEF_FIELD_INT,
     .offset = offsetof(rfi_mref_params, sketch),
     .preset = "auto",
     .min = 16,
     .max = 1024,
     .unit = "numbers",
     .help =
         "numbers kept per sender and window, a power of two; full: all; auto: all of up to 1024 coordinates, else 64",
     .words = sketch_words},
    {.name = "lazy",
     .type = REEF_FIELD_INT,
     .offset = offsetof(rfi_mref_params, lazy),
     .preset = "8",
     .min = 0,
     .max = 1024,
     .unit = "per window",
     .help = "how often a window is evaluated within its length; 0: in every round",
     .words = NULL},
    {.name = "forget",
     .type = REEF_FIELD_INT,
     .offset = offsetof(rfi_mref_params, forget),
     .preset = "5120",
     .min = 1,
     .max = 1e12,
     .unit = "rounds",
     .help = "a sender that was away for longer starts afresh"},
    {.name = "seed",
     .type = REEF_FIELD_INT,
     .offset = offsetof(rfi_mref_params, seed),
     .preset = "auto",
     .min = 0,
     .max = 1e15,
     .unit = "",
     .help =
         "seed of the sketch, which attackers must not know; auto: derived from the run's seed, else drawn when the "
         "memory is created",
     .words = seed_words},
    {.name = "without",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(rfi_mref_params, without),
     .preset = "nothing",
     .unit = "",
     .help = "leaves a part out, for ablation studies (docs/robustness.md)",
     .words = part_words},
};

static reef_status mref_prepare(void *params, reef_error *error)
{
    const rfi_mref_params *p = params;
    if (p->sketch > 0 && (p->sketch & (p->sketch - 1)) != 0) {
        return rfi_fail(error, REEF_E_RANGE,
                        "mref: sketch = %lld is not allowed; it takes full, auto, or a power of two from 16 to 1024",
                        (long long)p->sketch);
    }
    return REEF_OK;
}

static unsigned mref_needs(const void *params)
{
    (void)params;
    return 0;
}

double rfi_mref_flat(double r, double full, double none)
{
    double u = (r - full) / (none - full);
    u = u > 0 ? (u < 1 ? u : 1) : 0;
    return (1 - u * u) * (1 - u * u);
}

double rfi_mref_median(const double *x, ptrdiff_t n, double *spare)
{
    memcpy(spare, x, (size_t)n * sizeof *spare);
    return rfi_median(spare, n, RFI_MEDIAN_AVERAGE);
}

double rfi_mref_vote(const rfi_mref_view *view, const double *x, double *spare)
{
    ptrdiff_t *order = view->index;
    double all = 0;
    double sum = 0;
    bool heads = true;
    for (ptrdiff_t l = 0; l < view->n; l++) {
        all += view->traces[l].voice;
        heads = heads && view->traces[l].voice == 1;
    }
    double by_heads = rfi_mref_median(x, view->n, spare);
    if (heads) {
        return by_heads;
    }
    rfi_argsort(x, view->n, order, order + view->n);
    ptrdiff_t i = 0;
    for (; i + 1 < view->n; i++) {
        sum += view->traces[order[i]].voice;
        if (sum >= (0.5 - 1e-9) * all) {
            break;
        }
    }
    bool half = i + 1 < view->n && sum <= (0.5 + 1e-9) * all;
    return fmax(by_heads, half ? (x[order[i]] + x[order[i + 1]]) / 2 : x[order[i]]);
}

/* ---- the aggregation ---- */

/* Median distance of the rows from their median; fails if most are out of reach. */
static reef_status find_scale(const rfi_mref_view *recall, double *scale, reef_error *error)
{
    ptrdiff_t far = 0;
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        recall->work[l] = isfinite(recall->norm[l]) ? recall->norm[l] : 1e300;
        far += !isfinite(recall->norm[l]);
    }
    *scale = rfi_median(recall->work, recall->n, RFI_MEDIAN_AVERAGE);
    if (2 * far >= recall->n) {
        return rfi_fail(error, REEF_E_FAR,
                        "%td of %td inputs are so far apart that squared distances overflow; scale the data down", far,
                        recall->n);
    }
    return REEF_OK;
}

/* share_l = a_l b_l / sum; false if hardly anything is left. */
static bool share_out(const reef_points *points, const double *b, double *share)
{
    double sum = 0;
    for (ptrdiff_t l = 0; l < points->n; l++) {
        share[l] = points->a[l] * b[l];
        sum += share[l];
    }
    for (ptrdiff_t l = 0; sum > 0 && l < points->n; l++) {
        share[l] /= sum;
    }
    return sum > 1e-9;
}

/* The rows at the median, or the half nearest to it. */
static void share_nearest(const reef_points *points, const rfi_mref_view *recall, double most)
{
    for (ptrdiff_t l = 0; l < points->n; l++) {
        recall->weight[l] = recall->norm[l] <= most;
    }
}

/* Distance of two vectors in scales: squares of differences between large rows would overflow, though those of their residuals do not. */
static double distance_in_scales(const double *x, const double *y, ptrdiff_t count, double scale)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        double d = x[i] / scale - y[i] / scale;
        sum += d * d;
    }
    return sqrt(sum);
}

/* Geometric median of the residuals with weights `share`; becomes the shares of the last step (Weiszfeld). */
static void geometric_median(const reef_points *points, const rfi_mref_view *recall, double scale, double *share)
{
    enum { STEPS = 25 };
    ptrdiff_t n = points->n;
    double *at = recall->line;
    double *distance = recall->work;
    double *weight = recall->work + n;
    double *spare = recall->work + 2 * n;
    memset(at, 0, (size_t)recall->numbers * sizeof *at); /* the coordinatewise median */
    memcpy(weight, share, (size_t)n * sizeof *weight);
    for (int step = 0; step < STEPS; step++) {
        for (ptrdiff_t l = 0; l < n; l++) {
            distance[l] = distance_in_scales(recall->residual + l * recall->numbers, at, recall->numbers, scale);
        }
        double least = 1e-3 * rfi_mref_median(distance, n, spare) + 1e-300;
        double sum = 0;
        for (ptrdiff_t l = 0; l < n; l++) {
            share[l] = weight[l] / fmax(distance[l], least);
            sum += share[l];
        }
        memset(at, 0, (size_t)recall->numbers * sizeof *at);
        for (ptrdiff_t l = 0; l < n; l++) {
            share[l] /= sum;
            for (ptrdiff_t i = 0; i < recall->numbers; i++) {
                at[i] += share[l] * recall->residual[l * recall->numbers + i];
            }
        }
    }
}

static const rfi_mref_tolerance tolerance = {.wider = RFI_MREF_SPREAD_WIDER,
                                             .apart = RFI_MREF_SPREAD_APART,
                                             .apart_few = RFI_MREF_SPREAD_APART_FEW,
                                             .young = RFI_MREF_SPLIT_YOUNG};
static const rfi_mref_tolerance first_tolerance = {
    .wider = RFI_MREF_SPREAD_WIDER_FIRST, .apart = RFI_MREF_SPLIT_APART, .apart_few = RFI_MREF_SPLIT_APART_FEW};

static rfi_mref_round begin_round(const rfi_mref_params *p, rfi_mref_view *recall, double scale)
{
    rfi_mref_round round = {.params = p, .recall = recall, .n = recall->n};
    double n = (double)recall->n;
    double *ages = recall->work;
    round.own = recall->own;
    round.few = 1 + (round.own ? RFI_MREF_FEW_OWN : RFI_MREF_FEW) / (n * n);
    round.h0 = 1 / (2 * fmin((double)recall->numbers, RFI_MREF_RANK));
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        ages[l] = (double)recall->age[l];
    }
    round.age = recall->typical_age = (int64_t)rfi_median(ages, recall->n, RFI_MEDIAN_LOWER);
    round.tolerance = p->without == RFI_MREF_ADDITIONS ? &first_tolerance : &tolerance;
    round.q = rfi_mref_work(&round, RFI_MREF_Q);
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        round.q[l] = recall->norm[l] / scale;
    }
    return round;
}

/* ---- diagnostics ---- */

static void tell_round(const rfi_mref_view *recall, double *numbers)
{
    numbers[RFI_MREF_APART] = recall->shared->together;
    for (int j = 0; j < RFI_WINDOWS; j++) {
        double *number = numbers + (ptrdiff_t)j * RFI_MREF_NUMBERS;
        number[RFI_MREF_ROUNDS] = (double)recall->window[j];
        number[RFI_MREF_SPREAD_OF] = recall->spread[j];
        number[RFI_MREF_SEPARATION] = recall->separation[j];
    }
}

static void tell_senders(const rfi_mref_view *recall, double *factors)
{
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        const rfi_mref_trace *trace = &recall->traces[l];
        double *factor = factors + l * RFI_MREF_FACTORS;
        factor[RFI_MREF_BY_GATE] = recall->gate[l];
        factor[RFI_MREF_BY_ENERGY] = recall->by_energy[l];
        factor[RFI_MREF_BY_COPIES] = recall->by_copies[l];
        factor[RFI_MREF_BY_TOGETHER] = trace->together;
        factor[RFI_MREF_BY_AGE] = recall->by_age[l];
        factor[RFI_MREF_BY_OPINION] = recall->by_opinion[l];
        for (int j = 0; j < RFI_WINDOWS; j++) {
            factor[RFI_MREF_BY_SHORT + j] = trace->factor[j][RFI_BY_WINDOW];
            factor[RFI_MREF_BY_SPLIT] = fmin(factor[RFI_MREF_BY_SPLIT], trace->factor[j][RFI_BY_SPLIT]);
            factor[RFI_MREF_BY_RHYTHM] = fmin(factor[RFI_MREF_BY_RHYTHM], trace->factor[j][RFI_BY_RHYTHM]);
        }
    }
}

/* Copies have one voice together, and so have those who act together; remembers what was said of each sender apart from that. */
static void share_voices(const rfi_mref_view *recall)
{
    int64_t every = rfi_mref_look_every(recall);
    int64_t last_look = (recall->rounds - 1) / every * every;
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        rfi_mref_trace *trace = &recall->traces[l];
        /* The largest one since the last look, or liars would see to it that they are out whenever it is looked who acts together. */
        bool again = recall->memory->heard[l] > last_look;
        trace->believed = again ? fmax(trace->believed, recall->weight[l]) : recall->weight[l];
        /* In votes only copies count as one: two camps share their noise in each, and the honest one must not lose by that. */
        trace->voice = recall->by_copies[l];
        recall->by_copies[l] = fmin(recall->by_copies[l], trace->noise);
        recall->weight[l] *= fmin(recall->by_copies[l], trace->together);
    }
}

static reef_status mref_weigh(const void *params, const reef_points *points, double *share, reef_effort *effort,
                              reef_error *error)
{
    const rfi_mref_params *p = params;
    reef_recall *seen = points->recall;
    rfi_mref_view *recall = rfi_mref_look(p, seen);
    double scale = 0;
    (void)effort;
    reef_status status = find_scale(recall, &scale, error);
    if (status != REEF_OK) {
        return status;
    }
    tell_round(recall, seen->number);
    seen->number[RFI_MREF_BALANCED] = 1;
    seen->idle = !(scale > 0);
    if (seen->idle) {
        share_nearest(points, recall, 0);
        (void)share_out(points, recall->weight, share);
        return REEF_OK;
    }
    rfi_mref_round round = begin_round(p, recall, scale);
    rfi_mref_gate(&round, scale);
    for (int j = 0; j < RFI_WINDOWS; j++) {
        rfi_mref_window(&round, j);
    }
    rfi_mref_energy(&round);
    share_voices(recall);
    rfi_mref_put_on_probation(&round);
    rfi_mref_ask_again(&round, scale);
    seen->number[RFI_MREF_BALANCED] = rfi_mref_balance(&round, points->a);
    tell_round(recall, seen->number);
    tell_senders(recall, seen->factor);
    if (!share_out(points, recall->weight, share)) {
        share_nearest(points, recall, scale);
        (void)share_out(points, recall->weight, share);
    } else if (round.own) {
        geometric_median(points, recall, scale, share);
    }
    return REEF_OK;
}

const reef_rule rfi_agg_mref = {
    .kind = {.name = "mref",
             .summary =
                 "MREF: remembers every sender and detects, over time, colluders that stay within the honest spread",
             .citation = "Reef; prior art: Alistarh, Allen-Zhu, Li (2018), Karimireddy, He, Jaggi (ICML 2021)",
             .fields = mref_fields,
             .field_count = RFI_COUNT(mref_fields),
             .params_size = sizeof(rfi_mref_params)},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_PERMUTATION | REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE |
              REEF_TRAIT_HULL | REEF_TRAIT_ROBUST | REEF_TRAIT_SENDERS,
    .prepare = mref_prepare,
    .needs = mref_needs,
    .weigh = mref_weigh,
    .memory = &rfi_mref_memory,
};
