/* Streaming: begin, observe, solve, combine, end in ranges of any size, in any order, by several threads give the same
 * bits as one call, trust included. */
#include "num/rng.h"
#include "support/check.h"
#include "support/model.h"
#include "support/trial.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 3, RANGES_MAX = 400 };

typedef struct range {
    ptrdiff_t segment, m0, m1;
} range;

/* One pass over all ranges. */
typedef struct stream {
    model *d;
    reef_plan *plan;
    range ranges[RANGES_MAX];
    ptrdiff_t count;
    bool combine;
    bool pieces; /* ranges are handed over in pieces */
    reef_status status[WORKERS];
} stream;

typedef struct hand {
    stream *of;
    ptrdiff_t worker;
} hand;

static void handle_piece(stream *s, ptrdiff_t worker, const range *r)
{
    const void *rows[MODEL_ROWS];
    model *d = s->d;
    size_t skip = (size_t)r->m0 * d->width;
    reef_status status;
    for (ptrdiff_t l = 0; l < d->shape.rows; l++) {
        rows[l] = (const unsigned char *)d->pointers[r->segment][l] + skip;
    }
    if (s->combine) {
        status = reef_plan_combine(s->plan, worker, r->segment, r->m0, r->m1, rows, d->out[r->segment] + skip, NULL);
    } else {
        status = reef_plan_observe(s->plan, worker, r->segment, r->m0, r->m1, rows, NULL);
    }
    s->status[worker] = status != REEF_OK ? status : s->status[worker];
}

/* The range as a whole, or in pieces of one, two, three, one, ... units. */
static void handle(stream *s, ptrdiff_t worker, const range *r)
{
    ptrdiff_t unit = reef_plan_piece(s->plan);
    range piece = *r;
    for (ptrdiff_t i = 0; s->pieces && r->m1 - piece.m0 > (i % 3 + 1) * unit; i++) {
        piece.m1 = piece.m0 + (i % 3 + 1) * unit;
        handle_piece(s, worker, &piece);
        piece.m0 = piece.m1;
    }
    piece.m1 = r->m1;
    handle_piece(s, worker, &piece);
}

static void *work(void *argument)
{
    hand *h = argument;
    for (ptrdiff_t i = h->worker; i < h->of->count; i += WORKERS) {
        handle(h->of, h->worker, &h->of->ranges[i]);
    }
    return NULL;
}

/* Ranges of one to three grains, shuffled. */
static void cut(stream *s, uint32_t seed)
{
    ptrdiff_t grain = reef_plan_grain(s->plan);
    ptrdiff_t order[RANGES_MAX];
    static range sorted[RANGES_MAX];
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 61, 0, 0, 0);
    s->count = 0;
    for (ptrdiff_t segment = 0; segment < s->d->shape.segments; segment++) {
        ptrdiff_t length = s->d->lengths[segment];
        for (ptrdiff_t m = 0; m < length;) {
            ptrdiff_t parts = 1 + (ptrdiff_t)rfi_rng_below(&rng, 3);
            ptrdiff_t end = length - m > grain && parts * grain < length - m ? m + parts * grain : length;
            assert_true(s->count < RANGES_MAX);
            sorted[s->count++] = (range){segment, m, end};
            m = end;
        }
    }
    rfi_rng_permutation(&rng, order, s->count);
    for (ptrdiff_t i = 0; i < s->count; i++) {
        s->ranges[i] = sorted[order[i]];
    }
}

static void run_pass(stream *s, bool combine, uint32_t seed)
{
    pthread_t threads[WORKERS];
    hand hands[WORKERS];
    cut(s, seed);
    s->combine = combine;
    for (ptrdiff_t w = 0; w < WORKERS; w++) {
        s->status[w] = REEF_OK;
        hands[w] = (hand){s, w};
        assert_int_equal(pthread_create(&threads[w], NULL, work, &hands[w]), 0);
    }
    for (ptrdiff_t w = 0; w < WORKERS; w++) {
        assert_int_equal(pthread_join(threads[w], NULL), 0);
        assert_int_equal(s->status[w], REEF_OK);
    }
}

