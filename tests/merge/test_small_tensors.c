/* Models of many small tensors: read and written together, from files that have the same header. The result is that of files whose headers
 * differ, and of a merge without what was left out. */
#include "io/file.h"
#include "num/rng.h"
#include "support/check.h"
#include "support/scratch.h"

#include <math.h>
#include <reef/merge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = 5, TENSORS = 700, NUMBERS_MAX = 90, HEADER_MAX = TENSORS * 120 };

static ptrdiff_t length_of(int tensor)
{
    return 1 + (ptrdiff_t)(tensor * 37 % NUMBERS_MAX);
}

static ptrdiff_t numbers(void)
{
    ptrdiff_t sum = 0;
    for (int i = 0; i < TENSORS; i++) {
        sum += length_of(i);
    }
    return sum;
}

/* What a file is to be. */
typedef struct recipe {
    const char *mark; /* metadata */
    double nan_at;    /* share of the numbers before a NaN; 2: there is none */
    int extra;        /* bytes too many, or too few */
    bool renamed;     /* another name for the first tensor */
} recipe;

static size_t write_header(char *header, const recipe *r)
{
    size_t used = 8;
    size_t at = 0;
    used += (size_t)snprintf(header + used, HEADER_MAX - used, "{\"__metadata__\":{\"mark\":\"%s\"}", r->mark);
    for (int i = 0; i < TENSORS; i++) {
        size_t end = at + 4 * (size_t)length_of(i);
        used += (size_t)snprintf(header + used, HEADER_MAX - used,
                                 ",\"%s%d\":{\"dtype\":\"F32\",\"shape\":[%td],\"data_offsets\":[%zu,%zu]}",
                                 r->renamed && i == 0 ? "other" : "t", i, length_of(i), at, end);
        at = end;
    }
    header[used++] = '}';
    for (int i = 0; i < 8; i++) {
        header[i] = (char)((used - 8) >> (8 * i) & 0xFF);
    }
    return used;
}

static void save(const char *path, int file, const recipe *r)
{
    static char header[HEADER_MAX];
    rfi_rng rng;
    ptrdiff_t count = numbers();
    float *data = calloc((size_t)count + 1, sizeof *data);
    assert_non_null(data);
    rfi_rng_init(&rng, (uint32_t)file, 0x736d, 0, 0, 0);
    for (ptrdiff_t i = 0; i < count; i++) {
        data[i] = (float)rfi_rng_normal(&rng);
    }
    if (r->nan_at < 1) {
        data[(ptrdiff_t)(r->nan_at * (double)count)] = NAN;
    }
    size_t bytes = (size_t)((ptrdiff_t)((size_t)count * sizeof *data) + r->extra);
    rfi_piece pieces[] = {{header, write_header(header, r)}, {data, bytes}};
    assert_int_equal(rfi_file_write(NULL, path, pieces, 2, NULL), REEF_OK);
    free(data);
}

typedef struct world {
    scratch s;
    char paths[FILES][SCRATCH_PATH];
    const char *list[FILES];
    char out[SCRATCH_PATH];
} world;

static void open_world(world *w)
{
    static const char *const names[FILES] = {"a", "b", "c", "d", "e"};
    scratch_open(&w->s);
    scratch_path(&w->s, "out", w->out);
    for (int f = 0; f < FILES; f++) {
        scratch_path(&w->s, names[f], w->paths[f]);
        w->list[f] = w->paths[f];
        save(w->paths[f], f, &(recipe){.mark = "same", .nan_at = 2});
    }
}

/* Merges the first `files`; the data of the result (to be released), or NULL. */
static float *merge(world *w, ptrdiff_t files, ptrdiff_t threads, const reef_merge_options *options, reef_error *error)
{
    reef_context *context = NULL;
    assert_int_equal(reef_context_create(&context, NULL, NULL), REEF_OK);
    assert_int_equal(reef_context_set_threads(context, threads, NULL), REEF_OK);
    reef_status status = reef_merge_files(context, options, w->list, files, w->out, NULL, error);
    reef_context_destroy(&context);
    if (status != REEF_OK) {
        return NULL;
    }
    rfi_file file;
    size_t bytes = (size_t)numbers() * sizeof(float);
    float *data = malloc(bytes);
    assert_int_equal(rfi_file_read(NULL, w->out, SIZE_MAX / 2, &file, NULL), REEF_OK);
    assert_true(data && file.size > bytes);
    memcpy(data, (const char *)file.bytes + file.size - bytes, bytes);
    rfi_file_free(NULL, &file);
    return data;
}

