/* From YAML to the grid: axes, zip, overrides, and every kind of mistake with its place. */
#include "experiment/config/experiment.h"
#include "support/check.h"

#include <stdio.h>
#include <string.h>

#define BASE "agents: 8\nproblem: lms\ngraph: complete\nrounds: 20\n"

static reef_experiment *read_text(const char *text, const char *const *overrides, ptrdiff_t count)
{
    reef_experiment *e = NULL;
    reef_error error = {REEF_OK, ""};
    reef_status status = reef_experiment_read(NULL, &e, text, strlen(text), "f.yaml", overrides, count, &error);
    CHECK(status == REEF_OK, "%s", error.text);
    return e;
}

/* The values of a cell, separated by blanks, must be `want`. */
static void check_cell(const reef_experiment *e, ptrdiff_t cell, const char *want)
{
    char got[256] = "";
    size_t used = 0;
    for (ptrdiff_t a = 0; a < reef_experiment_axes(e); a++) {
        char value[64];
        (void)reef_experiment_value(e, cell, a, value, sizeof value);
        used += (size_t)snprintf(got + used, sizeof got - used, "%s%s", a ? " " : "", value);
    }
    CHECK(strcmp(got, want) == 0, "cell %td is '%s' instead of '%s'", cell, got, want);
}

static void last_list_varies_fastest(void **state)
{
    (void)state;
    reef_experiment *e = read_text(BASE "rule: [mean, median]\nattack: {kind: additive, delta: [0, 1, 2]}\n", NULL, 0);
    assert_int_equal(reef_experiment_cells(e), 6);
    assert_string_equal(reef_experiment_axis(e, 0), "rule");
    assert_string_equal(reef_experiment_axis(e, 1), "attack.delta");
    assert_null(reef_experiment_axis(e, 2));
    check_cell(e, 0, "mean 0");
    check_cell(e, 1, "mean 1");
    check_cell(e, 3, "median 0");
    check_cell(e, 5, "median 2");
    assert_string_equal(reef_experiment_name(e), "f");
    reef_experiment_destroy(&e);
    assert_null(e);
}

static void maps_in_lists_are_swept_in_place(void **state)
{
    (void)state;
    reef_experiment *e = read_text(
        BASE "rule: [mean, {kind: trimmed, f: [0, 1]}, {kind: ref, efficiency: [0.9, 0.95], scale: [mad, qn]}]\n", NULL,
        0);
    assert_int_equal(reef_experiment_cells(e), 7);
    check_cell(e, 0, "mean");
    check_cell(e, 2, "trimmed:f=1");
    check_cell(e, 3, "ref:efficiency=0.9,scale=mad");
    check_cell(e, 4, "ref:efficiency=0.9,scale=qn");
    check_cell(e, 6, "ref:efficiency=0.95,scale=qn");
    reef_experiment_destroy(&e);
}

static void zipped_lists_go_in_parallel(void **state)
{
    (void)state;
    reef_experiment *e = read_text(BASE "liars: [0, 1, 2]\nrule: [mean, median]\n"
                                        "attack: {kind: additive, delta: [5, 6, 7]}\nzip: [malicious, attack.delta]\n",
                                   NULL, 0);
    assert_int_equal(reef_experiment_cells(e), 6);
    check_cell(e, 0, "0 mean 5");
    check_cell(e, 1, "0 median 5");
    check_cell(e, 4, "2 mean 7");
    reef_experiment_destroy(&e);
    e = read_text(BASE "seed: [1, 2]\nrepetitions: [3, 4]\nrule: [mean, median]\nmalicious: [0, 1]\n"
                       "zip: [[seed, repetitions], [rule, malicious]]\n",
                  NULL, 0);
    assert_int_equal(reef_experiment_cells(e), 4);
    check_cell(e, 1, "1 3 median 1");
    check_cell(e, 2, "2 4 mean 0");
    reef_experiment_destroy(&e);
}