/* The loop of agg.h, with scan and drop where rows are suspect. */
static void run_stream(stream *s, const reef_input *input, reef_report *report, uint32_t seed)
{
    assert_int_equal(reef_plan_begin(s->plan, input, report, NULL), REEF_OK);
    for (int again = 0; again < 2; again++) {
        for (ptrdiff_t pass = 0; pass < reef_plan_passes(s->plan); pass++) {
            run_pass(s, false, seed++);
            assert_int_equal(reef_plan_solve(s->plan, NULL), REEF_OK);
        }
        run_pass(s, true, seed++);
        if (!reef_plan_suspect(s->plan)) {
            break;
        }
        assert_int_equal(again, 0);
        assert_int_equal(reef_plan_end(s->plan, NULL), REEF_E_ORDER);
        for (ptrdiff_t i = 0; i < s->d->shape.segments; i++) {
            assert_int_equal(reef_plan_scan(s->plan, i, 0, s->d->lengths[i], s->d->rows[i], NULL), REEF_OK);
        }
        assert_int_equal(reef_plan_drop(s->plan, NULL), REEF_OK);
    }
    assert_int_equal(reef_plan_end(s->plan, NULL), REEF_OK);
}

static void compare_reports(const reef_report *a, const reef_report *b, ptrdiff_t rows, const char *spec)
{
    size_t bytes = (size_t)rows * sizeof(double);
    CHECK(memcmp(reef_report_trust(a), reef_report_trust(b), bytes) == 0, "%s: trust differs", spec);
    CHECK(memcmp(reef_report_rejected(a), reef_report_rejected(b), bytes) == 0, "%s: rejected differs", spec);
    assert_true(reef_report_centre_share(a) == reef_report_centre_share(b));
    assert_true(reef_report_mean_iterations(a) == reef_report_mean_iterations(b));
    assert_int_equal(reef_report_max_iterations(a), reef_report_max_iterations(b));
    assert_int_equal(reef_report_unconverged(a), reef_report_unconverged(b));
    assert_int_equal(reef_report_dropped(a), reef_report_dropped(b));
    assert_int_equal(reef_report_masked(a), reef_report_masked(b));
}

static void check_stream(const char *spec, model *d, const double *weights, uint32_t seed)
{
    static stream s;
    reef_report *reports[2] = {NULL, NULL};
    reef_agg *agg = make_agg(spec);
    reef_input input = {.weights = weights, .has_self = true, .self = 1, .round = 4};
    size_t bytes = (size_t)d->total * d->width;
    void *expected = malloc(bytes);
    void *got = malloc(bytes);
    reef_shape alone = d->shape;
    alone.workers = 1;
    s = (stream){.d = d, .pieces = seed % 2};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(reef_report_create(NULL, &reports[i], d->shape.rows, NULL), REEF_OK);
    }
    assert_int_equal(reef_plan_create(&s.plan, agg, &alone, NULL), REEF_OK);
    assert_int_equal(reef_plan_apply_segments(s.plan, &input, d->rows, d->outs, reports[0], NULL), REEF_OK);
    model_take_out(d, expected);
    reef_plan_destroy(&s.plan);
    model_clear_out(d);
    assert_int_equal(reef_plan_create(&s.plan, agg, &d->shape, NULL), REEF_OK);
    run_stream(&s, &input, reports[1], seed);
    model_take_out(d, got);
    CHECK(memcmp(expected, got, bytes) == 0, "%s: streaming changes the result", spec);
    compare_reports(reports[0], reports[1], d->shape.rows, spec);
    reef_plan_destroy(&s.plan);
    reef_report_destroy(&reports[0]);
    reef_report_destroy(&reports[1]);
    reef_agg_destroy(&agg);
    free(expected);
    free(got);
}

/* Odd seeds: in pieces. */
static const char *const specs[] = {"mean",
                                    "ref",
                                    "ref:scale_floor_rel=0.2",
                                    "vref",
                                    "vref:block=segment",
                                    "vref:block=64",
                                    "vref:block=6000",
                                    "krum",
                                    "geomed:max_iter=50",
                                    "bulyan",
                                    "cclip:tau=3,L=2,start=median",
                                    "nnm | ref",
                                    "nnm | vref",
                                    "nnm | vref:block=1000",
                                    "clip | vref:block=6000",
                                    "clip:c=30 | median",
                                    "arc | bucketing | geomed:max_iter=20",
                                    "bucketing | vref:block=512"};

