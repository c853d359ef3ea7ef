/* Model files that are made of parts: some tensors of some types and shapes, the same in all files or nearly so, numbers of any bits, and
 * here and there a damaged byte. Merging them with threads and in small blocks gives the same status and the same bytes as merging
 * them with one thread in one block; a single tensor of float32 has the bits of reef_agg_apply; a failure has a sentence and leaves no file. */
#include "bytes.h"
#include "folder.h"

#include <reef/reef.h>
#include <stdbool.h>

enum { FILES = 5, TENSORS = 3, FEW = 40, BLOCKS = 8190, ELEMENTS = BLOCKS + 8, FILE_MAX = 1 << 18 };

typedef struct tensor {
    const char *type;
    size_t width;
    ptrdiff_t count;
} tensor;

typedef struct model {
    tensor tensors[TENSORS];
    ptrdiff_t count;
} model;

static const tensor kinds[] = {{"F32", 4, 0}, {"F32", 4, 0}, {"F64", 8, 0}, {"F16", 2, 0}, {"BF16", 2, 0},
                               {"I64", 8, 0}, {"I32", 4, 0}, {"U8", 1, 0},  {"BOOL", 1, 0}};

static model draw_model(bytes *b)
{
    model m = {.count = 1 + below(b, TENSORS)};
    for (ptrdiff_t t = 0; t < m.count; t++) {
        m.tensors[t] = kinds[below(b, (ptrdiff_t)(sizeof kinds / sizeof kinds[0]))];
        m.tensors[t].count = below(b, FEW);
    }
    if (below(b, 24) == 0) { /* more than one block of 4096 numbers */
        m.tensors[0].count = BLOCKS + below(b, 8);
    }
    return m;
}

/* Mostly small numbers; of eight-bit truth values only 0 and 1 are allowed, which is sometimes ignored. */
static size_t put_numbers(bytes *b, const tensor *t, unsigned char *to)
{
    size_t size = (size_t)t->count * t->width;
    uint8_t style = take(b);
    for (ptrdiff_t i = 0; i < t->count; i++) {
        unsigned char *at = to + (size_t)i * t->width;
        float value = 0.1F * (float)(take(b) % 64);
        memset(at, 0, t->width);
        if (strcmp(t->type, "F32") == 0 && style % 4) {
            memcpy(at, &value, sizeof value);
        } else if (style % 16 == 0) {
            for (size_t k = 0; k < t->width; k++) {
                at[k] = take(b);
            }
        } else {
            at[0] = take(b) % 2;
        }
    }
    return size;
}

static size_t put_file(bytes *b, const model *m, unsigned char *file)
{
    char header[1024];
    size_t used = 0;
    size_t offset = 0;
    used += (size_t)snprintf(header, sizeof header, "{");
    for (ptrdiff_t t = 0; t < m->count; t++) {
        size_t end = offset + (size_t)m->tensors[t].count * m->tensors[t].width;
        used += (size_t)snprintf(header + used, sizeof header - used,
                                 "%s\"t%td\":{\"dtype\":\"%s\",\"shape\":[%td],\"data_offsets\":[%zu,%zu]}",
                                 t ? "," : "", t, m->tensors[t].type, m->tensors[t].count, offset, end);
        offset = end;
    }
    used += (size_t)snprintf(header + used, sizeof header - used, "}");
    uint64_t length = used;
    memcpy(file, &length, sizeof length);
    memcpy(file + sizeof length, header, used);
    size_t size = sizeof length + used;
    for (ptrdiff_t t = 0; t < m->count; t++) {
        size += put_numbers(b, &m->tensors[t], file + size);
    }
    return size;
}

static unsigned char files[FILES][FILE_MAX];
static size_t sizes[FILES];

/* Returns whether all headers are those of the model: a file alone may well be of another one. */
static bool write_files(bytes *b, const model *m, char paths[FILES][96], ptrdiff_t count)
{
    bool alike = true;
    for (ptrdiff_t f = 0; f < count; f++) {
        model own = *m;
        if (below(b, 8) == 0) {
            own = draw_model(b);
            alike = false;
        }
        sizes[f] = put_file(b, &own, files[f]);
        if (below(b, 8) == 0) {
            size_t at = (size_t)(take(b) * 256U + take(b)) % sizes[f];
            uint64_t header = 0;
            memcpy(&header, files[f], sizeof header);
            files[f][at] ^= take(b);
            alike = alike && at >= sizeof header + header;
        }
        if (below(b, 16) == 0) {
            sizes[f] -= (size_t)below(b, (ptrdiff_t)(sizes[f] < 255 ? sizes[f] : 255));
        }
        (void)snprintf(paths[f], sizeof paths[f], "%s/%td.safetensors", folder, f);
        write_all(paths[f], files[f], sizes[f]);
    }
    return alike;
}

