/* Data sets: every source, splits, labels, scaling, and what is said about mistakes. */
#include "problem/dataset.h"

#include "io/npy.h"
#include "support/alloc.h"
#include "support/check.h"
#include "support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPEC = 1200 };

static rfi_dataset *create(const char *spec)
{
    rfi_dataset *d = NULL;
    reef_error error;
    CHECK(rfi_dataset_create(NULL, spec, &d, &error) == REEF_OK, "%s: %s", spec, error.text);
    return d;
}

static void check_refused(const char *spec, reef_status status, const char *says)
{
    rfi_dataset *d = NULL;
    reef_error error = {REEF_OK, ""};
    reef_status got = rfi_dataset_create(NULL, spec, &d, &error);
    CHECK(got == status && !d && strstr(error.text, says), "%s: '%s' should say '%s'", spec, error.text, says);
}

/* ---- digits ---- */

static void digits(void **state)
{
    static const int each[10] = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
    static const float first[8] = {0, 0, 5, 13, 9, 1, 0, 0};
    int seen[10] = {0};
    double sum = 0;
    (void)state;
    rfi_dataset *d = create("digits:test=0,scale=1");
    assert_true(d->count == 1797 && d->train == 1797 && d->width == 64 && d->classes == 10 && !d->targets);
    assert_memory_equal(d->features, first, sizeof first);
    for (ptrdiff_t i = 0; i < d->count; i++) {
        seen[d->labels[i]]++;
        for (ptrdiff_t j = 0; j < 64; j++) {
            sum += (double)d->features[i * 64 + j];
        }
    }
    assert_memory_equal(seen, each, sizeof each);
    assert_true(sum == 561718);
    assert_true(d->labels[0] == 0 && d->labels[1] == 1 && d->labels[1796] == 8);
    rfi_dataset_destroy(&d);
    assert_null(d);
    d = create("digits:test=0");
    assert_true(d->features[2] == 5.0F / 16 && d->features[3] == 13.0F / 16);
    rfi_dataset_destroy(&d);
}

static void data_folder_from_the_environment(void **state)
{
    scratch s;
    (void)state;
    scratch_open(&s);
    assert_int_equal(setenv("REEF_DATA", s.folder, 1), 0);
    check_refused("digits", REEF_E_FILE, "set REEF_DATA to the folder that has digits.npy");
    assert_int_equal(setenv("REEF_DATA", REEF_SOURCE_DIR "/data", 1), 0);
    rfi_dataset *d = create("digits");
    assert_int_equal(d->count, 1797);
    rfi_dataset_destroy(&d);
    char *path = malloc(5000);
    assert_non_null(path);
    memset(path, 'x', 4999);
    path[4999] = '\0';
    assert_int_equal(setenv("REEF_DATA", path, 1), 0);
    check_refused("digits", REEF_E_ARG, "too long");
    free(path);
    assert_int_equal(setenv("REEF_DATA", "", 1), 0); /* as if not set */
    d = create("digits");
    rfi_dataset_destroy(&d);
    assert_int_equal(unsetenv("REEF_DATA"), 0);
    scratch_close(&s);
}

/* ---- splitting ---- */

/* Whether d has the same sample (features and label) as `whole` has at place i. */
static bool has_row(const rfi_dataset *d, ptrdiff_t place, const rfi_dataset *whole, ptrdiff_t i)
{
    return d->labels[place] == whole->labels[i] &&
           memcmp(d->features + place * d->width, whole->features + i * d->width, (size_t)d->width * sizeof(float)) ==
               0;
}

