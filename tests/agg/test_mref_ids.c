/* mref against senders with many ids, and such that sacrifice some of their number: nobody has more votes than the rows it sends, and who has weight
 * is judged. */
#include "num/rng.h"
#include "support/check.h"
#include "support/trial.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 20, NUMBERS = 10, HONEST_IDS = 100000 };

typedef struct room {
    reef_agg *agg;
    reef_plan *plan;
    reef_state *memory;
    reef_report *report;
    ptrdiff_t malicious;
    double x[ROWS][NUMBERS];
    int64_t ids[ROWS];
} room;

static void open_room(room *k, const char *spec, ptrdiff_t malicious)
{
    const ptrdiff_t length = NUMBERS;
    const reef_shape shape = {.rows = ROWS, .segments = 1, .lengths = &length, .dtype = REEF_F64};
    *k = (room){.malicious = malicious, .agg = make_agg(spec)};
    assert_int_equal(reef_plan_create(&k->plan, k->agg, &shape, NULL), REEF_OK);
    assert_int_equal(reef_state_create(&k->memory, k->agg, &shape, NULL), REEF_OK);
    reef_state_set_seed(k->memory, 5);
    assert_int_equal(reef_report_create(NULL, &k->report, ROWS, NULL), REEF_OK);
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        k->ids[l] = l < malicious ? l : HONEST_IDS + l;
    }
}

static void close_room(room *k)
{
    reef_report_destroy(&k->report);
    reef_state_destroy(&k->memory);
    reef_plan_destroy(&k->plan);
    reef_agg_destroy(&k->agg);
}

/* Noise of its own for each row, and `common` times the same noise for the malicious ones, which stand `shift` off. */
static void fill(room *k, uint32_t round, double own, double common, double shift)
{
    rfi_rng shared;
    double same[NUMBERS];
    rfi_rng_init(&shared, 1, 8, ROWS, 0, round);
    for (int i = 0; i < NUMBERS; i++) {
        same[i] = rfi_rng_normal(&shared);
    }
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        rfi_rng rng;
        bool honest = l >= k->malicious;
        rfi_rng_init(&rng, 1, 7, (uint32_t)l, 0, round);
        for (int i = 0; i < NUMBERS; i++) {
            double noise = rfi_rng_normal(&rng);
            k->x[l][i] = 5 + (honest ? noise : own * noise + common * same[i] + shift);
        }
    }
}

/* One aggregation; returns the malicious rows' share of the weight. */
static double apply(room *k)
{
    const void *rows[ROWS];
    double out[NUMBERS];
    double share = 0;
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        rows[l] = k->x[l];
    }
    const reef_input input = {.rows = rows, .ids = k->ids, .state = k->memory};
    assert_int_equal(reef_plan_apply(k->plan, &input, out, k->report, NULL), REEF_OK);
    for (ptrdiff_t l = 0; l < k->malicious; l++) {
        share += reef_report_trust(k->report)[l] / ROWS;
    }
    return share;
}

/* 8 of 20 rows come under 16 or 24 ids that take turns and share a third of their noise: more ids than the twelve honest ones. */
static void ids_that_take_turns_have_no_majority(void **state)
{
    (void)state;
    for (uint32_t turns = 2; turns <= 3; turns++) {
        room k;
        double share = 0;
        open_room(&k, "mref:horizon=64", 8);
        for (uint32_t round = 0; round < 900; round++) {
            rfi_rng rng;
            rfi_rng_init(&rng, 2, 7, 0, 0, round);
            for (ptrdiff_t l = 0; l < k.malicious; l++) {
                k.ids[l] = l + k.malicious * (int64_t)rfi_rng_below(&rng, turns);
            }
            fill(&k, round, 0.8, 0.6, 0);
            double now = apply(&k);
            share += round >= 500 ? now / 400 : 0;
        }
        CHECK(share < 0.15, "%d ids for each row: they have %g of the weight", (int)turns, share);
        close_room(&k);
    }
}

