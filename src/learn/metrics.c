/* What is measured, over the honest agents: a value per agent, then their sum in the order of agents. Over ranks the values are put side
 * by side first, so the bits are the same. Agents that share a model also share the value. Sums are in double precision. */
#include "base/error.h"
#include "learn/run.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The row that holds agent k's model. */
static ptrdiff_t row_of(const reef_run *run, ptrdiff_t k)
{
    return run->serves_all ? 0 : run->home[k];
}

static const float *row_at(const reef_run *run, ptrdiff_t row)
{
    return run->serves_all ? run->server : run->w + row * run->stride;
}

static double honest_count(const reef_run *run)
{
    return (double)(run->all - run->all_malicious);
}

/* The most values that an agent has. */
static ptrdiff_t widest(const reef_run *run)
{
    enum { AT_LEAST = 6 };
    return run->lanes > AT_LEAST ? run->lanes : AT_LEAST;
}

/* Behind the values of the agents: M x R numbers, then M. */
static double *target_of(const reef_run *run)
{
    return run->numbers + run->all * widest(run);
}

/* Values of agent k, whose model is `row`: `width` numbers. */
typedef void (*measuring)(const reef_run *run, ptrdiff_t k, const float *row, double *values);

/* Whose values are the same. */
typedef enum sharing { BY_NONE, BY_ROW, BY_CLASS } sharing;

/* The values of all honest agents, by their numbers in the network. */
static reef_status measure_all(const reef_run *run, measuring measure, ptrdiff_t width, sharing how, reef_error *error)
{
    double *values = run->numbers;
    size_t bytes = (size_t)width * sizeof *values;
    assert(width >= 1 && width <= widest(run)); /* what comes after them stays */
    memset(values, 0, (size_t)run->all * bytes);
    memset(run->members, 0, (size_t)run->agents * sizeof *run->members);
    for (ptrdiff_t k = 0; k < run->own; k++) {
        ptrdiff_t group = how == BY_CLASS ? run->class_of[k] : row_of(run, k);
        int32_t *first = &run->members[group]; /* whose values they are, plus one */
        assert(group >= 0 && group < run->agents);
        double *to = values + rfi_id(run, k) * width;
        if (run->malicious[k]) {
            continue;
        }
        if (how != BY_NONE && *first) {
            memcpy(to, values + rfi_id(run, *first - 1) * width, bytes);
        } else {
            measure(run, k, row_at(run, row_of(run, k)), to);
            *first = (int32_t)k + 1;
        }
    }
    const reef_engine *e = run->ranks ? run->ranks->engine : NULL;
    return e ? e->ops->merge(e, values, (size_t)run->all * bytes, error) : REEF_OK;
}

static void sum_all(const reef_run *run, ptrdiff_t width, double *sums)
{
    memset(sums, 0, (size_t)width * sizeof *sums);
    for (ptrdiff_t id = 0; id < run->all; id++) {
        for (ptrdiff_t i = 0; i < width && !rfi_is_malicious(run, id); i++) {
            sums[i] += run->numbers[id * width + i];
        }
    }
}

/* Means over the honest agents. */
static reef_status mean_all(const reef_run *run, measuring measure, ptrdiff_t width, sharing how, double *means,
                            reef_error *error)
{
    reef_status status = measure_all(run, measure, width, how, error);
    sum_all(run, width, means);
    for (ptrdiff_t i = 0; i < width; i++) {
        means[i] /= honest_count(run);
    }
    return status;
}

/* p as given, or equal shares of the honest agents. */
static const double *shares_of(const reef_run *run, const double *p)
{
    double *equal = run->numbers;
    for (ptrdiff_t id = 0; id < run->all; id++) {
        equal[id] = rfi_is_malicious(run, id) ? 0 : 1 / honest_count(run);
    }
    return p ? p : equal;
}

/* |row - target|^2 in each repetition. */
static void measure_distance(const reef_run *run, ptrdiff_t k, const float *row, double *values)
{
    const double *target = target_of(run);
    (void)k;
    for (ptrdiff_t m = 0; m < run->dimension; m++) {
        for (ptrdiff_t r = 0; r < run->lanes; r++) {
            double d = (double)row[m * run->lanes + r] - target[m * run->lanes + r];
            values[r] += d * d;
        }
    }
}

