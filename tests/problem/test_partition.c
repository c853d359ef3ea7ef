/* Partitions: every sample exactly once, the law each kind promises, the same on every run.
 *
 * Statistical checks use fixed seeds. Their thresholds would raise a false alarm in less than one of 1e6 fresh seeds. */
#include "problem/partition.h"
#include "problem/spread.h"
#include "support/alloc.h"
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const specs[] = {
    "iid",
    "dirichlet",
    "dirichlet:alpha=0.01,min=3",
    "dirichlet:alpha=1e-6,min=10,redraws=0",
    "dirichlet:alpha=1e9",
    "gamma_similarity",
    "gamma_similarity:gamma=0",
    "gamma_similarity:gamma=1",
    "gamma_similarity:gamma=0.03",
    "by_class",
    "by_class:classes=5",
    "by_quantity",
    "by_quantity:alpha=0.001,min=4,redraws=2",
};

/* labels[i] = i mod classes. */
static int32_t *make_labels(ptrdiff_t n, ptrdiff_t classes)
{
    int32_t *labels = malloc((size_t)n * sizeof *labels);
    assert_non_null(labels);
    for (ptrdiff_t i = 0; i < n; i++) {
        labels[i] = (int32_t)(i % classes);
    }
    return labels;
}

static rfi_partition *create(const char *spec, const int32_t *labels, ptrdiff_t n, ptrdiff_t classes, ptrdiff_t agents,
                             uint64_t seed)
{
    rfi_partition *p = NULL;
    reef_error error;
    rfi_partition_input input = {n, labels, classes, agents, seed};
    CHECK(rfi_partition_create(NULL, spec, &input, &p, &error) == REEF_OK, "%s: %s", spec, error.text);
    return p;
}

static ptrdiff_t size_of(const rfi_partition *p, ptrdiff_t k)
{
    return p->start[k + 1] - p->start[k];
}

/* counts[agent * classes + class] */
static ptrdiff_t *tabulate(const rfi_partition *p, const int32_t *labels, ptrdiff_t classes)
{
    ptrdiff_t *counts = calloc((size_t)(p->agents * classes), sizeof *counts);
    assert_non_null(counts);
    for (ptrdiff_t k = 0; k < p->agents; k++) {
        for (ptrdiff_t i = p->start[k]; i < p->start[k + 1]; i++) {
            counts[k * classes + labels[p->index[i]]]++;
        }
    }
    return counts;
}

static void check_complete(const rfi_partition *p, const char *spec)
{
    bool *seen = calloc((size_t)p->samples, sizeof *seen);
    assert_non_null(seen);
    assert_true(p->start[0] == 0 && p->start[p->agents] == p->samples);
    for (ptrdiff_t k = 0; k < p->agents; k++) {
        CHECK(size_of(p, k) >= 1, "%s: agent %td has %td samples", spec, k, size_of(p, k));
        for (ptrdiff_t i = p->start[k]; i < p->start[k + 1]; i++) {
            assert_true(p->index[i] >= 0 && p->index[i] < p->samples);
            CHECK(!seen[p->index[i]], "%s: sample %td twice", spec, p->index[i]);
            CHECK(i == p->start[k] || p->index[i] > p->index[i - 1], "%s: agent %td is not sorted", spec, k);
            seen[p->index[i]] = true;
        }
    }
    free(seen);
}

static void every_sample_exactly_once(void **state)
{
    static const ptrdiff_t sizes[][2] = {{1000, 8}, {1797, 40}, {100, 5}, {997, 13}};
    (void)state;
    for (ptrdiff_t s = 0; s < COUNT(specs); s++) {
        for (ptrdiff_t i = 0; i < COUNT(sizes); i++) {
            int32_t *labels = make_labels(sizes[i][0], 10);
            for (uint64_t seed = 0; seed < 5; seed++) {
                rfi_partition *p = create(specs[s], labels, sizes[i][0], 10, sizes[i][1], seed);
                check_complete(p, specs[s]);
                rfi_partition_destroy(&p);
                assert_null(p);
            }
            free(labels);
        }
    }
}

