/* HTTP by libmicrohttpd. Streams sleep as suspended connections: a reader that returned 0 would be called again and again. */
#include "net/http.h"

#include "base/error.h"

#ifdef REEF_HTTP

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { CONNECTIONS = 64, STREAMS = 48, PATIENCE = 30, HURRY = 5, BLOCK = 65536, HEARTBEAT = 10 };

/* A connection. The daemon's own timeout counts from the last byte, so whoever sends one now and then could hold all connections. */
typedef struct guest {
    int socket; /* -1: none */
    bool asked; /* a whole request has come */
    time_t since;
} guest;

typedef struct listener {
    rfi_http *http;
    struct MHD_Connection *connection;
    rfi_http_stream stream;
    int socket;
    bool asleep;
    bool gone; /* the page was closed */
    time_t written_at;
    struct listener *next;
} listener;

struct rfi_http {
    rfi_http_setup setup;
    struct MHD_Daemon *daemon;
    int port;
    pthread_mutex_t lock; /* of what follows */
    listener *listeners;
    int streams; /* of them, without those that are gone */
    guest guests[CONNECTIONS];
    uint64_t wakes;
    bool stopping;
};

static const char *const headers[][2] = {
    {"Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                                "img-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cache-Control", "no-store"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned code, const char *type,
                                     struct MHD_Response *response)
{
    enum MHD_Result result = response ? MHD_YES : MHD_NO;
    for (size_t i = 0; i < sizeof headers / sizeof *headers && result == MHD_YES; i++) {
        result = MHD_add_response_header(response, headers[i][0], headers[i][1]);
    }
    if (result == MHD_YES) {
        result = MHD_add_response_header(response, "Content-Type", type);
    }
    if (result == MHD_YES && code == MHD_HTTP_METHOD_NOT_ALLOWED) {
        result = MHD_add_response_header(response, "Allow", "GET");
    }
    if (result == MHD_YES) {
        result = MHD_queue_response(connection, code, response);
    }
    if (response) {
        MHD_destroy_response(response);
    }
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned code, const char *text)
{
    return send_response(
        connection, code, "text/plain; charset=utf-8",
        MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT));
}

/* ---- streams ---- */

static time_t seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Nothing to send: the connection sleeps, unless there was a wake since its stream was looked at. */
static ssize_t fall_asleep(listener *l, uint64_t wakes)
{
    rfi_http *h = l->http;
    (void)pthread_mutex_lock(&h->lock);
    bool stopping = h->stopping;
    if (!stopping && h->wakes == wakes) {
        l->asleep = true;
        MHD_suspend_connection(l->connection);
    }
    (void)pthread_mutex_unlock(&h->lock);
    return stopping ? (ssize_t)MHD_CONTENT_READER_END_OF_STREAM : 0;
}

static ssize_t read_stream(void *user, uint64_t position, char *bytes, size_t size)
{
    listener *l = user;
    (void)position;
    (void)pthread_mutex_lock(&l->http->lock);
    uint64_t wakes = l->http->wakes;
    bool gone = l->gone;
    (void)pthread_mutex_unlock(&l->http->lock);
    if (gone) {
        return (ssize_t)MHD_CONTENT_READER_END_OF_STREAM;
    }
    size_t got = l->stream.read(l->stream.state, bytes, size);
    /* Who has gone without a word is noticed only by writing: a comment now and then. */
    if (got == 0 && seconds_now() - l->written_at >= HEARTBEAT && size > 1) {
        bytes[0] = ':';
        bytes[1] = '\n';
        got = 2;
    }
    if (got == 0) {
        return fall_asleep(l, wakes);
    }
    l->written_at = seconds_now();
    return (ssize_t)got;
}

static void end_stream(void *user)
{
    listener *l = user;
    (void)pthread_mutex_lock(&l->http->lock);
    for (listener **at = &l->http->listeners; *at; at = &(*at)->next) {
        if (*at == l) {
            *at = l->next;
            l->http->streams -= !l->gone;
            break;
        }
    }
    (void)pthread_mutex_unlock(&l->http->lock);
    l->stream.close(l->stream.state);
    free(l);
}

