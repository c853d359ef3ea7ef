/* The flat interface: what it says and computes is what the calls with structs say and compute. */
#include "support/alloc.h"
#include "support/check.h"

#include "io/half.h"
#include "io/precision.h"

#include <reef/reef.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 9, SEGMENTS = 2, LONG = 9000, SHORT = 7, ROOM = 200 };
static const ptrdiff_t lengths[SEGMENTS] = {LONG, SHORT};
static const int singles[SEGMENTS] = {REEF_FFI_F32, REEF_FFI_F32};

/* ---- tables ---- */

static const reef_field *field_of(const reef_rule *rule, ptrdiff_t i)
{
    return &rule->kind.fields[i];
}

static void tables_of_rules(void **state)
{
    (void)state;
    assert_int_equal(reef_ffi_kinds(NULL, "rule"), reef_kind_count(NULL, REEF_FAMILY_RULE));
    for (ptrdiff_t i = 0; i < reef_kind_count(NULL, REEF_FAMILY_RULE); i++) {
        const reef_rule *rule = (const void *)reef_kind_at(NULL, REEF_FAMILY_RULE, i);
        assert_string_equal(reef_ffi_kind(NULL, "rule", i, "name"), rule->kind.name);
        assert_string_equal(reef_ffi_kind(NULL, "rule", i, "summary"), rule->kind.summary);
        assert_string_equal(reef_ffi_kind(NULL, "rule", i, "citation"), rule->kind.citation);
        assert_int_equal(reef_ffi_traits(NULL, "rule", i), rule->traits);
        assert_int_equal(reef_ffi_is_mixer(NULL, i), rule->mix != NULL);
        /* what to do with NaN, for every rule but pre-aggregators */
        assert_int_equal(reef_ffi_fields(NULL, "rule", i), rule->kind.field_count + (rule->mix == NULL));
        for (ptrdiff_t j = 0; j < rule->kind.field_count; j++) {
            const reef_field *field = field_of(rule, j);
            assert_string_equal(reef_ffi_field(NULL, "rule", i, j, "name"), field->name);
            assert_string_equal(reef_ffi_field(NULL, "rule", i, j, "preset"), field->preset);
            assert_string_equal(reef_ffi_field(NULL, "rule", i, j, "help"), field->help);
            assert_int_equal(reef_ffi_field_type(NULL, "rule", i, j), field->type);
            assert_true(reef_ffi_field_limit(NULL, "rule", i, j, 0) == field->min);
            assert_true(reef_ffi_field_limit(NULL, "rule", i, j, 1) == field->max);
            ptrdiff_t words = 0;
            while (field->words && field->words[words]) {
                assert_string_equal(reef_ffi_field_word(NULL, "rule", i, j, words), field->words[words]);
                words++;
            }
            assert_null(reef_ffi_field_word(NULL, "rule", i, j, words));
        }
    }
}

static void tables_of_all_families(void **state)
{
    static const char *const families[] = {"rule",  "attack",   "problem", "graph",     "weights",
                                           "links", "strategy", "source",  "partition", "placement"};
    (void)state;
    assert_int_equal(COUNT(families), REEF_FAMILIES);
    for (ptrdiff_t i = 0; i < COUNT(families); i++) {
        assert_string_equal(reef_family_name((reef_family)i), families[i]);
        ptrdiff_t count = reef_ffi_kinds(NULL, families[i]);
        CHECK(count > 0, "%s: %td kinds", families[i], count);
        for (ptrdiff_t k = 0; k < count; k++) {
            assert_non_null(reef_ffi_kind(NULL, families[i], k, "name"));
            for (ptrdiff_t j = 0; j < reef_ffi_fields(NULL, families[i], k); j++) {
                assert_non_null(reef_ffi_field(NULL, families[i], k, j, "preset"));
            }
        }
        assert_null(reef_ffi_kind(NULL, families[i], count, "name"));
        assert_null(reef_ffi_kind(NULL, families[i], -1, "name"));
        assert_int_equal(reef_ffi_fields(NULL, families[i], count), -1);
    }
    ptrdiff_t common = 0;
    (void)reef_kind_common(REEF_FAMILY_ATTACK, reef_kind_at(NULL, REEF_FAMILY_ATTACK, 0), &common);
    assert_int_equal(reef_ffi_fields(NULL, "attack", 0),
                     reef_kind_at(NULL, REEF_FAMILY_ATTACK, 0)->field_count + common);
}

