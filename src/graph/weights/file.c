/* the weights of a text file, for the links that the graph has */
#include "graph/weights/weights.h"

#include "base/error.h"

#include <string.h>

typedef struct file_params {
    char path[REEF_TEXT_SIZE];
    int format;
    bool directed;
} file_params;

static const char *const formats[] = {"edges", "matrix", NULL};

static const reef_field file_fields[] = {
    {.name = "path",
     .type = REEF_FIELD_TEXT,
     .offset = offsetof(file_params, path),
     .preset = "",
     .unit = "",
     .help = "the file; it must have a weight for every link of the graph and for no other"},
    {.name = "format",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(file_params, format),
     .preset = "edges",
     .unit = "",
     .help = "one link per line (l k weight), or a matrix with a row per sender and a column per receiver",
     .words = formats},
    {.name = "directed",
     .type = REEF_FIELD_BOOL,
     .offset = offsetof(file_params, directed),
     .preset = "false",
     .unit = "",
     .help = "edges: a weight applies only from the first agent to the second"},
};

/* The first link that only one of the two graphs has. */
static reef_status compare_links(const reef_graph *graph, const reef_graph *file, const char *path, reef_error *error)
{
    for (ptrdiff_t k = 0; k < graph->agents; k++) {
        ptrdiff_t i = graph->start[k];
        ptrdiff_t j = file->start[k];
        while (i < graph->start[k + 1] || j < file->start[k + 1]) {
            int32_t ours = i < graph->start[k + 1] ? graph->senders[i++] : INT32_MAX;
            int32_t theirs = j < file->start[k + 1] ? file->senders[j++] : INT32_MAX;
            if (ours != theirs) {
                bool missing = ours < theirs;
                return rfi_fail(error, REEF_E_WEIGHTS, "%s has %s weight for the link %d -> %td, which the graph %s",
                                path, missing ? "no" : "a", (int)(missing ? ours : theirs), k,
                                missing ? "has" : "has not");
            }
        }
    }
    return REEF_OK;
}

static reef_status file_fill(const rfi_weighing *w, double *weight, reef_error *error)
{
    const file_params *p = w->params;
    char spec[REEF_TEXT_SIZE + 64];
    size_t used = 0;
    reef_graph *file = NULL;
    if (p->path[0] == '\0') {
        return rfi_fail(error, REEF_E_SYNTAX, "file: a path is missing, for instance file:path=weights.txt");
    }
    rfi_append(spec, sizeof spec, &used, "file:values=weights,format=%s,directed=%s,path=%s", formats[p->format],
               p->directed ? "true" : "false", p->path);
    reef_status status = rfi_graph_make(w->graph->context, &file, spec, w->graph->agents, 0, NULL, error);
    if (status == REEF_OK) {
        status = compare_links(w->graph, file, p->path, error);
    }
    if (status == REEF_OK) {
        memcpy(weight, file->weight, (size_t)reef_graph_links(file) * sizeof *weight);
    }
    reef_graph_destroy(&file);
    return status;
}

const rfi_weight_kind rfi_weights_file = {.kind = {.name = "file",
                                                   .summary = "from a text file, for the links that the graph has",
                                                   .citation = "",
                                                   .fields = file_fields,
                                                   .field_count = RFI_COUNT(file_fields),
                                                   .params_size = sizeof(file_params)},
                                          .fill = file_fill};
