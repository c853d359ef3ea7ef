/* Text files line by line, and messages that say where. */
#ifndef RFI_IO_LINES_H
#define RFI_IO_LINES_H

#include "base/text.h"

#include <reef/status.h>
#include <stddef.h>

/* A walk through a text. Lines end with LF or CR LF; a # and what follows it is left out; lines of blanks are skipped. */
typedef struct rfi_lines {
    const char *name; /* of the file, for messages */
    const char *at, *end;
    ptrdiff_t number;  /* of the current line, from 1 */
    const char *start; /* of the current line */
    rfi_slice line;    /* the current line, without comment and blanks at its end */
} rfi_lines;

/* Starts before the first line; a byte order mark (UTF-8) is skipped. */
void rfi_lines_start(rfi_lines *lines, const void *bytes, size_t size, const char *name);
/* Goes to the next line that has something in it; false at the end. */
bool rfi_lines_next(rfi_lines *lines);

/* REEF_E_FORMAT with "name:line:column: what"; `place` is in the current line, columns are bytes from 1. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
reef_status
rfi_lines_fail(const rfi_lines *lines, const char *place, reef_error *error, const char *format, ...);

#define RFI_SHOWN_SIZE 44
/* A piece of a file fit for a message: up to 40 bytes, those that are not plain ASCII as ?. Returns `shown`. */
const char *rfi_shown(rfi_slice text, char shown[RFI_SHOWN_SIZE]);

#endif
