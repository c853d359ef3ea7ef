/* Run files: what is read, what is refused and with which words, signatures, and what a file means for each agent. */
#include "net/roster.h"
#include "net/keys.h"
#include "net/runfile.h"

#include "net/frames.h"
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGENTS = 5, ROOM = 8192 };

/* A draft with the lines that tests want to be otherwise: `more` is put at its end. */
static size_t write_draft(char draft[ROOM], const char *more)
{
    char coordinator[RFI_KEY_TEXT];
    rfi_keys keys = frames_keys(90);
    rfi_key_print(coordinator, RFI_LETTER_IDENTITY, keys.public_key);
    int used =
        snprintf(draft, ROOM, "reef: 1\nrun: ward-7\nid: 5f0c9a1be2d34c77a1b09c55e0d1f2a3\ncoordinator: %s\nagents:\n",
                 coordinator);
    for (uint32_t k = 0; k < AGENTS; k++) {
        char identity[RFI_KEY_TEXT];
        char login[RFI_KEY_TEXT];
        rfi_keys one = frames_keys(k);
        rfi_keys two = frames_keys(k + 20);
        rfi_key_print(identity, RFI_LETTER_IDENTITY, one.public_key);
        rfi_key_print(login, RFI_LETTER_LOGIN, two.public_key);
        used += snprintf(draft + used, (size_t)(ROOM - used), "  agent%u: \"%s %s\"\n", (unsigned)k, identity, login);
    }
    used += snprintf(draft + used, (size_t)(ROOM - used), "%s", more);
    assert_true(used < ROOM);
    return (size_t)used;
}

static const char plain[] =
    "graph: complete\nrule: mref\nmodel: {count: 1000, type: f64}\nmalicious: 0.25\ndeadline: 1.5min\n"
    "chunk: 64KiB\nbrokers: [\"tls://a.example:4222\"]\n";

static reef_status read_text(const char *draft, size_t size, uint32_t signer, rfi_runfile *file, reef_error *error)
{
    char text[ROOM + RFI_SIGNED_SIZE];
    rfi_keys keys = frames_keys(signer);
    memcpy(text, draft, size);
    size_t length = rfi_runfile_sign(draft, size, &keys, text + size);
    return rfi_runfile_read(NULL, text, size + length, "run.yaml", file, error);
}

static reef_status read_more(const char *more, rfi_runfile *file, reef_error *error)
{
    char draft[ROOM];
    size_t size = write_draft(draft, more);
    return read_text(draft, size, 90, file, error);
}

static void reads_a_file(void **state)
{
    rfi_runfile file;
    reef_error error = {REEF_OK, ""};
    (void)state;
    CHECK(read_more(plain, &file, &error) == REEF_OK, "%s", error.text);
    assert_string_equal(file.run, "ward-7");
    assert_int_equal(file.id[0], 0x5f);
    assert_int_equal(file.id[15], 0xa3);
    assert_int_equal(file.agents, AGENTS);
    assert_string_equal(file.participants[4].name, "agent4");
    rfi_keys keys = frames_keys(3);
    assert_int_equal(rfi_runfile_find(&file, keys.public_key), 3);
    assert_int_equal(rfi_runfile_named(&file, "agent3"), 3);
    assert_int_equal(rfi_runfile_named(&file, "mallory"), -1);
    assert_int_equal(file.shape.count, 1000);
    assert_int_equal(file.shape.numbers, RFI_NUMBERS_F64);
    assert_int_equal(file.shape.chunk, 65536);
    CHECK_CLOSE(file.deadline, 90, 0, "deadline");
    CHECK_CLOSE(file.terms.malicious, 0.25, 0, "malicious");
    assert_int_equal(file.terms.stale, 1);
    assert_false(rfi_runfile_local(&file) || file.is_test);
    rfi_runfile_free(&file);
}

