/* Keys, boxes and parts of sealed models. */
#include "net/seal.h"

#include "net/bytes.h"

#include <assert.h>
#include <string.h>

_Static_assert(sizeof RFI_TAG_SEAL == RFI_TAG_BYTES, "the tag is the literal with its terminating zero");

bool rfi_hearer_make(rfi_hearer *hearer, uint32_t agent, const unsigned char identity[RFI_KEY_BYTES])
{
    hearer->agent = agent;
    return rfi_box_address(hearer->address, identity);
}

bool rfi_opener_make(rfi_opener *opener, uint32_t agent, const rfi_keys *identity)
{
    opener->agent = agent;
    opener->identity = identity;
    return rfi_box_address(opener->address, identity->public_key);
}

static void bind(unsigned char bound[RFI_BOUND_BYTES], const rfi_head *head)
{
    unsigned char *at = bound;
    memcpy(at, RFI_TAG_SEAL, RFI_TAG_BYTES);
    memcpy(at += RFI_TAG_BYTES, head->run, sizeof head->run);
    memcpy(at += sizeof head->run, head->key, sizeof head->key);
    rfi_put(at + sizeof head->key, head->round, sizeof head->round);
}

void rfi_seal_begin(rfi_seal *seal, const rfi_head *head)
{
    bind(seal->bound, head);
    memcpy(seal->commitment, head->commitment, sizeof seal->commitment);
    memset(seal->key, 0, sizeof seal->key);
}

static rfi_cipher cipher_of(const rfi_seal *seal, uint32_t number)
{
    return (rfi_cipher){.key = seal->key, .number = number, .bound = seal->bound, .bound_size = sizeof seal->bound};
}

/* ---- sealing ---- */

/* See the head of seal.h for what goes into it, and why. */
static void draw_key(rfi_seal *seal, const rfi_keys *identity, const void *model, size_t size)
{
    struct {
        unsigned char bound[RFI_BOUND_BYTES];
        unsigned char random[RFI_KEY_BYTES];
        unsigned char model[RFI_HASH_BYTES];
    } from;
    memcpy(from.bound, seal->bound, sizeof from.bound);
    rfi_random(from.random, sizeof from.random);
    rfi_hash(from.model, model, size);
    rfi_hash_keyed(seal->key, identity->secret, &from, sizeof from); /* the first half of the secret is its seed */
    rfi_hash(seal->commitment, seal->key, sizeof seal->key);
    rfi_wipe(&from, sizeof from);
}

static size_t close_boxes(const rfi_seal *seal, const rfi_hearer *hearers, ptrdiff_t count, unsigned char *boxes)
{
    for (ptrdiff_t i = 0; i < count; i++, boxes += RFI_SEALED_BOX) {
        bool closed = rfi_box_close(boxes + 4, hearers[i].address, seal->key);
        assert(closed); /* its address is a good one */
        (void)closed;
        rfi_put(boxes, hearers[i].agent, 4);
    }
    return (size_t)count * RFI_SEALED_BOX;
}

static void encrypt_parts(const rfi_seal *seal, const rfi_shape *shape, const unsigned char *model,
                          unsigned char *parts)
{
    size_t bytes = rfi_shape_bytes(shape);
    uint32_t chunks = rfi_shape_chunks(shape);
    size_t whole = chunks ? shape->chunk : bytes;
    uint32_t number = 0;
    for (size_t begin = 0; begin < bytes; begin += whole) {
        const rfi_cipher by = cipher_of(seal, number);
        size_t size = bytes - begin < whole ? bytes - begin : whole;
        rfi_encrypt(parts + number * (whole + RFI_SEAL_BYTES), model + begin, size, &by);
        number++;
    }
}

size_t rfi_seal_model(rfi_head *head, const rfi_shape *shape, const rfi_keys *identity, const void *model,
                      const rfi_hearer *hearers, ptrdiff_t count, unsigned char *parts, unsigned char *boxes)
{
    rfi_seal seal;
    bind(seal.bound, head);
    draw_key(&seal, identity, model, rfi_shape_bytes(shape));
    head->flags |= RFI_FLAG_SEALED;
    memcpy(head->commitment, seal.commitment, sizeof head->commitment);
    encrypt_parts(&seal, shape, model, parts);
    size_t size = close_boxes(&seal, hearers, count, boxes);
    rfi_wipe(&seal, sizeof seal);
    return size;
}

/* ---- opening ---- */

/* The box of an agent, or NULL: there is none, or they are not in order. All of them are looked at, so that what one hearer takes for good the
 * others do. */
static const unsigned char *find_box(uint32_t agent, const unsigned char *boxes, size_t size)
{
    const unsigned char *found = NULL;
    int64_t above = -1;
    if (size > RFI_BOXES_MAX || size % RFI_SEALED_BOX != 0) {
        return NULL;
    }
    for (const unsigned char *at = boxes; at < boxes + size; at += RFI_SEALED_BOX) {
        int64_t number = (int64_t)rfi_take(at, 4);
        if (number <= above) {
            return NULL;
        }
        above = number;
        found = number == (int64_t)agent ? at + 4 : found;
    }
    return found;
}

bool rfi_seal_find(rfi_seal *seal, const rfi_opener *opener, const unsigned char *boxes, size_t size)
{
    unsigned char hash[RFI_HASH_BYTES];
    const unsigned char *box = find_box(opener->agent, boxes, size);
    if (!box || !rfi_box_open(seal->key, box, opener->identity, opener->address)) {
        return false;
    }
    rfi_hash(hash, seal->key, sizeof seal->key);
    return memcmp(hash, seal->commitment, sizeof hash) == 0;
}

bool rfi_seal_open(const rfi_seal *seal, uint32_t number, unsigned char *to, const unsigned char *from, size_t size)
{
    const rfi_cipher by = cipher_of(seal, number);
    return size >= RFI_SEAL_BYTES && rfi_decrypt(to, from, size, &by);
}
