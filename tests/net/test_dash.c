/* Lines of the live page: what is taken, what is kept in bounded memory, and what a reader sees meanwhile. */
#include "net/dash.h"
#include "net/dash_live.h"
#include "support/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static rfi_dash *make(size_t limit)
{
    rfi_dash *dash = NULL;
    reef_error error = {REEF_OK, ""};
    assert_int_equal(rfi_dash_create(&dash, limit, NULL, &error), REEF_OK);
    return dash;
}

static bool put(rfi_dash *dash, const char *text)
{
    return rfi_dash_put_line(dash, text, strlen(text));
}

static void put_status(rfi_dash *dash, int agent, int round)
{
    char text[200];
    (void)snprintf(text, sizeof text,
                   "{\"type\":\"status\",\"time\":%d,\"agent\":%d,\"round\":%d,\"filling\":\"%0100d\"}", round, agent,
                   round, 0);
    assert_true(put(dash, text));
}

/* All that a new reader gets, in pieces of `piece` bytes. */
static char *read_all(rfi_dash *dash, size_t piece)
{
    enum { ROOM = 1 << 20 };
    char *text = malloc(ROOM);
    size_t used = 0;
    rfi_dash_cursor cursor = {0};
    assert_non_null(text);
    for (size_t got = 1; got > 0; used += got) {
        assert_true(used + piece < ROOM);
        got = rfi_dash_read(dash, &cursor, text + used, piece);
    }
    rfi_dash_close(dash, &cursor);
    text[used] = '\0';
    return text;
}

static void test_what_is_a_line(void **state)
{
    rfi_dash *dash = make(0);
    (void)state;
    assert_true(put(dash, "{\"type\":\"run\",\"time\":0,\"agents\":[]}"));
    assert_true(put(dash, "{\"type\":\"status\",\"time\":1.5e2,\"agent\":4095,\"round\":1}"));
    assert_true(put(dash, "{\"type\":\"event\",\"time\":1}"));
    assert_true(put(dash, "{\"type\":\"score\",\"time\":1,\"value\":null}"));
    assert_true(put(dash, "{\"type\":\"end\",\"time\":1}"));
    assert_false(put(dash, ""));
    assert_false(put(dash, "{}"));
    assert_false(put(dash, "{\"type\":\"other\",\"time\":1}"));
    assert_false(put(dash, "{\"type\":\"status\",\"time\":1,\"agent\":4096,\"round\":1}"));
    assert_false(put(dash, "{\"type\":\"status\",\"time\":1,\"agent\":-1,\"round\":1}"));
    assert_false(put(dash, "{\"type\":\"status\",\"time\":1,\"agent\":}"));
    assert_false(put(dash, "{\"type\":\"status\",\"time\":1}"));
    assert_false(put(dash, "{\"type\":\"event\",\"time\":1"));
    assert_false(put(dash, "{\"type\":\"event\",\"time\":1,\"text\":\"\rdata: x\"}"));
    assert_false(put(dash, "{\"type\":\"event\",\"time\":1}\ndata: {}"));
    rfi_dash_destroy(&dash);
}

static void test_reader_gets_all_in_order(void **state)
{
    static const char expected[] = "data: {\"type\":\"run\",\"time\":0}\n\ndata: {\"type\":\"event\",\"time\":1}\n\n"
                                   "data: {\"type\":\"end\",\"time\":2}\n\n";
    rfi_dash *dash = make(0);
    (void)state;
    assert_true(put(dash, "{\"type\":\"run\",\"time\":0}"));
    assert_true(put(dash, "{\"type\":\"event\",\"time\":1}"));
    assert_true(put(dash, "{\"type\":\"end\",\"time\":2}"));
    for (size_t piece = 1; piece < 80; piece += 13) {
        char *text = read_all(dash, piece);
        assert_string_equal(text, expected);
        free(text);
    }
    rfi_dash_destroy(&dash);
}

/* A hundred thousand lines: memory stays within its bound, the run and the last word of everybody are there, and what is left of the
 * past is spread over all of it. */
static void test_memory_is_bounded(void **state)
{
    enum { LIMIT = 100000, AGENTS = 10, ROUNDS = 10000 };
    rfi_dash *dash = make(LIMIT);
    char last[64];
    ptrdiff_t early = 0;
    (void)state;
    assert_true(put(dash, "{\"type\":\"run\",\"time\":0}"));
    for (int r = 0; r < ROUNDS; r++) {
        for (int k = 0; k < AGENTS; k++) {
            put_status(dash, k, r);
        }
        assert_true(put(dash, "{\"type\":\"event\",\"time\":3,\"what\":\"late\"}"));
        assert_true(rfi_dash_bytes(dash) <= LIMIT);
    }
    char *text = read_all(dash, 4096);
    assert_ptr_equal(strstr(text, "data: {\"type\":\"run\""), text);
    for (int k = 0; k < AGENTS; k++) {
        (void)snprintf(last, sizeof last, "\"agent\":%d,\"round\":%d,", k, ROUNDS - 1);
        assert_non_null(strstr(text, last));
    }
    for (const char *at = text; (at = strstr(at, "\"agent\":3,\"round\":")) != NULL; at++) {
        early += strtol(at + strlen("\"agent\":3,\"round\":"), NULL, 10) < ROUNDS / 2;
    }
    assert_true(early > 5);
    assert_int_equal(rfi_dash_lost(dash), 0);
    free(text);
    rfi_dash_destroy(&dash);
}

