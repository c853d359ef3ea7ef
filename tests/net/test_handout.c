/* Run files of later epochs through a network: agents that ask, a store that loses answers, and malicious ones who hand out whatever they
 * like. Nobody takes anything but the file that the coordinator has signed, and everybody gets it. */
#include "net/handout.h"

#include "net/frames.h"
#include "net/keys.h"
#include "support/check.h"

#include <stdio.h>
#include <string.h>

enum { AGENTS = 9, MALICIOUS = 3, ROOM = 8192, BOSS = 90, MALLORY = 91 };

typedef struct text {
    char bytes[ROOM];
    size_t size;
} text;

/* A signed file: an epoch from a round on, with more lines behind it; agent 2 is removed from the second on. */
static text sign(int epoch, int from, const char *more, uint32_t names, uint32_t signer)
{
    text t;
    char key[RFI_KEY_TEXT];
    char login[RFI_KEY_TEXT];
    rfi_keys coordinator = frames_keys(names);
    rfi_keys keys = frames_keys(signer);
    rfi_key_print(key, RFI_LETTER_IDENTITY, coordinator.public_key);
    int used = snprintf(t.bytes, ROOM,
                        "reef: 1\nrun: ward-7\nid: 5f0c9a1be2d34c77a1b09c55e0d1f2a3\ncoordinator: %s\nepoch: %d\n"
                        "from: %d\nagents:\n",
                        key, epoch, from);
    for (uint32_t k = 0; k < AGENTS; k++) {
        rfi_keys one = frames_keys(k);
        rfi_keys two = frames_keys(k + 20);
        rfi_key_print(key, RFI_LETTER_IDENTITY, one.public_key);
        rfi_key_print(login, RFI_LETTER_LOGIN, two.public_key);
        bool removed = epoch > 1 && k == 2;
        used += removed ? snprintf(t.bytes + used, (size_t)(ROOM - used), "  agent%u: removed\n", (unsigned)k)
                        : snprintf(t.bytes + used, (size_t)(ROOM - used), "  agent%u: \"%s %s\"\n", (unsigned)k, key,
                                   login);
    }
    used += snprintf(t.bytes + used, (size_t)(ROOM - used),
                     "graph: complete\nmodel: {count: 10, type: f64}\nbrokers: [\"tls://a.example:4222\"]\n%s", more);
    assert_true(used + RFI_SIGNED_SIZE < ROOM);
    t.size = (size_t)used + rfi_runfile_sign(t.bytes, (size_t)used, &keys, t.bytes + used);
    return t;
}

static const char plain[] = "rule: mref\nmalicious: 0.25\n";

static rfi_runfile read_file(const text *t)
{
    rfi_runfile file;
    reef_error error = {REEF_OK, ""};
    CHECK(rfi_runfile_read(NULL, t->bytes, t->size, "run.yaml", &file, &error) == REEF_OK, "%s", error.text);
    return file;
}

static rfi_handed offer(rfi_handout *h, double *now, const rfi_runfile *file, const rfi_runfile *next, const text *t)
{
    rfi_runfile taken;
    *now += 1;
    rfi_handed result = rfi_handout_check(h, *now, file, next, t->bytes, t->size, &taken, NULL);
    if (result == RFI_HANDED_TAKEN) {
        rfi_runfile_free(&taken);
    }
    return result;
}

