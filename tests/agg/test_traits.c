/* Claims of the rules, checked for every spec of the list that makes them: permutation, translation, scale, hull, equal
 * rows. See test_weights.c for those about weights, test_breakdown.c for robustness. */
#include "num/rng.h"
#include "support/check.h"
#include "support/specs.h"
#include "support/trial.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static trial before, after;
static const reef_dtype dtypes[] = {REEF_F64, REEF_F32};

/* What a check sees: an aggregator and a filled trial. */
typedef struct scene {
    const char *spec;
    reef_agg *agg;
    unsigned traits;
    uint32_t seed;
    char text[160];
} scene;

typedef void scene_check(scene *s);

/* Which of several candidates that tie a rule picks may depend on their order, or on rounding. Rules that choose whole
 * rows meet ties in tied data; averages of tied rows tie up to rounding; and nnm gives rows with the same neighbours the
 * same mixture, whatever the data. */
static bool may_tie(const char *spec, rows_kind kind, bool permuted)
{
    bool chooses =
        spec_uses(spec, "krum") || spec_uses(spec, "multikrum") || spec_uses(spec, "bulyan") || spec_uses(spec, "mda");
    bool tied = kind == ROWS_TIES || kind == ROWS_SPARSE;
    if (tied && (strchr(spec, '|') || (permuted && chooses))) {
        return true;
    }
    bool trims = spec_uses(spec, "trimmed") || spec_uses(spec, "meamed");
    return spec_uses(spec, "nnm") && (chooses || trims || before.m < 3);
}

static void check_permutation(scene *s);
static void check_translation(scene *s);
static void check_scale(scene *s);

static void set_scene(scene *s, const char *spec, rows_kind kind, ptrdiff_t n, ptrdiff_t m, reef_dtype dtype)
{
    trial_fill(&before, kind, n, m, dtype, s->seed);
    if ((s->traits & REEF_TRAIT_WEIGHTS) && s->seed % 2) {
        trial_weigh(&before, s->seed);
    }
    before.has_self = (s->traits & REEF_TRAIT_SELF) != 0;
    before.self = n / 2;
    before.round = (int64_t)s->seed;
    (void)snprintf(s->text, sizeof s->text, "%s (%s, n = %td, m = %td, rows %d, weighted %d)", spec,
                   dtype == REEF_F32 ? "float32" : "float64", n, m, (int)kind, before.weighted);
}

/* Every spec that claims all of `traits`, with several shapes, both types and kinds of rows. */
static void for_all(unsigned traits, const rows_kind *kinds, ptrdiff_t kind_count, scene_check *check)
{
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        scene s = {.spec = all_specs[i], .agg = make_agg(all_specs[i]), .seed = (uint32_t)i};
        s.traits = reef_agg_traits(s.agg);
        if ((s.traits & traits) != traits) {
            reef_agg_destroy(&s.agg);
            continue;
        }
        for (ptrdiff_t j = 0; j < row_counts_count * kind_count; j++) {
            s.seed++;
            rows_kind kind = kinds[j % kind_count];
            ptrdiff_t m = lengths[s.seed % (uint32_t)lengths_count];
            set_scene(&s, s.spec, kind, row_counts[j / kind_count], m, dtypes[(s.seed / 2) % 2]);
            bool moves = check == check_permutation || check == check_translation || check == check_scale;
            if (moves && may_tie(s.spec, kind, check == check_permutation)) {
                continue;
            }
            check(&s);
        }
        reef_agg_destroy(&s.agg);
    }
}

static void apply(trial *t, const scene *s)
{
    trial_apply(t, s->agg);
    CHECK(t->status == REEF_OK, "%s: %s", s->text, t->error.text);
}

static double tolerance(const scene *s)
{
    double single = before.dtype == REEF_F32;
    return (spec_tolerance(s->spec, single != 0) + 4 * dtype_epsilon(before.dtype)) *
           (trial_magnitude(&before) + trial_magnitude(&after));
}

/* ---- the list ---- */

static void every_rule_is_in_the_list(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < reef_kind_count(NULL, REEF_FAMILY_RULE); i++) {
        const reef_rule *rule = (const void *)reef_kind_at(NULL, REEF_FAMILY_RULE, i);
        bool alone = false;
        bool piped = false;
        for (ptrdiff_t j = 0; j < all_specs_count; j++) {
            bool uses = spec_uses(all_specs[j], rule->kind.name);
            alone = alone || (uses && !strchr(all_specs[j], '|'));
            piped = piped || (uses && strchr(all_specs[j], '|'));
        }
        CHECK(alone || rule->mix, "add %s to all_specs in tests/support/specs.c", rule->kind.name);
        CHECK(piped || (rule->traits & REEF_TRAIT_SENDERS), "add a pipe with %s to all_specs in tests/support/specs.c",
              rule->kind.name);
    }
    assert_null(reef_kind_at(NULL, REEF_FAMILY_RULE, -1));
    assert_null(reef_kind_at(NULL, REEF_FAMILY_RULE, reef_kind_count(NULL, REEF_FAMILY_RULE)));
    assert_null(reef_kind_find(NULL, REEF_FAMILY_RULE, "no-such-rule"));
    assert_null(reef_kind_find(NULL, REEF_FAMILY_RULE, NULL));
}

