/* Several links as one. */
#ifndef RFI_NET_LINK_MANY_H
#define RFI_NET_LINK_MANY_H

#include "net/link.h"

#include <reef/context.h>

#define RFI_MANY_MAX (RFI_WAYS - 1)

/* Seconds on a monotonic clock. */
typedef double rfi_many_clock(void);

/* A link for `agent` over others, which it does not own. */
reef_status rfi_many_open(rfi_netlink **link, const reef_context *context, uint32_t agent, rfi_netlink *const *links,
                          int count, rfi_many_clock *clock, reef_error *error);
/* Accepts NULL, sets the pointer to NULL. */
void rfi_many_close(rfi_netlink **link);

#endif
