/* The same bits, whatever the threads, the ranges, the order of the columns, the addresses and the process. */
#include "num/kernels/kernels.h"
#include "num/rng.h"
#include "support/check.h"
#include "support/model.h"
#include "support/trial.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static reef_context *make_context(ptrdiff_t threads)
{
    reef_context *context = NULL;
    assert_int_equal(reef_context_create(&context, NULL, NULL), REEF_OK);
    assert_int_equal(reef_context_set_threads(context, threads, NULL), REEF_OK);
    return context;
}

static reef_agg *make_agg_in(reef_context *context, const char *spec)
{
    reef_agg *agg = NULL;
    reef_error error = {0};
    CHECK(reef_agg_create(context, &agg, spec, &error) == REEF_OK, "%s: %s", spec, error.text);
    return agg;
}

static void *must_allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    assert_non_null(memory);
    return memory;
}

/* Aggregates the model on the threads of a context; returns the bytes of the result. */
static unsigned char *apply(model *d, reef_context *context, const char *spec, const double *weights,
                            reef_report *report)
{
    reef_agg *agg = make_agg_in(context, spec);
    reef_plan *plan = NULL;
    reef_error error = {0};
    unsigned char *bytes = must_allocate((size_t)d->total * d->width);
    assert_int_equal(reef_plan_create(&plan, agg, &d->shape, NULL), REEF_OK);
    model_clear_out(d);
    reef_status status =
        reef_plan_apply_segments(plan, &(reef_input){.weights = weights}, d->rows, d->outs, report, &error);
    CHECK(status == REEF_OK, "%s: %s", spec, error.text);
    model_take_out(d, bytes);
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
    return bytes;
}

static const char *const all_rules[] = {
    "mean",   "median",          "trimmed",         "meamed",     "huber",        "ref",    "ref:scale_floor_rel=0.9",
    "vref",   "vref:block=100",  "vref:block=5000", "krum",       "multikrum",    "bulyan", "mda:f=2",
    "geomed", "cclip:tau=1,L=3", "nnm | ref",       "nnm | vref", "arc | geomed",
};
static const char *const elementwise[] = {"mean",  "median", "median:even=upper",  "trimmed", "meamed",
                                          "huber", "ref",    "ref:scale_floor=0.5"};

/* Values of every size, tails that need many steps, ties, and a few columns for the scalar rules (majority, huge). */
static void roughen(model *d, uint32_t seed)
{
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 0x726f7567, 0, 0, 0);
    for (ptrdiff_t s = 0; s < d->shape.segments; s++) {
        for (ptrdiff_t i = 0; i < d->lengths[s]; i++) {
            uint32_t kind = rfi_rng_below(&rng, 8);
            for (ptrdiff_t l = 0; kind < 5 && l < d->shape.rows; l++) {
                double x = model_get(d, s, l, i);
                double sizes[] = {x / (0.01 + rfi_rng_uniform(&rng)), 1e6 * x, (double)(int)(2 * x), l % 4 ? 0.1 : x,
                                  l % 5 ? x : 5 + x};
                model_set(d, s, l, i, sizes[kind]);
            }
        }
    }
}

/* Cases take turns with the instruction sets, and with equal and unequal weights. */
static void use_isa(ptrdiff_t turn)
{
    ptrdiff_t sets = 0;
    while (rfi_kernels_at(true, (int)sets)) {
        sets++;
    }
    assert_int_equal(setenv("REEF_ISA", rfi_kernels_at(true, (int)(turn % sets))->name, 1), 0);
}

static const double *some_weights(ptrdiff_t turn)
{
    static double weights[MODEL_ROWS];
    for (ptrdiff_t l = 0; l < MODEL_ROWS; l++) {
        weights[l] = 1 + (double)(l % 5) / 3;
    }
    return turn % 2 ? weights : NULL;
}

static int forget_isa(void **state)
{
    (void)state;
    return unsetenv("REEF_ISA");
}

/* ---- threads ---- */

typedef struct summary {
    double trust[MODEL_ROWS], rejected[MODEL_ROWS];
    double centre, iterations;
    int most;
} summary;

