/* Combining: w_k = rule(sent_l, l in N_k) for every receiver, or once for the server.
 *
 * Receivers with equal neighbourhoods (same senders, same weights) get the same result, so it is made once per class of them: in a
 * complete graph, once for all agents. Each worker has plans for a few sizes of neighbourhoods; smaller ones leave rows with weight 0
 * (classes.c). */
#include "agg/driver.h"
#include "graph/graph.h"
#include "learn/run.h"

#include <assert.h>
#include <string.h>

/* ---- who hears whom ---- */

typedef rfi_hearing hearing;

rfi_hearing rfi_hear(const reef_run *run, rfi_learner *learner, ptrdiff_t k)
{
    const reef_links *links = run->setup.links;
    const rfi_ranks *ranks = run->ranks;
    if (ranks && ranks->start) {
        reef_csr csr = reef_graph_csr(reef_links_graph(links, run->round));
        ptrdiff_t start = ranks->start[k];
        return (hearing){ranks->senders + start, csr.weight + csr.start[run->ids[k]], ranks->start[k + 1] - start};
    }
    if (ranks) {
        return (hearing){learner->senders, learner->live, rfi_ranks_hear(run, k, learner->senders, learner->live)};
    }
    if (reef_links_always_up(links)) {
        reef_csr csr = reef_graph_csr(reef_links_graph(links, run->round));
        ptrdiff_t start = csr.start[k];
        return (hearing){csr.senders + start, csr.weight + start, csr.start[k + 1] - start};
    }
    ptrdiff_t count = reef_links_eval(links, run->round, k, learner->senders, learner->live);
    return (hearing){learner->senders, learner->live, count};
}

/* ---- combining ---- */

/* What the sums of one combine are made of. */
typedef struct combination {
    float *honest; /* K rows: what all would send honestly, and what a receiver keeps */
    float *to;     /* K rows */
    bool by_receiver;
    ptrdiff_t first; /* class that part 0 begins with */
} combination;

/* What receiver k gets from the sender at place i; NULL: nothing. `lies` counts the malicious rows made for k. */
static const float *message_to(reef_run *run, rfi_learner *learner, const combination *c, ptrdiff_t k, const hearing *h,
                               ptrdiff_t i, ptrdiff_t *lies)
{
    ptrdiff_t l = h->senders[i];
    if (l == k && (c->by_receiver || (!rfi_sent(run, l) && run->keeps_self))) {
        return rfi_row(run, c->honest, k);
    }
    if (c->by_receiver && run->malicious[l]) {
        float *lie = rfi_row(run, learner->lies, (*lies)++);
        return rfi_lie_to(run, learner, c->honest, l, k, h->senders, h->count, lie) ? lie : NULL;
    }
    return rfi_sent(
        run, l); /* a malicious agent hears its own message, or silence, like all others: neighbourhoods stay equal */
}

/* Rows and weights of receiver k, in the learner's arrays; rows that do not come have weight 0. Returns the place of k's own, or -1. */
static ptrdiff_t gather(reef_run *run, rfi_learner *learner, const combination *c, ptrdiff_t k, const hearing *h,
                        bool *complete)
{
    ptrdiff_t self = -1;
    ptrdiff_t lies = 0;
    assert(h->count <= run->largest); /* room in the learner's arrays */
    *complete = true;
    for (ptrdiff_t i = 0; i < h->count; i++) {
        int64_t others = rfi_others(run, run->class_of[k], h->senders[i]);
        const float *row = message_to(run, learner, c, k, h, i, &lies);
        self = h->senders[i] == k ? i : self;
        learner->counts.messages += row ? others : 0;
        learner->counts.silent += row ? 0 : others;
        learner->expected[i] = run->uniform ? h->weights[i] > 0 : h->weights[i];
        learner->rows[i] = row ? row : rfi_row(run, c->honest, k);
        learner->weights[i] = row ? learner->expected[i] : 0;
        *complete = *complete && learner->weights[i] > 0;
    }
    return self;
}

static double sum_of(const double *x, ptrdiff_t count)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        sum += x[i];
    }
    return sum;
}

