/* Shared objects in one list, the last used first; a lock for all of it, held also while an object is made. */
#include "experiment/config/stock.h"

#include "base/context.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "experiment/config/placement.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

typedef struct entry {
    rfi_shared shared; /* first: callers have its address */
    rfi_need need;     /* its spec is at the end of this block; it uses what it rests on */
    uint64_t hash;     /* of the need */
    ptrdiff_t users;
    size_t bytes; /* asked for while it was made: no less than it has */
    struct entry *next, *before;
    char spec[];
} entry;

struct rfi_stock {
    reef_context *context; /* may be NULL */
    reef_context making;   /* of the objects: the allocator counts */
    size_t counted;
    pthread_mutex_t lock;
    entry *first, *last;
    size_t idle_bytes;
    ptrdiff_t idle_count;
    ptrdiff_t made;
};

static void *count_and_allocate(void *user, size_t bytes)
{
    rfi_stock *stock = user;
    stock->counted += bytes; /* under the lock: objects are made by one thread at a time */
    return rfi_allocate(stock->context, bytes);
}

static void release(void *user, void *memory)
{
    const rfi_stock *stock = user;
    rfi_release(stock->context, memory);
}

rfi_stock *rfi_stock_create(reef_context *context)
{
    rfi_stock *stock = rfi_allocate(context, sizeof *stock);
    if (stock) {
        *stock = (rfi_stock){.context = context};
        stock->making = (reef_context){.allocator = {.allocate = count_and_allocate, .release = release, .user = stock},
                                       .threads = 1,
                                       .busy = ATOMIC_FLAG_INIT};
        pthread_mutex_init(&stock->lock, NULL);
    }
    return stock;
}

/* ---- making ---- */

static reef_status make_weights(reef_context *context, const rfi_need *need, rfi_shared *made, reef_error *error)
{
    const reef_problem_kind *kind = reef_problem_kind_of(need->problem->problem);
    const rfi_need *plain = &((const entry *)need->graph)->need;
    reef_status status = reef_graph_create(context, &made->graph, plain->spec, plain->agents, plain->seed, error);
    if (status != REEF_OK || !kind->variance) {
        if (status != REEF_OK) {
            return status;
        }
        return reef_graph_set_weights(made->graph, need->spec, NULL, error);
    }
    double *variance = rfi_allocate_many(context, need->agents, sizeof *variance);
    if (!variance) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for the weights of %td agents", need->agents);
    }
    for (ptrdiff_t k = 0; k < need->agents; k++) {
        variance[k] = kind->variance(reef_problem_state(need->problem->problem), k);
    }
    status = reef_graph_set_weights(made->graph, need->spec, &(reef_weight_data){.variance = variance}, error);
    rfi_release(context, variance);
    return status;
}

static reef_status place_malicious(reef_context *context, const rfi_need *need, rfi_shared *made, reef_error *error)
{
    made->malicious = rfi_allocate_many(context, need->agents, sizeof *made->malicious);
    if (!made->malicious) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %td agents", need->agents);
    }
    return rfi_place_malicious(context, need->graph ? need->graph->graph : NULL, need->agents, need->spec,
                               need->malicious_count, need->seed, made->malicious, &made->malicious_count, error);
}

static reef_status make(reef_context *context, const rfi_need *need, rfi_shared *made, reef_error *error)
{
    const reef_graph *graph = need->graph ? need->graph->graph : NULL;
    switch (need->part) {
    case RFI_PART_GRAPH:
        return reef_graph_create(context, &made->graph, need->spec, need->agents, need->seed, error);
    case RFI_PART_WEIGHTS:
        return graph ? make_weights(context, need, made, error) : rfi_fail(error, REEF_E_ARG, "weights need a graph");
    case RFI_PART_LINKS:
        return graph ? reef_links_create(context, &made->links, need->spec, &graph, 1, need->seed, error)
                     : rfi_fail(error, REEF_E_ARG, "links need a graph");
    case RFI_PART_PROBLEM:
        return reef_problem_create(context, &made->problem, need->spec, need->agents, need->seed, error);
    case RFI_PART_PLACEMENT:
        return place_malicious(context, need, made, error);
    default:
        return rfi_fail(error, REEF_E_ARG, "this part is not shared");
    }
}

static void clear(const rfi_stock *stock, rfi_shared *made)
{
    reef_links_destroy(&made->links);
    reef_graph_destroy(&made->graph);
    reef_problem_destroy(&made->problem);
    rfi_release(&stock->making, made->malicious);
}

/* ---- the list ---- */

static void unlink_entry(rfi_stock *stock, entry *e)
{
    *(e->before ? &e->before->next : &stock->first) = e->next;
    *(e->next ? &e->next->before : &stock->last) = e->before;
    e->next = e->before = NULL;
}

static void put_first(rfi_stock *stock, entry *e)
{
    assert(!e->before && !e->next); /* it is in no list */
    e->next = stock->first;
    *(stock->first ? &stock->first->before : &stock->last) = e;
    stock->first = e;
}

static void use(rfi_stock *stock, const rfi_shared *shared)
{
    entry *e = (entry *)(uintptr_t)shared;
    if (e && e->users++ == 0) {
        assert(stock->idle_count > 0 && stock->idle_bytes >= e->bytes);
        stock->idle_bytes -= e->bytes;
        stock->idle_count--;
    }
}