static summary summarise(const reef_report *report, ptrdiff_t rows)
{
    summary t;
    memset(&t, 0, sizeof t);
    memcpy(t.trust, reef_report_trust(report), (size_t)rows * sizeof(double));
    memcpy(t.rejected, reef_report_rejected(report), (size_t)rows * sizeof(double));
    t.centre = reef_report_centre_share(report);
    t.iterations = reef_report_mean_iterations(report);
    t.most = reef_report_max_iterations(report);
    return t;
}

/* Results and reports for 1, 2, 3 and 7 threads, twice each. The input is above 2 MB, so that the pool is used. */
static void check_threads(model *d, const char *spec)
{
    static const ptrdiff_t threads[] = {1, 2, 3, 7};
    unsigned char *want = NULL;
    summary first;
    for (ptrdiff_t i = 0; i < COUNT(threads); i++) {
        reef_context *context = make_context(threads[i]);
        reef_report *report = NULL;
        assert_int_equal(reef_report_create(NULL, &report, d->shape.rows, NULL), REEF_OK);
        unsigned char *got = apply(d, context, spec, NULL, NULL);
        unsigned char *again = apply(d, context, spec, NULL, report);
        summary t = summarise(report, d->shape.rows);
        if (!want) {
            want = got;
            first = t;
        }
        CHECK(memcmp(got, want, (size_t)d->total * d->width) == 0, "%s: other bits on %td threads", spec, threads[i]);
        CHECK(memcmp(again, want, (size_t)d->total * d->width) == 0, "%s: other bits on %td threads with a report",
              spec, threads[i]);
        CHECK(memcmp(&t, &first, sizeof t) == 0, "%s: another report on %td threads", spec, threads[i]);
        if (got != want) {
            free(got);
        }
        free(again);
        reef_report_destroy(&report);
        reef_context_destroy(&context);
    }
    free(want);
}

static void any_number_of_threads(void **state)
{
    static const ptrdiff_t one[] = {50007};
    static const ptrdiff_t several[] = {17, 30001, 4096, 1, 20011};
    (void)state;
#ifdef TEST_EMULATED
    skip(); /* slow, and threads meet there as they do on the machine below */
#endif
    for (int c = 0; c < 4; c++) {
        model d;
        if (c < 2) {
            model_create(&d, 11, 1, one, c % 2 ? REEF_F32 : REEF_F64, 0, 1);
        } else {
            model_create(&d, 11, 5, several, c % 2 ? REEF_F32 : REEF_F64, 0, 2);
        }
        assert_true((size_t)(d.total * d.shape.rows) * d.width > (size_t)2 << 20);
        roughen(&d, 3);
        for (ptrdiff_t i = (c + c / 2) % 2; i < COUNT(all_rules); i += MONTE_CARLO(2, 6)) {
            check_threads(&d, all_rules[i]);
        }
        model_destroy(&d);
    }
}

/* ---- ranges ---- */

/* Combines [0, cut) and [cut, M) and some pieces more, each from its own start. */
static void combine_pieces(model *d, reef_plan *plan, const double *weights, ptrdiff_t cut)
{
    ptrdiff_t m = d->lengths[0];
    ptrdiff_t cuts[] = {0, cut, cut + 1, m / 2 + cut, m};
    assert_int_equal(reef_plan_begin(plan, &(reef_input){.weights = weights}, NULL, NULL), REEF_OK);
    assert_int_equal(reef_plan_passes(plan), 0);
    for (int i = 0; i < 4; i++) {
        const void *rows[MODEL_ROWS];
        if (cuts[i] == cuts[i + 1]) {
            continue;
        }
        for (ptrdiff_t l = 0; l < d->shape.rows; l++) {
            rows[l] = (const char *)d->pointers[0][l] + (size_t)cuts[i] * d->width;
        }
        assert_int_equal(
            reef_plan_combine(plan, 0, 0, cuts[i], cuts[i + 1], rows, d->out[0] + (size_t)cuts[i] * d->width, NULL),
            REEF_OK);
    }
    assert_false(reef_plan_suspect(plan));
    assert_int_equal(reef_plan_end(plan, NULL), REEF_OK);
}

