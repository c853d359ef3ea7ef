/* YAML by libyaml's events. Two passes over the text with the same code: the first measures, the second fills one block of memory. */
#include "io/yaml.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/file.h"

#include <assert.h>
#include <string.h>

rfi_yaml_node *rfi_yaml_find(const rfi_yaml_node *map, const char *key)
{
    rfi_yaml_node *child = map->type == RFI_YAML_MAP ? map->first : NULL;
    while (child && strcmp(child->key, key) != 0) {
        child = child->next;
    }
    return child;
}

const char *rfi_yaml_type_text(rfi_yaml_type type)
{
    static const char *const texts[] = {"a single value", "a list", "a map"};
    return texts[type];
}

void rfi_yaml_free(const reef_context *context, rfi_yaml *yaml)
{
    rfi_release(context, yaml->memory);
    *yaml = (rfi_yaml){0};
}

#ifndef REEF_HAVE_YAML

bool rfi_yaml_available(void)
{
    return false;
}

reef_status rfi_yaml_read(const reef_context *context, const void *bytes, size_t size, const char *source,
                          rfi_yaml *yaml, reef_error *error)
{
    (void)context;
    (void)bytes;
    (void)size;
    (void)yaml;
    return rfi_fail(error, REEF_E_FORMAT, "%s: Reef was built without YAML support; install libyaml and build it again",
                    rfi_path_show(source));
}

#else

#include <yaml.h>

bool rfi_yaml_available(void)
{
    return true;
}

/* One open list or map. */
typedef struct level {
    rfi_yaml_node *node; /* NULL while measuring */
    rfi_yaml_node *last; /* its last child */
    bool is_map;
    const char *key; /* waiting for its value; NULL: a key is next */
    int key_line, key_column;
} level;

typedef struct builder {
    const char *source;
    reef_error *error;
    rfi_yaml_node *nodes; /* NULL: measure only */
    char *texts;
    ptrdiff_t node_count;
    size_t text_used;
    level levels[RFI_YAML_DEPTH_MAX];
    int depth;
    rfi_yaml_node *root;
} builder;

static reef_status refuse(const builder *b, yaml_mark_t mark, reef_status status, const char *what)
{
    return rfi_fail(b->error, status, "%s:%zu:%zu: %s", rfi_path_show(b->source), mark.line + 1, mark.column + 1, what);
}

/* A terminated copy of a scalar; while measuring any text that is not NULL. */
static const char *keep_text(builder *b, const yaml_event_t *event)
{
    size_t length = event->data.scalar.length;
    char *copy = b->nodes ? b->texts + b->text_used : NULL;
    if (copy) {
        memcpy(copy, event->data.scalar.value, length);
        copy[length] = '\0';
    }
    b->text_used += length + 1;
    return copy ? copy : "";
}

static reef_status take_key(builder *b, level *top, const yaml_event_t *event)
{
    top->key = keep_text(b, event);
    top->key_line = (int)event->start_mark.line + 1;
    top->key_column = (int)event->start_mark.column + 1;
    if (b->nodes && rfi_yaml_find(top->node, top->key)) {
        char text[120];
        size_t used = 0;
        const rfi_slice key = {top->key, strlen(top->key)};
        bool word = rfi_is_word(key);
        rfi_append(text, sizeof text, &used, "the key%s%.*s%s is given twice in this map", word ? " '" : "",
                   word ? (int)key.length : 0, key.text, word ? "'" : "");
        return refuse(b, event->start_mark, REEF_E_FORMAT, text);
    }
    return REEF_OK;
}

/* Hangs a new node into the tree. */
static void link_node(builder *b, rfi_yaml_node *node)
{
    if (b->depth == 0) {
        b->root = node;
        return;
    }
    level *top = &b->levels[b->depth - 1];
    assert(top->is_map == (top->key != NULL)); /* values of a map have their key by now */
    node->key = top->is_map ? top->key : NULL;
    node->key_line = top->key_line;
    node->key_column = top->key_column;
    *(top->last ? &top->last->next : &top->node->first) = node;
    top->last = node;
    top->node->count++;
}

static reef_status add_node(builder *b, const yaml_event_t *event, rfi_yaml_type type, rfi_yaml_node **added)
{
    if (b->node_count == RFI_YAML_NODES_MAX) {
        return refuse(b, event->start_mark, REEF_E_FORMAT, "too many values (more than 10000)");
    }
    rfi_yaml_node *node = b->nodes ? &b->nodes[b->node_count] : NULL;
    b->node_count++;
    if (node) {
        *node = (rfi_yaml_node){.type = type,
                                .line = (int)event->start_mark.line + 1,
                                .column = (int)event->start_mark.column + 1,
                                .source = b->source};
        link_node(b, node);
    }
    if (b->depth > 0) {
        b->levels[b->depth - 1].key = NULL;
    }
    *added = node;
    return REEF_OK;
}

/* Escapes in quotes can bring any character; blanks and lines of long texts are none to fear. */
static bool is_plain(const yaml_event_t *event)
{
    rfi_slice rest = {(const char *)event->data.scalar.value, event->data.scalar.length};
    while (rest.length > 0) {
        size_t length = 0;
        while (length < rest.length && rest.text[length] != '\n' && rest.text[length] != '\t') {
            length++;
        }
        if (rfi_has_control((rfi_slice){rest.text, length})) {
            return false;
        }
        length += length < rest.length;
        rest = (rfi_slice){rest.text + length, rest.length - length};
    }
    return true;
}

