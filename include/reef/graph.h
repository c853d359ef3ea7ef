/* Who hears whom, and how much: graphs, combination weights, links that fail, and checks.
 *
 * Notation: K agents. N_k are the senders that receiver k hears, including itself if it has a loop; n_k = |N_k|. a_lk is the weight
 * that k gives to l; A = [a_lk], and every column sums to one. The Perron vector p (A p = p, sum 1) says how much each agent counts in
 * the end. A link of weight 0 counts neither as a neighbour nor as a path.
 *
 * A graph is stored by receiver (compressed sparse columns of A), in 12 bytes per link and 8 per agent. It is a pure function of its string,
 * the number of agents and the seed. */
#ifndef REEF_GRAPH_H
#define REEF_GRAPH_H

#include <reef/context.h>
#include <reef/registry.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- graphs ---- */

/* A graph. It may be read from many threads; call set_weights and put_weights only while nobody reads it. The context must outlive it. */
typedef struct reef_graph reef_graph;

/* The largest number of links in a graph, counting loops and both directions. */
#define REEF_LINKS_MAX INT32_MAX

/* spec: kind:key=value,... for instance "ring:k=2", "erdos_renyi:p=0.1", "file:path=net.txt"; every kind also takes loops=true|false:
 * whether each agent hears itself (default true). agents: K >= 1; for files, 0 means as many as the file has. The weights are uniform,
 * or those of the file. */
REEF_API REEF_MUST_CHECK reef_status reef_graph_create(reef_context *context, reef_graph **graph, const char *spec,
                                                       ptrdiff_t agents, uint64_t seed, reef_error *error);

/* The same from arrays: senders[i] is heard by receivers[i] with weights[i] (NULL: uniform). */
typedef struct reef_link_list {
    size_t size;     /* sizeof of this struct, so that later versions can add members; 0: as version 0.2 has it */
    ptrdiff_t count; /* links */
    const int32_t *senders;   /* who is heard */
    const int32_t *receivers; /* by whom */
    const double *weights;    /* or NULL; with weights nothing is added, not even loops */
    bool directed;            /* false: every link goes both ways */
    bool no_loops;            /* without weights: agents do not hear themselves */
} reef_link_list;
/* Makes a graph from such a list. */
REEF_API REEF_MUST_CHECK reef_status reef_graph_create_links(reef_context *context, reef_graph **graph,
                                                             ptrdiff_t agents, const reef_link_list *links,
                                                             reef_error *error);
/* Links made from it must be destroyed first. Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_graph_destroy(reef_graph **graph);

/* The arrays of the graph, in place; valid until the graph is destroyed. The senders of receiver k are
 * senders[start[k]] .. senders[start[k + 1] - 1], ascending, with weights at the same places.
 * The checks below take this view, so that another weight array of the same layout (for instance the effective weights of a rule)
 * can replace the graph's own. */
typedef struct reef_csr {
    ptrdiff_t agents;       /* K */
    const ptrdiff_t *start; /* K + 1 places */
    const int32_t *senders; /* one per link */
    const double *weight;   /* one per link */
} reef_csr;
/* The view of a graph with its own weights. */
REEF_API reef_csr reef_graph_csr(const reef_graph *graph);

/* K. */
REEF_API ptrdiff_t reef_graph_agents(const reef_graph *graph);
REEF_API ptrdiff_t reef_graph_links(const reef_graph *graph);   /* including loops, counting both directions */
REEF_API ptrdiff_t reef_graph_largest(const reef_graph *graph); /* largest n_k */
REEF_API bool reef_graph_symmetric(const reef_graph *graph);    /* every link exists in both directions */
/* The full text with every parameter, as reef_agg_print; "" for graphs from arrays. Returns the length. */
REEF_API size_t reef_graph_print(const reef_graph *graph, char *text, size_t size);
/* Place of the link from sender to receiver in senders and weight, or -1. */
REEF_API ptrdiff_t reef_csr_find(const reef_csr *csr, ptrdiff_t sender, ptrdiff_t receiver);

/* ---- weights ---- */

