/* Every cell is resolved once, when the experiment is read: mistakes are found before anything runs, and what a run must know about the
 * cells is kept, so that their objects need not be made again to find out. */
#include "base/error.h"
#include "base/memory.h"
#include "experiment/config/experiment.h"
#include "experiment/config/stock.h"

#include <assert.h>
#include <string.h>

/* Models of a cell: w, phi, and twice as much for what a strategy may need beside. */
static double model_bytes(const rfi_world *w)
{
    double lanes = rfi_world_lanes(w, false) ? RFI_RUN_LANES : 1;
    return 4 * sizeof(float) * lanes * (double)w->agents * (double)reef_problem_dimension(w->problem);
}

/* The key of the world's cell, or of its oracle, in memory of the experiment's. `room` has RFI_PRINT_SIZE bytes. */
static reef_status keep_key(rfi_world *w, bool oracle, char *room, char **key, reef_error *error)
{
    reef_status status = rfi_world_print(w, oracle, room, RFI_PRINT_SIZE, error);
    if (status != REEF_OK) {
        return status;
    }
    size_t size = strlen(room) + 1;
    *key = rfi_allocate(w->experiment->context, size);
    if (!*key) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %td configurations", w->experiment->cells);
    }
    memcpy(*key, room, size);
    return REEF_OK;
}

static reef_status fill(rfi_world *w, rfi_cell_record *record, char *room, reef_error *error)
{
    reef_status status = rfi_world_metrics(w, record->wanted, error);
    if (status == REEF_OK) {
        status = keep_key(w, false, room, &record->key, error);
    }
    if (status == REEF_OK && w->cell.numbers.oracle) {
        status = keep_key(w, true, room, &record->oracle_key, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    record->numbers = w->cell.numbers;
    record->agents = record->numbers.trust && w->rule ? w->agents : 0;
    record->memory = record->agents ? reef_agg_rule(w->rule)->memory : NULL;
    record->views = record->agents ? 1 + (record->memory ? record->memory->factor_count : 0) : 0;
    record->lanes = rfi_world_lanes(w, false);
    record->oracle_lanes = rfi_world_lanes(w, true);
    record->bytes = model_bytes(w);
    if (record->agents) {
        record->placement = w->held[RFI_PART_PLACEMENT];
        rfi_stock_keep(w->experiment->stock, record->placement);
    }
    return REEF_OK;
}

reef_status rfi_records_make(reef_experiment *e, reef_error *error)
{
    rfi_world *world = rfi_world_create(e, e->context);
    char *room = rfi_allocate(e->context, RFI_PRINT_SIZE);
    e->records = rfi_allocate_many(e->context, e->cells, sizeof *e->records);
    bool ready = world && room && e->records;
    reef_status status = ready ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for an experiment");
    for (ptrdiff_t i = 0; e->records && i < e->cells; i++) {
        e->records[i] = (rfi_cell_record){.key = NULL};
    }
    for (ptrdiff_t i = 0; ready && i < e->cells && status == REEF_OK; i++) {
        status = rfi_world_set(world, i, error);
        if (status == REEF_OK) {
            status = fill(world, &e->records[i], room, error);
        }
        assert(status != REEF_OK || (e->records[i].key && e->records[i].numbers.repetitions >= 1));
    }
    rfi_release(e->context, room);
    rfi_world_destroy(&world);
    return status;
}

void rfi_records_free(reef_experiment *e)
{
    for (ptrdiff_t i = 0; e->records && i < e->cells; i++) {
        rfi_release(e->context, e->records[i].key);
        rfi_release(e->context, e->records[i].oracle_key);
        rfi_stock_give(e->stock, e->records[i].placement);
    }
    rfi_release(e->context, e->records);
    e->records = NULL;
}
