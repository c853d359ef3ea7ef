/* Watching a run as one of its observers: STATUS frames and proofs of all agents, verified, become lines of the live page. The observer
 * follows the run into later epochs. */
#ifndef RFI_NET_DASH_WATCH_H
#define RFI_NET_DASH_WATCH_H

#include "net/dash.h"

typedef struct rfi_watch_setup {
    const char *run_file;    /* may be replaced by the next one; must outlive the watch, */
    const char *key;         /* of an observer of the run file */
    const char *coordinator; /* identity that must have signed the run file; NULL: whoever did */
    const char *authority;   /* certificates that brokers' are signed with; NULL: the system's; must, too */
    rfi_dash *dash;          /* gets the lines; must outlive the watch */
} rfi_watch_setup;

typedef struct rfi_watch rfi_watch;
/* Puts what the run file says, and listens at all brokers from now on. */
reef_status rfi_watch_open(rfi_watch **watch, const rfi_watch_setup *setup, reef_error *error);
/* A message as it comes from a broker, which has the number `by`, below 16, as long as it is heard; on any thread. */
void rfi_watch_hear(rfi_watch *watch, int by, const char *subject, const unsigned char *bytes, size_t size);
/* Looks for the file of the next epoch and goes over to it; on the thread that has opened the watch, about once a second. */
void rfi_watch_tend(rfi_watch *watch);
/* Seconds since it was opened: the time of its lines. */
double rfi_watch_time(const rfi_watch *watch);
/* All brokers refuse the observer's login. */
bool rfi_watch_refused(rfi_watch *watch);
/* Whether no agent has been heard yet, and why that may be: the error of a broker, which takes up to 2 s each to find. */
bool rfi_watch_silent(rfi_watch *watch, reef_error *why);
/* Accepts NULL, sets the pointer to NULL. */
void rfi_watch_close(rfi_watch **watch);

#endif
