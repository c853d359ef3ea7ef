/* Aggregation over ranks against the same in one process: equal bits, equal reports, equal failures.
 * ranks: 1 2 3 4 8 */
#include "mpi/ranked.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { K = 11 };

static const char *const rules[] = {
    "mean",
    "median",
    "ref",
    "ref:nan=drop-coordinate",
    "trimmed:f=2",
    "meamed:f=2",
    "krum:f=2",
    "vref",
    "vref:block=5000",
    "geomed",
    "bulyan:f=1",
    "mda:f=2",
    "cclip",
    "huber",
    "nnm:f=2 | ref",
    "bucketing:s=2 | krum:f=1",
    "clip | median",
    "nnm:f=2 | vref",
    "mref",
    "mref:sketch=16",
    "mref:sketch=full",
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

static double value(ptrdiff_t row, ptrdiff_t m)
{
    double u = (double)(mix((uint64_t)(row * 1000003 + m + 1)) >> 11) * 0x1p-53;
    return row < 2 ? 50 + u : u - 0.5;
}

/* Rows that each rank brings: some bring none. */
static void spread(ptrdiff_t *rows)
{
    memset(rows, 0, (size_t)engine->size * sizeof *rows);
    for (ptrdiff_t l = 0; l < K; l++) {
        rows[engine->size > 2 ? l % (engine->size - 1) : l % engine->size]++;
    }
}

typedef struct data {
    ptrdiff_t length;
    reef_dtype dtype;
    size_t number;
    void *rows[K];
    const void *own[K];
    ptrdiff_t counts[64];
} data;

static void make_data(data *d, ptrdiff_t length, reef_dtype dtype, bool bad)
{
    *d = (data){.length = length, .dtype = dtype, .number = dtype == REEF_F32 ? sizeof(float) : sizeof(double)};
    for (ptrdiff_t l = 0; l < K; l++) {
        d->rows[l] = malloc((size_t)length * d->number);
        REQUIRE(d->rows[l], "no memory");
        for (ptrdiff_t m = 0; m < length; m++) {
            double x = value(l, m);
            if (bad && l == 4 && m == length - 1) {
                x = (double)NAN;
            }
            if (dtype == REEF_F32) {
                ((float *)d->rows[l])[m] = (float)x;
            } else {
                ((double *)d->rows[l])[m] = x;
            }
        }
    }
    spread(d->counts);
    ptrdiff_t first = 0;
    for (int32_t r = 0; r < engine->rank; r++) {
        first += d->counts[r];
    }
    for (ptrdiff_t i = 0; i < d->counts[engine->rank]; i++) {
        d->own[i] = d->rows[first + i];
    }
}

static void free_data(data *d)
{
    for (ptrdiff_t l = 0; l < K; l++) {
        free(d->rows[l]);
    }
}

static void check_report(const reef_report *a, const reef_report *b, const char *rule)
{
    for (ptrdiff_t l = 0; l < K; l++) {
        REQUIRE(memcmp(&reef_report_trust(a)[l], &reef_report_trust(b)[l], sizeof(double)) == 0,
                "%s: trust of row %td: %g, alone %g", rule, l, reef_report_trust(a)[l], reef_report_trust(b)[l]);
        REQUIRE(fabs(reef_report_rejected(a)[l] - reef_report_rejected(b)[l]) == 0, "%s: rejected of row %td", rule, l);
        REQUIRE(reef_report_reason(a, l) == reef_report_reason(b, l), "%s: reason of row %td", rule, l);
    }
    REQUIRE(reef_report_dropped(a) == reef_report_dropped(b), "%s: dropped", rule);
    REQUIRE(reef_report_masked(a) == reef_report_masked(b), "%s: masked", rule);
    REQUIRE(reef_report_max_iterations(a) == reef_report_max_iterations(b), "%s: iterations", rule);
    REQUIRE(fabs(reef_report_mean_iterations(a) - reef_report_mean_iterations(b)) == 0, "%s: %g mean iterations for %g",
            rule, reef_report_mean_iterations(a), reef_report_mean_iterations(b));
    REQUIRE(reef_report_unconverged(a) == reef_report_unconverged(b), "%s: unconverged", rule);
}

static void check_rule(const data *d, const char *rule, bool with_report)
{
    reef_error error = {REEF_OK, ""};
    reef_agg *agg = NULL;
    reef_shard *shard = NULL;
    reef_report *reports[2] = {NULL, NULL};
    size_t bytes = (size_t)d->length * d->number;
    unsigned char *alone = calloc(bytes, 1);
    unsigned char *slice = calloc(bytes, 1);
    unsigned char *whole = calloc(bytes, 1);
    ptrdiff_t m0 = 0;
    ptrdiff_t m1 = 0;
    REQUIRE(alone && slice && whole, "no memory");
    REQUIRE(reef_agg_create(NULL, &agg, rule, &error) == REEF_OK, "%s: %s", rule, error.text);
    for (int i = 0; i < 2 && with_report; i++) {
        REQUIRE(reef_report_create(NULL, &reports[i], K, &error) == REEF_OK, "%s", error.text);
    }
    const double weights[K] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1};
    reef_input input = {.rows = (const void *const *)d->rows, .weights = weights, .round = 3};
    reef_status status = reef_agg_apply(agg, &input, K, d->length, d->dtype, alone, reports[0], &error);
    REQUIRE(status == REEF_OK, "%s: %s", rule, error.text);
    const reef_shard_shape shape = {.length = d->length, .dtype = d->dtype, .rows = d->counts, .report = with_report};
    REQUIRE(reef_shard_create(&shard, agg, engine, &shape, &error) == REEF_OK, "%s: %s", rule, error.text);
    REQUIRE(reef_shard_rows(shard) == K, "rows");
    reef_shard_range(shard, engine->rank, &m0, &m1);
    input.rows = d->own;
    for (int twice = 0; twice < 2; twice++) { /* a shard can be used again */
        status = reef_shard_apply(shard, &input, slice, reports[1], &error);
        REQUIRE(status == REEF_OK, "%s: %s", rule, error.text);
        REQUIRE(memcmp(slice, alone + (size_t)m0 * d->number, (size_t)(m1 - m0) * d->number) == 0,
                "%s, M = %td: other bits from %td to %td", rule, d->length, m0, m1);
    }
    REQUIRE(reef_shard_gather(shard, slice, whole, &error) == REEF_OK, "%s", error.text);
    REQUIRE(memcmp(whole, alone, bytes) == 0, "%s: gathered otherwise", rule);
    if (with_report) {
        check_report(reports[1], reports[0], rule);
    }
    reef_shard_destroy(&shard);
    reef_report_destroy(&reports[0]);
    reef_report_destroy(&reports[1]);
    reef_agg_destroy(&agg);
    free(alone);
    free(slice);
    free(whole);
}

