/* An agent put together. */
#include "net/agent.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double checkpoint_seconds = 10;
static const double audit_seconds = 60;
static const double look_seconds = 1;

double rfi_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- what the node asks for ---- */

static reef_status record(void *user, uint64_t round, const unsigned char mark[RFI_HASH_BYTES], reef_error *error)
{
    rfi_agent *a = user;
    double began = rfi_now();
    reef_status status = rfi_journal_record(&a->journal, round, mark, error);
    rfi_telemetry_time(&a->telemetry, RFI_STAGE_JOURNAL, rfi_now() - began);
    return status;
}

/* Neighbours are the senders without the agent itself, in the same order. */
static bool combine(void *user, uint64_t round, const rfi_row *rows, const void *own, void *out)
{
    rfi_agent *a = user;
    ptrdiff_t count = a->roster.file ? rfi_node_window(a->node)->setup.count : 0;
    for (ptrdiff_t l = 0; l < count; l++) {
        a->rows[l + (l >= a->self)] = rows[l].model;
        double age = rows[l].model ? (double)rows[l].age : RFI_AGE_ABSENT;
        a->telemetry.age[l] = (unsigned char)(age > 0 ? age : 0);
    }
    a->rows[a->self] = own;
    double began = rfi_now();
    reef_status status = own ? reef_member_combine(a->member, (int64_t)round, a->rows, NULL)
                             : reef_member_adopt(a->member, (int64_t)round, a->rows, NULL);
    rfi_telemetry_time(&a->telemetry, RFI_STAGE_COMBINE, rfi_now() - began);
    if (status != REEF_OK) {
        return false;
    }
    memcpy(out, reef_member_model(a->member), rfi_shape_bytes(&a->roster.shape));
    return true;
}

/* ---- opening ---- */

/* What the next epoch needs as well, whoever has lent the setup. */
static reef_status copy_setup(rfi_agent *a, const rfi_agent_setup *s, reef_error *error)
{
    a->memory = s->memory;
    a->malicious_at_least = s->malicious_at_least;
    return snprintf(a->run_file, sizeof a->run_file, "%s", s->run_file) < (int)sizeof a->run_file &&
                   snprintf(a->authority, sizeof a->authority, "%s", s->authority ? s->authority : "") <
                       (int)sizeof a->authority
               ? REEF_OK
               : rfi_fail(error, REEF_E_FILE, "the path of the run file or of the certificates is too long");
}

