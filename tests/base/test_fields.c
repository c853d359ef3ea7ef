/* Field tables: text to parameters and back, ranges and their messages. */
#include "base/fields.h"
#include "support/check.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct sample {
    double real;
    double wordy;
    int64_t whole;
    int64_t counted;
    bool flag;
    int word;
    reef_malicious f;
} sample;

static const char *const auto_words[] = {"auto", NULL};
static const char *const size_words[] = {"small", "large", NULL};
static const char *const choices[] = {"red", "green", "blue", NULL};

static const reef_field fields[] = {
    {.name = "real", .type = REEF_FIELD_REAL, .offset = offsetof(sample, real), .preset = "1.5", .min = -2, .max = 2},
    {.name = "wordy",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(sample, wordy),
     .preset = "auto",
     .min = 1e-9,
     .max = 1e9,
     .words = auto_words},
    {.name = "whole", .type = REEF_FIELD_INT, .offset = offsetof(sample, whole), .preset = "-3"},
    {.name = "counted",
     .type = REEF_FIELD_INT,
     .offset = offsetof(sample, counted),
     .preset = "large",
     .min = 1,
     .max = 100,
     .words = size_words},
    {.name = "flag", .type = REEF_FIELD_BOOL, .offset = offsetof(sample, flag), .preset = "yes"},
    {.name = "word", .type = REEF_FIELD_WORD, .offset = offsetof(sample, word), .preset = "green", .words = choices},
    {.name = "f", .type = REEF_FIELD_MALICIOUS, .offset = offsetof(sample, f), .preset = "20%"},
};
static const rfi_fields table = {"paint", fields, COUNT(fields)};

static reef_status set(sample *s, const char *name, const char *value, reef_error *error)
{
    return rfi_fields_set(&table, s, (rfi_slice){name, strlen(name)}, (rfi_slice){value, strlen(value)}, error);
}

static sample preset(void)
{
    sample s;
    memset(&s, 0xEE, sizeof s);
    assert_int_equal(rfi_fields_preset(&table, &s, NULL), REEF_OK);
    return s;
}

static void presets(void **state)
{
    sample s = preset();
    (void)state;
    assert_true(s.real == 1.5 && isnan(s.wordy) && s.whole == -3 && s.counted == -2 && s.flag && s.word == 1);
    assert_true(s.f.kind == REEF_MALICIOUS_FRACTION && fabs(s.f.value - 0.2) < 1e-15);
}

static void good_values(void **state)
{
    sample s = preset();
    (void)state;
    assert_true(set(&s, "real", "-2", NULL) == REEF_OK && s.real == -2);
    assert_true(set(&s, "real", "2e0", NULL) == REEF_OK && s.real == 2);
    assert_true(set(&s, "real", "+.5", NULL) == REEF_OK && s.real == 0.5);
    assert_true(set(&s, "wordy", "1e-9", NULL) == REEF_OK && s.wordy == 1e-9);
    assert_true(set(&s, "wordy", "auto", NULL) == REEF_OK && isnan(s.wordy));
    assert_true(set(&s, "whole", "9000000000000000", NULL) == REEF_OK && s.whole == 9000000000000000);
    assert_true(set(&s, "whole", "1e3", NULL) == REEF_OK && s.whole == 1000);
    assert_true(set(&s, "counted", "100", NULL) == REEF_OK && s.counted == 100);
    assert_true(set(&s, "counted", "small", NULL) == REEF_OK && s.counted == -1);
    assert_true(set(&s, "word", "blue", NULL) == REEF_OK && s.word == 2);
    static const char *const yes[] = {"true", "yes", "on", "1"};
    static const char *const no[] = {"false", "no", "off", "0"};
    for (int i = 0; i < 4; i++) {
        assert_true(set(&s, "flag", yes[i], NULL) == REEF_OK && s.flag);
        assert_true(set(&s, "flag", no[i], NULL) == REEF_OK && !s.flag);
    }
}

