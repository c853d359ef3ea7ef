/* RSA: one step by hand for every norm, the bounded pull of a liar, messages. */
#include "support/check.h"
#include "support/runs.h"

#include <math.h>
#include <string.h>

enum { K = 3, M = QUADRATIC_M };
static const double mu = 0.1;
static const double lambda = 0.5;

static double sign(double x)
{
    return (x > 0) - (x < 0);
}

/* Subgradients of |d| at coordinate m. */
static double by_l1(const double *d, int m)
{
    return sign(d[m]);
}

static double by_l2(const double *d, int m)
{
    double squares = 0;
    for (int i = 0; i < M; i++) {
        squares += d[i] * d[i];
    }
    return squares > 0 ? d[m] / sqrt(squares) : 0;
}

static double by_linf(const double *d, int m)
{
    double largest = 0;
    int ties = 0;
    for (int i = 0; i < M; i++) {
        largest = fmax(largest, fabs(d[i]));
    }
    for (int i = 0; i < M; i++) {
        ties += fabs(d[i]) == largest;
    }
    return fabs(d[m]) == largest ? sign(d[m]) / ties : 0;
}

typedef double (*subgradient)(const double *d, int m);

static double pull(subgradient of, const double *a, const double *b, int m)
{
    double d[M];
    for (int i = 0; i < M; i++) {
        d[i] = a[i] - b[i];
    }
    return of(d, m);
}

/* w_k -= mu (g_k + lambda d|w_k - w_0|); w_0 -= mu (decay w_0 + lambda sum_k d|w_0 - w_k|), all from the old values */
static void server_round(subgradient of, double decay, int64_t round, double w[K][M], double *server)
{
    double next[K][M];
    double next_server[M];
    for (int m = 0; m < M; m++) {
        next_server[m] = server[m] - mu * decay * server[m];
        for (int k = 0; k < K; k++) {
            next[k][m] =
                w[k][m] - mu * (quadratic_gradient(k, round, 0, 0, m, w[k][m]) + lambda * pull(of, w[k], server, m));
            next_server[m] -= mu * lambda * pull(of, server, w[k], m);
        }
    }
    memcpy(w, next, sizeof next);
    memcpy(server, next_server, sizeof next_server);
}

static void neighbours_round(subgradient of, int64_t round, double w[K][M])
{
    double next[K][M];
    for (int m = 0; m < M; m++) {
        for (int k = 0; k < K; k++) {
            double sum = 0;
            for (int l = 0; l < K; l++) {
                sum += l == k ? 0 : pull(of, w[k], w[l], m);
            }
            next[k][m] = w[k][m] - mu * (quadratic_gradient(k, round, 0, 0, m, w[k][m]) + lambda * sum);
        }
    }
    memcpy(w, next, sizeof next);
}

static void check_models(const world *w, double models[K][M], const char *what)
{
    for (int k = 0; k < K; k++) {
        for (int m = 0; m < M; m++) {
            CHECK_CLOSE((double)reef_run_model(w->run, k)[m], models[k][m], 2e-6, what);
        }
    }
}

/* A few rounds: later ones would come upon differences of rounding only, whose signs mean nothing. */
static void steps_by_hand(void **state)
{
    static const struct {
        const char *server, *neighbours;
        subgradient of;
    } cases[] = {
        {"rsa:mu=0.1,lambda=0.5,norm=l1,weight_decay=0.2", "rsa_tv:mu=0.1,lambda=0.5,norm=l1", by_l1},
        {"rsa:mu=0.1,lambda=0.5,norm=l2,weight_decay=0.2", "rsa_tv:mu=0.1,lambda=0.5,norm=l2", by_l2},
        {"rsa:mu=0.1,lambda=0.5,norm=linf,weight_decay=0.2", "rsa_tv:mu=0.1,lambda=0.5,norm=linf", by_linf},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        double models[K][M] = {{0}};
        double server[M] = {0};
        world w;
        world_open(&w, &(world_plan){.agents = K, .own_problem = &quadratic, .rule = "", .strategy = cases[i].server});
        for (int64_t round = 0; round < 3; round++) {
            world_step(&w, 1);
            server_round(cases[i].of, 0.2, round, models, server);
            check_models(&w, models, cases[i].server);
        }
        assert_int_equal(reef_run_counts_of(w.run).messages, 3 * 2 * K);
        world_close(&w);
        memset(models, 0, sizeof models);
        world_open(&w,
                   &(world_plan){.agents = K, .own_problem = &quadratic, .rule = "", .strategy = cases[i].neighbours});
        for (int64_t round = 0; round < 3; round++) {
            world_step(&w, 1);
            neighbours_round(cases[i].of, round, models);
            check_models(&w, models, cases[i].neighbours);
        }
        assert_int_equal(reef_run_counts_of(w.run).messages, 3 * K * (K - 1));
        world_close(&w);
    }
}

