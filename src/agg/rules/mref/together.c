/* MREF: who acts together? Honest senders' noise is independent of each other's, whatever its size and wherever their optima are. Liars who move
 * the result move together, in whatever rhythm and on whatever sides, and that is a block in the matrix of products (pairs.c).
 *
 *   C = G centred on both sides;  m = tr C / (q - 1);  var_l = max((C_ll - m / q) / (1 - 2 / q), m / 20)
 *   R_lk = (C_lk + (var_l + var_k - m) / q) / sqrt(var_l var_k), R_ll = 0:  0 on average if senders are independent, whatever their variances
 *   lambda, x: first eigenvalue and vector of R;  c^2 = (||R||^2 - lambda^2) / (q - 1);  independence gives lambda up to about 2 c + c^2
 *
 * Beyond that edge the vector is cut in two, as the split does with projections. If the groups are 3 + 45 / q pooled deviations apart, the one
 * with fewer votes loses its weight, but for one voice if it shares its noise (below). Groups of averages have to be as far apart in x_l sqrt(var_l),
 * too. A sender votes with what it counted for so far, times the part
 * of the last rounds it was heard in, so that ids that take turns have together the votes of the rows they send; copies of each other have one vote
 * together. If those in the middle between the groups could turn the vote nobody goes, nor if it would move the mean away from the receiver's own
 * average, and nobody loses more than leaves half of the weight. What is lost comes back over eight times the longest window.
 *
 * Before that, pairs: who has the noise of others, R > 0.4 in the fastest band, is one of c senders with one voice together, as copies are.
 *
 * It is asked after an aggregation, of all senders remembered, so that servers which hear a few at a time learn about all of them. Senders stand
 * in blocks (reef/rule.h), which are judged one by one. */
#include "agg/rules/mref/mref.h"
#include "agg/senders.h"
#include "num/order.h"
#include "num/rng.h"

#include <math.h>
#include <string.h>

/* Three bands, and the averages over the longest window as they are. */
enum { AVERAGES = RFI_MREF_BANDS, MATRICES };
enum { PURPOSE_DRAW = 0x746F6765 };

/* The senders of one block under judgement. */
typedef struct look {
    const rfi_mref_view *view;
    rfi_senders *senders;
    int64_t recent;       /* heard in this round or later, */
    double least_age;     /* and for so many rounds: counts */
    ptrdiff_t first, end; /* places of the block */
    double half;          /* of the weight of those, if all were believed */
    double *raw;          /* end - first: what is left of each */
    ptrdiff_t *who;       /* q members: places */
    ptrdiff_t q;
    ptrdiff_t *order; /* 2 q */
    bool *goes;       /* q */
    double *vector;   /* q */
    double *variance; /* q: var */
    double *matrix;   /* q x q, and room for the eigenvector behind it */
    double *line;     /* 3 D */
    ptrdiff_t own;    /* place of the receiver itself, or -1 */
    double largest;   /* separation over its bound */
    bool copies;      /* are copies looked for? */
} look;

static rfi_mref_trace *trace_at(const rfi_senders *s, ptrdiff_t place)
{
    return (rfi_mref_trace *)(void *)(s->records + (size_t)place * s->sizes.record);
}

/* Heard not long ago, and for long enough: ever new ids must not count. */
static bool is_recent(const look *k, ptrdiff_t place)
{
    const rfi_sender *who = &k->senders->who[place];
    return who->heard >= k->recent && (double)who->age >= k->least_age;
}

/* Part of the last rounds it was heard in. */
static double presence_of(const look *k, ptrdiff_t place)
{
    return rfi_mref_faded(k->view, trace_at(k->senders, place)->presence,
                          k->view->rounds - k->senders->who[place].heard);
}

/* ---- independent? ---- */

static void read_average(const look *k, ptrdiff_t place, double *numbers)
{
    const void *from = rfi_senders_vector(k->senders, place, RFI_WINDOWS - 1);
    for (ptrdiff_t i = 0; i < k->view->numbers; i++) {
        numbers[i] = k->senders->single ? (double)((const float *)from)[i] : ((const double *)from)[i];
    }
    for (ptrdiff_t i = k->view->numbers; i < k->view->width; i++) {
        numbers[i] = 0;
    }
}

