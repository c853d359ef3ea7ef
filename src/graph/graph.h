/* Internals of graphs: the struct, the draft that generators fill, and the kinds.
 *
 *   spec --generate--> draft (links in any order) --build--> graph (CSR by receiver) --weights--> done
 */
#ifndef RFI_GRAPH_GRAPH_H
#define RFI_GRAPH_GRAPH_H

#include "base/fields.h"
#include "base/spec.h"
#include "io/numbers.h"
#include "num/rng.h"

#include <reef/graph.h>

struct reef_graph {
    reef_context *context;
    ptrdiff_t agents;
    ptrdiff_t *start;
    int32_t *senders;
    double *weight;
    ptrdiff_t largest;
    bool symmetric;
    char *spec; /* as printed; NULL for graphs from arrays */
};

/* Purposes of random streams (see num/rng.h). */
enum { RFI_PURPOSE_GRAPH = 0x67726170, RFI_PURPOSE_LINKS = 0x6C696E6B, RFI_PURPOSE_MALICIOUS = 0x6C696172 };

/* ---- the draft ---- */

typedef struct rfi_link {
    int32_t sender, receiver;
} rfi_link;

typedef struct rfi_draft_block rfi_draft_block;

/* Links as they come, in blocks, so that nothing is copied while their number grows. */
typedef struct rfi_draft {
    const reef_context *context;
    const char *name; /* of the kind, for messages */
    ptrdiff_t agents; /* generators for files set it when it is 0 */
    uint64_t seed;
    uint32_t attempt;      /* number of the draw: part of every random stream */
    bool directed;         /* links go one way; set by generators */
    bool loops;            /* add a loop to every agent; without it loops are left out */
    bool weighted;         /* links come with weights: nothing is added or left out */
    bool broken;           /* not enough memory for a link */
    rfi_numbers *input;    /* what a file kind reads instead of its path, or NULL */
    rfi_draft_block *last; /* blocks hang together backwards */
    ptrdiff_t count;
} rfi_draft;

/* Adds a link; weight counts in weighted drafts only. Without memory the draft is broken, and build says so. */
void rfi_draft_add(rfi_draft *draft, ptrdiff_t sender, ptrdiff_t receiver, double weight);
static inline void rfi_draft_link(rfi_draft *draft, ptrdiff_t sender, ptrdiff_t receiver)
{
    rfi_draft_add(draft, sender, receiver, 0);
}
/* Fails if that many links (each way counted, loops too) are more than a graph can have. To be called before adding. */
reef_status rfi_draft_expect(const rfi_draft *draft, double links, reef_error *error);
/* Forgets the links. */
void rfi_draft_clear(rfi_draft *draft);
/* Sorted CSR of the draft; equal links are merged. Fills in all of graph but context and spec; weights only for weighted drafts.
 * On failure the arrays are for rfi_graph_clear. */
reef_status rfi_draft_build(const rfi_draft *draft, reef_graph *graph, reef_error *error);
void rfi_graph_clear(reef_graph *graph);
/* The random stream of a draw; `stream` tells several apart, for instance one per agent. */
void rfi_draft_rng(const rfi_draft *draft, uint32_t stream, rfi_rng *rng);

/* ---- kinds ---- */

typedef struct rfi_graph_kind {
    reef_kind kind;
    reef_status (*generate)(const void *params, rfi_draft *draft, reef_error *error);
    /* Kinds that may fall apart: true if the user wants another draw then, and what would help, for the message. */
    bool (*connected)(const void *params);
    void (*advice)(const void *params, ptrdiff_t agents, char *text, size_t size);
} rfi_graph_kind;

extern const rfi_family rfi_family_graph, rfi_family_weights, rfi_family_links;

#define REEF_GRAPH(name) extern const rfi_graph_kind rfi_graph_##name;
#include "graph/graph_list.h"
#undef REEF_GRAPH

/* The usual field for kinds that may fall apart. */
#define RFI_FIELD_CONNECTED(params)                                                                                    \
    {                                                                                                                  \
        .name = "connected", .type = REEF_FIELD_BOOL, .offset = offsetof(params, connected), .preset = "true",         \
        .unit = "", .help = "draw again until every agent can be reached from every other"                             \
    }

/* As reef_graph_create; a file kind reads `input` (unless NULL) instead of its path. */
reef_status rfi_graph_make(reef_context *context, reef_graph **graph, const char *spec, ptrdiff_t agents, uint64_t seed,
                           rfi_numbers *input, reef_error *error);

/* ---- walks over a graph; all of them pass over links of weight 0, weights NULL: every link counts ---- */

/* Number of strongly connected components among the agents with skip[k] false (skip NULL: all); -1 without memory. O(K + links). */
ptrdiff_t rfi_components(const reef_context *context, const reef_csr *csr, const bool *skip);
/* Greatest common divisor of the lengths of all cycles; the agents without skip must be strongly connected.
 * 0: there is no cycle; -1: no memory. */
ptrdiff_t rfi_period(const reef_context *context, const reef_csr *csr, const bool *skip);
/* Those who hear l: receivers[start[l]] .. receivers[start[l + 1] - 1]; places tells the place of
 * each link in the graph. false: no memory. */
typedef struct rfi_transpose {
    ptrdiff_t *start;
    int32_t *receivers;
    int32_t *places;
} rfi_transpose;
bool rfi_transpose_make(const reef_context *context, const reef_csr *csr, rfi_transpose *transpose);
void rfi_transpose_clear(const reef_context *context, rfi_transpose *transpose);

static inline bool rfi_counts(const reef_csr *csr, ptrdiff_t place)
{
    return !csr->weight || csr->weight[place] > 0;
}

/* ---- links ---- */

/* True if it is the same graph in every round and all of its links are always up. */
bool rfi_links_fixed(const reef_links *links);
/* The graphs that take turns. */
ptrdiff_t rfi_links_graphs(const reef_links *links);
const reef_graph *rfi_links_graph_at(const reef_links *links, ptrdiff_t index);
/* A number that differs (but for chance) when spec, seed, graphs or weights differ. */
uint64_t rfi_links_mark(const reef_links *links);

/* ---- weights ---- */

/* A column sums to one within this before it is scaled to it. */
#define RFI_COLUMN_TOLERANCE 1e-6
/* Uniform weights, without failure. */
void rfi_weigh_uniform(const reef_graph *graph, double *weight);
/* Scales every column of `weight` to sum one after checking it; csr has the layout. */
reef_status rfi_scale_columns(const reef_csr *csr, double *weight, reef_error *error);

#endif
