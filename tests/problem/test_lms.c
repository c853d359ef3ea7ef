/* The problem lms: gradients against the definition written out, packing into lanes, the optimum and its walk, theory against Monte
 * Carlo. */
#include "num/lanes.h"
#include "num/rng.h"
#include "support/check.h"

#include <math.h>
#include <reef/reef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static reef_problem *make(const char *spec, ptrdiff_t agents, uint64_t seed)
{
    reef_problem *problem = NULL;
    reef_error error;
    reef_status status = reef_problem_create(NULL, &problem, spec, agents, seed, &error);
    CHECK(status == REEF_OK, "%s: %s", spec, error.text);
    return problem;
}

static void *make_work(const reef_problem *problem, ptrdiff_t size, ptrdiff_t lanes)
{
    size_t bytes = reef_problem_kind_of(problem)->work_size(reef_problem_state(problem), size, lanes);
    void *work = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    assert_non_null(work);
    return work;
}

/* Gradients of agents 0..count-1 at one model each, `lanes` side by side: out is count x M x lanes. */
static void gradients(const reef_problem *problem, reef_batch batch, const float *models, float *out)
{
    enum { AGENTS_MAX = 64 };
    int32_t agents[AGENTS_MAX];
    const float *in[AGENTS_MAX];
    float *to[AGENTS_MAX];
    ptrdiff_t length = reef_problem_dimension(problem) * batch.lanes;
    assert_true(batch.count <= AGENTS_MAX);
    for (ptrdiff_t a = 0; a < batch.count; a++) {
        agents[a] = (int32_t)a;
        in[a] = models + a * length;
        to[a] = out + a * length;
    }
    batch.agents = agents;
    batch.models = in;
    batch.gradients = to;
    batch.work = make_work(problem, batch.size, batch.lanes);
    reef_problem_kind_of(problem)->gradients(reef_problem_state(problem), &batch);
    free(batch.work);
}

static const char *const specs[] = {
    "lms",
    "lms:dimension=1",
    "lms:dimension=7,noise=0.5,noise_spread=10,heterogeneity=0.3",
    "lms:dimension=13,covariance=diagonal,spread=5,outliers=0.2,outlier_noise=50",
    "lms:dimension=6,covariance=ar1,rho=-0.7,drift=0.1,loss=huber,threshold=0.5",
    "lms:optimum=ones,norm=3",
    "lms:optimum=axis,loss=huber",
    "lms:dimension=3,optimum=(1,0,-2.5),drift=0.1",
};

/* The same bits whatever is computed together: 5 agents x 37 repetitions at once, or one by one. */
static void packing(void **state)
{
    enum { AGENTS = 5, LANES = 37 };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        reef_problem *problem = make(specs[i], AGENTS, 11);
        const ptrdiff_t m = reef_problem_dimension(problem);
        float models[AGENTS * 16 * LANES];
        float all[AGENTS * 16 * LANES];
        float few[AGENTS * 16 * 16];
        float one[AGENTS * 16];
        for (ptrdiff_t j = 0; j < AGENTS * m * LANES; j++) {
            models[j] = (float)(j % 17) / 8 - 1;
        }
        reef_batch batch = {.count = AGENTS, .round = 3, .step = 1, .size = 3, .lanes = LANES, .repetition = 100};
        gradients(problem, batch, models, all);
        for (int r = 0; r < LANES; r++) {
            float own[AGENTS * 16];
            for (ptrdiff_t j = 0; j < AGENTS * m; j++) {
                own[j] = models[j * LANES + r];
            }
            batch.lanes = 1;
            batch.repetition = 100 + r;
            gradients(problem, batch, own, one);
            for (ptrdiff_t j = 0; j < AGENTS * m; j++) {
                CHECK(memcmp(&one[j], &all[j * LANES + r], sizeof one[j]) == 0, "%s: repetition %d, number %td",
                      specs[i], r, j);
            }
        }
        float part[AGENTS * 16 * 16];
        for (ptrdiff_t j = 0; j < AGENTS * m * 16; j++) {
            part[j] = models[j / 16 * LANES + j % 16];
        }
        batch.lanes = 16;
        batch.repetition = 100;
        gradients(problem, batch, part, few);
        for (ptrdiff_t j = 0; j < AGENTS * m * 16; j++) {
            CHECK(memcmp(&few[j], &all[j / 16 * LANES + j % 16], sizeof few[j]) == 0, "%s: number %td of 16 lanes",
                  specs[i], j);
        }
        reef_problem_destroy(&problem);
    }
}

