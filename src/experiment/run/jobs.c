/* What there is to run: a task per cell and per oracle, those that are done already, and the blocks of the others. */
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "experiment/run/runner.h"
#include "io/stream.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void *rfi_runner_take(const rfi_runner *r, ptrdiff_t count, size_t size)
{
    void *memory = rfi_allocate_many(r->experiment->context, count ? count : 1, size);
    if (memory) {
        memset(memory, 0, (size_t)(count ? count : 1) * size);
    }
    return memory;
}

/* The job of a cell or of its oracle, from what is known of the cell; false: no memory. */
static bool fill_job(rfi_runner *r, ptrdiff_t cell, bool oracle, rfi_cell_job *j)
{
    const rfi_cell_record *known = &r->experiment->records[cell];
    *j = (rfi_cell_job){.cell = cell, .oracle = oracle, .numbers = known->numbers};
    j->key = oracle ? known->oracle_key : known->key;
    j->hash = rfi_hash_text(RFI_HASH_START, j->key);
    memcpy(j->wanted, known->wanted, sizeof j->wanted);
    for (int i = RFI_TRUST_HONEST; oracle && i < RFI_METRICS; i++) {
        j->wanted[i] = false;
    }
    j->agents = oracle ? 0 : known->agents;
    j->views = oracle ? 0 : known->views;
    j->lanes = (oracle ? known->oracle_lanes : known->lanes) ? RFI_RUN_LANES : 1;
    j->blocks = (ptrdiff_t)((j->numbers.repetitions + j->lanes - 1) / j->lanes);
    assert(j->key && j->blocks >= 1);
    j->parts = rfi_runner_take(r, j->blocks, sizeof *j->parts);
    return j->parts != NULL;
}

/* The same oracle serves every cell that differs only in rule or attack. */
static ptrdiff_t find_oracle(const rfi_runner *r, const char *key)
{
    uint64_t hash = rfi_hash_text(RFI_HASH_START, key);
    for (ptrdiff_t i = r->job_count - 1; i >= r->experiment->cells; i--) {
        if (r->jobs[i].hash == hash && strcmp(r->jobs[i].key, key) == 0) {
            return i;
        }
    }
    return -1;
}

static bool add_jobs(rfi_runner *r, ptrdiff_t cell)
{
    const char *oracle = r->experiment->records[cell].oracle_key;
    r->oracle_of[cell] = oracle ? find_oracle(r, oracle) : -1;
    bool good = fill_job(r, cell, false, &r->jobs[cell]);
    if (oracle && r->oracle_of[cell] < 0) {
        r->oracle_of[cell] = r->job_count++;
        good = fill_job(r, cell, true, &r->jobs[r->oracle_of[cell]]) && good;
    }
    return good;
}

reef_status rfi_make_jobs(rfi_runner *r, reef_error *error)
{
    const reef_experiment *e = r->experiment;
    r->jobs = rfi_runner_take(r, 2 * e->cells, sizeof *r->jobs);
    r->oracle_of = rfi_runner_take(r, e->cells, sizeof *r->oracle_of);
    r->job_count = e->cells;
    bool good = r->jobs && r->oracle_of;
    for (ptrdiff_t i = 0; good && i < e->cells; i++) {
        good = add_jobs(r, i);
    }
    return good ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for %td configurations", e->cells);
}

/* What a run that was killed was writing is of no use to anybody. */
static void sweep(const char *results)
{
    static const char *const folders[] = {".", "cells", "arrays", "models", "figures"};
    for (ptrdiff_t i = 0; i < RFI_COUNT(folders); i++) {
        char path[RFI_FOLDER_SIZE + 16];
        (void)snprintf(path, sizeof path, "%s/%s", results, folders[i]);
        rfi_sweep_folder(path);
    }
}

rfi_stored rfi_load_job(const rfi_runner *r, rfi_cell_job *j)
{
    const reef_context *context = r->experiment->context;
    uint64_t sum = 0;
    if (!rfi_outcome_init(&j->outcome, context, &j->numbers, j->wanted, j->agents, j->views)) {
        return RFI_STORED_NOT;
    }
    rfi_stored found = rfi_store_read(context, r->folder, j->key, &j->outcome);
    if (found == RFI_STORED && r->options->models && !j->oracle) {
        bool there = j->outcome.has_model && rfi_model_sum(context, r->folder, j->key, &sum, NULL) == REEF_OK;
        found = !j->outcome.has_model                  ? RFI_STORED_NOT
                : there && sum == j->outcome.model_sum ? RFI_STORED
                                                       : RFI_STORED_DAMAGED;
    }
    if (found != RFI_STORED) {
        rfi_outcome_fini(&j->outcome, context);
    }
    return found;
}

/* Takes what the folder has already. */
void rfi_load_jobs(rfi_runner *r, reef_experiment_outcome *outcome)
{
    assert(r->options->folder && r->folder[0]);
    sweep(r->options->folder);
    for (ptrdiff_t i = 0; i < r->job_count; i++) {
        rfi_stored found = rfi_load_job(r, &r->jobs[i]);
        r->jobs[i].done = found == RFI_STORED;
        outcome->reused += r->jobs[i].done && !r->jobs[i].oracle;
        outcome->damaged += found == RFI_STORED_DAMAGED;
    }
}

reef_status rfi_make_items(rfi_runner *r, reef_error *error)
{
    for (ptrdiff_t i = 0; i < r->job_count; i++) {
        r->item_count += r->jobs[i].done ? 0 : r->jobs[i].blocks;
        r->progress.cells += !r->jobs[i].done;
    }
    r->progress.items = r->item_count;
    if (r->engine && !r->together) { /* of this rank */
        r->progress.items = (r->item_count - r->engine->rank + r->engine->size - 1) / r->engine->size;
    }
    r->items = rfi_runner_take(r, r->item_count, sizeof *r->items);
    r->contexts = rfi_runner_take(r, r->workers, sizeof(void *));
    r->worlds = rfi_runner_take(r, r->workers, sizeof(void *));
    if (!r->items || !r->contexts || !r->worlds) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %td configurations", r->experiment->cells);
    }
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < r->job_count; i++) {
        for (ptrdiff_t b = 0; b < r->jobs[i].blocks && !r->jobs[i].done; b++) {
            r->items[count++] = (rfi_item){i, b};
        }
    }
    return REEF_OK;
}
