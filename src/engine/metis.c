/* Partition of a network by METIS, the only file that uses it. */
#include "engine/metis.h"

#include <assert.h>
#include <stdlib.h>

#ifdef REEF_HAVE_METIS
#include <metis.h>

bool rfi_metis_there(void)
{
    return true;
}

/* The network without directions, loops and weights, as METIS wants it. */
typedef struct network {
    idx_t *start;     /* agents + 1 */
    idx_t *neighbour; /* each link twice */
} network;

/* Who hears k, ascending: the transpose of the lists of senders. */
static void transpose(ptrdiff_t agents, const ptrdiff_t *start, const int32_t *senders, ptrdiff_t *from, int32_t *heard)
{
    for (ptrdiff_t i = 0; i < start[agents]; i++) {
        assert(senders[i] >= 0 && senders[i] < agents);
        from[senders[i] + 1]++;
    }
    for (ptrdiff_t k = 0; k < agents; k++) {
        from[k + 1] += from[k];
    }
    for (ptrdiff_t k = 0; k < agents; k++) {
        for (ptrdiff_t i = start[k]; i < start[k + 1]; i++) {
            heard[from[senders[i]]++] = (int32_t)k;
        }
    }
    for (ptrdiff_t k = agents; k > 0; k--) { /* each start has moved to the next one's place */
        from[k] = from[k - 1];
    }
    from[0] = 0;
    assert(from[agents] == start[agents]); /* every link once more, from its other end */
}

/* Senders and receivers of every agent merged; both lists ascend. */
static void merge(ptrdiff_t agents, const ptrdiff_t *start, const int32_t *senders, const ptrdiff_t *from,
                  const int32_t *heard, network *n)
{
    ptrdiff_t at = 0;
    for (ptrdiff_t k = 0; k < agents; k++) {
        ptrdiff_t i = start[k];
        ptrdiff_t j = from[k];
        n->start[k] = (idx_t)at;
        while (i < start[k + 1] || j < from[k + 1]) {
            bool first = j == from[k + 1] || (i < start[k + 1] && senders[i] <= heard[j]);
            int32_t next = first ? senders[i] : heard[j];
            while (i < start[k + 1] && senders[i] == next) {
                i++;
            }
            while (j < from[k + 1] && heard[j] == next) {
                j++;
            }
            if (next != k) {
                n->neighbour[at++] = next;
            }
        }
    }
    n->start[agents] = (idx_t)at;
    assert(at <= 2 * start[agents]);
}

static bool cut(ptrdiff_t agents, const network *n, int32_t parts, int32_t *owner)
{
    idx_t options[METIS_NOPTIONS];
    idx_t count = (idx_t)agents;
    idx_t constraints = 1;
    idx_t wanted = parts;
    idx_t crossing = 0;
    idx_t *part = malloc((size_t)agents * sizeof *part);
    if (!part) {
        return false;
    }
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = 1; /* the same cut every time */
    int status = METIS_PartGraphKway(&count, &constraints, n->start, n->neighbour, NULL, NULL, NULL, &wanted, NULL,
                                     NULL, options, &crossing, part);
    for (ptrdiff_t k = 0; status == METIS_OK && k < agents; k++) {
        assert(part[k] >= 0 && part[k] < parts);
        owner[k] = (int32_t)part[k];
    }
    free(part);
    return status == METIS_OK;
}

/* Below a few agents per part blocks are as good, and where everybody hears many there is nothing to be saved. */
bool rfi_metis_partition(ptrdiff_t agents, const ptrdiff_t *start, const int32_t *senders, int32_t parts,
                         int32_t *owner)
{
    enum { FEW = 4, LINKS_MAX = 500000000 };
    ptrdiff_t links = start[agents];
    assert(agents >= 1 && start[0] == 0 && links >= 0);
    if (parts < 2 || agents / FEW < parts || links > LINKS_MAX || links / agents > agents / 2) {
        return false;
    }
    network n = {calloc((size_t)agents + 1, sizeof(idx_t)), malloc((size_t)(2 * links + 1) * sizeof(idx_t))};
    ptrdiff_t *from = calloc((size_t)agents + 2, sizeof *from);
    int32_t *heard = calloc((size_t)links + 1, sizeof *heard);
    bool done = n.start && n.neighbour && from && heard;
    if (done) {
        transpose(agents, start, senders, from, heard);
        merge(agents, start, senders, from, heard, &n);
        done = cut(agents, &n, parts, owner);
    }
    free(n.start);
    free(n.neighbour);
    free(from);
    free(heard);
    return done;
}

#else

bool rfi_metis_there(void)
{
    return false;
}

bool rfi_metis_partition(ptrdiff_t agents, const ptrdiff_t *start, const int32_t *senders, int32_t parts,
                         int32_t *owner)
{
    (void)agents;
    (void)start;
    (void)senders;
    (void)parts;
    (void)owner;
    return false;
}

#endif
