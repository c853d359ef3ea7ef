/* Rows on their way between ranks, along the routes of ranks.c. */
#include "base/error.h"
#include "learn/run.h"

#include <string.h>

/* What is exchanged. */
typedef enum cargo {
    ROWS,     /* rows as they are */
    SENT,     /* what is sent: rows, or lies */
    PREVIOUS, /* what liars have adapted from */
    SILENCE,  /* who sends nothing */
} cargo;

static void *outgoing(reef_run *run, cargo what, float *rows, ptrdiff_t k)
{
    switch (what) {
    case SENT:
        return (void *)(uintptr_t)(rfi_sent(run, k) ? rfi_sent(run, k) : run->zeros); /* only read */
    case PREVIOUS:
        return (void *)(uintptr_t)rfi_previous_of(run, k);
    case SILENCE:
        return &run->ranks->silent[k];
    case ROWS:
        break;
    }
    return rfi_row(run, rows, k);
}

static void *incoming(reef_run *run, cargo what, float *rows, ptrdiff_t k)
{
    switch (what) {
    case SENT:
        return run->liar[k] ? rfi_lie_row(run, k) : rfi_row(run, rows, k);
    case PREVIOUS:
        return (void *)(uintptr_t)rfi_previous_of(run, k); /* of another rank's agent: a row of this rank's own */
    case SILENCE:
        return &run->ranks->silent[k];
    case ROWS:
        break;
    }
    return rfi_row(run, rows, k);
}

static void keep_failure(rfi_ranks *r, reef_status status, const reef_error *error)
{
    if (status != REEF_OK && r->status == REEF_OK) {
        r->status = status;
        r->error = *error;
    }
}

static void begin(reef_run *run, rfi_route *route, cargo what, float *rows)
{
    rfi_ranks *r = run->ranks;
    reef_error error = {REEF_OK, ""};
    size_t bytes = what == SILENCE ? 1 : (size_t)run->stride * sizeof(float);
    void **send = route->pieces;
    void **receive = route->pieces + route->sends;
    for (ptrdiff_t i = 0; i < route->sends; i++) {
        send[i] = outgoing(run, what, rows, r->local[rfi_pair_id(route->send[i])]);
    }
    for (ptrdiff_t i = 0; i < route->receives; i++) {
        receive[i] = incoming(run, what, rows, r->local[rfi_pair_id(route->receive[i])]);
    }
    ptrdiff_t i = 0;
    ptrdiff_t j = 0;
    for (ptrdiff_t p = 0; p < route->peer_count; p++) {
        ptrdiff_t i0 = i;
        ptrdiff_t j0 = j;
        while (i < route->sends && rfi_pair_rank(route->send[i]) == route->peers[p]) {
            i++;
        }
        while (j < route->receives && rfi_pair_rank(route->receive[j]) == route->peers[p]) {
            j++;
        }
        route->parcels[p] = (reef_parcel){send + i0, i - i0, bytes};
        route->parcels[route->peer_count + p] = (reef_parcel){receive + j0, j - j0, bytes};
    }
    reef_status status =
        r->engine->ops->begin(r->engine, route->pattern, route->parcels, route->parcels + route->peer_count, &error);
    keep_failure(r, status, &error);
    r->under_way = status == REEF_OK ? route : NULL;
}

void rfi_ranks_receive(reef_run *run)
{
    rfi_ranks *r = run->ranks;
    reef_error error = {REEF_OK, ""};
    if (r->under_way) {
        keep_failure(r, r->engine->ops->end(r->engine, r->under_way->pattern, &error), &error);
        r->under_way = NULL;
    }
}

void rfi_ranks_poke(reef_run *run)
{
    rfi_ranks *r = run->ranks;
    if (r->under_way && r->engine->ops->poke) {
        r->engine->ops->poke(r->engine, r->under_way->pattern);
    }
}

void rfi_ranks_publish(reef_run *run, float *rows)
{
    begin(run, &run->ranks->hear, ROWS, rows);
}

static bool knows_now(const reef_run *run)
{
    return run->ranks->know.open && rfi_attacks_now(run);
}

void rfi_ranks_know(reef_run *run, float *honest)
{
    if (knows_now(run)) {
        begin(run, &run->ranks->know, ROWS, honest);
        rfi_ranks_receive(run);
    }
}

/* Who of the liars stays silent, before what the others send. */
static void share_silence(reef_run *run)
{
    rfi_ranks *r = run->ranks;
    for (ptrdiff_t k = 0; k < run->own; k++) {
        r->silent[k] = !rfi_sent(run, k);
    }
    begin(run, &r->lies, SILENCE, NULL);
    rfi_ranks_receive(run);
    for (ptrdiff_t k = run->own; k < run->agents; k++) {
        if (run->liar[k]) {
            run->sent[k] = r->silent[k] ? NULL : rfi_lie_row(run, k);
        }
    }
}

