/* erdos_renyi: each pair is linked with probability p, independently.
 *
 * The pairs form one long row; the gap to the next linked pair is geometric, floor(log u / log(1 - p)), so the work is proportional to the
 * links and not to the pairs (Batagelj and Brandes 2005). */
#include "graph/graph.h"

#include "base/text.h"

#include <math.h>

typedef struct er_params {
    double p;
    bool directed;
    bool connected;
} er_params;

static const char *const auto_words[] = {"auto", NULL};

static const reef_field er_fields[] = {
    {.name = "p",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(er_params, p),
     .preset = "auto",
     .min = 0,
     .max = 1,
     .unit = "",
     .help = "probability of a link; auto: 2 ln K / K, twice what it takes to be connected",
     .words = auto_words},
    {.name = "directed",
     .type = REEF_FIELD_BOOL,
     .offset = offsetof(er_params, directed),
     .preset = "false",
     .unit = "",
     .help = "the two directions of a pair are drawn independently"},
    RFI_FIELD_CONNECTED(er_params),
};

static double auto_p(ptrdiff_t agents)
{
    double k = (double)agents;
    return agents > 1 ? fmin(1, 2 * log(k) / k) : 1;
}

/* Number of pairs passed over before the next link, at most `limit`. */
static int64_t gap(rfi_rng *rng, double log_not, int64_t limit)
{
    double skipped = log(rfi_rng_uniform(rng)) / log_not;
    return skipped < (double)limit ? (int64_t)skipped : limit;
}

/* Row r of the pairs has `width` places, or r places (pairs l < r) when undirected. */
static void draw_links(rfi_draft *draft, double p)
{
    rfi_rng rng;
    double log_not = log1p(-p); /* -inf for p = 1: every gap is 0 */
    int64_t agents = draft->agents;
    int64_t limit = agents * agents;
    int64_t row = draft->directed ? 0 : 1;
    int64_t column = -1;
    rfi_draft_rng(draft, 0, &rng);
    while (row < agents && !draft->broken) {
        column += 1 + gap(&rng, log_not, limit);
        while (row < agents && column >= (draft->directed ? agents - 1 : row)) {
            column -= draft->directed ? agents - 1 : row;
            row++;
        }
        if (row < agents) {
            int64_t other = draft->directed && column >= row ? column + 1 : column; /* the diagonal is no pair */
            rfi_draft_link(draft, (ptrdiff_t)row, (ptrdiff_t)other);
        }
    }
}

static reef_status generate(const void *params, rfi_draft *draft, reef_error *error)
{
    const er_params *p = params;
    double probability = isnan(p->p) ? auto_p(draft->agents) : p->p;
    double agents = (double)draft->agents;
    draft->directed = p->directed;
    reef_status status = rfi_draft_expect(draft, agents * (agents - 1) * probability, error);
    if (status == REEF_OK && probability > 0 && draft->agents > 1) {
        draw_links(draft, probability);
    }
    return status;
}

static bool connected(const void *params)
{
    const er_params *p = params;
    return p->connected;
}

static void advice(const void *params, ptrdiff_t agents, char *text, size_t size)
{
    size_t used = 0;
    (void)params;
    rfi_append(text, size, &used, "p = %.3g would do (p=auto)", auto_p(agents));
}

const rfi_graph_kind rfi_graph_erdos_renyi = {
    .kind = {.name = "erdos_renyi",
             .summary = "each pair of agents is linked with probability p",
             .citation = "Gilbert, Random graphs, Annals of Mathematical Statistics 30 (1959); Erdos, Renyi (1959)",
             .fields = er_fields,
             .field_count = RFI_COUNT(er_fields),
             .params_size = sizeof(er_params)},
    .generate = generate,
    .connected = connected,
    .advice = advice,
};