static void tables_of_nothing(void **state)
{
    (void)state;
    assert_int_equal(reef_ffi_kinds(NULL, "ruel"), -1);
    assert_int_equal(reef_ffi_kinds(NULL, NULL), -1);
    assert_null(reef_ffi_kind(NULL, "rule", 0, "nothing"));
    assert_null(reef_ffi_kind(NULL, "rule", 0, NULL));
    assert_null(reef_ffi_field(NULL, "rule", 0, 1000, "name"));
    assert_null(reef_ffi_field(NULL, "rule", 0, -1, "name"));
    assert_int_equal(reef_ffi_field_type(NULL, "rule", 0, 1000), -1);
    assert_true(reef_ffi_field_limit(NULL, "rule", 0, 1000, 1) == 0);
    assert_null(reef_ffi_field_word(NULL, "ruel", 0, 0, 0));
    assert_int_equal(reef_ffi_is_mixer(NULL, -1), 0);
    assert_int_equal(reef_ffi_traits(NULL, "rule", 1000), 0);
}

/* ---- aggregation ---- */

typedef struct models {
    float *wide[ROWS][SEGMENTS];
    unsigned char *half[ROWS][SEGMENTS]; /* one byte off, so that nothing is aligned */
    const void *data[SEGMENTS * ROWS];
    float *out[SEGMENTS];
} models;

/* Rows whose numbers are float16 exactly, row 1 far away. */
static void make_models(models *m, int type, bool broken)
{
    unsigned seed = 1;
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        for (ptrdiff_t s = 0; s < SEGMENTS; s++) {
            uint16_t *raw = test_malloc((size_t)lengths[s] * sizeof *raw);
            m->wide[l][s] = test_malloc((size_t)lengths[s] * sizeof(float));
            m->half[l][s] = test_malloc((size_t)lengths[s] * sizeof *raw + 1);
            for (ptrdiff_t i = 0; i < lengths[s]; i++) {
                seed = seed * 1664525U + 1013904223U;
                m->wide[l][s][i] = (float)(seed >> 24) / 64.0F + (l == 1 ? 100.0F : 0.0F);
            }
            if (broken && l == 4 && s == 0) {
                m->wide[l][s][LONG - 1] = NAN;
            }
            if (type == REEF_FFI_F16) {
                rfi_narrow_f16(m->wide[l][s], lengths[s], raw);
                rfi_widen_f16(raw, lengths[s], m->wide[l][s]);
            } else {
                rfi_narrow_bf16(m->wide[l][s], lengths[s], raw);
                rfi_widen_bf16(raw, lengths[s], m->wide[l][s]);
            }
            memcpy(m->half[l][s] + 1, raw, (size_t)lengths[s] * sizeof *raw);
            test_free(raw);
            m->data[s * ROWS + l] = m->wide[l][s];
        }
    }
    for (ptrdiff_t s = 0; s < SEGMENTS; s++) {
        m->out[s] = test_calloc((size_t)lengths[s], sizeof(float));
    }
}

static void free_models(models *m)
{
    for (ptrdiff_t s = 0; s < SEGMENTS; s++) {
        for (ptrdiff_t l = 0; l < ROWS; l++) {
            test_free(m->wide[l][s]);
            test_free(m->half[l][s]);
        }
        test_free(m->out[s]);
    }
}

static const char *const specs[] = {"ref", "mean", "krum:f=2", "vref", "nnm:f=2 | median", "vref:block=64", "cclip"};