void rfi_ranks_send(reef_run *run, float *honest)
{
    rfi_ranks *r = run->ranks;
    bool late = run->depth > 1 && run->all_liars;
    if (rfi_lies_by_receiver(run)) { /* lies are made where they are heard */
        begin(run, &r->lies, PREVIOUS, honest);
        rfi_ranks_receive(run);
        begin(run, &r->hear, ROWS, honest);
    } else if (rfi_attacks_now(run) || late) {
        bool of_liars = reef_attack_common_of(run->setup.attack)->knowledge == REEF_KNOW_LIARS;
        share_silence(run);
        begin(run, knows_now(run) && !of_liars ? &r->rest : &r->hear, SENT, honest);
    } else {
        begin(run, &r->hear, ROWS, honest);
    }
}

/* ---- sums over agents ---- */

/* Coordinates that one rank sums up at a time: K rows of them take about 32 MB. */
static ptrdiff_t piece_of(const reef_run *run)
{
    ptrdiff_t piece = ((ptrdiff_t)8 << 20) / run->all;
    piece = piece > run->length ? run->length : piece;
    return piece > 0 ? piece : 1;
}

/* Room for a mean over all agents of some coordinates. */
typedef struct slices {
    float *rows;            /* K x piece */
    void **send, **receive; /* ranks x own; K */
    reef_parcel *parcels;
    ptrdiff_t piece;
} slices;

/* Every rank gets its piece, from coordinate `from` on, of all benign models. */
static reef_status gather_pieces(const reef_run *run, slices *s, ptrdiff_t from, reef_error *error)
{
    const rfi_ranks *r = run->ranks;
    const reef_engine *e = r->engine;
    ptrdiff_t own = 0;
    ptrdiff_t all = 0;
    for (int32_t rank = 0; rank < e->size; rank++) {
        ptrdiff_t at = from + rank * s->piece;
        ptrdiff_t mine = from + e->rank * s->piece;
        ptrdiff_t theirs = run->length - at < s->piece ? run->length - at : s->piece;
        ptrdiff_t ours = run->length - mine < s->piece ? run->length - mine : s->piece;
        ptrdiff_t first_own = own;
        ptrdiff_t first_all = all;
        for (ptrdiff_t k = 0; k < run->own && theirs > 0; k++) {
            if (!run->liar[k]) {
                s->send[own++] = (void *)(uintptr_t)(rfi_model(run, k) + at); /* only read */
            }
        }
        for (ptrdiff_t k = 0; k < run->all && ours > 0; k++) {
            if (!r->liar[k] && r->owner[k] == rank) {
                s->receive[all++] = s->rows + k * s->piece;
            }
        }
        s->parcels[rank] =
            (reef_parcel){s->send + first_own, own - first_own, (size_t)(theirs > 0 ? theirs : 0) * sizeof(float)};
        s->parcels[e->size + rank] =
            (reef_parcel){s->receive + first_all, all - first_all, (size_t)(ours > 0 ? ours : 0) * sizeof(float)};
    }
    return e->ops->all_to_all(e, s->parcels, s->parcels + e->size, error);
}

static void add_piece(const reef_run *run, const slices *s, ptrdiff_t from, double *mean)
{
    ptrdiff_t mine = from + run->ranks->engine->rank * s->piece;
    for (ptrdiff_t k = 0; k < run->all; k++) {
        for (ptrdiff_t i = 0; !run->ranks->liar[k] && i < s->piece && mine + i < run->length; i++) {
            mean[mine + i] += (double)s->rows[k * s->piece + i];
        }
    }
}

reef_status rfi_ranks_mean(const reef_run *run, double *mean, reef_error *error)
{
    const reef_engine *e = run->ranks->engine;
    slices s = {.piece = piece_of(run)};
    s.rows = rfi_run_take(run, run->all * s.piece, sizeof *s.rows);
    s.send = rfi_run_take(run, run->own * e->size, sizeof *s.send);
    s.receive = rfi_run_take(run, run->all, sizeof *s.receive);
    s.parcels = rfi_run_take(run, 2 * (ptrdiff_t)e->size, sizeof *s.parcels);
    bool ready = s.rows && s.send && s.receive && s.parcels;
    reef_status status =
        ready ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "no memory for a mean over %td agents", run->all);
    status = e->ops->agree(e, status, error);
    for (ptrdiff_t from = 0; status == REEF_OK && ready && from < run->length; from += e->size * s.piece) {
        status = gather_pieces(run, &s, from, error);
        if (status == REEF_OK) {
            add_piece(run, &s, from, mean);
        }
    }
    if (status == REEF_OK) {
        status = e->ops->merge(e, mean, (size_t)run->length * sizeof *mean, error);
    }
    for (ptrdiff_t i = 0; i < run->length; i++) {
        mean[i] /= (double)(run->all - run->all_liars);
    }
    rfi_release(run->context, s.rows);
    rfi_release(run->context, (void *)s.send);
    rfi_release(run->context, (void *)s.receive);
    rfi_release(run->context, s.parcels);
    return status;
}
