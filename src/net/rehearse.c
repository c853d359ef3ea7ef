/* An agent on a built-in problem: it adapts to its own data, attacks if it is told to, and writes down how it goes. */
#include "net/rehearse.h"

#include "base/error.h"
#include "base/memory.h"
#include "net/agent.h"
#include "net/notify.h"

#include <reef/net.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How long a malicious agent that looks at others' models waits for them at most. Where everybody waits for everybody it has half of the deadline:
 * what it sends must not depend on how fast the others were started. */
static const double hasty_seconds = 0.1;
/* An agent that has not begun says why after so long, and again each time. */
static const double explain_first = 3;
static const double explain_seconds = 15;
/* How long an agent that has done all rounds stays for the sake of its last model, at most. */
static const double deliver_seconds = 30;

typedef struct stage {
    rfi_agent agent;
    const reef_agent_options *options;
    uint64_t rounds; /* after which it ends; 0: never */
    int record;      /* file, or -1 */
    rfi_record_shape shape;
    unsigned char *bytes; /* a record */
    uint64_t recorded;    /* round of the last one */
    double least;         /* weight of a combination so far */
    bool trusted;         /* there was a combination in the last round */
    const void *phi;      /* adapted in this round; NULL: not yet */
    double listens_until;
    double sends_at;    /* not before */
    const void **heard; /* by sender */
    double explain_at;  /* when to say again what it waits for */
    int epochs;         /* for which there is room */
    rfi_scorer scorer;
} stage;

/* ---- records ---- */

static uint64_t refused(const rfi_agent *a)
{
    uint64_t sum = 0;
    const rfi_window *window = rfi_node_window(a->node);
    for (ptrdiff_t l = 0; l < window->setup.count; l++) {
        sum += rfi_offences(&window->peers[l]);
    }
    return sum;
}

static int excluded(const rfi_agent *a)
{
    int count = 0;
    const rfi_window *window = rfi_node_window(a->node);
    for (ptrdiff_t l = 0; l < window->setup.count; l++) {
        count += window->peers[l].excluded;
    }
    return count;
}

static void fill_record(stage *s, uint64_t round)
{
    const rfi_agent *a = &s->agent;
    const rfi_rounds *rounds = rfi_node_rounds(a->node);
    const rfi_record_head head = {round, rounds->combined, rounds->alone, refused(a)};
    memset(s->bytes, 0, s->shape.size);
    memcpy(s->bytes, &head, sizeof head);
    memcpy(s->bytes + sizeof head, reef_member_model(a->member), rfi_shape_bytes(&a->roster.shape));
    double *numbers = (double *)(void *)(s->bytes + sizeof head + s->shape.model);
    reef_member_trust(a->member, numbers, numbers + s->shape.senders);
    for (ptrdiff_t i = 0; i < s->shape.senders * s->shape.factors; i++) {
        numbers[2 * s->shape.senders + i] =
            s->trusted ? reef_report_factor(reef_member_report(a->member), i / s->shape.factors, i % s->shape.factors)
                       : 1;
    }
    for (ptrdiff_t i = 0; i < s->shape.senders && !s->trusted; i++) {
        numbers[i] = 0;
    }
}

static reef_status write_record(stage *s, uint64_t round, reef_error *error)
{
    fill_record(s, round);
    s->recorded = round;
    size_t done = 0;
    while (done < s->shape.size) {
        ssize_t part = write(s->record, s->bytes + done, s->shape.size - done);
        if (part < 0 && errno == EINTR) {
            continue;
        }
        if (part <= 0) {
            return rfi_fail(error, REEF_E_FILE, "%.200s: %s", s->options->record, strerror(errno));
        }
        done += (size_t)part;
    }
    return REEF_OK;
}