/* Whatever bit is changed: the file is refused, or it was in the blanks of its last line. */
static void every_change_is_seen(void **state)
{
    char text[ROOM + RFI_SIGNED_SIZE];
    rfi_keys keys = frames_keys(90);
    (void)state;
    size_t size = write_draft(text, plain);
    size += rfi_runfile_sign(text, size, &keys, text + size);
    for (size_t i = 0; i < size - 1; i++) { /* the last newline may be missing */
        rfi_runfile file;
        text[i] = (char)(text[i] ^ (1 << i % 7));
        CHECK(rfi_runfile_read(NULL, text, size, "run.yaml", &file, NULL) != REEF_OK, "byte %zu", i);
        text[i] = (char)(text[i] ^ (1 << i % 7));
        if (i % 16 == 0) {
            assert_int_not_equal(rfi_runfile_read(NULL, text, i, "run.yaml", &file, NULL), REEF_OK);
        }
    }
}

static void another_signer_is_refused(void **state)
{
    char draft[ROOM];
    rfi_runfile file;
    reef_error error = {REEF_OK, ""};
    (void)state;
    size_t size = write_draft(draft, plain);
    assert_int_equal(read_text(draft, size, 91, &file, &error), REEF_E_FORMAT);
    assert_non_null(strstr(error.text, "another key"));
    char key[RFI_KEY_TEXT];
    rfi_keys keys = frames_keys(91);
    assert_int_equal(read_text(draft, size, 90, &file, &error), REEF_OK);
    rfi_key_print(key, RFI_LETTER_IDENTITY, keys.public_key);
    assert_int_equal(rfi_runfile_signed_by(&file, key, &error), REEF_E_FORMAT);
    keys = frames_keys(90);
    rfi_key_print(key, RFI_LETTER_IDENTITY, keys.public_key);
    assert_int_equal(rfi_runfile_signed_by(&file, key, &error), REEF_OK);
    assert_int_equal(rfi_runfile_signed_by(&file, "Rabc", &error), REEF_E_ARG);
    rfi_runfile_free(&file);
}

