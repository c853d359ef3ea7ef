/* Heads to and from bytes, and the checks that need nothing but the frame and the shape of the run's models. */
#include "net/frame.h"

#include "base/error.h"
#include "net/bytes.h"

#include <math.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "libreef_net sends numbers as they lie in memory and needs a little-endian machine"
#endif

static const char magic[4] = {'R', 'E', 'E', 'F'};

enum {
    VERSION = 1,
    AT_VERSION = 4,
    AT_TYPE = RFI_FRAME_AT_TYPE,
    AT_NUMBERS = 6,
    AT_FLAGS = 7,
    AT_EPOCH = 8,
    AT_AGENT = 12,
    AT_RUN = 16,
    AT_KEY = 48,
    AT_ROUND = 80,
    AT_COUNT = 88,
    AT_PAYLOAD = 96,
    AT_CHUNK = 104,
    AT_CHUNKS = 108,
    AT_ROOT = 112,
    AT_LAYOUT = 144,
    AT_COMMITMENT = 176,
    AT_BOOT = 208,
    AT_ZERO = 216,
};

_Static_assert(sizeof RFI_TAG_FRAME == RFI_TAG_BYTES, "the tag is the literal with its terminating zero");

const rfi_signatures rfi_ed25519 = {rfi_sign, rfi_verify};

const char *rfi_cause_text(rfi_cause cause)
{
    static const char *const texts[] = {
#define CAUSE_TEXT(code, text) text,
        RFI_CAUSE_LIST(CAUSE_TEXT)
#undef CAUSE_TEXT
    };
    return cause >= 0 && cause < RFI_CAUSES ? texts[cause] : "?";
}

void rfi_head_write(unsigned char bytes[RFI_HEAD_BYTES], const rfi_head *head)
{
    memset(bytes, 0, RFI_HEAD_BYTES);
    memcpy(bytes, magic, sizeof magic);
    bytes[AT_VERSION] = VERSION;
    bytes[AT_TYPE] = (unsigned char)head->type;
    bytes[AT_NUMBERS] = (unsigned char)head->numbers;
    bytes[AT_FLAGS] = (unsigned char)head->flags;
    rfi_put(bytes + AT_EPOCH, head->epoch, 4);
    rfi_put(bytes + AT_AGENT, head->agent, 4);
    memcpy(bytes + AT_RUN, head->run, sizeof head->run);
    memcpy(bytes + AT_KEY, head->key, sizeof head->key);
    rfi_put(bytes + AT_ROUND, head->round, 8);
    rfi_put(bytes + AT_COUNT, head->count, 8);
    rfi_put(bytes + AT_PAYLOAD, head->payload, 8);
    rfi_put(bytes + AT_CHUNK, head->chunk, 4);
    rfi_put(bytes + AT_CHUNKS, head->chunks, 4);
    memcpy(bytes + AT_ROOT, head->root, sizeof head->root);
    memcpy(bytes + AT_LAYOUT, head->layout, sizeof head->layout);
    memcpy(bytes + AT_COMMITMENT, head->commitment, sizeof head->commitment);
    rfi_put(bytes + AT_BOOT, head->boot, 8);
}

static void take_head(const unsigned char *bytes, rfi_head *head)
{
    head->type = (rfi_frame_type)bytes[AT_TYPE];
    head->numbers = (rfi_number_type)bytes[AT_NUMBERS];
    head->flags = bytes[AT_FLAGS];
    head->epoch = (uint32_t)rfi_take(bytes + AT_EPOCH, 4);
    head->agent = (uint32_t)rfi_take(bytes + AT_AGENT, 4);
    memcpy(head->run, bytes + AT_RUN, sizeof head->run);
    memcpy(head->key, bytes + AT_KEY, sizeof head->key);
    head->round = rfi_take(bytes + AT_ROUND, 8);
    head->count = rfi_take(bytes + AT_COUNT, 8);
    head->payload = rfi_take(bytes + AT_PAYLOAD, 8);
    head->chunk = (uint32_t)rfi_take(bytes + AT_CHUNK, 4);
    head->chunks = (uint32_t)rfi_take(bytes + AT_CHUNKS, 4);
    memcpy(head->root, bytes + AT_ROOT, sizeof head->root);
    memcpy(head->layout, bytes + AT_LAYOUT, sizeof head->layout);
    memcpy(head->commitment, bytes + AT_COMMITMENT, sizeof head->commitment);
    head->boot = rfi_take(bytes + AT_BOOT, 8);
}

