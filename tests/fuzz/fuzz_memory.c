/* A rule with memory over many rounds: rows of any bits, senders that come, go and take each other's place, a state that is saved, damaged
 * and loaded. Every round works, with a result inside the hull of the rows in use, or fails with a sentence; a state loaded again gives
 * the same bits as the one saved; damaged bytes are refused and change nothing, or are a memory that can be used.
 * The first bytes choose the rule, rows, length and type; then each round takes one byte for what happens and some for its rows. */
#include "base/hash.h"
#include "bytes.h"
#include "check.h"

#include <math.h>
#include <reef/reef.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { HEAD = 4, ROWS = 12, LENGTH = 80, ROUNDS = 40, BYTES = 1 << 16 };

typedef struct desk {
    reef_agg *agg;
    reef_plan *plan;
    reef_state *state, *twin;
    reef_report *report;
    ptrdiff_t rows, length;
    reef_dtype dtype;
    float x[ROWS][LENGTH];
    double wide[ROWS][LENGTH];
    int64_t ids[ROWS];
    double weights[ROWS];
} desk;

/* Mostly noise of a common size; sometimes huge, equal, or not a number. */
static float number(bytes *s, uint8_t kind)
{
    uint32_t bits = 0;
    float value = 0;
    switch (kind % 8) {
    case 0:
        for (int i = 0; i < 4; i++) {
            bits = bits << 8 | take(s);
        }
        memcpy(&value, &bits, sizeof value);
        return value;
    case 1:
        return 1e30F * (float)(take(s) - 127);
    case 2:
        return 1;
    default:
        return 0.01F * (float)(take(s) - 127);
    }
}

static void fill(desk *k, bytes *s)
{
    uint8_t odd = take(s);
    for (ptrdiff_t l = 0; l < k->rows; l++) {
        bool strange = take(s) % 4 == 0;
        k->ids[l] = l + (take(s) % 16 == 0 ? 100 * (take(s) % 3) : 0);
        k->weights[l] = take(s) % 8 == 0 ? 0 : 1;
        for (ptrdiff_t i = 0; i < k->length; i++) {
            k->x[l][i] = number(s, strange ? odd : 7);
            k->wide[l][i] = (double)k->x[l][i];
        }
    }
    k->weights[0] = 1;
}

static void check_result(const desk *k, const double *out)
{
    for (ptrdiff_t i = 0; i < k->length; i++) {
        double low = INFINITY;
        double high = -INFINITY;
        for (ptrdiff_t l = 0; l < k->rows; l++) {
            bool used = reef_report_reason(k->report, l) == REEF_USED;
            low = used ? fmin(low, k->wide[l][i]) : low;
            high = used ? fmax(high, k->wide[l][i]) : high;
        }
        double slack = 1e-6 * fmax(fabs(low), fabs(high)) + 1e-30;
        CHECK(out[i] >= low - slack && out[i] <= high + slack);
    }
    for (ptrdiff_t l = 0; l < k->rows; l++) {
        for (ptrdiff_t test = 0; test < reef_report_factor_count(k->report); test++) {
            double factor = reef_report_factor(k->report, l, test);
            CHECK(factor >= 0 && factor <= 1);
        }
    }
}

static reef_status apply(const desk *k, reef_state *state, double *out, bool own)
{
    const void *rows[ROWS];
    float narrow[LENGTH] = {0};
    for (ptrdiff_t l = 0; l < k->rows; l++) {
        rows[l] = k->dtype == REEF_F32 ? (const void *)k->x[l] : (const void *)k->wide[l];
    }
    const reef_input input = {
        .rows = rows, .ids = k->ids, .weights = k->weights, .state = state, .has_self = own, .self = 0};
    reef_error error = {REEF_OK, ""};
    void *to = k->dtype == REEF_F32 ? (void *)narrow : (void *)out;
    reef_status status = reef_plan_apply(k->plan, &input, to, k->report, &error);
    CHECK(status == REEF_OK || (error.status == status && error.text[0]));
    for (ptrdiff_t i = 0; k->dtype == REEF_F32 && i < k->length; i++) {
        out[i] = (double)narrow[i];
    }
    return status;
}

