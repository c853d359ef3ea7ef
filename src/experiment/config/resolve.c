/* From the tree and a cell's number to numbers and spec strings. All checks of fields are those of the specs themselves. */
#include "base/error.h"
#include "base/text.h"
#include "experiment/config/experiment.h"

#include <string.h>

const char *const rfi_part_names[RFI_PARTS] = {"graph",    "weights", "links",  "problem",
                                               "strategy", "rule",    "attack", "placement"};

static const char *const auto_words[] = {"auto", NULL};

#define WHOLE(key, text, low, high, of, what)                                                                          \
    {                                                                                                                  \
        .name = #key, .type = REEF_FIELD_INT, .offset = offsetof(rfi_cell_numbers, key), .preset = (text),             \
        .min = (low), .max = (high), .unit = (of), .help = (what)                                                      \
    }
#define FLAG(key, what)                                                                                                \
    {                                                                                                                  \
        .name = #key, .type = REEF_FIELD_BOOL, .offset = offsetof(rfi_cell_numbers, key), .preset = "false",           \
        .unit = "", .help = (what)                                                                                     \
    }
const reef_field rfi_number_fields[RFI_NUMBERS] = {
    WHOLE(agents, "0", 0, 1e9, "agents", "K; 0: as many as the graph's file has"),
    WHOLE(rounds, "1000", 1, 1e12, "rounds", "length of a run"),
    WHOLE(repetitions, "1", 1, 1e6, "", "repetitions with independent data"),
    WHOLE(seed, "1", 0, 9e15, "", "seed of everything random; every configuration has the same data"),
    {.name = "every",
     .type = REEF_FIELD_INT,
     .offset = offsetof(rfi_cell_numbers, every),
     .preset = "auto",
     .min = 1,
     .max = 1e12,
     .unit = "rounds",
     .help = "rounds between points of the curves; auto: 200 points",
     .words = auto_words},
    {.name = "steady",
     .type = REEF_FIELD_INT,
     .offset = offsetof(rfi_cell_numbers, steady),
     .preset = "auto",
     .min = 1,
     .max = 1e12,
     .unit = "rounds",
     .help = "rounds at the end whose mean is the steady state; auto: a quarter",
     .words = auto_words},
    {.name = "malicious",
     .type = REEF_FIELD_MALICIOUS,
     .offset = offsetof(rfi_cell_numbers, malicious_count),
     .preset = "0",
     .unit = "agents",
     .help = "malicious agents: a count, a fraction, or max"},
    FLAG(trust, "measure how much weight each agent receives"),
    FLAG(oracle, "also run the oracle, which knows the malicious agents and leaves them out"),
};

/* Fields that are lists, and what separates their values in a string; lists with commas are put into parentheses. */
static const struct {
    rfi_part part;
    const char *key;
    char mark;
} list_fields[] = {
    {RFI_PART_PLACEMENT, "agents", ' '}, {RFI_PART_PROBLEM, "hidden", ','}, {RFI_PART_PROBLEM, "optimum", ','}};

/* Kinds of maps that name none; NULL: they must. */
static const char *const default_kinds[RFI_PARTS] = {
    [RFI_PART_STRATEGY] = "diffusion", [RFI_PART_PLACEMENT] = "random"};

static char list_mark(ptrdiff_t part, const char *key)
{
    for (ptrdiff_t i = 0; key && i < RFI_COUNT(list_fields); i++) {
        if ((ptrdiff_t)list_fields[i].part == part && strcmp(list_fields[i].key, key) == 0) {
            return list_fields[i].mark;
        }
    }
    return '\0';
}

ptrdiff_t rfi_part_find(const char *name)
{
    ptrdiff_t i = RFI_PARTS - 1;
    while (i >= 0 && strcmp(name, rfi_part_names[i]) != 0) {
        i--;
    }
    return i;
}

ptrdiff_t rfi_number_find(const char *name)
{
    ptrdiff_t i = RFI_NUMBERS - 1;
    while (i >= 0 && strcmp(name, rfi_number_fields[i].name) != 0) {
        i--;
    }
    return i;
}

bool rfi_is_swept(ptrdiff_t part, const rfi_yaml_node *value, const char *key)
{
    bool is_list = value->type == RFI_YAML_LIST;
    return is_list && (!list_mark(part, key) || (value->first && value->first->type == RFI_YAML_LIST));
}

