/* Numbers from text: separators, comments, lines, long words, broken bytes; from memory and from files alike. */
#include "io/numbers.h"
#include "support/check.h"
#include "support/graphs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void sequence(rfi_numbers *reader)
{
    static const struct {
        rfi_numbers_item item;
        double value;
        ptrdiff_t line; /* after reading */
    } want[] = {
        {RFI_NUMBERS_VALUE, 1, 1},    {RFI_NUMBERS_VALUE, -2.5, 1}, {RFI_NUMBERS_LINE_END, 0, 2},
        {RFI_NUMBERS_LINE_END, 0, 3}, {RFI_NUMBERS_VALUE, 300, 3},  {RFI_NUMBERS_LINE_END, 0, 4},
        {RFI_NUMBERS_LINE_END, 0, 5}, {RFI_NUMBERS_VALUE, 4, 5},    {RFI_NUMBERS_VALUE, 0.5, 5},
        {RFI_NUMBERS_END, 0, 5},      {RFI_NUMBERS_END, 0, 5},
    };
    for (ptrdiff_t i = 0; i < COUNT(want); i++) {
        double value = 0;
        reef_status status = REEF_OK;
        assert_int_equal(rfi_numbers_next(reader, &value, &status, NULL), want[i].item);
        assert_int_equal(reader->line, want[i].line);
        assert_true(want[i].item != RFI_NUMBERS_VALUE || value == want[i].value);
    }
}

static const char *const text = "1,-2.5#7 8\n\n\t+3e2 ;\r\n# only a comment\n  4 .5";

static void from_memory(void **state)
{
    rfi_numbers reader;
    (void)state;
    rfi_numbers_memory(&reader, "memory", text, strlen(text));
    sequence(&reader);
    rfi_numbers_close(&reader);
}

static void from_files(void **state)
{
    rfi_numbers reader;
    char path[256];
    reef_error error;
    (void)state;
    write_temporary(text, path);
    assert_int_equal(rfi_numbers_open(&reader, path, NULL), REEF_OK);
    sequence(&reader);
    rfi_numbers_close(&reader);
    rfi_numbers_close(&reader); /* twice does no harm */
    assert_int_equal(remove(path), 0);
    assert_int_equal(rfi_numbers_open(&reader, path, &error), REEF_E_FILE);
    assert_non_null(strstr(error.text, path));
    /* neither waited for nor read without end */
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(rfi_numbers_open(&reader, path, &error), REEF_E_FILE);
    assert_non_null(strstr(error.text, "is not a regular file"));
    assert_int_equal(remove(path), 0);
    assert_int_equal(rfi_numbers_open(&reader, "/dev/zero", NULL), REEF_E_FILE);
}

static void broken_words(void **state)
{
    static char zeros[1000];
    static const struct {
        const char *bytes;
        size_t length;
        const char *says;
    } cases[] = {
        {"1 2\n3 x4\n", 9, "it:2: this is not a list of finite decimal numbers"},
        {"\x01\xff", 2, "it:1: this is not"},
        {"1\0002", 3, "it:1: this is not"},
        {"inf", 3, "it:1: this is not"},
        {"1e400", 5, "it:1: this is not"},
        {zeros, sizeof zeros, "it:1: this is not"}, /* too long, though a number */
    };
    (void)state;
    memset(zeros, '0', sizeof zeros);
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        rfi_numbers reader;
        rfi_numbers_item item = RFI_NUMBERS_VALUE;
        reef_status status = REEF_OK;
        reef_error error = {REEF_OK, ""};
        double value = 0;
        rfi_numbers_memory(&reader, "it", cases[i].bytes, cases[i].length);
        while (item == RFI_NUMBERS_VALUE || item == RFI_NUMBERS_LINE_END) {
            item = rfi_numbers_next(&reader, &value, &status, &error);
        }
        assert_int_equal(item, RFI_NUMBERS_ERROR);
        assert_int_equal(status, REEF_E_FORMAT);
        CHECK(strstr(error.text, cases[i].says), "'%s' does not say '%s'", error.text, cases[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_memory),
        cmocka_unit_test(from_files),
        cmocka_unit_test(broken_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
