/* What an observer holds; for dash_watch.c (frames to lines), dash_watch_view.c (a run file in force) and
 * dash_watch_follow.c (brokers and epochs). */
#ifndef RFI_NET_DASH_WATCH_INNER_H
#define RFI_NET_DASH_WATCH_INNER_H

#include "net/agent.h"
#include "net/dash_later.h"
#include "net/dash_watch.h"

#include <pthread.h>

/* What is verified of one sender: so many messages at once, and tokens_second a second. */
enum { RFI_BUCKET_MOST = 6, RFI_PAST_BOOTS = 8 };
enum { RFI_WATCH_EARS = 2 * RFI_BROKERS_MAX, RFI_WATCH_URL = 256 };

typedef struct rfi_bucket {
    double tokens, at;
} rfi_bucket;

/* What was last heard of an agent. */
typedef struct rfi_sight {
    bool seen, left, proven;
    uint64_t boot;
    uint64_t round;                     /* of its last word; what is older was held back or is played again */
    uint64_t past[RFI_PAST_BOOTS];      /* numbers of its processes before this one, */
    unsigned pasts;                     /* so many */
    int64_t epoch;                      /* that it works by */
    double heard;                       /* when, whatever its epoch; -HUGE_VAL: never */
    ptrdiff_t audience, accusers;       /* who hears it, and how many of them say that it is excluded */
    rfi_bucket bucket[RFI_WATCH_EARS];  /* by the ear: what one broker forges must not use up what others bring */
    unsigned char mark[RFI_HASH_BYTES]; /* of its last frame: other brokers bring the same one */
    /* Per neighbour, by its place in the graph's row. */
    uint32_t *refused; /* frames of it that were told of, */
    double *told_at;   /* and when that was */
    bool *accused;
} rfi_sight;

/* A run file in force, and what was seen of its agents. */
typedef struct rfi_view {
    rfi_runfile file;
    rfi_roster roster;
    rfi_sight *sights;
    uint32_t *counters; /* of all sights, */
    double *tellings;   /* likewise, */
    bool *accusations;  /* likewise */
} rfi_view;

/* Whom a connection tells. */
typedef struct rfi_watch_place {
    rfi_watch *watch;
    int number;
} rfi_watch_place;

struct rfi_watch {
    rfi_secret secret;
    const char *run_file, *authority;
    rfi_dash *dash;
    double began;
    pthread_mutex_t lock; /* what follows: several brokers speak at once */
    rfi_view *view;
    rfi_later later;
    rfi_bucket broker[RFI_WATCH_EARS]; /* of files that brokers hand out, likewise */
    int by;                            /* the ear that hears what is looked at */
    int64_t missing;                   /* the epoch that was last complained of, since nobody has given its file */
    rfi_status status;
    /* Of the thread that opens and tends alone. */
    rfi_watch_place places[RFI_WATCH_EARS];
    ptrdiff_t ears;
    struct {
        rfi_nats_ear *ear;
        int place; /* that no other one has */
        char url[RFI_WATCH_URL];
    } ear[RFI_WATCH_EARS];
};

/* Whether there is a token left, which is taken. */
bool rfi_bucket_take(rfi_bucket *bucket, double time);
/* rfi_watch_hear, on a thread of libnats; user: a place. */
void rfi_watch_heard(void *user, const char *subject, const unsigned char *bytes, size_t size);

/* Takes *file over, with the agents that `before` (or NULL) has seen; on failure it stays the caller's. */
reef_status rfi_view_make(rfi_view **view, rfi_runfile *file, const rfi_view *before, reef_error *error);
void rfi_view_free(rfi_view **view);
/* The line of the run. */
reef_status rfi_watch_put_run(const rfi_watch *watch, double time, reef_error *error);

#endif
