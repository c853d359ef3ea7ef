/* MREF: one window. Who stands far from the others on average (window), in a group of its own (split), or goes to and fro (rhythm)?
 *
 *   rho_l = ||E_l - c||;  S = median rho_l / kappa_l, at most its first value, at least 0.9 S_p;  R_l = rho_l / (S kappa_l)
 *   beta_l = flat(R_l; 1 + 2 h (1 + H / 4) z, 1 + 6 h (1 + H / 4) z);  c = sum p E / sum p, p = beta / kappa^2;  repeated
 *   F_l averages min(R_l, 4)^2; sqrt F over its median is judged like the energy
 * kappa_l >= 1 is how much noisier than a typical one the average of a sender is who has not been heard as often. */
#include "agg/rules/mref/mref.h"

#include <math.h>
#include <string.h>

/* What the averages of a window look like. */
typedef struct window {
    rfi_mref_round *round;
    int j;
    double rounds; /* W */
    double noise;  /* S_p */
    double spread; /* H */
    double *beta, *ratio, *kappa, *split, *spare, *voice;
    double *centre;
} window;

/* Rounds of independent noise that an average over the window is worth after `age` rounds. */
static double worth(double rounds, int64_t age)
{
    return (double)age < rounds ? (double)age : 2 * rounds - 1;
}

static int64_t common_age(const rfi_mref_round *round, ptrdiff_t l)
{
    int64_t age = round->recall->age[l];
    return age < round->age ? age : round->age;
}

/* E_l as it is with this round's message. */
static void load_averages(const window *w)
{
    rfi_mref_view *recall = w->round->recall;
    ptrdiff_t numbers = recall->numbers;
    for (ptrdiff_t l = 0; l < w->round->n; l++) {
        double *average = rfi_mref_average(recall, l);
        const double *d = recall->residual + l * numbers;
        double rate = rfi_mref_rate(recall, w->j, recall->age[l]);
        reef_recall_read(recall->memory, l, w->j, average);
        for (ptrdiff_t i = 0; i < numbers; i++) {
            average[i] += rate * (recall->clip[l] * d[i] - average[i]);
        }
        for (ptrdiff_t i = numbers; i < recall->width; i++) {
            average[i] = 0;
        }
    }
}

static void move_centre(const window *w)
{
    const rfi_mref_view *recall = w->round->recall;
    bool precise = !rfi_mref_left_out(w->round->params, RFI_MREF_PRECISION);
    double *part = w->spare;
    double sum = 0;
    for (ptrdiff_t l = 0; l < w->round->n; l++) {
        part[l] = precise ? w->beta[l] / (w->kappa[l] * w->kappa[l]) : w->beta[l];
        sum += part[l];
    }
    if (!(sum > 0)) {
        return;
    }
    memset(w->centre, 0, (size_t)recall->width * sizeof *w->centre);
    for (ptrdiff_t l = 0; l < w->round->n; l++) {
        const double *average = rfi_mref_average(recall, l);
        for (ptrdiff_t i = 0; part[l] > 0 && i < recall->width; i++) {
            w->centre[i] += part[l] / sum * average[i];
        }
    }
}

/* R_l for the centre in force, times S; returns the median. */
static double measure(const window *w)
{
    const rfi_mref_view *recall = w->round->recall;
    for (ptrdiff_t l = 0; l < w->round->n; l++) {
        double rho = rfi_mref_distance(rfi_mref_average(recall, l), w->centre, recall->width);
        w->ratio[l] = rho / w->kappa[l];
    }
    return rfi_mref_vote(recall, w->ratio, w->spare);
}

static double spread_of(const window *w, double scale)
{
    double beyond = (scale / w->noise - RFI_MREF_SPREAD_FROM) / (RFI_MREF_SPREAD_TO - RFI_MREF_SPREAD_FROM);
    bool used = !w->round->own && w->round->params->without != RFI_MREF_SPREAD;
    return used && w->noise > 0 ? fmin(fmax(beyond, 0), 1) : 0;
}

/* beta from the distances. */
static void weigh(const window *w, double scale)
{
    const rfi_mref_round *round = w->round;
    double factor = (1 + round->tolerance->wider * w->spread) * round->few;
    for (ptrdiff_t l = 0; l < round->n; l++) {
        double averaged = fmin((double)common_age(round, l), w->rounds);
        double h = sqrt(round->h0 + round->excess / averaged) * factor;
        w->ratio[l] /= scale;
        w->beta[l] = rfi_mref_flat(w->ratio[l], 1 + RFI_MREF_FULL * h, 1 + RFI_MREF_NONE * h);
    }
}

/* beta and R of all senders around a centre that follows those believed. */
static void judge(window *w)
{
    const rfi_mref_round *round = w->round;
    double first = 0;
    double floor = round->params->without == RFI_MREF_NOISE_FLOOR ? 0 : RFI_MREF_FLOOR;
    rfi_mref_centre(round, w->centre);
    for (int step = 0; step < RFI_MREF_STEPS; step++) {
        double scale = measure(w);
        if (step == 0) {
            first = scale;
            w->spread = spread_of(w, scale);
        }
        scale = fmax(fmin(scale, first), floor * w->noise);
        if (!(scale > 0)) {
            for (ptrdiff_t l = 0; l < round->n; l++) {
                w->beta[l] = w->ratio[l] = 1;
            }
            return;
        }
        weigh(w, scale);
        if (step + 1 < RFI_MREF_STEPS && !round->own) {
            move_centre(w);
        }
    }
}

