/* Requests of a client on a socket, answered by an agent that only notes what it is asked. */
#include "net/bytes.h"
#include "net/local.h"
#include "support/check.h"

#include <stdio.h>
#include <string.h>

enum { COUNT = 2, BYTES = COUNT * 8 };

typedef struct world {
    unsigned char in[2048];
    size_t in_size, in_at;
    unsigned char out[4096];
    size_t out_size;
    unsigned char room[BYTES + RFI_LOCAL_REPORT_MAX];
    bool joined;
    reef_status status; /* of the next exchange */
    double noted;
    char name[20];
    int exchanges;
} world;

static bool take(void *user, void *bytes, size_t size)
{
    world *w = user;
    if (size > w->in_size - w->in_at) {
        return false;
    }
    memcpy(bytes, w->in + w->in_at, size);
    w->in_at += size;
    return true;
}

static bool give(void *user, const void *bytes, size_t size)
{
    world *w = user;
    assert_true(w->out_size + size <= sizeof w->out);
    memcpy(w->out + w->out_size, bytes, size);
    w->out_size += size;
    return true;
}

static reef_status hello(void *user, const unsigned char *layout, bool *joined, uint64_t *round, reef_error *error)
{
    world *w = user;
    (void)error;
    assert_int_equal(layout[0], 5);
    *joined = w->joined;
    *round = 41;
    memset(w->room, 3, BYTES);
    return REEF_OK;
}

/* The model comes back with every byte one larger. */
static reef_status exchange(void *user, uint64_t *round, size_t *report, reef_error *error)
{
    world *w = user;
    for (size_t i = 0; i < BYTES; i++) {
        w->room[i]++;
    }
    memcpy(w->room + BYTES, "{}", 2);
    *report = 2;
    *round = 41;
    w->exchanges++;
    (void)snprintf(error->text, sizeof error->text, "the disk is full");
    error->status = w->status;
    return w->status;
}

static void note(void *user, const char *name, double value)
{
    world *w = user;
    (void)snprintf(w->name, sizeof w->name, "%s", name);
    w->noted = value;
}

static uint64_t round_of(void *user)
{
    (void)user;
    return 42;
}

static void request(world *w, uint32_t op, const void *payload, size_t size)
{
    static const unsigned char magic[4] = {'R', 'L', 'O', 'C'};
    unsigned char *head = w->in + w->in_size;
    memset(head, 0, RFI_LOCAL_HEAD);
    memcpy(head, magic, sizeof magic);
    rfi_put(head + 4, op, 4);
    rfi_put(head + 16, size, 8);
    if (size > 0) {
        memcpy(head + RFI_LOCAL_HEAD, payload, size);
    }
    w->in_size += RFI_LOCAL_HEAD + size;
}

static void greet(world *w)
{
    const unsigned char layout[RFI_LOCAL_HELLO_BYTES] = {5};
    request(w, RFI_LOCAL_HELLO, layout, sizeof layout);
}

static rfi_local_end serve(world *w, reef_error *error)
{
    const rfi_local_host host = {.user = w,
                                 .bytes = BYTES,
                                 .count = COUNT,
                                 .numbers = 2,
                                 .room = w->room,
                                 .read = take,
                                 .write = give,
                                 .hello = hello,
                                 .exchange = exchange,
                                 .note = note,
                                 .round = round_of};
    return rfi_local_serve(&host, error);
}

/* Steps over an answer; its payload. */
static const unsigned char *answered(const world *w, size_t *at, uint32_t op, uint64_t round, uint32_t status,
                                     size_t size)
{
    const unsigned char *head = w->out + *at;
    assert_true(*at + RFI_LOCAL_HEAD <= w->out_size);
    assert_memory_equal(head, "RLOC", 4);
    assert_int_equal(rfi_take(head + 4, 4), op);
    assert_int_equal(rfi_take(head + 8, 8), round);
    assert_int_equal(rfi_take(head + 24, 4), status);
    if (status == 0) {
        assert_int_equal(rfi_take(head + 16, 8), size);
    }
    *at += RFI_LOCAL_HEAD + (size_t)rfi_take(head + 16, 8);
    assert_true(*at <= w->out_size);
    return head + RFI_LOCAL_HEAD;
}

