/* Structs that callers fill state their size: 0 and the size of today are taken, those of another version refused. */
#include "support/check.h"

#include <reef/reef.h>
#include <string.h>

static void check_refusal(reef_status status, const reef_error *error, const char *name)
{
    CHECK(status == REEF_E_ARG && strstr(error->text, name) && strstr(error->text, "compile against the headers"),
          "%s: status %d: %s", name, (int)status, error->text);
}

static void options_of_another_version_are_refused(void **state)
{
    (void)state;
    reef_error error = {REEF_OK, ""};
    reef_graph *graph = NULL;
    assert_int_equal(reef_graph_create(NULL, &graph, "ring", 5, 1, NULL), REEF_OK);
    const reef_csr csr = reef_graph_csr(graph);
    reef_spectrum spectrum;
    bool flags[5];
    reef_spectrum_options options = {.size = sizeof options};
    assert_int_equal(reef_graph_spectrum(NULL, &csr, NULL, &options, NULL, &spectrum, NULL), REEF_OK);
    options.size += 8;
    check_refusal(reef_graph_spectrum(NULL, &csr, NULL, &options, NULL, &spectrum, &error), &error,
                  "reef_spectrum_options");
    reef_placement placement = {.size = 1, .malicious_count = {REEF_MALICIOUS_COUNT, 1}};
    check_refusal(reef_graph_place_malicious(NULL, &csr, &placement, flags, NULL, &error), &error, "reef_placement");
    reef_graph_destroy(&graph);

    const char *paths[] = {"a.safetensors"};
    check_refusal(reef_merge_files(NULL, &(reef_merge_options){.size = 1}, paths, 1, "b.safetensors", NULL, &error),
                  &error, "reef_merge_options");
    reef_member *member = NULL;
    check_refusal(reef_member_create(NULL, &member, &(reef_member_setup){.size = 1}, &error), &error,
                  "reef_member_setup");
    reef_problem *problem = NULL;
    reef_run *run = NULL;
    assert_int_equal(reef_problem_create(NULL, &problem, "lms", 3, 1, NULL), REEF_OK);
    const reef_run_setup setup = {.size = 1, .problem = problem, .strategy = "local"};
    check_refusal(reef_run_create(NULL, &run, &setup, &error), &error, "reef_run_setup");
    reef_problem_destroy(&problem);
}

static void inputs_of_another_version_are_refused(void **state)
{
    (void)state;
    reef_error error = {REEF_OK, ""};
    const ptrdiff_t length = 2;
    const double row[2] = {1, 2};
    const void *rows[] = {row};
    double out[2];
    reef_agg *agg = NULL;
    reef_plan *plan = NULL;
    assert_int_equal(reef_agg_create(NULL, &agg, "mean", NULL), REEF_OK);
    reef_shape shape = {.size = sizeof shape, .rows = 1, .segments = 1, .lengths = &length, .dtype = REEF_F64};
    assert_int_equal(reef_plan_create(&plan, agg, &shape, NULL), REEF_OK);
    reef_input input = {.size = sizeof input, .rows = rows};
    assert_int_equal(reef_plan_apply(plan, &input, out, NULL, NULL), REEF_OK);
    input.size -= 8;
    check_refusal(reef_plan_apply(plan, &input, out, NULL, &error), &error, "reef_input");
    check_refusal(reef_agg_apply(agg, &input, 1, length, REEF_F64, out, NULL, &error), &error, "reef_input");
    reef_plan_destroy(&plan);
    shape.size += 8;
    check_refusal(reef_plan_create(&plan, agg, &shape, &error), &error, "reef_shape");
    reef_shard *shard = NULL;
    const reef_shard_shape slices = {.size = 1, .length = length, .dtype = REEF_F64, .rows = (ptrdiff_t[]){1}};
    check_refusal(reef_shard_create(&shard, agg, reef_engine_alone(), &slices, &error), &error, "reef_shard_shape");
    reef_agg_destroy(&agg);

    reef_context *context = NULL;
    check_refusal(reef_context_create(&context, &(reef_allocator){.size = 1}, &error), &error, "reef_allocator");
    reef_graph *graph = NULL;
    check_refusal(reef_graph_create_links(NULL, &graph, 1, &(reef_link_list){.size = 1}, &error), &error,
                  "reef_link_list");
    assert_int_equal(reef_graph_create_links(NULL, &graph, 1, &(reef_link_list){.size = sizeof(reef_link_list)}, NULL),
                     REEF_OK);
    check_refusal(reef_graph_set_weights(graph, "uniform", &(reef_weight_data){.size = 1}, &error), &error,
                  "reef_weight_data");
    reef_graph_destroy(&graph);
}

static void kinds_of_another_version_are_refused(void **state)
{
    (void)state;
    reef_error error = {REEF_OK, ""};
    reef_context *context = NULL;
    assert_int_equal(reef_context_create(&context, NULL, NULL), REEF_OK);
    const reef_rule *mean = (const reef_rule *)(const void *)reef_kind_find(NULL, REEF_FAMILY_RULE, "mean");
    reef_rule own = *mean;
    own.kind.name = "my_mean";
    own.kind.size = sizeof own - 8;
    check_refusal(reef_kind_register(context, REEF_FAMILY_RULE, &own.kind, &error), &error, "my_mean");
    own.kind.size = sizeof own;
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_RULE, &own.kind, &error), REEF_OK);
    const reef_rule *mref = (const reef_rule *)(const void *)reef_kind_find(NULL, REEF_FAMILY_RULE, "mref");
    reef_memory memory = *mref->memory;
    memory.size = sizeof memory + 8;
    own = *mref;
    own.kind.name = "my_mref";
    own.memory = &memory;
    check_refusal(reef_kind_register(context, REEF_FAMILY_RULE, &own.kind, &error), &error, "reef_memory");
    reef_context_destroy(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_of_another_version_are_refused),
        cmocka_unit_test(inputs_of_another_version_are_refused),
        cmocka_unit_test(kinds_of_another_version_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