static void leave(rfi_stock *stock, const rfi_shared *shared)
{
    entry *e = (entry *)(uintptr_t)shared;
    assert(!e || e->users > 0); /* given back as often as taken */
    if (e && --e->users == 0) {
        stock->idle_bytes += e->bytes;
        stock->idle_count++;
    }
}

static void drop(rfi_stock *stock, entry *e)
{
    assert(e->users == 0 && stock->idle_count > 0);
    unlink_entry(stock, e);
    stock->idle_bytes -= e->bytes;
    stock->idle_count--;
    clear(stock, &e->shared);
    leave(stock, e->need.graph);
    leave(stock, e->need.problem);
    rfi_release(stock->context, e);
}

/* Dropping what rests on another object may make that one idle, so it begins again at the end. */
static void make_room(rfi_stock *stock, size_t bytes, ptrdiff_t count)
{
    for (entry *e = stock->last; e && (stock->idle_bytes > bytes || stock->idle_count > count);) {
        entry *before = e->before;
        if (e->users == 0) {
            drop(stock, e);
            before = stock->last;
        }
        e = before;
    }
}

void rfi_stock_destroy(rfi_stock **stock)
{
    if (!*stock) {
        return;
    }
    make_room(*stock, 0, 0);
    pthread_mutex_destroy(&(*stock)->lock);
    rfi_release((*stock)->context, *stock);
    *stock = NULL;
}

static uint64_t hash_need(const rfi_need *n)
{
    uint64_t value;
    memcpy(&value, &n->malicious_count.value, sizeof value);
    uint64_t hash = rfi_hash_text(RFI_HASH_START, n->spec);
    hash = rfi_hash_number(rfi_hash_number(hash, (uint64_t)n->part), (uint64_t)n->agents);
    hash = rfi_hash_number(rfi_hash_number(hash, n->seed), (uint64_t)n->malicious_count.kind);
    hash = rfi_hash_number(hash, value);
    return rfi_hash_number(rfi_hash_number(hash, (uintptr_t)n->graph), (uintptr_t)n->problem);
}

static bool same_need(const rfi_need *a, const rfi_need *b)
{
    return a->part == b->part && a->agents == b->agents && a->seed == b->seed &&
           a->malicious_count.kind == b->malicious_count.kind && a->malicious_count.value == b->malicious_count.value &&
           a->graph == b->graph && a->problem == b->problem && strcmp(a->spec, b->spec) == 0;
}

static entry *find(rfi_stock *stock, const rfi_need *need, uint64_t hash)
{
    entry *e = stock->first;
    while (e && !(e->hash == hash && same_need(&e->need, need))) {
        e = e->next;
    }
    return e;
}

/* ---- taking and giving ---- */

static reef_status add(rfi_stock *stock, const rfi_need *need, uint64_t hash, entry **added, reef_error *error)
{
    size_t length = strlen(need->spec) + 1;
    entry *e = rfi_allocate(stock->context, sizeof *e + length);
    if (!e) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a configuration");
    }
    *e = (entry){.need = *need, .hash = hash, .users = 1};
    memcpy(e->spec, need->spec, length);
    e->need.spec = e->spec;
    stock->counted = sizeof *e + length;
    rfi_context_borrow(&stock->making, stock->context);
    reef_status status = make(&stock->making, &e->need, &e->shared, error);
    if (status != REEF_OK) {
        clear(stock, &e->shared);
        rfi_release(stock->context, e);
        return status;
    }
    e->bytes = stock->counted;
    use(stock, need->graph);
    use(stock, need->problem);
    put_first(stock, e);
    stock->made++;
    *added = e;
    return REEF_OK;
}

reef_status rfi_stock_take(rfi_stock *stock, const rfi_need *need, const rfi_shared **shared, reef_error *error)
{
    uint64_t hash = hash_need(need);
    reef_status status = REEF_OK;
    pthread_mutex_lock(&stock->lock);
    entry *e = find(stock, need, hash);
    if (e) {
        use(stock, &e->shared);
        unlink_entry(stock, e);
        put_first(stock, e);
    } else {
        make_room(stock, RFI_IDLE_BYTES, RFI_IDLE_COUNT);
        status = add(stock, need, hash, &e, error);
    }
    pthread_mutex_unlock(&stock->lock);
    *shared = status == REEF_OK && e ? &e->shared : NULL;
    return status;
}

void rfi_stock_keep(rfi_stock *stock, const rfi_shared *shared)
{
    pthread_mutex_lock(&stock->lock);
    use(stock, shared);
    pthread_mutex_unlock(&stock->lock);
}

void rfi_stock_give(rfi_stock *stock, const rfi_shared *shared)
{
    if (shared) {
        pthread_mutex_lock(&stock->lock);
        leave(stock, shared);
        make_room(stock, RFI_IDLE_BYTES, RFI_IDLE_COUNT);
        pthread_mutex_unlock(&stock->lock);
    }
}

ptrdiff_t rfi_stock_made(const rfi_stock *stock)
{
    return stock->made;
}
