/* The state of a run in a file: what a run needs to go on as if it had never stopped.
 *
 *   "REEFRUN1", fingerprint of the setup, round, counters, then the arrays of the state one after the other, then a checksum over
 *   all of it. Numbers as they lie in memory: a file serves machines of the same byte order, which the fingerprint includes.
 * Written to a temporary file and renamed; loaded completely and checked before the run is touched. */
#include "base/error.h"
#include "io/file.h"
#include "learn/run.h"

#include <string.h>

static const char magic[8] = "REEFRUN1";

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ p[i]) * 1099511628211U;
    }
    return hash;
}

enum { SPEC_SIZE = 8192 };

/* Everything that decides how a run goes on. */
static uint64_t fingerprint(const reef_run *run)
{
    uint64_t hash = 1469598103934665603U;
    char text[SPEC_SIZE] = "";
    uint64_t numbers[] = {1,
                          (uint64_t)run->agents,
                          (uint64_t)run->length,
                          (uint64_t)run->lanes,
                          run->setup.seed,
                          (uint64_t)run->setup.repetition,
                          run->setup.trust};
    hash = hash_bytes(hash, numbers, sizeof numbers);
    (void)reef_run_print(run, text, sizeof text);
    hash = hash_bytes(hash, text, strlen(text));
    (void)reef_problem_print(run->setup.problem, text, sizeof text);
    hash = hash_bytes(hash, text, strlen(text));
    text[0] = '\0';
    if (run->setup.rule) {
        (void)reef_agg_print(run->setup.rule, text, sizeof text);
    }
    hash = hash_bytes(hash, text, strlen(text));
    text[0] = '\0';
    if (run->setup.attack) {
        (void)reef_attack_print(run->setup.attack, text, sizeof text);
    }
    hash = hash_bytes(hash, text, strlen(text));
    hash = hash_bytes(hash, run->liar, (size_t)run->agents * sizeof *run->liar);
    if (run->setup.links) {
        reef_csr csr = reef_graph_csr(reef_links_graph(run->setup.links, 0));
        hash = hash_bytes(hash, csr.senders, (size_t)csr.start[csr.agents] * sizeof *csr.senders);
        hash = hash_bytes(hash, csr.weight, (size_t)csr.start[csr.agents] * sizeof *csr.weight);
    }
    return hash;
}

/* ---- a walk over the state: the same order for size, save and load ---- */

typedef enum direction { MEASURE, SAVE, LOAD } direction;

typedef struct walk {
    direction direction;
    unsigned char *bytes;
    size_t at;
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

/* The rule's memory: a flag and a centre per class. `room`: one row. */
static reef_status visit_states(walk *w, const reef_run *run, float *room, reef_error *error)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t i = 0; run->states && status == REEF_OK && i < run->classes; i++) {
        const void *centre = reef_state_centre(run->states[i], 0);
        unsigned char known = centre != NULL;
        if (centre && w->direction == SAVE) {
            memcpy(room, centre, (size_t)run->length * sizeof(float));
        }
        visit(w, &known, 1);
        visit(w, room, (size_t)run->length * sizeof(float));
        if (w->direction == LOAD && known) {
            status = reef_state_set_centre(run->states[i], 0, room, error);
        } else if (w->direction == LOAD) {
            reef_state_reset(run->states[i]);
        }
    }
    return status;
}

static reef_status visit_all(walk *w, reef_run *run, reef_error *error)
{
    float *room = run->learners[0].spare;
    visit(w, &run->round, sizeof run->round);
    visit(w, &run->counts, sizeof run->counts);
    visit(w, run->home, (size_t)run->agents * sizeof *run->home);
    visit_rows(w, run, run->w, run->agents);
    visit_rows(w, run, run->velocity, run->agents);
    visit_rows(w, run, run->past, run->past ? (ptrdiff_t)run->depth * run->liars : 0);
    visit_rows(w, run, run->server, 2);
    if (run->extra) {
        visit_rows(w, run, run->phi, run->agents); /* messages under way */
        visit(w, run->extra, run->extra_size);
    }
    return visit_states(w, run, room, error);
}

