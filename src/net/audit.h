/* The audit log: what an agent has observed of others, one line per event, kept in its state folder.
 *
 * Lines are "time=2026-01-31T12:00:00Z event=NAME key=value ...", appended to `audit.log`. When the file has reached RFI_AUDIT_BYTES it replaces
 * `audit.log.1`, so that an attacker cannot fill the disk. Names of agents come from the run file; bytes from outside are never written
 * as they are. */
#ifndef RFI_NET_AUDIT_H
#define RFI_NET_AUDIT_H

#include <stdbool.h>
#include <stddef.h>

#define RFI_AUDIT_BYTES ((size_t)16 * 1024 * 1024)

/* Appends a line to folder/audit.log. `format` makes the rest of the line, behind time and event, and has no newline; lines may be
 * long, since proofs are in them. False: it could not be written. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
bool rfi_audit_line(const char *folder, const char *event, const char *format, ...);

/* Bytes as hexadecimal digits; text has room for 2 size + 1 characters. */
void rfi_audit_hex(char *text, const unsigned char *bytes, size_t size);

#endif
