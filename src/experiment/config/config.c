/* Files and overrides -> tree -> axes of the grid, with every cell checked. */
#include "base/error.h"
#include "base/memory.h"
#include "experiment/config/experiment.h"
#include "experiment/config/override.h"
#include "experiment/config/stock.h"
#include "io/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Keys beside parts and numbers. */
static const char *const other_keys[] = {"name", "metrics", "zip"};

reef_status rfi_fail_at(reef_error *error, reef_status status, const rfi_yaml_node *node, bool at_key,
                        const char *format, ...)
{
    char text[sizeof(reef_error)];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!node) {
        return rfi_fail(error, status, "%s", text);
    }
    if (node->line == 0) { /* from the command line */
        return rfi_fail(error, status, "%s: %s", node->source, text);
    }
    bool key = at_key && node->key;
    return rfi_fail(error, status, "%s:%d:%d: %s", rfi_path_show(node->source), key ? node->key_line : node->line,
                    key ? node->key_column : node->column, text);
}

/* ---- top-level keys ---- */

/* Name number i of all keys, or NULL. */
static const char *key_name(ptrdiff_t i)
{
    if (i < RFI_PARTS) {
        return rfi_part_names[i];
    }
    i -= RFI_PARTS;
    if (i < RFI_NUMBERS) {
        return rfi_number_fields[i].name;
    }
    i -= RFI_NUMBERS;
    return i < RFI_COUNT(other_keys) ? other_keys[i] : NULL;
}

static reef_status unknown_key(const rfi_yaml_node *node, reef_error *error)
{
    const rfi_slice key = {node->key, strlen(node->key)};
    char names[220] = "";
    size_t used = 0;
    const char *nearest = NULL;
    int best = 1000;
    for (ptrdiff_t i = 0; key_name(i); i++) {
        nearest = rfi_is_nearer(key, key_name(i), &best) ? key_name(i) : nearest;
        rfi_append(names, sizeof names, &used, "%s%s", i ? ", " : "", key_name(i));
    }
    if (rfi_equals(key, "reef")) {
        return rfi_fail_at(
            error, REEF_E_NAME, node, true,
            "this is no experiment, but a run file of agents on a network: `reef agent` and `reef broker` take it");
    }
    if (nearest) {
        return rfi_fail_at(error, REEF_E_NAME, node, true, "unknown key '%.*s'; did you mean '%s'?", RFI_SHOW(key),
                           nearest);
    }
    return rfi_is_word(key) ? rfi_fail_at(error, REEF_E_NAME, node, true, "unknown key '%.*s'; the keys are %s",
                                          RFI_SHOW(key), names)
                            : rfi_fail_at(error, REEF_E_NAME, node, true, "unknown key; the keys are %s", names);
}

static reef_status check_keys(const rfi_yaml_node *root, reef_error *error)
{
    if (root->type != RFI_YAML_MAP) {
        return rfi_fail_at(error, REEF_E_FORMAT, root, false, "an experiment is a map (key: value), not %s",
                           rfi_yaml_type_text(root->type));
    }
    for (const rfi_yaml_node *node = root->first; node; node = node->next) {
        ptrdiff_t i = 0;
        while (key_name(i) && strcmp(key_name(i), node->key) != 0) {
            i++;
        }
        if (!key_name(i)) {
            return unknown_key(node, error);
        }
    }
    return REEF_OK;
}

/* ---- axes ---- */

static reef_status add_axis(reef_experiment *e, const rfi_yaml_node *top, const rfi_yaml_node *child, reef_error *error)
{
    const rfi_yaml_node *list = child ? child : top;
    const ptrdiff_t part = rfi_part_find(top->key);
    ptrdiff_t count = child ? list->count : 0;
    if (list->count == 0) {
        return rfi_fail_at(error, REEF_E_FORMAT, list, false, "an empty list: there is nothing to run");
    }
    if (e->axis_count == RFI_AXES_MAX) {
        return rfi_fail_at(error, REEF_E_FORMAT, list, false, "more than %d lists", RFI_AXES_MAX);
    }
    for (const rfi_yaml_node *element = list->first; element && !child; element = element->next) {
        ptrdiff_t ways = rfi_element_ways(part, element, error);
        if (ways == 0) {
            return error ? error->status : REEF_E_FORMAT;
        }
        count += ways;
    }
    rfi_axis *axis = &e->axes[e->axis_count++];
    *axis = (rfi_axis){.top = top, .child = child, .count = count, .dimension = -1};
    (void)snprintf(axis->path, sizeof axis->path, "%s%s%s", top->key, child ? "." : "", child ? child->key : "");
    return REEF_OK;
}

