/* Classifiers on finite data: making them, gradients of mini-batches, scores. */
#include "problem/network.h"

#include "base/error.h"
#include "num/blas.h"
#include "num/lanes.h"
#include "num/rng.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- making ---- */

/* Largest model, in numbers. */
#define DIMENSION_MAX ((ptrdiff_t)1 << 31)

static reef_status lay_layers(rfi_network *net, const rfi_network_plan *plan, reef_error *error)
{
    ptrdiff_t in = net->finite.data->width;
    ptrdiff_t at = 0;
    assert(plan->hidden_count >= 0 && plan->hidden_count < RFI_LAYERS_MAX);
    net->depth = plan->hidden_count + 1;
    for (ptrdiff_t l = 0; l < net->depth; l++) {
        const ptrdiff_t last = plan->single ? 1 : net->finite.data->classes;
        const ptrdiff_t out = l < plan->hidden_count ? plan->hidden[l] : last;
        ptrdiff_t cells = 0;
        if (!rfi_mul(in, out, &cells) || cells > DIMENSION_MAX || at > DIMENSION_MAX) {
            return rfi_fail(error, REEF_E_RANGE, "%s: the model would have more than 2^31 numbers", plan->name);
        }
        net->layers[l] = (rfi_layer){.in = in, .out = out, .weights = at, .biases = at + cells};
        at += cells + (plan->biased ? out : 0);
        in = out;
    }
    net->dimension = at;
    return REEF_OK;
}

static reef_status prepare(rfi_network *net, const rfi_network_plan *plan, reef_error *error)
{
    rfi_arena measure = {0};
    rfi_network_work work;
    if (plan->single && net->finite.data->classes != 2) {
        return rfi_fail(error, REEF_E_ARG, "%s distinguishes 2 classes, but the data have %td", plan->name,
                        net->finite.data->classes);
    }
    reef_status status = lay_layers(net, plan, error);
    if (status != REEF_OK) {
        return status;
    }
    rfi_network_lay_out(net, RFI_ROWS_MAX, &measure, &work);
    return measure.overflow ? rfi_fail(error, REEF_E_OVERFLOW, "%s: layers are too wide", plan->name) : REEF_OK;
}

reef_status rfi_network_create(const rfi_finite_params *params, const rfi_network_plan *plan,
                               const reef_problem_setup *setup, void **state, reef_error *error)
{
    rfi_network *net = rfi_allocate(setup->context, sizeof *net);
    if (!net) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %s", plan->name);
    }
    *net = (rfi_network){.biased = plan->biased, .activation = plan->activation, .seed = setup->seed};
    net->finite.context = setup->context;
    reef_status status = rfi_finite_init(&net->finite, plan->name, params, setup, error);
    if (status == REEF_OK) {
        status = prepare(net, plan, error);
    }
    if (status == REEF_OK) {
        status = rfi_blas_load(error);
    }
    if (status != REEF_OK) {
        rfi_network_destroy(net);
        return status;
    }
    *state = net;
    return REEF_OK;
}

void rfi_network_destroy(void *state)
{
    rfi_network *net = state;
    rfi_finite_clear(&net->finite);
    rfi_release(net->finite.context, net);
}

ptrdiff_t rfi_network_dimension(const void *state)
{
    return ((const rfi_network *)state)->dimension;
}

ptrdiff_t rfi_network_samples(const void *state, ptrdiff_t agent)
{
    const rfi_partition *partition = ((const rfi_network *)state)->finite.partition;
    return partition->start[agent + 1] - partition->start[agent];
}

size_t rfi_network_work_size(const void *state, ptrdiff_t size, ptrdiff_t lanes)
{
    rfi_arena measure = {0};
    rfi_network_work work;
    (void)lanes;
    rfi_network_lay_out(state, size >= 1 && size < RFI_ROWS_MAX ? size : RFI_ROWS_MAX, &measure, &work);
    return (size_t)measure.used;
}

/* Weights of variance 2 / in before relu (He et al. 2015), 2 / (in + out) before tanh (Glorot and Bengio 2010); biases 0. */
void rfi_network_start(const void *state, ptrdiff_t lanes, ptrdiff_t repetition, float *model)
{
    const rfi_network *net = state;
    const uint32_t which = (uint32_t)repetition;
    (void)lanes;
    for (ptrdiff_t l = 0; l < net->depth; l++) {
        const rfi_layer *layer = &net->layers[l];
        const uint32_t number = (uint32_t)l;
        const ptrdiff_t cells = layer->in * layer->out;
        const double fan = net->activation == RFI_RELU ? (double)layer->in : (double)(layer->in + layer->out);
        const float deviation = (float)sqrt(2 / fan);
        rfi_normal_stream stream = rfi_normal_open(net->seed, RFI_PURPOSE_START, 0, 0);
        rfi_lanes_find()->normals(&stream, &number, &which, 1, 0, cells, model + layer->weights);
        for (ptrdiff_t i = 0; i < cells; i++) {
            model[layer->weights + i] *= deviation;
        }
        memset(model + layer->biases, 0, (net->biased ? (size_t)layer->out : 0) * sizeof *model);
    }
}

/* ---- loss ---- */

/* One output z: loss log(1 + exp(-z)) for class 1, log(1 + exp(z)) for class 0; slope p - y. Returns the loss. */
static double logistic_loss(float z, int32_t label, float scale, float *slope)
{
    const double x = (double)z;
    const double small = exp(-fabs(x)); /* no overflow for either sign */
    const double p = x >= 0 ? 1 / (1 + small) : small / (1 + small);
    *slope = scale * (float)(p - label);
    return log1p(small) + (label ? fmax(-x, 0) : fmax(x, 0));
}

