/* Text files of numbers: lines of decimal numbers between blanks, tabs, commas or semicolons; # begins a comment.
 *
 * Read number by number, so that neither lines nor files have a limit and nothing is kept. Any bytes are safe; messages begin with
 * file:line. */
#ifndef RFI_IO_NUMBERS_H
#define RFI_IO_NUMBERS_H

#include <reef/context.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct rfi_numbers {
    const char *name; /* of the file, for messages; of the caller */
    FILE *file;       /* NULL: bytes from memory */
    const char *text;
    size_t length, at;
    ptrdiff_t line; /* of what was read last, from 1 */
    int ahead;      /* next byte, or EOF */
} rfi_numbers;

typedef enum rfi_numbers_item {
    RFI_NUMBERS_VALUE,
    RFI_NUMBERS_LINE_END,
    RFI_NUMBERS_END,
    RFI_NUMBERS_ERROR
} rfi_numbers_item;

/* REEF_E_FILE if the file cannot be opened. */
reef_status rfi_numbers_open(rfi_numbers *reader, const char *path, reef_error *error);
/* Reads `length` bytes of the caller instead. */
void rfi_numbers_memory(rfi_numbers *reader, const char *name, const char *text, size_t length);
void rfi_numbers_close(rfi_numbers *reader);

/* The next number (finite), or the end of a line (after which `line` is the next one), or the end of the file.
 * RFI_NUMBERS_ERROR: *status and error say why. */
rfi_numbers_item rfi_numbers_next(rfi_numbers *reader, double *value, reef_status *status, reef_error *error);

#endif