static void small_grain(void **state)
{
    static const ptrdiff_t lengths[] = {9000, 1, 4096, 12289};
    static const double weights[] = {1, 2, 1, 0, 3, 1, 1};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        model d;
        reef_agg *agg = make_agg(specs[i]);
        bool weighted = reef_agg_traits(agg) & REEF_TRAIT_WEIGHTS;
        reef_agg_destroy(&agg);
        model_create(&d, 7, 4, lengths, i % 2 ? REEF_F64 : REEF_F32, WORKERS, (uint32_t)i);
        check_stream(specs[i], &d, weighted && i % 3 ? weights : NULL, (uint32_t)i);
        /* some rows are bad: found in one range, dropped in all */
        model_set(&d, 3, 2, 12288, NAN);
        model_set(&d, 0, 5, 17, INFINITY);
        check_stream(specs[i], &d, NULL, (uint32_t)i);
        check_stream(specs[i], &d, NULL, (uint32_t)i + 1);
        model_destroy(&d);
    }
}

/* More than 64 tiles: slots of several tiles, and trees inside and above them. */
static void large_grain(void **state)
{
    static const ptrdiff_t lengths[] = {300001};
    static const char *const few[] = {"vref", "nnm | median", "mean", "vref:block=10000"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(few); i++) {
        model d;
        reef_plan *plan = NULL;
        reef_agg *agg = make_agg(few[i]);
        model_create(&d, 4, 1, lengths, REEF_F32, WORKERS, 8);
        assert_int_equal(reef_plan_create(&plan, agg, &d.shape, NULL), REEF_OK);
        assert_true(reef_plan_grain(plan) > 4096);
        reef_plan_destroy(&plan);
        reef_agg_destroy(&agg);
        check_stream(few[i], &d, NULL, 9);
        check_stream(few[i], &d, NULL, 10);
        model_destroy(&d);
    }
}

/* Elementwise rules without a report take any ranges: a coordinate's result depends on its own column only. */
static void any_start_for_elementwise_rules(void **state)
{
    static const char *const few[] = {"mean", "median", "trimmed:f=2", "meamed:f=1", "huber", "ref", "ref:scale=qn"};
    static const ptrdiff_t lengths[] = {500};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(few); i++) {
        model d;
        static double expected[500];
        reef_plan *plan = NULL;
        reef_agg *agg = make_agg(few[i]);
        reef_input input = {0};
        model_create(&d, 8, 1, lengths, REEF_F64, 1, 3);
        input.rows = d.rows[0];
        assert_int_equal(reef_plan_create(&plan, agg, &d.shape, NULL), REEF_OK);
        assert_int_equal(reef_plan_apply(plan, &input, expected, NULL, NULL), REEF_OK);
        for (ptrdiff_t start = 1; start < 32; start++) {
            const void *rows[8];
            model_clear_out(&d);
            assert_int_equal(reef_plan_begin(plan, &input, NULL, NULL), REEF_OK);
            for (ptrdiff_t m = 0; m < 500;) {
                ptrdiff_t end = m == 0 ? start : (m + 77 < 500 ? m + 77 : 500);
                for (ptrdiff_t l = 0; l < 8; l++) {
                    rows[l] = (const double *)d.pointers[0][l] + m;
                }
                assert_int_equal(reef_plan_combine(plan, 0, 0, m, end, rows, (double *)(void *)d.out[0] + m, NULL),
                                 REEF_OK);
                m = end;
            }
            assert_int_equal(reef_plan_end(plan, NULL), REEF_OK);
            assert_memory_equal(d.out[0], expected, sizeof expected);
        }
        reef_plan_destroy(&plan);
        reef_agg_destroy(&agg);
        model_destroy(&d);
    }
}

/* ---- the order of calls ---- */

typedef struct desk {
    model d;
    reef_agg *agg;
    reef_plan *plan;
    reef_input input;
} desk;

static void open_desk(desk *k, const char *spec)
{
    static const ptrdiff_t lengths[] = {9000, 10};
    *k = (desk){.agg = make_agg(spec)};
    model_create(&k->d, 5, 2, lengths, REEF_F64, 2, 1);
    assert_int_equal(reef_plan_create(&k->plan, k->agg, &k->d.shape, NULL), REEF_OK);
}

static void close_desk(desk *k)
{
    reef_plan_destroy(&k->plan);
    reef_agg_destroy(&k->agg);
    model_destroy(&k->d);
}

static reef_status observe(desk *k, ptrdiff_t segment, ptrdiff_t m0, ptrdiff_t m1)
{
    return reef_plan_observe(k->plan, 0, segment, m0, m1, k->d.rows[segment], NULL);
}

static reef_status combine(desk *k, ptrdiff_t segment, ptrdiff_t m0, ptrdiff_t m1)
{
    return reef_plan_combine(k->plan, 0, segment, m0, m1, k->d.rows[segment], k->d.out[segment], NULL);
}

