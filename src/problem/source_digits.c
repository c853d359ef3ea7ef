/* digits: the shipped set, 1797 images of 8 x 8 pixels of 0 to 16 (data/README.md). It is looked for in $REEF_DATA if that is
 * set; otherwise where `make install` puts it, then in the source tree from which this library was built. */
#include "base/error.h"
#include "io/npy.h"
#include "problem/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* False if the path does not fit. */
static bool join(const char *folder, const char *name, char path[REEF_TEXT_SIZE])
{
    int length = snprintf(path, REEF_TEXT_SIZE, "%s/%s", folder, name);
    return length > 0 && length < REEF_TEXT_SIZE;
}

static const char *data_folder(void)
{
    const char *chosen = getenv("REEF_DATA");
    if (chosen && chosen[0]) {
        return chosen;
    }
    return access(REEF_DATA_INSTALLED "/digits.npy", R_OK) == 0 ? REEF_DATA_INSTALLED : REEF_DATA_SOURCE;
}

static reef_status digits_load(const reef_context *context, const void *params, uint64_t seed, rfi_loaded *loaded,
                               reef_error *error)
{
    char images[REEF_TEXT_SIZE];
    char labels[REEF_TEXT_SIZE];
    const char *folder = data_folder();
    (void)params;
    (void)seed;
    if (!join(folder, "digits.npy", images) || !join(folder, "digits_labels.npy", labels)) {
        return rfi_fail(error, REEF_E_ARG, "digits: the path in REEF_DATA is too long");
    }
    if (access(images, R_OK) != 0) {
        return rfi_fail(error, REEF_E_FILE, "digits: %s was not found; set REEF_DATA to the folder that has digits.npy",
                        rfi_path_show(images));
    }
    loaded->scale = 1.0 / 16;
    return rfi_samples_from_arrays(context, images, labels, rfi_npy_read, NULL, &loaded->train, error);
}

const rfi_source rfi_source_digits = {
    .kind =
        {
            .name = "digits",
            .summary = "1797 handwritten digits of 8 x 8 pixels, shipped with Reef",
            .citation =
                "Alpaydin and Kaynak, Cascading classifiers, Kybernetika 34 (1998); UCI Machine Learning Repository",
        },
    .load = digits_load,
};
