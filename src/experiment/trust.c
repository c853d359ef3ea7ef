/* trust.csv: the trust each agent received in the steady state, for cells that measure it; and why it is not believed, if the rule tells. */
#include "base/error.h"
#include "experiment/outcome.h"

#include <stdio.h>
#include <unistd.h>

/* The test that left least of an agent's weight, on average, like reef_report_explain; nothing if all left nearly everything. */
static void add_why(const rfi_outcome *o, ptrdiff_t agent, rfi_text *text)
{
    int cause = -1;
    double least = 0.95;
    for (int test = 0; o->views > 1 && test < REEF_TESTS; test++) {
        double left = rfi_outcome_factor(o, agent, (reef_test)test).mean;
        cause = left < least ? test : cause;
        least = left < least ? left : least;
    }
    if (cause >= 0) {
        rfi_text_add(text, "%s leaves %.2f", reef_test_name((reef_test)cause), least);
    }
}

static void add_agents(const rfi_results *r, const rfi_world *world, ptrdiff_t cell, rfi_text *text)
{
    const rfi_outcome *o = r->cells[cell];
    char value[RFI_SPEC_LENGTH_MAX + 1];
    for (ptrdiff_t l = 0; l < o->agents; l++) {
        rfi_moments m = rfi_outcome_trust(o, l);
        rfi_text_add(text, "%td", cell);
        for (ptrdiff_t a = 0; a < r->experiment->axis_count; a++) {
            (void)reef_experiment_value(r->experiment, cell, a, value, sizeof value);
            rfi_text_add(text, ",");
            rfi_text_field(text, value);
        }
        rfi_text_add(text, ",%td,%d,", l, world->liar[l]);
        rfi_text_number(text, m.mean);
        rfi_text_add(text, ",");
        rfi_text_number(text, rfi_outcome_error(o, m));
        rfi_text_add(text, ",");
        add_why(o, l, text);
        rfi_text_add(text, "\n");
    }
}

static reef_status add_cells(const rfi_results *r, rfi_text *text, reef_error *error)
{
    const reef_experiment *e = r->experiment;
    rfi_world *world = rfi_world_create(e, e->context);
    reef_status status = world ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for a cell");
    rfi_text_add(text, "cell");
    for (ptrdiff_t a = 0; a < e->axis_count; a++) {
        rfi_text_add(text, ",");
        rfi_text_field(text, e->axes[a].path);
    }
    rfi_text_add(text, ",agent,liar,trust,trust_se,why\n");
    for (ptrdiff_t i = 0; world && i < e->cells && status == REEF_OK; i++) {
        if (r->cells[i]->agents > 0) {
            status = rfi_world_set(world, i, error);
        }
        if (status == REEF_OK) {
            add_agents(r, world, i, text);
        }
    }
    rfi_world_destroy(&world);
    return status;
}

reef_status rfi_trust_write(const rfi_results *results, const char *folder, reef_error *error)
{
    rfi_text text = {.context = results->experiment->context};
    bool any = false;
    for (ptrdiff_t i = 0; i < results->experiment->cells; i++) {
        any = any || results->cells[i]->agents > 0;
    }
    if (!any) { /* a table of an earlier run in this folder would be taken for one of this */
        char path[4096];
        if ((size_t)snprintf(path, sizeof path, "%s/trust.csv", folder) < sizeof path) {
            (void)unlink(path);
        }
        return REEF_OK;
    }
    reef_status status = add_cells(results, &text, error);
    status = status == REEF_OK ? rfi_text_write(&text, folder, "trust.csv", error) : status;
    rfi_text_free(&text);
    return status;
}
