/* Logistic, softmax and mlp: gradients against differences of the loss in double precision, convex problems to their optimum, mini-batches,
 * flipped labels, scores. */
#include "problem/network.h"
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

static const rfi_network *net_of(const reef_problem *problem)
{
    return reef_problem_state(problem);
}

/* One agent's gradient; `batch` gives round, step, size, repetition. */
static void gradient(const reef_problem *problem, int32_t agent, bool flipped, reef_batch batch, const float *model,
                     float *out)
{
    const reef_problem_kind *kind = reef_problem_kind_of(problem);
    size_t bytes = kind->work_size(reef_problem_state(problem), batch.size, 1);
    batch.work = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(batch.work);
    batch.count = 1;
    batch.agents = &agent;
    batch.models = &model;
    batch.gradients = &out;
    batch.flipped = &flipped;
    batch.lanes = 1;
    kind->gradients(reef_problem_state(problem), &batch);
    free(batch.work);
}

static float *new_model(const reef_problem *problem)
{
    float *model = calloc((size_t)reef_problem_dimension(problem), sizeof *model);
    assert_non_null(model);
    return model;
}

/* ---- the loss written out ---- */

static double loss_of_sample(const rfi_network *net, const double *model, ptrdiff_t sample, bool flipped)
{
    double a[2][200];
    const rfi_dataset *data = net->finite.data;
    double *in = a[0];
    double *out = a[1];
    int label = data->labels[sample];
    label = flipped ? (int)data->classes - 1 - label : label;
    for (ptrdiff_t j = 0; j < data->width; j++) {
        in[j] = (double)data->features[sample * data->width + j];
    }
    for (ptrdiff_t l = 0; l < net->depth; l++) {
        const rfi_layer *layer = &net->layers[l];
        for (ptrdiff_t o = 0; o < layer->out; o++) {
            double z = net->biased ? model[layer->biases + o] : 0;
            for (ptrdiff_t i = 0; i < layer->in; i++) {
                z += model[layer->weights + o * layer->in + i] * in[i];
            }
            double h = net->activation == RFI_TANH ? tanh(z) : fmax(z, 0);
            out[o] = l + 1 < net->depth ? h : z;
        }
        double *other = in;
        in = out;
        out = other;
    }
    if (net->layers[net->depth - 1].out == 1) {
        return log1p(exp(label ? -in[0] : in[0]));
    }
    double sum = 0;
    for (ptrdiff_t c = 0; c < data->classes; c++) {
        sum += exp(in[c]);
    }
    return log(sum) - in[label];
}

static double risk(const rfi_network *net, const double *model, const rfi_minibatch *batch, bool flipped)
{
    ptrdiff_t index[2000];
    const ptrdiff_t count = rfi_minibatch_count(&net->finite, batch);
    double sum = 0;
    double square = 0;
    assert_true(count <= COUNT(index));
    rfi_minibatch_draw(&net->finite, batch, 0, count, index);
    for (ptrdiff_t i = 0; i < count; i++) {
        sum += loss_of_sample(net, model, index[i], flipped) / (double)count;
    }
    for (ptrdiff_t m = 0; m < net->dimension; m++) {
        square += model[m] * model[m];
    }
    return sum + 0.5 * net->finite.l2 * square;
}

/* Central differences of every `stride`-th coordinate. */
static void check_differences(const char *spec, int32_t size, bool flipped, ptrdiff_t stride)
{
    reef_problem *problem = make(spec, 3, 9);
    const rfi_network *net = net_of(problem);
    const ptrdiff_t dimension = reef_problem_dimension(problem);
    float *model = new_model(problem);
    float *got = new_model(problem);
    double *wide = calloc((size_t)dimension, sizeof *wide);
    assert_non_null(wide);
    for (ptrdiff_t m = 0; m < dimension; m++) {
        model[m] = (float)sin(0.7 * (double)m) * 0.3F;
        wide[m] = (double)model[m];
    }
    const rfi_minibatch where = {.agent = 1, .round = 5, .step = 2, .repetition = 3, .size = size};
    reef_batch batch = {.round = 5, .step = 2, .repetition = 3, .size = size};
    gradient(problem, 1, flipped, batch, model, got);
    for (ptrdiff_t m = 0; m < dimension; m += stride) {
        const double h = 1e-5;
        const double at = wide[m];
        wide[m] = at + h;
        const double above = risk(net, wide, &where, flipped);
        wide[m] = at - h;
        const double below = risk(net, wide, &where, flipped);
        wide[m] = at;
        CHECK_CLOSE((double)got[m], (above - below) / (2 * h), 2e-5, spec);
    }
    free(model);
    free(got);
    free(wide);
    reef_problem_destroy(&problem);
}

