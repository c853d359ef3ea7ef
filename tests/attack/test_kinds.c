/* What holds for every attack: specs that read back, messages of errors, schedules, traits, lanes, the hostile cases. */
#include "support/attacks.h"
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void catalogue(void **state)
{
    ptrdiff_t count = 0;
    (void)state;
    assert_null(reef_kind_at(NULL, REEF_FAMILY_ATTACK, -1));
    assert_null(reef_kind_at(NULL, REEF_FAMILY_ATTACK, reef_kind_count(NULL, REEF_FAMILY_ATTACK)));
    assert_null(reef_kind_find(NULL, REEF_FAMILY_ATTACK, "nothing"));
    assert_null(reef_kind_find(NULL, REEF_FAMILY_ATTACK, NULL));
    for (ptrdiff_t i = 0; i < reef_kind_count(NULL, REEF_FAMILY_ATTACK); i++) {
        const reef_attack_kind *kind = (const void *)reef_kind_at(NULL, REEF_FAMILY_ATTACK, i);
        assert_ptr_equal(reef_kind_find(NULL, REEF_FAMILY_ATTACK, kind->kind.name), kind);
        assert_true(kind->kind.summary[0] && kind->kind.citation);
    }
    assert_string_equal(reef_kind_common(REEF_FAMILY_ATTACK, reef_kind_at(NULL, REEF_FAMILY_ATTACK, 0), &count)->name,
                        "knowledge");
    assert_int_equal(count, 5);
}

/* attack_specs name every attack and set every field to something else than its preset. */
static void specs_cover_everything(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < reef_kind_count(NULL, REEF_FAMILY_ATTACK); i++) {
        const reef_kind *kind = reef_kind_at(NULL, REEF_FAMILY_ATTACK, i);
        bool named = false;
        for (ptrdiff_t j = 0; j < attack_specs_count; j++) {
            size_t length = strcspn(attack_specs[j], ":");
            named = named || (length == strlen(kind->name) && strncmp(attack_specs[j], kind->name, length) == 0);
        }
        CHECK(named, "attack_specs do not have %s", kind->name);
        for (ptrdiff_t f = 0; f < kind->field_count; f++) {
            char want[100];
            bool set = false;
            (void)snprintf(want, sizeof want, "%s=", kind->fields[f].name);
            for (ptrdiff_t j = 0; j < attack_specs_count; j++) {
                size_t length = strlen(kind->name);
                set = set || (strncmp(attack_specs[j], kind->name, length) == 0 && attack_specs[j][length] == ':' &&
                              strstr(attack_specs[j], want));
            }
            CHECK(set, "attack_specs never set %s of %s", kind->fields[f].name, kind->name);
        }
    }
}

static void specs_read_back(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < attack_specs_count; i++) {
        char text[1000];
        char again[1000];
        char cut[8];
        char more[300];
        (void)snprintf(more, sizeof more, "%s%cknowledge=malicious,from=3,until=90,on=4,off=5", attack_specs[i],
                       strchr(attack_specs[i], ':') ? ',' : ':');
        reef_attack *attack = make_attack(i % 2 ? more : attack_specs[i]);
        size_t length = reef_attack_print(attack, text, sizeof text);
        assert_int_equal(length, strlen(text));
        assert_int_equal(reef_attack_print(attack, cut, sizeof cut), length);
        assert_int_equal(strlen(cut), sizeof cut - 1);
        assert_null(strstr(text, "knowledge=auto"));
        reef_attack *copy = make_attack(text);
        (void)reef_attack_print(copy, again, sizeof again);
        assert_string_equal(text, again);
        assert_memory_equal(reef_attack_params(attack), reef_attack_params(copy),
                            reef_attack_kind_of(attack)->kind.params_size);
        reef_attack_destroy(&attack);
        reef_attack_destroy(&copy);
        assert_null(attack);
    }
}

