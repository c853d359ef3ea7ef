/* What an observer makes of frames that agents have signed, without a broker. */
#include "net/dash_watch.h"
#include "net/echo.h"
#include "net/frames.h"
#include "net/keys.h"
#include "net/runfile.h"
#include "net/status.h"
#include "support/check.h"
#include "support/scratch.h"

#include <reef/net.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { AGENTS = 5, LINES = 1 << 16 };

/* A run of agents that all hear each other, and who watches it; nobody listens where its broker should be. */
typedef struct world {
    scratch folder;
    rfi_runfile file;
    rfi_runfile next;        /* of the second epoch: agent 3 leaves, agent 5 joins */
    const rfi_runfile *told; /* the one that agents work by: file or next */
    rfi_secret secrets[AGENTS + 1];
    char boss[SCRATCH_PATH], run[SCRATCH_PATH];
    char heads[REEF_NET_KEYS_SIZE]; /* lines of the coordinator, */
    char agents[4096];              /* of agents, */
    char eyes[REEF_NET_KEYS_SIZE];  /* and the observer's login */
    rfi_dash *dash;
    rfi_watch *watch;
    char lines[LINES];
} world;

/* Makes keys of everybody. */
static void enrol(world *w, char *key)
{
    char path[SCRATCH_PATH];
    char keys[REEF_NET_KEYS_SIZE];
    char name[16];
    size_t length = 0;
    assert_int_equal(reef_net_key_make(scratch_path(&w->folder, "boss", w->boss), w->heads, NULL), REEF_OK);
    w->heads[strcspn(w->heads, " ")] = '\0';
    for (int k = 0; k <= AGENTS; k++) {
        (void)snprintf(name, sizeof name, "key-%d", k);
        assert_int_equal(reef_net_key_make(scratch_path(&w->folder, name, path), keys, NULL), REEF_OK);
        assert_int_equal(rfi_secret_read(path, &w->secrets[k], NULL), REEF_OK);
        length += (size_t)snprintf(w->agents + length, sizeof w->agents - length, "  agent-%d: \"%s\"\n", k, keys);
    }
    assert_int_equal(reef_net_key_make(scratch_path(&w->folder, "eyes", key), w->eyes, NULL), REEF_OK);
}

/* Signs a run file of the first or the second epoch. */
static void sign_run(const world *w, const char *boss, int epoch, const char *name, char *run)
{
    char path[SCRATCH_PATH];
    char text[8192];
    char agents[4096];
    (void)snprintf(agents, sizeof agents, "%s", w->agents);
    if (epoch == 1) {
        *strstr(agents, "  agent-5: ") = '\0';
    } else { /* as long as before, so that the rest stays where it is */
        char *three = strstr(agents, "  agent-3: ") + strlen("  agent-3: ");
        char *end = strchr(three, '\n');
        memset(three, ' ', (size_t)(end - three));
        memcpy(three, "removed", strlen("removed"));
    }
    int length = snprintf(text, sizeof text,
                          "reef: 1\nrun: t\nid: 000102030405060708090a0b0c0d0e0f\ncoordinator: %s\ngraph: complete\n"
                          "rule: mean\nmalicious: 0.2\nmodel: {count: 2, type: f64}\nepoch: %d\nfrom: %d\n"
                          "brokers: [\"nats://127.0.0.1:%d\"]\nagents:\n%sobservers:\n  eyes: \"%s\"\n",
                          w->heads, epoch, 100 * (epoch - 1), epoch, agents, w->eyes + strcspn(w->eyes, " ") + 1);
    (void)scratch_file(&w->folder, "draft", text, (size_t)length, path);
    (void)remove(scratch_path(&w->folder, name, run));
    reef_error error = {REEF_OK, ""};
    reef_status status =
        epoch == 1 ? reef_net_sign(path, boss, run, &error) : reef_net_sign_after(path, boss, w->run, 1, run, &error);
    CHECK(status == REEF_OK, "%s", error.text);
}

