/* The index is read twice by the same code, as the header of a safetensors file is: to check and count, then to fill in. */
#include "io/shards.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/json.h"
#include "io/lines.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reading {
    rfi_json json;
    ptrdiff_t count;
    rfi_shard_entry *entries; /* NULL while counting */
} reading;

int rfi_slice_compare(rfi_slice a, rfi_slice b)
{
    size_t shorter = a.length < b.length ? a.length : b.length;
    int order = shorter > 0 ? memcmp(a.text, b.text, shorter) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

/* ---- reading ---- */

static reef_status read_pair(reading *r)
{
    rfi_shard_entry entry;
    rfi_json *c = &r->json;
    reef_status status = rfi_json_text(c, "there should be the name of a tensor", &entry.tensor);
    if (status != REEF_OK) {
        return status;
    }
    if (!rfi_json_take(c, ':')) {
        return rfi_json_fail(c, "a colon is missing after the name of a tensor");
    }
    status = rfi_json_text(c, "there should be the name of the tensor's file", &entry.file);
    if (status != REEF_OK) {
        return status;
    }
    if (r->entries) {
        r->entries[r->count] = entry;
    }
    r->count++;
    return REEF_OK;
}

static reef_status read_map(reading *r)
{
    rfi_json *c = &r->json;
    if (!rfi_json_take(c, '{')) {
        return rfi_json_fail(c, "'weight_map' should be {\"tensor\": \"file\", ...}");
    }
    if (rfi_json_take(c, '}')) {
        return REEF_OK;
    }
    do {
        reef_status status = read_pair(r);
        if (status != REEF_OK) {
            return status;
        }
    } while (rfi_json_take(c, ','));
    return rfi_json_take(c, '}') ? REEF_OK : rfi_json_fail(c, "'weight_map' should end with }");
}

static reef_status read_index(reading *r)
{
    rfi_json *c = &r->json;
    bool seen = false;
    if (!rfi_json_take(c, '{')) {
        return rfi_json_fail(c, "the index should begin with {");
    }
    do {
        rfi_slice key;
        if (!rfi_json_word(c, &key) || !rfi_json_take(c, ':')) {
            return rfi_json_fail(c, "there should be a key such as \"weight_map\"");
        }
        bool map = rfi_equals(key, "weight_map");
        if (map && seen) {
            return rfi_json_fail(c, "'weight_map' appears twice");
        }
        seen = seen || map;
        reef_status status = map ? read_map(r) : rfi_json_skip(c);
        if (status != REEF_OK) {
            return status;
        }
    } while (rfi_json_take(c, ','));
    if (!rfi_json_take(c, '}') || !seen) {
        return rfi_json_fail(c, seen ? "a comma or the index's } is missing" : "there is no 'weight_map'");
    }
    rfi_json_blanks(c);
    return c->at == c->end ? REEF_OK : rfi_json_fail(c, "something follows the index's }");
}

/* ---- checking ---- */

static int by_tensor(const void *a, const void *b)
{
    return rfi_slice_compare(((const rfi_shard_entry *)a)->tensor, ((const rfi_shard_entry *)b)->tensor);
}

static int by_text(const void *a, const void *b)
{
    return rfi_slice_compare(*(const rfi_slice *)a, *(const rfi_slice *)b);
}

/* A file of the same folder that is not hidden. */
static bool is_plain_name(rfi_slice name)
{
    return name.length > 0 && name.length < 256 && name.text[0] != '.' && !memchr(name.text, '/', name.length) &&
           !memchr(name.text, '\0', name.length);
}

static reef_status check(rfi_shards *shards, const char *name, reef_error *error)
{
    char shown[RFI_SHOWN_SIZE];
    qsort(shards->entries, (size_t)shards->count, sizeof *shards->entries, by_tensor);
    for (ptrdiff_t i = 0; i < shards->count; i++) {
        const rfi_shard_entry *entry = &shards->entries[i];
        if (i > 0 && by_tensor(entry - 1, entry) == 0) {
            return rfi_fail(error, REEF_E_FORMAT, "%s: tensor '%s' appears twice", rfi_path_show(name),
                            rfi_shown(entry->tensor, shown));
        }
        if (!is_plain_name(entry->file)) {
            return rfi_fail(error, REEF_E_FORMAT, "%s: '%s' is not a file in this folder", rfi_path_show(name),
                            rfi_shown(entry->file, shown));
        }
        shards->files[i] = entry->file;
    }
    qsort(shards->files, (size_t)shards->count, sizeof *shards->files, by_text);
    for (ptrdiff_t i = 0; i < shards->count; i++) {
        if (i == 0 || by_text(&shards->files[i], &shards->files[shards->file_count - 1]) != 0) {
            shards->files[shards->file_count++] = shards->files[i];
        }
    }
    return REEF_OK;
}

static bool allocate(const reef_context *context, reading *r, rfi_shards *shards)
{
    rfi_arena arena = {0};
    for (int round = 0; round < 2; round++) { /* measure, then take */
        shards->entries = rfi_arena_take(&arena, r->count + 1, 1, sizeof *shards->entries);
        shards->files = rfi_arena_take(&arena, r->count + 1, 1, sizeof *shards->files);
        r->json.letter = rfi_arena_take(&arena, r->json.letters + 1, 1, 1);
        if (round == 0) {
            shards->memory = arena.overflow ? NULL : rfi_allocate(context, (size_t)arena.used);
            if (!shards->memory) {
                return false;
            }
            arena = (rfi_arena){.base = shards->memory};
        }
    }
    r->entries = shards->entries;
    return true;
}

reef_status rfi_shards_read(const reef_context *context, const void *bytes, size_t size, const char *name,
                            rfi_shards *shards, reef_error *error)
{
    const char *text = bytes;
    rfi_shards found = {0};
    reading r = {.json = {.name = name, .start = text, .at = text, .end = text + size, .error = error}};
    reef_status status = read_index(&r);
    if (status != REEF_OK) {
        return status;
    }
    if (!allocate(context, &r, &found)) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: no memory for its %td tensors", rfi_path_show(name), r.count);
    }
    found.count = r.count;
    r.count = 0;
    r.json.letters = 0;
    r.json.at = text;
    status = read_index(&r);
    assert(status != REEF_OK || r.count == found.count); /* the same text, the same code */
    if (status == REEF_OK) {
        status = check(&found, name, error);
    }
    if (status != REEF_OK) {
        rfi_shards_free(context, &found);
        return status;
    }
    *shards = found;
    return REEF_OK;
}

void rfi_shards_free(const reef_context *context, rfi_shards *shards)
{
    rfi_release(context, shards->memory);
    *shards = (rfi_shards){0};
}

/* ---- writing ---- */

size_t rfi_shards_write(const rfi_shard_entry *entries, ptrdiff_t count, size_t total, char *to)
{
    char head[80];
    size_t used = 0;
    (void)snprintf(head, sizeof head, "{\n  \"metadata\": {\n    \"total_size\": %zu\n  },\n  \"weight_map\": {",
                   total);
    rfi_json_put(to, &used, head);
    for (ptrdiff_t i = 0; i < count; i++) {
        rfi_json_put(to, &used, i ? ",\n    " : "\n    ");
        rfi_json_put_text(to, &used, entries[i].tensor);
        rfi_json_put(to, &used, ": ");
        rfi_json_put_text(to, &used, entries[i].file);
    }
    rfi_json_put(to, &used, "\n  }\n}\n");
    return used;
}