static void every_parameter_is_described(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < reef_kind_count(NULL, REEF_FAMILY_RULE); i++) {
        const reef_rule *rule = (const void *)reef_kind_at(NULL, REEF_FAMILY_RULE, i);
        assert_ptr_equal(reef_kind_find(NULL, REEF_FAMILY_RULE, rule->kind.name), rule);
        assert_true(strlen(rule->kind.summary) > 10 && !strchr(rule->kind.summary, '\n'));
        assert_non_null(rule->kind.citation);
        for (ptrdiff_t j = 0; j < rule->kind.field_count; j++) {
            const reef_field *field = &rule->kind.fields[j];
            assert_true(strlen(field->help) > 3);
            assert_non_null(field->preset);
            assert_non_null(field->unit);
            assert_true(field->min <= field->max);
            assert_true(field->type != REEF_FIELD_WORD || field->words);
            assert_true(field->offset < rule->kind.params_size);
        }
    }
}

/* ---- permutation ---- */

/* Two rows that are each other's nearest have the same Krum score where it sums a single distance, and the first of them
 * is taken. Krum: n <= 3. Bulyan, which goes on with fewer and fewer rows: f <= 2. */
static bool ties_by_nature(const scene *s)
{
    bool bulyan = spec_uses(s->spec, "bulyan") && reef_agg_tolerates(s->agg, before.n) <= 2;
    return bulyan || (spec_uses(s->spec, "krum") && before.n <= 3);
}

static void check_permutation(scene *s)
{
    ptrdiff_t order[ROWS_MAX];
    if (ties_by_nature(s)) {
        return;
    }
    rfi_rng rng;
    rfi_rng_init(&rng, s->seed, 1, 2, 3, 4);
    apply(&before, s);
    rfi_rng_permutation(&rng, order, before.n);
    after = before;
    for (ptrdiff_t l = 0; l < before.n; l++) {
        memcpy(after.x[l], before.x[order[l]], sizeof after.x[l]);
        after.weights[l] = before.weights[order[l]];
        after.self = order[l] == before.self ? l : after.self;
    }
    apply(&after, s);
    trial_close_out(&before, &after, tolerance(s), s->text);
    for (ptrdiff_t l = 0; !strchr(s->spec, '|') && l < before.n; l++) {
        CHECK_CLOSE(after.trust[l], before.trust[order[l]], before.dtype == REEF_F32 ? 1e-3 : 1e-4, s->text);
    }
}

static void permutation(void **state)
{
    static const rows_kind kinds[] = {ROWS_GAUSS, ROWS_OFFSET, ROWS_TIES, ROWS_SPARSE, ROWS_HEAVY};
    (void)state;
    for_all(REEF_TRAIT_PERMUTATION, kinds, COUNT(kinds), check_permutation);
}

/* ---- translation and scale ---- */

/* x -> factor x + shift_i */
static void transform(const scene *s, double factor, double shift)
{
    after = before;
    for (ptrdiff_t l = 0; l < before.n; l++) {
        for (ptrdiff_t i = 0; i < before.m; i++) {
            after.x[l][i] = factor * before.x[l][i] + shift * (double)(i % 5 - 2);
        }
    }
    apply(&after, s);
}

static void check_transformed(const scene *s, double factor, double shift)
{
    double tol = tolerance(s);
    for (ptrdiff_t i = 0; i < before.m; i++) {
        double want = factor * before.out[i] + shift * (double)(i % 5 - 2);
        CHECK(fabs(after.out[i] - want) <= tol, "%s, times %g plus %g: coordinate %td is %.17g instead of %.17g",
              s->text, factor, shift, i, after.out[i], want);
    }
}

static void check_translation(scene *s)
{
    apply(&before, s);
    transform(s, 1, 16);
    check_transformed(s, 1, 16);
}

static void translation(void **state)
{
    static const rows_kind kinds[] = {ROWS_GAUSS, ROWS_OFFSET, ROWS_TIES, ROWS_SPARSE};
    (void)state;
    for_all(REEF_TRAIT_TRANSLATION, kinds, COUNT(kinds), check_translation);
}

