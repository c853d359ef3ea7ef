/* What an agent measures about itself, for its metrics and its STATUS frames. Numbers only: no clock, no input or output. */
#ifndef RFI_NET_TELEMETRY_H
#define RFI_NET_TELEMETRY_H

#include "net/status.h"

/* What the time of a round goes into. */
typedef enum rfi_telemetry_stage {
    RFI_STAGE_ADAPT,      /* the owner's computation, or the built-in problem's */
    RFI_STAGE_WAIT,       /* from handing the model over until the round has ended, without the stages below */
    RFI_STAGE_FETCH,      /* within that: chunks of models were under way */
    RFI_STAGE_COMBINE,    /* the rule */
    RFI_STAGE_JOURNAL,    /* the disk, before signing */
    RFI_STAGE_CHECKPOINT, /* the disk, now and then */
    RFI_STAGES
} rfi_telemetry_stage;
const char *rfi_stage_text(rfi_telemetry_stage stage);

enum { RFI_BUCKETS = 8 };
extern const double rfi_bucket_seconds[RFI_BUCKETS]; /* upper ends; beyond the last there is one more bucket */

typedef struct rfi_histogram {
    uint64_t counts[RFI_BUCKETS + 1];
    uint64_t count;
    double sum;
    double last;
} rfi_histogram;

typedef struct rfi_telemetry {
    rfi_histogram stages[RFI_STAGES];
    double ready_at;   /* since when a model is waited for; negative: it is not */
    double offered_at; /* when it was handed over; negative: no round is under way */
    double looked_at;  /* last step, if chunks were under way then; otherwise negative */
    double fetching;   /* seconds of this round in which chunks were under way */
    double within;     /* seconds of this round that other stages have */
    rfi_standing standing;
    rfi_note notes[RFI_NOTES];
    float trust[RFI_NEIGHBOURS_MAX]; /* of the last combination; -1: there was none */
    unsigned char age[RFI_NEIGHBOURS_MAX];
    unsigned char test[RFI_NEIGHBOURS_MAX];
} rfi_telemetry;

void rfi_telemetry_start(rfi_telemetry *t);
/* The neighbours are others from now on. */
void rfi_telemetry_forget(rfi_telemetry *t);
/* Adds a duration. */
void rfi_telemetry_time(rfi_telemetry *t, rfi_telemetry_stage stage, double seconds);
/* The agent waits for a model; was handed one; looked whether chunks are under way; has ended a round. */
void rfi_telemetry_ready(rfi_telemetry *t, double now);
void rfi_telemetry_offered(rfi_telemetry *t, double now);
void rfi_telemetry_looked(rfi_telemetry *t, double now, bool fetching);
void rfi_telemetry_ended(rfi_telemetry *t, double now);

/* Keeps a number of the owner's under its name. False: the name or the number is none that can be told, or all places are taken. */
bool rfi_telemetry_note(rfi_telemetry *t, const char *name, double value);

#endif