/* As many agents as samples, one agent, one class: still complete. */
static void narrow_cases(void **state)
{
    int32_t *labels = make_labels(30, 1);
    (void)state;
    for (ptrdiff_t s = 0; s < COUNT(specs); s++) {
        if (strstr(specs[s], "by_class") || strstr(specs[s], "min=")) {
            continue; /* refused, see below */
        }
        for (ptrdiff_t agents = 1; agents <= 30; agents += 29) {
            rfi_partition *p = create(specs[s], labels, 30, 1, agents, 3);
            check_complete(p, specs[s]);
            rfi_partition_destroy(&p);
        }
    }
    rfi_partition *p = create("by_class:classes=1", labels, 30, 1, 30, 3);
    check_complete(p, "by_class");
    rfi_partition_destroy(&p);
    free(labels);
}

static bool same(const rfi_partition *a, const rfi_partition *b)
{
    return memcmp(a->start, b->start, (size_t)(a->agents + 1) * sizeof *a->start) == 0 &&
           memcmp(a->index, b->index, (size_t)a->samples * sizeof *a->index) == 0;
}

static void seeds(void **state)
{
    int32_t *labels = make_labels(1000, 10);
    (void)state;
    for (ptrdiff_t s = 0; s < COUNT(specs); s++) {
        rfi_partition *a = create(specs[s], labels, 1000, 10, 20, 11);
        rfi_partition *b = create(specs[s], labels, 1000, 10, 20, 11);
        rfi_partition *c = create(specs[s], labels, 1000, 10, 20, 12);
        CHECK(same(a, b), "%s: two runs differ", specs[s]);
        CHECK(!same(a, c), "%s: two seeds give the same", specs[s]);
        rfi_partition_destroy(&a);
        rfi_partition_destroy(&b);
        rfi_partition_destroy(&c);
    }
    free(labels);
}

/* Pearson's statistic of the table agent x class against independence. */
static double chi_square(const rfi_partition *p, const int32_t *labels, ptrdiff_t classes)
{
    ptrdiff_t *counts = tabulate(p, labels, classes);
    double sum = 0;
    for (ptrdiff_t c = 0; c < classes; c++) {
        double total = 0;
        for (ptrdiff_t k = 0; k < p->agents; k++) {
            total += (double)counts[k * classes + c];
        }
        for (ptrdiff_t k = 0; k < p->agents; k++) {
            double want = total * (double)size_of(p, k) / (double)p->samples;
            double off = (double)counts[k * classes + c] - want;
            sum += off * off / want;
        }
    }
    free(counts);
    return sum;
}

/* 10 agents x 10 classes have 81 degrees of freedom, 20 seeds together 1620: the sum is N(1620, 3240) nearly, and within 5
 * standard deviations of 57 in all but 6e-7 of the cases. */
static void check_independent(const char *spec)
{
    int32_t *labels = make_labels(10000, 10);
    double sum = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        rfi_partition *p = create(spec, labels, 10000, 10, 10, seed);
        sum += chi_square(p, labels, 10);
        rfi_partition_destroy(&p);
    }
    CHECK_CLOSE(sum, 1620, 5 * sqrt(3240), spec);
    free(labels);
}

static void iid_is_independent_of_labels(void **state)
{
    int32_t *labels = make_labels(1003, 10);
    (void)state;
    check_independent("iid");
    check_independent("by_quantity:alpha=20,min=200"); /* sizes differ, contents do not */
    rfi_partition *p = create("iid", NULL, 1003, 0, 10, 1);
    for (ptrdiff_t k = 0; k < 10; k++) {
        assert_true(size_of(p, k) == 100 || size_of(p, k) == 101);
    }
    rfi_partition_destroy(&p);
    free(labels);
}

