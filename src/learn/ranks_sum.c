/* Whole rows of all agents if no rank has them all: some coordinates at a time on every rank, or some rows at a time on one.
 *
 *   block      R x piece coordinates; rank r gets the piece number r of them of all K rows      all-to-all
 * A sum over agents is then a sum over rows that are side by side, in the order of agents: bit-identical to one process. */
#include "base/error.h"
#include "learn/run.h"

#include <string.h>

/* Coordinates that one rank has of all rows at a time: K rows of them take about 32 MB. */
static ptrdiff_t piece_of(const reef_run *run)
{
    ptrdiff_t piece = ((ptrdiff_t)8 << 20) / run->all;
    ptrdiff_t share = (run->length - 1) / run->ranks->engine->size + 1;
    piece = piece > share ? share : piece;
    return piece > 0 ? piece : 1;
}

/* What the pieces are made with. */
typedef struct slices {
    const float *const *own;
    const unsigned char *wanted;
    float *rows;            /* K x piece */
    void **send, **receive; /* ranks x own; K */
    reef_parcel *parcels;
    ptrdiff_t piece;
} slices;

/* Coordinates of the piece of a rank in the block from `from` on. */
static ptrdiff_t count_of(const reef_run *run, const slices *s, ptrdiff_t from, ptrdiff_t rank)
{
    ptrdiff_t left = run->length - from - rank * s->piece;
    left = left < s->piece ? left : s->piece;
    return left > 0 ? left : 0;
}

static reef_status exchange_block(const reef_run *run, slices *s, ptrdiff_t from, reef_error *error)
{
    const rfi_ranks *r = run->ranks;
    const reef_engine *e = r->engine;
    ptrdiff_t sends = 0;
    ptrdiff_t receives = 0;
    ptrdiff_t mine = count_of(run, s, from, e->rank);
    for (int32_t rank = 0; rank < e->size; rank++) {
        ptrdiff_t theirs = count_of(run, s, from, rank);
        ptrdiff_t first_send = sends;
        ptrdiff_t first_receive = receives;
        for (ptrdiff_t k = 0; k < run->own && theirs > 0; k++) {
            if (s->wanted[run->ids[k]]) { /* only read */
                s->send[sends++] = (void *)(uintptr_t)(s->own[k] + from + rank * s->piece);
            }
        }
        for (ptrdiff_t id = 0; id < run->all && mine > 0; id++) {
            if (s->wanted[id] && r->owner[id] == rank) {
                s->receive[receives++] = s->rows + id * s->piece;
            }
        }
        s->parcels[rank] = (reef_parcel){s->send + first_send, sends - first_send, (size_t)theirs * sizeof(float)};
        s->parcels[e->size + rank] =
            (reef_parcel){s->receive + first_receive, receives - first_receive, (size_t)mine * sizeof(float)};
    }
    return e->ops->all_to_all(e, s->parcels, s->parcels + e->size, error);
}

reef_status rfi_ranks_pieces(const reef_run *run, const float *const *rows, const unsigned char *wanted,
                             rfi_piece_job work, void *job, reef_error *error)
{
    const reef_engine *e = run->ranks->engine;
    slices s = {.own = rows, .wanted = wanted, .piece = piece_of(run)};
    s.rows = rfi_run_take(run, run->all * s.piece, sizeof *s.rows);
    s.send = rfi_run_take(run, run->own * e->size, sizeof *s.send);
    s.receive = rfi_run_take(run, run->all, sizeof *s.receive);
    s.parcels = rfi_run_take(run, 2 * (ptrdiff_t)e->size, sizeof *s.parcels);
    bool ready = s.rows && s.send && s.receive && s.parcels;
    reef_status status =
        ready ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for a sum over %td agents", run->all);
    status = e->ops->agree(e, status, error);
    for (ptrdiff_t from = 0; status == REEF_OK && ready && from < run->length; from += e->size * s.piece) {
        ptrdiff_t mine = count_of(run, &s, from, e->rank);
        status = exchange_block(run, &s, from, error);
        if (status == REEF_OK && mine > 0) {
            work(run, job, s.rows, s.piece, from + e->rank * s.piece, mine);
        }
    }
    rfi_release(run->context, s.rows);
    rfi_release(run->context, (void *)s.send);
    rfi_release(run->context, (void *)s.receive);
    rfi_release(run->context, s.parcels);
    return status;
}