static void open_world_with(world *w, int epoch)
{
    char path[SCRATCH_PATH];
    char key[SCRATCH_PATH];
    reef_error error = {REEF_OK, ""};
    scratch_open(&w->folder);
    enrol(w, key);
    sign_run(w, w->boss, 1, "run", w->run);
    sign_run(w, w->boss, 2, "next", path);
    assert_int_equal(rfi_runfile_load(NULL, w->run, &w->file, NULL), REEF_OK);
    CHECK(rfi_runfile_load(NULL, path, &w->next, &error) == REEF_OK, "%s", error.text);
    w->told = &w->file;
    assert_int_equal(rfi_dash_create(&w->dash, 0, NULL, NULL), REEF_OK);
    const rfi_watch_setup setup = {.run_file = epoch == 1 ? w->run : path, .key = key, .dash = w->dash};
    CHECK(rfi_watch_open(&w->watch, &setup, &error) == REEF_OK, "%s", error.text);
}

static void open_world(world *w)
{
    open_world_with(w, 1);
}

static void close_world(world *w)
{
    rfi_watch_close(&w->watch);
    rfi_dash_destroy(&w->dash);
    rfi_runfile_free(&w->file);
    rfi_runfile_free(&w->next);
    scratch_close(&w->folder);
}

static rfi_head head_of(const world *w, uint32_t agent)
{
    rfi_head head = {.epoch = (uint32_t)w->told->terms.epoch, .agent = agent, .boot = 7};
    memcpy(head.run, w->told->hash, sizeof head.run);
    memcpy(head.key, w->secrets[agent].identity.public_key, sizeof head.key);
    return head;
}

/* The agent says of those in `whom` that they are excluded, and of nobody else. */
static void accuse(const world *w, uint32_t agent, uint64_t round, const char *whom)
{
    static unsigned char frame[RFI_STATUS_FRAME_MAX];
    rfi_status status = {.round = round, .weight = 1};
    rfi_head head = head_of(w, agent);
    char subject[32];
    for (uint32_t k = 0; k < AGENTS; k++) {
        bool named = strchr(whom, (int)('0' + k)) != NULL;
        if (k != agent) {
            status.entries[status.count++] =
                (rfi_status_entry){.agent = k, .trust = 1, .cause = named ? RFI_EXCLUDED : RFI_GOOD};
        }
    }
    size_t size = rfi_status_frame(frame, &head, &status, &w->secrets[agent].identity, &rfi_ed25519);
    (void)snprintf(subject, sizeof subject, "reef.t.t.%lu", (unsigned long)agent);
    rfi_watch_hear(w->watch, 0, subject, frame, size);
}

/* `by` publishes two models of `agent` for one round. */
static void prove(const world *w, uint32_t agent, uint32_t by)
{
    unsigned char frame[RFI_MANIFEST_BYTES + RFI_PROOF_BYTES];
    for (int i = 1; i <= 2; i++) {
        rfi_head model = head_of(w, agent);
        model.type = RFI_FRAME_MODEL;
        model.numbers = RFI_NUMBERS_F64;
        model.flags = RFI_FLAG_INLINE;
        model.count = 2;
        model.payload = 16;
        model.root[0] = (unsigned char)i;
        rfi_head_write(frame + (ptrdiff_t)i * RFI_MANIFEST_BYTES, &model);
        rfi_frame_sign(frame + (ptrdiff_t)i * RFI_MANIFEST_BYTES, &w->secrets[agent].identity, &rfi_ed25519);
    }
    rfi_head head = head_of(w, by);
    head.type = RFI_FRAME_PROOF;
    head.flags = RFI_FLAG_INLINE;
    head.count = 2;
    head.payload = RFI_PROOF_BYTES;
    rfi_hash(head.root, frame + RFI_MANIFEST_BYTES, RFI_PROOF_BYTES);
    rfi_head_write(frame, &head);
    rfi_frame_sign(frame, &w->secrets[by].identity, &rfi_ed25519);
    char subject[32];
    (void)snprintf(subject, sizeof subject, "reef.t.x.%lu", (unsigned long)by);
    rfi_watch_hear(w->watch, 0, subject, frame, sizeof frame);
}

