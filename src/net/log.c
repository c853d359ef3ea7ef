/* Lines of structured logs. */
#include "net/log.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct writer {
    char text[1024];
    size_t size;
} writer;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
add(writer *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int more = vsnprintf(w->text + w->size, sizeof w->text - w->size, format, list);
    va_end(list);
    size_t left = sizeof w->text - 1 - w->size;
    w->size += more < 0 ? 0 : ((size_t)more < left ? (size_t)more : left);
}

static void put(char *line, size_t room, size_t *size, char c)
{
    if (*size + 1 < room) {
        line[(*size)++] = c;
        line[*size] = '\0';
    }
}

void rfi_log_quote(char *line, size_t room, size_t *size, const char *text, bool always)
{
    bool plain = !always && text[0] && !text[strcspn(text, " \"=\\")];
    if (!plain) {
        put(line, room, size, '"');
    }
    for (const char *at = text; *at && *size + 4 < room; at++) {
        char shown = *at;
        if (shown < ' ' || shown > '~') {
            shown = ' ';
        }
        if (shown == '"' || shown == '\\') {
            put(line, room, size, '\\');
        }
        put(line, room, size, shown);
    }
    if (!plain) {
        put(line, room, size, '"');
    }
}

static void add_number(writer *w, double number, bool json)
{
    if (!isfinite(number)) {
        add(w, "%s", json ? "null" : "nan");
    } else if (number == floor(number) && fabs(number) < 1e15) {
        add(w, "%.0f", number);
    } else {
        add(w, "%.6g", number);
    }
}

static void add_time(writer *w)
{
    char text[32];
    struct timespec now;
    struct tm parts;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &parts);
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    add(w, "%s.%03dZ", text, (int)(now.tv_nsec / 1000000));
}

static void begin(writer *w, reef_log_format format, reef_log_level level, const char *event)
{
    static const char *const levels[] = {"debug", "info", "warning", "error"};
    if (format == REEF_LOG_PLAIN) {
        add(w, "%s:", event);
        return;
    }
    bool json = format == REEF_LOG_JSON;
    add(w, json ? "{\"time\":\"" : "time=");
    add_time(w);
    add(w, json ? "\",\"level\":\"%s\",\"event\":\"%s\"" : " level=%s event=%s", levels[level - REEF_LOG_DEBUG], event);
}

void rfi_log_event(const rfi_log *log, reef_log_level level, const char *event, const rfi_log_field *fields,
                   size_t count)
{
    writer w = {.size = 0};
    bool json = log->format == REEF_LOG_JSON;
    if (!log->tell || level < log->least) {
        return;
    }
    begin(&w, log->format, level, event);
    for (size_t i = 0; i < count; i++) {
        add(&w, json ? ",\"%s\":" : " %s=", fields[i].name);
        if (fields[i].text) {
            rfi_log_quote(w.text, sizeof w.text - 4, &w.size, fields[i].text, json);
        } else {
            add_number(&w, fields[i].number, json);
        }
    }
    add(&w, json ? "}" : "%s", "");
    log->tell(log->user, w.text);
}

void reef_net_tell_failure(reef_log_format format, const char *text, reef_tell *tell, void *user)
{
    const rfi_log log = {format, REEF_LOG_DEBUG, tell, user};
    RFI_LOG(&log, REEF_LOG_ERROR, "failed", RFI_LOG_TEXT("why", text));
}
