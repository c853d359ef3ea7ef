/* The promises of the protocol, checked against what really happened. */
#include "net/sim_world.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void sim_fail(sim_world *world, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(world->result.why, sizeof world->result.why, format, arguments);
    va_end(arguments);
    longjmp(world->failed, 1);
}

void sim_saw_record(sim_world *world, int agent, uint64_t round, const unsigned char *mark)
{
    sim_agent *a = &world->agent[agent];
    SIM_CHECK(world, round < SIM_ROUNDS, "agent %d records round %llu", agent, (unsigned long long)round);
    SIM_CHECK(world, round >= a->top, "agent %d goes back from round %llu to %llu", agent,
              (unsigned long long)a->top - 1, (unsigned long long)round);
    a->top = round + 1;
    memcpy(a->mark[round], mark, RFI_HASH_BYTES);
}

void sim_saw_frame(sim_world *world, int agent, const unsigned char *bytes, size_t size)
{
    sim_agent *a = &world->agent[agent];
    rfi_head head;
    unsigned char mark[RFI_HASH_BYTES];
    SIM_CHECK(world, rfi_frame_read(bytes, size, &head) == RFI_GOOD, "agent %d sends a malformed frame", agent);
    if (head.type != RFI_FRAME_MODEL) {
        return;
    }
    rfi_frame_mark(mark, bytes);
    SIM_CHECK(world, head.round < a->top, "agent %d signs round %llu before it is recorded", agent,
              (unsigned long long)head.round);
    SIM_CHECK(world, memcmp(mark, a->mark[head.round], sizeof mark) == 0, "agent %d signs two models for round %llu",
              agent, (unsigned long long)head.round);
    bool knows = a->up && rfi_node_window(a->node)->after.known;
    SIM_CHECK(world, head.epoch == 2 ? head.round >= world->from : !knows || head.round < world->from,
              "agent %d signs round %llu under the file of epoch %u", agent, (unsigned long long)head.round,
              head.epoch);
    a->signed_[head.round] = true;
    a->value[head.round] = a->phi[0];
}

static double weight_of(const sim_world *world, int agent)
{
    int degree = 0;
    for (int l = 0; l < world->agents; l++) {
        degree += world->linked[agent][l];
    }
    return 1.0 / (degree + 1);
}

void sim_saw_rows(sim_world *world, int agent, uint64_t round, const rfi_row *rows, bool own)
{
    double each = weight_of(world, agent);
    double weight = own ? each : 0;
    int l = -1;
    const rfi_window *window = rfi_node_window(world->agent[agent].node);
    for (ptrdiff_t i = 0; i < window->setup.count; i++) {
        l = (int)window->peers[i].who.agent;
        if (!rows[i].model) {
            continue;
        }
        weight += each;
        uint64_t of = (uint64_t)((int64_t)round - rows[i].age);
        SIM_CHECK(world, rows[i].age <= 2, "agent %d uses a row %lld rounds old", agent, (long long)rows[i].age);
        const double *model = rows[i].model;
        SIM_CHECK(world, isfinite(model[0]) && fabs(model[0]) <= 1e6, "agent %d uses a row with %g", agent, model[0]);
        const sim_agent *from = &world->agent[l];
        SIM_CHECK(world, from->character != SIM_HONEST || (from->signed_[of] && from->value[of] == model[0]),
                  "agent %d uses a row that agent %d never signed for round %llu", agent, l, (unsigned long long)of);
        world->result.stale += rows[i].age != 0;
    }
    SIM_CHECK(world, weight > 2 * world->malicious, "agent %d combines weight %g, twice F is %g", agent, weight,
              2 * world->malicious);
    world->agent[agent].healed_combined += world->healed;
}

void sim_saw_step(sim_world *world, int agent, double until)
{
    const sim_agent *a = &world->agent[agent];
    const rfi_rounds *rounds = rfi_node_rounds(a->node);
    const rfi_window *window = rfi_node_window(a->node);
    uint64_t top = 0;
    for (int l = 0; l < world->agents; l++) {
        top = world->agent[l].character == SIM_HONEST && world->agent[l].top > top ? world->agent[l].top : top;
    }
    top = a->second && world->from > top ? world->from : top;
    SIM_CHECK(world, rounds->round <= top, "agent %d is at round %llu, no honest agent was beyond %lld", agent,
              (unsigned long long)rounds->round, (long long)top - 1);
    bool bounded = rounds->phase != RFI_PHASE_GATHER && rounds->phase != RFI_PHASE_READY;
    SIM_CHECK(world, !bounded || until <= rounds->began + world->deadline + 1e-9,
              "agent %d waits beyond the deadline in phase %d", agent, (int)rounds->phase);
    SIM_CHECK(world, rounds->phase == RFI_PHASE_READY || until > world->now, "agent %d spins in phase %d", agent,
              (int)rounds->phase);
    for (ptrdiff_t i = 0; i < window->setup.count; i++) {
        const rfi_peer *peer = &window->peers[i];
        int l = (int)peer->who.agent;
        SIM_CHECK(world, peer->excluded || !a->proven[l], "agent %d has forgotten the proof against agent %d", agent,
                  l);
        if (world->agent[l].character == SIM_HONEST) {
            SIM_CHECK(world, !peer->excluded, "agent %d excludes agent %d, which is honest", agent, l);
            uint64_t said =
                world->agent[l].second && world->from > world->agent[l].top ? world->from : world->agent[l].top;
            SIM_CHECK(world, peer->claim < (int64_t)said, "agent %d believes agent %d at round %lld", agent, l,
                      (long long)peer->claim);
        }
    }
}

void sim_saw_proof(sim_world *world, int agent, uint32_t accused)
{
    SIM_CHECK(world, world->agent[accused].character != SIM_HONEST,
              "agent %d has a proof against agent %u, which is honest", agent, (unsigned)accused);
}

/* Which of the two models of a two-faced sender an agent is shown: bits. */
static unsigned faces_shown(const sim_world *world, int to)
{
    unsigned faces = 0;
    for (int b = 0; b < world->brokers; b++) {
        const sim_broker *broker = &world->broker[b];
        unsigned sent = world->brokers == 1 || broker->splits ? 3U : 1U << b;
        unsigned half = broker->splits ? 1U << (world->half >> to & 1U) : 3U;
        faces |= isfinite(broker->dead_from) ? 0 : sent & half;
    }
    return faces;
}

/* Whether its honest receivers, together, have been shown both since the network healed. */
static bool was_seen(const sim_world *world, int sender)
{
    unsigned faces = 0;
    for (int k = 0; k < world->agents; k++) {
        faces |= world->linked[k][sender] && world->agent[k].character == SIM_HONEST ? faces_shown(world, k) : 0;
    }
    return world->agent[sender].faces_since >= 2 && faces == 3;
}

static bool has_excluded(const sim_agent *agent, int sender)
{
    const rfi_window *window = agent->up ? rfi_node_window(agent->node) : NULL;
    ptrdiff_t peer = window ? rfi_window_find(window, (uint32_t)sender) : -1;
    return peer >= 0 && window->peers[peer].excluded;
}

int sim_unproven(const sim_world *world)
{
    for (int l = 0; l < world->agents; l++) {
        bool due = world->agent[l].character == SIM_TWO_FACED && was_seen(world, l);
        for (int k = 0; k < world->agents && due; k++) {
            if (world->agent[k].character == SIM_HONEST && world->linked[k][l] && !has_excluded(&world->agent[k], l)) {
                return l;
            }
        }
    }
    return -1;
}
