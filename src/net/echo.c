/* Echoes and proofs. */
#include "net/echo.h"

#include "base/error.h"
#include "base/memory.h"
#include "net/bytes.h"

#include <math.h>
#include <string.h>

enum { MARK_PART = 16 };

/* Echoes of a witness that agree are verified again after so many rounds and seconds: where rounds are fast, once a second tells as much. After
 * so many of both without one, the witness counts as missing. */
enum { ROUNDS_DUE = 2, ROUNDS_MISSING = 4 };
static const double seconds_due = 1;
static const double seconds_missing = 3;

typedef struct sender {
    bool witness;
    bool proven;
    int shows;          /* that its echoes have caused since the last round */
    uint64_t heard_at;  /* rounds of this agent that had ended when an echo of it was last verified... */
    double verified_at; /* ...and when that was */
} sender;

struct rfi_echo {
    const reef_context *context;
    void *memory;
    rfi_echo_setup setup; /* witnesses NULL: they are copied */
    rfi_echo_parts parts;
    sender *senders; /* by number */
    /* Of frames to verify, by sender and way, as in the window but of their own: echoes must not use up what models need. */
    rfi_allowance *allowances;
    unsigned char (*keys)[RFI_KEY_BYTES];
    unsigned char *frame; /* being made: payload behind the manifest */
    int reminders;        /* since the last round */
    uint64_t rounds;      /* that have ended */
    double now;           /* when the last one did */
};

/* ---- beginning and end ---- */

static ptrdiff_t ways_of(const rfi_echo_setup *setup)
{
    return setup->ways > 1 ? setup->ways : 1;
}

static rfi_echo *lay_out(rfi_arena *arena, const rfi_echo_setup *setup)
{
    rfi_echo *echo = rfi_arena_take(arena, 1, 1, sizeof *echo);
    rfi_echo parts = {.senders = rfi_arena_take(arena, setup->agents, 1, sizeof *echo->senders),
                      .allowances = rfi_arena_take(arena, setup->agents, ways_of(setup), sizeof *echo->allowances),
                      .keys = rfi_arena_take(arena, setup->agents, 1, sizeof *echo->keys),
                      .frame =
                          rfi_arena_take(arena, RFI_MANIFEST_BYTES + RFI_ECHO_ENTRIES * RFI_ECHO_ENTRY_BYTES, 1, 1)};
    if (echo) {
        *echo = parts;
    }
    return echo;
}

size_t rfi_echo_bytes(const rfi_echo_setup *setup)
{
    rfi_arena arena = {NULL, 0, false};
    (void)lay_out(&arena, setup);
    return arena.overflow ? SIZE_MAX : (size_t)arena.used + RFI_ALIGNMENT;
}

reef_status rfi_echo_create(rfi_echo **echo, const reef_context *context, const rfi_echo_setup *setup,
                            const rfi_echo_parts *parts, reef_error *error)
{
    size_t bytes = rfi_echo_bytes(setup);
    void *memory = bytes == SIZE_MAX ? NULL : rfi_allocate(context, bytes);
    if (!memory) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the echoes of %td agents", setup->agents);
    }
    rfi_arena arena = {rfi_align(memory), 0, false};
    rfi_echo *made = lay_out(&arena, setup);
    made->context = context;
    made->memory = memory;
    made->setup = *setup;
    made->setup.witnesses = NULL;
    made->parts = *parts;
    for (ptrdiff_t k = 0; k < setup->agents; k++) {
        memcpy(made->keys[k], setup->key(setup->user, (uint32_t)k), sizeof made->keys[k]);
        for (ptrdiff_t way = 0; way < ways_of(setup); way++) {
            made->allowances[k * ways_of(setup) + way] = (rfi_allowance){.tokens = RFI_TOKENS_MAX};
        }
        made->senders[k] = (sender){.verified_at = -INFINITY};
    }
    for (ptrdiff_t i = 0; i < setup->count; i++) {
        made->senders[setup->witnesses[i]].witness = true;
    }
    *echo = made;
    return REEF_OK;
}

void rfi_echo_destroy(rfi_echo **echo)
{
    if (*echo) {
        rfi_release((*echo)->context, (*echo)->memory);
    }
    *echo = NULL;
}