static bool well_formed(const unsigned char *bytes, const rfi_head *head)
{
    if (memcmp(bytes, magic, sizeof magic) != 0 || bytes[AT_VERSION] != VERSION) {
        return false;
    }
    if (bytes[AT_TYPE] < RFI_FRAME_MODEL || bytes[AT_TYPE] > RFI_FRAME_BYE || bytes[AT_NUMBERS] > RFI_NUMBERS_F64) {
        return false;
    }
    if ((head->flags & ~(RFI_FLAG_INLINE | RFI_FLAG_SEALED)) != 0 || head->round >= RFI_ROUND_LIMIT) {
        return false;
    }
    bool sealed = head->flags & RFI_FLAG_SEALED;
    bool within = head->flags & RFI_FLAG_INLINE;
    if (within && (head->chunk != 0 || head->chunks != 0)) {
        return false;
    }
    bool model = head->type == RFI_FRAME_MODEL;
    if (!model && (!within || sealed || head->numbers != RFI_NO_NUMBERS)) {
        return false;
    }
    bool silent = head->type == RFI_FRAME_HELLO || head->type == RFI_FRAME_BYE;
    if (silent && (head->payload != 0 || head->count != 0 || !rfi_all_zero(head->root, sizeof head->root))) {
        return false;
    }
    if (!model && !rfi_all_zero(head->layout, sizeof head->layout)) {
        return false;
    }
    return rfi_all_zero(bytes + AT_ZERO, RFI_HEAD_BYTES - AT_ZERO) &&
           (sealed || rfi_all_zero(head->commitment, sizeof head->commitment));
}

rfi_cause rfi_frame_read(const unsigned char *bytes, size_t size, rfi_head *head)
{
    if (size < RFI_MANIFEST_BYTES) {
        return RFI_LENGTH;
    }
    size_t most = bytes[AT_FLAGS] & RFI_FLAG_SEALED ? RFI_FRAME_MAX : RFI_MANIFEST_BYTES + RFI_INLINE_MAX;
    /* Format first where the length depends on it: only then does the flag mean anything. */
    uint64_t inside = bytes[AT_FLAGS] & RFI_FLAG_INLINE ? rfi_take(bytes + AT_PAYLOAD, 8) : 0;
    if (size > most || size - RFI_MANIFEST_BYTES != inside) {
        return RFI_LENGTH;
    }
    take_head(bytes, head);
    return well_formed(bytes, head) ? RFI_GOOD : RFI_FORMAT;
}

static void with_tag(unsigned char message[RFI_TAG_BYTES + RFI_HEAD_BYTES], const unsigned char *head)
{
    memcpy(message, RFI_TAG_FRAME, RFI_TAG_BYTES);
    memcpy(message + RFI_TAG_BYTES, head, RFI_HEAD_BYTES);
}

void rfi_frame_sign(unsigned char frame[RFI_MANIFEST_BYTES], const rfi_keys *keys, const rfi_signatures *by)
{
    unsigned char message[RFI_TAG_BYTES + RFI_HEAD_BYTES];
    with_tag(message, frame);
    by->sign(frame + RFI_HEAD_BYTES, keys, message, sizeof message);
}

bool rfi_frame_verify(const unsigned char frame[RFI_MANIFEST_BYTES], const rfi_signatures *by)
{
    unsigned char message[RFI_TAG_BYTES + RFI_HEAD_BYTES];
    with_tag(message, frame);
    return by->verify(frame + RFI_HEAD_BYTES, frame + AT_KEY, message, sizeof message);
}

void rfi_frame_mark(unsigned char mark[RFI_HASH_BYTES], const unsigned char head[RFI_HEAD_BYTES])
{
    rfi_hash(mark, head, RFI_HEAD_BYTES);
}

bool rfi_frame_manifest(const unsigned char bytes[RFI_MANIFEST_BYTES], rfi_head *head)
{
    take_head(bytes, head);
    return well_formed(bytes, head) && head->type == RFI_FRAME_MODEL;
}

bool rfi_frame_proves(const unsigned char one[RFI_MANIFEST_BYTES], const unsigned char other[RFI_MANIFEST_BYTES],
                      const rfi_signatures *by)
{
    rfi_head a;
    rfi_head b;
    if (!rfi_frame_manifest(one, &a) || !rfi_frame_manifest(other, &b) || memcmp(one, other, RFI_HEAD_BYTES) == 0) {
        return false;
    }
    if (memcmp(a.key, b.key, sizeof a.key) != 0 || memcmp(a.run, b.run, sizeof a.run) != 0 || a.round != b.round) {
        return false;
    }
    return rfi_frame_verify(one, by) && rfi_frame_verify(other, by);
}

