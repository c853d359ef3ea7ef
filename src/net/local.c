/* The requests of a client on this machine. */
#include "net/local.h"

#include "base/error.h"
#include "net/bytes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char magic[4] = {'R', 'L', 'O', 'C'};
enum { AT_OP = 4, AT_ROUND = 8, AT_BYTES = 16, AT_STATUS = 24, AT_ZERO = 28 };

typedef struct session {
    const rfi_local_host *host;
    bool greeted;
    reef_error *error;
} session;

/* What a request comes to. */
typedef enum outcome { GO_ON, CLOSE, LEFT, FAILED } outcome;

static bool answer(const session *s, rfi_local_op op, uint64_t round, uint32_t status, size_t size)
{
    unsigned char head[RFI_LOCAL_HEAD] = {0};
    memcpy(head, magic, sizeof magic);
    rfi_put(head + AT_OP, (uint64_t)op, 4);
    rfi_put(head + AT_ROUND, round, 8);
    rfi_put(head + AT_BYTES, size, 8);
    rfi_put(head + AT_STATUS, status, 4);
    return s->host->write(s->host->user, head, sizeof head);
}

static bool send_all(const session *s, const void *bytes, size_t size)
{
    return size == 0 || s->host->write(s->host->user, bytes, size);
}

static outcome refuse(const session *s, rfi_local_op op, uint32_t status, const char *sentence)
{
    size_t size = strlen(sentence);
    if (answer(s, op, 0, status, size)) {
        (void)send_all(s, sentence, size);
    }
    return status == RFI_LOCAL_FAILED ? FAILED : CLOSE;
}

/* The client's fault, or the agent's. */
static outcome give_up(const session *s, rfi_local_op op, reef_status status, const char *sentence)
{
    if (status == REEF_E_ARG) {
        return refuse(s, op, RFI_LOCAL_REFUSED, sentence);
    }
    (void)rfi_fail(s->error, status, "%s", sentence);
    return refuse(s, op, RFI_LOCAL_FAILED, sentence);
}

static outcome hello(session *s)
{
    const rfi_local_host *host = s->host;
    unsigned char layout[RFI_LOCAL_HELLO_BYTES];
    unsigned char welcome[RFI_LOCAL_WELCOME_BYTES];
    bool joined = false;
    uint64_t round = 0;
    reef_error why = {REEF_OK, ""};
    if (!host->read(host->user, layout, sizeof layout)) {
        return CLOSE;
    }
    reef_status status = host->hello(host->user, layout, &joined, &round, &why);
    if (status != REEF_OK) {
        return give_up(s, RFI_LOCAL_HELLO, status, why.text);
    }
    s->greeted = true;
    rfi_put(welcome, host->count, 8);
    rfi_put(welcome + 8, host->numbers, 4);
    rfi_put(welcome + 12, joined, 4);
    rfi_put(welcome + 16, round, 8);
    size_t model = joined ? host->bytes : 0;
    bool sent = answer(s, RFI_LOCAL_HELLO, round, 0, sizeof welcome + model) && send_all(s, welcome, sizeof welcome) &&
                send_all(s, host->room, model);
    return sent ? GO_ON : CLOSE;
}

static outcome exchange(session *s)
{
    const rfi_local_host *host = s->host;
    uint64_t round = 0;
    size_t report = 0;
    reef_error why = {REEF_OK, ""};
    if (!host->read(host->user, host->room, host->bytes)) {
        return CLOSE;
    }
    reef_status status = host->exchange(host->user, &round, &report, &why);
    if (status != REEF_OK) {
        return give_up(s, RFI_LOCAL_EXCHANGE, status, why.text);
    }
    bool sent =
        answer(s, RFI_LOCAL_EXCHANGE, round, 0, host->bytes + report) && send_all(s, host->room, host->bytes + report);
    return sent ? GO_ON : CLOSE;
}

/* A name of 1 to 16 letters with zeros behind it. */
static bool is_name(const unsigned char *bytes)
{
    size_t length = 0;
    while (length < RFI_LOCAL_NAME_BYTES && bytes[length] &&
           strchr("abcdefghijklmnopqrstuvwxyz0123456789_", bytes[length])) {
        length++;
    }
    return length > 0 && rfi_all_zero(bytes + length, RFI_LOCAL_NAME_BYTES - length);
}