/* What some rules need to know about the agents; NULL where not needed. */
typedef struct reef_weight_data {
    size_t size; /* sizeof of this struct, so that later versions can add members; 0: as version 0.2 has it */
    const double *variance; /* K noise variances > 0: relative_variance */
    const double *perron;   /* K desired shares > 0, any sum: hastings; NULL means equal shares */
} reef_weight_data;

/* spec: for instance "metropolis", "laplacian:beta=0.1", "file:path=weights.txt". Every column sums to one, or the call fails and
 * leaves the weights as they were. data may be NULL. Must not be called while others read the graph. */
REEF_API REEF_MUST_CHECK reef_status reef_graph_set_weights(reef_graph *graph, const char *spec,
                                                            const reef_weight_data *data, reef_error *error);
/* Weights of your own, one per link in the order of reef_csr: finite, >= 0, columns summing to one within 1e-6, and then scaled to sum to one. */
REEF_API REEF_MUST_CHECK reef_status reef_graph_put_weights(reef_graph *graph, const double *weight, reef_error *error);
/* Checks that weights are finite and >= 0 and that every column sums to one within tolerance; the message names the worst. */
REEF_API REEF_MUST_CHECK reef_status reef_graph_check_weights(const reef_csr *csr, double tolerance, reef_error *error);

/* ---- links that change ---- */

/* Which links are up in which round. Rounds can be evaluated in any order and from any thread or process: whether a link is up is a
 * pure function of spec, seed, round and link. The context and the graphs must outlive them. */
typedef struct reef_links reef_links;

/* Several graphs of the same agents take turns, each for `every` rounds (order=turn) or drawn at random (order=random). In addition,
 * spec says which links are up: "static", "failing:p=0.1", "gossip:keep=2". The graphs must outlive the links. */
REEF_API REEF_MUST_CHECK reef_status reef_links_create(reef_context *context, reef_links **links, const char *spec,
                                                       const reef_graph *const *graphs, ptrdiff_t graph_count,
                                                       uint64_t seed, reef_error *error);
/* Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_links_destroy(reef_links **links);
/* The graph whose turn it is in a round >= 0. */
REEF_API const reef_graph *reef_links_graph(const reef_links *links, int64_t round);
/* True if all links of that graph are always up (static): its reef_csr can then be used as it is. */
REEF_API bool reef_links_always_up(const reef_links *links);
/* The largest number of senders of any receiver in any round: the room that reef_links_eval needs. */
REEF_API ptrdiff_t reef_links_largest(const reef_links *links);
/* The live senders of a receiver, ascending, and weights that sum to one. Returns their number; 0 if all are down and there is no loop
 * (a loop never fails), or if what is left has no weight. Allocates nothing. */
REEF_API ptrdiff_t reef_links_eval(const reef_links *links, int64_t round, ptrdiff_t receiver, int32_t *senders,
                                   double *weight);

/* ---- checks ---- */

/* Whether honest majorities hold, and where they are smallest. */
typedef struct reef_majority {
    bool holds;        /* every honest agent: honest share > 1/2 */
    ptrdiff_t failing; /* honest agents for which it does not hold */
    ptrdiff_t worst;   /* honest agent with the smallest share, -1 if there is none */
    double share;      /* that share */
} reef_majority;

/* What reef_graph_check finds. */
typedef struct reef_graph_facts {
    ptrdiff_t agents;            /* K */
    ptrdiff_t links;             /* of weight > 0, loops counted */
    ptrdiff_t malicious_count;   /* of them */
    ptrdiff_t smallest, largest; /* n_k over all agents */
    /* Assumption 1 of the theorem for the neighbourhood of every honest agent: by number of senders, and by their weight. */
    reef_majority by_count;
    reef_majority by_weight; /* the same by weight */
    /* What is left without the malicious agents. */
    ptrdiff_t components; /* strongly connected components; 0 without honest agents */
    bool connected;       /* one component */
    ptrdiff_t period;     /* 1: primitive; 0 if not connected or without links */
    bool primitive;       /* connected with period 1: the theorem applies */
    /* Malicious senders that the most exposed honest agent tolerates in addition to those it has (by count); negative: it has too many. */
    ptrdiff_t least_spare;
    ptrdiff_t least_spare_agent; /* which agent that is */
    /* Agents whose own weight is >= 1/2: rules that use weights then ignore all others. */
    ptrdiff_t self_heavy;
    ptrdiff_t self_heavy_first; /* the first of them, or -1 */
    double largest_self;        /* largest own weight */
    double column_error;        /* largest |column sum - 1| */
} reef_graph_facts;