static void each_file_is_judged(void **state)
{
    (void)state;
    rfi_handout h;
    double now = 0;
    text texts[3] = {sign(1, 0, plain, BOSS, BOSS), sign(2, 50, plain, BOSS, BOSS), sign(3, 90, plain, BOSS, BOSS)};
    text other = sign(2, 51, plain, BOSS, BOSS);
    text rule = sign(2, 50, "rule: mean\nmalicious: 0.25\n", BOSS, BOSS);
    text weak = sign(2, 50, "rule: mref\nmalicious: 0.1\n", BOSS, BOSS);
    text early = sign(2, 0, plain, BOSS, BOSS);
    text theirs = sign(2, 50, plain, MALLORY, MALLORY);
    text pretends = sign(2, 50, plain, BOSS, MALLORY);
    text changed = texts[1];
    memcpy(strstr(changed.bytes, "from: 50"), "from: 51", 8);
    text garbage = {"no run file", 11};
    text nonsense = {"rule: x\n", 8};
    rfi_keys boss = frames_keys(BOSS);
    nonsense.size += rfi_runfile_sign(nonsense.bytes, 8, &boss, nonsense.bytes + 8);
    text none = {"", 0};
    rfi_runfile files[3] = {read_file(&texts[0]), read_file(&texts[1]), read_file(&texts[2])};
    rfi_handout_start(&h, 0.2, now);
    const struct {
        const text *file;
        rfi_handed alone, with_next, later; /* in epoch 1; knowing epoch 2; in epoch 2 */
    } cases[] = {
        {&texts[0], RFI_HANDED_KNOWN, RFI_HANDED_KNOWN, RFI_HANDED_OLD},
        {&texts[1], RFI_HANDED_TAKEN, RFI_HANDED_KNOWN, RFI_HANDED_KNOWN},
        {&texts[2], RFI_HANDED_EARLY, RFI_HANDED_EARLY, RFI_HANDED_TAKEN},
        {&other, RFI_HANDED_TAKEN, RFI_HANDED_SECOND, RFI_HANDED_SECOND},
        {&rule, RFI_HANDED_REFUSED, RFI_HANDED_SECOND, RFI_HANDED_SECOND},
        {&weak, RFI_HANDED_REFUSED, RFI_HANDED_SECOND, RFI_HANDED_SECOND},
        {&early, RFI_HANDED_REFUSED, RFI_HANDED_SECOND, RFI_HANDED_SECOND},
        {&theirs, RFI_HANDED_SIGNATURE, RFI_HANDED_SIGNATURE, RFI_HANDED_SIGNATURE},
        {&pretends, RFI_HANDED_SIGNATURE, RFI_HANDED_SIGNATURE, RFI_HANDED_SIGNATURE},
        {&changed, RFI_HANDED_SIGNATURE, RFI_HANDED_SIGNATURE, RFI_HANDED_SIGNATURE},
        {&garbage, RFI_HANDED_SIGNATURE, RFI_HANDED_SIGNATURE, RFI_HANDED_SIGNATURE},
        {&nonsense, RFI_HANDED_REFUSED, RFI_HANDED_REFUSED, RFI_HANDED_REFUSED},
        {&none, RFI_HANDED_LENGTH, RFI_HANDED_LENGTH, RFI_HANDED_LENGTH},
    };
    for (int twice = 0; twice < 2; twice++) { /* what was seen before is judged as it was */
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            CHECK(offer(&h, &now, &files[0], NULL, cases[i].file) == cases[i].alone, "file %zu alone", i);
        }
    }
    rfi_handout_turn(&h);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK(offer(&h, &now, &files[0], &files[1], cases[i].file) == cases[i].with_next, "file %zu with next", i);
    }
    rfi_handout_turn(&h);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK(offer(&h, &now, &files[1], NULL, cases[i].file) == cases[i].later, "file %zu later", i);
    }
    uint64_t sum = 0;
    for (int i = 0; i < RFI_HANDED_RESULTS; i++) {
        sum += h.counts[i];
        assert_true(strlen(rfi_handed_text((rfi_handed)i)) > 0);
    }
    assert_int_equal(sum, 4 * sizeof cases / sizeof cases[0]);
    for (int i = 0; i < 3; i++) {
        rfi_runfile_free(&files[i]);
    }
}

/* Floods are not looked at: signatures cost time. */
static void checks_are_bounded(void **state)
{
    (void)state;
    rfi_handout h;
    rfi_runfile taken;
    text first = sign(1, 0, plain, BOSS, BOSS);
    text theirs = sign(2, 50, plain, MALLORY, MALLORY);
    text good = sign(2, 50, plain, BOSS, BOSS);
    rfi_runfile file = read_file(&first);
    rfi_handout_start(&h, 0, 0);
    rfi_handout_pace(&h, 1000);
    assert_true(h.every == 10);
    rfi_handout_pace(&h, 5);
    assert_true(h.every == 1);
    for (int i = 0; i < 1000; i++) { /* in ten seconds */
        (void)rfi_handout_check(&h, i / 100.0, &file, NULL, theirs.bytes, theirs.size, &taken, NULL);
    }
    assert_in_range(h.counts[RFI_HANDED_SIGNATURE], 20, 30);
    assert_int_equal(h.counts[RFI_HANDED_SIGNATURE] + h.counts[RFI_HANDED_RATE], 1000);
    /* ...and one broker that floods takes nothing from another, by which the right file comes */
    h.way = 2;
    assert_int_equal(rfi_handout_check(&h, 10, &file, NULL, good.bytes, good.size, &taken, NULL), RFI_HANDED_TAKEN);
    rfi_runfile_free(&taken);
    h.way = 0;
    assert_int_equal(rfi_handout_check(&h, 10, &file, NULL, theirs.bytes, theirs.size, &taken, NULL), RFI_HANDED_RATE);
    double now = 10;
    assert_int_equal(offer(&h, &now, &file, NULL, &good), RFI_HANDED_TAKEN);
    static char huge[RFI_RUNFILE_MAX + 1];
    assert_int_equal(rfi_handout_check(&h, 100, &file, NULL, huge, sizeof huge, &taken, NULL), RFI_HANDED_LENGTH);
    rfi_runfile_free(&file);
}

