/* The parts of JSON: a cursor over a text that is in memory, with nothing built from it. Readers of one shape of JSON (the header of a safetensors
 * file, the index of a model in shards) are made of these; they need memory in proportion to what they keep, and have no depth. */
#ifndef RFI_IO_JSON_H
#define RFI_IO_JSON_H

#include "base/text.h"

#include <reef/status.h>
#include <stdbool.h>
#include <stddef.h>

/* Where we are. */
typedef struct rfi_json {
    const char *name; /* of the file, for messages */
    size_t offset;    /* of the text in the file */
    const char *start, *at, *end;
    char *letter;      /* where decoded texts go; NULL: they are only counted */
    ptrdiff_t letters; /* of them so far */
    reef_error *error;
} rfi_json;

/* REEF_E_FORMAT with "name: byte N: what". */
reef_status rfi_json_fail(const rfi_json *c, const char *what);
void rfi_json_blanks(rfi_json *c);
/* Steps over `mark` if it comes next. */
bool rfi_json_take(rfi_json *c, char mark);
/* A string, decoded behind the letters there are; while counting *text has its length only. */
reef_status rfi_json_text(rfi_json *c, const char *missing, rfi_slice *text);
/* A short word between quotes that needs no decoding: keys and types. */
bool rfi_json_word(rfi_json *c, rfi_slice *word);
/* A whole number: digits without a leading zero. */
reef_status rfi_json_number(rfi_json *c, ptrdiff_t *number);
/* Steps over one value, whatever it is; what it holds is kept nowhere. */
reef_status rfi_json_skip(rfi_json *c);

/* True for UTF-8 without control characters. */
bool rfi_json_is_text(rfi_slice text);
/* Appends a string with its quotes, escaped, at to[*used]; `to` NULL: only measures. The text is UTF-8. */
void rfi_json_put_text(char *to, size_t *used, rfi_slice text);
/* Appends plain characters. */
void rfi_json_put(char *to, size_t *used, const char *plain);

#endif
