/* Spec strings: name:key=value,... -> kind and parameters, and back. */
#include "base/spec.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdint.h>
#include <string.h>

/* In all targets together: there is a bit for each. */
enum { FIELDS_MAX = 64 };

/* A table of fields and the struct they are in. A field of a table with `refusal` exists, but not here: "nan= <refusal>". */
typedef struct target {
    rfi_fields table;
    void *params;
    const char *refusal; /* or NULL */
} target;

reef_status rfi_spec_text(const char *spec, rfi_slice *text, reef_error *error)
{
    *text = (rfi_slice){spec, strlen(spec)};
    if (text->length > RFI_SPEC_LENGTH_MAX) {
        return rfi_fail(error, REEF_E_SYNTAX, "the text has %zu characters; at most %d are allowed", text->length,
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
static reef_status unknown_key(const target *targets, ptrdiff_t count, rfi_slice key, reef_error *error)
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
static reef_status set_one(const target *targets, ptrdiff_t count, rfi_slice pair, uint64_t *seen, reef_error *error)
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
    const reef_field *rest = field ? NULL : rfi_fields_rest(&targets[0].table);
    if (rest) {
        return rfi_fields_gather(&targets[0].table, targets[0].params, rest, pair, error);
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

/* Sets the fields that `list` (key=value,...) names, each at most once; names are looked up in the targets in turn. */
static reef_status set_all(const target *targets, ptrdiff_t count, rfi_slice list, reef_error *error)
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

reef_status rfi_spec_find(const reef_context *context, const rfi_family *family, rfi_slice text, const reef_kind **kind,
                          rfi_slice *list, reef_error *error)
{
    bool has_list = false;
    rfi_slice name = rfi_trim(rfi_cut(text, ':', list, &has_list));
    if (!has_list) {
        *list = (rfi_slice){NULL, 0};
    }
    if (name.length == 0) {
        return rfi_fail(error, REEF_E_SYNTAX, "the name of a %s is missing; write name:key=value,...", family->what);
    }
    *kind = rfi_kind_find(family, context, name);
    if (!*kind) {
        (void)rfi_kind_unknown(family, context, name, error);
        return REEF_E_NAME;
    }
    return REEF_OK;
}

static reef_status allocate(const reef_context *context, const rfi_family *family, const reef_kind *kind, void **params,
                            reef_error *error)
{
    size_t bytes = kind->params_size ? kind->params_size : 1;
    *params = rfi_allocate(context, bytes);
    if (!*params) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %s '%s'", family->what, kind->name);
    }
    memset(*params, 0, bytes);
    return REEF_OK;
}

/* Releases *params after a failure. */
static reef_status finish(const reef_context *context, reef_status status, void **params)
{
    if (status != REEF_OK) {
        rfi_release(context, *params);
        *params = NULL;
    }
    return status;
}

reef_status rfi_spec_fill(const reef_context *context, const rfi_family *family, const reef_kind *kind, rfi_slice list,
                          void *common, void **params, reef_error *error)
{
    reef_status status = allocate(context, family, kind, params, error);
    if (status != REEF_OK) {
        return status;
    }
    bool lacks = family->lacks_common && family->lacks_common(kind);
    target targets[2] = {
        {{kind->name, kind->fields, kind->field_count}, *params, NULL},
        {family->common, common, lacks ? family->lacks_text : NULL},
    };
    status = rfi_fields_preset(&targets[0].table, *params, error);
    if (status == REEF_OK && common && !lacks) {
        status = rfi_fields_preset(&family->common, common, error);
    }
    if (status == REEF_OK && list.text) {
        status = set_all(targets, common ? 2 : 1, list, error);
    }
    return finish(context, status, params);
}

reef_status rfi_spec_read(const reef_context *context, const rfi_family *family, const char *spec, void *common,
                          const reef_kind **kind, void **params, reef_error *error)
{
    rfi_slice text;
    rfi_slice list;
    if (!spec) {
        return rfi_fail(error, REEF_E_ARG, "a %s needs a spec", family->what);
    }
    reef_status status = rfi_spec_text(spec, &text, error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_spec_find(context, family, text, kind, &list, error);
    if (status != REEF_OK) {
        return status;
    }
    return rfi_spec_fill(context, family, *kind, list, common, params, error);
}

reef_status rfi_spec_copy(const reef_context *context, const rfi_family *family, const reef_kind *kind,
                          const void *given, void **params, reef_error *error)
{
    reef_status status = allocate(context, family, kind, params, error);
    if (status == REEF_OK && given) {
        memcpy(*params, given, kind->params_size);
    } else if (status == REEF_OK) {
        rfi_fields table = {kind->name, kind->fields, kind->field_count};
        status = rfi_fields_preset(&table, *params, error);
    }
    return finish(context, status, params);
}

/* Texts that would not be read back as they are go into parentheses. */
static void print_pair(char mark, const reef_field *field, const void *params, char *text, size_t size, size_t *used)
{
    bool wrap = false;
    if (field->type == REEF_FIELD_REST) { /* its pairs have their own keys */
        const char *pairs = (const char *)params + field->offset;
        rfi_append(text, size, used, "%.*s%s", pairs[0] ? 1 : 0, &mark, pairs);
        return;
    }
    if (field->type == REEF_FIELD_TEXT) {
        const char *value = (const char *)params + field->offset;
        wrap = value[0] == '\0' || value[0] == '(' || strchr(value, ',');
    }
    rfi_append(text, size, used, "%c%s=%s", mark, field->name, wrap ? "(" : "");
    rfi_field_print(field, params, text, size, used);
    rfi_append(text, size, used, "%s", wrap ? ")" : "");
}

void rfi_spec_print(const rfi_family *family, const reef_kind *kind, const void *params, const void *common, char *text,
                    size_t size, size_t *used)
{
    char mark = ':';
    rfi_fields shared = rfi_kind_common(family, kind);
    rfi_append(text, size, used, "%s", kind->name);
    for (ptrdiff_t i = 0; i < kind->field_count; i++, mark = ',') {
        print_pair(mark, &kind->fields[i], params, text, size, used);
    }
    for (ptrdiff_t i = 0; common && i < shared.count; i++, mark = ',') {
        print_pair(mark, &shared.fields[i], common, text, size, used);
    }
}
