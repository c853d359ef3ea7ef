/* A merge from beginning to end: which files take part, the output, the report. */
#include "merge/merge.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"

#include <assert.h>
#include <math.h>
#include <reef/file.h>
#include <string.h>

/* ---- which files take part ---- */

/* Only what a file holds can be held against it: one that cannot be opened or read may be missing for a reason of ours (too many open
 * files, no memory, a disk that fails), and then the others would be merged as if nothing had happened. */
static bool is_content(reef_status status)
{
    return status == REEF_E_FORMAT || status == REEF_E_OVERFLOW || status == REEF_E_RANGE;
}

/* The file is left out, or all ends here. */
static reef_status set_aside(rfi_merge *merge, ptrdiff_t file, const reef_error *reason, reef_error *error)
{
    reef_merge_file *fate = &merge->fates[file];
    fate->reason = REEF_MERGE_BAD;
    memcpy(fate->why, reason->text, sizeof fate->why);
    if (merge->options->drop_bad && is_content(reason->status)) {
        return REEF_OK;
    }
    if (error) {
        *error = *reason;
    }
    return reason->status;
}

/* A folder's files are inputs too. */
reef_status rfi_merge_check_result(const rfi_merge *merge, const rfi_model *model, reef_error *error)
{
    for (ptrdiff_t i = 0; model->folder && i < model->shard_count; i++) {
        if (reef_file_same(model->shards[i].path, merge->out_path)) {
            return rfi_fail(error, REEF_E_ARG, "%s: is an input; the result goes to a file of its own",
                            rfi_path_show(merge->out_path));
        }
    }
    return REEF_OK;
}

static reef_status open_models(rfi_merge *merge, const char *const *paths, reef_error *error)
{
    reef_error reason;
    reef_status status = REEF_OK;
    rfi_model *like = NULL;
    for (ptrdiff_t i = 0; status == REEF_OK && i < merge->files; i++) {
        if (rfi_model_open(merge->context, &merge->models[i], paths[i], like, &reason) != REEF_OK) {
            status = set_aside(merge, i, &reason, error);
        } else {
            like = merge->models[i].only.header ? &merge->models[i] : like;
            status = rfi_merge_check_result(merge, &merge->models[i], error);
        }
    }
    return status;
}

/* With drop_bad the model that most files have, otherwise that of the first file. -1: there is none. */
static ptrdiff_t choose_reference(const rfi_merge *merge)
{
    ptrdiff_t best = -1;
    ptrdiff_t best_votes = 0;
    for (ptrdiff_t i = 0; i < merge->files; i++) {
        ptrdiff_t votes = 0;
        if (merge->fates[i].reason == REEF_MERGE_BAD) {
            continue;
        }
        if (!merge->options->drop_bad) {
            return i;
        }
        for (ptrdiff_t j = 0; j < merge->files; j++) {
            votes += merge->fates[j].reason != REEF_MERGE_BAD &&
                     rfi_model_compare(&merge->models[j], &merge->models[i], merge->allow, NULL) == REEF_OK;
        }
        best = votes > best_votes ? i : best;
        best_votes = votes > best_votes ? votes : best_votes;
        if (2 * votes > merge->files) {
            break; /* no other can have more */
        }
    }
    return best;
}

static ptrdiff_t count_good(const rfi_merge *merge)
{
    ptrdiff_t good = 0;
    for (ptrdiff_t i = 0; i < merge->files; i++) {
        good += merge->fates[i].reason != REEF_MERGE_BAD;
    }
    return good;
}

/* What is left must be what most files say: otherwise, say shards of one model in place of many models, nobody knows which are bad. */
reef_status rfi_merge_check_majority(const rfi_merge *merge, ptrdiff_t readable, reef_error *error)
{
    ptrdiff_t good = count_good(merge);
    ptrdiff_t first = 0;
    if (2 * good > readable && 2 * good >= merge->files) {
        return REEF_OK;
    }
    while (merge->fates[first].reason != REEF_MERGE_BAD) {
        first++;
        assert(first < merge->files); /* were all good, they would be the majority */
    }
    return rfi_fail(error, REEF_E_FORMAT, "only %td of %td files belong together; the first that does not: %s", good,
                    merge->files, merge->fates[first].why);
}

