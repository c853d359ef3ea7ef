/* Lines, observer and page together: for `reef dash RUN` and `reef swarm --dash`. */
#ifndef RFI_NET_DASH_LIVE_H
#define RFI_NET_DASH_LIVE_H

#include "net/dash_watch.h"

#include <reef/net.h>

typedef struct rfi_live_setup {
    rfi_watch_setup watch; /* without its dash */
    bool serve;            /* a page, at... */
    int port;              /* ...this port; 0: any that is free */
    const char *record;    /* new file for all lines; NULL: none; must outlive the live page */
} rfi_live_setup;

typedef struct rfi_live {
    rfi_dash *dash;
    rfi_watch *watch;
    rfi_dash_server *server; /* NULL: none */
    FILE *record;
    const char *path; /* of it */
} rfi_live;

/* On failure everything is closed. */
reef_status rfi_live_open(rfi_live *live, const rfi_live_setup *setup, reef_error *error);
/* Follows the run into later epochs, and pages get new lines; about once a second. */
void rfi_live_tend(rfi_live *live);
int rfi_live_port(const rfi_live *live);
/* Accepts a cleared one. REEF_E_FILE: the record is not whole; everything is closed all the same. */
reef_status rfi_live_close(rfi_live *live, reef_error *error);

/* reef_net_dash with a run file. */
reef_status rfi_dash_live(const reef_dash_options *options, reef_error *error);

#endif
