/* An override a.b=value is read as the YAML text "a:\n b: value" and merged: maps key by key, anything else is replaced. Where the tree
 * has a spec string and the override goes inside it (strategy.mu), the string is first turned into the map that it denotes. */
#include "experiment/config/override.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 1 << 14, TREES = 2 };

/* "a.b=value" as YAML; false if it is none. */
static bool write_nested(const char *override, char *text, size_t size)
{
    const char *equals = strchr(override, '=');
    rfi_slice rest = {override, equals ? (size_t)(equals - override) : 0};
    size_t used = 0;
    int depth = 0;
    bool more = equals != NULL && rest.length > 0;
    text[0] = '\0';
    if (!more || strlen(override) > TEXT_MAX / 4 || strpbrk(override, "\n\r")) {
        return false;
    }
    for (; more; depth++) {
        rfi_slice key = rfi_cut(rest, '.', &rest, &more);
        if (key.length == 0 || depth > 1) {
            return false;
        }
        rfi_append(text, size, &used, "%*s%.*s:%s", depth, "", (int)key.length, key.text, more ? "\n" : " ");
    }
    rfi_append(text, size, &used, "%s\n", equals + 1);
    return used < size;
}

/* Nodes from the command line have no line. */
static void unplace(rfi_yaml_node *node, const char *source)
{
    node->line = node->column = 0;
    node->source = source;
    for (rfi_yaml_node *child = node->first; child; child = child->next) {
        unplace(child, source);
    }
}

/* The node becomes what `other` is, in its own place. */
static void become(rfi_yaml_node *node, const rfi_yaml_node *other)
{
    rfi_yaml_node was = *node;
    *node = *other;
    node->next = was.next;
    node->key = was.key;
    node->key_line = was.key_line;
    node->key_column = was.key_column;
}

/* Turns the scalar "kind:key=value,..." into a map; the new nodes keep the place of the string. */
static reef_status open_spec(reef_experiment *e, rfi_yaml_node *node, const rfi_yaml_node *change, rfi_yaml *tree,
                             reef_error *error)
{
    char text[TEXT_MAX];
    size_t used = 0;
    bool more = false;
    rfi_slice list;
    rfi_slice name = rfi_trim(rfi_cut((rfi_slice){node->text, node->length}, ':', &list, &more));
    if (strchr(node->text, '|') || strpbrk(node->text, "\n\r\"")) {
        return rfi_fail_at(error, REEF_E_FORMAT, change, false, "%s is a pipeline here; set it as a whole", node->key);
    }
    rfi_append(text, sizeof text, &used, "kind: \"%.*s\"\n", (int)name.length, name.text);
    while (more) {
        bool found = false;
        rfi_slice value;
        rfi_slice pair = rfi_cut(list, ',', &list, &more);
        rfi_slice key = rfi_trim(rfi_cut(pair, '=', &value, &found));
        value = rfi_trim(value);
        rfi_append(text, sizeof text, &used, "\"%.*s\": \"%.*s\"\n", (int)key.length, key.text, (int)value.length,
                   value.text);
    }
    reef_status status = used < sizeof text ? rfi_yaml_read(e->context, text, used, node->source, tree, error)
                                            : rfi_fail_at(error, REEF_E_FORMAT, node, false, "the text is too long");
    if (status != REEF_OK) {
        return status;
    }
    for (rfi_yaml_node *child = tree->root->first; child; child = child->next) {
        child->line = child->key_line = node->line;
        child->column = child->key_column = node->column;
    }
    tree->root->line = node->line;
    tree->root->column = node->column;
    become(node, tree->root);
    return REEF_OK;
}

static void append_child(rfi_yaml_node *map, rfi_yaml_node *child)
{
    rfi_yaml_node **end = &map->first;
    while (*end) {
        end = &(*end)->next;
    }
    *end = child;
    map->count++;
}

