/* What combining needs, prepared once: classes of receivers that hear the same senders with the same weights, plans for the sizes of their
 * neighbourhoods, room for trust, and a trial of whether the rule works with so many rows. */
#include "base/error.h"
#include "base/hash.h"
#include "graph/graph.h"
#include "learn/run.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT_SIZES = 8 };

/* ---- classes ---- */

static bool same_column(const reef_csr *csr, ptrdiff_t a, ptrdiff_t b)
{
    ptrdiff_t count = csr->start[a + 1] - csr->start[a];
    return csr->start[b + 1] - csr->start[b] == count &&
           memcmp(csr->senders + csr->start[a], csr->senders + csr->start[b], (size_t)count * sizeof(int32_t)) == 0 &&
           memcmp(csr->weight + csr->start[a], csr->weight + csr->start[b], (size_t)count * sizeof(double)) == 0;
}

static uint64_t hash_column(const reef_csr *csr, ptrdiff_t k)
{
    ptrdiff_t count = csr->start[k + 1] - csr->start[k];
    uint64_t hash = rfi_hash_bytes(RFI_HASH_START, csr->senders + csr->start[k], (size_t)count * sizeof *csr->senders);
    return rfi_hash_bytes(hash, csr->weight + csr->start[k], (size_t)count * sizeof *csr->weight);
}

/* Classes by an open hash table of receivers; `table` has a power of two of places, at least 2 K. */
static void find_classes(reef_run *run, const reef_csr *csr, int32_t *table, ptrdiff_t places)
{
    for (ptrdiff_t i = 0; i < places; i++) {
        table[i] = -1;
    }
    run->classes = 0;
    for (ptrdiff_t k = 0; k < run->own; k++) {
        ptrdiff_t at = (ptrdiff_t)(hash_column(csr, rfi_id(run, k)) & (uint64_t)(places - 1));
        while (table[at] >= 0 && !same_column(csr, rfi_id(run, table[at]), rfi_id(run, k))) {
            at = (at + 1) & (places - 1);
        }
        if (table[at] < 0) {
            table[at] = (int32_t)k;
            run->class_first[run->classes] = (int32_t)k;
            run->class_of[k] = (int32_t)run->classes++;
        } else {
            run->class_of[k] = run->class_of[table[at]];
        }
    }
}

/* Results can be shared when nothing depends on the receiver itself, in any round. */
static bool may_share(const reef_run *run)
{
    bool by_receiver = run->played || rfi_lies_can_differ(run);
    return rfi_links_fixed(run->setup.links) && !by_receiver && !run->keeps_self && !rfi_memory_by_receiver(run);
}

static reef_status classify(reef_run *run, reef_error *error)
{
    run->class_of = rfi_run_take(run, run->agents, sizeof(int32_t));
    run->class_first = rfi_run_take(run, run->agents, sizeof(int32_t));
    run->class_size = rfi_run_take(run, run->agents, sizeof(int32_t));
    ptrdiff_t places = 4;
    while (places < 2 * run->agents) {
        places *= 2;
    }
    int32_t *table = rfi_run_take(run, places, sizeof(int32_t));
    if (!run->class_of || !run->class_first || !run->class_size || !table) {
        rfi_release(run->context, table);
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a run of %td agents", run->agents);
    }
    run->shares_classes = may_share(run);
    if (run->shares_classes) {
        reef_csr csr = reef_graph_csr(reef_links_graph(run->setup.links, 0));
        find_classes(run, &csr, table, places);
    } else {
        run->classes = run->own;
        for (ptrdiff_t k = 0; k < run->own; k++) {
            run->class_of[k] = run->class_first[k] = (int32_t)k;
        }
    }
    if (run->ranks) {
        rfi_ranks_sort_classes(run, table);
    }
    for (ptrdiff_t k = 0; k < run->agents; k++) {
        if (k < run->own) {
            run->class_size[run->class_of[k]]++;
        } else {
            run->class_of[k] = -1;
        }
    }
    rfi_release(run->context, table);
    return REEF_OK;
}

/* ---- plans ---- */

static int ascending(const void *a, const void *b)
{
    ptrdiff_t x = *(const ptrdiff_t *)a;
    ptrdiff_t y = *(const ptrdiff_t *)b;
    return (x > y) - (x < y);
}

/* Sizes of neighbourhoods: as they are if few, else powers of two up to the largest. */
static void list_sizes(reef_run *run, ptrdiff_t *sizes, const bool *occurs)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t n = 1; n <= run->largest && count <= EXACT_SIZES; n++) {
        if (occurs[n] || n == run->largest) {
            sizes[count++] = n;
        }
    }
    if (count > EXACT_SIZES) {
        count = 0;
        for (ptrdiff_t n = 4; n < run->largest; n *= 2) {
            sizes[count++] = n;
        }
        sizes[count++] = run->largest;
    }
    assert(count <= EXACT_SIZES + 40); /* room taken for them */
    qsort(sizes, (size_t)count, sizeof *sizes, ascending);
    assert(count == 0 ? run->largest == 0 : sizes[count - 1] == run->largest); /* 0: nobody hears anybody */
    run->size_count = count;
}