/* How often an event has been told of an agent. */
static int told(world *w, const char *what, int agent)
{
    rfi_dash_cursor from = {0};
    char sought[64];
    int count = 0;
    size_t size = rfi_dash_read(w->dash, &from, w->lines, LINES - 1);
    w->lines[size] = '\0';
    rfi_dash_close(w->dash, &from);
    (void)snprintf(sought, sizeof sought, "\"what\":\"%s\",\"agent\":%d,", what, agent);
    for (const char *at = w->lines; (at = strstr(at, sought)) != NULL; at++) {
        count++;
    }
    return count;
}

/* How often a text is in the lines. */
static int found(world *w, const char *sought)
{
    int count = 0;
    (void)told(w, "nothing", 0); /* reads them */
    for (const char *at = w->lines; (at = strstr(at, sought)) != NULL; at++) {
        count++;
    }
    return count;
}

/* One agent that says that others are excluded has neither that shown nor keeps a proof from being shown. */
static void few_accusers_are_not_believed(void **state)
{
    (void)state;
    static world w;
    open_world(&w);
    accuse(&w, 4, 1, "0123");
    accuse(&w, 4, 2, "");
    accuse(&w, 4, 3, "0123"); /* says it twice, counts once */
    for (int k = 0; k < AGENTS; k++) {
        assert_int_equal(told(&w, "excluded", k), 0);
    }
    prove(&w, 1, 4);
    prove(&w, 1, 2);
    assert_int_equal(told(&w, "proof", 1), 1);
    assert_int_equal(found(&w, "it has signed two models for round 0, with the marks "), 1);
    accuse(&w, 0, 1, "3");
    assert_int_equal(told(&w, "excluded", 3), 0); /* two of four */
    accuse(&w, 2, 1, "13");
    accuse(&w, 1, 1, "3");
    assert_int_equal(told(&w, "excluded", 3), 1);
    assert_int_equal(told(&w, "excluded", 1), 0); /* the proof was there */
    close_world(&w);
}

/* An agent reports ever more refusals of a neighbour: told of once, and what is shown of others stays. */
static void refusals_do_not_fill_the_log(void **state)
{
    static unsigned char frame[RFI_STATUS_FRAME_MAX];
    (void)state;
    static world w;
    open_world(&w);
    for (uint32_t round = 1; round <= 5; round++) {
        rfi_status status = {.round = round, .weight = 1, .count = 1};
        rfi_head head = head_of(&w, 4);
        status.entries[0] = (rfi_status_entry){.agent = 3, .trust = 1, .cause = RFI_SIGNATURE, .refused = 10 * round};
        size_t size = rfi_status_frame(frame, &head, &status, &w.secrets[4].identity, &rfi_ed25519);
        rfi_watch_hear(w.watch, 0, "reef.t.t.4", frame, size);
    }
    assert_int_equal(found(&w, "\"type\":\"status\""), 5);
    assert_int_equal(told(&w, "refused", 3), 1);
    assert_int_equal(found(&w, "10 frames refused: signature"), 1);
    close_world(&w);
}

/* One broker forges frames of an agent without end: what the agent says by way of another is heard all the same. */
static void a_broker_that_forges_hides_nobody(void **state)
{
    static unsigned char frame[RFI_STATUS_FRAME_MAX];
    (void)state;
    static world w;
    open_world(&w);
    for (uint32_t round = 1; round <= 40; round++) {
        rfi_status status = {.round = round, .weight = 1};
        rfi_head head = head_of(&w, 4);
        size_t size = rfi_status_frame(frame, &head, &status, &w.secrets[4].identity, &rfi_ed25519);
        frame[size - 1] ^= round < 40; /* the last one is good */
        rfi_watch_hear(w.watch, round == 40, "reef.t.t.4", frame, size);
    }
    assert_int_equal(found(&w, "\"type\":\"status\""), 1);
    close_world(&w);
}

static void rest_a_tenth(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
}

