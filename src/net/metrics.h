/* Prometheus metrics of an agent: text made by the agent's thread once a second, served by another on 127.0.0.1. */
#ifndef RFI_NET_METRICS_H
#define RFI_NET_METRICS_H

#include "net/broker.h"
#include "net/echo.h"
#include "net/handout.h"
#include "net/link_nats.h"
#include "net/round.h"
#include "net/telemetry.h"

/* What the text is made of; all of it is the agent's. */
typedef struct rfi_metrics_view {
    const rfi_runfile *file; /* names */
    const rfi_status *status;
    const rfi_telemetry *telemetry;
    const rfi_window *window;
    const rfi_echo *echo;
    const rfi_rounds *rounds;
    ptrdiff_t links;
    const rfi_nats_counts *counts; /* per broker of the run file */
    const rfi_handout *handout;
} rfi_metrics_view;

/* Appends the text, in the exposition format 0.0.4. */
void rfi_metrics_print(const rfi_metrics_view *view, rfi_page *page);

typedef struct rfi_metrics rfi_metrics;
/* Serves GET /metrics. port 0: any that is free. */
reef_status rfi_metrics_open(rfi_metrics **metrics, int port, reef_error *error);
int rfi_metrics_port(const rfi_metrics *metrics);
/* Replaces the text that is served (copied). */
void rfi_metrics_put(rfi_metrics *metrics, const char *text, size_t size);
/* Accepts NULL, sets the pointer to NULL. */
void rfi_metrics_close(rfi_metrics **metrics);

#endif
