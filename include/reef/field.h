/* Field tables: each parameter of a rule, a graph, ... is described once, and that description drives the strings (name:key=value,...),
 * range checks and their messages, `reef list`, and every other front end. */
#ifndef REEF_FIELD_H
#define REEF_FIELD_H

#include <reef/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Room for a text with its terminator. */
#define REEF_TEXT_SIZE 1024

/* What a parameter holds, and how it is written. */
typedef enum reef_field_type {
    REEF_FIELD_REAL,      /* double; a word from `words` (for instance auto) is stored as NaN */
    REEF_FIELD_INT,       /* int64_t; word number i of `words` is stored as -1 - i */
    REEF_FIELD_BOOL,      /* bool; true|false, yes|no, on|off, 1|0 */
    REEF_FIELD_WORD,      /* int: index into `words` */
    REEF_FIELD_MALICIOUS, /* reef_malicious: a count (4), a fraction (0.25 or 25%), or max */
    REEF_FIELD_TEXT,      /* char[REEF_TEXT_SIZE], terminated: a path or a name; no control characters */
    REEF_FIELD_REST, /* char[REEF_TEXT_SIZE]: key=value,... of all keys that no other field of the kind has; preset "" */
} reef_field_type;

/* How many of n agents may be malicious. */
typedef enum reef_malicious_kind {
    REEF_MALICIOUS_COUNT,
    REEF_MALICIOUS_FRACTION,
    REEF_MALICIOUS_MAX
} reef_malicious_kind;
/* Such a number, as the user has written it. */
typedef struct reef_malicious {
    reef_malicious_kind kind; /* count, fraction or max */
    double value;             /* count, or fraction in [0, 0.5); unused for MAX */
} reef_malicious;

/* One parameter. */
typedef struct reef_field {
    const char *name;         /* in texts such as name:key=value, and in YAML */
    reef_field_type type;     /* of the member */
    size_t offset;            /* of the member in the parameter struct */
    const char *preset;       /* default, written as a user would write it */
    double min, max;          /* inclusive range; min == max == 0: no limit */
    const char *unit;         /* "" if none */
    const char *help;         /* one line */
    const char *const *words; /* NULL-terminated, or NULL */
} reef_field;

/* The common head of a kind of graph, weights, links, ...: what `reef list` shows and name:key=value,... sets. */
typedef struct reef_kind {
    size_t
        size; /* sizeof of the whole struct that begins with this head, as in option structs; 0: as version 0.2 has it */
    const char *name;         /* letters, digits, - and _ */
    const char *summary;      /* one line */
    const char *citation;     /* one line, "" if none */
    const reef_field *fields; /* its parameters, or NULL */
    ptrdiff_t field_count;    /* at most 32 */
    size_t params_size;       /* of the struct that they fill */
} reef_kind;

#ifdef __cplusplus
}
#endif
#endif
