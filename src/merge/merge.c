/* A merge from beginning to end: which files take part, the output, the report. */
#include "merge/merge.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"

#include <math.h>
#include <string.h>

/* ---- tasks ---- */

void rfi_task_fail(rfi_task *task, reef_status status, const reef_error *error)
{
    int none = REEF_OK;
    if (atomic_compare_exchange_strong(&task->status, &none, (int)status)) {
        task->failure = *error;
    }
}

reef_status rfi_task_run(rfi_task *task, ptrdiff_t parts, rfi_job run, reef_error *error)
{
    atomic_store(&task->status, REEF_OK);
    /* a task is the first member of its job */
    rfi_pool_run(task->merge->context, task->merge->workers, parts, run, task);
    reef_status status = (reef_status)atomic_load(&task->status);
    if (status != REEF_OK && error) {
        *error = task->failure;
    }
    return status;
}

/* ---- which files take part ---- */

/* The file is left out, or all ends here. */
static reef_status set_aside(rfi_merge *merge, ptrdiff_t file, const reef_error *reason, reef_error *error)
{
    reef_merge_file *fate = &merge->fates[file];
    fate->reason = REEF_MERGE_BAD;
    memcpy(fate->why, reason->text, sizeof fate->why);
    if (merge->options->drop_bad && reason->status != REEF_E_NOMEM) {
        return REEF_OK;
    }
    if (error) {
        *error = *reason;
    }
    return reason->status;
}

static reef_status open_models(rfi_merge *merge, const char *const *paths, reef_error *error)
{
    reef_error reason;
    reef_status status = REEF_OK;
    for (ptrdiff_t i = 0; status == REEF_OK && i < merge->files; i++) {
        if (rfi_model_open(merge->context, &merge->models[i], paths[i], &reason) != REEF_OK) {
            status = set_aside(merge, i, &reason, error);
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
                     rfi_model_compare(&merge->models[j], &merge->models[i], NULL) == REEF_OK;
        }
        best = votes > best_votes ? i : best;
        best_votes = votes > best_votes ? votes : best_votes;
        if (2 * votes > merge->files) {
            break; /* no other can have more */
        }
    }
    return best;
}

static reef_status compare_models(rfi_merge *merge, reef_error *error)
{
    reef_error reason;
    ptrdiff_t chosen = choose_reference(merge);
    reef_status status = REEF_OK;
    if (chosen < 0) {
        return rfi_fail(error, REEF_E_NO_ROWS, "none of the %td files can be used; the first: %s", merge->files,
                        merge->fates[0].why);
    }
    merge->reference = &merge->models[chosen];
    for (ptrdiff_t i = 0; status == REEF_OK && i < merge->files; i++) {
        if (merge->fates[i].reason != REEF_MERGE_BAD &&
            rfi_model_compare(&merge->models[i], merge->reference, &reason) != REEF_OK) {
            status = set_aside(merge, i, &reason, error);
        }
    }
    return status;
}

