/* Texts of run files: names, addresses, hexadecimal digits, numbers with units. */
#include "net/runfile_text.h"

#include "base/number.h"
#include "net/runfile.h"

#include <stdlib.h>
#include <string.h>

static bool is_made_of(const char *text, const char *letters, size_t most)
{
    size_t length = strlen(text);
    return length >= 1 && length <= most && strspn(text, letters) == length;
}

bool rfi_is_token(const char *text)
{
    return is_made_of(text, "abcdefghijklmnopqrstuvwxyz0123456789-", RFI_NAME_SIZE - 1);
}

bool rfi_is_name(const char *text)
{
    return is_made_of(text, "abcdefghijklmnopqrstuvwxyz0123456789_-", RFI_NAME_SIZE - 1);
}

/* Beginnings of addresses that do not leave the machine. */
static const char *const local_hosts[] = {"127.0.0.1:", "localhost:", "[::1]:"};

bool rfi_is_local(const char *url, const char *scheme)
{
    size_t head = strlen(scheme);
    if (strncmp(url, scheme, head) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof local_hosts / sizeof local_hosts[0]; i++) {
        size_t length = strlen(local_hosts[i]);
        if (strncmp(url + head, local_hosts[i], length) == 0 && is_made_of(url + head + length, "0123456789", 5)) {
            return true;
        }
    }
    return false;
}

bool rfi_is_loopback(const char *url)
{
    return rfi_is_local(url, "nats://");
}

bool rfi_has_port(const char *address)
{
    const char *colon = strrchr(address, ':');
    if (!colon || colon == address || !is_made_of(colon + 1, "0123456789", 5)) {
        return false;
    }
    long port = strtol(colon + 1, NULL, 10);
    return port >= 1 && port <= 65535;
}

/* What stands between the scheme and the last colon must be the host: no name and password before an @. */
bool rfi_is_broker(const char *url)
{
    return strlen(url) <= 256 && strlen(url) > 6 && rfi_has_port(url + 6) &&
           (rfi_is_loopback(url) ||
            (strncmp(url, "tls://", 6) == 0 &&
             is_made_of(url + 6, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]", 250)));
}

bool rfi_read_hex_bytes(const char *text, size_t length, unsigned char *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    if (length != 2 * size) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit) {
            return false;
        }
        unsigned value = (unsigned)(digit - digits);
        bytes[i / 2] = (unsigned char)(i % 2 ? bytes[i / 2] | value : value << 4);
    }
    return true;
}

bool rfi_read_quantity(const char *text, const rfi_unit *units, size_t count, double *value)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < count; i++) {
        size_t tail = strlen(units[i].name);
        if (length > tail && strcmp(text + length - tail, units[i].name) == 0 &&
            rfi_read_real((rfi_slice){text, length - tail}, value)) {
            *value *= units[i].factor;
            return true;
        }
    }
    return false;
}
