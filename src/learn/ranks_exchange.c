/* Exchanging rows between ranks, along the routes of ranks.c. */
#include "base/error.h"
#include "learn/run.h"

#include <assert.h>
#include <string.h>

/* What is exchanged. */
typedef enum cargo {
    ROWS,     /* rows as they are */
    SENT,     /* what is sent: honest or malicious rows */
    PREVIOUS, /* what malicious agents have adapted from */
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
        return run->malicious[k] ? rfi_lie_row(run, k) : rfi_row(run, rows, k);
    case PREVIOUS:
        return (void *)(uintptr_t)rfi_previous_of(run, k); /* of another rank's agent: a row of this rank's own */
    case SILENCE:
        return &run->ranks->silent[k];
    case ROWS:
        break;
    }
    return rfi_row(run, rows, k);
}

void rfi_ranks_fail(rfi_ranks *r, reef_status status, const reef_error *error)
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
    assert(route->open && !r->under_way); /* one exchange at a time */
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
    assert(i == route->sends && j == route->receives); /* every row goes to a peer or comes from one */
    reef_status status =
        r->engine->ops->begin(r->engine, route->pattern, route->parcels, route->parcels + route->peer_count, &error);
    rfi_ranks_fail(r, status, &error);
    r->under_way = status == REEF_OK ? route : NULL;
}

void rfi_ranks_receive(reef_run *run)
{
    rfi_ranks *r = run->ranks;
    reef_error error = {REEF_OK, ""};
    if (r->under_way) {
        rfi_ranks_fail(r, r->engine->ops->end(r->engine, r->under_way->pattern, &error), &error);
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

/* Which malicious agents stay silent, before what the others send. */
static void share_silence(reef_run *run)
{
    rfi_ranks *r = run->ranks;
    for (ptrdiff_t k = 0; k < run->own; k++) {
        r->silent[k] = !rfi_sent(run, k);
    }
    begin(run, &r->lies, SILENCE, NULL);
    rfi_ranks_receive(run);
    for (ptrdiff_t k = run->own; k < run->agents; k++) {
        if (run->malicious[k]) {
            run->sent[k] = r->silent[k] ? NULL : rfi_lie_row(run, k);
        }
    }
}

void rfi_ranks_send(reef_run *run, float *honest)
{
    rfi_ranks *r = run->ranks;
    bool late = run->depth > 1 && run->all_malicious;
    if (rfi_lies_by_receiver(run)) { /* malicious messages are made where they are heard */
        begin(run, &r->lies, PREVIOUS, honest);
        rfi_ranks_receive(run);
        begin(run, &r->hear, ROWS, honest);
    } else if (rfi_attacks_now(run) || late) {
        bool of_malicious = reef_attack_common_of(run->setup.attack)->knowledge == REEF_KNOW_MALICIOUS;
        share_silence(run);
        begin(run, knows_now(run) && !of_malicious ? &r->rest : &r->hear, SENT, honest);
    } else {
        begin(run, &r->hear, ROWS, honest);
    }
}