static void full_similarity_is_iid(void **state)
{
    int32_t *labels = make_labels(1003, 10);
    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++) {
        rfi_partition *a = create("iid", labels, 1003, 10, 17, seed);
        rfi_partition *b = create("gamma_similarity:gamma=1", labels, 1003, 10, 17, seed);
        assert_true(same(a, b));
        rfi_partition_destroy(&a);
        rfi_partition_destroy(&b);
    }
    free(labels);
}

/* 100 samples of each of 10 classes over 10 agents: by label alone each agent has one class; at gamma = 0.5 half of its 100
 * samples are of about one class (the random half shifts the borders a little), and a tenth of the others too. */
static void similarity_sorts_the_rest(void **state)
{
    int32_t *labels = make_labels(1000, 10);
    double largest = 0;
    (void)state;
    rfi_partition *p = create("gamma_similarity:gamma=0", labels, 1000, 10, 10, 5);
    ptrdiff_t *counts = tabulate(p, labels, 10);
    for (ptrdiff_t i = 0; i < 100; i++) {
        assert_true(counts[i] == 0 || counts[i] == 100);
    }
    free(counts);
    rfi_partition_destroy(&p);
    p = create("gamma_similarity:gamma=0.5", labels, 1000, 10, 10, 5);
    counts = tabulate(p, labels, 10);
    for (ptrdiff_t k = 0; k < 10; k++) {
        ptrdiff_t most = 0;
        assert_int_equal(size_of(p, k), 100);
        for (ptrdiff_t c = 0; c < 10; c++) {
            most = counts[k * 10 + c] > most ? counts[k * 10 + c] : most;
        }
        largest += (double)most / 1000;
    }
    CHECK(largest > 0.45 && largest < 0.65, "the largest class has %g of an agent", largest);
    free(counts);
    rfi_partition_destroy(&p);
    free(labels);
}

/* Where in the sorted order an agent stands must not follow from its number. */
static void similarity_mixes_the_agents(void **state)
{
    int32_t *labels = make_labels(1000, 10);
    int first_class[10] = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        rfi_partition *p = create("gamma_similarity:gamma=0", labels, 1000, 10, 10, seed);
        first_class[labels[p->index[0]]]++;
        rfi_partition_destroy(&p);
    }
    for (int c = 0; c < 10; c++) { /* binomial(200, 0.1): beyond 0 or 50 in 1e-8 of the cases */
        CHECK(first_class[c] > 0 && first_class[c] < 50, "agent 0 has class %d in %d of 200 cases", c, first_class[c]);
    }
    free(labels);
}

/* For two agents and alpha = 1 the share of the first is uniform: Kolmogorov and Smirnov over 1000 classes of 200 samples,
 * bound by Dvoretzky, Kiefer and Wolfowitz at 1e-7, plus half a step of rounding. */
static void dirichlet_shares_are_uniform_for_two(void **state)
{
    enum { CLASSES = 1000, EACH = 200 };
    int32_t *labels = make_labels(CLASSES * EACH, CLASSES);
    int below[EACH + 1] = {0};
    (void)state;
    rfi_partition *p = create("dirichlet:alpha=1", labels, CLASSES * EACH, CLASSES, 2, 4);
    ptrdiff_t *counts = tabulate(p, labels, CLASSES);
    for (ptrdiff_t c = 0; c < CLASSES; c++) {
        below[counts[c]]++;
    }
    double sum = 0;
    for (int i = 0; i <= EACH; i++) {
        sum += (double)below[i] / CLASSES;
        CHECK_CLOSE(sum, fmin(1, (i + 0.5) / EACH), sqrt(log(2e7) / (2.0 * CLASSES)) + 0.5 / EACH,
                    "distribution of shares");
    }
    free(counts);
    rfi_partition_destroy(&p);
    free(labels);
}

/* A share has mean 1/K and variance (K - 1) / (K^2 (K alpha + 1)). 8000 shares per alpha; the kurtosis is below 30 here, so
 * 5 standard errors of the variance are below 5 sqrt(30 / 8000) = 31 % (alpha = 0.1) and far less for large alpha. */
