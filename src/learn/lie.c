/* What malicious agents send ("lies" in names). Messages that are the same for all receivers are made once per round, here; those that
 * depend on the receiver are made when it combines (rfi_lie_to). */
#include "base/error.h"
#include "learn/run.h"

#include <assert.h>
#include <string.h>

bool rfi_attacks_now(const reef_run *run)
{
    return run->setup.attack && run->all_malicious && reef_attack_active(run->setup.attack, run->round) &&
           reef_attack_kind_of(run->setup.attack)->message;
}

bool rfi_lies_can_differ(const reef_run *run)
{
    if (!run->setup.attack || !run->all_malicious || run->strategy->has_server) {
        return false;
    }
    unsigned traits = reef_attack_traits(run->setup.attack);
    bool by_neighbours = reef_attack_common_of(run->setup.attack)->knowledge == REEF_KNOW_NEIGHBOURS;
    return (traits & REEF_ATTACK_EDGE) || ((traits & REEF_ATTACK_ROWS) && by_neighbours);
}

bool rfi_lies_by_receiver(const reef_run *run)
{
    return rfi_attacks_now(run) && rfi_lies_can_differ(run);
}

/* The rule in force, as an attack may try it. */
typedef struct trial {
    const reef_run *run;
    rfi_learner *learner;
} trial;

static bool try_rule(void *user, const float *const *rows, ptrdiff_t count, float *out)
{
    const trial *t = user;
    const rfi_applier *applier = &t->learner->trial;
    double *weights = t->learner->trial_weights;
    if (!applier->plan || count < 1 || count > applier->rows) {
        return false;
    }
    for (ptrdiff_t i = 0; i < applier->rows; i++) { /* rows beyond repeat the first, with weight 0 */
        weights[i] = i < count;
        t->learner->trial_rows[i] = i < count ? rows[i] : rows[0];
    }
    const reef_input input = {.rows = t->learner->trial_rows, .weights = weights, .has_self = true, .self = 0};
    return reef_plan_apply(applier->plan, &input, out, NULL, NULL) == REEF_OK;
}

static bool is_present(const reef_run *run, ptrdiff_t k)
{
    return !run->present || run->present[rfi_id(run, k)];
}

ptrdiff_t rfi_malicious_place(const reef_run *run, ptrdiff_t l)
{
    ptrdiff_t from = 0;
    ptrdiff_t to = run->malicious_count - 1;
    while (from < to) {
        ptrdiff_t middle = from + (to - from) / 2;
        *(run->malicious_list[middle] < l ? &from : &to) = run->malicious_list[middle] < l ? middle + 1 : middle;
    }
    assert(run->malicious_list[from] == l);
    return from;
}

float *rfi_lie_row(const reef_run *run, ptrdiff_t l)
{
    return rfi_row(run, run->lies, rfi_malicious_place(run, l));
}

const float *rfi_previous_of(const reef_run *run, ptrdiff_t l)
{
    if (run->origin) {
        return run->origin;
    }
    return run->before ? rfi_row(run, run->before, rfi_malicious_place(run, l)) : rfi_model(run, l);
}

static bool ask(reef_run *run, rfi_learner *learner, const reef_attack_view *view, float *out)
{
    const reef_attack *attack = run->setup.attack;
    trial t = {run, learner};
    reef_attack_view asked = *view;
    if (learner->trial.plan) {
        asked.aggregate = try_rule;
        asked.user = &t;
    }
    return reef_attack_kind_of(attack)->message(reef_attack_params(attack), &asked, out);
}

static reef_attack_view view_of(reef_run *run, rfi_learner *learner, float *honest, ptrdiff_t l)
{
    return (reef_attack_view){.round = run->round,
                              .seed = run->setup.seed,
                              .sender = rfi_id(run, l),
                              .receiver = -1,
                              .length = run->length,
                              .lanes = run->lanes,
                              .repetition = run->setup.repetition,
                              .own = rfi_row(run, honest, l),
                              .previous = rfi_previous_of(run, l),
                              .receiver_model = run->origin,
                              .rows = run->known,
                              .known = run->known_count,
                              .honest = run->honest_present,
                              .malicious_count = run->malicious_present,
                              .work = learner->attack_work,
                              .trust = run->watched};
}

/* Who takes part, and the rows that every malicious agent knows. */
static void look_round(reef_run *run, float *honest)
{
    bool malicious_count =
        run->setup.attack && reef_attack_common_of(run->setup.attack)->knowledge == REEF_KNOW_MALICIOUS;
    run->honest_present = run->malicious_present = run->known_count = 0;
    for (ptrdiff_t i = 0; i < run->agents; i++) {
        ptrdiff_t k = run->ranks ? run->ranks->order[i] : i;
        if (is_present(run, k)) {
            *(run->malicious[k] ? &run->malicious_present : &run->honest_present) += 1;
            if (run->known && run->malicious[k] == malicious_count) {
                run->known[run->known_count++] = rfi_row(run, honest, k);
            }
        }
    }
    if (run->ranks) { /* those of other ranks too */
        run->honest_present = run->malicious_present = 0;
        for (ptrdiff_t id = 0; id < run->all; id++) {
            bool here = !run->present || run->present[id];
            *(rfi_is_malicious(run, id) ? &run->malicious_present : &run->honest_present) += here;
        }
    }
}

