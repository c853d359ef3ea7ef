/* A run spread over ranks (setup.engine): each has the models of its own agents, and rows for what it hears from others.
 *
 *   local number   0 .. own - 1           this rank's agents, ascending by their global number
 *                  own .. agents - 1      those of other ranks whose rows are needed here: by rank, then by number
 * Everything in a reef_run is in local numbers; problems, attacks and callers see global ones (rfi_id).
 *
 * Rows are sent along routes: `hear` from every agent to the ranks of those who hear it; `know` to the ranks whose malicious agents know
 * them; `rest` is hear without what know has sent already; `lies` is that of malicious agents only. */
#ifndef RFI_LEARN_RANKS_H
#define RFI_LEARN_RANKS_H

#include <reef/learn.h>
#include <reef/shard.h>

/* shard.c: rows that the last aggregation left out because they held NaN or Inf. */
ptrdiff_t rfi_shard_dropped(const reef_shard *shard);

/* Entries of a route. */
static inline int32_t rfi_pair_rank(uint64_t pair)
{
    return (int32_t)(pair >> 32);
}

static inline ptrdiff_t rfi_pair_id(uint64_t pair)
{
    return (ptrdiff_t)(pair & UINT32_MAX);
}

typedef struct rfi_route {
    uint64_t *send, *receive; /* rank << 32 | global number, ascending */
    ptrdiff_t sends, receives;
    int32_t *peers;
    ptrdiff_t peer_count;
    void *pattern;        /* the engine's */
    void **pieces;        /* sends + receives */
    reef_parcel *parcels; /* 2 peer_count */
    bool open;            /* exists on all ranks */
} rfi_route;

typedef struct rfi_ranks {
    const reef_engine *engine;
    int32_t *owner;      /* K: rank of each agent */
    int32_t *local;      /* K: local number, or -1 */
    int32_t *order;      /* agents: local numbers in global order */
    bool *malicious;     /* K */
    double *step_factor; /* K; or NULL */
    ptrdiff_t *start;    /* own + 1: neighbourhoods in local numbers, if the network never changes; else NULL */
    int32_t *senders;
    rfi_route hear, know, rest, lies;
    unsigned char *silent; /* agents: 1: sent nothing */
    unsigned char *sent;   /* K: 1: the server has a message of it; or NULL */
    ptrdiff_t interior;    /* classes that need no row of another rank; they come first */
    rfi_route *under_way;  /* or NULL */
    reef_shard *shard;     /* the server's rule, or NULL; with it what follows */
    float *slice;          /* M / size: of its result */
    const void **rows;     /* own: what they have sent */
    double *weights;       /* K */
    int64_t *ids;          /* K: 0, 1, ... */
    reef_report *report;   /* or NULL */
    reef_status status;    /* of the first exchange that failed */
    reef_error error;
} rfi_ranks;

/* Sets agents, own, ids and malicious agents of a run whose sizes are known. */
reef_status rfi_ranks_create(reef_run *run, reef_error *error);
void rfi_ranks_destroy(reef_run *run);
/* Before malicious messages are made: receives what malicious agents know. After that: starts sending what all send, which has arrived after receive. */
void rfi_ranks_know(reef_run *run, float *honest);
void rfi_ranks_send(reef_run *run, float *honest);
/* The same for a strategy that sends these rows as they are. */
void rfi_ranks_publish(reef_run *run, float *rows);
void rfi_ranks_poke(reef_run *run);
void rfi_ranks_receive(reef_run *run);
/* Neighbourhood of an own agent in this round: local numbers into senders, weights into weight. */
ptrdiff_t rfi_ranks_hear(const reef_run *run, ptrdiff_t k, int32_t *senders, double *weight);
/* Orders the classes: those that hear only own agents first. */
void rfi_ranks_sort_classes(reef_run *run, int32_t *work);
/* Keeps the first failure, to be told after the round. */
void rfi_ranks_fail(rfi_ranks *ranks, reef_status status, const reef_error *error);

/* ---- ranks_server.c ---- */

/* A server's rule, spread over ranks by coordinates, and whether it can do with run->wanted rows. Collective; `status` of what came before
 * counts. */
reef_status rfi_ranks_open_server(reef_run *run, reef_status status, reef_error *error);
void rfi_ranks_close_server(reef_run *run);
/* rfi_combine_server over ranks: out on all of them. */
bool rfi_ranks_serve(reef_run *run, const double *weights, float *out);
/* Who of those present has sent something, in ranks->sent. */
void rfi_ranks_share_sent(reef_run *run);

/* ---- ranks_sum.c ---- */

/* What is done with coordinates from .. from + count - 1 of all K rows, which are `piece` numbers apart; unwanted rows have undefined content. */
typedef void (*rfi_piece_job)(const reef_run *run, void *job, const float *rows, ptrdiff_t piece, ptrdiff_t from,
                              ptrdiff_t count);
/* Gives every rank some coordinates of the wanted rows (K flags) after the other; rows: own, only the wanted ones are read. Collective. */
reef_status rfi_ranks_pieces(const reef_run *run, const float *const *rows, const unsigned char *wanted,
                             rfi_piece_job work, void *job, reef_error *error);
/* mean = sum of the models of the honest agents in their order, over their number. */
reef_status rfi_ranks_mean(const reef_run *run, double *mean, reef_error *error);
/* The models of agents first .. first + count - 1 on rank 0, `stride` numbers apart; NULL on the others. Collective. */
reef_status rfi_ranks_fetch(const reef_run *run, ptrdiff_t first, ptrdiff_t count, float *to, reef_error *error);

/* checkpoint.c: a run over ranks with additional bytes of the caller's, which rank 0 provides and all get back. load: REEF_E_FILE if there is
 * nothing at that path; if the newest checkpoint is damaged, the one before it is used, and *fell_back is true. After a failed load, the
 * run cannot continue. */
reef_status rfi_run_save_with(reef_run *run, const char *path, const void *extra, size_t extra_size, reef_error *error);
reef_status rfi_run_load_with(reef_run *run, const char *path, void *extra, size_t extra_size, bool *fell_back,
                              reef_error *error);

/* ranks_save.c, ranks_load.c */
reef_status rfi_ranks_save(reef_run *run, const char *path, uint64_t mark, const void *extra, size_t extra_size,
                           reef_error *error);
reef_status rfi_ranks_load(reef_run *run, const char *path, uint64_t mark, void *extra, size_t extra_size,
                           bool *fell_back, reef_error *error);
/* Removes what save has written. */
void rfi_ranks_forget(const reef_run *run, const char *path);

#endif
