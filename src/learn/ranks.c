/* Which rank has which agents, and which rows it needs of others. */
#include "learn/ranks.h"

#include "base/error.h"
#include "graph/graph.h"
#include "learn/run.h"

#include <stdlib.h>
#include <string.h>

/* ---- pairs of rank and agent ---- */

static uint64_t pair_of(int32_t rank, ptrdiff_t id)
{
    return (uint64_t)rank << 32 | (uint64_t)id;
}

static int by_pair(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* A growing list. */
typedef struct pairs {
    uint64_t *list;
    ptrdiff_t count, room;
    bool failed;
} pairs;

static void add_pair(const reef_run *run, pairs *p, uint64_t pair)
{
    if (p->count > 0 && p->list[p->count - 1] == pair) {
        return;
    }
    if (p->count == p->room) {
        ptrdiff_t room = p->room > 0 ? 2 * p->room : 256;
        uint64_t *more = rfi_run_take(run, room, sizeof *more);
        p->failed = p->failed || !more;
        if (!more) {
            return;
        }
        if (p->list) {
            memcpy(more, p->list, (size_t)p->count * sizeof *more);
        }
        rfi_release(run->context, p->list);
        p->list = more;
        p->room = room;
    }
    p->list[p->count++] = pair;
}

static void sort_pairs(pairs *p)
{
    ptrdiff_t kept = 0;
    if (p->count == 0) {
        return;
    }
    qsort(p->list, (size_t)p->count, sizeof *p->list, by_pair);
    for (ptrdiff_t i = 0; i < p->count; i++) {
        if (i == 0 || p->list[i] != p->list[i - 1]) {
            p->list[kept++] = p->list[i];
        }
    }
    p->count = kept;
}

static bool has_pair(const uint64_t *list, ptrdiff_t count, uint64_t pair)
{
    return count > 0 && bsearch(&pair, list, (size_t)count, sizeof *list, by_pair) != NULL;
}

/* ---- who has whom ---- */

static reef_status spread_agents(const reef_run *run, rfi_ranks *r, reef_error *error)
{
    const reef_engine *e = r->engine;
    reef_csr csr = {0};
    if (run->setup.links) {
        csr = reef_graph_csr(reef_links_graph(run->setup.links, 0));
    }
    if (e->ops->partition && e->size > 1 && run->setup.links) {
        return e->ops->partition(e, run->all, csr.start, csr.senders, r->owner, error);
    }
    for (ptrdiff_t k = 0; k < run->all; k++) {
        r->owner[k] = (int32_t)((int64_t)k * e->size / run->all);
    }
    return REEF_OK;
}

static bool take_tables(const reef_run *run, rfi_ranks *r)
{
    const reef_run_setup *s = &run->setup;
    r->owner = rfi_run_take(run, run->all, sizeof *r->owner);
    r->local = rfi_run_take(run, run->all, sizeof *r->local);
    r->malicious = rfi_run_take(run, run->all, sizeof *r->malicious);
    r->sent = run->strategy->has_server ? rfi_run_take(run, run->all, 1) : NULL;
    r->step_factor = s->step_factor ? rfi_run_take(run, run->all, sizeof(double)) : NULL;
    if (!r->owner || !r->local || !r->malicious || (s->step_factor && !r->step_factor) ||
        (run->strategy->has_server && !r->sent)) {
        return false;
    }
    for (ptrdiff_t k = 0; k < run->all; k++) {
        r->local[k] = -1;
        r->malicious[k] = s->malicious && s->malicious[k];
        if (r->step_factor) {
            r->step_factor[k] = s->step_factor[k];
        }
    }
    return true;
}

/* Links of all graphs between this rank and others. */
static void list_hearing(const reef_run *run, const rfi_ranks *r, pairs *send, pairs *receive)
{
    int32_t me = r->engine->rank;
    for (ptrdiff_t g = 0; g < rfi_links_graphs(run->setup.links); g++) {
        reef_csr csr = reef_graph_csr(rfi_links_graph_at(run->setup.links, g));
        for (ptrdiff_t k = 0; k < run->all; k++) {
            for (ptrdiff_t i = csr.start[k]; i < csr.start[k + 1]; i++) {
                int32_t l = csr.senders[i];
                if (r->owner[k] == me && r->owner[l] != me) {
                    add_pair(run, receive, pair_of(r->owner[l], l));
                } else if (r->owner[k] != me && r->owner[l] == me) {
                    add_pair(run, send, pair_of(r->owner[k], l));
                }
            }
        }
    }
}

/* Malicious agents know the rows of all honest agents, or of all malicious ones; so their ranks must. */
static void list_knowing(const reef_run *run, const rfi_ranks *r, const bool *knowing, pairs *send, pairs *receive)
{
    int32_t me = r->engine->rank;
    bool of_malicious = reef_attack_common_of(run->setup.attack)->knowledge == REEF_KNOW_MALICIOUS;
    for (ptrdiff_t l = 0; l < run->all; l++) {
        if (r->malicious[l] != of_malicious) {
            continue;
        }
        if (r->owner[l] != me && knowing[me]) {
            add_pair(run, receive, pair_of(r->owner[l], l));
        }
        for (int32_t s = 0; r->owner[l] == me && s < r->engine->size; s++) {
            if (s != me && knowing[s]) {
                add_pair(run, send, pair_of(s, l));
            }
        }
    }
}

/* ---- routes ---- */

static ptrdiff_t count_peers(const rfi_route *route, int32_t *peers)
{
    ptrdiff_t count = 0;
    ptrdiff_t i = 0;
    ptrdiff_t j = 0;
    while (i < route->sends || j < route->receives) {
        bool sends = j == route->receives ||
                     (i < route->sends && rfi_pair_rank(route->send[i]) <= rfi_pair_rank(route->receive[j]));
        int32_t next = rfi_pair_rank(sends ? route->send[i] : route->receive[j]);
        if (peers) {
            peers[count] = next;
        }
        count++;
        while (i < route->sends && rfi_pair_rank(route->send[i]) == next) {
            i++;
        }
        while (j < route->receives && rfi_pair_rank(route->receive[j]) == next) {
            j++;
        }
    }
    return count;
}

/* Takes over the lists. Collective. */
static reef_status open_route(const reef_run *run, rfi_ranks *r, rfi_route *route, pairs *send, pairs *receive,
                              reef_error *error)
{
    const reef_engine *e = r->engine;
    bool complete = !send->failed && !receive->failed;
    sort_pairs(send);
    sort_pairs(receive);
    *route = (rfi_route){.send = send->list, .receive = receive->list};
    route->sends = send->count;
    route->receives = receive->count;
    route->peer_count = count_peers(route, NULL);
    route->peers = rfi_run_take(run, route->peer_count, sizeof *route->peers);
    route->pieces = rfi_run_take(run, route->sends + route->receives, sizeof *route->pieces);
    route->parcels = rfi_run_take(run, 2 * route->peer_count, sizeof *route->parcels);
    complete = complete && route->peers && route->pieces && route->parcels;
    reef_status status =
        complete ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for the exchange of rows");
    status = e->ops->agree(e, status, error);
    if (status == REEF_OK && complete) {
        (void)count_peers(route, route->peers);
        status = e->ops->connect(e, route->peers, route->peer_count, &route->pattern, error);
        route->open = status == REEF_OK;
    }
    return status;
}

static void close_route(const reef_run *run, rfi_route *route)
{
    if (route->open) {
        run->ranks->engine->ops->disconnect(run->ranks->engine, route->pattern);
    }
    rfi_release(run->context, route->send);
    rfi_release(run->context, route->receive);
    rfi_release(run->context, route->peers);
    rfi_release(run->context, (void *)route->pieces);
    rfi_release(run->context, route->parcels);
}

/* Those of `from` that the test keeps. */
typedef bool (*keeps)(const rfi_ranks *r, const uint64_t *other, ptrdiff_t others, uint64_t pair);

static bool not_known(const rfi_ranks *r, const uint64_t *other, ptrdiff_t others, uint64_t pair)
{
    (void)r;
    return !has_pair(other, others, pair);
}

static bool of_malicious(const rfi_ranks *r, const uint64_t *other, ptrdiff_t others, uint64_t pair)
{
    (void)other;
    (void)others;
    return r->malicious[rfi_pair_id(pair)];
}

static reef_status sieve_route(const reef_run *run, rfi_ranks *r, rfi_route *route, keeps test, reef_error *error)
{
    pairs send = {0};
    pairs receive = {0};
    for (ptrdiff_t i = 0; i < r->hear.sends; i++) {
        if (test(r, r->know.send, r->know.sends, r->hear.send[i])) {
            add_pair(run, &send, r->hear.send[i]);
        }
    }
    for (ptrdiff_t i = 0; i < r->hear.receives; i++) {
        if (test(r, r->know.receive, r->know.receives, r->hear.receive[i])) {
            add_pair(run, &receive, r->hear.receive[i]);
        }
    }
    return open_route(run, r, route, &send, &receive, error);
}

static bool looks_at_rows(const reef_run *run)
{
    const reef_attack *attack = run->setup.attack;
    return attack && run->all_malicious && (reef_attack_traits(attack) & REEF_ATTACK_ROWS) && !rfi_lies_can_differ(run);
}

static reef_status open_knowledge(const reef_run *run, rfi_ranks *r, reef_error *error)
{
    pairs send = {0};
    pairs receive = {0};
    bool *knowing = rfi_run_take(run, r->engine->size, sizeof *knowing);
    send.failed = !knowing;
    for (ptrdiff_t l = 0; knowing && l < run->all; l++) {
        knowing[r->owner[l]] = knowing[r->owner[l]] || r->malicious[l];
    }
    if (knowing) {
        list_knowing(run, r, knowing, &send, &receive);
    }
    rfi_release(run->context, knowing);
    reef_status status = open_route(run, r, &r->know, &send, &receive, error);
    if (status != REEF_OK) {
        return status;
    }
    return sieve_route(run, r, &r->rest, not_known, error);
}

static reef_status open_routes(const reef_run *run, rfi_ranks *r, reef_error *error)
{
    pairs send = {0};
    pairs receive = {0};
    if (!run->setup.links) { /* a server hears slices of all rows */
        return run->strategy->has_server && looks_at_rows(run) ? open_knowledge(run, r, error) : REEF_OK;
    }
    list_hearing(run, r, &send, &receive);
    reef_status status = open_route(run, r, &r->hear, &send, &receive, error);
    if (status == REEF_OK && looks_at_rows(run)) {
        status = open_knowledge(run, r, error);
    }
    if (status == REEF_OK && run->setup.attack && run->all_malicious) {
        status = sieve_route(run, r, &r->lies, of_malicious, error);
    }
    return status;
}

/* ---- local numbers ---- */

static int by_id(const void *a, const void *b)
{
    return (*(const int32_t *)a > *(const int32_t *)b) - (*(const int32_t *)a < *(const int32_t *)b);
}

static reef_status number_agents(reef_run *run, rfi_ranks *r, reef_error *error)
{
    pairs halo = {0};
    for (ptrdiff_t i = 0; i < r->hear.receives; i++) {
        add_pair(run, &halo, r->hear.receive[i]);
    }
    for (ptrdiff_t i = 0; i < r->know.receives; i++) {
        add_pair(run, &halo, r->know.receive[i]);
    }
    sort_pairs(&halo);
    for (ptrdiff_t k = 0; k < run->all; k++) {
        run->own += r->owner[k] == r->engine->rank;
    }
    run->agents = run->own + halo.count;
    run->ids = rfi_run_take(run, run->agents, sizeof *run->ids);
    r->order = rfi_run_take(run, run->agents, sizeof *r->order);
    r->silent = rfi_run_take(run, run->agents, 1);
    bool ready = !halo.failed && run->ids && r->order && r->silent;
    ptrdiff_t count = 0;
    for (ptrdiff_t k = 0; ready && k < run->all; k++) {
        if (r->owner[k] == r->engine->rank) {
            run->ids[count++] = (int32_t)k;
        }
    }
    for (ptrdiff_t i = 0; ready && i < halo.count; i++) {
        run->ids[count++] = (int32_t)rfi_pair_id(halo.list[i]);
    }
    for (ptrdiff_t k = 0; ready && k < run->agents; k++) {
        r->local[run->ids[k]] = (int32_t)k;
        r->order[k] = run->ids[k];
    }
    if (ready && run->agents > 0) {
        qsort(r->order, (size_t)run->agents, sizeof *r->order, by_id);
    }
    for (ptrdiff_t k = 0; ready && k < run->agents; k++) {
        r->order[k] = r->local[r->order[k]];
    }
    rfi_release(run->context, halo.list);
    return ready ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for a run of %td agents", run->all);
}

/* The neighbourhoods of own agents, once for all rounds. */
static reef_status fix_hearing(const reef_run *run, rfi_ranks *r, reef_error *error)
{
    if (!run->setup.links || !rfi_links_fixed(run->setup.links)) {
        return REEF_OK;
    }
    reef_csr csr = reef_graph_csr(reef_links_graph(run->setup.links, 0));
    ptrdiff_t links = 0;
    for (ptrdiff_t k = 0; k < run->own; k++) {
        links += csr.start[run->ids[k] + 1] - csr.start[run->ids[k]];
    }
    r->start = rfi_run_take(run, run->own + 1, sizeof *r->start);
    r->senders = rfi_run_take(run, links, sizeof *r->senders);
    if (!r->start || !r->senders) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %td links", links);
    }
    ptrdiff_t at = 0;
    for (ptrdiff_t k = 0; k < run->own; k++) {
        for (ptrdiff_t i = csr.start[run->ids[k]]; i < csr.start[run->ids[k] + 1]; i++) {
            r->senders[at++] = r->local[csr.senders[i]];
        }
        r->start[k + 1] = at;
    }
    return REEF_OK;
}

