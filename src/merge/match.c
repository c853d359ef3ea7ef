/* What is merged: the tensors of the result, and where each file has them.
 *
 * Files have the same tensors unless the caller allows for some that are missing. Then a tensor counts if all files have it (common), or more
 * than half of them (ignore_missing): one that only a few files bring would be theirs alone, however robust the rule. The result has the
 * tensors of the reference in its order, then others by name. Files without weight have no say in this.
 *
 * With drop_bad no single file is the measure of the others, since it may lack what they disagree about: of each tensor, type and shape are what
 * more than half of the files say, and a file that says something else is dropped. */
#include "merge/merge.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/lines.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAMES_SHOWN = 3 };

bool rfi_real_type_named(const char *name, rfi_type *type)
{
    for (rfi_type t = RFI_BOOL; t <= RFI_F64; t++) {
        if (rfi_type_is_real(t) && strcasecmp(rfi_safetensors_type(t), name) == 0) {
            *type = t;
            return true;
        }
    }
    return false;
}

/* ---- files with the same tensors ---- */

static void match_alike(rfi_merge *merge)
{
    const rfi_model *reference = merge->reference;
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        assert(merge->models[merge->file_of[l]].count == reference->count); /* they were compared */
    }
    for (ptrdiff_t i = 0; i < reference->count; i++) {
        ptrdiff_t tensor = reference->by_name[i] - reference->tensors;
        for (ptrdiff_t l = 0; l < merge->rows; l++) {
            merge->of[tensor * merge->rows + l] = merge->models[merge->file_of[l]].by_name[i];
        }
    }
}

/* ---- files that differ ---- */

/* A tensor of a file. */
typedef struct entry {
    const rfi_tensor *tensor;
    ptrdiff_t row;
} entry;

/* The entries of one name. */
typedef struct group {
    const entry *first;
    ptrdiff_t size;
    ptrdiff_t place; /* in the reference; PTRDIFF_MAX: it has no such tensor */
} group;

static int by_name_and_row(const void *a, const void *b)
{
    const entry *x = a;
    const entry *y = b;
    int order = rfi_tensor_compare(x->tensor, y->tensor);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

static int by_place(const void *a, const void *b)
{
    const group *x = a;
    const group *y = b;
    int order = (x->place > y->place) - (x->place < y->place);
    return order ? order : rfi_tensor_compare(x->first->tensor, y->first->tensor);
}

static const rfi_model *model_of(const rfi_merge *merge, ptrdiff_t row)
{
    return &merge->models[merge->file_of[row]];
}

/* Entries of all files, sorted; the caller releases them. */
static reef_status list_entries(const rfi_merge *merge, entry **entries, ptrdiff_t *count, reef_error *error)
{
    ptrdiff_t used = 0;
    *count = 0;
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        *count += model_of(merge, l)->count;
    }
    entry *list = rfi_allocate_many(merge->context, *count + 1, sizeof *list);
    if (!list) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the names of %td tensors", *count);
    }
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        const rfi_model *model = model_of(merge, l);
        for (ptrdiff_t i = 0; i < model->count; i++) {
            list[used++] = (entry){model->by_name[i], l};
        }
    }
    assert(used == *count);
    qsort(list, (size_t)used, sizeof *list, by_name_and_row);
    *entries = list;
    return REEF_OK;
}