/* Signed words that a broker plays again, of this process or one before, change nothing. */
static void old_words_are_not_played_again(void **state)
{
    static unsigned char frames[4][RFI_STATUS_FRAME_MAX];
    static const uint64_t boots[] = {7, 7, 8, 8};
    static const int order[] = {0, 1, 0, 2, 1, 0, 3, 2, 0};
    size_t size = 0;
    (void)state;
    static world w;
    open_world(&w);
    for (uint64_t i = 0; i < 4; i++) {
        const rfi_status status = {.round = 10 + i, .weight = 1};
        rfi_head head = head_of(&w, 4);
        head.boot = boots[i];
        size = rfi_status_frame(frames[i], &head, &status, &w.secrets[4].identity, &rfi_ed25519);
    }
    for (ptrdiff_t i = 0; i < COUNT(order); i++) {
        rfi_watch_hear(w.watch, 0, "reef.t.t.4", frames[order[i]], size);
        rest_a_tenth();
        rest_a_tenth();
        rest_a_tenth();
        rest_a_tenth(); /* three a second are looked at */
    }
    for (int round = 10; round < 14; round++) {
        char sought[32];
        (void)snprintf(sought, sizeof sought, "\"agent\":4,\"round\":%d,", round);
        assert_int_equal(found(&w, sought), 1);
    }
    assert_int_equal(told(&w, "started", 4), 2);
    close_world(&w);
}

static void hear_file(const world *w, const char *subject, const char *path)
{
    static char bytes[1 << 16];
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    rfi_watch_hear(w->watch, 0, subject, (const unsigned char *)bytes, size);
}

/* Agents 0 to count - 1 report, each under its own round. */
static void report(const world *w, uint32_t count, uint64_t round)
{
    for (uint32_t k = 0; k < count; k++) {
        accuse(w, k, round, "");
    }
}

/* A file from the network, and the epoch begins for the page when it does for most: not before, whoever says so, and once. */
static void next_epoch_from_the_network(void **state)
{
    (void)state;
    static world w;
    char path[SCRATCH_PATH];
    char key[REEF_NET_KEYS_SIZE];
    char mallory[SCRATCH_PATH];
    open_world(&w);
    assert_int_equal(found(&w, "{\"type\":\"run\",\"time\":0,\"version\":1,\"epoch\":1,"), 1);
    report(&w, AGENTS, 1);
    assert_int_equal(reef_net_key_make(scratch_path(&w.folder, "mallory", mallory), key, NULL), REEF_OK);
    key[strcspn(key, " ")] = '\0';
    char boss[REEF_NET_KEYS_SIZE];
    (void)snprintf(boss, sizeof boss, "%s", w.heads);
    (void)snprintf(w.heads, sizeof w.heads, "%s", key);
    sign_run(&w, mallory, 1, "theirs", path);
    (void)snprintf(w.heads, sizeof w.heads, "%s", boss);
    hear_file(&w, "reef.t.c.4", path);  /* of another coordinator */
    hear_file(&w, "reef.t.c.4", w.run); /* of this epoch */
    w.told = &w.next;
    report(&w, 3, 101); /* a majority, but the file is not known: nothing of it is shown but that it is missing */
    rfi_watch_tend(w.watch);
    rfi_watch_tend(w.watch);
    assert_int_equal(found(&w, "agents work by epoch 2"), 1);
    assert_int_equal(found(&w, "\"epoch\":2"), 0);
    hear_file(&w, "reef.t.c.1", scratch_path(&w.folder, "next", path));
    rfi_watch_tend(w.watch);
    assert_int_equal(found(&w, "\"epoch\":2"), 1);
    assert_int_equal(found(&w, "\"removed\":[3]"), 1);
    assert_int_equal(told(&w, "removed", 3), 1);
    assert_int_equal(told(&w, "added", 5), 1);
    int before = found(&w, "\"type\":\"status\"");
    accuse(&w, 5, 103, ""); /* the new one is heard */
    accuse(&w, 3, 103, ""); /* who was removed is not, */
    w.told = &w.file;
    accuse(&w, 4, 100, ""); /* nor who is still in the epoch before */
    assert_int_equal(found(&w, "\"type\":\"status\""), before + 1);
    rfi_watch_tend(w.watch);
    assert_int_equal(found(&w, "\"epoch\":2"), 1);
    close_world(&w);
}