/* A line that is wrong, and words that the message must have. */
static void wrong_lines_are_explained(void **state)
{
    static const struct {
        const char *more, *words;
    } cases[] = {
        {"brokers: [\"tls://a:1\"]\ngraph: complete\nmodel: {count: 3}\n", "rule is missing"},
        {"rule: ref\ngraph: complete\nmodel: {count: 3}\n", "brokers is missing"},
        {"rule: ref\nbrokers: [\"tls://a:1\"]\nmodel: {count: 3}\n", "graph or links"},
        {"rule: ref\nbrokers: [\"tls://a:1\"]\ngraph: complete\n", "count"},
        {"rule: ref\nbrokers: [\"nats://a.example:1\"]\n", "tls://"},
        {"rule: ref\nbrokers: [\"nats://127.0.0.1:1@evil.example:2\"]\n", "tls://"},
        {"rule: ref\nbrokers: []\n", "1 to 8"},
        {"brokers: [\"tls://a.example\"]\n", "tls://HOST:PORT"},
        {"brokers: [\"tls://a.example:0\"]\n", "tls://HOST:PORT"},
        {"brokers: [\"tls://a.example:65536\"]\n", "tls://HOST:PORT"},
        {"brokers: [\"tls://[::1]\"]\n", "tls://HOST:PORT"},
        {"brokers: [\"nats://127.0.0.1:70000\"]\n", "tls://HOST:PORT"},
        {"malicious: 0.5\n", "malicious"},
        {"stale: 3\n", "stale"},
        {"colour: red\n", "no key 'colour'; there are: reef, run, id, coordinator, deadline, chunk, agents, "},
        {"broker: [\"tls://a:1\"]\n", "no key 'broker'; did you mean 'brokers'?"},
        {"observer: {desk: U}\n", "no key 'observer'; did you mean 'observers'?"},
        {"ruel: ref\n", "no key 'ruel'; did you mean 'rule'?"},
        {"deadline: 5\n", "deadline"},
        {"deadline: 2e9s\n", "deadline"},
        {"chunk: 1KiB\n", "64KiB"},
        {"model: {count: 1.5}\n", "count"},
        {"model: {count: 3000000000}\n", "count"},
        {"model: {type: f16}\n", "f32"},
        {"model: {shape: 3}\n", "layout"},
        {"observers: {desk: U}\n", "keys"},
        {"observers: {Desk: U}\n", "names"},
        {"rule: ref\nbrokers: [\"tls://a:1\"]\ngraph: complete\nmodel: {count: 3}\ntest: {drop: 0.1}\n",
         "this machine"},
        {"test: {drop: 1}\n", "drop"},
        {"test: 3\n", "map"},
        {"seed: [1, 2]\n", "single"},
        {"leaves: {east: U}\n", "a leaf is"},
        {"leaves: {East: U}\n", "names"},
        {"leaves: {}\n", "1 to 64"},
        {"leaves: [east]\n", "1 to 64"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        rfi_runfile file;
        reef_error error = {REEF_OK, ""};
        CHECK(read_more(cases[i].more, &file, &error) == REEF_E_FORMAT, "case %td", i);
        CHECK(strstr(error.text, cases[i].words), "case %td: %s", i, error.text);
    }
}

/* A draft whose agent 1 is behind a leaf, or agent 1 with other words behind its keys. */
static reef_status read_leaves(const char *words, uint32_t key, rfi_runfile *file, reef_error *error)
{
    char more[1024];
    char draft[ROOM];
    char moved[ROOM];
    char east[RFI_KEY_TEXT];
    char west[RFI_KEY_TEXT];
    rfi_key_print(east, RFI_LETTER_LOGIN, frames_keys(40).public_key);
    rfi_key_print(west, RFI_LETTER_LOGIN, frames_keys(key).public_key);
    (void)snprintf(more, sizeof more,
                   "%sleaves:\n  east: \"%s tls://east.example:4222\"\n  west: \"%s tls://west.example:1\"\n", plain,
                   east, west);
    (void)write_draft(draft, more);
    char *end = strstr(strstr(draft, "agent1: ") + 9, "\"");
    int size = snprintf(moved, sizeof moved, "%.*s%s%s", (int)(end - draft), draft, words, end);
    return read_text(moved, (size_t)size, 90, file, error);
}

static void agents_stand_behind_leaves(void **state)
{
    rfi_runfile file;
    reef_error error = {REEF_OK, ""};
    rfi_keys east = frames_keys(40);
    rfi_keys west = frames_keys(41);
    (void)state;
    CHECK(read_leaves(" west east", 41, &file, &error) == REEF_OK, "%s", error.text);
    assert_true(rfi_runfile_behind(&file, 1, east.public_key) && rfi_runfile_behind(&file, 1, west.public_key));
    assert_false(rfi_runfile_behind(&file, 0, east.public_key) || rfi_runfile_behind(&file, AGENTS, east.public_key));
    assert_false(rfi_runfile_behind(&file, 1, frames_keys(42).public_key));
    rfi_runfile_stand(&file, 0);
    assert_int_equal(file.brokers, 1);
    assert_string_equal(file.broker[0], "tls://a.example:4222");
    rfi_runfile_stand(&file, 1);
    rfi_runfile_stand(&file, 1);
    assert_int_equal(file.brokers, 2);
    assert_string_equal(file.broker[0], "tls://west.example:1");
    assert_string_equal(file.broker[1], "tls://east.example:4222");
    rfi_runfile_free(&file);
    static const struct {
        const char *words;
        uint32_t key;
        const char *why;
    } wrong[] = {{" north", 41, "'north' is not one"}, {" east east", 41, "each once"},
                 {" eas", 41, "'eas' is not one"},     {" east  west", 41, "is not one"},
                 {" east ", 41, "is not one"},         {"  east", 41, "is not one"},
                 {"", 40, "the key of somebody else"}, {"", 21, "the key of somebody else"}};
    for (ptrdiff_t i = 0; i < COUNT(wrong); i++) {
        CHECK(read_leaves(wrong[i].words, wrong[i].key, &file, &error) == REEF_E_FORMAT, "case %td", i);
        CHECK(strstr(error.text, wrong[i].why), "case %td: %s", i, error.text);
    }
}

static void one_key_one_place(void **state)
{
    char draft[ROOM];
    rfi_runfile file;
    reef_error error = {REEF_OK, ""};
    (void)state;
    size_t size = write_draft(draft, plain);
    char *first = strstr(draft, "agent0: ");
    char *second = strstr(draft, "agent1: ");
    memcpy(second + 8, first + 8, 58); /* the identity */
    assert_int_equal(read_text(draft, size, 90, &file, &error), REEF_E_FORMAT);
    assert_non_null(strstr(error.text, "agent0 and agent1 have the same key"));
}

static void one_login_one_list(void **state)
{
    static const uint32_t logins[][2] = {{23, 50}, {50, 50}, {51, 50}}; /* agent3 has 23 */
    static const char *const words[] = {"the observer one has the login of agent3", "two has the login of one", NULL};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(logins); i++) {
        char more[1024];
        char texts[2][RFI_KEY_TEXT];
        rfi_runfile file;
        reef_error error = {REEF_OK, ""};
        for (int k = 0; k < 2; k++) {
            rfi_keys keys = frames_keys(logins[i][k]);
            rfi_key_print(texts[k], RFI_LETTER_LOGIN, keys.public_key);
        }
        (void)snprintf(more, sizeof more, "%sobservers: {one: \"%s\", two: \"%s\"}\n", plain, texts[0], texts[1]);
        reef_status status = read_more(more, &file, &error);
        CHECK(status == (words[i] ? REEF_E_FORMAT : REEF_OK), "case %td: %s", i, error.text);
        CHECK(!words[i] || strstr(error.text, words[i]), "case %td: %s", i, error.text);
        if (status == REEF_OK) {
            rfi_runfile_free(&file);
        }
    }
}

