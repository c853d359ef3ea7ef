/* The objects of a cell. Each is made from its spec; when that fails, the parameters are tried one by one to say which is to blame. */
#include "base/error.h"
#include "base/memory.h"
#include "experiment/experiment.h"
#include "experiment/placement.h"
#include "learn/run.h"

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

static void clear_part(rfi_world *w, rfi_part part)
{
    switch (part) {
    case RFI_PART_GRAPH:
        reef_graph_destroy(&w->graph);
        break;
    case RFI_PART_LINKS:
        reef_links_destroy(&w->links);
        break;
    case RFI_PART_PROBLEM:
        reef_problem_destroy(&w->problem);
        break;
    case RFI_PART_RULE:
        reef_agg_destroy(&w->rule);
        break;
    case RFI_PART_ATTACK:
        reef_attack_destroy(&w->attack);
        break;
    case RFI_PART_PLACEMENT:
        rfi_release(w->context, w->liar);
        w->liar = NULL;
        break;
    case RFI_PART_WEIGHTS: /* in the graph */
    case RFI_PART_STRATEGY:
    case RFI_PARTS:
        break;
    }
}

void rfi_world_destroy(rfi_world **world)
{
    if (!*world) {
        return;
    }
    static const rfi_part order[] = {RFI_PART_LINKS, RFI_PART_GRAPH,  RFI_PART_PROBLEM,
                                     RFI_PART_RULE,  RFI_PART_ATTACK, RFI_PART_PLACEMENT};
    for (ptrdiff_t i = 0; i < RFI_COUNT(order); i++) {
        clear_part(*world, order[i]);
    }
    rfi_release((*world)->context, *world);
    *world = NULL;
}

/* ---- making one part ---- */

static reef_status make_graph(rfi_world *w, const char *spec, reef_error *error)
{
    const rfi_numbers *n = &w->next.numbers;
    reef_status status =
        reef_graph_create_in(w->context, &w->graph, spec, (ptrdiff_t)n->agents, (uint64_t)n->seed, error);
    w->agents = status == REEF_OK ? reef_graph_agents(w->graph) : 0;
    return status;
}

static reef_status make_weights(rfi_world *w, const char *spec, reef_error *error)
{
    const reef_problem_kind *kind = reef_problem_kind_of(w->problem);
    if (!w->graph) {
        return rfi_fail(error, REEF_E_ARG, "weights need a graph");
    }
    if (!kind->variance) {
        return reef_graph_set_weights(w->graph, spec, NULL, error);
    }
    double *variance = rfi_allocate_many(w->context, w->agents, sizeof *variance);
    if (!variance) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the weights of %td agents", w->agents);
    }
    for (ptrdiff_t k = 0; k < w->agents; k++) {
        variance[k] = kind->variance(reef_problem_state(w->problem), k);
    }
    reef_status status = reef_graph_set_weights(w->graph, spec, &(reef_weight_data){.variance = variance}, error);
    rfi_release(w->context, variance);
    return status;
}

static reef_status make_links(rfi_world *w, const char *spec, reef_error *error)
{
    const reef_graph *graphs[] = {w->graph};
    if (!w->graph) {
        return rfi_fail(error, REEF_E_ARG, "links need a graph");
    }
    return reef_links_create(w->context, &w->links, spec, graphs, 1, (uint64_t)w->next.numbers.seed, error);
}

static const char *strategy_name(const void *user, ptrdiff_t i)
{
    (void)user;
    return reef_strategy_at(i)->name;
}

static const reef_kind *strategy_kind(const void *user, ptrdiff_t i)
{
    (void)user;
    return reef_strategy_at(i);
}

static reef_status check_strategy(const rfi_world *w, const char *spec, reef_error *error)
{
    const rfi_catalogue catalogue = {"strategy", strategy_name, strategy_kind, NULL, reef_strategy_count()};
    ptrdiff_t index = 0;
    void *params = NULL;
    reef_status status = rfi_spec_read(w->context, &catalogue, spec, NULL, &index, &params, error);
    rfi_release(w->context, params);
    return status;
}

static reef_status place_liars(rfi_world *w, const char *spec, reef_error *error)
{
    w->liar = rfi_allocate_many(w->context, w->agents, sizeof *w->liar);
    if (!w->liar) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td agents", w->agents);
    }
    const rfi_numbers *n = &w->next.numbers;
    return rfi_place_liars(w->context, w->graph, w->agents, spec, n->liars, (uint64_t)n->seed, w->liar, &w->liars,
                           error);
}

static reef_status make(rfi_world *w, rfi_part part, const char *spec, reef_error *error)
{
    clear_part(w, part);
    switch (part) {
    case RFI_PART_GRAPH:
        return make_graph(w, spec, error);
    case RFI_PART_WEIGHTS:
        return make_weights(w, spec, error);
    case RFI_PART_LINKS:
        return make_links(w, spec, error);
    case RFI_PART_PROBLEM:
        return reef_problem_create(w->context, &w->problem, spec, w->agents, (uint64_t)w->next.numbers.seed, error);
    case RFI_PART_STRATEGY:
        return check_strategy(w, spec, error);
    case RFI_PART_RULE:
        return reef_agg_create_in(w->context, &w->rule, spec, error);
    case RFI_PART_ATTACK:
        return reef_attack_create(w->context, &w->attack, spec, error);
    case RFI_PART_PLACEMENT:
        return place_liars(w, spec, error);
    case RFI_PARTS:
        break;
    }
    return REEF_OK;
}

/* ---- who is to blame ---- */

