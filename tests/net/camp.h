/* A run of four agents on a real nats-server with the configuration of `reef broker`: three honest ones in a process of their own, whose
 * counters can be read from here, and the keys of the fourth and of the server's operator for whoever wants to do harm. */
#ifndef TESTS_NET_CAMP_H
#define TESTS_NET_CAMP_H

#include "net/frame.h"
#include "net/keys.h"
#include "net/runfile.h"
#include "net/server.h"
#include "net/wire.h"

#include <stdatomic.h>

enum { CAMP_AGENTS = 4, CAMP_HONEST = 3, CAMP_MALLORY = 3 };
enum { CAMP_STALE = 2 }; /* rounds that a model may be old */

/* What the honest agents' process shows, by receiver and sender; in memory that both processes have. */
typedef struct camp_view {
    atomic_bool stop;
    _Atomic uint64_t round[CAMP_HONEST], combined[CAMP_HONEST], alone[CAMP_HONEST];
    _Atomic uint64_t counts[CAMP_HONEST][CAMP_AGENTS][RFI_CAUSES];
    atomic_bool excluded[CAMP_HONEST][CAMP_AGENTS];
} camp_view;

typedef struct camp {
    scratch folder;
    server server;
    rfi_runfile file;
    rfi_secret secrets[CAMP_AGENTS];
    rfi_keys operator_login;
    camp_view *view;
    pid_t honest; /* process of the honest agents */
} camp;

typedef struct camp_terms {
    uint64_t count; /* float64 numbers in a model */
    double deadline;
    bool streams; /* the server stores what is published */
    bool empty;   /* no honest agents */
} camp_terms;

void camp_open(camp *c, const camp_terms *terms);
/* Ends everything; fails the test if the honest agents did not end well. */
void camp_close(camp *c);

/* Logs in as an agent, or as the operator (-1). */
void camp_enter(const camp *c, wire *w, int agent);
/* Messages of `sender` that `receiver` has dealt with. */
uint64_t camp_heard(const camp *c, int receiver, int sender);
uint64_t camp_count(const camp *c, int receiver, int sender, rfi_cause cause);
/* The furthest round of the honest agents. */
uint64_t camp_round(const camp *c);
/* Waits until every honest agent has combined so many times more; a failed test if that takes longer than a minute. */
void camp_combine(const camp *c, uint64_t more);
/* Kilobytes of memory that the honest agents' process has, or the most it ever had. */
long camp_memory(const camp *c, bool most);
/* Waits a moment. */
void camp_pause(void);
double camp_now(void);

/* The head of a model of an agent that would be accepted: sign it with frames_make. */
rfi_head camp_head(const camp *c, int agent, uint64_t round, const double *model);

#endif