/* G of the members. */
static void fill_products(const look *k, int matrix)
{
    double *other = k->line + k->view->width;
    for (ptrdiff_t i = 0; i < k->q; i++) {
        if (matrix == AVERAGES) {
            read_average(k, k->who[i], k->line);
        }
        for (ptrdiff_t j = 0; j <= i; j++) {
            double entry = 0;
            if (matrix == AVERAGES) {
                read_average(k, k->who[j], other);
                entry = rfi_mref_product(k->line, other, k->view->width);
            } else {
                entry = (double)rfi_senders_pair(k->senders, k->who[i], k->who[j])[matrix];
            }
            k->matrix[i * k->q + j] = k->matrix[j * k->q + i] = entry;
        }
    }
}

/* Beyond the edge of what independence gives? Finds the vector. */
static bool stands_out(const look *k)
{
    double n = (double)k->q;
    double squares = 0;
    for (ptrdiff_t i = 0; i < k->q * k->q; i++) {
        squares += k->matrix[i] * k->matrix[i];
    }
    double lambda = rfi_mref_first_vector(k->matrix, k->q, RFI_MREF_AXIS_STEPS, k->vector, k->matrix + k->q * k->q);
    double c = sqrt(fmax(squares - lambda * lambda, 0) / (n - 1));
    return lambda > (1 + RFI_MREF_TOGETHER_EDGE * pow(n, -2.0 / 3)) * (2 * c + c * c);
}

/* ---- who goes? ---- */

static double vote_of(const look *k, ptrdiff_t member)
{
    const rfi_mref_trace *trace = trace_at(k->senders, k->who[member]);
    return fmin(trace->together, fmin(trace->voice, trace->noise)) * presence_of(k, k->who[member]);
}

/* Marks the group with fewer votes, of the two that `cut` makes, but for those between them: an honest sender that is on the wrong side by chance
 * would wait for long. False if these could turn the vote. */
static bool choose_group(const look *k, ptrdiff_t cut)
{
    double mean[2] = {0, 0};
    double votes[2] = {0, 0};
    double doubtful = 0;
    for (ptrdiff_t i = 0; i < k->q; i++) {
        bool upper = i >= cut;
        mean[upper] += k->vector[k->order[i]] / (double)(upper ? k->q - cut : cut);
        votes[upper] += vote_of(k, k->order[i]);
    }
    double middle = (mean[0] + mean[1]) / 2;
    double reach = RFI_MREF_TOGETHER_DOUBT * (mean[1] - mean[0]);
    for (ptrdiff_t i = 0; i < k->q; i++) {
        doubtful += fabs(k->vector[i] - middle) < reach ? vote_of(k, i) : 0;
    }
    for (ptrdiff_t i = 0; i < k->q; i++) {
        ptrdiff_t at = k->order[i];
        k->goes[at] = (i >= cut) == (votes[1] <= votes[0]) && fabs(k->vector[at] - middle) >= reach;
    }
    return fabs(votes[1] - votes[0]) > doubtful + 1e-9;
}

static double believed(const look *k, ptrdiff_t place)
{
    const rfi_mref_trace *trace = trace_at(k->senders, place);
    return fmin(trace->believed, fmin(trace->together, k->raw[place - k->first])) * presence_of(k, place);
}

/* Mean product, in the fastest band, of member i with those of the group that goes, or of the rest; itself left out. */
static double mean_product(const look *k, ptrdiff_t i, bool goes)
{
    double sum = 0;
    double count = 0;
    for (ptrdiff_t j = 0; j < k->q; j++) {
        if (j != i && k->goes[j] == goes) {
            sum += (double)rfi_senders_pair(k->senders, k->who[i], k->who[j])[0];
            count++;
        }
    }
    return count > 0 ? sum / count : 0;
}

/* Mean correlation of the noise of those who go, seen from the rest, whom they are judged by. */
static double correlation_of_group(const look *k)
{
    double within = 0;
    double own = 0;
    double across = 0;
    double rest = 0;
    double size[2] = {0, 0};
    for (ptrdiff_t i = 0; i < k->q; i++) {
        size[k->goes[i]]++;
        within += k->goes[i] ? mean_product(k, i, true) : 0;
        own += k->goes[i] ? (double)rfi_senders_pair(k->senders, k->who[i], k->who[i])[0] : 0;
        across += k->goes[i] ? mean_product(k, i, false) : 0;
        rest += k->goes[i] ? 0 : mean_product(k, i, false);
    }
    double shift = rest / size[0] - 2 * across / size[1];
    double variance = own / size[1] + shift;
    return variance > 0 ? (within / size[1] + shift) / variance : 0;
}