static void splits(void **state)
{
    static const struct {
        const char *spec;
        ptrdiff_t train;
    } cases[] = {{"gaussian:samples=100,test=0.2", 80}, {"gaussian:samples=100,test=0.9", 10},
                 {"gaussian:samples=100,test=0", 100},  {"gaussian:samples=3,test=0.9", 1},
                 {"gaussian:samples=2,test=0.9", 1},    {"gaussian:samples=100,test=0.255", 74}};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        rfi_dataset *d = create(cases[i].spec);
        CHECK(d->train == cases[i].train, "%s: %td for training", cases[i].spec, d->train);
        rfi_dataset_destroy(&d);
    }
    rfi_dataset *whole = create("gaussian:samples=100,test=0");
    rfi_dataset *d = create("gaussian:samples=100,test=0.3");
    ptrdiff_t next[2] = {0, d->train};
    for (ptrdiff_t i = 0; i < 100; i++) { /* a merge: each part in the order of the source */
        if (next[0] < d->train && has_row(d, next[0], whole, i)) {
            next[0]++;
        } else {
            assert_true(next[1] < 100 && has_row(d, next[1], whole, i));
            next[1]++;
        }
    }
    assert_true(next[0] == d->train && next[1] == 100);
    rfi_dataset_destroy(&whole);
    rfi_dataset_destroy(&d);
}

static void seeds(void **state)
{
    (void)state;
    rfi_dataset *a = create("digits:seed=5");
    rfi_dataset *b = create("digits:seed=5");
    rfi_dataset *c = create("digits:seed=6");
    size_t bytes = (size_t)(a->count * a->width) * sizeof(float);
    assert_int_equal(a->train, 1438);
    assert_memory_equal(a->features, b->features, bytes);
    assert_memory_not_equal(a->features, c->features, bytes);
    rfi_dataset_destroy(&a);
    rfi_dataset_destroy(&b);
    rfi_dataset_destroy(&c);
}

/* ---- features ---- */

static void standardised_on_the_training_part(void **state)
{
    (void)state;
    rfi_dataset *d = create("digits:standardise=true,bias=true");
    rfi_dataset *raw = create("digits");
    assert_int_equal(d->width, 65);
    for (ptrdiff_t j = 0; j < 64; j++) {
        double mean = 0, square = 0;
        for (ptrdiff_t i = 0; i < d->train; i++) {
            double x = (double)d->features[i * 65 + j];
            mean += x / (double)d->train;
            square += x * x / (double)d->train;
        }
        CHECK_CLOSE(mean, 0, 1e-6, "mean");
        bool varies = square > 0;
        CHECK_CLOSE(square, varies ? 1 : 0, 1e-5, "variance");
        assert_true(varies || j % 8 == 0 || j % 8 == 7); /* the border has pixels that are always 0 */
    }
    /* one map for training and test samples, with the slope of the training part */
    double slope = ((double)d->features[65 + 3] - (double)d->features[3]) /
                   ((double)raw->features[64 + 3] - (double)raw->features[3]);
    for (ptrdiff_t i = 1; i < d->count; i++) {
        assert_true(d->features[i * 65 + 64] == 1);
        double want = slope * ((double)raw->features[i * 64 + 3] - (double)raw->features[3]) + (double)d->features[3];
        CHECK_CLOSE((double)d->features[i * 65 + 3], want, 1e-4, "standardised pixel");
    }
    rfi_dataset_destroy(&d);
    rfi_dataset_destroy(&raw);
}

/* Centres `separation` apart in the root mean square, noise of variance 1. */
static void gaussian_classes(void **state)
{
    enum { D = 50, C = 20, EACH = 100, PAIRS = C * (C - 1) / 2 };
    static double centre[C][D];
    double noise = 0, apart = 0;
    (void)state;
    rfi_dataset *d = create("gaussian:dimension=50,classes=20,samples=2000,separation=30,test=0,seed=3");
    assert_true(d->count == C * EACH && d->width == D && d->classes == C);
    for (ptrdiff_t i = 0; i < d->count; i++) {
        for (ptrdiff_t j = 0; j < D; j++) {
            centre[d->labels[i]][j] += (double)d->features[i * D + j] / EACH;
        }
    }
    for (ptrdiff_t i = 0; i < d->count; i++) {
        for (ptrdiff_t j = 0; j < D; j++) {
            noise += pow((double)d->features[i * D + j] - centre[d->labels[i]][j], 2);
        }
    }
    for (int a = 0; a < C; a++) {
        for (int b = 0; b < a; b++) {
            for (int j = 0; j < D; j++) {
                apart += pow(centre[a][j] - centre[b][j], 2);
            }
        }
    }
    /* chi-square with 99000 degrees of freedom: 5 standard deviations are 2.2 % */
    CHECK_CLOSE(noise / (D * C * (EACH - 1)), 1, 0.022, "noise");
    /* the same with (C - 1) D = 950: 23 % for the square */
    CHECK_CLOSE(apart / PAIRS / 900, 1, 0.23, "squared separation");
    rfi_dataset_destroy(&d);
}

