/* The state of a run that is spread over ranks: a safetensors file per rank with the rows of its agents, and a manifest that names them.
 *
 *   PATH                          the manifest: fingerprint of the setup, round, counters, and each file with size and checksum
 *   PATH.ROUND.RANK.safetensors   agents [n], w [n, M R]; where the run has them: velocity [n, M R], state [n, bytes];
 *                                 liars [f], before [f, M R], past [f, depth, M R], past_sent [f, depth]; rank 0: extra
 * The files are written first, the manifest last and by renaming, then those of the round before are removed: whenever the job dies, PATH
 * names a whole state. Which rank wrote an agent's rows does not matter to the one that reads them. */
#include "base/error.h"
#include "base/text.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "io/stream.h"
#include "learn/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, TENSORS_MAX = 10, HEADER_SIZE = 4096, NAMES_MAX = 1 << 20 };

#define FIRST_LINE "reef checkpoint over ranks, format 1"

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ p[i]) * 1099511628211U;
    }
    return hash;
}

/* ---- what there is ---- */

/* Rows of this rank's part of the state, as laid out in its file. */
typedef struct tensor {
    const char *name, *type;
    ptrdiff_t rows, middle; /* middle 0: two dimensions or one */
    size_t row;             /* bytes of a row */
    ptrdiff_t width;        /* elements of the last dimension; 0: one dimension */
} tensor;

/* The same on all ranks, whether they have liars or not. */
static bool remembers(const reef_run *run)
{
    return run->uses_rule && (reef_agg_traits(run->setup.rule) & (REEF_TRAIT_CENTRE | REEF_TRAIT_SENDERS));
}

/* Bytes of the rule's state at a receiver. */
static size_t state_bytes(const reef_run *run)
{
    return run->classes > 0 ? reef_state_size(run->states[0]) : 0;
}

/* All tensors of n agents and f liars. */
static ptrdiff_t list_tensors(const reef_run *run, ptrdiff_t n, ptrdiff_t f, size_t extra, tensor *list)
{
    size_t row = (size_t)run->length * sizeof(float);
    ptrdiff_t count = 0;
    bool lies = run->setup.attack && run->all_liars;
    list[count++] = (tensor){"agents", "I64", n, 0, sizeof(int64_t), 0};
    list[count++] = (tensor){"w", "F32", n, 0, row, run->length};
    if (run->adapt->momentum > 0) {
        list[count++] = (tensor){"velocity", "F32", n, 0, row, run->length};
    }
    if (remembers(run)) {
        list[count++] = (tensor){"state", "U8", n, 0, state_bytes(run), (ptrdiff_t)state_bytes(run)};
    }
    if (lies && run->sends_old) {
        list[count++] = (tensor){"before", "F32", f, 0, row, run->length};
    }
    if (lies && run->depth > 1) {
        list[count++] = (tensor){"past", "F32", f, (ptrdiff_t)run->depth, (size_t)run->depth * row, run->length};
        list[count++] = (tensor){"past_sent", "U8", f, 0, (size_t)run->depth, (ptrdiff_t)run->depth};
    }
    list[count++] = (tensor){"liars", "I64", f, 0, sizeof(int64_t), 0};
    if (extra) {
        list[count++] = (tensor){"extra", "U8", (ptrdiff_t)extra, 0, 1, 0};
    }
    return count;
}

/* ---- writing ---- */

static void put_row(const reef_run *run, const tensor *t, ptrdiff_t i, const void *extra, unsigned char *to)
{
    size_t row = (size_t)run->length * sizeof(float);
    ptrdiff_t liar = t->rows == run->own_liars && i < run->own_liars ? run->liar_list[i] : 0;
    int64_t id = (int64_t)rfi_id(run, strcmp(t->name, "liars") == 0 ? liar : i);
    if (strcmp(t->name, "agents") == 0 || strcmp(t->name, "liars") == 0) {
        memcpy(to, &id, sizeof id);
    } else if (strcmp(t->name, "w") == 0) {
        memcpy(to, rfi_model(run, i), row);
    } else if (strcmp(t->name, "velocity") == 0) {
        memcpy(to, rfi_row(run, run->velocity, i), row);
    } else if (strcmp(t->name, "before") == 0) {
        memcpy(to, rfi_row(run, run->before, i), row);
    } else if (strcmp(t->name, "past") == 0) {
        for (ptrdiff_t d = 0; d < run->depth; d++) {
            memcpy(to + (size_t)d * row, rfi_row(run, run->past, d * run->liars + i), row);
        }
    } else if (strcmp(t->name, "past_sent") == 0) {
        for (ptrdiff_t d = 0; d < run->depth; d++) {
            to[d] = run->past_sent[d * run->liars + i];
        }
    } else if (strcmp(t->name, "extra") == 0) {
        to[0] = ((const unsigned char *)extra)[i];
    } else {
        (void)reef_state_save(run->states[run->class_of[i]], to, t->row, NULL);
    }
}

