/* Structured logs: one event per line, as
 *     plain   ready: run=demo agents=12
 *     logfmt  time=2026-01-31T12:00:00.000Z level=info event=ready run=demo agents=12
 *     json    {"time":"2026-01-31T12:00:00.000Z","level":"info","event":"ready","run":"demo","agents":12}
 * Texts are names from the run file or sentences of our own; whatever they hold, a line stays a line. */
#ifndef RFI_NET_LOG_H
#define RFI_NET_LOG_H

#include <reef/net.h>

typedef struct rfi_log {
    reef_log_format format;
    reef_log_level least; /* events below it are left out */
    reef_tell *tell;      /* NULL: nobody listens */
    void *user;
} rfi_log;

typedef struct rfi_log_field {
    const char *name;
    const char *text; /* NULL: the number */
    double number;
} rfi_log_field;

#define RFI_LOG_TEXT(name, value)                                                                                      \
    {                                                                                                                  \
        (name), (value), 0                                                                                             \
    }
#define RFI_LOG_NUMBER(name, value)                                                                                    \
    {                                                                                                                  \
        (name), NULL, (double)(value)                                                                                  \
    }

/* Tells an event with at least one field: RFI_LOG(&log, REEF_LOG_INFO, "ready", RFI_LOG_TEXT("run", run)). */
#define RFI_LOG(log, level, event, ...)                                                                                \
    rfi_log_event((log), (level), (event), (const rfi_log_field[]){__VA_ARGS__},                                       \
                  sizeof((const rfi_log_field[]){__VA_ARGS__}) / sizeof(rfi_log_field))
void rfi_log_event(const rfi_log *log, reef_log_level level, const char *event, const rfi_log_field *fields,
                   size_t count);

/* A text within double quotes, or as it is in logfmt if it needs none: for other writers of JSON too. Appends at most room - 1 bytes
 * behind *size and terminates; characters that a reader could stumble over become spaces or escapes. */
void rfi_log_quote(char *line, size_t room, size_t *size, const char *text, bool always);

#endif
