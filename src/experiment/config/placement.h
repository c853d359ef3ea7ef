/* Which agents are malicious: random, worst or a list of agents, by string. */
#ifndef RFI_EXPERIMENT_CONFIG_PLACEMENT_H
#define RFI_EXPERIMENT_CONFIG_PLACEMENT_H

#include "base/registry.h"

#include <reef/graph.h>

/* malicious receives K flags, *placed how many are set. Without a graph (NULL) all agents are equivalent. */
reef_status rfi_place_malicious(const reef_context *context, const reef_graph *graph, ptrdiff_t agents,
                                const char *spec, reef_malicious malicious_count, uint64_t seed, bool *malicious,
                                ptrdiff_t *placed, reef_error *error);

extern const rfi_family rfi_family_placement;

#endif
