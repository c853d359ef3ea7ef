/* Making graphs from strings and arrays, and querying them. */
#include "graph/graph.h"

#include "base/error.h"
#include "base/text.h"
#include "base/memory.h"

static const reef_kind *const kinds[] = {
#define REEF_GRAPH(name) &rfi_graph_##name.kind,
#include "graph/graph_list.h"
#undef REEF_GRAPH
};

typedef struct common_params {
    bool loops;
} common_params;

static const reef_field common_fields[] = {
    {.name = "loops",
     .type = REEF_FIELD_BOOL,
     .offset = offsetof(common_params, loops),
     .preset = "true",
     .unit = "",
     .help = "every agent hears itself; files with weights define their own loops"},
};

const rfi_family rfi_family_graph = {.number = REEF_FAMILY_GRAPH,
                                     .name = "graph",
                                     .what = "graph",
                                     .builtin = kinds,
                                     .builtin_count = RFI_COUNT(kinds),
                                     .common = {"graph", common_fields, RFI_COUNT(common_fields)}};

/* ---- making ---- */

/* Draws again while a graph that should be connected is not: at least 3 times, at most 100, and not for ever on large ones. */
enum { DRAWS_LEAST = 3, DRAWS_MOST = 100, DRAWN_LINKS_ENOUGH = 20000000 };

static reef_status complain_apart(const rfi_graph_kind *kind, const void *params, ptrdiff_t agents, uint32_t draws,
                                  reef_error *error)
{
    char advice[160] = "";
    kind->advice(params, agents, advice, sizeof advice);
    return rfi_fail(error, REEF_E_GRAPH,
                    "%s: none of %u draws with %td agents was connected; %s, or set connected=false", kind->kind.name,
                    (unsigned)draws, agents, advice);
}

static reef_status draw_once(const rfi_graph_kind *kind, const void *params, rfi_draft *draft, reef_graph *graph,
                             reef_error *error)
{
    reef_status status = kind->generate(params, draft, error);
    if (status == REEF_OK) {
        status = rfi_draft_build(draft, graph, error);
    }
    rfi_draft_clear(draft);
    return status;
}

static reef_status draw(const rfi_graph_kind *kind, const void *params, rfi_draft *draft, reef_graph *graph,
                        reef_error *error)
{
    bool wanted = kind->connected && kind->connected(params);
    double drawn = 0;
    for (;;) {
        reef_status status = draw_once(kind, params, draft, graph, error);
        if (status != REEF_OK || !wanted) {
            return status;
        }
        reef_csr csr = reef_graph_csr(graph);
        ptrdiff_t components = rfi_components(graph->context, &csr, NULL);
        if (components == 1) {
            return REEF_OK;
        }
        if (components < 0) {
            return rfi_fail(error, REEF_E_NOMEM, "%s: not enough memory to look for components", kind->kind.name);
        }
        drawn += (double)(csr.start[csr.agents] + csr.agents);
        draft->attempt++;
        rfi_graph_clear(graph);
        if (draft->attempt >= DRAWS_MOST || (draft->attempt >= DRAWS_LEAST && drawn > DRAWN_LINKS_ENOUGH)) {
            return complain_apart(kind, params, draft->agents, draft->attempt, error);
        }
    }
}

/* Weights after the links, when the draft is gone: that keeps the peak near the size of the graph. */
static reef_status add_weights(reef_graph *graph, reef_error *error)
{
    reef_csr csr = reef_graph_csr(graph);
    if (graph->weight) {
        return rfi_scale_columns(&csr, graph->weight, error);
    }
    graph->weight = rfi_allocate_many(graph->context, reef_graph_links(graph), sizeof *graph->weight);
    if (!graph->weight) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for the weights of %td links", reef_graph_links(graph));
    }
    rfi_weigh_uniform(graph, graph->weight);
    return REEF_OK;
}

static reef_status keep_spec(reef_graph *graph, const reef_kind *kind, const void *params, const common_params *common,
                             reef_error *error)
{
    size_t length = 0;
    size_t used = 0;
    rfi_spec_print(&rfi_family_graph, kind, params, common, NULL, 0, &length);
    graph->spec = rfi_allocate(graph->context, length + 1);
    if (!graph->spec) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a graph");
    }
    rfi_spec_print(&rfi_family_graph, kind, params, common, graph->spec, length + 1, &used);
    return REEF_OK;
}

static reef_status check_agents(const rfi_graph_kind *kind, ptrdiff_t agents, reef_error *error)
{
    ptrdiff_t least = kind == &rfi_graph_file ? 0 : 1;
    if (agents < least || agents >= INT32_MAX) {
        return rfi_fail(error, REEF_E_RANGE, "%s: %td agents; between %td and %d are possible", kind->kind.name, agents,
                        least, INT32_MAX - 1);
    }
    return REEF_OK;
}

static reef_graph *new_graph(reef_context *context, reef_error *error)
{
    reef_graph *graph = rfi_allocate(context, sizeof *graph);
    if (!graph) {
        (void)rfi_fail(error, REEF_E_NOMEM, "not enough memory for a graph");
        return NULL;
    }
    *graph = (reef_graph){.context = context};
    return graph;
}

