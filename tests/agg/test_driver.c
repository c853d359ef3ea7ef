/* The driver of plans: rows left out from the start, suspects told to the caller, sources and sinks that fail. */
#include "agg/driver.h"
#include "base/error.h"
#include "support/check.h"
#include "support/model.h"
#include "support/specs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 9 };

static const char *const specs[] = {"mean",  "krum:f=2", "nnm:f=2|ref", "vref:block=4096", "nnm:f=2|vref:block=1000",
                                    "median"};

typedef struct stage {
    model *data;
    int reads_left; /* the read after these fails; -1: none does */
    bool write_fails;
    ptrdiff_t written;
    bool lazy;             /* rows that the plan does not depend on are not read */
    const reef_plan *plan; /* which */
    ptrdiff_t unread;
    double out[8192];
} stage;

static stage s;

/* The numbers of another row in place of those that need not be read. */
static void leave_out(const rfi_stretch *at, const void **rows)
{
    bool wanted[ROWS];
    const void *some = NULL;
    rfi_plan_rows_read(s.plan, at->segment, wanted);
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        some = wanted[l] ? rows[l] : some;
        s.unread += !wanted[l];
    }
    assert_non_null(some);
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        rows[l] = wanted[l] ? rows[l] : some;
    }
}

static reef_status read_rows(void *user, const rfi_stretch *at, const void **rows, reef_error *error)
{
    const stage *st = user;
    if (s.reads_left == 0) {
        return rfi_fail(error, REEF_E_FILE, "cannot read");
    }
    s.reads_left -= s.reads_left > 0;
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        rows[l] = (const unsigned char *)st->data->rows[at->segment][l] + (size_t)at->m0 * st->data->width;
    }
    if (s.lazy) {
        leave_out(at, rows);
    }
    return REEF_OK;
}

static void *place(void *user, const rfi_stretch *at)
{
    assert_true(at->m1 - at->m0 <= COUNT(s.out));
    return ((stage *)user)->out;
}

static reef_status write_out(void *user, const rfi_stretch *at, reef_error *error)
{
    stage *st = user;
    size_t width = st->data->width;
    if (st->write_fails) {
        return rfi_fail(error, REEF_E_FILE, "cannot write");
    }
    memcpy(st->data->out[at->segment] + (size_t)at->m0 * width, st->out, (size_t)(at->m1 - at->m0) * width);
    st->written += at->m1 - at->m0;
    return REEF_OK;
}

static void make(model *d)
{
    static const ptrdiff_t sizes[] = {9000, 3, 4096};
    model_create(d, ROWS, 3, sizes, REEF_F32, 1, 7);
    s = (stage){.data = d, .reads_left = -1};
}

static reef_status drive(model *d, const char *spec, const bool *without, bool *suspect, reef_report *report,
                         reef_error *error)
{
    reef_agg *agg = NULL;
    reef_plan *plan = NULL;
    reef_input input = {0};
    s.data = d;
    assert_int_equal(reef_agg_create(NULL, &agg, spec, NULL), REEF_OK);
    assert_int_equal(reef_plan_create(&plan, agg, &d->shape, NULL), REEF_OK);
    reef_status status = reef_plan_begin(plan, &input, report, NULL);
    s.plan = plan;
    const rfi_drive way = {.plan = plan,
                           .user = &s,
                           .read = read_rows,
                           .place = place,
                           .write = write_out,
                           .step = rfi_plan_room(plan),
                           .without = without,
                           .suspect = suspect};
    status = status == REEF_OK ? rfi_drive_run(&way, error) : status;
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
    return status;
}

/* The same bits as if the rows had held NaN, whatever they hold. */
static void rows_left_out(void **state)
{
    model d;
    make(&d);
    bool without[ROWS] = {[2] = true, [5] = true};
    unsigned char *found = malloc((size_t)d.total * d.width);
    unsigned char *want = malloc((size_t)d.total * d.width);
    reef_report *report = NULL;
    (void)state;
    assert_int_equal(reef_report_create(NULL, &report, ROWS, NULL), REEF_OK);
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        model_refill(&d, 11);
        model_set(&d, 0, 2, 5, 1e9);
        assert_int_equal(drive(&d, specs[i], without, NULL, report, NULL), REEF_OK);
        assert_int_equal(reef_report_dropped(report), 2);
        assert_int_equal(reef_report_reason(report, 5), REEF_NONFINITE);
        model_take_out(&d, found);
        model_set(&d, 1, 2, 0, (double)NAN);
        model_set(&d, 2, 5, 4095, -(double)INFINITY);
        assert_int_equal(drive(&d, specs[i], NULL, NULL, report, NULL), REEF_OK);
        assert_int_equal(reef_report_dropped(report), 2);
        model_take_out(&d, want);
        CHECK(memcmp(found, want, (size_t)d.total * d.width) == 0, "%s", specs[i]);
    }
    reef_report_destroy(&report);
    free(found);
    free(want);
    model_destroy(&d);
}