/* A line that is being read is read to its end, even if it is no longer kept. */
static void test_slow_reader(void **state)
{
    rfi_dash *dash = make(10000);
    rfi_dash_cursor cursor = {0};
    char text[4096];
    (void)state;
    put_status(dash, 1, 0);
    put_status(dash, 1, 1);
    size_t got = rfi_dash_read(dash, &cursor, text, 150); /* into the second one */
    for (int r = 2; r < 1000; r++) {
        put_status(dash, 1, r);
    }
    got += rfi_dash_read(dash, &cursor, text + got, sizeof text - 1 - got);
    text[got] = '\0';
    assert_non_null(strstr(text, "\"round\":0,"));
    assert_non_null(strstr(text, "0000\"}\n\ndata: {\"type\":\"status\""));
    rfi_dash_close(dash, &cursor);
    rfi_dash_destroy(&dash);
}

static void test_too_long(void **state)
{
    enum { SIZE = 70000 };
    rfi_dash *dash = make(0);
    char *text = malloc(SIZE + 1);
    (void)state;
    assert_non_null(text);
    memset(text, 'x', SIZE);
    memcpy(text, "{\"type\":\"event\",\"time\":1,", 25);
    text[SIZE - 1] = '}';
    text[SIZE] = '\0';
    assert_true(put(dash, text));
    assert_int_equal(rfi_dash_lost(dash), 1);
    assert_int_equal(rfi_dash_bytes(dash), 0);
    free(text);
    rfi_dash_destroy(&dash);
}

/* The members change again and again: the first line of the run and the latest ones stay, and none is lost. */
static void test_many_epochs(void **state)
{
    enum { LIMIT = 100000, EPOCHS = 500 };
    rfi_dash *dash = make(LIMIT);
    char line[1024];
    (void)state;
    for (int e = 1; e <= EPOCHS; e++) {
        (void)snprintf(line, sizeof line, "{\"type\":\"run\",\"time\":%d,\"epoch\":%d,\"filling\":\"%0800d\"}", e, e,
                       0);
        assert_true(put(dash, line));
        put_status(dash, 1, e);
        assert_true(rfi_dash_bytes(dash) <= LIMIT);
    }
    char *text = read_all(dash, 4096);
    assert_non_null(strstr(text, "\"epoch\":1,"));
    assert_null(strstr(text, "\"epoch\":2,"));
    assert_non_null(strstr(text, "\"epoch\":499,"));
    assert_non_null(strstr(text, "\"epoch\":500,"));
    assert_int_equal(rfi_dash_lost(dash), 0);
    free(text);
    rfi_dash_destroy(&dash);
}

/* A disk that is full: the run goes on, and is told of in the end. */
static void test_full_record(void **state)
{
    rfi_live live = {.path = "lines.jsonl", .record = fopen("/dev/full", "we")};
    reef_error error = {REEF_OK, ""};
    (void)state;
    assert_non_null(live.record);
    assert_int_equal(rfi_dash_create(&live.dash, 0, live.record, &error), REEF_OK);
    assert_int_equal(rfi_dash_unrecorded(live.dash), 0);
    for (int round = 0; round < 1000; round++) { /* more than a FILE holds back */
        put_status(live.dash, 0, round);
    }
    assert_int_equal(rfi_dash_unrecorded(live.dash), ENOSPC);
    assert_int_equal(rfi_live_close(&live, &error), REEF_E_FILE);
    assert_non_null(strstr(error.text, "lines.jsonl has only the beginning of the run"));
    /* what was held back until the end */
    live = (rfi_live){.path = "lines.jsonl", .record = fopen("/dev/full", "we")};
    assert_int_equal(rfi_dash_create(&live.dash, 0, live.record, &error), REEF_OK);
    put_status(live.dash, 0, 1);
    assert_int_equal(rfi_live_close(&live, &error), REEF_E_FILE);
    assert_int_equal(rfi_live_close(&live, &error), REEF_OK); /* a cleared one */
}

/* Whoever is killed has recorded what there was: nothing waits in a FILE for long. */
static void test_flushed_record(void **state)
{
    char path[] = "/tmp/test_dash.XXXXXX";
    char text[64] = "";
    int file = mkstemp(path);
    (void)state;
    assert_true(file >= 0);
    rfi_live live = {.path = path, .record = fdopen(file, "w")};
    reef_error error = {REEF_OK, ""};
    assert_non_null(live.record);
    assert_int_equal(rfi_dash_create(&live.dash, 0, live.record, &error), REEF_OK);
    put_status(live.dash, 0, 1);
    rfi_live_tend(&live);
    FILE *seen = fopen(path, "re");
    assert_non_null(seen);
    assert_non_null(fgets(text, sizeof text, seen));
    assert_memory_equal(text, "{\"type\":\"status\"", 16);
    (void)fclose(seen);
    assert_int_equal(rfi_live_close(&live, &error), REEF_OK);
    (void)unlink(path);
    rfi_live_tend(&live); /* one that records nothing and shows nothing */
    live = (rfi_live){.path = "lines.jsonl", .record = fopen("/dev/full", "we")};
    assert_int_equal(rfi_dash_create(&live.dash, 0, live.record, &error), REEF_OK);
    put_status(live.dash, 0, 1);
    rfi_live_tend(&live);
    assert_int_equal(rfi_dash_unrecorded(live.dash), ENOSPC);
    assert_int_equal(rfi_live_close(&live, &error), REEF_E_FILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_a_line),    cmocka_unit_test(test_reader_gets_all_in_order),
        cmocka_unit_test(test_memory_is_bounded), cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_too_long),          cmocka_unit_test(test_many_epochs),
        cmocka_unit_test(test_full_record),       cmocka_unit_test(test_flushed_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