size_t rfi_shape_bytes(const rfi_shape *shape)
{
    return (size_t)shape->count * (shape->numbers == RFI_NUMBERS_F32 ? sizeof(float) : sizeof(double));
}

uint32_t rfi_shape_chunks(const rfi_shape *shape)
{
    size_t bytes = rfi_shape_bytes(shape);
    return bytes <= RFI_INLINE_MAX ? 0 : (uint32_t)((bytes + shape->chunk - 1) / shape->chunk);
}

size_t rfi_shape_payload(const rfi_shape *shape)
{
    uint32_t chunks = rfi_shape_chunks(shape);
    size_t parts = chunks ? chunks : 1;
    return rfi_shape_bytes(shape) + (shape->sealed ? parts * RFI_SEAL_BYTES : 0);
}

size_t rfi_shape_part(const rfi_shape *shape)
{
    return shape->chunk + (shape->sealed ? RFI_SEAL_BYTES : 0);
}

reef_status rfi_shape_check(const rfi_shape *shape, reef_error *error)
{
    if (shape->numbers != RFI_NUMBERS_F32 && shape->numbers != RFI_NUMBERS_F64) {
        return rfi_fail(error, REEF_E_ARG, "the numbers of a model are float32 or float64");
    }
    if (shape->count < 1 || shape->count > RFI_NUMBERS_MAX) {
        return rfi_fail(error, REEF_E_RANGE, "a model has 1 to %llu numbers, not %llu",
                        (unsigned long long)RFI_NUMBERS_MAX, (unsigned long long)shape->count);
    }
    if (shape->chunk < RFI_CHUNK_MIN || shape->chunk > RFI_CHUNK_MAX) {
        return rfi_fail(error, REEF_E_RANGE, "a chunk has %zu to %zu bytes, not %lu", RFI_CHUNK_MIN, RFI_CHUNK_MAX,
                        (unsigned long)shape->chunk);
    }
    if (rfi_shape_bytes(shape) > RFI_PAYLOAD_MAX || rfi_shape_chunks(shape) > RFI_CHUNKS_MAX) {
        return rfi_fail(error, REEF_E_RANGE, "a model of %zu bytes in chunks of %lu is too large: at most %d chunks",
                        rfi_shape_bytes(shape), (unsigned long)shape->chunk, RFI_CHUNKS_MAX);
    }
    if (!(shape->largest > 0)) {
        return rfi_fail(error, REEF_E_RANGE, "the largest number a model may hold is positive");
    }
    return REEF_OK;
}

/* Behind an inline model there may be boxes. */
static bool payload_fits(const rfi_shape *shape, const rfi_head *head)
{
    size_t parts = rfi_shape_payload(shape);
    bool boxes = shape->sealed && head->flags & RFI_FLAG_INLINE;
    if (!boxes || head->payload < parts) {
        return head->payload == parts;
    }
    uint64_t behind = head->payload - parts;
    return behind <= RFI_BOXES_MAX && behind % RFI_SEALED_BOX == 0;
}

bool rfi_shape_fits(const rfi_shape *shape, const rfi_head *head)
{
    uint32_t chunks = rfi_shape_chunks(shape);
    bool within = head->flags & RFI_FLAG_INLINE;
    bool sealed = head->flags & RFI_FLAG_SEALED;
    return head->numbers == shape->numbers && head->count == shape->count && within == (chunks == 0) &&
           head->chunks == chunks && head->chunk == (chunks ? shape->chunk : 0) && sealed == shape->sealed &&
           payload_fits(shape, head) && memcmp(head->layout, shape->layout, sizeof head->layout) == 0;
}

bool rfi_shape_values(const rfi_shape *shape, const void *model)
{
    /* Written so that NaN fails the comparison. */
    bool good = true;
    if (shape->numbers == RFI_NUMBERS_F32) {
        const float *x = model;
        for (uint64_t i = 0; i < shape->count; i++) {
            good &= isfinite(x[i]) && fabs((double)x[i]) <= shape->largest;
        }
    } else {
        const double *x = model;
        for (uint64_t i = 0; i < shape->count; i++) {
            good &= isfinite(x[i]) && fabs(x[i]) <= shape->largest;
        }
    }
    return good;
}
