/* Rows of 16 bits are aggregated as if they had been widened to float32 before, bit by bit: the result rounded to their type, trust, effort and
 * failures. All specs, all instruction sets, many numbers of rows and lengths, tensors of three types, any alignment, threads. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "agg/driver.h"
#include "io/precision.h"
#include "num/kernels/kernels.h"
#include "support/check.h"
#include "support/specs.h"

#include <reef/ffi.h>
#include <reef/rule.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { TENSORS = 3, ROWS_MOST = 130, NUMBERS_MOST = 600000, TEXT = 300 };

static const int types[TENSORS] = {REEF_FFI_F16, REEF_FFI_F32, REEF_FFI_BF16};
static const int wide_types[TENSORS] = {REEF_FFI_F32, REEF_FFI_F32, REEF_FFI_F32};
static const rfi_type file_types[TENSORS] = {RFI_F16, RFI_F32, RFI_BF16};

/* What tensors hold, beside numbers that agree but for noise. */
typedef enum content { PLAIN, SPECIAL, ONE_NAN, CONTENTS } content;

typedef struct trial {
    ptrdiff_t rows;
    ptrdiff_t length[TENSORS];
    const void *data[TENSORS * ROWS_MOST];
    const void *wide[TENSORS * ROWS_MOST];
    const double *weights;
} trial;

static uint64_t random_state;
static unsigned char bytes[NUMBERS_MOST * 4 + TENSORS * ROWS_MOST * 8];
static float numbers[NUMBERS_MOST + TENSORS * ROWS_MOST];
static double weights[ROWS_MOST];

static uint32_t draw(uint32_t range)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % range);
}

/* Zeros, denormal and the largest numbers, ties. */
static float special_number(rfi_type type)
{
    static const float some[] = {0, -0.0F, 1, -1, 0x1p-24F, 0x1.8p-16F, 0x1p-130F, -0x1p-133F, 0x1p-126F, 0x1p-14F};
    float largest = type == RFI_F16 ? 65504.0F : 0x1.FEp127F;
    uint32_t which = draw(14);
    return which < COUNT(some) ? some[which] : (which & 1 ? -largest : largest);
}

static float draw_number(rfi_type type, content what)
{
    if (what == SPECIAL && draw(3) == 0) {
        return special_number(type);
    }
    float noise = (float)draw(2048) / 1024 - 1;
    return (draw(8) == 0 ? 40.0F : 0.75F) + noise * (draw(8) == 0 ? 0x1p-9F : 0.5F);
}

/* Tensors in their types at odd addresses, and the same numbers in float32. */
static void fill(trial *t, content what)
{
    unsigned char *to = bytes;
    float *wide = numbers;
    for (int s = 0; s < TENSORS; s++) {
        for (ptrdiff_t l = 0; l < t->rows; l++) {
            size_t width = rfi_type_size(file_types[s]);
            to += 3;
            for (ptrdiff_t m = 0; m < t->length[s]; m++) {
                uint32_t number[1];
                float drawn = draw_number(file_types[s], what);
                bool bad = what == ONE_NAN && l == t->rows / 2 && m == t->length[s] - 1 && s == t->rows % TENSORS;
                drawn = bad ? (t->rows % 2 ? NAN : INFINITY) : drawn;
                rfi_narrow_from_f32(file_types[s], &drawn, 1, number);
                rfi_widen_to_f32(file_types[s], number, 1, &wide[m]);
                memcpy(to + (size_t)m * width, number, width);
            }
            t->data[s * t->rows + l] = to;
            t->wide[s * t->rows + l] = wide;
            to += (size_t)t->length[s] * width;
            wide += t->length[s];
        }
    }
    for (ptrdiff_t l = 0; l < t->rows; l++) {
        weights[l] = 1 + draw(3);
    }
    t->weights = draw(3) == 0 ? weights : NULL;
}

typedef struct outcome {
    reef_status status;
    char text[TEXT];
    reef_report *report;
    reef_state *state;
    unsigned char out[TENSORS][NUMBERS_MOST];
} outcome;

