/* An experiment run by agents that are processes on this machine: what swarm.c, swarm_files.c and swarm_watch.c share. */
#ifndef RFI_NET_SWARM_H
#define RFI_NET_SWARM_H

#include "experiment/config/experiment.h"
#include "net/agent.h"
#include "net/dash_live.h"
#include "net/rehearse.h"

#include <reef/net.h>

#include <sys/types.h>

/* One agent's process, and what it has written down. */
typedef struct rfi_pupil {
    pid_t process; /* 0: none */
    int exit_code; /* of the last one */
    bool ended;    /* for good */
    int record;    /* file, or -1: not there yet */
    rfi_record_shape shape;
    rfi_record_head last; /* of the newest record that was read */
    unsigned char *bytes; /* that record */
    ptrdiff_t records_read;
} rfi_pupil;

typedef struct rfi_swarm {
    const reef_swarm_options *options;
    reef_context *context;
    reef_experiment *experiment;
    rfi_world *world;
    char folder[RFI_PATH_SIZE]; /* of keys, states, logs and records */
    char run_file[RFI_PATH_SIZE];
    ptrdiff_t brokers;
    char url[RFI_BROKERS_MAX][64];
    pid_t broker[RFI_BROKERS_MAX]; /* 0: none */
    ptrdiff_t agents;
    rfi_pupil *pupils;
    ptrdiff_t started;
    int64_t rounds;
    ptrdiff_t kills; /* still to do */
    uint64_t draws;  /* state of what is drawn */
    double shown_at, began;
    ptrdiff_t records; /* of all agents, when there was last a new one... */
    double records_at; /* ...and when that was */
    char metric[32];   /* of the last point, and its value */
    double value;
    reef_error *error;
    rfi_live live; /* if somebody watches */
    double live_at;
} rfi_swarm;

/* swarm_files.c: keys and the run file in the folder. */
reef_status rfi_swarm_write(rfi_swarm *swarm, reef_error *error);
/* The most weight that malicious agents have in a neighbourhood of an honest one. */
double rfi_swarm_malicious_weight(const rfi_swarm *swarm);
/* folder/name; false: too long. */
bool rfi_swarm_path(const rfi_swarm *swarm, char path[RFI_PATH_SIZE], const char *name, ptrdiff_t number);
void rfi_swarm_remove(const char *folder);

/* Whether there is a live page, or a file of its lines. */
bool rfi_swarm_watched(const rfi_swarm *swarm);
/* Puts something that happened to an agent on it. */
void rfi_swarm_note(rfi_swarm *swarm, const char *what, ptrdiff_t agent);

/* swarm_watch.c: processes and their records. */
reef_status rfi_swarm_start_brokers(rfi_swarm *swarm, reef_error *error);
/* Starts agents as far as there is room for more beginners, reaps those that ended, kills some if that is wanted, and tells how far they
 * are. */
reef_status rfi_swarm_tend(rfi_swarm *swarm, reef_error *error);
/* Everybody has a record of `round` rounds or more, or will never have one. */
bool rfi_swarm_reached(rfi_swarm *swarm, int64_t round);
void rfi_swarm_end(rfi_swarm *swarm);

#endif