static void apply_is_the_plan(void **state)
{
    models m;
    (void)state;
    make_models(&m, REEF_FFI_F16, true);
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        char text[ROOM] = "";
        reef_agg *agg = NULL;
        reef_plan *plan = NULL;
        reef_report *flat = NULL;
        reef_report *other = NULL;
        float *out[SEGMENTS] = {test_calloc(LONG, sizeof(float)), test_calloc(SHORT, sizeof(float))};
        const void *const *rows[SEGMENTS] = {m.data, m.data + ROWS};
        reef_shape shape = {.rows = ROWS, .segments = SEGMENTS, .lengths = lengths, .dtype = REEF_F32};
        assert_int_equal(reef_ffi_agg(NULL, &agg, specs[i], text, sizeof text), REEF_OK);
        assert_int_equal(reef_ffi_report(NULL, &flat, ROWS, text, sizeof text), REEF_OK);
        assert_int_equal(reef_report_create(NULL, &other, ROWS, NULL), REEF_OK);
        assert_int_equal(reef_plan_create(&plan, agg, &shape, NULL), REEF_OK);
        assert_int_equal(reef_plan_apply_segments(plan, &(reef_input){0}, rows, (void *const *)out, other, NULL),
                         REEF_OK);
        assert_int_equal(reef_ffi_apply(agg, ROWS, SEGMENTS, lengths, singles, m.data, (void *const *)m.out, NULL, -1,
                                        0, NULL, flat, text, sizeof text),
                         REEF_OK);
        for (ptrdiff_t s = 0; s < SEGMENTS; s++) {
            assert_memory_equal(out[s], m.out[s], (size_t)lengths[s] * sizeof(float));
            test_free(out[s]);
        }
        assert_memory_equal(reef_report_trust(flat), reef_report_trust(other), ROWS * sizeof(double));
        assert_int_equal(reef_report_reason(flat, 4), REEF_NONFINITE);
        reef_plan_destroy(&plan);
        reef_report_destroy(&flat);
        reef_report_destroy(&other);
        reef_agg_destroy(&agg);
    }
    free_models(&m);
}

/* 16-bit rows give the result of the widened rows, rounded. */
static void check_halves(const char *spec, int type, bool broken)
{
    models m;
    char text[ROOM] = "";
    reef_agg *agg = NULL;
    reef_report *wide = NULL;
    reef_report *half = NULL;
    unsigned char *out[SEGMENTS] = {test_malloc(2 * LONG + 1), test_malloc(2 * SHORT + 1)};
    void *places[SEGMENTS] = {out[0] + 1, out[1] + 1};
    const int types[SEGMENTS] = {type, type};
    uint16_t *wanted = test_malloc(LONG * sizeof *wanted);
    const void *data[SEGMENTS * ROWS];
    make_models(&m, type, broken);
    for (ptrdiff_t i = 0; i < SEGMENTS * ROWS; i++) {
        data[i] = m.half[i % ROWS][i / ROWS] + 1;
    }
    assert_int_equal(reef_ffi_agg(NULL, &agg, spec, text, sizeof text), REEF_OK);
    assert_int_equal(reef_ffi_report(NULL, &wide, ROWS, text, sizeof text), REEF_OK);
    assert_int_equal(reef_ffi_report(NULL, &half, ROWS, text, sizeof text), REEF_OK);
    assert_int_equal(reef_ffi_apply(agg, ROWS, SEGMENTS, lengths, singles, m.data, (void *const *)m.out, NULL, -1, 0,
                                    NULL, wide, text, sizeof text),
                     REEF_OK);
    reef_status status =
        reef_ffi_apply(agg, ROWS, SEGMENTS, lengths, types, data, places, NULL, -1, 0, NULL, half, text, sizeof text);
    CHECK(status == REEF_OK, "%s: %s", spec, text);
    for (ptrdiff_t s = 0; s < SEGMENTS; s++) {
        if (type == REEF_FFI_F16) {
            rfi_narrow_f16(m.out[s], lengths[s], wanted);
        } else {
            rfi_narrow_bf16(m.out[s], lengths[s], wanted);
        }
        CHECK(memcmp(wanted, places[s], (size_t)lengths[s] * sizeof *wanted) == 0, "%s: another result", spec);
        test_free(out[s]);
    }
    assert_memory_equal(reef_report_trust(wide), reef_report_trust(half), ROWS * sizeof(double));
    assert_int_equal(reef_report_reason(half, 4), broken ? REEF_NONFINITE : REEF_USED);
    reef_report_destroy(&wide);
    reef_report_destroy(&half);
    reef_agg_destroy(&agg);
    test_free(wanted);
    free_models(&m);
}

static void halves_are_the_widened_rows_rounded(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        for (int broken = 0; broken < 2; broken++) {
            check_halves(specs[i], REEF_FFI_F16, broken);
            check_halves(specs[i], REEF_FFI_BF16, broken);
        }
    }
}

enum { KINDS = 6, MIXED = 5000 };
static const ptrdiff_t mixed_lengths[KINDS] = {MIXED, MIXED, MIXED, MIXED, MIXED, MIXED};

static const rfi_type file_types[] = {RFI_F32, RFI_F64, RFI_F16, RFI_BF16, RFI_F8_E4M3, RFI_F8_E5M2};

