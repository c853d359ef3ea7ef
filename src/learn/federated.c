/* Federated learning with a server (McMahan et al. 2017; Example 1 of the paper), with any rule at the server.
 *
 * Each round the server samples agents; agent k starts from the server's model and takes L_k gradient steps of its own; the server
 * combines the models, or their differences from its own (exchange=update). With mean_delay > 0 agents work on a seeded virtual clock:
 * a message arrives some rounds after the model it was made from, and is not used when it is older than `staleness`. */
#include "learn/run.h"

#include "base/error.h"
#include "num/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum exchange { UPDATE, MODEL } exchange;
static const char *const exchange_words[] = {"update", "model", NULL};
typedef enum weighting { UNIFORM, SAMPLES } weighting;
static const char *const weighting_words[] = {"uniform", "samples", NULL};

typedef struct federated_params {
    rfi_adapt adapt;
    double fraction;
    int64_t clients;
    double available, dropout;
    int64_t steps, steps_max;
    int exchange;
    int weights;
    double cap;
    double server_step, server_momentum;
    double mean_delay;
    int64_t staleness;
} federated_params;

#define REAL(member, text, low, high, of, what)                                                                        \
    {                                                                                                                  \
        .name = #member, .type = REEF_FIELD_REAL, .offset = offsetof(federated_params, member), .preset = (text),      \
        .min = (low), .max = (high), .unit = (of), .help = (what)                                                      \
    }
#define WHOLE(member, text, low, high, of, what)                                                                       \
    {                                                                                                                  \
        .name = #member, .type = REEF_FIELD_INT, .offset = offsetof(federated_params, member), .preset = (text),       \
        .min = (low), .max = (high), .unit = (of), .help = (what)                                                      \
    }
static const reef_field fields[] = {
    REAL(fraction, "1", 1e-6, 1, "", "share of the agents sampled per round"),
    WHOLE(clients, "0", 0, 1e9, "agents", "number of agents sampled per round; 0: given by fraction"),
    REAL(available, "1", 0, 1, "", "probability that an agent can be sampled in a round"),
    REAL(dropout, "0", 0, 1, "", "probability that a sampled agent does not answer"),
    WHOLE(steps, "1", 1, 1e6, "", "local gradient steps L"),
    WHOLE(steps_max, "0", 0, 1e6, "", "if larger than steps: L drawn from steps..steps_max per agent and round"),
    {.name = "exchange",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(federated_params, exchange),
     .preset = "update",
     .words = exchange_words,
     .unit = "",
     .help = "what is sent: the difference from the server's model, or the model"},
    {.name = "weights",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(federated_params, weights),
     .preset = "uniform",
     .words = weighting_words,
     .unit = "",
     .help = "weights of the agents at the server: equal, or by their number of samples"},
    REAL(cap, "2", 1, 1e9, "",
         "largest weight by samples, over the median one, so that no malicious agent can claim more influence"),
    REAL(server_step, "1", 0, 1e6, "", "step size of the server along the combined update"),
    REAL(server_momentum, "0", 0, 0.9999, "", "beta in v = beta v + update at the server"),
    REAL(mean_delay, "0", 0, 1e6, "rounds", "mean time from model to message (exponential); 0: synchronous"),
    WHOLE(staleness, "10", 0, 1e9, "rounds", "oldest message that is used"),
    RFI_ADAPT_FIELDS(federated_params),
};

/* Per agent: the message under way. Part of the state. */
typedef struct journey {
    int64_t start;   /* round of the model it was made from */
    int64_t arrival; /* round in which it arrives; -1: idle */
} journey;

static float *velocity_of(const reef_run *run)
{
    return run->server + run->stride;
}

static float *output_of(const reef_run *run)
{
    return run->server + 2 * run->stride;
}

/* How many agents the server samples; 0.07 x 100 is 7, whatever the rounding. */
static ptrdiff_t wanted_of(const reef_run *run)
{
    const federated_params *p = run->params;
    double share = p->fraction * (double)run->all;
    return p->clients > 0 ? (ptrdiff_t)p->clients : (ptrdiff_t)ceil(share - 1e-9 * share);
}

