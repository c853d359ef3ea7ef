/* Echoes between agents that are shown different models of one sender, with a link that only collects what is published. */
#include "net/echo.h"
#include "net/frames.h"
#include "net/node.h"
#include "support/check.h"

#include <string.h>

enum {
    SENDER = 1,
    OTHER = 2,
    AGENTS = 4,
    ROOM = 16,
    FRAME = RFI_MANIFEST_BYTES + RFI_ECHO_ENTRIES * RFI_ECHO_ENTRY_BYTES
};

typedef struct published {
    rfi_topic topic;
    unsigned char bytes[FRAME];
    size_t size;
} published;

/* Seconds, for all listeners. */
static double clock_now;

/* An agent that hears SENDER and OTHER. */
typedef struct listener {
    rfi_netlink link;
    rfi_keys keys;
    rfi_window *window;
    rfi_echo *echo;
    rfi_head blank;
    published out[ROOM];
    int count;
    int proofs;
} listener;

static void collect(rfi_netlink *link, const rfi_topic *topic, const void *bytes, size_t size)
{
    listener *l = (listener *)link;
    assert_true(l->count < ROOM && size <= FRAME);
    published *p = &l->out[l->count++];
    p->topic = *topic;
    p->size = size;
    memcpy(p->bytes, bytes, size);
}

static const rfi_netlink_ops collecting = {collect, NULL, NULL};

static const unsigned char *key_of(void *user, uint32_t agent)
{
    static rfi_keys keys;
    (void)user;
    keys = frames_keys(agent);
    return keys.public_key;
}

static void proved(void *user, uint32_t agent, const unsigned char proof[RFI_PROOF_BYTES])
{
    listener *l = user;
    rfi_head head;
    assert_true(rfi_proof_read(proof, &rfi_ed25519, &head));
    assert_int_equal(head.agent, agent);
    assert_int_equal(agent, SENDER);
    l->proofs++;
}

static void open_with(listener *l, uint32_t number, const uint32_t *witnesses, ptrdiff_t count)
{
    rfi_neighbour neighbours[2] = {{.agent = SENDER, .weight = 1.0 / 3}, {.agent = OTHER, .weight = 1.0 / 3}};
    for (int i = 0; i < 2; i++) {
        rfi_keys keys = frames_keys(neighbours[i].agent);
        memcpy(neighbours[i].key, keys.public_key, RFI_KEY_BYTES);
    }
    rfi_window_setup setup = {.shape = frames_shape(2),
                              .epoch = 1,
                              .count = 2,
                              .neighbours = neighbours,
                              .own_weight = 1.0 / 3,
                              .malicious = 0.3,
                              .stale = 2,
                              .by = &rfi_ed25519};
    memcpy(setup.run, frames_run, sizeof setup.run);
    *l = (listener){.link = {&collecting}, .keys = frames_keys(number)};
    assert_int_equal(rfi_window_create(&l->window, NULL, &setup, NULL), REEF_OK);
    const rfi_echo_setup echo = {
        .agents = AGENTS, .key = key_of, .count = count, .witnesses = witnesses, .proved = proved, .user = l};
    const rfi_echo_parts parts = {.window = l->window, .link = &l->link, .keys = &l->keys};
    assert_int_equal(rfi_echo_create(&l->echo, NULL, &echo, &parts, NULL), REEF_OK);
    l->blank = (rfi_head){.epoch = 1, .agent = number, .round = 0, .boot = 9};
    memcpy(l->blank.run, frames_run, sizeof l->blank.run);
    memcpy(l->blank.key, l->keys.public_key, sizeof l->blank.key);
}

static void open_listener(listener *l, uint32_t number, uint32_t witness)
{
    open_with(l, number, &witness, 1);
}

static void close_listener(listener *l)
{
    rfi_echo_destroy(&l->echo);
    rfi_window_destroy(&l->window);
}

/* The listener receives a model of `from` with this first number. */
static rfi_cause give(listener *l, uint32_t from, uint64_t round, double value)
{
    unsigned char frame[RFI_MANIFEST_BYTES + 2 * sizeof(double)];
    const double model[2] = {value, 0};
    rfi_shape shape = frames_shape(2);
    rfi_head head = frames_head(&shape, from, round, model);
    rfi_keys keys = frames_keys(from);
    size_t size = frames_make(frame, &head, &keys, model);
    return rfi_window_frame(l->window, 0, RFI_PLACE_SLOT, from, round, frame, size);
}

