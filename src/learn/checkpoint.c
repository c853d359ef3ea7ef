/* The state of a run in a file: what a run needs to continue as if it had never been interrupted.
 *
 *   "REEFRUN4", fingerprint of the setup, round, counters, then the arrays of the state one after the other, then a checksum over
 *   all of it. Numbers are written as they are in memory: a file can be read on machines of the same byte order, which the fingerprint includes.
 * Files are written to a temporary name and renamed; they are read completely and checked before the run is changed. */
#include "base/error.h"
#include "base/hash.h"
#include "graph/graph.h"
#include "io/file.h"
#include "learn/run.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const char magic[8] = "REEFRUN4"; /* the last character is the format */

enum { SPEC_SIZE = 8192 };

/* Seed and data of the problem show in a gradient: that of the first and of the last agent in round 0, at the starting point 0. */
static uint64_t hash_problem(uint64_t hash, const reef_run *run)
{
    const reef_problem *problem = run->setup.problem;
    const reef_problem_kind *kind = reef_problem_kind_of(problem);
    const rfi_learner *learner = &run->learners[0];
    char text[SPEC_SIZE] = "";
    (void)reef_problem_print(problem, text, sizeof text);
    hash = rfi_hash_text(hash, text);
    for (ptrdiff_t k = 0; k < run->all; k++) {
        hash = kind->samples ? rfi_hash_number(hash, (uint64_t)kind->samples(reef_problem_state(problem), k)) : hash;
    }
    const float *zeros[1] = {run->zeros};
    float *gradients[1] = {learner->spare};
    for (int last = 0; last < 2; last++) {
        int32_t agent = last ? (int32_t)(run->all - 1) : 0;
        const reef_batch batch = {.count = 1,
                                  .agents = &agent,
                                  .models = zeros,
                                  .gradients = gradients,
                                  .size = (int32_t)run->adapt->batch,
                                  .lanes = (int32_t)run->lanes,
                                  .repetition = (int32_t)run->setup.repetition,
                                  .work = learner->batch_work};
        kind->gradients(reef_problem_state(problem), &batch);
        hash = rfi_hash_bytes(hash, learner->spare, (size_t)run->length * sizeof(float));
    }
    return hash;
}

/* Everything that determines how a run continues. */
static uint64_t fingerprint(const reef_run *run)
{
    char text[SPEC_SIZE] = "";
    const uint32_t one = 1;
    unsigned char first = 0; /* byte of it: tells byte orders apart */
    memcpy(&first, &one, 1);
    const uint64_t numbers[] = {first,
                                (uint64_t)run->all,
                                (uint64_t)run->length,
                                (uint64_t)run->lanes,
                                run->setup.seed,
                                (uint64_t)run->setup.repetition,
                                run->setup.links ? rfi_links_mark(run->setup.links) : 0};
    uint64_t hash = RFI_HASH_START;
    for (ptrdiff_t i = 0; i < RFI_COUNT(numbers); i++) {
        hash = rfi_hash_number(hash, numbers[i]);
    }
    (void)reef_run_print(run, text, sizeof text);
    hash = rfi_hash_text(hash, text);
    text[0] = '\0';
    if (run->setup.rule) {
        (void)reef_agg_print(run->setup.rule, text, sizeof text);
    }
    hash = rfi_hash_text(hash, text);
    text[0] = '\0';
    if (run->setup.attack) {
        (void)reef_attack_print(run->setup.attack, text, sizeof text);
    }
    hash = rfi_hash_text(hash, text);
    const rfi_ranks *ranks = run->ranks;
    hash = rfi_hash_bytes(hash, ranks ? ranks->malicious : run->malicious, (size_t)run->all * sizeof *run->malicious);
    if (run->step_factor) {
        hash = rfi_hash_bytes(hash, ranks ? ranks->step_factor : run->step_factor, (size_t)run->all * sizeof(double));
    }
    return hash_problem(hash, run);
}

/* ---- a walk over the state: the same order for size, save and load ---- */

typedef enum direction { MEASURE, SAVE, LOAD } direction;

typedef struct walk {
    direction direction;
    unsigned char *bytes;
    size_t at;
    size_t end; /* LOAD: where the state ends */
} walk;

static void visit(walk *w, void *data, size_t size)
{
    if (w->direction == SAVE) {
        memcpy(w->bytes + w->at, data, size);
    } else if (w->direction == LOAD) {
        memcpy(data, w->bytes + w->at, size);
    }
    w->at += size;
}

