/* The state of a run that is spread over ranks: a safetensors file per rank with the rows of its agents, and a manifest that names them.
 *
 *   PATH                          the manifest: fingerprint of the setup, round, counters, and each file with size and checksum
 *   PATH.ROUND.RANK.safetensors   agents [n], w [n, M R]; where the run has them: velocity [n, M R], state [n, bytes];
 *                                 phi [n, M R]; liars [f], before [f, M R], past [f, depth, M R], past_sent [f, depth];
 *                                 rank 0 has what exists once: server [2, M R], with its state [1, bytes]; strategy; extra
 *   PATH.before                   the manifest of the checkpoint before, whose files are kept too
 * The files are written first, then PATH becomes PATH.before, then the new manifest is put in place, then files that neither names are
 * removed. So whenever the job dies, one of the two manifests names a complete state, and if the newest is damaged, the other one remains.
 * The rank that reads an agent's rows need not be the one that wrote them. */
#include "base/error.h"
#include "base/hash.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "io/stream.h"
#include "learn/ranks_manifest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { TENSORS_MAX = 12, HEADER_SIZE = 4096 };

/* ---- what there is ---- */

/* Rows of this rank's part of the state, as laid out in its file. */
typedef struct tensor {
    const char *name, *type;
    ptrdiff_t rows, middle; /* middle 0: two dimensions or one */
    size_t row;             /* bytes of a row */
    ptrdiff_t width; /* elements of the last dimension; 0: one dimension, of rows or of the bytes of the only one */
} tensor;

/* The same on all ranks, whether they have malicious agents or not. */
static bool remembers(const reef_run *run)
{
    return run->uses_rule && (reef_agg_traits(run->setup.rule) & (REEF_TRAIT_CENTRE | REEF_TRAIT_SENDERS));
}

/* Bytes of the rule's state at a receiver: those of the largest; what is left of a row is 0. */
static size_t state_bytes(const reef_run *run)
{
    size_t most = 0;
    for (ptrdiff_t i = 0; i < run->classes; i++) {
        size_t size = rfi_memory_room(run->states[i]);
        most = size > most ? size : most;
    }
    return most;
}

/* What there is once, of which rank 0 has the file. */
static ptrdiff_t list_common(const reef_run *run, size_t extra, tensor *list)
{
    ptrdiff_t count = 0;
    if (run->server) {
        list[count++] = (tensor){"server", "F32", 2, 0, (size_t)run->length * sizeof(float), run->length};
    }
    if (run->server && remembers(run)) {
        list[count++] = (tensor){"state", "U8", 1, 0, state_bytes(run), (ptrdiff_t)state_bytes(run)};
    }
    if (run->extra_size) {
        list[count++] = (tensor){"strategy", "U8", 1, 0, run->extra_size, 0};
    }
    if (extra) {
        list[count++] = (tensor){"extra", "U8", 1, 0, extra, 0};
    }
    return count;
}

