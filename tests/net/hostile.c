/* A client of a broker for the tests of the commands: it tries what it may not do, and hears what others may not say.
 *
 *   hostile try PORT KEY          reads lines "pub SUBJECT" and "sub SUBJECT"; says "allowed" or "refused" before each of them
 *   hostile leaf PORT KEY         the same at the port for leaves, as a leaf whose server does not mind what its hub has told it
 *   hostile ear PORT KEY          as a leaf that wants to hear everything: says "hearing", then the subjects of what it hears, until the hub is gone
 *   hostile listen PORT KEY SUBJECT  says "hearing", then the subjects of what it hears, until the server is gone
 *   hostile flood PORT KEY RUN N  sends N frames of no use in the name of the key's owner, as fast as the server takes them
 *   hostile put PORT KEY SUBJECT N  reads bytes and sends them N times; refused by the server: exit code 1
 *   hostile hear PORT KEY RUN     says "hearing"; then "AGENT ROUND MARK" for every signed model that an agent of the run puts into its slot, as
 *                                 far as the key's owner may hear it, until the server is gone
 *
 * KEY is a key file. Exit code 1 if the server does not let it in. */
#include "net/frames.h"
#include "net/keys.h"
#include "net/runfile.h"
#include "net/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "hostile: %s: %s\n", what, why);
    return 1;
}

static int enter(wire *w, const char *port, const char *key, rfi_secret *secret)
{
    char user[RFI_KEY_TEXT];
    reef_error error = {REEF_OK, ""};
    if (rfi_crypto_start(&error) != REEF_OK || rfi_secret_read(key, secret, &error) != REEF_OK) {
        return fail(key, error.text);
    }
    rfi_key_print(user, RFI_LETTER_LOGIN, secret->login.public_key);
    if (!wire_open(w, (int)strtol(port, NULL, 10)) || !wire_login(w, user, &secret->login)) {
        return fail(port, w->error);
    }
    return 0;
}

static int try_all(const char *port, const char *key)
{
    wire w;
    rfi_secret secret;
    char line[WIRE_TEXT];
    int number = 0;
    if (enter(&w, port, key, &secret)) {
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        bool publishes = strncmp(line, "pub ", 4) == 0;
        w.errors = 0;
        w.error[0] = '\0';
        bool sent = publishes ? wire_publish(&w, line + 4, NULL, "{}", 2) : wire_subscribe(&w, line + 4, ++number);
        if (!sent || !wire_flush(&w)) {
            return fail(line, w.error[0] ? w.error : "the server has closed the connection");
        }
        if (w.errors && !strstr(w.error, "Permissions Violation")) {
            return fail(line, w.error);
        }
        printf("%s %s\n", w.errors ? "refused" : "allowed", line);
    }
    wire_close(&w);
    return 0;
}

/* As a leaf logs in. A client would be sent away from this port. */
static bool enter_as_leaf(wire *w, const char *port, const rfi_secret *secret)
{
    char user[RFI_KEY_TEXT];
    char text[2 * WIRE_TEXT];
    char signature[128];
    unsigned char bytes[RFI_SIGNATURE_BYTES];
    if (!wire_open(w, (int)strtol(port, NULL, 10))) {
        return false;
    }
    rfi_key_print(user, RFI_LETTER_LOGIN, secret->login.public_key);
    rfi_sign(bytes, &secret->login, w->nonce, strlen(w->nonce));
    rfi_text64_print(signature, sizeof signature, bytes, sizeof bytes);
    int length =
        snprintf(text, sizeof text,
                 "CONNECT {\"version\":\"2.9.10\",\"server_id\":\"HOSTILE\",\"name\":\"hostile\",\"headers\":true,"
                 "\"nkey\":\"%s\",\"sig\":\"%s\"}\r\n",
                 user, signature);
    return wire_send(w, text, (size_t)length) && wire_flush(w) && w->errors == 0;
}

/* Of all that comes until the server is gone. */
static int print_subjects(wire *w)
{
    printf("hearing\n");
    (void)fflush(stdout);
    while (wire_wait(w)) {
        printf("%s\n", w->subject);
        (void)fflush(stdout);
    }
    wire_close(w);
    return 0;
}

