/* The objects of a cell. Each is made from its string, or taken from the stock if it is there; if that fails, the parameters are tried one by one to find
 * the one at fault. */
#include "base/error.h"
#include "base/memory.h"
#include "experiment/config/experiment.h"
#include "experiment/config/stock.h"
#include "learn/played.h"
#include "learn/run.h"

#include <stdio.h>
#include <string.h>

rfi_world *rfi_world_create(const reef_experiment *experiment, reef_context *context)
{
    rfi_world *world = rfi_allocate(context, sizeof *world);
    if (world) {
        memset(world, 0, sizeof *world);
        world->experiment = experiment;
        world->context = context;
    }
    return world;
}

/* The graph with the weights that it has by now. */
static const rfi_shared *graph_of(const rfi_world *w)
{
    return w->held[RFI_PART_WEIGHTS] ? w->held[RFI_PART_WEIGHTS] : w->held[RFI_PART_GRAPH];
}

/* The object of a shared part becomes this one, which is in use already; NULL: none. */
static void hold(rfi_world *w, rfi_part part, const rfi_shared *shared)
{
    rfi_stock_give(w->experiment->stock, w->held[part]);
    w->held[part] = shared;
    const rfi_shared *graph = graph_of(w);
    w->graph = graph ? graph->graph : NULL;
    w->links = w->held[RFI_PART_LINKS] ? w->held[RFI_PART_LINKS]->links : NULL;
    w->problem = w->held[RFI_PART_PROBLEM] ? w->held[RFI_PART_PROBLEM]->problem : NULL;
    w->malicious = w->held[RFI_PART_PLACEMENT] ? w->held[RFI_PART_PLACEMENT]->malicious : NULL;
    w->malicious_count = w->held[RFI_PART_PLACEMENT] ? w->held[RFI_PART_PLACEMENT]->malicious_count : 0;
}

static void clear_part(rfi_world *w, rfi_part part)
{
    hold(w, part, NULL);
    if (part == RFI_PART_RULE) {
        reef_agg_destroy(&w->rule);
    } else if (part == RFI_PART_ATTACK) {
        reef_attack_destroy(&w->attack);
    }
}

void rfi_world_destroy(rfi_world **world)
{
    if (!*world) {
        return;
    }
    for (int part = 0; part < RFI_PARTS; part++) {
        clear_part(*world, (rfi_part)part);
    }
    rfi_release((*world)->context, *world);
    *world = NULL;
}

/* ---- making one part ---- */

static reef_status share(rfi_world *w, rfi_part part, const char *spec, reef_error *error)
{
    const rfi_cell_numbers *n = &w->next.numbers;
    rfi_need need = {.part = part, .spec = spec, .agents = w->agents, .seed = (uint64_t)n->seed};
    const rfi_shared *made = NULL;
    switch (part) {
    case RFI_PART_GRAPH:
        need.agents = (ptrdiff_t)n->agents; /* 0: as many as the spec says */
        break;
    case RFI_PART_WEIGHTS:
        need.graph = w->held[RFI_PART_GRAPH];
        need.problem = w->held[RFI_PART_PROBLEM];
        break;
    case RFI_PART_LINKS:
        need.graph = graph_of(w);
        break;
    case RFI_PART_PLACEMENT:
        need.graph = graph_of(w);
        need.malicious_count = n->malicious_count;
        break;
    default:
        break;
    }
    reef_status status = rfi_stock_take(w->experiment->stock, &need, &made, error);
    hold(w, part, made);
    if (part == RFI_PART_GRAPH) {
        w->agents = made ? reef_graph_agents(made->graph) : 0;
    }
    return status;
}

static reef_status check_strategy(const rfi_world *w, const char *spec, reef_error *error)
{
    const reef_kind *kind = NULL;
    void *params = NULL;
    reef_status status = rfi_spec_read(w->context, &rfi_family_strategy, spec, NULL, &kind, &params, error);
    rfi_release(w->context, params);
    return status;
}

