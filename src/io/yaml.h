/* YAML: text -> a tree of scalars, lists and maps that know where they stand.
 *
 * What is read is the plain part of YAML: no anchors and aliases, no tags, one document, keys that are scalars and each only once in
 * its map. Size, depth and number of nodes are bounded, so that hostile files cost little. yaml.c is the only file that sees libyaml. */
#ifndef RFI_IO_YAML_H
#define RFI_IO_YAML_H

#include <reef/context.h>
#include <stdbool.h>
#include <stddef.h>

/* Limits of a document. */
enum { RFI_YAML_BYTES_MAX = 1 << 18, RFI_YAML_NODES_MAX = 10000, RFI_YAML_DEPTH_MAX = 16 };

typedef enum rfi_yaml_type { RFI_YAML_SCALAR, RFI_YAML_LIST, RFI_YAML_MAP } rfi_yaml_type;

typedef struct rfi_yaml_node rfi_yaml_node;
struct rfi_yaml_node {
    rfi_yaml_type type;
    bool quoted;        /* scalar in quotes: a text whatever it looks like */
    int line, column;   /* from 1, in characters */
    const char *source; /* name of the document, as given to rfi_yaml_read */
    const char *text;   /* scalar: terminated, no 0 within */
    size_t length;
    const char *key; /* in a map: terminated; else NULL */
    int key_line, key_column;
    rfi_yaml_node *first; /* list or map: the first child, or NULL */
    rfi_yaml_node *next;  /* of the same parent, or NULL */
    ptrdiff_t count;      /* children */
};

/* A document owns its nodes and texts, all in one block. */
typedef struct rfi_yaml {
    rfi_yaml_node *root;
    void *memory;
} rfi_yaml;

/* Whether this library was built with YAML. */
bool rfi_yaml_available(void);
/* Reads a document. An empty one gives an empty map. `source` (a file name) begins each message, followed by line and column, and
 * must outlive the document. On failure *yaml is untouched. */
reef_status rfi_yaml_read(const reef_context *context, const void *bytes, size_t size, const char *source,
                          rfi_yaml *yaml, reef_error *error);
/* Releases the memory and clears *yaml; accepts a cleared one. */
void rfi_yaml_free(const reef_context *context, rfi_yaml *yaml);

/* The child of a map with that key, or NULL. */
rfi_yaml_node *rfi_yaml_find(const rfi_yaml_node *map, const char *key);
/* "a list" and the like, for messages. */
const char *rfi_yaml_type_text(rfi_yaml_type type);

#endif