/* An agent's gradients do not depend on how many agents there are. */
static void streams_of_agents(void **state)
{
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        reef_problem *small = make(specs[i], 3, 5);
        reef_problem *large = make(specs[i], 50, 5);
        float models[3 * 16] = {0};
        float a[3 * 16] = {0};
        float b[3 * 16] = {0};
        reef_batch batch = {.count = 3, .round = 9, .size = 2, .lanes = 1};
        gradients(small, batch, models, a);
        gradients(large, batch, models, b);
        assert_memory_equal(a, b, sizeof a);
        reef_problem_destroy(&small);
        reef_problem_destroy(&large);
    }
}

/* -u (d - u' w) with the normals of the documented stream, in double precision. */
static void definition(void **state)
{
    enum { M = 10 };
    reef_problem *problem = make("lms:noise=0.25", 4, 77);
    const reef_problem_kind *kind = reef_problem_kind_of(problem);
    float models[4 * M];
    float got[4 * M];
    double w[M];
    (void)state;
    kind->optimum(reef_problem_state(problem), 0, NULL, 0, 0, w);
    for (int j = 0; j < 4 * M; j++) {
        models[j] = (float)(j % 7) / 10;
    }
    reef_batch batch = {.count = 4, .round = 6, .step = 2, .size = 2, .lanes = 1, .repetition = 9};
    gradients(problem, batch, models, got);
    for (uint32_t k = 0; k < 4; k++) {
        double want[M] = {0};
        for (int s = 0; s < 2; s++) {
            const uint32_t repetition = 9;
            float n[12];
            rfi_normal_stream stream = rfi_normal_open(77, RFI_PURPOSE_DATA, 6, 2);
            rfi_lanes_find()->normals(&stream, &k, &repetition, 1, 12 * (ptrdiff_t)s, 12, n);
            double d = 0.5 * (double)n[M];
            double y = 0;
            for (int m = 0; m < M; m++) {
                d += (double)n[m] * w[m];
                y += (double)n[m] * (double)models[k * M + (uint32_t)m];
            }
            for (int m = 0; m < M; m++) {
                want[m] -= (double)n[m] * (d - y) / 2;
            }
        }
        for (int m = 0; m < M; m++) {
            CHECK_CLOSE((double)got[k * M + (uint32_t)m], want[m], 1e-5, "gradient");
        }
    }
    reef_problem_destroy(&problem);
}

/* Mean and covariance of u e over many samples: at w the gradient's mean is R_k (w - w_k^o). */
static void expectation(void **state)
{
    enum { SIZE = MONTE_CARLO(400000, 20000) };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        if (strstr(specs[i], "huber")) {
            continue;
        }
        reef_problem *problem = make(specs[i], 2, 21);
        const reef_problem_kind *kind = reef_problem_kind_of(problem);
        const ptrdiff_t m = reef_problem_dimension(problem);
        float models[2 * 16];
        float got[2 * 16];
        for (ptrdiff_t j = 0; j < 2 * m; j++) {
            models[j] = (float)(j % 3) - 1;
        }
        reef_batch batch = {.count = 2, .size = SIZE, .lanes = 1};
        gradients(problem, batch, models, got);
        /* Excess risk is quadratic, so its central difference is exact. */
        for (ptrdiff_t j = 0; j < m; j++) {
            double w[16];
            double risk[2];
            for (int side = 0; side < 2; side++) {
                for (ptrdiff_t c = 0; c < m; c++) {
                    w[c] = (double)models[m + c] + (c == j ? side - 0.5 : 0);
                }
                risk[side] = kind->excess(reef_problem_state(problem), 1, 0, 0, w);
            }
            CHECK_CLOSE((double)got[m + j], risk[1] - risk[0], 60 / sqrt(SIZE), specs[i]);
        }
        reef_problem_destroy(&problem);
    }
}

