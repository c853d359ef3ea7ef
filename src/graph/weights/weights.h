/* Kinds of weights: one file each and the list of them.
 *
 *   n_k  senders of k, including itself      d  largest n_k      K  agents
 */
#ifndef RFI_GRAPH_WEIGHTS_WEIGHTS_H
#define RFI_GRAPH_WEIGHTS_WEIGHTS_H

#include "graph/graph.h"

typedef struct rfi_weighing {
    const reef_graph *graph;
    const void *params;
    const reef_weight_data *data;
} rfi_weighing;

/* A kind is either `pull`, the part of sender l before the column is scaled to one, or `pair`, the weight between two agents; what is
 * missing to one is then the agent's own, for which every link needs its way back and every agent its loop. */
typedef struct rfi_weight_kind {
    reef_kind kind;
    double (*pull)(const rfi_weighing *w, ptrdiff_t l);
    double (*pair)(const rfi_weighing *w, ptrdiff_t l, ptrdiff_t k);
    reef_status (*fill)(const rfi_weighing *w, double *weight, reef_error *error); /* neither of both */
    reef_status (*check)(const rfi_weighing *w, reef_error *error);                /* or NULL */
} rfi_weight_kind;

#define RFI_WEIGHTS(name) extern const rfi_weight_kind rfi_weights_##name;
#include "graph/weights/weights_list.h"
#undef RFI_WEIGHTS

/* n_k */
static inline double rfi_weighing_size(const rfi_weighing *w, ptrdiff_t k)
{
    return (double)(w->graph->start[k + 1] - w->graph->start[k]);
}

/* Refuses numbers that cannot be multiplied and divided without care, or are not positive. */
reef_status rfi_weighing_check(const double *x, ptrdiff_t count, const char *what, reef_error *error);

#define RFI_WEIGHTS_SAYED "Sayed, Adaptation, Learning, and Optimization over Networks (2014)"

#endif