static reef_status read_files(rfi_agent *a, const rfi_agent_setup *s, reef_error *error)
{
    reef_status status = rfi_crypto_start(error);
    if (status == REEF_OK) {
        status = copy_setup(a, s, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_runfile_load(NULL, a->run_file, &a->file, error);
    if (status != REEF_OK) {
        return status;
    }
    rfi_lock(&a->secret, sizeof a->secret);
    status = rfi_secret_read(s->key, &a->secret, error);
    if (status != REEF_OK) {
        return status;
    }
    a->place = rfi_runfile_find(&a->file, a->secret.identity.public_key);
    if (a->place < 0) {
        return rfi_fail(error, REEF_E_ARG,
                        "the key in %.100s belongs to no agent of run %s: has the coordinator enrolled it?", s->key,
                        a->file.run);
    }
    if (a->file.terms.malicious < s->malicious_at_least) {
        return rfi_fail(error, REEF_E_ARG, "run %s allows for malicious: %g only, not %g", a->file.run,
                        a->file.terms.malicious, s->malicious_at_least);
    }
    return rfi_roster_create(NULL, &a->file, &a->roster, error);
}

reef_status rfi_agent_make_member(rfi_agent *a, reef_error *error)
{
    const rfi_roster *r = &a->roster;
    reef_csr csr = reef_graph_csr(r->graph);
    ptrdiff_t from = csr.start[a->place];
    ptrdiff_t senders = csr.start[a->place + 1] - from;
    const rfi_rehearsal *test = &a->file.test;
    bool attacks = r->malicious[a->place] && test->attack[0];
    a->self = reef_csr_find(&csr, a->place, a->place) - from;
    a->rows = rfi_allocate_many(NULL, senders, sizeof *a->rows);
    a->audited = rfi_allocate_many(NULL, senders * RFI_CAUSES, sizeof *a->audited);
    a->told = rfi_allocate_many(NULL, senders * RFI_CAUSES, sizeof *a->told);
    a->shares = rfi_allocate_many(NULL, 2 * senders, sizeof *a->shares);
    if (!a->rows || !a->audited || !a->told || !a->shares) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for an agent");
    }
    memset(a->audited, 0, (size_t)(senders * RFI_CAUSES) * sizeof *a->audited);
    memset(a->told, 0, (size_t)(senders * RFI_CAUSES) * sizeof *a->told);
    reef_status status = attacks ? reef_attack_create(NULL, &a->attack, test->attack, error) : REEF_OK;
    if (status != REEF_OK) {
        return status;
    }
    const reef_member_setup setup = {.problem = r->problem,
                                     .strategy = a->file.terms.strategy[0] ? a->file.terms.strategy : NULL,
                                     .rule = r->rule,
                                     .agent = a->place,
                                     .senders = senders,
                                     .sender = csr.senders + from,
                                     .weights = csr.weight + from,
                                     .dimension = (ptrdiff_t)r->shape.count,
                                     .dtype = r->shape.numbers == RFI_NUMBERS_F32 ? REEF_F32 : REEF_F64,
                                     .attack = a->attack,
                                     .seed = (uint64_t)a->file.terms.seed,
                                     .agents = a->file.agents,
                                     .malicious = r->malicious};
    status = reef_member_create(NULL, &a->member, &setup, error);
    if (status == REEF_OK && a->file.is_test) { /* as a run in one process has it */
        reef_member_set_seed(a->member, rfi_hash_number(rfi_hash_number(RFI_HASH_START, setup.seed), 0));
    }
    return status;
}

void rfi_agent_free_member(rfi_agent *a)
{
    reef_member_destroy(&a->member);
    reef_attack_destroy(&a->attack);
    rfi_release(NULL, (void *)a->rows);
    rfi_release(NULL, a->audited);
    rfi_release(NULL, a->told);
    rfi_release(NULL, a->shares);
    a->rows = NULL;
    a->audited = a->told = NULL;
    a->shares = NULL;
}

static const unsigned char *identity_of(void *user, uint32_t agent)
{
    const rfi_agent *a = user;
    return a->file.participants[agent].identity;
}

/* Who is in the run, and who compares echoes with this agent. */
static rfi_echo_setup echoes(rfi_agent *a, uint32_t *witnesses)
{
    return (rfi_echo_setup){.agents = a->file.agents,
                            .ways = a->file.brokers + 1,
                            .key = identity_of,
                            .count = rfi_roster_witnesses(&a->roster, a->place, witnesses),
                            .witnesses = witnesses,
                            .proved = rfi_proof_keep,
                            .user = a};
}

static reef_status too_much(ptrdiff_t neighbours, size_t bytes, reef_error *error)
{
    return rfi_fail(error, REEF_E_NOMEM, "an agent with %td neighbours needs %.1f MB, more than --memory allows",
                    neighbours, (double)bytes * 1e-6);
}

/* Rounds before the first one of the epoch are for the epoch before to sign. */
reef_status rfi_agent_make_node(rfi_agent *a, uint64_t round, reef_error *error)
{
    rfi_neighbour neighbours[RFI_NEIGHBOURS_MAX];
    rfi_hearer hearers[RFI_HEARERS_MAX];
    uint32_t witnesses[RFI_WITNESSES_MAX];
    rfi_runfile_stand(&a->file, a->place);
    const rfi_terms *terms = &a->file.terms;
    uint64_t first = (uint64_t)terms->from;
    rfi_node_setup setup = {.window = {.shape = a->roster.shape,
                                       .epoch = (uint32_t)terms->epoch,
                                       .from = first,
                                       .neighbours = neighbours,
                                       .malicious = terms->malicious,
                                       .stale = (int)terms->stale,
                                       .by = &rfi_ed25519},
                            .rounds = {.deadline = a->file.deadline, .wait_all = a->file.test.wait},
                            .agent = (uint32_t)a->place,
                            .keys = &a->secret.identity,
                            .hearers = hearers,
                            .round = round,
                            .next = a->journal.next > first ? a->journal.next : first,
                            .model = reef_member_model(a->member),
                            .record = record,
                            .combine = combine,
                            .file = rfi_epoch_offered,
                            .user = a,
                            .echo = echoes(a, witnesses)};
    setup.window.count = rfi_roster_neighbours(&a->roster, a->place, neighbours, &setup.window.own_weight);
    setup.hearer_count = terms->seal ? rfi_roster_hearers(&a->roster, a->place, hearers) : 0;
    memcpy(setup.window.run, a->file.hash, sizeof setup.window.run);
    memcpy(setup.window.before, a->before, sizeof setup.window.before);
    rfi_random(&setup.boot, sizeof setup.boot);
    a->boot = setup.boot;
    a->needs = rfi_roster_memory(&a->roster, &setup);
    if (a->memory && a->needs > a->memory) {
        return too_much(setup.window.count, a->needs, error);
    }
    reef_status status =
        rfi_links_open(a, a->authority[0] ? a->authority : NULL, neighbours, setup.window.count, error);
    if (status != REEF_OK) {
        return status;
    }
    setup.link = a->link;
    rfi_node *node = NULL;
    status = rfi_node_create(&node, NULL, &setup, rfi_now(), error);
    if (status == REEF_OK) {
        a->node = node;
        rfi_proofs_take(a);
    }
    return status;
}

static reef_status take_layout(rfi_agent *a, const rfi_agent_setup *s, reef_error *error)
{
    static const unsigned char none[RFI_HASH_BYTES];
    const unsigned char *layout = s->layout ? s->layout : none;
    if (a->file.any_layout) {
        memcpy(a->roster.shape.layout, layout, RFI_HASH_BYTES);
        return REEF_OK;
    }
    return memcmp(a->file.shape.layout, layout, RFI_HASH_BYTES) == 0
               ? REEF_OK
               : rfi_fail(error, REEF_E_ARG,
                          "run %s is about models of another layout (names, shapes or types of tensors)", a->file.run);
}

static reef_status open_all(rfi_agent *a, const rfi_agent_setup *s, reef_error *error)
{
    char path[RFI_PATH_SIZE];
    uint64_t round = 0;
    reef_status status = read_files(a, s, error);
    if (status == REEF_OK) {
        status = rfi_state_enter(a, s, error);
    }
    if (status == REEF_OK) {
        status = rfi_epoch_resume(a, error);
    }
    if (status == REEF_OK) {
        status = take_layout(a, s, error);
    }
    if (status == REEF_OK) {
        status = rfi_agent_make_member(a, error);
    }
    if (status == REEF_OK && snprintf(path, sizeof path, "%s/journal", a->folder) >= (int)sizeof path) {
        status = rfi_fail(error, REEF_E_FILE, "the path of the state folder is too long");
    }
    if (status == REEF_OK) {
        bool sync = !a->file.is_test || a->file.test.sync;
        status = rfi_journal_open(&a->journal, NULL, path, a->file.id, a->secret.identity.public_key, sync, error);
    }
    if (status == REEF_OK) {
        status = rfi_checkpoint_take(a, &round, error);
    }
    if (status == REEF_OK) {
        status = rfi_agent_make_node(a, round, error);
    }
    if (status == REEF_OK) {
        rfi_epoch_begin(a);
    }
    if (status == REEF_OK && s->metrics > 0) {
        status = rfi_metrics_open(&a->metrics, s->metrics, error);
    }
    a->saved_at = a->audited_at = rfi_now();
    return status;
}

static reef_status probe(rfi_agent *a, const rfi_agent_setup *s, reef_error *error)
{
    rfi_tolerance needs;
    reef_status status = read_files(a, s, error);
    if (status != REEF_OK) {
        return status;
    }
    rfi_roster_tolerance(&a->roster, a->place, &needs);
    a->needs = needs.memory;
    if (s->memory && needs.memory > s->memory) {
        return too_much(needs.neighbours, needs.memory, error);
    }
    status = rfi_state_enter(a, s, error);
    if (status == REEF_OK && s->metrics > 0) { /* a port in use is found now, not when the first client comes */
        status = rfi_metrics_open(&a->metrics, s->metrics, error);
        rfi_metrics_close(&a->metrics);
    }
    return status;
}

reef_status rfi_agent_probe(rfi_agent *agent, const rfi_agent_setup *setup, reef_error *error)
{
    *agent = (rfi_agent){.place = -1, .lock = -1, .journal = {.file = -1}};
    reef_status status = probe(agent, setup, error);
    if (status != REEF_OK) {
        rfi_agent_close(agent, false);
    }
    return status;
}

reef_status rfi_agent_open(rfi_agent *agent, const rfi_agent_setup *setup, reef_error *error)
{
    *agent = (rfi_agent){.place = -1, .lock = -1, .journal = {.file = -1}, .log = setup->log};
    rfi_telemetry_start(&agent->telemetry);
    reef_status status = open_all(agent, setup, error);
    if (status != REEF_OK) {
        rfi_agent_close(agent, false);
    }
    return status;
}

void rfi_agent_close(rfi_agent *a, bool goodbye)
{
    rfi_metrics_close(&a->metrics);
    if (a->node) {
        (void)rfi_checkpoint_put(a, NULL);
        rfi_audit(a);
        rfi_tell(a, rfi_now(), true);
    }
    if (a->node && goodbye) {
        rfi_node_leave(a->node);
    }
    rfi_node_destroy(&a->node);
    rfi_links_close(a);
    rfi_journal_close(&a->journal);
    rfi_agent_free_member(a);
    rfi_roster_free(&a->roster);
    rfi_runfile_free(&a->file);
    rfi_runfile_free(&a->next);
    rfi_file_free(NULL, &a->next_bytes);
    rfi_unlock(&a->secret, sizeof a->secret);
    if (a->lock >= 0) {
        (void)close(a->lock);
    }
    *a = (rfi_agent){.place = -1, .lock = -1, .journal = {.file = -1}};
}

/* ---- rounds ---- */

/* What is kept up between two rounds. */
static void end_round(rfi_agent *a, double now)
{
    const rfi_rounds *rounds = rfi_node_rounds(a->node);
    if (rounds->alone > a->alone_done && a->phi) {
        reef_member_set_model(a->member, a->phi);
    }
    a->alone_done = rounds->alone;
    if (now - a->saved_at >= checkpoint_seconds) {
        a->saved_at = now;
        double began = rfi_now();
        if (rfi_checkpoint_put(a, NULL) !=
            REEF_OK) { /* the one before is still there; a restart then has an older model */
            RFI_LOG(&a->log, REEF_LOG_WARNING, "checkpoint_failed", RFI_LOG_NUMBER("round", rounds->round));
        }
        rfi_telemetry_time(&a->telemetry, RFI_STAGE_CHECKPOINT, rfi_now() - began);
    }
    if (now - a->audited_at >= audit_seconds) {
        a->audited_at = now;
        rfi_audit(a);
    }
}

rfi_node_state rfi_agent_step(rfi_agent *a, double now, double *until, bool *ended, reef_error *error)
{
    if (rfi_links_refused(a)) {
        (void)rfi_fail(error, REEF_E_ORDER, "the broker %s refuses the login of %s: is its run file the same?",
                       a->file.broker[0], a->file.participants[a->place].name);
        return RFI_NODE_FAILED;
    }
    rfi_node_state state = rfi_node_step(a->node, now, until, error);
    const rfi_rounds *rounds = rfi_node_rounds(a->node);
    uint64_t done = rounds->combined + rounds->alone + rounds->joined;
    *ended = done != a->rounds_done;
    a->rounds_done = done;
    rfi_telemetry_looked(&a->telemetry, now, rfi_window_fetching(rfi_node_window(a->node)));
    if (*ended) {
        rfi_tell_round(a, now);
        end_round(a, now);
    }
    if (state == RFI_NODE_READY) {
        rfi_telemetry_ready(&a->telemetry, now);
    }
    rfi_tell(a, now, false);
    *until = fmin(*until, a->told_at + 1);
    rfi_epoch_look(a, now);
    if (state != RFI_NODE_FAILED && !a->held && rfi_epoch_due(a) && rfi_epoch_turn(a, error) != REEF_OK) {
        return RFI_NODE_FAILED;
    }
    return state;
}

void rfi_agent_offer(rfi_agent *a, const void *message, const void *phi, double now)
{
    a->phi = phi;
    rfi_telemetry_offered(&a->telemetry, rfi_now()); /* now may be from before a long computation */
    if (message) {
        rfi_node_offer(a->node, message, now);
    } else {
        rfi_node_pass(a->node, phi, now);
    }
}

/* A connection that ends before a busy broker has read all of it may take the last model along, and neighbours would wait for it until their
 * deadline. Nobody is held up by an agent that has nothing else to do. */
void rfi_agent_deliver(rfi_agent *a, double seconds, const volatile sig_atomic_t *stop)
{
    double now = rfi_now();
    double end = now + seconds;
    double look = now + look_seconds;
    rfi_node_state state = RFI_NODE_WAITING;
    bool held = a->held;
    a->held = true; /* not to the next epoch before that */
    while (state != RFI_NODE_FAILED && !rfi_node_delivered(a->node) && now < end && !(stop && *stop)) {
        double until = now;
        bool ended = false;
        state = rfi_agent_step(a, now, &until, &ended, NULL);
        if (now >= look) {
            rfi_node_look(a->node);
            look = now + look_seconds;
        }
        rfi_nats_wait(a->nats, fmin(fmax(until - now, 0.01), 0.02)); /* the own model wakes nobody */
        now = rfi_now();
    }
    a->held = held;
}

bool rfi_agent_heard(const rfi_agent *a, const void **rows)
{
    const rfi_window *window = rfi_node_window(a->node);
    uint64_t round = rfi_node_rounds(a->node)->round;
    bool all = true;
    for (ptrdiff_t l = 0; l < window->setup.count; l++) {
        rfi_row row = rfi_window_row(window, l, round);
        bool fresh = row.model && row.age == 0;
        rows[l + (l >= a->self)] = fresh ? row.model : NULL;
        all = all && (fresh || a->roster.malicious[window->peers[l].who.agent]);
    }
    rows[a->self] = NULL;
    return all;
}
