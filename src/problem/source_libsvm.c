/* libsvm: sparse text, made dense. */
#include "io/libsvm.h"

#include "base/error.h"
#include "problem/source.h"

typedef struct libsvm_params {
    char path[REEF_TEXT_SIZE];
    char test_path[REEF_TEXT_SIZE];
    int64_t features;
} libsvm_params;

static const char *const feature_words[] = {"auto", NULL};

static const reef_field libsvm_fields[] = {
    {.name = "path",
     .type = REEF_FIELD_TEXT,
     .offset = offsetof(libsvm_params, path),
     .preset = "",
     .unit = "",
     .help = "the file, one sample per line"},
    {.name = "test_path",
     .type = REEF_FIELD_TEXT,
     .offset = offsetof(libsvm_params, test_path),
     .preset = "",
     .unit = "",
     .help = "samples for testing; without it a share of the samples is taken"},
    {.name = "features",
     .type = REEF_FIELD_INT,
     .offset = offsetof(libsvm_params, features),
     .preset = "auto",
     .min = 1,
     .max = 1073741824,
     .unit = "",
     .help = "number of features; auto: the largest index found",
     .words = feature_words},
};

/* Reads a file with at least `width` columns. */
static reef_status load_one(const reef_context *context, const char *path, ptrdiff_t width, rfi_samples *samples,
                            reef_error *error)
{
    rfi_file file = {0};
    rfi_libsvm data = {0};
    reef_status status = rfi_file_read(context, path, RFI_DATA_BYTES_MAX, &file, error);
    if (status == REEF_OK) {
        status = rfi_libsvm_read(context, file.bytes, file.size, path, width, RFI_DATA_VALUES_MAX, &data, error);
    }
    rfi_file_free(context, &file);
    *samples = (rfi_samples){data.rows, data.columns, data.values, data.labels};
    if (status == REEF_OK && data.columns == 0) {
        status = rfi_fail(error, REEF_E_FORMAT, "%s: the file has labels but no features", rfi_path_show(path));
    }
    return status;
}

static reef_status check_width(const libsvm_params *p, const rfi_loaded *loaded, reef_error *error)
{
    ptrdiff_t width = loaded->train.width > loaded->test.width ? loaded->train.width : loaded->test.width;
    if (p->features > 0 && width > p->features) {
        return rfi_fail(error, REEF_E_RANGE, "libsvm: there is an index %td, with features = %td", width,
                        (ptrdiff_t)p->features);
    }
    return REEF_OK;
}

static reef_status libsvm_load(const reef_context *context, const void *params, uint64_t seed, rfi_loaded *loaded,
                               reef_error *error)
{
    const libsvm_params *p = params;
    ptrdiff_t width = p->features > 0 ? (ptrdiff_t)p->features : 0;
    (void)seed;
    reef_status status = rfi_need_path("libsvm", "path", p->path, error);
    if (status == REEF_OK) {
        status = load_one(context, p->path, width, &loaded->train, error);
    }
    if (status == REEF_OK && p->test_path[0]) {
        status = load_one(context, p->test_path, loaded->train.width, &loaded->test, error);
    }
    if (status == REEF_OK && loaded->test.width > loaded->train.width) { /* features that only the test file has */
        rfi_samples_free(context, &loaded->train);
        status = load_one(context, p->path, loaded->test.width, &loaded->train, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    return check_width(p, loaded, error);
}

const rfi_source rfi_source_libsvm = {
    .kind =
        {
            .name = "libsvm",
            .summary = "sparse text, label index:value ..., made dense",
            .citation = "Chang and Lin, LIBSVM: a library for support vector machines, ACM TIST 2 (2011)",
            .fields = libsvm_fields,
            .field_count = RFI_COUNT(libsvm_fields),
            .params_size = sizeof(libsvm_params),
        },
    .load = libsvm_load,
};
