/* STATUS to and from bytes. */
#include "net/status.h"

#include "net/bytes.h"

#include <math.h>
#include <string.h>

enum {
    AT_LINKS = 1,
    AT_COUNT = 2,
    AT_ZERO = 4,
    AT_ROUNDS = 8,
    AT_WEIGHT = 48,
    AT_SECONDS = 56,
    AT_ZERO_TOO = 68,
    AT_RESIDENT = 72,
    AT_NORM = 80,
    AT_NOTES = 88,
    NOTE = RFI_NOTE_NAME + 8,
    AT_RECEIVED = 184,
    AT_SENT = 192,
    ENTRY_TRUST = 4,
    ENTRY_AGE = 8,
    ENTRY_CAUSE = 9,
    ENTRY_TEST = 10,
    ENTRY_ZERO = 11,
    ENTRY_REFUSED = 12,
};

const char *rfi_standing_text(rfi_standing standing)
{
    static const char *const texts[] = {"gathering", "combining", "alone", "idle", "left"};
    return standing >= 0 && standing < RFI_STANDINGS ? texts[standing] : "?";
}

bool rfi_is_note(const char *name)
{
    size_t length = strlen(name);
    return length >= 1 && length <= RFI_NOTE_NAME && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

/* Floating-point numbers lie as in memory: frame.c refuses to be built for other machines. */
static double take_f64(const unsigned char *at)
{
    double value;
    memcpy(&value, at, sizeof value);
    return value;
}

static float take_f32(const unsigned char *at)
{
    float value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void put_entry(unsigned char *at, const rfi_status_entry *e)
{
    rfi_put(at, e->agent, 4);
    memcpy(at + ENTRY_TRUST, &e->trust, sizeof e->trust);
    at[ENTRY_AGE] = (unsigned char)e->age;
    at[ENTRY_CAUSE] = (unsigned char)e->cause;
    at[ENTRY_TEST] = (unsigned char)e->test;
    rfi_put(at + ENTRY_REFUSED, e->refused, 4);
}

size_t rfi_status_write(unsigned char payload[RFI_STATUS_MAX], const rfi_status *s)
{
    const uint64_t rounds[] = {s->round, s->combined, s->alone, s->skipped, s->idle};
    const float seconds[] = {s->adapt, s->wait, s->combine};
    size_t size = RFI_STATUS_BASE + (size_t)s->count * RFI_STATUS_ENTRY;
    memset(payload, 0, size);
    payload[0] = (unsigned char)s->standing;
    payload[AT_LINKS] = (unsigned char)s->links;
    rfi_put(payload + AT_COUNT, s->count, 2);
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        rfi_put(payload + AT_ROUNDS + 8 * i, rounds[i], 8);
    }
    memcpy(payload + AT_WEIGHT, &s->weight, sizeof s->weight);
    memcpy(payload + AT_SECONDS, seconds, sizeof seconds);
    rfi_put(payload + AT_RESIDENT, s->resident, 8);
    memcpy(payload + AT_NORM, &s->norm, sizeof s->norm);
    for (size_t i = 0; i < RFI_NOTES; i++) {
        unsigned char *at = payload + AT_NOTES + NOTE * i;
        memcpy(at, s->notes[i].name, strlen(s->notes[i].name));
        memcpy(at + RFI_NOTE_NAME, &s->notes[i].value, sizeof s->notes[i].value);
    }
    rfi_put(payload + AT_RECEIVED, s->received, 8);
    rfi_put(payload + AT_SENT, s->sent, 8);
    for (size_t i = 0; i < s->count; i++) {
        put_entry(payload + RFI_STATUS_BASE + i * RFI_STATUS_ENTRY, &s->entries[i]);
    }
    return size;
}

static bool read_note(const unsigned char *at, rfi_note *note)
{
    memcpy(note->name, at, RFI_NOTE_NAME);
    note->name[RFI_NOTE_NAME] = '\0';
    note->value = take_f64(at + RFI_NOTE_NAME);
    size_t length = strlen(note->name);
    if (!rfi_all_zero(at + length, RFI_NOTE_NAME - length) || !isfinite(note->value)) {
        return false;
    }
    return length == 0 ? rfi_all_zero(at, NOTE) : rfi_is_note(note->name);
}

static bool read_entry(const unsigned char *at, int64_t above, rfi_status_entry *e)
{
    *e = (rfi_status_entry){.agent = (uint32_t)rfi_take(at, 4),
                            .trust = take_f32(at + ENTRY_TRUST),
                            .age = at[ENTRY_AGE],
                            .cause = (rfi_cause)at[ENTRY_CAUSE],
                            .test = at[ENTRY_TEST],
                            .refused = (uint32_t)rfi_take(at + ENTRY_REFUSED, 4)};
    return (int64_t)e->agent > above && isfinite(e->trust) && at[ENTRY_CAUSE] < RFI_CAUSES && at[ENTRY_ZERO] == 0;
}

static bool read_base(const unsigned char *p, rfi_status *s)
{
    uint64_t *const rounds[] = {&s->round, &s->combined, &s->alone, &s->skipped, &s->idle};
    s->standing = (rfi_standing)p[0];
    s->links = p[AT_LINKS];
    bool good = p[0] < RFI_STANDINGS && rfi_all_zero(p + AT_ZERO, 4) && rfi_all_zero(p + AT_ZERO_TOO, 4);
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        *rounds[i] = rfi_take(p + AT_ROUNDS + 8 * i, 8);
        good = good && *rounds[i] < RFI_ROUND_LIMIT;
    }
    s->weight = take_f64(p + AT_WEIGHT);
    s->adapt = take_f32(p + AT_SECONDS);
    s->wait = take_f32(p + AT_SECONDS + 4);
    s->combine = take_f32(p + AT_SECONDS + 8);
    s->resident = rfi_take(p + AT_RESIDENT, 8);
    s->norm = take_f64(p + AT_NORM);
    s->received = rfi_take(p + AT_RECEIVED, 8);
    s->sent = rfi_take(p + AT_SENT, 8);
    for (size_t i = 0; i < RFI_NOTES; i++) {
        good = good && read_note(p + AT_NOTES + NOTE * i, &s->notes[i]);
    }
    return good && isfinite(s->weight) && isfinite(s->adapt) && isfinite(s->wait) && isfinite(s->combine) &&
           isfinite(s->norm);
}

