/* The header is read twice by the same code: first to check it and to count, then, with memory of the size counted, to fill in. */
#include "io/safetensors.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/json.h"
#include "io/lines.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What a header has, or where it is put. */
typedef struct store {
    ptrdiff_t tensors, pairs, dimensions; /* used so far */
    rfi_tensor *tensor;                   /* NULL while counting */
    const rfi_tensor **by_name;
    rfi_slice *metadata;
    ptrdiff_t *dimension;
} store;

/* Where we are in the header. */
typedef struct cursor {
    rfi_json json;
    store *to;
} cursor;

/* ---- a tensor ---- */

static const struct {
    const char *name;
    rfi_type type;
} type_names[] = {{"F64", RFI_F64},   {"F32", RFI_F32},         {"F16", RFI_F16},        {"BF16", RFI_BF16},
                  {"I64", RFI_I64},   {"I32", RFI_I32},         {"I16", RFI_I16},        {"I8", RFI_I8},
                  {"U64", RFI_U64},   {"U32", RFI_U32},         {"U16", RFI_U16},        {"U8", RFI_U8},
                  {"BOOL", RFI_BOOL}, {"F8_E4M3", RFI_F8_E4M3}, {"F8_E5M2", RFI_F8_E5M2}};
enum { TYPES = sizeof type_names / sizeof type_names[0] };

const char *rfi_safetensors_type(rfi_type type)
{
    const char *name = "?";
    for (int i = 0; i < TYPES; i++) {
        name = type_names[i].type == type ? type_names[i].name : name;
    }
    return name;
}

static reef_status read_type(cursor *c, rfi_tensor *tensor)
{
    rfi_slice word;
    char shown[RFI_SHOWN_SIZE];
    if (!rfi_json_word(&c->json, &word)) {
        return rfi_json_fail(&c->json, "'dtype' should be a type such as \"F32\"");
    }
    for (int i = 0; i < TYPES; i++) {
        if (rfi_equals(word, type_names[i].name)) {
            tensor->type = type_names[i].type;
            return REEF_OK;
        }
    }
    return rfi_fail(c->json.error, REEF_E_FORMAT,
                    "%s: tensors of type '%s' are not supported; F64, F32, F16, BF16, F8_E4M3, F8_E5M2, I8 to I64, U8 "
                    "to U64 and BOOL are",
                    rfi_path_show(c->json.name), rfi_shown(word, shown));
}

static reef_status read_shape(cursor *c, rfi_tensor *tensor)
{
    store *to = c->to;
    tensor->rank = 0;
    tensor->shape = to->dimension ? to->dimension + to->dimensions : NULL;
    if (!rfi_json_take(&c->json, '[')) {
        return rfi_json_fail(&c->json, "'shape' should be a list such as [3, 4]");
    }
    if (rfi_json_take(&c->json, ']')) {
        return REEF_OK;
    }
    do {
        ptrdiff_t number = 0;
        reef_status status = rfi_json_number(&c->json, &number);
        if (status != REEF_OK) {
            return status;
        }
        if (to->dimension) {
            to->dimension[to->dimensions] = number;
        }
        to->dimensions++;
        tensor->rank++;
    } while (rfi_json_take(&c->json, ','));
    return rfi_json_take(&c->json, ']') ? REEF_OK : rfi_json_fail(&c->json, "the list of a shape should end with ]");
}

static reef_status read_offsets(cursor *c, rfi_tensor *tensor)
{
    ptrdiff_t from = 0;
    ptrdiff_t to = 0;
    if (!rfi_json_take(&c->json, '[')) {
        return rfi_json_fail(&c->json, "'data_offsets' should be a list of two numbers");
    }
    reef_status status = rfi_json_number(&c->json, &from);
    if (status == REEF_OK && !rfi_json_take(&c->json, ',')) {
        return rfi_json_fail(&c->json, "'data_offsets' should be a list of two numbers");
    }
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_json_number(&c->json, &to);
    if (status != REEF_OK) {
        return status;
    }
    if (!rfi_json_take(&c->json, ']') || to < from) {
        return rfi_json_fail(&c->json,
                             "'data_offsets' should be a list of two numbers, the second not below the first");
    }
    tensor->start = (size_t)from;
    tensor->bytes = (size_t)(to - from);
    return REEF_OK;
}