static void a_whole_session(void **state)
{
    (void)state;
    world w = {.joined = true};
    unsigned char model[BYTES];
    unsigned char loss[RFI_LOCAL_NOTE_BYTES] = "loss";
    const double value = 0.25;
    memcpy(loss + RFI_LOCAL_NAME_BYTES, &value, sizeof value);
    memset(model, 7, sizeof model);
    greet(&w);
    request(&w, RFI_LOCAL_EXCHANGE, model, sizeof model);
    request(&w, RFI_LOCAL_NOTE, loss, sizeof loss);
    request(&w, RFI_LOCAL_LEAVE, NULL, 0);
    assert_int_equal(serve(&w, NULL), RFI_LOCAL_END_LEFT);

    size_t at = 0;
    const unsigned char *welcome = answered(&w, &at, RFI_LOCAL_HELLO, 41, 0, RFI_LOCAL_WELCOME_BYTES + BYTES);
    assert_int_equal(rfi_take(welcome, 8), COUNT);
    assert_int_equal(rfi_take(welcome + 8, 4), 2);
    assert_int_equal(rfi_take(welcome + 12, 4), 1);
    assert_int_equal(rfi_take(welcome + 16, 8), 41);
    assert_int_equal(welcome[24], 3);
    const unsigned char *combined = answered(&w, &at, RFI_LOCAL_EXCHANGE, 41, 0, BYTES + 2);
    assert_int_equal(combined[0], 8);
    assert_memory_equal(combined + BYTES, "{}", 2);
    (void)answered(&w, &at, RFI_LOCAL_NOTE, 42, 0, 0);
    (void)answered(&w, &at, RFI_LOCAL_LEAVE, 42, 0, 0);
    assert_int_equal(at, w.out_size);
    assert_string_equal(w.name, "loss");
    assert_true(w.noted == value);
}

/* The last request of `w` is refused with a sentence, and the connection ends. */
static void refused(world *w, uint32_t op, const char *part)
{
    char sentence[400] = "";
    size_t at = 0;
    request(w, RFI_LOCAL_LEAVE, NULL, 0); /* not to be read any more */
    assert_int_equal(serve(w, NULL), RFI_LOCAL_END_GONE);
    while (at + RFI_LOCAL_HEAD < w->out_size && rfi_take(w->out + at + 24, 4) == 0) {
        at += RFI_LOCAL_HEAD + (size_t)rfi_take(w->out + at + 16, 8);
    }
    const unsigned char *text = answered(w, &at, op, 0, RFI_LOCAL_REFUSED, 0);
    memcpy(sentence, text, (size_t)(w->out + w->out_size - text));
    assert_non_null(strstr(sentence, part));
    assert_int_equal(w->exchanges, 0);
}

static void what_is_not_in_the_table_is_refused(void **state)
{
    (void)state;
    const unsigned char bytes[64] = {0};
    world w = {.out_size = 0};
    request(&w, RFI_LOCAL_EXCHANGE, bytes, BYTES);
    refused(&w, RFI_LOCAL_EXCHANGE, "HELLO is the first");
    w = (world){.out_size = 0};
    greet(&w);
    greet(&w);
    refused(&w, RFI_LOCAL_HELLO, "only the first");
    w = (world){.out_size = 0};
    greet(&w);
    request(&w, RFI_LOCAL_EXCHANGE, bytes, BYTES - 1);
    refused(&w, RFI_LOCAL_EXCHANGE, "has 16 bytes here, not 15");
    w = (world){.out_size = 0};
    request(&w, 5, NULL, 0);
    refused(&w, 5, "requests are");
    w = (world){.out_size = 0};
    greet(&w);
    w.in[2] = 'x';
    refused(&w, RFI_LOCAL_HELLO, "RLOC");
    w = (world){.out_size = 0};
    greet(&w);
    w.in[28] = 1;
    refused(&w, RFI_LOCAL_HELLO, "are 0");
    w = (world){.out_size = 0};
    greet(&w);
    request(&w, RFI_LOCAL_NOTE, "Loss\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", RFI_LOCAL_NOTE_BYTES);
    refused(&w, RFI_LOCAL_NOTE, "a note has a name");
}

static void half_a_request_changes_nothing(void **state)
{
    (void)state;
    const unsigned char bytes[BYTES] = {0};
    world w = {.out_size = 0};
    greet(&w);
    size_t greeting = w.in_size;
    request(&w, RFI_LOCAL_EXCHANGE, bytes, sizeof bytes);
    for (size_t size = 0; size < w.in_size; size++) {
        world half = w;
        half.in_size = size;
        assert_int_equal(serve(&half, NULL), RFI_LOCAL_END_GONE);
        assert_int_equal(half.exchanges, 0);
        assert_int_equal(half.out_size, size < greeting ? 0 : RFI_LOCAL_HEAD + RFI_LOCAL_WELCOME_BYTES);
    }
}

static void a_failure_of_the_agent_is_told_and_ends_it(void **state)
{
    (void)state;
    const unsigned char bytes[BYTES] = {0};
    world w = {.status = REEF_E_FILE};
    reef_error error = {REEF_OK, ""};
    greet(&w);
    request(&w, RFI_LOCAL_EXCHANGE, bytes, sizeof bytes);
    assert_int_equal(serve(&w, &error), RFI_LOCAL_END_FAILED);
    assert_int_equal(error.status, REEF_E_FILE);
    assert_string_equal(error.text, "the disk is full");
    assert_memory_equal(w.out + w.out_size - 16, "the disk is full", 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_session),
        cmocka_unit_test(what_is_not_in_the_table_is_refused),
        cmocka_unit_test(half_a_request_changes_nothing),
        cmocka_unit_test(a_failure_of_the_agent_is_told_and_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