/* Rule and attack are this world's own; one whose spec stays the same is not made again. */
static reef_status make_rule(rfi_world *w, const char *spec, reef_error *error)
{
    if (w->rule && strcmp(spec, w->rule_spec) == 0) {
        return REEF_OK;
    }
    clear_part(w, RFI_PART_RULE);
    (void)snprintf(w->rule_spec, sizeof w->rule_spec, "%s", spec);
    return reef_agg_create(w->context, &w->rule, spec, error);
}

static reef_status make_attack(rfi_world *w, const char *spec, reef_error *error)
{
    if (w->attack && strcmp(spec, w->attack_spec) == 0) {
        return REEF_OK;
    }
    clear_part(w, RFI_PART_ATTACK);
    (void)snprintf(w->attack_spec, sizeof w->attack_spec, "%s", spec);
    return reef_attack_create(w->context, &w->attack, spec, error);
}

static reef_status make(rfi_world *w, rfi_part part, const char *spec, reef_error *error)
{
    switch (part) {
    case RFI_PART_STRATEGY:
        return check_strategy(w, spec, error);
    case RFI_PART_RULE:
        return make_rule(w, spec, error);
    case RFI_PART_ATTACK:
        return make_attack(w, spec, error);
    default:
        return share(w, part, spec, error);
    }
}

/* ---- who is to blame ---- */

static reef_status try_pairs(rfi_world *w, const rfi_object *object, uint64_t pairs, reef_error *error)
{
    char spec[RFI_SPEC_LENGTH_MAX + 1];
    reef_status status = rfi_object_spec(object, pairs, spec, error);
    if (status != REEF_OK) {
        return status;
    }
    return make(w, (rfi_part)object->part, spec, error);
}

static reef_status blame_pair(const rfi_field_value *pair, const reef_error *why, reef_error *error)
{
    bool unknown = why->status == REEF_E_NAME;
    return rfi_fail_at(error, why->status, unknown ? pair->entry : pair->value, unknown, "%s", why->text);
}

/* A pair that fails alone in the same words (others: it needs its neighbours, as numbers of an optimum a dimension), or without which the
 * rest works. */
static reef_status blame_object(rfi_world *w, const rfi_object *object, const reef_error *why, reef_error *error)
{
    reef_error inner = {REEF_OK, ""};
    if (object->node->type != RFI_YAML_MAP) {
        return rfi_fail_at(error, why->status, object->node, false, "%s", why->text);
    }
    reef_status alone = try_pairs(w, object, 0, &inner);
    if (alone == REEF_E_NAME && object->kind.value) {
        return rfi_fail_at(error, inner.status, object->kind.value, false, "%s", inner.text);
    }
    for (ptrdiff_t i = 0; i < object->pair_count; i++) {
        uint64_t bit = UINT64_C(1) << i;
        if (alone == REEF_OK && try_pairs(w, object, bit, &inner) != REEF_OK && strcmp(inner.text, why->text) == 0) {
            return blame_pair(&object->pairs[i], why, error);
        }
    }
    for (ptrdiff_t i = 0; i < object->pair_count; i++) {
        if (try_pairs(w, object, ~(UINT64_C(1) << i), &inner) == REEF_OK) {
            return blame_pair(&object->pairs[i], why, error);
        }
    }
    return rfi_fail_at(error, why->status, object->node, false, "%s", why->text);
}

/* Node of a number, or of the part, or of the whole file. */
static const rfi_yaml_node *node_of(const rfi_world *w, const char *number, rfi_part part)
{
    const rfi_yaml_node *node = number ? w->next.number_nodes[rfi_number_find(number)] : NULL;
    node = node ? node : w->next.objects[part].node;
    return node ? node : w->experiment->yaml.root;
}