/* {"dtype": ..., "shape": ..., "data_offsets": ...} in any order. */
static reef_status read_tensor(cursor *c, rfi_tensor *tensor)
{
    static const struct {
        const char *key;
        reef_status (*read)(cursor *, rfi_tensor *);
    } keys[] = {{"dtype", read_type}, {"shape", read_shape}, {"data_offsets", read_offsets}};
    bool seen[3] = {false};
    if (!rfi_json_take(&c->json, '{')) {
        return rfi_json_fail(&c->json, "a tensor should be {\"dtype\": ..., \"shape\": ..., \"data_offsets\": ...}");
    }
    for (int n = 0; n < 3; n++) {
        rfi_slice key;
        int which = 0;
        if ((n > 0 && !rfi_json_take(&c->json, ',')) || !rfi_json_word(&c->json, &key) ||
            !rfi_json_take(&c->json, ':')) {
            return rfi_json_fail(&c->json, "a tensor should have the keys 'dtype', 'shape' and 'data_offsets'");
        }
        while (which < 3 && !rfi_equals(key, keys[which].key)) {
            which++;
        }
        if (which == 3 || seen[which]) {
            return rfi_json_fail(&c->json, which == 3 ? "unknown key in a tensor" : "a key appears twice in a tensor");
        }
        seen[which] = true;
        reef_status status = keys[which].read(c, tensor);
        if (status != REEF_OK) {
            return status;
        }
    }
    return rfi_json_take(&c->json, '}') ? REEF_OK
                                        : rfi_json_fail(&c->json, "a tensor should end with } after its three keys");
}

/* ---- the header ---- */

static reef_status read_metadata(cursor *c)
{
    store *to = c->to;
    if (!rfi_json_take(&c->json, '{')) {
        return rfi_json_fail(&c->json, "'__metadata__' should be {\"key\": \"text\", ...}");
    }
    if (rfi_json_take(&c->json, '}')) {
        return REEF_OK;
    }
    do {
        rfi_slice pair[2];
        reef_status status = rfi_json_text(&c->json, "a key of '__metadata__' should be a string", &pair[0]);
        if (status == REEF_OK && !rfi_json_take(&c->json, ':')) {
            return rfi_json_fail(&c->json, "a colon is missing in '__metadata__'");
        }
        if (status == REEF_OK) {
            status = rfi_json_text(&c->json, "the values of '__metadata__' should be strings", &pair[1]);
        }
        if (status != REEF_OK) {
            return status;
        }
        if (to->metadata) {
            memcpy(to->metadata + 2 * to->pairs, pair, sizeof pair);
        }
        to->pairs++;
    } while (rfi_json_take(&c->json, ','));
    return rfi_json_take(&c->json, '}') ? REEF_OK : rfi_json_fail(&c->json, "'__metadata__' should end with }");
}

/* A name and what it stands for. */
static reef_status read_entry(cursor *c, bool *metadata)
{
    store *to = c->to;
    rfi_tensor tensor = {0};
    rfi_json_blanks(&c->json);
    if ((size_t)(c->json.end - c->json.at) > 14 && memcmp(c->json.at, "\"__metadata__\"", 14) == 0) {
        if (*metadata) {
            return rfi_json_fail(&c->json, "'__metadata__' appears twice");
        }
        *metadata = true;
        c->json.at += 14;
        return rfi_json_take(&c->json, ':') ? read_metadata(c)
                                            : rfi_json_fail(&c->json, "a colon is missing after '__metadata__'");
    }
    reef_status status = rfi_json_text(&c->json, "there should be the name of a tensor", &tensor.name);
    if (status == REEF_OK && !rfi_json_take(&c->json, ':')) {
        return rfi_json_fail(&c->json, "a colon is missing after the name of a tensor");
    }
    if (status == REEF_OK) {
        status = read_tensor(c, &tensor);
    }
    if (status == REEF_OK && to->tensor) {
        to->tensor[to->tensors] = tensor;
    }
    to->tensors++;
    return status;
}

