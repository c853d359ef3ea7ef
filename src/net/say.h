/* Lines for people, passed one by one to the function that was given for them. */
#ifndef RFI_NET_SAY_H
#define RFI_NET_SAY_H

#include <reef/net.h>

typedef struct rfi_teller {
    reef_tell *tell;
    void *user;
} rfi_teller;

/* Tells one line, at most 399 bytes of it. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void rfi_say(const rfi_teller *to, const char *format, ...);

#endif
