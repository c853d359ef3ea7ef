/* idx: images and labels from two files in the format of MNIST. Pixels of one byte are scaled to 0..1. */
#include "io/idx.h"
#include "problem/source.h"

static const reef_field idx_fields[] = {
    RFI_ARRAY_FIELD(0, "images", "file with one image per first index, unpacked"),
    RFI_ARRAY_FIELD(1, "labels", "file with one label per image"),
    RFI_ARRAY_FIELD(2, "test_images", "images for testing; without them a share of the images is taken"),
    RFI_ARRAY_FIELD(3, "test_labels", "labels for testing"),
};

static reef_status idx_load(const reef_context *context, const void *params, uint64_t seed, rfi_loaded *loaded,
                            reef_error *error)
{
    rfi_type type = RFI_F32;
    (void)seed;
    reef_status status = rfi_load_arrays(context, &rfi_source_idx.kind, params, rfi_idx_read, &type, loaded, error);
    loaded->scale = type == RFI_U8 ? 1.0 / 255 : 1;
    return status;
}

const rfi_source rfi_source_idx = {
    .kind =
        {
            .name = "idx",
            .summary = "images and labels from IDX files, the format of MNIST",
            .citation = "LeCun, Cortes and Burges, The MNIST database of handwritten digits",
            .fields = idx_fields,
            .field_count = RFI_COUNT(idx_fields),
            .params_size = sizeof(rfi_array_files),
        },
    .load = idx_load,
};
