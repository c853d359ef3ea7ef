/* Who compares echoes with whom. */
#include "net/roster.h"

#include "base/memory.h"
#include "net/echo.h"

#include <string.h>

/* Counts for every agent how many of the senders of `agent` it hears, itself and `agent` apart. */
static void count_common(const reef_csr *csr, ptrdiff_t agent, bool *heard, int32_t *common)
{
    for (ptrdiff_t i = csr->start[agent]; i < csr->start[agent + 1]; i++) {
        heard[csr->senders[i]] = csr->senders[i] != agent;
    }
    for (ptrdiff_t k = 0; k < csr->agents; k++) {
        for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1] && k != agent; i++) {
            common[k] += csr->senders[i] != k && heard[csr->senders[i]];
        }
    }
}

/* Those with most in common, ties by number, so that both sides think alike. */
static ptrdiff_t choose(const reef_csr *csr, int32_t *common, uint32_t *witnesses)
{
    ptrdiff_t count = 0;
    for (; count < RFI_WITNESSES_MAX; count++) {
        ptrdiff_t most = -1;
        for (ptrdiff_t k = 0; k < csr->agents; k++) {
            most = common[k] > 0 && (most < 0 || common[k] > common[most]) ? k : most;
        }
        if (most < 0) {
            break;
        }
        common[most] = 0;
        witnesses[count] = (uint32_t)most;
    }
    return count;
}

ptrdiff_t rfi_roster_witnesses(const rfi_roster *roster, ptrdiff_t agent, uint32_t *witnesses)
{
    reef_csr csr = reef_graph_csr(roster->graph);
    int32_t *common = rfi_allocate_many(roster->context, csr.agents, sizeof *common);
    bool *heard = rfi_allocate_many(roster->context, csr.agents, sizeof *heard);
    ptrdiff_t count = 0;
    if (common && heard) { /* otherwise there is nobody to compare with, and two-faced senders are found by others */
        memset(common, 0, (size_t)csr.agents * sizeof *common);
        memset(heard, 0, (size_t)csr.agents * sizeof *heard);
        count_common(&csr, agent, heard, common);
        count = choose(&csr, common, witnesses);
    }
    rfi_release(roster->context, common);
    rfi_release(roster->context, heard);
    return count;
}
