/* Who compares echoes with whom. */
#include "net/roster.h"

#include "net/echo.h"

#include <assert.h>

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
    int32_t common[RFI_AGENTS_MAX] = {0}; /* 20 kB of stack, so that nothing can fail: all must choose alike */
    bool heard[RFI_AGENTS_MAX] = {false};
    assert(csr.agents <= RFI_AGENTS_MAX && agent >= 0 && agent < csr.agents);
    count_common(&csr, agent, heard, common);
    return choose(&csr, common, witnesses);
}