static size_t print_header(const tensor *list, ptrdiff_t count, char header[HEADER_SIZE])
{
    size_t used = 0;
    size_t at = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        char shape[80];
        const tensor *t = &list[i];
        size_t bytes = (size_t)t->rows * t->row;
        if (t->middle) {
            (void)snprintf(shape, sizeof shape, "%td,%td,%td", t->rows, t->middle, t->width);
        } else if (t->width) {
            (void)snprintf(shape, sizeof shape, "%td,%td", t->rows, t->width);
        } else {
            (void)snprintf(shape, sizeof shape, "%td", t->rows);
        }
        used += (size_t)snprintf(header + used, HEADER_SIZE - used,
                                 "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", i ? "," : "{",
                                 t->name, t->type, shape, at, at + bytes);
        at += bytes;
    }
    used += (size_t)snprintf(header + used, HEADER_SIZE - used, "}");
    while (used % 8) {
        header[used++] = ' ';
    }
    return used;
}

/* What the manifest says of a file. */
typedef struct entry {
    uint64_t bytes, sum;
} entry;

/* Writes one row after the other, with the checksum on the way. */
static reef_status write_part(reef_run *run, const char *path, const void *extra, size_t extra_size, entry *told,
                              reef_error *error)
{
    tensor list[TENSORS_MAX];
    char header[HEADER_SIZE];
    rfi_writer writer = {.descriptor = -1};
    ptrdiff_t count = list_tensors(run, run->own, run->own_liars, extra_size, list);
    size_t length = print_header(list, count, header);
    unsigned char start[RFI_SAFETENSORS_START] = {0};
    size_t room = 1;
    for (ptrdiff_t i = 0; i < count; i++) {
        room = list[i].row > room ? list[i].row : room;
    }
    unsigned char *row = rfi_allocate(run->context, room);
    reef_status status = row ? rfi_writer_open(run->context, &writer, path, error)
                             : rfi_fail(error, REEF_E_NOMEM, "no memory for a checkpoint");
    for (size_t i = 0; i < sizeof start; i++) {
        start[i] = (unsigned char)(length >> 8 * i);
    }
    told->sum = hash_bytes(hash_bytes(UINT64_C(1469598103934665603), start, sizeof start), header, length);
    status = status == REEF_OK ? rfi_writer_put(&writer, 0, start, sizeof start, error) : status;
    status = status == REEF_OK ? rfi_writer_put(&writer, sizeof start, header, length, error) : status;
    size_t at = sizeof start + length;
    for (ptrdiff_t i = 0; row && i < count; i++) {
        for (ptrdiff_t k = 0; k < list[i].rows && status == REEF_OK; k++) {
            put_row(run, &list[i], k, extra, row);
            told->sum = hash_bytes(told->sum, row, list[i].row);
            status = rfi_writer_put(&writer, at, row, list[i].row, error);
            at += list[i].row;
        }
    }
    told->bytes = at;
    if (status == REEF_OK) {
        status = rfi_writer_commit(&writer, error);
    } else {
        rfi_writer_abandon(&writer);
    }
    rfi_release(run->context, row);
    return status;
}

static bool name_part(const char *path, int64_t round, ptrdiff_t rank, char name[PATH_SIZE])
{
    int length = snprintf(name, PATH_SIZE, "%s.%" PRId64 ".%td.safetensors", path, round, rank);
    return length > 0 && length < PATH_SIZE;
}

/* The round and number of ranks that a manifest names; false: there is none that can be read. */
static bool read_round(const reef_run *run, const char *path, int64_t *round, int64_t *ranks);