static void malicious_count(void **state)
{
    static const struct {
        const char *text;
        reef_malicious_kind kind;
        double value;
    } good[] = {{"0", REEF_MALICIOUS_COUNT, 0},
                {"4", REEF_MALICIOUS_COUNT, 4},
                {"1000000000", REEF_MALICIOUS_COUNT, 1e9},
                {"0.25", REEF_MALICIOUS_FRACTION, 0.25},
                {"25%", REEF_MALICIOUS_FRACTION, 0.25},
                {"0.0", REEF_MALICIOUS_FRACTION, 0},
                {"1e-3", REEF_MALICIOUS_FRACTION, 1e-3},
                {"12.5%", REEF_MALICIOUS_FRACTION, 0.125},
                {"max", REEF_MALICIOUS_MAX, 0},
                {"0.4999", REEF_MALICIOUS_FRACTION, 0.4999},
                {"0%", REEF_MALICIOUS_FRACTION, 0}};
    static const char *const bad[] = {"",      "-1",  "-0",   "0.5", "50%",        "1.5",
                                      "4.0",   "%",   "max%", "Max", "1e9",        "nan",
                                      "inf",   "0x4", "4 ",   "4%%", "1000000001", "99999999999999999999",
                                      "1e999", "-5%", "half"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(good); i++) {
        sample s = preset();
        CHECK(set(&s, "f", good[i].text, NULL) == REEF_OK, "%s", good[i].text);
        assert_true(s.f.kind == good[i].kind && fabs(s.f.value - good[i].value) < 1e-15);
    }
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        sample s = preset();
        reef_error error;
        CHECK(set(&s, "f", bad[i], &error) == REEF_E_RANGE, "%s", bad[i]);
        assert_non_null(strstr(error.text, "25%"));
    }
}

static void bad_values(void **state)
{
    static const struct {
        const char *name, *value;
        reef_status status;
        const char *says;
    } bad[] = {
        {"real", "2.0001", REEF_E_RANGE, "-2 to 2"},
        {"real", "-3", REEF_E_RANGE, "-2 to 2"},
        {"real", "two", REEF_E_SYNTAX, "real"},
        {"real", "", REEF_E_SYNTAX, "real"},
        {"real", "1,5", REEF_E_SYNTAX, "1,5"},
        {"real", "1..5", REEF_E_SYNTAX, "real"},
        {"real", "0x1p3", REEF_E_SYNTAX, "real"},
        {"real", "nan", REEF_E_SYNTAX, "real"},
        {"real", "infinity", REEF_E_SYNTAX, "real"},
        {"real", "1e400", REEF_E_SYNTAX, "real"},
        {"real", "1 ", REEF_E_SYNTAX, "real"},
        {"wordy", "Auto", REEF_E_SYNTAX, "auto"},
        {"wordy", "0", REEF_E_RANGE, "auto"},
        {"whole", "1.5", REEF_E_SYNTAX, "whole"},
        {"whole", "1e30", REEF_E_SYNTAX, "whole"},
        {"counted", "0", REEF_E_RANGE, "1 to 100"},
        {"counted", "101", REEF_E_RANGE, "large"},
        {"counted", "-1", REEF_E_RANGE, "small"},
        {"flag", "maybe", REEF_E_RANGE, "true or false"},
        {"flag", "TRUE", REEF_E_RANGE, "true or false"},
        {"word", "violet", REEF_E_RANGE, "red"},
        {"word", "", REEF_E_RANGE, "blue"},
        {"colour", "red", REEF_E_NAME, "paint has no parameter 'colour'"},
        {"wrod", "red", REEF_E_NAME, "did you mean 'word'"},
        {"", "1", REEF_E_NAME, "It takes"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        sample s = preset();
        sample before = s;
        reef_error error = {0};
        reef_status status = set(&s, bad[i].name, bad[i].value, &error);
        CHECK(status == bad[i].status, "%s = '%s': status %d", bad[i].name, bad[i].value, (int)status);
        CHECK(strstr(error.text, bad[i].says), "%s = '%s': %s", bad[i].name, bad[i].value, error.text);
        assert_true(s.real == before.real && s.whole == before.whole && s.counted == before.counted &&
                    s.word == before.word);
        assert_int_equal(set(&s, bad[i].name, bad[i].value, NULL), status);
    }
}

/* Long or binary text is shown cut, and the message stays a string. */
static void hostile_values(void **state)
{
    char text[1000];
    (void)state;
    for (int c = 1; c < 256; c += 7) {
        memset(text, c, sizeof text);
        text[sizeof text - 1] = '\0';
        for (ptrdiff_t i = 0; i < table.count; i++) {
            sample s = preset();
            reef_error error;
            assert_int_not_equal(set(&s, fields[i].name, text, &error), REEF_OK);
            assert_non_null(memchr(error.text, 0, sizeof error.text));
        }
        sample s = preset();
        assert_int_equal(set(&s, text, "1", NULL), REEF_E_NAME);
    }
    sample s = preset();
    char zero[] = "1\0"
                  "5";
    rfi_slice name = {"real", 4};
    assert_int_equal(rfi_fields_set(&table, &s, name, (rfi_slice){zero, 3}, NULL), REEF_E_SYNTAX);
}

static void printing_reads_back(void **state)
{
    static const double values[] = {1.5, 0.1, 1.0 / 3, -2, 1e-300, 2 - 0x1p-52, 0};
    char text[100];
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(values); i++) {
        sample s = preset();
        size_t used = 0;
        s.real = values[i];
        rfi_field_print(&fields[0], &s, text, sizeof text, &used);
        s.real = 77;
        assert_int_equal(set(&s, "real", text, NULL), REEF_OK);
        assert_true(s.real == values[i]);
    }
    static const char *const texts[][2] = {{"wordy", "auto"},    {"whole", "9e+15"}, {"counted", "large"},
                                           {"counted", "small"}, {"counted", "17"},  {"flag", "false"},
                                           {"word", "blue"},     {"f", "max"},       {"f", "0.0"},
                                           {"f", "0.125"},       {"f", "12"}};
    for (ptrdiff_t i = 0; i < COUNT(texts); i++) {
        sample s = preset();
        size_t used = 0;
        assert_int_equal(set(&s, texts[i][0], texts[i][1], NULL), REEF_OK);
        const reef_field *field = rfi_fields_find(&table, (rfi_slice){texts[i][0], strlen(texts[i][0])});
        rfi_field_print(field, &s, text, sizeof text, &used);
        assert_string_equal(text, texts[i][1]);
    }
    assert_null(rfi_fields_find(&table, (rfi_slice){"none", 4}));
}

