/* The aggregation of the floating-point tensors, block by block.
 *
 * One plan for all tensors, or one per tensor. If a block holds NaN or Inf and the policy is to drop the row, all files are searched for
 * such values, and everything starts again without the files that hold any: a file counts as a whole or not at all, for every tensor. */
#include "merge/merge.h"

#include "agg/driver.h"
#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/lines.h"
#include "num/treesum.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Segments [first, first + count) of the model are segments 0, 1, ... of a plan. */
typedef struct range {
    rfi_merge *merge;
    ptrdiff_t first, count;
    const reef_plan *plan; /* NULL: all rows are read, to be searched */
} range;

/* ---- source and sink ---- */

/* Into the worker's block. */
static reef_status load(const range *r, const rfi_stretch *at, reef_error *error)
{
    rfi_merge *merge = r->merge;
    rfi_block *block = &merge->blocks[at->worker];
    ptrdiff_t tensor = merge->segment[r->first + at->segment];
    if (r->plan) {
        rfi_plan_rows_read(r->plan, at->segment, block->wanted);
    }
    reef_status status =
        rfi_block_read(merge, block, tensor, at->m0, at->m1 - at->m0, r->plan ? RFI_WANTED : RFI_NUMBERS, error);
    if (at->worker == 0) {
        rfi_merge_tell(merge);
    }
    return status;
}

static reef_status read_block(void *user, const rfi_stretch *at, const void **rows, reef_error *error)
{
    const rfi_merge *merge = ((const range *)user)->merge;
    reef_status status = load(user, at, error);
    memcpy(rows, merge->blocks[at->worker].rows, (size_t)merge->rows * sizeof *rows);
    return status;
}

static rfi_type block_type(void *user, const rfi_stretch *at)
{
    return ((const range *)user)->merge->blocks[at->worker].type;
}

static void expect_part(void *user, const rfi_stretch *part)
{
    const range *r = user;
    rfi_block *block = &r->merge->blocks[part->worker];
    if (r->plan) {
        rfi_plan_rows_read(r->plan, part->segment, block->wanted);
    }
    rfi_block_expect(r->merge, r->plan ? block->wanted : NULL, r->merge->segment[r->first + part->segment], part->m0,
                     part->m1 - part->m0);
}

static void *place(void *user, const rfi_stretch *at)
{
    return ((const range *)user)->merge->blocks[at->worker].out;
}

static reef_status write_block(void *user, const rfi_stretch *at, reef_error *error)
{
    const range *r = user;
    rfi_merge *merge = r->merge;
    assert(at->segment < r->count && at->worker < merge->workers);
    ptrdiff_t tensor = merge->segment[r->first + at->segment];
    ptrdiff_t pair = merge->pair_of[tensor];
    if (pair >= 0) {
        return rfi_pair_write(merge, &merge->blocks[at->worker], pair, at->m0, at->m1 - at->m0, error);
    }
    return rfi_block_write(merge, &merge->blocks[at->worker], tensor, at->m0, at->m1 - at->m0, true, error);
}

/* Coordinates of a block, whole units of them. */
static ptrdiff_t block_length(const rfi_merge *merge, ptrdiff_t unit)
{
    return merge->row_bytes / (ptrdiff_t)rfi_dtype_size(merge->dtype) / unit * unit;
}

/* ---- one plan ---- */

/* Adds a plan's report to that of the merge, by the number of its coordinates. */
static void add_report(rfi_merge *merge, const reef_report *report, double numbers)
{
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        bool took_part = merge->weights[l] <= 0 || merge->present[l] > 0; /* without any weight: as the plan has it */
        merge->trust[l] += took_part ? numbers * reef_report_trust(report)[l] : 0;
        merge->rejected[l] += took_part ? numbers * reef_report_rejected(report)[l] : 0;
        merge->numbers[l] += took_part ? numbers : 0;
    }
    merge->report.centre_share += numbers * reef_report_centre_share(report);
    merge->report.masked += reef_report_masked(report);
    merge->report.unconverged += reef_report_unconverged(report);
}