static void bits_are_the_same(void)
{
    static const ptrdiff_t lengths[] = {1, 4096, 20497, 300001};
    for (ptrdiff_t i = 0; i < COUNT(lengths); i++) {
        for (int bad = 0; bad < 2; bad++) {
            data d;
            bool longest = i + 1 == COUNT(lengths);
            make_data(&d, lengths[i], (i + bad) % 2 ? REEF_F64 : REEF_F32, bad);
            for (ptrdiff_t j = 0; j < COUNT(rules); j += longest ? 3 : 1) {
                check_rule(&d, rules[j], (i + j) % 2);
            }
            free_data(&d);
        }
    }
}

/* All ranks remember senders alike, as one process alone would. */
static void same_memory(const reef_state *one, const reef_state *other, const char *rule)
{
    reef_error error = {REEF_OK, ""};
    size_t size = reef_state_size(one);
    unsigned char *bytes = calloc(2, size);
    REQUIRE(bytes && size > 0 && reef_state_size(other) == size, "%s: another size of memory", rule);
    REQUIRE(reef_state_save(one, bytes, size, &error) == REEF_OK, "%s", error.text);
    REQUIRE(reef_state_save(other, bytes + size, size, &error) == REEF_OK, "%s", error.text);
    REQUIRE(memcmp(bytes, bytes + size, size) == 0, "%s: the memory differs", rule);
    free(bytes);
}

