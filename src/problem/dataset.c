/* Samples of a source -> data set:  load, split, labels, scale, standardise, bias.
 *
 *   source order      0 1 2 3 4 5 ...                       of the training file, then of the test file
 *   order[i]          the sample at place i of the set; within the training and the test part the source's order is kept
 */
#include "problem/dataset.h"

#include "base/error.h"
#include "base/memory.h"
#include "num/rng.h"
#include "problem/source.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TASK_CLASSIFICATION, TASK_REGRESSION };

typedef struct options {
    double test;
    int64_t seed;
    int task;
    double scale;
    bool standardise;
    bool bias;
} options;

static const char *const task_words[] = {"classification", "regression", NULL};
static const char *const scale_words[] = {"auto", NULL};

static const reef_field option_fields[] = {
    {.name = "test",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(options, test),
     .preset = "0.2",
     .min = 0,
     .max = 0.9,
     .unit = "share of the samples",
     .help = "share of the samples kept for testing, drawn at random; without effect if the source has test files"},
    {.name = "seed",
     .type = REEF_FIELD_INT,
     .offset = offsetof(options, seed),
     .preset = "1",
     .min = 0,
     .max = 9e15,
     .unit = "",
     .help = "seed of the random numbers that split or generate samples"},
    {.name = "task",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(options, task),
     .preset = "classification",
     .unit = "",
     .help = "whether labels are classes or real targets",
     .words = task_words},
    {.name = "scale",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(options, scale),
     .preset = "auto",
     .min = 1e-30,
     .max = 1e30,
     .unit = "",
     .help = "factor on all features; auto: pixels to 0..1, other features as they are",
     .words = scale_words},
    {.name = "standardise",
     .type = REEF_FIELD_BOOL,
     .offset = offsetof(options, standardise),
     .preset = "false",
     .unit = "",
     .help = "shift and scale every feature to mean 0 and variance 1 on the training samples"},
    {.name = "bias",
     .type = REEF_FIELD_BOOL,
     .offset = offsetof(options, bias),
     .preset = "false",
     .unit = "",
     .help = "append a feature that is always 1"},
};

static const reef_kind *const sources[] = {
#define RFI_SOURCE(name) &rfi_source_##name.kind,
#include "problem/source_list.h"
#undef RFI_SOURCE
};

const rfi_family rfi_family_source = {.number = REEF_FAMILY_SOURCE,
                                      .name = "source",
                                      .what = "data source",
                                      .builtin = sources,
                                      .builtin_count = RFI_COUNT(sources),
                                      .common = {"data set", option_fields, RFI_COUNT(option_fields)}};

/* ---- split ---- */

/* Which samples go where: order[N], the training ones first. False if there is no memory. */
static bool split(const reef_context *context, const options *o, ptrdiff_t count, ptrdiff_t *order, ptrdiff_t *train)
{
    rfi_rng rng;
    ptrdiff_t test = (ptrdiff_t)(o->test * (double)count + 0.5);
    test = test < count ? test : count - 1;
    ptrdiff_t *drawn = rfi_allocate(context, (size_t)count * sizeof *drawn);
    bool *is_test = rfi_allocate(context, (size_t)count * sizeof *is_test);
    *train = count - test;
    if (drawn && is_test) {
        rfi_rng_init(&rng, (uint64_t)o->seed, RFI_PURPOSE_SPLIT, 0, 0, 0);
        rfi_rng_permutation(&rng, drawn, count);
        for (ptrdiff_t i = 0; i < count; i++) {
            is_test[drawn[i]] = i < test;
        }
        ptrdiff_t next[2] = {0, *train};
        for (ptrdiff_t i = 0; i < count; i++) {
            order[next[is_test[i]]++] = i;
        }
    }
    bool good = drawn && is_test;
    rfi_release(context, drawn);
    rfi_release(context, is_test);
    return good;
}

/* ---- features ---- */

/* The sample of that number in the source, training file first. */
static const float *source_row(const rfi_loaded *loaded, ptrdiff_t i)
{
    const rfi_samples *from = i < loaded->train.count ? &loaded->train : &loaded->test;
    return from->features + (i < loaded->train.count ? i : i - loaded->train.count) * from->width;
}

static double source_label(const rfi_loaded *loaded, ptrdiff_t i)
{
    return i < loaded->train.count ? loaded->train.labels[i] : loaded->test.labels[i - loaded->train.count];
}

