/* Status texts and error messages. */
#include "base/error.h"
#include "support/check.h"

#include <reef/reef.h>
#include <string.h>

static void every_status_has_its_text(void **state)
{
    static const reef_status all[] = {
#define LIST(code, number, text) code,
        REEF_STATUS_LIST(LIST)
#undef LIST
    };
    (void)state;
    assert_int_equal(REEF_OK, 0);
    for (ptrdiff_t i = 0; i < COUNT(all); i++) {
        assert_int_equal(all[i], i);
        assert_true(strlen(reef_status_text(all[i])) > 1);
        for (ptrdiff_t j = 0; j < i; j++) {
            assert_string_not_equal(reef_status_text(all[i]), reef_status_text(all[j]));
        }
    }
    assert_string_equal(reef_status_text((reef_status)COUNT(all)), "unknown status");
    assert_string_equal(reef_status_text((reef_status)-1), "unknown status");
}

static void failing(void **state)
{
    reef_error error;
    (void)state;
    memset(&error, 'z', sizeof error);
    assert_int_equal(rfi_fail(&error, REEF_E_RANGE, "f = %d of %s", 3, "n"), REEF_E_RANGE);
    assert_int_equal(error.status, REEF_E_RANGE);
    assert_string_equal(error.text, "f = 3 of n");
    assert_int_equal(rfi_fail(NULL, REEF_E_NAME, "%s", "nobody listens"), REEF_E_NAME);
}

static void long_texts_are_cut(void **state)
{
    struct {
        reef_error error;
        char after[16];
    } place;
    char text[1000];
    (void)state;
    memset(&place, 'z', sizeof place);
    memset(text, 'a', sizeof text);
    text[999] = '\0';
    (void)rfi_fail(&place.error, REEF_E_ARG, "%s", text);
    assert_int_equal(strlen(place.error.text), sizeof place.error.text - 1);
    for (size_t i = 0; i < sizeof place.after; i++) {
        assert_int_equal(place.after[i], 'z');
    }
}

static void success_leaves_the_error_alone(void **state)
{
    reef_error error = {REEF_E_FAR, "as it was"};
    reef_agg *agg = NULL;
    (void)state;
    assert_int_equal(reef_agg_create(NULL, &agg, "mean", &error), REEF_OK);
    assert_int_equal(error.status, REEF_E_FAR);
    assert_string_equal(error.text, "as it was");
    reef_agg_destroy(&agg);
}

static void version(void **state)
{
    (void)state;
    assert_string_equal(reef_version(), REEF_VERSION_STRING);
    assert_true(strchr(reef_version(), '.') != NULL);
}

/* What a terminal would obey is not in a message; text of any language stays. */
static void control_characters_are_hidden(void **state)
{
    reef_error error;
    (void)state;
    (void)rfi_fail(&error, REEF_E_FILE, "%s", "a\x1b[2Jb\r\n\tc\x7f \xc2\x9b \xc2\xa7 \xc3\x9f");
    assert_string_equal(error.text, "a?[2Jb???c? ?? \xc2\xa7 \xc3\x9f");
    /* right-to-left override and isolate, left-to-right mark, byte order mark, soft hyphen, a tag; joiners and what is no UTF-8 stay */
    (void)rfi_fail(&error, REEF_E_FILE, "%s",
                   "a\xe2\x80\xae.b\xe2\x81\xa7"
                   "c\xe2\x80\x8e"
                   "d\xef\xbb\xbf"
                   "e\xc2\xad"
                   "f\xf3\xa0\x80\xa1"
                   "g\xe2\x80\x8d"
                   "h\xe2\x80");
    assert_string_equal(error.text, "a???.b???c???d???e??f????g\xe2\x80\x8dh\xe2\x80");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_are_hidden),
        cmocka_unit_test(every_status_has_its_text),
        cmocka_unit_test(failing),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(success_leaves_the_error_alone),
        cmocka_unit_test(version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