/* ---- sending ---- */

static unsigned char *payload_of(rfi_echo *echo)
{
    return echo->frame + RFI_MANIFEST_BYTES;
}

/* Signs and publishes what lies in the payload. */
static void send_frame(rfi_echo *echo, const rfi_head *blank, rfi_frame_type type, uint64_t count, size_t size)
{
    rfi_head head = *blank;
    head.type = type;
    head.numbers = RFI_NO_NUMBERS;
    head.flags = RFI_FLAG_INLINE;
    head.count = count;
    head.payload = size;
    rfi_hash(head.root, payload_of(echo), size);
    rfi_head_write(echo->frame, &head);
    rfi_frame_sign(echo->frame, echo->parts.keys, echo->parts.window->setup.by);
    const rfi_topic topic = {.kind = type == RFI_FRAME_PROOF ? RFI_TOPIC_PROOF : RFI_TOPIC_EVENT, .agent = head.agent};
    echo->parts.link->ops->publish(echo->parts.link, &topic, echo->frame, RFI_MANIFEST_BYTES + size);
}

static void send_proof(rfi_echo *echo, const unsigned char *one, const unsigned char *other, const rfi_head *blank)
{
    memcpy(payload_of(echo), one, RFI_MANIFEST_BYTES);
    memcpy(payload_of(echo) + RFI_MANIFEST_BYTES, other, RFI_MANIFEST_BYTES);
    send_frame(echo, blank, RFI_FRAME_PROOF, 2, RFI_PROOF_BYTES);
}

static void put_entry(unsigned char *entry, uint32_t agent, uint64_t age, const unsigned char *mark)
{
    rfi_put(entry, agent, 4);
    rfi_put(entry + 4, age, 4);
    memcpy(entry + 8, mark, MARK_PART);
}

void rfi_echo_round(rfi_echo *echo, double now, const rfi_head *blank)
{
    const rfi_window *window = echo->parts.window;
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < window->setup.count * RFI_KEPT && count < RFI_ECHO_ENTRIES; i++) {
        const rfi_peer *peer = &window->peers[i / RFI_KEPT];
        rfi_held *held = &window->peers[i / RFI_KEPT].kept[i % RFI_KEPT];
        if (peer->excluded || !held->held || held->echoed || held->round > blank->round ||
            blank->round - held->round >= RFI_KEPT) {
            continue;
        }
        held->echoed = true;
        put_entry(payload_of(echo) + count++ * RFI_ECHO_ENTRY_BYTES, peer->who.agent, blank->round - held->round,
                  held->mark);
    }
    if (count > 0) {
        send_frame(echo, blank, RFI_FRAME_ECHO, (uint64_t)count, (size_t)count * RFI_ECHO_ENTRY_BYTES);
    }
    for (ptrdiff_t i = 0; i < echo->setup.agents * ways_of(&echo->setup); i++) {
        rfi_allowance_round(&echo->allowances[i]);
    }
    echo->rounds++;
    echo->now = now;
    echo->reminders = 0;
    for (ptrdiff_t k = 0; k < echo->setup.agents; k++) {
        echo->senders[k].shows = 0;
    }
}

/* ---- proofs ---- */

bool rfi_proof_read(const unsigned char proof[RFI_PROOF_BYTES], const rfi_signatures *by, rfi_head *head)
{
    return rfi_frame_proves(proof, proof + RFI_MANIFEST_BYTES, by) && rfi_frame_manifest(proof, head);
}

bool rfi_echo_proven(const rfi_echo *echo, uint32_t agent)
{
    return agent < echo->setup.agents && echo->senders[agent].proven;
}

ptrdiff_t rfi_echo_missing(const rfi_echo *echo)
{
    ptrdiff_t missing = 0;
    for (ptrdiff_t k = 0; k < echo->setup.agents; k++) {
        const sender *from = &echo->senders[k];
        bool silent = echo->rounds - from->heard_at > ROUNDS_MISSING && echo->now - from->verified_at > seconds_missing;
        missing += from->witness && !from->proven && silent;
    }
    return missing;
}