static reef_status compare_models(rfi_merge *merge, reef_error *error)
{
    reef_error reason;
    ptrdiff_t readable = count_good(merge);
    ptrdiff_t chosen = choose_reference(merge);
    reef_status status = REEF_OK;
    if (chosen < 0) {
        return rfi_fail(error, REEF_E_FORMAT, "none of the %td files can be used; the first: %s", merge->files,
                        merge->fates[0].why);
    }
    merge->reference = &merge->models[chosen];
    for (ptrdiff_t i = 0; status == REEF_OK && i < merge->files; i++) {
        if (merge->fates[i].reason != REEF_MERGE_BAD &&
            rfi_model_compare(&merge->models[i], merge->reference, merge->allow, &reason) != REEF_OK) {
            status = set_aside(merge, i, &reason, error);
        }
    }
    if (status != REEF_OK) {
        return status;
    }
    return rfi_merge_check_majority(merge, readable, error);
}

static reef_status list_rows(rfi_merge *merge, reef_error *error)
{
    const double *given = merge->options->weights;
    bool any = false;
    for (ptrdiff_t i = 0; i < merge->files; i++) {
        double weight = given ? given[i] : 1;
        if (!isfinite(weight) || weight < 0) {
            return rfi_fail(error, REEF_E_WEIGHTS, "the weight of %s is %g; weights are finite and not negative",
                            rfi_path_show(merge->models[i].path), weight);
        }
        if (merge->fates[i].reason == REEF_MERGE_BAD) {
            rfi_model_close(merge->context, &merge->models[i]);
            continue;
        }
        if (weight == 0) {
            merge->fates[i].reason = REEF_MERGE_ZERO_WEIGHT;
        }
        any = any || weight > 0;
        merge->file_of[merge->rows] = i;
        merge->weights[merge->rows++] = weight;
    }
    assert(merge->rows >= 1 && merge->rows <= merge->files);
    return any ? REEF_OK : rfi_fail(error, REEF_E_WEIGHTS, "no file that can be used has a positive weight");
}

/* ---- what is to be done ---- */

/* True if all files that count have the tensor. */
static bool is_whole(const rfi_merge *merge, ptrdiff_t tensor)
{
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        if (merge->weights[l] > 0 && !merge->of[tensor * merge->rows + l]) {
            return false;
        }
    }
    return true;
}

/* Adds to what is to be read, and to the precision that it takes. */
static void count_tensor(rfi_merge *merge, ptrdiff_t tensor)
{
    bool real = rfi_type_is_real(merge->list[tensor].type);
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        const rfi_tensor *theirs = merge->of[tensor * merge->rows + l];
        double bytes = theirs ? (double)theirs->bytes : 0;
        merge->total += real ? 0 : bytes;
        merge->bytes += real ? bytes : 0;
        merge->dtype = theirs && theirs->type == RFI_F64 ? REEF_F64 : merge->dtype;
    }
    merge->dtype = merge->list[tensor].type == RFI_F64 ? REEF_F64 : merge->dtype;
}

/* Tensors that all files have come first. */
static void list_segments(rfi_merge *merge, bool whole)
{
    for (ptrdiff_t i = 0; i < merge->result.count; i++) {
        const rfi_tensor *tensor = &merge->list[i];
        const rfi_pair *pair = merge->pair_of[i] >= 0 ? &merge->pairs[merge->pair_of[i]] : NULL;
        ptrdiff_t length = pair ? pair->rows * pair->columns : tensor->count;
        bool counts = rfi_type_is_real(tensor->type) && length > 0 && (!pair || pair->down == i);
        if (counts && is_whole(merge, i) == whole) {
            merge->segment[merge->segments] = i;
            merge->lengths[merge->segments++] = length;
            merge->report.numbers += length;
        }
    }
}

static reef_status list_tensors(rfi_merge *merge, reef_error *error)
{
    ptrdiff_t count = merge->result.count;
    merge->segment = rfi_allocate_many(merge->context, 2 * count + 1, sizeof *merge->segment);
    if (!merge->segment) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td tensors", count);
    }
    merge->lengths = merge->segment + count;
    for (ptrdiff_t i = 0; i < count; i++) {
        count_tensor(merge, i);
    }
    list_segments(merge, true);
    merge->whole = merge->segments;
    list_segments(merge, false);
    assert(merge->whole <= merge->segments && merge->segments <= count);
    merge->report.tensors = count;
    merge->report.partial = merge->segments - merge->whole;
    if (count == 0 && merge->options->note) {
        merge->options->note(merge->options->user,
                             "warning: the models have no tensors, so the result has none either");
    }
    return REEF_OK;
}

