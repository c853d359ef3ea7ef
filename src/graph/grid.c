/* grid: agents on rows x columns, agent r columns + c in row r and column c, hear their neighbours above, below, left and right.
 * As a torus, opposite borders are joined; a side of 1 or 2 has nothing new to touch. */
#include "graph/graph.h"

#include "base/error.h"

typedef struct grid_params {
    int64_t rows;
    bool torus;
} grid_params;

static const char *const auto_words[] = {"auto", NULL};

static const reef_field grid_fields[] = {
    {.name = "rows",
     .type = REEF_FIELD_INT,
     .offset = offsetof(grid_params, rows),
     .preset = "auto",
     .min = 1,
     .max = 2e9,
     .unit = "agents",
     .help = "rows, a divisor of the number of agents; auto: the divisor nearest to its root",
     .words = auto_words},
    {.name = "torus",
     .type = REEF_FIELD_BOOL,
     .offset = offsetof(grid_params, torus),
     .preset = "false",
     .unit = "",
     .help = "opposite borders are joined"},
};

static ptrdiff_t middle_divisor(ptrdiff_t agents)
{
    ptrdiff_t best = 1;
    for (ptrdiff_t d = 2; d <= agents / d; d++) {
        best = agents % d == 0 ? d : best;
    }
    return best;
}

static reef_status generate(const void *params, rfi_draft *draft, reef_error *error)
{
    const grid_params *p = params;
    ptrdiff_t rows = p->rows < 0 ? middle_divisor(draft->agents) : (ptrdiff_t)p->rows;
    if (draft->agents % rows != 0) {
        return rfi_fail(error, REEF_E_RANGE, "grid: %td agents do not fill %td rows of equal length", draft->agents,
                        rows);
    }
    ptrdiff_t columns = draft->agents / rows;
    for (ptrdiff_t r = 0; r < rows; r++) {
        for (ptrdiff_t c = 0; c < columns; c++) {
            ptrdiff_t k = r * columns + c;
            if (c + 1 < columns) {
                rfi_draft_link(draft, k, k + 1);
            } else if (p->torus && columns > 2) {
                rfi_draft_link(draft, k, r * columns);
            }
            if (r + 1 < rows) {
                rfi_draft_link(draft, k, k + columns);
            } else if (p->torus && rows > 2) {
                rfi_draft_link(draft, k, c);
            }
        }
    }
    return REEF_OK;
}

const rfi_graph_kind rfi_graph_grid = {
    .kind = {.name = "grid",
             .summary = "a grid in which each agent hears the four next to it; optionally a torus",
             .citation = "",
             .fields = grid_fields,
             .field_count = RFI_COUNT(grid_fields),
             .params_size = sizeof(grid_params)},
    .generate = generate,
};