static void bad_specs(void **state)
{
    static const struct {
        const char *spec;
        reef_status status;
        const char *says;
    } cases[] = {
        {"aditive", REEF_E_NAME, "did you mean 'additive'"},
        {"", REEF_E_SYNTAX, "a kind of attack is missing"},
        {"additive:delta", REEF_E_SYNTAX, "key=value"},
        {"additive:delta=x", REEF_E_SYNTAX, "delta"},
        {"additive:delta=1e39", REEF_E_RANGE, "delta"},
        {"additive:delta=1,delta=2", REEF_E_SYNTAX, "twice"},
        {"additive:direction=up", REEF_E_RANGE, "ones|gaussian"},
        {"additive:knowledge=none", REEF_E_RANGE, "all|neighbours|malicious"},
        {"additive:on=0", REEF_E_RANGE, "on"},
        {"additive:off=-1", REEF_E_RANGE, "off"},
        {"additive:from=1.5", REEF_E_SYNTAX, "whole number"},
        {"additive:from=5,until=5", REEF_E_RANGE, "does not come after"},
        {"alie:z=-1", REEF_E_RANGE, "auto"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        reef_attack *attack = NULL;
        reef_error error = {REEF_OK, ""};
        reef_status status = reef_attack_create(NULL, &attack, cases[i].spec, &error);
        CHECK(status == cases[i].status && error.status == status, "'%s' gave status %d: %s", cases[i].spec,
              (int)status, error.text);
        CHECK(strstr(error.text, cases[i].says), "'%s' says: %s", cases[i].spec, error.text);
        assert_null(attack);
        assert_int_equal(reef_attack_create(NULL, &attack, cases[i].spec, NULL), cases[i].status);
    }
    assert_int_equal(reef_attack_create(NULL, NULL, "zero", NULL), REEF_E_ARG);
    assert_int_equal(reef_attack_create(NULL, &(reef_attack *){NULL}, NULL, NULL), REEF_E_ARG);
    reef_attack_destroy(NULL);
    reef_attack_destroy(&(reef_attack *){NULL});
}

static void schedules(void **state)
{
    (void)state;
    reef_attack *always = make_attack("additive");
    reef_attack *turns = make_attack("additive:from=10,until=31,on=3,off=4");
    for (int64_t t = 0; t < 50; t++) {
        assert_true(reef_attack_active(always, t));
        bool expected = t >= 10 && t < 31 && (t - 10) % 7 <= 2;
        CHECK(reef_attack_active(turns, t) == expected, "round %d", (int)t);
    }
    assert_true(reef_attack_active(always, INT64_MAX));
    assert_false(reef_attack_active(turns, INT64_MAX));
    reef_attack_destroy(&always);
    reef_attack_destroy(&turns);
}

static void work_is_counted(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < attack_specs_count; i++) {
        reef_attack *attack = make_attack(attack_specs[i]);
        ptrdiff_t rows = reef_attack_kind_of(attack)->work_rows;
        assert_int_equal(reef_attack_work(attack, 10, 3), 20 + 10 * rows);
        assert_int_equal(reef_attack_work(attack, -1, 3), -1);
        assert_int_equal(reef_attack_work(attack, 1, -1), -1);
        assert_int_equal(reef_attack_work(attack, 1, PTRDIFF_MAX), -1);
        reef_attack_destroy(&attack);
    }
}

static void same_bits(const float *a, const float *b, ptrdiff_t length, const char *spec, const char *what)
{
    CHECK(memcmp(a, b, (size_t)length * sizeof *a) == 0, "%s: %s", spec, what);
}

