/* Reading run files. */
#include "net/runfile.h"

#include "base/error.h"
#include "base/fields.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"
#include "experiment/config/experiment.h"
#include "io/file.h"
#include "net/keys.h"
#include "net/runfile_leaves.h"
#include "net/runfile_text.h"
#include "net/seal.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define TEXT(struct_, member_, preset_, help_)                                                                         \
    {                                                                                                                  \
        .name = #member_, .type = REEF_FIELD_TEXT, .offset = offsetof(struct_, member_), .preset = (preset_),          \
        .unit = "", .help = (help_)                                                                                    \
    }
#define NUMBER(struct_, type_, member_, preset_, min_, max_, help_)                                                    \
    {                                                                                                                  \
        .name = #member_, .type = (type_), .offset = offsetof(struct_, member_), .preset = (preset_), .min = (min_),   \
        .max = (max_), .unit = "", .help = (help_)                                                                     \
    }

static const reef_field term_fields[] = {
    NUMBER(rfi_terms, REEF_FIELD_INT, epoch, "1", 1, 4294967295.0, "which file of this run it is"),
    NUMBER(rfi_terms, REEF_FIELD_INT, from, "0", 0, 281474976710655.0, "first round of the epoch"),
    NUMBER(rfi_terms, REEF_FIELD_INT, seed, "0", 0, 9007199254740992.0, "seed of random graphs"),
    NUMBER(rfi_terms, REEF_FIELD_INT, stale, "1", 0, 2, "rounds that a model may be old"),
    NUMBER(rfi_terms, REEF_FIELD_REAL, malicious, "0.3333", 0, 0.4999999, "most weight that may be malicious"),
    NUMBER(rfi_terms, REEF_FIELD_REAL, largest, "1e6", 1e-300, 1e300, "magnitude beyond which a model is refused"),
    NUMBER(rfi_terms, REEF_FIELD_BOOL, seal, "false", 0, 0, "models are encrypted for those who hear their sender"),
    TEXT(rfi_terms, graph, "", "who hears whom"),
    TEXT(rfi_terms, links, "", "who hears whom, by name"),
    TEXT(rfi_terms, weights, "metropolis", "weights of the links"),
    TEXT(rfi_terms, rule, "", "rule that combines models"),
    TEXT(rfi_terms, strategy, "", "how agents adapt"),
};
static const rfi_fields term_table = {"a run file", term_fields, RFI_COUNT(term_fields)};

static const reef_field test_fields[] = {
    TEXT(rfi_rehearsal, problem, "", "what agents learn"),
    TEXT(rfi_rehearsal, attack, "", "what malicious agents send"),
    TEXT(rfi_rehearsal, malicious, "", "numbers of the malicious agents"),
    NUMBER(rfi_rehearsal, REEF_FIELD_REAL, two_faced, "0", -1e6, 1e6,
           "what malicious agents add at every second broker"),
    NUMBER(rfi_rehearsal, REEF_FIELD_REAL, late, "0", 0, 1, "share of the deadline before malicious agents send"),
    NUMBER(rfi_rehearsal, REEF_FIELD_REAL, drop, "0", 0, 0.95, "share of messages that are lost"),
    NUMBER(rfi_rehearsal, REEF_FIELD_BOOL, sync, "true", 0, 0, "the journal is flushed to the disk"),
    NUMBER(rfi_rehearsal, REEF_FIELD_BOOL, wait, "false", 0, 0, "rounds wait for everybody until the deadline"),
    NUMBER(rfi_rehearsal, REEF_FIELD_INT, rounds, "0", 0, 281474976710655.0, "rounds after which agents end"),
    NUMBER(rfi_rehearsal, REEF_FIELD_INT, every, "0", 0, 281474976710655.0, "rounds between records"),
};
static const rfi_fields test_table = {"test", test_fields, RFI_COUNT(test_fields)};

/* ---- single values ---- */

static reef_status check_scalar(const rfi_yaml_node *node, reef_error *error)
{
    if (node->type != RFI_YAML_SCALAR) {
        return rfi_fail_at(error, REEF_E_FORMAT, node, false, "%s takes a single value, not %s", node->key,
                           rfi_yaml_type_text(node->type));
    }
    return REEF_OK;
}