/* F moves on; factors by it. */
static void judge_rhythm(const window *w)
{
    const rfi_mref_round *round = w->round;
    rfi_mref_view *recall = round->recall;
    double *size = w->beta; /* no longer needed */
    double longest = (double)recall->window[RFI_WINDOWS - 1];
    for (ptrdiff_t l = 0; l < round->n; l++) {
        rfi_mref_trace *trace = &recall->traces[l];
        double since = (double)(recall->age[l] - trace->judged[w->j]);
        double rate = fmin(1, since * fmax(1 / longest, 1 / (double)recall->age[l]));
        double ratio = fmin(w->ratio[l], RFI_MREF_RHYTHM_CAP);
        trace->rhythm[w->j] += rate * (ratio * ratio - trace->rhythm[w->j]);
        trace->judged[w->j] = recall->age[l];
        size[l] = sqrt(trace->rhythm[w->j]);
    }
    double middle = rfi_mref_vote(recall, size, w->spare);
    double full = 1 + (RFI_MREF_ENERGY_FULL + RFI_MREF_ENERGY_FULL_SPREAD * w->spread) * round->few;
    double none = 1 + (RFI_MREF_ENERGY_NONE + RFI_MREF_ENERGY_NONE_SPREAD * w->spread) * round->few;
    double wider = (1 + round->tolerance->wider * w->spread) * round->few;
    for (ptrdiff_t l = 0; l < round->n; l++) {
        double independent = fmin(fmax(1, longest / w->rounds), fmax(1, (double)common_age(round, l) / w->rounds));
        double h = sqrt((round->h0 + round->excess / w->rounds) / independent) * wider;
        double factor =
            rfi_mref_flat(size[l] / middle, fmax(1 + RFI_MREF_FULL * h, full), fmax(1 + RFI_MREF_NONE * h, none));
        bool used = round->params->without != RFI_MREF_RHYTHM && middle > 0;
        recall->traces[l].factor[w->j][RFI_BY_RHYTHM] = used ? factor : 1;
    }
}

/* A window is looked at in every round while it is young, then so many times per length, and when somebody is due. */
static bool is_due(const rfi_mref_round *round, int j)
{
    const rfi_mref_view *recall = round->recall;
    int64_t lazy = round->params->lazy;
    int64_t every = lazy > 0 && recall->window[j] / lazy > 1 ? recall->window[j] / lazy : 1;
    bool due = recall->rounds < 4 * every || recall->rounds % every == 0;
    for (ptrdiff_t l = 0; !due && l < round->n; l++) {
        due = recall->age[l] - recall->traces[l].judged[j] >= every;
    }
    return due;
}

static bool is_used(const rfi_mref_round *round, int j)
{
    static const int parts[RFI_WINDOWS] = {RFI_MREF_SHORT, RFI_MREF_MIDDLE, RFI_MREF_LONG};
    return round->params->without != parts[j];
}

static void evaluate(rfi_mref_round *round, int j)
{
    rfi_mref_view *recall = round->recall;
    window w = {.round = round, .j = j, .rounds = (double)recall->window[j]};
    w.beta = rfi_mref_work(round, 0);
    w.ratio = rfi_mref_work(round, 1);
    w.kappa = rfi_mref_work(round, 2);
    w.split = rfi_mref_work(round, 3);
    w.spare = rfi_mref_work(round, 4);
    w.voice = rfi_mref_work(round, RFI_MREF_VOICE);
    w.centre = recall->line;
    double typical = worth(w.rounds, round->age);
    w.noise = round->typical / sqrt(typical);
    for (ptrdiff_t l = 0; l < round->n; l++) {
        w.kappa[l] = fmax(1, sqrt(typical / worth(w.rounds, recall->age[l])));
        w.split[l] = 1;
    }
    load_averages(&w);
    rfi_mref_distances(round);
    judge(&w);
    rfi_mref_copies(round, w.beta, w.voice);
    bool splits = !round->own && round->params->without != RFI_MREF_SPLIT;
    recall->separation[j] = splits ? rfi_mref_split(round, w.spread, w.beta, w.kappa, w.split) : 0;
    recall->spread[j] = w.spread;
    for (ptrdiff_t l = 0; l < round->n; l++) {
        recall->traces[l].factor[j][RFI_BY_WINDOW] = w.beta[l];
        recall->traces[l].factor[j][RFI_BY_SPLIT] = w.split[l];
        recall->traces[l].factor[j][RFI_BY_COPIES] = w.voice[l];
    }
    judge_rhythm(&w);
}

void rfi_mref_window(rfi_mref_round *round, int j)
{
    rfi_mref_view *recall = round->recall;
    recall->long_noise = round->typical / sqrt(worth((double)recall->window[RFI_WINDOWS - 1], round->age));
    if (!is_used(round, j)) {
        return;
    }
    if (is_due(round, j)) {
        evaluate(round, j);
    }
    for (ptrdiff_t l = 0; l < round->n; l++) {
        const double *factor = recall->traces[l].factor[j];
        double least = fmin(factor[RFI_BY_WINDOW], fmin(factor[RFI_BY_SPLIT], factor[RFI_BY_RHYTHM]));
        recall->weight[l] = fmin(recall->weight[l], least);
        recall->by_copies[l] = fmax(recall->by_copies[l], factor[RFI_BY_COPIES]);
    }
}
