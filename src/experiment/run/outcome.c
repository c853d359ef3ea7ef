/* Statistics of repetitions. */
#include "experiment/run/outcome.h"

#include "base/memory.h"

#include <assert.h>
#include <math.h>
#include <string.h>

bool rfi_outcome_init(rfi_outcome *outcome, const reef_context *context, const rfi_cell_numbers *numbers,
                      const bool wanted[RFI_METRICS], ptrdiff_t agents, ptrdiff_t views)
{
    *outcome = (rfi_outcome){.rounds = numbers->rounds, .every = numbers->every, .theory = (double)NAN};
    outcome->agents = agents;
    outcome->views = views;
    outcome->points = (ptrdiff_t)((numbers->rounds + numbers->every - 1) / numbers->every) + 1;
    for (int i = 0; i < RFI_METRICS; i++) {
        outcome->wanted[i] = wanted[i];
        outcome->metric_count += wanted[i];
    }
    ptrdiff_t count = rfi_outcome_count(outcome);
    outcome->moments = rfi_allocate_many(context, count, sizeof *outcome->moments);
    if (outcome->moments) {
        memset(outcome->moments, 0, (size_t)count * sizeof *outcome->moments);
    }
    return outcome->moments != NULL;
}

ptrdiff_t rfi_outcome_count(const rfi_outcome *outcome)
{
    return (outcome->points + 1) * outcome->metric_count + outcome->agents * outcome->views;
}

void rfi_outcome_fini(rfi_outcome *outcome, const reef_context *context)
{
    rfi_release(context, outcome->moments);
    *outcome = (rfi_outcome){0};
}

int64_t rfi_outcome_round(const rfi_outcome *outcome, ptrdiff_t point)
{
    int64_t round = point * outcome->every;
    return round < outcome->rounds ? round : outcome->rounds;
}

rfi_moments rfi_moments_of(const double *values, ptrdiff_t lanes)
{
    assert(lanes > 0);
    rfi_moments m = {0, 0};
    for (ptrdiff_t i = 0; i < lanes; i++) {
        m.mean += values[i];
    }
    m.mean /= (double)lanes;
    for (ptrdiff_t i = 0; i < lanes; i++) {
        m.squares += (values[i] - m.mean) * (values[i] - m.mean);
    }
    return m;
}

void rfi_outcome_merge(rfi_outcome *outcome, const rfi_outcome *more)
{
    double a = (double)outcome->repetitions;
    double b = (double)more->repetitions;
    ptrdiff_t count = rfi_outcome_count(outcome);
    assert(count == rfi_outcome_count(more) && outcome->rounds == more->rounds &&
           outcome->every == more->every); /* of one job */
    for (ptrdiff_t i = 0; i < count; i++) {
        rfi_moments *m = &outcome->moments[i];
        double off = more->moments[i].mean - m->mean;
        m->mean = a > 0 ? m->mean + off * (b / (a + b)) : more->moments[i].mean;
        m->squares += more->moments[i].squares + (a > 0 ? off * off * (a * b / (a + b)) : 0);
    }
    outcome->repetitions += more->repetitions;
}

rfi_moments rfi_outcome_at(const rfi_outcome *outcome, ptrdiff_t m, ptrdiff_t point)
{
    assert(m >= 0 && m < outcome->metric_count && point >= 0 && point <= outcome->points);
    return outcome->moments[m * (outcome->points + 1) + point];
}

rfi_moments rfi_outcome_trust(const rfi_outcome *outcome, ptrdiff_t agent)
{
    assert(agent >= 0 && agent < outcome->agents * outcome->views);
    return outcome->moments[(outcome->points + 1) * outcome->metric_count + agent];
}

rfi_moments rfi_outcome_factor(const rfi_outcome *outcome, ptrdiff_t agent, ptrdiff_t test)
{
    assert(agent < outcome->agents && test >= 0 && 1 + test < outcome->views);
    return rfi_outcome_trust(outcome, (1 + test) * outcome->agents + agent);
}

double rfi_outcome_error(const rfi_outcome *outcome, rfi_moments moments)
{
    double n = (double)outcome->repetitions;
    return n > 1 ? sqrt(moments.squares / (n - 1) / n) : (double)NAN;
}