/* ---- liars ---- */

typedef struct shout {
    float value;
    bool silent;
} shout;

static bool shout_message(const void *params, const reef_attack_view *view, float *out)
{
    const shout *p = params;
    for (ptrdiff_t i = 0; i < view->length; i++) {
        out[i] = p->value;
    }
    return !p->silent;
}

static const reef_attack_kind shouter = {
    .kind = {.name = "shouter", .summary = "", .citation = "", .params_size = sizeof(shout)},
    .traits = REEF_ATTACK_LANES,
    .message = shout_message};

/* In one step a liar moves an honest agent by at most mu lambda in the norm dual to the penalty's, whatever it sends: constant rows,
 * which tie in every coordinate, infinite ones, NaN. */
static void a_malicious_pulls_only_so_hard(void **state)
{
    static const float values[] = {1e30F, -1e30F, INFINITY, -INFINITY, NAN, 3};
    static const char *const norms[] = {"rsa_tv:mu=0.1,lambda=0.5,norm=l1", "rsa_tv:mu=0.1,lambda=0.5,norm=l2",
                                        "rsa_tv:mu=0.1,lambda=0.5,norm=linf"};
    (void)state;
    for (int n = 0; n < 3; n++) {
        for (ptrdiff_t i = 0; i < COUNT(values); i++) {
            world quiet;
            world loud;
            world_plan plan = {.agents = K,
                               .own_problem = &quadratic,
                               .rule = "",
                               .strategy = norms[n],
                               .own_attack = &shouter,
                               .attack_params = &(shout){.silent = true},
                               .malicious_count = 1};
            world_open(&quiet, &plan);
            plan.attack_params = &(shout){.value = values[i]};
            world_open(&loud, &plan);
            world_step(&quiet, 1);
            world_step(&loud, 1);
            for (ptrdiff_t k = 1; k < K; k++) {
                double sum = 0;
                double squares = 0;
                double largest = 0;
                for (int m = 0; m < M; m++) {
                    double d = (double)reef_run_model(loud.run, k)[m] - (double)reef_run_model(quiet.run, k)[m];
                    sum += fabs(d);
                    squares += d * d;
                    largest = fmax(largest, fabs(d));
                }
                double moved = n == 0 ? largest : n == 1 ? sqrt(squares) : sum;
                bool finite = isfinite(values[i]);
                CHECK(moved <= mu * lambda * 1.00001, "%s: a liar sending %g moves agent %td by %g", norms[n],
                      (double)values[i], k, moved);
                CHECK(finite ? moved > 0.9 * mu * lambda : moved == 0, "%s: %g moves by %g", norms[n],
                      (double)values[i], moved);
            }
            assert_int_equal(reef_run_counts_of(quiet.run).silent, K - 1);
            assert_int_equal(reef_run_counts_of(loud.run).silent, 0);
            assert_int_equal(reef_run_counts_of(loud.run).messages, K * (K - 1));
            assert_int_equal(reef_run_counts_of(quiet.run).messages, (K - 1) * (K - 1));
            world_close(&quiet);
            world_close(&loud);
        }
    }
}

static void the_server_counts_silence(void **state)
{
    world w;
    (void)state;
    world_open(&w, &(world_plan){.agents = K,
                                 .own_problem = &quadratic,
                                 .rule = "",
                                 .strategy = "rsa",
                                 .own_attack = &shouter,
                                 .attack_params = &(shout){.silent = true},
                                 .malicious_count = 1});
    world_step(&w, 4);
    assert_int_equal(reef_run_counts_of(w.run).silent, 4);
    assert_int_equal(reef_run_counts_of(w.run).messages, 4 * (2 * K - 1));
    world_close(&w);
}

/* RSA learns although a third of the agents shout. */
static void it_learns(void **state)
{
    double msd[1];
    reef_error error;
    world w;
    (void)state;
    world_open(&w, &(world_plan){.agents = 12,
                                 .rule = "",
                                 .strategy = "rsa:mu=0.01,lambda=0.1",
                                 .own_attack = &shouter,
                                 .attack_params = &(shout){.value = 1e20F},
                                 .malicious_count = 4});
    world_step(&w, 3000);
    assert_int_equal(reef_run_msd(w.run, NULL, msd, &error), REEF_OK);
    CHECK(msd[0] < 0.05, "MSD %g", msd[0]); /* it starts at 1 */
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_by_hand),
        cmocka_unit_test(a_malicious_pulls_only_so_hard),
        cmocka_unit_test(the_server_counts_silence),
        cmocka_unit_test(it_learns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
