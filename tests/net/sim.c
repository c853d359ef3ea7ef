/* Playing a run: agents, time and faults. */
#include "net/frames.h"
#include "net/sim_world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAULTY_ROUNDS = 20, CUT_ROUNDS = 60, HEALED_COMBINATIONS = 5 };
static const double faulty_seconds = 40;
static const double patience = 60; /* seconds after healing, and ten deadlines */

/* --- Chance and time --- */

double sim_uniform(sim_world *world)
{
    return rfi_rng_uniform(&world->rng);
}

bool sim_chance(sim_world *world, double probability)
{
    return probability > 0 && sim_uniform(world) < probability;
}

int sim_below(sim_world *world, int bound)
{
    return (int)rfi_rng_below(&world->rng, (uint32_t)bound);
}

unsigned char *sim_copy(const void *bytes, size_t size)
{
    unsigned char *copy = malloc(size + 1);
    if (!copy) {
        abort();
    }
    if (size > 0) {
        memcpy(copy, bytes, size);
    }
    return copy;
}

static bool before(const sim_event *a, const sim_event *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void sim_later(sim_world *world, double seconds, sim_event event)
{
    sim_at(world, world->now + seconds, event);
}

void sim_at(sim_world *world, double at, sim_event event)
{
    event.at = at;
    event.order = world->order++;
    if (world->events == world->room) {
        world->room = world->room ? 2 * world->room : 256;
        world->heap = realloc(world->heap, (size_t)world->room * sizeof *world->heap);
        if (!world->heap) {
            abort();
        }
    }
    ptrdiff_t i = world->events++;
    for (; i > 0 && before(&event, &world->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        world->heap[i] = world->heap[(i - 1) / 2];
    }
    world->heap[i] = event;
}

static sim_event next_event(sim_world *world)
{
    sim_event first = world->heap[0];
    sim_event last = world->heap[--world->events];
    ptrdiff_t i = 0;
    while (2 * i + 1 < world->events) {
        ptrdiff_t child = 2 * i + 1;
        child += child + 1 < world->events && before(&world->heap[child + 1], &world->heap[child]);
        if (!before(&world->heap[child], &last)) {
            break;
        }
        world->heap[i] = world->heap[child];
        i = child;
    }
    world->heap[i] = last;
    return first;
}

/* --- Agents --- */

rfi_shape sim_shape(const sim_world *world)
{
    rfi_shape shape = frames_shape(world->options.large ? SIM_LARGE : SIM_SMALL);
    shape.sealed = world->options.sealed;
    return shape;
}

ptrdiff_t sim_hearers(const sim_world *world, int agent, rfi_hearer hearers[SIM_AGENTS])
{
    ptrdiff_t count = 0;
    for (int l = 0; l < world->agents && world->options.sealed; l++) {
        if (world->linked[l][agent] &&
            !rfi_hearer_make(&hearers[count++], (uint32_t)l, world->agent[l].keys.public_key)) {
            abort();
        }
    }
    return count;
}

static reef_status record(void *user, uint64_t round, const unsigned char mark[RFI_HASH_BYTES], reef_error *error)
{
    sim_link *link = user;
    sim_world *world = link->world;
    sim_agent *agent = &world->agent[link->agent];
    (void)error;
    bool crash = !world->healed && sim_chance(world, world->crash);
    if (crash && sim_chance(world, 0.5)) {
        agent->crash = true;
        return REEF_E_FILE; /* before anything is on the disk */
    }
    if (agent->character == SIM_HONEST) {
        sim_saw_record(world, link->agent, round, mark);
    }
    agent->next = round + 1;
    if (crash) {
        agent->crash = true; /* recorded, but nothing goes out any more */
        link->mute = true;
    }
    return REEF_OK;
}

static bool combine(void *user, uint64_t round, const rfi_row *rows, const void *own, void *out)
{
    sim_link *link = user;
    sim_world *world = link->world;
    const rfi_window *window = rfi_node_window(world->agent[link->agent].node);
    if (world->agent[link->agent].character == SIM_HONEST) {
        sim_saw_rows(world, link->agent, round, rows, own != NULL);
    }
    double sum = own ? *(const double *)own : 0;
    double count = own ? 1 : 0;
    for (ptrdiff_t i = 0; i < window->setup.count; i++) {
        sum += rows[i].model ? *(const double *)rows[i].model : 0;
        count += rows[i].model != NULL;
    }
    memset(out, 0, rfi_shape_bytes(&window->setup.shape));
    *(double *)out = sum / count;
    return true;
}

static bool always(const unsigned char signature[RFI_SIGNATURE_BYTES], const unsigned char key[RFI_KEY_BYTES],
                   const void *message, size_t size)
{
    (void)signature;
    (void)key;
    (void)message;
    (void)size;
    return true;
}

static const rfi_signatures *signatures_for(const sim_world *world)
{
    static rfi_signatures none;
    none = (rfi_signatures){frames_cheap.sign, always};
    if (world->options.sabotage == SIM_NO_SIGNATURES) {
        return &none;
    }
    return world->options.real ? &rfi_ed25519 : &frames_cheap;
}

static const unsigned char *key_of(void *user, uint32_t agent)
{
    const sim_link *link = user;
    return link->world->agent[agent].keys.public_key;
}

static void keep_proof(void *user, uint32_t agent, const unsigned char proof[RFI_PROOF_BYTES])
{
    const sim_link *link = user;
    sim_agent *by = &link->world->agent[link->agent];
    sim_saw_proof(link->world, link->agent, agent);
    by->proven[agent] = true;
    memcpy(by->proofs[agent], proof, RFI_PROOF_BYTES);
}

static rfi_echo_setup echoes(sim_world *world, int k, uint32_t witnesses[SIM_AGENTS])
{
    rfi_echo_setup setup = {.key = key_of, .witnesses = witnesses, .proved = keep_proof, .user = &world->agent[k].link};
    setup.agents = world->options.plain || world->options.sabotage == SIM_NO_ECHOES ? 0 : world->agents;
    for (int l = 0; l < world->agents; l++) {
        if (world->witness[k][l]) {
            witnesses[setup.count++] = (uint32_t)l;
        }
    }
    return setup;
}

static void take_proofs(sim_agent *agent)
{
    for (int l = 0; l < SIM_AGENTS; l++) {
        if (agent->proven[l]) {
            (void)rfi_node_accuse(agent->node, agent->proofs[l]);
        }
    }
}

/* The second run file. */
static rfi_edition second_edition(const sim_world *world)
{
    rfi_edition after = {.known = true, .epoch = 2, .from = world->from};
    memcpy(after.run, frames_run, sizeof after.run);
    after.run[0] ^= 1;
    return after;
}

static bool knows_second(const sim_world *world, int k)
{
    return world->options.epochs && (world->healed || world->now >= world->agent[k].knows);
}

/* A node of the epoch that the agent works by. */
static rfi_node *make_node(sim_world *world, int k, uint64_t round, const double *model)
{
    uint32_t witnesses[SIM_AGENTS];
    sim_agent *agent = &world->agent[k];
    rfi_neighbour neighbours[SIM_AGENTS];
    rfi_hearer hearers[SIM_AGENTS];
    ptrdiff_t count = 0;
    for (int l = 0; l < world->agents; l++) {
        if (world->linked[k][l]) {
            neighbours[count].agent = (uint32_t)l;
            memcpy(neighbours[count++].key, world->agent[l].keys.public_key, RFI_KEY_BYTES);
        }
    }
    for (ptrdiff_t l = 0; l < count; l++) {
        neighbours[l].weight = 1.0 / (double)(count + 1);
    }
    const rfi_edition second = second_edition(world);
    uint64_t next = world->options.sabotage == SIM_FORGET_JOURNAL ? 0 : agent->next;
    rfi_node_setup setup = {.window = {.shape = sim_shape(world),
                                       .epoch = agent->second ? 2 : 1,
                                       .from = agent->second ? world->from : 0,
                                       .count = count,
                                       .neighbours = neighbours,
                                       .own_weight = 1.0 / (double)(count + 1),
                                       .malicious = world->options.sabotage == SIM_WEAK_QUORUM ? 0 : world->malicious,
                                       .stale = 2,
                                       .by = signatures_for(world)},
                            .rounds = {.deadline = world->deadline},
                            .agent = (uint32_t)k,
                            .keys = &agent->keys,
                            .hearers = hearers,
                            .hearer_count = sim_hearers(world, k, hearers),
                            .boot = agent->boot,
                            .round = round,
                            .next = agent->second && second.from > next ? second.from : next,
                            .model = model,
                            .link = &agent->link.base,
                            .record = record,
                            .combine = combine,
                            .user = &agent->link,
                            .echo = echoes(world, k, witnesses)};
    memcpy(setup.window.run, agent->second ? second.run : frames_run, sizeof setup.window.run);
    if (agent->second) {
        memcpy(setup.window.before, frames_run, sizeof setup.window.before);
    }
    rfi_node *node = NULL;
    reef_error error = {REEF_OK, ""};
    reef_status status = rfi_node_create(&node, NULL, &setup, world->now, &error);
    SIM_CHECK(world, status == REEF_OK, "%s", error.text);
    return node;
}

static void start_agent(sim_world *world, int k)
{
    sim_agent *agent = &world->agent[k];
    static const double zero[SIM_LARGE] = {0};
    int which = agent->checkpoints ? sim_below(world, agent->checkpoints + 1) - 1 : -1; /* of any age, or none */
    agent->link = (sim_link){{&sim_link_ops}, world, k, false};
    agent->crash = agent->has_message = agent->making = false;
    agent->wake = INFINITY;
    agent->boot = ((uint64_t)k << 32) + ++agent->life;
    agent->node = make_node(world, k, which < 0 ? 0 : agent->checkpoint[which].round,
                            which < 0 ? zero : agent->checkpoint[which].model);
    agent->up = true;
    take_proofs(agent);
}

/* Goes over to the second epoch as net/agent_epoch.c does. */
static void go_over(sim_world *world, int k)
{
    sim_agent *agent = &world->agent[k];
    const rfi_rounds *rounds = rfi_node_rounds(agent->node);
    const rfi_edition second = second_edition(world);
    if (agent->second || !knows_second(world, k)) {
        return;
    }
    rfi_node_expect(agent->node, &second);
    bool between = rounds->phase == RFI_PHASE_READY || rounds->phase == RFI_PHASE_GATHER;
    if (!between || rfi_rounds_aligned(rounds) < world->from) {
        return;
    }
    rfi_node *old = agent->node;
    agent->second = true;
    agent->boot += UINT64_C(1) << 31;
    agent->node = make_node(world, k, rounds->round, rfi_node_model(old));
    take_proofs(agent);
    rfi_node_succeed(agent->node, old);
    rfi_node_destroy(&old);
    world->result.epochs += agent->character == SIM_HONEST;
}

static void stop_agent(sim_world *world, int k)
{
    sim_agent *agent = &world->agent[k];
    const rfi_rounds *rounds = rfi_node_rounds(agent->node);
    const rfi_window *window = rfi_node_window(agent->node);
    if (agent->character == SIM_HONEST) {
        world->result.combined += rounds->combined;
        world->result.alone += rounds->alone;
        world->result.idles += rounds->idles;
        world->result.joined += rounds->joined;
        for (ptrdiff_t l = 0; l < window->setup.count; l++) {
            world->result.excluded += window->peers[l].excluded;
            world->result.shut += window->peers[l].counts[RFI_SEAL];
        }
    }
    rfi_node_destroy(&agent->node);
    agent->up = false;
    agent->life++;
}

static void save_checkpoint(sim_world *world, sim_agent *agent)
{
    int at = agent->checkpoints < SIM_CHECKPOINTS ? agent->checkpoints++ : sim_below(world, SIM_CHECKPOINTS);
    agent->checkpoint[at].round = rfi_node_rounds(agent->node)->round;
    memcpy(agent->checkpoint[at].model, rfi_node_model(agent->node),
           rfi_shape_bytes(&(rfi_shape){RFI_NUMBERS_F64, 2, 0, {0}, 0, false}));
}

static void step_agent(sim_world *world, int k)
{
    sim_agent *agent = &world->agent[k];
    double until = INFINITY;
    reef_error error = {REEF_OK, ""};
    uint64_t combined = rfi_node_rounds(agent->node)->combined;
    rfi_node_state state = rfi_node_step(agent->node, world->now, &until, &error);
    if (agent->crash) {
        world->result.crashes += agent->character == SIM_HONEST;
        stop_agent(world, k);
        sim_later(world, world->deadline * 3 * sim_uniform(world), (sim_event){.kind = SIM_START, .agent = k});
        return;
    }
    SIM_CHECK(world, state != RFI_NODE_FAILED || agent->character != SIM_HONEST, "agent %d ends: %s", k, error.text);
    if (state == RFI_NODE_FAILED) {
        stop_agent(world, k);
        return;
    }
    if (agent->character == SIM_HONEST) {
        sim_saw_step(world, k, until);
    }
    go_over(world, k);
    if (rfi_node_rounds(agent->node)->combined != combined && sim_chance(world, 0.2)) {
        save_checkpoint(world, agent);
    }
    if (state == RFI_NODE_READY && !agent->making) {
        agent->making = true;
        sim_later(world, agent->slowness * (0.5 + sim_uniform(world)),
                  (sim_event){.kind = SIM_MODEL, .agent = k, .life = agent->life});
    }
    if (isfinite(until) && until != agent->wake) {
        agent->wake = until;
        sim_at(world, until, (sim_event){.kind = SIM_WAKE, .agent = k, .life = agent->life});
    }
}

static void offer_model(sim_world *world, int k)
{
    sim_agent *agent = &world->agent[k];
    if (rfi_node_rounds(agent->node)->phase != RFI_PHASE_READY) {
        return;
    }
    memset(agent->phi, 0, rfi_shape_bytes(&(rfi_shape){RFI_NUMBERS_F64, SIM_SMALL, 0, {0}, 0, false}));
    agent->phi[0] = 0.9 * *(const double *)rfi_node_model(agent->node) + sim_uniform(world);
    rfi_node_offer(agent->node, agent->phi, world->now);
}

/* --- The run --- */

static void happen(sim_world *world, sim_event *event)
{
    sim_agent *agent = &world->agent[event->agent];
    bool lives = agent->up && event->life == agent->life;
    if (world->options.trace) {
        (void)fprintf(stderr, "%.4f kind %d agent %d topic %d/%u/%llu %zu bytes%s\n", world->now, (int)event->kind,
                      event->agent, (int)event->topic.kind, event->topic.agent, (unsigned long long)event->topic.round,
                      event->size, lives ? "" : " (gone)");
    }
    switch (event->kind) {
    case SIM_ARRIVE_BROKER:
        sim_broker_takes(world, event);
        break;
    case SIM_ASK_BROKER:
        sim_broker_asked(world, event);
        break;
    case SIM_ARRIVE_AGENT:
        if (lives) {
            agent->inbox = *event;
            agent->has_message = true;
            step_agent(world, event->agent);
        }
        break;
    case SIM_WAKE:
        if (lives && event->at == agent->wake) {
            agent->wake = INFINITY;
            step_agent(world, event->agent);
        }
        break;
    case SIM_MODEL:
        if (lives) {
            agent->making = false;
            offer_model(world, event->agent);
            step_agent(world, event->agent);
        }
        break;
    case SIM_START:
        if (!agent->up) {
            start_agent(world, event->agent);
            step_agent(world, event->agent);
        }
        break;
    }
}

static uint64_t most_rounds(const sim_world *world)
{
    uint64_t most = 0;
    for (int k = 0; k < world->agents; k++) {
        const sim_agent *agent = &world->agent[k];
        most = agent->character == SIM_HONEST && agent->top > most ? agent->top : most;
    }
    return most;
}

static bool all_combine_again(const sim_world *world)
{
    for (int k = 0; k < world->agents; k++) {
        const sim_agent *agent = &world->agent[k];
        if (agent->character == SIM_HONEST && agent->healed_combined < HEALED_COMBINATIONS) {
            return false;
        }
    }
    return true;
}

static void heal(sim_world *world)
{
    world->healed = true;
    world->healed_at = world->now;
    world->cut = false;
    for (int b = 0; b < world->brokers; b++) {
        world->broker[b].hostile = false; /* but it may still split views: that echoes have to cope with */
    }
}

static void play(sim_world *world)
{
    while (world->events > 0) {
        world->event = next_event(world);
        world->now = world->event.at;
        happen(world, &world->event);
        free(world->event.bytes);
        world->event.bytes = NULL;
        bool over = most_rounds(world) >= (world->now < world->cut_until ? CUT_ROUNDS : FAULTY_ROUNDS);
        if (!world->healed && (over || world->now >= faulty_seconds)) {
            heal(world);
        }
        int unproven = world->healed && !world->options.plain ? sim_unproven(world) : -1;
        if (world->healed && all_combine_again(world) && unproven < 0) {
            return;
        }
        if (world->healed && world->now > world->healed_at + patience + 10 * world->deadline) {
            for (int k = 0; k < world->agents; k++) {
                const sim_agent *agent = &world->agent[k];
                SIM_CHECK(world, agent->character != SIM_HONEST || agent->healed_combined >= HEALED_COMBINATIONS,
                          "agent %d (up %d, phase %d, round %llu) combined only %llu times since the network healed", k,
                          agent->up, agent->up ? (int)rfi_node_rounds(agent->node)->phase : -1,
                          agent->up ? (unsigned long long)rfi_node_rounds(agent->node)->round : 0,
                          (unsigned long long)agent->healed_combined);
            }
            sim_fail(world, "agent %d is two-faced and still not excluded by all that hear it", unproven);
        }
    }
    sim_fail(world, "nothing happens any more: somebody waits for ever");
}

/* Makes agents malicious where every honest neighbourhood tolerates it: f of n with 3 f < n. */
static void draw_characters(sim_world *world, int degree)
{
    int most = degree / 3;
    while (3 * most + 1 > degree + 1) {
        most--;
    }
    most = most < 0 ? 0 : most;
    world->malicious = (most + 0.1) / (degree + 1);
    int wanted = most ? sim_below(world, most + 2) : 0;
    for (int tries = 0; tries < 2 * wanted; tries++) {
        int k = sim_below(world, world->agents);
        bool tolerated = true;
        for (int l = 0; l < world->agents && tolerated; l++) {
            int count = 0;
            for (int j = 0; j < world->agents; j++) {
                bool counts = j == k || world->agent[j].character != SIM_HONEST;
                count += counts && (world->linked[l][j] || l == j);
            }
            tolerated = count <= most;
        }
        if (tolerated) {
            world->agent[k].character =
                (sim_character)(1 + sim_below(world, (world->options.plain ? SIM_FALSE_ECHO : SIM_CHARACTERS) - 1));
        }
    }
}

static void draw_graph(sim_world *world)
{
    world->agents = 4 + sim_below(world, SIM_AGENTS - 3);
    world->reach = sim_below(world, 3);
    world->reach = 2 * world->reach + 1 > world->agents ? 0 : world->reach;
    int degree = world->reach ? 2 * world->reach : world->agents - 1;
    for (int k = 0; k < world->agents; k++) {
        for (int l = 0; l < world->agents; l++) {
            int apart = abs(k - l) < world->agents - abs(k - l) ? abs(k - l) : world->agents - abs(k - l);
            world->linked[k][l] = k != l && (!world->reach || apart <= world->reach);
        }
    }
    for (int i = 0; i < SIM_AGENTS * SIM_AGENTS * world->agents; i++) { /* k and l hear j */
        int k = i / SIM_AGENTS % SIM_AGENTS;
        int l = i % SIM_AGENTS;
        int j = i / SIM_AGENTS / SIM_AGENTS;
        world->witness[k][l] |= k != l && world->linked[k][j] && world->linked[l][j];
    }
    draw_characters(world, degree);
}

static void draw_faults(sim_world *world)
{
    static const double losses[] = {0, 0, 0.1, 0.3};
    static const double deadlines[] = {0.5, 2, 5};
    world->brokers = 1 + sim_below(world, SIM_BROKERS);
    world->deadline = deadlines[sim_below(world, 3)];
    world->loss = losses[sim_below(world, 4)];
    world->repeat = sim_chance(world, 0.3) ? 0.1 : 0;
    world->damage = sim_chance(world, 0.3) ? 0.05 : 0;
    world->crash = sim_chance(world, 0.5) ? 0.05 : 0;
    world->delay = pow(10, -3 + 2 * sim_uniform(world));
    world->cut = sim_chance(world, 0.3);
    world->side = (unsigned)sim_below(world, 1 << world->agents);
    world->half = world->options.plain ? 0 : (unsigned)sim_below(world, 1 << world->agents);
    world->cut_from = 0.5 * sim_uniform(world);
    world->cut_until = world->cut ? world->cut_from + 20 * sim_uniform(world) : 0;
    for (int b = 0; b < world->brokers; b++) {
        world->broker[b].hostile = sim_chance(world, 0.3);
        world->broker[b].splits = !world->options.plain && sim_chance(world, 0.5);
    }
    /* One of two may be killed for good, and does not come back when the network heals. */
    bool killed = !world->options.plain && world->brokers > 1 && sim_chance(world, 0.3);
    for (int b = 0; b < world->brokers; b++) {
        world->broker[b].dead_from = killed && b == 1 ? 10 * sim_uniform(world) : (double)INFINITY;
    }
    for (int k = 0; k < world->agents; k++) {
        world->agent[k].slowness = sim_chance(world, 0.1) ? 1 : 0.01;
        world->agent[k].keys = frames_keys((uint32_t)k);
        sim_later(world, 0.2 * sim_uniform(world) + (sim_chance(world, 0.1) ? 5 : 0),
                  (sim_event){.kind = SIM_START, .agent = k});
    }
}

/* The second file holds from some round on; whoever knows it in time goes over in that round, the others later. */
static void draw_epochs(sim_world *world)
{
    if (!world->options.epochs) {
        return;
    }
    world->from = (uint64_t)(1 + sim_below(world, FAULTY_ROUNDS));
    double spread = sim_chance(world, 0.5) ? 0.5 : 20;
    for (int k = 0; k < world->agents; k++) {
        world->agent[k].knows = spread * sim_uniform(world);
    }
}

sim_result sim_run(const sim_options *options)
{
    sim_world *volatile world = calloc(1, sizeof *world);
    if (!world) {
        abort();
    }
    world->options = *options;
    rfi_rng_init(&world->rng, options->seed, UINT64_C(0x6e657473696d), 0, 0, 0);
    if (setjmp(world->failed) == 0) {
        draw_graph(world);
        draw_faults(world);
        draw_epochs(world);
        play(world);
        world->result.good = true;
    }
    world->result.seconds = world->now;
    for (int k = 0; k < world->agents; k++) {
        if (world->agent[k].node) {
            stop_agent(world, k);
        }
    }
    free(world->event.bytes);
    while (world->events > 0) {
        free(world->heap[--world->events].bytes);
    }
    free(world->heap);
    sim_brokers_clear(world);
    sim_result result = world->result;
    free(world);
    return result;
}