static void check_scale(scene *s)
{
    static const double factors[] = {0.5, 3, -1, -4, 0x1p20};
    apply(&before, s);
    for (ptrdiff_t i = 0; i < COUNT(factors); i++) {
        transform(s, factors[i], 0);
        check_transformed(s, factors[i], 0);
    }
    transform(s, 0, 0);
    check_transformed(s, 0, 0);
}

static void scale(void **state)
{
    static const rows_kind kinds[] = {ROWS_GAUSS, ROWS_OFFSET, ROWS_TIES, ROWS_SPARSE};
    (void)state;
    for_all(REEF_TRAIT_SCALE, kinds, COUNT(kinds), check_scale);
}

/* ---- hull and equal rows ---- */

static double ulps(double x, reef_dtype dtype, double count)
{
    double smallest = dtype == REEF_F32 ? (double)FLT_MIN : DBL_MIN;
    return smallest + count * dtype_epsilon(dtype) * fabs(x);
}

static void check_hull(scene *s)
{
    apply(&before, s);
    for (ptrdiff_t i = 0; i < before.m; i++) {
        double low = before.x[0][i];
        double high = low;
        for (ptrdiff_t l = 1; l < before.n; l++) {
            low = fmin(low, before.x[l][i]);
            high = fmax(high, before.x[l][i]);
        }
        double out = before.out[i];
        CHECK(out >= low - ulps(low, before.dtype, 2) && out <= high + ulps(high, before.dtype, 2),
              "%s: %.17g is outside %.17g to %.17g", s->text, out, low, high);
    }
}

static void hull(void **state)
{
    static const rows_kind kinds[] = {ROWS_GAUSS, ROWS_OFFSET, ROWS_TIES, ROWS_SPARSE, ROWS_HEAVY};
    (void)state;
    for_all(REEF_TRAIT_HULL, kinds, COUNT(kinds), check_hull);
}

static void check_equal_rows(scene *s)
{
    for (ptrdiff_t l = 1; l < before.n; l++) {
        memcpy(before.x[l], before.x[0], sizeof before.x[l]);
    }
    apply(&before, s);
    for (ptrdiff_t i = 0; i < before.m; i++) {
        /* a mixed row is a sum of n products */
        double allowed = strchr(s->spec, '|') && before.dtype == REEF_F64 ? 2 + (double)before.n : 2;
        CHECK_CLOSE(before.out[i], before.x[0][i], ulps(before.x[0][i], before.dtype, allowed), s->text);
    }
    double sum = 0;
    for (ptrdiff_t l = 0; l < before.n; l++) {
        sum += before.trust[l] * trial_weight(&before, l);
    }
    CHECK_CLOSE(sum + before.centre_share, 1, 1e-12, s->text);
}

static void equal_rows(void **state)
{
    static const rows_kind kinds[] = {ROWS_GAUSS, ROWS_OFFSET, ROWS_HEAVY};
    (void)state;
    for_all(REEF_TRAIT_HULL, kinds, COUNT(kinds), check_equal_rows);
}

/* One row, and two rows of equal weight: the row, the mean. */
static void one_and_two_rows(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        scene s = {.spec = all_specs[i], .agg = make_agg(all_specs[i]), .seed = 2};
        s.traits = reef_agg_traits(s.agg);
        set_scene(&s, s.spec, ROWS_GAUSS, 1, 5, REEF_F64);
        apply(&before, &s);
        for (ptrdiff_t j = 0; (s.traits & REEF_TRAIT_HULL) && j < before.m; j++) {
            CHECK_CLOSE(before.out[j], before.x[0][j], 1e-15, s.text);
        }
        reef_agg_destroy(&s.agg);
    }
    static const char *const means[] = {"mean",       "median", "trimmed",      "meamed",     "geomed",
                                        "multikrum",  "mda",    "huber",        "tukey",      "ref",
                                        "ref:n=auto", "vref",   "ref:scale=qn", "ref:scale=s"};
    for (ptrdiff_t i = 0; i < COUNT(means); i++) {
        trial_fill(&before, ROWS_GAUSS, 2, 5, REEF_F64, (uint32_t)i);
        trial_must_run(&before, means[i]);
        for (ptrdiff_t j = 0; j < before.m; j++) {
            CHECK_CLOSE(before.out[j], (before.x[0][j] + before.x[1][j]) / 2, 1e-15, means[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_is_in_the_list),
        cmocka_unit_test(every_parameter_is_described),
        cmocka_unit_test(permutation),
        cmocka_unit_test(translation),
        cmocka_unit_test(scale),
        cmocka_unit_test(hull),
        cmocka_unit_test(equal_rows),
        cmocka_unit_test(one_and_two_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