/* An entry that is a line of a field table. */
static reef_status read_field(const rfi_fields *table, void *params, const rfi_yaml_node *node, reef_error *error)
{
    reef_error why = {REEF_OK, ""};
    reef_status status = check_scalar(node, error);
    if (status != REEF_OK) {
        return status;
    }
    const rfi_slice key = {node->key, strlen(node->key)};
    if (rfi_fields_set(table, params, key, (rfi_slice){node->text, node->length}, &why) != REEF_OK) {
        return rfi_fail_at(error, REEF_E_FORMAT, node, false, "%s", why.text);
    }
    return REEF_OK;
}

static reef_status read_format(rfi_runfile *file, const rfi_yaml_node *node, const char *text, reef_error *error)
{
    (void)file;
    return strcmp(text, "1") == 0 ? REEF_OK
                                  : rfi_fail_at(error, REEF_E_FORMAT, node, false,
                                                "run files of format %.20s are not known here; this is format 1", text);
}

static reef_status read_token(rfi_runfile *file, const rfi_yaml_node *node, const char *text, reef_error *error)
{
    if (!rfi_is_token(text)) {
        return rfi_fail_at(error, REEF_E_FORMAT, node, false,
                           "a run is named by 1 to 32 letters a-z, digits and dashes");
    }
    (void)snprintf(file->run, sizeof file->run, "%s", text);
    return REEF_OK;
}

static reef_status read_id(rfi_runfile *file, const rfi_yaml_node *node, const char *text, reef_error *error)
{
    return rfi_read_hex_bytes(text, node->length, file->id, sizeof file->id)
               ? REEF_OK
               : rfi_fail_at(error, REEF_E_FORMAT, node, false, "an id is 32 lower-case hexadecimal digits");
}

static reef_status read_coordinator(rfi_runfile *file, const rfi_yaml_node *node, const char *text, reef_error *error)
{
    return rfi_key_parse(file->coordinator, RFI_LETTER_IDENTITY, text, node->length)
               ? REEF_OK
               : rfi_fail_at(error, REEF_E_FORMAT, node, false, "not an identity (R and 55 more letters and digits)");
}