static void visit_rows(walk *w, const reef_run *run, float *rows, ptrdiff_t count)
{
    for (ptrdiff_t k = 0; rows && k < count; k++) {
        visit(w, rfi_row(run, rows, k), (size_t)run->length * sizeof(float));
    }
}

static reef_status visit_memory(walk *w, reef_run *run, reef_error *error)
{
    reef_status status = REEF_OK;
    if (w->direction == SAVE) {
        rfi_memory_save(run, w->bytes + w->at);
    } else if (w->direction == LOAD) {
        status = rfi_memory_load(run, w->bytes + w->at, w->end - w->at, error);
    }
    w->at += rfi_memory_size(run);
    return status;
}

static reef_status visit_all(walk *w, reef_run *run, reef_error *error)
{
    visit(w, &run->round, sizeof run->round);
    visit(w, &run->counts, sizeof run->counts);
    visit(w, run->home, (size_t)run->agents * sizeof *run->home);
    visit_rows(w, run, run->w, run->models);
    visit_rows(w, run, run->velocity, run->agents);
    visit_rows(w, run, run->before, run->malicious_count);
    if (run->past) {
        ptrdiff_t past = (ptrdiff_t)run->depth * run->malicious_count;
        visit_rows(w, run, run->past, past);
        visit(w, run->past_sent, (size_t)past);
    }
    visit_rows(w, run, run->server, 2);
    visit_rows(w, run, run->keeps_phi ? run->phi : NULL, run->agents);
    if (run->received) {
        visit(w, &run->watched, sizeof run->watched);
    }
    if (run->extra) {
        visit(w, run->extra, run->extra_size);
    }
    return visit_memory(w, run, error);
}

static size_t state_size(reef_run *run)
{
    walk w = {MEASURE, NULL, 0, 0};
    (void)visit_all(&w, run, NULL);
    return w.at;
}

/* ---- save and load ---- */

enum { HEAD = sizeof magic + sizeof(uint64_t), TAIL = sizeof(uint64_t) };

reef_status rfi_run_save_with(reef_run *run, const char *path, const void *extra, size_t extra_size, reef_error *error)
{
    return rfi_ranks_save(run, path, fingerprint(run), extra, extra_size, error);
}

reef_status rfi_run_load_with(reef_run *run, const char *path, void *extra, size_t extra_size, bool *fell_back,
                              reef_error *error)
{
    return rfi_ranks_load(run, path, fingerprint(run), extra, extra_size, fell_back, error);
}

reef_status reef_run_save(const reef_run *run, const char *path, reef_error *error)
{
    if (!run || !path) {
        return rfi_fail(error, REEF_E_ARG, "reef_run_save: %s is NULL", run ? "path" : "run");
    }
    reef_run *r = (reef_run *)(uintptr_t)run; /* only read */
    if (run->ranks) {
        return rfi_run_save_with(r, path, NULL, 0, error);
    }
    size_t size = HEAD + state_size(r) + TAIL;
    unsigned char *bytes = rfi_allocate(run->context, size);
    if (!bytes) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a checkpoint of %zu bytes", size);
    }
    uint64_t mark = fingerprint(run);
    memcpy(bytes, magic, sizeof magic);
    memcpy(bytes + sizeof magic, &mark, sizeof mark);
    walk w = {SAVE, bytes, HEAD, 0};
    reef_status status = visit_all(&w, r, error);
    assert(w.at == size - TAIL); /* the same layout as was measured */
    uint64_t sum = rfi_hash_bytes(RFI_HASH_START, bytes, size - TAIL);
    memcpy(bytes + size - TAIL, &sum, sizeof sum);
    if (status == REEF_OK) {
        status = rfi_file_write(run->context, path, &(rfi_piece){bytes, size}, 1, error);
    }
    rfi_release(run->context, bytes);
    return status;
}

