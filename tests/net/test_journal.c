/* The journal: survives torn writes, tells strangers' files, and never allows a round twice. */
#include "net/journal.h"
#include "support/alloc.h"
#include "support/check.h"
#include "support/scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const unsigned char run[RFI_RUN_ID_BYTES] = "run id 16 bytes";
static const unsigned char key[RFI_KEY_BYTES] = "identity";
static const unsigned char mark[RFI_HASH_BYTES] = "mark";

typedef struct desk {
    scratch folder;
    char path[SCRATCH_PATH];
    rfi_journal journal;
} desk;

static int set_up(void **state)
{
    desk *d = calloc(1, sizeof *d);
    *state = d;
    scratch_open(&d->folder);
    (void)scratch_path(&d->folder, "journal", d->path);
    d->journal.file = -1;
    return rfi_crypto_start(NULL) == REEF_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    desk *d = *state;
    rfi_journal_close(&d->journal);
    scratch_close(&d->folder);
    free(d);
    return 0;
}

static reef_status reopen(desk *d, reef_error *error)
{
    rfi_journal_close(&d->journal);
    return rfi_journal_open(&d->journal, NULL, d->path, run, key, true, error);
}

static void load(desk *d, unsigned char bytes[2 * RFI_JOURNAL_PLACE])
{
    FILE *file = fopen(d->path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, (size_t)2 * RFI_JOURNAL_PLACE, file), 2 * RFI_JOURNAL_PLACE);
    assert_int_equal(fclose(file), 0);
}

static void store(desk *d, const unsigned char *bytes, size_t size)
{
    (void)scratch_file(&d->folder, "journal", bytes, size, d->path);
}

static void starts_empty_and_remembers(void **state)
{
    desk *d = *state;
    reef_error error;
    assert_int_equal(reopen(d, &error), REEF_OK);
    assert_int_equal(d->journal.next, 0);
    static const uint64_t rounds[] = {0, 1, 2, 7, 100};
    for (ptrdiff_t i = 0; i < COUNT(rounds); i++) {
        assert_int_equal(rfi_journal_record(&d->journal, rounds[i], mark, &error), REEF_OK);
        assert_int_equal(reopen(d, &error), REEF_OK);
        assert_int_equal(d->journal.next, rounds[i] + 1);
        assert_false(d->journal.damaged);
        assert_memory_equal(d->journal.mark, mark, sizeof mark);
    }
    assert_int_equal(rfi_journal_record(&d->journal, 100, mark, &error), REEF_E_ORDER);
    assert_int_equal(rfi_journal_record(&d->journal, RFI_ROUND_LIMIT, mark, &error), REEF_E_ORDER);
    assert_int_equal(rfi_journal_record(&d->journal, 101, mark, &error), REEF_OK);
}

/* A write that stopped after any number of bytes leaves the round before it, or the new one whole. */
static void survives_torn_writes(void **state)
{
    desk *d = *state;
    reef_error error;
    unsigned char before[2 * RFI_JOURNAL_PLACE];
    unsigned char after[2 * RFI_JOURNAL_PLACE];
    assert_int_equal(reopen(d, &error), REEF_OK);
    for (uint64_t round = 3; round < 5; round++) {
        assert_int_equal(rfi_journal_record(&d->journal, round - 1, mark, &error), REEF_OK);
        load(d, before);
        size_t place = (size_t)d->journal.place * RFI_JOURNAL_PLACE;
        assert_int_equal(rfi_journal_record(&d->journal, round + 50, key, &error), REEF_OK);
        load(d, after);
        for (size_t torn = 0; torn <= RFI_JOURNAL_PLACE; torn++) {
            unsigned char bytes[2 * RFI_JOURNAL_PLACE];
            memcpy(bytes, before, sizeof bytes);
            memcpy(bytes + place, after + place, torn);
            rfi_journal read = {.file = -1};
            assert_int_equal(rfi_journal_read(&read, bytes, run, key, &error), REEF_OK);
            CHECK(read.next == round || read.next == round + 51, "%llu", (unsigned long long)read.next);
            CHECK(read.next == round || torn >= 128, "a torn record counts after %zu bytes", torn);
        }
        store(d, before, sizeof before);
        assert_int_equal(reopen(d, &error), REEF_OK);
    }
}

static void refuses_what_it_cannot_know(void **state)
{
    desk *d = *state;
    reef_error error;
    unsigned char bytes[2 * RFI_JOURNAL_PLACE];
    unsigned char other[RFI_KEY_BYTES] = "another";
    assert_int_equal(reopen(d, &error), REEF_OK);
    assert_int_equal(rfi_journal_record(&d->journal, 4, mark, &error), REEF_OK);
    rfi_journal_close(&d->journal);
    assert_int_equal(rfi_journal_open(&d->journal, NULL, d->path, run, other, true, &error), REEF_E_FORMAT);
    assert_int_equal(rfi_journal_open(&d->journal, NULL, d->path, other, key, true, &error), REEF_E_FORMAT);
    load(d, bytes);
    bytes[60] ^= 1;
    bytes[RFI_JOURNAL_PLACE + 60] ^= 1;
    store(d, bytes, sizeof bytes);
    assert_int_equal(reopen(d, &error), REEF_E_FORMAT);
    bytes[60] ^= 1;
    store(d, bytes, sizeof bytes);
    assert_int_equal(reopen(d, &error), REEF_OK);
    assert_true(d->journal.damaged);
    store(d, bytes, sizeof bytes - 1);
    assert_int_equal(reopen(d, &error), REEF_E_FORMAT);
    store(d, bytes, 0);
    assert_int_equal(reopen(d, &error), REEF_E_FORMAT);
}

/* After a write that failed nothing may be signed, not even if the disk would take it again. */
static void stays_failed(void **state)
{
    desk *d = *state;
    reef_error error;
    assert_int_equal(reopen(d, &error), REEF_OK);
    int good = d->journal.file;
    d->journal.file = open("/dev/full", O_WRONLY);
    assert_true(d->journal.file >= 0);
    assert_int_equal(rfi_journal_record(&d->journal, 1, mark, &error), REEF_E_FILE);
    assert_int_equal(close(d->journal.file), 0);
    d->journal.file = good;
    assert_int_equal(rfi_journal_record(&d->journal, 1, mark, &error), REEF_E_FILE);
    assert_int_equal(reopen(d, &error), REEF_OK);
    assert_int_equal(d->journal.next, 0);
}

static void every_allocation_may_fail(void **state)
{
    desk *d = *state;
    reef_error error;
    alloc_log log = {.fail_at = -1};
    reef_context *context = alloc_context(&log, 1);
    int fail_at = 0;
    for (reef_status status = REEF_E_NOMEM; status != REEF_OK; fail_at++) {
        log.total = 0;
        log.fail_at = fail_at;
        status = rfi_journal_open(&d->journal, context, d->path, run, key, true, &error);
        CHECK(status == REEF_OK || status == REEF_E_NOMEM, "%s", error.text);
        CHECK(fail_at < 50, "never opens");
    }
    assert_true(fail_at > 1);
    log.fail_at = -1;
    rfi_journal_close(&d->journal);
    reef_context_destroy(&context);
    assert_int_equal(log.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(starts_empty_and_remembers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(survives_torn_writes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_what_it_cannot_know, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stays_failed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