static reef_status blame(rfi_world *w, rfi_part part, const reef_error *why, reef_error *error)
{
    const rfi_object *object = &w->next.objects[part];
    if (part == RFI_PART_PLACEMENT && (!object->node || why->status == REEF_E_MALICIOUS)) {
        return rfi_fail_at(error, why->status, node_of(w, "malicious", part), false, "%s", why->text);
    }
    if (!object->node) {
        return rfi_fail_at(error, why->status, w->experiment->yaml.root, false, "%s: %s", rfi_part_names[part],
                           why->text);
    }
    return blame_object(w, object, why, error);
}

/* ---- changing to a cell ---- */

/* Spec that a part has when the file says nothing; NULL: there is none. */
static const char *default_spec(const rfi_world *w, rfi_part part)
{
    switch (part) {
    case RFI_PART_LINKS:
        return w->graph ? "static" : NULL;
    case RFI_PART_STRATEGY:
        return "diffusion";
    case RFI_PART_PLACEMENT:
        return "random";
    default:
        return NULL;
    }
}

/* NULL if the cell has no such part. */
static const char *spec_of(const rfi_world *w, const rfi_cell *cell, rfi_part part)
{
    const char *spec = cell->specs[part];
    if (spec[0] == '\0') {
        return default_spec(w, part);
    }
    bool optional = part == RFI_PART_RULE || part == RFI_PART_ATTACK;
    return optional && strcmp(spec, "none") == 0 ? NULL : spec;
}

/* Each rests on those before it. */
static const rfi_part making_order[] = {RFI_PART_GRAPH,    RFI_PART_PROBLEM, RFI_PART_WEIGHTS, RFI_PART_LINKS,
                                        RFI_PART_STRATEGY, RFI_PART_RULE,    RFI_PART_ATTACK,  RFI_PART_PLACEMENT};

static reef_status make_part(rfi_world *w, rfi_part part, reef_error *error)
{
    const char *spec = spec_of(w, &w->next, part);
    reef_error why = {REEF_OK, ""};
    if (part == RFI_PART_GRAPH) {
        w->agents = (ptrdiff_t)w->next.numbers.agents;
    }
    if (part == RFI_PART_PROBLEM && !spec) {
        return rfi_fail_at(error, REEF_E_ARG, w->experiment->yaml.root, false,
                           "a problem is missing, for instance problem: lms");
    }
    if (part == RFI_PART_PROBLEM && w->agents < 1) {
        return rfi_fail_at(error, REEF_E_ARG, node_of(w, "agents", RFI_PART_GRAPH), false,
                           "the number of agents is missing, for instance agents: 32");
    }
    if (!spec) {
        clear_part(w, part);
        return REEF_OK;
    }
    return make(w, part, spec, &why) == REEF_OK ? REEF_OK : blame(w, part, &why, error);
}

reef_status rfi_world_set(rfi_world *w, ptrdiff_t index, reef_error *error)
{
    if (w->set && w->index == index) {
        return REEF_OK;
    }
    reef_status status = rfi_resolve(w->experiment, index, &w->next, error);
    w->set = false;
    for (ptrdiff_t i = 0; i < RFI_COUNT(making_order) && status == REEF_OK; i++) {
        status = make_part(w, making_order[i], error);
    }
    if (status != REEF_OK) {
        return status;
    }
    w->cell = w->next;
    w->index = index;
    w->set = true;
    return REEF_OK;
}

/* ---- runs ---- */

/* The oracle with the step sizes of a strategy: those of its parameters that the oracle has too. */
static void oracle_spec(const reef_run *run, char spec[RFI_SPEC_LENGTH_MAX + 1])
{
    const reef_kind *kind = reef_kind_find(NULL, REEF_FAMILY_STRATEGY, "oracle");
    const rfi_fields table = {kind->name, kind->fields, kind->field_count};
    char full[RFI_SPEC_LENGTH_MAX + 1];
    size_t used = 0;
    bool more = false;
    char mark = ':';
    rfi_slice list;
    (void)reef_run_print(run, full, sizeof full);
    (void)rfi_cut((rfi_slice){full, strlen(full)}, ':', &list, &more);
    spec[0] = '\0';
    rfi_append(spec, RFI_SPEC_LENGTH_MAX + 1, &used, "oracle");
    while (more) {
        bool found = false;
        rfi_slice value;
        rfi_slice pair = rfi_cut(list, ',', &list, &more);
        rfi_slice key = rfi_cut(pair, '=', &value, &found);
        if (rfi_fields_find(&table, key)) {
            rfi_append(spec, RFI_SPEC_LENGTH_MAX + 1, &used, "%c%.*s", mark, (int)pair.length, pair.text);
            mark = ',';
        }
    }
}

