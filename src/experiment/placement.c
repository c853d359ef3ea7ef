/* Placements of liars as kinds with fields. */
#include "experiment/placement.h"

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
        .preset = "false", .unit = "", .help = "only where every benign agent keeps a majority of benign senders"      \
    }
static const reef_field place_fields[] = {KEEP};
static const reef_field list_fields[] = {
    {.name = "agents",
     .type = REEF_FIELD_TEXT,
     .offset = offsetof(placement_params, agents),
     .preset = "",
     .unit = "",
     .help = "numbers of the agents that lie, from 0, with blanks between"},
    KEEP,
};

/* By reef_place. */
static const reef_kind kinds[] = {
    [REEF_PLACE_RANDOM] = {"random", "any agents, alike", "", place_fields, RFI_COUNT(place_fields),
                           sizeof(placement_params)},
    [REEF_PLACE_WORST] = {"worst", "each next liar where it harms most neighbourhoods near their limit", "",
                          place_fields, RFI_COUNT(place_fields), sizeof(placement_params)},
    [REEF_PLACE_LIST] = {"list", "the agents named", "", list_fields, RFI_COUNT(list_fields), sizeof(placement_params)},
};

ptrdiff_t rfi_placement_count(void)
{
    return RFI_COUNT(kinds);
}

const reef_kind *rfi_placement_at(ptrdiff_t index)
{
    return index >= 0 && index < RFI_COUNT(kinds) ? &kinds[index] : NULL;
}

static const char *kind_name(const void *user, ptrdiff_t i)
{
    (void)user;
    return kinds[i].name;
}

static const reef_kind *kind_at(const void *user, ptrdiff_t i)
{
    (void)user;
    return &kinds[i];
}

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
            return rfi_fail(error, REEF_E_LIARS, "list: more liars than the %td agents", room);
        }
        list[(*count)++] = (int32_t)number;
    }
    return REEF_OK;
}

/* The graph that liars are placed on when there is none: a line serves, for only the number of agents counts then. */
static reef_status place_on(const reef_context *context, const reef_graph *graph, const reef_placement *placement,
                            ptrdiff_t agents, bool *liar, ptrdiff_t *placed, reef_error *error)
{
    reef_graph *line = NULL;
    if (!graph) {
        reef_status status = reef_graph_create(&line, "line", agents, 0, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    reef_csr csr = reef_graph_csr(graph ? graph : line);
    reef_status status = reef_graph_place_liars(context, &csr, placement, liar, placed, error);
    reef_graph_destroy(&line);
    return status;
}

reef_status rfi_place_liars(const reef_context *context, const reef_graph *graph, ptrdiff_t agents, const char *spec,
                            reef_liars liars, uint64_t seed, bool *liar, ptrdiff_t *placed, reef_error *error)
{
    const rfi_catalogue catalogue = {"placement", kind_name, kind_at, NULL, RFI_COUNT(kinds)};
    ptrdiff_t index = 0;
    void *params = NULL;
    reef_status status = rfi_spec_read(context, &catalogue, spec, NULL, &index, &params, error);
    if (status != REEF_OK) {
        return status;
    }
    const placement_params *p = params;
    int32_t *list = rfi_allocate_many(context, agents, sizeof *list);
    reef_placement placement = {
        .how = (reef_place)index, .liars = liars, .keep_majority = p->keep_majority, .seed = seed, .list = list};
    status = list ? read_agents(index == REEF_PLACE_LIST ? p->agents : "", list, agents, &placement.list_count, error)
                  : rfi_fail(error, REEF_E_NOMEM, "no memory for %td agents", agents);
    if (index == REEF_PLACE_LIST) {
        placement.liars = (reef_liars){REEF_LIARS_COUNT, (double)placement.list_count};
    }
    if (status == REEF_OK && !graph && (placement.keep_majority || index == REEF_PLACE_WORST)) {
        status = rfi_fail(error, REEF_E_ARG, "%s: this placement needs a graph", kinds[index].name);
    }
    if (status == REEF_OK) {
        status = place_on(context, graph, &placement, agents, liar, placed, error);
    }
    rfi_release(context, list);
    rfi_release(context, params);
    return status;
}