/* Lanes side by side give what each gives alone, bit for bit. */
static void lanes_are_apart(void **state)
{
    static const ptrdiff_t numbers[] = {1, 2, 8, 16, 19, 33};
    enum { M = 53, KNOWN = 9 };
    (void)state;
    for (ptrdiff_t i = 0; i < attack_specs_count * COUNT(numbers); i++) {
        const char *spec = attack_specs[i / COUNT(numbers)];
        ptrdiff_t lanes = numbers[i % COUNT(numbers)];
        reef_attack *attack = make_attack(spec);
        if (reef_attack_traits(attack) & REEF_ATTACK_LANES) {
            scene all = make_scene(KNOWN, M * lanes, lanes, 0.3, 1, 5);
            all.view.receiver = 2;
            all.view.repetition = 3;
            bool sent = send_message(attack, &all);
            for (ptrdiff_t r = 0; r < lanes; r++) {
                scene one = take_lane(&all, r);
                assert_int_equal(send_message(attack, &one), sent);
                for (ptrdiff_t m = 0; m < M && sent; m++) {
                    float got = all.out[m * lanes + r];
                    float want = one.out[m];
                    CHECK(got == want || (isnan(got) && isnan(want)),
                          "%s, %td lanes: lane %td, coordinate %td is %g, alone %g", spec, lanes, r, m, (double)got,
                          (double)want);
                }
                drop_scene(&one);
            }
            drop_scene(&all);
        }
        reef_attack_destroy(&attack);
    }
}

/* Sends once as it is and once after `change`; tells whether the message stayed the same. */
static bool stays(const reef_attack *attack, void (*change)(scene *s))
{
    scene a = make_scene(9, 24, 1, 0.3, 1, 8);
    scene b = make_scene(9, 24, 1, 0.3, 1, 8);
    ptrdiff_t length = 24;
    a.view.aggregate = aggregate_median;
    a.view.user = &length;
    b.view.aggregate = aggregate_median;
    b.view.user = &length;
    change(&b);
    bool sent = send_message(attack, &a);
    bool same = send_message(attack, &b) == sent && memcmp(a.out, b.out, 24 * sizeof(float)) == 0;
    drop_scene(&a);
    drop_scene(&b);
    return same;
}

static void change_own(scene *s)
{
    for (ptrdiff_t i = 0; i < s->view.length; i++) {
        s->data[i] += 1 + (float)(i % 3);
    }
    s->view.sender++;
}

static void change_previous(scene *s)
{
    for (ptrdiff_t i = 0; i < s->view.length; i++) {
        s->data[s->view.length + i] = (i % 2 ? -2.5F : 3.5F) + (float)i;
    }
}

static void change_own_and_previous(scene *s)
{
    change_own(s);
    change_previous(s);
}

static void change_rows(scene *s)
{
    for (ptrdiff_t i = 0; i < s->view.length * s->view.known; i++) {
        s->data[3 * s->view.length + i] *= 1.5F;
    }
}

static void change_receiver(scene *s)
{
    s->view.receiver = 3;
    for (ptrdiff_t i = 0; i < s->view.length; i++) {
        s->data[2 * s->view.length + i] += 1;
    }
}

/* SAME, SAME_PREVIOUS, ROWS and EDGE are claimed exactly where they hold. */
static void traits_hold(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < attack_specs_count; i++) {
        reef_attack *attack = make_attack(attack_specs[i]);
        unsigned traits = reef_attack_traits(attack);
        bool own = stays(attack, change_own);
        bool both = stays(attack, change_own_and_previous);
        CHECK(!!(traits & REEF_ATTACK_SAME) == both, "%s: SAME", attack_specs[i]);
        CHECK(!!(traits & REEF_ATTACK_SAME_PREVIOUS) == (own && !both), "%s: SAME_PREVIOUS", attack_specs[i]);
        CHECK(!!(traits & REEF_ATTACK_ROWS) == !stays(attack, change_rows), "%s: ROWS", attack_specs[i]);
        CHECK(!!(traits & REEF_ATTACK_EDGE) == !stays(attack, change_receiver), "%s: EDGE", attack_specs[i]);
        CHECK((traits & reef_attack_kind_of(attack)->traits) == reef_attack_kind_of(attack)->traits, "%s: kind",
              attack_specs[i]);
        reef_attack_destroy(&attack);
    }
}