/* Mean of K agents, adapted together: steady-state mean-square deviation from the limit point, over rounds and lanes. */
static double simulate(const reef_problem *problem, double mu, int32_t size, int rounds)
{
    enum { LANES = 16 };
    const reef_problem_kind *kind = reef_problem_kind_of(problem);
    const void *lms = reef_problem_state(problem);
    const ptrdiff_t m = reef_problem_dimension(problem);
    const ptrdiff_t agents = reef_problem_agents(problem);
    float *models = calloc((size_t)(agents * m * LANES), sizeof *models);
    float *grads = calloc((size_t)(agents * m * LANES), sizeof *grads);
    double *w = calloc((size_t)m, sizeof *w);
    double sum = 0;
    const int settled = rounds / 2;
    assert_true(models && grads && w);
    for (int round = 0; round < rounds; round++) {
        reef_batch batch = {.count = agents, .round = round, .size = size, .lanes = LANES};
        gradients(problem, batch, models, grads);
        for (ptrdiff_t j = 0; j < m * LANES; j++) {
            double step = 0;
            for (ptrdiff_t k = 0; k < agents; k++) {
                step += (double)grads[k * m * LANES + j] / (double)agents;
            }
            const float moved = models[j] - (float)(mu * step);
            for (ptrdiff_t k = 0; k < agents; k++) {
                models[k * m * LANES + j] = moved;
            }
        }
        kind->optimum(lms, -1, NULL, round, 0, w);
        for (ptrdiff_t j = 0; round >= settled && j < m * LANES; j++) {
            sum += ((double)models[j] - w[j / LANES]) * ((double)models[j] - w[j / LANES]);
        }
    }
    free(models);
    free(grads);
    free(w);
    return sum / (LANES * (double)(rounds - settled));
}

static double theory(const reef_problem *problem, double mu, int32_t size)
{
    enum { AGENTS_MAX = 64 };
    double p[AGENTS_MAX];
    double steps[AGENTS_MAX];
    for (ptrdiff_t k = 0; k < reef_problem_agents(problem); k++) {
        p[k] = 1 / (double)reef_problem_agents(problem);
        steps[k] = mu;
    }
    return reef_problem_kind_of(problem)->theory(reef_problem_state(problem), p, steps, size);
}

static void steady_state(void **state)
{
    static const struct {
        const char *spec;
        double mu;
        int32_t size;
    } cases[] = {
        {"lms", 0.05, 1},
        {"lms:noise=0.1,noise_spread=20,outliers=0.1,outlier_noise=9", 0.05, 4},
        {"lms:heterogeneity=0.2", 0.02, 1},
        {"lms:covariance=diagonal,spread=3,heterogeneity=0.1,noise_spread=3", 0.02, 2},
        {"lms:covariance=ar1,rho=0.6,heterogeneity=0.1", 0.03, 1},
        {"lms:drift=0.01", 0.05, 1},
        {"lms:covariance=ar1,drift=0.003", 0.03, 1},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        reef_problem *problem = make(cases[i].spec, 8, 3);
        double want = theory(problem, cases[i].mu, cases[i].size);
        double got = simulate(problem, cases[i].mu, cases[i].size, MONTE_CARLO(6000, 1500));
        double db = 10 * log10(got / want);
        CHECK(fabs(db) < MONTE_CARLO(0.5, 1.5), "%s: %g instead of %g, %.2f dB off", cases[i].spec, got, want, db);
        reef_problem_destroy(&problem);
    }
}

/* The figure of the paper's setting without liars: -48.03 dB. */
static void paper_theory(void **state)
{
    reef_problem *problem = make("lms", 32, 1);
    (void)state;
    CHECK_CLOSE(10 * log10(theory(problem, 0.01, 1)), -48.03, 0.005, "dB");
    reef_problem_destroy(&problem);
}

/* Increments of the walk are independent with the wanted variance, whichever rounds they lie between. */
static void walk(void **state)
{
    enum { M = 4000 };
    static const int64_t rounds[] = {0, 1, 2, 3, 5, 8, 13, 100, 1000, 1001, 1048575, 1048576, 5000000000, 5000000001};
    reef_problem *problem = make("lms:dimension=4000,drift=0.5", 1, 8);
    const reef_problem_kind *kind = reef_problem_kind_of(problem);
    double *w = calloc((size_t)2 * M, sizeof *w);
    double *last = calloc(M, sizeof *last);
    (void)state;
    assert_true(w && last);
    for (ptrdiff_t i = 1; i < COUNT(rounds); i++) {
        double square = 0;
        double product = 0;
        double gap = (double)(rounds[i] - rounds[i - 1]);
        kind->optimum(reef_problem_state(problem), 0, NULL, rounds[i - 1], 0, w);
        kind->optimum(reef_problem_state(problem), 0, NULL, rounds[i], 0, w + M);
        for (int m = 0; m < M; m++) {
            double step = (w[M + m] - w[m]) / (0.5 * sqrt(gap));
            square += step * step;
            product += step * last[m];
            last[m] = step;
        }
        CHECK_CLOSE(square / M, 1, 0.12, "variance of a step");
        CHECK_CLOSE(product / M, 0, 0.08, "covariance of neighbouring steps");
    }
    free(w);
    free(last);
    reef_problem_destroy(&problem);
}

