/* Section 4 of the paper: steady states, learning curves, theory; the numbers come from an independent float64 Monte Carlo. */
#include "support/check.h"
#include "support/runs.h"

#include <math.h>
#include <stdio.h>

enum { AGENTS = 32, LANES = 16, ROUNDS = 4000, LAST = 1000, EVERY = 10, RUNS = MONTE_CARLO(112, 16) };

/* A diverged cell is 40 dB above the others: a few runs show it. */
static int runs_of(double want)
{
    return want > 40 ? LANES : RUNS;
}

typedef struct outcome {
    double steady, error; /* MSD over the last rounds, dB, and its standard error, dB */
    double curve[3];      /* after 100, 300 and 1000 rounds, dB */
} outcome;

static double decibel(double x)
{
    return 10 * log10(x);
}

typedef struct cell {
    const char *rule, *strategy;
    double delta;
    int malicious_count;
    double want; /* dB; above 40: diverged */
} cell;

/* Adds one batch of lanes; the steady state is looked at every EVERY rounds, which lie close together for its memory of 100. */
static void run_batch(const cell *c, ptrdiff_t first, double *steady, double *curve)
{
    char attack[64];
    world w;
    double msd[LANES];
    reef_error error;
    (void)snprintf(attack, sizeof attack, "additive:delta=%g", c->delta);
    world_open(&w, &(world_plan){.agents = AGENTS,
                                 .problem = "lms:dimension=10,noise=0.01",
                                 .problem_seed = 1,
                                 .strategy = c->strategy,
                                 .rule = c->rule,
                                 .attack = attack,
                                 .malicious_count = c->malicious_count,
                                 .seed = 7,
                                 .lanes = LANES,
                                 .repetition = first});
    for (int64_t i = 0; i < ROUNDS; i += EVERY) {
        world_step(&w, EVERY);
        int64_t round = i + EVERY;
        int at = round == 100 ? 0 : round == 300 ? 1 : round == 1000 ? 2 : -1;
        if (at >= 0 || round > ROUNDS - LAST) {
            assert_int_equal(reef_run_msd(w.run, NULL, msd, &error), REEF_OK);
        }
        for (int r = 0; r < LANES; r++) {
            if (at >= 0) {
                curve[at] += msd[r] / runs_of(c->want);
            }
            if (round > ROUNDS - LAST) {
                steady[r] += msd[r] * EVERY / LAST;
            }
        }
    }
    world_close(&w);
}

static outcome simulate(const cell *c)
{
    outcome out = {0};
    double sum = 0;
    double squares = 0;
    const int runs = runs_of(c->want);
    for (ptrdiff_t first = 0; first < runs; first += LANES) {
        double steady[LANES] = {0};
        run_batch(c, first, steady, out.curve);
        for (int r = 0; r < LANES; r++) {
            sum += steady[r];
            squares += steady[r] * steady[r];
        }
    }
    double mean = sum / runs;
    out.steady = decibel(mean);
    out.error = 10 / log(10) * sqrt((squares / runs - mean * mean) / runs) / mean;
    for (int i = 0; i < 3; i++) {
        out.curve[i] = decibel(out.curve[i]);
    }
    return out;
}

/* The numbers have an error of 0.1 dB, and 0.05 from their rounding. */
static outcome check_cell(const cell *c)
{
    char what[100];
    outcome out = simulate(c);
    (void)snprintf(what, sizeof what, "%s, %s, %d liars, delta %g", c->strategy, c->rule, c->malicious_count, c->delta);
    if (c->want > 40) {
        CHECK(out.steady > 40, "%s has not diverged: %g dB", what, out.steady);
    } else {
        double both = 3 * sqrt(out.error * out.error + 0.1 * 0.1) + 0.05;
        CHECK_CLOSE(out.steady, c->want, both > 0.3 ? both : 0.3, what);
    }
    return out;
}

static void check_cells(const cell *cells, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        (void)check_cell(&cells[i]);
    }
}

#define ATC "diffusion:mu=0.01"

static void one_malicious(void **state)
{
    static const cell cells[] = {
        {"mean", ATC, 0.001, 1, -39.5},   {"mean", ATC, 0.01, 1, -20.1},   {"mean", ATC, 1, 1, 19.9},
        {"median", ATC, 0.001, 1, -38.0}, {"median", ATC, 0.01, 1, -35.9}, {"median", ATC, 1, 1, -35.9},
        {"ref", ATC, 0.001, 1, -35.9},    {"ref", ATC, 0.01, 1, -47.7},    {"ref", ATC, 1, 1, -47.7},
    };
    (void)state;
    check_cells(cells, COUNT(cells));
}