static reef_status fill_features(rfi_dataset *d, const rfi_loaded *loaded, const options *o, const ptrdiff_t *order,
                                 reef_error *error)
{
    double scale = isnan(o->scale) ? loaded->scale : o->scale;
    ptrdiff_t width = loaded->train.width;
    for (ptrdiff_t i = 0; i < d->count; i++) {
        const float *from = source_row(loaded, order[i]);
        float *row = d->features + i * d->width;
        for (ptrdiff_t j = 0; j < width; j++) {
            double value = scale * (double)from[j];
            if (!(fabs(value) <= (double)FLT_MAX)) {
                return rfi_fail(error, REEF_E_NONFINITE, "feature %td of sample %td (both from 0) is not finite", j,
                                order[i]);
            }
            row[j] = (float)value;
        }
        if (o->bias) {
            row[width] = 1;
        }
    }
    return REEF_OK;
}

/* Adds to sum[j] the features of the training samples, or the squares of their distance from mean. */
static void sum_training(const rfi_dataset *d, ptrdiff_t width, const double *mean, double *sum)
{
    memset(sum, 0, (size_t)width * sizeof *sum);
    for (ptrdiff_t i = 0; i < d->train; i++) {
        const float *row = d->features + i * d->width;
        for (ptrdiff_t j = 0; j < width; j++) {
            double off = mean ? (double)row[j] - mean[j] : 0;
            sum[j] += mean ? off * off : (double)row[j];
        }
    }
}

/* (x - mean) / deviation for the first `width` features, both over the training samples. A feature without variation only
 * loses its mean. False if there is no memory. */
static bool standardise(rfi_dataset *d, ptrdiff_t width)
{
    double *mean = rfi_allocate(d->context, 2 * (size_t)width * sizeof *mean);
    if (!mean) {
        return false;
    }
    double *divisor = mean + width;
    sum_training(d, width, NULL, mean);
    for (ptrdiff_t j = 0; j < width; j++) {
        mean[j] /= (double)d->train;
    }
    sum_training(d, width, mean, divisor);
    for (ptrdiff_t j = 0; j < width; j++) {
        double deviation = sqrt(divisor[j] / (double)d->train);
        divisor[j] = deviation > 1e-6 * fabs(mean[j]) ? deviation : 1;
    }
    for (ptrdiff_t i = 0; i < d->count; i++) {
        float *row = d->features + i * d->width;
        for (ptrdiff_t j = 0; j < width; j++) {
            double value = ((double)row[j] - mean[j]) / divisor[j];
            row[j] = (float)fmax(-(double)FLT_MAX, fmin((double)FLT_MAX, value));
        }
    }
    rfi_release(d->context, mean);
    return true;
}

/* ---- labels ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static reef_status check_label(double label, ptrdiff_t i, reef_error *error)
{
    if (label != floor(label) || !(fabs(label) <= 2147483647.0)) {
        return rfi_fail(
            error, REEF_E_FORMAT,
            "the label %g of sample %td (from 0) is not a class number; for real targets set task=regression", label,
            i);
    }
    return REEF_OK;
}

static reef_status fill_labels(rfi_dataset *d, const rfi_loaded *loaded, const ptrdiff_t *order, reef_error *error)
{
    for (ptrdiff_t i = 0; i < d->count; i++) {
        d->class_values[i] = source_label(loaded, i);
        reef_status status = check_label(d->class_values[i], i, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    qsort(d->class_values, (size_t)d->count, sizeof *d->class_values, compare);
    for (ptrdiff_t i = 0; i < d->count; i++) {
        if (i == 0 || d->class_values[i] != d->class_values[d->classes - 1]) {
            d->class_values[d->classes++] = d->class_values[i];
        }
    }
    for (ptrdiff_t i = 0; i < d->count; i++) {
        double label = source_label(loaded, order[i]);
        const double *at = bsearch(&label, d->class_values, (size_t)d->classes, sizeof label, compare);
        d->labels[i] = (int32_t)(at - d->class_values);
    }
    return REEF_OK;
}

static reef_status fill_targets(rfi_dataset *d, const rfi_loaded *loaded, const ptrdiff_t *order, reef_error *error)
{
    for (ptrdiff_t i = 0; i < d->count; i++) {
        double target = source_label(loaded, order[i]);
        if (!(fabs(target) <= (double)FLT_MAX)) {
            return rfi_fail(error, REEF_E_NONFINITE, "the target of sample %td (from 0) is not finite", order[i]);
        }
        d->targets[i] = (float)target;
    }
    return REEF_OK;
}

/* ---- all of it ---- */

static bool allocate(rfi_dataset *d, const options *o)
{
    const reef_context *context = d->context;
    size_t count = (size_t)d->count;
    bool classes = o->task == TASK_CLASSIFICATION;
    d->features = rfi_allocate(context, count * (size_t)d->width * sizeof *d->features);
    d->labels = classes ? rfi_allocate(context, count * sizeof *d->labels) : NULL;
    d->class_values = classes ? rfi_allocate(context, count * sizeof *d->class_values) : NULL;
    d->targets = classes ? NULL : rfi_allocate(context, count * sizeof *d->targets);
    return d->features && (classes ? d->labels && d->class_values : d->targets != NULL);
}

