/* Whole files: what is read is what was written, limits hold, and a failed write leaves no trace. */
#include "io/file.h"
#include "io/stream.h"
#include "support/alloc.h"
#include "support/check.h"
#include "support/scratch.h"

#include <fcntl.h>
#include <reef/file.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
    check_refused(s.folder, 10, REEF_E_FILE, "is a folder, not a file");
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

/* Writes through `name` and checks that `target` has it, and that the link, if it is one, still leads where it did. */
static void check_through(const scratch *s, const char *name, const char *target, const char *text)
{
    char path[SCRATCH_PATH];
    char before[SCRATCH_PATH] = "";
    char after[SCRATCH_PATH] = "";
    rfi_file file;
    rfi_piece piece = {text, strlen(text)};
    scratch_path(s, name, path);
    ssize_t length = readlink(path, before, sizeof before);
    assert_int_equal(rfi_file_write(NULL, path, &piece, 1, NULL), REEF_OK);
    assert_int_equal(readlink(path, after, sizeof after), length);
    assert_string_equal(before, after);
    assert_int_equal(rfi_file_read(NULL, scratch_path(s, target, path), 100, &file, NULL), REEF_OK);
    assert_int_equal(file.size, piece.size);
    assert_memory_equal(file.bytes, text, piece.size);
    rfi_file_free(NULL, &file);
}

/* Links to a file, to a link, to what is not there yet, absolute and relative; then one in a circle. */
static void links_stay(void **state)
{
    scratch s;
    char path[SCRATCH_PATH];
    char target[SCRATCH_PATH];
    reef_error error;
    (void)state;
    scratch_open(&s);
    scratch_file(&s, "file", "old", 3, target);
    assert_int_equal(symlink("file", scratch_path(&s, "relative", path)), 0);
    assert_int_equal(symlink(target, scratch_path(&s, "absolute", path)), 0);
    assert_int_equal(symlink("./absolute", scratch_path(&s, "twice", path)), 0);
    assert_int_equal(symlink("later", scratch_path(&s, "dangling", path)), 0);
    check_through(&s, "relative", "file", "one");
    check_through(&s, "absolute", "file", "two");
    check_through(&s, "twice", "file", "three");
    check_through(&s, "dangling", "later", "four");
    check_through(&s, "dangling", "later", "five");
    assert_int_equal(symlink("circle", scratch_path(&s, "circle", path)), 0);
    assert_int_equal(rfi_file_write(NULL, path, NULL, 0, &error), REEF_E_FILE);
    assert_non_null(strstr(error.text, "circle: cannot write: Too many levels"));
    assert_int_equal(scratch_count(&s), 7);
    scratch_close(&s);
}

static mode_t mode_of(const char *path)
{
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return about.st_mode & 07777;
}

static void modes_are_kept(void **state)
{
    static const mode_t modes[] = {0600, 0640, 0664, 0400, 0755};
    scratch s;
    char path[SCRATCH_PATH];
    char link[SCRATCH_PATH];
    (void)state;
    scratch_open(&s);
    mode_t mask = umask(027);
    assert_int_equal(rfi_file_write(NULL, scratch_path(&s, "new", path), NULL, 0, NULL), REEF_OK);
    assert_int_equal(mode_of(path), 0640);
    assert_int_equal(symlink("new", scratch_path(&s, "link", link)), 0);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_int_equal(rfi_file_write(NULL, i % 2 ? link : path, NULL, 0, NULL), REEF_OK);
        assert_int_equal(mode_of(path), modes[i]);
    }
    (void)umask(mask);
    scratch_close(&s);
}

static void same_files(void **state)
{
    scratch s;
    char a[SCRATCH_PATH];
    char b[SCRATCH_PATH];
    (void)state;
    scratch_open(&s);
    scratch_path(&s, "./a", a);
    scratch_path(&s, "a", b);
    assert_true(reef_file_same(a, b)); /* once it is written */
    assert_false(reef_file_same(a, scratch_path(&s, "b", b)));
    assert_int_equal(symlink("a", b), 0);
    assert_true(reef_file_same(a, b));
    scratch_file(&s, "a", "x", 1, a);
    assert_true(reef_file_same(a, b));
    assert_int_equal(link(a, scratch_path(&s, "c", b)), 0);
    assert_true(reef_file_same(a, b));
    assert_false(reef_file_same(a, scratch_path(&s, "none", b)));
    assert_false(reef_file_same(scratch_file(&s, "d", "x", 1, b), a));
    scratch_close(&s);
}

/* The public function: files, and what is written to as it is. */
static void public_write(void **state)
{
    scratch s;
    char path[SCRATCH_PATH];
    char heard[4] = "";
    (void)state;
    scratch_open(&s);
    scratch_path(&s, "x", path);
    assert_int_equal(reef_file_write(NULL, NULL, "", 0, NULL), REEF_E_ARG);
    assert_int_equal(reef_file_write(NULL, path, NULL, 1, NULL), REEF_E_ARG);
    assert_int_equal(reef_file_write(NULL, path, "abc", 3, NULL), REEF_OK);
    assert_int_equal(reef_file_write(NULL, s.folder, "abc", 3, NULL), REEF_E_FILE);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(reef_file_write(NULL, path, "abc", 3, NULL), REEF_OK);
    assert_int_equal(read(reader, heard, sizeof heard), 3);
    assert_string_equal(heard, "abc");
    (void)close(reader);
    assert_int_equal(reef_file_write(NULL, "/dev/null", "abc", 3, NULL), REEF_OK);
    assert_int_equal(scratch_count(&s), 1);
    scratch_close(&s);
}

/* Temporary files of the dead go, those of the living and other people's files stay. */
static void orphans_are_swept(void **state)
{
    static const char *const others[] = {"x.tmp", "x.12-.tmp",   "x.-1.tmp", "x.1a-0.tmp",
                                         ".tmp",  "x.12-0.tmpx", "12-0.tmp"};
    scratch s;
    char path[SCRATCH_PATH];
    char name[64];
    (void)state;
    scratch_open(&s);
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child); /* its number is free now */
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        (void)scratch_file(&s, others[i], "", 0, path);
    }
    (void)snprintf(name, sizeof name, "a.csv.%ld-0.tmp", (long)getpid());
    (void)scratch_file(&s, name, "", 0, path);
    (void)snprintf(name, sizeof name, "a.csv.%ld-0.tmp", (long)child);
    (void)scratch_file(&s, name, "", 0, path);
    rfi_sweep_folder(s.folder);
    assert_int_equal(scratch_count(&s), (int)(sizeof others / sizeof *others) + 1);
    assert_int_not_equal(access(path, F_OK), 0);
    rfi_sweep_folder("/nowhere");
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
        cmocka_unit_test(failing_allocations), cmocka_unit_test(links_stay),
        cmocka_unit_test(orphans_are_swept),   cmocka_unit_test(modes_are_kept),
        cmocka_unit_test(same_files),          cmocka_unit_test(public_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
