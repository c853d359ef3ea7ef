/* Agents with a thread of their own, as programs have them, over a real nats-server: each is driven by another thread of the program, and
 * libnats brings messages on a third kind. ThreadSanitizer watches this test. */
#include "net/agent.h"
#include "net/broker.h"
#include "net/journal.h"
#include "net/keys.h"
#include "net/link_nats.h"
#include "net/roster.h"
#include "net/server.h"
#include "support/check.h"

#include <reef/net.h>

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { AGENTS = 3, NUMBERS = 20000, ROUNDS = 5, SECONDS = 120, FROM = 10 };

typedef struct player {
    reef_agent *agent;
    int number;
    double model[NUMBERS];
    char trouble[200]; /* what went wrong; "": nothing */
} player;

typedef struct world {
    scratch folder, states[AGENTS];
    server server;
    char run[SCRATCH_PATH];
    char keys[AGENTS][SCRATCH_PATH];
    player players[AGENTS];
} world;

/* ---- a run ---- */

/* Makes the keys at the first call, and the run file with the port of the broker; `after`: of the next epoch, from round FROM on, behind the file
 * of that name. */
static void write_epoch(world *w, int port, const char *after)
{
    static char people[AGENTS][REEF_NET_KEYS_SIZE], boss[REEF_NET_KEYS_SIZE];
    char path[SCRATCH_PATH];
    char key[SCRATCH_PATH];
    char text[4096];
    reef_error error = {REEF_OK, ""};
    (void)scratch_path(&w->folder, "boss", key);
    if (access(key, F_OK) != 0) {
        CHECK(reef_net_key_make(key, boss, &error) == REEF_OK, "%s", error.text);
    }
    int length =
        snprintf(text, sizeof text,
                 "epoch: %d\nfrom: %d\nreef: 1\nrun: t\nid: 000102030405060708090a0b0c0d0e0f\ncoordinator: "
                 "%.*s\ngraph: complete\n"
                 "weights: uniform\nrule: mean\nmalicious: 0.2\ndeadline: 60s\nchunk: 64KiB\n"
                 "model: {count: %d, type: f64}\nbrokers: [\"nats://127.0.0.1:%d\"]\ntest: {wait: true}\nagents:\n",
                 after ? 2 : 1, after ? FROM : 0, (int)strcspn(boss, " "), boss, (int)NUMBERS, port);
    for (int k = 0; k < AGENTS; k++) {
        char name[16];
        (void)snprintf(name, sizeof name, "key-%d", k);
        (void)scratch_path(&w->folder, name, w->keys[k]);
        if (access(w->keys[k], F_OK) != 0) {
            CHECK(reef_net_key_make(w->keys[k], people[k], &error) == REEF_OK, "%s", error.text);
        }
        length += snprintf(text + length, sizeof text - (size_t)length, "  agent-%d: \"%s\"\n", k, people[k]);
    }
    (void)scratch_file(&w->folder, "draft", text, (size_t)length, path);
    (void)unlink(scratch_path(&w->folder, "run", w->run));
    CHECK(reef_net_sign_after(path, key, after, 0, w->run, &error) == REEF_OK, "%s", error.text);
}

static void write_run(world *w, int port)
{
    write_epoch(w, port, NULL);
}

static bool next_stream(void *user, ptrdiff_t index, char *name, char *body)
{
    return rfi_stream_request(user, index, name, body);
}

/* A server with the permissions of the run, and its streams. Its port is known only afterwards, and permissions do not depend on it. */
static void start_server(world *w)
{
    rfi_runfile file;
    rfi_roster roster;
    rfi_keys login;
    unsigned char seed[RFI_KEY_BYTES];
    char store[SCRATCH_PATH];
    reef_error error = {REEF_OK, ""};
    rfi_page page = {0};
    CHECK(rfi_runfile_load(NULL, w->run, &file, &error) == REEF_OK, "%s", error.text);
    CHECK(rfi_roster_create(NULL, &file, &roster, &error) == REEF_OK, "%s", error.text);
    rfi_random(seed, sizeof seed);
    rfi_keys_derive(&login, seed, RFI_KEY_LOGIN);
    scratch_open(&w->server.folder); /* the server removes its store with it */
    (void)snprintf(store, sizeof store, "%s.store", w->server.folder.folder);
    assert_int_equal(mkdir(store, 0700), 0);
    const rfi_broker_setup setup = {.listen = "127.0.0.1:-1", .store = store, .operator_login = &login};
    CHECK(rfi_broker_config(&roster, &setup, &page, &error) == REEF_OK, "%s", error.text);
    server_start(&w->server, page.text);
    rfi_page_free(&page);
    const rfi_nats_operator by = {.url = w->server.url, .login = &login};
    CHECK(rfi_nats_make_streams(&by, next_stream, &roster, &error) == REEF_OK, "%s", error.text);
    rfi_roster_free(&roster);
    rfi_runfile_free(&file);
}