reef_status reef_run_msd(const reef_run *run, const double *p, double *msd, reef_error *error)
{
    if (!run) {
        return rfi_fail(error, REEF_E_ARG, "reef_run_msd needs a run");
    }
    const reef_problem_kind *kind = reef_problem_kind_of(run->setup.problem);
    if (!kind->optimum) {
        return rfi_fail(error, REEF_E_ARG, "the optimum of %s is unknown, so there is no MSD", kind->kind.name);
    }
    double *target = target_of(run);
    double *one = target + run->length;
    const double *shares = shares_of(run, p);
    for (ptrdiff_t r = 0; r < run->lanes; r++) {
        kind->optimum(reef_problem_state(run->setup.problem), -1, shares, run->round, run->setup.repetition + r, one);
        for (ptrdiff_t m = 0; m < run->dimension; m++) {
            target[m * run->lanes + r] = one[m];
        }
    }
    return mean_all(run, measure_distance, run->lanes, BY_ROW, msd, error);
}

static void measure_excess(const reef_run *run, ptrdiff_t k, const float *row, double *values)
{
    const reef_problem_kind *kind = reef_problem_kind_of(run->setup.problem);
    double *one = target_of(run) + run->length;
    for (ptrdiff_t r = 0; r < run->lanes; r++) {
        for (ptrdiff_t m = 0; m < run->dimension; m++) {
            one[m] = (double)row[m * run->lanes + r];
        }
        values[r] = kind->excess(reef_problem_state(run->setup.problem), rfi_id(run, k), run->round,
                                 run->setup.repetition + r, one);
    }
}

reef_status reef_run_excess(const reef_run *run, double *excess, reef_error *error)
{
    if (!run) {
        return rfi_fail(error, REEF_E_ARG, "reef_run_excess needs a run");
    }
    const reef_problem_kind *kind = reef_problem_kind_of(run->setup.problem);
    if (!kind->excess) {
        return rfi_fail(error, REEF_E_ARG, "the excess risk of %s is unknown", kind->kind.name);
    }
    return mean_all(run, measure_excess, run->lanes, BY_NONE, excess, error);
}

/* Mean of the honest models: sums in the order of agents, coordinate by coordinate. */
static reef_status mean_model(const reef_run *run, double *mean, reef_error *error)
{
    memset(mean, 0, (size_t)run->length * sizeof *mean);
    if (run->ranks && !run->serves_all) {
        return rfi_ranks_mean(run, mean, error);
    }
    for (ptrdiff_t k = 0; k < run->all; k++) {
        const float *row = run->serves_all ? run->server : row_at(run, row_of(run, k));
        for (ptrdiff_t i = 0; !rfi_is_malicious(run, k) && i < run->length; i++) {
            mean[i] += (double)row[i];
        }
    }
    for (ptrdiff_t i = 0; i < run->length; i++) {
        mean[i] /= honest_count(run);
    }
    return REEF_OK;
}

void reef_run_consensus(const reef_run *run, double *distance)
{
    if (!run) {
        return;
    }
    reef_error error = {REEF_OK, ""};
    reef_status status = mean_model(run, target_of(run), &error);
    if (status == REEF_OK) {
        status = mean_all(run, measure_distance, run->lanes, BY_ROW, distance, &error);
    }
    for (ptrdiff_t r = 0; status != REEF_OK && r < run->lanes; r++) {
        distance[r] = (double)NAN;
    }
    if (status != REEF_OK && run->ranks) {
        run->ranks->status = status;
        run->ranks->error = error;
    }
}

static void measure_score(const reef_run *run, ptrdiff_t k, const float *row, double *values)
{
    const reef_problem_kind *kind = reef_problem_kind_of(run->setup.problem);
    reef_score one = {(double)NAN, (double)NAN, (double)NAN};
    (void)k;
    kind->score(reef_problem_state(run->setup.problem), row, &one, run->learners[0].batch_work);
    values[0] = one.loss;
    values[1] = one.accuracy;
    values[2] = one.worst_accuracy;
}

reef_status reef_run_score(const reef_run *run, reef_score *score, reef_error *error)
{
    if (!run) {
        return rfi_fail(error, REEF_E_ARG, "reef_run_score needs a run");
    }
    const reef_problem_kind *kind = reef_problem_kind_of(run->setup.problem);
    if (!kind->score || run->lanes != 1) {
        return rfi_fail(error, REEF_E_ARG, kind->score ? "scores need lanes = 1" : "%s has no score", kind->kind.name);
    }
    double means[3];
    reef_status status = mean_all(run, measure_score, 3, BY_ROW, means, error);
    *score = (reef_score){means[0], means[1], means[2]};
    if (status != REEF_OK) {
        return status;
    }
    return rfi_run_check_problem(run, error);
}