/* A result of a type is the one of double precision, rounded: with doubles to the bit; else float is what is computed with. */
static void check_rounded(const char *spec, int kind, const void *out, const double *wanted, bool doubles)
{
    static const double tolerances[] = {1e-6, 1e-6, 0x1p-10, 0x1p-8, 0x1.01p-4, 0x1.01p-3};
    rfi_type type = file_types[kind];
    double least = rfi_type_size(type) == 1 ? 0x1p-10 : 0; /* half a step of the smallest numbers */
    double *found = test_malloc(MIXED * sizeof *found);
    unsigned char *rounded = test_malloc(MIXED * sizeof(double));
    rfi_narrow_from_f64(type, wanted, MIXED, rounded);
    rfi_widen_to_f64(type, out, MIXED, found);
    for (ptrdiff_t m = 0; m < MIXED; m++) {
        CHECK(fabs(found[m] - wanted[m]) <= tolerances[kind] * fabs(wanted[m]) + least, "%s: %g instead of %g", spec,
              found[m], wanted[m]);
    }
    assert_true(!doubles || memcmp(out, rounded, MIXED * rfi_type_size(type)) == 0);
    test_free(found);
    test_free(rounded);
}

/* A model with a tensor of each type: the result is that of the widened model, rounded tensor by tensor. doubles: one of them is F64. */
static void check_mixed(const char *spec, bool doubles)
{
    const int types[KINDS] = {REEF_FFI_BF16,    doubles ? REEF_FFI_F64 : REEF_FFI_F32,
                              REEF_FFI_F32,     REEF_FFI_F16,
                              REEF_FFI_F8_E4M3, REEF_FFI_F8_E5M2};
    const int wide_types[KINDS] = {REEF_FFI_F64, REEF_FFI_F64, REEF_FFI_F64, REEF_FFI_F64, REEF_FFI_F64, REEF_FFI_F64};
    const void *data[KINDS * ROWS];
    const void *wide_data[KINDS * ROWS];
    void *out[KINDS];
    void *wide_out[KINDS];
    char text[ROOM] = "";
    reef_agg *agg = NULL;
    unsigned seed = 3;
    assert_int_equal(reef_ffi_agg(NULL, &agg, spec, text, sizeof text), REEF_OK);
    for (ptrdiff_t i = 0; i < KINDS * ROWS; i++) {
        rfi_type type = file_types[types[i / ROWS]];
        void *raw = test_malloc(MIXED * sizeof(double));
        double *wide = test_malloc(MIXED * sizeof *wide);
        for (ptrdiff_t m = 0; m < MIXED; m++) {
            seed = seed * 1664525U + 1013904223U;
            wide[m] = (double)(seed >> 8) / 1e7 + (i % ROWS == 1 ? 100 : 0);
        }
        rfi_narrow_from_f64(type, wide, MIXED, raw);
        rfi_widen_to_f64(type, raw, MIXED, wide);
        data[i] = raw;
        wide_data[i] = wide;
    }
    for (ptrdiff_t s = 0; s < KINDS; s++) {
        out[s] = test_calloc(MIXED, sizeof(double));
        wide_out[s] = test_calloc(MIXED, sizeof(double));
    }
    assert_int_equal(
        reef_ffi_apply(agg, ROWS, KINDS, mixed_lengths, types, data, out, NULL, -1, 0, NULL, NULL, text, sizeof text),
        REEF_OK);
    assert_int_equal(reef_ffi_apply(agg, ROWS, KINDS, mixed_lengths, wide_types, wide_data, wide_out, NULL, -1, 0, NULL,
                                    NULL, text, sizeof text),
                     REEF_OK);
    for (ptrdiff_t s = 0; s < KINDS; s++) {
        check_rounded(spec, types[s], out[s], wide_out[s], doubles);
        test_free(out[s]);
        test_free(wide_out[s]);
    }
    for (ptrdiff_t i = 0; i < KINDS * ROWS; i++) {
        test_free((void *)(uintptr_t)data[i]);
        test_free((void *)(uintptr_t)wide_data[i]);
    }
    reef_agg_destroy(&agg);
}

static void each_tensor_keeps_its_type(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        check_mixed(specs[i], true);
        check_mixed(specs[i], false);
    }
}