/* The same view gives the same bits again; nothing in the view is written to. */
static void messages_are_pure(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < attack_specs_count; i++) {
        reef_attack *attack = make_attack(attack_specs[i]);
        scene a = make_scene(6, 50, 1, 0, 1, 2);
        scene b = make_scene(6, 50, 1, 0, 1, 2);
        ptrdiff_t length = 50;
        a.view.aggregate = aggregate_mean;
        a.view.user = &length;
        (void)send_message(attack, &a);
        same_bits(a.data, b.data, 9 * 50, attack_specs[i], "the view was written to");
        memcpy(b.out, a.out, 50 * sizeof(float));
        (void)send_message(attack, &a);
        same_bits(a.out, b.out, 50, attack_specs[i], "not the same twice");
        drop_scene(&a);
        drop_scene(&b);
        reef_attack_destroy(&attack);
    }
}

/* Huge rows, few rows, no liars, single numbers: finite unless that is the attack, and no access outside (ASan sees it). */
static void hostile_numbers(void **state)
{
    static const ptrdiff_t knowns[] = {0, 1, 2, 5};
    static const ptrdiff_t lengths[] = {1, 2, 257};
    static const double scales[] = {0, 1, 1e38, 1e-42};
    (void)state;
    for (ptrdiff_t i = 0; i < attack_specs_count * 48; i++) {
        const char *spec = attack_specs[i / 48];
        reef_attack *attack = make_attack(spec);
        ptrdiff_t length = lengths[i / 16 % 3];
        scene s = make_scene(knowns[i % 4], length, 1, 0, scales[i / 4 % 4], 3);
        for (ptrdiff_t j = 0; j < length * (3 + s.view.known); j++) {
            s.data[j] = isfinite(s.data[j]) ? s.data[j] : 3e38F;
        }
        for (int k = 0; k < 3; k++) {
            s.view.malicious_count = k == 1 ? 0 : 9;
            s.view.aggregate = k == 0 ? aggregate_median : k == 1 ? NULL : aggregate_nothing;
            s.view.user = &length;
            s.view.receiver_model = k == 2 ? NULL : s.data + 2 * length;
            bool sent = send_message(attack, &s);
            for (ptrdiff_t j = 0; j < length && sent && strncmp(spec, "nan", 3) != 0; j++) {
                CHECK(isfinite(s.out[j]), "%s: coordinate %td of %td is %g with %td rows of scale %g", spec, j, length,
                      (double)s.out[j], s.view.known, scales[i / 4 % 4]);
            }
        }
        drop_scene(&s);
        reef_attack_destroy(&attack);
    }
}

/* Rows of NaN and Inf (honest agents have diverged): anything may be sent, nothing may break. */
static void diverged_rows(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    for (ptrdiff_t i = 0; i < attack_specs_count * COUNT(bad); i++) {
        reef_attack *attack = make_attack(attack_specs[i / COUNT(bad)]);
        scene s = make_scene(4, 40, 1, 0, 1, 3);
        ptrdiff_t length = 40;
        s.view.aggregate = aggregate_median;
        s.view.user = &length;
        for (ptrdiff_t j = 0; j < 40 * 7; j += 3) {
            s.data[j] = bad[i % COUNT(bad)];
        }
        (void)send_message(attack, &s);
        drop_scene(&s);
        reef_attack_destroy(&attack);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(catalogue),         cmocka_unit_test(specs_cover_everything),
        cmocka_unit_test(specs_read_back),   cmocka_unit_test(bad_specs),
        cmocka_unit_test(schedules),         cmocka_unit_test(work_is_counted),
        cmocka_unit_test(lanes_are_apart),   cmocka_unit_test(traits_hold),
        cmocka_unit_test(messages_are_pure), cmocka_unit_test(hostile_numbers),
        cmocka_unit_test(diverged_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