/* Of a file that changed meanwhile, blocks may be partly old and partly new. */
static reef_status confirm_models(const rfi_merge *merge, reef_error *error)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t l = 0; status == REEF_OK && l < merge->rows; l++) {
        status = rfi_model_confirm(&merge->models[merge->file_of[l]], error);
    }
    if (status == REEF_OK && merge->base_of) {
        status = rfi_model_confirm(&merge->base, error);
    }
    return status;
}

/* Everything but putting the result, and what is to be remembered, in their places. */
static reef_status make_output(rfi_merge *merge, reef_error *error)
{
    reef_status status = rfi_merge_floats(merge, error);
    if (status == REEF_OK) {
        status = rfi_merge_integers(merge, error);
    }
    if (status == REEF_OK) {
        status = rfi_blocks_flush(merge, error);
    }
    if (status == REEF_OK) {
        status = rfi_merge_small_files(merge, error);
    }
    if (status == REEF_OK) {
        status = confirm_models(merge, error);
    }
    if (status == REEF_OK) {
        status = rfi_merge_tell_tensors(merge, error);
    }
    if (status == REEF_OK) {
        status = rfi_merge_remember(merge, error);
    }
    return status;
}

static reef_status write_output(rfi_merge *merge, reef_error *error)
{
    reef_status status = rfi_output_open(merge->context, &merge->out, &merge->result, merge->out_path,
                                         merge->options->shard_size, error);
    if (status != REEF_OK) {
        return status;
    }
    status = make_output(merge, error);
    if (status == REEF_OK && merge->memory.name) {
        status = rfi_merge_check_memory(merge, error);
    }
    if (status == REEF_OK) {
        status = rfi_output_commit(&merge->out, error);
    }
    if (status == REEF_OK && merge->memory.name) {
        return merge->first ? rfi_writer_commit_new(&merge->memory, error) : rfi_writer_commit(&merge->memory, error);
    }
    if (status != REEF_OK) {
        rfi_output_abandon(&merge->out);
        rfi_writer_abandon(&merge->memory);
    }
    return status;
}