static void wrong_order_is_refused(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "vref");
    assert_int_equal(observe(&k, 0, 0, 9000), REEF_E_ORDER);
    assert_int_equal(combine(&k, 0, 0, 9000), REEF_E_ORDER);
    assert_int_equal(reef_plan_solve(k.plan, NULL), REEF_E_ORDER);
    assert_int_equal(reef_plan_end(k.plan, NULL), REEF_E_ORDER);
    assert_int_equal(reef_plan_drop(k.plan, NULL), REEF_E_ORDER);
    assert_int_equal(reef_plan_scan(k.plan, 0, 0, 10, k.d.rows[0], NULL), REEF_E_ORDER);
    assert_int_equal(reef_plan_begin(k.plan, &k.input, NULL, NULL), REEF_OK);
    assert_int_equal(reef_plan_passes(k.plan), 1);
    assert_int_equal(combine(&k, 0, 0, 9000), REEF_E_ORDER);
    assert_int_equal(reef_plan_solve(k.plan, NULL), REEF_E_ORDER); /* nothing observed */
    assert_int_equal(observe(&k, 0, 0, 9000), REEF_OK);
    assert_int_equal(reef_plan_end(k.plan, NULL), REEF_E_ORDER);
    assert_int_equal(observe(&k, 1, 0, 10), REEF_OK);
    assert_int_equal(reef_plan_solve(k.plan, NULL), REEF_OK);
    assert_int_equal(observe(&k, 1, 0, 10), REEF_E_ORDER); /* no pass left */
    assert_int_equal(reef_plan_solve(k.plan, NULL), REEF_E_ORDER);
    assert_int_equal(combine(&k, 0, 0, 9000), REEF_OK);
    assert_int_equal(reef_plan_end(k.plan, NULL), REEF_E_ORDER); /* segment 1 is missing */
    assert_int_equal(combine(&k, 1, 0, 10), REEF_OK);
    assert_int_equal(reef_plan_end(k.plan, NULL), REEF_OK);
    assert_int_equal(reef_plan_end(k.plan, NULL), REEF_E_ORDER);
    close_desk(&k);
}

static void incomplete_coverage_is_detected(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "krum");
    assert_int_equal(reef_plan_begin(k.plan, &k.input, NULL, NULL), REEF_OK);
    assert_int_equal(observe(&k, 0, 4096, 8192), REEF_OK);
    assert_int_equal(observe(&k, 1, 0, 10), REEF_OK);
    assert_int_equal(reef_plan_solve(k.plan, NULL), REEF_E_ORDER);
    close_desk(&k);
}

/* As many coordinates as there are, but one range twice and another never. */
static void a_range_twice_is_detected(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "krum");
    assert_int_equal(reef_plan_begin(k.plan, &k.input, NULL, NULL), REEF_OK);
    reef_status first = observe(&k, 0, 4096, 8192);
    reef_status second = observe(&k, 0, 4096, 8192);
    assert_int_equal(observe(&k, 0, 8192, 9000), REEF_OK);
    assert_int_equal(observe(&k, 1, 0, 10), REEF_OK);
    reef_status solved = reef_plan_solve(k.plan, NULL);
    assert_true(first != REEF_OK || second != REEF_OK || solved != REEF_OK);
    close_desk(&k);
}

/* A piece goes on where the worker's last one ended, nowhere else, and not for another worker. */
static void pieces_out_of_order_are_refused(void **state)
{
    static const ptrdiff_t lengths[] = {300001};
    model d;
    reef_plan *plan = NULL;
    reef_input input = {0};
    (void)state;
    reef_agg *agg = make_agg("vref");
    model_create(&d, 4, 1, lengths, REEF_F32, 2, 8);
    assert_int_equal(reef_plan_create(&plan, agg, &d.shape, NULL), REEF_OK);
    ptrdiff_t unit = reef_plan_piece(plan);
    assert_true(reef_plan_grain(plan) >= 2 * unit);
    assert_int_equal(reef_plan_begin(plan, &input, NULL, NULL), REEF_OK);
    assert_int_equal(reef_plan_observe(plan, 0, 0, unit, 2 * unit, d.rows[0], NULL), REEF_E_ARG);
    assert_int_equal(reef_plan_observe(plan, 0, 0, 0, unit - 1, d.rows[0], NULL), REEF_E_ARG);
    assert_int_equal(reef_plan_observe(plan, 0, 0, 0, unit, d.rows[0], NULL), REEF_OK);
    assert_int_equal(reef_plan_observe(plan, 1, 0, unit, 2 * unit, d.rows[0], NULL), REEF_E_ARG);
    assert_int_equal(reef_plan_observe(plan, 0, 0, 0, unit, d.rows[0], NULL), REEF_E_ORDER);
    assert_int_equal(reef_plan_observe(plan, 0, 0, unit, 300001, d.rows[0], NULL), REEF_OK);
    assert_int_equal(reef_plan_solve(plan, NULL), REEF_OK);
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
    model_destroy(&d);
}

