/* A client of a NATS server written out by hand, because libnats refuses to say what hostile clients say. Everything waits at most
 * WIRE_SECONDS; a server that says nothing for so long is as good as gone. */
#ifndef TESTS_NET_WIRE_H
#define TESTS_NET_WIRE_H

#include "net/crypto.h"

#include <stdbool.h>
#include <stddef.h>

enum { WIRE_SECONDS = 20, WIRE_TEXT = 512 };

typedef struct wire {
    int socket;
    char *buffer; /* received and not yet read */
    size_t have, room;
    char nonce[WIRE_TEXT];
    char error[WIRE_TEXT];   /* the last -ERR, without quotes; "": none since it was cleared */
    int errors;              /* how many since it was cleared */
    size_t messages;         /* received since it was opened... */
    size_t bytes;            /* ...and their size */
    char subject[WIRE_TEXT]; /* of the last message */
    char last[WIRE_TEXT];    /* beginning of the last message, with a zero behind it... */
    size_t last_size;        /* ...and its size */
} wire;

/* Connects to a port of this machine and reads what the server says of itself. */
bool wire_open(wire *w, int port);
void wire_close(wire *w);
/* Sends bytes as they are; false: the server has closed the connection. */
bool wire_send(wire *w, const void *bytes, size_t size);
/* Logs in as `user` (U...) with a signature by `login`; either may be NULL. False: refused, and `error` says how. */
bool wire_login(wire *w, const char *user, const rfi_keys *login);
/* reply may be NULL. */
bool wire_publish(wire *w, const char *subject, const char *reply, const void *bytes, size_t size);
bool wire_subscribe(wire *w, const char *subject, int number);
/* Waits until the server has dealt with all that was sent; errors and messages that came are in the struct. */
bool wire_flush(wire *w);
/* Waits for one more message. */
bool wire_wait(wire *w);

#endif
