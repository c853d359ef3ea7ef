/* The audit log: lines are appended, and a full file is put aside. */
#include "net/audit.h"
#include "support/check.h"
#include "support/scratch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_lines(void **state)
{
    scratch folder;
    char path[SCRATCH_PATH];
    char text[400] = "";
    (void)state;
    scratch_open(&folder);
    assert_true(rfi_audit_line(folder.folder, "refused", "neighbour=%s count=%d", "bob", 3));
    assert_true(rfi_audit_line(folder.folder, "proof", "neighbour=carol"));
    FILE *log = fopen(scratch_path(&folder, "audit.log", path), "r");
    assert_non_null(log);
    size_t size = fread(text, 1, sizeof text - 1, log);
    assert_int_equal(fclose(log), 0);
    text[size] = '\0';
    assert_int_equal(strncmp(text, "time=2", 6), 0);
    assert_non_null(strstr(text, "Z event=refused neighbour=bob count=3\ntime="));
    assert_non_null(strstr(text, "Z event=proof neighbour=carol\n"));
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 077, 0);
    scratch_close(&folder);
}

static void test_full(void **state)
{
    scratch folder;
    char path[SCRATCH_PATH];
    struct stat about;
    (void)state;
    scratch_open(&folder);
    (void)scratch_file(&folder, "audit.log", "old\n", 4, path);
    assert_int_equal(truncate(path, (off_t)RFI_AUDIT_BYTES), 0);
    assert_true(rfi_audit_line(folder.folder, "refused", "count=1"));
    assert_int_equal(stat(path, &about), 0);
    assert_true(about.st_size < 100);
    assert_int_equal(stat(scratch_path(&folder, "audit.log.1", path), &about), 0);
    assert_int_equal(about.st_size, RFI_AUDIT_BYTES);
    assert_int_equal(scratch_count(&folder), 2);
    scratch_close(&folder);
}

static void test_trouble(void **state)
{
    (void)state;
    assert_false(rfi_audit_line("/nowhere/at/all", "refused", "count=1"));
    char text[9];
    rfi_audit_hex(text, (const unsigned char[]){0, 1, 0xab, 0xff}, 4);
    assert_string_equal(text, "0001abff");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_trouble),
    };
    return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