static reef_status list_rows(rfi_merge *merge, reef_error *error)
{
    const double *given = merge->options->weights;
    bool any = false;
    for (ptrdiff_t i = 0; i < merge->files; i++) {
        double weight = given ? given[i] : 1;
        if (!isfinite(weight) || weight < 0) {
            return rfi_fail(error, REEF_E_WEIGHTS, "weight %td is %g; weights are finite and not negative", i, weight);
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
    return any ? REEF_OK : rfi_fail(error, REEF_E_WEIGHTS, "no file that can be used has a positive weight");
}

/* ---- what is to be done ---- */

static reef_status list_tensors(rfi_merge *merge, reef_error *error)
{
    const rfi_model *model = merge->reference;
    merge->rank = rfi_allocate_many(merge->context, 3 * model->count, sizeof *merge->rank);
    if (!merge->rank) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td tensors", model->count);
    }
    merge->segment = merge->rank + model->count;
    merge->lengths = merge->segment + model->count;
    for (ptrdiff_t i = 0; i < model->count; i++) {
        merge->rank[model->by_name[i] - model->tensors] = i;
    }
    for (ptrdiff_t i = 0; i < model->count; i++) {
        const rfi_tensor *tensor = &model->tensors[i];
        double bytes = (double)tensor->bytes * (double)merge->rows;
        if (!rfi_type_is_real(tensor->type)) {
            merge->total += bytes;
        } else if (tensor->count > 0) {
            merge->segment[merge->segments] = i;
            merge->lengths[merge->segments++] = tensor->count;
            merge->report.numbers += tensor->count;
            merge->bytes += bytes;
            merge->dtype = tensor->type == RFI_F64 ? REEF_F64 : merge->dtype;
        }
    }
    merge->report.tensors = model->count;
    return REEF_OK;
}

/* The output begins with the header of the reference model, as it is. */
static reef_status copy_header(rfi_merge *merge, reef_error *error)
{
    unsigned char bytes[16384];
    const rfi_model *model = merge->reference;
    reef_status status = REEF_OK;
    for (size_t at = 0; status == REEF_OK && at < model->data; at += sizeof bytes) {
        size_t part = model->data - at < sizeof bytes ? model->data - at : sizeof bytes;
        status = rfi_reader_get(&model->file, at, bytes, part, error);
        if (status == REEF_OK) {
            status = rfi_writer_put(&merge->out, at, bytes, part, error);
        }
    }
    return status;
}

static reef_status write_output(rfi_merge *merge, const char *path, reef_error *error)
{
    reef_status status = rfi_writer_open(merge->context, &merge->out, path, error);
    if (status == REEF_OK) {
        status = copy_header(merge, error);
    }
    if (status == REEF_OK) {
        status = rfi_merge_floats(merge, error);
    }
    if (status == REEF_OK) {
        status = rfi_merge_integers(merge, error);
    }
    if (status == REEF_OK) {
        return rfi_writer_commit(&merge->out, error);
    }
    rfi_writer_abandon(&merge->out);
    return status;
}

static reef_status run(rfi_merge *merge, const char *const *paths, const char *out_path, reef_error *error)
{
    const char *rule = merge->options->rule ? merge->options->rule : "ref";
    reef_status status = reef_agg_create_in(merge->context, &merge->agg, rule, error);
    if (status == REEF_OK) {
        status = open_models(merge, paths, error);
    }
    if (status == REEF_OK) {
        status = compare_models(merge, error);
    }
    if (status == REEF_OK) {
        status = list_rows(merge, error);
    }
    if (status == REEF_OK) {
        status = list_tensors(merge, error);
    }
    return status == REEF_OK ? write_output(merge, out_path, error) : status;
}

/* ---- the report ---- */

static void fill_report(const rfi_merge *merge, reef_status status, reef_merge_report *report)
{
    reef_merge_file *files = report->files;
    for (ptrdiff_t l = 0; status == REEF_OK && l < merge->rows; l++) {
        bool measured = merge->segments > 0 && !merge->options->no_trust;
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
    merge->trust = rfi_arena_take(arena, n, 1, sizeof *merge->trust);
    merge->rejected = rfi_arena_take(arena, n, 1, sizeof *merge->rejected);
}

static reef_status check_arguments(const reef_merge_options *options, const char *const *paths, ptrdiff_t count,
                                   const char *out_path, reef_error *error)
{
    if (!options || !paths || !out_path || count < 1) {
        return rfi_fail(error, REEF_E_ARG, "a merge needs options, at least one file, and a path for the result");
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        if (!paths[i]) {
            return rfi_fail(error, REEF_E_ARG, "path %td is NULL", i);
        }
    }
    if (options->integers != REEF_MERGE_MAJORITY && options->integers != REEF_MERGE_TRUSTED) {
        return rfi_fail(error, REEF_E_ARG, "integers = %d is unknown", (int)options->integers);
    }
    return options->memory > PTRDIFF_MAX ? rfi_fail(error, REEF_E_RANGE, "memory = %zu is too large", options->memory)
                                         : REEF_OK;
}

reef_status reef_merge_files(reef_context *context, const reef_merge_options *options, const char *const *paths,
                             ptrdiff_t count, const char *out_path, reef_merge_report *report, reef_error *error)
{
    rfi_merge merge = {.context = context, .options = options, .files = count};
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
    for (ptrdiff_t i = 0; i < count; i++) {
        merge.models[i].file.descriptor = -1;
    }
    merge.report.trusted = -1;
    status = run(&merge, paths, out_path, error);
    if (report) {
        fill_report(&merge, status, report);
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        rfi_model_close(context, &merge.models[i]);
    }
    rfi_blocks_free(&merge);
    rfi_release(context, merge.rank);
    rfi_release(context, memory);
    reef_agg_destroy(&merge.agg);
    return status;
}