static void sealing_is_part_of_what_is_signed(void **state)
{
    rfi_runfile file;
    reef_error error = {REEF_OK, ""};
    char more[600];
    char draft[ROOM];
    char nobody[RFI_KEY_TEXT];
    const unsigned char none[RFI_KEY_BYTES] = {0};
    (void)state;
    assert_int_equal(read_more(plain, &file, &error), REEF_OK);
    assert_false(file.terms.seal || file.shape.sealed);
    rfi_runfile_free(&file);
    (void)snprintf(more, sizeof more, "%sseal: true\n", plain);
    CHECK(read_more(more, &file, &error) == REEF_OK, "%s", error.text);
    assert_true(file.terms.seal && file.shape.sealed);
    rfi_runfile_free(&file);
    /* an identity that nobody can have made: openly it does no harm, and nothing can be sealed for it */
    rfi_key_print(nobody, RFI_LETTER_IDENTITY, none);
    for (int sealed = 0; sealed < 2; sealed++) {
        size_t size = write_draft(draft, sealed ? more : plain);
        memcpy(strstr(draft, "agent3: ") + strlen("agent3: \""), nobody, RFI_KEY_TEXT - 1);
        reef_status status = read_text(draft, size, 90, &file, &error);
        assert_int_equal(status, sealed ? REEF_E_FORMAT : REEF_OK);
        if (status == REEF_OK) {
            rfi_runfile_free(&file);
        }
    }
    CHECK(strstr(error.text, "nothing can be sealed for the identity of agent3"), "%s", error.text);
}