/* ---- trust ---- */

/* Sums at a receiver, or over receivers. */
enum {
    HONEST, /* effective weight over fair share, summed over honest senders */
    MALICIOUS,
    HONEST_COUNT,
    MALICIOUS_COUNT,
    WINS, /* pairs of an honest and a malicious sender */
    PAIRS,
    TRUST_SUMS
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How many of the sorted numbers are below x, plus how many are not above it. */
static double below_and_not_above(const double *sorted, ptrdiff_t count, double x)
{
    double both = 0;
    for (int strict = 0; strict < 2; strict++) {
        ptrdiff_t from = 0;
        ptrdiff_t to = count;
        while (from < to) {
            ptrdiff_t middle = from + (to - from) / 2;
            bool before = strict ? sorted[middle] < x : sorted[middle] <= x;
            *(before ? &from : &to) = before ? middle + 1 : middle;
        }
        both += (double)from;
    }
    return both;
}

/* Effective weight over fair share; differences that are rounding are none. */
static double ratio(double trust, double fair)
{
    const double steps = 1 << 30;
    return rint(trust / fair * steps) / steps;
}

/* A sender as trust names it. */
static bool sender_lies(const reef_run *run, ptrdiff_t sender)
{
    return run->server ? rfi_is_malicious(run, sender) : run->malicious[sender];
}

/* Effective weights over fair shares of one class of receivers; who should have no weight does not count. */
static void add_class(const reef_run *run, ptrdiff_t number, double *sums)
{
    const int32_t *senders = run->trust_senders + number * run->largest;
    const double *trust = run->trust + number * run->largest;
    const double *fair = run->fair + number * run->largest;
    double *of_malicious = run->learners[0].live;
    ptrdiff_t malicious_count = 0;
    for (ptrdiff_t i = 0; i < run->trust_counts[number]; i++) {
        if (sender_lies(run, senders[i]) && fair[i] > 0) {
            of_malicious[malicious_count] = ratio(trust[i], fair[i]);
            sums[MALICIOUS] += of_malicious[malicious_count++];
        }
    }
    qsort(of_malicious, (size_t)malicious_count, sizeof *of_malicious, by_value);
    for (ptrdiff_t i = 0; i < run->trust_counts[number]; i++) {
        if (!sender_lies(run, senders[i]) && fair[i] > 0) {
            sums[HONEST] += ratio(trust[i], fair[i]);
            sums[WINS] += 0.5 * below_and_not_above(of_malicious, malicious_count, ratio(trust[i], fair[i]));
            sums[HONEST_COUNT]++;
        }
    }
    sums[MALICIOUS_COUNT] += (double)malicious_count;
    sums[PAIRS] += sums[HONEST_COUNT] * (double)malicious_count;
}

static void measure_trust(const reef_run *run, ptrdiff_t k, const float *row, double *values)
{
    (void)row;
    add_class(run, run->class_of[k], values);
}

reef_status reef_run_trust_facts(const reef_run *run, reef_trust_facts *facts, reef_error *error)
{
    if (!run) {
        return rfi_fail(error, REEF_E_ARG, "reef_run_trust_facts needs a run");
    }
    double sums[TRUST_SUMS] = {0};
    reef_status status = REEF_OK;
    if (!run->trust) {
        return rfi_fail(error, REEF_E_ARG, "the run does not record trust; set setup.trust");
    }
    if (run->server) {
        add_class(run, 0, sums);
    } else {
        status = measure_all(run, measure_trust, TRUST_SUMS, BY_CLASS, error);
        sum_all(run, TRUST_SUMS, sums);
    }
    facts->honest = sums[HONEST_COUNT] > 0 ? sums[HONEST] / sums[HONEST_COUNT] : (double)NAN;
    facts->malicious_count = sums[MALICIOUS_COUNT] > 0 ? sums[MALICIOUS] / sums[MALICIOUS_COUNT] : (double)NAN;
    facts->auc = sums[PAIRS] > 0 ? sums[WINS] / sums[PAIRS] : (double)NAN;
    return status;
}