void rfi_keep_trust(reef_run *run, const rfi_learner *learner, ptrdiff_t class_number, const int32_t *senders,
                    ptrdiff_t count, const double *given)
{
    double sum = sum_of(learner->weights, count);
    double expected = sum_of(learner->expected, count);
    ptrdiff_t at = class_number * run->largest;
    assert(class_number >= 0 && class_number < run->classes && count <= run->largest);
    run->trust_counts[class_number] = count;
    for (ptrdiff_t i = 0; i < count; i++) {
        run->trust_senders[at + i] = senders[i];
        run->trust[at + i] = given && sum > 0 ? given[i] * learner->weights[i] / sum : 0;
        run->fair[at + i] = expected > 0 ? learner->expected[i] / expected : 0;
    }
}

void rfi_keep_factors(reef_run *run, ptrdiff_t class_number, ptrdiff_t count, const reef_report *report,
                      const int32_t *rows)
{
    ptrdiff_t width = run->factor_count;
    double *factors = run->factors ? run->factors + class_number * run->largest * width : NULL;
    for (ptrdiff_t i = 0; factors && i < count * width; i++) {
        ptrdiff_t sender = i / width;
        ptrdiff_t row = rows ? rows[sender] : sender;
        factors[i] = report ? reef_report_factor(report, row, i % width) : 1;
    }
}

static void keep_trust(reef_run *run, const rfi_learner *learner, ptrdiff_t class_number, const int32_t *senders,
                       ptrdiff_t count, bool believed)
{
    const reef_report *report = believed ? rfi_applier_for(run, learner, count)->report : NULL;
    rfi_keep_trust(run, learner, class_number, senders, count, report ? reef_report_trust(report) : NULL);
    rfi_keep_factors(run, class_number, count, report, NULL);
}

/* The rule on the learner's rows; equal: all of them count alike. */
static bool apply(reef_run *run, rfi_learner *learner, ptrdiff_t class, const hearing *h, ptrdiff_t self, bool equal,
                  float *out)
{
    const rfi_applier *applier = rfi_applier_for(run, learner, h->count);
    assert(h->count >= 1 && class >= 0 && class < run->classes);
    for (ptrdiff_t i = h->count; i < applier->rows; i++) {
        learner->rows[i] = learner->rows[0];
        learner->weights[i] = 0;
    }
    for (ptrdiff_t i = 0; run->states && i < applier->rows; i++) {
        learner->ids[i] = i < h->count ? rfi_sender_id(run, rfi_id(run, h->senders[i])) : -1;
    }
    const reef_input input = {.rows = learner->rows,
                              .weights = equal && h->count == applier->rows ? NULL : learner->weights,
                              .ids = run->states ? learner->ids : NULL,
                              .has_self = self >= 0 && !run->shares_classes,
                              .self = self,
                              .round = run->round,
                              .step = run->states ? rfi_memory_step(run) : 0,
                              .state = run->states ? run->states[class] : NULL};
    reef_status status = reef_plan_apply(applier->plan, &input, out, applier->report, NULL);
    learner->counts.dropped += rfi_plan_dropped(applier->plan) * (run->class_size ? run->class_size[class] : 1);
    return status == REEF_OK;
}

static void combine_receiver(reef_run *run, rfi_learner *learner, const combination *c, ptrdiff_t class)
{
    ptrdiff_t k = run->class_first[class];
    assert(k < run->own && run->class_of[k] == class); /* every row of `to` has one writer */
    hearing h = rfi_hear(run, learner, k);
    bool complete = false;
    float *out = rfi_row(run, c->to, k);
    ptrdiff_t self = h.count > 0 ? gather(run, learner, c, k, &h, &complete) : -1;
    bool done = h.count > 0 && apply(run, learner, class, &h, self, complete && run->uniform, out);
    if (run->trust) {
        keep_trust(run, learner, class, h.senders, h.count, done);
    }
    if (!done) {
        memcpy(out, rfi_row(run, c->honest, k), (size_t)run->length * sizeof *out);
    }
    run->class_failed[class] = !done;
    learner->counts.kept += !done ? run->class_size[class] : 0;
}

/* In a large network the rows a receiver hears are anywhere in memory: they are asked for some receivers ahead. */
static void look_ahead(const reef_run *run, const reef_csr *csr, ptrdiff_t k)
{
    enum { LINES = 4, FLOATS = RFI_ALIGNMENT / (int)sizeof(float) };
    for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1]; i++) {
        const float *row = run->plain + csr->senders[i] * run->stride;
        for (ptrdiff_t at = 0; at < run->length && at < (ptrdiff_t)LINES * FLOATS; at += FLOATS) {
            __builtin_prefetch(row + at);
        }
    }
}

