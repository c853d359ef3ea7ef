/* Spec strings: name:key=value,... -> kind and parameters, and back. */
#include "base/spec.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* In all targets together: there is a bit for each. */
enum { FIELDS_MAX = 64 };
/* Names that a message shows; more are left to `reef list`. */
enum { SHOWN_MAX = 8 };

reef_status rfi_spec_text(const char *spec, rfi_slice *text, reef_error *error)
{
    *text = (rfi_slice){spec, strlen(spec)};
    if (text->length > RFI_SPEC_LENGTH_MAX) {
        return rfi_fail(error, REEF_E_SYNTAX, "the spec has %zu characters; at most %d are read", text->length,
                        RFI_SPEC_LENGTH_MAX);
    }
    return REEF_OK;
}

/* Cuts the first key=value off the list, at the comma behind its value; *more: there was one. False if parentheses do not match. */
static bool cut_pair(rfi_slice list, rfi_slice *pair, rfi_slice *rest, bool *more)
{
    rfi_slice value;
    rfi_slice after = {NULL, 0};
    bool found = false;
    *pair = rfi_trim(rfi_cut(list, ',', rest, more));
    (void)rfi_cut(*pair, '=', &value, &found);
    value = rfi_trim(value);
    if (value.length == 0 || value.text[0] != '(') {
        return true;
    }
    const char *end = list.text + list.length;
    const char *at = value.text;
    ptrdiff_t depth = 0;
    for (; at < end; at++) {
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        if (depth == 0) {
            break;
        }
    }
    if (depth != 0) {
        return false;
    }
    at++;
    rfi_slice blank = rfi_trim(rfi_cut((rfi_slice){at, (size_t)(end - at)}, ',', &after, more));
    *rest = after;
    *pair = (rfi_slice){pair->text, (size_t)(at - pair->text)};
    return blank.length == 0;
}

/* Without the parentheses around it, if there are some. */
static rfi_slice unwrap(rfi_slice value)
{
    bool wrapped = value.length >= 2 && value.text[0] == '(';
    return wrapped ? rfi_trim((rfi_slice){value.text + 1, value.length - 2}) : value;
}

/* Says which fields there are, those of all targets that may be set. */
static reef_status unknown_key(const rfi_target *targets, ptrdiff_t count, rfi_slice key, reef_error *error)
{
    reef_field all[FIELDS_MAX];
    ptrdiff_t used = 0;
    for (ptrdiff_t t = 0; t < count; t++) {
        for (ptrdiff_t i = 0; !targets[t].refusal && i < targets[t].table.count && used < FIELDS_MAX; i++) {
            all[used++] = targets[t].table.fields[i];
        }
    }
    rfi_fields table = {targets[0].table.owner, all, used};
    return rfi_fields_set(&table, NULL, key, (rfi_slice){"", 0}, error); /* no such key: nothing is set */
}

/* One key=value; *seen has a bit per field set so far, counted through all targets. */
static reef_status set_one(const rfi_target *targets, ptrdiff_t count, rfi_slice pair, uint64_t *seen,
                           reef_error *error)
{
    rfi_slice value;
    bool found = false;
    rfi_slice key = rfi_trim(rfi_cut(pair, '=', &value, &found));
    value = rfi_trim(value);
    const char *owner = targets[0].table.owner;
    if (!found || key.length == 0 || value.length == 0) {
        return rfi_fail(error, REEF_E_SYNTAX, "%s: '%.*s' should read key=value", owner, RFI_SHOW(pair));
    }
    const reef_field *field = NULL;
    ptrdiff_t before = 0; /* fields of the targets passed */
    ptrdiff_t t = 0;
    while (t < count && !(field = rfi_fields_find(&targets[t].table, key))) {
        before += targets[t].table.count;
        t++;
    }
    if (!field) {
        return unknown_key(targets, count, key, error);
    }
    if (targets[t].refusal) {
        return rfi_fail(error, REEF_E_SYNTAX, "%s= %s, not to %s", field->name, targets[t].refusal, owner);
    }
    uint64_t bit = UINT64_C(1) << (before + (field - targets[t].table.fields));
    if (*seen & bit) {
        return rfi_fail(error, REEF_E_SYNTAX, "%s: %.*s is given twice", owner, RFI_SHOW(key));
    }
    *seen |= bit;
    return rfi_fields_set(&targets[t].table, targets[t].params, key, unwrap(value), error);
}

reef_status rfi_spec_set(const rfi_target *targets, ptrdiff_t count, rfi_slice list, reef_error *error)
{
    uint64_t seen = 0;
    bool more = true;
    while (more) {
        rfi_slice pair;
        rfi_slice rest;
        if (!cut_pair(list, &pair, &rest, &more)) {
            return rfi_fail(error, REEF_E_SYNTAX, "%s: the parentheses around the value in '%.*s' do not match",
                            targets[0].table.owner, RFI_SHOW(pair));
        }
        reef_status status = set_one(targets, count, pair, &seen, error);
        if (status != REEF_OK) {
            return status;
        }
        list = rest;
    }
    return REEF_OK;
}