static reef_status write_manifest(const reef_run *run, const char *path, uint64_t mark, const reef_run_counts *counts,
                                  const entry *entries, reef_error *error)
{
    ptrdiff_t size = run->ranks->engine->size;
    size_t room = 1024 + (size_t)size * 64;
    char *text = rfi_allocate(run->context, room);
    if (!text) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the manifest of a checkpoint");
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
    used += (size_t)snprintf(text + used, room - used, "end\n");
    reef_status status = rfi_file_write(run->context, path, &(rfi_piece){text, used}, 1, error);
    rfi_release(run->context, text);
    return status;
}

/* Sums of the counters of all ranks, which are put side by side in `all`. */
static reef_status sum_counts(const reef_run *run, reef_run_counts *sum, reef_error *error)
{
    const reef_engine *e = run->ranks->engine;
    reef_run_counts *all = rfi_run_take(run, e->size, sizeof *all);
    reef_status status = all ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for the counters");
    status = e->ops->agree(e, status, error);
    *sum = (reef_run_counts){.rounds = run->counts.rounds};
    if (status == REEF_OK && all) {
        all[e->rank] = run->counts;
        status = e->ops->merge(e, all, (size_t)e->size * sizeof *all, error);
    }
    for (int32_t r = 0; status == REEF_OK && all && r < e->size; r++) {
        sum->messages += all[r].messages;
        sum->bytes += all[r].bytes;
        sum->gradients += all[r].gradients;
        sum->kept += all[r].kept;
        sum->dropped += all[r].dropped;
        sum->silent += all[r].silent;
        sum->late += all[r].late;
    }
    rfi_release(run->context, all);
    return status;
}

static void remove_parts(const char *path, int64_t round, int64_t ranks, const reef_engine *e)
{
    char name[PATH_SIZE];
    for (int64_t i = e->rank; i < ranks; i += e->size) {
        if (name_part(path, round, (ptrdiff_t)i, name)) {
            (void)unlink(name);
        }
    }
}

reef_status rfi_ranks_save(reef_run *run, const char *path, uint64_t mark, const void *extra, size_t extra_size,
                           reef_error *error)
{
    const reef_engine *e = run->ranks->engine;
    char name[PATH_SIZE];
    int64_t old_round = -1;
    int64_t old_ranks = 0;
    reef_run_counts counts;
    entry *entries = rfi_run_take(run, e->size, sizeof *entries);
    bool old = read_round(run, path, &old_round, &old_ranks) && old_round != run->round;
    reef_status status = entries && name_part(path, run->round, e->rank, name)
                             ? REEF_OK
                             : rfi_fail(error, REEF_E_FILE, "%s: too long a name", rfi_path_show(path));
    if (status == REEF_OK) {
        status = write_part(run, name, extra, e->rank == 0 ? extra_size : 0, &entries[e->rank], error);
    }
    status = e->ops->agree(e, status, error);
    status = status == REEF_OK ? sum_counts(run, &counts, error) : status;
    if (status == REEF_OK) {
        status = e->ops->merge(e, entries, (size_t)e->size * sizeof *entries, error);
    }
    if (status == REEF_OK && e->rank == 0) {
        status = write_manifest(run, path, mark, &counts, entries, error);
    }
    status = e->ops->agree(e, status, error); /* also waits for the manifest */
    if (status == REEF_OK && old) {
        remove_parts(path, old_round, old_ranks, e);
    }
    rfi_release(run->context, entries);
    return status;
}

/* ---- reading ---- */

typedef struct manifest {
    uint64_t mark;
    int64_t round, ranks;
    int64_t counts[8];
    entry *entries;
} manifest;

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
    bool good = next_word(rest, key, '\n', &word) && word.length == 16;
    *number = 0;
    for (size_t i = 0; good && i < word.length; i++) {
        const char *digits = "0123456789abcdef";
        const char *digit = word.text[i] ? strchr(digits, word.text[i]) : NULL;
        good = digit != NULL;
        *number = *number << 4 | (uint64_t)(good ? digit - digits : 0);
    }
    return good;
}

