/* What the library is made of. */
#include <reef/net.h>

#include "net/crypto.h"
#include "net/http.h"
#include "net/link_nats.h"

#include <stdio.h>

const char *reef_net_describe(void)
{
    static char text[128]; /* the same whoever writes it, so that it does not matter who does */
    (void)snprintf(text, sizeof text, "libnats %s, libsodium %s%s%s", rfi_nats_version(), rfi_crypto_version(),
                   rfi_http_version()[0] ? ", libmicrohttpd " : "", rfi_http_version());
    return text;
}
