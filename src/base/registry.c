/* The registry: lists of kinds by family, and adding to them. */
#include "base/registry.h"

#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* Names that a message shows; more are left to `reef list`. */
enum { SHOWN_MAX = 8 };
enum { NAME_MAX = 32, FIELDS_MAX = 32 };

/* Of the kinds added to a context, how many are of this family. */
static ptrdiff_t count_added(const rfi_family *family, const reef_context *context)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; context && i < context->added_count; i++) {
        count += context->added[i].family == family->number;
    }
    return count;
}

ptrdiff_t rfi_kind_count(const rfi_family *family, const reef_context *context)
{
    return family->builtin_count + count_added(family, context);
}

const reef_kind *rfi_kind_at(const rfi_family *family, const reef_context *context, ptrdiff_t index)
{
    if (index >= 0 && index < family->builtin_count) {
        return family->builtin[index];
    }
    ptrdiff_t left = index - family->builtin_count;
    for (ptrdiff_t i = 0; left >= 0 && context && i < context->added_count; i++) {
        if (context->added[i].family == family->number && left-- == 0) {
            return context->added[i].kind;
        }
    }
    return NULL;
}

const reef_kind *rfi_kind_find(const rfi_family *family, const reef_context *context, rfi_slice name)
{
    const reef_kind *kind = NULL;
    for (ptrdiff_t i = 0; (kind = rfi_kind_at(family, context, i)) != NULL; i++) {
        if (rfi_equals(name, kind->name)) {
            break;
        }
    }
    return kind;
}

reef_status rfi_kind_unknown(const rfi_family *family, const reef_context *context, rfi_slice name, reef_error *error)
{
    const char *nearest = NULL;
    char names[200] = "";
    size_t used = 0;
    int best = 1000;
    if (family->absent && rfi_equals(name, family->absent)) {
        return rfi_fail(error, REEF_E_NAME, "%s '%s' %s", family->what, family->absent, family->absent_text);
    }
    ptrdiff_t count = rfi_kind_count(family, context);
    for (ptrdiff_t i = 0; i < count; i++) {
        const char *known = rfi_kind_at(family, context, i)->name;
        rfi_append(names, sizeof names, &used, "%s%s", i ? ", " : "", known);
        if (rfi_is_nearer(name, known, &best)) {
            nearest = known;
        }
    }
    char hint[80] = "";
    if (nearest) {
        (void)snprintf(hint, sizeof hint, " did you mean '%.40s'?", nearest);
    }
    if (count <= SHOWN_MAX) {
        return rfi_fail(error, REEF_E_NAME, "there is no %s '%.*s';%s there are: %s", family->what, RFI_SHOW(name),
                        hint, names);
    }
    return rfi_fail(error, REEF_E_NAME, "there is no %s '%.*s';%s see `reef list`", family->what, RFI_SHOW(name), hint);
}

rfi_fields rfi_kind_common(const rfi_family *family, const reef_kind *kind)
{
    bool lacks = family->lacks_common && family->lacks_common(kind);
    return lacks ? (rfi_fields){kind->name, NULL, 0} : family->common;
}

/* ---- adding ---- */

/* Letters, digits, - and _, so that a name cannot break a spec string. */
static bool is_plain_name(const char *name)
{
    size_t allowed = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return allowed > 0 && allowed <= NAME_MAX && name[allowed] == '\0';
}

static bool is_sound_field(const reef_field *field, size_t params_size)
{
    return field->name && is_plain_name(field->name) && field->preset && field->help && field->offset < params_size &&
           (field->words || field->type != REEF_FIELD_WORD);
}

static reef_status check_head(const rfi_family *family, const reef_kind *kind, reef_error *error)
{
    if (!kind || !kind->name || !is_plain_name(kind->name)) {
        return rfi_fail(error, REEF_E_ARG, "a %s needs a name of 1 to %d letters, digits, - or _", family->name,
                        NAME_MAX);
    }
    if (!kind->summary || !kind->citation || (kind->field_count > 0 && !kind->fields)) {
        return rfi_fail(error, REEF_E_ARG, "%s '%s' needs a summary, a citation (\"\" if none) and its fields",
                        family->name, kind->name);
    }
    if (kind->field_count < 0 || kind->field_count > FIELDS_MAX) {
        return rfi_fail(error, REEF_E_ARG, "%s '%s' has %td fields; at most %d are possible", family->name, kind->name,
                        kind->field_count, FIELDS_MAX);
    }
    for (ptrdiff_t i = 0; i < kind->field_count; i++) {
        if (!is_sound_field(&kind->fields[i], kind->params_size)) {
            return rfi_fail(error, REEF_E_ARG,
                            "field %td of %s '%s' needs a name of letters, digits, - or _, a preset, a help, an offset "
                            "within params_size and, if it takes words, these",
                            i, family->name, kind->name);
        }
    }
    return rfi_check_size(kind->size, family->size, kind->name, error);
}

reef_status rfi_kind_check(const rfi_family *family, const reef_kind *kind, reef_error *error)
{
    reef_status status = check_head(family, kind, error);
    if (status != REEF_OK) {
        return status;
    }
    return family->check ? family->check(kind, error) : REEF_OK;
}

static bool grow(reef_context *context)
{
    if (context->added_count < context->added_room) {
        return true;
    }
    ptrdiff_t room = context->added_room ? 2 * context->added_room : 8;
    rfi_added *added = rfi_allocate_many(context, room, sizeof *added);
    if (!added) {
        return false;
    }
    for (ptrdiff_t i = 0; i < context->added_count; i++) {
        added[i] = context->added[i];
    }
    rfi_release(context, context->added);
    context->added = added;
    context->added_room = room;
    return true;
}

static reef_status add(reef_context *context, rfi_added added, reef_error *error)
{
    if (!grow(context)) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory to register '%s'", added.kind->name);
    }
    context->added[context->added_count++] = added;
    return REEF_OK;
}

reef_status rfi_kind_register(const rfi_family *family, reef_context *context, const reef_kind *kind, reef_error *error)
{
    if (!context) {
        return rfi_fail(error, REEF_E_ARG, "a %s is registered in a context, which must not be NULL", family->name);
    }
    if (!family->check) {
        return rfi_fail(error, REEF_E_ARG, "only rules, attacks and problems can be registered, not a %s",
                        family->what);
    }
    reef_status status = rfi_kind_check(family, kind, error);
    if (status != REEF_OK) {
        return status;
    }
    if (rfi_kind_find(family, context, (rfi_slice){kind->name, strlen(kind->name)})) {
        return rfi_fail(error, REEF_E_NAME, "a %s named '%s' exists already", family->what, kind->name);
    }
    return add(context, (rfi_added){family->number, kind}, error);
}

reef_status rfi_kinds_copy(reef_context *to, const reef_context *from, reef_error *error)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t i = 0; from && i < from->added_count && status == REEF_OK; i++) {
        status = add(to, from->added[i], error);
    }
    return status;
}