static reef_status find_sizes(reef_run *run, reef_error *error)
{
    run->sizes = rfi_run_take(run, EXACT_SIZES + 40, sizeof(ptrdiff_t));
    bool *occurs = rfi_run_take(run, run->largest + 1, sizeof(bool));
    if (!run->sizes || !occurs) {
        rfi_release(run->context, occurs);
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a run of %td agents", run->agents);
    }
    if (run->setup.links && reef_links_always_up(run->setup.links)) {
        reef_csr csr = reef_graph_csr(reef_links_graph(run->setup.links, 0));
        for (ptrdiff_t k = 0; k < run->all; k++) {
            occurs[csr.start[k + 1] - csr.start[k]] = true;
        }
    }
    list_sizes(run, run->sizes, occurs);
    rfi_release(run->context, occurs);
    return REEF_OK;
}

static reef_status make_plan(reef_run *run, rfi_applier *applier, ptrdiff_t rows, ptrdiff_t workers, reef_error *error)
{
    const reef_shape shape = {
        .rows = rows, .segments = 1, .lengths = &run->length, .dtype = REEF_F32, .workers = workers};
    applier->rows = rows;
    return reef_plan_create(&applier->plan, run->setup.rule, &shape, error);
}

/* The rule for attacks that try it out: every worker may compute malicious messages. */
static reef_status prepare_trial(reef_run *run, rfi_learner *learner, reef_error *error)
{
    if (!run->setup.attack || !(reef_attack_traits(run->setup.attack) & REEF_ATTACK_RULE)) {
        return REEF_OK;
    }
    learner->trial_rows = rfi_run_take(run, run->all, sizeof(void *));
    learner->trial_weights = rfi_run_take(run, run->all, sizeof(double));
    if (!learner->trial_rows || !learner->trial_weights) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for an attack that tries the rule on %td rows",
                        run->agents);
    }
    return make_plan(run, &learner->trial, run->all, 1, error);
}

static reef_status prepare_learner(reef_run *run, rfi_learner *learner, reef_error *error)
{
    reef_status status = REEF_OK;
    ptrdiff_t workers = run->server ? 0 : 1; /* the server's one aggregation may use all threads */
    learner->appliers = rfi_run_take(run, run->size_count, sizeof(rfi_applier));
    if (!learner->appliers) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a run of %td agents", run->agents);
    }
    for (ptrdiff_t i = 0; status == REEF_OK && i < run->size_count; i++) {
        status = make_plan(run, &learner->appliers[i], run->sizes[i], workers, error);
        if (status == REEF_OK && run->setup.trust) {
            status = reef_report_create(run->context, &learner->appliers[i].report, run->sizes[i], error);
        }
    }
    return status;
}

const rfi_applier *rfi_applier_for(const reef_run *run, const rfi_learner *learner, ptrdiff_t rows)
{
    ptrdiff_t i = 0;
    while (i + 1 < run->size_count && run->sizes[i] < rows) {
        i++;
    }
    assert(run->sizes[i] >= rows &&
           run->sizes[i] <= run->largest); /* rows beyond get weight 0, in arrays of `largest` */
    return &learner->appliers[i];
}

/* ---- trust ---- */

static reef_status prepare_trust(reef_run *run, reef_error *error)
{
    ptrdiff_t room = 0;
    if (!run->setup.trust || !run->uses_rule || run->dry) {
        return REEF_OK;
    }
    bool fits = rfi_mul(run->classes, run->largest, &room);
    run->trust = fits ? rfi_run_take(run, room, sizeof(double)) : NULL;
    run->fair = fits ? rfi_run_take(run, room, sizeof(double)) : NULL;
    run->trust_senders = fits ? rfi_run_take(run, room, sizeof(int32_t)) : NULL;
    run->trust_counts = rfi_run_take(run, run->classes, sizeof(ptrdiff_t));
    const reef_memory *memory = reef_agg_rule(run->setup.rule)->memory;
    run->factor_count = memory ? memory->factor_count : 0;
    fits = fits && rfi_mul(room, run->factor_count, &room);
    run->factors = fits && run->factor_count ? rfi_run_take(run, room, sizeof(double)) : NULL;
    bool watches = run->setup.attack && (reef_attack_traits(run->setup.attack) & REEF_ATTACK_TRUST);
    run->received = watches ? rfi_run_take(run, 2 * run->all, sizeof(double)) : NULL;
    if ((run->factor_count && !run->factors) || (watches && !run->received) || !run->trust || !run->fair ||
        !run->trust_senders || !run->trust_counts) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for the trust of %td receivers in %td senders",
                        run->classes, run->largest);
    }
    return REEF_OK;
}