static rfi_cause pass(const published *p, listener *to)
{
    assert_true(rfi_echo_wants(to->echo, &p->topic, p->bytes, p->size));
    return rfi_echo_frame(to->echo, clock_now, &p->topic, p->bytes, p->size, &to->blank);
}

static rfi_frame_type type_of(const published *p)
{
    rfi_head head;
    assert_int_equal(rfi_frame_read(p->bytes, p->size, &head), RFI_GOOD);
    return head.type;
}

static void echoes_that_agree_cost_a_comparison(void **state)
{
    (void)state;
    listener a;
    listener b;
    open_listener(&a, 0, 3);
    open_listener(&b, 3, 0);
    assert_int_equal(give(&a, SENDER, 0, 1), RFI_GOOD);
    assert_int_equal(give(&b, SENDER, 0, 1), RFI_GOOD);
    rfi_echo_round(a.echo, clock_now, &a.blank);
    assert_int_equal(a.count, 1);
    published forged = a.out[0];
    forged.bytes[RFI_HEAD_BYTES] ^= 1; /* nobody looks at the signature */
    assert_int_equal(pass(&forged, &b), RFI_GOOD);
    assert_int_equal(b.count, 0);
    rfi_echo_round(a.echo, clock_now, &a.blank); /* what was said is not said again */
    assert_int_equal(a.count, 1);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(rfi_echo_missing(b.echo), 0);
        clock_now += 1;
        rfi_echo_round(b.echo, clock_now, &b.blank);
    }
    assert_int_equal(rfi_echo_missing(b.echo), 1);
    assert_int_equal(pass(&forged, &b),
                     RFI_SIGNATURE); /* but now somebody does: a broker cannot stand in for a witness, */
    b.blank.round = RFI_KEPT;
    assert_int_equal(pass(&a.out[0], &b), RFI_GOOD); /* neither with what the witness said long ago */
    assert_int_equal(rfi_echo_missing(b.echo), 1);
    b.blank.round = 0;
    assert_int_equal(pass(&a.out[0], &b), RFI_GOOD);
    assert_int_equal(rfi_echo_missing(b.echo), 0);
    close_listener(&a);
    close_listener(&b);
}

/* A hundred rounds a second do not make a hundred verifications, and hide no witness that is silent. */
static void fast_rounds_cost_one_verification_a_second(void **state)
{
    (void)state;
    listener a;
    listener b;
    int verified = 0;
    open_listener(&a, 0, 3);
    open_listener(&b, 3, 0);
    assert_int_equal(give(&a, SENDER, 0, 1), RFI_GOOD);
    assert_int_equal(give(&b, SENDER, 0, 1), RFI_GOOD);
    rfi_echo_round(a.echo, clock_now, &a.blank);
    published forged = a.out[0];
    forged.bytes[RFI_HEAD_BYTES] ^= 1;
    for (int i = 0; i < 400; i++) { /* four seconds: what is verified is told by a forged one, which else passes */
        clock_now += 0.01;
        rfi_echo_round(b.echo, clock_now, &b.blank);
        if (pass(&forged, &b) == RFI_SIGNATURE) {
            verified++;
            assert_int_equal(pass(&a.out[0], &b), RFI_GOOD);
        }
        assert_int_equal(rfi_echo_missing(b.echo), 0);
    }
    CHECK(verified >= 4 && verified <= 5, "%d", verified);
    for (int i = 0; i < 400; i++) { /* a broker makes its echoes up from here on */
        clock_now += 0.01;
        rfi_echo_round(b.echo, clock_now, &b.blank);
        (void)pass(&forged, &b);
    }
    assert_int_equal(rfi_echo_missing(b.echo), 1);
    close_listener(&a);
    close_listener(&b);
}