/* The broker's copy; and few agents that are ahead, or say so, do not turn the page. Their own words are shown all the same. */
static void few_do_not_begin_an_epoch(void **state)
{
    (void)state;
    static world w;
    char path[SCRATCH_PATH];
    open_world(&w);
    report(&w, AGENTS, 1);
    hear_file(&w, "reef.t.c.b.2", scratch_path(&w.folder, "next", path));
    w.told = &w.next;
    int before = found(&w, "\"type\":\"status\"");
    report(&w, 2, 101);
    rfi_watch_tend(w.watch);
    assert_int_equal(found(&w, "\"epoch\":2"), 0);
    assert_int_equal(found(&w, "\"type\":\"status\""), before + 2);
    prove(&w, 1, 2); /* a proof of the epoch to come counts */
    assert_int_equal(told(&w, "proof", 1), 1);
    accuse(&w, 2, 101, "");
    rfi_watch_tend(w.watch);
    assert_int_equal(found(&w, "\"epoch\":2"), 1);
    prove(&w, 1, 4); /* it is still known */
    assert_int_equal(told(&w, "proof", 1), 1);
    close_world(&w);
}

/* An observer that was started with a file that is over, or not yet in force, shows nobody, and says why. */
static void given_file_is_not_in_force(void **state)
{
    (void)state;
    static world w;
    open_world(&w);
    w.told = &w.next;
    report(&w, 3, 101);
    rfi_watch_tend(w.watch);
    assert_int_equal(found(&w, "agents work by epoch 2: put its run file"), 1);
    assert_int_equal(found(&w, "\"type\":\"status\""), 0);
    close_world(&w);
    open_world_with(&w, 2);
    report(&w, 3, 99);
    rfi_watch_tend(w.watch);
    rfi_watch_tend(w.watch);
    assert_int_equal(found(&w, "agents still work by epoch 1: they are shown once"), 1);
    assert_int_equal(found(&w, "\"type\":\"status\""), 0);
    w.told = &w.next;
    report(&w, 3, 101);
    assert_int_equal(found(&w, "\"type\":\"status\""), 3);
    close_world(&w);
}

/* The next file in place of the first one; a file of no use there is told. */
static void next_epoch_by_hand(void **state)
{
    (void)state;
    enum { TENTHS = 300 };
    static world w;
    char path[SCRATCH_PATH];
    open_world(&w);
    report(&w, AGENTS, 1);
    (void)scratch_file(&w.folder, "bad", "no run file\n", 12, path);
    assert_int_equal(rename(path, w.run), 0);
    for (int i = 0; i < TENTHS && !found(&w, "not signed by the coordinator"); i++) {
        rest_a_tenth();
        rfi_watch_tend(w.watch);
    }
    assert_int_equal(found(&w, "not signed by the coordinator"), 1);
    assert_int_equal(rename(scratch_path(&w.folder, "next", path), w.run), 0);
    w.told = &w.next;
    for (int i = 0; i < TENTHS && !found(&w, "\"epoch\":2"); i++) {
        rest_a_tenth();
        report(&w, AGENTS, 101 + (uint64_t)i);
        rfi_watch_tend(w.watch);
    }
    assert_int_equal(found(&w, "\"epoch\":2"), 1);
    close_world(&w);
}

int main(void)
{
    if (rfi_crypto_start(NULL) != REEF_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_accusers_are_not_believed),
        cmocka_unit_test(refusals_do_not_fill_the_log),
        cmocka_unit_test(a_broker_that_forges_hides_nobody),
        cmocka_unit_test(old_words_are_not_played_again),
        cmocka_unit_test(next_epoch_from_the_network),
        cmocka_unit_test(few_do_not_begin_an_epoch),
        cmocka_unit_test(next_epoch_by_hand),
        cmocka_unit_test(given_file_is_not_in_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