static reef_status read_header(cursor *c)
{
    bool metadata = false;
    if (c->json.at == c->json.end || *c->json.at != '{') {
        return rfi_json_fail(&c->json, "the header should begin with {");
    }
    c->json.at++;
    if (!rfi_json_take(&c->json, '}')) {
        do {
            reef_status status = read_entry(c, &metadata);
            if (status != REEF_OK) {
                return status;
            }
        } while (rfi_json_take(&c->json, ','));
        if (!rfi_json_take(&c->json, '}')) {
            return rfi_json_fail(&c->json, "a comma or the header's } is missing");
        }
    }
    rfi_json_blanks(&c->json);
    return c->json.at == c->json.end ? REEF_OK : rfi_json_fail(&c->json, "something follows the header's }");
}

/* ---- the tensors together ---- */

int rfi_tensor_compare(const rfi_tensor *a, const rfi_tensor *b)
{
    size_t shorter = a->name.length < b->name.length ? a->name.length : b->name.length;
    int order = shorter > 0 ? memcmp(a->name.text, b->name.text, shorter) : 0;
    return order ? order : (a->name.length > b->name.length) - (a->name.length < b->name.length);
}

static int by_name(const void *a, const void *b)
{
    return rfi_tensor_compare(*(const rfi_tensor *const *)a, *(const rfi_tensor *const *)b);
}

static int by_start(const void *a, const void *b)
{
    const rfi_tensor *x = a;
    const rfi_tensor *y = b;
    if (x->start != y->start) {
        return x->start < y->start ? -1 : 1;
    }
    if (x->bytes != y->bytes) { /* those without data stand before the one that begins there */
        return x->bytes < y->bytes ? -1 : 1;
    }
    return rfi_tensor_compare(x, y);
}

static reef_status fail_tensor(const char *file, const rfi_tensor *tensor, const char *what, reef_error *error)
{
    char shown[RFI_SHOWN_SIZE];
    return rfi_fail(error, REEF_E_FORMAT, "%s: tensor '%s' %s", rfi_path_show(file), rfi_shown(tensor->name, shown),
                    what);
}

/* Its shape must have as many bytes as its offsets say. */
static reef_status measure(rfi_tensor *tensor, const char *file, reef_error *error)
{
    ptrdiff_t product = 1;
    ptrdiff_t bytes = 0;
    bool empty = false;
    bool fits = true;
    for (ptrdiff_t i = 0; i < tensor->rank; i++) {
        empty = empty || tensor->shape[i] == 0;
        fits = fits && (tensor->shape[i] == 0 || rfi_mul(product, tensor->shape[i], &product));
    }
    if (!fits || !rfi_mul(product, (ptrdiff_t)rfi_type_size(tensor->type), &bytes)) {
        return fail_tensor(file, tensor, "has a shape with more elements than memory can hold", error);
    }
    tensor->count = empty ? 0 : product;
    if ((empty ? 0 : (size_t)bytes) != tensor->bytes) {
        return fail_tensor(file, tensor, "has data_offsets that do not fit its shape and type", error);
    }
    return REEF_OK;
}

static reef_status check_data(const rfi_safetensors *table, size_t room, const char *file, reef_error *error)
{
    size_t end = 0;
    for (ptrdiff_t i = 0; i < table->count; i++) {
        const rfi_tensor *tensor = &table->tensors[i];
        if (tensor->start != end) {
            return fail_tensor(file, tensor, tensor->start < end ? "overlaps another one" : "begins after a hole",
                               error);
        }
        if (tensor->bytes > room - end) {
            return fail_tensor(file, tensor, "reaches beyond the end of the file", error);
        }
        end += tensor->bytes;
        assert(end <= room);
    }
    if (end != room) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: %zu byte%s the data of the last tensor", rfi_path_show(file),
                        room - end, room - end == 1 ? " follows" : "s follow");
    }
    return REEF_OK;
}

static reef_status check_all(rfi_safetensors *table, size_t room, const char *file, reef_error *error)
{
    size_t count = (size_t)table->count;
    for (ptrdiff_t i = 0; i < table->count; i++) {
        reef_status status = measure(&table->tensors[i], file, error);
        if (status != REEF_OK) {
            return status;
        }
        if (rfi_equals(table->tensors[i].name, "__metadata__")) { /* written with escapes */
            return fail_tensor(file, &table->tensors[i], "has the name that is kept for metadata", error);
        }
    }
    bool in_order = true; /* as most are */
    for (ptrdiff_t i = 1; i < table->count; i++) {
        in_order = in_order && by_start(&table->tensors[i - 1], &table->tensors[i]) <= 0;
    }
    if (!in_order) {
        qsort(table->tensors, count, sizeof *table->tensors, by_start);
    }
    for (ptrdiff_t i = 0; i < table->count; i++) {
        table->by_name[i] = &table->tensors[i];
    }
    qsort(table->by_name, count, sizeof(void *), by_name);
    for (ptrdiff_t i = 1; i < table->count; i++) {
        if (rfi_tensor_compare(table->by_name[i - 1], table->by_name[i]) == 0) {
            return fail_tensor(file, table->by_name[i], "appears twice", error);
        }
    }
    return check_data(table, room, file, error);
}

