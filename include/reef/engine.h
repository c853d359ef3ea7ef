/* Engines: how rows are exchanged between the processes of one job.
 *
 * A job is `size` processes (ranks) that run the same program. An engine is what one of them sees: its rank, and a table of
 * operations. All operations but abort are collective: every rank calls them, in the same order. The engine of a single process is built
 * in; <reef/mpi.h> makes one from an MPI communicator; you may write your own.
 *
 * Calls come from one thread at a time. An operation that fails leaves the job unusable, and the caller must end it. Only `agree` turns a
 * failure of one rank into an orderly failure of all.
 */
#ifndef REEF_ENGINE_H
#define REEF_ENGINE_H

#include <reef/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One rank's view of a job (see below). Its operations are called by one thread at a time. It must outlive the runs and shards made with it. */
typedef struct reef_engine reef_engine;

/* What is sent to, or received from, one rank: `count` pieces of `bytes` bytes each. */
typedef struct reef_parcel {
    void *const *pieces; /* where they are */
    ptrdiff_t count;     /* how many */
    size_t bytes;        /* of each */
} reef_parcel;

/* The operations of an engine. */
typedef struct reef_engine_ops {
    size_t size;      /* sizeof of this struct, so that later versions can add members; 0: as version 0.2 has it */
    const char *name; /* for messages */
    /* Prepares repeated exchanges with some ranks: peers, ascending, without this one. A rank that is listed as a peer must list this one, too. */
    reef_status (*connect)(const reef_engine *engine, const int32_t *peers, ptrdiff_t count, void **pattern,
                           reef_error *error);
    /* Ends what connect began. */
    void (*disconnect)(const reef_engine *engine, void *pattern);
    /* Starts an exchange: one parcel to, and one from, every peer. The pieces belong to the engine until end. */
    reef_status (*begin)(const reef_engine *engine, void *pattern, const reef_parcel *send, const reef_parcel *receive,
                         reef_error *error);
    /* Lets an exchange make progress; may be called now and then while the caller works. NULL: not needed. */
    void (*poke)(const reef_engine *engine, void *pattern);
    /* Waits until the exchange is complete. */
    reef_status (*end)(const reef_engine *engine, void *pattern, reef_error *error);
    /* Parcel i is sent to, and received from, rank i; a rank also has one for itself. */
    reef_status (*all_to_all)(const reef_engine *engine, const reef_parcel *send, const reef_parcel *receive,
                              reef_error *error);
    /* Distributes bytes that one rank knows and all others have as 0 to all ranks: bitwise or. Sums over ranks are made from it by putting
     * the terms side by side and adding them in the same order everywhere, so that results are bit-identical for any number of ranks. */
    reef_status (*merge)(const reef_engine *engine, void *bytes, size_t count, reef_error *error);
    /* Returns the status and text of the lowest rank that has failed, on all ranks; REEF_OK if none has. */
    reef_status (*agree)(const reef_engine *engine, reef_status mine, reef_error *error);
    /* Waits for all ranks. */
    reef_status (*barrier)(const reef_engine *engine, reef_error *error);
    /* Ends all ranks immediately, when nothing else is possible. */
    void (*abort)(const reef_engine *engine, int code);
    /* Spreads `agents` agents over the ranks so that few links cross: owner[k]. start, senders: senders of agent k are
     * senders[start[k]] to senders[start[k + 1] - 1]. The result is the same on all ranks. NULL: even blocks. */
    reef_status (*partition)(const reef_engine *engine, ptrdiff_t agents, const ptrdiff_t *start,
                             const int32_t *senders, int32_t *owner, reef_error *error);
} reef_engine_ops;

/* An engine. */
struct reef_engine {
    const reef_engine_ops *ops; /* what it can do */
    void *state;                /* the engine's own */
    int32_t rank;               /* 0 to size - 1 */
    int32_t size;               /* ranks of the job */
    int32_t sharing;            /* ranks on this machine, including this one */
};

/* The engine of a single process: size 1. Never NULL, never freed. */
REEF_API const reef_engine *reef_engine_alone(void);

#ifdef __cplusplus
}
#endif
#endif