static void combine_range(reef_run *run, void *job, ptrdiff_t from, ptrdiff_t to, rfi_learner *learner)
{
    enum { AHEAD = 12, MANY = 4096 };
    const combination *c = job;
    bool ahead = run->plain && run->classes > MANY && !run->ranks;
    reef_csr csr = reef_graph_csr(reef_links_graph(run->setup.links, run->round));
    for (ptrdiff_t receiver = c->first + from; receiver < c->first + to; receiver++) {
        if (ahead && receiver + AHEAD < run->classes) {
            look_ahead(run, &csr, run->class_first[receiver + AHEAD]);
        }
        combine_receiver(run, learner, c, receiver);
    }
}

/* Everybody gets the result of its class: by reference among the models, else by a copy. Without one each keeps its own. */
void rfi_hand_out(reef_run *run, float *own, float *to)
{
    size_t bytes = (size_t)run->length * sizeof(float);
    for (ptrdiff_t k = 0; k < run->own; k++) {
        ptrdiff_t first = run->class_first[run->class_of[k]];
        bool failed = run->class_failed[run->class_of[k]];
        assert(run->class_of[first] == run->class_of[k]);
        if (to == run->w) {
            run->home[k] = (int32_t)(failed ? k : first);
        }
        if (k != first && failed) {
            memcpy(rfi_row(run, to, k), rfi_row(run, own, k), bytes);
        } else if (k != first && to != run->w) {
            memcpy(rfi_row(run, to, k), rfi_row(run, to, first), bytes);
        }
    }
}

static void combine_classes(reef_run *run, combination *c, ptrdiff_t from, ptrdiff_t to)
{
    c->first = from;
    rfi_run_ranges(run, to - from, to - from > 4 * RFI_CHUNK_AGENTS ? RFI_CHUNK_AGENTS : 1, combine_range, c);
}

/* Those who hear no other rank while the rows of the others are on their way. */
static void combine_interior(reef_run *run, combination *c)
{
    enum { PARTS = 8 };
    ptrdiff_t interior = run->ranks->interior;
    for (ptrdiff_t i = 0; i < PARTS; i++) {
        rfi_ranks_poke(run);
        combine_classes(run, c, interior * i / PARTS, interior * (i + 1) / PARTS);
    }
    rfi_ranks_receive(run);
}

void rfi_combine_all(reef_run *run, float *own, float *to)
{
    combination c = {own, to, rfi_lies_by_receiver(run), 0};
    if (run->ranks) {
        combine_interior(run, &c);
    }
    combine_classes(run, &c, run->ranks ? run->ranks->interior : 0, run->classes);
    if (run->shares_classes) {
        rfi_hand_out(run, own, to);
    } else if (to == run->w) {
        for (ptrdiff_t k = 0; k < run->own; k++) {
            run->home[k] = (int32_t)k;
        }
    }
}

bool rfi_combine_server(reef_run *run, const double *weights, float *out)
{
    if (run->ranks) {
        return rfi_ranks_serve(run, weights, out);
    }
    rfi_learner *learner = &run->learners[0];
    hearing h = {run->heard, NULL, 0};
    ptrdiff_t used = 0;
    for (ptrdiff_t k = 0; k < run->agents; k++) {
        if (!run->present[k]) {
            continue;
        }
        const float *row = rfi_sent(run, k);
        bool sent = row != NULL;
        ptrdiff_t i = h.count++;
        run->heard[i] = (int32_t)k;
        learner->rows[i] = sent ? row : run->server;
        learner->expected[i] = run->uniform ? weights[k] > 0 : weights[k];
        learner->weights[i] = sent ? learner->expected[i] : 0;
        learner->counts.messages += sent;
        learner->counts.silent += !sent;
        used += learner->weights[i] > 0;
    }
    assert(h.count <= run->largest && used <= h.count);
    bool done = used > 0 && apply(run, learner, 0, &h, -1, run->uniform && used == h.count, out);
    if (run->trust) {
        keep_trust(run, learner, 0, run->heard, h.count, done);
    }
    learner->counts.kept += !done;
    return done;
}