/* ---- the file ---- */

reef_status rfi_safetensors_length(const void *bytes, size_t have, size_t size, const char *name, size_t *length,
                                   reef_error *error)
{
    const unsigned char *b = bytes;
    const char *shown = rfi_path_show(name);
    uint64_t found = 0;
    if (size < RFI_SAFETENSORS_START || have < RFI_SAFETENSORS_START) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: has %zu bytes, too few for a model file (safetensors or npy)", shown,
                        size);
    }
    for (int i = RFI_SAFETENSORS_START - 1; i >= 0; i--) {
        found = found << 8 | b[i];
    }
    if (found > RFI_SAFETENSORS_HEADER_MAX) {
        return rfi_fail(error, REEF_E_FORMAT,
                        "%s: byte 0: this is not a safetensors file: it does not begin with the length of a header",
                        shown);
    }
    if (found > size - RFI_SAFETENSORS_START) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: byte 0: the file ends within its header of %llu bytes", shown,
                        (unsigned long long)found);
    }
    *length = (size_t)found;
    return REEF_OK;
}

/* Memory for what was counted. */
static bool allocate(const reef_context *context, cursor *c, rfi_safetensors *table)
{
    store *to = c->to;
    rfi_arena arena = {0};
    for (int round = 0; round < 2; round++) { /* measure, then take */
        to->tensor = rfi_arena_take(&arena, to->tensors + 1, 1, sizeof *to->tensor);
        to->by_name = rfi_arena_take(&arena, to->tensors + 1, 1, sizeof(void *));
        to->metadata = rfi_arena_take(&arena, to->pairs + 1, 2, sizeof *to->metadata);
        to->dimension = rfi_arena_take(&arena, to->dimensions + 1, 1, sizeof *to->dimension);
        c->json.letter = rfi_arena_take(&arena, c->json.letters + 1, 1, 1);
        if (round == 0) {
            table->memory = arena.overflow ? NULL : rfi_allocate(context, (size_t)arena.used);
            if (!table->memory) {
                return false;
            }
            arena = (rfi_arena){.base = table->memory};
        }
    }
    return true;
}

reef_status rfi_safetensors_read(const reef_context *context, const void *header, size_t length, size_t room,
                                 const char *name, rfi_safetensors *table, reef_error *error)
{
    const char *text = header;
    store to = {0};
    rfi_safetensors found = {0};
    cursor c = {{.name = name,
                 .offset = RFI_SAFETENSORS_START,
                 .start = text,
                 .at = text,
                 .end = text + length,
                 .error = error},
                &to};
    reef_status status = read_header(&c);
    if (status != REEF_OK) {
        return status;
    }
    if (!allocate(context, &c, &found)) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: no memory for its table of %td tensors", rfi_path_show(name),
                        to.tensors);
    }
    found.count = to.tensors;
    found.pairs = to.pairs;
    found.tensors = to.tensor;
    found.by_name = to.by_name;
    found.metadata = to.metadata;
    to.tensors = to.pairs = to.dimensions = 0;
    c.json.letters = 0;
    c.json.at = text;
    status = read_header(&c);
    assert(status != REEF_OK ||
           (to.tensors == found.count && to.pairs == found.pairs)); /* the same text, the same code */
    if (status == REEF_OK) {
        status = check_all(&found, room, name, error);
    }
    if (status != REEF_OK) {
        rfi_safetensors_free(context, &found);
        return status;
    }
    *table = found;
    return REEF_OK;
}

void rfi_safetensors_free(const reef_context *context, rfi_safetensors *table)
{
    rfi_release(context, table->memory);
    *table = (rfi_safetensors){0};
}
