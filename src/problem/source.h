/* Data sources: where samples come from. One source = one file source_name.c and one line in source_list.h. */
#ifndef RFI_PROBLEM_SOURCE_H
#define RFI_PROBLEM_SOURCE_H

#include "io/array.h"
#include "io/file.h"
#include "base/spec.h"

#include <stdint.h>

/* Largest file read, in bytes, and largest matrix of features, in values. */
#define RFI_DATA_BYTES_MAX ((size_t)1 << 31)
#define RFI_DATA_VALUES_MAX ((ptrdiff_t)1 << 29)

/* Samples as a source has them, from the context's allocator. */
typedef struct rfi_samples {
    ptrdiff_t count, width;
    float *features; /* count x width */
    double *labels;  /* count: class numbers or targets */
} rfi_samples;

/* Allocates both arrays, count and width >= 1; `name` is for messages. On failure *samples is cleared. */
reef_status rfi_samples_create(const reef_context *context, ptrdiff_t count, ptrdiff_t width, const char *name,
                               rfi_samples *samples, reef_error *error);
void rfi_samples_free(const reef_context *context, rfi_samples *samples);

/* What a source hands over. */
typedef struct rfi_loaded {
    rfi_samples train;
    rfi_samples test; /* cleared unless the source was given test files */
    double scale;     /* brings features to 0..1 where that is the custom (images), else 1 */
} rfi_loaded;

typedef struct rfi_source {
    reef_kind kind;
    /* Fills *loaded, which comes cleared with scale 1. What was stored in it before a failure is freed by the caller. */
    reef_status (*load)(const reef_context *context, const void *params, uint64_t seed, rfi_loaded *loaded,
                        reef_error *error);
} rfi_source;

/* The built-in sources. */
#define RFI_SOURCE(name) extern const rfi_source rfi_source_##name;
#include "problem/source_list.h"
#undef RFI_SOURCE

/* A reader of arrays: npy or idx. */
typedef reef_status rfi_array_reader(const void *bytes, size_t size, const char *name, rfi_array *array,
                                     reef_error *error);
/* Samples from a file of features (first index: sample) and a file of labels (one dimension, or further ones of 1). *type
 * (or NULL) becomes the type of the features. */
reef_status rfi_samples_from_arrays(const reef_context *context, const char *features, const char *labels,
                                    rfi_array_reader *read, rfi_type *type, rfi_samples *samples, reef_error *error);

/* Parameters of a source that reads such files: features and labels, then the same for testing or "". */
typedef struct rfi_array_files {
    char path[4][REEF_TEXT_SIZE];
} rfi_array_files;
/* The field for path number i. */
#define RFI_ARRAY_FIELD(i, key, text)                                                                                  \
    {                                                                                                                  \
        .name = (key), .type = REEF_FIELD_TEXT, .offset = offsetof(rfi_array_files, path[i]), .preset = "",            \
        .unit = "", .help = (text)                                                                                     \
    }
/* Loads them; `kind` gives the names for messages. *type becomes the type of the features. */
reef_status rfi_load_arrays(const reef_context *context, const reef_kind *kind, const rfi_array_files *files,
                            rfi_array_reader *read, rfi_type *type, rfi_loaded *loaded, reef_error *error);

/* "owner needs key=FILE" if the path is empty. */
reef_status rfi_need_path(const char *owner, const char *key, const char *path, reef_error *error);

#endif
