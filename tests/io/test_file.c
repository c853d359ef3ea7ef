/* Whole files: what is read is what was written, limits hold, and a failed write leaves no trace. */
#include "io/file.h"
#include "support/alloc.h"
#include "support/check.h"
#include "support/scratch.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void round_trip(void **state)
{
    scratch s;
    char path[SCRATCH_PATH];
    rfi_file file;
    (void)state;
    scratch_open(&s);
    scratch_path(&s, "x", path);
    rfi_piece pieces[] = {{"abc", 3}, {NULL, 0}, {"\0de", 3}};
    for (int i = 0; i < 2; i++) { /* the second time over an existing file */
        assert_int_equal(rfi_file_write(NULL, path, pieces, 3 - 2 * i, NULL), REEF_OK);
        assert_int_equal(rfi_file_read(NULL, path, 6, &file, NULL), REEF_OK);
        assert_int_equal(file.size, i ? 3 : 6);
        assert_memory_equal(file.bytes, "abc\0de", file.size);
        assert_int_equal(file.bytes[file.size], 0);
        rfi_file_free(NULL, &file);
        assert_null(file.bytes);
        assert_int_equal(scratch_count(&s), 1);
    }
    assert_int_equal(rfi_file_write(NULL, path, NULL, 0, NULL), REEF_OK);
    assert_int_equal(rfi_file_read(NULL, path, 0, &file, NULL), REEF_OK);
    assert_int_equal(file.size, 0);
    rfi_file_free(NULL, &file);
    rfi_file_free(NULL, &file);
    scratch_close(&s);
}

static void check_refused(const char *path, size_t limit, reef_status status, const char *text)
{
    rfi_file file = {NULL, 77};
    reef_error error = {REEF_OK, ""};
    assert_int_equal(rfi_file_read(NULL, path, limit, &file, &error), status);
    CHECK(strstr(error.text, text) && file.size == 77, "%s: '%s' should say '%s'", path, error.text, text);
    assert_int_equal(rfi_file_read(NULL, path, limit, &file, NULL), status);
}

static void refused_files(void **state)
{
    scratch s;
    char path[SCRATCH_PATH];
    (void)state;
    scratch_open(&s);
    check_refused(scratch_path(&s, "none", path), 10, REEF_E_FILE, "cannot open: No such file");
    check_refused(s.folder, 10, REEF_E_FILE, "not a regular file");
    check_refused("/dev/null", 10, REEF_E_FILE, "not a regular file");
    check_refused(scratch_file(&s, "x", "abcd", 4, path), 3, REEF_E_RANGE, "has 4 bytes; at most 3");
    scratch_path(&s, "pipe", path);
    assert_int_equal(mkfifo(path, 0600), 0);
    check_refused(path, 10, REEF_E_FILE, "not a regular file");
    scratch_close(&s);
}

/* Writing over a folder cannot work: the temporary file must go. */
static void failed_writes(void **state)
{
    scratch s;
    scratch inner;
    char path[SCRATCH_PATH];
    reef_error error;
    rfi_piece piece = {"abc", 3};
    (void)state;
    scratch_open(&s);
    scratch_path(&s, "folder", path);
    assert_int_equal(mkdir(path, 0700), 0);
    memcpy(inner.folder, path, sizeof inner.folder);
    assert_int_equal(rfi_file_write(NULL, path, &piece, 1, &error), REEF_E_FILE);
    assert_non_null(strstr(error.text, "cannot write"));
    assert_int_equal(scratch_count(&s), 1);
    scratch_close(&inner);
    scratch_path(&s, "none/x", path);
    assert_int_equal(rfi_file_write(NULL, path, &piece, 1, &error), REEF_E_FILE);
    assert_non_null(strstr(error.text, "cannot make a file beside it: No such file"));
    scratch_close(&s);
}

static void long_paths_are_cut_in_messages(void **state)
{
    char path[300];
    rfi_file file;
    reef_error error;
    (void)state;
    memset(path, 'x', sizeof path);
    memcpy(path + sizeof path - 6, "/none", 6);
    assert_int_equal(rfi_file_read(NULL, path, 1, &file, &error), REEF_E_FILE);
    assert_non_null(strstr(error.text, "x/none: cannot open"));
    assert_true(strlen(rfi_path_show(path)) == 100);
}

static void failing_allocations(void **state)
{
    scratch s;
    char path[SCRATCH_PATH];
    alloc_log log;
    rfi_file file;
    rfi_piece piece = {"abc", 3};
    (void)state;
    scratch_open(&s);
    scratch_path(&s, "x", path);
    reef_context *context = alloc_context(&log, 1);
    int before = atomic_load(&log.live);
    log.fail_at = 0;
    assert_int_equal(rfi_file_write(context, path, &piece, 1, NULL), REEF_E_NOMEM);
    assert_int_equal(scratch_count(&s), 0);
    assert_int_equal(rfi_file_write(context, path, &piece, 1, NULL), REEF_OK);
    log.fail_at = atomic_load(&log.total);
    assert_int_equal(rfi_file_read(context, path, 3, &file, NULL), REEF_E_NOMEM);
    assert_int_equal(atomic_load(&log.live), before);
    reef_context_destroy(&context);
    assert_false(atomic_load(&log.broken));
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),          cmocka_unit_test(refused_files),
        cmocka_unit_test(failed_writes),       cmocka_unit_test(long_paths_are_cut_in_messages),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