static reef_status prepare(reef_run *run, reef_error *error)
{
    const federated_params *p = run->params;
    run->extra_size = (size_t)run->all * sizeof(journey);
    run->extra = rfi_run_take(run, run->all, sizeof(journey));
    run->present = rfi_run_take(run, run->all, sizeof(bool));
    run->server_weights = rfi_run_take(run, 2 * run->all, sizeof(double));
    bool whole = reef_problem_kind_of(run->setup.problem)->traits & REEF_PROBLEM_WHOLE;
    run->gradient = whole ? rfi_run_rows(run, run->own) : NULL; /* all take their steps at the same time */
    if (!run->extra || !run->present || !run->server_weights || (whole && !run->gradient)) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %td agents", run->all);
    }
    if (p->clients > run->all) {
        return rfi_fail(error, REEF_E_RANGE, "federated: clients=%lld, but there are only %td agents",
                        (long long)p->clients, run->all);
    }
    journey *journeys = run->extra;
    for (ptrdiff_t k = 0; k < run->all; k++) {
        journeys[k].arrival = -1;
    }
    if (p->steps_max > 0 && p->steps_max < p->steps) {
        return rfi_fail(error, REEF_E_RANGE, "federated: steps_max=%lld is less than steps=%lld",
                        (long long)p->steps_max, (long long)p->steps);
    }
    run->keeps_phi = p->mean_delay > 0;
    run->step_scale = p->server_step * (double)p->steps;
    run->origin = p->exchange == UPDATE ? run->zeros : run->server;
    run->wanted = wanted_of(run);
    return REEF_OK;
}

/* Draws the agents of this round into `present`, among the available ones that are not under way. */
static void sample(reef_run *run)
{
    const federated_params *p = run->params;
    const journey *journeys = run->extra;
    int32_t *pool = (int32_t *)(void *)run->server_weights; /* not yet needed in this round */
    ptrdiff_t able = 0;
    rfi_rng rng;
    rfi_rng_init(&rng, run->setup.seed, RFI_PURPOSE_SAMPLING, 0, 0, (uint32_t)run->round);
    for (ptrdiff_t k = 0; k < run->all; k++) {
        bool can = p->available >= 1 || rfi_rng_uniform(&rng) < p->available;
        run->present[k] = false;
        if (can && journeys[k].arrival < 0) {
            pool[able++] = (int32_t)k;
        }
    }
    for (ptrdiff_t i = 0; i < able && i < run->wanted; i++) { /* the first places of a random permutation */
        ptrdiff_t j = i + (ptrdiff_t)rfi_rng_below(&rng, (uint32_t)(able - i));
        int32_t k = pool[j];
        pool[j] = pool[i];
        run->present[k] = true;
    }
}

static int64_t steps_of(const reef_run *run, ptrdiff_t k)
{
    const federated_params *p = run->params;
    if (p->steps_max <= p->steps) {
        return p->steps;
    }
    rfi_rng rng;
    rfi_rng_init(&rng, run->setup.seed, RFI_PURPOSE_STEPS, (uint32_t)k, 0, (uint32_t)run->round);
    return p->steps + (int64_t)rfi_rng_below(&rng, (uint32_t)(p->steps_max - p->steps + 1));
}

/* When the message arrives; -1: the agent fails on the way. */
static int64_t arrival_of(const reef_run *run, ptrdiff_t k)
{
    const federated_params *p = run->params;
    rfi_rng rng;
    if (p->dropout <= 0 && p->mean_delay <= 0) {
        return run->round;
    }
    rfi_rng_init(&rng, run->setup.seed, RFI_PURPOSE_CLOCK, (uint32_t)k, 0, (uint32_t)run->round);
    bool fails = rfi_rng_uniform(&rng) < p->dropout;
    double delay = p->mean_delay > 0 ? floor(-p->mean_delay * log(rfi_rng_uniform(&rng))) : 0;
    return fails ? -1 : run->round + (int64_t)fmin(delay, 1e9);
}

/* Those of from..to that take a local step number `step`, into the learner's batch; returns how many. */
static ptrdiff_t gather(const reef_run *run, rfi_learner *learner, ptrdiff_t from, ptrdiff_t to, int64_t step)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t k = from; k < to; k++) {
        ptrdiff_t id = rfi_id(run, k);
        if (run->present[id] && step < steps_of(run, id)) {
            learner->agents[count++] = (int32_t)k;
        }
    }
    return count;
}

static void subtract(ptrdiff_t count, const float *restrict x, float *restrict from)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        from[i] -= x[i];
    }
}

