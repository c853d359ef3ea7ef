/* What is measured, over the benign agents. Agents that share a model are counted, not computed, again. Sums in double precision and
 * in the order of agents. */
#include "base/error.h"
#include "learn/run.h"

#include <math.h>
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

static void compare_pairs(const reef_run *run, const int32_t *senders, const double *trust, ptrdiff_t count,
                          double members, trust_sums *sums)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        for (ptrdiff_t j = 0; !run->liar[senders[i]] && j < count; j++) {
            if (run->liar[senders[j]]) {
                sums->pairs += members;
                sums->wins += members * (trust[i] > trust[j] ? 1 : (trust[i] < trust[j] ? 0 : 0.5));
            }
        }
    }
}

static void add_receiver(const reef_run *run, ptrdiff_t class, double members, trust_sums *sums)
{
    const int32_t *senders = run->trust_senders + class * run->largest;
    const double *trust = run->trust + class * run->largest;
    ptrdiff_t count = run->trust_counts[class];
    for (ptrdiff_t i = 0; i < count; i++) {
        bool lies = run->liar[senders[i]];
        *(lies ? &sums->liars : &sums->honest) += members * trust[i] * (double)count;
        *(lies ? &sums->liar_count : &sums->honest_count) += members;
    }
    compare_pairs(run, senders, trust, count, members, sums);
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