reef_status rfi_ranks_create(reef_run *run, reef_error *error)
{
    const reef_engine *e = run->setup.engine;
    rfi_ranks *r = rfi_run_take(run, 1, sizeof *r);
    reef_status status = REEF_OK;
    if (r) {
        run->ranks = r;
        r->engine = e;
    }
    if (!r || !take_tables(run, r)) {
        status = rfi_fail(error, REEF_E_NOMEM, "not enough memory for a run of %td agents", run->all);
    }
    status = e->ops->agree(e, status, error);
    if (status != REEF_OK || !r) {
        return status;
    }
    for (ptrdiff_t k = 0; k < run->all; k++) {
        run->all_malicious += r->malicious[k];
    }
    status = spread_agents(run, r, error);
    if (status == REEF_OK) {
        status = open_routes(run, r, error);
    }
    run->own = 0;
    if (status != REEF_OK) {
        return status;
    }
    status = number_agents(run, r, error);
    if (status != REEF_OK) {
        return status;
    }
    return fix_hearing(run, r, error);
}

void rfi_ranks_destroy(reef_run *run)
{
    rfi_ranks *r = run->ranks;
    if (!r) {
        return;
    }
    rfi_ranks_close_server(run);
    close_route(run, &r->hear);
    close_route(run, &r->know);
    close_route(run, &r->rest);
    close_route(run, &r->lies);
    void *tables[] = {r->owner, r->local,   r->order,  r->malicious, r->step_factor,
                      r->start, r->senders, r->silent, r->sent,      run->ids};
    for (ptrdiff_t i = 0; i < RFI_COUNT(tables); i++) {
        rfi_release(run->context, tables[i]);
    }
    rfi_release(run->context, r);
    run->ranks = NULL;
}

