/* Results of one job in a file: the description of the job, then every number so that it reads back exactly. A file that is not whole, or
 * of another job, is as good as none: the job is run again. */
#include "base/memory.h"
#include "base/number.h"
#include "experiment/outcome.h"
#include "io/file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char head[] = "reef cell, format 1, version ";
static const char middle[] = "results\n";

/* FNV-1a. Two jobs with the same name would only overwrite each other: the description in the file decides. */
void rfi_store_name(const char *key, const char *ending, char name[RFI_STORE_NAME])
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *c = key; *c; c++) {
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    }
    (void)snprintf(name, RFI_STORE_NAME, "%016" PRIx64 "%s", hash, ending);
}

static void write_head(rfi_text *text, const char *key)
{
    rfi_text_add(text, "%s%s\n", head, reef_version());
    rfi_text_add(text, "%s%s", key, middle);
}

reef_status rfi_store_write(const reef_context *context, const char *folder, const char *key,
                            const rfi_outcome *outcome, reef_error *error)
{
    rfi_text text = {.context = context};
    char name[RFI_STORE_NAME];
    rfi_store_name(key, ".txt", name);
    write_head(&text, key);
    rfi_text_add(&text, "%td ", outcome->repetitions);
    rfi_text_number(&text, outcome->theory);
    rfi_text_add(&text, "\n");
    for (ptrdiff_t i = 0; i < rfi_outcome_count(outcome); i++) {
        rfi_text_number(&text, outcome->moments[i].mean);
        rfi_text_add(&text, " ");
        rfi_text_number(&text, outcome->moments[i].squares);
        rfi_text_add(&text, "\n");
    }
    rfi_text_add(&text, "end\n");
    reef_status status = rfi_text_write(&text, folder, name, error);
    rfi_text_free(&text);
    return status;
}

/* The next number of the rest, which ends with `mark`. */
static bool read_number(rfi_slice *rest, char mark, double *number)
{
    bool found = false;
    rfi_slice word = rfi_cut(*rest, mark, rest, &found);
    if (!found) {
        return false;
    }
    if (rfi_equals(word, "nan") || rfi_equals(word, "inf") || rfi_equals(word, "-inf")) {
        *number = word.text[0] == 'n' ? (double)NAN : word.text[0] == '-' ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    return rfi_read_real(word, number);
}

static bool read_numbers(rfi_slice rest, rfi_outcome *outcome)
{
    double repetitions = 0;
    if (!read_number(&rest, ' ', &repetitions) || !(repetitions >= 1 && repetitions <= 1e9) ||
        !read_number(&rest, '\n', &outcome->theory)) {
        return false;
    }
    for (ptrdiff_t i = 0; i < rfi_outcome_count(outcome); i++) {
        rfi_moments *m = &outcome->moments[i];
        if (!read_number(&rest, ' ', &m->mean) || !read_number(&rest, '\n', &m->squares)) {
            return false;
        }
    }
    outcome->repetitions = (ptrdiff_t)repetitions;
    return rfi_equals(rest, "end\n");
}

bool rfi_store_read(const reef_context *context, const char *folder, const char *key, rfi_outcome *outcome)
{
    enum { FILE_MAX = 1 << 30 };
    rfi_file file = {0};
    char name[RFI_STORE_NAME];
    char path[4096];
    rfi_store_name(key, ".txt", name);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path ||
        rfi_file_read(context, path, FILE_MAX, &file, NULL) != REEF_OK) {
        return false;
    }
    rfi_text want = {.context = context};
    write_head(&want, key);
    bool same = !want.failed && file.size > want.size && memcmp(file.bytes, want.bytes, want.size) == 0;
    bool good = same && read_numbers((rfi_slice){(const char *)file.bytes + want.size, file.size - want.size}, outcome);
    rfi_text_free(&want);
    rfi_file_free(context, &file);
    return good;
}

void rfi_store_remove(const char *folder, const char *key)
{
    char name[RFI_STORE_NAME];
    char path[4096];
    rfi_store_name(key, ".txt", name);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path) {
        (void)unlink(path);
    }
}