/* All of a group are of one shape and type. */
static reef_status check_group(const rfi_merge *merge, const group *g, reef_error *error)
{
    const rfi_model *first = model_of(merge, g->first->row);
    for (ptrdiff_t i = 1; i < g->size; i++) {
        const entry *e = &g->first[i];
        reef_status status =
            rfi_tensor_match(model_of(merge, e->row), e->tensor, first, g->first->tensor, merge->allow, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    return REEF_OK;
}

static ptrdiff_t count_voters(const rfi_merge *merge)
{
    ptrdiff_t voters = 0;
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        voters += merge->weights[l] > 0;
    }
    return voters;
}

/* Enough files have the tensor. */
static bool is_kept(const rfi_merge *merge, const group *g)
{
    ptrdiff_t have = 0;
    ptrdiff_t voters = count_voters(merge);
    for (ptrdiff_t i = 0; i < g->size; i++) {
        have += merge->weights[g->first[i].row] > 0;
    }
    return merge->options->common ? have == voters : 2 * have > voters;
}

/* ---- files that differ from most ---- */

static reef_status match(const rfi_merge *merge, const entry *e, const entry *other, reef_error *error)
{
    return rfi_tensor_match(model_of(merge, e->row), e->tensor, model_of(merge, other->row), other->tensor,
                            merge->allow, error);
}

/* One of the entries with the type and shape that more than half of all files say; NULL: there is none. If there is one, it is what is left when
 * entries that differ cancel each other. */
static const entry *find_majority(const rfi_merge *merge, const group *g)
{
    const entry *found = NULL;
    ptrdiff_t lead = 0;
    ptrdiff_t votes = 0;
    for (ptrdiff_t i = 0; i < g->size; i++) {
        const entry *e = &g->first[i];
        if (merge->weights[e->row] <= 0) {
            continue;
        }
        found = lead == 0 ? e : found;
        lead += lead == 0 || match(merge, e, found, NULL) == REEF_OK ? 1 : -1;
    }
    for (ptrdiff_t i = 0; found && i < g->size; i++) {
        votes += merge->weights[g->first[i].row] > 0 && match(merge, &g->first[i], found, NULL) == REEF_OK;
    }
    return 2 * votes > count_voters(merge) ? found : NULL;
}

/* Marks files that differ from most in any tensor. */
static void mark_bad(rfi_merge *merge, const entry *entries, ptrdiff_t count)
{
    reef_error reason;
    for (ptrdiff_t i = 0, next; i < count; i = next) {
        group g = {&entries[i], 0, PTRDIFF_MAX};
        for (next = i; next < count && rfi_tensor_compare(entries[next].tensor, entries[i].tensor) == 0; next++) {
            g.size++;
        }
        const entry *right = find_majority(merge, &g);
        for (ptrdiff_t j = 0; right && j < g.size; j++) {
            reef_merge_file *fate = &merge->fates[merge->file_of[g.first[j].row]];
            if (fate->reason != REEF_MERGE_BAD && match(merge, &g.first[j], right, &reason) != REEF_OK) {
                fate->reason = REEF_MERGE_BAD;
                memcpy(fate->why, reason.text, sizeof fate->why);
            }
        }
    }
}

/* Closes the files that were marked; the others remain as rows, and must be most of those that could be read. */
static reef_status drop_marked(rfi_merge *merge, ptrdiff_t readable, reef_error *error)
{
    ptrdiff_t before = merge->rows;
    merge->rows = 0;
    for (ptrdiff_t l = 0; l < before; l++) {
        ptrdiff_t file = merge->file_of[l];
        if (merge->fates[file].reason == REEF_MERGE_BAD) {
            rfi_model_close(merge->context, &merge->models[file]);
            continue;
        }
        merge->file_of[merge->rows] = file;
        merge->weights[merge->rows++] = merge->weights[l];
    }
    if (merge->rows == before) {
        return REEF_OK;
    }
    reef_status status = rfi_merge_check_majority(merge, readable, error);
    if (status == REEF_OK && merge->fates[merge->reference - merge->models].reason == REEF_MERGE_BAD) {
        merge->reference = model_of(merge, 0);
    }
    return status;
}

/* Again and again, since what was no majority may be one among fewer. */
static reef_status drop_others(rfi_merge *merge, reef_error *error)
{
    const ptrdiff_t readable = merge->rows;
    ptrdiff_t before = 0;
    reef_status status = REEF_OK;
    while (status == REEF_OK && before != merge->rows) {
        entry *entries = NULL;
        ptrdiff_t count = 0;
        before = merge->rows;
        status = list_entries(merge, &entries, &count, error);
        if (status == REEF_OK) {
            mark_bad(merge, entries, count);
            status = drop_marked(merge, readable, error);
        }
        rfi_release(merge->context, entries);
    }
    return status;
}

/* ---- groups ---- */

/* Cuts the entries into groups, checks them and keeps those that count, in order; names of others go to `missed`. */
static reef_status make_groups(rfi_merge *merge, const entry *entries, ptrdiff_t count, group *groups, ptrdiff_t *kept,
                               reef_error *error)
{
    rfi_slice missed[NAMES_SHOWN] = {{NULL, 0}};
    ptrdiff_t others = 0;
    *kept = 0;
    for (ptrdiff_t i = 0, next; i < count; i = next) {
        group g = {&entries[i], 0, PTRDIFF_MAX};
        for (next = i; next < count && rfi_tensor_compare(entries[next].tensor, entries[i].tensor) == 0; next++) {
            const rfi_model *model = model_of(merge, entries[next].row);
            g.place = model == merge->reference ? entries[next].tensor - model->tensors : g.place;
            g.size++;
        }
        bool keep = is_kept(merge, &g);
        if (keep && merge->options->drop_bad && merge->options->ignore_missing) {
            keep = find_majority(merge, &g) != NULL; /* what half of them or fewer say has no majority either */
        }
        reef_status status = keep ? check_group(merge, &g, error) : REEF_OK;
        if (status != REEF_OK) {
            return status;
        }
        if (keep) {
            groups[(*kept)++] = g;
        } else if (others++ < NAMES_SHOWN) {
            missed[others - 1] = entries[i].tensor->name;
        }
    }
    merge->report.missing = others;
    qsort(groups, (size_t)*kept, sizeof *groups, by_place);
    rfi_merge_note_names(merge, missed, others < NAMES_SHOWN ? others : NAMES_SHOWN, others);
    return *kept > 0 ? REEF_OK
                     : rfi_fail(error, REEF_E_FORMAT, "no tensor can be merged: none is in %s",
                                merge->options->common ? "all files" : "more than half of the files");
}

void rfi_merge_note_names(const rfi_merge *merge, const rfi_slice *names, ptrdiff_t shown, ptrdiff_t count)
{
    char text[400];
    char name[RFI_SHOWN_SIZE];
    size_t used = 0;
    if (count == 0 || !merge->options->note) {
        return;
    }
    rfi_append(text, sizeof text, &used, "%td %s left out, because %s files lack %s%s: ", count,
               count == 1 ? "tensor was" : "tensors were", merge->options->common ? "some" : "half or more of the",
               count == 1 ? "it" : "them",
               merge->options->drop_bad && merge->options->ignore_missing ? " or differ in type or shape" : "");
    for (ptrdiff_t i = 0; i < shown; i++) {
        rfi_append(text, sizeof text, &used, "%s'%s'", i ? ", " : "", rfi_shown(names[i], name));
    }
    rfi_append(text, sizeof text, &used, count > shown ? ", ..." : "");
    merge->options->note(merge->options->user, text);
}

static int by_name(const void *a, const void *b)
{
    return rfi_tensor_compare(*(const rfi_tensor *const *)a, *(const rfi_tensor *const *)b);
}

/* The result's tensors are those of the groups. */
static void take_groups(rfi_merge *merge, const group *groups, ptrdiff_t kept)
{
    const rfi_model *reference = merge->reference;
    for (ptrdiff_t t = 0; t < kept; t++) {
        const group *g = &groups[t];
        bool theirs = g->place != PTRDIFF_MAX;
        merge->list[t] = *g->first->tensor;
        merge->shard_of[t] = theirs && reference->shard_of ? reference->shard_of[g->place] : reference->shard_count - 1;
        for (ptrdiff_t l = 0; l < merge->rows; l++) {
            merge->of[t * merge->rows + l] = NULL;
        }
        assert(g->size >= 1 && g->size <= merge->rows); /* a file has a name once at most */
        for (ptrdiff_t i = 0; i < g->size; i++) {
            merge->of[t * merge->rows + g->first[i].row] = g->first[i].tensor;
        }
        merge->result.changed = merge->result.changed || g->place != t;
    }
    for (ptrdiff_t t = 0; t < kept; t++) {
        merge->names[t] = &merge->list[t];
    }
    qsort(merge->names, (size_t)kept, sizeof(void *), by_name);
    merge->result.count = kept;
    merge->result.changed = merge->result.changed || kept != reference->count;
}

/* ---- the result ---- */

/* Room for `count` tensors; they begin as those of the reference. */
static reef_status make_room(rfi_merge *merge, ptrdiff_t count, reef_error *error)
{
    const rfi_model *reference = merge->reference;
    ptrdiff_t cells = 0;
    bool fits = rfi_mul(count + 1, merge->rows, &cells);
    merge->of = fits ? rfi_allocate_many(merge->context, cells, sizeof(void *)) : NULL;
    merge->list = rfi_allocate_many(merge->context, count + 1, sizeof *merge->list);
    merge->shard_of = rfi_allocate_many(merge->context, count + 1, sizeof *merge->shard_of);
    merge->names = rfi_allocate_many(merge->context, count + 1, sizeof(void *));
    if (!merge->of || !merge->list || !merge->shard_of || !merge->names) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td tensors of %td files", count, merge->rows);
    }
    merge->result = *reference;
    merge->result.changed = reference->npz; /* the result is a safetensors file */
    merge->result.tensors = merge->list;
    merge->result.shard_of = merge->shard_of;
    merge->result.by_name = merge->names;
    return REEF_OK;
}