/* ---- the mean model ---- */

static void add_piece(const reef_run *run, void *job, const float *rows, ptrdiff_t piece, ptrdiff_t from,
                      ptrdiff_t count)
{
    double *mean = (double *)job + from;
    for (ptrdiff_t id = 0; id < run->all; id++) {
        for (ptrdiff_t i = 0; !run->ranks->malicious[id] && i < count; i++) {
            mean[i] += (double)rows[id * piece + i];
        }
    }
}

reef_status rfi_ranks_mean(const reef_run *run, double *mean, reef_error *error)
{
    const reef_engine *e = run->ranks->engine;
    unsigned char *honest = rfi_run_take(run, run->all, 1);
    const float **models = rfi_run_take(run, run->own, sizeof *models);
    bool ready = honest && models;
    reef_status status =
        ready ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for a mean over %td agents", run->all);
    status = e->ops->agree(e, status, error);
    memset(mean, 0, (size_t)run->length * sizeof *mean);
    for (ptrdiff_t id = 0; ready && id < run->all; id++) {
        honest[id] = !run->ranks->malicious[id];
    }
    for (ptrdiff_t k = 0; ready && k < run->own; k++) {
        models[k] = rfi_model(run, k);
    }
    if (status == REEF_OK && ready) {
        status = rfi_ranks_pieces(run, models, honest, add_piece, mean, error);
    }
    if (status == REEF_OK) {
        status = e->ops->merge(e, mean, (size_t)run->length * sizeof *mean, error);
    }
    for (ptrdiff_t i = 0; i < run->length; i++) {
        mean[i] /= (double)(run->all - run->all_malicious);
    }
    rfi_release(run->context, honest);
    rfi_release(run->context, (void *)models);
    return status;
}

/* ---- whole models ---- */

reef_status rfi_ranks_fetch(const reef_run *run, ptrdiff_t first, ptrdiff_t count, float *to, reef_error *error)
{
    const rfi_ranks *r = run->ranks;
    const reef_engine *e = r->engine;
    size_t bytes = (size_t)run->length * sizeof(float);
    void **pieces = rfi_run_take(run, 2 * count, sizeof *pieces);
    reef_parcel *parcels = rfi_run_take(run, 2 * (ptrdiff_t)e->size, sizeof *parcels);
    bool ready = pieces && parcels && (to || e->rank > 0);
    reef_status status =
        ready ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for the models of %td agents", count);
    status = e->ops->agree(e, status, error);
    if (status == REEF_OK && ready) {
        ptrdiff_t sends = 0;
        ptrdiff_t receives = 0;
        for (ptrdiff_t id = first; id < first + count; id++) {
            if (r->owner[id] == e->rank) { /* only read */
                pieces[sends++] = (void *)(uintptr_t)rfi_model(run, r->local[id]);
            }
        }
        parcels[0] = (reef_parcel){pieces, sends, bytes};
        for (int32_t rank = 0; e->rank == 0 && rank < e->size; rank++) {
            ptrdiff_t before = receives;
            for (ptrdiff_t id = first; id < first + count; id++) {
                if (r->owner[id] == rank) {
                    pieces[count + receives++] = to + (id - first) * run->stride;
                }
            }
            parcels[e->size + rank] = (reef_parcel){pieces + count + before, receives - before, bytes};
        }
        status = e->ops->all_to_all(e, parcels, parcels + e->size, error);
    }
    rfi_release(run->context, (void *)pieces);
    rfi_release(run->context, parcels);
    return status;
}
