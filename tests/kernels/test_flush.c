/* Flushing denormal numbers to zero: inputs and results, of both types, and the former state afterwards. */
#include "num/kernels/kernels.h"
#include "support/check.h"

#include <float.h>

#if defined(__x86_64__) || defined(__aarch64__)
static const bool flushes = true;
#else
static const bool flushes = false;
#endif

/* volatile: computed when it is asked for, not by the compiler */
static volatile float smallest_f32 = FLT_MIN;
static volatile double smallest_f64 = DBL_MIN;
static volatile float denormal_f32 = FLT_MIN / 4;
static volatile double denormal_f64 = DBL_MIN / 4;

static void check_denormals(bool vanish, const char *when)
{
    CHECK((smallest_f32 / 2 == 0) == vanish, "float32 results %s", when);
    CHECK((smallest_f64 / 2 == 0) == vanish, "float64 results %s", when);
    CHECK((denormal_f32 * 8 == 0) == vanish, "float32 inputs %s", when);
    CHECK((denormal_f64 * 8 == 0) == vanish, "float64 inputs %s", when);
}

static void denormals_vanish_between_begin_and_end(void **state)
{
    (void)state;
    check_denormals(false, "before");
    unsigned outer = rfi_flush_begin();
    check_denormals(flushes, "between");
    unsigned inner = rfi_flush_begin();
    check_denormals(flushes, "between, twice");
    rfi_flush_end(inner);
    check_denormals(flushes, "after the inner end");
    rfi_flush_end(outer);
    check_denormals(false, "after");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(denormals_vanish_between_begin_and_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