static reef_status match_groups(rfi_merge *merge, reef_error *error)
{
    entry *entries = NULL;
    ptrdiff_t count = 0;
    ptrdiff_t kept = 0;
    reef_status status = list_entries(merge, &entries, &count, error);
    if (status != REEF_OK) {
        return status;
    }
    group *groups = rfi_allocate_many(merge->context, count + 1, sizeof *groups);
    status = groups ? make_groups(merge, entries, count, groups, &kept, error)
                    : rfi_fail(error, REEF_E_NOMEM, "no memory for the names of %td tensors", count);
    if (status == REEF_OK) {
        status = make_room(merge, kept, error);
    }
    if (status == REEF_OK) {
        take_groups(merge, groups, kept);
    }
    rfi_release(merge->context, groups);
    rfi_release(merge->context, entries);
    return status;
}

static reef_status match_all(rfi_merge *merge, reef_error *error)
{
    const rfi_model *reference = merge->reference;
    reef_status status = make_room(merge, reference->count, error);
    if (status != REEF_OK) {
        return status;
    }
    for (ptrdiff_t i = 0; i < reference->count; i++) {
        merge->list[i] = reference->tensors[i];
        merge->shard_of[i] = reference->shard_of ? reference->shard_of[i] : 0;
        merge->names[i] = &merge->list[reference->by_name[i] - reference->tensors];
    }
    match_alike(merge);
    return REEF_OK;
}

static void cast(rfi_merge *merge)
{
    for (ptrdiff_t i = 0; merge->options->cast && i < merge->result.count; i++) {
        rfi_tensor *tensor = &merge->list[i];
        if (rfi_type_is_real(tensor->type) && tensor->type != merge->cast) {
            tensor->type = merge->cast;
            tensor->bytes = (size_t)tensor->count * rfi_type_size(merge->cast);
            merge->result.changed = true;
        }
    }
}

reef_status rfi_merge_match(rfi_merge *merge, reef_error *error)
{
    reef_status status = merge->allow.tensors ? drop_others(merge, error) : REEF_OK;
    if (status == REEF_OK) {
        status = merge->allow.missing ? match_groups(merge, error) : match_all(merge, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    cast(merge);
    return REEF_OK;
}

void rfi_merge_unmatch(rfi_merge *merge)
{
    rfi_release(merge->context, merge->of);
    rfi_release(merge->context, merge->list);
    rfi_release(merge->context, merge->shard_of);
    rfi_release(merge->context, merge->names);
}