/* A proof that has been checked: its sender is excluded; it is kept, and then published. */
static void accept_proof(rfi_echo *echo, uint32_t accused, const unsigned char *proof, const rfi_head *blank)
{
    rfi_window *window = echo->parts.window;
    ptrdiff_t peer = rfi_window_find(window, accused);
    if (peer >= 0 && !window->peers[peer].excluded) {
        rfi_window_exclude(window, peer, proof, proof + RFI_MANIFEST_BYTES);
    }
    echo->senders[accused].proven = true;
    if (echo->setup.proved) {
        echo->setup.proved(echo->setup.user, accused, proof);
    }
    send_proof(echo, proof, proof + RFI_MANIFEST_BYTES, blank);
}

void rfi_echo_found(rfi_echo *echo, ptrdiff_t peer, const rfi_head *blank)
{
    const rfi_peer *from = &echo->parts.window->peers[peer];
    if (from->who.agent < echo->setup.agents && !echo->senders[from->who.agent].proven) {
        accept_proof(echo, from->who.agent, (const unsigned char *)from->proof, blank);
    }
}

/* The key of a manifest is that of the agent it names. */
static bool is_known(const rfi_echo *echo, const rfi_head *head)
{
    static const unsigned char nobody[RFI_KEY_BYTES];
    return head->agent < echo->setup.agents && memcmp(head->key, echo->keys[head->agent], sizeof head->key) == 0 &&
           memcmp(head->key, nobody, sizeof nobody) != 0;
}

bool rfi_echo_accuse(rfi_echo *echo, const unsigned char proof[RFI_PROOF_BYTES], const rfi_head *blank)
{
    rfi_head head;
    if (!rfi_proof_read(proof, echo->parts.window->setup.by, &head) || !is_known(echo, &head)) {
        return false;
    }
    if (!echo->senders[head.agent].proven) {
        accept_proof(echo, head.agent, proof, blank);
    }
    return true;
}

/* ---- receiving ---- */

bool rfi_echo_wants(const rfi_echo *echo, const rfi_topic *topic, const unsigned char *bytes, size_t size)
{
    if (!echo) {
        return false;
    }
    bool ours = size > RFI_FRAME_AT_TYPE &&
                (bytes[RFI_FRAME_AT_TYPE] == RFI_FRAME_ECHO || bytes[RFI_FRAME_AT_TYPE] == RFI_FRAME_SHOW);
    bool neighbour = rfi_window_find(echo->parts.window, topic->agent) >= 0;
    return topic->kind == RFI_TOPIC_PROOF || (topic->kind == RFI_TOPIC_EVENT && (ours || !neighbour));
}

/* Everything but allowance and signature. */
static rfi_cause check(const rfi_echo *echo, const rfi_topic *topic, const rfi_head *head)
{
    const rfi_window_setup *run = &echo->parts.window->setup;
    bool proof = topic->kind == RFI_TOPIC_PROOF;
    if (proof != (head->type == RFI_FRAME_PROOF) || head->type == RFI_FRAME_MODEL || head->type == RFI_FRAME_STATUS) {
        return RFI_FORMAT;
    }
    bool heard = rfi_window_find(echo->parts.window, head->agent) >= 0;
    if (head->agent != topic->agent || !is_known(echo, head) ||
        (!proof && !heard && !echo->senders[head->agent].witness)) {
        return RFI_SENDER;
    }
    if (echo->senders[head->agent].proven) {
        return RFI_EXCLUDED;
    }
    const rfi_edition *after = &echo->parts.window->after;
    if (head->epoch < run->epoch ||
        (after->known && head->epoch == after->epoch && memcmp(head->run, after->run, sizeof head->run) == 0)) {
        return RFI_OLD; /* of the epoch before or after this one: nothing to compare here, and no offence */
    }
    if (head->epoch != run->epoch || memcmp(head->run, run->run, sizeof head->run) != 0) {
        return RFI_CONFIG;
    }
    uint64_t each = head->type == RFI_FRAME_ECHO ? RFI_ECHO_ENTRY_BYTES : RFI_MANIFEST_BYTES;
    uint64_t most = head->type == RFI_FRAME_ECHO ? RFI_ECHO_ENTRIES : 2;
    bool exact = head->type == RFI_FRAME_ECHO || head->count == (proof ? 2 : 1);
    bool silent = head->type == RFI_FRAME_HELLO || head->type == RFI_FRAME_BYE;
    return silent || (exact && head->count <= most && head->payload == head->count * each) ? RFI_GOOD : RFI_LENGTH;
}