static void bad_ranges_are_refused(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "vref");
    assert_int_equal(reef_plan_begin(k.plan, &k.input, NULL, NULL), REEF_OK);
    assert_int_equal(observe(&k, 0, 1, 9000), REEF_E_ARG);
    assert_int_equal(observe(&k, 0, 0, 5000), REEF_E_ARG);
    assert_int_equal(observe(&k, 0, 0, 9001), REEF_E_ARG);
    assert_int_equal(observe(&k, 0, -4096, 4096), REEF_E_ARG);
    assert_int_equal(observe(&k, 0, 4096, 4096), REEF_E_ARG);
    assert_int_equal(observe(&k, 0, 8192, 4096), REEF_E_ARG);
    assert_int_equal(reef_plan_observe(k.plan, 0, 2, 0, 10, k.d.rows[0], NULL), REEF_E_ARG);
    assert_int_equal(reef_plan_observe(k.plan, 0, -1, 0, 10, k.d.rows[0], NULL), REEF_E_ARG);
    assert_int_equal(reef_plan_observe(k.plan, 2, 1, 0, 10, k.d.rows[1], NULL), REEF_E_ARG);
    assert_int_equal(reef_plan_observe(k.plan, -1, 1, 0, 10, k.d.rows[1], NULL), REEF_E_ARG);
    assert_int_equal(reef_plan_observe(k.plan, 0, 1, 0, 10, NULL, NULL), REEF_E_ARG);
    assert_int_equal(reef_plan_observe(NULL, 0, 1, 0, 10, k.d.rows[1], NULL), REEF_E_ARG);
    const void *holed[5] = {k.d.pointers[1][0], NULL, k.d.pointers[1][2], k.d.pointers[1][3], k.d.pointers[1][4]};
    assert_int_equal(reef_plan_observe(k.plan, 0, 1, 0, 10, holed, NULL), REEF_E_ARG);
    /* none of that counts as coverage */
    assert_int_equal(observe(&k, 0, 0, 9000), REEF_OK);
    assert_int_equal(observe(&k, 1, 0, 10), REEF_OK);
    assert_int_equal(reef_plan_solve(k.plan, NULL), REEF_OK);
    assert_int_equal(reef_plan_combine(k.plan, 0, 1, 0, 10, k.d.rows[1], NULL, NULL), REEF_E_ARG);
    assert_int_equal(reef_plan_begin(NULL, &k.input, NULL, NULL), REEF_E_ARG);
    assert_int_equal(reef_plan_begin(k.plan, NULL, NULL, NULL), REEF_E_ARG);
    assert_int_equal(reef_plan_solve(NULL, NULL), REEF_E_ORDER);
    assert_int_equal(reef_plan_end(NULL, NULL), REEF_E_ORDER);
    close_desk(&k);
}

/* With a report ranges follow the grain, for elementwise rules too. */
static void reports_need_the_grain(void **state)
{
    desk k;
    reef_report *report = NULL;
    (void)state;
    open_desk(&k, "ref");
    assert_int_equal(reef_report_create(NULL, &report, 5, NULL), REEF_OK);
    assert_int_equal(reef_plan_passes(k.plan), 0);
    assert_int_equal(reef_plan_begin(k.plan, &k.input, report, NULL), REEF_OK);
    assert_int_equal(combine(&k, 0, 0, 100), REEF_E_ARG);
    assert_int_equal(reef_plan_begin(k.plan, &k.input, NULL, NULL), REEF_OK);
    assert_int_equal(combine(&k, 0, 0, 100), REEF_OK);
    reef_report_destroy(&report);
    close_desk(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_grain),
        cmocka_unit_test(large_grain),
        cmocka_unit_test(any_start_for_elementwise_rules),
        cmocka_unit_test(wrong_order_is_refused),
        cmocka_unit_test(incomplete_coverage_is_detected),
        cmocka_unit_test(a_range_twice_is_detected),
        cmocka_unit_test(bad_ranges_are_refused),
        cmocka_unit_test(pieces_out_of_order_are_refused),
        cmocka_unit_test(reports_need_the_grain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