/* *suspect: the files hold NaN or Inf, and the result is void. */
static reef_status run_plan(range *r, reef_plan *plan, reef_report *report, bool *suspect, reef_error *error)
{
    rfi_merge *merge = r->merge;
    r->plan = plan;
    reef_input input = {.weights = merge->present, .ids = merge->state ? merge->ids : NULL, .state = merge->state};
    reef_status status = reef_plan_begin(plan, &input, report, error);
    const rfi_drive drive = {.plan = plan,
                             .user = r,
                             .read = read_block,
                             .type = block_type,
                             .expect = expect_part,
                             .place = place,
                             .write = write_block,
                             .workers = merge->workers,
                             .step = block_length(merge, rfi_plan_room(plan)),
                             .without = merge->left_out,
                             .suspect = suspect};
    if (status != REEF_OK) {
        return status;
    }
    return rfi_drive_run(&drive, error);
}

/* A plan for some segments. Tensors by themselves of the same length share one: models have many of few shapes. */
static reef_status find_plan(const range *r, reef_plan **plan, reef_error *error)
{
    rfi_merge *merge = r->merge;
    reef_shape shape = {.rows = merge->rows,
                        .segments = r->count,
                        .lengths = merge->lengths + r->first,
                        .dtype = merge->dtype,
                        .workers = merge->workers};
    ptrdiff_t length = r->count == 1 ? shape.lengths[0] : 0;
    assert(shape.lengths[0] >= 1);
    rfi_kept_plan *kept = &merge->plans[length % RFI_PLANS];
    if (kept->plan && kept->length == length && length > 0) {
        *plan = kept->plan;
        return REEF_OK;
    }
    reef_plan_destroy(&kept->plan);
    reef_status status = reef_plan_create(&kept->plan, merge->agg, &shape, error);
    kept->length = length;
    *plan = kept->plan;
    return status;
}

/* A tensor by itself that no file has numbers for: which one it is. */
static void name_tensor(const range *r, reef_error *error)
{
    char shown[RFI_SHOWN_SIZE];
    const rfi_merge *merge = r->merge;
    ptrdiff_t tensor = merge->segment[r->first];
    ptrdiff_t pair = merge->pair_of[tensor];
    if (error) {
        const reef_error reason = *error;
        (void)rfi_fail(error, reason.status, "tensor '%s': %.200s",
                       rfi_shown(pair < 0 ? merge->list[tensor].name : rfi_pair_name(merge, pair), shown), reason.text);
    }
}

static reef_status aggregate(range *r, reef_report *report, bool *suspect, reef_error *error)
{
    rfi_merge *merge = r->merge;
    reef_plan *plan = NULL;
    double numbers = 0;
    assert(r->count == 1 || (r->first == 0 && r->count == merge->whole)); /* one plan for all, or one per tensor */
    assert(r->first + r->count <= merge->segments);
    for (ptrdiff_t l = 0; l < merge->rows; l++) { /* whoever lacks a tensor has no weight in it */
        bool has = merge->of[merge->segment[r->first] * merge->rows + l] != NULL;
        merge->present[l] = has ? merge->weights[l] : 0;
    }
    if (report && merge->by_tensor) {
        reef_report_keep_segments(report, merge->by_tensor + r->first * merge->rows);
    }
    reef_status status = find_plan(r, &plan, error);
    if (status == REEF_OK) {
        status = rfi_blocks_create(merge, rfi_plan_room(plan), error);
    }
    if (status == REEF_OK) {
        merge->plan = plan;
        merge->total += r->first == 0 ? (double)(reef_plan_passes(plan) + 1) * merge->bytes : 0;
        status = run_plan(r, plan, report, suspect, error);
    }
    if (status == REEF_E_NO_ROWS && r->count == 1 && !merge->result.npy) {
        name_tensor(r, error);
    }
    for (ptrdiff_t s = 0; s < r->count; s++) {
        numbers += (double)merge->lengths[r->first + s];
    }
    if (report && status == REEF_OK && !*suspect) {
        add_report(merge, report, numbers);
    }
    return status;
}

/* ---- all of it ---- */

static void forget_report(rfi_merge *merge)
{
    memset(merge->trust, 0, (size_t)merge->rows * sizeof *merge->trust);
    memset(merge->rejected, 0, (size_t)merge->rows * sizeof *merge->rejected);
    memset(merge->numbers, 0, (size_t)merge->rows * sizeof *merge->numbers);
    merge->report.centre_share = 0;
    merge->report.masked = 0;
    merge->report.unconverged = 0;
}

static reef_status attempt(rfi_merge *merge, reef_report *report, bool *suspect, reef_error *error)
{
    range r = {.merge = merge};
    reef_status status = REEF_OK;
    forget_report(merge);
    rfi_blocks_forget(merge);
    rfi_pairs_reset(merge);
    *suspect = false;
    for (; status == REEF_OK && !*suspect && r.first < merge->segments; r.first += r.count) {
        bool together = r.first < merge->whole && !merge->options->per_tensor;
        r.count = together ? merge->whole : 1;
        status = aggregate(&r, report, suspect, error);
    }
    return status;
}

