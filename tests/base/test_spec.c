/* Spec strings of a family: reading, presets, common fields, refusals, printing. */
#include "base/memory.h"
#include "base/spec.h"
#include "support/check.h"

#include <string.h>

typedef struct boat_params {
    int64_t masts;
    char port[REEF_TEXT_SIZE];
} boat_params;

typedef struct shared_params {
    bool wet;
} shared_params;

static const reef_field boat_fields[] = {
    {.name = "masts",
     .type = REEF_FIELD_INT,
     .offset = offsetof(boat_params, masts),
     .preset = "2",
     .min = 1,
     .max = 5},
    {.name = "port", .type = REEF_FIELD_TEXT, .offset = offsetof(boat_params, port), .preset = "home"},
};
static const reef_field shared_fields[] = {
    {.name = "wet", .type = REEF_FIELD_BOOL, .offset = offsetof(shared_params, wet), .preset = "false"},
};
static const reef_kind boat = {.name = "boat", "swims", "", boat_fields, COUNT(boat_fields), sizeof(boat_params)};
static const reef_kind raft = {.name = "raft", "swims too", "", NULL, 0, 0};
static const reef_kind buoy = {.name = "buoy", "stays where it is", "", NULL, 0, 0};
static const reef_kind *const kinds[] = {&boat, &raft, &buoy};

static bool lies_at_anchor(const reef_kind *kind)
{
    return kind == &buoy;
}

static const rfi_family family = {.name = "vessel",
                                  .what = "vessel",
                                  .builtin = kinds,
                                  .builtin_count = COUNT(kinds),
                                  .common = {"vessel", shared_fields, COUNT(shared_fields)},
                                  .lacks_common = lies_at_anchor,
                                  .lacks_text = "belongs to what moves"};

static void reading_and_printing(void **state)
{
    static const struct {
        const char *spec, *printed;
    } cases[] = {
        {"boat", "boat:masts=2,port=home,wet=false"},
        {" boat : masts = 3 , wet=yes", "boat:masts=3,port=home,wet=true"},
        {"boat:port=a=b:c d", "boat:masts=2,port=a=b:c d,wet=false"},
        {"boat:port=(a:b=1,c=(2,3)),masts=1", "boat:masts=1,port=(a:b=1,c=(2,3)),wet=false"},
        {"boat:masts=(3) , port = ( a b ) ", "boat:masts=3,port=a b,wet=false"},
        {"boat:port=()", "boat:masts=2,port=(),wet=false"},
        {"boat:port=((a))", "boat:masts=2,port=((a)),wet=false"},
        {"boat:port=a(1,wet=1", "boat:masts=2,port=a(1,wet=true"},
        {"raft", "raft:wet=false"},
        {"raft:wet=1", "raft:wet=true"},
        {"buoy", "buoy"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        shared_params shared;
        const reef_kind *kind = NULL;
        void *params = NULL;
        char text[200];
        size_t used = 0;
        assert_int_equal(rfi_spec_read(NULL, &family, cases[i].spec, &shared, &kind, &params, NULL), REEF_OK);
        rfi_spec_print(&family, kind, params, &shared, text, sizeof text, &used);
        assert_string_equal(text, cases[i].printed);
        rfi_release(NULL, params);
    }
}

static void refusals(void **state)
{
    static const struct {
        const char *spec, *says;
    } cases[] = {
        {"", "the name of a vessel is missing"},
        {"baot", "there is no vessel 'baot'; did you mean 'boat'"},
        {"submarine", "there is no vessel 'submarine'; there are: boat, raft, buoy"},
        {"boat:", "should read key=value"},
        {"boat:masts", "should read key=value"},
        {"boat:masts=", "should read key=value"},
        {"boat:=3", "should read key=value"},
        {"boat:masts=9", "from 1 to 5"},
        {"boat:sails=1", "masts, port"},
        {"boat:masts=1,masts=1", "given twice"},
        {"boat:wet=1,wet=1", "given twice"},
        {"boat:masts=1,", "should read key=value"},
        {"boat:sails=1", "masts, port, wet"},
        {"boat:port=(a", "do not match"},
        {"boat:port=(a,wet=1", "do not match"},
        {"boat:port=(a)b", "do not match"},
        {"boat:port=(a)),wet=1", "do not match"},
        {"boat:masts=()", "is not allowed"},
        {"boat:port=(a),", "should read key=value"},
        {"raft:masts=1", "has no parameter 'masts'"},
        {"buoy:wet=1", "wet= belongs to what moves, not to buoy"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        shared_params shared;
        const reef_kind *kind = NULL;
        void *params = NULL;
        reef_error error = {REEF_OK, ""};
        assert_int_not_equal(rfi_spec_read(NULL, &family, cases[i].spec, &shared, &kind, &params, &error), REEF_OK);
        CHECK(strstr(error.text, cases[i].says), "\"%s\": '%s' does not say '%s'", cases[i].spec, error.text,
              cases[i].says);
        assert_null(params);
    }
}

static void copies(void **state)
{
    boat_params given = {.masts = 7};
    void *params = NULL;
    (void)state;
    assert_int_equal(rfi_spec_copy(NULL, &family, &boat, &given, &params, NULL), REEF_OK);
    assert_int_equal(((boat_params *)params)->masts, 7);
    rfi_release(NULL, params);
    assert_int_equal(rfi_spec_copy(NULL, &family, &boat, NULL, &params, NULL), REEF_OK);
    assert_int_equal(((boat_params *)params)->masts, 2);
    rfi_release(NULL, params);
}

static void long_specs(void **state)
{
    char text[RFI_SPEC_LENGTH_MAX + 2];
    rfi_slice slice;
    (void)state;
    memset(text, 'x', sizeof text);
    text[RFI_SPEC_LENGTH_MAX + 1] = '\0';
    assert_int_equal(rfi_spec_text(text, &slice, NULL), REEF_E_SYNTAX);
    text[RFI_SPEC_LENGTH_MAX] = '\0';
    assert_int_equal(rfi_spec_text(text, &slice, NULL), REEF_OK);
    assert_int_equal(slice.length, RFI_SPEC_LENGTH_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_and_printing),
        cmocka_unit_test(refusals),
        cmocka_unit_test(copies),
        cmocka_unit_test(long_specs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