/* A table of its own: a text takes what every other type must refuse. */
static void texts(void **state)
{
    typedef struct holder {
        char path[REEF_TEXT_SIZE];
    } holder;
    static const reef_field text_fields[] = {{.name = "path",
                                              .type = REEF_FIELD_TEXT,
                                              .offset = offsetof(holder, path),
                                              .preset = "",
                                              .unit = "",
                                              .help = ""}};
    static const rfi_fields text_table = {"file", text_fields, 1};
    static const rfi_slice name = {"path", 4};
    holder h;
    reef_error error;
    char text[REEF_TEXT_SIZE + 1];
    size_t used = 0;
    (void)state;
    memset(&h, 0xEE, sizeof h);
    assert_int_equal(rfi_fields_preset(&text_table, &h, NULL), REEF_OK);
    assert_string_equal(h.path, "");
    assert_int_equal(rfi_fields_set(&text_table, &h, name, (rfi_slice){"a b/\xC3\xA9.csv", 10}, NULL), REEF_OK);
    rfi_field_print(&text_fields[0], &h, text, sizeof text, &used);
    assert_string_equal(text, "a b/\xC3\xA9.csv");
    memset(text, 'x', sizeof text);
    assert_int_equal(rfi_fields_set(&text_table, &h, name, (rfi_slice){text, REEF_TEXT_SIZE - 1}, NULL), REEF_OK);
    assert_int_equal(strlen(h.path), REEF_TEXT_SIZE - 1);
    assert_int_equal(rfi_fields_set(&text_table, &h, name, (rfi_slice){text, REEF_TEXT_SIZE}, &error), REEF_E_RANGE);
    assert_non_null(strstr(error.text, "up to 1023 characters"));
    assert_int_equal(rfi_fields_set(&text_table, &h, name, (rfi_slice){"a\nb", 3}, NULL), REEF_E_RANGE);
    assert_int_equal(rfi_fields_set(&text_table, &h, name, (rfi_slice){"a\0b", 3}, NULL), REEF_E_RANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets),    cmocka_unit_test(good_values),    cmocka_unit_test(malicious_count),
        cmocka_unit_test(bad_values), cmocka_unit_test(hostile_values), cmocka_unit_test(printing_reads_back),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