static bool is_spoilt(const rfi_merge *merge, const void *row, ptrdiff_t count)
{
    const float *single = row;
    const double *number = row;
    for (ptrdiff_t m = 0; m < count; m++) {
        if (!(merge->dtype == REEF_F64 ? isfinite(number[m]) : isfinite(single[m]))) {
            return true;
        }
    }
    return false;
}

/* Notes for each row the first segment with NaN or Inf, whichever worker sees it first. */
static reef_status search_block(void *user, const rfi_stretch *at, reef_error *error)
{
    rfi_merge *merge = ((const range *)user)->merge;
    const void *const *rows = merge->blocks[at->worker].rows;
    reef_status status = load(user, at, error);
    for (ptrdiff_t l = 0; status == REEF_OK && l < merge->rows; l++) {
        ptrdiff_t known = atomic_load(&merge->spoilt_in[l]);
        if (at->segment < known && rows[l] && is_spoilt(merge, rows[l], at->m1 - at->m0)) {
            while (at->segment < known && !atomic_compare_exchange_weak(&merge->spoilt_in[l], &known, at->segment)) {
            }
        }
    }
    return status;
}

static reef_status search(rfi_merge *merge, reef_error *error)
{
    const ptrdiff_t grain = (ptrdiff_t)RFI_TILE * 64;
    range all = {.merge = merge, .count = merge->segments};
    ptrdiff_t *parts = rfi_allocate_many(merge->context, merge->segments + 1, sizeof *parts);
    if (!parts) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td tensors", merge->segments);
    }
    rfi_walk_parts(merge->lengths, merge->segments, grain, parts);
    const rfi_walk walk = {.context = merge->context,
                           .workers = merge->workers,
                           .segments = merge->segments,
                           .lengths = merge->lengths,
                           .parts = parts,
                           .grain = grain,
                           .step = block_length(merge, 1),
                           .to = PTRDIFF_MAX,
                           .user = &all,
                           .enter = expect_part,
                           .visit = search_block};
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        atomic_init(&merge->spoilt_in[l], PTRDIFF_MAX);
    }
    merge->total += merge->bytes;
    merge->plan = NULL;
    reef_status status = rfi_walk_run(&walk, error);
    rfi_release(merge->context, parts);
    return status;
}

/* Why a file is left out. */
static void tell_spoilt(const rfi_merge *merge, ptrdiff_t row, reef_error *sentence)
{
    char shown[RFI_SHOWN_SIZE];
    ptrdiff_t tensor = merge->segment[atomic_load(&merge->spoilt_in[row])];
    ptrdiff_t pair = merge->pair_of[tensor];
    const char *path = rfi_path_show(merge->models[merge->file_of[row]].path);
    const char *name = rfi_shown(pair < 0 ? merge->list[tensor].name : rfi_pair_name(merge, pair), shown);
    if (*name) {
        (void)rfi_fail(sentence, REEF_E_NONFINITE, "%s: holds NaN or Inf in '%s'", path, name);
    } else { /* the array of an npy file has none */
        (void)rfi_fail(sentence, REEF_E_NONFINITE, "%s: holds NaN or Inf", path);
    }
}

/* Which files hold NaN or Inf, and what that means. */
static reef_status find_spoilt(rfi_merge *merge, reef_error *error)
{
    reef_error sentence;
    const char *first = "";
    ptrdiff_t left = 0;
    reef_status status = search(merge, error);
    for (ptrdiff_t l = 0; status == REEF_OK && l < merge->rows; l++) {
        merge->left_out[l] = atomic_load(&merge->spoilt_in[l]) < merge->segments;
        atomic_store(&merge->spoilt[l], merge->left_out[l]);
        left += merge->weights[l] > 0 && !merge->left_out[l];
        if (!merge->left_out[l]) {
            continue;
        }
        reef_merge_file *fate = &merge->fates[merge->file_of[l]];
        tell_spoilt(merge, l, &sentence);
        fate->reason = REEF_MERGE_NONFINITE;
        memcpy(fate->why, sentence.text, sizeof fate->why);
        first = first[0] ? first : fate->why;
        if (rfi_agg_refuses_nan(merge->agg)) {
            return rfi_fail(error, REEF_E_NONFINITE, "%s, and the policy is nan=error", sentence.text);
        }
    }
    return status == REEF_OK && left == 0
               ? rfi_fail(error, REEF_E_NO_ROWS, "no file can be used: every one holds NaN or Inf; the first: %s",
                          first)
               : status;
}

