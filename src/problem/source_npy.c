/* npy: features and labels from two files of NumPy. */
#include "io/npy.h"
#include "problem/source.h"

static const reef_field npy_fields[] = {
    RFI_ARRAY_FIELD(0, "features", "file with one sample per first index; further dimensions are flattened"),
    RFI_ARRAY_FIELD(1, "labels", "file with one label per sample"),
    RFI_ARRAY_FIELD(2, "test_features", "features for testing; without them a share of the samples is taken"),
    RFI_ARRAY_FIELD(3, "test_labels", "labels for testing"),
};

static reef_status npy_load(const reef_context *context, const void *params, uint64_t seed, rfi_loaded *loaded,
                            reef_error *error)
{
    rfi_type type;
    (void)seed;
    return rfi_load_arrays(context, &rfi_source_npy.kind, params, rfi_npy_read, &type, loaded, error);
}

const rfi_source rfi_source_npy = {
    .kind =
        {
            .name = "npy",
            .summary = "features and labels from .npy files",
            .citation = "",
            .fields = npy_fields,
            .field_count = RFI_COUNT(npy_fields),
            .params_size = sizeof(rfi_array_files),
        },
    .load = npy_load,
};
