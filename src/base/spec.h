/* Spec strings name:key=value,key=value for everything that has a field table: rules, graphs, weights, links, ...
 *
 * A value may be in parentheses, which are not part of it: data=(csv:path=a.csv,label=b). In this way a value can be a spec string
 * itself, contain a comma or be empty. Parentheses inside it come in pairs.
 */
#ifndef RFI_BASE_SPEC_H
#define RFI_BASE_SPEC_H

#include "base/registry.h"

/* Longest spec accepted: far more than any real one, so that hostile input costs little. */
enum { RFI_SPEC_LENGTH_MAX = 8192 };

/* The spec as a slice, unless it is too long. */
reef_status rfi_spec_text(const char *spec, rfi_slice *text, reef_error *error);

/* Reads name[:key=value,...] of one kind of the family: *kind receives which, *params its parameter struct, which the caller
 * releases. The family's common fields go to `common` (NULL: they are not wanted), set to their presets first. */
reef_status rfi_spec_read(const reef_context *context, const rfi_family *family, const char *spec, void *common,
                          const reef_kind **kind, void **params, reef_error *error);

/* The two halves of it, for callers with a grammar around it (pipelines): the kind that `text` names and what follows the colon
 * (list->text NULL: there is no colon), and its parameters from that. */
reef_status rfi_spec_find(const reef_context *context, const rfi_family *family, rfi_slice text, const reef_kind **kind,
                          rfi_slice *list, reef_error *error);
reef_status rfi_spec_fill(const reef_context *context, const rfi_family *family, const reef_kind *kind, rfi_slice list,
                          void *common, void **params, reef_error *error);

/* Presets, or a copy of what is given: *params is released by the caller. */
reef_status rfi_spec_copy(const reef_context *context, const rfi_family *family, const reef_kind *kind,
                          const void *given, void **params, reef_error *error);

/* Appends name:key=value,... with every field, as rfi_spec_read would read it. */
void rfi_spec_print(const rfi_family *family, const reef_kind *kind, const void *params, const void *common, char *text,
                    size_t size, size_t *used);

#endif
