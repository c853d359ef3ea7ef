/* Spec strings name:key=value,key=value for everything that has a field table: rules, graphs, weights, links, ...
 *
 * A value may stand in parentheses, which are not part of it: data=(csv:path=a.csv,label=b). That is how a spec goes into a spec, and
 * how a value can contain a comma or be empty. Parentheses inside it come in pairs.
 *
 * rfi_spec_read does it all for a catalogue of kinds; the pieces are there for those with a grammar around it (pipes). */
#ifndef RFI_BASE_SPEC_H
#define RFI_BASE_SPEC_H

#include "base/fields.h"

#include <reef/context.h>

/* Longest spec accepted: far more than any real one, so that hostile input costs little. */
enum { RFI_SPEC_LENGTH_MAX = 8192 };

/* The spec as a slice, unless it is too long. */
reef_status rfi_spec_text(const char *spec, rfi_slice *text, reef_error *error);

/* A table of fields and the struct they are in. A field of a table with `refusal` exists, but not here: "nan= <refusal>". */
typedef struct rfi_target {
    rfi_fields table;
    void *params;
    const char *refusal; /* or NULL */
} rfi_target;

/* Sets the fields that `list` (key=value,...) names, each at most once; names are looked up in the targets in turn.
 * At most 64 fields in all. */
reef_status rfi_spec_set(const rfi_target *targets, ptrdiff_t count, rfi_slice list, reef_error *error);

/* Things with a name that a spec may begin with. */
typedef struct rfi_catalogue {
    const char *what;                                        /* "rule", "graph", for messages */
    const char *(*name)(const void *user, ptrdiff_t i);      /* name of number i */
    const reef_kind *(*kind)(const void *user, ptrdiff_t i); /* for rfi_spec_read */
    const void *user;
    ptrdiff_t count;
} rfi_catalogue;

/* Number of the thing with that name, or -1. */
ptrdiff_t rfi_catalogue_find(const rfi_catalogue *catalogue, rfi_slice name);
/* REEF_E_NAME with the nearest name there is and, if they are few, all of them. */
reef_status rfi_catalogue_unknown(const rfi_catalogue *catalogue, rfi_slice name, reef_error *error);

/* Reads name[:key=value,...] of one kind of the catalogue: *index receives which, *params its parameter struct, which the caller
 * releases. `common` (may be NULL) holds fields that every kind takes beside its own; they are set to their presets first. */
reef_status rfi_spec_read(const reef_context *context, const rfi_catalogue *catalogue, const char *spec,
                          const rfi_target *common, ptrdiff_t *index, void **params, reef_error *error);

/* Appends name:key=value,... with every field, as rfi_spec_read would read it. */
void rfi_spec_print(const reef_kind *kind, const void *params, const rfi_target *common, char *text, size_t size,
                    size_t *used);

#endif
