/* What is measured, over the benign agents. Agents that share a model are counted, not computed, again. Sums in double precision and
 * in the order of agents. */
#include "base/error.h"
#include "learn/run.h"

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

/* run->members[row] = benign agents whose model it is; returns their number. */
static ptrdiff_t count_members(const reef_run *run)
{
    memset(run->members, 0, (size_t)run->agents * sizeof *run->members);
    for (ptrdiff_t k = 0; k < run->agents; k++) {
        run->members[row_of(run, k)] += !run->liar[k];
    }
    return run->agents - run->liars;
}

/* p as given, or equal shares of the benign agents. */
static const double *shares_of(const reef_run *run, const double *p)
{
    double *equal = run->numbers;
    for (ptrdiff_t k = 0; k < run->agents; k++) {
        equal[k] = run->liar[k] ? 0 : 1 / (double)(run->agents - run->liars);
    }
    return p ? p : equal;
}

/* distance[r] += members * |row - target|^2 in repetition r; target: M x R. */
static void add_distances(const reef_run *run, const float *row, const double *target, double members, double *distance)
{
    for (ptrdiff_t m = 0; m < run->dimension; m++) {
        for (ptrdiff_t r = 0; r < run->lanes; r++) {
            double d = (double)row[m * run->lanes + r] - target[m * run->lanes + r];
            distance[r] += members * (d * d);
        }
    }
}

static void mean_distance(const reef_run *run, const double *target, double *distance)
{
    ptrdiff_t benign = count_members(run);
    for (ptrdiff_t r = 0; r < run->lanes; r++) {
        distance[r] = 0;
    }
    for (ptrdiff_t k = 0; k < run->agents; k++) {
        if (run->members[k]) {
            add_distances(run, row_at(run, k), target, run->members[k], distance);
        }
    }
    for (ptrdiff_t r = 0; r < run->lanes; r++) {
        distance[r] /= (double)benign;
    }
}

reef_status reef_run_msd(const reef_run *run, const double *p, double *msd, reef_error *error)
{
    const reef_problem_kind *kind = reef_problem_kind_of(run->setup.problem);
    if (!kind->optimum) {
        return rfi_fail(error, REEF_E_ARG, "%s does not know its optimum: no MSD", kind->kind.name);
    }
    double *target = run->numbers + run->agents;
    double *one = target + run->length;
    const double *shares = shares_of(run, p);
    for (ptrdiff_t r = 0; r < run->lanes; r++) {
        kind->optimum(reef_problem_state(run->setup.problem), -1, shares, run->round, run->setup.repetition + r, one);
        for (ptrdiff_t m = 0; m < run->dimension; m++) {
            target[m * run->lanes + r] = one[m];
        }
    }
    mean_distance(run, target, msd);
    return REEF_OK;
}

reef_status reef_run_excess(const reef_run *run, double *excess, reef_error *error)
{
    const reef_problem_kind *kind = reef_problem_kind_of(run->setup.problem);
    if (!kind->excess) {
        return rfi_fail(error, REEF_E_ARG, "%s does not know its excess risk", kind->kind.name);
    }
    double *one = run->numbers + run->agents + run->length;
    for (ptrdiff_t r = 0; r < run->lanes; r++) {
        excess[r] = 0;
        for (ptrdiff_t k = 0; k < run->agents; k++) {
            const float *row = row_at(run, row_of(run, k));
            for (ptrdiff_t m = 0; m < run->dimension; m++) {
                one[m] = (double)row[m * run->lanes + r];
            }
            if (!run->liar[k]) {
                excess[r] +=
                    kind->excess(reef_problem_state(run->setup.problem), k, run->round, run->setup.repetition + r, one);
            }
        }
        excess[r] /= (double)(run->agents - run->liars);
    }
    return REEF_OK;
}

void reef_run_consensus(const reef_run *run, double *distance)
{
    double *mean = run->numbers + run->agents;
    ptrdiff_t benign = count_members(run);
    memset(mean, 0, (size_t)run->length * sizeof *mean);
    for (ptrdiff_t k = 0; k < run->agents; k++) {
        const float *row = row_at(run, k);
        for (ptrdiff_t i = 0; run->members[k] && i < run->length; i++) {
            mean[i] += run->members[k] * (double)row[i] / (double)benign;
        }
    }
    mean_distance(run, mean, distance);
}