ptrdiff_t rfi_catalogue_find(const rfi_catalogue *catalogue, rfi_slice name)
{
    for (ptrdiff_t i = 0; i < catalogue->count; i++) {
        if (rfi_equals(name, catalogue->name(catalogue->user, i))) {
            return i;
        }
    }
    return -1;
}

reef_status rfi_catalogue_unknown(const rfi_catalogue *catalogue, rfi_slice name, reef_error *error)
{
    const char *nearest = NULL;
    char names[200] = "";
    size_t used = 0;
    int best = 1000;
    for (ptrdiff_t i = 0; i < catalogue->count; i++) {
        const char *known = catalogue->name(catalogue->user, i);
        rfi_append(names, sizeof names, &used, "%s%s", i ? ", " : "", known);
        if (rfi_is_nearer(name, known, &best)) {
            nearest = known;
        }
    }
    char hint[80] = "";
    if (nearest) {
        (void)snprintf(hint, sizeof hint, " did you mean '%.40s'?", nearest);
    }
    if (catalogue->count <= SHOWN_MAX) {
        return rfi_fail(error, REEF_E_NAME, "there is no %s '%.*s';%s there are: %s", catalogue->what, RFI_SHOW(name),
                        hint, names);
    }
    return rfi_fail(error, REEF_E_NAME, "there is no %s '%.*s';%s `reef list` names all of them", catalogue->what,
                    RFI_SHOW(name), hint);
}

/* Presets, then the list; params and common are set. */
static reef_status fill(const reef_kind *kind, void *params, const rfi_target *common, bool has_list, rfi_slice list,
                        reef_error *error)
{
    rfi_target targets[2] = {{{kind->name, kind->fields, kind->field_count}, params, NULL}};
    reef_status status = rfi_fields_preset(&targets[0].table, params, error);
    if (status == REEF_OK && common) {
        targets[1] = *common;
        status = rfi_fields_preset(&common->table, common->params, error);
    }
    return status == REEF_OK && has_list ? rfi_spec_set(targets, common ? 2 : 1, list, error) : status;
}

reef_status rfi_spec_read(const reef_context *context, const rfi_catalogue *catalogue, const char *spec,
                          const rfi_target *common, ptrdiff_t *index, void **params, reef_error *error)
{
    rfi_slice text;
    rfi_slice list;
    bool has_list = false;
    if (!spec) {
        return rfi_fail(error, REEF_E_ARG, "a %s needs a spec", catalogue->what);
    }
    reef_status status = rfi_spec_text(spec, &text, error);
    if (status != REEF_OK) {
        return status;
    }
    rfi_slice name = rfi_trim(rfi_cut(text, ':', &list, &has_list));
    if (name.length == 0) {
        return rfi_fail(error, REEF_E_SYNTAX, "a %s is missing; a spec reads name:key=value,...", catalogue->what);
    }
    *index = rfi_catalogue_find(catalogue, name);
    if (*index < 0) {
        return rfi_catalogue_unknown(catalogue, name, error);
    }
    const reef_kind *kind = catalogue->kind(catalogue->user, *index);
    size_t bytes = kind->params_size ? kind->params_size : 1;
    void *made = rfi_allocate(context, bytes);
    if (!made) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %s '%s'", catalogue->what, kind->name);
    }
    memset(made, 0, bytes);
    status = fill(kind, made, common, has_list, list, error);
    if (status != REEF_OK) {
        rfi_release(context, made);
        return status;
    }
    *params = made;
    return REEF_OK;
}

/* Texts that would not be read back as they are go into parentheses. */
static void print_pair(char mark, const reef_field *field, const void *params, char *text, size_t size, size_t *used)
{
    bool wrap = false;
    if (field->type == REEF_FIELD_TEXT) {
        const char *value = (const char *)params + field->offset;
        wrap = value[0] == '\0' || value[0] == '(' || strchr(value, ',');
    }
    rfi_append(text, size, used, "%c%s=%s", mark, field->name, wrap ? "(" : "");
    rfi_field_print(field, params, text, size, used);
    rfi_append(text, size, used, "%s", wrap ? ")" : "");
}

void rfi_spec_print(const reef_kind *kind, const void *params, const rfi_target *common, char *text, size_t size,
                    size_t *used)
{
    char mark = ':';
    rfi_append(text, size, used, "%s", kind->name);
    for (ptrdiff_t i = 0; i < kind->field_count; i++, mark = ',') {
        print_pair(mark, &kind->fields[i], params, text, size, used);
    }
    for (ptrdiff_t i = 0; common && i < common->table.count; i++, mark = ',') {
        print_pair(mark, &common->table.fields[i], common->params, text, size, used);
    }
}