/* Merges a map with one entry per level; `node` is a map. */
static reef_status merge(reef_experiment *e, rfi_yaml_node *node, const rfi_yaml_node *change, rfi_yaml *spare,
                         reef_error *error)
{
    rfi_yaml_node *entry = change->first;
    rfi_yaml_node *own = rfi_yaml_find(node, entry->key);
    if (!own) {
        append_child(node, entry);
        return REEF_OK;
    }
    bool inside = entry->type == RFI_YAML_MAP && !rfi_yaml_find(entry, "kind") && node == e->yaml.root;
    if (!inside) {
        become(own, entry);
        return REEF_OK;
    }
    if (own->type == RFI_YAML_LIST) {
        return rfi_fail_at(error, REEF_E_FORMAT, entry, false, "%s is a list here; set it as a whole", own->key);
    }
    reef_status status = own->type == RFI_YAML_SCALAR ? open_spec(e, own, entry, spare, error) : REEF_OK;
    if (status != REEF_OK) {
        return status;
    }
    return entry->first ? merge(e, own, entry, spare, error) : REEF_OK;
}

static char *format_name(const reef_experiment *e, const char *prefix, const char *text)
{
    size_t size = strlen(prefix) + strlen(text) + 1;
    char *copy = rfi_allocate(e->context, size);
    if (copy) {
        (void)snprintf(copy, size, "%s%s", prefix, text);
    }
    return copy;
}

static reef_status apply(reef_experiment *e, ptrdiff_t i, const char *override, reef_error *error)
{
    char text[TEXT_MAX];
    if (!override || !write_nested(override, text, sizeof text)) {
        return rfi_fail(error, REEF_E_SYNTAX, "--set %.60s: it should read path=value, for instance strategy.mu=0.05",
                        override ? override : "");
    }
    e->override_texts[i] = format_name(e, "", override);
    e->override_names[i] = format_name(e, "--set ", override);
    if (!e->override_texts[i] || !e->override_names[i]) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for an experiment");
    }
    rfi_yaml *trees = &e->override_trees[TREES * i];
    reef_error inner = {REEF_OK, ""};
    reef_status status = rfi_yaml_read(e->context, text, strlen(text), e->override_names[i], &trees[0], &inner);
    if (status != REEF_OK || trees[0].root->type != RFI_YAML_MAP || !trees[0].root->first) {
        const char *why = status == REEF_OK ? "" : strrchr(inner.text, ':');
        return rfi_fail(error, REEF_E_SYNTAX, "%.100s: not a value in YAML%s", e->override_names[i], why ? why : "");
    }
    unplace(trees[0].root, e->override_names[i]);
    status = rfi_renew_names(trees[0].root, error);
    if (status != REEF_OK) {
        return status;
    }
    return merge(e, e->yaml.root, trees[0].root, &trees[1], error);
}

reef_status rfi_override_all(reef_experiment *e, const char *const *overrides, ptrdiff_t count, reef_error *error)
{
    if (count == 0) {
        return REEF_OK;
    }
    if (e->yaml.root->type != RFI_YAML_MAP) {
        return REEF_OK; /* the check of the tree says what is wrong */
    }
    e->override_texts = rfi_allocate_many(e->context, count, sizeof *e->override_texts);
    e->override_names = rfi_allocate_many(e->context, count, sizeof *e->override_names);
    e->override_trees = rfi_allocate_many(e->context, TREES * count, sizeof *e->override_trees);
    if (!e->override_texts || !e->override_names || !e->override_trees) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %td overrides", count);
    }
    e->override_count = count;
    memset((void *)e->override_texts, 0, (size_t)count * sizeof *e->override_texts);
    memset((void *)e->override_names, 0, (size_t)count * sizeof *e->override_names);
    memset(e->override_trees, 0, (size_t)(TREES * count) * sizeof *e->override_trees);
    reef_status status = REEF_OK;
    for (ptrdiff_t i = 0; i < count && status == REEF_OK; i++) {
        status = apply(e, i, overrides[i], error);
    }
    return status;
}

void rfi_override_free(reef_experiment *e)
{
    for (ptrdiff_t i = 0; i < e->override_count; i++) {
        rfi_release(e->context, e->override_texts[i]);
        rfi_release(e->context, e->override_names[i]);
        rfi_yaml_free(e->context, &e->override_trees[TREES * i]);
        rfi_yaml_free(e->context, &e->override_trees[TREES * i + 1]);
    }
    rfi_release(e->context, (void *)e->override_texts);
    rfi_release(e->context, (void *)e->override_names);
    rfi_release(e->context, e->override_trees);
}