/* The agents that were drawn work on the server's model; what they will send is in phi. */
static void work_range(reef_run *run, void *job, ptrdiff_t from, ptrdiff_t to, rfi_learner *learner)
{
    const federated_params *p = run->params;
    float *room = run->gradient ? run->gradient : learner->spare;
    (void)job;
    for (ptrdiff_t k = from; k < to; k++) {
        if (run->present[rfi_id(run, k)]) {
            memcpy(rfi_row(run, run->phi, k), run->server, (size_t)run->length * sizeof(float));
        }
    }
    ptrdiff_t count = gather(run, learner, from, to, 0);
    for (int64_t i = 0; count > 0; count = gather(run, learner, from, to, ++i)) {
        rfi_adapt_some(run, learner, count, i, run->phi, room);
    }
    for (ptrdiff_t k = from; k < to; k++) {
        if (run->present[rfi_id(run, k)] && p->exchange == UPDATE) {
            subtract(run->length, run->server, rfi_row(run, run->phi, k));
        }
    }
}

/* Their messages are on the way. Every rank knows the journeys of all agents; each counts its own. */
static void depart(reef_run *run)
{
    journey *journeys = run->extra;
    reef_run_counts *counts = &run->learners[0].counts;
    for (ptrdiff_t k = 0; k < run->all; k++) {
        if (run->present[k]) {
            journeys[k] = (journey){run->round, arrival_of(run, k)};
            bool own = reef_run_holds(run, k);
            counts->messages += own; /* the server's model to the agent */
            counts->silent += own && journeys[k].arrival < 0;
        }
    }
}

/* Messages that arrive in this round: `present` from now on. */
static void receive(reef_run *run)
{
    const federated_params *p = run->params;
    journey *journeys = run->extra;
    for (ptrdiff_t k = 0; k < run->all; k++) {
        run->present[k] = journeys[k].arrival == run->round;
        if (run->present[k]) {
            journeys[k].arrival = -1;
            if (run->round - journeys[k].start > p->staleness) {
                run->present[k] = false;
                run->learners[0].counts.messages += reef_run_holds(run, k);
                run->learners[0].counts.late += reef_run_holds(run, k);
            }
        }
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Weights of those present: equal, or numbers of samples up to cap times their median. */
static const double *weigh(reef_run *run)
{
    const federated_params *p = run->params;
    const reef_problem_kind *kind = reef_problem_kind_of(run->setup.problem);
    double *weights = run->server_weights;
    double *sorted = weights + run->all;
    ptrdiff_t count = 0;
    for (ptrdiff_t k = 0; k < run->all; k++) {
        bool by_samples = p->weights == SAMPLES && kind->samples;
        weights[k] = by_samples ? (double)kind->samples(reef_problem_state(run->setup.problem), k) : 1;
        weights[k] = run->present[k] ? weights[k] : 0;
        if (weights[k] > 0) {
            sorted[count++] = weights[k];
        }
    }
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    double most = count ? p->cap * sorted[count / 2] : 0;
    for (ptrdiff_t k = 0; k < run->all; k++) {
        weights[k] = fmin(weights[k], most);
    }
    return weights;
}

static void move_server(reef_run *run)
{
    const federated_params *p = run->params;
    float *velocity = velocity_of(run);
    const float *out = output_of(run);
    for (ptrdiff_t i = 0; i < run->length; i++) {
        float update = p->exchange == UPDATE ? out[i] : out[i] - run->server[i];
        velocity[i] = (float)p->server_momentum * velocity[i] + update;
        run->server[i] += (float)p->server_step * velocity[i];
    }
}

/* A message arrives once: in this round or later. */
static bool is_sane(const reef_run *run)
{
    const journey *journeys = run->extra;
    bool sane = true;
    for (ptrdiff_t k = 0; k < run->all; k++) {
        bool idle = journeys[k].arrival == -1;
        sane = sane && journeys[k].start >= 0 && journeys[k].start <= run->round;
        sane = sane && (idle || journeys[k].arrival >= run->round);
    }
    return sane;
}

static void step(reef_run *run)
{
    sample(run);
    rfi_run_ranges(run, run->own, run->gradient ? run->own : 1, work_range, NULL);
    depart(run);
    receive(run);
    rfi_lie(run, run->phi);
    if (rfi_combine_server(run, weigh(run), output_of(run))) {
        move_server(run);
    }
}

const rfi_strategy rfi_strategy_federated = {
    .kind = {.name = "federated",
             "a server samples agents, which take local steps, and combines what they send",
             "McMahan et al., Communication-efficient learning of deep networks from decentralized data, 2017",
             fields,
             RFI_COUNT(fields),
             sizeof(federated_params)},
    .needs_rule = true,
    .has_server = true,
    .serves_all = true,
    .adapt_offset = offsetof(federated_params, adapt),
    .prepare = prepare,
    .step = step,
    .is_sane = is_sane,
};