/* A process that was killed may have left part of a record. */
static reef_status open_record(stage *s, reef_error *error)
{
    const rfi_agent *a = &s->agent;
    reef_csr csr = reef_graph_csr(a->roster.graph);
    s->shape = rfi_record_shape_of((ptrdiff_t)a->roster.shape.count, csr.start[a->place + 1] - csr.start[a->place],
                                   a->roster.rule);
    s->bytes = rfi_allocate(NULL, s->shape.size);
    s->record = open(s->options->record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
    off_t size = s->record >= 0 ? lseek(s->record, 0, SEEK_END) : -1;
    if (!s->bytes || size < 0 || ftruncate(s->record, size - size % (off_t)s->shape.size) != 0) {
        return rfi_fail(error, REEF_E_FILE, "%.200s: %s", s->options->record, strerror(errno));
    }
    s->recorded = rfi_node_rounds(a->node)->round;
    return size == 0 ? write_record(s, s->recorded, error)
                     : REEF_OK; /* a new process has no newer model than the old one */
}

static reef_status note_round(stage *s, reef_error *error)
{
    uint64_t round = rfi_node_rounds(s->agent.node)->round;
    uint64_t every = s->agent.file.test.every > 0 ? (uint64_t)s->agent.file.test.every : 1;
    bool due = round / every > s->recorded / every || (s->rounds && round >= s->rounds);
    return s->record >= 0 && due ? write_record(s, round, error) : REEF_OK;
}

/* ---- a round ---- */

/* Whether the agent sends something that depends on what others have sent. */
static bool listens_first(const stage *s, uint64_t round)
{
    const reef_attack *attack = s->agent.attack;
    return attack && (reef_attack_traits(attack) & REEF_ATTACK_ROWS) && reef_attack_active(attack, (int64_t)round);
}

/* The node is ready for this agent's model. Returns when to come again if it has to wait. */
static double take_part(stage *s, double now)
{
    rfi_agent *a = &s->agent;
    uint64_t round = rfi_node_rounds(a->node)->round;
    if (!s->phi) {
        s->phi = reef_member_adapt(a->member, (int64_t)round);
        s->sends_at = a->roster.malicious[a->place] ? now + a->file.test.late * a->file.deadline : now;
        s->listens_until = now + a->file.deadline / 2;
        if (!a->file.test.wait) {
            s->listens_until = fmin(s->listens_until, now + hasty_seconds);
        }
    }
    bool all = rfi_agent_heard(a, s->heard);
    if (listens_first(s, round) && !all && now < s->listens_until) {
        return s->listens_until;
    }
    if (now < s->sends_at) {
        return s->sends_at;
    }
    rfi_agent_offer(a, reef_member_message(a->member, (int64_t)round, s->heard), s->phi, now);
    s->phi = NULL;
    return now;
}

static bool is_over(const stage *s)
{
    bool stopped = s->options->stop && *s->options->stop;
    return stopped || (s->rounds && rfi_node_rounds(s->agent.node)->round >= s->rounds);
}

/* Says what an agent waits for that has not begun. */
static void explain_waiting(stage *s, double now)
{
    const rfi_agent *a = &s->agent;
    if (rfi_node_rounds(a->node)->phase != RFI_PHASE_GATHER || now < s->explain_at) {
        return;
    }
    s->explain_at = now + explain_seconds;
    const rfi_nats_operator by = {
        .url = a->file.broker[0], .login = &a->secret.login, .authority = s->options->authority};
    rfi_agent_explain(&a->log, a->file.participants[a->place].name, &by, rfi_window_heard(rfi_node_window(a->node)),
                      2 * a->file.terms.malicious);
}

/* What belongs to an epoch: who is heard, and the problem that models are measured by. */
static reef_status take_room(stage *s, reef_error *error)
{
    const rfi_agent *a = &s->agent;
    reef_csr csr = reef_graph_csr(a->roster.graph);
    ptrdiff_t senders = csr.start[a->place + 1] - csr.start[a->place];
    rfi_release(NULL, (void *)s->heard);
    rfi_scorer_free(&s->scorer);
    s->epochs = a->epochs;
    s->heard = rfi_allocate_many(NULL, senders, sizeof *s->heard);
    if (!s->heard) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for an agent");
    }
    return a->file.observers > 0 || s->options->metrics > 0 ? rfi_scorer_make(&s->scorer, a->roster.problem, error)
                                                            : REEF_OK;
}

static reef_status run_rounds(stage *s, reef_error *error)
{
    rfi_agent *a = &s->agent;
    uint64_t combined = 0;
    rfi_notify("READY=1");
    while (!is_over(s)) {
        double now = rfi_now();
        rfi_notify_alive(now);
        double until = now;
        bool ended = false;
        a->held = s->phi != NULL || s->record >= 0; /* a record has the neighbours of one epoch */
        rfi_node_state state = rfi_agent_step(a, now, &until, &ended, error);
        if (state == RFI_NODE_FAILED) {
            return a->removed ? REEF_OK : error->status;
        }
        if (a->epochs != s->epochs) {
            reef_status status = take_room(s, error);
            if (status != REEF_OK) {
                return status;
            }
        }
        if (ended) {
            rfi_scorer_note(&s->scorer, &a->telemetry, reef_member_model(a->member),
                            (int64_t)rfi_node_rounds(a->node)->round);
            s->trusted = rfi_node_rounds(a->node)->combined > combined;
            combined = rfi_node_rounds(a->node)->combined;
            s->least = s->trusted ? fmin(s->least, rfi_node_weight(a->node)) : s->least;
            reef_status status = note_round(s, error);
            if (status != REEF_OK) {
                return status;
            }
        }
        if (state == RFI_NODE_READY && !is_over(s)) {
            until = take_part(s, now);
        }
        explain_waiting(s, now);
        rfi_nats_wait(a->nats, fmin(until - now, 0.2)); /* and looks whether it is to end */
    }
    return REEF_OK;
}