/* Allowance, signature, and the payload that was signed. */
static rfi_cause verify(rfi_echo *echo, double now, const rfi_head *head, const unsigned char *bytes)
{
    unsigned char hash[RFI_HASH_BYTES];
    ptrdiff_t ways = ways_of(&echo->setup);
    ptrdiff_t way = echo->parts.window->way < (unsigned)ways ? (ptrdiff_t)echo->parts.window->way : 0;
    if (!rfi_allowance_spend(&echo->allowances[head->agent * ways + way], now)) {
        return RFI_RATE;
    }
    if (!rfi_frame_verify(bytes, echo->parts.window->setup.by)) {
        return RFI_SIGNATURE;
    }
    rfi_hash(hash, bytes + RFI_MANIFEST_BYTES, (size_t)head->payload);
    return memcmp(hash, head->root, sizeof hash) == 0 ? RFI_GOOD : RFI_CHUNK;
}

typedef enum verdict { AGREES, DIFFERS, OUTDATED } verdict;

/* What an entry of an echo says about what is held here. */
static verdict compare(const rfi_echo *echo, const rfi_head *head, const unsigned char *entry, ptrdiff_t *peer,
                       rfi_held **held)
{
    uint32_t agent = (uint32_t)rfi_take(entry, 4);
    uint64_t age = rfi_take(entry + 4, 4);
    *peer = rfi_window_find(echo->parts.window, agent);
    if (*peer < 0 || age > head->round) {
        return AGREES;
    }
    if (echo->parts.window->peers[*peer].excluded) {
        return OUTDATED;
    }
    *held = rfi_window_held(echo->parts.window, *peer, head->round - age);
    return *held && memcmp((*held)->mark, entry + 8, MARK_PART) != 0 ? DIFFERS : AGREES;
}

static void answer(rfi_echo *echo, const rfi_head *head, const unsigned char *entry, const rfi_head *blank)
{
    ptrdiff_t peer = -1;
    rfi_held *held = NULL;
    verdict found = compare(echo, head, entry, &peer, &held);
    const rfi_peer *from = found == AGREES ? NULL : &echo->parts.window->peers[peer];
    int *shows =
        &echo->senders[head->agent].shows; /* of each witness: one that lies must not use up what others need */
    if (found == DIFFERS && !held->shown && *shows < RFI_SHOWS) {
        held->shown = true;
        ++*shows;
        memcpy(payload_of(echo), held->manifest, RFI_MANIFEST_BYTES);
        send_frame(echo, blank, RFI_FRAME_SHOW, 1, RFI_MANIFEST_BYTES);
    } else if (found == OUTDATED && echo->reminders < 1) {
        echo->reminders++;
        send_proof(echo, from->proof[0], from->proof[1], blank);
    }
}

/* That a witness is still heard must not be the word of a broker, which could make up echoes that agree: now and then a signature is
 * looked at all the same. */
static bool is_due(const rfi_echo *echo, const sender *from, double now)
{
    return echo->rounds - from->heard_at >= ROUNDS_DUE && now - from->verified_at >= seconds_due;
}

