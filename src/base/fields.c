/* Field tables: text -> parameter structs -> text. */
#include "base/fields.h"

#include "base/error.h"
#include "base/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static int find_word(const char *const *words, rfi_slice text)
{
    for (int i = 0; words && words[i]; i++) {
        if (rfi_equals(text, words[i])) {
            return i;
        }
    }
    return -1;
}

static void append_words(const char *const *words, char *buffer, size_t size, size_t *used)
{
    for (int i = 0; words && words[i]; i++) {
        rfi_append(buffer, size, used, "%s%s", i ? "|" : "", words[i]);
    }
}

/* "what a field takes", for messages. */
static void describe(const reef_field *field, char *buffer, size_t size)
{
    size_t used = 0;
    bool limited = field->min != 0 || field->max != 0;
    switch (field->type) {
    case REEF_FIELD_BOOL:
        rfi_append(buffer, size, &used, "true or false");
        return;
    case REEF_FIELD_MALICIOUS:
        rfi_append(buffer, size, &used, "a count (4), a fraction below one half (0.25 or 25%%), or max");
        return;
    case REEF_FIELD_TEXT:
    case REEF_FIELD_REST:
        rfi_append(buffer, size, &used, "up to %d characters, none of them a control character", REEF_TEXT_SIZE - 1);
        return;
    case REEF_FIELD_WORD:
        rfi_append(buffer, size, &used, "one of ");
        append_words(field->words, buffer, size, &used);
        return;
    case REEF_FIELD_INT:
    case REEF_FIELD_REAL:
        break;
    }
    rfi_append(buffer, size, &used, field->type == REEF_FIELD_INT ? "a whole number" : "a number");
    if (limited) {
        rfi_append(buffer, size, &used, " from %g", field->min);
    }
    if (limited && field->max < 1e300) {
        rfi_append(buffer, size, &used, " to %g", field->max);
    }
    if (field->words) {
        rfi_append(buffer, size, &used, ", or ");
        append_words(field->words, buffer, size, &used);
    }
}

static reef_status refuse(const rfi_fields *table, const reef_field *field, rfi_slice value, reef_status status,
                          reef_error *error)
{
    char allowed[160];
    describe(field, allowed, sizeof allowed);
    return rfi_fail(error, status, "%s: %s = '%.*s' is not allowed; it takes %s", table->owner, field->name,
                    RFI_SHOW(value), allowed);
}

static bool in_range(const reef_field *field, double number)
{
    return (field->min == 0 && field->max == 0) || (number >= field->min && number <= field->max);
}

static bool read_bool(rfi_slice text, bool *flag)
{
    static const char *const yes[] = {"true", "yes", "on", "1", NULL};
    static const char *const no[] = {"false", "no", "off", "0", NULL};
    *flag = find_word(yes, text) >= 0;
    return *flag || find_word(no, text) >= 0;
}

/* A count is a whole number without point or percent sign; anything else is a fraction. */
static bool read_malicious(rfi_slice text, reef_malicious *malicious_count)
{
    double number = 0;
    if (rfi_equals(text, "max")) {
        *malicious_count = (reef_malicious){REEF_MALICIOUS_MAX, 0};
        return true;
    }
    bool percent = text.length > 1 && text.text[text.length - 1] == '%';
    rfi_slice digits = {text.text, text.length - (percent ? 1 : 0)};
    if (!rfi_read_real(digits, &number) || number < 0 || signbit(number)) {
        return false;
    }
    bool fraction = percent || memchr(digits.text, '.', digits.length) || memchr(digits.text, 'e', digits.length);
    if (percent) {
        number /= 100;
    }
    *malicious_count = (reef_malicious){fraction ? REEF_MALICIOUS_FRACTION : REEF_MALICIOUS_COUNT, number};
    return fraction ? number < 0.5 : number <= 1e9 && number == floor(number);
}

static bool read_text(rfi_slice text, char *place)
{
    if (text.length >= REEF_TEXT_SIZE) {
        return false;
    }
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.text[i];
        if (c < ' ' || c == 0x7F) {
            return false;
        }
    }
    memcpy(place, text.text, text.length);
    place[text.length] = '\0';
    return true;
}

/* One more of the values that a rest gathers. */
static bool add_text(rfi_slice text, char *place)
{
    char one[REEF_TEXT_SIZE];
    size_t used = strlen(place);
    size_t comma = used > 0 && text.length > 0 ? 1 : 0;
    if (!read_text(text, one) || used + comma + text.length >= REEF_TEXT_SIZE) {
        return false;
    }
    memcpy(place + used, ",", comma);
    memcpy(place + used + comma, one, text.length + 1);
    return true;
}

static reef_status set_number(const rfi_fields *table, const reef_field *field, void *place, rfi_slice value,
                              reef_error *error)
{
    double number = 0;
    bool whole = field->type == REEF_FIELD_INT;
    int word = find_word(field->words, value);
    if (word >= 0) {
        if (whole) {
            *(int64_t *)place = -1 - word;
        } else {
            *(double *)place = NAN;
        }
        return REEF_OK;
    }
    if (!rfi_read_real(value, &number) || (whole && (number != floor(number) || fabs(number) > 9e15))) {
        return refuse(table, field, value, REEF_E_SYNTAX, error);
    }
    if (!in_range(field, number)) {
        return refuse(table, field, value, REEF_E_RANGE, error);
    }
    if (whole) {
        *(int64_t *)place = (int64_t)number;
    } else {
        *(double *)place = number;
    }
    return REEF_OK;
}