static void votes(void **state)
{
    static const int32_t rows[4][2] = {{1, 5}, {2, 6}, {2, 7}, {3, 8}};
    static const double weights[4] = {3, 1, 1, 0};
    static const double trust[4] = {0.5, 0.2, 1, 2};
    static const double nobody[4] = {0};
    static const double wrong[4] = {1, 1, NAN, 1};
    const void *data[4] = {rows[0], rows[1], rows[2], rows[3]};
    const void *missing[4] = {rows[0], NULL, rows[2], rows[3]};
    int32_t out[2];
    char text[ROOM] = "";
    (void)state;
    assert_int_equal(reef_ffi_vote(4, 2, 4, data, NULL, trust, out, text, sizeof text), REEF_OK);
    assert_true(out[0] == 3 && out[1] == 8); /* two of four are no majority: the most trusted */
    assert_int_equal(reef_ffi_vote(3, 2, 4, data, NULL, trust, out, text, sizeof text), REEF_OK);
    assert_true(out[0] == 2 && out[1] == 7);
    assert_int_equal(reef_ffi_vote(4, 2, 4, data, weights, trust, out, text, sizeof text), REEF_OK);
    assert_true(out[0] == 1 && out[1] == 5); /* by weight; row 3 has no vote, whatever its trust */
    assert_int_equal(reef_ffi_vote(4, 2, 4, data, nobody, NULL, out, text, sizeof text), REEF_E_NO_ROWS);
    assert_int_equal(reef_ffi_vote(4, 2, 4, data, wrong, NULL, out, text, sizeof text), REEF_E_WEIGHTS);
    assert_int_equal(reef_ffi_vote(4, 2, 4, missing, NULL, NULL, out, text, sizeof text), REEF_E_ARG);
    assert_int_equal(reef_ffi_vote(4, 0, 4, data, NULL, NULL, out, text, sizeof text), REEF_E_ARG);
    assert_int_equal(reef_ffi_vote(PTRDIFF_MAX, 2, 4, data, NULL, NULL, out, text, sizeof text), REEF_E_NOMEM);
}

/* Prepared calls give what the others give, round by round, with memory and without; each part is refused where it is wrong. */
static void prepared_is_the_same(void **state)
{
    static const char *const kinds[] = {"ref", "bucketing:s=2 | median", "vref", "mref"};
    enum { K = 5, M = 6 };
    float rows[K][M];
    const void *data[K];
    char text[ROOM] = "";
    const ptrdiff_t length = M;
    (void)state;
    for (ptrdiff_t i = 0; i < K * M; i++) {
        ptrdiff_t row = i / M;
        rows[row][i % M] = (float)((i * 37) % 11) + (float)row;
        data[row] = rows[row];
    }
    for (size_t s = 0; s < COUNT(kinds); s++) {
        reef_agg *agg = NULL;
        reef_state *memories[2] = {NULL, NULL};
        reef_ffi_prepared *prepared = NULL;
        float out[2][M];
        assert_int_equal(reef_ffi_agg(NULL, &agg, kinds[s], text, sizeof text), REEF_OK);
        assert_int_equal(reef_ffi_state(agg, &memories[0], K, 1, &length, REEF_FFI_F32, text, sizeof text), REEF_OK);
        assert_int_equal(reef_ffi_state(agg, &memories[1], K, 1, &length, REEF_FFI_F32, text, sizeof text), REEF_OK);
        assert_int_equal(reef_ffi_prepare(agg, &prepared, K, M, REEF_FFI_F32, text, sizeof text), REEF_OK);
        for (int64_t round = 0; round < 4; round++) {
            void *place = out[0];
            assert_int_equal(reef_ffi_apply(agg, K, 1, &length, singles, data, &place, NULL, -1, round, memories[0],
                                            NULL, text, sizeof text),
                             REEF_OK);
            assert_int_equal(reef_ffi_prepared_apply(prepared, rows, out[1], round, memories[1]), REEF_OK);
            assert_memory_equal(out[0], out[1], sizeof out[0]);
        }
        assert_int_equal(reef_ffi_prepared_apply(prepared, rows, rows[2], 0, NULL), REEF_E_ARG); /* it overlaps */
        assert_int_equal(reef_ffi_prepared_apply(prepared, rows, NULL, 0, NULL), REEF_E_ARG);
        assert_int_equal(reef_ffi_prepared_apply(prepared, NULL, out, 0, NULL), REEF_E_ARG);
        reef_ffi_prepared_destroy(&prepared);
        assert_null(prepared);
        reef_state_destroy(&memories[0]);
        reef_state_destroy(&memories[1]);
        reef_agg_destroy(&agg);
    }
    reef_ffi_prepared_destroy(&(reef_ffi_prepared *){NULL});
    assert_int_equal(reef_ffi_prepared_apply(NULL, rows, rows, 0, NULL), REEF_E_ARG);
}