static void any_offset(void **state)
{
    static const ptrdiff_t length[] = {4200};
    static const ptrdiff_t counts[] = {5, 11, 33};
    (void)state;
    for (ptrdiff_t c = 0; c < COUNT(elementwise) * 6; c += MONTE_CARLO(1, 5)) {
        const char *spec = elementwise[c / 6];
        model d;
        model_create(&d, counts[c % 3], 1, length, c / 3 % 2 ? REEF_F32 : REEF_F64, 1, (uint32_t)c);
        roughen(&d, (uint32_t)c);
        use_isa(c + c / 3);
        const double *weights = some_weights(c / 2);
        reef_agg *agg = make_agg(spec);
        reef_plan *plan = NULL;
        unsigned char *want = apply(&d, NULL, spec, weights, NULL);
        assert_int_equal(reef_plan_create(&plan, agg, &d.shape, NULL), REEF_OK);
        for (ptrdiff_t offset = 0; offset < 32; offset += MONTE_CARLO(1, 5)) {
            model_clear_out(&d);
            combine_pieces(&d, plan, weights, offset);
            CHECK(memcmp(d.out[0], want, (size_t)d.total * d.width) == 0, "%s, K = %td: other bits from offset %td",
                  spec, d.shape.rows, offset);
        }
        free(want);
        reef_plan_destroy(&plan);
        reef_agg_destroy(&agg);
        model_destroy(&d);
    }
}

/* ---- columns ---- */

/* The model with its columns in another order. */
static void shuffle(const model *d, model *other, const ptrdiff_t *order)
{
    for (ptrdiff_t l = 0; l < d->shape.rows; l++) {
        for (ptrdiff_t i = 0; i < d->total; i++) {
            model_set(other, 0, l, i, model_get(d, 0, l, order[i]));
        }
    }
}

static void any_order_of_columns(void **state)
{
    static const ptrdiff_t length[] = {4133};
    static ptrdiff_t order[4133];
    static const ptrdiff_t counts[] = {3, 8, 33, 64};
    rfi_rng rng;
    (void)state;
    rfi_rng_init(&rng, 8, 9, 0, 0, 0);
    for (ptrdiff_t c = 0; c < COUNT(elementwise) * 8; c += MONTE_CARLO(1, 3)) {
        const char *spec = elementwise[c / 8];
        reef_dtype dtype = c / 4 % 2 ? REEF_F32 : REEF_F64;
        model d;
        model other;
        model_create(&d, counts[c % 4], 1, length, dtype, 1, (uint32_t)c);
        model_create(&other, counts[c % 4], 1, length, dtype, 1, 0);
        roughen(&d, (uint32_t)c);
        rfi_rng_permutation(&rng, order, length[0]);
        shuffle(&d, &other, order);
        use_isa(c + c / 4);
        const double *weights = some_weights(c / 3);
        unsigned char *want = apply(&d, NULL, spec, weights, NULL);
        unsigned char *got = apply(&other, NULL, spec, weights, NULL);
        for (ptrdiff_t i = 0; i < length[0]; i++) {
            CHECK(memcmp(got + (size_t)i * d.width, want + (size_t)order[i] * d.width, d.width) == 0,
                  "%s, K = %td: column %td has other bits as column %td", spec, d.shape.rows, order[i], i);
        }
        free(want);
        free(got);
        model_destroy(&d);
        model_destroy(&other);
    }
}

/* ---- addresses ---- */

