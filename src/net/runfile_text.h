/* Texts of run files: what they may be, and what they mean. rfi_is_token and rfi_is_loopback are in net/runfile.h. */
#ifndef RFI_NET_RUNFILE_TEXT_H
#define RFI_NET_RUNFILE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A name of an agent or observer: 1 to 32 letters a-z, digits, _ and -. */
bool rfi_is_name(const char *text);
/* An address on this very machine, behind a scheme such as "nats://". */
bool rfi_is_local(const char *url, const char *scheme);
/* HOST:PORT, with a port from 1 to 65535. */
bool rfi_has_port(const char *address);
/* An address that a broker may have: tls:// anywhere, nats:// on this machine. */
bool rfi_is_broker(const char *url);
/* `size` bytes in 2 size hexadecimal digits, small letters. */
bool rfi_read_hex_bytes(const char *text, size_t length, unsigned char *bytes, size_t size);

/* A number with a unit behind it, from a list of them. */
typedef struct rfi_unit {
    const char *name;
    double factor;
} rfi_unit;
bool rfi_read_quantity(const char *text, const rfi_unit *units, size_t count, double *value);

#endif