static void fields_that_are_lists_are_one_value(void **state)
{
    (void)state;
    reef_experiment *e = read_text(BASE "rule: mean\nplacement: {kind: list, agents: [1, 3]}\n", NULL, 0);
    rfi_cell *cell = test_malloc(sizeof *cell);
    assert_int_equal(reef_experiment_cells(e), 1);
    assert_int_equal(rfi_resolve(e, 0, cell, NULL), REEF_OK);
    assert_string_equal(cell->specs[RFI_PART_PLACEMENT], "list:agents=1 3");
    reef_experiment_destroy(&e);
    e = read_text(BASE "rule: mean\nplacement: {kind: list, agents: [[0], [1, 3]]}\n", NULL, 0);
    assert_int_equal(reef_experiment_cells(e), 2);
    check_cell(e, 1, "1 3");
    reef_experiment_destroy(&e);
    test_free(cell);
}

static void specs_within_specs(void **state)
{
    static const struct {
        const char *problem, *spec;
    } cases[] = {
        {"{kind: mlp, hidden: [64, 32], data: digits}", "mlp:hidden=(64,32),data=digits"},
        {"{kind: mlp, hidden: 64, data: {kind: digits, bias: true}}", "mlp:hidden=64,data=(digits:bias=true)"},
        {"{kind: softmax, data: 'gaussian:classes=3,dimension=4'}", "softmax:data=(gaussian:classes=3,dimension=4)"},
        {"{kind: lms, dimension: 3, optimum: [1, 0, -2]}", "lms:dimension=3,optimum=(1,0,-2)"},
    };
    rfi_cell *cell = test_malloc(sizeof *cell);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[400];
        (void)snprintf(text, sizeof text, "agents: 8\ngraph: complete\nrounds: 20\nrule: mean\nproblem: %s\n",
                       cases[i].problem);
        reef_experiment *e = read_text(text, NULL, 0);
        assert_int_equal(reef_experiment_cells(e), 1);
        assert_int_equal(rfi_resolve(e, 0, cell, NULL), REEF_OK);
        assert_string_equal(cell->specs[RFI_PART_PROBLEM], cases[i].spec);
        reef_experiment_destroy(&e);
    }
    test_free(cell);
}

static void numbers_are_resolved(void **state)
{
    (void)state;
    reef_experiment *e = read_text(BASE "rule: mean\nrepetitions: 5\ntrust: yes\nmalicious: 25%\n", NULL, 0);
    rfi_cell *cell = test_malloc(sizeof *cell);
    assert_int_equal(rfi_resolve(e, 0, cell, NULL), REEF_OK);
    assert_int_equal(cell->numbers.agents, 8);
    assert_int_equal(cell->numbers.repetitions, 5);
    assert_int_equal(cell->numbers.every, 1);  /* auto */
    assert_int_equal(cell->numbers.steady, 5); /* auto: a quarter */
    assert_true(cell->numbers.trust);
    assert_int_equal(cell->numbers.malicious_count.kind, REEF_MALICIOUS_FRACTION);
    reef_experiment_destroy(&e);
    test_free(cell);
}

static void overrides_replace_add_and_open_specs(void **state)
{
    (void)state;
    static const char text[] =
        BASE "rule: mean\nstrategy: diffusion:mu=0.1,batch=2\nattack: {kind: additive, delta: 1}\n";
    static const char *const overrides[] = {"strategy.mu=0.2", "attack.delta=[1, 2]", "repetitions=3",
                                            "rule=trimmed:f=1,nan=error", "links.kind=failing"};
    rfi_cell *cell = test_malloc(sizeof *cell);
    reef_experiment *e = read_text(text, overrides, COUNT(overrides));
    assert_int_equal(reef_experiment_cells(e), 2);
    assert_int_equal(rfi_resolve(e, 1, cell, NULL), REEF_OK);
    assert_string_equal(cell->specs[RFI_PART_STRATEGY], "diffusion:mu=0.2,batch=2");
    assert_string_equal(cell->specs[RFI_PART_ATTACK], "additive:delta=2");
    assert_string_equal(cell->specs[RFI_PART_RULE], "trimmed:f=1,nan=error");
    assert_string_equal(cell->specs[RFI_PART_LINKS], "failing");
    assert_int_equal(cell->numbers.repetitions, 3);
    reef_experiment_destroy(&e);
    static const char *const strategy[] = {"strategy.mu=0.5"}; /* the file says nothing of it */
    e = read_text(BASE "rule: mean\n", strategy, 1);
    assert_int_equal(rfi_resolve(e, 0, cell, NULL), REEF_OK);
    assert_string_equal(cell->specs[RFI_PART_STRATEGY], "diffusion:mu=0.5");
    reef_experiment_destroy(&e);
    test_free(cell);
}