static int hear_as_leaf(const char *port, const char *key)
{
    static const char all[] = "LS+ >\r\n";
    wire w;
    rfi_secret secret;
    reef_error error = {REEF_OK, ""};
    if (rfi_crypto_start(&error) != REEF_OK || rfi_secret_read(key, &secret, &error) != REEF_OK) {
        return fail(key, error.text);
    }
    if (!enter_as_leaf(&w, port, &secret) || !wire_send(&w, all, sizeof all - 1) || !wire_flush(&w)) {
        return fail(port, w.error[0] ? w.error : "the server has closed the connection");
    }
    return print_subjects(&w);
}

static int hear_subject(const char *port, const char *key, const char *subject)
{
    wire w;
    rfi_secret secret;
    if (enter(&w, port, key, &secret)) {
        return 1;
    }
    if (!wire_subscribe(&w, subject, 1) || !wire_flush(&w) || w.errors) {
        return fail(subject, w.error[0] ? w.error : "the server has closed the connection");
    }
    return print_subjects(&w);
}

/* A hub ends the connection of a leaf that does what it may not, so each line has one of its own. */
static int try_as_leaf(const char *port, const char *key)
{
    rfi_secret secret;
    char line[WIRE_TEXT];
    char text[2 * WIRE_TEXT];
    reef_error error = {REEF_OK, ""};
    if (rfi_crypto_start(&error) != REEF_OK || rfi_secret_read(key, &secret, &error) != REEF_OK) {
        return fail(key, error.text);
    }
    while (fgets(line, sizeof line, stdin)) {
        wire w;
        line[strcspn(line, "\n")] = '\0';
        if (!enter_as_leaf(&w, port, &secret)) {
            return fail(port, w.error[0] ? w.error : "the server has closed the connection");
        }
        int length = strncmp(line, "pub ", 4) == 0 ? snprintf(text, sizeof text, "LMSG %s 2\r\n{}\r\n", line + 4)
                                                   : snprintf(text, sizeof text, "LS+ %s\r\n", line + 4);
        bool done = wire_send(&w, text, (size_t)length) && wire_flush(&w) && !w.errors;
        if (!done && !strstr(w.error, "Permissions Violation")) {
            return fail(line, w.error[0] ? w.error : "the server has closed the connection");
        }
        printf("%s %s\n", done ? "allowed" : "refused", line);
        wire_close(&w);
    }
    return 0;
}

/* Half of them garbage, half with a false signature. */
static int flood(const char *port, const char *key, const char *run, long total)
{
    wire w;
    rfi_secret secret;
    rfi_runfile file;
    unsigned char bytes[RFI_MANIFEST_BYTES];
    char subject[WIRE_TEXT];
    reef_error error = {REEF_OK, ""};
    if (enter(&w, port, key, &secret)) {
        return 1;
    }
    if (rfi_runfile_load(NULL, run, &file, &error) != REEF_OK) {
        return fail(run, error.text);
    }
    long agent = (long)rfi_runfile_find(&file, secret.identity.public_key);
    for (long i = 0; i < total; i++) {
        rfi_head head = {.type = RFI_FRAME_HELLO, .flags = RFI_FLAG_INLINE, .epoch = 1, .agent = (uint32_t)agent};
        memcpy(head.run, file.hash, sizeof head.run);
        memcpy(head.key, secret.identity.public_key, sizeof head.key);
        (void)frames_make(bytes, &head, &secret.login, NULL); /* the wrong one of its keys */
        bool garbage = i % 2;
        (void)(garbage ? snprintf(subject, sizeof subject, "reef.%s.s.%ld.%ld", file.run, agent, i % 1000)
                       : snprintf(subject, sizeof subject, "reef.%s.e.%ld", file.run, agent));
        if (!wire_publish(&w, subject, NULL, bytes, garbage ? 100 : sizeof bytes) ||
            (i % 1000 == 0 && !wire_flush(&w))) {
            return fail("flood", w.error);
        }
    }
    bool done = wire_flush(&w);
    rfi_runfile_free(&file);
    wire_close(&w);
    return done ? 0 : fail("flood", "the server has closed the connection");
}

