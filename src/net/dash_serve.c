/* The live page over HTTP: files that were bundled when Reef was built (cmake/ReefDash.cmake), and the lines. */
#include "net/dash.h"
#include "net/http.h"

#include "base/error.h"
#include "dash_page.h"

#include <reef/net.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rfi_dash_server {
    rfi_http *http;
    rfi_dash *dash;
    bool replay;
};

/* A page that reads: first how it is to show what comes, then the lines, and once a word when it has all that there is. */
typedef struct reader {
    const rfi_dash_server *server;
    rfi_dash_cursor cursor;
    bool greeted, told;
} reader;

/* A line of the server's own, once. */
static size_t say(bool *done, const char *text, char *bytes, size_t size)
{
    int length = *done ? 0 : snprintf(bytes, size, "data: %s\n\n", text);
    *done = *done || (length > 0 && (size_t)length < size);
    return *done ? (size_t)length : 0;
}

static size_t read_lines(void *state, char *bytes, size_t size)
{
    reader *r = state;
    if (!r->greeted) {
        const char *hello =
            r->server->replay ? "{\"type\":\"hello\",\"replay\":true}" : "{\"type\":\"hello\",\"replay\":false}";
        return say(&r->greeted, hello, bytes, size);
    }
    size_t got = rfi_dash_read(r->server->dash, &r->cursor, bytes, size);
    return got > 0 ? got : say(&r->told, "{\"type\":\"now\"}", bytes, size);
}

static void close_lines(void *state)
{
    reader *r = state;
    rfi_dash_close(r->server->dash, &r->cursor);
    free(r);
}

static bool open_stream(void *user, const char *path, rfi_http_stream *stream)
{
    reader *r = strcmp(path, "/events") == 0 ? calloc(1, sizeof *r) : NULL;
    if (!r) {
        return false;
    }
    r->server = user;
    *stream = (rfi_http_stream){.state = r, .read = read_lines, .close = close_lines};
    return true;
}

static bool get_file(void *user, const char *path, rfi_http_answer *answer)
{
    (void)user;
    for (size_t i = 0; i < sizeof page_files / sizeof *page_files; i++) {
        if (strcmp(path, page_files[i].path) == 0) {
            *answer =
                (rfi_http_answer){.type = page_files[i].type, .body = page_files[i].bytes, .size = page_files[i].size};
            return true;
        }
    }
    return false;
}

const char *reef_net_dash_lacks(void)
{
    if (!rfi_http_version()[0]) {
        return "this reef was built without libmicrohttpd (Debian: libmicrohttpd-dev), which serves the live page";
    }
    return page_files[0].size > 0
               ? NULL
               : "this reef was built without its live page, which node and npm put together (Debian: "
                 "nodejs, npm)";
}

reef_status rfi_dash_serve(rfi_dash_server **server, rfi_dash *dash, int port, bool replay, reef_error *error)
{
    *server = NULL;
    if (reef_net_dash_lacks()) {
        return rfi_fail(error, REEF_E_ENGINE, "%s; install what is missing and build again", reef_net_dash_lacks());
    }
    rfi_dash_server *s = calloc(1, sizeof *s);
    if (!s) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the live page");
    }
    *s = (rfi_dash_server){.dash = dash, .replay = replay};
    const rfi_http_setup setup = {.port = port, .user = s, .get = get_file, .open = open_stream};
    reef_status status = rfi_http_start(&s->http, &setup, error);
    if (status != REEF_OK) {
        free(s);
        return status;
    }
    *server = s;
    return REEF_OK;
}

int rfi_dash_port(const rfi_dash_server *server)
{
    return rfi_http_port(server->http);
}

void rfi_dash_wake(rfi_dash_server *server)
{
    if (server) {
        rfi_http_wake(server->http);
    }
}

void rfi_dash_stop(rfi_dash_server **server)
{
    if (*server) {
        rfi_http_stop(&(*server)->http);
        free(*server);
        *server = NULL;
    }
}