/* entries may be NULL: the head only. */
static bool parse(const rfi_file *file, manifest *m)
{
    const int64_t most = INT64_MAX / 4;
    rfi_slice rest = {(const char *)file->bytes, file->size};
    rfi_slice none = {NULL, 0};
    bool good = next_word(&rest, FIRST_LINE, '\n', &none) && none.length == 0;
    good = good && read_hex(&rest, "mark ", &m->mark) && read_count(&rest, "round ", '\n', most, &m->round);
    good = good && read_count(&rest, "ranks ", '\n', NAMES_MAX, &m->ranks) && m->ranks > 0;
    for (int i = 0; i < 8; i++) {
        good = good && read_count(&rest, "count ", '\n', most, &m->counts[i]);
    }
    for (int64_t i = 0; good && m->entries && i < m->ranks; i++) {
        int64_t bytes = 0;
        good = read_count(&rest, "file ", ' ', most, &bytes) && read_hex(&rest, "", &m->entries[i].sum);
        m->entries[i].bytes = (uint64_t)bytes;
    }
    return good && (!m->entries || rfi_equals(rest, "end\n"));
}

static bool read_round(const reef_run *run, const char *path, int64_t *round, int64_t *ranks)
{
    rfi_file file = {NULL, 0};
    manifest m = {0};
    bool good = rfi_file_read(run->context, path, (size_t)NAMES_MAX * 64, &file, NULL) == REEF_OK && parse(&file, &m);
    rfi_file_free(run->context, &file);
    *round = m.round;
    *ranks = m.ranks;
    return good;
}

static reef_status read_manifest(const reef_run *run, const char *path, uint64_t mark, manifest *m, reef_error *error)
{
    rfi_file file = {NULL, 0};
    reef_status status = rfi_file_read(run->context, path, (size_t)NAMES_MAX * 64, &file, error);
    if (status != REEF_OK) {
        return status;
    }
    if (!parse(&file, m)) {
        status = rfi_fail(error, REEF_E_FORMAT, "%s is not the manifest of a checkpoint", rfi_path_show(path));
    } else if (m->mark != mark) {
        status =
            rfi_fail(error, REEF_E_FORMAT, "%s is the checkpoint of a run with another setup", rfi_path_show(path));
    } else {
        m->entries = rfi_run_take(run, (ptrdiff_t)m->ranks, sizeof *m->entries);
        if (!m->entries) {
            status = rfi_fail(error, REEF_E_NOMEM, "no memory for the manifest of a checkpoint");
        } else if (!parse(&file, m)) {
            status = rfi_fail(error, REEF_E_FORMAT, "%s is not whole", rfi_path_show(path));
        }
    }
    rfi_file_free(run->context, &file);
    return status;
}

/* A file of the checkpoint, open. */
typedef struct part {
    rfi_reader reader;
    rfi_safetensors table;
    size_t data; /* where it begins */
} part;

static reef_status check_sum(const reef_run *run, const rfi_reader *reader, const entry *told, reef_error *error)
{
    enum { BLOCK = 1 << 20 };
    unsigned char *block = rfi_allocate(run->context, BLOCK);
    uint64_t sum = UINT64_C(1469598103934665603);
    reef_status status = block ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory to read a checkpoint");
    for (size_t at = 0; block && status == REEF_OK && at < reader->size; at += BLOCK) {
        size_t size = reader->size - at < BLOCK ? reader->size - at : BLOCK;
        status = rfi_reader_get(reader, at, block, size, error);
        sum = status == REEF_OK ? hash_bytes(sum, block, size) : sum;
    }
    rfi_release(run->context, block);
    if (status == REEF_OK && (sum != told->sum || reader->size != told->bytes)) {
        return rfi_fail(error, REEF_E_FORMAT, "%s is damaged: %zu bytes of %" PRIu64 ", or changed ones",
                        rfi_path_show(reader->path), reader->size, told->bytes);
    }
    return status;
}

static reef_status open_part(const reef_run *run, const char *name, const entry *told, part *p, reef_error *error)
{
    unsigned char start[RFI_SAFETENSORS_START];
    size_t length = 0;
    *p = (part){.reader = {.descriptor = -1}};
    reef_status status = rfi_reader_open(&p->reader, name, error);
    if (status == REEF_OK && p->reader.size != told->bytes) {
        status = rfi_fail(error, REEF_E_FORMAT, "%s is damaged: %zu bytes of %" PRIu64, rfi_path_show(name),
                          p->reader.size, told->bytes);
    }
    status = status == REEF_OK ? rfi_reader_get(&p->reader, 0, start, sizeof start, error) : status;
    if (status == REEF_OK) {
        status = rfi_safetensors_length(start, sizeof start, p->reader.size, name, &length, error);
    }
    unsigned char *header = status == REEF_OK ? rfi_allocate(run->context, length) : NULL;
    if (status == REEF_OK && !header) {
        status = rfi_fail(error, REEF_E_NOMEM, "no memory to read a checkpoint");
    }
    status = status == REEF_OK ? rfi_reader_get(&p->reader, sizeof start, header, length, error) : status;
    p->data = sizeof start + length;
    if (status == REEF_OK) {
        status = rfi_safetensors_read(run->context, header, length, p->reader.size - p->data, name, &p->table, error);
    }
    rfi_release(run->context, header);
    return status;
}

