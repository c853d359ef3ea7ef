/* Field tables by family, number and part. */
#include "ffi/handles.h"

#include <assert.h>
#include <reef/reef.h>
#include <string.h>

/* REEF_FAMILIES: no such family. */
static reef_family find_family(const char *name)
{
    int i = 0;
    while (i < REEF_FAMILIES && !(name && strcmp(reef_family_name((reef_family)i), name) == 0)) {
        i++;
    }
    return (reef_family)i;
}

static const reef_kind *find_kind(const reef_context *context, const char *family, ptrdiff_t kind)
{
    return reef_kind_at(context, find_family(family), kind);
}

static const reef_field *find_field(const reef_context *context, const char *family, ptrdiff_t kind, ptrdiff_t field)
{
    ptrdiff_t count = 0;
    const reef_kind *found = find_kind(context, family, kind);
    const reef_field *common = reef_kind_common(find_family(family), found, &count);
    if (!found || field < 0 || field >= found->field_count + count) {
        return NULL;
    }
    assert(field < found->field_count || common);
    return field < found->field_count ? &found->fields[field] : &common[field - found->field_count];
}

ptrdiff_t reef_ffi_kinds(const reef_context *context, const char *family)
{
    reef_family found = find_family(family);
    return reef_family_name(found) ? reef_kind_count(context, found) : -1;
}

/* The text whose name is `part`, NULL: none has it. */
static const char *choose(const char *part, const char *const *names, const char *const *texts, size_t count)
{
    for (size_t i = 0; part && i < count; i++) {
        if (strcmp(part, names[i]) == 0) {
            return texts[i];
        }
    }
    return NULL;
}

const char *reef_ffi_kind(const reef_context *context, const char *family, ptrdiff_t kind, const char *part)
{
    static const char *const names[] = {"name", "summary", "citation"};
    const reef_kind *found = find_kind(context, family, kind);
    const char *const texts[] = {found ? found->name : NULL, found ? found->summary : NULL,
                                 found ? found->citation : NULL};
    return choose(part, names, texts, 3);
}

unsigned reef_ffi_traits(const reef_context *context, const char *family, ptrdiff_t kind)
{
    const void *found = find_kind(context, family, kind);
    if (!found) {
        return 0;
    }
    switch (find_family(family)) {
    case REEF_FAMILY_RULE:
        return ((const reef_rule *)found)->traits;
    case REEF_FAMILY_ATTACK:
        return ((const reef_attack_kind *)found)->traits;
    case REEF_FAMILY_PROBLEM:
        return ((const reef_problem_kind *)found)->traits;
    default:
        return 0;
    }
}

int reef_ffi_is_mixer(const reef_context *context, ptrdiff_t rule)
{
    const void *found = reef_kind_at(context, REEF_FAMILY_RULE, rule);
    return found && ((const reef_rule *)found)->mix;
}

ptrdiff_t reef_ffi_fields(const reef_context *context, const char *family, ptrdiff_t kind)
{
    ptrdiff_t count = 0;
    const reef_kind *found = find_kind(context, family, kind);
    (void)reef_kind_common(find_family(family), found, &count);
    return found ? found->field_count + count : -1;
}

const char *reef_ffi_field(const reef_context *context, const char *family, ptrdiff_t kind, ptrdiff_t field,
                           const char *part)
{
    static const char *const names[] = {"name", "preset", "unit", "help"};
    const reef_field *found = find_field(context, family, kind, field);
    const char *const texts[] = {found ? found->name : NULL, found ? found->preset : NULL, found ? found->unit : NULL,
                                 found ? found->help : NULL};
    return choose(part, names, texts, 4);
}

int reef_ffi_field_type(const reef_context *context, const char *family, ptrdiff_t kind, ptrdiff_t field)
{
    const reef_field *found = find_field(context, family, kind, field);
    return found ? (int)found->type : -1;
}

double reef_ffi_field_limit(const reef_context *context, const char *family, ptrdiff_t kind, ptrdiff_t field, int high)
{
    const reef_field *found = find_field(context, family, kind, field);
    return !found ? 0 : high ? found->max : found->min;
}

const char *reef_ffi_field_word(const reef_context *context, const char *family, ptrdiff_t kind, ptrdiff_t field,
                                ptrdiff_t word)
{
    const reef_field *found = find_field(context, family, kind, field);
    for (ptrdiff_t i = 0; found && found->words && found->words[i]; i++) {
        if (i == word) {
            return found->words[i];
        }
    }
    return NULL;
}