/* Rows of 16 bits, enough of them for all threads: the same bits whatever their number. */
static void halves_with_threads(void **state)
{
    static const char *const kinds[] = {"median", "vref"};
    enum { K = 12, M = 50001 };
    const ptrdiff_t length = M;
    const int narrow_type = REEF_FFI_F16;
    uint16_t *half = malloc(sizeof *half * K * M);
    uint16_t *out = malloc(sizeof *out * 3 * M);
    const void *data[K];
    char text[ROOM] = "";
    (void)state;
    assert_true(half && out);
    for (ptrdiff_t i = 0; i < K * M; i++) {
        half[i] = (uint16_t)(0x3C00 | (((uint32_t)i * 2654435761U) >> 22));
        data[i / M] = half + i / M * M;
    }
    half[3 * M + 40000] = 0x7E00; /* NaN: that row is left out */
    for (size_t s = 0; s < COUNT(kinds); s++) {
        for (ptrdiff_t threads = 1; threads <= 3; threads++) {
            reef_context *context = NULL;
            reef_agg *agg = NULL;
            void *place = out + (threads - 1) * M;
            assert_int_equal(reef_ffi_context(&context, threads, text, sizeof text), REEF_OK);
            assert_int_equal(reef_ffi_agg(context, &agg, kinds[s], text, sizeof text), REEF_OK);
            assert_int_equal(reef_ffi_apply(agg, K, 1, &length, &narrow_type, data, &place, NULL, -1, 0, NULL, NULL,
                                            text, sizeof text),
                             REEF_OK);
            assert_memory_equal(out, place, sizeof *out * M);
            reef_agg_destroy(&agg);
            reef_context_destroy(&context);
        }
    }
    free(half);
    free(out);
}

/* A result in the place of a row, or of a part of it, is refused whatever the type; rows without weight do not count. */
static void results_apart(void **state)
{
    static const int types[] = {REEF_FFI_F32, REEF_FFI_F16, REEF_FFI_BF16, REEF_FFI_F64};
    static double numbers[ROWS][LONG + 1];
    static const double weights[ROWS] = {1, 1, 0, 1, 1, 1, 1, 1, 1};
    const ptrdiff_t length = LONG;
    const void *rows[ROWS];
    reef_context *context = NULL;
    reef_agg *agg = NULL;
    (void)state;
    assert_int_equal(reef_ffi_context(&context, 1, NULL, 0), REEF_OK);
    assert_int_equal(reef_ffi_agg(context, &agg, "mean", NULL, 0), REEF_OK);
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        rows[l] = numbers[l];
    }
    for (ptrdiff_t i = 0; i < COUNT(types); i++) {
        for (ptrdiff_t l = 0; l < 2 * ROWS; l++) {
            char text[ROOM] = "";
            char want[ROOM] = "";
            void *out = (char *)numbers[l / 2] + (l % 2 ? 8 : 0);
            reef_status status =
                reef_ffi_apply(agg, ROWS, 1, &length, &types[i], rows, &out, weights, -1, 0, NULL, NULL, text, ROOM);
            (void)snprintf(want, sizeof want, "out overlaps row %td of segment 0", l / 2);
            CHECK(status == (l / 2 == 2 ? REEF_OK : REEF_E_ARG), "type %td, row %td: %d", i, l / 2, (int)status);
            CHECK(status == REEF_OK || strcmp(text, want) == 0, "type %td, row %td: %s", i, l / 2, text);
        }
    }
    reef_agg_destroy(&agg);
    reef_context_destroy(&context);
}