static void dirichlet_shares_have_their_variance(void **state)
{
    enum { CLASSES = 100, EACH = 500, AGENTS = 10 };
    static const double alphas[][2] = {{0.1, 0.31}, {1, 0.15}, {10, 0.1}};
    static const char *const texts[] = {"dirichlet:alpha=0.1", "dirichlet:alpha=1", "dirichlet:alpha=10"};
    int32_t *labels = make_labels(CLASSES * EACH, CLASSES);
    (void)state;
    for (ptrdiff_t a = 0; a < COUNT(alphas); a++) {
        double want = (AGENTS - 1) / (AGENTS * AGENTS * (AGENTS * alphas[a][0] + 1));
        double square = 0;
        for (uint64_t seed = 0; seed < 8; seed++) {
            rfi_partition *p = create(texts[a], labels, CLASSES * EACH, CLASSES, AGENTS, seed);
            ptrdiff_t *counts = tabulate(p, labels, CLASSES);
            for (ptrdiff_t i = 0; i < CLASSES * AGENTS; i++) {
                double off = (double)counts[i] / EACH - 1.0 / AGENTS;
                square += off * off;
            }
            free(counts);
            rfi_partition_destroy(&p);
        }
        CHECK_CLOSE(square / (8 * CLASSES * AGENTS) / want, 1, alphas[a][1], texts[a]);
    }
    free(labels);
}

static void quantities_have_their_variance(void **state)
{
    enum { N = 20000, AGENTS = 10, SEEDS = 800 };
    double want = (AGENTS - 1) / (AGENTS * AGENTS * (AGENTS * 1.0 + 1));
    double square = 0;
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rfi_partition *p = create("by_quantity:alpha=1", NULL, N, 0, AGENTS, seed);
        for (ptrdiff_t k = 0; k < AGENTS; k++) {
            double off = (double)size_of(p, k) / N - 1.0 / AGENTS;
            square += off * off;
        }
        rfi_partition_destroy(&p);
    }
    CHECK_CLOSE(square / (SEEDS * AGENTS) / want, 1, 0.15, "variance of the sizes");
}

static void by_class_has_exactly_its_classes(void **state)
{
    static const ptrdiff_t cases[][2] = {{5, 2}, {10, 1}, {40, 2}, {7, 3}, {1, 10}, {13, 10}, {100, 5}};
    int32_t *labels = make_labels(3000, 12);
    ptrdiff_t n = 0;
    (void)state;
    for (ptrdiff_t i = 0; i < 3000; i++) { /* classes 3 and 8 are left without samples */
        if (i % 12 != 3 && i % 12 != 8) {
            labels[n++] = (int32_t)(i % 12);
        }
    }
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        char spec[40];
        (void)snprintf(spec, sizeof spec, "by_class:classes=%td", cases[i][1]);
        rfi_partition *p = create(spec, labels, n, 12, cases[i][0], 9);
        ptrdiff_t *counts = tabulate(p, labels, 12);
        for (ptrdiff_t k = 0; k < p->agents; k++) {
            ptrdiff_t have = 0;
            for (ptrdiff_t c = 0; c < 12; c++) {
                have += counts[k * 12 + c] > 0;
            }
            CHECK(have == cases[i][1], "%s, %td agents: agent %td has %td", spec, p->agents, k, have);
        }
        check_complete(p, spec);
        free(counts);
        rfi_partition_destroy(&p);
    }
    free(labels);
}

static void least_sizes_are_kept(void **state)
{
    static const char *const texts[] = {"dirichlet:alpha=0.001,min=20,redraws=0", "dirichlet:alpha=0.05,min=50",
                                        "by_quantity:alpha=0.001,min=50,redraws=0", "dirichlet:min=50,alpha=1e-6"};
    int32_t *labels = make_labels(1000, 10);
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(texts); i++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            rfi_partition *p = create(texts[i], labels, 1000, 10, 20, seed);
            for (ptrdiff_t k = 0; k < 20; k++) {
                CHECK(size_of(p, k) >= (i ? 50 : 20), "%s: %td samples", texts[i], size_of(p, k));
            }
            check_complete(p, texts[i]);
            rfi_partition_destroy(&p);
        }
    }
    free(labels);
}

