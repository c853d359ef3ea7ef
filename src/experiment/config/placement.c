/* Placements of malicious agents, as kinds with fields. */
#include "experiment/config/placement.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/spec.h"

#include <math.h>
#include <string.h>

typedef struct placement_params {
    bool keep_majority;
    char agents[REEF_TEXT_SIZE];
} placement_params;

#define KEEP                                                                                                           \
    {                                                                                                                  \
        .name = "keep_majority", .type = REEF_FIELD_BOOL, .offset = offsetof(placement_params, keep_majority),         \
        .preset = "false", .unit = "", .help = "only where every honest agent keeps an honest majority of senders"     \
    }
static const reef_field place_fields[] = {KEEP};
static const reef_field list_fields[] = {
    {.name = "agents",
     .type = REEF_FIELD_TEXT,
     .offset = offsetof(placement_params, agents),
     .preset = "",
     .unit = "",
     .help = "numbers of the malicious agents, from 0, separated by blanks"},
    KEEP,
};

typedef struct placement_kind {
    reef_kind kind;
    reef_place how;
} placement_kind;

static const placement_kind placed_random = {
    {.name = "random", "uniformly at random", "", place_fields, RFI_COUNT(place_fields), sizeof(placement_params)},
    REEF_PLACE_RANDOM};
static const placement_kind placed_worst = {{.name = "worst",
                                             "greedily, each where it affects most neighbourhoods near their limit",
                                             "",
                                             place_fields,
                                             RFI_COUNT(place_fields),
                                             sizeof(placement_params)},
                                            REEF_PLACE_WORST};
static const placement_kind placed_list = {
    {.name = "list", "the agents listed", "", list_fields, RFI_COUNT(list_fields), sizeof(placement_params)},
    REEF_PLACE_LIST};

static const reef_kind *const kinds[] = {&placed_random.kind, &placed_worst.kind, &placed_list.kind};

const rfi_family rfi_family_placement = {.number = REEF_FAMILY_PLACEMENT,
                                         .name = "placement",
                                         .what = "placement",
                                         .builtin = kinds,
                                         .builtin_count = RFI_COUNT(kinds)};

/* Numbers with blanks between; at most `room`. */
static reef_status read_agents(const char *text, int32_t *list, ptrdiff_t room, ptrdiff_t *count, reef_error *error)
{
    rfi_slice rest = rfi_trim((rfi_slice){text, strlen(text)});
    bool more = rest.length > 0;
    *count = 0;
    while (more) {
        double number = 0;
        rfi_slice word = rfi_cut(rest, ' ', &rest, &more);
        rest = rfi_trim(rest);
        if (!rfi_read_real(word, &number) || number < 0 || number > INT32_MAX || number != floor(number)) {
            return rfi_fail(error, REEF_E_RANGE, "list: '%.*s' is not the number of an agent", RFI_SHOW(word));
        }
        if (*count == room) {
            return rfi_fail(error, REEF_E_MALICIOUS, "list: more malicious agents than the %td agents there are", room);
        }
        list[(*count)++] = (int32_t)number;
    }
    return REEF_OK;
}

/* The graph on which malicious agents are placed if there is none: a line will do, since only the number of agents matters then. */
static reef_status place_on(const reef_context *context, const reef_graph *graph, const reef_placement *placement,
                            ptrdiff_t agents, bool *malicious, ptrdiff_t *placed, reef_error *error)
{
    reef_graph *line = NULL;
    if (!graph) {
        reef_status status = reef_graph_create(NULL, &line, "line", agents, 0, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    reef_csr csr = reef_graph_csr(graph ? graph : line);
    reef_status status = reef_graph_place_malicious(context, &csr, placement, malicious, placed, error);
    reef_graph_destroy(&line);
    return status;
}

reef_status rfi_place_malicious(const reef_context *context, const reef_graph *graph, ptrdiff_t agents,
                                const char *spec, reef_malicious malicious_count, uint64_t seed, bool *malicious,
                                ptrdiff_t *placed, reef_error *error)
{
    const reef_kind *kind = NULL;
    void *params = NULL;
    reef_status status = rfi_spec_read(context, &rfi_family_placement, spec, NULL, &kind, &params, error);
    if (status != REEF_OK) {
        return status;
    }
    const placement_params *p = params;
    reef_place how = ((const placement_kind *)(const void *)kind)->how;
    int32_t *list = rfi_allocate_many(context, agents, sizeof *list);
    reef_placement placement = {
        .how = how, .malicious_count = malicious_count, .keep_majority = p->keep_majority, .seed = seed, .list = list};
    status = list ? read_agents(how == REEF_PLACE_LIST ? p->agents : "", list, agents, &placement.list_count, error)
                  : rfi_fail(error, REEF_E_NOMEM, "not enough memory for %td agents", agents);
    if (how == REEF_PLACE_LIST) {
        placement.malicious_count = (reef_malicious){REEF_MALICIOUS_COUNT, (double)placement.list_count};
    }
    if (status == REEF_OK && !graph && (placement.keep_majority || how == REEF_PLACE_WORST)) {
        status = rfi_fail(error, REEF_E_ARG, "%s: this placement needs a graph", kind->name);
    }
    if (status == REEF_OK) {
        status = place_on(context, graph, &placement, agents, malicious, placed, error);
    }
    rfi_release(context, list);
    rfi_release(context, params);
    return status;
}