static void close_part(const reef_run *run, part *p)
{
    rfi_safetensors_free(run->context, &p->table);
    rfi_reader_close(&p->reader);
}

static const rfi_tensor *find(const part *p, const char *name)
{
    for (ptrdiff_t i = 0; i < p->table.count; i++) {
        if (rfi_equals(p->table.tensors[i].name, name)) {
            return &p->table.tensors[i];
        }
    }
    return NULL;
}

/* Row i of a tensor that has `rows` rows of `size` bytes. */
static reef_status get_row(const part *p, const char *name, ptrdiff_t rows, ptrdiff_t i, void *to, size_t size,
                           reef_error *error)
{
    const rfi_tensor *t = find(p, name);
    if (!t || i >= rows || t->bytes != (size_t)rows * size) {
        return rfi_fail(error, REEF_E_FORMAT, "%s has no %s of the size it should have", rfi_path_show(p->reader.path),
                        name);
    }
    return rfi_reader_get(&p->reader, p->data + t->start + (size_t)i * size, to, size, error);
}

static reef_status take_state(reef_run *run, const part *p, ptrdiff_t rows, ptrdiff_t i, ptrdiff_t k, reef_error *error)
{
    size_t size = state_bytes(run);
    void *room = rfi_allocate(run->context, size);
    if (!room) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the rule's state");
    }
    reef_status status = get_row(p, "state", rows, i, room, size, error);
    if (status == REEF_OK) {
        status = reef_state_load(run->states[run->class_of[k]], room, size, error);
    }
    rfi_release(run->context, room);
    return status;
}

/* Row i of the part, agent k here. */
static reef_status take_agent(reef_run *run, const part *p, ptrdiff_t rows, ptrdiff_t i, ptrdiff_t k, reef_error *error)
{
    size_t row = (size_t)run->length * sizeof(float);
    run->home[k] = (int32_t)k;
    reef_status status = get_row(p, "w", rows, i, rfi_row(run, run->w, k), row, error);
    if (status == REEF_OK && run->velocity) {
        status = get_row(p, "velocity", rows, i, rfi_row(run, run->velocity, k), row, error);
    }
    return status == REEF_OK && run->states ? take_state(run, p, rows, i, k, error) : status;
}

static reef_status take_liar(reef_run *run, const part *p, ptrdiff_t rows, ptrdiff_t i, ptrdiff_t place,
                             reef_error *error)
{
    size_t row = (size_t)run->length * sizeof(float);
    reef_status status = REEF_OK;
    if (run->before) {
        status = get_row(p, "before", rows, i, rfi_row(run, run->before, place), row, error);
    }
    ptrdiff_t depth = run->past ? (ptrdiff_t)run->depth : 0;
    for (ptrdiff_t d = 0; d < depth && status == REEF_OK; d++) {
        float *to = rfi_row(run, run->past, d * run->liars + place);
        status = get_row(p, "past", rows * depth, i * depth + d, to, row, error);
        if (status == REEF_OK) {
            status =
                get_row(p, "past_sent", rows * depth, i * depth + d, &run->past_sent[d * run->liars + place], 1, error);
        }
    }
    return status;
}

