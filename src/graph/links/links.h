/* Internals of links, and their kinds: one file each and a list of them. */
#ifndef RFI_GRAPH_LINKS_LINKS_H
#define RFI_GRAPH_LINKS_LINKS_H

#include "graph/graph.h"

/* One column in one round. */
typedef struct rfi_asking {
    const void *params; /* of the kind */
    uint64_t seed;
    int64_t round;
    ptrdiff_t receiver;
    ptrdiff_t size; /* senders beside itself */
    ptrdiff_t left; /* for gossip: of these still to come */
    int64_t wanted; /* for gossip: of these still to keep */
    rfi_rng rng;
} rfi_asking;

typedef struct rfi_link_kind {
    reef_kind kind;
    void (*begin)(rfi_asking *ask);                 /* or NULL */
    bool (*is_up)(rfi_asking *ask, int32_t sender); /* asked for every sender but the receiver itself; NULL: always */
} rfi_link_kind;

#define RFI_LINKS(name) extern const rfi_link_kind rfi_links_##name;
#include "graph/links/links_list.h"
#undef RFI_LINKS

/* What a random draw is for. */
typedef enum rfi_links_use { RFI_USE_ORDER, RFI_USE_FAILING, RFI_USE_GOSSIP } rfi_links_use;
/* The stream of a round and two agents. */
void rfi_links_rng(uint64_t seed, int64_t round, ptrdiff_t agent, ptrdiff_t other, rfi_links_use use, rfi_rng *rng);

#endif
