/* Resuming from a checkpoint over ranks (ranks_save.c): every rank looks for its agents in all files, whichever rank wrote them. */
#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "io/stream.h"
#include "learn/ranks_manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A file of the checkpoint, open. */
typedef struct part {
    rfi_reader reader;
    rfi_safetensors table;
    size_t data; /* where it begins */
} part;

static reef_status check_sum(const reef_run *run, const rfi_reader *reader, const rfi_entry *told, reef_error *error)
{
    uint64_t sum = RFI_HASH_START;
    reef_status status = rfi_reader_sum(run->context, reader, &sum, error);
    if (status == REEF_OK && (sum != told->sum || reader->size != told->bytes)) {
        return rfi_fail(error, REEF_E_FORMAT, "%s is damaged: %zu bytes of %" PRIu64 ", or changed ones",
                        rfi_path_show(reader->path), reader->size, told->bytes);
    }
    return status;
}

static reef_status open_part(const reef_run *run, const char *name, const rfi_entry *told, part *p, reef_error *error)
{
    unsigned char start[RFI_SAFETENSORS_START];
    size_t length = 0;
    *p = (part){.reader = {.descriptor = -1}};
    reef_status status = rfi_reader_open(&p->reader, name, error);
    if (status == REEF_OK && p->reader.size != told->bytes) {
        status = rfi_fail(error, REEF_E_FORMAT, "%s is damaged: %zu bytes of %" PRIu64, rfi_path_show(name),
                          p->reader.size, told->bytes);
    }
    if (status == REEF_OK) {
        status = rfi_reader_get(&p->reader, 0, start, sizeof start, error);
    }
    if (status == REEF_OK) {
        status = rfi_safetensors_length(start, sizeof start, p->reader.size, name, &length, error);
    }
    unsigned char *header = status == REEF_OK ? rfi_allocate(run->context, length) : NULL;
    if (status == REEF_OK && !header) {
        status = rfi_fail(error, REEF_E_NOMEM, "not enough memory to read a checkpoint");
    }
    if (status == REEF_OK) {
        status = rfi_reader_get(&p->reader, sizeof start, header, length, error);
    }
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
        return rfi_fail(error, REEF_E_FORMAT, "%s has no %s of the expected size", rfi_path_show(p->reader.path), name);
    }
    return rfi_reader_get(&p->reader, p->data + t->start + (size_t)i * size, to, size, error);
}

/* State number i of the part into that of a class. */
static reef_status take_state(reef_run *run, const part *p, ptrdiff_t rows, ptrdiff_t i, ptrdiff_t number,
                              reef_error *error)
{
    const rfi_tensor *t = find(p, "state");
    size_t size = t && rows > 0 ? t->bytes / (size_t)rows : 0;
    size_t used = 0;
    void *room = rfi_allocate(run->context, size ? size : 1);
    if (!room) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for the rule's state");
    }
    reef_status status = get_row(p, "state", rows, i, room, size, error);
    if (status == REEF_OK) {
        status = rfi_memory_take(run->states[number], room, size, &used, error);
    }
    rfi_release(run->context, room);
    return status;
}

/* Row i of the part, agent k here. */
static reef_status take_agent(reef_run *run, const part *p, ptrdiff_t rows, ptrdiff_t i, ptrdiff_t k, reef_error *error)
{
    size_t row = (size_t)run->length * sizeof(float);
    reef_status status = REEF_OK;
    if (!run->serves_all) {
        run->home[k] = (int32_t)k;
        status = get_row(p, "w", rows, i, rfi_row(run, run->w, k), row, error);
    }
    if (status == REEF_OK && run->velocity) {
        status = get_row(p, "velocity", rows, i, rfi_row(run, run->velocity, k), row, error);
    }
    if (status == REEF_OK && run->keeps_phi) {
        status = get_row(p, "phi", rows, i, rfi_row(run, run->phi, k), row, error);
    }
    return status == REEF_OK && run->states && !run->server ? take_state(run, p, rows, i, run->class_of[k], error)
                                                            : status;
}

/* What there is once. */
static reef_status take_common(reef_run *run, const part *p, void *extra, size_t extra_size, reef_error *error)
{
    size_t row = (size_t)run->length * sizeof(float);
    reef_status status = REEF_OK;
    for (ptrdiff_t i = 0; run->server && i < 2 && status == REEF_OK; i++) {
        status = get_row(p, "server", 2, i, rfi_row(run, run->server, i), row, error);
    }
    if (status == REEF_OK && run->server && run->states) {
        status = take_state(run, p, 1, 0, 0, error);
    }
    if (status == REEF_OK && run->extra_size) {
        status = get_row(p, "strategy", 1, 0, run->extra, run->extra_size, error);
    }
    return status == REEF_OK && extra_size ? get_row(p, "extra", 1, 0, extra, extra_size, error) : status;
}

static reef_status take_malicious(reef_run *run, const part *p, ptrdiff_t rows, ptrdiff_t i, ptrdiff_t place,
                                  reef_error *error)
{
    size_t row = (size_t)run->length * sizeof(float);
    reef_status status = REEF_OK;
    if (run->before) {
        status = get_row(p, "before", rows, i, rfi_row(run, run->before, place), row, error);
    }
    ptrdiff_t depth = run->past ? (ptrdiff_t)run->depth : 0;
    for (ptrdiff_t d = 0; d < depth && status == REEF_OK; d++) {
        float *to = rfi_row(run, run->past, d * run->malicious_count + place);
        status = get_row(p, "past", rows * depth, i * depth + d, to, row, error);
        if (status == REEF_OK) {
            status = get_row(p, "past_sent", rows * depth, i * depth + d,
                             &run->past_sent[d * run->malicious_count + place], 1, error);
        }
    }
    return status;
}

