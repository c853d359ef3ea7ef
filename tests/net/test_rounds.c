/* Thousands of runs in a simulated network. A run that breaks a promise prints its seed, and
 *     REEF_SEED=n build/.../test_net_rounds
 * plays that one again, event by event on standard error (REEF_LARGE=1, REEF_EPOCHS=1, REEF_SEALED=1: as it says). REEF_SCHEDULES sets how many are
 * played, REEF_FIRST the first seed. */
#include "net/crypto.h"
#include "net/sim.h"
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void add(sim_result *total, const sim_result *one)
{
    total->combined += one->combined;
    total->alone += one->alone;
    total->crashes += one->crashes;
    total->idles += one->idles;
    total->joined += one->joined;
    total->stale += one->stale;
    total->excluded += one->excluded;
    total->shut += one->shut;
    total->epochs += one->epochs;
    total->seconds += one->seconds;
}

static sim_result play(const sim_options *options)
{
    sim_result result = sim_run(options);
    CHECK(result.good, "REEF_SEED=%llu%s%s%s%s: %s (at %.3f s)", (unsigned long long)options->seed,
          options->real ? ", real signatures" : "", options->large ? " REEF_LARGE=1" : "",
          options->epochs ? " REEF_EPOCHS=1" : "", options->sealed ? " REEF_SEALED=1" : "", result.why, result.seconds);
    return result;
}

static void promises_hold_in_every_schedule(void **state)
{
    (void)state;
    uint64_t schedules = number_from("REEF_SCHEDULES", MONTE_CARLO(20000, 1000));
    uint64_t first = number_from("REEF_FIRST", 0);
    sim_result total = {0};
    for (uint64_t seed = first; seed < first + schedules; seed++) {
        sim_result result = play(&(sim_options){.seed = seed});
        add(&total, &result);
    }
    print_message(
        "%llu schedules, %.0f s: %llu combined, %llu alone, %llu idle, %llu rows not of the round, %llu crashes, "
        "%llu joined, %llu exclusions\n",
        (unsigned long long)schedules, total.seconds, (unsigned long long)total.combined,
        (unsigned long long)total.alone, (unsigned long long)total.idles, (unsigned long long)total.stale,
        (unsigned long long)total.crashes, (unsigned long long)total.joined, (unsigned long long)total.excluded);
    /* Every part of the machine was used. */
    CHECK(total.alone && total.idles && total.stale && total.crashes && total.joined && total.excluded, "too tame");
}

/* Seeds that once broke a promise. */
static void what_was_found_stays_repaired(void **state)
{
    (void)state;
    static const uint64_t seeds[] = {
        3089, /* an agent slower than the network never combined: rows of its round were gone before it asked */
        1208, /* a fast neighbour and a malicious one drew agents to rounds where the others' rows were too old */
        187,  /* a group between F and 2 F went on by itself, out of reach of the others */
        258,  406,
    };
    for (ptrdiff_t i = 0; i < COUNT(seeds); i++) {
        (void)play(&(sim_options){.seed = seeds[i], .plain = true});
    }
}

static void promises_hold_with_real_signatures(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < MONTE_CARLO(40, 5); seed++) {
        (void)play(&(sim_options){.seed = seed, .real = true});
    }
}

static void promises_hold_with_models_in_chunks(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < MONTE_CARLO(100, 20); seed++) {
        (void)play(&(sim_options){.seed = seed, .large = true});
    }
}

/* Sealing is an agent's own affair: none of the promises changes, whatever is lost, damaged, restarted or two-faced. */
static void promises_hold_with_sealed_models(void **state)
{
    (void)state;
    sim_result total = {0};
    for (uint64_t seed = 0; seed < MONTE_CARLO(120, 16); seed++) {
        sim_result result =
            play(&(sim_options){.seed = seed, .sealed = true, .epochs = seed % 4 == 3, .large = seed % 8 == 2});
        add(&total, &result);
    }
    CHECK(total.combined && total.crashes && total.excluded && total.joined && total.epochs && total.shut, "too tame");
}

static void promises_hold_over_epochs(void **state)
{
    (void)state;
    sim_result total = {0};
    uint64_t schedules = number_from("REEF_SCHEDULES", MONTE_CARLO(4000, 400));
    uint64_t first = number_from("REEF_FIRST", 0);
    for (uint64_t seed = first; seed < first + schedules; seed++) {
        sim_result result = play(&(sim_options){.seed = seed, .epochs = true, .large = seed % 50 == 49});
        add(&total, &result);
    }
    print_message("%llu schedules with two epochs: %llu agents have gone over, %llu combined, %llu alone\n",
                  (unsigned long long)schedules, (unsigned long long)total.epochs, (unsigned long long)total.combined,
                  (unsigned long long)total.alone);
    CHECK(total.epochs > 2 * schedules, "hardly anybody goes over");
}

static void one_seed_is_one_run(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        sim_result a = play(&(sim_options){.seed = seed, .sealed = seed % 4 == 1});
        sim_result b = play(&(sim_options){.seed = seed, .sealed = seed % 4 == 1});
        assert_memory_equal(&a.seconds, &b.seconds, sizeof a.seconds);
        assert_int_equal(a.combined, b.combined);
        assert_int_equal(a.stale, b.stale);
    }
}

/* The checks see errors that are built in on purpose. */
static void errors_are_found(void **state)
{
    (void)state;
    for (sim_sabotage sabotage = SIM_NONE + 1; sabotage < SIM_SABOTAGES; sabotage++) {
        bool found = false;
        for (uint64_t seed = 0; seed < 400 && !found; seed++) {
            sim_result result = sim_run(&(sim_options){.seed = seed, .sabotage = sabotage});
            found = !result.good;
            if (found) {
                print_message("error %d: found with seed %llu: %s\n", (int)sabotage, (unsigned long long)seed,
                              result.why);
            }
        }
        CHECK(found, "the error %d is not found", (int)sabotage);
    }
}

int main(void)
{
    if (rfi_crypto_start(NULL) != REEF_OK) {
        return 1;
    }
    if (getenv("REEF_SEED")) {
        sim_result result = sim_run(&(sim_options){.seed = number_from("REEF_SEED", 0),
                                                   .plain = getenv("REEF_PLAIN") != NULL,
                                                   .large = getenv("REEF_LARGE") != NULL,
                                                   .epochs = getenv("REEF_EPOCHS") != NULL,
                                                   .sealed = getenv("REEF_SEALED") != NULL,
                                                   .trace = true});
        (void)printf("%s\n", result.good ? "good" : result.why);
        return result.good ? 0 : 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_seed_is_one_run),
        cmocka_unit_test(errors_are_found),
        cmocka_unit_test(what_was_found_stays_repaired),
        cmocka_unit_test(promises_hold_with_real_signatures),
        cmocka_unit_test(promises_hold_with_models_in_chunks),
        cmocka_unit_test(promises_hold_with_sealed_models),
        cmocka_unit_test(promises_hold_over_epochs),
        cmocka_unit_test(promises_hold_in_every_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
