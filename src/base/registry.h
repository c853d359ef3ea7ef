/* The registry: what kinds a family has, the library's own and those added to a context.
 *
 * Each module above describes its families by an rfi_family; everything else (specs, lists, tables, registering) follows from that. */
#ifndef RFI_BASE_REGISTRY_H
#define RFI_BASE_REGISTRY_H

#include "base/fields.h"

#include <reef/registry.h>
#include <stdbool.h>

typedef struct rfi_family {
    reef_family number;
    const char *name; /* of the family in tables: "attack" */
    const char *what; /* of one of its kinds in messages: "kind of attack" */
    const reef_kind *const *builtin;
    ptrdiff_t builtin_count;
    rfi_fields common;                           /* fields that kinds take beside their own; count 0: none */
    bool (*lacks_common)(const reef_kind *kind); /* NULL: every kind takes them */
    const char *lacks_text;                      /* what is said to one that does not: "belongs to ..." */
    size_t size;                                 /* of its kinds' struct, for families that take kinds from outside */
    /* What a kind from outside must have beyond a sound head; NULL: the family takes none from outside. */
    reef_status (*check)(const reef_kind *kind, reef_error *error);
    /* A name that only some contexts have, and what is said of it in the others; NULL: there is none. */
    const char *absent, *absent_text;
} rfi_family;

ptrdiff_t rfi_kind_count(const rfi_family *family, const reef_context *context);
/* NULL: out of range. */
const reef_kind *rfi_kind_at(const rfi_family *family, const reef_context *context, ptrdiff_t index);
/* NULL: there is none. */
const reef_kind *rfi_kind_find(const rfi_family *family, const reef_context *context, rfi_slice name);
/* REEF_E_NAME with the nearest name there is and, if they are few, all of them. */
reef_status rfi_kind_unknown(const rfi_family *family, const reef_context *context, rfi_slice name, reef_error *error);
/* The common fields that this kind takes; count 0: none. */
rfi_fields rfi_kind_common(const rfi_family *family, const reef_kind *kind);

reef_status rfi_kind_check(const rfi_family *family, const reef_kind *kind, reef_error *error);
reef_status rfi_kind_register(const rfi_family *family, reef_context *context, const reef_kind *kind,
                              reef_error *error);
/* Adds what was added to `from` (NULL: nothing) to a context that has nothing yet. */
reef_status rfi_kinds_copy(reef_context *to, const reef_context *from, reef_error *error);

#endif