/* 100, 60, 5 and 0 samples, 10 wanted: 15 are missing, all from the largest. */
static void repair_takes_from_the_largest(void **state)
{
    int32_t owner[165];
    ptrdiff_t order[165], size[4];
    rfi_spread s = {.in = {.samples = 165, .agents = 4}, .owner = owner, .order = order, .size = size};
    (void)state;
    rfi_rng_init(&s.rng, 1, 1, 0, 0, 0);
    for (int i = 0; i < 165; i++) {
        owner[i] = i < 100 ? 0 : i < 160 ? 1 : 2;
    }
    rfi_repair(&s, 10);
    assert_int_equal(rfi_count_sizes(&s), 10);
    assert_true(size[0] == 85 && size[1] == 60 && size[2] == 10 && size[3] == 10);
    for (int i = 100; i < 165; i++) {
        assert_int_equal(owner[i], i < 160 ? 1 : 2);
    }
    rfi_repair(&s, 41); /* all of them equal: 165 = 4 * 41 + 1 */
    assert_int_equal(rfi_count_sizes(&s), 41);
}

static void refusals(void **state)
{
    static const int32_t labels[] = {0, 1, 2, 0, 1, 2}, wrong[] = {0, 1, 3, 0, 1, 2}, minus[] = {0, 1, -1, 0, 1, 2};
    static const struct {
        const char *spec;
        rfi_partition_input input;
        reef_status status;
        const char *says;
    } bad[] = {
        {"iid", {0, labels, 3, 1, 1}, REEF_E_RANGE, "0 samples cannot be distributed"},
        {"iid", {6, labels, 3, 0, 1}, REEF_E_RANGE, "over 0 agents"},
        {"iid", {6, labels, 3, -5, 1}, REEF_E_RANGE, "over -5 agents"},
        {"iid", {6, labels, 3, 7, 1}, REEF_E_RANGE, "7 agents, but only 6 samples"},
        {"iid", {6, labels, 0, 2, 1}, REEF_E_ARG, "not 0"},
        {"iid", {6, wrong, 3, 2, 1}, REEF_E_ARG, "label 3 of sample 2 is not in 0..2"},
        {"iid", {6, minus, 3, 2, 1}, REEF_E_ARG, "label -1 of sample 2"},
        {"iid:alpha=1", {6, labels, 3, 2, 1}, REEF_E_NAME, "iid has no parameter 'alpha'"},
        {"dirichlet", {6, NULL, 0, 2, 1}, REEF_E_ARG, "dirichlet distributes samples by class"},
        {"by_class", {6, NULL, 0, 2, 1}, REEF_E_ARG, "these have no classes"},
        {"gamma_similarity", {6, NULL, 0, 2, 1}, REEF_E_ARG, "these have no classes"},
        {"dirichlet:alpha=0", {6, labels, 3, 2, 1}, REEF_E_RANGE, "alpha = '0' is not allowed"},
        {"dirichlet:alpha=nan", {6, labels, 3, 2, 1}, REEF_E_SYNTAX, "alpha = 'nan' is not allowed"},
        {"dirichlet:min=4", {6, labels, 3, 2, 1}, REEF_E_RANGE, "more than the 6 there are"},
        {"by_quantity:min=1e9", {6, labels, 3, 6, 1}, REEF_E_RANGE, "more than the 6 there are"},
        {"gamma_similarity:gamma=1.1", {6, labels, 3, 2, 1}, REEF_E_RANGE, "from 0 to 1"},
        {"by_class:classes=4", {6, labels, 3, 2, 1}, REEF_E_RANGE, "only 3 with samples"},
        {"by_class:classes=1", {6, labels, 3, 2, 1}, REEF_E_RANGE, "cannot hold all 3 classes"},
        {"by_class:classes=3", {6, labels, 3, 3, 1}, REEF_E_RANGE, "has 2 samples for 3 agents"},
        {"dirichle", {6, labels, 3, 2, 1}, REEF_E_NAME, "no partition 'dirichle'; did you mean 'dirichlet'?"},
        {"x", {6, labels, 3, 2, 1}, REEF_E_NAME, "there are: iid, dirichlet"},
        {"", {6, labels, 3, 2, 1}, REEF_E_SYNTAX, "a partition is missing"},
        {NULL, {6, labels, 3, 2, 1}, REEF_E_ARG, "needs a spec"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        rfi_partition *p = NULL;
        reef_error error = {REEF_OK, ""};
        reef_status status = rfi_partition_create(NULL, bad[i].spec, &bad[i].input, &p, &error);
        CHECK(status == bad[i].status && !p && strstr(error.text, bad[i].says), "%td: '%s' should say '%s'", i,
              error.text, bad[i].says);
    }
}

/* Published results depend on these: FNV-1a over starts and lists. The values are from a second program, in another
 * language. */
static void partitions_are_frozen(void **state)
{
    static const struct {
        const char *spec;
        uint64_t hash;
    } known[] = {{"iid", UINT64_C(0x2137059707ac24bb)},
                 {"dirichlet:alpha=0.3", UINT64_C(0xe6b76f11030738c6)},
                 {"gamma_similarity:gamma=0.3", UINT64_C(0xe4de347e71f114eb)},
                 {"by_class", UINT64_C(0x26e16899a8e2bbd7)},
                 {"by_quantity", UINT64_C(0x118a1a26e4cb400b)}};
    int32_t *labels = make_labels(500, 10);
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(known); i++) {
        rfi_partition *p = create(known[i].spec, labels, 500, 10, 12, 2024);
        uint64_t hash = UINT64_C(14695981039346656037);
        for (ptrdiff_t j = 0; j < 13 + 500; j++) {
            hash = (hash ^ (uint64_t)(j < 13 ? p->start[j] : p->index[j - 13])) * UINT64_C(1099511628211);
        }
        CHECK(hash == known[i].hash, "%s: 0x%016llx", known[i].spec, (unsigned long long)hash);
        rfi_partition_destroy(&p);
    }
    free(labels);
}