static void rouse(listener *l)
{
    if (l->asleep) {
        l->asleep = false;
        MHD_resume_connection(l->connection);
    }
}

/* Pages that were closed make room at once: a suspended connection does not notice by itself. Under the lock. */
static void note_gone(rfi_http *h)
{
    char byte;
    for (listener *l = h->listeners; l; l = l->next) {
        if (!l->gone && l->socket >= 0 && recv(l->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
            l->gone = true;
            h->streams--;
            rouse(l);
        }
    }
}

static enum MHD_Result send_stream(rfi_http *h, struct MHD_Connection *connection, const rfi_http_stream *stream)
{
    listener *l = calloc(1, sizeof *l);
    struct MHD_Response *response =
        l ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, l, end_stream) : NULL;
    if (!response) {
        stream->close(stream->state);
        free(l);
        return MHD_NO;
    }
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *l = (listener){.http = h, .connection = connection, .stream = *stream, .socket = -1, .written_at = seconds_now()};
    if (info) {
        l->socket = info->connect_fd;
    }
    (void)pthread_mutex_lock(&h->lock);
    l->next = h->listeners;
    h->listeners = l;
    h->streams++;
    (void)pthread_mutex_unlock(&h->lock);
    return send_response(connection, MHD_HTTP_OK, "text/event-stream", response);
}

/* ---- connections ---- */

/* A connection has been made, or is about to be closed. */
static void come_and_go(void *user, struct MHD_Connection *connection, void **place,
                        enum MHD_ConnectionNotificationCode what)
{
    rfi_http *h = user;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    guest *g = *place;
    (void)pthread_mutex_lock(&h->lock);
    if (g) {
        g->socket = -1;
        *place = NULL;
    }
    for (int i = 0; i < CONNECTIONS && info && what == MHD_CONNECTION_NOTIFY_STARTED; i++) {
        if (h->guests[i].socket < 0) {
            h->guests[i] = (guest){.socket = info->connect_fd, .since = seconds_now()};
            *place = &h->guests[i];
            break;
        }
    }
    (void)pthread_mutex_unlock(&h->lock);
}

/* A whole request has come; there is one for each connection, which is closed behind the answer. */
static void note_request(rfi_http *h, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    guest *g = info ? info->socket_context : NULL;
    (void)pthread_mutex_lock(&h->lock);
    if (g) {
        g->asked = true;
    }
    (void)pthread_mutex_unlock(&h->lock);
}

/* Who takes too long to say what it wants makes room. */
static void show_out(rfi_http *h)
{
    time_t now = seconds_now();
    for (int i = 0; i < CONNECTIONS; i++) {
        const guest *g = &h->guests[i];
        if (g->socket >= 0 && !g->asked && now - g->since >= HURRY) {
            (void)shutdown(g->socket, SHUT_RDWR); /* the daemon notices, and closes it */
        }
    }
}

/* ---- requests ---- */

static bool is_room(rfi_http *h)
{
    (void)pthread_mutex_lock(&h->lock);
    note_gone(h);
    bool room = h->streams < STREAMS;
    (void)pthread_mutex_unlock(&h->lock);
    return room;
}

/* The server under its own name and no other: a foreign page can have its name lead here, but it cannot change this header. */
static bool is_own_host(const rfi_http *h, const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost"};
    enum { DEFAULT_PORT = 80 }; /* which browsers leave out */
    char own[32];
    for (size_t i = 0; host && i < sizeof names / sizeof *names; i++) {
        (void)snprintf(own, sizeof own, "%s:%d", names[i], h->port);
        if (strcmp(host, own) == 0 || (h->port == DEFAULT_PORT && strcmp(host, names[i]) == 0)) {
            return true;
        }
    }
    return false;
}

