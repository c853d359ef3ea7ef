/* YAML from anywhere: any bytes are either refused with a sentence, or give a tree within the limits whose counts and links agree. */
#include "check.h"
#include "io/yaml.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Number of nodes below and with this one. */
static ptrdiff_t check_node(const rfi_yaml_node *node, int depth)
{
    ptrdiff_t nodes = 1;
    ptrdiff_t children = 0;
    CHECK(depth <= RFI_YAML_DEPTH_MAX && node->line >= 1 && node->column >= 1);
    if (node->type == RFI_YAML_SCALAR) {
        CHECK(strlen(node->text) == node->length && !node->first);
        return 1;
    }
    for (const rfi_yaml_node *child = node->first; child; child = child->next) {
        CHECK((child->key != NULL) == (node->type == RFI_YAML_MAP));
        CHECK(!child->key || rfi_yaml_find(node, child->key) == child);
        nodes += check_node(child, depth + 1);
        children++;
    }
    CHECK(children == node->count);
    return nodes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rfi_yaml yaml = {0};
    reef_error error = {REEF_OK, ""};
    if (rfi_yaml_read(NULL, data, size, "fuzz", &yaml, &error) != REEF_OK) {
        CHECK(error.status != REEF_OK && strncmp(error.text, "fuzz:", 5) == 0);
        return 0;
    }
    CHECK(check_node(yaml.root, 0) <= RFI_YAML_NODES_MAX);
    rfi_yaml_free(NULL, &yaml);
    return 0;
}