static void differences(void **state)
{
    static const struct {
        const char *spec;
        int32_t size;
    } cases[] = {
        {"logistic:data=(gaussian:classes=2,dimension=5,samples=200,bias=yes)", 4},
        {"logistic:data=(gaussian:classes=2,dimension=5,samples=1200),l2=0.3", 0},
        {"softmax:data=(gaussian:classes=4,dimension=6,samples=300),l2=0.1,partition=(dirichlet:alpha=0.5)", 7},
        {"softmax:data=(gaussian:classes=4,dimension=6,samples=1300)", 0},
        {"softmax:data=(gaussian:classes=4,dimension=6,samples=300),sampling=epochs,steps=3", 300},
        {"mlp:data=(gaussian:classes=3,dimension=5,samples=300),hidden=7,activation=tanh", 5},
        {"mlp:data=(gaussian:classes=3,dimension=5,samples=1500),hidden=(6,4),activation=tanh,l2=0.01", 0},
        {"mlp:data=(gaussian:classes=2,dimension=5,samples=300),hidden=(8,8,8)", 1},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        check_differences(cases[i].spec, cases[i].size, false, 1);
        check_differences(cases[i].spec, cases[i].size, true, 1);
    }
    check_differences("softmax", 32, false, 37);
}

/* ---- convex problems ---- */

/* Full-batch gradient descent on one agent; returns the norm of the last gradient. */
static double descend(const reef_problem *problem, float *model, float step, int rounds)
{
    const ptrdiff_t dimension = reef_problem_dimension(problem);
    float *g = new_model(problem);
    double square = 0;
    for (int round = 0; round < rounds; round++) {
        reef_batch batch = {.round = round, .size = 0};
        gradient(problem, 0, false, batch, model, g);
        square = 0;
        for (ptrdiff_t m = 0; m < dimension; m++) {
            model[m] -= step * g[m];
            square += (double)g[m] * (double)g[m];
        }
    }
    free(g);
    return sqrt(square);
}

/* Newton's method in double precision on the same samples: an independent way to the optimum of logistic regression. */
static void newton_logistic(const rfi_network *net, double w[2])
{
    const rfi_dataset *data = net->finite.data;
    for (int step = 0; step < 50; step++) {
        double g[2] = {net->finite.l2 * w[0], net->finite.l2 * w[1]};
        double h[3] = {net->finite.l2, 0, net->finite.l2};
        for (ptrdiff_t i = 0; i < data->train; i++) {
            const double x = (double)data->features[2 * i];
            const double y = (double)data->features[2 * i + 1];
            const double p = 1 / (1 + exp(-(w[0] * x + w[1] * y)));
            const double n = (double)data->train;
            g[0] += (p - data->labels[i]) * x / n;
            g[1] += (p - data->labels[i]) * y / n;
            h[0] += p * (1 - p) * x * x / n;
            h[1] += p * (1 - p) * x * y / n;
            h[2] += p * (1 - p) * y * y / n;
        }
        const double det = h[0] * h[2] - h[1] * h[1];
        w[0] -= (h[2] * g[0] - h[1] * g[1]) / det;
        w[1] -= (h[0] * g[1] - h[1] * g[0]) / det;
    }
}