/* Clipped residuals: no coordinate exceeds threshold * sigma * |u|, and far from the optimum all are clipped. */
static void robust_adaptation(void **state)
{
    enum { M = 10, LANES = 16 };
    reef_problem *square = make("lms:noise=0.04", 1, 4);
    reef_problem *huber = make("lms:noise=0.04,loss=huber,threshold=2", 1, 4);
    float far[M * LANES];
    float a[M * LANES];
    float b[M * LANES];
    (void)state;
    for (int j = 0; j < M * LANES; j++) {
        far[j] = 1000;
    }
    reef_batch batch = {.count = 1, .size = 1, .lanes = LANES};
    gradients(square, batch, far, a);
    gradients(huber, batch, far, b);
    for (int r = 0; r < LANES; r++) {
        /* Both are multiples of u; u' u is the same. a = u e, b = +-0.4 u. */
        for (int m = 1; m < M; m++) {
            CHECK_CLOSE((double)(b[m * LANES + r] / b[r]), (double)(a[m * LANES + r] / a[r]), 1e-3, "direction");
        }
        CHECK(fabsf(b[r]) < 0.4F * 6.6F && fabsf(b[r]) < fabsf(a[r]), "clipped residual: %g", (double)b[r]);
    }
    reef_problem_destroy(&square);
    reef_problem_destroy(&huber);
}

/* Numbers are taken as they are; wrong ones are refused. */
static void given_optimum(void **state)
{
    static const char *const wrong[] = {"(1,0)", "(1,0,-2,4)", "(1,x,2)",   "(1,,2)",
                                        "()",    "one",        "(1,nan,2)", "(1,inf,2)"};
    double w[3];
    (void)state;
    reef_problem *problem = make("lms:dimension=3,optimum=(1,0,-2.5),norm=7", 3, 5);
    reef_problem_kind_of(problem)->optimum(reef_problem_state(problem), 1, NULL, 4, 7, w);
    assert_true(w[0] == 1 && w[1] == 0 && w[2] == -2.5);
    reef_problem_destroy(&problem);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char spec[100];
        reef_error error = {REEF_OK, ""};
        (void)snprintf(spec, sizeof spec, "lms:dimension=3,optimum=%s", wrong[i]);
        CHECK(reef_problem_create(NULL, &problem, spec, 3, 5, &error) != REEF_OK && strstr(error.text, "optimum"),
              "%s was taken: %s", wrong[i], error.text);
    }
}

static void optima(void **state)
{
    double w[10];
    double norm = 0;
    (void)state;
    reef_problem *problem = make("lms:norm=2", 3, 5);
    reef_problem_kind_of(problem)->optimum(reef_problem_state(problem), 1, NULL, 4, 7, w);
    for (int m = 0; m < 10; m++) {
        norm += w[m] * w[m];
    }
    CHECK_CLOSE(sqrt(norm), 2, 1e-12, "length of the optimum");
    reef_problem_destroy(&problem);
    /* Own optima and covariances: the common minimiser has gradient 0 (differences of the mean excess). */
    problem = make("lms:covariance=diagonal,heterogeneity=1,spread=10", 5, 5);
    const double p[] = {0.1, 0.3, 0.2, 0.15, 0.25};
    reef_problem_kind_of(problem)->optimum(reef_problem_state(problem), -1, p, 0, 0, w);
    for (int m = 0; m < 10; m++) {
        double slope = 0;
        for (int side = -1; side <= 1; side += 2) {
            w[m] += side;
            for (int k = 0; k < 5; k++) {
                slope += side * p[k] * reef_problem_kind_of(problem)->excess(reef_problem_state(problem), k, 0, 0, w);
            }
            w[m] -= side;
        }
        CHECK_CLOSE(slope, 0, 1e-9, "slope at the common minimiser");
    }
    reef_problem_destroy(&problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing),       cmocka_unit_test(streams_of_agents), cmocka_unit_test(definition),
        cmocka_unit_test(expectation),   cmocka_unit_test(steady_state),      cmocka_unit_test(paper_theory),
        cmocka_unit_test(walk),          cmocka_unit_test(robust_adaptation), cmocka_unit_test(optima),
        cmocka_unit_test(given_optimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
