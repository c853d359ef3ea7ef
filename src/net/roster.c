/* What a run file says, made into objects. */
#include "net/roster.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"
#include "net/node.h"

#include <reef/member.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- who hears whom ---- */

/* One "alice~bob" of links. */
static reef_status read_link(const rfi_runfile *file, rfi_slice word, int32_t ends[2], reef_error *error)
{
    bool found = false;
    rfi_slice second;
    rfi_slice first = rfi_cut(word, '~', &second, &found);
    const rfi_slice names[] = {first, second};
    for (int i = 0; i < 2; i++) {
        ptrdiff_t k = file->agents - 1;
        while (k >= 0 && !rfi_equals(names[i], file->participants[k].name)) {
            k--;
        }
        if (!found || k < 0) {
            return rfi_fail(error, REEF_E_GRAPH, "links: '%.*s' does not name two agents as in alice~bob",
                            RFI_SHOW(word));
        }
        ends[i] = (int32_t)k;
    }
    return REEF_OK;
}

static reef_status make_links(rfi_roster *r, reef_error *error)
{
    enum { LINKS_MAX = REEF_TEXT_SIZE / 4 };
    int32_t from[LINKS_MAX];
    int32_t to[LINKS_MAX];
    reef_link_list list = {.senders = from, .receivers = to};
    rfi_slice rest = {r->file->terms.links, strlen(r->file->terms.links)};
    bool more = true;
    while (more) {
        int32_t ends[2];
        rfi_slice word = rfi_cut(rest, ' ', &rest, &more);
        if (word.length == 0) {
            continue;
        }
        reef_status status = read_link(r->file, word, ends, error);
        if (status != REEF_OK) {
            return status;
        }
        from[list.count] = ends[0];
        to[list.count++] = ends[1];
    }
    return reef_graph_create_links(r->context, &r->graph, r->file->agents, &list, error);
}

/* The links of a graph of the agents who are there, by their places. */
static reef_status spread_links(rfi_roster *r, const reef_graph *graph, const int32_t *place, reef_error *error)
{
    reef_csr csr = reef_graph_csr(graph);
    ptrdiff_t most = csr.start[csr.agents];
    int32_t *ends = rfi_allocate_many(r->context, 2 * most, sizeof *ends);
    if (!ends) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a graph");
    }
    reef_link_list list = {.senders = ends, .receivers = ends + most, .directed = true};
    for (ptrdiff_t k = 0; k < csr.agents; k++) {
        for (ptrdiff_t i = csr.start[k]; i < csr.start[k + 1]; i++) {
            if (csr.senders[i] != k) {
                ends[list.count] = place[csr.senders[i]];
                ends[most + list.count++] = place[k];
            }
        }
    }
    reef_status status = reef_graph_create_links(r->context, &r->graph, r->file->agents, &list, error);
    rfi_release(r->context, ends);
    return status;
}

/* Who has left keeps a place, but is no part of the graph. */
static reef_status make_graph_of(rfi_roster *r, ptrdiff_t present, reef_error *error)
{
    const rfi_terms *terms = &r->file->terms;
    reef_graph *graph = NULL;
    int32_t *place = rfi_allocate_many(r->context, r->file->agents, sizeof *place);
    if (!place) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a graph");
    }
    ptrdiff_t count = 0;
    for (ptrdiff_t k = 0; k < r->file->agents; k++) {
        if (!r->file->participants[k].removed) {
            place[count++] = (int32_t)k;
        }
    }
    reef_status status = reef_graph_create(r->context, &graph, terms->graph, present, (uint64_t)terms->seed, error);
    if (status == REEF_OK) {
        status = spread_links(r, graph, place, error);
    }
    reef_graph_destroy(&graph);
    rfi_release(r->context, place);
    return status;
}

static ptrdiff_t count_present(const rfi_runfile *file)
{
    ptrdiff_t present = 0;
    for (ptrdiff_t k = 0; k < file->agents; k++) {
        present += !file->participants[k].removed;
    }
    return present;
}

static reef_status make_graph(rfi_roster *r, reef_error *error)
{
    const rfi_terms *terms = &r->file->terms;
    if (terms->links[0]) {
        return make_links(r, error);
    }
    if (strncmp(terms->graph, "file", 4) == 0) {
        return rfi_fail(error, REEF_E_GRAPH, "graph: a run file cannot refer to another file; use links");
    }
    ptrdiff_t present = count_present(r->file);
    if (present < r->file->agents) {
        return make_graph_of(r, present, error);
    }
    return reef_graph_create(r->context, &r->graph, terms->graph, r->file->agents, (uint64_t)terms->seed, error);
}