/* The twin becomes what the state is, by way of bytes, which may be damaged first. */
static void restore(desk *k, bytes *s, bool damaged)
{
    static unsigned char saved[BYTES];
    size_t size = reef_state_size(k->state);
    reef_error error = {REEF_OK, ""};
    CHECK(size <= BYTES && reef_state_save(k->state, saved, size, &error) == REEF_OK);
    CHECK(reef_state_load(k->twin, saved, size, &error) == REEF_OK);
    if (damaged) {
        saved[(take(s) * 256U + take(s)) % size] ^= take(s);
        if (take(s) % 4) { /* by somebody who knows the checksum */
            uint64_t sum = rfi_hash_bytes(RFI_HASH_START, saved, size - sizeof sum);
            memcpy(saved + size - sizeof sum, &sum, sizeof sum);
        }
        if (reef_state_load(k->state, saved, size, &error) != REEF_OK) {
            CHECK(error.text[0]);
        }
        size = reef_state_size(k->state);
        CHECK(size <= BYTES && reef_state_save(k->state, saved, size, &error) == REEF_OK);
        CHECK(reef_state_load(k->twin, saved, size, &error) == REEF_OK);
    }
}

static void run(desk *k, bytes *s)
{
    double out[LENGTH] = {0};
    double again[LENGTH] = {0};
    for (int round = 0; round < ROUNDS && (s->left > 0 || round < 4); round++) {
        uint8_t what = take(s);
        bool twice = what % 4 == 0; /* not every round, so that more inputs are tried */
        if (twice) {
            restore(k, s, what % 8 == 0);
        }
        fill(k, s);
        reef_status status = apply(k, k->state, out, what & 8);
        if (status == REEF_OK && (reef_agg_traits(k->agg) & REEF_TRAIT_HULL)) {
            check_result(k, out);
        }
        if (twice) {
            CHECK(apply(k, k->twin, again, what & 8) == status);
            CHECK(status != REEF_OK || memcmp(out, again, sizeof out) == 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const specs[] = {"mref",
                                        "mref:lazy=0",
                                        "mref:sketch=16,forget=3",
                                        "mref:horizon=16,lazy=2",
                                        "mref:nan=drop-coordinate",
                                        "mref:without=medoid",
                                        "cclip:tau=1"};
    if (size < HEAD) {
        return 0;
    }
    static desk k;
    k = (desk){.rows = 1 + data[1] % ROWS,
               .length = 1 + data[2] % (data[2] < 192 ? 8 : LENGTH),
               .dtype = data[3] % 2 ? REEF_F32 : REEF_F64};
    bytes s = {data + HEAD, size - HEAD, data[3]};
    const ptrdiff_t lengths[] = {k.length};
    const reef_shape shape = {.rows = k.rows, .segments = 1, .lengths = lengths, .dtype = k.dtype};
    CHECK(reef_agg_create(NULL, &k.agg, specs[data[0] % (sizeof specs / sizeof specs[0])], NULL) == REEF_OK);
    CHECK(reef_plan_create(&k.plan, k.agg, &shape, NULL) == REEF_OK);
    CHECK(reef_state_create(&k.state, k.agg, &shape, NULL) == REEF_OK);
    CHECK(reef_state_create(&k.twin, k.agg, &shape, NULL) == REEF_OK);
    CHECK(reef_report_create(NULL, &k.report, k.rows, NULL) == REEF_OK);
    run(&k, &s);
    reef_report_destroy(&k.report);
    reef_state_destroy(&k.twin);
    reef_state_destroy(&k.state);
    reef_plan_destroy(&k.plan);
    reef_agg_destroy(&k.agg);
    return 0;
}