static void lie_range(reef_run *run, void *job, ptrdiff_t from, ptrdiff_t to, rfi_learner *learner)
{
    float *honest = job;
    for (ptrdiff_t i = from; i < to; i++) {
        ptrdiff_t l = run->malicious_list[i];
        float *lie = rfi_row(run, run->lies, i);
        if (!is_present(run, l)) {
            continue;
        }
        reef_attack_view view = view_of(run, learner, honest, l);
        run->sent[l] = ask(run, learner, &view, lie) ? lie : NULL;
    }
}

/* Late messages: the ring gets this round's row, and the one of `depth` - 1 rounds ago goes out, if there was one. */
static void delay_lies(reef_run *run)
{
    int64_t now = run->round % run->depth;
    int64_t then = (run->round + 1) % run->depth; /* the oldest in the ring */
    for (ptrdiff_t i = 0; i < run->own_malicious; i++) {
        ptrdiff_t l = run->malicious_list[i];
        float *kept = rfi_row(run, run->past, now * run->malicious_count + i);
        run->past_sent[now * run->malicious_count + i] = run->sent[l] != NULL;
        if (run->sent[l]) {
            memcpy(kept, run->sent[l], (size_t)run->length * sizeof *kept);
        }
        if (reef_attack_active(run->setup.attack, run->round) && is_present(run, l)) {
            bool there = run->past_sent[then * run->malicious_count + i];
            run->sent[l] = there ? rfi_row(run, run->past, then * run->malicious_count + i) : NULL;
        }
    }
}

/* With a server `previous` is the same for all. Known rows: those of honest agents, or of malicious ones, of which there is at least one. */
static bool lies_are_same(const reef_run *run)
{
    unsigned traits = reef_attack_traits(run->setup.attack);
    bool same = (traits & REEF_ATTACK_SAME) || ((traits & REEF_ATTACK_SAME_PREVIOUS) && run->origin);
    bool malicious_count = reef_attack_common_of(run->setup.attack)->knowledge == REEF_KNOW_MALICIOUS;
    return same && (malicious_count || run->honest_present > 0 || !(traits & REEF_ATTACK_ROWS));
}

static void make_lies(reef_run *run, float *honest)
{
    run->plain = !run->present && !run->malicious_count ? honest : NULL;
    if (run->plain) {
        return;
    }
    for (ptrdiff_t k = 0; k < run->agents; k++) {
        run->sent[k] = is_present(run, k) ? rfi_row(run, honest, k) : NULL;
    }
    look_round(run, honest);
    if (!rfi_attacks_now(run) || rfi_lies_by_receiver(run)) {
        if (run->past) {
            delay_lies(run);
        }
        return;
    }
    ptrdiff_t first = 0; /* malicious agent that takes part */
    while (first < run->own_malicious && !is_present(run, run->malicious_list[first])) {
        first++;
    }
    if (first < run->own_malicious && lies_are_same(run)) { /* one message for all */
        lie_range(run, honest, first, first + 1, &run->learners[0]);
        for (ptrdiff_t i = first + 1; i < run->own_malicious; i++) {
            ptrdiff_t l = run->malicious_list[i];
            run->sent[l] = is_present(run, l) ? run->sent[run->malicious_list[first]] : NULL;
        }
    } else {
        rfi_run_ranges(run, run->own_malicious, 1, lie_range, honest);
    }
    if (run->past) {
        delay_lies(run);
    }
}

void rfi_lie(reef_run *run, float *honest)
{
    if (run->ranks) {
        rfi_ranks_know(run, honest);
    }
    make_lies(run, honest);
    if (run->ranks && !run->server) { /* a server asks for slices of the rows */
        rfi_ranks_send(run, honest);
    }
}

bool rfi_lie_to(reef_run *run, rfi_learner *learner, float *honest, ptrdiff_t l, ptrdiff_t k, const int32_t *senders,
                ptrdiff_t count, float *out)
{
    reef_attack_view view = view_of(run, learner, honest, l);
    view.receiver = rfi_id(run, k);
    view.receiver_model = rfi_model(run, k);
    view.malicious_count = 0;
    assert(run->malicious[l] && count <= run->largest);
    for (ptrdiff_t i = 0; i < count; i++) {
        view.malicious_count += run->malicious[senders[i]];
    }
    view.honest = count - view.malicious_count;
    if (learner->known) {
        view.known = 0;
        view.rows = learner->known;
        for (ptrdiff_t i = 0; i < count; i++) {
            if (!run->malicious[senders[i]]) {
                learner->known[view.known++] = rfi_row(run, honest, senders[i]);
            }
        }
    }
    return ask(run, learner, &view, out);
}

reef_status rfi_before_prepare(reef_run *run, reef_error *error)
{
    run->sends_old = true;
    if (!run->setup.attack || !run->malicious_count || run->dry) {
        return REEF_OK;
    }
    run->before = rfi_run_rows(run, run->malicious_count);
    if (!run->before) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for the models of %td malicious agents",
                        run->malicious_count);
    }
    rfi_before_keep(run, run->w);
    return REEF_OK;
}

void rfi_before_keep(reef_run *run, float *rows)
{
    for (ptrdiff_t i = 0; run->before && i < run->malicious_count; i++) {
        memcpy(rfi_row(run, run->before, i), rfi_row(run, rows, run->malicious_list[i]),
               (size_t)run->length * sizeof(float));
    }
}