static reef_status create_run(rfi_world *w, const char *strategy, const rfi_repeat_block *block, reef_run **run,
                              reef_error *error)
{
    const reef_run_setup setup = {.problem = w->problem,
                                  .strategy = strategy,
                                  .rule = block->oracle ? NULL : w->rule,
                                  .links = w->links,
                                  .attack = block->oracle ? NULL : w->attack,
                                  .malicious = w->malicious,
                                  .seed = (uint64_t)w->cell.numbers.seed,
                                  .lanes = block->lanes,
                                  .repetition = block->repetition,
                                  .trust = w->cell.numbers.trust && !block->oracle,
                                  .engine = block->engine};
    if (block->dry) {
        return rfi_run_describe(w->context, run, &setup, error);
    }
    return block->played && !block->oracle ? rfi_played_create(w->context, run, &setup, error)
                                           : reef_run_create(w->context, run, &setup, error);
}

/* What does not fit together: points at the rule, the graph or the strategy. */
static reef_status blame_run(const rfi_world *w, const reef_error *why, reef_error *error)
{
    rfi_part part = RFI_PART_STRATEGY;
    if (why->status == REEF_E_MALICIOUS || why->status == REEF_E_WEIGHTS || why->status == REEF_E_RANGE) {
        part = RFI_PART_RULE;
    } else if (why->status == REEF_E_GRAPH) {
        part = RFI_PART_GRAPH;
    }
    const char *hint = "";
    if (why->status == REEF_E_NO_RULE) {
        hint = ", for instance rule: ref";
    } else if (why->status == REEF_E_NO_LINKS) {
        hint = " (a graph is missing, for instance graph: complete)";
    }
    return rfi_fail_at(error, why->status, node_of(w, NULL, part), false, "%s%s", why->text, hint);
}

reef_status rfi_world_run(rfi_world *w, const rfi_repeat_block *block, reef_run **run, reef_error *error)
{
    char spec[RFI_SPEC_LENGTH_MAX + 1];
    reef_error why = {REEF_OK, ""};
    const char *strategy = spec_of(w, &w->cell, RFI_PART_STRATEGY);
    rfi_repeat_block plain = *block;
    plain.oracle = false;
    plain.lanes = block->oracle ? 1 : block->lanes;
    plain.dry = block->oracle || block->dry;
    reef_status status = create_run(w, strategy, &plain, run, &why);
    if (status == REEF_OK && block->oracle) {
        oracle_spec(*run, spec);
        reef_run_destroy(run);
        status = create_run(w, spec, block, run, &why);
    }
    if (status == REEF_OK && w->cell.numbers.trust && !block->oracle && !(*run)->uses_rule) {
        reef_run_destroy(run);
        return rfi_fail_at(error, REEF_E_ARG, w->cell.number_nodes[rfi_number_find("trust")], false,
                           "trust cannot be measured: %s does not use an aggregation rule", strategy);
    }
    return status == REEF_OK ? REEF_OK : blame_run(w, &why, error);
}

bool rfi_world_lanes(const rfi_world *w, bool oracle)
{
    bool problem = reef_problem_kind_of(w->problem)->traits & REEF_PROBLEM_LANES;
    bool attack = oracle || !w->attack || (reef_attack_traits(w->attack) & REEF_ATTACK_LANES);
    bool rule = oracle || !w->rule || (reef_agg_traits(w->rule) & REEF_TRAIT_ELEMENTWISE);
    return problem && attack && rule && (oracle || !w->cell.numbers.trust);
}