static void apply(const trial *t, reef_context *context, const reef_agg *agg, const int *as, bool trust, int rounds,
                  outcome *o)
{
    void *out[TENSORS];
    for (int s = 0; s < TENSORS; s++) {
        out[s] = o->out[s] + 1;
    }
    memset(o->text, 0, sizeof o->text);
    o->report = NULL;
    o->state = NULL;
    if (trust) {
        assert_int_equal(reef_ffi_report(context, &o->report, t->rows, NULL, 0), REEF_OK);
    }
    if (rounds > 1) {
        assert_int_equal(
            reef_ffi_state(agg, &o->state, t->rows, TENSORS, t->length, REEF_FFI_F32, o->text, sizeof o->text),
            REEF_OK);
    }
    uint64_t *seed = o->state ? rfi_state_first_seed(o->state) : NULL;
    if (seed) {
        *seed = 7;
    }
    for (int round = 0; round < rounds; round++) {
        o->status = reef_ffi_apply(agg, t->rows, TENSORS, t->length, as, as == types ? t->data : t->wide, out,
                                   t->weights, 0, round, o->state, o->report, o->text, sizeof o->text);
    }
}

static void compare_reports(const outcome *got, const outcome *want, ptrdiff_t rows, const char *what)
{
    size_t size = (size_t)rows * sizeof(double);
    const reef_report *a = got->report;
    const reef_report *b = want->report;
    CHECK(memcmp(reef_report_trust(a), reef_report_trust(b), size) == 0, "%s: trust", what);
    CHECK(memcmp(reef_report_rejected(a), reef_report_rejected(b), size) == 0, "%s: rejected", what);
    CHECK(reef_report_dropped(a) == reef_report_dropped(b), "%s: dropped", what);
    CHECK(reef_report_masked(a) == reef_report_masked(b), "%s: masked", what);
    CHECK(reef_report_max_iterations(a) == reef_report_max_iterations(b), "%s: iterations", what);
    CHECK(reef_report_unconverged(a) == reef_report_unconverged(b), "%s: unconverged", what);
}

/* One aggregation, or some rounds with a memory, of rows in their types and widened. */
static void check(const trial *t, reef_context *context, const char *spec, bool trust, int rounds, const char *isa)
{
    static outcome got, want;
    static unsigned char narrow[NUMBERS_MOST];
    char what[TEXT];
    char text[TEXT] = "";
    reef_agg *agg = NULL;
    CHECK(reef_ffi_agg(context, &agg, spec, text, sizeof text) == REEF_OK, "%s: %s", spec, text);
    apply(t, context, agg, types, trust, rounds, &got);
    apply(t, context, agg, wide_types, trust, rounds, &want);
    (void)snprintf(what, sizeof what, "%s, %s, %td rows of %td, %td, %td%s%s", isa, spec, t->rows, t->length[0],
                   t->length[1], t->length[2], t->weights ? ", weights" : "", trust ? ", trust" : "");
    CHECK(got.status == want.status, "%s: %s; widened: %s", what, got.text, want.text);
    assert_string_equal(got.text, want.text);
    for (int s = 0; s < TENSORS && want.status == REEF_OK; s++) {
        size_t width = rfi_type_size(file_types[s]);
        static float aligned[NUMBERS_MOST / 4];
        memcpy(aligned, want.out[s] + 1, (size_t)t->length[s] * sizeof *aligned);
        rfi_narrow_from_f32(file_types[s], aligned, t->length[s], narrow);
        for (ptrdiff_t m = 0; m < t->length[s]; m++) {
            size_t at = (size_t)m * width;
            CHECK(memcmp(got.out[s] + 1 + at, narrow + at, width) == 0, "%s: tensor %d, number %td (%g)", what, s, m,
                  (double)aligned[m]);
        }
    }
    if (trust && want.status == REEF_OK) {
        compare_reports(&got, &want, t->rows, what);
    }
    reef_report_destroy(&got.report);
    reef_report_destroy(&want.report);
    reef_state_destroy(&got.state);
    reef_state_destroy(&want.state);
    reef_agg_destroy(&agg);
}

/* Shapes with tensors around whole vectors and tiles, not larger than `most` numbers in all. */
static void draw_shape(trial *t, ptrdiff_t most)
{
    static const ptrdiff_t rows[] = {1, 2, 3, 4, 7, 8, 9, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 128, 130};
    static const ptrdiff_t length[] = {1, 2, 7, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129, 257, 1025, 4097, 5000};
    t->rows = rows[draw(COUNT(rows))];
    for (int s = 0; s < TENSORS; s++) {
        t->length[s] = length[draw(COUNT(length))];
        while (t->length[s] * t->rows > most / TENSORS) {
            t->length[s] = (t->length[s] + 2) / 3;
        }
    }
}