static reef_status run_attempts(rfi_merge *merge, reef_report *report, reef_error *error)
{
    bool suspect = false;
    reef_status status = attempt(merge, report, &suspect, error);
    if (suspect) { /* whatever the status: it may come from the bad values */
        status = find_spoilt(merge, error);
        if (status == REEF_OK) {
            status = attempt(merge, report, &suspect, error);
        }
        if (status == REEF_OK && suspect) {
            return rfi_fail(error, REEF_E_FILE, "a file has changed while it was read");
        }
    }
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        double numbers = merge->numbers[l] > 0 ? merge->numbers[l] : 1;
        merge->trust[l] /= numbers;
        merge->rejected[l] /= numbers;
    }
    merge->report.centre_share /= (double)merge->report.numbers;
    merge->report.pair_error = merge->pair_size > 0 ? sqrt(merge->pair_miss / merge->pair_size) : 0;
    return status;
}

reef_status rfi_merge_floats(rfi_merge *merge, reef_error *error)
{
    reef_report *report = NULL;
    reef_status status = REEF_OK;
    if (merge->segments == 0) {
        if (merge->options->state && merge->options->note) {
            merge->options->note(merge->options->user,
                                 "warning: the models have no floating-point numbers, so nothing is "
                                 "remembered of the sites, and no memory is written");
        }
        return REEF_OK;
    }
    status = rfi_merge_recall(merge, error);
    if (status != REEF_OK) {
        return status;
    }
    assert(!merge->state || merge->segments == merge->whole); /* a memory is that of whole models */
    if (!merge->options->no_trust) {
        status = reef_report_create(merge->context, &report, merge->rows, error);
    }
    if (status == REEF_OK && report && merge->options->tensor) {
        merge->by_tensor =
            rfi_allocate_many(merge->context, merge->segments, (size_t)merge->rows * sizeof *merge->by_tensor);
        status = merge->by_tensor ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for trust by tensor");
    }
    if (status == REEF_OK) {
        status = run_attempts(merge, report, error);
    }
    if (status == REEF_OK) {
        rfi_pairs_warn_of_error(merge);
    }
    merge->plan = NULL;
    for (ptrdiff_t i = 0; i < RFI_PLANS; i++) {
        reef_plan_destroy(&merge->plans[i].plan);
    }
    reef_report_destroy(&report);
    return status;
}

/* ---- trust by tensor ---- */

/* A name as a text, which ends with the first 0. */
static void take_name(rfi_slice name, char *text)
{
    for (size_t i = 0; i < name.length; i++) {
        text[i] = (char)(name.text[i] ? name.text[i] : '?');
    }
    text[name.length] = '\0';
}

reef_status rfi_merge_tell_tensors(const rfi_merge *merge, reef_error *error)
{
    const rfi_tensor *tensors = merge->result.tensors;
    size_t longest = 0;
    for (ptrdiff_t s = 0; merge->by_tensor && s < merge->segments; s++) {
        size_t length = tensors[merge->segment[s]].name.length;
        longest = length > longest ? length : longest;
    }
    char *name = merge->by_tensor ? rfi_allocate(merge->context, longest + 1) : NULL;
    double *trust = merge->by_tensor ? rfi_allocate_many(merge->context, merge->files, sizeof *trust) : NULL;
    bool room = !merge->by_tensor || (name && trust);
    for (ptrdiff_t s = 0; merge->by_tensor && room && s < merge->segments; s++) {
        for (ptrdiff_t i = 0; i < merge->files; i++) {
            trust[i] = NAN;
        }
        for (ptrdiff_t l = 0; l < merge->rows; l++) {
            if (rfi_row_counts(merge, l) && merge->of[merge->segment[s] * merge->rows + l]) {
                trust[merge->file_of[l]] = merge->by_tensor[s * merge->rows + l];
            }
        }
        ptrdiff_t pair = merge->pair_of[merge->segment[s]];
        take_name(pair < 0 ? tensors[merge->segment[s]].name : rfi_pair_name(merge, pair), name);
        merge->options->tensor(merge->options->user, name, merge->lengths[s], trust);
    }
    rfi_release(merge->context, trust);
    rfi_release(merge->context, name);
    return room ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for trust by tensor");
}
