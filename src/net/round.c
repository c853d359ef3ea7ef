/* The round machine: see the table of phases in round.h and docs/network.md. */
#include "net/round.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double hello_seconds = 1;
static const double ask_seconds = 1;
/* How long the start waits for what the store holds of this agent; a broker that hides it cannot keep an agent from starting. */
static const double own_seconds = 5;
static const double soft_least = 0.05;
enum { WAITS_LEAST = 4 };

void rfi_rounds_init(rfi_rounds *rounds, const rfi_rounds_setup *setup, rfi_window *window, uint64_t round,
                     uint64_t next, double now)
{
    *rounds = (rfi_rounds){.setup = *setup,
                           .window = window,
                           .round = round > next ? round : next,
                           .next = next,
                           .outdated = next > round + (uint64_t)window->setup.stale,
                           .began = now,
                           .hello_at = now,
                           .ask_at = now};
    rfi_window_advance(rounds->window, rounds->round);
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double rfi_rounds_soft_wait(const rfi_rounds *rounds)
{
    double sorted[RFI_WAITS];
    int count = rounds->wait_count < RFI_WAITS ? rounds->wait_count : RFI_WAITS;
    if (rounds->setup.wait_all || count < WAITS_LEAST) {
        return rounds->setup.deadline;
    }
    memcpy(sorted, rounds->waits, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, rising);
    double median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
    return fmin(fmax(2 * median, soft_least), rounds->setup.deadline);
}

static bool is_quorum(const rfi_rounds *rounds, double weight)
{
    return weight > 2 * rounds->window->setup.malicious + RFI_WEIGHT_SLACK;
}

static rfi_action wait_until(double until)
{
    return (rfi_action){.act = RFI_ACT_WAIT, .until = until};
}

static rfi_action act(rfi_act what, const rfi_rounds *rounds)
{
    return (rfi_action){.act = what, .round = rounds->round};
}

static bool due(double *at, double now, double every)
{
    if (now < *at) {
        return false;
    }
    *at = now + every;
    return true;
}

static void enter(rfi_rounds *rounds, rfi_phase phase, double now)
{
    rounds->phase = phase;
    rounds->began = now;
}

/* Goes to the round where the others are, if that is a later one. */
static void follow(rfi_rounds *rounds, int64_t claimed)
{
    uint64_t round = claimed > (int64_t)rounds->round ? (uint64_t)claimed : rounds->round;
    rounds->skipped += round - rounds->round;
    rounds->round = round;
    rfi_window_advance(rounds->window, rounds->round);
}

static rfi_action gather(rfi_rounds *rounds, double now)
{
    if (due(&rounds->hello_at, now, hello_seconds)) {
        return act(RFI_ACT_HELLO, rounds);
    }
    if (due(&rounds->ask_at, now, ask_seconds)) {
        return act(RFI_ACT_ASK, rounds);
    }
    int64_t claimed = rfi_window_claimed(rounds->window);
    double patience = rounds->began + fmin(own_seconds, rounds->setup.deadline);
    bool enough = claimed >= 0 || is_quorum(rounds, rfi_window_heard(rounds->window));
    if (!enough || (!rounds->own_known && now < patience)) {
        double until = fmin(rounds->hello_at, rounds->ask_at);
        return wait_until(enough ? fmin(until, patience) : until);
    }
    if (claimed > (int64_t)rounds->round + rounds->window->setup.stale || (rounds->outdated && claimed >= 0)) {
        follow(rounds, claimed);
        enter(rounds, RFI_PHASE_ADOPT, now);
        rounds->ask_at = now;
    } else {
        enter(rounds, RFI_PHASE_READY, now);
    }
    return rfi_rounds_next(rounds, now);
}

/* All that claim to be near this round have a row, so nothing more is to come. */
static bool all_rows(const rfi_rounds *rounds)
{
    const rfi_window *window = rounds->window;
    for (ptrdiff_t l = 0; l < window->setup.count; l++) {
        const rfi_peer *peer = &window->peers[l];
        bool near = !peer->excluded && peer->claim + window->setup.stale >= (int64_t)rounds->round;
        if (near && !rfi_window_row(window, l, rounds->round).model) {
            return false;
        }
    }
    return true;
}

static rfi_action adopt(rfi_rounds *rounds, double now)
{
    if (due(&rounds->ask_at, now, ask_seconds)) {
        return act(RFI_ACT_ASK, rounds);
    }
    int64_t claimed = rfi_window_claimed(rounds->window);
    if (claimed > (int64_t)rounds->round + rounds->window->setup.stale) {
        follow(rounds, claimed); /* they have gone on, and their older models may be gone */
    }
    double end = rounds->began + rounds->setup.deadline;
    bool enough = is_quorum(rounds, rfi_window_weight(rounds->window, rounds->round, false));
    if (now < end && !(enough && all_rows(rounds))) { /* some may not have been heard of yet */
        return wait_until(fmin(rounds->ask_at, end));
    }
    if (enough) {
        return act(RFI_ACT_ADOPT, rounds);
    }
    enter(rounds, RFI_PHASE_READY, now);
    return wait_until(INFINITY);
}

/* Where everybody waits for everybody, somebody waits for this very round of a slow agent: to skip it would keep those who hear the agent waiting
 * until the deadline. Neighbours may be ahead nevertheless: where links have a direction, those that do not hear the agent. */
uint64_t rfi_rounds_aligned(const rfi_rounds *rounds)
{
    int64_t claimed = rounds->setup.wait_all && !rounds->missed ? -1 : rfi_window_claimed(rounds->window);
    uint64_t round = rounds->round > rounds->next ? rounds->round : rounds->next;
    return claimed > (int64_t)round ? (uint64_t)claimed : round;
}

/* The round the own model belongs to: the network's present one, so that slow agents are not always too late. */
static void align(rfi_rounds *rounds, double now)
{
    int64_t claimed = rfi_window_claimed(rounds->window);
    uint64_t round = rfi_rounds_aligned(rounds);
    rounds->skipped += round - rounds->round;
    bool jumped = round != rounds->round;
    rounds->round = round;
    rfi_window_advance(rounds->window, round);
    /* Nobody outruns the others by more than the window: such a round is not signed, but said where this agent is. Nor is one of the
     * next epoch under the file of this one. */
    rounds->idle = (int64_t)round > claimed + RFI_AHEAD || rfi_window_outgrown(rounds->window, round);
    rounds->timed = false;
    /* Models of this round may have come when there was no room for them, or before it was the agent's. */
    rounds->ask_at = jumped || claimed > (int64_t)round ? now : now + ask_seconds;
    rounds->hello_at = now;
    enter(rounds, rounds->idle ? RFI_PHASE_COLLECT : RFI_PHASE_JOURNAL, now);
}

/* Who is ahead has come, too: an agent that joins or has fallen behind may never see all others in one round, and would wait until the deadline in
 * each of its own, and so fall behind again. */
static void note_wait(rfi_rounds *rounds, double now)
{
    double fresh = rounds->window->setup.own_weight + rfi_window_weight(rounds->window, rounds->round, true);
    if (rounds->timed || rounds->idle || fresh < 1 - rounds->window->setup.malicious - RFI_WEIGHT_SLACK) {
        return;
    }
    rounds->timed = true;
    rounds->waits[rounds->wait_count % RFI_WAITS] = now - rounds->began;
    /* Kept below twice the array, so that it never overflows and never seems to start anew. */
    rounds->wait_count = rounds->wait_count + 1 == 2 * RFI_WAITS ? RFI_WAITS : rounds->wait_count + 1;
}

static bool all_settled(const rfi_rounds *rounds)
{
    for (ptrdiff_t l = 0; l < rounds->window->setup.count; l++) {
        if (!rfi_window_settled(rounds->window, l, rounds->round, rounds->setup.wait_all)) {
            return false;
        }
    }
    return true;
}

static double row_weight(const rfi_rounds *rounds)
{
    return rounds->window->setup.own_weight + rfi_window_weight(rounds->window, rounds->round, false);
}

static rfi_action collect(rfi_rounds *rounds, double now)
{
    bool near = (int64_t)rounds->round <= rfi_window_claimed(rounds->window) + RFI_AHEAD;
    bool outgrown = rfi_window_outgrown(rounds->window, rfi_rounds_aligned(rounds));
    if (rounds->idle && near && !outgrown) {
        align(rounds, now); /* the others have come near: the model in hand can be signed after all */
        return rfi_rounds_next(rounds, now);
    }
    if (rounds->idle && due(&rounds->hello_at, now, hello_seconds)) {
        return act(RFI_ACT_HELLO, rounds);
    }
    note_wait(rounds, now);
    double end = rounds->began + rounds->setup.deadline;
    double soft = rounds->began + rfi_rounds_soft_wait(rounds);
    /* An idle round waits for the others to come near, not for rows; where they are in the next epoch, it is over. */
    bool settled = rounds->idle ? near && outgrown : all_settled(rounds);
    bool over = now >= end || settled || (now >= soft && is_quorum(rounds, row_weight(rounds)));
    if (!over) {
        if (due(&rounds->ask_at, now, ask_seconds)) {
            return act(RFI_ACT_ASK, rounds);
        }
        double until = fmin(end, rounds->ask_at);
        until = soft > now ? fmin(until, soft) : until;
        return wait_until(rounds->idle ? fmin(until, rounds->hello_at) : until);
    }
    rounds->missed = rounds->missed || !settled;
    rfi_window_give_up(rounds->window, rounds->round);
    enter(rounds, RFI_PHASE_COMBINE, now);
    return rfi_rounds_next(rounds, now);
}

rfi_action rfi_rounds_next(rfi_rounds *rounds, double now)
{
    switch (rounds->phase) {
    case RFI_PHASE_GATHER:
        return gather(rounds, now);
    case RFI_PHASE_ADOPT:
        return adopt(rounds, now);
    case RFI_PHASE_READY:
        break;
    case RFI_PHASE_JOURNAL:
        return act(RFI_ACT_JOURNAL, rounds);
    case RFI_PHASE_PUBLISH:
        return act(RFI_ACT_PUBLISH, rounds);
    case RFI_PHASE_COLLECT:
        return collect(rounds, now);
    case RFI_PHASE_COMBINE:
        return act(is_quorum(rounds, row_weight(rounds)) ? RFI_ACT_COMBINE : RFI_ACT_SELF, rounds);
    }
    return wait_until(INFINITY);
}

static void count_rows(rfi_rounds *rounds)
{
    for (ptrdiff_t l = 0; l < rounds->window->setup.count; l++) {
        rfi_row row = rfi_window_row(rounds->window, l, rounds->round);
        if (row.model) {
            rounds->window->peers[l].counts[row.age == 0 ? RFI_USED : RFI_STALE]++;
        }
    }
}

static void end_round(rfi_rounds *rounds, double now, bool taken)
{
    if (taken) {
        count_rows(rounds);
    }
    rounds->combined += taken;
    rounds->alone += !taken;
    rounds->idles += rounds->idle;
    rounds->round += !rounds->idle;
    rounds->idle = false;
    rfi_window_advance(rounds->window, rounds->round);
    enter(rounds, RFI_PHASE_READY, now);
}

void rfi_rounds_done(rfi_rounds *rounds, double now, bool taken)
{
    switch (rounds->phase) {
    case RFI_PHASE_ADOPT:
        if (taken) {
            count_rows(rounds);
            rounds->joined++;
        }
        enter(rounds, RFI_PHASE_READY, now);
        break;
    case RFI_PHASE_JOURNAL:
        rounds->next = rounds->round + 1;
        enter(rounds, RFI_PHASE_PUBLISH, now);
        break;
    case RFI_PHASE_PUBLISH:
        enter(rounds, RFI_PHASE_COLLECT, now);
        break;
    case RFI_PHASE_COMBINE:
        end_round(rounds, now, taken);
        break;
    case RFI_PHASE_GATHER:
    case RFI_PHASE_READY:
    case RFI_PHASE_COLLECT:
        break; /* their actions need no answer */
    }
}

void rfi_rounds_model(rfi_rounds *rounds, double now)
{
    if (rounds->phase == RFI_PHASE_READY) {
        align(rounds, now);
    }
}

void rfi_rounds_pass(rfi_rounds *rounds, double now)
{
    rfi_rounds_model(rounds, now);
    if (rounds->phase == RFI_PHASE_JOURNAL) {
        enter(rounds, RFI_PHASE_COLLECT, now);
    }
}

void rfi_rounds_own(rfi_rounds *rounds, uint64_t next, bool all)
{
    rounds->own_known = rounds->own_known || all;
    if (next > rounds->next) {
        rounds->next = next;
    }
}
