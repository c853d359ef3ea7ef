/* geometric: agents at random places of the unit square hear those within a radius.
 *
 * Agents are first sorted into cells of side >= radius; whoever is heard is in the same cell or in one of the eight around it. O(K + links). */
#include "graph/graph.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <math.h>

typedef struct geometric_params {
    double radius;
    bool connected;
} geometric_params;

static const char *const auto_words[] = {"auto", NULL};

static const reef_field geometric_fields[] = {
    {.name = "radius",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(geometric_params, radius),
     .preset = "auto",
     .min = 0,
     .max = 2,
     .unit = "sides of the square",
     .help = "reach of an agent; auto: sqrt(2 ln K / (pi K)), twice the area it takes to be connected",
     .words = auto_words},
    RFI_FIELD_CONNECTED(geometric_params),
};

#define PI 3.14159265358979323846

static double auto_radius(ptrdiff_t agents)
{
    double k = (double)agents;
    return agents > 1 ? sqrt(2 * log(k) / (PI * k)) : 0;
}

typedef struct point {
    double x, y;
} point;

typedef struct cells {
    ptrdiff_t side; /* cells per side */
    point *place;   /* of each agent */
    int32_t *begin; /* side^2 + 1: where the agents of a cell begin in `agent` */
    int32_t *agent; /* by cell, ascending within one */
} cells;

static ptrdiff_t cell_of(const cells *c, point at)
{
    return (ptrdiff_t)(at.y * (double)c->side) * c->side + (ptrdiff_t)(at.x * (double)c->side);
}

static void fill_cells(const rfi_draft *draft, const cells *c)
{
    ptrdiff_t count = c->side * c->side;
    for (ptrdiff_t i = 0; i <= count; i++) {
        c->begin[i] = 0;
    }
    for (ptrdiff_t k = 0; k < draft->agents; k++) {
        rfi_rng rng;
        rfi_draft_rng(draft, (uint32_t)k, &rng);
        c->place[k].x = rfi_rng_uniform(&rng);
        c->place[k].y = rfi_rng_uniform(&rng);
        c->begin[cell_of(c, c->place[k])]++;
    }
    for (ptrdiff_t i = 1; i <= count; i++) { /* now the end of each cell; filled from the back */
        c->begin[i] += c->begin[i - 1];
    }
    for (ptrdiff_t k = draft->agents - 1; k >= 0; k--) {
        c->agent[--c->begin[cell_of(c, c->place[k])]] = (int32_t)k;
    }
}

/* Links of agent k with those of a smaller number in one cell. */
static void link_cell(rfi_draft *draft, const cells *c, ptrdiff_t k, ptrdiff_t cell, double square)
{
    for (int32_t i = c->begin[cell]; i < c->begin[cell + 1] && c->agent[i] < k; i++) {
        point other = c->place[c->agent[i]];
        double dx = c->place[k].x - other.x;
        double dy = c->place[k].y - other.y;
        if (dx * dx + dy * dy <= square) {
            rfi_draft_link(draft, c->agent[i], k);
        }
    }
}

static void link_all(rfi_draft *draft, const cells *c, double radius)
{
    for (ptrdiff_t k = 0; k < draft->agents && !draft->broken; k++) {
        ptrdiff_t cell = cell_of(c, c->place[k]);
        ptrdiff_t row = cell / c->side;
        ptrdiff_t column = cell % c->side;
        for (ptrdiff_t y = row > 0 ? row - 1 : 0; y <= row + 1 && y < c->side; y++) {
            for (ptrdiff_t x = column > 0 ? column - 1 : 0; x <= column + 1 && x < c->side; x++) {
                link_cell(draft, c, k, y * c->side + x, radius * radius);
            }
        }
    }
}

static reef_status generate(const void *params, rfi_draft *draft, reef_error *error)
{
    const geometric_params *p = params;
    double radius = isnan(p->radius) ? auto_radius(draft->agents) : p->radius;
    double agents = (double)draft->agents;
    reef_status status = rfi_draft_expect(draft, agents * agents * fmin(1, PI / 4 * radius * radius), error);
    if (status != REEF_OK) {
        return status;
    }
    double most = ceil(sqrt(agents)); /* more cells than agents would only cost memory */
    cells c = {.side = (ptrdiff_t)fmax(1, radius * most > 1 ? floor(1 / radius) : most)};
    c.place = rfi_allocate_many(draft->context, draft->agents, sizeof *c.place);
    c.begin = rfi_allocate_many(draft->context, c.side * c.side + 1, sizeof *c.begin);
    c.agent = rfi_allocate_many(draft->context, draft->agents, sizeof *c.agent);
    if (c.place && c.begin && c.agent) {
        fill_cells(draft, &c);
        link_all(draft, &c, radius);
    } else {
        status = rfi_fail(error, REEF_E_NOMEM, "geometric: not enough memory for %td positions", draft->agents);
    }
    rfi_release(draft->context, c.place);
    rfi_release(draft->context, c.begin);
    rfi_release(draft->context, c.agent);
    return status;
}

static bool connected(const void *params)
{
    const geometric_params *p = params;
    return p->connected;
}

static void advice(const void *params, ptrdiff_t agents, char *text, size_t size)
{
    size_t used = 0;
    (void)params;
    rfi_append(text, size, &used, "radius = %.3g would do (radius=auto)", auto_radius(agents));
}

const rfi_graph_kind rfi_graph_geometric = {
    .kind = {.name = "geometric",
             .summary = "agents at random positions in a square hear those within a radius",
             .citation = "Gilbert, Random plane networks, Journal of SIAM 9 (1961)",
             .fields = geometric_fields,
             .field_count = RFI_COUNT(geometric_fields),
             .params_size = sizeof(geometric_params)},
    .generate = generate,
    .connected = connected,
    .advice = advice,
};