static outcome note(const session *s)
{
    const rfi_local_host *host = s->host;
    unsigned char bytes[RFI_LOCAL_NOTE_BYTES];
    char name[RFI_LOCAL_NAME_BYTES + 1] = "";
    double value = 0;
    if (!host->read(host->user, bytes, sizeof bytes)) {
        return CLOSE;
    }
    uint64_t bits = rfi_take(bytes + RFI_LOCAL_NAME_BYTES, sizeof value);
    memcpy(&value, &bits, sizeof value);
    if (!is_name(bytes) || !isfinite(value)) {
        return refuse(s, RFI_LOCAL_NOTE, RFI_LOCAL_REFUSED,
                      "a note has a name of 1 to 16 letters a-z, 0-9 or _, zeros behind it, and a finite number");
    }
    memcpy(name, bytes, RFI_LOCAL_NAME_BYTES);
    host->note(host->user, name, value);
    return answer(s, RFI_LOCAL_NOTE, host->round(host->user), 0, 0) ? GO_ON : CLOSE;
}

static outcome leave(const session *s)
{
    (void)answer(s, RFI_LOCAL_LEAVE, s->host->round(s->host->user), 0, 0);
    return LEFT;
}

/* What is wrong with the head of a request; NULL: nothing. */
static const char *wrong_with(const session *s, const unsigned char *head, char *sentence, size_t size)
{
    const size_t sizes[] = {
        [RFI_LOCAL_HELLO] = RFI_LOCAL_HELLO_BYTES,
        [RFI_LOCAL_EXCHANGE] = s->host->bytes,
        [RFI_LOCAL_NOTE] = RFI_LOCAL_NOTE_BYTES,
        [RFI_LOCAL_LEAVE] = 0,
    };
    uint64_t op = rfi_take(head + AT_OP, 4);
    uint64_t bytes = rfi_take(head + AT_BYTES, 8);
    if (memcmp(head, magic, sizeof magic) != 0) {
        return "a request begins with RLOC";
    }
    if (op < RFI_LOCAL_HELLO || op > RFI_LOCAL_LEAVE) {
        return "requests are 1 HELLO, 2 EXCHANGE, 3 NOTE and 4 LEAVE";
    }
    if (!rfi_all_zero(head + AT_ROUND, 8) || !rfi_all_zero(head + AT_STATUS, RFI_LOCAL_HEAD - AT_STATUS)) {
        return "round and status of a request are 0";
    }
    if (s->greeted == (op == RFI_LOCAL_HELLO)) {
        return "HELLO is the first request of a connection, and only the first";
    }
    if (bytes != sizes[op]) {
        (void)snprintf(sentence, size, "request %d has %zu bytes here, not %llu", (int)op, sizes[op],
                       (unsigned long long)bytes);
        return sentence;
    }
    return NULL;
}

static outcome take_request(session *s)
{
    unsigned char head[RFI_LOCAL_HEAD];
    char sentence[80];
    if (!s->host->read(s->host->user, head, sizeof head)) {
        return CLOSE;
    }
    const char *wrong = wrong_with(s, head, sentence, sizeof sentence);
    rfi_local_op op = (rfi_local_op)rfi_take(head + AT_OP, 4);
    if (wrong) {
        return refuse(s, op, RFI_LOCAL_REFUSED, wrong);
    }
    switch (op) {
    case RFI_LOCAL_HELLO:
        return hello(s);
    case RFI_LOCAL_EXCHANGE:
        return exchange(s);
    case RFI_LOCAL_NOTE:
        return note(s);
    case RFI_LOCAL_LEAVE:
        break;
    }
    return leave(s);
}

rfi_local_end rfi_local_serve(const rfi_local_host *host, reef_error *error)
{
    session s = {.host = host, .error = error};
    outcome what = GO_ON;
    while (what == GO_ON) {
        what = take_request(&s);
    }
    if (what == FAILED) {
        return RFI_LOCAL_END_FAILED;
    }
    return what == LEFT ? RFI_LOCAL_END_LEFT : RFI_LOCAL_END_GONE;
}