static reef_status run(rfi_merge *merge, const char *const *paths, reef_error *error)
{
    const char *rule = merge->options->rule ? merge->options->rule : "ref";
    reef_status status = reef_agg_create(merge->context, &merge->agg, rule, error);
    if (status != REEF_OK) {
        return status;
    }
    status = open_models(merge, paths, error);
    if (status != REEF_OK) {
        return status;
    }
    status = compare_models(merge, error);
    if (status != REEF_OK) {
        return status;
    }
    status = list_rows(merge, error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_merge_match(merge, error);
    if (status != REEF_OK) {
        return status;
    }
    rfi_merge_warn_of_scales(merge);
    status = rfi_pairs_find(merge, error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_merge_open_base(merge, error);
    if (status != REEF_OK) {
        return status;
    }
    status = list_tensors(merge, error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_merge_find_copies(merge, error);
    if (status != REEF_OK) {
        return status;
    }
    return write_output(merge, error);
}

/* ---- the report ---- */

static void fill_report(const rfi_merge *merge, reef_status status, reef_merge_report *report)
{
    reef_merge_file *files = report->files;
    for (ptrdiff_t l = 0; status == REEF_OK && l < merge->rows; l++) {
        bool took_part = merge->segments > 0 && merge->numbers[l] > 0; /* it may lack all tensors that are merged */
        bool measured = took_part && !merge->options->no_trust;
        merge->fates[merge->file_of[l]].trust = measured ? merge->trust[l] : (double)NAN;
        merge->fates[merge->file_of[l]].rejected = measured ? merge->rejected[l] : (double)NAN;
    }
    for (ptrdiff_t i = 0; i < merge->files; i++) {
        if (merge->fates[i].reason != REEF_MERGE_USED) {
            merge->fates[i].trust = 0;
            merge->fates[i].rejected = 1;
        }
    }
    if (files) {
        memcpy(files, merge->fates, (size_t)merge->files * sizeof *files);
    }
    if (status == REEF_OK) {
        *report = merge->report;
        report->files = files;
    }
}

static void lay_out(rfi_merge *merge, rfi_arena *arena)
{
    ptrdiff_t n = merge->files;
    merge->models = rfi_arena_take(arena, n, 1, sizeof *merge->models);
    merge->fates = rfi_arena_take(arena, n, 1, sizeof *merge->fates);
    merge->file_of = rfi_arena_take(arena, n, 1, sizeof *merge->file_of);
    merge->weights = rfi_arena_take(arena, n, 1, sizeof *merge->weights);
    merge->spoilt = rfi_arena_take(arena, n, 1, sizeof *merge->spoilt);
    merge->spoilt_in = rfi_arena_take(arena, n, 1, sizeof *merge->spoilt_in);
    merge->left_out = rfi_arena_take(arena, n, 1, sizeof *merge->left_out);
    merge->trust = rfi_arena_take(arena, n, 1, sizeof *merge->trust);
    merge->rejected = rfi_arena_take(arena, n, 1, sizeof *merge->rejected);
    merge->numbers = rfi_arena_take(arena, n, 1, sizeof *merge->numbers);
    merge->present = rfi_arena_take(arena, n, 1, sizeof *merge->present);
    merge->ids = rfi_arena_take(arena, n, 1, sizeof *merge->ids);
}

static reef_status check_arguments(const reef_merge_options *options, const char *const *paths, ptrdiff_t count,
                                   const char *out_path, reef_error *error)
{
    if (!options || !paths || !out_path || count < 1) {
        return rfi_fail(error, REEF_E_ARG, "a merge needs options, at least one file, and a path for the result");
    }
    reef_status status = rfi_check_size(options->size, sizeof *options, "reef_merge_options", error);
    if (status != REEF_OK) {
        return status;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        if (!paths[i]) {
            return rfi_fail(error, REEF_E_ARG, "path %td is NULL", i);
        }
        if (reef_file_same(paths[i], out_path)) {
            return rfi_fail(error, REEF_E_ARG, "%s: is an input; the result goes to a file of its own",
                            rfi_path_show(out_path));
        }
    }
    if (options->integers != REEF_MERGE_MAJORITY && options->integers != REEF_MERGE_TRUSTED) {
        return rfi_fail(error, REEF_E_ARG, "integers = %d is unknown", (int)options->integers);
    }
    rfi_type type;
    if (options->cast && !rfi_real_type_named(options->cast, &type)) {
        return rfi_fail(error, REEF_E_ARG,
                        "cast = %.40s is not a floating-point type; there are F64, F32, F16, BF16, "
                        "F8_E4M3 and F8_E5M2",
                        options->cast);
    }
    if (options->base && reef_file_same(options->base, out_path)) {
        return rfi_fail(error, REEF_E_ARG, "%s: is the base; the result goes to a file of its own",
                        rfi_path_show(out_path));
    }
    if (options->common && options->ignore_missing) {
        return rfi_fail(error, REEF_E_ARG, "common and ignore_missing exclude each other");
    }
    return options->memory > PTRDIFF_MAX ? rfi_fail(error, REEF_E_RANGE, "memory = %zu is too large", options->memory)
                                         : REEF_OK;
}

reef_status reef_merge_files(reef_context *context, const reef_merge_options *options, const char *const *paths,
                             ptrdiff_t count, const char *out_path, reef_merge_report *report, reef_error *error)
{
    rfi_merge merge = {.context = context, .options = options, .files = count, .out_path = out_path};
    rfi_arena sizes = {0};
    reef_status status = check_arguments(options, paths, count, out_path, error);
    if (status != REEF_OK) {
        return status;
    }
    lay_out(&merge, &sizes);
    void *memory = sizes.overflow ? NULL : rfi_allocate(context, (size_t)sizes.used);
    if (!memory) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td files", count);
    }
    memset(memory, 0, (size_t)sizes.used);
    rfi_arena arena = {.base = memory};
    lay_out(&merge, &arena);
    assert(arena.used == sizes.used); /* the same layout as was measured */
    for (ptrdiff_t i = 0; i < count; i++) {
        merge.fates[i].copy_of = -1;
    }
    merge.report.trusted = -1;
    merge.memory_lock = -1;
    (void)pthread_mutex_init(&merge.lock, NULL);
    merge.allow = (rfi_lenience){.types = options->cast != NULL, .missing = options->common || options->ignore_missing};
    merge.allow.tensors = merge.allow.missing && options->drop_bad;
    (void)(options->cast && rfi_real_type_named(options->cast, &merge.cast));
    status = run(&merge, paths, error);
    if (report) {
        fill_report(&merge, status, report);
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        rfi_model_close(context, &merge.models[i]);
    }
    rfi_blocks_free(&merge);
    rfi_merge_unlock_memory(&merge);
    reef_state_destroy(&merge.state);
    rfi_release(context, merge.by_tensor);
    rfi_release(context, merge.segment);
    rfi_merge_close_base(&merge);
    rfi_pairs_free(&merge);
    rfi_merge_unmatch(&merge);
    (void)pthread_mutex_destroy(&merge.lock);
    rfi_release(context, memory);
    reef_agg_destroy(&merge.agg);
    return status;
}
