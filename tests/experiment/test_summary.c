/* summary.csv read back: what a run writes, and what cannot be one. */
#include "support/alloc.h"
#include "support/check.h"
#include "support/scratch.h"

#include <reef/experiment.h>
#include <string.h>

static const char table[] = "cell,rule,attack.delta,repetitions,msd\n"
                            "0,\"nnm:f=2 | ref:c=\"\"x\"\"\",0.5,3,1e-3\n"
                            "1,\"krum:f=1,q=2\",0.5,3,nan\n";

static void a_table_reads_back(void **state)
{
    scratch s;
    char path[SCRATCH_PATH];
    reef_summary *summary = NULL;
    reef_error error;
    (void)state;
    scratch_open(&s);
    (void)scratch_file(&s, "summary.csv", table, strlen(table), path);
    assert_int_equal(reef_summary_load(NULL, &summary, s.folder, &error), REEF_OK);
    assert_int_equal(reef_summary_rows(summary), 2);
    assert_int_equal(reef_summary_columns(summary), 5);
    assert_int_equal(reef_summary_axes(summary), 2);
    assert_string_equal(reef_summary_name(summary, 2), "attack.delta");
    assert_string_equal(reef_summary_field(summary, 0, 1), "nnm:f=2 | ref:c=\"x\"");
    assert_string_equal(reef_summary_field(summary, 1, 1), "krum:f=1,q=2");
    assert_string_equal(reef_summary_field(summary, 1, 4), "nan");
    assert_null(reef_summary_field(summary, 2, 0));
    assert_null(reef_summary_field(summary, -1, 0));
    assert_null(reef_summary_field(summary, 0, 5));
    assert_null(reef_summary_name(summary, -1));
    reef_summary_destroy(&summary);
    assert_null(summary);
    scratch_close(&s);
}

static void others_are_refused(void **state)
{
    static const char *const texts[] = {"",
                                        "cell,repetitions,msd\n",
                                        "cell,rule,msd\n0,ref,1\n",
                                        "number,repetitions,msd\n0,1,2\n",
                                        "cell,repetitions,msd\n0,1\n",
                                        "cell,repetitions,msd\n0,1,2,3\n",
                                        "cell,repetitions,msd\n0,1,2\n\n",
                                        "\n\n\n",
                                        ",,,,,,,,,,\n"};
    scratch s;
    char path[SCRATCH_PATH];
    reef_summary *summary = NULL;
    reef_error error;
    (void)state;
    scratch_open(&s);
    assert_int_equal(reef_summary_load(NULL, &summary, s.folder, &error), REEF_E_FILE);
    for (ptrdiff_t i = 0; i < COUNT(texts); i++) {
        (void)scratch_file(&s, "summary.csv", texts[i], strlen(texts[i]), path);
        CHECK(reef_summary_load(NULL, &summary, s.folder, &error) == REEF_E_FORMAT, "text %td was taken", i);
        assert_non_null(strstr(error.text, "not the summary of a run"));
    }
    (void)scratch_file(&s, "summary.csv", "cell,runs\n0,\0\n", 14, path);
    assert_int_equal(reef_summary_load(NULL, &summary, s.folder, &error), REEF_E_FORMAT);
    assert_int_equal(reef_summary_load(NULL, NULL, s.folder, &error), REEF_E_ARG);
    assert_int_equal(reef_summary_load(NULL, &summary, NULL, &error), REEF_E_ARG);
    scratch_close(&s);
}

static void failing_allocations(void **state)
{
    alloc_log log;
    scratch s;
    char path[SCRATCH_PATH];
    reef_summary *summary = NULL;
    (void)state;
    scratch_open(&s);
    (void)scratch_file(&s, "summary.csv", table, strlen(table), path);
    reef_context *context = alloc_context(&log, 1);
    int before = atomic_load(&log.live);
    int refused = 0;
    for (; !summary; refused++) {
        atomic_store(&log.total, 0);
        log.fail_at = refused;
        reef_status status = reef_summary_load(context, &summary, s.folder, NULL);
        assert_true(status == REEF_E_NOMEM || summary);
        assert_true(summary || atomic_load(&log.live) == before);
    }
    assert_true(refused > 3);
    reef_summary_destroy(&summary);
    assert_int_equal(atomic_load(&log.live), before);
    reef_context_destroy(&context);
    assert_false(atomic_load(&log.broken));
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_table_reads_back), cmocka_unit_test(others_are_refused),
                                       cmocka_unit_test(failing_allocations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
