/* Every link is always up. */
#include "graph/links/links.h"

const rfi_link_kind rfi_links_static = {
    .kind = {.name = "static", .summary = "every link is always up", .citation = ""}};
