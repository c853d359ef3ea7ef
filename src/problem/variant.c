/* Specs of variants. */
#include "problem/variant.h"

#include "base/error.h"
#include "base/memory.h"

#include <string.h>

/* Long enough for a few paths. */
enum { SPEC_LENGTH_MAX = 8192, FIELDS_MAX = 32 };

static reef_status unknown(const rfi_variants *list, rfi_slice name, reef_error *error)
{
    char names[200] = "";
    size_t used = 0;
    const char *nearest = NULL;
    int best = 1000;
    for (ptrdiff_t i = 0; i < list->count; i++) {
        const char *known = list->at(i)->name;
        rfi_append(names, sizeof names, &used, "%s%s", i ? ", " : "", known);
        nearest = rfi_is_nearer(name, known, &best) ? known : nearest;
    }
    if (nearest) {
        return rfi_fail(error, REEF_E_NAME, "there is no %s '%.*s'; did you mean '%s'?", list->what, RFI_SHOW(name),
                        nearest);
    }
    return rfi_fail(error, REEF_E_NAME, "there is no %s '%.*s'; there are: %s", list->what, RFI_SHOW(name), names);
}

/* The message of rfi_fields_set, with the variant's fields and the common ones in one table. */
static reef_status unknown_key(const rfi_fields *own, const rfi_fields *common, rfi_slice key, reef_error *error)
{
    reef_field all[FIELDS_MAX];
    ptrdiff_t count = 0;
    for (; count < own->count && count < FIELDS_MAX; count++) {
        all[count] = own->fields[count];
    }
    for (ptrdiff_t i = 0; common && i < common->count && count < FIELDS_MAX; i++) {
        all[count++] = common->fields[i];
    }
    rfi_fields table = {own->owner, all, count};
    return rfi_fields_set(&table, NULL, key, (rfi_slice){"", 0}, error); /* no such key: nothing is set */
}

/* One key=value; *seen has a bit per field set so far, the common ones after the variant's own. */
static reef_status set_pair(const rfi_fields *own, void *params, const rfi_fields *common, void *common_params,
                            rfi_slice pair, unsigned long *seen, reef_error *error)
{
    rfi_slice value;
    bool found = false;
    rfi_slice key = rfi_trim(rfi_cut(pair, '=', &value, &found));
    value = rfi_trim(value);
    if (!found || key.length == 0) {
        return rfi_fail(error, REEF_E_SYNTAX, "%s: '%.*s' should read key=value", own->owner, RFI_SHOW(pair));
    }
    const reef_field *field = rfi_fields_find(own, key);
    const reef_field *shared = !field && common ? rfi_fields_find(common, key) : NULL;
    if (!field && !shared) {
        return unknown_key(own, common, key, error);
    }
    unsigned long bit = 1UL << (field ? field - own->fields : own->count + (shared - common->fields));
    if (*seen & bit) {
        return rfi_fail(error, REEF_E_SYNTAX, "%s: %.*s is given twice", own->owner, RFI_SHOW(key));
    }
    *seen |= bit;
    return field ? rfi_fields_set(own, params, key, value, error)
                 : rfi_fields_set(common, common_params, key, value, error);
}

static reef_status set_all(const rfi_fields *own, void *params, const rfi_fields *common, void *common_params,
                           rfi_slice list, bool more, reef_error *error)
{
    unsigned long seen = 0;
    reef_status status = rfi_fields_preset(own, params, error);
    if (status == REEF_OK && common) {
        status = rfi_fields_preset(common, common_params, error);
    }
    while (status == REEF_OK && more) {
        rfi_slice rest;
        rfi_slice pair = rfi_trim(rfi_cut(list, ',', &rest, &more));
        status = set_pair(own, params, common, common_params, pair, &seen, error);
        list = rest;
    }
    return status;
}

static const rfi_variant *find(const rfi_variants *list, rfi_slice name, ptrdiff_t *index)
{
    for (ptrdiff_t i = 0; i < list->count; i++) {
        if (rfi_equals(name, list->at(i)->name)) {
            *index = i;
            return list->at(i);
        }
    }
    return NULL;
}

reef_status rfi_variant_parse(const reef_context *context, const rfi_variants *list, const char *spec,
                              const rfi_fields *common, void *common_params, rfi_choice *choice, reef_error *error)
{
    rfi_slice pairs;
    bool has_pairs = false;
    rfi_choice found = {0};
    if (!spec || strlen(spec) > SPEC_LENGTH_MAX) {
        return rfi_fail(error, REEF_E_ARG, "a %s needs a spec of up to %d characters", list->what, SPEC_LENGTH_MAX);
    }
    rfi_slice name = rfi_trim(rfi_cut((rfi_slice){spec, strlen(spec)}, ':', &pairs, &has_pairs));
    const rfi_variant *variant = find(list, name, &found.index);
    if (!variant) {
        return unknown(list, name, error);
    }
    size_t size = variant->params_size ? variant->params_size : 1;
    found.params = rfi_allocate(context, size);
    if (!found.params) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the %s '%s'", list->what, variant->name);
    }
    memset(found.params, 0, size);
    rfi_fields own = {variant->name, variant->fields, variant->field_count};
    reef_status status = set_all(&own, found.params, common, common_params, pairs, has_pairs, error);
    if (status != REEF_OK) {
        rfi_choice_free(context, &found);
        return status;
    }
    *choice = found;
    return REEF_OK;
}

void rfi_choice_free(const reef_context *context, rfi_choice *choice)
{
    rfi_release(context, choice->params);
    choice->params = NULL;
}