reef_status rfi_graph_make(reef_context *context, reef_graph **graph, const char *spec, ptrdiff_t agents, uint64_t seed,
                           rfi_numbers *input, reef_error *error)
{
    common_params common;
    const reef_kind *head = NULL;
    void *params = NULL;
    if (!graph || !spec) {
        return rfi_fail(error, REEF_E_ARG, "reef_graph_create: %s is NULL", graph ? "spec" : "graph");
    }
    reef_status status = rfi_spec_read(context, &rfi_family_graph, spec, &common, &head, &params, error);
    if (status != REEF_OK) {
        return status;
    }
    const rfi_graph_kind *kind = (const void *)head;
    reef_graph *made = new_graph(context, error);
    status = made ? check_agents(kind, agents, error) : REEF_E_NOMEM;
    if (status == REEF_OK) {
        rfi_draft draft = {.context = context,
                           .name = kind->kind.name,
                           .agents = agents,
                           .seed = seed,
                           .loops = common.loops,
                           .input = input};
        status = draw(kind, params, &draft, made, error);
    }
    if (status == REEF_OK) {
        status = add_weights(made, error);
    }
    if (status == REEF_OK) {
        status = keep_spec(made, &kind->kind, params, &common, error);
    }
    rfi_release(context, params);
    if (status != REEF_OK) {
        reef_graph_destroy(&made);
        return status;
    }
    *graph = made;
    return REEF_OK;
}

reef_status reef_graph_create(reef_context *context, reef_graph **graph, const char *spec, ptrdiff_t agents,
                              uint64_t seed, reef_error *error)
{
    return rfi_graph_make(context, graph, spec, agents, seed, NULL, error);
}

static reef_status draft_list(rfi_draft *draft, const reef_link_list *links, reef_error *error)
{
    for (ptrdiff_t i = 0; i < links->count; i++) {
        int32_t sender = links->senders[i];
        int32_t receiver = links->receivers[i];
        if (sender < 0 || sender >= draft->agents || receiver < 0 || receiver >= draft->agents) {
            return rfi_fail(error, REEF_E_RANGE, "link %td goes from %d to %d; agents are numbered 0 to %td", i,
                            (int)sender, (int)receiver, draft->agents - 1);
        }
        rfi_draft_add(draft, sender, receiver, links->weights ? links->weights[i] : 0);
    }
    return REEF_OK;
}

reef_status reef_graph_create_links(reef_context *context, reef_graph **graph, ptrdiff_t agents,
                                    const reef_link_list *links, reef_error *error)
{
    reef_status fits = rfi_check_size(links ? links->size : 0, sizeof *links, "reef_link_list", error);
    if (fits != REEF_OK) {
        return fits;
    }
    if (!graph || !links || links->count < 0 || (links->count > 0 && (!links->senders || !links->receivers))) {
        return rfi_fail(error, REEF_E_ARG, "reef_graph_create_links: graph or links are missing");
    }
    if (agents < 1 || agents >= INT32_MAX) {
        return rfi_fail(error, REEF_E_RANGE, "%td agents; between 1 and %d are possible", agents, INT32_MAX - 1);
    }
    reef_graph *made = new_graph(context, error);
    if (!made) {
        return REEF_E_NOMEM;
    }
    rfi_draft draft = {.context = context,
                       .name = "links",
                       .agents = agents,
                       .directed = links->directed,
                       .loops = !links->no_loops,
                       .weighted = links->weights != NULL};
    reef_status status = draft_list(&draft, links, error);
    if (status == REEF_OK) {
        status = rfi_draft_build(&draft, made, error);
    }
    rfi_draft_clear(&draft);
    if (status == REEF_OK) {
        status = add_weights(made, error);
    }
    if (status != REEF_OK) {
        reef_graph_destroy(&made);
        return status;
    }
    *graph = made;
    return REEF_OK;
}

void reef_graph_destroy(reef_graph **graph)
{
    if (!graph || !*graph) {
        return;
    }
    const reef_context *context = (*graph)->context;
    rfi_graph_clear(*graph);
    rfi_release(context, (*graph)->spec);
    rfi_release(context, *graph);
    *graph = NULL;
}

/* ---- asking ---- */

reef_csr reef_graph_csr(const reef_graph *graph)
{
    if (!graph) {
        return (reef_csr){0};
    }
    return (reef_csr){graph->agents, graph->start, graph->senders, graph->weight};
}

ptrdiff_t reef_graph_agents(const reef_graph *graph)
{
    if (!graph) {
        return 0;
    }
    return graph->agents;
}

ptrdiff_t reef_graph_links(const reef_graph *graph)
{
    if (!graph) {
        return 0;
    }
    return graph->start[graph->agents];
}

ptrdiff_t reef_graph_largest(const reef_graph *graph)
{
    if (!graph) {
        return 0;
    }
    return graph->largest;
}

bool reef_graph_symmetric(const reef_graph *graph)
{
    if (!graph) {
        return false;
    }
    return graph->symmetric;
}

size_t reef_graph_print(const reef_graph *graph, char *text, size_t size)
{
    if (!graph) {
        return rfi_no_text(text, size);
    }
    size_t used = 0;
    rfi_append(text, size, &used, "%s", graph->spec ? graph->spec : "");
    return used;
}

ptrdiff_t reef_csr_find(const reef_csr *csr, ptrdiff_t sender, ptrdiff_t receiver)
{
    if (!csr) {
        return -1;
    }
    ptrdiff_t low = csr->start[receiver];
    ptrdiff_t high = csr->start[receiver + 1];
    while (low < high) {
        ptrdiff_t middle = low + (high - low) / 2;
        if (csr->senders[middle] < sender) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < csr->start[receiver + 1] && csr->senders[low] == sender ? low : -1;
}
