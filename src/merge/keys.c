/* Which keys two small JSON files differ in: config.json of two sites may differ in nothing but the path that one of them was trained at, or in what
 * makes it another model. */
#include "io/json.h"
#include "io/lines.h"
#include "merge/merge.h"

#include <string.h>

/* Texts are walked once per key, and sites may send any: so many keys, and bytes, are looked at. */
enum { KEYS_MAX = 100, BYTES_MAX = 1 << 18, KEYS_SHOWN = 3 };

/* A value as it is written. */
typedef struct field {
    rfi_slice key, value;
} field;

/* At the first field of an object. */
static bool begin(const rfi_file *file, rfi_json *c)
{
    const char *text = (const char *)file->bytes;
    *c = (rfi_json){.name = "", .start = text, .at = text, .end = text + file->size};
    return file->size <= BYTES_MAX && rfi_json_take(c, '{');
}

/* The field that comes next; false at the end, or where the text is not what it should be. */
static bool take_field(rfi_json *c, field *f)
{
    rfi_json_blanks(c);
    if (!rfi_json_word(c, &f->key) || !rfi_json_take(c, ':')) {
        return false;
    }
    rfi_json_blanks(c);
    f->value.text = c->at;
    if (rfi_json_skip(c) != REEF_OK) {
        return false;
    }
    f->value.length = (size_t)(c->at - f->value.text);
    (void)rfi_json_take(c, ',');
    return true;
}

/* Whether a file has this key, with this value unless that is NULL. */
static bool has_field(const rfi_file *file, rfi_slice key, const rfi_slice *value)
{
    rfi_json c;
    field f;
    bool found = false;
    bool open = begin(file, &c);
    for (int n = 0; open && n < KEYS_MAX && !found && take_field(&c, &f); n++) {
        found = f.key.length == key.length && memcmp(f.key.text, key.text, key.length) == 0 &&
                (!value || (f.value.length == value->length && memcmp(f.value.text, value->text, value->length) == 0));
    }
    return found;
}

static void add(rfi_key_list *list, rfi_slice key)
{
    char shown[RFI_SHOWN_SIZE];
    static const char *const scales[] = {"lora_alpha", "use_rslora", "alpha_pattern", "rank_pattern"};
    if (list->count++ < KEYS_SHOWN) {
        rfi_append(list->text, sizeof list->text, &list->used, "%s'%s'", list->count > 1 ? ", " : "",
                   rfi_shown(key, shown));
    } else if (list->count == KEYS_SHOWN + 1) {
        rfi_append(list->text, sizeof list->text, &list->used, ", ...");
    }
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        list->scale = list->scale || rfi_equals(key, scales[i]);
    }
}

rfi_key_list rfi_differing_keys(const rfi_file *one, const rfi_file *other)
{
    rfi_json c;
    field f;
    rfi_json rest;
    rfi_key_list list = {0};
    bool objects = begin(one, &c) && begin(other, &rest);
    for (int n = 0; objects && n < KEYS_MAX && take_field(&c, &f); n++) {
        if (!has_field(other, f.key, &f.value)) {
            add(&list, f.key);
        }
    }
    for (int n = 0; objects && n < KEYS_MAX && take_field(&rest, &f); n++) {
        if (!has_field(one, f.key, NULL)) {
            add(&list, f.key);
        }
    }
    return list;
}
