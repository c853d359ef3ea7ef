/* Spec strings: any bytes either make an aggregator that prints and reads back the same, or a clear error.
 *
 *   text --create--> agg --print--> full text --create--> agg --print--> the same full text
 */
#include "check.h"

#include <reef/reef.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    CHECK(memory);
    return memory;
}

/* The printed spec in memory of exactly its size, so that one byte too many is seen. */
static char *print_spec(const reef_agg *agg)
{
    size_t length = reef_agg_print(agg, NULL, 0);
    char *text = allocate(length + 1);
    CHECK(reef_agg_print(agg, text, length + 1) == length);
    CHECK(strlen(text) == length);
    return text;
}

/* A buffer that is too short holds the beginning, terminated. */
static void check_short_print(const reef_agg *agg, const char *whole, size_t size)
{
    char *text = allocate(size);
    CHECK(reef_agg_print(agg, text, size) == strlen(whole));
    size_t kept = strlen(whole) < size - 1 ? strlen(whole) : size - 1;
    CHECK(memchr(text, '\0', size) == text + kept);
    CHECK(memcmp(text, whole, kept) == 0);
    free(text);
}

static void check_round_trip(const reef_agg *agg)
{
    reef_agg *again = NULL;
    reef_error error = {REEF_OK, ""};
    char *first = print_spec(agg);
    reef_status status = reef_agg_create(NULL, &again, first, &error);
    if (status != REEF_OK) {
        (void)fprintf(stderr, "printed as \"%s\", which is refused: %s\n", first, error.text);
        abort();
    }
    char *second = print_spec(again);
    if (strcmp(first, second) != 0) {
        (void)fprintf(stderr, "printed as \"%s\", then as \"%s\"\n", first, second);
        abort();
    }
    CHECK(reef_agg_traits(agg) == reef_agg_traits(again));
    check_short_print(agg, first, 1 + strlen(first) / 2);
    reef_agg_destroy(&again);
    free(first);
    free(second);
}

/* What else can be asked of an aggregator before it has data. */
static void check_questions(const reef_agg *agg)
{
    static const ptrdiff_t counts[] = {1, 2, 3, 7, 32, 1000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        ptrdiff_t length = 5000;
        size_t bytes = 0;
        reef_shape shape = {.rows = counts[i], .segments = 1, .lengths = &length, .dtype = REEF_F32};
        CHECK(reef_agg_tolerates(agg, counts[i]) >= -1);
        reef_error error = {REEF_OK, ""};
        reef_status status = reef_plan_size(agg, &shape, &bytes, &error);
        CHECK(status == REEF_OK ? bytes > 0 : error.text[0] != '\0');
    }
}

static void check_error(const reef_error *error, reef_status status, const reef_agg *agg)
{
    CHECK(!agg);
    CHECK(error->status == status);
    CHECK(error->text[0] != '\0');
    CHECK(memchr(error->text, '\0', sizeof error->text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    reef_agg *agg = NULL;
    reef_error error;
    char *spec = allocate(size + 1);
    if (size) {
        memcpy(spec, data, size);
    }
    spec[size] = '\0';
    memset(&error, 0x5a, sizeof error);
    reef_status status = reef_agg_create(NULL, &agg, spec, &error);
    if (status == REEF_OK) {
        check_round_trip(agg);
        check_questions(agg);
    } else {
        check_error(&error, status, agg);
    }
    reef_agg_destroy(&agg);
    CHECK(!agg);
    CHECK(reef_agg_create(NULL, &agg, spec, NULL) == status); /* the error is optional, the answer the same */
    reef_agg_destroy(&agg);
    free(spec);
    return 0;
}