static const char *const rules[] = {"mean", "median", "ref", "vref", "geomed"};

/* Compares two results and releases them. */
static void check_same(float *a, float *b, const char *what)
{
    CHECK(a && b && memcmp(a, b, (size_t)numbers() * sizeof(float)) == 0, "%s: other bits", what);
    free(a);
    free(b);
}

static void equal_headers_or_not(void **state)
{
    world w;
    (void)state;
    open_world(&w);
    for (int c = 0; c < 2 * (int)COUNT(rules); c++) {
        reef_merge_options options = {0};
        options.rule = rules[c / 2];
        options.per_tensor = c % 2;
        float *alike[2];
        for (int t = 0; t < 2; t++) {
            alike[t] = merge(&w, FILES, 1 + 2 * t, &options, NULL);
        }
        for (int f = 1; f < FILES; f++) { /* lengths that are no multiple of 4, too */
            static const char *const marks[FILES] = {"same", "o", "ot", "oth", "othe"};
            save(w.paths[f], f, &(recipe){.mark = marks[f], .nan_at = 2});
        }
        check_same(merge(&w, FILES, 2, &options, NULL), alike[0], rules[c / 2]);
        for (int f = 1; f < FILES; f++) {
            save(w.paths[f], f, &(recipe){.mark = "same", .nan_at = 2});
        }
        check_same(merge(&w, FILES, 1, &options, NULL), alike[1], rules[c / 2]);
    }
    scratch_close(&w.s);
}

/* A file with NaN is found when most of the result is made, or all of it: what waits to be written then must not be. */
static void started_again(void **state)
{
    static const double places[] = {0, 0.4, 0.9999};
    world w;
    (void)state;
    open_world(&w);
    for (int c = 0; c < (int)COUNT(places) * (int)COUNT(rules) * 2; c++) {
        reef_merge_options options = {0};
        options.rule = rules[c / 2 % (int)COUNT(rules)];
        options.per_tensor = c % 2;
        save(w.paths[FILES - 1], FILES - 1, &(recipe){.mark = "same", .nan_at = places[c / 2 / (int)COUNT(rules)]});
        float *without = merge(&w, FILES - 1, 1, &options, NULL);
        check_same(merge(&w, FILES, 1 + c % 3, &options, NULL), without, options.rule);
    }
    scratch_close(&w.s);
}

/* The same header, but not the bytes that it says. */
static void lengths_are_checked(void **state)
{
    world w;
    (void)state;
    open_world(&w);
    for (int extra = -1; extra <= 1; extra += 2) {
        reef_merge_options options = {0};
        reef_error error = {0};
        save(w.paths[2], 2, &(recipe){.mark = "same", .nan_at = 2, .extra = extra});
        assert_null(merge(&w, FILES, 1, &options, &error));
        CHECK(error.status == REEF_E_FORMAT && strstr(error.text, extra < 0 ? "beyond the end" : "1 byte follows"),
              "%s", error.text);
    }
    scratch_close(&w.s);
}

/* Files that lend others their header may be left out, and closed before them. */
static void lenders_are_dropped(void **state)
{
    world w;
    (void)state;
    open_world(&w);
    reef_merge_options options = {0};
    options.drop_bad = true;
    options.rule = "median";
    w.list[0] = w.paths[3]; /* first those that stay */
    w.list[1] = w.paths[4];
    w.list[2] = w.paths[2];
    float *want = merge(&w, 3, 1, &options, NULL);
    for (int f = 0; f < 2; f++) {
        save(w.paths[f], f, &(recipe){.mark = "same", .nan_at = 2, .renamed = true});
        w.list[f] = w.paths[f];
        w.list[f + 3] = w.paths[f + 3];
    }
    w.list[2] = w.paths[2];
    check_same(merge(&w, FILES, 2, &options, NULL), want, "dropped");
    scratch_close(&w.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_headers_or_not),
        cmocka_unit_test(started_again),
        cmocka_unit_test(lengths_are_checked),
        cmocka_unit_test(lenders_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
