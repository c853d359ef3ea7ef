/* What the live page shows: lines of JSON, kept for pages that are opened late.
 *
 * The same lines are what `reef swarm --record` writes, what `reef dash --replay` reads and what Server-Sent Events carry to the page.
 * docs/dash.md describes them member by member. The first members stand in a fixed order, so that lines can be told apart without
 * parsing JSON:
 *
 *   {"type":"run","time":T,...        what is known from the start; one, and again when the members of the run change
 *   {"type":"status","time":T,"agent":K,...   what an agent reports about itself and its neighbours
 *   {"type":"event","time":T,...      something that happened once
 *   {"type":"score","time":T,...      a figure of the whole network, from whoever can measure it
 *   {"type":"end","time":T,...        the run is over
 *
 * Memory is bounded. When the lines exceed the limit, every second status of each agent is dropped, then every fourth, and so on, and
 * the oldest events and scores; the last status of every agent is kept. All functions may be called from several threads. */
#ifndef RFI_NET_DASH_H
#define RFI_NET_DASH_H

#include <reef/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct rfi_dash rfi_dash;

/* A link: `to` receives what `from` sends, and gives it this weight when it combines. */
typedef struct rfi_dash_edge {
    uint32_t from, to;
    double weight;
} rfi_dash_edge;

typedef struct rfi_dash_run {
    double time;   /* 0, or when the members of the run have changed */
    int64_t epoch; /* 0: the run has none */
    const char *name;
    const char *rule;   /* "" if unknown */
    const char *attack; /* NULL: nobody knows of one */
    uint64_t rounds;    /* 0: without end */
    const char *metric; /* of statuses, for the title of the curves: "msd_db"; NULL: the first one that comes */
    ptrdiff_t agents;   /* and their names */
    const char *const *names;
    ptrdiff_t edges;
    const rfi_dash_edge *edge;
    const bool *removed;   /* by agent: its place is nobody's any more; NULL: none */
    const bool *malicious; /* likewise; NULL: not known */
} rfi_dash_run;

/* A neighbour, as the agent that sends the status sees it. */
typedef struct rfi_dash_peer {
    uint32_t agent;
    double trust;      /* effective weight over fair share in the last combination; NaN: nothing was combined */
    int age;           /* of the model that was used, in rounds; negative: none was */
    uint64_t refused;  /* frames refused as offences since the start */
    const char *cause; /* word of the last refusal (rfi_cause_text), NULL or "": none */
    const char *why;   /* why the rule gave it little weight, a sentence; NULL or "": it did not say */
} rfi_dash_peer;

enum { RFI_DASH_METRICS = 4 };

/* Everything counts from the start of the agent's process. Numbers that are not known are NaN, and texts NULL. */
typedef struct rfi_dash_status {
    double time; /* seconds since the beginning of the run, or of the watching */
    uint32_t agent;
    uint64_t round;
    const char *state; /* "gathering", "combining", "alone", "idle", "left"; others are shown as they are */
    uint64_t combined, alone, skipped, idle; /* rounds, by how they ended */
    double weight;                           /* of the models of the last combination, the own one included */
    double adapt, wait, combine;             /* seconds, in the last round */
    double received, sent;                   /* bytes */
    double resident;                         /* bytes of the process */
    ptrdiff_t metrics;                       /* at most RFI_DASH_METRICS */
    struct {
        const char *name;
        double value;
    } metric[RFI_DASH_METRICS];
    ptrdiff_t peers;
    const rfi_dash_peer *peer;
} rfi_dash_status;

/* limit: bytes of lines that are kept, 0: 16 MB. record: every line is written there too, NULL: not; stays the caller's. */
reef_status rfi_dash_create(rfi_dash **dash, size_t limit, FILE *record, reef_error *error);
void rfi_dash_destroy(rfi_dash **dash);

/* Each makes a line and keeps it. What does not fit into memory is left out and counted (rfi_dash_lost), never a failure of the run. */
void rfi_dash_put_run(rfi_dash *dash, const rfi_dash_run *run);
void rfi_dash_put_status(rfi_dash *dash, const rfi_dash_status *status);
/* what: "joined", "left", "excluded", "proof", "refused", "started", "ended", "killed", "attack", "broker"; any word is shown. agent: to whom it
 * happened, -1: to all; by: who says so, -1: who watches. text: a sentence, or NULL. */
void rfi_dash_put_event(rfi_dash *dash, double time, const char *what, int64_t agent, int64_t by, const char *text);
/* name: "msd_db", "accuracy"; over the honest agents. */
void rfi_dash_put_score(rfi_dash *dash, double time, uint64_t round, const char *name, double value);
void rfi_dash_put_end(rfi_dash *dash, double time, const char *text);
/* A line made elsewhere, without its end. False: it is none (the beginning above, a closing brace, no control characters). */
bool rfi_dash_put_line(rfi_dash *dash, const char *line, size_t size);

/* What was recorded goes to the disk's care, so that whoever is killed has recorded the run up to then. */
void rfi_dash_flush(rfi_dash *dash);
/* errno of the first line that could not be written to the record, after which none is; 0: all were. */
int rfi_dash_unrecorded(rfi_dash *dash);
size_t rfi_dash_bytes(rfi_dash *dash);
uint64_t rfi_dash_lost(rfi_dash *dash);

/* Reading from the beginning, as Server-Sent Events: zero the cursor first, close it at the end. */
typedef struct rfi_dash_cursor {
    uint64_t after; /* lines up to this one were read */
    void *line;     /* that is being read */
    size_t offset;  /* in it */
} rfi_dash_cursor;
/* Copies what there is, at most `size` bytes, and returns how many; 0: nothing new yet. */
size_t rfi_dash_read(rfi_dash *dash, rfi_dash_cursor *cursor, char *bytes, size_t size);
void rfi_dash_close(rfi_dash *dash, rfi_dash_cursor *cursor);

/* dash_serve.c: the page and the lines at http://127.0.0.1:PORT/. */
typedef struct rfi_dash_server rfi_dash_server;
/* port 0: any that is free. replay: the page plays the lines back by their times, and begins when all of them are there. */
reef_status rfi_dash_serve(rfi_dash_server **server, rfi_dash *dash, int port, bool replay, reef_error *error);
int rfi_dash_port(const rfi_dash_server *server);
/* There are new lines: pages get them. Cheap; about once a second is enough. */
void rfi_dash_wake(rfi_dash_server *server);
void rfi_dash_stop(rfi_dash_server **server);

#endif
