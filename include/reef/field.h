/* Field tables: each parameter of a rule, a graph, ... is described once, and that description drives spec strings,
 * range checks and their messages, `reef list`, and every other front end. */
#ifndef REEF_FIELD_H
#define REEF_FIELD_H

#include <reef/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Room for a text with its end. */
#define REEF_TEXT_SIZE 1024

typedef enum reef_field_type {
    REEF_FIELD_REAL,  /* double; a word from `words` (for instance auto) is stored as NaN */
    REEF_FIELD_INT,   /* int64_t; word number i of `words` is stored as -1 - i */
    REEF_FIELD_BOOL,  /* bool; true|false, yes|no, on|off, 1|0 */
    REEF_FIELD_WORD,  /* int: index into `words` */
    REEF_FIELD_LIARS, /* reef_liars: a count (4), a fraction (0.25 or 25%), or max */
    REEF_FIELD_TEXT,  /* char[REEF_TEXT_SIZE], terminated: a path or a name; no control characters */
} reef_field_type;

/* How many of n agents may lie. */
typedef enum reef_liars_kind { REEF_LIARS_COUNT, REEF_LIARS_FRACTION, REEF_LIARS_MAX } reef_liars_kind;
typedef struct reef_liars {
    reef_liars_kind kind;
    double value; /* count, or fraction in [0, 0.5); unused for MAX */
} reef_liars;

typedef struct reef_field {
    const char *name;
    reef_field_type type;
    size_t offset;            /* of the member in the parameter struct */
    const char *preset;       /* default, written as a user would write it */
    double min, max;          /* inclusive range of numbers; min == max == 0: no limit */
    const char *unit;         /* "" if none */
    const char *help;         /* one line */
    const char *const *words; /* NULL-terminated, or NULL */
} reef_field;

/* The common head of a kind of graph, weights, links, ...: what `reef list` shows and a spec string sets. */
typedef struct reef_kind {
    const char *name;
    const char *summary;  /* one line */
    const char *citation; /* one line, "" if none */
    const reef_field *fields;
    ptrdiff_t field_count; /* at most 32 */
    size_t params_size;
} reef_kind;

#ifdef __cplusplus
}
#endif
#endif
