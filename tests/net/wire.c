#include "net/wire.h"

#include "net/keys.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- reading ---- */

static bool receive(wire *w)
{
    enum { STEP = 65536 };
    if (w->room - w->have < STEP) {
        char *larger = realloc(w->buffer, w->have + 2 * (size_t)STEP);
        if (!larger) {
            return false;
        }
        w->buffer = larger;
        w->room = w->have + 2 * (size_t)STEP;
    }
    ssize_t size = recv(w->socket, w->buffer + w->have, w->room - w->have - 1, 0);
    w->have += size > 0 ? (size_t)size : 0;
    return size > 0;
}

static void forget(wire *w, size_t size)
{
    memmove(w->buffer, w->buffer + size, w->have - size);
    w->have -= size;
}

/* Takes a line, without its end. */
static bool take_line(wire *w, char line[WIRE_TEXT])
{
    for (;;) {
        char *end = w->have ? memchr(w->buffer, '\n', w->have) : NULL;
        if (end) {
            size_t length = (size_t)(end - w->buffer);
            (void)snprintf(line, WIRE_TEXT, "%.*s", (int)length, w->buffer);
            line[strcspn(line, "\r")] = '\0';
            const char *nonce = strstr(w->buffer, "\"nonce\":\"");
            if (strncmp(line, "INFO", 4) == 0 && nonce && nonce < end) {
                (void)snprintf(w->nonce, sizeof w->nonce, "%.*s", (int)strcspn(nonce + 9, "\""), nonce + 9);
            }
            forget(w, length + 1);
            return true;
        }
        if (!receive(w)) {
            return false;
        }
        w->buffer[w->have] = '\0';
    }
}

/* The body of a message; its size is the last number of the line. */
static bool take_body(wire *w, const char *line)
{
    const char *number = strrchr(line, ' ');
    size_t size = number ? (size_t)strtoul(number + 1, NULL, 10) : 0;
    while (w->have < size + 2) {
        if (!receive(w)) {
            return false;
        }
    }
    w->last_size = size < WIRE_TEXT ? size : WIRE_TEXT - 1;
    memcpy(w->last, w->buffer, w->last_size);
    w->last[w->last_size] = '\0';
    forget(w, size + 2);
    w->messages++;
    w->bytes += size;
    return true;
}

/* Reads one thing the server says; *pong: it was the answer to a PING. */
static bool take_one(wire *w, bool *pong)
{
    char line[WIRE_TEXT];
    if (!take_line(w, line)) {
        return false;
    }
    *pong = strncmp(line, "PONG", 4) == 0;
    if (strncmp(line, "PING", 4) == 0) {
        return wire_send(w, "PONG\r\n", 6);
    }
    if (strncmp(line, "-ERR", 4) == 0) {
        (void)snprintf(w->error, sizeof w->error, "%s", line + (line[4] ? 5 : 4));
        w->errors++;
    }
    if (strncmp(line, "MSG ", 4) != 0 && strncmp(line, "HMSG ", 5) != 0 && strncmp(line, "LMSG ", 5) != 0) {
        return true;
    }
    const char *subject = strchr(line, ' ') + 1;
    (void)snprintf(w->subject, sizeof w->subject, "%.*s", (int)strcspn(subject, " "), subject);
    return take_body(w, line);
}

/* ---- speaking ---- */

/* `more`: MSG_MORE if the rest of it follows, otherwise 0. */
static bool send_part(wire *w, const void *bytes, size_t size, int more)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t part = send(w->socket, at, size, MSG_NOSIGNAL | more);
        if (part <= 0) {
            return false;
        }
        at += part;
        size -= (size_t)part;
    }
    return true;
}

bool wire_send(wire *w, const void *bytes, size_t size)
{
    return send_part(w, bytes, size, 0);
}

bool wire_open(wire *w, int port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    struct timeval patience = {.tv_sec = WIRE_SECONDS};
    int one = 1;
    bool pong = false;
    *w = (wire){.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    (void)setsockopt(w->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(w->socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    (void)setsockopt(w->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return w->socket >= 0 && connect(w->socket, (struct sockaddr *)&to, sizeof to) == 0 && take_one(w, &pong);
}

void wire_close(wire *w)
{
    if (w->socket >= 0) {
        (void)close(w->socket);
    }
    free(w->buffer);
    *w = (wire){.socket = -1};
}

bool wire_login(wire *w, const char *user, const rfi_keys *login)
{
    char text[2 * WIRE_TEXT];
    char signature[128] = "";
    if (login) {
        unsigned char bytes[RFI_SIGNATURE_BYTES];
        rfi_sign(bytes, login, w->nonce, strlen(w->nonce));
        rfi_text64_print(signature, sizeof signature, bytes, sizeof bytes);
    }
    int length =
        snprintf(text, sizeof text,
                 "CONNECT {\"verbose\":false,\"pedantic\":false,\"lang\":\"c\",\"version\":\"0\",\"protocol\":1,"
                 "\"headers\":true,\"no_responders\":true%s%s%s%s%s%s}\r\n",
                 user ? ",\"nkey\":\"" : "", user ? user : "", user ? "\"" : "", login ? ",\"sig\":\"" : "", signature,
                 login ? "\"" : "");
    return wire_send(w, text, (size_t)length) && wire_flush(w) && w->errors == 0;
}

bool wire_publish(wire *w, const char *subject, const char *reply, const void *bytes, size_t size)
{
    char head[WIRE_TEXT];
    int length = snprintf(head, sizeof head, "PUB %s %s%s%zu\r\n", subject, reply ? reply : "", reply ? " " : "", size);
    return send_part(w, head, (size_t)length, MSG_MORE) && send_part(w, bytes, size, MSG_MORE) &&
           wire_send(w, "\r\n", 2);
}

bool wire_subscribe(wire *w, const char *subject, int number)
{
    char line[WIRE_TEXT];
    int length = snprintf(line, sizeof line, "SUB %s %d\r\n", subject, number);
    return wire_send(w, line, (size_t)length);
}

bool wire_flush(wire *w)
{
    bool pong = false;
    if (!wire_send(w, "PING\r\n", 6)) {
        return false;
    }
    while (!pong) {
        if (!take_one(w, &pong)) {
            return false;
        }
    }
    return true;
}

bool wire_wait(wire *w)
{
    bool pong = false;
    for (size_t before = w->messages; w->messages == before;) {
        if (!take_one(w, &pong)) {
            return false;
        }
    }
    return true;
}