/* The centre of a rule with memory, of which each rank remembers its slice, or the senders, whom all do. */
static void memory_goes_on(const char *rule)
{
    reef_error error = {REEF_OK, ""};
    enum { M = 9000 };
    data d;
    reef_agg *agg = NULL;
    reef_shard *shard = NULL;
    reef_state *states[2] = {NULL, NULL};
    ptrdiff_t length = M;
    static float alone[M];
    static float slice[M];
    ptrdiff_t m0 = 0;
    ptrdiff_t m1 = 0;
    make_data(&d, M, REEF_F32, false);
    const reef_shape shape = {.rows = K, .segments = 1, .lengths = &length, .dtype = REEF_F32};
    const reef_shard_shape over = {.length = M, .dtype = REEF_F32, .rows = d.counts};
    REQUIRE(reef_agg_create(NULL, &agg, rule, &error) == REEF_OK, "%s", error.text);
    REQUIRE(reef_state_create(&states[0], agg, &shape, &error) == REEF_OK, "%s", error.text);
    REQUIRE(reef_state_create(&states[1], agg, &shape, &error) == REEF_OK, "%s", error.text);
    REQUIRE(reef_shard_create(&shard, agg, engine, &over, &error) == REEF_OK, "%s", error.text);
    reef_shard_range(shard, engine->rank, &m0, &m1);
    reef_state_set_seed(states[0], 5);
    reef_state_set_seed(states[1], 5 + (uint64_t)engine->rank); /* that of rank 0 counts */
    for (int64_t round = 0; round < 6; round++) {
        double weights[K];
        for (ptrdiff_t l = 0; l < K; l++) { /* others are absent each time */
            weights[l] = (l + round) % 5 != 0;
        }
        reef_input input = {
            .rows = (const void *const *)d.rows, .weights = weights, .round = round, .state = states[0]};
        REQUIRE(reef_agg_apply(agg, &input, K, M, REEF_F32, alone, NULL, &error) == REEF_OK, "%s", error.text);
        input.rows = d.own;
        input.state = states[1];
        REQUIRE(reef_shard_apply(shard, &input, slice, NULL, &error) == REEF_OK, "%s", error.text);
        REQUIRE(memcmp(slice, alone + m0, (size_t)(m1 - m0) * sizeof *slice) == 0, "%s: round %d differs", rule,
                (int)round);
    }
    if (reef_agg_traits(agg) & REEF_TRAIT_SENDERS) {
        same_memory(states[0], states[1], rule);
    }
    reef_shard_destroy(&shard);
    reef_state_destroy(&states[0]);
    reef_state_destroy(&states[1]);
    reef_agg_destroy(&agg);
    free_data(&d);
}

/* What one rank alone can see fails all of them, with the same words. */
static void failures_are_shared(void)
{
    reef_error error = {REEF_OK, ""};
    data d;
    reef_agg *agg = NULL;
    reef_shard *shard = NULL;
    float *slice = NULL;
    make_data(&d, 9000, REEF_F32, true);
    slice = calloc(9000, sizeof *slice);
    const reef_shard_shape shape = {.length = 9000, .dtype = REEF_F32, .rows = d.counts};
    REQUIRE(slice && reef_agg_create(NULL, &agg, "krum:f=2,nan=error", &error) == REEF_OK, "%s", error.text);
    REQUIRE(reef_shard_create(&shard, agg, engine, &shape, &error) == REEF_OK, "%s", error.text);
    reef_input input = {.rows = d.own};
    REQUIRE(reef_shard_apply(shard, &input, slice, NULL, &error) == REEF_E_NONFINITE, "a NaN is taken");
    REQUIRE(strstr(error.text, "agent 4"), "%s", error.text);
    if (engine->rank == engine->size - 1) {
        input.rows = NULL; /* of the last rank that brings any */
    }
    bool told = d.counts[engine->size - 1] > 0;
    reef_status status = reef_shard_apply(shard, &input, slice, NULL, &error);
    REQUIRE(status == (told ? REEF_E_ARG : REEF_E_NONFINITE), "status %d: %s", (int)status, error.text);
    reef_report *report = NULL;
    REQUIRE(reef_report_create(NULL, &report, K, &error) == REEF_OK, "%s", error.text);
    REQUIRE(reef_shard_apply(shard, &(reef_input){.rows = d.own}, slice, report, &error) == REEF_E_ARG, "a report");
    reef_report_destroy(&report);
    reef_shard_destroy(&shard);
    ptrdiff_t wrong[64] = {-1};
    const reef_shard_shape bad = {.length = 9000, .dtype = REEF_F32, .rows = wrong};
    REQUIRE(reef_shard_create(&shard, agg, engine, &bad, &error) == REEF_E_ARG && !shard, "minus one rows");
    reef_agg_destroy(&agg);
    free(slice);
    free_data(&d);
}

int main(void)
{
    reef_error error = {REEF_OK, ""};
    REQUIRE(reef_mpi_start(&engine, &error) == REEF_OK, "%s", error.text);
    REQUIRE(engine->size <= 64, "at most 64 ranks");
    bits_are_the_same();
    memory_goes_on("cclip:tau=1");
    memory_goes_on("mref");
    memory_goes_on("mref:sketch=full");
    failures_are_shared();
    reef_mpi_stop(&engine);
    return 0;
}
