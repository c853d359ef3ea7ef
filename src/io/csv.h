/* Tables of numbers as text: one line per row, cells separated by comma, semicolon, tab or blanks, an optional line of
 * names, # comments. Numbers are decimal with a point, in every locale; nan, inf and empty cells are refused. */
#ifndef RFI_IO_CSV_H
#define RFI_IO_CSV_H

#include "base/text.h"

#include <reef/context.h>
#include <stddef.h>

typedef enum rfi_csv_separator {
    RFI_CSV_AUTO,
    RFI_CSV_COMMA,
    RFI_CSV_SEMICOLON,
    RFI_CSV_TAB,
    RFI_CSV_SPACE
} rfi_csv_separator;
/* Auto: a first line without a single number is the line of names; one that mixes both is refused. */
typedef enum rfi_csv_header { RFI_CSV_HEADER_AUTO, RFI_CSV_HEADER_YES, RFI_CSV_HEADER_NO } rfi_csv_header;

/* A field of a line, without blanks and quotation marks around it. */
typedef struct rfi_csv_field {
    rfi_slice text;
    bool doubled; /* it was quoted, and "" in it stands for one mark */
} rfi_csv_field;
/* Takes the next field off a line; *more tells whether another one follows. mark: the separator; ' ' stands for blanks and tabs. */
rfi_csv_field rfi_csv_next(rfi_slice *rest, char mark, bool *more);
/* What the field says into `to`, which has room for its text and a zero; returns the length. */
size_t rfi_csv_copy(rfi_csv_field field, char *to);

typedef struct rfi_csv {
    ptrdiff_t rows, columns; /* both at least 1 */
    double *cells;           /* rows x columns */
    rfi_slice *names;        /* of the columns, pointing into the bytes read; NULL without a line of names */
} rfi_csv;

/* Reads the bytes of a file; `name` is for messages. The bytes must outlive the names. */
reef_status rfi_csv_read(const reef_context *context, const void *bytes, size_t size, const char *name,
                         rfi_csv_separator separator, rfi_csv_header header, rfi_csv *table, reef_error *error);
void rfi_csv_free(const reef_context *context, rfi_csv *table);

/* The column called `column`: a name of the header, or a number from 0, or from the end (-1 is the last). `name` is the
 * file's, for messages. */
reef_status rfi_csv_column(const rfi_csv *table, const char *column, const char *name, ptrdiff_t *index,
                           reef_error *error);

#endif