/* All tensors of n agents and f malicious ones. */
static ptrdiff_t list_tensors(const reef_run *run, ptrdiff_t n, ptrdiff_t f, size_t extra, tensor *list)
{
    size_t row = (size_t)run->length * sizeof(float);
    ptrdiff_t count = 0;
    bool lies = run->setup.attack && run->all_malicious;
    list[count++] = (tensor){"agents", "I64", n, 0, sizeof(int64_t), 0};
    if (!run->serves_all) {
        list[count++] = (tensor){"w", "F32", n, 0, row, run->length};
    }
    if (run->adapt->momentum > 0) {
        list[count++] = (tensor){"velocity", "F32", n, 0, row, run->length};
    }
    if (run->keeps_phi) {
        list[count++] = (tensor){"phi", "F32", n, 0, row, run->length};
    }
    if (!run->server && remembers(run)) {
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
    return run->ranks->engine->rank == 0 ? count + list_common(run, extra, list + count) : count;
}

/* ---- writing ---- */

static void put_row(const reef_run *run, const tensor *t, ptrdiff_t i, const void *extra, unsigned char *to)
{
    size_t row = (size_t)run->length * sizeof(float);
    if (strcmp(t->name, "agents") == 0 || strcmp(t->name, "liars") == 0) {
        int64_t id = (int64_t)rfi_id(run, t->name[0] == 'l' ? run->malicious_list[i] : i);
        memcpy(to, &id, sizeof id);
    } else if (strcmp(t->name, "w") == 0) {
        memcpy(to, rfi_model(run, i), row);
    } else if (strcmp(t->name, "velocity") == 0) {
        memcpy(to, rfi_row(run, run->velocity, i), row);
    } else if (strcmp(t->name, "phi") == 0) {
        memcpy(to, rfi_row(run, run->phi, i), row);
    } else if (strcmp(t->name, "server") == 0) {
        memcpy(to, rfi_row(run, run->server, i), row);
    } else if (strcmp(t->name, "before") == 0) {
        memcpy(to, rfi_row(run, run->before, i), row);
    } else if (strcmp(t->name, "past") == 0) {
        for (ptrdiff_t d = 0; d < run->depth; d++) {
            memcpy(to + (size_t)d * row, rfi_row(run, run->past, d * run->malicious_count + i), row);
        }
    } else if (strcmp(t->name, "past_sent") == 0) {
        for (ptrdiff_t d = 0; d < run->depth; d++) {
            to[d] = run->past_sent[d * run->malicious_count + i];
        }
    } else if (strcmp(t->name, "extra") == 0) {
        memcpy(to, extra, t->row);
    } else if (strcmp(t->name, "strategy") == 0) {
        memcpy(to, run->extra, t->row);
    } else {
        memset(to, 0, t->row);
        rfi_memory_put(run->states[run->server ? 0 : run->class_of[i]], to);
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
            (void)snprintf(shape, sizeof shape, "%td", t->type[0] == 'U' ? (ptrdiff_t)t->row : t->rows);
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

/* Writes one row after the other, with the checksum on the way. */
static reef_status write_part(reef_run *run, const char *path, const void *extra, size_t extra_size, rfi_entry *told,
                              reef_error *error)
{
    tensor list[TENSORS_MAX];
    char header[HEADER_SIZE];
    rfi_writer writer = {.descriptor = -1};
    ptrdiff_t count = list_tensors(run, run->own, run->own_malicious, extra_size, list);
    size_t length = print_header(list, count, header);
    unsigned char start[RFI_SAFETENSORS_START] = {0};
    size_t room = 1;
    for (ptrdiff_t i = 0; i < count; i++) {
        room = list[i].row > room ? list[i].row : room;
    }
    unsigned char *row = rfi_allocate(run->context, room);
    reef_status status = row ? rfi_writer_open(run->context, &writer, path, error)
                             : rfi_fail(error, REEF_E_NOMEM, "not enough memory for a checkpoint");
    for (size_t i = 0; i < sizeof start; i++) {
        start[i] = (unsigned char)(length >> 8 * i);
    }
    told->sum = rfi_hash_bytes(rfi_hash_bytes(RFI_HASH_START, start, sizeof start), header, length);
    if (status == REEF_OK) {
        status = rfi_writer_put(&writer, 0, start, sizeof start, error);
    }
    if (status == REEF_OK) {
        status = rfi_writer_put(&writer, sizeof start, header, length, error);
    }
    size_t at = sizeof start + length;
    for (ptrdiff_t i = 0; row && i < count; i++) {
        for (ptrdiff_t k = 0; k < list[i].rows && status == REEF_OK; k++) {
            put_row(run, &list[i], k, extra, row);
            told->sum = rfi_hash_bytes(told->sum, row, list[i].row);
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

/* Sums of the counters of all ranks, which are put side by side in `all`. */
static reef_status sum_counts(const reef_run *run, reef_run_counts *sum, reef_error *error)
{
    const reef_engine *e = run->ranks->engine;
    reef_run_counts *all = rfi_run_take(run, e->size, sizeof *all);
    reef_status status = all ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for the counters");
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

/* The checkpoint that two newer ones leave without a name. */
typedef struct stale {
    bool there;
    int64_t round, ranks;
} stale;

/* Rank 0 puts the manifest in place; the one that was there becomes the one before. */
static reef_status turn_over(const reef_run *run, const char *path, const char *before, uint64_t mark,
                             const reef_run_counts *counts, const rfi_entry *entries, reef_error *error)
{
    int64_t round = 0;
    int64_t ranks = 0;
    bool newer = rfi_manifest_round(run, path, &round, &ranks) && round != run->round;
    if (newer && rename(path, before) != 0) {
        return rfi_fail(error, REEF_E_FILE, "%s: cannot be renamed: %s", rfi_path_show(path), strerror(errno));
    }
    return rfi_manifest_write(run, path, mark, counts, entries, error);
}

/* All ranks look before anything is changed. A manifest that cannot be read names nothing: its files stay until the end. */
static stale find_stale(const reef_run *run, const char *path, const char *before)
{
    stale s = {.there = false};
    int64_t round = 0;
    int64_t ranks = 0;
    bool newer = rfi_manifest_round(run, path, &round, &ranks) && round != run->round;
    s.there = newer && rfi_manifest_round(run, before, &s.round, &s.ranks) && s.round != round && s.round != run->round;
    return s;
}

reef_status rfi_ranks_save(reef_run *run, const char *path, uint64_t mark, const void *extra, size_t extra_size,
                           reef_error *error)
{
    const reef_engine *e = run->ranks->engine;
    char name[RFI_PART_PATH];
    char before[RFI_PART_PATH];
    reef_run_counts counts;
    rfi_entry *entries = rfi_run_take(run, e->size, sizeof *entries);
    bool fits = rfi_manifest_before(path, before) && rfi_part_name(path, run->round, e->rank, name);
    stale old = fits ? find_stale(run, path, before) : (stale){.there = false};
    reef_status status =
        entries && fits ? REEF_OK : rfi_fail(error, REEF_E_FILE, "%s: the name is too long", rfi_path_show(path));
    if (status == REEF_OK) {
        status = write_part(run, name, extra, e->rank == 0 ? extra_size : 0, &entries[e->rank], error);
    }
    status = e->ops->agree(e, status, error);
    if (status == REEF_OK) {
        status = sum_counts(run, &counts, error);
    }
    if (status == REEF_OK) {
        status = e->ops->merge(e, entries, (size_t)e->size * sizeof *entries, error);
    }
    if (status == REEF_OK && e->rank == 0) {
        status = turn_over(run, path, before, mark, &counts, entries, error);
    }
    status = e->ops->agree(e, status, error); /* also waits for the manifest */
    if (status == REEF_OK && old.there) {
        rfi_parts_remove(path, old.round, old.ranks, e);
    }
    rfi_release(run->context, entries);
    return status;
}
