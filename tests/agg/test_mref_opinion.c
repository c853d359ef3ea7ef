/* mref's second opinion: the bounds that hold in every round hold in a trial too, also for senders who know how to make it last; it ends, and comes
 * back rarely. And a state that tells impossible things of it is refused. */
#include "agg/rules/mref/mref.h"
#include "base/hash.h"
#include "num/rng.h"
#include "support/check.h"
#include "support/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 15, MALICIOUS = 6, NUMBERS = 8, LOOK = 8 };

typedef struct room {
    reef_agg *agg;
    reef_plan *plan;
    reef_state *memory;
    reef_report *report;
    double x[ROWS][NUMBERS];
    double weights[ROWS];
    double out[NUMBERS];
} room;

static void open_room(room *k)
{
    const ptrdiff_t length = NUMBERS;
    const reef_shape shape = {.rows = ROWS, .segments = 1, .lengths = &length, .dtype = REEF_F64};
    *k = (room){.agg = make_agg("mref:horizon=16,lazy=0")};
    assert_int_equal(reef_plan_create(&k->plan, k->agg, &shape, NULL), REEF_OK);
    assert_int_equal(reef_state_create(&k->memory, k->agg, &shape, NULL), REEF_OK);
    assert_int_equal(reef_report_create(NULL, &k->report, ROWS, NULL), REEF_OK);
}

static void close_room(room *k)
{
    reef_report_destroy(&k->report);
    reef_state_destroy(&k->memory);
    reef_plan_destroy(&k->plan);
    reef_agg_destroy(&k->agg);
}

/* Honest senders differ for good. Once there is a trial, the malicious ones leave step by step for two sides, some farther than the gate lets pass,
 * so that those near the median seem to agree more from look to look. Some of the honest ones are away, and weights differ by up to 10^6. */
static void fill(room *k, uint64_t seed, uint32_t round, int64_t since)
{
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        rfi_rng rng;
        rfi_rng who;
        rfi_rng_init(&rng, seed, 7, (uint32_t)l, 0, round);
        rfi_rng_init(&who, seed, 8, (uint32_t)l, 0, 0);
        bool malicious = l < MALICIOUS && since > 0;
        double far = malicious ? pow(1.25, (double)since / LOOK) * (1 + rfi_rng_uniform(&rng)) : 0;
        for (int i = 0; i < NUMBERS; i++) {
            k->x[l][i] = 5 + 0.3 * rfi_rng_normal(&rng) + 1.5 * rfi_rng_normal(&who) + (l % 3 == 0 ? -far : far);
        }
        bool away = l >= ROWS - 2 && rfi_rng_below(&rng, 8) == 0;
        k->weights[l] = away ? 0 : seed % 2 == 0 ? pow(10, 6 * rfi_rng_uniform(&who)) : 1;
    }
}

/* One aggregation; returns the least factor of a second opinion. */
static double apply(room *k)
{
    const void *rows[ROWS];
    int64_t ids[ROWS];
    double least = 1;
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        rows[l] = k->x[l];
        ids[l] = l;
    }
    const reef_input input = {.rows = rows, .ids = ids, .weights = k->weights, .state = k->memory};
    assert_int_equal(reef_plan_apply(k->plan, &input, k->out, k->report, NULL), REEF_OK);
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        least = fmin(least, reef_report_factor(k->report, l, RFI_MREF_BY_OPINION));
    }
    return least;
}

static bool is_here(const room *k, ptrdiff_t l)
{
    return k->weights[l] > 0;
}

/* Largest share of the weight over that by the gate alone. */
static double largest_gain(const room *k)
{
    double gate = 0;
    double sum = 0;
    double largest = 0;
    ptrdiff_t here = 0;
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        gate += k->weights[l] * reef_report_factor(k->report, l, RFI_MREF_BY_GATE);
        sum += k->weights[l];
        here += is_here(k, l);
    }
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        double fair = k->weights[l] * reef_report_factor(k->report, l, RFI_MREF_BY_GATE) / gate;
        double share = reef_report_trust(k->report)[l] * k->weights[l] / sum;
        largest = is_here(k, l) && share > 0 ? fmax(largest, share / fair) : largest;
    }
    assert_true(here > 0);
    return largest;
}

/* From the coordinatewise median, in median distances from it. */
static double distance_in_scales(const room *k)
{
    double median[NUMBERS];
    double column[ROWS];
    double spare[ROWS];
    double length[ROWS];
    ptrdiff_t n = 0;
    for (int i = 0; i < NUMBERS; i++) {
        n = 0;
        for (ptrdiff_t l = 0; l < ROWS; l++) {
            column[n] = k->x[l][i];
            n += is_here(k, l);
        }
        median[i] = rfi_mref_median(column, n, spare);
    }
    n = 0;
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        length[n] = rfi_mref_distance(k->x[l], median, NUMBERS);
        n += is_here(k, l);
    }
    return rfi_mref_distance(k->out, median, NUMBERS) / rfi_mref_median(length, n, spare);
}

typedef struct record {
    int trials;
    int64_t began, ended, longest;
    double gain, furthest; /* while there was a trial */
} record;