reef_status reef_run_score(const reef_run *run, reef_score *score, reef_error *error)
{
    const reef_problem_kind *kind = reef_problem_kind_of(run->setup.problem);
    if (!kind->score || run->lanes != 1) {
        return rfi_fail(error, REEF_E_ARG, kind->score ? "scores need lanes = 1" : "%s has no score", kind->kind.name);
    }
    ptrdiff_t benign = count_members(run);
    *score = (reef_score){0, 0, 0};
    for (ptrdiff_t k = 0; k < run->agents; k++) {
        if (run->members[k]) {
            reef_score one = {(double)NAN, (double)NAN, (double)NAN};
            double share = (double)run->members[k] / (double)benign;
            kind->score(reef_problem_state(run->setup.problem), row_at(run, k), &one, run->learners[0].batch_work);
            score->loss += share * one.loss;
            score->accuracy += share * one.accuracy;
            score->worst_accuracy += share * one.worst_accuracy;
        }
    }
    return REEF_OK;
}

/* ---- trust ---- */

/* Sums over receivers. */
typedef struct trust_sums {
    double honest, liars; /* effective weight over fair share */
    double honest_count, liar_count;
    double wins, pairs; /* of honest sender and liar at one receiver */
} trust_sums;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How many of the sorted numbers lie below x, and how many do not lie above it, added. */
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

/* Effective weights over fair shares of one class of receivers; who should have no weight does not count. */
static void add_receiver(const reef_run *run, ptrdiff_t class, double members, trust_sums *sums)
{
    const int32_t *senders = run->trust_senders + class * run->largest;
    const double *trust = run->trust + class * run->largest;
    const double *fair = run->fair + class * run->largest;
    double *of_liars = run->numbers;
    ptrdiff_t liars = 0;
    double honest = 0;
    for (ptrdiff_t i = 0; i < run->trust_counts[class]; i++) {
        if (run->liar[senders[i]] && fair[i] > 0) {
            of_liars[liars] = ratio(trust[i], fair[i]);
            sums->liars += members * of_liars[liars++];
        }
    }
    qsort(of_liars, (size_t)liars, sizeof *of_liars, by_value);
    for (ptrdiff_t i = 0; i < run->trust_counts[class]; i++) {
        if (!run->liar[senders[i]] && fair[i] > 0) {
            sums->honest += members * ratio(trust[i], fair[i]);
            sums->wins += members * 0.5 * below_and_not_above(of_liars, liars, ratio(trust[i], fair[i]));
            honest++;
        }
    }
    sums->honest_count += members * honest;
    sums->liar_count += members * (double)liars;
    sums->pairs += members * honest * (double)liars;
}

reef_status reef_run_trust_facts(const reef_run *run, reef_trust_facts *facts, reef_error *error)
{
    trust_sums sums = {0, 0, 0, 0, 0, 0};
    if (!run->trust) {
        return rfi_fail(error, REEF_E_ARG, "the run keeps no trust (setup.trust)");
    }
    if (run->server) {
        add_receiver(run, 0, 1, &sums);
    } else {
        memset(run->members, 0, (size_t)run->agents * sizeof *run->members);
        for (ptrdiff_t k = 0; k < run->agents; k++) {
            run->members[run->class_of[k]] += !run->liar[k];
        }
        for (ptrdiff_t class = 0; class < run->classes; class ++) {
            if (run->members[class]) {
                add_receiver(run, class, run->members[class], &sums);
            }
        }
    }
    facts->honest = sums.honest_count > 0 ? sums.honest / sums.honest_count : (double)NAN;
    facts->liars = sums.liar_count > 0 ? sums.liars / sums.liar_count : (double)NAN;
    facts->auc = sums.pairs > 0 ? sums.wins / sums.pairs : (double)NAN;
    return REEF_OK;
}