static void two_models_of_one_sender_are_found_and_proven(void **state)
{
    (void)state;
    listener a;
    listener b;
    open_listener(&a, 0, 3);
    open_listener(&b, 3, 0);
    assert_int_equal(give(&a, SENDER, 0, 1), RFI_GOOD);
    assert_int_equal(give(&a, OTHER, 0, 5), RFI_GOOD);
    assert_int_equal(give(&b, SENDER, 0, 2), RFI_GOOD);
    assert_int_equal(give(&b, OTHER, 0, 5), RFI_GOOD);
    rfi_echo_round(a.echo, clock_now, &a.blank);
    assert_int_equal(pass(&a.out[0], &b), RFI_GOOD); /* b holds another model of SENDER: shows it */
    assert_int_equal(b.count, 1);
    assert_int_equal(type_of(&b.out[0]), RFI_FRAME_SHOW);
    assert_int_equal(pass(&b.out[0], &a), RFI_GOOD); /* a has both: the proof */
    assert_int_equal(a.count, 2);
    assert_int_equal(type_of(&a.out[1]), RFI_FRAME_PROOF);
    assert_int_equal(a.out[1].topic.kind, RFI_TOPIC_PROOF);
    assert_int_equal(a.proofs, 1);
    assert_int_equal(pass(&a.out[1], &b), RFI_GOOD); /* b passes it on, once */
    assert_int_equal(pass(&a.out[1], &b), RFI_REPEAT);
    assert_int_equal(b.count, 2);
    assert_int_equal(b.proofs, 1);
    assert_true(rfi_echo_proven(a.echo, SENDER) && rfi_echo_proven(b.echo, SENDER));
    assert_false(rfi_echo_proven(a.echo, OTHER));
    assert_int_equal(give(&a, SENDER, 1, 1), RFI_EXCLUDED);
    assert_null(rfi_window_row(b.window, 0, 0).model);
    assert_non_null(rfi_window_row(b.window, 1, 0).model);
    /* After a restart a kept proof excludes it again; a damaged one does not. */
    unsigned char proof[RFI_PROOF_BYTES];
    memcpy(proof, a.out[1].bytes + RFI_MANIFEST_BYTES, sizeof proof);
    close_listener(&a);
    open_listener(&a, 0, 3);
    proof[RFI_HEAD_BYTES] ^= 1;
    assert_false(rfi_echo_accuse(a.echo, proof, &a.blank));
    proof[RFI_HEAD_BYTES] ^= 1;
    assert_true(rfi_echo_accuse(a.echo, proof, &a.blank));
    assert_int_equal(give(&a, SENDER, 1, 1), RFI_EXCLUDED);
    close_listener(&a);
    close_listener(&b);
}

static void who_missed_a_proof_gets_it_again(void **state)
{
    (void)state;
    listener a;
    listener b;
    open_listener(&a, 0, 3);
    open_listener(&b, 3, 0);
    assert_int_equal(give(&a, SENDER, 0, 1), RFI_GOOD);
    assert_int_equal(give(&a, SENDER, 0, 2), RFI_TWO_FACED);
    rfi_echo_found(a.echo, 0, &a.blank);
    assert_int_equal(a.count, 1); /* lost */
    assert_int_equal(give(&b, SENDER, 0, 1), RFI_GOOD);
    rfi_echo_round(b.echo, clock_now, &b.blank);
    assert_int_equal(pass(&b.out[0], &a), RFI_GOOD);
    assert_int_equal(a.count, 2);
    assert_int_equal(type_of(&a.out[1]), RFI_FRAME_PROOF);
    assert_int_equal(pass(&b.out[0], &a), RFI_GOOD); /* once a round */
    assert_int_equal(a.count, 2);
    assert_int_equal(pass(&a.out[1], &b), RFI_GOOD);
    assert_true(rfi_echo_proven(b.echo, SENDER));
    close_listener(&a);
    close_listener(&b);
}

/* Signs what stands in an echo anew. */
static void sign_again(published *p, const rfi_keys *keys)
{
    rfi_head head;
    assert_int_equal(rfi_frame_read(p->bytes, p->size, &head), RFI_GOOD);
    rfi_hash(head.root, p->bytes + RFI_MANIFEST_BYTES, (size_t)head.payload);
    rfi_head_write(p->bytes, &head);
    rfi_frame_sign(p->bytes, keys, &rfi_ed25519);
}