static size_t state_size(reef_run *run)
{
    walk w = {MEASURE, NULL, 0};
    (void)visit_all(&w, run, NULL);
    return w.at;
}

/* ---- save and load ---- */

enum { HEAD = sizeof magic + sizeof(uint64_t), TAIL = sizeof(uint64_t) };

reef_status reef_run_save(const reef_run *run, const char *path, reef_error *error)
{
    if (!run || !path) {
        return rfi_fail(error, REEF_E_ARG, "reef_run_save: %s is NULL", run ? "path" : "run");
    }
    reef_run *r = (reef_run *)(uintptr_t)run; /* only read, and its spare row used */
    size_t size = HEAD + state_size(r) + TAIL;
    unsigned char *bytes = rfi_allocate(run->context, size);
    if (!bytes) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a checkpoint of %zu bytes", size);
    }
    uint64_t mark = fingerprint(run);
    memcpy(bytes, magic, sizeof magic);
    memcpy(bytes + sizeof magic, &mark, sizeof mark);
    walk w = {SAVE, bytes, HEAD};
    reef_status status = visit_all(&w, r, error);
    uint64_t sum = hash_bytes(1469598103934665603U, bytes, size - TAIL);
    memcpy(bytes + size - TAIL, &sum, sizeof sum);
    if (status == REEF_OK) {
        status = rfi_file_write(run->context, path, &(rfi_piece){bytes, size}, 1, error);
    }
    rfi_release(run->context, bytes);
    return status;
}

static reef_status check_file(const reef_run *run, const rfi_file *file, size_t expected, const char *path,
                              reef_error *error)
{
    uint64_t mark = fingerprint(run);
    uint64_t sum = 0;
    if (file->size < HEAD + TAIL || memcmp(file->bytes, magic, sizeof magic) != 0) {
        return rfi_fail(error, REEF_E_FORMAT, "%s is not a checkpoint of a run", rfi_path_show(path));
    }
    if (memcmp(file->bytes + sizeof magic, &mark, sizeof mark) != 0) {
        return rfi_fail(error, REEF_E_FORMAT, "%s is the checkpoint of a run with another setup", rfi_path_show(path));
    }
    memcpy(&sum, file->bytes + file->size - TAIL, sizeof sum);
    if (file->size != expected || sum != hash_bytes(1469598103934665603U, file->bytes, file->size - TAIL)) {
        return rfi_fail(error, REEF_E_FORMAT, "%s is damaged: %zu bytes of %zu, or changed ones", rfi_path_show(path),
                        file->size, expected);
    }
    return REEF_OK;
}

/* Rows that do not exist would be read. */
static reef_status check_homes(const reef_run *run, const unsigned char *bytes, const char *path, reef_error *error)
{
    const unsigned char *homes = bytes + HEAD + sizeof run->round + sizeof run->counts;
    for (ptrdiff_t k = 0; k < run->agents; k++) {
        int32_t home;
        memcpy(&home, homes + (size_t)k * sizeof home, sizeof home);
        if (home < 0 || home >= run->agents) {
            return rfi_fail(error, REEF_E_FORMAT, "%s: the model of agent %td is nowhere", rfi_path_show(path), k);
        }
    }
    return REEF_OK;
}

reef_status reef_run_load(reef_run *run, const char *path, reef_error *error)
{
    rfi_file file = {NULL, 0};
    if (!run || !path) {
        return rfi_fail(error, REEF_E_ARG, "reef_run_load: %s is NULL", run ? "path" : "run");
    }
    size_t expected = HEAD + state_size(run) + TAIL;
    reef_status status = rfi_file_read(run->context, path, expected + 1, &file, error);
    if (status != REEF_OK) {
        return status;
    }
    status = check_file(run, &file, expected, path, error);
    status = status == REEF_OK ? check_homes(run, file.bytes, path, error) : status;
    if (status == REEF_OK) {
        walk w = {LOAD, file.bytes, HEAD};
        status = visit_all(&w, run, error);
    }
    rfi_file_free(run->context, &file);
    return status;
}
