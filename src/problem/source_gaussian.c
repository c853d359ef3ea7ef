/* gaussian: synthetic classes. Sample i belongs to class c = i mod C and is x = mu_c + z, z ~ N(0, I) in D dimensions, with
 * centres mu_c ~ N(0, separation^2 / (2 D) I): two centres are `separation` standard deviations apart (root mean square).
 * Each centre and each sample has its own stream of random numbers. */
#include "num/rng.h"
#include "problem/source.h"

#include <math.h>

typedef struct gaussian_params {
    int64_t dimension;
    int64_t classes;
    int64_t samples;
    double separation;
} gaussian_params;

static const reef_field gaussian_fields[] = {
    {.name = "dimension",
     .type = REEF_FIELD_INT,
     .offset = offsetof(gaussian_params, dimension),
     .preset = "20",
     .min = 1,
     .max = 1e6,
     .unit = "features",
     .help = "length of a sample"},
    {.name = "classes",
     .type = REEF_FIELD_INT,
     .offset = offsetof(gaussian_params, classes),
     .preset = "10",
     .min = 2,
     .max = 1e4,
     .unit = "",
     .help = "number of classes, of equal size"},
    {.name = "samples",
     .type = REEF_FIELD_INT,
     .offset = offsetof(gaussian_params, samples),
     .preset = "2000",
     .min = 2,
     .max = 1e8,
     .unit = "",
     .help = "number of samples, for training and testing together"},
    {.name = "separation",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(gaussian_params, separation),
     .preset = "4",
     .min = 0,
     .max = 1e6,
     .unit = "standard deviations",
     .help = "distance between the centres of two classes (root mean square)"},
};

static void make_sample(const gaussian_params *p, uint64_t seed, ptrdiff_t i, float *x)
{
    rfi_rng centre;
    rfi_rng noise;
    double spread = p->separation / sqrt(2.0 * (double)p->dimension);
    rfi_rng_init(&centre, seed, RFI_PURPOSE_CENTRE, (uint32_t)(i % p->classes), 0, 0);
    rfi_rng_init(&noise, seed, RFI_PURPOSE_SAMPLE, (uint32_t)i, 0, 0);
    for (ptrdiff_t j = 0; j < p->dimension; j++) {
        x[j] = (float)(spread * rfi_rng_normal(&centre) + rfi_rng_normal(&noise));
    }
}

static reef_status gaussian_load(const reef_context *context, const void *params, uint64_t seed, rfi_loaded *loaded,
                                 reef_error *error)
{
    const gaussian_params *p = params;
    rfi_samples *samples = &loaded->train;
    reef_status status =
        rfi_samples_create(context, (ptrdiff_t)p->samples, (ptrdiff_t)p->dimension, "gaussian", samples, error);
    for (ptrdiff_t i = 0; status == REEF_OK && i < samples->count; i++) {
        samples->labels[i] = (double)(i % p->classes);
        make_sample(p, seed, i, samples->features + i * samples->width);
    }
    return status;
}

const rfi_source rfi_source_gaussian = {
    .kind =
        {
            .name = "gaussian",
            .summary = "synthetic classes with Gaussian noise",
            .citation = "",
            .fields = gaussian_fields,
            .field_count = RFI_COUNT(gaussian_fields),
            .params_size = sizeof(gaussian_params),
        },
    .load = gaussian_load,
};