static int put(const char *port, const char *key, const char *subject, long times)
{
    static char bytes[1 << 19];
    wire w;
    rfi_secret secret;
    if (enter(&w, port, key, &secret)) {
        return 1;
    }
    size_t size = fread(bytes, 1, sizeof bytes, stdin);
    for (long i = 0; i < times; i++) {
        if (!wire_publish(&w, subject, NULL, bytes, size) || (i % 100 == 0 && !wire_flush(&w))) {
            return fail("put", w.error);
        }
    }
    bool done = wire_flush(&w) && !w.errors;
    wire_close(&w);
    return done ? 0 : fail("put", w.error);
}

/* A model as its sender has signed it; what others could have put there is left out. */
static void print_model(const rfi_runfile *file, const unsigned char *bytes, size_t size)
{
    rfi_head head;
    unsigned char mark[RFI_HASH_BYTES];
    if (size < RFI_MANIFEST_BYTES || !rfi_frame_manifest(bytes, &head) || (ptrdiff_t)head.agent >= file->agents ||
        memcmp(head.run, file->hash, sizeof head.run) != 0 ||
        memcmp(head.key, file->participants[head.agent].identity, sizeof head.key) != 0 ||
        !rfi_frame_verify(bytes, &rfi_ed25519)) {
        return;
    }
    rfi_frame_mark(mark, bytes);
    printf("%lu %llu ", (unsigned long)head.agent, (unsigned long long)head.round);
    for (int i = 0; i < RFI_HASH_BYTES; i++) {
        printf("%02x", mark[i]);
    }
    printf("\n");
}

static int hear(const char *port, const char *key, const char *run)
{
    wire w;
    rfi_secret secret;
    rfi_runfile file;
    char subject[WIRE_TEXT];
    reef_error error = {REEF_OK, ""};
    if (enter(&w, port, key, &secret)) {
        return 1;
    }
    if (rfi_runfile_load(NULL, run, &file, &error) != REEF_OK) {
        return fail(run, error.text);
    }
    for (int k = 0; k < (int)file.agents; k++) {
        (void)snprintf(subject, sizeof subject, "reef.%s.s.%d.*", file.run, k);
        (void)wire_subscribe(&w, subject, k + 1); /* refused for those who are no neighbours */
    }
    if (!wire_flush(&w)) {
        return fail("hear", w.error);
    }
    printf("hearing\n");
    (void)fflush(stdout);
    while (wire_wait(&w)) {
        print_model(&file, (const unsigned char *)w.last, w.last_size);
    }
    rfi_runfile_free(&file);
    wire_close(&w);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "try") == 0) {
        return try_all(argv[2], argv[3]);
    }
    if (argc == 4 && strcmp(argv[1], "ear") == 0) {
        return hear_as_leaf(argv[2], argv[3]);
    }
    if (argc == 4 && strcmp(argv[1], "leaf") == 0) {
        return try_as_leaf(argv[2], argv[3]);
    }
    if (argc == 5 && strcmp(argv[1], "listen") == 0) {
        return hear_subject(argv[2], argv[3], argv[4]);
    }
    if (argc == 6 && strcmp(argv[1], "flood") == 0) {
        return flood(argv[2], argv[3], argv[4], strtol(argv[5], NULL, 10));
    }
    if (argc == 5 && strcmp(argv[1], "hear") == 0) {
        return hear(argv[2], argv[3], argv[4]);
    }
    if (argc == 6 && strcmp(argv[1], "put") == 0) {
        return put(argv[2], argv[3], argv[4], strtol(argv[5], NULL, 10));
    }
    fprintf(stderr, "usage: hostile try PORT KEY | leaf PORT KEY | ear PORT KEY | listen PORT KEY SUBJECT | flood PORT "
                    "KEY RUN N | put PORT KEY SUBJECT N | "
                    "hear PORT KEY RUN\n");
    return 2;
}
