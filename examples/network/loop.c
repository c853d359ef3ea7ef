/* A training loop for `reef agent --socket PATH`, in C without any library:
 *
 *     cc -o loop loop.c -lm
 *     reef agent run.yaml --key alice.key --socket alice.sock &
 *     ./loop alice.sock 50 1
 *
 * All agents estimate the same numbers, each from its own data: d = x . truth + noise. The third argument seeds the data.
 * docs/network.md describes the bytes; models are float32 here, on a little-endian machine. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { HELLO = 1, EXCHANGE, NOTE, LEAVE };

/* The head of requests and answers. */
typedef struct head {
    char magic[4];
    uint32_t op;
    uint64_t round, bytes;
    uint32_t status, zero;
} head;

static void fail(const char *why)
{
    fprintf(stderr, "loop: %s\n", why);
    exit(1);
}

static void take(int agent, void *to, size_t size)
{
    char *at = to;
    while (size > 0) {
        ssize_t part = read(agent, at, size);
        if (part <= 0) {
            fail("the agent has gone");
        }
        at += part;
        size -= (size_t)part;
    }
}

static void give(int agent, const void *from, size_t size)
{
    const char *at = from;
    while (size > 0) {
        ssize_t part = send(agent, at, size, MSG_NOSIGNAL);
        if (part <= 0) {
            return; /* the agent has closed the connection; its last answer says why */
        }
        at += part;
        size -= (size_t)part;
    }
}

/* Sends a request; returns the answer's payload, to be freed by the caller, and its size. */
static char *ask(int agent, uint32_t op, const void *payload, size_t size, size_t *answered)
{
    head h = {.magic = "RLOC", .op = op, .bytes = size};
    give(agent, &h, sizeof h);
    give(agent, payload, size);
    take(agent, &h, sizeof h);
    char *answer = calloc(1, (size_t)h.bytes + 1);
    if (!answer) {
        fail("no memory");
    }
    take(agent, answer, (size_t)h.bytes);
    if (h.status != 0) {
        fail(answer);
    }
    *answered = (size_t)h.bytes;
    return answer;
}

static int open_agent(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int agent = socket(AF_UNIX, SOCK_STREAM, 0);
    if (strlen(path) >= sizeof address.sun_path) {
        fail("the path is too long");
    }
    memcpy(address.sun_path, path, strlen(path));
    if (agent < 0 || connect(agent, (struct sockaddr *)&address, sizeof address) != 0) {
        fail("no agent listens there");
    }
    return agent;
}

/* Nearly normal: twelve uniform numbers. */
static double normal(unsigned *seed)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        *seed = *seed * 1664525U + 1013904223U;
        sum += *seed / 4294967296.0;
    }
    return sum;
}

static double truth(size_t m, size_t count)
{
    return 2.0 * (double)m / (double)(count > 1 ? count - 1 : 1) - 1;
}

/* A step of least mean squares on fresh data. */
static void learn(float *model, double *x, size_t count, unsigned *seed)
{
    double error = 0.1 * normal(seed);
    for (size_t m = 0; m < count; m++) {
        x[m] = normal(seed);
        error += x[m] * (truth(m, count) - model[m]);
    }
    for (size_t m = 0; m < count; m++) {
        model[m] += (float)(0.02 * error * x[m]);
    }
}

int main(int argc, char **argv)
{
    const unsigned char plain[32] = {0}; /* models are vectors without names and shapes */
    uint64_t count;
    uint32_t facts[2]; /* type, joined */
    size_t size;
    if (argc != 4) {
        fail("usage: loop SOCKET ROUNDS SEED");
    }
    int agent = open_agent(argv[1]);
    unsigned seed = (unsigned)strtoul(argv[3], NULL, 10);
    char *answer = ask(agent, HELLO, plain, sizeof plain, &size);
    memcpy(&count, answer, sizeof count);
    memcpy(facts, answer + 8, sizeof facts);
    float *model = calloc(count, sizeof *model);
    double *x = calloc(count, sizeof *x);
    if (facts[0] != 1 || !model || !x) {
        fail("models are not float32, or too large");
    }
    if (facts[1]) {
        memcpy(model, answer + 24, count * sizeof *model);
    }
    free(answer);
    for (long left = strtol(argv[2], NULL, 10); left > 0; left--) {
        for (int i = 0; i < 8; i++) {
            learn(model, x, count, &seed);
        }
        answer = ask(agent, EXCHANGE, model, count * sizeof *model, &size);
        memcpy(model, answer, count * sizeof *model);
        if (left == 1) {
            printf("%s\n", answer + count * sizeof *model); /* the report of the last round */
        }
        free(answer);
    }
    struct {
        char name[16];
        double value;
    } note = {"error", 0};
    for (size_t m = 0; m < count; m++) {
        note.value += pow(truth(m, count) - model[m], 2);
    }
    printf("error %.4f\n", note.value);
    free(ask(agent, NOTE, &note, sizeof note, &size));
    free(ask(agent, LEAVE, NULL, 0, &size));
    free(model);
    free(x);
    return 0;
}