static reef_status merge(reef_context *context, const reef_merge_options *options, char paths[FILES][96],
                         ptrdiff_t count, unsigned char *out, long *size)
{
    const char *names[FILES];
    char path[96];
    reef_error error = {REEF_OK, ""};
    reef_merge_file about[FILES];
    reef_merge_report report = {.files = about};
    for (ptrdiff_t f = 0; f < count; f++) {
        names[f] = paths[f];
    }
    (void)snprintf(path, sizeof path, "%s/out.safetensors", folder);
    (void)unlink(path);
    reef_status status = reef_merge_files(context, options, names, count, path, &report, &error);
    *size = read_all(path, out, FILE_MAX);
    CHECK((status == REEF_OK) == (*size >= 0));
    CHECK(status == REEF_OK || (error.status == status && error.text[0]));
    return status;
}

/* One tensor of float32, all files whole: the last bytes of the output are the aggregate of the last bytes of the files. */
static void compare_with_memory(const char *rule, const model *m, ptrdiff_t count, const unsigned char *merged,
                                long size)
{
    static float rows[FILES][ELEMENTS];
    const void *row[FILES];
    static float out[ELEMENTS];
    ptrdiff_t length = m->tensors[0].count;
    size_t width = (size_t)length * sizeof(float);
    reef_agg *agg = NULL;
    for (ptrdiff_t f = 0; f < count; f++) {
        memcpy(rows[f], files[f] + sizes[f] - width, width);
        row[f] = rows[f];
    }
    const reef_input input = {.rows = row};
    CHECK(reef_agg_create(NULL, &agg, rule, NULL) == REEF_OK);
    CHECK(reef_agg_apply(agg, &input, count, length, REEF_F32, out, NULL, NULL) == REEF_OK);
    CHECK(memcmp(out, merged + (size_t)size - width, width) == 0);
    reef_agg_destroy(&agg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const rules[] = {"mean",   "median",        "ref",
                                        "vref",   "trimmed:f=1",   "krum:f=0",
                                        "geomed", "nnm:f=1 | ref", "median:nan=drop-coordinate",
                                        "mref"};
    static reef_context *context;
    static unsigned char alone[FILE_MAX], shared[FILE_MAX];
    char paths[FILES][96];
    long alone_size = 0;
    long shared_size = 0;
    make_folder();
    if (!context) {
        CHECK(reef_context_create(&context, NULL, NULL) == REEF_OK &&
              reef_context_set_threads(context, 3, NULL) == REEF_OK);
    }
    bytes b = {data, size, (uint32_t)size};
    const char *rule = rules[below(&b, (ptrdiff_t)(sizeof rules / sizeof rules[0]))];
    uint8_t flags = take(&b);
    model m = draw_model(&b);
    ptrdiff_t count = 1 + below(&b, FILES);
    bool alike = write_files(&b, &m, paths, count);
    reef_merge_options options = {.rule = rule, .per_tensor = flags & 1, .drop_bad = flags & 2, .no_trust = flags & 4};
    options.integers = flags & 8 ? REEF_MERGE_TRUSTED : REEF_MERGE_MAJORITY;
    reef_status status = merge(NULL, &options, paths, count, alone, &alone_size);
    options.memory = 1 << 20;
    CHECK(merge(context, &options, paths, count, shared, &shared_size) == status);
    CHECK(alone_size == shared_size && (status != REEF_OK || memcmp(alone, shared, (size_t)alone_size) == 0));
    bool plain = m.count == 1 && strcmp(m.tensors[0].type, "F32") == 0 && m.tensors[0].count > 0;
    if (status == REEF_OK && plain && alike && !options.drop_bad && strchr(rule, '|') == NULL) {
        compare_with_memory(rule, &m, count, alone, alone_size);
    }
    return 0;
}
