/* Objects that cells share: graphs, links, problems, and placements. Each is made once, however many cells and threads use it.
 *
 * An object is kept while somebody uses it, and after that as long as there is room for it: the bytes and the number of idle objects are
 * limited, and those that were used longest ago go first. Rules and attacks are not here: a rule works with the threads of the
 * context in which it was made, so every worker has its own. */
#ifndef RFI_EXPERIMENT_CONFIG_STOCK_H
#define RFI_EXPERIMENT_CONFIG_STOCK_H

#include "experiment/config/experiment.h"

/* Most that idle objects may take. */
enum { RFI_IDLE_BYTES = 1 << 28, RFI_IDLE_COUNT = 1024 };

/* All that determines an object. */
typedef struct rfi_need {
    rfi_part part;
    const char *spec;
    ptrdiff_t agents;
    uint64_t seed;
    reef_malicious malicious_count; /* RFI_PART_PLACEMENT */
    const rfi_shared *graph;        /* on which it rests, or NULL */
    const rfi_shared *problem;      /* RFI_PART_WEIGHTS: whose noise weights may depend on */
} rfi_need;

/* An object, one of these by its part: a graph (GRAPH; with WEIGHTS one of its own that has them), links, a problem, flags of malicious agents. It
 * does not change, and may be read by many threads. */
struct rfi_shared {
    reef_graph *graph;
    reef_links *links;
    reef_problem *problem;
    bool *malicious; /* per agent */
    ptrdiff_t malicious_count;
};

/* NULL: no memory. The context, or NULL, must outlive it. */
rfi_stock *rfi_stock_create(reef_context *context);
/* Everything must have been given back. */
void rfi_stock_destroy(rfi_stock **stock);
/* The object that is needed, made if there is none yet; it stays until it is given back. */
reef_status rfi_stock_take(rfi_stock *stock, const rfi_need *need, const rfi_shared **shared, reef_error *error);
/* The same object for one user more. */
void rfi_stock_keep(rfi_stock *stock, const rfi_shared *shared);
/* Accepts NULL. */
void rfi_stock_give(rfi_stock *stock, const rfi_shared *shared);
/* Objects made so far, for tests. */
ptrdiff_t rfi_stock_made(const rfi_stock *stock);

#endif