static reef_status try_pairs(rfi_world *w, const rfi_object *object, uint64_t pairs, reef_error *error)
{
    char spec[RFI_SPEC_LENGTH_MAX + 1];
    reef_status status = rfi_object_spec(object, pairs, spec, error);
    return status == REEF_OK ? make(w, (rfi_part)object->part, spec, error) : status;
}

static reef_status blame_pair(const rfi_pair *pair, const reef_error *why, reef_error *error)
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
    if (part == RFI_PART_PLACEMENT && (!object->node || why->status == REEF_E_LIARS)) {
        return rfi_fail_at(error, why->status, node_of(w, "liars", part), false, "%s", why->text);
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

/* Parts on which another part depends, so that it has to be made anew after them. */
static const unsigned depends_on[RFI_PARTS] = {
    [RFI_PART_WEIGHTS] = 1U << RFI_PART_GRAPH | 1U << RFI_PART_PROBLEM,
    [RFI_PART_LINKS] = 1U << RFI_PART_GRAPH | 1U << RFI_PART_WEIGHTS,
    [RFI_PART_PROBLEM] = 1U << RFI_PART_GRAPH,
    [RFI_PART_PLACEMENT] = 1U << RFI_PART_GRAPH | 1U << RFI_PART_WEIGHTS,
};
static const rfi_part making_order[] = {RFI_PART_GRAPH,    RFI_PART_PROBLEM, RFI_PART_WEIGHTS, RFI_PART_LINKS,
                                        RFI_PART_STRATEGY, RFI_PART_RULE,    RFI_PART_ATTACK,  RFI_PART_PLACEMENT};

static unsigned changed_parts(const rfi_world *w)
{
    const rfi_numbers *old = &w->cell.numbers;
    const rfi_numbers *new = &w->next.numbers;
    unsigned changed = 0;
    if (!w->set || old->agents != new->agents || old->seed != new->seed) {
        return (1U << RFI_PARTS) - 1;
    }
    for (int part = 0; part < RFI_PARTS; part++) {
        changed |= strcmp(w->cell.specs[part], w->next.specs[part]) != 0 ? 1U << part : 0;
    }
    if (changed & 1U << RFI_PART_WEIGHTS) { /* the graph's own come back only with it */
        changed |= 1U << RFI_PART_GRAPH;
    }
    if (old->liars.kind != new->liars.kind || old->liars.value != new->liars.value) {
        changed |= 1U << RFI_PART_PLACEMENT;
    }
    for (ptrdiff_t i = 0; i < RFI_COUNT(making_order); i++) {
        changed |= depends_on[making_order[i]] & changed ? 1U << making_order[i] : 0;
    }
    return changed;
}

static reef_status make_part(rfi_world *w, rfi_part part, reef_error *error)
{
    const char *spec = spec_of(w, &w->next, part);
    reef_error why = {REEF_OK, ""};
    if (part == RFI_PART_GRAPH) {
        clear_part(w, RFI_PART_LINKS);
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
    reef_status status = rfi_resolve(w->experiment, index, &w->next, error);
    unsigned changed = status == REEF_OK ? changed_parts(w) : 0;
    w->set = false;
    for (ptrdiff_t i = 0; i < RFI_COUNT(making_order) && status == REEF_OK; i++) {
        if (changed >> making_order[i] & 1) {
            status = make_part(w, making_order[i], error);
        }
    }
    if (status == REEF_OK) {
        w->cell = w->next;
        w->set = true;
    }
    return status;
}

/* ---- runs ---- */

/* The oracle with the step sizes of a strategy: those of its parameters that the oracle has too. */
static void oracle_spec(const reef_run *run, char spec[RFI_SPEC_LENGTH_MAX + 1])
{
    const reef_kind *kind = reef_strategy_find("oracle");
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

static reef_status create_run(rfi_world *w, const char *strategy, const rfi_block *block, reef_run **run,
                              reef_error *error)
{
    const reef_run_setup setup = {.problem = w->problem,
                                  .strategy = strategy,
                                  .rule = block->oracle ? NULL : w->rule,
                                  .links = w->links,
                                  .attack = block->oracle ? NULL : w->attack,
                                  .liar = w->liar,
                                  .seed = (uint64_t)w->cell.numbers.seed,
                                  .lanes = block->lanes,
                                  .repetition = block->repetition,
                                  .trust = w->cell.numbers.trust && !block->oracle,
                                  .engine = block->engine};
    return block->dry ? rfi_run_describe(w->context, run, &setup, error)
                      : reef_run_create(w->context, run, &setup, error);
}

/* What does not fit together: points at the rule, the graph or the strategy. */
static reef_status blame_run(const rfi_world *w, const reef_error *why, reef_error *error)
{
    rfi_part part = RFI_PART_STRATEGY;
    if (why->status == REEF_E_LIARS || why->status == REEF_E_WEIGHTS || why->status == REEF_E_RANGE) {
        part = RFI_PART_RULE;
    } else if (why->status == REEF_E_GRAPH) {
        part = RFI_PART_GRAPH;
    }
    const char *hint = "";
    if (!w->rule && strstr(why->text, "needs a rule")) {
        hint = ", for instance rule: ref";
    } else if (!w->links && strstr(why->text, "needs links")) {
        hint = " (a graph is missing, for instance graph: complete)";
    }
    return rfi_fail_at(error, why->status, node_of(w, NULL, part), false, "%s%s", why->text, hint);
}

reef_status rfi_world_run(rfi_world *w, const rfi_block *block, reef_run **run, reef_error *error)
{
    char spec[RFI_SPEC_LENGTH_MAX + 1];
    reef_error why = {REEF_OK, ""};
    const char *strategy = spec_of(w, &w->cell, RFI_PART_STRATEGY);
    rfi_block plain = *block;
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
                           "trust cannot be measured: %s combines without a rule", strategy);
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
