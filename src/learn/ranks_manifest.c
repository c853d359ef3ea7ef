/* The manifest of a checkpoint over ranks: lines of text.
 *
 *   reef checkpoint over ranks, format 3
 *   mark, round, ranks        fingerprint of the setup, rounds done, number of files
 *   count                     the counters of the run
 *   file BYTES SUM            of each rank's file
 *   sum SUM                   over everything before it */
#include "learn/ranks_manifest.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/text.h"
#include "io/file.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_MAX = 1 << 20 };

#define FIRST_WORDS "reef checkpoint over ranks, format "
#define FIRST_LINE FIRST_WORDS "3"

bool rfi_manifest_before(const char *path, char before[RFI_PART_PATH])
{
    int length = snprintf(before, RFI_PART_PATH, "%s.before", path);
    return length > 0 && length < RFI_PART_PATH;
}

bool rfi_part_name(const char *path, int64_t round, ptrdiff_t rank, char name[RFI_PART_PATH])
{
    int length = snprintf(name, RFI_PART_PATH, "%s.%" PRId64 ".%td.safetensors", path, round, rank);
    return length > 0 && length < RFI_PART_PATH;
}

void rfi_parts_forget(const char *path)
{
    char name[RFI_PART_PATH];
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    size_t length = strlen(base);
    ptrdiff_t before = base - path; /* of the folder, with its slash */
    if (snprintf(name, sizeof name, "%.*s", (int)before, path) >= (int)sizeof name) {
        return;
    }
    DIR *folder = opendir(before ? name : ".");
    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        bool part = strncmp(entry->d_name, base, length) == 0 && entry->d_name[length] == '.';
        if (part && snprintf(name, sizeof name, "%.*s%s", (int)before, path, entry->d_name) < (int)sizeof name) {
            (void)unlink(name);
        }
    }
    if (folder) {
        (void)closedir(folder);
    }
}

reef_status rfi_manifest_write(const reef_run *run, const char *path, uint64_t mark, const reef_run_counts *counts,
                               const rfi_entry *entries, reef_error *error)
{
    ptrdiff_t size = run->ranks->engine->size;
    size_t room = 1024 + (size_t)size * 64;
    char *text = rfi_allocate(run->context, room);
    if (!text) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for the manifest of a checkpoint");
    }
    size_t used = (size_t)snprintf(text, room, FIRST_LINE "\nmark %016" PRIx64 "\nround %" PRId64 "\nranks %td\n", mark,
                                   run->round, size);
    const int64_t numbers[] = {counts->rounds, counts->messages, counts->bytes,  counts->gradients,
                               counts->kept,   counts->dropped,  counts->silent, counts->late};
    for (ptrdiff_t i = 0; i < RFI_COUNT(numbers); i++) {
        used += (size_t)snprintf(text + used, room - used, "count %" PRId64 "\n", numbers[i]);
    }
    for (ptrdiff_t i = 0; i < size; i++) {
        used += (size_t)snprintf(text + used, room - used, "file %" PRIu64 " %016" PRIx64 "\n", entries[i].bytes,
                                 entries[i].sum);
    }
    used +=
        (size_t)snprintf(text + used, room - used, "sum %016" PRIx64 "\n", rfi_hash_bytes(RFI_HASH_START, text, used));
    reef_status status = rfi_file_write(run->context, path, &(rfi_piece){text, used}, 1, error);
    rfi_release(run->context, text);
    return status;
}

static bool next_word(rfi_slice *rest, const char *key, char end, rfi_slice *word)
{
    bool found = false;
    size_t length = strlen(key);
    if (rest->length < length || memcmp(rest->text, key, length) != 0) {
        return false;
    }
    *word = rfi_cut((rfi_slice){rest->text + length, rest->length - length}, end, rest, &found);
    return found;
}

static bool read_whole(rfi_slice word, int64_t *number)
{
    enum { DIGITS = 18 };
    *number = 0;
    for (size_t i = 0; i < word.length; i++) {
        if (word.text[i] < '0' || word.text[i] > '9') {
            return false;
        }
        *number = i < DIGITS ? *number * 10 + (word.text[i] - '0') : *number;
    }
    return word.length > 0 && word.length <= DIGITS;
}

static bool read_count(rfi_slice *rest, const char *key, char end, int64_t most, int64_t *number)
{
    rfi_slice word = {NULL, 0};
    return next_word(rest, key, end, &word) && read_whole(word, number) && *number <= most;
}