static reef_status on_scalar(builder *b, const yaml_event_t *event)
{
    level *top = b->depth ? &b->levels[b->depth - 1] : NULL;
    rfi_yaml_node *node = NULL;
    if (event->data.scalar.anchor || event->data.scalar.tag) {
        return refuse(b, event->start_mark, REEF_E_FORMAT,
                      "anchors (&) and tags (!) are not supported; write the value out");
    }
    if (!is_plain(event)) {
        return refuse(b, event->start_mark, REEF_E_FORMAT, "a string may not contain control characters");
    }
    if (top && top->is_map && !top->key) {
        return take_key(b, top, event);
    }
    reef_status status = add_node(b, event, RFI_YAML_SCALAR, &node);
    const char *text = status == REEF_OK ? keep_text(b, event) : NULL;
    if (node) {
        node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        node->text = text;
        node->length = event->data.scalar.length;
    }
    return status;
}

static reef_status on_start(builder *b, const yaml_event_t *event, bool is_map)
{
    const level *top = b->depth ? &b->levels[b->depth - 1] : NULL;
    rfi_yaml_node *node = NULL;
    bool marked = is_map ? event->data.mapping_start.anchor || event->data.mapping_start.tag
                         : event->data.sequence_start.anchor || event->data.sequence_start.tag;
    if (marked) {
        return refuse(b, event->start_mark, REEF_E_FORMAT,
                      "anchors (&) and tags (!) are not supported; write the value out");
    }
    if (top && top->is_map && !top->key) {
        return refuse(b, event->start_mark, REEF_E_FORMAT, "a key must be a single word, not a list or a map");
    }
    if (b->depth == RFI_YAML_DEPTH_MAX) {
        return refuse(b, event->start_mark, REEF_E_FORMAT,
                      "lists and maps are nested too deeply (more than 16 levels)");
    }
    reef_status status = add_node(b, event, is_map ? RFI_YAML_MAP : RFI_YAML_LIST, &node);
    b->levels[b->depth] = (level){.node = node, .is_map = is_map};
    b->depth += status == REEF_OK;
    return status;
}

static reef_status on_event(builder *b, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(b, event);
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        return on_start(b, event, event->type == YAML_MAPPING_START_EVENT);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        b->depth -= b->depth > 0;
        return REEF_OK;
    case YAML_ALIAS_EVENT:
        return refuse(b, event->start_mark, REEF_E_FORMAT, "aliases (*) are not supported; write the value out");
    case YAML_DOCUMENT_START_EVENT:
        return b->node_count ? refuse(b, event->start_mark, REEF_E_FORMAT, "only one document per file is supported")
                             : REEF_OK;
    default:
        return REEF_OK;
    }
}

/* libyaml's own words, which know no file. */
static reef_status parse_error(const builder *b, const yaml_parser_t *parser)
{
    if (parser->error == YAML_MEMORY_ERROR) {
        return rfi_fail(b->error, REEF_E_NOMEM, "%s: not enough memory while reading", rfi_path_show(b->source));
    }
    const char *problem = parser->problem ? parser->problem : "malformed";
    if (parser->error == YAML_READER_ERROR) {
        return rfi_fail(b->error, REEF_E_FORMAT, "%s: not UTF-8 text (%s at byte %zu)", rfi_path_show(b->source),
                        problem, parser->problem_offset);
    }
    return refuse(b, parser->problem_mark, REEF_E_FORMAT, problem);
}

static reef_status walk(builder *b, const void *bytes, size_t size)
{
    yaml_parser_t parser;
    reef_status status = REEF_OK;
    bool more = true;
    if (!yaml_parser_initialize(&parser)) {
        return rfi_fail(b->error, REEF_E_NOMEM, "%s: not enough memory while reading", rfi_path_show(b->source));
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    /* Some editors begin a file with a byte order mark, which libyaml takes for text where the encoding is set. */
    if (size >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0) {
        yaml_parser_set_input_string(&parser, (const unsigned char *)bytes + 3, size - 3);
    } else {
        yaml_parser_set_input_string(&parser, bytes, size);
    }
    while (more && status == REEF_OK) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            status = parse_error(b, &parser);
            break;
        }
        more = event.type != YAML_STREAM_END_EVENT;
        status = on_event(b, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return status;
}

/* An empty file is an empty map. */
static rfi_yaml_node *empty_root(const builder *b)
{
    b->nodes[0] = (rfi_yaml_node){.type = RFI_YAML_MAP, .line = 1, .column = 1, .source = b->source};
    return &b->nodes[0];
}

reef_status rfi_yaml_read(const reef_context *context, const void *bytes, size_t size, const char *source,
                          rfi_yaml *yaml, reef_error *error)
{
    builder measure = {0};
    measure.source = source;
    measure.error = error;
    if (size > RFI_YAML_BYTES_MAX) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: %zu bytes; at most %d are supported", rfi_path_show(source), size,
                        RFI_YAML_BYTES_MAX);
    }
    reef_status status = walk(&measure, bytes, size);
    if (status != REEF_OK) {
        return status;
    }
    size_t nodes = (size_t)(measure.node_count + 1) * sizeof(rfi_yaml_node);
    void *memory = rfi_allocate(context, nodes + measure.text_used);
    if (!memory) {
        return rfi_fail(error, REEF_E_NOMEM, "%s: not enough memory while reading", rfi_path_show(source));
    }
    builder fill = {0};
    fill.source = source;
    fill.error = error;
    fill.nodes = memory;
    fill.texts = (char *)memory + nodes;
    status = walk(&fill, bytes, size);
    if (status != REEF_OK) {
        rfi_release(context, memory);
        return status;
    }
    assert(fill.node_count == measure.node_count && fill.text_used == measure.text_used); /* the same walk twice */
    *yaml = (rfi_yaml){fill.root ? fill.root : empty_root(&fill), memory};
    return REEF_OK;
}

#endif
