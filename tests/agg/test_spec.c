/* Spec strings: printing and reading back, forms of f, blanks, traits of pipes. */
#include "support/check.h"
#include "support/specs.h"
#include "support/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static trial t, other;

/* What is printed creates the same aggregator: the same text again, the same result. */
static void check_round_trip(const char *spec)
{
    char text[1000];
    char again[1000];
    char cut[10];
    reef_agg *agg = make_agg(spec);
    size_t length = reef_agg_print(agg, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_int_equal(reef_agg_print(agg, NULL, 0), length);
    memset(cut, 'x', sizeof cut);
    assert_int_equal(reef_agg_print(agg, cut, 6), length);
    assert_true(strlen(cut) == 5 && strncmp(cut, text, 5) == 0 && cut[6] == 'x');
    reef_agg *copy = make_agg(text);
    (void)reef_agg_print(copy, again, sizeof again);
    assert_string_equal(text, again);
    assert_int_equal(reef_agg_traits(agg), reef_agg_traits(copy));
    trial_fill(&t, ROWS_GAUSS, 9, 6, REEF_F64, 3);
    t.has_self = true;
    other = t;
    trial_apply(&t, agg);
    trial_apply(&other, copy);
    assert_int_equal(t.status, other.status);
    trial_same_out(&t, &other, spec);
    reef_agg_destroy(&agg);
    reef_agg_destroy(&copy);
}

static void printing_reads_back(void **state)
{
    static const char *const more[] = {"trimmed:f=0",
                                       "trimmed:f=0.0",
                                       "trimmed:f=0%",
                                       "trimmed:f=12.5%",
                                       "trimmed:f=4",
                                       "krum:f=max",
                                       "ref:c=4.6850607706146",
                                       "ref:c=0.1",
                                       "ref:tol=1e-7",
                                       "vref:block=123456789",
                                       "clip:c=1e300 | mean",
                                       "bucketing:seed=9000000000000000 | mean",
                                       "mean:nan=error",
                                       "ref:nan=drop-coordinate",
                                       "huber:sigma=1.0000000000000001e-150",
                                       "ref:scale_floor=9.9999999999999998e149",
                                       "trimmed:keep_self=yes",
                                       "median:keep_self=1",
                                       "multikrum:m=auto",
                                       "ref:c=auto"};
    (void)state;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        check_round_trip(all_specs[i]);
    }
    for (ptrdiff_t i = 0; i < COUNT(more); i++) {
        check_round_trip(more[i]);
    }
}

static void printing_spells_out_everything(void **state)
{
    char text[400];
    reef_agg *agg = make_agg("nnm:f=2|trimmed");
    (void)state;
    (void)reef_agg_print(agg, text, sizeof text);
    assert_string_equal(text, "nnm:f=2 | trimmed:f=0.2,beta=auto,keep_self=false,nan=drop-row");
    reef_agg_destroy(&agg);
    agg = make_agg("mean:nan=error");
    (void)reef_agg_print(agg, text, sizeof text);
    assert_string_equal(text, "mean:nan=error");
    reef_agg_destroy(&agg);
}

static void blanks_do_not_matter(void **state)
{
    static const char *const same[] = {"nnm:f=2|ref:c=3,max_iter=50", "  nnm : f = 2 |  ref : c=3 , max_iter = 50  ",
                                       "nnm:f=2\t|\nref:c=3,max_iter=50\r\n"};
    char text[3][400];
    (void)state;
    for (int i = 0; i < 3; i++) {
        reef_agg *agg = make_agg(same[i]);
        (void)reef_agg_print(agg, text[i], sizeof text[i]);
        reef_agg_destroy(&agg);
    }
    assert_string_equal(text[0], text[1]);
    assert_string_equal(text[0], text[2]);
}

static ptrdiff_t malicious_count(const char *spec, ptrdiff_t n)
{
    reef_agg *agg = make_agg(spec);
    ptrdiff_t f = reef_agg_tolerates(agg, n);
    reef_agg_destroy(&agg);
    return f;
}