reef_status rfi_combine_prepare(reef_run *run, reef_error *error)
{
    reef_status status = REEF_OK;
    run->largest = run->server ? run->all : run->agents;
    run->largest = run->setup.links ? reef_links_largest(run->setup.links) : run->largest;
    run->keeps_self = run->setup.links && run->setup.rule && (reef_agg_traits(run->setup.rule) & REEF_TRAIT_SELF);
    run->classes = 1; /* the server */
    if (run->setup.links && !run->dry) {
        status = classify(run, error);
    }
    if (status == REEF_OK && run->uses_rule) {
        run->uniform = !(reef_agg_traits(run->setup.rule) & REEF_TRAIT_WEIGHTS);
        status = find_sizes(run, error);
    }
    for (ptrdiff_t i = 0; status == REEF_OK && run->uses_rule && i < run->workers; i++) {
        bool combines = !run->server || (i == 0 && !run->ranks); /* over ranks a server has a shard instead */
        status = combines ? prepare_learner(run, &run->learners[i], error) : REEF_OK;
        if (status == REEF_OK) {
            status = prepare_trial(run, &run->learners[i], error);
        }
    }
    if (status == REEF_OK && run->uses_rule && !run->dry) {
        status = rfi_memory_prepare(run, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    return prepare_trust(run, error);
}

/* One aggregation of n zero rows, the first the receiver's own or none. */
static reef_status try_size(reef_run *run, ptrdiff_t n, bool own, reef_error *error)
{
    rfi_learner *learner = &run->learners[0];
    const rfi_applier *applier = rfi_applier_for(run, learner, n);
    reef_error inner;
    if (n == 0) {
        return REEF_OK; /* nobody hears anybody: everybody keeps its own */
    }
    for (ptrdiff_t i = 0; i < applier->rows; i++) {
        learner->rows[i] = run->phi;
        learner->weights[i] = i < n;
    }
    const reef_input input = {.rows = learner->rows, .weights = learner->weights, .has_self = own, .self = 0};
    reef_status status = reef_plan_apply(applier->plan, &input, learner->spare, NULL, &inner);
    if (status != REEF_OK) {
        return rfi_fail(error, status, "with %td inputs to combine: %s", n, inner.text);
    }
    return REEF_OK;
}

static reef_status try_sizes(reef_run *run, const reef_csr *csr, reef_error *error)
{
    ptrdiff_t least = run->largest;
    for (ptrdiff_t k = 0; k < run->all; k++) {
        ptrdiff_t n = csr->start[k + 1] - csr->start[k];
        least = n > 0 && n < least ? n : least;
    }
    reef_status status = try_size(run, least, true, error);
    if (status != REEF_OK) {
        return status;
    }
    return try_size(run, run->largest, true, error);
}

reef_status rfi_combine_try_server(reef_run *run, reef_status status, reef_error *error)
{
    if (run->setup.engine) {
        return rfi_ranks_open_server(run, status, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    return try_size(run, run->wanted, false, error);
}

reef_status rfi_combine_try(reef_run *run, reef_error *error)
{
    if (!run->setup.links) {
        return REEF_OK; /* the strategy knows how many the server will hear */
    }
    reef_csr csr = reef_graph_csr(reef_links_graph(run->setup.links, 0));
    for (ptrdiff_t k = 0; run->keeps_self && k < run->all; k++) {
        if (reef_csr_find(&csr, k, k) < 0) {
            return rfi_fail(
                error, REEF_E_GRAPH,
                "the rule keeps the receiver's own vector, but agent %td does not hear itself; use loops=true", k);
        }
    }
    if (!reef_links_always_up(run->setup.links)) {
        return try_size(run, run->largest, true, error);
    }
    return try_sizes(run, &csr, error);
}

void rfi_combine_free(reef_run *run)
{
    for (ptrdiff_t i = 0; run->learners && i < run->workers; i++) {
        rfi_learner *learner = &run->learners[i];
        for (ptrdiff_t j = 0; learner->appliers && j < run->size_count; j++) {
            reef_plan_destroy(&learner->appliers[j].plan);
            reef_report_destroy(&learner->appliers[j].report);
        }
        reef_plan_destroy(&learner->trial.plan);
        rfi_release(run->context, learner->appliers);
    }
    rfi_memory_free(run);
    rfi_release(run->context, run->class_of);
    rfi_release(run->context, run->class_first);
    rfi_release(run->context, run->class_size);
    rfi_release(run->context, run->sizes);
    rfi_release(run->context, run->trust);
    rfi_release(run->context, run->fair);
    rfi_release(run->context, run->factors);
    rfi_release(run->context, run->trust_senders);
    rfi_release(run->context, run->trust_counts);
    rfi_release(run->context, run->received);
}