static void known_optimum(void **state)
{
    static const char data[] = "gaussian:classes=2,dimension=2,samples=200,separation=8";
    char spec[200];
    double w[2] = {0, 0};
    (void)state;
    (void)snprintf(spec, sizeof spec, "logistic:data=(%s),l2=0.05", data);
    reef_problem *logistic = make(spec, 1, 4);
    (void)snprintf(spec, sizeof spec, "softmax:data=(%s),l2=0.1", data);
    reef_problem *softmax = make(spec, 1, 4);
    float one[2] = {0};
    float two[4] = {0};
    newton_logistic(net_of(logistic), w);
    assert_true(descend(logistic, one, 0.2F, 3000) < 1e-5);
    assert_true(descend(softmax, two, 0.2F, 3000) < 1e-5);
    for (int m = 0; m < 2; m++) {
        CHECK_CLOSE((double)one[m], w[m], 1e-4, "logistic against Newton");
        /* Two classes: w_1 = -w_0 = w / 2, and l2 |w_0|^2 + l2 |w_1|^2 = l2 / 2 |w|^2, hence twice the l2. */
        CHECK_CLOSE((double)(two[2 + m] - two[m]), w[m], 1e-3, "softmax against logistic");
    }
    reef_problem_destroy(&logistic);
    reef_problem_destroy(&softmax);
}

/* ---- mini-batches ---- */

static void minibatches(void **state)
{
    enum { N = 30 };
    static const char replace[] = "softmax:data=(gaussian:samples=120,test=0,classes=3)";
    static const char epochs[] = "softmax:data=(gaussian:samples=120,test=0,classes=3),sampling=epochs,steps=2";
    (void)state;
    reef_problem *problem = make(epochs, 4, 1);
    const rfi_finite *f = &net_of(problem)->finite;
    ptrdiff_t index[N];
    ptrdiff_t seen[120] = {0};
    assert_int_equal(rfi_network_samples(reef_problem_state(problem), 2), N);
    /* Rounds of two steps of five: three rounds are an epoch. */
    for (int part = 0; part < 12; part++) {
        rfi_minibatch batch = {.agent = 2, .round = part / 2, .step = part % 2, .size = 5};
        rfi_minibatch_draw(f, &batch, 0, 5, index);
        for (int i = 0; i < 5; i++) {
            seen[index[i]]++;
        }
    }
    ptrdiff_t total = 0;
    for (int i = 0; i < 120; i++) {
        assert_true(seen[i] == 0 || seen[i] == 2); /* two epochs */
        total += seen[i];
    }
    assert_int_equal(total, 60);
    reef_problem_destroy(&problem);

    /* With replacement: any part of a mini-batch is the same as when all of it is drawn, and every sample comes equally often. */
    problem = make(replace, 4, 1);
    f = &net_of(problem)->finite;
    static ptrdiff_t many[30000];
    rfi_minibatch batch = {.agent = 1, .round = 3, .size = COUNT(many)};
    rfi_minibatch_draw(f, &batch, 0, COUNT(many), many);
    rfi_minibatch_draw(f, &batch, 777, N, index);
    assert_memory_equal(index, many + 777, sizeof index);
    memset(seen, 0, sizeof seen);
    for (ptrdiff_t i = 0; i < COUNT(many); i++) {
        seen[many[i]]++;
    }
    double chi = 0;
    for (ptrdiff_t i = f->partition->start[1]; i < f->partition->start[2]; i++) {
        chi += pow((double)seen[f->partition->index[i]] - 1000, 2) / 1000;
    }
    assert_true(chi < 75); /* 29 degrees of freedom: 1e-5 */
    /* Each of agent, repetition, round and step changes the draw. */
    rfi_minibatch other[] = {batch, batch, batch};
    other[0].repetition = 1;
    other[1].round = 4;
    other[2].step = 1;
    for (int i = 0; i < 3; i++) {
        rfi_minibatch_draw(f, &other[i], 0, N, index);
        assert_memory_not_equal(index, many, sizeof index);
    }
    reef_problem_destroy(&problem);
}

/* ---- learning and scores ---- */

static void score_of(const reef_problem *problem, const float *model, reef_score *score)
{
    const reef_problem_kind *kind = reef_problem_kind_of(problem);
    size_t bytes = kind->work_size(reef_problem_state(problem), 0, 1);
    void *work = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(work);
    kind->score(reef_problem_state(problem), model, score, work);
    free(work);
}