/* ---- neighbourhoods ---- */

ptrdiff_t rfi_ranks_hear(const reef_run *run, ptrdiff_t k, int32_t *senders, double *weight)
{
    ptrdiff_t count = reef_links_eval(run->setup.links, run->round, run->ids[k], senders, weight);
    for (ptrdiff_t i = 0; i < count; i++) {
        senders[i] = run->ranks->local[senders[i]];
    }
    return count;
}

/* Whether agent k hears only agents of this rank, in all rounds. */
static bool is_inside(const reef_run *run, ptrdiff_t k)
{
    bool inside = true;
    for (ptrdiff_t g = 0; g < rfi_links_graphs(run->setup.links); g++) {
        reef_csr csr = reef_graph_csr(rfi_links_graph_at(run->setup.links, g));
        ptrdiff_t id = run->ids[k];
        for (ptrdiff_t i = csr.start[id]; i < csr.start[id + 1]; i++) {
            inside = inside && run->ranks->local[csr.senders[i]] < run->own;
        }
    }
    return inside;
}

void rfi_ranks_sort_classes(reef_run *run, int32_t *work)
{
    rfi_ranks *r = run->ranks;
    ptrdiff_t count = 0;
    for (int outside = 0; outside < 2; outside++) {
        for (ptrdiff_t i = 0; i < run->classes; i++) {
            if (is_inside(run, run->class_first[i]) == !outside) {
                work[i] = (int32_t)count++;
            }
        }
        r->interior = outside ? r->interior : count;
    }
    for (ptrdiff_t k = 0; k < run->own; k++) {
        ptrdiff_t class_number = work[run->class_of[k]];
        run->class_of[k] = (int32_t)class_number;
    }
    for (ptrdiff_t k = run->own - 1; k >= 0; k--) { /* the first receiver of a class is written last */
        run->class_first[run->class_of[k]] = (int32_t)k;
    }
}