/* Where links have a direction, those are given keys who hear, not those who are heard. */
static void hearers_are_those_who_hear(void **state)
{
    rfi_runfile file;
    rfi_roster roster;
    reef_error error = {REEF_OK, ""};
    rfi_neighbour heard[RFI_NEIGHBOURS_MAX];
    rfi_hearer hearers[RFI_HEARERS_MAX];
    bool hears[AGENTS][AGENTS] = {{false}};
    double own = 0;
    int one_way = 0;
    (void)state;
    CHECK(read_more("graph: \"erdos_renyi:p=0.6,directed=true\"\nseed: 2\nrule: mean\nmodel: {count: 3}\nweights: "
                    "uniform\nseal: true\n"
                    "brokers: [\"tls://a:1\"]\n",
                    &file, &error) == REEF_OK,
          "%s", error.text);
    CHECK(rfi_roster_create(NULL, &file, &roster, &error) == REEF_OK, "%s", error.text);
    for (ptrdiff_t k = 0; k < AGENTS; k++) {
        ptrdiff_t count = rfi_roster_neighbours(&roster, k, heard, &own);
        for (ptrdiff_t i = 0; i < count; i++) {
            hears[k][heard[i].agent] = true;
        }
    }
    for (ptrdiff_t k = 0; k < AGENTS; k++) {
        ptrdiff_t count = rfi_roster_hearers(&roster, k, hearers);
        assert_int_equal(count, rfi_roster_hearers(&roster, k, NULL));
        ptrdiff_t next = 0;
        for (uint32_t l = 0; l < AGENTS; l++) {
            unsigned char address[RFI_KEY_BYTES];
            one_way += hears[l][k] && !hears[k][l];
            if (hears[l][k]) {
                assert_true(next < count && hearers[next].agent == l);
                assert_true(rfi_box_address(address, file.participants[l].identity));
                assert_memory_equal(hearers[next++].address, address, sizeof address);
            }
        }
        assert_int_equal(next, count);
    }
    assert_true(one_way > 0);
    rfi_roster_free(&roster);
    rfi_runfile_free(&file);
}

/* Beside the model, its encrypted form, and with it what goes over the line. */
static void what_sealing_takes_is_counted(void **state)
{
    static const char *const seals[] = {"false", "true"};
    enum { MODEL = 400000, CHUNKS = 7, OTHERS = 4 };
    rfi_tolerance t[2];
    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        rfi_runfile file;
        rfi_roster roster;
        char more[600];
        reef_error error = {REEF_OK, ""};
        (void)snprintf(more, sizeof more,
                       "graph: complete\nrule: mean\nmodel: {count: 100000}\nchunk: 64KiB\nseal: %s\nbrokers: "
                       "[\"tls://a:1\"]\n",
                       seals[sealed]);
        CHECK(read_more(more, &file, &error) == REEF_OK, "%s", error.text);
        CHECK(rfi_roster_create(NULL, &file, &roster, &error) == REEF_OK, "%s", error.text);
        rfi_roster_tolerance(&roster, 1, &t[sealed]);
        rfi_roster_free(&roster);
        rfi_runfile_free(&file);
    }
    size_t sent = MODEL + CHUNKS * RFI_SEAL_BYTES;
    assert_in_range(t[1].memory - t[0].memory, sent, sent + 4096);
    double each = CHUNKS * RFI_SEAL_BYTES + OTHERS * RFI_SEALED_BOX;
    CHECK_CLOSE(t[1].traffic - t[0].traffic, (OTHERS + 1) * each, 1e-6, "traffic");
}

static void knows_neighbourhoods(void **state)
{
    rfi_runfile file;
    rfi_roster roster;
    rfi_tolerance t;
    rfi_neighbour list[RFI_NEIGHBOURS_MAX];
    double own = 0;
    reef_error error = {REEF_OK, ""};
    (void)state;
    CHECK(read_more(plain, &file, &error) == REEF_OK, "%s", error.text);
    CHECK(rfi_roster_create(NULL, &file, &roster, &error) == REEF_OK, "%s", error.text);
    assert_int_equal(rfi_roster_neighbours(&roster, 2, list, &own), 4);
    CHECK_CLOSE(own, 0.2, 1e-12, "own weight");
    assert_int_equal(list[2].agent, 3);
    rfi_keys keys = frames_keys(3);
    assert_memory_equal(list[2].key, keys.public_key, RFI_KEY_BYTES);
    rfi_roster_tolerance(&roster, 2, &t); /* five fifths; one of them is below 0.25, and two may be missing */
    assert_int_equal(t.malicious, 1);
    assert_int_equal(t.absent, 2);
    /* two models of each neighbour and ten more; messages that wait and the plan are less than 1 MB */
    assert_true(t.memory > (size_t)18 * 8000 && t.memory < 18 * 8000 + (size_t)1000000);
    rfi_roster_free(&roster);
    rfi_runfile_free(&file);
}