static void scores(void **state)
{
    reef_problem *problem =
        make("softmax:data=(gaussian:classes=3,dimension=2,samples=900,test=0.5,separation=9)", 1, 2);
    const rfi_network *net = net_of(problem);
    const rfi_dataset *data = net->finite.data;
    float *model = new_model(problem);
    reef_score score;
    (void)state;
    score_of(problem, model, &score);
    CHECK_CLOSE(score.loss, log(3), 1e-6, "loss of the zero model");
    CHECK_CLOSE(score.worst_accuracy, 0, 0, "the zero model says class 0 always");
    (void)descend(problem, model, 0.05F, 500);
    score_of(problem, model, &score);
    double wide[6];
    double loss = 0;
    ptrdiff_t hits[3] = {0};
    ptrdiff_t all[3] = {0};
    for (int m = 0; m < 6; m++) {
        wide[m] = (double)model[m];
    }
    for (ptrdiff_t i = data->train; i < data->count; i++) {
        const float *x = data->features + 2 * i;
        double z[3];
        for (int c = 0; c < 3; c++) {
            z[c] = wide[2 * c] * (double)x[0] + wide[2 * c + 1] * (double)x[1];
        }
        const int said = z[0] >= z[1] && z[0] >= z[2] ? 0 : z[1] >= z[2] ? 1 : 2;
        hits[data->labels[i]] += said == data->labels[i];
        all[data->labels[i]]++;
        loss += loss_of_sample(net, wide, i, false) / (double)(data->count - data->train);
    }
    double worst = 1;
    for (int c = 0; c < 3; c++) {
        worst = fmin(worst, (double)hits[c] / (double)all[c]);
    }
    CHECK_CLOSE(score.loss, loss, 1e-5, "loss");
    CHECK_CLOSE(score.accuracy, (double)(hits[0] + hits[1] + hits[2]) / (double)(data->count - data->train), 1e-12,
                "accuracy");
    CHECK_CLOSE(score.worst_accuracy, worst, 1e-12, "worst accuracy");
    free(model);
    reef_problem_destroy(&problem);
}

/* The start is the same for all agents and repeatable, another in each repetition, with the stated variance. */
static void starts(void **state)
{
    reef_problem *problem = make("mlp:hidden=(200,100)", 2, 6);
    const rfi_network *net = net_of(problem);
    float *a = new_model(problem);
    float *b = new_model(problem);
    double square = 0;
    (void)state;
    rfi_network_start(net, 1, 0, a);
    rfi_network_start(net, 1, 0, b);
    const size_t bytes = (size_t)net->dimension * sizeof *a;
    assert_memory_equal(a, b, bytes);
    rfi_network_start(net, 1, 1, b);
    assert_memory_not_equal(a, b, bytes);
    for (ptrdiff_t i = 0; i < 200 * 100; i++) {
        square += pow((double)a[net->layers[1].weights + i], 2) / (200 * 100);
    }
    CHECK_CLOSE(square, 2 / 200.0, 0.05 * 2 / 200.0, "variance of the weights");
    CHECK_CLOSE((double)a[net->layers[1].biases], 0, 0, "bias");
    assert_int_equal(net->dimension, 64 * 200 + 200 + 200 * 100 + 100 + 100 * 10 + 10);
    free(a);
    free(b);
    reef_problem_destroy(&problem);
}

/* The shipped digits, learnt by one agent in mini-batches of 32. */
static void digits(void **state)
{
    enum { ROUNDS = MONTE_CARLO(3000, 30) };
    reef_problem *problem = make("mlp:hidden=64,sampling=epochs", 1, 3);
    float *model = new_model(problem);
    float *g = new_model(problem);
    reef_score score;
    (void)state;
    rfi_network_start(reef_problem_state(problem), 1, 0, model);
    for (int round = 0; round < ROUNDS; round++) {
        reef_batch batch = {.round = round, .size = 32};
        gradient(problem, 0, false, batch, model, g);
        for (ptrdiff_t m = 0; m < reef_problem_dimension(problem); m++) {
            model[m] -= 0.1F * g[m];
        }
    }
    score_of(problem, model, &score);
    CHECK(score.accuracy > MONTE_CARLO(0.95, 0.2) && score.worst_accuracy <= score.accuracy, "accuracy %g, worst %g",
          score.accuracy, score.worst_accuracy);
    free(model);
    free(g);
    reef_problem_destroy(&problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences), cmocka_unit_test(known_optimum), cmocka_unit_test(minibatches),
        cmocka_unit_test(scores),      cmocka_unit_test(starts),        cmocka_unit_test(digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
