/* Through the layers and back: products by BLAS, activations and their derivatives. */
#include "num/blas.h"
#include "problem/network.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void rfi_network_lay_out(const rfi_network *net, ptrdiff_t room, rfi_arena *arena, rfi_network_work *work)
{
    ptrdiff_t widest = 0;
    work->values[0] = rfi_arena_take(arena, room, net->layers[0].in, sizeof(float));
    for (ptrdiff_t l = 0; l < net->depth; l++) {
        const ptrdiff_t out = net->layers[l].out;
        work->values[l + 1] = rfi_arena_take(arena, room, out, sizeof(float));
        widest = widest < out ? out : widest;
    }
    for (int i = 0; i < 2; i++) {
        work->slopes[i] = rfi_arena_take(arena, room, widest, sizeof(float));
    }
    work->index = rfi_arena_take(arena, room, 1, sizeof *work->index);
    work->labels = rfi_arena_take(arena, room, 1, sizeof *work->labels);
    work->hits = rfi_arena_take(arena, net->finite.data->classes, 2, sizeof *work->hits);
}

void rfi_network_fetch(const rfi_network *net, bool flipped, rfi_network_work *work)
{
    const rfi_dataset *data = net->finite.data;
    const int32_t last = (int32_t)data->classes - 1;
    for (ptrdiff_t i = 0; i < work->rows; i++) {
        const ptrdiff_t from = work->index[i];
        memcpy(work->values[0] + i * data->width, data->features + from * data->width,
               (size_t)data->width * sizeof(float));
        work->labels[i] = flipped ? last - data->labels[from] : data->labels[from];
        assert(work->labels[i] >= 0 && work->labels[i] <= last);
    }
}

/* values[l + 1] begins as the biases, one row like the other. */
static void spread_biases(const rfi_network *net, const rfi_layer *layer, const float *model, ptrdiff_t rows, float *to)
{
    for (ptrdiff_t i = 0; net->biased && i < rows; i++) {
        memcpy(to + i * layer->out, model + layer->biases, (size_t)layer->out * sizeof *to);
    }
}

static void activate(int kind, ptrdiff_t count, float *z)
{
    for (ptrdiff_t i = 0; kind == RFI_RELU && i < count; i++) {
        z[i] = z[i] > 0 ? z[i] : 0;
    }
    for (ptrdiff_t i = 0; kind == RFI_TANH && i < count; i++) {
        z[i] = tanhf(z[i]);
    }
}

/* slope *= h'(z), from a = h(z). */
static void deactivate(int kind, ptrdiff_t count, const float *a, float *slope)
{
    for (ptrdiff_t i = 0; kind == RFI_RELU && i < count; i++) {
        slope[i] = a[i] > 0 ? slope[i] : 0;
    }
    for (ptrdiff_t i = 0; kind == RFI_TANH && i < count; i++) {
        slope[i] *= 1 - a[i] * a[i];
    }
}

void rfi_network_forward(const rfi_network *net, const float *model, rfi_network_work *work)
{
    for (ptrdiff_t l = 0; l < net->depth; l++) {
        const rfi_layer *layer = &net->layers[l];
        float *z = work->values[l + 1];
        spread_biases(net, layer, model, work->rows, z);
        rfi_sgemm(false, true, work->rows, layer->out, layer->in, 1, work->values[l], layer->in, model + layer->weights,
                  layer->in, net->biased ? 1 : 0, z, layer->out);
        if (l + 1 < net->depth) {
            activate(net->activation, work->rows * layer->out, z);
        }
    }
}

static void sum_columns(const float *slope, ptrdiff_t rows, ptrdiff_t width, bool add, float *sum)
{
    for (ptrdiff_t j = 0; !add && j < width; j++) {
        sum[j] = 0;
    }
    for (ptrdiff_t i = 0; i < rows; i++) {
        for (ptrdiff_t j = 0; j < width; j++) {
            sum[j] += slope[i * width + j];
        }
    }
}

void rfi_network_backward(const rfi_network *net, const float *model, bool add, float *gradient, rfi_network_work *work)
{
    float *slope = work->slopes[0];
    float *below = work->slopes[1];
    for (ptrdiff_t l = net->depth - 1; l >= 0; l--) {
        const rfi_layer *layer = &net->layers[l];
        rfi_sgemm(true, false, layer->out, layer->in, work->rows, 1, slope, layer->out, work->values[l], layer->in,
                  add ? 1 : 0, gradient + layer->weights, layer->in);
        if (net->biased) {
            sum_columns(slope, work->rows, layer->out, add, gradient + layer->biases);
        }
        if (l > 0) {
            rfi_sgemm(false, false, work->rows, layer->in, layer->out, 1, slope, layer->out, model + layer->weights,
                      layer->in, 0, below, layer->in);
            deactivate(net->activation, work->rows * layer->in, work->values[l], below);
            float *other = slope;
            slope = below;
            below = other;
        }
    }
}