/* New ids in every round until the blocks in which senders are compared are full of them, and then ids that stay. */
static void who_comes_behind_a_flood_is_judged(void **state)
{
    static const uint32_t floods[] = {60, 600};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(floods); i++) {
        room k;
        double share = 0;
        open_room(&k, "mref:horizon=64", 8);
        for (uint32_t round = 0; round < floods[i] + 500; round++) {
            bool flood = round < floods[i];
            for (ptrdiff_t l = 0; l < k.malicious; l++) {
                k.ids[l] = l + k.malicious * (int64_t)(flood ? round : floods[i]);
            }
            fill(&k, round, 1, 0, flood ? 0 : round / 20 % 2 ? 0.4 : -0.4);
            double now = apply(&k);
            share += round >= floods[i] + 300 ? now / 200 : 0;
        }
        CHECK(share < 0.05, "after %d rounds of new ids they have %g of the weight", (int)floods[i], share);
        for (ptrdiff_t l = k.malicious; l < ROWS; l++) {
            assert_true(reef_report_trust(k.report)[l] > 0.9);
            assert_int_equal(reef_state_age(k.memory, k.ids[l]), floods[i] + 500);
        }
        close_room(&k);
    }
}

/* The longer the others are known the younger newcomers are beside them; they have their full weight after a longest window, and are judged. */
static void newcomers_among_old_ones_are_judged(void **state)
{
    enum { JOIN = 1200, LIFE = 250, ON_PROBATION = 130 };
    room k;
    double share = 0;
    double count = 0;
    (void)state;
    open_room(&k, "mref:horizon=64", 8);
    for (uint32_t round = 0; round < JOIN + 3 * LIFE; round++) {
        uint32_t life = round < JOIN ? 0 : 1 + (round - JOIN) / LIFE;
        for (ptrdiff_t l = 0; l < k.malicious; l++) {
            k.ids[l] = l + k.malicious * (int64_t)life;
        }
        fill(&k, round, 1, 0, life == 0 ? 0 : round / 20 % 2 ? 0.4 : -0.4);
        double now = apply(&k);
        bool counts = life > 0 && (round - JOIN) % LIFE >= ON_PROBATION;
        share += counts ? now : 0;
        count += counts;
    }
    CHECK(share / count < 0.1, "they have %g of the weight", share / count);
    close_room(&k);
}

/* Three of nine malicious rows imitate the noise of three honest ones, which are taken out with them. The weight of all others is then too little
 * for the remaining six to lose theirs altogether, but they lose what they can. */
static void a_sacrifice_does_not_save_the_rest(void **state)
{
    enum { SACRIFICED = 3 };
    room k;
    double share = 0;
    (void)state;
    open_room(&k, "mref:horizon=64", 9);
    for (uint32_t round = 0; round < 900; round++) {
        fill(&k, round, 1, 0, 0);
        for (int i = 0; i < NUMBERS; i++) {
            double noise = 0;
            for (ptrdiff_t t = 0; t < SACRIFICED; t++) {
                noise += (k.x[k.malicious + t][i] - 5) / sqrt(SACRIFICED);
            }
            for (ptrdiff_t l = 0; l < k.malicious; l++) {
                double own = k.x[l][i] - 5;
                k.x[l][i] = 5 + (l < SACRIFICED ? sqrt(0.5) * (noise + own) : own + (round / 20 % 2 ? 0.4 : -0.4));
            }
        }
        double now = apply(&k);
        share += round >= 500 ? now / 400 : 0;
    }
    CHECK(share < 0.22, "they have %g of the weight", share);
    close_room(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_that_take_turns_have_no_majority),
        cmocka_unit_test(who_comes_behind_a_flood_is_judged),
        cmocka_unit_test(newcomers_among_old_ones_are_judged),
        cmocka_unit_test(a_sacrifice_does_not_save_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