static reef_status fill(rfi_dataset *d, const rfi_loaded *loaded, const options *o, ptrdiff_t *order, reef_error *error)
{
    if (loaded->test.count > 0) {
        for (ptrdiff_t i = 0; i < d->count; i++) {
            order[i] = i;
        }
        d->train = loaded->train.count;
    } else if (!split(d->context, o, d->count, order, &d->train)) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory to split %td samples", d->count);
    }
    reef_status status = fill_features(d, loaded, o, order, error);
    if (status == REEF_OK) {
        status = d->labels ? fill_labels(d, loaded, order, error) : fill_targets(d, loaded, order, error);
    }
    if (status == REEF_OK && o->standardise && !standardise(d, loaded->train.width)) {
        status = rfi_fail(error, REEF_E_NOMEM, "not enough memory to standardise %td features", loaded->train.width);
    }
    return status;
}

static reef_status assemble(rfi_dataset *d, const rfi_loaded *loaded, const options *o, reef_error *error)
{
    ptrdiff_t values = 0;
    d->count = loaded->train.count + loaded->test.count;
    d->width = loaded->train.width + (o->bias ? 1 : 0);
    if (loaded->test.count > 0 && loaded->test.width != loaded->train.width) {
        return rfi_fail(error, REEF_E_FORMAT, "training samples have %td features, test samples %td",
                        loaded->train.width, loaded->test.width);
    }
    if (!rfi_mul(d->count, d->width, &values) || values > 4 * RFI_DATA_VALUES_MAX) {
        return rfi_fail(error, REEF_E_RANGE, "%td samples of %td features are too many", d->count, d->width);
    }
    ptrdiff_t *order = rfi_allocate(d->context, (size_t)d->count * sizeof *order);
    if (!order || !allocate(d, o)) {
        rfi_release(d->context, order);
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %td samples", d->count);
    }
    reef_status status = fill(d, loaded, o, order, error);
    rfi_release(d->context, order);
    return status;
}

static reef_status load(rfi_dataset *d, const char *spec, reef_error *error)
{
    options o;
    const reef_kind *kind = NULL;
    void *params = NULL;
    rfi_loaded loaded = {.scale = 1};
    reef_status status = rfi_spec_read(d->context, &rfi_family_source, spec, &o, &kind, &params, error);
    if (status != REEF_OK) {
        return status;
    }
    const rfi_source *source = (const void *)kind;
    status = source->load(d->context, params, (uint64_t)o.seed, &loaded, error);
    if (status == REEF_OK) {
        status = assemble(d, &loaded, &o, error);
    }
    rfi_samples_free(d->context, &loaded.train);
    rfi_samples_free(d->context, &loaded.test);
    rfi_release(d->context, params);
    return status;
}

#ifndef NDEBUG
/* What dataset.h says of a data set. */
static bool is_sound(const rfi_dataset *d)
{
    bool sound = d->train >= 1 && d->train <= d->count && d->width >= 1 && (d->classes >= 1) == (d->labels != NULL) &&
                 (d->labels == NULL) == (d->targets != NULL);
    for (ptrdiff_t i = 0; sound && i < d->count * d->width; i++) {
        sound = isfinite(d->features[i]);
    }
    for (ptrdiff_t i = 0; sound && d->labels && i < d->count; i++) {
        sound = d->labels[i] >= 0 && d->labels[i] < d->classes;
    }
    for (ptrdiff_t c = 1; sound && d->labels && c < d->classes; c++) {
        sound = d->class_values[c - 1] < d->class_values[c];
    }
    return sound;
}
#endif

reef_status rfi_dataset_create(const reef_context *context, const char *spec, rfi_dataset **dataset, reef_error *error)
{
    rfi_dataset *d = rfi_allocate(context, sizeof *d);
    if (!d) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a data set");
    }
    *d = (rfi_dataset){.context = context};
    reef_status status = load(d, spec, error);
    if (status != REEF_OK) {
        rfi_dataset_destroy(&d);
        return status;
    }
    assert(is_sound(d));
    *dataset = d;
    return REEF_OK;
}

void rfi_dataset_destroy(rfi_dataset **dataset)
{
    rfi_dataset *d = *dataset;
    if (!d) {
        return;
    }
    const reef_context *context = d->context;
    rfi_release(context, d->features);
    rfi_release(context, d->labels);
    rfi_release(context, d->class_values);
    rfi_release(context, d->targets);
    rfi_release(context, d);
    *dataset = NULL;
}
