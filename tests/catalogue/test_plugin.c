/* Plug-ins from C: what the example brings can be used, and what is wrong is refused without a trace. */
#include "support/check.h"

#include <reef/reef.h>
#include <string.h>

#define EXAMPLE REEF_BUILD_DIR "/examples/plugin.so"
#define WRONG(name) REEF_BUILD_DIR "/tests/plugins/" name ".so"

static ptrdiff_t count_all(const reef_context *context)
{
    ptrdiff_t count = 0;
    for (int i = 0; i < REEF_FAMILIES; i++) {
        count += reef_kind_count(context, (reef_family)i);
    }
    return count;
}

static void the_example(void **state)
{
    const double rows[4] = {1, 2, 3, 1000};
    const void *const pointers[4] = {&rows[0], &rows[1], &rows[2], &rows[3]};
    double out = 0;
    reef_context *context = NULL;
    reef_agg *agg = NULL;
    reef_attack *attack = NULL;
    reef_problem *problem = NULL;
    (void)state;
    assert_int_equal(reef_abi_version(), REEF_ABI_VERSION);
    assert_int_equal(reef_context_create(&context, NULL, NULL), REEF_OK);
    assert_int_equal(reef_plugin_load(context, EXAMPLE, NULL), REEF_OK);
    assert_int_equal(reef_agg_create(context, &agg, "midmean", NULL), REEF_OK);
    assert_int_equal(reef_agg_apply(agg, &(reef_input){.rows = pointers}, 4, 1, REEF_F64, &out, NULL, NULL), REEF_OK);
    assert_true(out == 2.5);
    assert_int_equal(reef_attack_create(context, &attack, "drift:speed=3", NULL), REEF_OK);
    assert_int_equal(reef_problem_create(context, &problem, "points:dimension=7", 5, 1, NULL), REEF_OK);
    assert_int_equal(reef_problem_dimension(problem), 7);
    reef_problem_destroy(&problem);
    reef_attack_destroy(&attack);
    reef_agg_destroy(&agg);
    assert_int_equal(reef_plugin_load(context, EXAMPLE, NULL), REEF_E_NAME);
    assert_int_equal(count_all(context), count_all(NULL) + 3);
    reef_context_destroy(&context);
}

static void refusals(void **state)
{
    static const struct {
        const char *path;
        reef_status status;
        const char *says;
    } cases[] = {
        {"", REEF_E_ARG, "needs a context and the path"},
        {"/nowhere/at/all.so", REEF_E_FILE, "cannot be loaded as a plug-in"},
        {REEF_SOURCE_DIR "/README.md", REEF_E_FILE, "docs/plugins.md"},
        {WRONG("no_plugin"), REEF_E_FORMAT, "does not define reef_plugin;"},
        {WRONG("no_version"), REEF_E_FORMAT, "does not define reef_plugin_abi;"},
        {WRONG("other_version"), REEF_E_FORMAT, "rebuild it"},
        {WRONG("half"), REEF_E_ARG, "rule 'nothing' needs column"},
    };
    reef_context *context = NULL;
    (void)state;
    assert_int_equal(reef_context_create(&context, NULL, NULL), REEF_OK);
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        reef_error error = {REEF_OK, ""};
        assert_int_equal(reef_plugin_load(context, cases[i].path, &error), cases[i].status);
        CHECK(strstr(error.text, cases[i].says), "'%s' does not say '%s'", error.text, cases[i].says);
        assert_int_equal(count_all(context), count_all(NULL));
    }
    assert_int_equal(reef_plugin_load(NULL, EXAMPLE, NULL), REEF_E_ARG);
    assert_int_equal(reef_plugin_load(context, NULL, NULL), REEF_E_ARG);
    reef_context_destroy(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_example), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
