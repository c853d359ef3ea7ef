/* Models in memory. */
#include "support/model.h"

#include "num/rng.h"
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

void model_set(model *d, ptrdiff_t segment, ptrdiff_t row, ptrdiff_t m, double value)
{
    unsigned char *place = d->data[segment] + (size_t)(row * d->lengths[segment] + m) * d->width;
    float narrow = (float)value;
    memcpy(place, d->shape.dtype == REEF_F32 ? (const void *)&narrow : (const void *)&value, d->width);
}

double model_get(const model *d, ptrdiff_t segment, ptrdiff_t row, ptrdiff_t m)
{
    const unsigned char *place = d->data[segment] + (size_t)(row * d->lengths[segment] + m) * d->width;
    float narrow;
    double wide;
    if (d->shape.dtype == REEF_F32) {
        memcpy(&narrow, place, sizeof narrow);
        return (double)narrow;
    }
    memcpy(&wide, place, sizeof wide);
    return wide;
}

void model_refill(model *d, uint32_t seed)
{
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 0x6d6f6465, 0, 0, 0);
    for (ptrdiff_t s = 0; s < d->shape.segments; s++) {
        for (ptrdiff_t l = 0; l < d->shape.rows; l++) {
            for (ptrdiff_t m = 0; m < d->lengths[s]; m++) {
                /* the sum of three uniforms is near enough to normal and quick */
                double u = rfi_rng_u32(&rng) * 0x1p-32 + rfi_rng_u32(&rng) * 0x1p-32 + rfi_rng_u32(&rng) * 0x1p-32;
                model_set(d, s, l, m, 2 * u - 3);
            }
        }
    }
}

void model_create(model *d, ptrdiff_t rows, ptrdiff_t segments, const ptrdiff_t *lengths, reef_dtype dtype,
                  ptrdiff_t workers, uint32_t seed)
{
    assert_true(rows <= MODEL_ROWS && segments <= MODEL_SEGMENTS);
    *d = (model){.width = dtype == REEF_F32 ? sizeof(float) : sizeof(double)};
    d->shape = (reef_shape){.rows = rows, .segments = segments, .dtype = dtype, .workers = workers};
    for (ptrdiff_t s = 0; s < segments; s++) {
        size_t bytes = (size_t)lengths[s] * d->width;
        d->lengths[s] = lengths[s];
        d->total += lengths[s];
        d->data[s] = malloc((size_t)rows * bytes);
        d->out[s] = malloc(bytes);
        assert_true(d->data[s] && d->out[s]);
        for (ptrdiff_t l = 0; l < rows; l++) {
            d->pointers[s][l] = d->data[s] + (size_t)l * bytes;
        }
        d->rows[s] = d->pointers[s];
        d->outs[s] = d->out[s];
    }
    d->shape.lengths = d->lengths;
    model_refill(d, seed);
    model_clear_out(d);
}

void model_destroy(model *d)
{
    for (ptrdiff_t s = 0; s < d->shape.segments; s++) {
        free(d->data[s]);
        free(d->out[s]);
    }
    *d = (model){0};
}

void model_take_out(const model *d, void *bytes)
{
    unsigned char *to = bytes;
    for (ptrdiff_t s = 0; s < d->shape.segments; s++) {
        size_t length = (size_t)d->lengths[s] * d->width;
        memcpy(to, d->out[s], length);
        to += length;
    }
}

void model_clear_out(model *d)
{
    for (ptrdiff_t s = 0; s < d->shape.segments; s++) {
        memset(d->out[s], 0x77, (size_t)d->lengths[s] * d->width);
    }
}
