/* A model of several segments with K rows, larger than a trial: for plans and streams. */
#ifndef TESTS_SUPPORT_MODEL_H
#define TESTS_SUPPORT_MODEL_H

#include <reef/reef.h>

enum { MODEL_ROWS = 64, MODEL_SEGMENTS = 8 };

typedef struct model {
    reef_shape shape;
    ptrdiff_t lengths[MODEL_SEGMENTS];
    ptrdiff_t total;
    size_t width;                        /* bytes per number */
    unsigned char *data[MODEL_SEGMENTS]; /* K rows, one after the other */
    unsigned char *out[MODEL_SEGMENTS];
    const void *pointers[MODEL_SEGMENTS][MODEL_ROWS];
    const void *const *rows[MODEL_SEGMENTS];
    void *outs[MODEL_SEGMENTS];
} model;

/* Standard normal rows; `workers` as in reef_shape. */
void model_create(model *d, ptrdiff_t rows, ptrdiff_t segments, const ptrdiff_t *lengths, reef_dtype dtype,
                  ptrdiff_t workers, uint32_t seed);
void model_destroy(model *d);
/* Other numbers in the same places. */
void model_refill(model *d, uint32_t seed);
double model_get(const model *d, ptrdiff_t segment, ptrdiff_t row, ptrdiff_t m);
void model_set(model *d, ptrdiff_t segment, ptrdiff_t row, ptrdiff_t m, double value);
/* All of out, segments end to end, as the bytes it is made of: total * width. */
void model_take_out(const model *d, void *bytes);
/* Overwrites out with a pattern. */
void model_clear_out(model *d);

#endif
