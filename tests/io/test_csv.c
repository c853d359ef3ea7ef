/* Tables in text: every separator, names, comments, columns by name or number, and where each mistake is. */
#include "io/csv.h"
#include "support/alloc.h"
#include "support/check.h"

#include <string.h>

static reef_status read_with(const char *text, rfi_csv_separator separator, rfi_csv_header header, rfi_csv *table,
                             reef_error *error)
{
    return rfi_csv_read(NULL, text, strlen(text), "t.csv", separator, header, table, error);
}

static void same_table_in_many_ways(void **state)
{
    static const char *const texts[] = {
        "1,2.5,-3\n4,5e1,6\n",
        "1;2.5;-3\r\n4;5e1;6\r\n",
        "1\t2.5\t-3\n4\t5e1\t6",
        "1 2.5 -3\n4 5e1 6",
        "  1   2.5  -3  \n\n 4 5e1   6 \n\n",
        " 1 , 2.5 , -3 \n 4,5e1 ,6",
        "# a comment\n1,2.5,-3 # another\n   # one more\n4,5e1,6\n#",
        "\357\273\2771,2.5,-3\n4,5e1,6",
        "a,b,c\n1,2.5,-3\n4,5e1,6",
        "\"a\",\"b,b\",\"c\"\n\"1\",2.5,\"-3\" \n4,\"5e1\",6",
        "\"1\" \"2.5\"  -3\n4 \"5e1\" 6",
    };
    static const double want[] = {1, 2.5, -3, 4, 50, 6};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(texts); i++) {
        rfi_csv table;
        reef_error error;
        CHECK(read_with(texts[i], RFI_CSV_AUTO, RFI_CSV_HEADER_AUTO, &table, &error) == REEF_OK, "%s: %s", texts[i],
              error.text);
        CHECK(table.rows == 2 && table.columns == 3, "%s: %td x %td", texts[i], table.rows, table.columns);
        assert_memory_equal(table.cells, want, sizeof want);
        assert_true((table.names != NULL) == (i == 8 || i == 9));
        rfi_csv_free(NULL, &table);
        assert_null(table.cells);
    }
}

static void choices(void **state)
{
    rfi_csv table;
    (void)state;
    assert_int_equal(read_with("\t1 \"2\"\t3\n4\t\t5 6", RFI_CSV_SPACE, RFI_CSV_HEADER_AUTO, &table, NULL), REEF_OK);
    assert_true(table.rows == 2 && table.columns == 3 && table.cells[1] == 2 && table.cells[5] == 6);
    rfi_csv_free(NULL, &table);
    assert_int_equal(read_with("1 2\n3 4\n", RFI_CSV_SPACE, RFI_CSV_HEADER_YES, &table, NULL), REEF_OK);
    assert_true(table.rows == 1 && table.cells[0] == 3 && rfi_equals(table.names[1], "2"));
    rfi_csv_free(NULL, &table);
    assert_int_equal(read_with("7\n8\n", RFI_CSV_COMMA, RFI_CSV_HEADER_NO, &table, NULL), REEF_OK);
    assert_true(table.rows == 2 && table.columns == 1 && !table.names);
    rfi_csv_free(NULL, &table);
}

static void columns(void **state)
{
    static const struct {
        const char *column;
        ptrdiff_t index; /* -1: refused */
        const char *says;
    } known[] = {{"y", 2, ""},
                 {"2", 1, ""},
                 {"0", 0, ""},
                 {"-1", 2, ""},
                 {"-3", 0, ""},
                 {"3", -1, "no column 3; it has 3"},
                 {"-4", -1, "no column -4"},
                 {"z", -1, "no column 'z'"},
                 {"1.5", -1, "no column '1.5'"},
                 {"1e30", -1, "no column 1"}};
    rfi_csv table;
    (void)state;
    assert_int_equal(read_with("x, 2 ,y\n1,2,3\n", RFI_CSV_AUTO, RFI_CSV_HEADER_YES, &table, NULL), REEF_OK);
    for (ptrdiff_t i = 0; i < COUNT(known); i++) {
        ptrdiff_t index = -1;
        reef_error error = {REEF_OK, ""};
        reef_status status = rfi_csv_column(&table, known[i].column, "t.csv", &index, &error);
        CHECK(index == known[i].index && (status == REEF_OK) == (index >= 0), "%s is %td", known[i].column, index);
        CHECK(strstr(error.text, known[i].says), "'%s' should say '%s'", error.text, known[i].says);
    }
    rfi_csv_free(NULL, &table);
}