/* What each of those who go is left of its weight, if the cut alone would leave `left`. Senders with the same noise from round to round have one
 * voice together: they may be honest ones that share it, or one whom others copy. */
static double leave_a_voice(const look *k, double left)
{
    double size = 0;
    for (ptrdiff_t i = 0; i < k->q; i++) {
        size += k->goes[i] ? trace_at(k->senders, k->who[i])->believed : 0;
    }
    double none = RFI_MREF_NOISE_NONE;
    double voice = 1 - rfi_mref_flat(correlation_of_group(k), none, none + RFI_MREF_NOISE_RISE);
    return fmax(left, voice / fmax(size, 1));
}

/* What those who go would lose if they were left `left` each; *votes: the presence of those who would lose something. */
static double loss_of(const look *k, double left, double *votes)
{
    double lost = 0;
    *votes = 0;
    for (ptrdiff_t i = 0; i < k->q; i++) {
        double presence = presence_of(k, k->who[i]);
        double loss = k->goes[i] ? believed(k, k->who[i]) - left * presence : 0;
        lost += fmax(loss, 0);
        *votes += loss > 0 ? presence : 0;
    }
    return lost;
}

/* `left`, or so much more that half of the weight remains: the loss is convex in it, so that Newton's steps come from below. */
static double leave_half(const look *k, double left)
{
    enum { STEPS = 8 };
    double all = 0;
    double votes = 0;
    for (ptrdiff_t place = k->first; place < k->end; place++) {
        all += is_recent(k, place) ? believed(k, place) : 0;
    }
    double most = fmax(all - k->half, 0); /* that may be lost */
    for (int i = 0; i < STEPS; i++) {
        double lost = loss_of(k, left, &votes);
        if (lost <= most + 1e-9) {
            break;
        }
        left += (lost - most) / votes;
    }
    return fmin(left, 1);
}

/* Means of the long averages of the members, with and without those who go; false if nothing would be left. */
static bool find_means(const look *k, double *both, double *without, double *spare)
{
    ptrdiff_t width = k->view->width;
    double weight[2] = {0, 0};
    memset(both, 0, (size_t)width * sizeof *both);
    memset(without, 0, (size_t)width * sizeof *without);
    for (ptrdiff_t i = 0; i < k->q; i++) {
        ptrdiff_t place = k->who[i];
        double w = k->goes[i] ? trace_at(k->senders, place)->believed * presence_of(k, place) : believed(k, place);
        double *sum = k->goes[i] ? both : without;
        weight[k->goes[i]] += w;
        read_average(k, place, spare);
        for (ptrdiff_t d = 0; d < width; d++) {
            sum[d] += w * spare[d];
        }
    }
    for (ptrdiff_t d = 0; weight[0] > 0 && d < width; d++) {
        both[d] = (both[d] + without[d]) / (weight[0] + weight[1]);
        without[d] /= weight[0];
    }
    return weight[0] > 0;
}

/* Two-faced senders pull honest ones into camps, and from one camp the other looks like a group of colluders. But what a receiver sends itself is
 * honest: a cut that moves the mean away from it, by more than noise does, is not made. */
static bool leads_away(const look *k)
{
    ptrdiff_t width = k->view->width;
    double *own = k->line;
    double *both = own + width;
    double *without = both + width;
    if (k->own < 0 || !find_means(k, both, without, own)) {
        return k->own >= 0;
    }
    read_average(k, k->own, own);
    double farther = rfi_mref_distance(own, without, width) - rfi_mref_distance(own, both, width);
    return farther > RFI_MREF_TOGETHER_AWAY * k->view->long_noise;
}

/* Takes those who go out of the members. */
static void take_out(look *k, double left)
{
    ptrdiff_t stay = 0;
    for (ptrdiff_t i = 0; i < k->q; i++) {
        ptrdiff_t place = k->who[i];
        if (k->goes[i]) {
            k->raw[place - k->first] = fmin(k->raw[place - k->first], left);
        } else {
            k->who[stay++] = place;
        }
    }
    k->q = stay;
}