static reef_status read_deadline(rfi_runfile *file, const rfi_yaml_node *node, const char *text, reef_error *error)
{
    static const rfi_unit units[] = {{"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}};
    bool read = rfi_read_quantity(text, units, sizeof units / sizeof units[0], &file->deadline);
    return read && file->deadline >= 0.01 && file->deadline <= 86400
               ? REEF_OK
               : rfi_fail_at(error, REEF_E_FORMAT, node, false, "a deadline is 10ms to 24h, for instance 30s");
}

static reef_status read_chunk(rfi_runfile *file, const rfi_yaml_node *node, const char *text, reef_error *error)
{
    static const rfi_unit units[] = {{"KiB", 1024}, {"MiB", 1048576}};
    double bytes = 0;
    bool read = rfi_read_quantity(text, units, sizeof units / sizeof units[0], &bytes);
    if (!read || bytes != floor(bytes) || !(bytes >= (double)RFI_CHUNK_MIN && bytes <= (double)RFI_CHUNK_MAX)) {
        return rfi_fail_at(error, REEF_E_FORMAT, node, false, "chunks have 64KiB to 1020KiB");
    }
    file->shape.chunk = (uint32_t)bytes;
    return REEF_OK;
}

static const struct {
    const char *key;
    reef_status (*read)(rfi_runfile *file, const rfi_yaml_node *node, const char *text, reef_error *error);
} singles[] = {{"reef", read_format},       {"run", read_token},  {"id", read_id}, {"coordinator", read_coordinator},
               {"deadline", read_deadline}, {"chunk", read_chunk}};

/* ---- lists and maps ---- */

/* "R... U...", perhaps with the names of leaves behind it, or an observer's "U...". */
static reef_status read_keys(const rfi_yaml_node *node, bool observer, rfi_participant *who, reef_error *error)
{
    enum { KEY = RFI_KEY_TEXT - 1 };
    const char *text = node->text;
    reef_status status = check_scalar(node, error);
    if (status != REEF_OK) {
        return status;
    }
    bool good = false;
    if (observer) {
        good = rfi_key_parse(who->login, RFI_LETTER_LOGIN, text, node->length);
    } else {
        const size_t both = 2 * (size_t)KEY + 1;
        who->behind = node->length > both + 1 && text[both] == ' ' ? text + both + 1 : NULL;
        good = (node->length == both || who->behind) && text[KEY] == ' ' &&
               rfi_key_parse(who->identity, RFI_LETTER_IDENTITY, text, KEY) &&
               rfi_key_parse(who->login, RFI_LETTER_LOGIN, text + KEY + 1, KEY);
    }
    return good ? REEF_OK
                : rfi_fail_at(error, REEF_E_FORMAT, node, false, "%s has no valid keys; `reef keys show` prints them",
                              node->key);
}

static reef_status read_people(rfi_runfile *file, const rfi_yaml_node *map, bool observers, rfi_participant **people,
                               ptrdiff_t *count, reef_error *error)
{
    if (map->type != RFI_YAML_MAP || map->count < 1 || map->count > RFI_AGENTS_MAX) {
        return rfi_fail_at(error, REEF_E_FORMAT, map, false, "%s is a map of 1 to %d names with their keys", map->key,
                           RFI_AGENTS_MAX);
    }
    *people = rfi_allocate_many(file->context, map->count, sizeof **people);
    if (!*people) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td agents", map->count);
    }
    memset(*people, 0, (size_t)map->count * sizeof **people);
    for (const rfi_yaml_node *node = map->first; node; node = node->next) {
        rfi_participant *who = &(*people)[(*count)++];
        if (!rfi_is_name(node->key)) {
            return rfi_fail_at(error, REEF_E_FORMAT, node, true, "names have 1 to 32 letters a-z, digits, _ and -");
        }
        (void)snprintf(who->name, sizeof who->name, "%s", node->key);
        who->removed = !observers && node->type == RFI_YAML_SCALAR && strcmp(node->text, "removed") == 0;
        reef_status status = who->removed ? REEF_OK : read_keys(node, observers, who, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    return REEF_OK;
}

static reef_status read_brokers(rfi_runfile *file, const rfi_yaml_node *list, reef_error *error)
{
    if (list->type != RFI_YAML_LIST || list->count < 1 || list->count > RFI_BROKERS_MAX) {
        return rfi_fail_at(error, REEF_E_FORMAT, list, false, "brokers is a list of 1 to %d addresses",
                           RFI_BROKERS_MAX);
    }
    for (const rfi_yaml_node *node = list->first; node; node = node->next) {
        if (node->type != RFI_YAML_SCALAR || !rfi_is_broker(node->text)) {
            return rfi_fail_at(error, REEF_E_FORMAT, node, false,
                               "a broker is tls://HOST:PORT, or nats://127.0.0.1:PORT on this machine");
        }
        file->broker[file->brokers++] = node->text;
    }
    return REEF_OK;
}

static reef_status read_count(rfi_runfile *file, const rfi_yaml_node *node, reef_error *error)
{
    double count = 0;
    if (!rfi_read_real((rfi_slice){node->text, node->length}, &count) || count != floor(count) || !(count >= 1) ||
        count > (double)RFI_NUMBERS_MAX) {
        return rfi_fail_at(error, REEF_E_FORMAT, node, false, "count is the numbers in a model, 1 to 2147483647");
    }
    file->shape.count = (uint64_t)count;
    return REEF_OK;
}

static reef_status read_type(rfi_runfile *file, const rfi_yaml_node *node, reef_error *error)
{
    bool single = strcmp(node->text, "f32") == 0;
    file->shape.numbers = single ? RFI_NUMBERS_F32 : RFI_NUMBERS_F64;
    return single || strcmp(node->text, "f64") == 0
               ? REEF_OK
               : rfi_fail_at(error, REEF_E_FORMAT, node, false, "the type of models is f32 or f64");
}

static reef_status read_layout(rfi_runfile *file, const rfi_yaml_node *node, reef_error *error)
{
    file->any_layout = strcmp(node->text, "any") == 0;
    return file->any_layout ||
                   rfi_read_hex_bytes(node->text, node->length, file->shape.layout, sizeof file->shape.layout)
               ? REEF_OK
               : rfi_fail_at(error, REEF_E_FORMAT, node, false, "a layout is any, or 64 hexadecimal digits");
}

static reef_status read_model(rfi_runfile *file, const rfi_yaml_node *map, reef_error *error)
{
    static const struct {
        const char *key;
        reef_status (*read)(rfi_runfile *file, const rfi_yaml_node *node, reef_error *error);
    } keys[] = {{"count", read_count}, {"type", read_type}, {"layout", read_layout}};
    if (map->type != RFI_YAML_MAP) {
        return rfi_fail_at(error, REEF_E_FORMAT, map, false, "model is a map, {count: 1000, type: f32}");
    }
    for (const rfi_yaml_node *node = map->first; node; node = node->next) {
        size_t i = 0;
        while (i < sizeof keys / sizeof keys[0] && strcmp(keys[i].key, node->key) != 0) {
            i++;
        }
        if (i == sizeof keys / sizeof keys[0] || node->type != RFI_YAML_SCALAR) {
            return rfi_fail_at(error, REEF_E_FORMAT, node, true, "a model has a count, a type and a layout");
        }
        reef_status status = keys[i].read(file, node, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    return REEF_OK;
}

static reef_status read_test(rfi_runfile *file, const rfi_yaml_node *map, reef_error *error)
{
    file->is_test = true;
    if (map->type != RFI_YAML_MAP) {
        return rfi_fail_at(error, REEF_E_FORMAT, map, false, "test is a map");
    }
    for (const rfi_yaml_node *node = map->first; node; node = node->next) {
        reef_status status = read_field(&test_table, &file->test, node, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    return REEF_OK;
}

/* The i-th key that there is, those of maps and lists included; NULL: there are no more. */
static const char *key_at(ptrdiff_t i)
{
    static const char *const maps[] = {"agents", "observers", "brokers", "leaves", "model", "test"};
    const ptrdiff_t terms = RFI_COUNT(singles) + RFI_COUNT(maps);
    if (i < RFI_COUNT(singles)) {
        return singles[i].key;
    }
    if (i < terms) {
        return maps[i - RFI_COUNT(singles)];
    }
    return i - terms < RFI_COUNT(term_fields) ? term_fields[i - terms].name : NULL;
}

static reef_status unknown_key(const rfi_yaml_node *node, reef_error *error)
{
    const rfi_slice key = {node->key, strlen(node->key)};
    const char *nearest = NULL;
    char names[300] = "";
    size_t used = 0;
    int best = 1000;
    for (ptrdiff_t i = 0; key_at(i); i++) {
        rfi_append(names, sizeof names, &used, "%s%s", i ? ", " : "", key_at(i));
        nearest = rfi_is_nearer(key, key_at(i), &best) ? key_at(i) : nearest;
    }
    return nearest ? rfi_fail_at(error, REEF_E_FORMAT, node, true, "a run file has no key '%.60s'; did you mean '%s'?",
                                 node->key, nearest)
                   : rfi_fail_at(error, REEF_E_FORMAT, node, true, "a run file has no key '%.60s'; there are: %s",
                                 node->key, names);
}

static reef_status read_entry(rfi_runfile *file, const rfi_yaml_node *node, reef_error *error)
{
    if (strcmp(node->key, "agents") == 0) {
        return read_people(file, node, false, &file->participants, &file->agents, error);
    }
    if (strcmp(node->key, "observers") == 0) {
        return read_people(file, node, true, &file->observer, &file->observers, error);
    }
    if (strcmp(node->key, "brokers") == 0) {
        return read_brokers(file, node, error);
    }
    if (strcmp(node->key, "leaves") == 0) {
        return rfi_leaves_read(file, node, error);
    }
    if (strcmp(node->key, "model") == 0) {
        return read_model(file, node, error);
    }
    if (strcmp(node->key, "test") == 0) {
        return read_test(file, node, error);
    }
    for (size_t i = 0; i < sizeof singles / sizeof singles[0]; i++) {
        if (strcmp(singles[i].key, node->key) == 0) {
            reef_status status = check_scalar(node, error);
            if (status != REEF_OK) {
                return status;
            }
            return singles[i].read(file, node, node->text, error);
        }
    }
    if (!rfi_fields_find(&term_table, (rfi_slice){node->key, strlen(node->key)})) {
        return unknown_key(node, error);
    }
    reef_status status = read_field(&term_table, &file->terms, node, error);
    return status == REEF_OK || strcmp(node->key, "malicious") != 0
               ? status
               : rfi_fail_at(error, REEF_E_FORMAT, node, false,
                             "malicious is the share of the weight that may be malicious, at least 0 and below 0.5");
}

/* ---- the whole ---- */

static bool same_key(const unsigned char *a, const unsigned char *b)
{
    return memcmp(a, b, RFI_KEY_BYTES) == 0;
}

/* No key belongs to two: a second place would be a second vote. 4096 agents are 8 million comparisons. */
static reef_status check_unique(const rfi_runfile *file, const char *source, reef_error *error)
{
    for (ptrdiff_t k = 0; k < file->agents; k++) {
        const rfi_participant *one = &file->participants[k];
        for (ptrdiff_t l = 0; l < k && !one->removed; l++) {
            const rfi_participant *other = &file->participants[l];
            if (!other->removed && (same_key(one->identity, other->identity) || same_key(one->login, other->login))) {
                return rfi_fail(error, REEF_E_FORMAT, "%s: %s and %s have the same key", source, other->name,
                                one->name);
            }
        }
    }
    return REEF_OK;
}

/* A login has one list of what it may do: an agent whose key also observes could send nothing. */
static reef_status check_observers(const rfi_runfile *file, const char *source, reef_error *error)
{
    for (ptrdiff_t i = 0; i < file->observers; i++) {
        const rfi_participant *one = &file->observer[i];
        const rfi_participant *other = NULL;
        for (ptrdiff_t k = 0; k < file->agents; k++) {
            const rfi_participant *agent = &file->participants[k];
            other = !agent->removed && same_key(one->login, agent->login) ? agent : other;
        }
        for (ptrdiff_t k = 0; k < i; k++) {
            other = same_key(one->login, file->observer[k].login) ? &file->observer[k] : other;
        }
        if (other) {
            return rfi_fail(error, REEF_E_FORMAT, "%s: the observer %s has the login of %s; `reef keys new` makes one",
                            source, one->name, other->name);
        }
    }
    return REEF_OK;
}

/* Who cannot be given keys would hear nobody. Agents do not find that out one by one, but refuse the file. */
static reef_status check_seal(const rfi_runfile *file, const char *source, reef_error *error)
{
    rfi_hearer hearer;
    for (ptrdiff_t k = 0; k < file->agents && file->terms.seal; k++) {
        const rfi_participant *who = &file->participants[k];
        if (!who->removed && !rfi_hearer_make(&hearer, (uint32_t)k, who->identity)) {
            return rfi_fail(error, REEF_E_FORMAT, "%s: seal: nothing can be sealed for the identity of %s", source,
                            who->name);
        }
    }
    return REEF_OK;
}

static reef_status check_whole(const rfi_runfile *file, const char *source, reef_error *error)
{
    static const char *const needed[] = {"reef", "run", "id", "coordinator", "agents", "rule", "brokers"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (!rfi_yaml_find(file->yaml.root, needed[i])) {
            return rfi_fail(error, REEF_E_FORMAT, "%s: the key %s is missing", source, needed[i]);
        }
    }
    if (!file->terms.graph[0] == !file->terms.links[0]) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: either graph or links says who hears whom", source);
    }
    if (file->is_test && !rfi_runfile_local(file)) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: test: is for runs whose brokers are all on this machine", source);
    }
    if (!file->shape.count && !file->test.problem[0]) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: model: {count: N} is missing", source);
    }
    reef_status status = check_unique(file, source, error);
    if (status == REEF_OK) {
        status = check_observers(file, source, error);
    }
    if (status == REEF_OK) {
        status = check_seal(file, source, error);
    }
    if (status == REEF_OK) {
        status = rfi_leaves_check(file, source, error);
    }
    return status;
}

static reef_status read_tree(rfi_runfile *file, const char *source, reef_error *error)
{
    if (file->yaml.root->type != RFI_YAML_MAP) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: a run file is a map of keys and values", source);
    }
    for (const rfi_yaml_node *node = file->yaml.root->first; node; node = node->next) {
        reef_status status = read_entry(file, node, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    file->shape.largest = file->terms.largest;
    file->shape.sealed = file->terms.seal;
    return check_whole(file, source, error);
}

static reef_status too_large(const char *source, reef_error *error)
{
    return rfi_fail(error, REEF_E_FORMAT, "%.100s is larger than 256 KiB, so it is not a run file", source);
}

reef_status rfi_runfile_read(const reef_context *context, const void *bytes, size_t size, const char *source,
                             rfi_runfile *file, reef_error *error)
{
    rfi_runfile made = {.context = context, .deadline = 30, .any_layout = true};
    unsigned char by[RFI_KEY_BYTES];
    made.shape = (rfi_shape){.numbers = RFI_NUMBERS_F32, .chunk = 512 * 1024};
    if (size > RFI_RUNFILE_MAX) {
        return too_large(source, error);
    }
    if (!rfi_runfile_signed(bytes, &size, by, made.hash)) {
        return rfi_fail(
            error, REEF_E_FORMAT,
            "%.100s is not a signed run file, or was changed after it was signed; `reef keys sign` signs a draft",
            source);
    }
    rfi_certain(rfi_fields_preset(&term_table, &made.terms, error));
    rfi_certain(rfi_fields_preset(&test_table, &made.test, error));
    reef_status status = rfi_yaml_read(context, bytes, size, source, &made.yaml, error);
    if (status == REEF_OK) {
        status = read_tree(&made, source, error);
    }
    if (status == REEF_OK && !same_key(by, made.coordinator)) {
        status = rfi_fail(error, REEF_E_FORMAT, "%.100s: signed by another key than that of its coordinator", source);
    }
    if (status != REEF_OK) {
        rfi_runfile_free(&made);
        return status;
    }
    *file = made;
    return REEF_OK;
}

reef_status rfi_runfile_load(const reef_context *context, const char *path, rfi_runfile *file, reef_error *error)
{
    rfi_file bytes = {0};
    reef_status status = rfi_file_read(context, path, RFI_RUNFILE_MAX, &bytes, error);
    if (status != REEF_OK) {
        return status == REEF_E_RANGE ? too_large(rfi_path_show(path), error) : status;
    }
    status = rfi_runfile_read(context, bytes.bytes, bytes.size, rfi_path_show(path), file, error);
    rfi_file_free(context, &bytes);
    return status;
}

void rfi_runfile_free(rfi_runfile *file)
{
    rfi_yaml_free(file->context, &file->yaml);
    rfi_release(file->context, file->participants);
    rfi_release(file->context, file->observer);
    rfi_release(file->context, file->leaf);
    *file = (rfi_runfile){.context = file->context};
}

ptrdiff_t rfi_runfile_find(const rfi_runfile *file, const unsigned char identity[RFI_KEY_BYTES])
{
    ptrdiff_t k = file->agents - 1;
    while (k >= 0 && (file->participants[k].removed || !same_key(file->participants[k].identity, identity))) {
        k--;
    }
    return k;
}

ptrdiff_t rfi_runfile_named(const rfi_runfile *file, const char *name)
{
    ptrdiff_t k = file->agents - 1;
    while (k >= 0 && strcmp(file->participants[k].name, name) != 0) {
        k--;
    }
    return k;
}

static bool is_here(const char *url)
{
    return rfi_is_local(url, "nats://") || rfi_is_local(url, "tls://");
}

bool rfi_runfile_local(const rfi_runfile *file)
{
    bool local = true;
    for (ptrdiff_t i = 0; i < file->brokers; i++) {
        local = local && is_here(file->broker[i]);
    }
    for (ptrdiff_t i = 0; i < file->leaves; i++) {
        local = local && is_here(file->leaf[i].url);
    }
    return local;
}
