/* trust.csv: the trust each agent received in the steady state, for cells that measure it; and why an agent was down-weighted, if the rule says so. */
#include "experiment/config/stock.h"
#include "experiment/run/outcome.h"

#include <stdio.h>
#include <unistd.h>

/* The test that left least of an agent's weight, on average, like reef_report_explain; nothing if all left nearly everything. */
static void add_why(const rfi_outcome *o, const reef_memory *memory, ptrdiff_t agent, rfi_text *text)
{
    ptrdiff_t cause = -1;
    double least = 0.95;
    for (ptrdiff_t test = 0; test + 1 < o->views; test++) {
        double left = rfi_outcome_factor(o, agent, test).mean;
        cause = left < least ? test : cause;
        least = left < least ? left : least;
    }
    if (cause >= 0 && memory) {
        rfi_text_add(text, "%s leaves %.2f", memory->factors[cause].name, least);
    }
}

static void add_agents(const rfi_results *r, ptrdiff_t cell, rfi_text *text)
{
    const rfi_outcome *o = r->cells[cell];
    const rfi_cell_record *known = &r->experiment->records[cell];
    char value[RFI_SPEC_LENGTH_MAX + 1];
    for (ptrdiff_t l = 0; l < o->agents; l++) {
        rfi_moments m = rfi_outcome_trust(o, l);
        rfi_text_add(text, "%td", cell);
        for (ptrdiff_t a = 0; a < r->experiment->axis_count; a++) {
            (void)reef_experiment_value(r->experiment, cell, a, value, sizeof value);
            rfi_text_add(text, ",");
            rfi_text_field(text, value);
        }
        rfi_text_add(text, ",%td,%d,", l, known->placement->malicious[l]);
        rfi_text_number(text, m.mean);
        rfi_text_add(text, ",");
        rfi_text_number(text, rfi_outcome_error(o, m));
        rfi_text_add(text, ",");
        add_why(o, known->memory, l, text);
        rfi_text_add(text, "\n");
    }
}

static void add_cells(const rfi_results *r, rfi_text *text)
{
    const reef_experiment *e = r->experiment;
    rfi_text_add(text, "cell");
    for (ptrdiff_t a = 0; a < e->axis_count; a++) {
        rfi_text_add(text, ",");
        rfi_text_field(text, e->axes[a].path);
    }
    rfi_text_add(text, ",agent,malicious,trust,trust_se,why\n");
    for (ptrdiff_t i = 0; i < e->cells; i++) {
        add_agents(r, i, text);
    }
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
    add_cells(results, &text);
    reef_status status = rfi_text_write(&text, folder, "trust.csv", error);
    rfi_text_free(&text);
    return status;
}