static int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);
    *state = w;
    if (!w || rfi_crypto_start(NULL) != REEF_OK) {
        return -1;
    }
    scratch_open(&w->folder);
    write_run(w, 4222);
    start_server(w);
    write_run(w, w->server.port);
    for (int k = 0; k < AGENTS; k++) {
        reef_error error = {REEF_OK, ""};
        scratch_open(&w->states[k]);
        w->players[k].number = k;
        CHECK(reef_agent_create(&w->players[k].agent, w->run, w->keys[k], NULL, w->states[k].folder, NULL, &error) ==
                  REEF_OK,
              "%s", error.text);
    }
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;
    for (int k = 0; k < AGENTS; k++) {
        reef_agent_destroy(&w->players[k].agent);
        scratch_close(&w->states[k]);
    }
    server_end(&w->server);
    scratch_close(&w->folder);
    free(w);
    return 0;
}

/* ---- programs ---- */

/* Notes what went wrong; assertions are for the thread of the test. */
static bool must(player *p, bool good, const char *what, const reef_error *error)
{
    if (!good && !p->trouble[0]) {
        (void)snprintf(p->trouble, sizeof p->trouble, "%s: %.150s", what, error->text);
    }
    return good;
}

static bool join(player *p)
{
    reef_error error = {REEF_OK, ""};
    int ready = 0;
    int joined = 0;
    for (int i = 0; i < SECONDS && !ready; i++) {
        if (!must(p, reef_agent_join(p->agent, 1, p->model, &ready, &joined, &error) == REEF_OK, "join", &error)) {
            return false;
        }
    }
    return must(p, ready, "nobody is there", &error);
}

static bool exchange(player *p)
{
    reef_error error = {REEF_OK, ""};
    int done = 0;
    if (!must(p, reef_agent_begin(p->agent, p->model, &error) == REEF_OK, "begin", &error)) {
        return false;
    }
    for (int i = 0; i < SECONDS && !done; i++) {
        if (!must(p, reef_agent_wait(p->agent, 1, p->model, &done, &error) == REEF_OK, "wait", &error)) {
            return false;
        }
    }
    return must(p, done, "the round does not end", &error);
}

/* Everybody's model is the mean of all, and the report says so. */
static void check_round(player *p, int64_t round)
{
    reef_error error = {REEF_OK, "another result"};
    double mean = (AGENTS - 1) / 2.0 + (double)round;
    must(p, reef_agent_combined(p->agent) && reef_agent_weight(p->agent) > 0.999, "not everybody was there", &error);
    must(p, p->model[0] == mean && p->model[NUMBERS - 1] == mean, "the mean", &error);
    must(p, reef_agent_round(p->agent) == round + 1, "round", &error);
    for (ptrdiff_t l = 0; l < reef_agent_neighbours(p->agent); l++) {
        must(p, reef_agent_presence(p->agent, l) == REEF_FRESH && reef_agent_refused(p->agent, l)[0] == '\0',
             "presence", &error);
        must(p, reef_agent_trust(p->agent, l) > 0.999 && strncmp(reef_agent_name(p->agent, l), "agent-", 6) == 0,
             "trust", &error);
    }
}

static void *play(void *user)
{
    player *p = user;
    reef_error error = {REEF_OK, ""};
    bool good = join(p);
    for (int64_t round = 0; good && round < ROUNDS; round++) {
        for (ptrdiff_t i = 0; i < NUMBERS; i++) {
            p->model[i] = p->number + (double)round;
        }
        must(p, reef_agent_note(p->agent, "loss", (double)round, &error) == REEF_OK, "note", &error);
        good = exchange(p);
        if (good) {
            check_round(p, round);
        }
    }
    return NULL;
}