static void forms_of_f(void **state)
{
    (void)state;
    for (ptrdiff_t n = 1; n <= 50; n++) {
        assert_int_equal(malicious_count("trimmed:f=4", n), 4);
        assert_int_equal(malicious_count("trimmed:f=0.25", n), n / 4);
        assert_int_equal(malicious_count("trimmed:f=25%", n), n / 4);
        assert_int_equal(malicious_count("trimmed:f=max", n), (n - 1) / 2);
        assert_int_equal(malicious_count("krum", n), n >= 3 ? (n - 3) / 2 : 0);
        assert_int_equal(malicious_count("krum:dialect=byzfl", n), (n - 1) / 2);
        assert_int_equal(malicious_count("bulyan", n), n >= 3 ? (n - 3) / 4 : 0);
        assert_int_equal(malicious_count("trimmed:f=max,keep_self=true", n), n > 2 ? (n - 2) / 2 : 0);
        assert_int_equal(malicious_count("ref", n), -1);
        assert_int_equal(malicious_count("nnm | ref", n), (n - 1) / 2);
        assert_int_equal(malicious_count("bucketing:s=2 | krum", n), malicious_count("krum", (n + 1) / 2));
        assert_int_equal(malicious_count("nnm:f=3 | krum:f=2", n), 2);
    }
    assert_int_equal(malicious_count("krum", 0), -1);
    /* max works for every n, and is what it says */
    for (ptrdiff_t n = 1; n <= 40; n++) {
        char spec[64];
        trial_fill(&t, ROWS_GAUSS, n, 3, REEF_F64, (uint32_t)n);
        other = t;
        (void)snprintf(spec, sizeof spec, "meamed:f=%td", (n - 1) / 2);
        trial_must_run(&t, "meamed:f=max");
        trial_must_run(&other, spec);
        trial_same_out(&t, &other, spec);
    }
}

static void traits_of_pipes(void **state)
{
    static const struct {
        const char *spec;
        unsigned has, lacks;
    } cases[] = {
        {"nnm | ref", REEF_TRAIT_WEIGHTS | REEF_TRAIT_TRANSLATION | REEF_TRAIT_ROBUST, REEF_TRAIT_REPLICATION},
        {"clip | ref", REEF_TRAIT_WEIGHTS | REEF_TRAIT_PERMUTATION,
         REEF_TRAIT_TRANSLATION | REEF_TRAIT_HULL | REEF_TRAIT_SCALE},
        {"arc | krum", REEF_TRAIT_SCALE, REEF_TRAIT_WEIGHTS | REEF_TRAIT_TRANSLATION},
        {"nnm | cclip", REEF_TRAIT_CENTRE, REEF_TRAIT_TRANSLATION},
        {"nnm | mean", REEF_TRAIT_HULL, REEF_TRAIT_ROBUST},
        {"bucketing | ref", REEF_TRAIT_HULL, REEF_TRAIT_PERMUTATION},
        {"trimmed:keep_self=true", REEF_TRAIT_SELF, REEF_TRAIT_PERMUTATION | REEF_TRAIT_ROBUST},
        {"ref:scale_floor=1", REEF_TRAIT_TRANSLATION, REEF_TRAIT_SCALE},
        {"median:even=lower", REEF_TRAIT_ROBUST, REEF_TRAIT_SCALE},
        {"cclip:start=median", REEF_TRAIT_TRANSLATION | REEF_TRAIT_CENTRE, REEF_TRAIT_REPLICATION},
        {"geomed:dialect=byzfl", REEF_TRAIT_HULL, REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        reef_agg *agg = make_agg(cases[i].spec);
        unsigned traits = reef_agg_traits(agg);
        CHECK((traits & cases[i].has) == cases[i].has && !(traits & cases[i].lacks), "%s: traits %x", cases[i].spec,
              traits);
        reef_agg_destroy(&agg);
    }
}

/* Every parameter can be set to its own preset; every word is accepted. */
static void every_field_takes_what_it_says(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < reef_kind_count(NULL, REEF_FAMILY_RULE); i++) {
        const reef_rule *rule = (const void *)reef_kind_at(NULL, REEF_FAMILY_RULE, i);
        const char *end = rule->mix ? " | mean" : "";
        for (ptrdiff_t j = 0; j < rule->kind.field_count; j++) {
            const reef_field *field = &rule->kind.fields[j];
            char spec[200];
            (void)snprintf(spec, sizeof spec, "%s:%s=%s%s", rule->kind.name, field->name, field->preset, end);
            reef_agg *agg = make_agg(spec);
            reef_agg_destroy(&agg);
            for (ptrdiff_t w = 0; field->words && field->words[w]; w++) {
                (void)snprintf(spec, sizeof spec, "%s:%s=%s%s", rule->kind.name, field->name, field->words[w], end);
                agg = make_agg(spec);
                reef_agg_destroy(&agg);
            }
            for (int edge = 0; edge < 2 && field->max > field->min; edge++) {
                (void)snprintf(spec, sizeof spec, "%s:%s=%.17g%s", rule->kind.name, field->name,
                               edge ? field->max : field->min, end);
                agg = make_agg(spec);
                reef_agg_destroy(&agg);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printing_reads_back),  cmocka_unit_test(printing_spells_out_everything),
        cmocka_unit_test(blanks_do_not_matter), cmocka_unit_test(forms_of_f),
        cmocka_unit_test(traits_of_pipes),      cmocka_unit_test(every_field_takes_what_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