ptrdiff_t rfi_element_ways(ptrdiff_t part, const rfi_yaml_node *element, reef_error *error)
{
    ptrdiff_t ways = 1;
    if (element->type == RFI_YAML_LIST || (part < 0 && element->type == RFI_YAML_MAP)) {
        (void)rfi_fail_at(error, REEF_E_FORMAT, element, false, "%s cannot take a list of values here",
                          rfi_yaml_type_text(element->type));
        return 0;
    }
    const rfi_yaml_node *child = element->type == RFI_YAML_MAP ? element->first : NULL;
    for (; child; child = child->next) {
        if (!rfi_is_swept(part, child, child->key)) {
            continue;
        }
        if (child->count == 0 || child->count > RFI_CELLS_MAX / ways) {
            (void)rfi_fail_at(error, REEF_E_FORMAT, child, false, "%s",
                              child->count ? "too many configurations" : "an empty list: there is nothing to run");
            return 0;
        }
        ways *= child->count;
    }
    return ways;
}

static const rfi_yaml_node *nth(const rfi_yaml_node *list, ptrdiff_t index)
{
    const rfi_yaml_node *child = list->first;
    while (index-- > 0) {
        child = child->next;
    }
    return child;
}

/* ---- the cell's place on each axis ---- */

static ptrdiff_t position(const reef_experiment *experiment, ptrdiff_t index, const rfi_axis *axis)
{
    for (ptrdiff_t d = experiment->dimensions - 1; d > axis->dimension; d--) {
        index /= experiment->sizes[d];
    }
    return index % experiment->sizes[axis->dimension];
}

static const rfi_axis *find_axis(const reef_experiment *experiment, const rfi_yaml_node *top,
                                 const rfi_yaml_node *child)
{
    for (ptrdiff_t i = 0; i < experiment->axis_count; i++) {
        if (experiment->axes[i].top == top && experiment->axes[i].child == child) {
            return &experiment->axes[i];
        }
    }
    return NULL;
}

/* ---- objects ---- */

/* The positions of the lists inside an element: way number `rest`, the last list fastest. Axes that are NULL are skipped. */
typedef struct choice {
    const reef_experiment *experiment;
    ptrdiff_t index; /* of the cell */
    const rfi_yaml_node *top;
    ptrdiff_t part;
    bool in_list; /* the map is an element of a list: `way` chooses */
    ptrdiff_t way;
    ptrdiff_t ways; /* of the lists from here on */
} choice;

/* The value of one entry of a map. */
static const rfi_yaml_node *choose(choice *c, const rfi_yaml_node *entry)
{
    if (!rfi_is_swept(c->part, entry, entry->key)) {
        return entry;
    }
    if (c->in_list) {
        c->ways = c->ways > entry->count ? c->ways / entry->count : 1;
        return nth(entry, c->way / c->ways % entry->count);
    }
    return nth(entry, position(c->experiment, c->index, find_axis(c->experiment, c->top, entry)));
}

/* The element of a list, and its way, that number `at` on the axis means. */
static const rfi_yaml_node *choose_element(choice *c, const rfi_yaml_node *list, ptrdiff_t at)
{
    const rfi_yaml_node *element = list->first;
    ptrdiff_t ways = rfi_element_ways(c->part, element, NULL);
    while (at >= ways) {
        at -= ways;
        element = element->next;
        ways = rfi_element_ways(c->part, element, NULL);
    }
    c->in_list = true;
    c->way = at;
    c->ways = ways;
    return element;
}

/* The kind that a map names; NULL: none. */
static const rfi_yaml_node *kind_of(const rfi_yaml_node *node)
{
    const rfi_yaml_node *entry = node->type == RFI_YAML_MAP ? node->first : NULL;
    while (entry && (strcmp(entry->key, "kind") != 0 || entry->type != RFI_YAML_SCALAR)) {
        entry = entry->next;
    }
    return entry;
}

static reef_status fill_map(choice *c, const rfi_yaml_node *map, rfi_object *object, reef_error *error)
{
    for (const rfi_yaml_node *entry = map->first; entry; entry = entry->next) {
        rfi_field_value pair = {entry, choose(c, entry)};
        bool joined = (pair.value->type == RFI_YAML_LIST && list_mark(c->part, entry->key)) || kind_of(pair.value);
        if (pair.value->type != RFI_YAML_SCALAR && !joined) {
            return rfi_fail_at(error, REEF_E_FORMAT, pair.value, false, "%s takes a single value, not %s", entry->key,
                               rfi_yaml_type_text(pair.value->type));
        }
        if (strcmp(entry->key, "kind") == 0) {
            object->kind = pair;
        } else if (object->pair_count == RFI_PAIRS_MAX) {
            return rfi_fail_at(error, REEF_E_FORMAT, entry, true, "too many parameters (more than %d)", RFI_PAIRS_MAX);
        } else {
            object->pairs[object->pair_count++] = pair;
        }
    }
    if (!object->kind.value && !default_kinds[c->part]) {
        return rfi_fail_at(error, REEF_E_FORMAT, map, false, "a map needs the key kind, as in {kind: NAME, ...}");
    }
    return REEF_OK;
}