/* A text, an override or NULL, and how the message begins and what it contains. */
typedef struct mistake {
    const char *text, *override, *place, *words;
} mistake;

static const mistake mistakes[] = {
    {"agnts: 3\n", NULL, "f.yaml:1:1: ", "did you mean 'agents'"},
    {"[1, 2]\n", NULL, "f.yaml:1:1: ", "an experiment is a map"},
    {"", NULL, "f.yaml:1:1: ", "a problem is missing"},
    {"problem: lms\n", NULL, "f.yaml:1:1: ", "agents: 32"},
    {BASE "rule: [mean\n", NULL, "f.yaml:6:1: ", "expected"},
    {BASE "rule: meen\n", NULL, "f.yaml:5:7: ", "did you mean 'mean'"},
    {BASE "rule: {kind: meen}\n", NULL, "f.yaml:5:14: ", "did you mean 'mean'"},
    {BASE "rule: {f: 1}\n", NULL, "f.yaml:5:7: ", "needs the key kind"},
    {BASE "rule: {kind: trimmed, g: 1}\n", NULL, "f.yaml:5:23: ", "no parameter 'g'"},
    {BASE "rule: {kind: trimmed, f: x}\n", NULL, "f.yaml:5:26: ", "f = 'x' is not allowed"},
    {BASE "rule: {kind: trimmed, f: [0, 9]}\n", NULL, "f.yaml:5:7: ", "f = 9 malicious inputs of n = 8"},
    {BASE "rule: {kind: trimmed, f: {a: 1}}\n", NULL, "f.yaml:5:26: ", "a single value, not a map"},
    {BASE "rule: {kind: trimmed, f: {kind: a, b: [1]}}\n", NULL, "f.yaml:5:39: ", "a single value here, not a list"},
    {"agents: 8\ngraph: complete\nrounds: 20\nrule: mean\nproblem: {kind: mlp, hidden: [8, [4]]}\n", NULL,
     "f.yaml:5:34: ", "single values"},
    {"agents: 8\ngraph: complete\nrounds: 20\nrule: mean\nproblem: {kind: lms, dimension: 3, optimum: [1, 2]}\n", NULL,
     "f.yaml:5:45: ", "optimum has 2 numbers, but dimension = 3"},
    {"agents: 8\ngraph: complete\nrounds: 20\nrule: mean\n"
     "problem: {kind: lms, dimension: 3, optimum: [1, 2, 3], noise: -1}\n",
     NULL, "f.yaml:5:63: ", "noise"},
    {BASE "rule: [mean, [median]]\n", NULL, "f.yaml:5:14: ", "a list cannot take a list of values"},
    {BASE "rule: []\n", NULL, "f.yaml:5:7: ", "an empty list"},
    {BASE "rule: mean\nrepetitions: 0\n", NULL, "f.yaml:6:14: ", "from 1 to"},
    {BASE "rule: mean\nrepetitions: many\n", NULL, "f.yaml:6:14: ", "a whole number"},
    {BASE "rule: mean\nrepetitions: {a: 1}\n", NULL, "f.yaml:6:14: ", "a single value, not a map"},
    {BASE "rule: mean\nsteady: 21\n", NULL, "f.yaml:6:9: ", "only 20 rounds"},
    {BASE "rule: mean\nmalicious: 9\n", NULL, "f.yaml:6:12: ", "9"},
    {BASE "rule: mean\nmalicious: [1, 0.6]\n", NULL, "f.yaml:6:16: ", "a fraction below one half"},
    {BASE "rule: mean\nplacement: {kind: list, agents: [1, 77]}\n", NULL, "f.yaml:6:33: ", "77"},
    {BASE "rule: mean\nmetrics: [msd, los]\n", NULL, "f.yaml:6:16: ", "did you mean 'loss'"},
    {BASE "rule: mean\nmetrics: accuracy\n", NULL, "f.yaml:6:10: ", "a problem that classifies"},
    {BASE "rule: mean\nmetrics: [msd, trust_auc]\n", NULL, "f.yaml:6:16: ", "trust: true"},
    {BASE "rule: mean\nname: a/b\n", NULL, "f.yaml:6:7: ", "without '/'"},
    {BASE "rule: mean\nzip: [ruls]\n", NULL, "f.yaml:6:7: ", "is not a list"},
    {BASE "rule: [mean, ref]\nzip: [ruls]\n", NULL, "f.yaml:6:7: ", "did you mean 'rule'"},
    {BASE "rule: [mean, ref]\nzip: [rule, rule]\n", NULL, "f.yaml:6:13: ", "named twice"},
    {BASE "rule: [mean, ref]\nrepetitions: [1, 2, 3]\nzip: [rule, repetitions]\n", NULL,
     "f.yaml:7:13: ", "same length"},
    {BASE "strategy: {kind: diffusion, mu: -1}\nrule: mean\n", NULL, "f.yaml:5:33: ", "mu = '-1'"},
    {BASE "strategy: difusion\nrule: mean\n", NULL, "f.yaml:5:11: ", "did you mean 'diffusion'"},
    {BASE, NULL, "f.yaml:1:1: ", "needs a rule"},
    {"agents: 8\nproblem: lms\nrule: mean\n", NULL, "f.yaml:1:1: ", "graph: complete"},
    {BASE "rule: mean\nweights: metropole\n", NULL, "f.yaml:6:10: ", "metropole"},
    {BASE "rule: mean\n", "strategy.mu=x", "--set strategy.mu=x: ", "mu = 'x'"},
    {BASE "rule: mean\n", "rle=ref", "--set rle=ref: ", "did you mean 'rule'"},
    {BASE "rule: mean\n", "rule", "--set rule: ", "path=value"},
    {BASE "rule: mean\n", "a.b.c=1", "--set a.b.c=1: ", "path=value"},
    {BASE "rule: mean\n", "rule=[a", "--set rule=[a: ", "not a value in YAML"},
    {BASE "rule: [mean, ref]\n", "rule.f=1", "--set rule.f=1: ", "set it as a whole"},
    {BASE "rule: nnm:f=1 | ref\n", "rule.f=1", "--set rule.f=1: ", "set it as a whole"},
};