static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **request)
{
    rfi_http *h = user;
    rfi_http_answer answer = {.type = "text/plain"};
    rfi_http_stream stream;
    (void)version;
    (void)upload;
    (void)upload_size;
    (void)request;
    note_request(h, connection);
    if (!is_own_host(h, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"))) {
        return refuse(connection, MHD_HTTP_FORBIDDEN, "only 127.0.0.1 or localhost, with the port, is served here\n");
    }
    if (strcmp(method, "GET") != 0) {
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only\n");
    }
    if (h->setup.open && h->setup.open(h->setup.user, url, &stream)) {
        if (is_room(h)) {
            return send_stream(h, connection, &stream);
        }
        stream.close(stream.state);
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many pages are open\n");
    }
    if (!h->setup.get || !h->setup.get(h->setup.user, url, &answer)) {
        return refuse(connection, MHD_HTTP_NOT_FOUND, "nothing is here\n");
    }
    return send_response(
        connection, MHD_HTTP_OK, answer.type,
        MHD_create_response_from_buffer(answer.size, (void *)(uintptr_t)answer.body,
                                        answer.release ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT));
}

/* ---- beginning and end ---- */

static int bound_port(struct MHD_Daemon *daemon)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? (int)info->port : 0;
}

reef_status rfi_http_start(rfi_http **http, const rfi_http_setup *setup, reef_error *error)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    rfi_http *h = calloc(1, sizeof *h);
    *http = NULL;
    if (!h || pthread_mutex_init(&h->lock, NULL) != 0) {
        free(h);
        return rfi_fail(error, REEF_E_NOMEM, "no memory for an HTTP server");
    }
    h->setup = *setup;
    for (int i = 0; i < CONNECTIONS; i++) {
        h->guests[i].socket = -1;
    }
    address.sin_port = htons((uint16_t)setup->port);
    errno = 0;
    h->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, (uint16_t)setup->port, NULL,
                                 NULL, handle, h, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address,
                                 MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                                 (unsigned)PATIENCE, MHD_OPTION_NOTIFY_CONNECTION, come_and_go, h, MHD_OPTION_END);
    if (!h->daemon) {
        (void)pthread_mutex_destroy(&h->lock);
        free(h);
        const char *why = "the port is in use; choose another";
        if (errno != 0 && errno != EADDRINUSE) {
            why = strerror(errno);
        }
        return rfi_fail(error, REEF_E_ENGINE, "cannot listen on 127.0.0.1:%d: %s", setup->port, why);
    }
    h->port = bound_port(h->daemon);
    *http = h;
    return REEF_OK;
}

int rfi_http_port(const rfi_http *h)
{
    return h->port;
}

static void wake(rfi_http *h, bool stopping)
{
    (void)pthread_mutex_lock(&h->lock);
    h->wakes++;
    h->stopping = h->stopping || stopping;
    note_gone(h);
    for (listener *l = h->listeners; l; l = l->next) {
        rouse(l);
    }
    show_out(h);
    (void)pthread_mutex_unlock(&h->lock);
}

void rfi_http_wake(rfi_http *h)
{
    wake(h, false);
}

void rfi_http_stop(rfi_http **http)
{
    rfi_http *h = *http;
    if (!h) {
        return;
    }
    wake(h, true);
    MHD_stop_daemon(h->daemon);
    (void)pthread_mutex_destroy(&h->lock);
    free(h);
    *http = NULL;
}

const char *rfi_http_version(void)
{
    return MHD_get_version();
}

#else

reef_status rfi_http_start(rfi_http **http, const rfi_http_setup *setup, reef_error *error)
{
    (void)setup;
    *http = NULL;
    return rfi_fail(
        error, REEF_E_ENGINE,
        "this reef was built without libmicrohttpd (Debian: libmicrohttpd-dev); install it and build again");
}

int rfi_http_port(const rfi_http *h)
{
    (void)h;
    return 0;
}

void rfi_http_wake(rfi_http *h)
{
    (void)h;
}

void rfi_http_stop(rfi_http **http)
{
    *http = NULL;
}

const char *rfi_http_version(void)
{
    return "";
}

#endif