static void append_text(char *spec, size_t *used, const char *text)
{
    rfi_append(spec, RFI_SPEC_LENGTH_MAX + 1, used, "%s", text);
}

/* A value that contains commas is a string within the string, in parentheses. */
static void append_scalar(const rfi_yaml_node *value, char *spec, size_t *used)
{
    bool wrapped = memchr(value->text, ',', value->length) && value->text[0] != '(';
    append_text(spec, used, wrapped ? "(" : "");
    append_text(spec, used, value->text);
    append_text(spec, used, wrapped ? ")" : "");
}

/* {kind: digits, bias: true}: (digits:bias=true). What is inside is not swept. */
static reef_status append_map(const rfi_yaml_node *map, char *spec, size_t *used, reef_error *error)
{
    const rfi_yaml_node *kind = kind_of(map);
    const char *mark = ":";
    append_text(spec, used, "(");
    append_text(spec, used, kind->text);
    for (const rfi_yaml_node *entry = map->first; entry; entry = entry->next) {
        if (entry == kind) {
            continue;
        }
        if (entry->type != RFI_YAML_SCALAR) {
            return rfi_fail_at(error, REEF_E_FORMAT, entry, false, "%s takes a single value here, not %s", entry->key,
                               rfi_yaml_type_text(entry->type));
        }
        append_text(spec, used, mark);
        append_text(spec, used, entry->key);
        append_text(spec, used, "=");
        append_scalar(entry, spec, used);
        mark = ",";
    }
    append_text(spec, used, ")");
    return REEF_OK;
}

static reef_status append_list(const rfi_field_value *pair, char mark, char *spec, size_t *used, reef_error *error)
{
    append_text(spec, used, mark == ',' ? "(" : "");
    for (const rfi_yaml_node *item = pair->value->first; item; item = item->next) {
        if (item->type != RFI_YAML_SCALAR || memchr(item->text, ',', item->length)) {
            return rfi_fail_at(error, REEF_E_FORMAT, item, false, "%s takes single values here, not %s",
                               pair->entry->key, rfi_yaml_type_text(item->type));
        }
        append_text(spec, used, item->text);
        rfi_append(spec, RFI_SPEC_LENGTH_MAX + 1, used, "%.*s", item->next ? 1 : 0, &mark);
    }
    append_text(spec, used, mark == ',' ? ")" : "");
    return REEF_OK;
}

static reef_status append_value(const rfi_field_value *pair, ptrdiff_t part, char *spec, size_t *used,
                                reef_error *error)
{
    switch (pair->value->type) {
    case RFI_YAML_LIST:
        return append_list(pair, list_mark(part, pair->entry->key), spec, used, error);
    case RFI_YAML_MAP:
        return append_map(pair->value, spec, used, error);
    default:
        append_scalar(pair->value, spec, used);
        return REEF_OK;
    }
}

reef_status rfi_object_spec(const rfi_object *object, uint64_t pairs, char spec[RFI_SPEC_LENGTH_MAX + 1],
                            reef_error *error)
{
    size_t used = 0;
    char mark = ':';
    const char *name = object->node->type == RFI_YAML_MAP ? default_kinds[object->part] : object->node->text;
    spec[0] = '\0';
    rfi_append(spec, RFI_SPEC_LENGTH_MAX + 1, &used, "%s", object->kind.value ? object->kind.value->text : name);
    for (ptrdiff_t i = 0; i < object->pair_count; i++) {
        const rfi_field_value *pair = &object->pairs[i];
        if (!(pairs >> i & 1)) {
            continue;
        }
        rfi_append(spec, RFI_SPEC_LENGTH_MAX + 1, &used, "%c%s=", mark, pair->entry->key);
        reef_status status = append_value(pair, object->part, spec, &used, error);
        if (status != REEF_OK) {
            return status;
        }
        mark = ',';
    }
    if (used > RFI_SPEC_LENGTH_MAX) {
        return rfi_fail_at(error, REEF_E_SYNTAX, object->node, false, "more than %d characters", RFI_SPEC_LENGTH_MAX);
    }
    return REEF_OK;
}