/* A malicious witness: one verification each, within its allowance, and no accusation. */
static void lies_change_nothing(void **state)
{
    (void)state;
    listener a;
    listener b;
    open_listener(&a, 0, 3);
    open_listener(&b, 3, 0);
    assert_int_equal(give(&a, SENDER, 0, 1), RFI_GOOD);
    assert_int_equal(give(&b, SENDER, 0, 1), RFI_GOOD);
    rfi_echo_round(b.echo, clock_now, &b.blank);
    published lie = b.out[0];
    lie.bytes[RFI_MANIFEST_BYTES + 8] ^= 1; /* another mark than was signed */
    assert_int_equal(pass(&lie, &a), RFI_CHUNK);
    lie.bytes[RFI_HEAD_BYTES] ^= 1;
    assert_int_equal(pass(&lie, &a), RFI_SIGNATURE);
    assert_int_equal(a.count, 0);
    sign_again(&lie, &b.keys);
    assert_int_equal(pass(&lie, &a), RFI_GOOD); /* signed by the witness: a shows what it holds, once */
    assert_int_equal(a.count, 1);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(pass(&lie, &a), RFI_GOOD);
    }
    assert_int_equal(pass(&lie, &a), RFI_RATE);
    assert_int_equal(a.count, 1);
    assert_int_equal(pass(&a.out[0], &b), RFI_REPEAT); /* the same as b's: no proof of anything */
    assert_int_equal(a.proofs + b.proofs, 0);
    assert_false(rfi_echo_proven(a.echo, SENDER));
    close_listener(&a);
    close_listener(&b);
}

/* A malicious witness that has much shown cannot keep what an honest one finds from being shown. */
static void lies_use_up_nobody_elses_shows(void **state)
{
    (void)state;
    const uint32_t witnesses[] = {2, 3};
    listener a;
    listener liar;
    listener b;
    open_with(&a, 0, witnesses, 2);
    open_listener(&liar, 2, 0);
    open_listener(&b, 3, 0);
    a.blank.round = liar.blank.round = b.blank.round = RFI_SHOWS;
    for (uint64_t round = 0; round <= RFI_SHOWS; round++) {
        rfi_window_advance(a.window, round);
        rfi_window_advance(liar.window, round);
        rfi_window_advance(b.window, round);
        rfi_allowances_fill(a.window->peers[1].allowances);
        rfi_allowances_fill(liar.window->peers[1].allowances);
        assert_int_equal(give(&a, OTHER, round, 5), RFI_GOOD);
        assert_int_equal(give(&liar, OTHER, round, 5), RFI_GOOD);
    }
    assert_int_equal(give(&a, SENDER, RFI_SHOWS, 1), RFI_GOOD);
    assert_int_equal(give(&b, SENDER, RFI_SHOWS, 2), RFI_GOOD);
    rfi_echo_round(liar.echo, clock_now, &liar.blank);
    published *lie = &liar.out[0];
    for (size_t at = RFI_MANIFEST_BYTES; at < lie->size; at += RFI_ECHO_ENTRY_BYTES) {
        lie->bytes[at + 8] ^= 1;
    }
    sign_again(lie, &liar.keys);
    assert_int_equal(pass(lie, &a), RFI_GOOD);
    assert_int_equal(a.count, RFI_SHOWS);
    rfi_echo_round(b.echo, clock_now, &b.blank);
    assert_int_equal(pass(&b.out[0], &a), RFI_GOOD);
    assert_int_equal(a.count, RFI_SHOWS + 1);
    assert_int_equal(pass(&a.out[RFI_SHOWS], &b), RFI_GOOD);
    assert_true(rfi_echo_proven(b.echo, SENDER));
    close_listener(&a);
    close_listener(&liar);
    close_listener(&b);
}