static void note(record *r, const room *k, uint32_t round, double least)
{
    if (least < 1 && r->began == 0) {
        CHECK(round > 8 * r->ended, "a trial in round %d, the last one ended in %d", (int)round, (int)r->ended);
        r->began = round;
        r->trials++;
    } else if (least == 1 && r->began > 0) {
        r->ended = round - 1;
        r->longest = r->ended - r->began + 1 > r->longest ? r->ended - r->began + 1 : r->longest;
        r->began = 0;
    }
    if (r->began > 0) {
        r->gain = fmax(r->gain, largest_gain(k));
        r->furthest = fmax(r->furthest, distance_in_scales(k));
    }
}

static void a_trial_keeps_the_bounds_and_ends(void **state)
{
    int trials = 0;
    int64_t longest = 0;
    double gain = 0;
    double furthest = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        room k;
        record r = {0};
        open_room(&k);
        for (uint32_t round = 1; round <= 1500; round++) {
            fill(&k, seed, round, r.began > 0 ? round - r.began : 0);
            note(&r, &k, round, apply(&k));
        }
        trials += r.trials;
        longest = r.longest > longest ? r.longest : longest;
        gain = fmax(gain, r.gain);
        furthest = fmax(furthest, r.furthest);
        close_room(&k);
    }
    print_message("%d trials, of up to %d rounds, shares up to %g times the fair one, results %g scales away\n", trials,
                  (int)longest, gain, furthest);
    CHECK(trials >= 12, "%d trials", trials);
    CHECK(longest >= LOOK && longest <= 3 * LOOK, "%d rounds: who leaves could make it last",
          (int)longest); /* 88 when only the ratio counted */
    CHECK(gain <= 2 * (1 + 1e-9) && gain > 1.5, "%g times the fair share", gain);
    CHECK(furthest <= 7.4, "%g scales from the median", furthest);
}

/* ---- bytes ---- */

/* The checksum that changed bytes need to be taken for a state. */
static void sign_state(unsigned char *bytes, size_t size)
{
    uint64_t sum = rfi_hash_bytes(RFI_HASH_START, bytes, size - sizeof sum);
    memcpy(bytes + size - sizeof sum, &sum, sizeof sum);
}

/* Loads the state with eight of its bytes replaced; it can go on in either case. */
static reef_status load_with(room *k, const unsigned char *bytes, size_t size, size_t at, const void *value,
                             reef_error *error)
{
    unsigned char *spoilt = malloc(size);
    assert_non_null(spoilt);
    memcpy(spoilt, bytes, size);
    memcpy(spoilt + at, value, sizeof(uint64_t));
    sign_state(spoilt, size);
    reef_status status = reef_state_load(k->memory, spoilt, size, error);
    fill(k, 1, 2, 0);
    (void)apply(k);
    assert_true(isfinite(k->out[0]));
    free(spoilt);
    return status;
}

/* A counter at the end of its range would overflow in the next round. What an older version remembered is refused with a reason. */
static void impossible_states_are_refused(void **state)
{
    static const size_t counters[] = {offsetof(rfi_mref_shared, rounds), offsetof(rfi_mref_shared, looks),
                                      offsetof(rfi_mref_shared, trial), offsetof(rfi_mref_shared, pause)};
    static const size_t numbers[] = {offsetof(rfi_mref_shared, level_sum),    offsetof(rfi_mref_shared, level_last),
                                     offsetof(rfi_mref_shared, level_before), offsetof(rfi_mref_shared, near_sum),
                                     offsetof(rfi_mref_shared, near_last),    offsetof(rfi_mref_shared, kept_sum),
                                     offsetof(rfi_mref_shared, kept_last)};
    enum { RULE_VERSION = 72 }; /* where it lies in the head */
    const int64_t ends[] = {-1, INT64_MAX};
    const double wild[] = {NAN, INFINITY, -1e300};
    const int64_t older = 5;
    room k;
    reef_error error;
    (void)state;
    open_room(&k);
    fill(&k, 1, 1, 0);
    (void)apply(&k);
    size_t size = reef_state_size(k.memory);
    size_t shared = reef_state_room(k.memory, 0) - sizeof(uint64_t) - sizeof(rfi_mref_shared);
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    assert_int_equal(reef_state_save(k.memory, bytes, size, NULL), REEF_OK);
    for (ptrdiff_t i = 0; i < COUNT(counters); i++) {
        for (ptrdiff_t e = 0; e < COUNT(ends); e++) {
            bool never = counters[i] == offsetof(rfi_mref_shared, pause) && ends[e] > 0; /* is never tried again */
            reef_status status = load_with(&k, bytes, size, shared + counters[i], &ends[e], NULL);
            CHECK((status == REEF_OK) == never, "counter %d is %lld", (int)i, (long long)ends[e]);
        }
    }
    for (ptrdiff_t i = 0; i < COUNT(numbers) * COUNT(wild); i++) {
        size_t at = shared + numbers[i / COUNT(wild)];
        assert_int_equal(load_with(&k, bytes, size, at, &wild[i % COUNT(wild)], NULL), REEF_E_FORMAT);
    }
    assert_int_equal(load_with(&k, bytes, size, RULE_VERSION, &older, &error), REEF_E_FORMAT);
    CHECK(strstr(error.text, "version 5 of what mref remembers; this version of Reef reads 7"), "%s", error.text);
    free(bytes);
    close_room(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_trial_keeps_the_bounds_and_ends),
                                       cmocka_unit_test(impossible_states_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
