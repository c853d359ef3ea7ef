/* From /dev/urandom, which every POSIX system has that we know. */
#include "base/entropy.h"

#include <fcntl.h>
#include <unistd.h>

bool rfi_entropy(uint64_t *number)
{
    int descriptor = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    ssize_t got = descriptor >= 0 ? read(descriptor, number, sizeof *number) : -1;
    if (descriptor >= 0) {
        (void)close(descriptor);
    }
    return got == (ssize_t)sizeof *number;
}