static reef_status prepare(stage *s, reef_error *error)
{
    const rfi_agent *a = &s->agent;
    if (!a->roster.problem) {
        return rfi_fail(
            error, REEF_E_ARG,
            "run %s has no built-in problem (test: {problem: ...}): models come from your own program, with "
            "--socket or reef.Agent in Python",
            a->file.run);
    }
    s->explain_at = rfi_now() + explain_first;
    reef_status status = take_room(s, error);
    if (status != REEF_OK) {
        return status;
    }
    s->rounds = s->options->rounds > 0 ? (uint64_t)s->options->rounds : (uint64_t)a->file.test.rounds;
    return s->options->record ? open_record(s, error) : REEF_OK;
}

/* Whether others are to be told that it ends: not if it has done all rounds, since they still need its last model and are near the end too. */
static bool tell_end(const stage *s)
{
    const rfi_agent *a = &s->agent;
    const char *name = a->file.participants[a->place].name;
    if (!a->node) { /* the next epoch could not be made */
        return false;
    }
    const rfi_rounds *r = rfi_node_rounds(a->node);
    if (a->removed) {
        RFI_LOG(&a->log, REEF_LOG_INFO, "removed", RFI_LOG_TEXT("agent", name),
                RFI_LOG_NUMBER("epoch", a->next.terms.epoch));
    }
    RFI_LOG(&a->log, REEF_LOG_INFO, "end", RFI_LOG_TEXT("agent", name), RFI_LOG_NUMBER("round", r->round),
            RFI_LOG_NUMBER("combined", r->combined), RFI_LOG_NUMBER("alone", r->alone),
            RFI_LOG_NUMBER("skipped", r->skipped), RFI_LOG_NUMBER("joined", r->joined),
            RFI_LOG_NUMBER("refused", refused(a)), RFI_LOG_NUMBER("least_weight", s->least));
    return !s->rounds || r->round < s->rounds;
}

reef_status reef_net_agent(const reef_agent_options *options, reef_error *error)
{
    stage s = {.options = options, .record = -1, .least = 1};
    const rfi_agent_setup setup = {.run_file = options->run_file,
                                   .key = options->key,
                                   .coordinator = options->coordinator,
                                   .state = options->state,
                                   .authority = options->authority,
                                   .memory = options->memory,
                                   .malicious_at_least = options->malicious_at_least,
                                   .log = {options->log, options->level, options->tell, options->user},
                                   .metrics = options->metrics};
    reef_status status = rfi_check_size(options->size, sizeof *options, "reef_agent_options", error);
    if (status != REEF_OK) {
        return status;
    }
    if (options->socket) {
        return rfi_agent_local(options, error);
    }
    status = rfi_agent_open(&s.agent, &setup, error);
    if (status != REEF_OK) {
        return status;
    }
    const rfi_agent *a = &s.agent;
    RFI_LOG(&a->log, REEF_LOG_INFO, "start", RFI_LOG_TEXT("agent", a->file.participants[a->place].name),
            RFI_LOG_NUMBER("number", a->place), RFI_LOG_TEXT("run", a->file.run),
            RFI_LOG_NUMBER("neighbours", rfi_node_window(a->node)->setup.count),
            RFI_LOG_NUMBER("excluded", excluded(a)), RFI_LOG_NUMBER("round", rfi_node_rounds(a->node)->round),
            RFI_LOG_NUMBER("memory", a->needs));
    status = prepare(&s, error);
    if (status == REEF_OK) {
        status = run_rounds(&s, error);
    }
    if (status == REEF_OK && a->node) {
        rfi_agent_deliver(&s.agent, fmin(deliver_seconds, a->file.deadline), options->stop);
    }
    rfi_notify("STOPPING=1");
    bool goodbye = tell_end(&s) && status == REEF_OK;
    rfi_agent_close(&s.agent, goodbye);
    if (s.record >= 0) {
        (void)close(s.record);
    }
    rfi_release(NULL, s.bytes);
    rfi_release(NULL, (void *)s.heard);
    rfi_scorer_free(&s.scorer);
    return status;
}