/* How far apart two groups are in x_l sqrt(var_l), how far senders move. Correlations of averages as they are, single numbers in one direction, are 1
 * and -1 where noise has one direction, as if there were two groups; but their sizes are those of noise. */
static double separation_in_size(const look *k)
{
    ptrdiff_t cut = 0;
    double *size = k->variance; /* no longer needed */
    for (ptrdiff_t i = 0; i < k->q; i++) {
        size[i] = k->vector[i] * sqrt(k->variance[i]);
    }
    rfi_argsort(size, k->q, k->order, k->order + k->q);
    return rfi_mref_best_cut(size, k->q, k->order, &cut);
}

/* One cut; false if it was the last. */
static bool cut_once(look *k, int matrix)
{
    ptrdiff_t cut = 0;
    if (k->q < RFI_MREF_TOGETHER_ROWS) {
        return false;
    }
    fill_products(k, matrix);
    if (!rfi_mref_correlate(k->matrix, k->q, k->vector, k->variance) || !stands_out(k)) {
        return false;
    }
    double in_size = matrix == AVERAGES ? separation_in_size(k) : HUGE_VAL;
    rfi_argsort(k->vector, k->q, k->order, k->order + k->q);
    double apart = rfi_mref_best_cut(k->vector, k->q, k->order, &cut);
    double bound = RFI_MREF_TOGETHER_APART + RFI_MREF_TOGETHER_APART_FEW / (double)k->q;
    k->largest = fmax(k->largest, fmin(apart, in_size) / bound);
    if (fmin(apart, in_size) < bound || !choose_group(k, cut) || leads_away(k)) {
        return false;
    }
    double left = leave_half(k, leave_a_voice(k, rfi_mref_flat(apart, bound, RFI_MREF_SPLIT_NONE * bound)));
    take_out(k, left);
    return left <= RFI_MREF_SPLIT_ACCEPTED;
}

/* ---- members ---- */

/* Believed by all other tests. */
static bool is_member(const look *k, ptrdiff_t place, int matrix)
{
    const rfi_mref_trace *trace = trace_at(k->senders, place);
    bool kept = matrix != AVERAGES || trace->together > RFI_MREF_SPLIT_ACCEPTED;
    return kept && is_recent(k, place) && trace->believed > RFI_MREF_SPLIT_ACCEPTED;
}

/* All members, or if there are more than `most` that many, drawn anew each time so that everybody's turn comes. */
static void list_members(look *k, int matrix, ptrdiff_t most, uint64_t draw)
{
    ptrdiff_t seen = 0;
    k->q = 0;
    for (ptrdiff_t place = k->first; place < k->end; place++) {
        if (!is_member(k, place, matrix)) {
            continue;
        }
        draw = rfi_rng_key(draw, PURPOSE_DRAW);
        seen++;
        if (k->q < most) {
            k->who[k->q++] = place;
        } else if ((ptrdiff_t)(draw % (uint64_t)seen) < most) {
            k->who[draw % (uint64_t)most] = place;
        }
    }
}

/* Rounds that two members were heard in together, on average. */
static double mean_met(const look *k)
{
    double sum = 0;
    double pairs = (double)k->q * (double)(k->q - 1) / 2;
    for (ptrdiff_t i = 0; i < k->q; i++) {
        for (ptrdiff_t j = 0; j < i; j++) {
            sum += (double)rfi_senders_pair(k->senders, k->who[i], k->who[j])[RFI_MREF_MET];
        }
    }
    return pairs > 0 ? sum / pairs : 0;
}

static bool is_known(const look *k, int matrix)
{
    static const int64_t part[MATRICES] = {16, 8, 4, 8};
    int64_t from = k->view->window[RFI_WINDOWS - 1] / part[matrix];
    from = from > RFI_MREF_TOGETHER_FROM ? from : RFI_MREF_TOGETHER_FROM;
    return k->view->typical_age >= from && (matrix == AVERAGES || mean_met(k) >= RFI_MREF_TOGETHER_MET);
}

/* ---- shared noise ---- */