static void prepared_refuses(void **state)
{
    reef_agg *agg = NULL;
    reef_ffi_prepared *prepared = NULL;
    char text[ROOM] = "";
    (void)state;
    assert_int_equal(reef_ffi_agg(NULL, &agg, "mean", text, sizeof text), REEF_OK);
    assert_int_equal(reef_ffi_prepare(NULL, &prepared, 3, 4, REEF_FFI_F32, text, sizeof text), REEF_E_ARG);
    assert_int_equal(reef_ffi_prepare(agg, NULL, 3, 4, REEF_FFI_F32, text, sizeof text), REEF_E_ARG);
    assert_int_equal(reef_ffi_prepare(agg, &prepared, 0, 4, REEF_FFI_F32, text, sizeof text), REEF_E_ARG);
    assert_int_equal(reef_ffi_prepare(agg, &prepared, 3, 0, REEF_FFI_F32, text, sizeof text), REEF_E_ARG);
    assert_int_equal(reef_ffi_prepare(agg, &prepared, 3, 4, REEF_FFI_F16, text, sizeof text), REEF_E_ARG);
    assert_non_null(strstr(text, "number type"));
    assert_int_equal(reef_ffi_prepare(agg, &prepared, 3, PTRDIFF_MAX, REEF_FFI_F64, text, sizeof text),
                     REEF_E_OVERFLOW);
    assert_null(prepared);
    reef_agg_destroy(&agg);
}

/* Rows 0 to 3 are near each other, 4 is far, 5 too far for its square, 6 holds NaN. */
static void gram_is_robust(void **state)
{
    static const double rows[7][3] = {{1, 2, 3},   {1, 2, 4},     {1, 3, 3},  {2, 2, 3},
                                      {1e8, 2, 3}, {1e200, 2, 3}, {1, NAN, 3}};
    const void *data[7];
    double gram[49];
    char text[ROOM] = "";
    (void)state;
    for (ptrdiff_t l = 0; l < 7; l++) {
        data[l] = rows[l];
    }
    assert_int_equal(reef_ffi_gram(NULL, 7, 3, REEF_FFI_F64, data, gram, text, sizeof text), REEF_OK);
    for (ptrdiff_t i = 0; i < 7; i++) {
        assert_true(isnan(gram[6 * 7 + i]) && isnan(gram[i * 7 + 6]));
        for (ptrdiff_t j = 0; i < 4 && j < 4; j++) {
            double wanted = i == j ? 0 : (i == 0 || j == 0) ? 1 : 2;
            double found = gram[i * 7 + i] + gram[j * 7 + j] - 2 * gram[i * 7 + j];
            CHECK(fabs(found - wanted) < 1e-12, "rows %td and %td: %g instead of %g", i, j, found, wanted);
        }
    }
    assert_true(isfinite(gram[4 * 7 + 4]) && isinf(gram[5 * 7 + 5]));
    assert_int_equal(reef_ffi_gram(NULL, 7, 0, REEF_FFI_F64, data, gram, text, sizeof text), REEF_E_ARG);
    assert_int_equal(reef_ffi_gram(NULL, 7, 3, REEF_FFI_F16, data, gram, text, sizeof text), REEF_E_ARG);
    assert_int_equal(reef_ffi_gram(NULL, 1, 3, REEF_FFI_F64, data + 6, gram, text, sizeof text), REEF_E_NO_ROWS);
}

static void states_remember(void **state)
{
    static const float rows[2][2] = {{1, 2}, {3, 4}};
    static const ptrdiff_t length = 2;
    const float centre[2] = {2, 3};
    const void *data[2] = {rows[0], rows[1]};
    float out[2] = {0};
    void *places[1] = {out};
    char text[ROOM] = "";
    reef_agg *agg = NULL;
    reef_state *memory = NULL;
    (void)state;
    assert_int_equal(reef_ffi_agg(NULL, &agg, "cclip:tau=100", text, sizeof text), REEF_OK);
    assert_int_equal(reef_ffi_state(agg, &memory, 2, 1, &length, REEF_FFI_F32, text, sizeof text), REEF_OK);
    assert_int_equal(reef_ffi_set_centre(memory, 0, centre, text, sizeof text), REEF_OK);
    assert_int_equal(
        reef_ffi_apply(agg, 2, 1, &length, singles, data, places, NULL, -1, 0, memory, NULL, text, sizeof text),
        REEF_OK);
    assert_true(fabsf(out[0] - 2) < 1e-6F && fabsf(out[1] - 3) < 1e-6F);
    assert_memory_equal(reef_state_centre(memory, 0), out, sizeof out);
    assert_int_equal(reef_ffi_set_centre(memory, 1, centre, text, sizeof text), REEF_E_ARG);
    reef_state_destroy(&memory);
    assert_int_equal(reef_ffi_state(agg, &memory, 2, 1, &length, 7, text, sizeof text), REEF_E_ARG);
    reef_agg_destroy(&agg);
}

