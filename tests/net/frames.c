#include "net/frames.h"

#include <stdlib.h>
#include <string.h>

const unsigned char frames_run[RFI_HASH_BYTES] = "the hash of a file, 32 bytes...";

rfi_keys frames_keys(uint32_t agent)
{
    unsigned char seed[RFI_KEY_BYTES] = "seed of an agent in tests";
    rfi_keys keys;
    memcpy(seed + 28, &agent, sizeof agent);
    rfi_keys_derive(&keys, seed, RFI_KEY_IDENTITY);
    return keys;
}

rfi_shape frames_shape(uint64_t count)
{
    return (rfi_shape){.numbers = RFI_NUMBERS_F64, .count = count, .chunk = RFI_CHUNK_MIN, .largest = 1e6};
}

rfi_head frames_head(const rfi_shape *shape, uint32_t agent, uint64_t round, const void *model)
{
    rfi_keys keys = frames_keys(agent);
    rfi_head head = {.type = RFI_FRAME_MODEL,
                     .numbers = shape->numbers,
                     .epoch = 1,
                     .agent = agent,
                     .round = round,
                     .count = shape->count,
                     .payload = rfi_shape_bytes(shape),
                     .chunks = rfi_shape_chunks(shape),
                     .boot = 7};
    memcpy(head.run, frames_run, sizeof head.run);
    memcpy(head.key, keys.public_key, sizeof head.key);
    if (head.chunks) {
        static unsigned char index[RFI_CHUNKS_MAX * RFI_HASH_BYTES];
        head.chunk = shape->chunk;
        rfi_fetch_index(shape, model, index, head.root);
    } else {
        head.flags = RFI_FLAG_INLINE;
        rfi_hash(head.root, model, rfi_shape_bytes(shape));
    }
    return head;
}

size_t frames_make(unsigned char *frame, const rfi_head *head, const rfi_keys *keys, const void *model)
{
    rfi_head_write(frame, head);
    rfi_frame_sign(frame, keys, &rfi_ed25519);
    if (head->flags & RFI_FLAG_INLINE && head->payload) {
        memcpy(frame + RFI_MANIFEST_BYTES, model, (size_t)head->payload);
        return RFI_MANIFEST_BYTES + (size_t)head->payload;
    }
    return RFI_MANIFEST_BYTES;
}

size_t frames_sealed(unsigned char *frame, rfi_head *head, const rfi_shape *shape, const rfi_keys *keys,
                     const void *model, const rfi_hearer *hearers, ptrdiff_t count)
{
    unsigned char *payload = frame + RFI_MANIFEST_BYTES;
    size_t parts = rfi_shape_payload(shape);
    head->payload = parts + rfi_seal_model(head, shape, keys, model, hearers, count, payload, payload + parts);
    rfi_hash(head->root, payload, (size_t)head->payload);
    rfi_head_write(frame, head);
    rfi_frame_sign(frame, keys, &rfi_ed25519);
    return RFI_MANIFEST_BYTES + (size_t)head->payload;
}

void frames_hearers(rfi_hearer *hearers, const uint32_t *agents, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        rfi_keys keys = frames_keys(agents[i]);
        if (!rfi_hearer_make(&hearers[i], agents[i], keys.public_key)) {
            abort();
        }
    }
}

static void cheap_tag(unsigned char tag[RFI_SIGNATURE_BYTES], const unsigned char key[RFI_KEY_BYTES],
                      const void *message, size_t size)
{
    unsigned char all[RFI_KEY_BYTES + RFI_TAG_BYTES + RFI_HEAD_BYTES] = {0};
    memcpy(all, key, RFI_KEY_BYTES);
    memcpy(all + RFI_KEY_BYTES, message, size <= sizeof all - RFI_KEY_BYTES ? size : sizeof all - RFI_KEY_BYTES);
    rfi_hash(tag, all, sizeof all);
    memset(tag + RFI_HASH_BYTES, 0, RFI_SIGNATURE_BYTES - RFI_HASH_BYTES);
}

static void cheap_sign(unsigned char signature[RFI_SIGNATURE_BYTES], const rfi_keys *keys, const void *message,
                       size_t size)
{
    cheap_tag(signature, keys->public_key, message, size);
}

static bool cheap_verify(const unsigned char signature[RFI_SIGNATURE_BYTES], const unsigned char key[RFI_KEY_BYTES],
                         const void *message, size_t size)
{
    unsigned char tag[RFI_SIGNATURE_BYTES];
    cheap_tag(tag, key, message, size);
    return memcmp(tag, signature, sizeof tag) == 0;
}

const rfi_signatures frames_cheap = {cheap_sign, cheap_verify};