/* How far two members share their noise, of which the matrix has the correlation: 0 below a bound that chance does not reach, then up to 1. */
static double share_of_noise(const look *k, ptrdiff_t i, ptrdiff_t j)
{
    double met = (double)rfi_senders_pair(k->senders, k->who[i], k->who[j])[RFI_MREF_MET];
    double numbers = fmin((double)k->view->numbers, RFI_MREF_RANK);
    double none = RFI_MREF_NOISE_NONE + RFI_MREF_NOISE_CHANCE / sqrt(fmax(met, 1) * numbers);
    return 1 - rfi_mref_flat(k->matrix[i * k->q + j], none, none + RFI_MREF_NOISE_RISE);
}

/* Members with the same noise from round to round have one voice together, whatever their averages are. */
static void share_noise(const look *k)
{
    if (k->q < RFI_MREF_TOGETHER_ROWS) {
        return;
    }
    fill_products(k, 0);
    if (!rfi_mref_correlate(k->matrix, k->q, k->vector, k->variance)) {
        return;
    }
    for (ptrdiff_t i = 0; i < k->q; i++) {
        double voices = 1;
        for (ptrdiff_t j = 0; j < k->q; j++) {
            voices += i == j ? 0 : trace_at(k->senders, k->who[j])->believed * share_of_noise(k, i, j);
        }
        trace_at(k->senders, k->who[i])->noise = 1 / voices;
    }
}

/* ---- the whole ---- */

static void judge_block(look *k, ptrdiff_t most, uint64_t seed, double regain)
{
    k->half = 0;
    for (ptrdiff_t place = k->first; place < k->end; place++) {
        k->raw[place - k->first] = 1;
        k->half += is_recent(k, place) ? presence_of(k, place) / 2 : 0;
    }
    for (int matrix = 0; matrix < MATRICES; matrix++) {
        list_members(k, matrix, most, seed + (uint64_t)(k->view->rounds * MATRICES + matrix));
        bool more = is_known(k, matrix);
        bool noise = more && matrix == 0 && k->copies;
        ptrdiff_t before = k->q;
        if (noise) {
            share_noise(k);
        }
        for (int i = 0; more && i < RFI_MREF_SPLIT_CUTS; i++) {
            more = cut_once(k, matrix);
        }
        /* Two camps on two sides look as if each shared its noise. Without the one that went, the other does not. */
        if (noise && k->q < before) {
            share_noise(k);
        }
    }
    for (ptrdiff_t place = k->first; place < k->end; place++) {
        rfi_mref_trace *trace = trace_at(k->senders, place);
        trace->together = fmin(k->raw[place - k->first], trace->together + regain);
    }
}

int64_t rfi_mref_look_every(const rfi_mref_view *view)
{
    int64_t part = view->window[RFI_WINDOWS - 1] / RFI_MREF_TOGETHER_LOOKS;
    return part > RFI_MREF_SHORTEST ? part : RFI_MREF_SHORTEST;
}

void rfi_mref_look_together(const rfi_mref_params *params, const reef_recall *recall, const rfi_mref_view *view)
{
    rfi_senders *s = recall->memory;
    int64_t every = rfi_mref_look_every(view);
    int64_t longest = view->window[RFI_WINDOWS - 1];
    if (view->rounds % every != 0 || view->own) {
        return;
    }
    look k = {.view = view, .senders = s, .recent = view->rounds - 2 * longest + 1};
    k.own = view->self >= 0 ? recall->place[view->self] : -1;
    k.copies = !rfi_mref_left_out(params, RFI_MREF_COPIES);
    k.least_age = (double)(view->typical_age < longest ? view->typical_age : longest) / RFI_MREF_TOGETHER_AGE;
    ptrdiff_t most = rfi_mref_look_rows(view->n);
    k.raw = view->look_raw;
    k.who = view->look_index;
    k.order = k.who + most;
    k.vector = view->look_vector;
    k.variance = view->look_variance;
    k.goes = view->look_goes;
    k.matrix = view->matrix;
    k.line = view->line;
    for (k.first = 0; k.first < s->count && k.first < s->sizes.pair_places; k.first = k.end) {
        k.end = k.first + RFI_MREF_BLOCK < s->count ? k.first + RFI_MREF_BLOCK : s->count;
        judge_block(&k, most, recall->seed, (double)every / (RFI_MREF_TOGETHER_REGAIN * (double)longest));
    }
    ((rfi_mref_shared *)(void *)s->shared)->together = k.largest;
    rfi_mref_regroup(recall, view);
}
