/* Sparse text into a dense matrix, and where each mistake is. */
#include "io/libsvm.h"
#include "support/alloc.h"
#include "support/check.h"

#include <string.h>

static reef_status read_text(const char *text, ptrdiff_t least, ptrdiff_t most, rfi_libsvm *data, reef_error *error)
{
    return rfi_libsvm_read(NULL, text, strlen(text), "d.txt", least, most, data, error);
}

static void good_files(void **state)
{
    static const char text[] = "# made by hand\n+1 1:0.5 3:-2e0 # end\r\n\n-1\n 2.5\t2:1  4:0\n";
    static const float want[] = {0.5F, 0, -2, 0, 0, 0, 0, 0, 0, 1, 0, 0};
    rfi_libsvm data;
    reef_error error;
    (void)state;
    CHECK(read_text(text, 0, 12, &data, &error) == REEF_OK, "%s", error.text);
    assert_true(data.rows == 3 && data.columns == 4);
    assert_true(data.labels[0] == 1 && data.labels[1] == -1 && data.labels[2] == 2.5);
    assert_memory_equal(data.values, want, sizeof want);
    rfi_libsvm_free(NULL, &data);
    assert_int_equal(read_text("1 2:3", 6, 6, &data, NULL), REEF_OK);
    assert_true(data.columns == 6 && data.values[1] == 3 && data.values[5] == 0);
    rfi_libsvm_free(NULL, &data);
    assert_int_equal(read_text("1\n2\n", 0, 0, &data, NULL), REEF_OK);
    assert_true(data.rows == 2 && data.columns == 0);
    rfi_libsvm_free(NULL, &data);
}

static void mistakes(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } bad[] = {
        {"", "d.txt: the file has no data"},
        {"#\n", "d.txt: the file has no data"},
        {"x 1:2", "d.txt:1:1: a label is expected here"},
        {"1,2 1:2", "a label is expected here"},
        {"nan 1:2", "a label is expected here"},
        {"1:2 2:3", "a label is expected here"},
        {"1 2", "d.txt:1:3: index:value is expected here"},
        {"1 0:2", "d.txt:1:3: indices are whole numbers"},
        {"1 -1:2", "indices are whole numbers"},
        {"1 qid:2", "indices are whole numbers"},
        {"1 :2", "indices are whole numbers"},
        {"1 99999999999999999999:2", "indices are whole numbers"},
        {"1 1073741825:2", "indices are whole numbers from 1 to 1073741824"},
        {"1 1:2\n1 2:1 2:1", "d.txt:2:7: index 2 follows index 2; they must ascend"},
        {"1 3:1 2:1", "index 2 follows index 3"},
        {"1 1:", "d.txt:1:5: this is not a finite"},
        {"1 1:x", "this is not a finite"},
        {"1 1:nan", "this is not a finite"},
        {"1 1:1e39", "this is not a finite"},
        {"1 1:2:3", "this is not a finite"},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        rfi_libsvm data = {.rows = 77};
        reef_error error = {REEF_OK, ""};
        assert_int_equal(read_text(bad[i].text, 0, 1000, &data, &error), REEF_E_FORMAT);
        CHECK(strstr(error.text, bad[i].says) && data.rows == 77, "'%s' should say '%s'", error.text, bad[i].says);
    }
}

/* A few bytes must not get gigabytes. */
static void the_limit_holds(void **state)
{
    rfi_libsvm data = {.rows = 77};
    reef_error error;
    (void)state;
    assert_int_equal(read_text("1 1073741824:1\n1\n1\n1\n", 0, 1 << 20, &data, &error), REEF_E_RANGE);
    assert_non_null(strstr(error.text, "4 x 1073741824 values; at most 1048576"));
    assert_int_equal(data.rows, 77);
    assert_int_equal(read_text("1 3:1\n1\n", 0, 5, &data, &error), REEF_E_RANGE);
    assert_int_equal(read_text("1 3:1\n1\n", PTRDIFF_MAX, PTRDIFF_MAX, &data, &error), REEF_E_RANGE);
    assert_int_equal(read_text("1 3:1\n", PTRDIFF_MAX / 2, PTRDIFF_MAX, &data, &error), REEF_E_RANGE);
}

static void failing_allocations(void **state)
{
    alloc_log log;
    rfi_libsvm data;
    (void)state;
    reef_context *context = alloc_context(&log, 1);
    int before = atomic_load(&log.live);
    for (int i = 0; i < 3; i++) {
        atomic_store(&log.total, 0);
        log.fail_at = i;
        reef_status status = rfi_libsvm_read(context, "1 1:1", 5, "d.txt", 0, 10, &data, NULL);
        assert_int_equal(status, i < 2 ? REEF_E_NOMEM : REEF_OK);
        assert_int_equal(atomic_load(&log.live), before + (i < 2 ? 0 : 2));
    }
    rfi_libsvm_free(context, &data);
    reef_context_destroy(&context);
    assert_false(atomic_load(&log.broken));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(the_limit_holds),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
