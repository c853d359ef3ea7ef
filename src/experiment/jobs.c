/* What there is to run: a task per cell and per oracle, those that are done already, and the blocks of the others. */
#include "base/error.h"
#include "base/memory.h"
#include "experiment/runner.h"

#include <stdio.h>
#include <string.h>

enum { LANES = 16 };

void *rfi_runner_take(const rfi_runner *r, ptrdiff_t count, size_t size)
{
    void *memory = rfi_allocate_many(r->experiment->context, count ? count : 1, size);
    if (memory) {
        memset(memory, 0, (size_t)(count ? count : 1) * size);
    }
    return memory;
}

/* Fills in a job for the world's cell; false: no memory. */
static bool fill_job(rfi_runner *r, rfi_world *world, rfi_task *j, const char *key)
{
    size_t size = strlen(key) + 1;
    j->numbers = world->cell.numbers;
    j->agents = j->numbers.trust && !j->oracle && world->rule ? world->agents : 0;
    j->views = j->agents ? (reef_agg_traits(world->rule) & REEF_TRAIT_SENDERS ? 1 + REEF_TESTS : 1) : 0;
    j->lanes = rfi_world_lanes(world, j->oracle) ? LANES : 1;
    j->blocks = (ptrdiff_t)((j->numbers.runs + j->lanes - 1) / j->lanes);
    j->key = rfi_allocate(r->experiment->context, size);
    j->parts = rfi_runner_take(r, j->blocks, sizeof *j->parts);
    if (j->key) {
        memcpy(j->key, key, size);
    }
    return j->key && j->parts;
}

/* The same oracle serves every cell that differs only in rule or attack. */
static ptrdiff_t find_oracle(const rfi_runner *r, const char *key)
{
    for (ptrdiff_t i = r->job_count - 1; i >= r->experiment->cells; i--) {
        if (strcmp(r->jobs[i].key, key) == 0) {
            return i;
        }
    }
    return -1;
}

static reef_status add_job(rfi_runner *r, rfi_world *world, ptrdiff_t cell, bool oracle, char *key, reef_error *error)
{
    reef_status status = rfi_world_print(world, oracle, key, RFI_PRINT_SIZE, error);
    if (status != REEF_OK) {
        return status;
    }
    ptrdiff_t known = oracle ? find_oracle(r, key) : -1;
    if (oracle) {
        r->oracle_of[cell] = known >= 0 ? known : r->job_count;
    }
    if (known >= 0) {
        return REEF_OK;
    }
    rfi_task *j = &r->jobs[oracle ? r->job_count++ : cell];
    *j = (rfi_task){.cell = cell, .oracle = oracle};
    status = rfi_world_metrics(world, j->wanted, error);
    for (int i = RFI_TRUST_HONEST; oracle && i < RFI_METRICS; i++) {
        j->wanted[i] = false;
    }
    return status == REEF_OK && !fill_job(r, world, j, key) ? rfi_fail(error, REEF_E_NOMEM, "no memory for the cells")
                                                            : status;
}

reef_status rfi_make_jobs(rfi_runner *r, reef_error *error)
{
    const reef_experiment *e = r->experiment;
    rfi_world *world = rfi_world_create(e, e->context);
    char *key = rfi_allocate(e->context, RFI_PRINT_SIZE);
    r->jobs = rfi_runner_take(r, 2 * e->cells, sizeof *r->jobs);
    r->oracle_of = rfi_runner_take(r, e->cells, sizeof *r->oracle_of);
    r->job_count = e->cells;
    bool ready = world && key && r->jobs && r->oracle_of;
    reef_status status = ready ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for %td cells", e->cells);
    for (ptrdiff_t i = 0; ready && i < e->cells && status == REEF_OK; i++) {
        r->oracle_of[i] = -1;
        status = rfi_world_set(world, i, error);
        status = status == REEF_OK ? add_job(r, world, i, false, key, error) : status;
        if (status == REEF_OK && world->cell.numbers.oracle) {
            status = add_job(r, world, i, true, key, error);
        }
    }
    rfi_release(e->context, key);
    rfi_world_destroy(&world);
    return status;
}

/* Takes what the folder has already. */
void rfi_load_jobs(rfi_runner *r, reef_experiment_outcome *outcome)
{
    const reef_context *context = r->experiment->context;
    for (ptrdiff_t i = 0; i < r->job_count; i++) {
        rfi_task *j = &r->jobs[i];
        if (!rfi_outcome_init(&j->outcome, context, &j->numbers, j->wanted, j->agents, j->views)) {
            continue;
        }
        bool lacks_model = r->options->models && !j->oracle && !rfi_model_exists(r->folder, j->key);
        j->done = !lacks_model && rfi_store_read(context, r->folder, j->key, &j->outcome);
        outcome->reused += j->done && !j->oracle;
        if (!j->done) {
            rfi_outcome_fini(&j->outcome, context);
        }
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
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td cells", r->experiment->cells);
    }
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < r->job_count; i++) {
        for (ptrdiff_t b = 0; b < r->jobs[i].blocks && !r->jobs[i].done; b++) {
            r->items[count++] = (rfi_item){i, b};
        }
    }
    return REEF_OK;
}

reef_status rfi_make_folders(rfi_runner *r, reef_error *error)
{
    const char *folder = r->options->folder;
    if (!folder) {
        return REEF_OK;
    }
    if ((size_t)snprintf(r->folder, sizeof r->folder, "%s/cells", folder) >= sizeof r->folder) {
        return rfi_fail(error, REEF_E_FILE, "the path of the results is too long");
    }
    return rfi_make_folder(r->folder, error);
}
