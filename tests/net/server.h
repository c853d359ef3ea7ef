/* A real nats-server for tests: of its own, on a free port of this machine, gone with the test. */
#ifndef TESTS_NET_SERVER_H
#define TESTS_NET_SERVER_H

#include "support/scratch.h"

#include <sys/types.h>

typedef struct server {
    scratch folder;
    char store[SCRATCH_PATH];
    char url[64];
    pid_t pid;
    int port; /* 0: any */
} server;

/* Starts it and waits until it listens; a failed test if there is none. `more` goes into its configuration. After server_kill it
 * begins again on the same port, with what it had on the disk. */
void server_start(server *s, const char *more);
/* Ends it at once, as kill -9 does. */
void server_kill(server *s);
/* Ends it and removes its folder. */
void server_end(server *s);
/* Makes the streams of so many agents of the run "t". */
void server_streams(const server *s, int agents);

#endif