static bool set_isa(int isa, const char **name)
{
    const rfi_kernels *kernels = isa < 0 ? NULL : rfi_kernels_at(true, isa);
    *name = isa < 0 ? "scalar" : (kernels ? kernels->name : "");
    return (isa < 0 || kernels) && setenv("REEF_ISA", *name, 1) == 0;
}

static void every_spec(void **state)
{
    reef_context *context = NULL;
    trial t = {0};
    const char *name = "";
    (void)state;
    random_state = 1;
    assert_int_equal(reef_ffi_context(&context, 1, NULL, 0), REEF_OK);
    for (int isa = -1; set_isa(isa, &name); isa++) {
        for (ptrdiff_t i = 0; i < all_specs_count; i++) {
            for (int k = 0; k < MONTE_CARLO(8, 1); k++) {
                draw_shape(&t, isa < 0 ? 3000 : 20000);
                fill(&t, (content)draw(CONTENTS));
                check(&t, context, all_specs[i], draw(2), 1, name);
            }
        }
    }
    unsetenv("REEF_ISA");
    reef_context_destroy(&context);
}

/* Enough numbers that several threads have a part in them. */
static void with_threads(void **state)
{
    static const char *const specs[] = {"mean", "median", "trimmed:f=20%", "ref", "krum", "vref", "mref", "nnm | ref"};
    reef_context *context = NULL;
    trial t = {.rows = 40, .length = {9001, 300, 5000}};
    (void)state;
    random_state = 2;
    assert_true(t.rows * (t.length[0] + t.length[1] + t.length[2]) > 1 << 19);
    assert_int_equal(reef_ffi_context(&context, 3, NULL, 0), REEF_OK);
    for (ptrdiff_t i = 0; i < MONTE_CARLO(COUNT(specs), 2); i++) {
        fill(&t, (content)(i % CONTENTS));
        check(&t, context, specs[i], i & 1, 1, "threads");
    }
    reef_context_destroy(&context);
}

/* Entries left out one by one; refusing. */
static void other_policies(void **state)
{
    static const char *const specs[] = {"mean:nan=drop-coordinate",
                                        "median:nan=drop-coordinate",
                                        "ref:nan=drop-coordinate",
                                        "krum:nan=drop-coordinate",
                                        "vref:nan=drop-coordinate",
                                        "ref:nan=error",
                                        "mean:nan=error"};
    reef_context *context = NULL;
    trial t = {0};
    const char *name = "";
    (void)state;
    random_state = 3;
    assert_int_equal(reef_ffi_context(&context, 1, NULL, 0), REEF_OK);
    for (int isa = -1; set_isa(isa, &name); isa++) {
        for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
            for (int what = 0; what < CONTENTS; what++) {
                draw_shape(&t, 4000);
                fill(&t, (content)what);
                check(&t, context, specs[i], true, 1, name);
            }
        }
    }
    unsetenv("REEF_ISA");
    reef_context_destroy(&context);
}

/* Rules that remember: a centre, which is a row of float32 beside the others, and senders. */
static void memories(void **state)
{
    static const char *const specs[] = {"cclip:tau=1", "cclip:start=median,tau=2", "mref", "mref:sketch=64",
                                        "nnm | cclip:tau=1"};
    reef_context *context = NULL;
    trial t = {0};
    const char *name = "";
    (void)state;
    random_state = 4;
    assert_int_equal(reef_ffi_context(&context, 1, NULL, 0), REEF_OK);
    for (int isa = -1; set_isa(isa, &name); isa++) {
        for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
            draw_shape(&t, 10000);
            fill(&t, PLAIN);
            t.weights = NULL;
            check(&t, context, specs[i], true, 3, name);
        }
    }
    unsetenv("REEF_ISA");
    reef_context_destroy(&context);
}

static double first_column(const void *params, const reef_column *column, double *share, reef_effort *effort)
{
    (void)params;
    (void)effort;
    for (ptrdiff_t i = 0; i < column->n; i++) {
        share[i] = i == 0;
    }
    return column->x[0];
}

static ptrdiff_t first_span(const void *params, reef_span *span)
{
    (void)params;
    assert_true(span->single);
    memcpy(span->out, span->rows[0], (size_t)span->count * sizeof(float));
    return 0;
}

