/* How many frames of one sender may be verified, so that a flood costs a bounded share of a processor. Each broker that frames come through has an
 * allowance of its own: frames forged at one of them must not use up what the sender itself needs at another. */
#ifndef RFI_NET_ALLOWANCE_H
#define RFI_NET_ALLOWANCE_H

#include "net/link.h"

#include <math.h>

/* At once; so many more a second, and a round. */
#define RFI_TOKENS_MAX 8.0
#define RFI_TOKENS_SECOND 2.0
#define RFI_TOKENS_ROUND 4.0

typedef struct rfi_allowance {
    double tokens;
    double at; /* when they were counted */
} rfi_allowance;

static inline bool rfi_allowance_spend(rfi_allowance *from, double now)
{
    from->tokens = fmin(from->tokens + RFI_TOKENS_SECOND * (now - from->at), RFI_TOKENS_MAX);
    from->at = now;
    if (from->tokens < 1) {
        return false;
    }
    from->tokens -= 1;
    return true;
}

/* A round has ended. */
static inline void rfi_allowance_round(rfi_allowance *to)
{
    to->tokens = fmin(to->tokens + RFI_TOKENS_ROUND, RFI_TOKENS_MAX);
}

static inline void rfi_allowances_fill(rfi_allowance to[RFI_WAYS])
{
    for (int way = 0; way < RFI_WAYS; way++) {
        to[way] = (rfi_allowance){.tokens = RFI_TOKENS_MAX};
    }
}

#endif