/* slope = scale (softmax(z) - e_label); returns -log p_label. */
static double softmax_loss(const float *z, ptrdiff_t classes, int32_t label, float scale, float *slope)
{
    float top = z[0];
    for (ptrdiff_t c = 1; c < classes; c++) {
        top = z[c] > top ? z[c] : top;
    }
    slope[0] = expf(z[0] - top);
    float sum = slope[0];
    for (ptrdiff_t c = 1; c < classes; c++) {
        slope[c] = expf(z[c] - top);
        sum += slope[c];
    }
    for (ptrdiff_t c = 0; c < classes; c++) {
        slope[c] *= scale / sum;
    }
    slope[label] -= scale;
    return log((double)sum) - ((double)z[label] - (double)top);
}

/* Slopes of all rows, times scale; returns the sum of the losses. */
static double all_losses(const rfi_network *net, float scale, rfi_network_work *work)
{
    const ptrdiff_t width = net->layers[net->depth - 1].out;
    const float *z = work->values[net->depth];
    float *slope = work->slopes[0];
    double sum = 0;
    for (ptrdiff_t i = 0; i < work->rows; i++) {
        sum += width == 1 ? logistic_loss(z[i], work->labels[i], scale, &slope[i])
                          : softmax_loss(z + i * width, width, work->labels[i], scale, slope + i * width);
    }
    return sum;
}

/* ---- gradients ---- */

static void gradient_of(const rfi_network *net, const rfi_minibatch *batch, bool flipped, const float *model,
                        float *gradient, ptrdiff_t room, rfi_network_work *work)
{
    const ptrdiff_t count = rfi_minibatch_count(&net->finite, batch);
    const float scale = 1 / (float)count;
    assert(count >= 1 && room >= 1 && room <= RFI_ROWS_MAX);
    for (ptrdiff_t from = 0; from < count; from += room) {
        work->rows = count - from < room ? count - from : room;
        rfi_minibatch_draw(&net->finite, batch, from, work->rows, work->index);
        rfi_network_fetch(net, flipped, work);
        rfi_network_forward(net, model, work);
        (void)all_losses(net, scale, work);
        rfi_network_backward(net, model, from > 0, gradient, work);
    }
    const float l2 = (float)net->finite.l2;
    for (ptrdiff_t m = 0; l2 > 0 && m < net->dimension; m++) {
        gradient[m] += l2 * model[m];
    }
}

void rfi_network_gradients(const void *state, const reef_batch *batch)
{
    const rfi_network *net = state;
    const ptrdiff_t room = batch->size >= 1 && batch->size < RFI_ROWS_MAX ? batch->size : RFI_ROWS_MAX;
    rfi_arena arena = {.base = batch->work};
    rfi_network_work work;
    rfi_network_lay_out(net, room, &arena, &work);
    for (ptrdiff_t a = 0; a < batch->count; a++) {
        const rfi_minibatch own = {.agent = batch->agents[a],
                                   .round = batch->round,
                                   .step = batch->step,
                                   .repetition = batch->repetition,
                                   .size = batch->size};
        const bool flipped = batch->flipped && batch->flipped[a];
        gradient_of(net, &own, flipped, batch->models[a], batch->gradients[a], room, &work);
    }
}

/* ---- score ---- */

static int32_t decide(const float *z, ptrdiff_t width)
{
    int32_t best = 0;
    if (width == 1) {
        return z[0] > 0;
    }
    for (ptrdiff_t c = 1; c < width; c++) {
        best = z[c] > z[best] ? (int32_t)c : best;
    }
    return best;
}

static void count_hits(const rfi_network *net, rfi_network_work *work)
{
    const ptrdiff_t width = net->layers[net->depth - 1].out;
    for (ptrdiff_t i = 0; i < work->rows; i++) {
        ptrdiff_t *hits = work->hits + 2 * work->labels[i];
        hits[0] += decide(work->values[net->depth] + i * width, width) == work->labels[i];
        hits[1]++;
    }
}

static void sum_up(const ptrdiff_t *hits, ptrdiff_t classes, reef_score *score)
{
    ptrdiff_t right = 0;
    ptrdiff_t all = 0;
    score->worst_accuracy = 1;
    for (ptrdiff_t c = 0; c < classes; c++) {
        right += hits[2 * c];
        all += hits[2 * c + 1];
        if (hits[2 * c + 1] > 0) {
            score->worst_accuracy = fmin(score->worst_accuracy, (double)hits[2 * c] / (double)hits[2 * c + 1]);
        }
    }
    assert(all >= 1 && right <= all);
    score->accuracy = (double)right / (double)all;
}

void rfi_network_score(const void *state, const float *model, reef_score *score, void *memory)
{
    const rfi_network *net = state;
    const rfi_dataset *data = net->finite.data;
    const ptrdiff_t first = data->train < data->count ? data->train : 0; /* no test samples: the training ones */
    rfi_arena arena = {.base = memory};
    rfi_network_work work;
    rfi_network_lay_out(net, RFI_ROWS_MAX, &arena, &work);
    memset(work.hits, 0, 2 * (size_t)data->classes * sizeof *work.hits);
    double loss = 0;
    for (ptrdiff_t from = first; from < data->count; from += RFI_ROWS_MAX) {
        work.rows = data->count - from < RFI_ROWS_MAX ? data->count - from : RFI_ROWS_MAX;
        for (ptrdiff_t i = 0; i < work.rows; i++) {
            work.index[i] = from + i;
        }
        rfi_network_fetch(net, false, &work);
        rfi_network_forward(net, model, &work);
        loss += all_losses(net, 1, &work);
        count_hits(net, &work);
    }
    score->loss = loss / (double)(data->count - first);
    sum_up(work.hits, data->classes, score);
}
