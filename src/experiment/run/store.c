/* Results of one job in a file: the description of the job, then every number so that it reads back exactly, the checksum of its model,
 * and the checksum of all that. A file that is damaged, or belongs to another job, counts as none: the job is run again. */
#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"
#include "experiment/run/outcome.h"
#include "io/file.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char head[] = "reef cell, format 2, version ";
static const char middle[] = "results\n";

/* Two jobs with the same name would only overwrite each other: the description in the file decides. */
void rfi_store_name(const char *key, const char *ending, char name[RFI_STORE_NAME])
{
    uint64_t hash = rfi_hash_bytes(RFI_HASH_START, key, strlen(key));
    (void)snprintf(name, RFI_STORE_NAME, "%016" PRIx64 "%s", hash, ending);
}

static void write_head(rfi_text *text, const char *key)
{
    rfi_text_add(text, "%s%s\n", head, reef_version());
    rfi_text_add(text, "%s%s", key, middle);
}

/* "sum" and 16 digits: the hash of everything before it. */
enum { SUM_SIZE = 4 + 16 + 1 };

static void print_sum(const void *bytes, size_t size, char line[SUM_SIZE + 1])
{
    (void)snprintf(line, SUM_SIZE + 1, "sum %016" PRIx64 "\n", rfi_hash_bytes(RFI_HASH_START, bytes, size));
}

reef_status rfi_store_write(const reef_context *context, const char *folder, const char *key,
                            const rfi_outcome *outcome, reef_error *error)
{
    rfi_text text = {.context = context};
    char name[RFI_STORE_NAME];
    char sum[SUM_SIZE + 1];
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
    rfi_text_add(&text, "model %d %016" PRIx64 "\n", outcome->has_model, outcome->has_model ? outcome->model_sum : 0);
    if (!text.failed) {
        print_sum(text.bytes, text.size, sum);
        rfi_text_add(&text, "%s", sum);
    }
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

/* "model 0 SUM" or "model 1 SUM". */
static bool read_model(rfi_slice *rest, rfi_outcome *outcome)
{
    bool found = false;
    rfi_slice line = rfi_cut(*rest, '\n', rest, &found);
    rfi_slice sum;
    rfi_slice word = rfi_cut(line, ' ', &sum, &found);
    rfi_slice flag = rfi_cut(sum, ' ', &sum, &found);
    outcome->has_model = rfi_equals(flag, "1");
    return rfi_equals(word, "model") && (outcome->has_model || rfi_equals(flag, "0")) &&
           rfi_read_hex(sum, &outcome->model_sum);
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
    return read_model(&rest, outcome) && rest.length == SUM_SIZE;
}

/* A whole file, by its checksum; of which version and job is not looked at. */
static bool is_whole(const rfi_file *file)
{
    char sum[SUM_SIZE + 1];
    if (file->size < sizeof head + SUM_SIZE) {
        return false;
    }
    print_sum(file->bytes, file->size - SUM_SIZE, sum);
    return memcmp(file->bytes + file->size - SUM_SIZE, sum, SUM_SIZE) == 0;
}

/* Those of 0.1 had no checksum. */
static bool is_earlier(const rfi_file *file)
{
    static const char earlier[] = "reef cell, format 1, ";
    return file->size >= sizeof earlier && memcmp(file->bytes, earlier, sizeof earlier - 1) == 0;
}

rfi_stored rfi_store_read(const reef_context *context, const char *folder, const char *key, rfi_outcome *outcome)
{
    enum { FILE_MAX = 1 << 30 };
    rfi_file file = {0};
    char name[RFI_STORE_NAME];
    char path[4096];
    assert(outcome->moments && rfi_outcome_count(outcome) >= 1);
    rfi_store_name(key, ".txt", name);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path || access(path, F_OK) != 0) {
        return RFI_STORED_NOT;
    }
    if (rfi_file_read(context, path, FILE_MAX, &file, NULL) != REEF_OK) {
        return RFI_STORED_DAMAGED;
    }
    rfi_text want = {.context = context};
    write_head(&want, key);
    bool same = !want.failed && file.size > want.size && memcmp(file.bytes, want.bytes, want.size) == 0;
    rfi_stored found = is_earlier(&file) ? RFI_STORED_NOT : RFI_STORED_DAMAGED;
    if (is_whole(&file)) {
        bool good =
            same && read_numbers((rfi_slice){(const char *)file.bytes + want.size, file.size - want.size}, outcome);
        found = good ? RFI_STORED : RFI_STORED_NOT;
    }
    rfi_text_free(&want);
    rfi_file_free(context, &file);
    return found;
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