/* ---- files ---- */

static void npy_files(void **state)
{
    scratch s;
    char spec[SPEC], x[SCRATCH_PATH], y[SCRATCH_PATH], u[SCRATCH_PATH], v[SCRATCH_PATH];
    static const float features[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const int64_t labels[] = {7, -2, 7};
    (void)state;
    scratch_open(&s);
    assert_int_equal(
        rfi_npy_write(NULL, scratch_path(&s, "x.npy", x), RFI_F32, 3, (ptrdiff_t[]){3, 2, 2}, features, NULL), REEF_OK);
    assert_int_equal(rfi_npy_write(NULL, scratch_path(&s, "y.npy", y), RFI_I64, 2, (ptrdiff_t[]){3, 1}, labels, NULL),
                     REEF_OK);
    assert_int_equal(rfi_npy_write(NULL, scratch_path(&s, "u.npy", u), RFI_F32, 2, (ptrdiff_t[]){2, 4}, features, NULL),
                     REEF_OK);
    assert_int_equal(rfi_npy_write(NULL, scratch_path(&s, "v.npy", v), RFI_I64, 1, (ptrdiff_t[]){2}, labels, NULL),
                     REEF_OK);
    (void)snprintf(spec, sizeof spec, "npy:features=%s, labels=%s, test_features=%s, test_labels=%s", x, y, u, v);
    rfi_dataset *d = create(spec);
    assert_true(d->count == 5 && d->train == 3 && d->width == 4 && d->classes == 2);
    assert_memory_equal(d->features, features, sizeof features);
    assert_memory_equal(d->features + 12, features, 8 * sizeof(float));
    assert_true(d->class_values[0] == -2 && d->class_values[1] == 7);
    assert_true(d->labels[0] == 1 && d->labels[1] == 0 && d->labels[2] == 1 && d->labels[3] == 1 && d->labels[4] == 0);
    rfi_dataset_destroy(&d);
    (void)snprintf(spec, sizeof spec, "npy:features=%s,labels=%s,task=regression,test=0,scale=2", x, y);
    d = create(spec);
    assert_true(d->classes == 0 && !d->labels && d->targets[1] == -2 && d->features[1] == 4);
    rfi_dataset_destroy(&d);
    (void)snprintf(spec, sizeof spec, "npy:features=%s,labels=%s", x, v);
    check_refused(spec, REEF_E_FORMAT, "one label for each of the 3 samples, found 2 numbers");
    (void)snprintf(spec, sizeof spec, "npy:features=%s,labels=%s", x, u);
    check_refused(spec, REEF_E_FORMAT, "found 8 numbers");
    (void)snprintf(spec, sizeof spec, "npy:features=%s,labels=%s,test_features=%s", x, y, u);
    check_refused(spec, REEF_E_ARG, "npy needs test_labels=FILE");
    (void)snprintf(spec, sizeof spec, "npy:features=%s,labels=%s,test_features=%s,test_labels=%s", x, y, v, v);
    check_refused(spec, REEF_E_FORMAT, "training samples have 4 features, test samples 1");
    (void)snprintf(spec, sizeof spec, "npy:features=%s,labels=%s", REEF_GOLDEN_DIR "/npy/empty.npy", y);
    check_refused(spec, REEF_E_FORMAT, "empty.npy: the file has no samples");
    (void)snprintf(spec, sizeof spec, "npy:features=%s,labels=%s", REEF_GOLDEN_DIR "/npy/f4.npy", v);
    check_refused(spec, REEF_E_NONFINITE, "feature 2 of sample 1 (both from 0) is not finite");
    (void)snprintf(spec, sizeof spec, "npy:features=%s,labels=%s/none", x, s.folder);
    check_refused(spec, REEF_E_FILE, "none: cannot open");
    scratch_close(&s);
}

static void csv_files(void **state)
{
    static const char text[] = "kind,height,width\n1,2.5,3\n-1,4,5\n1,6,7\n";
    static const float by_kind[] = {2.5F, 3, 4, 5, 6, 7};
    static const float by_last[] = {1, 2.5F, -1, 4, 1, 6};
    static const char *const columns[] = {"kind", "0", "-3", "-1", "width"};
    scratch s;
    char spec[SPEC], path[SCRATCH_PATH], test[SCRATCH_PATH];
    (void)state;
    scratch_open(&s);
    scratch_file(&s, "t.csv", text, strlen(text), path);
    for (ptrdiff_t i = 0; i < COUNT(columns); i++) {
        (void)snprintf(spec, sizeof spec, "csv:path=%s,label=%s,test=0", path, columns[i]);
        rfi_dataset *d = create(spec);
        assert_true(d->count == 3 && d->width == 2 && d->classes == (i < 3 ? 2 : 3));
        assert_memory_equal(d->features, i < 3 ? by_kind : by_last, sizeof by_kind);
        assert_true(d->labels[0] == (i < 3 ? 1 : 0) && d->labels[1] == (i < 3 ? 0 : 1));
        rfi_dataset_destroy(&d);
    }
    scratch_file(&s, "u.csv", "kind,height,width\n1,8,1e39\n", 26, test);
    (void)snprintf(spec, sizeof spec, "csv:path=%s,test_path=%s,label=kind", path, test);
    check_refused(spec, REEF_E_NONFINITE, "feature 1 of sample 3");
    (void)snprintf(spec, sizeof spec, "csv:path=%s,test_path=%s,label=width,task=regression", path, test);
    check_refused(spec, REEF_E_NONFINITE, "target of sample 3");
    (void)snprintf(spec, sizeof spec, "csv:path=%s,label=height", path);
    check_refused(spec, REEF_E_FORMAT,
                  "label 2.5 of sample 0 (from 0) is not a class number; for real targets set task=regression");
    (void)snprintf(spec, sizeof spec, "csv:path=%s,label=depth", path);
    check_refused(spec, REEF_E_NAME, "t.csv: there is no column 'depth'");
    (void)snprintf(spec, sizeof spec, "csv:path=%s,header=no", path);
    check_refused(spec, REEF_E_FORMAT, "t.csv:1:1: this field is not a finite decimal number");
    scratch_file(&s, "one.csv", "1\n2\n", 4, test);
    (void)snprintf(spec, sizeof spec, "csv:path=%s", test);
    check_refused(spec, REEF_E_FORMAT, "2 samples of 0 features");
    scratch_close(&s);
}

static void libsvm_files(void **state)
{
    static const float want[] = {0.5F, 0, 0, 2, 0, 0, 0, 1, 0};
    scratch s;
    char spec[SPEC], path[SCRATCH_PATH], test[SCRATCH_PATH];
    (void)state;
    scratch_open(&s);
    scratch_file(&s, "d", "+1 1:0.5\n-1 1:2\n", 16, path);
    scratch_file(&s, "t", "+1 2:1 3:0\n", 11, test);
    (void)snprintf(spec, sizeof spec, "libsvm:path=%s,test_path=%s", path, test);
    rfi_dataset *d = create(spec); /* the test file has features that the training file lacks */
    assert_true(d->count == 3 && d->train == 2 && d->width == 3 && d->classes == 2);
    assert_memory_equal(d->features, want, sizeof want);
    rfi_dataset_destroy(&d);
    (void)snprintf(spec, sizeof spec, "libsvm:path=%s,features=5,test=0", path);
    d = create(spec);
    assert_int_equal(d->width, 5);
    rfi_dataset_destroy(&d);
    (void)snprintf(spec, sizeof spec, "libsvm:path=%s,test_path=%s,features=2", path, test);
    check_refused(spec, REEF_E_RANGE, "there is an index 3, with features = 2");
    scratch_file(&s, "e", "1\n2\n", 4, test);
    (void)snprintf(spec, sizeof spec, "libsvm:path=%s", test);
    check_refused(spec, REEF_E_FORMAT, "labels but no features");
    scratch_file(&s, "w", "1 1073741824:1\n1\n", 17, test);
    (void)snprintf(spec, sizeof spec, "libsvm:path=%s", test);
    check_refused(spec, REEF_E_RANGE, "at most 536870912 are supported");
    scratch_close(&s);
}

static void idx_files(void **state)
{
    scratch s;
    char spec[SPEC], images[SCRATCH_PATH], labels[SCRATCH_PATH];
    (void)state;
    scratch_open(&s);
    scratch_file(&s, "i", "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02\x00\xFF\x33\x66", 20, images);
    scratch_file(&s, "l", "\0\0\x08\x01\0\0\0\x02\x04\x09", 10, labels);
    (void)snprintf(spec, sizeof spec, "idx:images=%s,labels=%s,test=0", images, labels);
    rfi_dataset *d = create(spec);
    assert_true(d->count == 2 && d->width == 2 && d->classes == 2 && d->class_values[1] == 9);
    assert_true(d->features[0] == 0 && d->features[1] == 1);
    CHECK_CLOSE((double)d->features[2], 0.2, 1e-7, "pixel");
    rfi_dataset_destroy(&d);
    scratch_file(&s, "i", "\0\0\x0C\x02\0\0\0\x02\0\0\0\x01\0\0\0\x07\xFF\xFF\xFF\xFF", 20, images);
    d = create(spec); /* whole numbers that are no bytes are left as they are */
    assert_true(d->features[0] == 7 && d->features[1] == -1);
    rfi_dataset_destroy(&d);
    scratch_close(&s);
}

/* ---- mistakes and memory ---- */

static void mistakes(void **state)
{
    char *spec = malloc(10000);
    (void)state;
    assert_non_null(spec);
    memset(spec, 'x', 9999);
    spec[9999] = '\0';
    check_refused(spec, REEF_E_SYNTAX, "the text has 9999 characters; at most 8192 are allowed");
    check_refused(NULL, REEF_E_ARG, "needs a spec");
    check_refused("", REEF_E_SYNTAX, "a data source is missing");
    check_refused("digit", REEF_E_NAME, "did you mean 'digits'?");
    check_refused("mnist", REEF_E_NAME, "there are: digits, npy, csv, libsvm, idx, gaussian");
    check_refused("digits:", REEF_E_SYNTAX, "should read key=value");
    check_refused("digits:test", REEF_E_SYNTAX, "digits: 'test' should read key=value");
    check_refused("digits:=3", REEF_E_SYNTAX, "should read key=value");
    check_refused("digits:test=1", REEF_E_RANGE, "test = '1' is not allowed; it takes a number from 0 to 0.9");
    check_refused("digits:test=0.1,test=0.2", REEF_E_SYNTAX, "digits: test is given twice");
    check_refused("gaussian:classes=3,classes=3", REEF_E_SYNTAX, "gaussian: classes is given twice");
    check_refused("digits:tset=0.1", REEF_E_NAME,
                  "did you mean 'test'? It takes: test, seed, task, scale, standardise, bias");
    check_refused("gaussian:sed=3", REEF_E_NAME,
                  "did you mean 'seed'? It takes: dimension, classes, samples, separation, test");
    check_refused("gaussian:class=3", REEF_E_NAME, "did you mean 'classes'?");
    check_refused("gaussian:classes=1", REEF_E_RANGE, "from 2 to 10000");
    check_refused("gaussian:samples=1e8,dimension=1e6", REEF_E_RANGE, "at most 536870912 values");
    check_refused("digits:task=sort", REEF_E_RANGE, "one of classification|regression");
    check_refused("npy", REEF_E_ARG, "npy needs features=FILE");
    check_refused("npy:features=x", REEF_E_ARG, "npy needs labels=FILE");
    check_refused("idx", REEF_E_ARG, "idx needs images=FILE");
    check_refused("csv", REEF_E_ARG, "csv needs path=FILE");
    check_refused("libsvm", REEF_E_ARG, "libsvm needs path=FILE");
    check_refused("csv:path=/nowhere/at/all.csv", REEF_E_FILE, "all.csv: cannot open");
    free(spec);
}

static void the_tables_are_sound(void **state)
{
    const rfi_family *list = &rfi_family_source;
    (void)state;
    assert_int_equal(list->builtin_count, 6);
    for (ptrdiff_t i = 0; i < list->builtin_count; i++) {
        const reef_kind *v = list->builtin[i];
        assert_true(v->name && v->summary && v->citation && v->field_count + list->common.count <= 32);
        for (ptrdiff_t j = 0; j < v->field_count; j++) { /* no field of a source hides a common one */
            rfi_slice name = {v->fields[j].name, strlen(v->fields[j].name)};
            assert_null(rfi_fields_find(&list->common, name));
            assert_true(v->fields[j].help && v->fields[j].unit);
        }
    }
}

/* Every allocation fails in turn, for every source. */
static void failing_allocations(void **state)
{
    scratch s;
    char csv[SCRATCH_PATH], svm[SCRATCH_PATH], wide[SCRATCH_PATH];
    char specs[5][SPEC];
    alloc_log log;
    (void)state;
    scratch_open(&s);
    scratch_file(&s, "t.csv", "a,b\n1,2\n3,4\n", 12, csv);
    scratch_file(&s, "t.svm", "1 1:2\n2 1:3\n", 12, svm);
    scratch_file(&s, "u.svm", "1 2:2\n", 6, wide);
    (void)snprintf(specs[0], SPEC, "digits:standardise=true");
    (void)snprintf(specs[1], SPEC, "csv:path=%s,test_path=%s", csv, csv);
    (void)snprintf(specs[2], SPEC, "libsvm:path=%s,test_path=%s,bias=true", svm, wide);
    (void)snprintf(specs[3], SPEC, "gaussian:samples=10");
    (void)snprintf(specs[4], SPEC, "csv:path=%s,task=regression", csv);
    reef_context *context = alloc_context(&log, 1);
    int before = atomic_load(&log.live);
    for (ptrdiff_t i = 0; i < COUNT(specs); i++) {
        rfi_dataset *d = NULL;
        int fail = 0;
        for (; !d; fail++) {
            atomic_store(&log.total, 0);
            log.fail_at = fail;
            reef_status status = rfi_dataset_create(context, specs[i], &d, NULL);
            CHECK(status == (d ? REEF_OK : REEF_E_NOMEM) && fail < 40, "%s: status %d", specs[i], (int)status);
            assert_true(d || atomic_load(&log.live) == before);
        }
        assert_true(fail > 8);
        rfi_dataset_destroy(&d);
        assert_int_equal(atomic_load(&log.live), before);
    }
    reef_context_destroy(&context);
    assert_false(atomic_load(&log.broken));
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits),
        cmocka_unit_test(data_folder_from_the_environment),
        cmocka_unit_test(splits),
        cmocka_unit_test(seeds),
        cmocka_unit_test(standardised_on_the_training_part),
        cmocka_unit_test(gaussian_classes),
        cmocka_unit_test(npy_files),
        cmocka_unit_test(csv_files),
        cmocka_unit_test(libsvm_files),
        cmocka_unit_test(idx_files),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(the_tables_are_sound),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