static reef_status set_weights(rfi_roster *r, reef_error *error)
{
    const reef_problem_kind *kind = r->problem ? reef_problem_kind_of(r->problem) : NULL;
    const char *spec = r->file->terms.weights;
    bool known = kind && kind->variance;
    double *variance = known ? rfi_allocate_many(r->context, r->file->agents, sizeof *variance) : NULL;
    if (known && !variance) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td agents", r->file->agents);
    }
    for (ptrdiff_t k = 0; variance && k < r->file->agents; k++) {
        variance[k] = kind->variance(reef_problem_state(r->problem), k);
    }
    const reef_weight_data data = {.variance = variance};
    reef_status status = reef_graph_set_weights(r->graph, spec, variance ? &data : NULL, error);
    rfi_release(r->context, variance);
    return status;
}

static reef_status check_graph(const rfi_roster *r, reef_error *error)
{
    reef_csr csr = reef_graph_csr(r->graph);
    reef_graph_facts facts;
    reef_status status = reef_graph_check(r->context, &csr, NULL, &facts, error);
    if (status != REEF_OK) {
        return status;
    }
    for (ptrdiff_t k = 0; k < csr.agents; k++) {
        ptrdiff_t heard = csr.start[k + 1] - csr.start[k];
        if (r->file->participants[k].removed && heard > (reef_csr_find(&csr, k, k) >= 0)) {
            return rfi_fail(error, REEF_E_GRAPH, "links: %s was removed", r->file->participants[k].name);
        }
    }
    ptrdiff_t removed = csr.agents - count_present(r->file); /* each a part of the graph by itself */
    if (facts.components - removed != 1) {
        return rfi_fail(error, REEF_E_GRAPH, "the graph falls into %td parts that do not hear each other",
                        facts.components - removed);
    }
    if (facts.largest - 1 > RFI_NEIGHBOURS_MAX) {
        return rfi_fail(error, REEF_E_GRAPH, "an agent has %td neighbours; at most %d", facts.largest - 1,
                        RFI_NEIGHBOURS_MAX);
    }
    for (ptrdiff_t k = 0; k < csr.agents && r->file->terms.seal; k++) {
        ptrdiff_t hearers = rfi_roster_hearers(r, k, NULL);
        if (hearers > RFI_HEARERS_MAX) {
            return rfi_fail(error, REEF_E_GRAPH, "%s is heard by %td agents; with seal: true by at most %d",
                            r->file->participants[k].name, hearers, RFI_HEARERS_MAX);
        }
    }
    for (ptrdiff_t k = 0; k < csr.agents; k++) {
        const rfi_participant *who = &r->file->participants[k];
        ptrdiff_t self = reef_csr_find(&csr, k, k);
        if (!who->removed && self < 0) {
            return rfi_fail(error, REEF_E_GRAPH, "%s does not hear itself: the graph needs loops=true", who->name);
        }
        if (!who->removed && csr.agents - removed > 1 && csr.weight[self] >= 0.5) {
            return rfi_fail(error, REEF_E_GRAPH,
                            "%s has half of the weight in its own neighbourhood: it would follow nobody", who->name);
        }
    }
    return REEF_OK;
}

/* ---- the rest ---- */

/* Tries the rule on as many models as the agent has: what it refuses now it would refuse in every round. */
static reef_status try_rule(const rfi_roster *r, ptrdiff_t agent, reef_error *error)
{
    reef_csr csr = reef_graph_csr(r->graph);
    ptrdiff_t rows = csr.start[agent + 1] - csr.start[agent];
    float numbers[RFI_NEIGHBOURS_MAX + 1];
    const void *row[RFI_NEIGHBOURS_MAX + 1];
    float out = 0;
    reef_error why = {REEF_OK, ""};
    for (ptrdiff_t i = 0; i < rows; i++) {
        numbers[i] = (float)i;
        row[i] = &numbers[i];
    }
    const reef_input input = {
        .rows = row, .has_self = true, .self = reef_csr_find(&csr, agent, agent) - csr.start[agent]};
    reef_status status = reef_agg_apply(r->rule, &input, rows, 1, REEF_F32, &out, NULL, &why);
    return status == REEF_OK
               ? REEF_OK
               : rfi_fail(error, status, "%s with %td models: %s", r->file->participants[agent].name, rows, why.text);
}