static reef_status resolve_object(const reef_experiment *experiment, ptrdiff_t index, const rfi_yaml_node *top,
                                  ptrdiff_t part, rfi_cell *cell, reef_error *error)
{
    rfi_object *object = &cell->objects[part];
    choice c = {.experiment = experiment, .index = index, .top = top, .part = part, .ways = 1};
    const rfi_axis *axis = find_axis(experiment, top, NULL);
    object->part = part;
    object->node = axis ? choose_element(&c, top, position(experiment, index, axis)) : top;
    reef_status status = REEF_OK;
    if (object->node->type == RFI_YAML_MAP) {
        status = fill_map(&c, object->node, object, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    return rfi_object_spec(object, UINT64_MAX, cell->specs[part], error);
}

/* ---- numbers ---- */

static reef_status resolve_number(const reef_experiment *experiment, ptrdiff_t index, const rfi_yaml_node *top,
                                  ptrdiff_t number, rfi_cell *cell, reef_error *error)
{
    const rfi_axis *axis = find_axis(experiment, top, NULL);
    const rfi_yaml_node *node = axis ? nth(top, position(experiment, index, axis)) : top;
    const rfi_fields table = {experiment->name, rfi_number_fields, RFI_NUMBERS};
    reef_error inner = {REEF_OK, ""};
    cell->number_nodes[number] = node;
    if (node->type != RFI_YAML_SCALAR) {
        return rfi_fail_at(error, REEF_E_FORMAT, node, false, "%s takes a single value, not %s", top->key,
                           rfi_yaml_type_text(node->type));
    }
    const rfi_slice key = {top->key, strlen(top->key)};
    const rfi_slice value = {node->text, node->length};
    if (rfi_fields_set(&table, &cell->numbers, key, value, &inner) != REEF_OK) {
        return rfi_fail_at(error, inner.status, node, false, "%s", inner.text);
    }
    return REEF_OK;
}

/* The numbers that follow from others. */
static reef_status finish_numbers(rfi_cell *cell, reef_error *error)
{
    rfi_cell_numbers *n = &cell->numbers;
    n->every = n->every > 0 ? n->every : (n->rounds + 199) / 200;
    n->steady = n->steady > 0 ? n->steady : (n->rounds + 3) / 4;
    const rfi_yaml_node *node = cell->number_nodes[rfi_number_find("steady")];
    if (n->steady > n->rounds) {
        return rfi_fail_at(error, REEF_E_RANGE, node, false, "steady = %lld, but there are only %lld rounds",
                           (long long)n->steady, (long long)n->rounds);
    }
    node = cell->number_nodes[rfi_number_find("every")];
    if (n->rounds / n->every > RFI_CELLS_MAX) {
        return rfi_fail_at(error, REEF_E_RANGE, node, false, "every = %lld gives more than %d points per curve",
                           (long long)n->every, RFI_CELLS_MAX);
    }
    return REEF_OK;
}

reef_status rfi_resolve(const reef_experiment *experiment, ptrdiff_t index, rfi_cell *cell, reef_error *error)
{
    const rfi_fields table = {experiment->name, rfi_number_fields, RFI_NUMBERS};
    memset(cell, 0, sizeof *cell);
    reef_status status = rfi_fields_preset(&table, &cell->numbers, error);
    const rfi_yaml_node *top = experiment->yaml.root->first;
    for (; top && status == REEF_OK; top = top->next) {
        ptrdiff_t number = rfi_number_find(top->key);
        ptrdiff_t part = rfi_part_find(top->key);
        if (number >= 0) {
            status = resolve_number(experiment, index, top, number, cell, error);
        } else if (part >= 0) {
            status = resolve_object(experiment, index, top, part, cell, error);
        }
    }
    if (status != REEF_OK) {
        return status;
    }
    return finish_numbers(cell, error);
}

size_t reef_experiment_value(const reef_experiment *experiment, ptrdiff_t cell, ptrdiff_t axis, char *text, size_t size)
{
    if (!experiment) {
        return rfi_no_text(text, size);
    }
    size_t used = 0;
    if (size > 0) {
        text[0] = '\0';
    }
    if (axis < 0 || axis >= experiment->axis_count || cell < 0 || cell >= experiment->cells) {
        return 0;
    }
    const rfi_axis *a = &experiment->axes[axis];
    ptrdiff_t at = position(experiment, cell, a);
    choice c = {.experiment = experiment, .part = rfi_part_find(a->top->key), .ways = 1};
    const rfi_yaml_node *node = a->child ? nth(a->child, at) : choose_element(&c, a->top, at);
    char spec[RFI_SPEC_LENGTH_MAX + 1];
    rfi_object object = {.node = node, .part = c.part};
    if (node->type == RFI_YAML_SCALAR) {
        rfi_append(text, size, &used, "%s", node->text);
    } else if (node->type == RFI_YAML_LIST) { /* one value of a field that is a list */
        for (const rfi_yaml_node *item = node->first; item; item = item->next) {
            rfi_append(text, size, &used, "%s%s", item == node->first ? "" : " ",
                       item->type == RFI_YAML_SCALAR ? item->text : "");
        }
    } else if (fill_map(&c, node, &object, NULL) == REEF_OK &&
               rfi_object_spec(&object, UINT64_MAX, spec, NULL) == REEF_OK) {
        rfi_append(text, size, &used, "%s", spec);
    }
    return used;
}