static bool read_hex(rfi_slice *rest, const char *key, uint64_t *number)
{
    rfi_slice word = {NULL, 0};
    return next_word(rest, key, '\n', &word) && rfi_read_hex(word, number);
}

/* Whether the checksum in the last line is that of the rest. */
static bool is_whole(const rfi_file *file)
{
    enum { LINE = 4 + 16 + 1 };
    if (file->size < LINE) {
        return false;
    }
    size_t size = file->size - LINE;
    uint64_t sum = 0;
    rfi_slice last = {(const char *)file->bytes + size, LINE};
    return read_hex(&last, "sum ", &sum) && sum == rfi_hash_bytes(RFI_HASH_START, file->bytes, size);
}

/* entries may be NULL: the head only. */
static bool parse(const rfi_file *file, rfi_manifest *m)
{
    uint64_t sum = 0;
    if (!is_whole(file)) {
        return false;
    }
    const int64_t most = INT64_MAX / 4;
    rfi_slice rest = {(const char *)file->bytes, file->size};
    rfi_slice none = {NULL, 0};
    bool good = next_word(&rest, FIRST_LINE, '\n', &none) && none.length == 0;
    good = good && read_hex(&rest, "mark ", &m->mark) && read_count(&rest, "round ", '\n', most, &m->round);
    good = good && read_count(&rest, "ranks ", '\n', NAMES_MAX, &m->ranks) && m->ranks > 0;
    for (int i = 0; i < RFI_COUNTERS; i++) {
        good = good && read_count(&rest, "count ", '\n', most, &m->counts[i]);
    }
    for (int64_t i = 0; good && m->entries && i < m->ranks; i++) {
        int64_t bytes = 0;
        good = read_count(&rest, "file ", ' ', most, &bytes) && read_hex(&rest, "", &m->entries[i].sum);
        m->entries[i].bytes = (uint64_t)bytes;
    }
    return good && (!m->entries || (read_hex(&rest, "sum ", &sum) && rest.length == 0));
}

static bool is_earlier(const rfi_file *file)
{
    static const char earlier[] = FIRST_WORDS "1\n";
    return file->size >= sizeof earlier - 1 && memcmp(file->bytes, earlier, sizeof earlier - 1) == 0;
}

bool rfi_manifest_round(const reef_run *run, const char *path, int64_t *round, int64_t *ranks)
{
    rfi_file file = {NULL, 0};
    rfi_manifest m = {0};
    bool good = rfi_file_read(run->context, path, (size_t)NAMES_MAX * 64, &file, NULL) == REEF_OK && parse(&file, &m);
    rfi_file_free(run->context, &file);
    *round = m.round;
    *ranks = m.ranks;
    return good;
}

reef_status rfi_manifest_read(const reef_run *run, const char *path, uint64_t mark, rfi_manifest *m, reef_error *error)
{
    rfi_file file = {NULL, 0};
    reef_status status = rfi_file_read(run->context, path, (size_t)NAMES_MAX * 64, &file, error);
    if (status != REEF_OK) {
        return status;
    }
    if (is_earlier(&file)) {
        status = rfi_fail(error, REEF_E_FORMAT,
                          "%s is a checkpoint of an earlier version of Reef and cannot be resumed by this one",
                          rfi_path_show(path));
    } else if (!parse(&file, m)) {
        status =
            rfi_fail(error, REEF_E_FORMAT, "%s is damaged, or not the manifest of a checkpoint", rfi_path_show(path));
    } else if (m->mark != mark) {
        status =
            rfi_fail(error, REEF_E_FORMAT, "%s is the checkpoint of a run with another setup", rfi_path_show(path));
    } else {
        m->entries = rfi_run_take(run, (ptrdiff_t)m->ranks, sizeof *m->entries);
        if (!m->entries) {
            status = rfi_fail(error, REEF_E_NOMEM, "not enough memory for the manifest of a checkpoint");
        } else if (!parse(&file, m)) {
            status = rfi_fail(error, REEF_E_FORMAT, "%s is incomplete", rfi_path_show(path));
        }
    }
    rfi_file_free(run->context, &file);
    return status;
}

void rfi_parts_remove(const char *path, int64_t round, int64_t ranks, const reef_engine *e)
{
    char name[RFI_PART_PATH];
    for (int64_t i = e->rank; i < ranks; i += e->size) {
        if (rfi_part_name(path, round, (ptrdiff_t)i, name)) {
            (void)unlink(name);
        }
    }
}
