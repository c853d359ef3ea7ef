/* Lines for the live page, from a file or from standard input: whatever they hold, memory stays within its bound and a reader gets whole
 * events. */
#include "net/dash.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { LIMIT = 2000 };
    rfi_dash *dash = NULL;
    rfi_dash_cursor cursor = {0};
    char bytes[64];
    if (rfi_dash_create(&dash, LIMIT, NULL, NULL) != REEF_OK) {
        return 0;
    }
    const char *at = (const char *)data;
    const char *end = at + size;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop ? stop : end) - at);
        (void)rfi_dash_put_line(dash, at, length);
        (void)rfi_dash_read(dash, &cursor, bytes, 1 + length % sizeof bytes);
        if (rfi_dash_bytes(dash) > LIMIT) {
            abort();
        }
        at = stop ? stop + 1 : end;
    }
    rfi_dash_close(dash, &cursor);
    rfi_dash_destroy(&dash);
    return 0;
}