static void mistakes(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } bad[] = {
        {"", "t.csv: the file has no data"},
        {"# only\n\n   \n", "t.csv: the file has no data"},
        {"a,b,c\n", "t.csv: the file has no data"},
        {"1,2\n3\n", "t.csv:2:1: 1 fields, but the first line has 2"},
        {"1,2\n\n3,4,5\n", "t.csv:3:1: 3 fields, but the first line has 2"},
        {"1,2\n3,\n", "t.csv:2:3: empty cell"},
        {"1,2\n,4\n", "t.csv:2:1: empty cell"},
        {"1,2\n3,x\n", "t.csv:2:3: this field is not a finite decimal number"},
        {"1,2\n3, nan\n", "t.csv:2:4: this field is not a finite"},
        {"1,2\n3,inf\n", "this field is not a finite"},
        {"1,2\n3,1e999\n", "this field is not a finite"},
        {"1,2\n3,0x10\n", "this field is not a finite"},
        {"1;2\n3;4,5\n", "t.csv:2:3: this field is not a finite"},
        {"1,2\n\x1b[2J,4\n", "t.csv:2:1: this field is not a finite"},
        {"1,nan\n3,4\n", "t.csv:1:1: 1 of 2 fields are numbers: state whether"},
        {"1,2\n\"3,4\n", "t.csv:2:1: this field is not a"},
        {"1,2\n\"3\"4,4\n", "t.csv:2:1: this field is not a"},
        {"\"a\" b\t\"c c\"\n1\t2.5\t-3\n", "t.csv:2:1: 3 fields, but the first line has 2"},
        {"1,2\n3333333333333333333333333333333333333333333333333x,4", "t.csv:2:1: this field is not a"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        rfi_csv table = {.rows = 77};
        reef_error error = {REEF_OK, ""};
        assert_int_equal(read_with(bad[i].text, RFI_CSV_AUTO, RFI_CSV_HEADER_AUTO, &table, &error), REEF_E_FORMAT);
        CHECK(strstr(error.text, bad[i].says) && table.rows == 77, "'%s' should say '%s'", error.text, bad[i].says);
    }
    rfi_csv table;
    reef_error error;
    assert_int_equal(rfi_csv_read(NULL, "1,2\0,3", 6, "t.csv", RFI_CSV_AUTO, RFI_CSV_HEADER_NO, &table, &error),
                     REEF_E_FORMAT);
    assert_non_null(strstr(error.text, "t.csv:1:3: this field is not a finite"));
}

/* One line, field by field: what Reef itself writes reads back, marks within quotes too. */
static void fields_of_a_line(void **state)
{
    static const char *const expected[] = {"plain", "a, b", "says \"yes\"", "", "\"", " kept ", "half\"open", ""};
    static const char line[] = "plain,\"a, b\",\"says \"\"yes\"\"\",,\"\"\"\",\" kept \", half\"open ,";
    rfi_slice rest = {line, strlen(line)};
    bool more = true;
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(expected); i++) {
        char text[sizeof line];
        assert_true(more);
        size_t length = rfi_csv_copy(rfi_csv_next(&rest, ',', &more), text);
        assert_string_equal(text, expected[i]);
        assert_int_equal(length, strlen(expected[i]));
    }
    assert_false(more);
}

static void failing_allocations(void **state)
{
    static const char text[] = "a,b\n1,2\n";
    alloc_log log;
    rfi_csv table;
    (void)state;
    reef_context *context = alloc_context(&log, 1);
    int before = atomic_load(&log.live);
    for (int i = 0; i < 3; i++) {
        atomic_store(&log.total, 0);
        log.fail_at = i;
        reef_status status =
            rfi_csv_read(context, text, strlen(text), "t.csv", RFI_CSV_AUTO, RFI_CSV_HEADER_AUTO, &table, NULL);
        assert_int_equal(status, i < 2 ? REEF_E_NOMEM : REEF_OK);
        assert_int_equal(atomic_load(&log.live), before + (i < 2 ? 0 : 2));
    }
    rfi_csv_free(context, &table);
    assert_int_equal(atomic_load(&log.live), before);
    reef_context_destroy(&context);
    assert_false(atomic_load(&log.broken));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_table_in_many_ways),
        cmocka_unit_test(choices),
        cmocka_unit_test(columns),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(fields_of_a_line),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