static void agents_of_one_program_learn_together(void **state)
{
    world *w = *state;
    pthread_t threads[AGENTS];
    for (int k = 0; k < AGENTS; k++) {
        assert_int_equal(pthread_create(&threads[k], NULL, play, &w->players[k]), 0);
    }
    for (int k = 0; k < AGENTS; k++) {
        assert_int_equal(pthread_join(threads[k], NULL), 0);
    }
    for (int k = 0; k < AGENTS; k++) {
        CHECK(!w->players[k].trouble[0], "agent %d: %s", k, w->players[k].trouble);
    }
}

/* One closes in the middle of a round, whatever its thread is doing. */
static void an_agent_can_be_closed_at_any_time(void **state)
{
    world *w = *state;
    player *p = &w->players[0];
    reef_error error = {REEF_OK, ""};
    CHECK(join(p), "%s", p->trouble);
    assert_int_equal(reef_agent_begin(p->agent, p->model, &error), REEF_OK);
    assert_int_equal(reef_agent_begin(p->agent, p->model, &error), REEF_E_ORDER); /* one at a time */
    reef_agent_destroy(&p->agent);
    assert_null(p->agent);
    reef_status status = reef_agent_create(&p->agent, w->run, w->keys[0], NULL, w->states[0].folder, NULL, &error);
    CHECK(status == REEF_OK, "%s", error.text); /* and its folder is free again */
}

/* A newcomer that hears everybody, while they are too far apart for a quorum of models, is not told that it hears too few. */
static void what_is_waited_for_is_not_what_is_there(void **state)
{
    (void)state;
    assert_non_null(strstr(rfi_agent_lacks(0.2, 0.6), "too few neighbours"));
    assert_non_null(strstr(rfi_agent_lacks(0.6, 0.6), "too few neighbours"));
    assert_null(strstr(rfi_agent_lacks(0.8, 0.6), "too few neighbours"));
    assert_non_null(strstr(rfi_agent_lacks(0.8, 0.6), "models"));
}

/* The state folder of agent 0, with a journal that allows to sign from round `next` on alone. */
static void sign_until(world *w, uint64_t next)
{
    static const unsigned char mark[RFI_HASH_BYTES];
    char path[SCRATCH_PATH];
    rfi_runfile file;
    rfi_secret secret;
    rfi_journal journal;
    reef_error error = {REEF_OK, ""};
    CHECK(rfi_runfile_load(NULL, w->run, &file, &error) == REEF_OK, "%s", error.text);
    CHECK(rfi_secret_read(w->keys[0], &secret, &error) == REEF_OK, "%s", error.text);
    (void)scratch_path(&w->states[0], "journal", path);
    CHECK(rfi_journal_open(&journal, NULL, path, file.id, secret.identity.public_key, true, &error) == REEF_OK, "%s",
          error.text);
    CHECK(rfi_journal_record(&journal, next - 1, mark, &error) == REEF_OK, "%s", error.text);
    rfi_journal_close(&journal);
    rfi_runfile_free(&file);
}

/* An agent that is started after the next epoch has begun goes over to it at once, while its program asks what models of the run are like. */
static void what_models_are_like_is_known_while_the_epoch_changes(void **state)
{
    enum { ASKED = 1000 };
    world *w = *state;
    player *p = &w->players[0];
    char first[SCRATCH_PATH];
    char before[SCRATCH_PATH];
    struct timespec began;
    struct timespec now;
    reef_error error = {REEF_OK, ""};
    reef_agent_destroy(&p->agent);
    sign_until(w, 2 * FROM);
    assert_int_equal(rename(w->run, scratch_path(&w->folder, "first", first)), 0);
    write_epoch(w, w->server.port, first);
    (void)scratch_path(&w->states[0], "run.before.yaml", before);
    CHECK(reef_agent_create(&p->agent, w->run, w->keys[0], NULL, w->states[0].folder, NULL, &error) == REEF_OK, "%s",
          error.text);
    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    while (access(before, F_OK) != 0) {
        for (int i = 0; i < ASKED; i++) {
            assert_true(reef_agent_dimension(p->agent) == NUMBERS && reef_agent_double(p->agent));
        }
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        CHECK(now.tv_sec - began.tv_sec < SECONDS, "it does not go over to the next epoch");
    }
    (void)unlink(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(agents_of_one_program_learn_together, set_up, tear_down),
        cmocka_unit_test(what_is_waited_for_is_not_what_is_there),
        cmocka_unit_test_setup_teardown(an_agent_can_be_closed_at_any_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_models_are_like_is_known_while_the_epoch_changes, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