static void takes_links_by_name(void **state)
{
    static const struct {
        const char *links;
        const char *words; /* NULL: good */
    } cases[] = {
        {"agent0~agent1 agent1~agent2  agent2~agent3 agent3~agent4 agent4~agent0", NULL},
        {"agent0~agent1 agent2~agent3 agent3~agent4", "2 parts"},
        {"agent0~agent1 agent1~mallory", "mallory"},
        {"agent0 agent1", "agent0"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        rfi_runfile file;
        rfi_roster roster;
        char more[600];
        reef_error error = {REEF_OK, ""};
        (void)snprintf(more, sizeof more, "links: %s\nrule: ref\nmodel: {count: 3}\nbrokers: [\"tls://a:1\"]\n",
                       cases[i].links);
        CHECK(read_more(more, &file, &error) == REEF_OK, "%s", error.text);
        reef_status status = rfi_roster_create(NULL, &file, &roster, &error);
        CHECK((status == REEF_OK) == !cases[i].words, "case %td: %s", i, error.text);
        CHECK(!cases[i].words || strstr(error.text, cases[i].words), "case %td: %s", i, error.text);
        rfi_roster_free(&roster);
        rfi_runfile_free(&file);
    }
}

static void unusable_terms_are_refused(void **state)
{
    static const struct {
        const char *more, *words;
    } cases[] = {
        {"graph: complete\nrule: krum:f=9\nmodel: {count: 3}\n", "krum"},
        {"graph: complete\nrule: nothing\nmodel: {count: 3}\n", "nothing"},
        {"graph: complete\nrule: ref\nstrategy: diffusio:mu=0.1\nmodel: {count: 3}\n", "did you mean 'diffusion'?"},
        {"graph: complete\nrule: ref\nstrategy: diffusion:mu=fast\nmodel: {count: 3}\n", "mu = 'fast'"},
        {"graph: complete\nrule: ref\nstrategy: diffusion:order=cta\nmodel: {count: 3}\n", "order=atc"},
        {"graph: \"file:path=/etc/passwd\"\nrule: ref\nmodel: {count: 3}\n", "another file"},
        {"graph: \"complete:loops=false\"\nrule: ref\nmodel: {count: 3}\n", "hear itself"},
        {"graph: complete\nrule: ref\nmodel: {count: 3}\ntest: {malicious: \"7\"}\n", "number of an agent"},
        {"graph: complete\nrule: ref\nmodel: {count: 3}\ntest: {problem: lms}\n", "numbers"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        rfi_runfile file;
        rfi_roster roster;
        char more[600];
        reef_error error = {REEF_OK, ""};
        (void)snprintf(more, sizeof more, "%sbrokers: [\"nats://127.0.0.1:1\"]\n", cases[i].more);
        CHECK(read_more(more, &file, &error) == REEF_OK, "case %td: %s", i, error.text);
        CHECK(rfi_roster_create(NULL, &file, &roster, &error) != REEF_OK, "case %td", i);
        CHECK(strstr(error.text, cases[i].words), "case %td: %s", i, error.text);
        rfi_runfile_free(&file);
    }
}

static int start(void **state)
{
    (void)state;
    return rfi_crypto_start(NULL) == REEF_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_file),
        cmocka_unit_test(every_change_is_seen),
        cmocka_unit_test(another_signer_is_refused),
        cmocka_unit_test(wrong_lines_are_explained),
        cmocka_unit_test(agents_stand_behind_leaves),
        cmocka_unit_test(one_key_one_place),
        cmocka_unit_test(one_login_one_list),
        cmocka_unit_test(sealing_is_part_of_what_is_signed),
        cmocka_unit_test(hearers_are_those_who_hear),
        cmocka_unit_test(what_sealing_takes_is_counted),
        cmocka_unit_test(knows_neighbourhoods),
        cmocka_unit_test(takes_links_by_name),
        cmocka_unit_test(unusable_terms_are_refused),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