/* The rows of own agents that a part has; *found counts them. */
static reef_status take_part(reef_run *run, const part *p, bool liars, ptrdiff_t *found, reef_error *error)
{
    const char *name = liars ? "liars" : "agents";
    const rfi_tensor *t = find(p, name);
    reef_status status = REEF_OK;
    if (!t || t->bytes % sizeof(int64_t) != 0) {
        return rfi_fail(error, REEF_E_FORMAT, "%s does not say whose rows it has", rfi_path_show(p->reader.path));
    }
    ptrdiff_t rows = (ptrdiff_t)(t->bytes / sizeof(int64_t));
    for (ptrdiff_t i = 0; i < rows && status == REEF_OK; i++) {
        int64_t id = -1;
        status = get_row(p, name, rows, i, &id, sizeof id, error);
        if (status == REEF_OK && (id < 0 || id >= run->all)) {
            return rfi_fail(error, REEF_E_FORMAT, "%s has rows of agent %" PRId64, rfi_path_show(p->reader.path), id);
        }
        if (status != REEF_OK || !reef_run_holds(run, (ptrdiff_t)id) || (liars && !rfi_is_liar(run, (ptrdiff_t)id))) {
            continue;
        }
        ptrdiff_t k = run->ranks->local[id];
        *found += 1;
        status =
            liars ? take_liar(run, p, rows, i, rfi_liar_place(run, k), error) : take_agent(run, p, rows, i, k, error);
    }
    return status;
}

/* Each file is checked by one rank. */
static reef_status check_files(const reef_run *run, const char *path, const manifest *m, reef_error *error)
{
    const reef_engine *e = run->ranks->engine;
    reef_status status = REEF_OK;
    for (int64_t i = e->rank; i < m->ranks && status == REEF_OK; i += e->size) {
        char name[PATH_SIZE];
        rfi_reader reader = {.descriptor = -1};
        if (!name_part(path, m->round, (ptrdiff_t)i, name)) {
            return rfi_fail(error, REEF_E_FILE, "%s: too long a name", rfi_path_show(path));
        }
        status = rfi_reader_open(&reader, name, error);
        status = status == REEF_OK ? check_sum(run, &reader, &m->entries[i], error) : status;
        rfi_reader_close(&reader);
    }
    return status;
}

static reef_status take_all(reef_run *run, const char *path, const manifest *m, void *extra, size_t extra_size,
                            reef_error *error)
{
    ptrdiff_t agents = 0;
    ptrdiff_t liars = 0;
    reef_status status = REEF_OK;
    for (int64_t i = 0; i < m->ranks && status == REEF_OK; i++) {
        char name[PATH_SIZE];
        part p;
        if (!name_part(path, m->round, (ptrdiff_t)i, name)) {
            return rfi_fail(error, REEF_E_FILE, "%s: too long a name", rfi_path_show(path));
        }
        status = open_part(run, name, &m->entries[i], &p, error);
        status = status == REEF_OK ? take_part(run, &p, false, &agents, error) : status;
        status = status == REEF_OK ? take_part(run, &p, true, &liars, error) : status;
        if (status == REEF_OK && i == 0 && extra_size) {
            status = get_row(&p, "extra", 1, 0, extra, extra_size, error);
        }
        close_part(run, &p);
    }
    if (status == REEF_OK && (agents != run->own || liars != run->own_liars)) {
        status = rfi_fail(error, REEF_E_FORMAT, "%s does not have every agent once", rfi_path_show(path));
    }
    return status;
}

reef_status rfi_ranks_load(reef_run *run, const char *path, uint64_t mark, void *extra, size_t extra_size,
                           reef_error *error)
{
    const reef_engine *e = run->ranks->engine;
    manifest m = {0};
    reef_status status = read_manifest(run, path, mark, &m, error);
    status = status == REEF_OK ? check_files(run, path, &m, error) : status;
    status = e->ops->agree(e, status, error);
    if (status == REEF_OK) {
        status = take_all(run, path, &m, extra, extra_size, error);
        status = e->ops->agree(e, status, error);
    }
    if (status == REEF_OK) {
        run->round = m.round;
        run->counts = (reef_run_counts){.rounds = m.counts[0]};
        if (e->rank == 0) {
            run->counts = (reef_run_counts){m.counts[0], m.counts[1], m.counts[2], m.counts[3],
                                            m.counts[4], m.counts[5], m.counts[6], m.counts[7]};
        }
        for (ptrdiff_t i = 0; run->trust && i < run->classes; i++) {
            run->trust_counts[i] = 0;
        }
    }
    rfi_release(run->context, m.entries);
    return status;
}

void rfi_ranks_forget(const reef_run *run, const char *path)
{
    const reef_engine *e = run->ranks->engine;
    int64_t round = 0;
    int64_t ranks = 0;
    bool there = read_round(run, path, &round, &ranks);
    (void)e->ops->barrier(e, NULL); /* everybody has read it */
    if (e->rank == 0) {
        (void)unlink(path);
    }
    if (there) {
        remove_parts(path, round, ranks, e);
    }
}
