/* Data sets for learning: N samples of D features, with a class or a target each, the first of them for training and the
 * rest for testing.
 *
 * A data set is named by a spec `source:key=value,...` (docs/data.md); source_list.h has the sources. Besides its own fields,
 * every source takes test, seed, task, scale, standardise and bias.
 */
#ifndef RFI_PROBLEM_DATASET_H
#define RFI_PROBLEM_DATASET_H

#include "base/spec.h"

#include <stdint.h>

typedef struct rfi_dataset {
    const reef_context *context;
    ptrdiff_t count; /* N */
    ptrdiff_t train; /* samples 0..train-1 are for training, train >= 1 */
    ptrdiff_t width; /* D, with the bias feature if there is one (the last, always 1) */
    float *features; /* N x D, contiguous, all finite */

    /* Classification: classes >= 1, labels[i] in 0..classes-1, targets NULL. Regression: classes 0, labels NULL. */
    ptrdiff_t classes;
    int32_t *labels;
    double *class_values; /* the label in the source of each class, ascending */
    float *targets;
} rfi_dataset;

reef_status rfi_dataset_create(const reef_context *context, const char *spec, rfi_dataset **dataset, reef_error *error);
/* Accepts NULL, sets the pointer to NULL. */
void rfi_dataset_destroy(rfi_dataset **dataset);

/* The sources, and the fields that all of them take. */
extern const rfi_family rfi_family_source;

#endif