static reef_status check_rule(const rfi_roster *r, reef_error *error)
{
    reef_csr csr = reef_graph_csr(r->graph);
    ptrdiff_t last = -1; /* neighbourhoods in a row are often alike */
    for (ptrdiff_t k = 0; k < csr.agents; k++) {
        ptrdiff_t rows = csr.start[k + 1] - csr.start[k];
        if (r->file->participants[k].removed) {
            continue;
        }
        reef_status status = rows == last ? REEF_OK : try_rule(r, k, error);
        last = rows;
        if (status != REEF_OK) {
            return status;
        }
    }
    return REEF_OK;
}

/* Makes a member with the strategy, of one number: every agent will have to make one when its owner comes. */
static reef_status try_strategy(const rfi_roster *r, reef_error *error)
{
    reef_csr csr = reef_graph_csr(r->graph);
    reef_member *member = NULL;
    ptrdiff_t k = 0;
    while (r->file->participants[k].removed) {
        k++;
    }
    const reef_member_setup setup = {.size = sizeof setup,
                                     .strategy = r->file->terms.strategy,
                                     .rule = r->rule,
                                     .agent = k,
                                     .senders = csr.start[k + 1] - csr.start[k],
                                     .sender = csr.senders + csr.start[k],
                                     .weights = csr.weight + csr.start[k],
                                     .dimension = 1,
                                     .agents = csr.agents};
    reef_status status = reef_member_create(r->context, &member, &setup, error);
    reef_member_destroy(&member);
    return status;
}

static reef_status mark_malicious(rfi_roster *r, reef_error *error)
{
    const char *list = r->file->test.malicious;
    rfi_slice rest = {list, strlen(list)};
    bool more = true;
    r->malicious = rfi_allocate_many(r->context, r->file->agents, sizeof *r->malicious);
    if (!r->malicious) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td agents", r->file->agents);
    }
    memset(r->malicious, 0, (size_t)r->file->agents * sizeof *r->malicious);
    while (more) {
        double number = -1;
        rfi_slice word = rfi_cut(rest, ' ', &rest, &more);
        if (word.length == 0) {
            continue;
        }
        if (!rfi_read_real(word, &number) || !(number >= 0) || number >= (double)r->file->agents ||
            number != (double)(ptrdiff_t)number) {
            return rfi_fail(error, REEF_E_RANGE, "test: malicious: '%.*s' is not the number of an agent",
                            RFI_SHOW(word));
        }
        r->malicious_count += !r->malicious[(ptrdiff_t)number];
        r->malicious[(ptrdiff_t)number] = true;
    }
    return REEF_OK;
}

static reef_status make_problem(rfi_roster *r, reef_error *error)
{
    const rfi_runfile *file = r->file;
    r->shape = file->shape;
    if (!file->test.problem[0]) {
        return REEF_OK;
    }
    reef_status status = reef_problem_create(r->context, &r->problem, file->test.problem, file->agents,
                                             (uint64_t)file->terms.seed, error);
    if (status != REEF_OK) {
        return status;
    }
    r->shape.count = (uint64_t)reef_problem_dimension(r->problem);
    if (file->shape.count && file->shape.count != r->shape.count) {
        return rfi_fail(error, REEF_E_RANGE, "models of %s have %llu numbers, but model.count is %llu",
                        file->test.problem, (unsigned long long)r->shape.count, (unsigned long long)file->shape.count);
    }
    return REEF_OK;
}