static void any_alignment(void **state)
{
    static const ptrdiff_t length[] = {1037};
    rfi_rng rng;
    (void)state;
    rfi_rng_init(&rng, 10, 9, 0, 0, 0);
    for (ptrdiff_t c = 0; c < 2 * COUNT(all_rules); c++) {
        model d;
        model_create(&d, 11, 1, length, c % 2 ? REEF_F32 : REEF_F64, 1, (uint32_t)c);
        roughen(&d, (uint32_t)c);
        use_isa(c / 2);
        size_t bytes = (size_t)d.total * d.width;
        unsigned char *want = apply(&d, NULL, all_rules[c / 2], NULL, NULL);
        unsigned char *rows[11];
        for (ptrdiff_t l = 0; l < 11; l++) {
            size_t shift = rfi_rng_below(&rng, 64);
            rows[l] = must_allocate(bytes + shift);
            memcpy(rows[l] + shift, d.pointers[0][l], bytes);
            d.pointers[0][l] = rows[l] + shift;
        }
        unsigned char *room = must_allocate(bytes + 3);
        d.outs[0] = room + 3;
        free(d.out[0]);
        d.out[0] = room + 3;
        unsigned char *got = apply(&d, NULL, all_rules[c / 2], NULL, NULL);
        CHECK(memcmp(got, want, bytes) == 0, "%s: other bits at other addresses", all_rules[c / 2]);
        for (ptrdiff_t l = 0; l < 11; l++) {
            free(rows[l]);
        }
        free(want);
        free(got);
        free(room);
        d.out[0] = NULL;
        model_destroy(&d);
    }
}

/* ---- processes and callers ---- */

/* After fork() a child has the memory of the pool, but not its threads. */
static void a_child_process(void **state)
{
#ifdef TEST_NO_THREADS_AFTER_FORK
    (void)state;
    skip();
#else
    static const ptrdiff_t length[] = {100003};
    model d;
    reef_context *context = make_context(4);
    (void)state;
    model_create(&d, 8, 1, length, REEF_F32, 0, 4);
    unsigned char *want = apply(&d, context, "ref", NULL, NULL);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(60); /* a hang ends the child */
            unsigned char *got = apply(&d, context, "ref", NULL, NULL);
            bool same = memcmp(got, want, (size_t)d.total * d.width) == 0;
            reef_context_destroy(&context);
            _exit(same ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status %x", (unsigned)status);
        unsigned char *again = apply(&d, context, "ref", NULL, NULL); /* nor has the parent lost anything */
        assert_memory_equal(again, want, (size_t)d.total * d.width);
        free(again);
    }
    free(want);
    reef_context_destroy(&context);
    model_destroy(&d);
#endif
}

typedef struct caller {
    reef_context *context;
    const char *spec;
    model d;
    unsigned char *want;
    int wrong;
} caller;

/* Cmocka's checks are for the main thread only. */
static void *aggregate_often(void *argument)
{
    caller *c = argument;
    reef_agg *agg = NULL;
    reef_plan *plan = NULL;
    c->wrong += reef_agg_create(c->context, &agg, c->spec, NULL) != REEF_OK;
    c->wrong += reef_plan_create(&plan, agg, &c->d.shape, NULL) != REEF_OK;
    for (int i = 0; !c->wrong && i < MONTE_CARLO(10, 3); i++) {
        model_clear_out(&c->d);
        c->wrong += reef_plan_apply_segments(plan, &(reef_input){0}, c->d.rows, c->d.outs, NULL, NULL) != REEF_OK;
        c->wrong += memcmp(c->d.out[0], c->want, (size_t)c->d.total * c->d.width) != 0;
    }
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
    return NULL;
}

/* Two threads of the user, each with its plan, in one context. */
static void two_callers(void **state)
{
    static const ptrdiff_t length[] = {70001};
    static const char *const specs[] = {"ref", "vref"};
    static caller callers[2];
    pthread_t threads[2];
    reef_context *context = make_context(3);
    (void)state;
    for (int i = 0; i < 2; i++) {
        callers[i].context = context;
        callers[i].spec = specs[i];
        callers[i].wrong = 0;
        model_create(&callers[i].d, 9, 1, length, REEF_F32, 0, (uint32_t)i);
        callers[i].want = apply(&callers[i].d, NULL, specs[i], NULL, NULL);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, aggregate_often, &callers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(callers[i].wrong, 0);
        free(callers[i].want);
        model_destroy(&callers[i].d);
    }
    reef_context_destroy(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads),
        cmocka_unit_test_teardown(any_offset, forget_isa),
        cmocka_unit_test_teardown(any_order_of_columns, forget_isa),
        cmocka_unit_test_teardown(any_alignment, forget_isa),
        cmocka_unit_test(a_child_process),
        cmocka_unit_test(two_callers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