/* A rule from outside whose span looks at the rows itself sees float32, as it has been promised. */
static void spans_from_outside(void **state)
{
    static const reef_rule first = {.kind = {.name = "first", .summary = "the first row", .citation = ""},
                                    .traits = REEF_TRAIT_HULL,
                                    .column = first_column,
                                    .span = first_span};
    reef_context *context = NULL;
    trial t = {.rows = 3, .length = {70, 5, 4100}};
    (void)state;
    random_state = 5;
    assert_int_equal(reef_ffi_context(&context, 1, NULL, 0), REEF_OK);
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_RULE, &first.kind, NULL), REEF_OK);
    fill(&t, PLAIN);
    t.weights = NULL;
    check(&t, context, "first", false, 1, "own rule");
    reef_context_destroy(&context);
}

/* Every bit pattern: the one row is the result, NaN and Inf refused. */
static void every_pattern(void **state)
{
    enum { ALL = 1 << 16 };
    static uint16_t half[ALL], out[ALL];
    static float wide[ALL], want[ALL];
    reef_context *context = NULL;
    reef_agg *agg = NULL;
    (void)state;
    assert_int_equal(reef_ffi_context(&context, 1, NULL, 0), REEF_OK);
    assert_int_equal(reef_ffi_agg(context, &agg, "median", NULL, 0), REEF_OK);
    for (int s = 0; s < TENSORS; s += 2) {
        ptrdiff_t length = 0;
        for (uint32_t i = 0; i < ALL; i++) {
            half[length] = (uint16_t)i;
            rfi_widen_to_f32(file_types[s], &half[length], 1, &wide[length]);
            length += isfinite(wide[length]);
        }
        const void *rows[3] = {half, half, half};
        const void *wide_rows[3] = {wide, wide, wide};
        void *place = out;
        void *wide_place = want;
        assert_int_equal(reef_ffi_apply(agg, 3, 1, &length, &types[s], rows, &place, NULL, -1, 0, NULL, NULL, NULL, 0),
                         REEF_OK);
        assert_int_equal(
            reef_ffi_apply(agg, 3, 1, &length, wide_types, wide_rows, &wide_place, NULL, -1, 0, NULL, NULL, NULL, 0),
            REEF_OK);
        rfi_narrow_from_f32(file_types[s], want, length, half);
        assert_memory_equal(out, half, (size_t)length * sizeof *out);
    }
    reef_agg_destroy(&agg);
    reef_context_destroy(&context);
}

/* Rows that end where memory ends: nothing behind them is read. */
static void nothing_beyond(void **state)
{
    enum { ROWS = 5, LONGEST = 70, PAGE = 65536 }; /* no system has larger ones */
    static const char *const specs[] = {"mean", "median", "trimmed:f=1", "ref", "krum", "vref", "mref"};
    unsigned char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    reef_context *context = NULL;
    const char *name = "";
    (void)state;
    assert_true(memory != MAP_FAILED && mprotect(memory + PAGE, PAGE, PROT_NONE) == 0);
    memset(memory, 0x3C, PAGE);
    assert_int_equal(reef_ffi_context(&context, 1, NULL, 0), REEF_OK);
    for (int isa = 0; set_isa(isa, &name); isa++) {
        for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
            reef_agg *agg = NULL;
            assert_int_equal(reef_ffi_agg(context, &agg, specs[i], NULL, 0), REEF_OK);
            for (ptrdiff_t length = 1; length <= LONGEST; length += i ? 3 : 1) {
                uint16_t out[LONGEST];
                void *place = out;
                const void *rows[ROWS];
                for (ptrdiff_t l = 0; l < ROWS; l++) {
                    rows[l] = memory + PAGE - (size_t)length * sizeof *out;
                }
                for (int s = 0; s < TENSORS; s += 2) {
                    reef_status status = reef_ffi_apply(agg, ROWS, 1, &length, &types[s], rows, &place, NULL, -1, 0,
                                                        NULL, NULL, NULL, 0);
                    CHECK(status == REEF_OK && out[length - 1] == 0x3C3C, "%s, %s: %td numbers", name, specs[i],
                          length);
                }
            }
            reef_agg_destroy(&agg);
        }
    }
    unsetenv("REEF_ISA");
    reef_context_destroy(&context);
    (void)munmap(memory, 2 * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_spec),         cmocka_unit_test(with_threads),
                                       cmocka_unit_test(other_policies),     cmocka_unit_test(memories),
                                       cmocka_unit_test(spans_from_outside), cmocka_unit_test(every_pattern),
                                       cmocka_unit_test(nothing_beyond)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