static rfi_cause take_echo(rfi_echo *echo, double now, const rfi_head *head, const unsigned char *bytes,
                           const rfi_head *blank)
{
    const unsigned char *entries = bytes + RFI_MANIFEST_BYTES;
    ptrdiff_t peer = -1;
    rfi_held *held = NULL;
    bool agrees = true;
    for (uint64_t i = 0; i < head->count && agrees; i++) {
        agrees = compare(echo, head, entries + i * RFI_ECHO_ENTRY_BYTES, &peer, &held) == AGREES;
    }
    bool looked_at = !agrees || is_due(echo, &echo->senders[head->agent], now);
    rfi_cause cause = looked_at ? verify(echo, now, head, bytes) : RFI_GOOD;
    if (looked_at && cause == RFI_GOOD &&
        head->round + RFI_KEPT > blank->round) { /* and nobody plays back an old one */
        echo->senders[head->agent].heard_at = echo->rounds;
        echo->senders[head->agent].verified_at = now;
    }
    /* From another entry in each round, so that a malicious witness cannot keep differences of others from being shown. */
    for (uint64_t i = 0; i < head->count && !agrees && cause == RFI_GOOD; i++) {
        answer(echo, head, entries + (i + head->round) % head->count * RFI_ECHO_ENTRY_BYTES, blank);
    }
    return cause;
}

static rfi_cause take_show(rfi_echo *echo, double now, const rfi_head *head, const unsigned char *bytes,
                           const rfi_head *blank)
{
    const unsigned char *shown = bytes + RFI_MANIFEST_BYTES;
    rfi_window *window = echo->parts.window;
    rfi_head model;
    unsigned char mark[RFI_HASH_BYTES];
    unsigned char proof[RFI_PROOF_BYTES];
    if (!rfi_frame_manifest(shown, &model)) {
        return RFI_FORMAT;
    }
    ptrdiff_t peer = rfi_window_find(window, model.agent);
    if (peer < 0 || window->peers[peer].excluded) {
        return RFI_REPEAT; /* nothing to find out */
    }
    const rfi_held *held = rfi_window_held(window, peer, model.round);
    rfi_frame_mark(mark, shown);
    if (!held || memcmp(held->mark, mark, sizeof mark) == 0) {
        return RFI_REPEAT;
    }
    rfi_cause cause = verify(echo, now, head, bytes);
    if (cause != RFI_GOOD) {
        return cause;
    }
    memcpy(proof, held->manifest, RFI_MANIFEST_BYTES);
    memcpy(proof + RFI_MANIFEST_BYTES, shown, RFI_MANIFEST_BYTES);
    return rfi_echo_accuse(echo, proof, blank) ? RFI_GOOD : RFI_CHUNK;
}

static rfi_cause take_proof(rfi_echo *echo, double now, const rfi_head *head, const unsigned char *bytes,
                            const rfi_head *blank)
{
    const unsigned char *proof = bytes + RFI_MANIFEST_BYTES;
    rfi_head model;
    if (!rfi_frame_manifest(proof, &model) || !is_known(echo, &model)) {
        return RFI_FORMAT;
    }
    if (echo->senders[model.agent].proven) {
        return RFI_REPEAT;
    }
    /* Who has rehearsed two faces with its key is not excluded from runs to come. No offence: after a change of the run file agents say
     * once more what they have kept. */
    if (!rfi_window_is_ours(echo->parts.window, model.run)) {
        return RFI_OLD;
    }
    rfi_cause cause = verify(echo, now, head, bytes);
    if (cause != RFI_GOOD) {
        return cause;
    }
    return rfi_echo_accuse(echo, proof, blank) ? RFI_GOOD : RFI_CHUNK;
}

rfi_cause rfi_echo_frame(rfi_echo *echo, double now, const rfi_topic *topic, const unsigned char *bytes, size_t size,
                         const rfi_head *blank)
{
    rfi_head head;
    rfi_cause cause = rfi_frame_read(bytes, size, &head);
    if (cause == RFI_GOOD) {
        cause = check(echo, topic, &head);
    }
    if (cause != RFI_GOOD) {
        return cause;
    }
    /* A neighbour that is no witness says nothing that can be compared here; that it says it to its own witnesses is no offence. */
    if (head.type != RFI_FRAME_PROOF && !echo->senders[head.agent].witness) {
        return RFI_REPEAT;
    }
    switch (head.type) {
    case RFI_FRAME_ECHO:
        return take_echo(echo, now, &head, bytes, blank);
    case RFI_FRAME_SHOW:
        return take_show(echo, now, &head, bytes, blank);
    case RFI_FRAME_PROOF:
        return take_proof(echo, now, &head, bytes, blank);
    default: /* hello and good-bye of a witness that is no neighbour */
        return RFI_GOOD;
    }
}
