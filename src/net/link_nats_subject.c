/* reef.RUN.KIND.AGENT..., and inboxes. Subjects come from the broker: all of it is bytes from outside. */
#include "net/link_nats_subject.h"

#include "net/crypto.h"
#include "net/fetch.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { SECRET = 22 };

/* Reads a number of decimal digits at *text, which moves behind them and a dot, if one follows. */
static bool take_number(const char **text, uint64_t limit, uint64_t *number)
{
    const char *at = *text;
    uint64_t value = 0;
    if (*at < '0' || *at > '9' || (*at == '0' && at[1] >= '0' && at[1] <= '9')) {
        return false;
    }
    for (; *at >= '0' && *at <= '9'; at++) {
        if (value > (limit - 1) / 10) {
            return false;
        }
        value = value * 10 + (uint64_t)(*at - '0');
    }
    *text = *at == '.' ? at + 1 : at;
    *number = value;
    return value < limit && (*at == '.' || *at == '\0');
}

/* reef.R.s.AGENT.ROUND, reef.R.e.AGENT, reef.R.x.AGENT or reef.R.c.AGENT; subjects come from the broker. */
bool rfi_subject_read(const rfi_nats_names *names, const char *subject, rfi_topic *topic)
{
    char head[RFI_RUN_TOKEN + 16];
    uint64_t agent = 0;
    uint64_t round = 0;
    int length = snprintf(head, sizeof head, "reef.%s.", names->run);
    if (strncmp(subject, head, (size_t)length) != 0) {
        return false;
    }
    const char *rest = subject + length;
    bool slot = strncmp(rest, "s.", 2) == 0;
    bool proof = strncmp(rest, "x.", 2) == 0;
    bool file = strncmp(rest, "c.", 2) == 0;
    if (!slot && !proof && !file && strncmp(rest, "e.", 2) != 0) {
        return false;
    }
    rest += 2;
    if (!take_number(&rest, UINT32_MAX, &agent) || (slot && !take_number(&rest, RFI_ROUND_LIMIT, &round)) || *rest) {
        return false;
    }
    rfi_topic_kind said = proof ? RFI_TOPIC_PROOF : file ? RFI_TOPIC_FILE : RFI_TOPIC_EVENT;
    *topic = (rfi_topic){.kind = slot ? RFI_TOPIC_SLOT : said, .agent = (uint32_t)agent, .round = round};
    return true;
}

/* A run file, behind the inbox: f.AGENT, or b.EPOCH. */
static bool read_file(const char *rest, rfi_topic *topic)
{
    uint64_t number = 0;
    bool broker = rest[0] == 'b';
    rest += 2;
    if (!take_number(&rest, UINT32_MAX, &number) || *rest) {
        return false;
    }
    *topic = (rfi_topic){
        .kind = RFI_TOPIC_FILE, .agent = broker ? RFI_TOPIC_BROKER : (uint32_t)number, .round = broker ? number : 0};
    return true;
}

/* What was asked for stands behind the inbox: s.AGENT, or c.AGENT.ROUND.NUMBER, or a run file. */
bool rfi_inbox_read(const rfi_nats_names *names, const char *subject, rfi_topic *topic)
{
    size_t length = strlen(names->inbox);
    uint64_t agent = 0;
    uint64_t round = 0;
    uint64_t number = 0;
    if (strncmp(subject, names->inbox, length) != 0 || subject[length] != '.') {
        return false;
    }
    const char *rest = subject + length + 1;
    bool slot = strncmp(rest, "s.", 2) == 0;
    if (strncmp(rest, "f.", 2) == 0 || strncmp(rest, "b.", 2) == 0) {
        return read_file(rest, topic);
    }
    if (!slot && strncmp(rest, "c.", 2) != 0) {
        return false;
    }
    rest += 2;
    if (!take_number(&rest, UINT32_MAX, &agent) ||
        (!slot &&
         (!take_number(&rest, RFI_ROUND_LIMIT, &round) || !take_number(&rest, (uint64_t)UINT32_MAX + 1, &number))) ||
        *rest) {
        return false;
    }
    *topic = (rfi_topic){.kind = slot ? RFI_TOPIC_SLOT : RFI_TOPIC_CHUNK,
                         .agent = (uint32_t)agent,
                         .round = round,
                         .number = (uint32_t)number};
    return true;
}

static void chunk_place(char text[16], uint32_t number)
{
    (void)(number == RFI_CHUNK_INDEX ? snprintf(text, 16, "i") : snprintf(text, 16, "%lu", (unsigned long)number));
}

void rfi_subject_print(const rfi_nats_names *names, const rfi_topic *topic, char subject[RFI_SUBJECT_TEXT])
{
    char place[16];
    unsigned long agent = topic->agent;
    assert(memchr(names->run, '\0', sizeof names->run)); /* so that every subject fits */
    switch (topic->kind) {
    case RFI_TOPIC_SLOT:
        (void)snprintf(subject, RFI_SUBJECT_TEXT, "reef.%s.s.%lu.%llu", names->run, agent,
                       (unsigned long long)topic->round);
        break;
    case RFI_TOPIC_CHUNK:
        chunk_place(place, topic->number);
        (void)snprintf(subject, RFI_SUBJECT_TEXT, "reef.%s.p.%lu.%d.%s", names->run, agent,
                       (int)(topic->round % RFI_RING), place);
        break;
    case RFI_TOPIC_EVENT:
    case RFI_TOPIC_PROOF:
        (void)snprintf(subject, RFI_SUBJECT_TEXT, "reef.%s.%c.%lu", names->run,
                       topic->kind == RFI_TOPIC_EVENT ? 'e' : 'x', agent);
        break;
    case RFI_TOPIC_STATUS:
        (void)snprintf(subject, RFI_SUBJECT_TEXT, "reef.%s.t.%lu", names->run, agent);
        break;
    case RFI_TOPIC_FILE:
        if (topic->agent == RFI_TOPIC_BROKER) {
            (void)snprintf(subject, RFI_SUBJECT_TEXT, "reef.%s.c.b.%llu", names->run, (unsigned long long)topic->round);
        } else {
            (void)snprintf(subject, RFI_SUBJECT_TEXT, "reef.%s.c.%lu", names->run, agent);
        }
        break;
    }
}

/* Nobody but the server may know the inbox: answers of the store are large and cost whoever asks for them next to nothing. */
void rfi_draw_inbox(rfi_nats_names *names, uint32_t agent)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char bytes[SECRET];
    char secret[SECRET + 1] = {0};
    rfi_random(bytes, sizeof bytes);
    for (int i = 0; i < SECRET; i++) {
        secret[i] = letters[bytes[i] % 64];
    }
    (void)snprintf(names->inbox, sizeof names->inbox, "_%s.%lu.%s", names->run, (unsigned long)agent, secret);
}