/* ---- a network ---- */

typedef struct station {
    rfi_handout handout;
    rfi_runfile file, next;
    bool has_next;
} station;

typedef struct world {
    text slots[AGENTS]; /* what each has handed out */
    text broker;        /* of the second epoch; size 0: the broker has none, or hides it */
    station stations[AGENTS];
    uint64_t random;
} world;

static unsigned draw(world *w, unsigned below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(w->random >> 33) % below;
}

/* One agent asks, and half of the answers are lost. */
static void ask(world *w, uint32_t k, double now)
{
    uint32_t neighbours[AGENTS];
    ptrdiff_t count = 0;
    rfi_topic topic;
    double until;
    station *s = &w->stations[k];
    for (uint32_t l = 0; l < AGENTS; l++) {
        if (l != k) {
            neighbours[count++] = l;
        }
    }
    if (s->has_next || !rfi_handout_ask(&s->handout, now, s->file.terms.epoch, neighbours, count, &topic, &until) ||
        draw(w, 2)) {
        return;
    }
    assert_int_equal(topic.kind, RFI_TOPIC_FILE);
    bool broker = topic.agent == RFI_TOPIC_BROKER;
    assert_true(broker ? topic.round == 2 : topic.agent < AGENTS);
    const text *answer = broker ? &w->broker : &w->slots[topic.agent];
    if (answer->size > 0 && rfi_handout_check(&s->handout, now, &s->file, NULL, answer->bytes, answer->size, &s->next,
                                              NULL) == RFI_HANDED_TAKEN) {
        s->has_next = true;
    }
}

/* The file is given to one honest agent; three malicious ones hand out what they like; the broker hides the file, or has a false one. */
static void play(world *w, const text *first, const text *good, const text *bad, int kinds)
{
    rfi_runfile right = read_file(good);
    int waiting = AGENTS - MALICIOUS - 1;
    for (uint32_t k = 0; k < AGENTS; k++) {
        w->stations[k] = (station){.file = read_file(first)};
        rfi_handout_start(&w->stations[k].handout, 0, 0);
    }
    w->slots[MALICIOUS] = *good;
    for (double now = 0; now < 600 && waiting > 0; now += 0.5) {
        for (int k = 0; k < MALICIOUS; k++) {
            w->slots[k] = bad[draw(w, (unsigned)kinds)];
        }
        w->broker = draw(w, 2) ? bad[draw(w, (unsigned)kinds)] : (text){.size = 0};
        for (uint32_t k = MALICIOUS + 1; k < AGENTS; k++) {
            bool had = w->stations[k].has_next;
            ask(w, k, now);
            waiting -= w->stations[k].has_next && !had;
        }
    }
    assert_int_equal(waiting, 0);
    for (uint32_t k = 0; k < AGENTS; k++) {
        station *s = &w->stations[k];
        if (s->has_next) {
            assert_memory_equal(s->next.hash, right.hash, sizeof right.hash);
            rfi_runfile_free(&s->next);
        }
        rfi_runfile_free(&s->file);
    }
    rfi_runfile_free(&right);
}

static void everybody_gets_the_right_file_and_no_other(void **state)
{
    (void)state;
    static world w;
    static text bad[6];
    text first = sign(1, 0, plain, BOSS, BOSS);
    text good = sign(2, 50, plain, BOSS, BOSS);
    bad[0] = first;
    bad[1] = sign(3, 90, plain, BOSS, BOSS);
    bad[2] = sign(2, 50, plain, MALLORY, MALLORY);
    bad[3] = sign(2, 50, "rule: mean\nmalicious: 0.25\n", BOSS, BOSS);
    bad[4] = good;
    bad[4].bytes[good.size / 2] ^= 1;
    bad[5] = (text){"garbage", 7};
    for (uint64_t seed = 1; seed <= 200; seed++) {
        w.random = seed;
        play(&w, &first, &good, bad, 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_file_is_judged),
        cmocka_unit_test(checks_are_bounded),
        cmocka_unit_test(everybody_gets_the_right_file_and_no_other),
    };
    if (rfi_crypto_start(NULL) != REEF_OK) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