static reef_status set_field(const rfi_fields *table, const reef_field *field, void *params, rfi_slice value,
                             reef_error *error)
{
    void *place = (char *)params + field->offset;
    bool good = false;
    switch (field->type) {
    case REEF_FIELD_REAL:
    case REEF_FIELD_INT:
        return set_number(table, field, place, value, error);
    case REEF_FIELD_BOOL:
        good = read_bool(value, place);
        break;
    case REEF_FIELD_MALICIOUS:
        good = read_malicious(value, place);
        break;
    case REEF_FIELD_TEXT:
        good = read_text(value, place);
        break;
    case REEF_FIELD_REST:
        good = add_text(value, place);
        break;
    case REEF_FIELD_WORD: {
        int word = find_word(field->words, value);
        good = word >= 0;
        if (good) {
            *(int *)place = word;
        }
        break;
    }
    }
    return good ? REEF_OK : refuse(table, field, value, REEF_E_RANGE, error);
}

const reef_field *rfi_fields_find(const rfi_fields *table, rfi_slice name)
{
    for (ptrdiff_t i = 0; i < table->count; i++) {
        if (table->fields[i].type != REEF_FIELD_REST && rfi_equals(name, table->fields[i].name)) {
            return &table->fields[i];
        }
    }
    return NULL;
}

const reef_field *rfi_fields_rest(const rfi_fields *table)
{
    ptrdiff_t i = 0;
    while (i < table->count && table->fields[i].type != REEF_FIELD_REST) {
        i++;
    }
    return i < table->count ? &table->fields[i] : NULL;
}

reef_status rfi_fields_gather(const rfi_fields *table, void *params, const reef_field *rest, rfi_slice pair,
                              reef_error *error)
{
    return set_field(table, rest, params, pair, error);
}

static reef_status unknown_field(const rfi_fields *table, rfi_slice name, reef_error *error)
{
    char names[200] = "";
    size_t used = 0;
    const char *nearest = NULL;
    int best = 1000;
    for (ptrdiff_t i = 0; i < table->count; i++) {
        const char *known = table->fields[i].name;
        rfi_append(names, sizeof names, &used, "%s%s", i ? ", " : "", known);
        if (rfi_is_nearer(name, known, &best)) {
            nearest = known;
        }
    }
    if (nearest) {
        return rfi_fail(error, REEF_E_NAME, "%s has no parameter '%.*s'; did you mean '%s'? It takes: %s", table->owner,
                        RFI_SHOW(name), nearest, names);
    }
    return rfi_fail(error, REEF_E_NAME, "%s has no parameter '%.*s'; it takes: %s", table->owner, RFI_SHOW(name),
                    table->count ? names : "none");
}

reef_status rfi_fields_set(const rfi_fields *table, void *params, rfi_slice name, rfi_slice value, reef_error *error)
{
    const reef_field *field = rfi_fields_find(table, name);
    if (!field) {
        return unknown_field(table, name, error);
    }
    return set_field(table, field, params, value, error);
}

reef_status rfi_fields_preset(const rfi_fields *table, void *params, reef_error *error)
{
    for (ptrdiff_t i = 0; i < table->count; i++) {
        const reef_field *field = &table->fields[i];
        rfi_slice preset = {field->preset, strlen(field->preset)};
        reef_status status = set_field(table, field, params, preset, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    return REEF_OK;
}

static void append_real(double number, char *buffer, size_t size, size_t *used)
{
    char text[RFI_REAL_SIZE];
    rfi_print_real(number, text);
    rfi_append(buffer, size, used, "%s", text);
}

static void print_malicious(reef_malicious malicious_count, char *buffer, size_t size, size_t *used)
{
    if (malicious_count.kind == REEF_MALICIOUS_MAX) {
        rfi_append(buffer, size, used, "max");
        return;
    }
    if (malicious_count.kind == REEF_MALICIOUS_COUNT) {
        rfi_append(buffer, size, used, "%.0f", malicious_count.value);
        return;
    }
    append_real(malicious_count.value, buffer, size, used);
    /* a point keeps a fraction that prints as a whole number (0) a fraction */
    if (malicious_count.value == 0) {
        rfi_append(buffer, size, used, ".0");
    }
}

void rfi_field_print(const reef_field *field, const void *params, char *buffer, size_t size, size_t *used)
{
    const void *place = (const char *)params + field->offset;
    switch (field->type) {
    case REEF_FIELD_BOOL:
        rfi_append(buffer, size, used, "%s", *(const bool *)place ? "true" : "false");
        break;
    case REEF_FIELD_WORD:
        rfi_append(buffer, size, used, "%s", field->words[*(const int *)place]);
        break;
    case REEF_FIELD_MALICIOUS:
        print_malicious(*(const reef_malicious *)place, buffer, size, used);
        break;
    case REEF_FIELD_TEXT:
    case REEF_FIELD_REST:
        rfi_append(buffer, size, used, "%s", (const char *)place);
        break;
    case REEF_FIELD_INT: {
        int64_t number = *(const int64_t *)place;
        if (number < 0 && field->words) {
            rfi_append(buffer, size, used, "%s", field->words[-1 - number]);
        } else {
            append_real((double)number, buffer, size, used);
        }
        break;
    }
    case REEF_FIELD_REAL: {
        double number = *(const double *)place;
        if (isnan(number)) {
            rfi_append(buffer, size, used, "%s", field->words[0]);
        } else {
            append_real(number, buffer, size, used);
        }
        break;
    }
    }
}