static reef_status check_file(const reef_run *run, const rfi_file *file, size_t least, const char *path,
                              reef_error *error)
{
    uint64_t mark = fingerprint(run);
    uint64_t sum = 0;
    if (file->size >= sizeof magic && memcmp(file->bytes, magic, sizeof magic - 1) == 0 &&
        file->bytes[sizeof magic - 1] < (unsigned char)magic[sizeof magic - 1]) {
        return rfi_fail(error, REEF_E_FORMAT,
                        "%s is a checkpoint of an earlier version of Reef and cannot be resumed by this one",
                        rfi_path_show(path));
    }
    if (file->size < HEAD + TAIL || memcmp(file->bytes, magic, sizeof magic) != 0) {
        return rfi_fail(error, REEF_E_FORMAT, "%s is not a checkpoint of a run", rfi_path_show(path));
    }
    if (memcmp(file->bytes + sizeof magic, &mark, sizeof mark) != 0) {
        return rfi_fail(error, REEF_E_FORMAT, "%s is the checkpoint of a run with another setup", rfi_path_show(path));
    }
    memcpy(&sum, file->bytes + file->size - TAIL, sizeof sum);
    bool whole = run->states ? file->size >= least : file->size == least;
    if (!whole || sum != rfi_hash_bytes(RFI_HASH_START, file->bytes, file->size - TAIL)) {
        return rfi_fail(error, REEF_E_FORMAT, "%s is damaged: wrong checksum, or %zu of %zu bytes", rfi_path_show(path),
                        file->size, least);
    }
    return REEF_OK;
}

/* What no run can be in, though a file says so. */
static bool is_sane(const reef_run *run)
{
    const int64_t most = INT64_MAX / 4;
    const reef_run_counts *c = &run->counts;
    const int64_t numbers[] = {run->round, c->rounds,  c->messages, c->bytes, c->gradients,
                               c->kept,    c->dropped, c->silent,   c->late};
    bool sane = true;
    for (ptrdiff_t i = 0; i < RFI_COUNT(numbers); i++) {
        sane = sane && numbers[i] >= 0 && numbers[i] <= most;
    }
    for (ptrdiff_t k = 0; k < run->agents; k++) { /* rows that do not exist would be read */
        sane = sane && run->home[k] >= 0 && run->home[k] < run->models;
    }
    sane = sane && isfinite(run->watched);
    return sane && (!run->strategy->is_sane || run->strategy->is_sane(run));
}

/* Takes the state from `bytes`; goes back to `old` if it cannot be. */
static reef_status take(reef_run *run, const rfi_file *file, unsigned char *old, size_t old_size, const char *path,
                        reef_error *error)
{
    walk w = {LOAD, file->bytes, HEAD, file->size - TAIL};
    reef_error reason = {REEF_OK, ""};
    reef_status status = visit_all(&w, run, &reason);
    if (status != REEF_OK) {
        status = rfi_fail(error, status, "%s: %s", rfi_path_show(path), reason.text);
    } else if (!is_sane(run)) {
        status = rfi_fail(error, REEF_E_FORMAT, "%s is an inconsistent checkpoint", rfi_path_show(path));
    }
    if (status != REEF_OK) {
        walk back = {LOAD, old, 0, old_size};
        (void)visit_all(&back, run, NULL);
        return status;
    }
    for (ptrdiff_t i = 0; run->trust && i < run->classes; i++) {
        run->trust_counts[i] = 0;
    }
    return REEF_OK;
}

reef_status reef_run_load(reef_run *run, const char *path, reef_error *error)
{
    rfi_file file = {NULL, 0};
    if (!run || !path) {
        return rfi_fail(error, REEF_E_ARG, "reef_run_load: %s is NULL", run ? "path" : "run");
    }
    if (run->ranks) {
        bool fell_back = false;
        return rfi_run_load_with(run, path, NULL, 0, &fell_back, error);
    }
    size_t old_size = state_size(run);
    size_t least =
        HEAD + old_size - rfi_memory_size(run) + TAIL; /* the rule's memory may be of any size, to some bound */
    reef_status status = rfi_file_read(run->context, path, least + rfi_memory_most(run) + 1, &file, error);
    if (status != REEF_OK) {
        return status;
    }
    unsigned char *old = rfi_allocate(run->context, old_size);
    status = old ? check_file(run, &file, least, path, error)
                 : rfi_fail(error, REEF_E_NOMEM, "not enough memory for a checkpoint of %zu bytes", old_size);
    if (old && status == REEF_OK) {
        walk w = {SAVE, old, 0, 0};
        (void)visit_all(&w, run, NULL);
        status = take(run, &file, old, old_size, path, error);
    }
    rfi_release(run->context, old);
    rfi_file_free(run->context, &file);
    return status;
}