/* The rows of own agents that a part has; *found counts them. */
static reef_status take_part(reef_run *run, const part *p, bool malicious_count, ptrdiff_t *found, reef_error *error)
{
    const char *name = malicious_count ? "liars" : "agents";
    const rfi_tensor *t = find(p, name);
    reef_status status = REEF_OK;
    if (!t || t->bytes % sizeof(int64_t) != 0) {
        return rfi_fail(error, REEF_E_FORMAT, "%s does not state whose models it contains",
                        rfi_path_show(p->reader.path));
    }
    ptrdiff_t rows = (ptrdiff_t)(t->bytes / sizeof(int64_t));
    for (ptrdiff_t i = 0; i < rows && status == REEF_OK; i++) {
        int64_t id = -1;
        status = get_row(p, name, rows, i, &id, sizeof id, error);
        if (status == REEF_OK && (id < 0 || id >= run->all)) {
            return rfi_fail(error, REEF_E_FORMAT, "%s has models of agent %" PRId64, rfi_path_show(p->reader.path), id);
        }
        if (status != REEF_OK || !reef_run_holds(run, (ptrdiff_t)id) ||
            (malicious_count && !rfi_is_malicious(run, (ptrdiff_t)id))) {
            continue;
        }
        ptrdiff_t k = run->ranks->local[id];
        *found += 1;
        status = malicious_count ? take_malicious(run, p, rows, i, rfi_malicious_place(run, k), error)
                                 : take_agent(run, p, rows, i, k, error);
    }
    return status;
}

/* Each file is checked by one rank. */
static reef_status check_files(const reef_run *run, const char *path, const rfi_manifest *m, reef_error *error)
{
    const reef_engine *e = run->ranks->engine;
    reef_status status = REEF_OK;
    for (int64_t i = e->rank; i < m->ranks && status == REEF_OK; i += e->size) {
        char name[RFI_PART_PATH];
        rfi_reader reader = {.descriptor = -1};
        if (!rfi_part_name(path, m->round, (ptrdiff_t)i, name)) {
            return rfi_fail(error, REEF_E_FILE, "%s: the name is too long", rfi_path_show(path));
        }
        status = rfi_reader_open(&reader, name, error);
        if (status == REEF_OK) {
            status = check_sum(run, &reader, &m->entries[i], error);
        }
        rfi_reader_close(&reader);
    }
    return status;
}

static reef_status take_all(reef_run *run, const char *path, const rfi_manifest *m, void *extra, size_t extra_size,
                            reef_error *error)
{
    ptrdiff_t agents = 0;
    ptrdiff_t malicious_count = 0;
    reef_status status = REEF_OK;
    for (int64_t i = 0; i < m->ranks && status == REEF_OK; i++) {
        char name[RFI_PART_PATH];
        part p;
        if (!rfi_part_name(path, m->round, (ptrdiff_t)i, name)) {
            return rfi_fail(error, REEF_E_FILE, "%s: the name is too long", rfi_path_show(path));
        }
        status = open_part(run, name, &m->entries[i], &p, error);
        if (status == REEF_OK) {
            status = take_part(run, &p, false, &agents, error);
        }
        if (status == REEF_OK) {
            status = take_part(run, &p, true, &malicious_count, error);
        }
        if (status == REEF_OK && i == 0) {
            status = take_common(run, &p, extra, extra_size, error);
        }
        close_part(run, &p);
    }
    if (status == REEF_OK && (agents != run->own || malicious_count != run->own_malicious)) {
        status = rfi_fail(error, REEF_E_FORMAT, "%s does not contain every agent exactly once", rfi_path_show(path));
    }
    return status;
}

/* Resumes from the checkpoint whose manifest is `manifest`; its files are named after `path`. */
static reef_status load_from(reef_run *run, const char *path, const char *manifest, uint64_t mark, void *extra,
                             size_t extra_size, reef_error *error)
{
    const reef_engine *e = run->ranks->engine;
    rfi_manifest m = {0};
    reef_status status = rfi_manifest_read(run, manifest, mark, &m, error);
    if (status == REEF_OK) {
        status = check_files(run, path, &m, error);
    }
    status = e->ops->agree(e, status, error);
    if (status == REEF_OK) {
        status = take_all(run, path, &m, extra, extra_size, error);
        run->round = m.round;
        if (status == REEF_OK && run->strategy->is_sane && !run->strategy->is_sane(run)) {
            status = rfi_fail(error, REEF_E_FORMAT, "%s is an inconsistent checkpoint", rfi_path_show(path));
        }
        status = e->ops->agree(e, status, error);
    }
    if (status == REEF_OK) {
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

reef_status rfi_ranks_load(reef_run *run, const char *path, uint64_t mark, void *extra, size_t extra_size,
                           bool *fell_back, reef_error *error)
{
    char before[RFI_PART_PATH];
    reef_error first = {REEF_OK, ""};
    reef_error second = {REEF_OK, ""};
    *fell_back = false;
    reef_status status = load_from(run, path, path, mark, extra, extra_size, &first);
    bool damaged = status == REEF_E_FORMAT || status == REEF_E_FILE;
    if (damaged && rfi_manifest_before(path, before) &&
        load_from(run, path, before, mark, extra, extra_size, &second) == REEF_OK) {
        *fell_back = true;
        return REEF_OK;
    }
    return status == REEF_OK ? REEF_OK : rfi_fail(error, status, "%s", first.text);
}

void rfi_ranks_forget(const reef_run *run, const char *path)
{
    const reef_engine *e = run->ranks->engine;
    (void)e->ops->barrier(e, NULL); /* everybody has read it */
    if (e->rank == 0) {
        (void)unlink(path);
        rfi_parts_forget(path);
    }
}