/* malicious: K flags; NULL: no agent is malicious. */
REEF_API REEF_MUST_CHECK reef_status reef_graph_check(const reef_context *context, const reef_csr *csr,
                                                      const bool *malicious, reef_graph_facts *facts,
                                                      reef_error *error);

/* Malicious senders that each agent tolerates, K numbers each; either may be NULL. by_count: floor((n_k - 1) / 2), the largest number that
 * leaves a strict majority. by_weight: the largest number of heaviest other senders that together hold less than half of the weight. */
REEF_API REEF_MUST_CHECK reef_status reef_graph_tolerated(const reef_context *context, const reef_csr *csr,
                                                          int32_t *by_count, int32_t *by_weight, reef_error *error);

/* How accurately the spectrum is computed. NULL: all defaults. */
typedef struct reef_spectrum_options {
    size_t size;      /* sizeof of this struct, so that later versions can add members; 0: as version 0.2 has it */
    double tolerance; /* 0: 1e-10 */
    ptrdiff_t max_iterations; /* 0: 5000; each costs one pass over the links */
    bool no_second;           /* only the Perron vector */
} reef_spectrum_options;

/* What reef_graph_spectrum finds. */
typedef struct reef_spectrum {
    bool reversible;      /* a_lk p_k = a_kl p_l: p is then exact, and the eigenvalues are real */
    bool converged;       /* the Perron vector: |A p - p|_1 <= tolerance */
    double residual;      /* |A p - p|_1 */
    ptrdiff_t iterations; /* iterations needed */
    double
        second; /* second largest modulus of an eigenvalue: errors shrink by this factor per round; NaN if not wanted */
    double gap; /* 1 - second */
    bool second_converged;       /* within tolerance; otherwise `second` is an estimate */
    ptrdiff_t second_iterations; /* for the second eigenvalue */
} reef_spectrum;

/* Perron vector and spectral gap of the honest agents among themselves: columns of malicious agents and links from them are left out, and the
 * other columns are scaled to sum one. perron receives K numbers, 0 for malicious agents; NULL: not wanted. options may be NULL.
 * Fails with REEF_E_GRAPH if the honest agents are not strongly connected: p would not be unique. */
REEF_API REEF_MUST_CHECK reef_status reef_graph_spectrum(const reef_context *context, const reef_csr *csr,
                                                         const bool *malicious, const reef_spectrum_options *options,
                                                         double *perron, reef_spectrum *spectrum, reef_error *error);

/* ---- placing malicious agents ---- */

/* How malicious agents are chosen. */
typedef enum reef_place {
    REEF_PLACE_RANDOM, /* uniformly at random */
    REEF_PLACE_WORST,  /* greedy: each further one where it does the most harm to neighbourhoods near their limit */
    REEF_PLACE_LIST,   /* the agents listed */
} reef_place;

/* How many agents are malicious, and which. */
typedef struct reef_placement {
    size_t size;    /* sizeof of this struct, so that later versions can add members; 0: as version 0.2 has it */
    reef_place how; /* how they are chosen */
    reef_malicious
        malicious_count;  /* count, fraction of K (rounded down), or max: as many as possible (with keep_majority) */
    bool keep_majority;   /* only placements that leave every honest agent a strict majority of honest senders */
    uint64_t seed;        /* RANDOM */
    const int32_t *list;  /* LIST: the agents, each once */
    ptrdiff_t list_count; /* its length */
} reef_placement;

/* malicious receives K flags, *placed (unless NULL) how many are set. If fewer than requested can be placed, both hold what was possible, and
 * the result is REEF_E_MALICIOUS. */
REEF_API REEF_MUST_CHECK reef_status reef_graph_place_malicious(const reef_context *context, const reef_csr *csr,
                                                                const reef_placement *placement, bool *malicious,
                                                                ptrdiff_t *placed, reef_error *error);

#ifdef __cplusplus
}
#endif
#endif
