/* Named variants with parameters: what data sources and partitions have in common. One variant is one const struct with a
 * field table; a spec `name:key=value,...` chooses one and sets its parameters. */
#ifndef RFI_PROBLEM_VARIANT_H
#define RFI_PROBLEM_VARIANT_H

#include "base/fields.h"

#include <reef/context.h>
#include <stdbool.h>

typedef struct rfi_variant {
    const char *name;
    const char *summary;  /* one line */
    const char *citation; /* "" if none */
    const reef_field *fields;
    ptrdiff_t field_count; /* with the common fields of the list at most 32 */
    size_t params_size;
} rfi_variant;

typedef struct rfi_variants {
    const char *what; /* "data source": for messages */
    ptrdiff_t count;
    const rfi_variant *(*at)(ptrdiff_t index);
} rfi_variants;

/* The variant a spec chose, with its parameters. */
typedef struct rfi_choice {
    ptrdiff_t index;
    void *params; /* from the context's allocator */
} rfi_choice;

/* Reads a spec. Fields that are in no variant's table are looked up in `common` (or NULL), whose struct `common_params` is
 * preset here as well. On failure there is nothing to free. Values cannot contain a comma, nor blanks at their ends. */
reef_status rfi_variant_parse(const reef_context *context, const rfi_variants *list, const char *spec,
                              const rfi_fields *common, void *common_params, rfi_choice *choice, reef_error *error);
void rfi_choice_free(const reef_context *context, rfi_choice *choice);

#endif