static void frames_of_others_are_refused(void **state)
{
    (void)state;
    listener a;
    listener b;
    open_listener(&a, 0, 3);
    open_listener(&b, 3, 0);
    assert_int_equal(give(&b, SENDER, 0, 1), RFI_GOOD);
    rfi_echo_round(b.echo, clock_now, &b.blank);
    published p = b.out[0];
    p.topic.agent = OTHER; /* under another name */
    assert_int_equal(rfi_echo_frame(a.echo, clock_now, &p.topic, p.bytes, p.size, &a.blank), RFI_SENDER);
    p.topic = (rfi_topic){.kind = RFI_TOPIC_PROOF, .agent = 3}; /* in another place */
    assert_int_equal(pass(&p, &a), RFI_FORMAT);
    p = b.out[0];
    p.size--;
    assert_int_equal(pass(&p, &a), RFI_LENGTH);
    p = b.out[0];
    p.bytes[16] ^= 1; /* of another run */
    assert_int_equal(pass(&p, &a), RFI_CONFIG);
    p = b.out[0];
    p.bytes[88] ^= 1; /* another number of entries than fit the payload */
    assert_int_equal(pass(&p, &a), RFI_LENGTH);
    listener c; /* one that does not listen to b */
    open_listener(&c, 0, 2);
    assert_int_equal(pass(&b.out[0], &c), RFI_SENDER);
    close_listener(&a);
    close_listener(&b);
    close_listener(&c);
}

/* Neighbours need not be witnesses: in a ring of single links no two of them hear a common sender, and where everybody hears everybody
 * there are more of them than RFI_WITNESSES_MAX. Their echoes arrive all the same. */
static void a_neighbour_that_is_no_witness_commits_no_offence(void **state)
{
    (void)state;
    listener a;
    listener neighbour;
    open_listener(&a, 0, 3);
    open_listener(&neighbour, OTHER, 0);
    assert_int_equal(give(&a, SENDER, 0, 1), RFI_GOOD);
    assert_int_equal(give(&neighbour, SENDER, 0, 2), RFI_GOOD);
    rfi_echo_round(neighbour.echo, clock_now, &neighbour.blank);
    rfi_cause cause = pass(&neighbour.out[0], &a);
    assert_int_equal(cause, RFI_REPEAT);
    assert_false(rfi_is_offence(cause));
    assert_int_equal(a.count, 0); /* it costs neither a verification nor an answer */
    published p = neighbour.out[0];
    p.size--; /* what is malformed is refused as before */
    assert_int_equal(pass(&p, &a), RFI_LENGTH);
    close_listener(&a);
    close_listener(&neighbour);
}

/* Two manifests of SENDER for one round of another run prove nothing in this one. */
static void proofs_of_other_runs_exclude_nobody(void **state)
{
    (void)state;
    listener a;
    listener b;
    open_listener(&a, 0, 3);
    open_listener(&b, 3, 0);
    assert_int_equal(give(&b, SENDER, 0, 1), RFI_GOOD);
    assert_int_equal(give(&b, SENDER, 0, 2), RFI_TWO_FACED);
    rfi_echo_found(b.echo, 0, &b.blank);
    published proof = b.out[0];
    rfi_keys keys = frames_keys(SENDER);
    for (int i = 1; i <= 2; i++) {
        unsigned char *manifest = proof.bytes + (ptrdiff_t)i * RFI_MANIFEST_BYTES;
        rfi_head head;
        assert_true(rfi_frame_manifest(manifest, &head));
        head.run[0] ^= 1;
        rfi_head_write(manifest, &head);
        rfi_frame_sign(manifest, &keys, &rfi_ed25519);
    }
    sign_again(&proof, &b.keys);
    assert_int_equal(pass(&proof, &a), RFI_OLD);
    assert_false(rfi_echo_proven(a.echo, SENDER));
    assert_int_equal(a.count, 0);
    assert_int_equal(pass(&b.out[0], &a), RFI_GOOD);
    assert_true(rfi_echo_proven(a.echo, SENDER));
    close_listener(&a);
    close_listener(&b);
}

int main(void)
{
    if (rfi_crypto_start(NULL) != REEF_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(echoes_that_agree_cost_a_comparison),
        cmocka_unit_test(fast_rounds_cost_one_verification_a_second),
        cmocka_unit_test(two_models_of_one_sender_are_found_and_proven),
        cmocka_unit_test(who_missed_a_proof_gets_it_again),
        cmocka_unit_test(lies_change_nothing),
        cmocka_unit_test(lies_use_up_nobody_elses_shows),
        cmocka_unit_test(frames_of_others_are_refused),
        cmocka_unit_test(a_neighbour_that_is_no_witness_commits_no_offence),
        cmocka_unit_test(proofs_of_other_runs_exclude_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