static void suspects_told(void **state)
{
    model d;
    make(&d);
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        bool suspect = false;
        assert_int_equal(drive(&d, specs[i], NULL, &suspect, NULL, NULL), REEF_OK);
        assert_false(suspect);
        model_set(&d, 0, 3, 8999, (double)NAN);
        (void)drive(&d, specs[i], NULL, &suspect, NULL, NULL);
        assert_true(suspect);
        model_refill(&d, 11);
    }
    model_destroy(&d);
}

/* All rows far apart in the first block, where distances overflow; if a row with NaN comes later it is only left out, and as the rest
 * goes well nobody is told of an error. */
static void failures_of_bad_rows(void **state)
{
    static const ptrdiff_t length = 10000;
    model d;
    reef_error error = {REEF_OK, "untouched"};
    (void)state;
    model_create(&d, ROWS, 1, &length, REEF_F64, 1, 7);
    s = (stage){.data = &d, .reads_left = -1};
    for (ptrdiff_t l = 0; l < 5; l++) {
        model_set(&d, 0, l, 0, (l % 2 ? -1e200 : 1e200) * (double)(l + 1));
    }
    assert_int_equal(drive(&d, "vref:block=4096", NULL, NULL, NULL, &error), REEF_E_FAR);
    for (ptrdiff_t l = 0; l < 5; l++) {
        model_set(&d, 0, l, 9999, (double)NAN);
    }
    error = (reef_error){REEF_OK, "untouched"};
    assert_int_equal(drive(&d, "vref:block=4096", NULL, NULL, NULL, &error), REEF_OK);
    assert_string_equal(error.text, "untouched");
    model_destroy(&d);
}

static void sources_and_sinks_fail(void **state)
{
    (void)state;
    model d;
    make(&d);
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        reef_error error = {0};
        for (int reads = 0; reads < 5; reads++) {
            s = (stage){.data = &d, .reads_left = reads};
            assert_int_equal(drive(&d, specs[i], NULL, NULL, NULL, &error), REEF_E_FILE);
            assert_string_equal(error.text, "cannot read");
        }
        s = (stage){.data = &d, .reads_left = -1, .write_fails = true};
        assert_int_equal(drive(&d, specs[i], NULL, NULL, NULL, &error), REEF_E_FILE);
        assert_string_equal(error.text, "cannot write");
        s = (stage){.data = &d, .reads_left = -1};
        assert_int_equal(drive(&d, specs[i], NULL, NULL, NULL, &error), REEF_OK);
        assert_int_equal(s.written, d.total);
    }
    model_destroy(&d);
}

/* Every rule: the same bits and the same trust if rows are not read that it does not depend on. */
static void rows_not_read(void **state)
{
    model d;
    make(&d);
    unsigned char *found = malloc((size_t)d.total * d.width);
    unsigned char *want = malloc((size_t)d.total * d.width);
    double trust[ROWS];
    reef_report *report = NULL;
    ptrdiff_t saving = 0;
    (void)state;
    assert_int_equal(reef_report_create(NULL, &report, ROWS, NULL), REEF_OK);
    model_set(&d, 0, 2, 5, 1e9);
    for (ptrdiff_t i = 0; i < all_specs_count; i++) {
        s = (stage){.reads_left = -1};
        reef_status status = drive(&d, all_specs[i], NULL, NULL, report, NULL);
        if (status != REEF_OK) { /* some need a row of their own, or more rows */
            continue;
        }
        model_take_out(&d, want);
        memcpy(trust, reef_report_trust(report), sizeof trust);
        s.lazy = true;
        assert_int_equal(drive(&d, all_specs[i], NULL, NULL, report, NULL), REEF_OK);
        model_take_out(&d, found);
        CHECK(memcmp(found, want, (size_t)d.total * d.width) == 0, "%s", all_specs[i]);
        CHECK(memcmp(trust, reef_report_trust(report), sizeof trust) == 0, "%s", all_specs[i]);
        saving += s.unread > 0;
    }
    assert_true(saving >= 2);
    static const char *const none[] = {"mean", "nnm:f=2|krum:f=2", "krum:f=2,nan=drop-coordinate", "vref:block=4096"};
    for (ptrdiff_t i = 0; i < COUNT(none); i++) {
        s = (stage){.reads_left = -1, .lazy = true};
        assert_int_equal(drive(&d, none[i], NULL, NULL, NULL, NULL), REEF_OK);
        assert_int_equal(s.unread, 0);
    }
    s = (stage){.reads_left = -1, .lazy = true};
    assert_int_equal(drive(&d, "krum:f=2", NULL, NULL, NULL, NULL), REEF_OK);
    assert_true(s.unread > 0 && s.unread % (ROWS - 1) == 0); /* one row is taken */
    reef_report_destroy(&report);
    free(found);
    free(want);
    model_destroy(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_left_out),        cmocka_unit_test(suspects_told),
        cmocka_unit_test(failures_of_bad_rows), cmocka_unit_test(sources_and_sinks_fail),
        cmocka_unit_test(rows_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