bool rfi_status_read(const unsigned char *payload, size_t size, rfi_status *s)
{
    if (size < RFI_STATUS_BASE) {
        return false;
    }
    s->count = (unsigned)rfi_take(payload + AT_COUNT, 2);
    if (s->count > RFI_NEIGHBOURS_MAX || size != RFI_STATUS_BASE + (size_t)s->count * RFI_STATUS_ENTRY) {
        return false;
    }
    bool good = read_base(payload, s);
    int64_t above = -1;
    for (size_t i = 0; i < s->count && good; i++) {
        good = read_entry(payload + RFI_STATUS_BASE + i * RFI_STATUS_ENTRY, above, &s->entries[i]);
        above = (int64_t)s->entries[i].agent;
    }
    return good;
}

size_t rfi_status_frame(unsigned char frame[RFI_STATUS_FRAME_MAX], rfi_head *head, const rfi_status *status,
                        const rfi_keys *keys, const rfi_signatures *by)
{
    size_t size = rfi_status_write(frame + RFI_MANIFEST_BYTES, status);
    head->type = RFI_FRAME_STATUS;
    head->flags = RFI_FLAG_INLINE;
    head->round = status->round;
    head->count = status->count;
    head->payload = size;
    rfi_hash(head->root, frame + RFI_MANIFEST_BYTES, size);
    rfi_head_write(frame, head);
    rfi_frame_sign(frame, keys, by);
    return RFI_MANIFEST_BYTES + size;
}

rfi_cause rfi_status_take(const rfi_status_sender *from, const unsigned char *bytes, size_t size, rfi_head *head,
                          rfi_status *status)
{
    unsigned char root[RFI_HASH_BYTES];
    rfi_cause cause = rfi_frame_read(bytes, size, head);
    if (cause != RFI_GOOD) {
        return cause;
    }
    if (head->type != RFI_FRAME_STATUS) {
        return RFI_FORMAT;
    }
    if (head->agent != from->agent || memcmp(head->key, from->key, RFI_KEY_BYTES) != 0) {
        return RFI_SENDER;
    }
    if (head->epoch != from->epoch || memcmp(head->run, from->run, RFI_HASH_BYTES) != 0) {
        return RFI_CONFIG;
    }
    if (!rfi_frame_verify(bytes, from->by)) {
        return RFI_SIGNATURE;
    }
    rfi_hash(root, bytes + RFI_MANIFEST_BYTES, size - RFI_MANIFEST_BYTES);
    if (memcmp(root, head->root, sizeof root) != 0) {
        return RFI_CHUNK;
    }
    bool good = rfi_status_read(bytes + RFI_MANIFEST_BYTES, size - RFI_MANIFEST_BYTES, status) &&
                head->round == status->round && head->count == status->count;
    return good ? RFI_GOOD : RFI_SHAPE;
}
