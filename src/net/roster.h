/* A run file in effect: the graph with its weights, the rule, and the neighbourhood of each agent. */
#ifndef RFI_NET_ROSTER_H
#define RFI_NET_ROSTER_H

#include "net/node.h"
#include "net/runfile.h"

#include <reef/agg.h>
#include <reef/graph.h>
#include <reef/problem.h>

typedef struct rfi_roster {
    reef_context *context;
    const rfi_runfile *file; /* must outlive it */
    reef_graph *graph;
    reef_agg *rule;
    reef_problem *problem; /* of `test:`; or NULL */
    bool *malicious;       /* per agent, of `test:` */
    ptrdiff_t malicious_count;
    rfi_shape shape; /* of the file, or the problem's */
} rfi_roster;

/* Makes all of it, and checks: who hears whom is connected, no agent has half of the weight in its own neighbourhood or more than
 * RFI_NEIGHBOURS_MAX neighbours (nor is heard by more than RFI_HEARERS_MAX if models are sealed),
 * the rule can work with so many models, a single agent can have the strategy. On failure *roster is cleared. */
reef_status rfi_roster_create(reef_context *context, const rfi_runfile *file, rfi_roster *roster, reef_error *error);
/* Accepts a cleared one. */
void rfi_roster_free(rfi_roster *roster);

/* The neighbours of an agent, itself apart; returns how many, at most RFI_NEIGHBOURS_MAX, and its own weight. */
ptrdiff_t rfi_roster_neighbours(const rfi_roster *roster, ptrdiff_t agent, rfi_neighbour *neighbours, double *own);

/* Who hears an agent, itself apart, by ascending number; returns how many, at most RFI_HEARERS_MAX if models are sealed. hearers NULL: they
 * are counted alone. */
ptrdiff_t rfi_roster_hearers(const rfi_roster *roster, ptrdiff_t agent, rfi_hearer *hearers);

/* The witnesses of an agent (net/echo.h): those that hear most of the senders it hears, at most RFI_WITNESSES_MAX, by number; returns how
 * many. */
ptrdiff_t rfi_roster_witnesses(const rfi_roster *roster, ptrdiff_t agent, uint32_t *witnesses);

/* Most bytes that an agent with such a node takes for models, whoever makes them: the node's (all that is held of neighbours), three of the
 * member, two that go to a program and come back, one for a client on a socket, a checkpoint being written, the rule's plan, and messages on
 * the way in. What a built-in problem needs for its data comes on top. SIZE_MAX: more than there can be. */
size_t rfi_roster_memory(const rfi_roster *roster, const rfi_node_setup *setup);

/* What a neighbourhood tolerates. */
typedef struct rfi_tolerance {
    ptrdiff_t neighbours;
    double own;          /* weight */
    ptrdiff_t malicious; /* neighbours, the heaviest, that have at most F of the weight */
    ptrdiff_t absent;    /* neighbours, the heaviest, without which there is still a quorum */
    size_t memory;       /* bytes: rfi_roster_memory */
    double traffic;      /* bytes of models per round, in and out */
} rfi_tolerance;
void rfi_roster_tolerance(const rfi_roster *roster, ptrdiff_t agent, rfi_tolerance *tolerance);

#endif