static void bad_arguments_are_told(void **state)
{
    static const float row[1] = {1};
    static const ptrdiff_t length = 1;
    const void *data[2] = {row, NULL};
    float out = 7;
    void *places[1] = {&out};
    char text[ROOM] = "";
    char small[8] = "";
    reef_agg *agg = NULL;
    reef_context *context = NULL;
    (void)state;
    assert_int_equal(reef_ffi_agg(NULL, &agg, "mediann", text, sizeof text), REEF_E_NAME);
    assert_non_null(strstr(text, "did you mean 'median'"));
    assert_int_equal(reef_ffi_agg(NULL, &agg, "mediann", small, sizeof small), REEF_E_NAME);
    assert_int_equal(strlen(small), sizeof small - 1);
    assert_int_equal(reef_ffi_agg(NULL, &agg, "mediann", NULL, 0), REEF_E_NAME);
    assert_null(agg);
    assert_int_equal(reef_ffi_context(&context, -1, text, sizeof text), REEF_E_ARG);
    assert_null(context);
    assert_int_equal(reef_ffi_agg(NULL, &agg, "mean", text, sizeof text), REEF_OK);
    static const struct {
        ptrdiff_t rows, segments;
        int type;
        const char *says;
    } bad[] = {{2, 1, 0, "is NULL"},       {0, 1, 0, "at least one"}, {1, 0, 0, "at least one"},
               {1, -1, 0, "at least one"}, {1, 1, 6, "number type"},  {PTRDIFF_MAX, 2, 0, "at least one"}};
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(reef_ffi_apply(agg, bad[i].rows, bad[i].segments, &length, &bad[i].type, data, places, NULL,
                                        -1, 0, NULL, NULL, text, sizeof text),
                         REEF_E_ARG);
        CHECK(strstr(text, bad[i].says), "\"%s\" does not say \"%s\"", text, bad[i].says);
    }
    assert_int_equal(
        reef_ffi_apply(NULL, 1, 1, &length, singles, data, places, NULL, -1, 0, NULL, NULL, text, sizeof text),
        REEF_E_ARG);
    assert_true(out == 7);
    reef_agg_destroy(&agg);
}

/* Each failing allocation is a status without a leak, for both ways an aggregation goes. */
static void failing_allocations(void **state)
{
    models m;
    (void)state;
    make_models(&m, REEF_FFI_F16, false);
    for (int type = REEF_FFI_F32; type <= REEF_FFI_F16; type += REEF_FFI_F16) {
        const void *data[SEGMENTS * ROWS];
        const int types[SEGMENTS] = {type, type};
        bool done = false;
        for (ptrdiff_t i = 0; i < SEGMENTS * ROWS; i++) {
            data[i] = type == REEF_FFI_F16 ? (const void *)(m.half[i % ROWS][i / ROWS] + 1) : m.data[i];
        }
        for (int fail = 0; !done; fail++) {
            alloc_log log;
            reef_agg *agg = NULL;
            reef_context *context = alloc_context(&log, 1);
            assert_int_equal(reef_ffi_agg(context, &agg, "ref", NULL, 0), REEF_OK);
            log.fail_at = atomic_load(&log.total) + fail;
            reef_status status = reef_ffi_apply(agg, ROWS, SEGMENTS, lengths, types, data, (void *const *)m.out, NULL,
                                                -1, 0, NULL, NULL, NULL, 0);
            done = status == REEF_OK;
            assert_true(done || status == REEF_E_NOMEM);
            assert_true(fail < 20);
            reef_agg_destroy(&agg);
            reef_context_destroy(&context);
            assert_int_equal(atomic_load(&log.live), 0);
            assert_false(atomic_load(&log.broken));
        }
    }
    free_models(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_of_rules),
        cmocka_unit_test(tables_of_all_families),
        cmocka_unit_test(tables_of_nothing),
        cmocka_unit_test(apply_is_the_plan),
        cmocka_unit_test(states_remember),
        cmocka_unit_test(halves_are_the_widened_rows_rounded),
        cmocka_unit_test(bad_arguments_are_told),
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(each_tensor_keeps_its_type),
        cmocka_unit_test(votes),
        cmocka_unit_test(prepared_is_the_same),
        cmocka_unit_test(prepared_refuses),
        cmocka_unit_test(results_apart),
        cmocka_unit_test(halves_with_threads),
        cmocka_unit_test(gram_is_robust),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