static void mistakes_are_placed_and_explained(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(mistakes); i++) {
        const mistake *m = &mistakes[i];
        reef_experiment *e = NULL;
        reef_error error = {REEF_OK, ""};
        reef_status status = reef_experiment_read(NULL, &e, m->text, strlen(m->text), "f.yaml", &m->override,
                                                  m->override != NULL, &error);
        CHECK(status != REEF_OK && !e, "mistake %td was accepted", i);
        CHECK(strncmp(error.text, m->place, strlen(m->place)) == 0 && strstr(error.text, m->words), "mistake %td: %s",
              i, error.text);
    }
}

/* Files and overrides of version 0.1 mean the same; a key under both its names is a mistake. */
static void old_names_are_read(void **state)
{
    (void)state;
    static const char *const overrides[] = {"runs=[3, 4]"};
    reef_experiment *e = read_text(BASE "rule: [mean, median]\nliars: [0, 1]\nruns: 9\nzip: [rule, liars]\n"
                                        "trust: yes\nmetrics: [trust_liars]\n",
                                   overrides, 1);
    assert_int_equal(reef_experiment_cells(e), 4);
    assert_string_equal(reef_experiment_axis(e, 1), "malicious");
    reef_experiment_destroy(&e);

    static const char both[] = BASE "rule: mean\nruns: 1\nrepetitions: 2\n";
    reef_error error = {REEF_OK, ""};
    assert_int_equal(reef_experiment_read(NULL, &e, both, strlen(both), "f.yaml", NULL, 0, &error), REEF_E_FORMAT);
    assert_non_null(strstr(error.text, "f.yaml:6:1: 'runs' is the old name of 'repetitions'"));
}

