/* Datagrams to the service manager. */
#include "net/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void rfi_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = path ? strlen(path) : 0;
    if (length < 2 || length >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) {
        return;
    }
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') { /* a name that is not in the file system */
        address.sun_path[0] = '\0';
    }
    int to = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (to >= 0) {
        (void)sendto(to, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
        (void)close(to);
    }
}

void rfi_notify_alive(double now)
{
    static double last; /* the one thread that runs the command */
    if (getenv("WATCHDOG_USEC") && (now - last >= 1 || now < last)) {
        last = now;
        rfi_notify("WATCHDOG=1");
    }
}
