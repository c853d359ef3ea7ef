/* Slices, suggestions, appending. */
#include "base/text.h"
#include "support/check.h"

#include <stdio.h>
#include <string.h>

static rfi_slice slice(const char *text)
{
    return (rfi_slice){text, strlen(text)};
}

static void trimming(void **state)
{
    static const char *const cases[][2] = {{"", ""},          {" ", ""},         {"a", "a"},
                                           {" a b\t", "a b"}, {"\r\n x\n", "x"}, {"a ", "a"}};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        assert_true(rfi_equals(rfi_trim(slice(cases[i][0])), cases[i][1]));
    }
    assert_int_equal(rfi_trim((rfi_slice){NULL, 0}).length, 0);
}

static void equality(void **state)
{
    (void)state;
    assert_true(rfi_equals(slice("ref"), "ref"));
    assert_false(rfi_equals(slice("ref"), "re"));
    assert_false(rfi_equals(slice("re"), "ref"));
    assert_false(rfi_equals(slice("REF"), "ref"));
    assert_true(rfi_equals((rfi_slice){"reference", 3}, "ref"));
    assert_true(rfi_equals(slice(""), ""));
}

static void cutting(void **state)
{
    rfi_slice rest;
    bool found = false;
    (void)state;
    rfi_slice head = rfi_cut(slice("a=b=c"), '=', &rest, &found);
    assert_true(found && rfi_equals(head, "a") && rfi_equals(rest, "b=c"));
    head = rfi_cut(slice("abc"), '=', &rest, &found);
    assert_true(!found && rfi_equals(head, "abc") && rest.length == 0);
    head = rfi_cut(slice("="), '=', &rest, &found);
    assert_true(found && head.length == 0 && rest.length == 0);
    head = rfi_cut(slice(""), '=', &rest, &found);
    assert_true(!found && head.length == 0 && rest.length == 0);
    head = rfi_cut((rfi_slice){"ab=c", 2}, '=', &rest, &found); /* not beyond the end */
    assert_true(!found && rfi_equals(head, "ab"));
}

/* Each bidirectional control of Unicode, alone and in a text; its neighbours, joiners and letters of all lengths are none. */
static void control_characters(void **state)
{
    static const char *const found[] = {"\x1f",         "\x7f",         "\xc2\x80",     "\xc2\x9f",     "\xd8\x9c",
                                        "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xaa", "\xe2\x80\xab", "\xe2\x80\xac",
                                        "\xe2\x80\xad", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa7", "\xe2\x81\xa8",
                                        "\xe2\x81\xa9", "\xe2\x80\x8b", "\xef\xbb\xbf"};
    static const char *const plain[] = {"",
                                        " ",
                                        "~",
                                        "\xc2\xa0",
                                        "\xd8\x9b",
                                        "\xe2\x80\x8c",
                                        "\xe2\x80\x8d",
                                        "\xe2\x80\x90",
                                        "\xe2\x80\xaf",
                                        "\xe2\x82\xac",
                                        "\xf0\x9f\x90\x9f",
                                        "\xe2\x80",
                                        "\x80\xae",
                                        "\xff"};
    char text[16];
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(found); i++) {
        CHECK(rfi_has_control(slice(found[i])), "control character %td is not seen", i);
        (void)snprintf(text, sizeof text, "a%sb", found[i]);
        rfi_hide_control(text);
        CHECK(text[0] == 'a' && strspn(text + 1, "?") == strlen(found[i]) && strcmp(text + strlen(text) - 1, "b") == 0,
              "control character %td: %s", i, text);
    }
    for (ptrdiff_t i = 0; i < COUNT(plain); i++) {
        CHECK(!rfi_has_control(slice(plain[i])), "text %td is taken for a control character", i);
    }
    assert_false(rfi_has_control((rfi_slice){"\xe2\x80\xae", 2})); /* not beyond the end */
}

static void edit_distances(void **state)
{
    static const struct {
        const char *a, *b;
        int distance;
    } cases[] = {{"", "", 0},          {"a", "", 1},        {"", "abc", 3},
                 {"ref", "ref", 0},    {"krum", "drum", 1}, {"kitten", "sitting", 3},
                 {"krumm", "krum", 1}, {"flaw", "lawn", 2}, {"REF", "ref", 0},
                 {"KRMU", "krum", 1}};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(rfi_edit_distance(slice(cases[i].a), cases[i].b), cases[i].distance);
        assert_int_equal(rfi_edit_distance(slice(cases[i].b), cases[i].a), cases[i].distance);
    }
    char longer[200];
    memset(longer, 'a', sizeof longer);
    longer[199] = '\0';
    assert_true(rfi_edit_distance(slice(longer), "a") >= 32);
    assert_true(rfi_edit_distance(slice("a"), longer) >= 32);
    longer[32] = '\0';
    assert_int_equal(rfi_edit_distance(slice(longer), "a"), 31);
}

static void suggestions(void **state)
{
    int best = 1000;
    (void)state;
    assert_false(rfi_is_nearer(slice("xyz"), "median", &best));
    assert_int_equal(best, 1000);
    assert_true(rfi_is_nearer(slice("mediam"), "median", &best));
    assert_int_equal(best, 1);
    assert_false(rfi_is_nearer(slice("mediam"), "mediaan", &best)); /* farther than the best */
    best = 1000;
    assert_true(rfi_is_nearer(slice("f"), "f", &best));
    assert_int_equal(best, 0);
}

static void appending(void **state)
{
    char buffer[8];
    size_t used = 0;
    (void)state;
    rfi_append(buffer, sizeof buffer, &used, "%s", "abc");
    assert_string_equal(buffer, "abc");
    rfi_append(buffer, sizeof buffer, &used, "%d%%", 12);
    assert_string_equal(buffer, "abc12%");
    rfi_append(buffer, sizeof buffer, &used, "xyz");
    assert_string_equal(buffer, "abc12%x");
    assert_int_equal(used, 9);
    rfi_append(buffer, sizeof buffer, &used, "more");
    assert_string_equal(buffer, "abc12%x");
    assert_int_equal(used, 13);
    used = 0;
    rfi_append(NULL, 0, &used, "%s", "counted");
    assert_int_equal(used, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trimming),           cmocka_unit_test(equality),    cmocka_unit_test(cutting),
        cmocka_unit_test(edit_distances),     cmocka_unit_test(suggestions), cmocka_unit_test(appending),
        cmocka_unit_test(control_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