static void many_malicious(void **state)
{
    static const cell cells[] = {
        {"mean", ATC, 1000, 1, 79.9},    {"mean", ATC, 1000, 2, 85.9},     {"mean", ATC, 1000, 4, 92.0},
        {"mean", ATC, 1000, 8, 98.0},    {"mean", ATC, 1000, 15, 103.4},   {"mean", ATC, 1000, 16, 104.0},
        {"median", ATC, 1000, 1, -35.8}, {"median", ATC, 1000, 2, -29.3},  {"median", ATC, 1000, 4, -20.4},
        {"median", ATC, 1000, 8, 59},    {"median", ATC, 1000, 15, 110.9}, {"median", ATC, 1000, 16, 111.7},
        {"ref", ATC, 1000, 1, -47.9},    {"ref", ATC, 1000, 2, -47.7},     {"ref", ATC, 1000, 4, -47.4},
        {"ref", ATC, 1000, 8, -46.6},    {"ref", ATC, 1000, 15, -45.3},    {"ref", ATC, 1000, 16, 110.3},
    };
    (void)state;
    check_cells(cells, COUNT(cells));
}

static void oracle(void **state)
{
    static const cell cells[] = {
        {"", "oracle:mu=0.01", 1000, 0, -48.0},  {"", "oracle:mu=0.01", 1000, 1, -47.9},
        {"", "oracle:mu=0.01", 1000, 4, -47.5},  {"", "oracle:mu=0.01", 1000, 8, -46.8},
        {"", "oracle:mu=0.01", 1000, 15, -45.3}, {"", "oracle:mu=0.01", 1000, 16, -45.0},
    };
    (void)state;
    check_cells(cells, COUNT(cells));
}

/* Without liars: learning curves, and the mean's steady state against the theory. */
static void clean(void **state)
{
    static const cell cells[] = {{"mean", ATC, 0, 0, -48.0}, {"ref", ATC, 0, 0, -47.8}, {"median", ATC, 0, 0, -49.25}};
    static const double curves[][3] = {{-8.8, -26.2, -47.9}, {-4.0, -11.8, -38.5}, {-3.2, -9.4, -30.1}};
    static const int after[] = {100, 300, 1000};
    (void)state;
    for (int i = 0; i < 3; i++) {
        outcome out = check_cell(&cells[i]);
        for (int j = 0; j < 3; j++) {
            char what[60];
            (void)snprintf(what, sizeof what, "%s after %d rounds", cells[i].rule, after[j]);
            CHECK_CLOSE(out.curve[j], curves[i][j], MONTE_CARLO(0.5, 1.0), what);
        }
    }
}

static double theory(ptrdiff_t batch)
{
    reef_problem *problem = NULL;
    double p[AGENTS];
    double mu[AGENTS];
    reef_error error;
    for (int k = 0; k < AGENTS; k++) {
        p[k] = 1.0 / AGENTS;
        mu[k] = 0.01;
    }
    assert_int_equal(reef_problem_create(NULL, &problem, "lms:dimension=10,noise=0.01", AGENTS, 1, &error), REEF_OK);
    double msd = reef_problem_kind_of(problem)->theory(reef_problem_state(problem), p, mu, batch);
    reef_problem_destroy(&problem);
    return decibel(msd);
}

/* The mean meets the theory; with 16 samples per step messages are near Gaussian, and REF costs 0.3 dB, the median 1.7. */
static void theory_and_mini_batches(void **state)
{
    const cell mean = {"mean", "diffusion:mu=0.01,batch=16", 0, 0, theory(16)};
    const cell single = {"mean", ATC, 0, 0, theory(1)};
    const cell ref = {"ref", "diffusion:mu=0.01,batch=16", 0, 0, theory(16) + 0.3};
    const cell median = {"median", "diffusion:mu=0.01,batch=16", 0, 0, theory(16) + 1.7};
    const double allowed = MONTE_CARLO(0.2, 0.5);
    (void)state;
    CHECK_CLOSE(theory(1), -48.03, 0.01, "theory of the mean");
    CHECK_CLOSE(simulate(&single).steady, single.want, allowed, "the mean against the theory");
    double floor = simulate(&mean).steady;
    CHECK_CLOSE(floor, mean.want, allowed, "the mean with mini-batches against the theory");
    /* the same data for every rule, so that differences are sharper than levels */
    CHECK_CLOSE(simulate(&ref).steady - floor, 0.3, 0.2, "REF over the mean");
    CHECK_CLOSE(simulate(&median).steady - floor, 1.7, 0.4, "median over the mean");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean),  cmocka_unit_test(one_malicious),           cmocka_unit_test(many_malicious),
        cmocka_unit_test(oracle), cmocka_unit_test(theory_and_mini_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
