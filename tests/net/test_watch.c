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

enum { AGENTS = 5, LINES = 1 << 16 };

/* A run of agents that all hear each other, and who watches it; nobody listens where its broker should be. */
typedef struct world {
    scratch folder;
    rfi_runfile file;
    rfi_secret secrets[AGENTS];
    rfi_dash *dash;
    rfi_watch *watch;
    char lines[LINES];
} world;

static void write_run(world *w, char *run, char *key)
{
    char boss[SCRATCH_PATH];
    char path[SCRATCH_PATH];
    char keys[REEF_NET_KEYS_SIZE];
    char name[16];
    char text[4096];
    assert_int_equal(reef_net_key_make(scratch_path(&w->folder, "boss", boss), keys, NULL), REEF_OK);
    int length = snprintf(text, sizeof text,
                          "reef: 1\nrun: t\nid: 000102030405060708090a0b0c0d0e0f\ncoordinator: %.*s\ngraph: complete\n"
                          "rule: mean\nmalicious: 0.2\nmodel: {count: 2, type: f64}\n"
                          "brokers: [\"nats://127.0.0.1:1\"]\nagents:\n",
                          (int)strcspn(keys, " "), keys);
    for (int k = 0; k < AGENTS; k++) {
        (void)snprintf(name, sizeof name, "key-%d", k);
        assert_int_equal(reef_net_key_make(scratch_path(&w->folder, name, path), keys, NULL), REEF_OK);
        assert_int_equal(rfi_secret_read(path, &w->secrets[k], NULL), REEF_OK);
        length += snprintf(text + length, sizeof text - (size_t)length, "  agent-%d: \"%s\"\n", k, keys);
    }
    assert_int_equal(reef_net_key_make(scratch_path(&w->folder, "eyes", key), keys, NULL), REEF_OK);
    length += snprintf(text + length, sizeof text - (size_t)length, "observers:\n  eyes: \"%s\"\n",
                       keys + strcspn(keys, " ") + 1);
    (void)scratch_file(&w->folder, "draft", text, (size_t)length, path);
    assert_int_equal(reef_net_sign(path, boss, scratch_path(&w->folder, "run", run), NULL), REEF_OK);
    assert_int_equal(rfi_runfile_load(NULL, run, &w->file, NULL), REEF_OK);
}

static void open_world(world *w)
{
    char run[SCRATCH_PATH];
    char key[SCRATCH_PATH];
    reef_error error = {REEF_OK, ""};
    scratch_open(&w->folder);
    write_run(w, run, key);
    assert_int_equal(rfi_dash_create(&w->dash, 0, NULL, NULL), REEF_OK);
    const rfi_watch_setup setup = {.run_file = run, .key = key, .dash = w->dash};
    CHECK(rfi_watch_open(&w->watch, &setup, &error) == REEF_OK, "%s", error.text);
}

static void close_world(world *w)
{
    rfi_watch_close(&w->watch);
    rfi_dash_destroy(&w->dash);
    rfi_runfile_free(&w->file);
    scratch_close(&w->folder);
}

static rfi_head head_of(const world *w, uint32_t agent)
{
    rfi_head head = {.epoch = 1, .agent = agent, .boot = 7};
    memcpy(head.run, w->file.hash, sizeof head.run);
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
    rfi_watch_hear(w->watch, subject, frame, size);
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
    rfi_watch_hear(w->watch, subject, frame, sizeof frame);
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
    accuse(&w, 0, 1, "3");
    assert_int_equal(told(&w, "excluded", 3), 0); /* two of four */
    accuse(&w, 2, 1, "13");
    accuse(&w, 1, 1, "3");
    assert_int_equal(told(&w, "excluded", 3), 1);
    assert_int_equal(told(&w, "excluded", 1), 0); /* the proof was there */
    close_world(&w);
}

int main(void)
{
    if (rfi_crypto_start(NULL) != REEF_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_accusers_are_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