static void failing_allocations(void **state)
{
    int32_t *labels = make_labels(100, 10);
    rfi_partition_input input = {100, labels, 10, 5, 1};
    alloc_log log;
    (void)state;
    reef_context *context = alloc_context(&log, 1);
    int before = atomic_load(&log.live);
    for (ptrdiff_t s = 0; s < COUNT(specs); s++) {
        rfi_partition *p = NULL;
        int fail = 0;
        for (; !p; fail++) {
            atomic_store(&log.total, 0);
            log.fail_at = fail;
            reef_status status = rfi_partition_create(context, specs[s], &input, &p, NULL);
            assert_true(status == (p ? REEF_OK : REEF_E_NOMEM) && fail < 20);
            assert_true(p || atomic_load(&log.live) == before);
        }
        assert_true(fail > 4);
        rfi_partition_destroy(&p);
        assert_int_equal(atomic_load(&log.live), before);
    }
    reef_context_destroy(&context);
    assert_false(atomic_load(&log.broken));
    free(labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_exactly_once),
        cmocka_unit_test(narrow_cases),
        cmocka_unit_test(seeds),
        cmocka_unit_test(iid_is_independent_of_labels),
        cmocka_unit_test(full_similarity_is_iid),
        cmocka_unit_test(similarity_sorts_the_rest),
        cmocka_unit_test(similarity_mixes_the_agents),
        cmocka_unit_test(dirichlet_shares_are_uniform_for_two),
        cmocka_unit_test(dirichlet_shares_have_their_variance),
        cmocka_unit_test(quantities_have_their_variance),
        cmocka_unit_test(by_class_has_exactly_its_classes),
        cmocka_unit_test(least_sizes_are_kept),
        cmocka_unit_test(repair_takes_from_the_largest),
        cmocka_unit_test(refusals),
        cmocka_unit_test(partitions_are_frozen),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