static reef_status find_axes(reef_experiment *e, reef_error *error)
{
    reef_status status = REEF_OK;
    for (const rfi_yaml_node *top = e->yaml.root->first; top && status == REEF_OK; top = top->next) {
        ptrdiff_t part = rfi_part_find(top->key);
        if (part < 0 && rfi_number_find(top->key) < 0) {
            continue;
        }
        if (top->type == RFI_YAML_LIST) {
            status = add_axis(e, top, NULL, error);
        }
        const rfi_yaml_node *child = top->type == RFI_YAML_MAP ? top->first : NULL;
        for (; child && status == REEF_OK; child = child->next) {
            status = rfi_is_swept(part, child, child->key) ? add_axis(e, top, child, error) : REEF_OK;
        }
    }
    return status;
}

static rfi_axis *axis_named(reef_experiment *e, const char *path)
{
    for (ptrdiff_t i = 0; i < e->axis_count; i++) {
        if (strcmp(e->axes[i].path, path) == 0) {
            return &e->axes[i];
        }
    }
    return NULL;
}

static reef_status unknown_axis(const reef_experiment *e, const rfi_yaml_node *node, reef_error *error)
{
    const char *nearest = NULL;
    int best = 1000;
    for (ptrdiff_t i = 0; i < e->axis_count; i++) {
        const rfi_slice path = {node->text, node->length};
        nearest = rfi_is_nearer(path, e->axes[i].path, &best) ? e->axes[i].path : nearest;
    }
    return rfi_fail_at(error, REEF_E_NAME, node, false, "zip: '%.40s' is not a list of this experiment%s%s%s",
                       node->text, nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* Lists that go in parallel: marks them with the place of the first, which is found by its number in the axes. */
static reef_status zip_group(reef_experiment *e, const rfi_yaml_node *group, ptrdiff_t *leader, reef_error *error)
{
    rfi_axis *first = NULL;
    for (const rfi_yaml_node *node = group->first; node; node = node->next) {
        if (node->type != RFI_YAML_SCALAR) {
            return rfi_fail_at(error, REEF_E_FORMAT, node, false, "zip takes the names of lists, such as attack.delta");
        }
        rfi_axis *axis = axis_named(e, node->text);
        if (!axis) {
            return unknown_axis(e, node, error);
        }
        if (leader[axis - e->axes] >= 0) {
            return rfi_fail_at(error, REEF_E_FORMAT, node, false, "zip: '%s' is named twice", axis->path);
        }
        if (first && axis->count != first->count) {
            return rfi_fail_at(error, REEF_E_FORMAT, node, false,
                               "zip: '%s' has %td values, but '%s' has %td; zipped lists must have the same length",
                               axis->path, axis->count, first->path, first->count);
        }
        first = first ? first : axis;
        leader[axis - e->axes] = first - e->axes;
    }
    return REEF_OK;
}

static reef_status read_zip(reef_experiment *e, ptrdiff_t *leader, reef_error *error)
{
    const rfi_yaml_node *zip = rfi_yaml_find(e->yaml.root, "zip");
    if (!zip) {
        return REEF_OK;
    }
    if (zip->type != RFI_YAML_LIST) {
        return rfi_fail_at(error, REEF_E_FORMAT, zip, false, "zip takes a list of names, or a list of such lists");
    }
    if (!zip->first || zip->first->type != RFI_YAML_LIST) {
        return zip_group(e, zip, leader, error);
    }
    reef_status status = REEF_OK;
    for (const rfi_yaml_node *group = zip->first; group && status == REEF_OK; group = group->next) {
        status = group->type == RFI_YAML_LIST
                     ? zip_group(e, group, leader, error)
                     : rfi_fail_at(error, REEF_E_FORMAT, group, false, "zip: a list of names is expected");
    }
    return status;
}

/* Dimensions, in the order of their first lists in the file. */
static reef_status make_grid(reef_experiment *e, reef_error *error)
{
    ptrdiff_t leader[RFI_AXES_MAX];
    for (ptrdiff_t i = 0; i < RFI_AXES_MAX; i++) {
        leader[i] = -1;
    }
    reef_status status = read_zip(e, leader, error);
    if (status != REEF_OK) {
        return status;
    }
    e->cells = 1;
    for (ptrdiff_t i = 0; i < e->axis_count; i++) {
        rfi_axis *axis = &e->axes[i];
        for (ptrdiff_t j = 0; j < i && leader[i] >= 0; j++) {
            axis->dimension = leader[j] == leader[i] ? e->axes[j].dimension : axis->dimension;
        }
        if (axis->dimension >= 0) {
            continue;
        }
        if (axis->count > RFI_CELLS_MAX / e->cells) {
            return rfi_fail_at(error, REEF_E_RANGE, axis->child ? axis->child : axis->top, false,
                               "the lists give more than %d configurations", RFI_CELLS_MAX);
        }
        axis->dimension = e->dimensions;
        e->sizes[e->dimensions++] = axis->count;
        e->cells *= axis->count;
    }
    return REEF_OK;
}

/* ---- name and metrics ---- */

/* The file's name without folder and ending. */
static void name_from_source(reef_experiment *e)
{
    const char *slash = strrchr(e->source, '/');
    (void)snprintf(e->name, sizeof e->name, "%s", slash ? slash + 1 : e->source);
    char *dot = strrchr(e->name, '.');
    if (dot && dot != e->name) {
        *dot = '\0';
    }
    rfi_hide_control(e->name);
}

static reef_status read_name(reef_experiment *e, reef_error *error)
{
    const rfi_yaml_node *node = rfi_yaml_find(e->yaml.root, "name");
    name_from_source(e);
    if (!node) {
        return REEF_OK;
    }
    if (node->type != RFI_YAML_SCALAR || node->length == 0 || node->length >= 100 || strchr(node->text, '/') ||
        node->text[0] == '.' || rfi_has_control((rfi_slice){node->text, node->length})) {
        return rfi_fail_at(
            error, REEF_E_FORMAT, node, false,
            "name takes at most 99 characters, without '/' or control characters, and must not begin with a dot");
    }
    (void)snprintf(e->name, sizeof e->name, "%s", node->text);
    return REEF_OK;
}

static reef_status read_metric(reef_experiment *e, const rfi_yaml_node *node, reef_error *error)
{
    if (node->type != RFI_YAML_SCALAR) {
        return rfi_fail_at(error, REEF_E_FORMAT, node, false, "metrics takes names");
    }
    const rfi_slice name = {node->text, node->length};
    char names[200] = "";
    size_t used = 0;
    const char *nearest = NULL;
    int best = 1000;
    for (int i = 0; i < RFI_METRICS; i++) {
        const char *known = rfi_metric_name((rfi_metric)i);
        if (rfi_equals(name, known)) {
            e->metrics[i] = true;
            e->metric_nodes[i] = node;
            return REEF_OK;
        }
        nearest = rfi_is_nearer(name, known, &best) ? known : nearest;
        rfi_append(names, sizeof names, &used, "%s%s", i ? ", " : "", known);
    }
    return rfi_fail_at(error, REEF_E_NAME, node, false, "there is no metric '%.*s'%s%s%s There are %s", RFI_SHOW(name),
                       nearest ? "; did you mean '" : "", nearest ? nearest : ".", nearest ? "'?" : "", names);
}

static reef_status read_metrics(reef_experiment *e, reef_error *error)
{
    const rfi_yaml_node *node = rfi_yaml_find(e->yaml.root, "metrics");
    reef_status status = REEF_OK;
    if (!node) {
        return REEF_OK;
    }
    e->chosen_metrics = true;
    if (node->type != RFI_YAML_LIST || node->count == 0) {
        return read_metric(e, node, error);
    }
    for (const rfi_yaml_node *name = node->first; name && status == REEF_OK; name = name->next) {
        status = read_metric(e, name, error);
    }
    return status;
}

/* ---- load ---- */

static reef_status build(reef_experiment *e, const char *const *overrides, ptrdiff_t count, reef_error *error)
{
    reef_status status = rfi_yaml_read(e->context, e->text, e->text_size, e->source, &e->yaml, error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_renew_names(e->yaml.root, error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_override_all(e, overrides, count, error);
    if (status != REEF_OK) {
        return status;
    }
    status = check_keys(e->yaml.root, error);
    if (status != REEF_OK) {
        return status;
    }
    status = read_name(e, error);
    if (status != REEF_OK) {
        return status;
    }
    status = read_metrics(e, error);
    if (status != REEF_OK) {
        return status;
    }
    status = find_axes(e, error);
    if (status != REEF_OK) {
        return status;
    }
    status = make_grid(e, error);
    if (status != REEF_OK) {
        return status;
    }
    return rfi_records_make(e, error);
}

static char *copy_bytes(const reef_context *context, const void *bytes, size_t size)
{
    char *copy = rfi_allocate(context, size + 1);
    if (copy) {
        memcpy(copy, bytes, size);
        copy[size] = '\0';
    }
    return copy;
}

reef_status reef_experiment_read(reef_context *context, reef_experiment **experiment, const void *text, size_t size,
                                 const char *source, const char *const *overrides, ptrdiff_t count, reef_error *error)
{
    if (!experiment || !text || !source || count < 0 || (count && !overrides)) {
        return rfi_fail(error, REEF_E_ARG,
                        "reef_experiment_read: the text, its name or the pointer for the result is NULL");
    }
    reef_error own = {REEF_OK, ""};
    error = error ? error : &own;
    reef_experiment *e = rfi_allocate(context, sizeof *e);
    if (!e) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for an experiment");
    }
    *e = (reef_experiment){.context = context, .text_size = size};
    e->text = copy_bytes(context, text, size);
    e->source = copy_bytes(context, source, strlen(source));
    e->stock = rfi_stock_create(context);
    reef_status status = e->text && e->source && e->stock
                             ? build(e, overrides, count, error)
                             : rfi_fail(error, REEF_E_NOMEM, "not enough memory for an experiment");
    if (status != REEF_OK) {
        reef_experiment_destroy(&e);
        return status;
    }
    *experiment = e;
    return REEF_OK;
}

reef_status reef_experiment_load(reef_context *context, reef_experiment **experiment, const char *path,
                                 const char *const *overrides, ptrdiff_t count, reef_error *error)
{
    rfi_file file = {0};
    if (!path) {
        return rfi_fail(error, REEF_E_ARG, "reef_experiment_load: path is NULL");
    }
    reef_status status = rfi_file_read(context, path, RFI_YAML_BYTES_MAX, &file, error);
    if (status == REEF_OK) {
        status = reef_experiment_read(context, experiment, file.bytes, file.size, path, overrides, count, error);
    }
    rfi_file_free(context, &file);
    return status;
}

void reef_experiment_destroy(reef_experiment **experiment)
{
    if (!experiment || !*experiment) {
        return;
    }
    reef_experiment *e = *experiment;
    rfi_records_free(e);
    rfi_stock_destroy(&e->stock);
    rfi_override_free(e);
    rfi_yaml_free(e->context, &e->yaml);
    rfi_release(e->context, e->text);
    rfi_release(e->context, e->source);
    rfi_release(e->context, e);
    *experiment = NULL;
}

const char *reef_experiment_name(const reef_experiment *experiment)
{
    if (!experiment) {
        return NULL;
    }
    return experiment->name;
}

ptrdiff_t reef_experiment_cells(const reef_experiment *experiment)
{
    if (!experiment) {
        return 0;
    }
    return experiment->cells;
}

ptrdiff_t reef_experiment_axes(const reef_experiment *experiment)
{
    if (!experiment) {
        return 0;
    }
    return experiment->axis_count;
}

const char *reef_experiment_axis(const reef_experiment *experiment, ptrdiff_t axis)
{
    if (!experiment) {
        return NULL;
    }
    return axis >= 0 && axis < experiment->axis_count ? experiment->axes[axis].path : NULL;
}
