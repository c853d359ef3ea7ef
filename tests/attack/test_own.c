/* Attacks of the user's own; memory: each allocation in turn fails and nothing leaks, messages allocate nothing. */
#include "support/alloc.h"
#include "support/attacks.h"
#include "support/check.h"

#include <string.h>

typedef struct push_params {
    double by;
    int64_t wait;
} push_params;

static const reef_field push_fields[] = {
    {.name = "by",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(push_params, by),
     .preset = "2.5",
     .min = 0,
     .max = 10,
     .unit = "",
     .help = "how far"},
    {.name = "wait",
     .type = REEF_FIELD_INT,
     .offset = offsetof(push_params, wait),
     .preset = "4",
     .min = 0,
     .max = 10,
     .unit = "rounds",
     .help = "how late"},
};

static bool push(const void *params, const reef_attack_view *view, float *out)
{
    const push_params *p = params;
    for (ptrdiff_t i = 0; i < view->length; i++) {
        out[i] = view->own[i] + (float)p->by;
    }
    return true;
}

static int64_t wait(const void *params)
{
    const push_params *p = params;
    return p->wait;
}

static unsigned traits(const void *params)
{
    const push_params *p = params;
    return REEF_ATTACK_LANES | (p->by > 0 ? 0 : REEF_ATTACK_SAME);
}

static const reef_attack_kind own_kind = {
    .kind = {.name = "push", "pushes", "", push_fields, COUNT(push_fields), sizeof(push_params)},
    .traits = REEF_ATTACK_LANES,
    .knowledge = REEF_KNOW_MALICIOUS,
    .work_rows = 2,
    .message = push,
    .delay = wait,
    .traits_of = traits,
};

static void presets_and_parameters(void **state)
{
    char text[200];
    reef_attack *attack = NULL;
    (void)state;
    assert_int_equal(reef_attack_create_own(NULL, &attack, &own_kind, NULL, NULL, NULL), REEF_OK);
    (void)reef_attack_print(attack, text, sizeof text);
    assert_string_equal(text, "push:by=2.5,wait=4,knowledge=malicious,from=0,until=0,on=1,off=0");
    assert_ptr_equal(reef_attack_kind_of(attack), &own_kind);
    assert_int_equal(reef_attack_traits(attack), REEF_ATTACK_LANES);
    assert_int_equal(reef_attack_delay(attack), 4);
    assert_int_equal(reef_attack_work(attack, 10, 1), 32);
    scene s = make_scene(1, 10, 1, 0, 1, 1);
    assert_true(send_message(attack, &s));
    CHECK_CLOSE((double)s.out[3], (double)s.view.own[3] + 2.5, 1e-6, "push");
    drop_scene(&s);
    reef_attack_destroy(&attack);

    push_params params = {0, 7};
    reef_attack_common common = {REEF_KNOW_NEIGHBOURS, 5, 50, 2, 3};
    assert_int_equal(reef_attack_create_own(NULL, &attack, &own_kind, &params, &common, NULL), REEF_OK);
    params.wait = 9; /* a copy is kept */
    common.from = 9;
    (void)reef_attack_print(attack, text, sizeof text);
    assert_string_equal(text, "push:by=0,wait=7,knowledge=neighbours,from=5,until=50,on=2,off=3");
    assert_int_equal(reef_attack_traits(attack), REEF_ATTACK_LANES | REEF_ATTACK_SAME);
    assert_false(reef_attack_active(attack, 4));
    assert_true(reef_attack_active(attack, 6));
    assert_false(reef_attack_active(attack, 7));
    reef_attack_destroy(&attack);
}

static void refuse(const reef_attack_kind *kind, const reef_attack_common *common, reef_status want)
{
    reef_attack *attack = NULL;
    reef_error error = {REEF_OK, ""};
    reef_status status = reef_attack_create_own(NULL, &attack, kind, NULL, common, &error);
    CHECK(status == want && error.status == want && error.text[0] && !attack, "status %d: %s", (int)status, error.text);
}

static void unsound_kinds(void **state)
{
    static const reef_attack_common bad[] = {
        {REEF_KNOW_AUTO + 1, 0, 0, 1, 0},
        {-1, 0, 0, 1, 0},
        {0, -1, 0, 1, 0},
        {0, 0, -1, 1, 0},
        {0, 0, 0, 0, 0},
        {0, 0, 0, 1, -1},
        {0, 5, 5, 1, 0},
        {0, 0, 0, INT64_MAX, 1},
    };
    static const reef_field wrong_preset[] = {
        {.name = "x", .type = REEF_FIELD_REAL, .preset = "much", .unit = "", .help = ""}};
    reef_attack_kind kind = own_kind;
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        refuse(&own_kind, &bad[i], REEF_E_RANGE);
    }
    refuse(NULL, NULL, REEF_E_ARG);
    assert_int_equal(reef_attack_create_own(NULL, NULL, &own_kind, NULL, NULL, NULL), REEF_E_ARG);
    kind.kind.name = NULL;
    refuse(&kind, NULL, REEF_E_ARG);
    kind = own_kind;
    kind.work_rows = -1;
    refuse(&kind, NULL, REEF_E_ARG);
    kind = own_kind;
    kind.kind.field_count = 33;
    refuse(&kind, NULL, REEF_E_ARG);
    kind = own_kind;
    kind.kind.fields = NULL;
    refuse(&kind, NULL, REEF_E_ARG);
    kind = own_kind;
    kind.knowledge = REEF_KNOW_AUTO;
    refuse(&kind, NULL, REEF_E_ARG);
    kind = own_kind;
    kind.kind.fields = wrong_preset;
    kind.kind.field_count = 1;
    refuse(&kind, NULL, REEF_E_SYNTAX);
}

static void each_allocation_fails(void **state)
{
    static alloc_log events;
    (void)state;
    reef_context *context = alloc_context(&events, 1);
    int live = atomic_load(&events.live);
    for (int own = 0; own < 2; own++) {
        reef_status status = REEF_E_NOMEM;
        for (int at = 0; status != REEF_OK; at++) {
            reef_attack *attack = NULL;
            reef_error error = {REEF_OK, ""};
            atomic_store(&events.total, 0);
            events.fail_at = at;
            status = own ? reef_attack_create_own(context, &attack, &own_kind, NULL, NULL, &error)
                         : reef_attack_create(context, &attack, "min_max", &error);
            CHECK(status == REEF_OK || (status == REEF_E_NOMEM && !attack && strstr(error.text, "memory")),
                  "status %d: %s", (int)status, error.text);
            CHECK(at < 10, "still failing");
            reef_attack_destroy(&attack);
            assert_int_equal(atomic_load(&events.live), live);
        }
    }
    assert_false(atomic_load(&events.broken));
    reef_context_destroy(&context);
    assert_int_equal(atomic_load(&events.live), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_and_parameters),
        cmocka_unit_test(unsound_kinds),
        cmocka_unit_test(each_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
