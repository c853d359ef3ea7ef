/* Reading and writing parameter structs by their field tables. */
#ifndef RFI_BASE_FIELDS_H
#define RFI_BASE_FIELDS_H

#include "base/text.h"

#include <reef/field.h>

#define RFI_COUNT(array) ((ptrdiff_t)(sizeof(array) / sizeof((array)[0])))

typedef struct rfi_fields {
    const char *owner; /* name of the rule or other kind, for messages */
    const reef_field *fields;
    ptrdiff_t count;
} rfi_fields;

/* Sets every field of params to its preset. */
reef_status rfi_fields_preset(const rfi_fields *table, void *params, reef_error *error);
/* Sets one field from text; unknown names and bad values are explained in error. */
reef_status rfi_fields_set(const rfi_fields *table, void *params, rfi_slice name, rfi_slice value, reef_error *error);
/* The field of that name, or NULL. */
const reef_field *rfi_fields_find(const rfi_fields *table, rfi_slice name);
/* The field that takes what no other does, or NULL; and one key=value more for it. */
const reef_field *rfi_fields_rest(const rfi_fields *table);
reef_status rfi_fields_gather(const rfi_fields *table, void *params, const reef_field *rest, rfi_slice pair,
                              reef_error *error);
/* Appends the value of a field as a user would write it. */
void rfi_field_print(const reef_field *field, const void *params, char *buffer, size_t size, size_t *used);

#endif