static reef_status build(rfi_roster *r, reef_error *error)
{
    static reef_status (*const steps[])(rfi_roster *, reef_error *) = {make_problem, make_graph, set_weights,
                                                                       mark_malicious};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        reef_status status = steps[i](r, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    reef_status status = check_graph(r, error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_shape_check(&r->shape, error);
    if (status != REEF_OK) {
        return status;
    }
    status = reef_agg_create(r->context, &r->rule, r->file->terms.rule, error);
    if (status == REEF_OK) {
        status = check_rule(r, error);
    }
    return status == REEF_OK && r->file->terms.strategy[0] ? try_strategy(r, error) : status;
}

reef_status rfi_roster_create(reef_context *context, const rfi_runfile *file, rfi_roster *roster, reef_error *error)
{
    reef_error why = {REEF_OK, ""};
    *roster = (rfi_roster){.context = context, .file = file};
    reef_status status = build(roster, &why);
    if (status != REEF_OK) {
        rfi_roster_free(roster);
        return rfi_fail(error, status, "run %s: %s", file->run, why.text);
    }
    return REEF_OK;
}

void rfi_roster_free(rfi_roster *roster)
{
    reef_agg_destroy(&roster->rule);
    reef_graph_destroy(&roster->graph);
    reef_problem_destroy(&roster->problem);
    rfi_release(roster->context, roster->malicious);
    *roster = (rfi_roster){.context = roster->context};
}

ptrdiff_t rfi_roster_neighbours(const rfi_roster *roster, ptrdiff_t agent, rfi_neighbour *neighbours, double *own)
{
    reef_csr csr = reef_graph_csr(roster->graph);
    ptrdiff_t count = 0;
    *own = 0;
    for (ptrdiff_t i = csr.start[agent]; i < csr.start[agent + 1]; i++) {
        ptrdiff_t l = csr.senders[i];
        if (l == agent) {
            *own = csr.weight[i];
            continue;
        }
        neighbours[count] = (rfi_neighbour){.agent = (uint32_t)l, .weight = csr.weight[i]};
        memcpy(neighbours[count++].key, roster->file->participants[l].identity, RFI_KEY_BYTES);
    }
    return count;
}

ptrdiff_t rfi_roster_hearers(const rfi_roster *roster, ptrdiff_t agent, rfi_hearer *hearers)
{
    reef_csr csr = reef_graph_csr(roster->graph);
    ptrdiff_t count = 0;
    for (ptrdiff_t l = 0; l < csr.agents; l++) {
        if (l != agent && reef_csr_find(&csr, agent, l) >= 0) {
            if (hearers) {
                bool made = rfi_hearer_make(&hearers[count], (uint32_t)l, roster->file->participants[l].identity);
                assert(made); /* the run file was checked */
                (void)made;
            }
            count++;
        }
    }
    return count;
}

/* ---- what it tolerates ---- */

static int heavier_first(const void *a, const void *b)
{
    double x = ((const rfi_neighbour *)a)->weight;
    double y = ((const rfi_neighbour *)b)->weight;
    return (x < y) - (x > y);
}

size_t rfi_roster_memory(const rfi_roster *roster, const rfi_node_setup *setup)
{
    enum { MODELS_BESIDE = 3 + 2 + 1 + 1 };
    const rfi_shape *shape = &roster->shape;
    size_t node = rfi_node_bytes(setup);
    size_t plan = 0;
    ptrdiff_t length = (ptrdiff_t)shape->count;
    const reef_shape rows = {.rows = setup->window.count + 1,
                             .segments = 1,
                             .lengths = &length,
                             .dtype = shape->numbers == RFI_NUMBERS_F32 ? REEF_F32 : REEF_F64};
    if (node > SIZE_MAX / 4 || reef_plan_size(roster->rule, &rows, &plan, NULL) != REEF_OK || plan > SIZE_MAX / 4) {
        return SIZE_MAX;
    }
    size_t model = rfi_shape_bytes(shape);
    size_t messages = rfi_shape_chunks(shape) ? (size_t)RFI_FLIGHTS_ALL * rfi_shape_part(shape)
                                              : (size_t)(setup->window.count * RFI_LINK_QUEUE) *
                                                    (RFI_MANIFEST_BYTES + rfi_shape_payload(shape));
    return node + plan + MODELS_BESIDE * model + messages;
}

void rfi_roster_tolerance(const rfi_roster *roster, ptrdiff_t agent, rfi_tolerance *t)
{
    rfi_neighbour list[RFI_NEIGHBOURS_MAX];
    *t = (rfi_tolerance){0};
    t->neighbours = rfi_roster_neighbours(roster, agent, list, &t->own);
    ptrdiff_t hearers = roster->shape.sealed ? rfi_roster_hearers(roster, agent, NULL) : 0;
    const rfi_node_setup setup = {.window = {.shape = roster->shape, .count = t->neighbours, .neighbours = list},
                                  .hearer_count = hearers};
    t->memory = rfi_roster_memory(roster, &setup);
    double frame = (double)(rfi_shape_payload(&roster->shape) + RFI_MANIFEST_BYTES + (size_t)hearers * RFI_SEALED_BOX);
    t->traffic = frame * (double)(t->neighbours + 1);
    qsort(list, (size_t)t->neighbours, sizeof *list, heavier_first);
    double weight = 0;
    for (ptrdiff_t l = 0; l < t->neighbours; l++) {
        weight += list[l].weight;
        t->malicious += weight <= roster->file->terms.malicious + RFI_WEIGHT_SLACK;
        t->absent += 1 - weight > 2 * roster->file->terms.malicious + RFI_WEIGHT_SLACK;
    }
}