static void too_large_a_grid_is_refused(void **state)
{
    (void)state;
    char text[4096];
    reef_experiment *e = NULL;
    reef_error error = {REEF_OK, ""};
    size_t used = (size_t)snprintf(text, sizeof text, "%srule: mean\n", BASE);
    static const char *const keys[] = {"seed", "runs", "every", "steady"};
    for (ptrdiff_t i = 0; i < COUNT(keys); i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s: [1", keys[i]);
        for (int v = 2; v <= 20; v++) {
            used += (size_t)snprintf(text + used, sizeof text - used, ", %d", v);
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "]\n");
    }
    assert_int_equal(reef_experiment_read(NULL, &e, text, used, "f.yaml", NULL, 0, &error), REEF_E_RANGE);
    assert_non_null(strstr(error.text, "more than 100000 configurations"));
}

static void checks_say_what_to_expect(void **state)
{
    (void)state;
    reef_experiment *e =
        read_text("agents: 32\nproblem: lms\ngraph: complete\nrule: [mean, krum:f=3]\nmalicious: 2\n", NULL, 0);
    reef_cell_facts facts;
    reef_error error;
    assert_int_equal(reef_experiment_check(e, 0, &facts, &error), REEF_OK);
    assert_true(facts.has_graph && facts.has_spectrum);
    assert_int_equal(facts.malicious_count, 2);
    assert_int_equal(facts.tolerated, -1);
    CHECK_CLOSE(facts.perron_min, 1.0 / 30, 1e-12, "perron");
    /* section 4: mu M sigma^2 / (K (2 - mu (1 + (M + 1) / K))) with K = 30 */
    CHECK_CLOSE(facts.theory, 0.01 * 10 * 0.01 / (30 * (2 - 0.01 * (1 + 11.0 / 30))), 1e-9, "theory");
    assert_int_equal(reef_experiment_check(e, 1, &facts, &error), REEF_OK);
    assert_int_equal(facts.tolerated, 3);
    reef_experiment_destroy(&e);
}

static void malicious_agents_need_an_attack(void **state)
{
    static const struct {
        const char *malicious, *attack;
        ptrdiff_t warnings;
    } cases[] = {{"2", "", 1}, {"2", "attack: none\n", 0}, {"2", "attack: zero\n", 0}, {"0", "", 0}};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        char text[200];
        (void)snprintf(text, sizeof text, "agents: 9\nproblem: lms\ngraph: complete\nrule: ref\nmalicious: %s\n%s",
                       cases[i].malicious, cases[i].attack);
        reef_experiment *e = read_text(text, NULL, 0);
        reef_cell_facts facts;
        char lines[1000];
        ptrdiff_t warnings = -1;
        assert_int_equal(reef_experiment_check(e, 0, &facts, NULL), REEF_OK);
        (void)reef_cell_facts_print(&facts, lines, sizeof lines, &warnings);
        assert_int_equal(warnings, cases[i].warnings);
        assert_true((strstr(lines, "no attack") != NULL) == (warnings > 0));
        reef_experiment_destroy(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_list_varies_fastest),
        cmocka_unit_test(maps_in_lists_are_swept_in_place),
        cmocka_unit_test(zipped_lists_go_in_parallel),
        cmocka_unit_test(fields_that_are_lists_are_one_value),
        cmocka_unit_test(specs_within_specs),
        cmocka_unit_test(numbers_are_resolved),
        cmocka_unit_test(overrides_replace_add_and_open_specs),
        cmocka_unit_test(mistakes_are_placed_and_explained),
        cmocka_unit_test(old_names_are_read),
        cmocka_unit_test(too_large_a_grid_is_refused),
        cmocka_unit_test(checks_say_what_to_expect),
        cmocka_unit_test(malicious_agents_need_an_attack),
    };
    return rfi_yaml_available() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
