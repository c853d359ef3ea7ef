/* Boxes and parts of a sealed model as a malicious sender may sign them: any bytes behind the hashes of an index, any bytes in a chunk. The
 * first byte says how many true boxes come first, the next three which byte of all is changed and how, the others follow as they are. A key is
 * taken out of nothing but the true box among boxes in order, and nothing but the true part is decrypted. */
#include "check.h"
#include "net/fetch.h"

#include <stdint.h>
#include <string.h>

enum { NUMBERS = 8200, CHUNKS = 2, HEARERS = 3, SELF = 2, HASHES = CHUNKS * RFI_HASH_BYTES };
#define BYTES (NUMBERS * sizeof(double))
#define MOST (RFI_BOXES_MAX + 4096)

static const rfi_shape shape = {
    .numbers = RFI_NUMBERS_F64, .count = NUMBERS, .chunk = RFI_CHUNK_MIN, .largest = 1e6, .sealed = true};
static double model[NUMBERS];
static unsigned char got[BYTES];
static unsigned char sent[BYTES + (size_t)CHUNKS * RFI_SEAL_BYTES];
static unsigned char boxes[HEARERS * RFI_SEALED_BOX];
static unsigned char message[RFI_CHUNK_HEAD_BYTES + HASHES + MOST + RFI_CHUNK_MIN];
static rfi_keys keys;
static rfi_opener opener;
static rfi_head head = {.round = 5};

static void make(void)
{
    const unsigned char seed[RFI_KEY_BYTES] = "fuzz";
    const uint32_t agents[HEARERS] = {0, SELF, 7};
    rfi_hearer hearers[HEARERS];
    rfi_keys_derive(&keys, seed, RFI_KEY_IDENTITY);
    CHECK(rfi_opener_make(&opener, SELF, &keys));
    for (int i = 0; i < HEARERS; i++) {
        CHECK(rfi_hearer_make(&hearers[i], agents[i], keys.public_key));
    }
    for (int i = 0; i < NUMBERS; i++) {
        model[i] = i;
    }
    CHECK(rfi_shape_chunks(&shape) == CHUNKS && rfi_shape_payload(&shape) == sizeof sent);
    CHECK(rfi_seal_model(&head, &shape, &keys, model, hearers, HEARERS, sent, boxes) == sizeof boxes);
}

/* By the definition: boxes in order, and the own one as it was made. */
static bool is_good(const unsigned char *bytes, size_t size)
{
    bool own = false;
    if (size % RFI_SEALED_BOX != 0 || size / RFI_SEALED_BOX > RFI_HEARERS_MAX) {
        return false;
    }
    for (size_t at = 0; at < size; at += RFI_SEALED_BOX) {
        bool rises = at == 0;
        for (int i = 3; i >= 0 && !rises; i--) {
            unsigned char before = bytes[at - RFI_SEALED_BOX + (size_t)i];
            if (bytes[at + (size_t)i] < before) {
                return false;
            }
            rises = bytes[at + (size_t)i] > before;
        }
        if (!rises) {
            return false;
        }
        own = own || memcmp(bytes + at, boxes + RFI_SEALED_BOX, RFI_SEALED_BOX) == 0;
    }
    return own;
}

/* The index with such boxes, signed; then each chunk, the second one changed as the input says. */
static void fetch_with(const unsigned char *bytes, size_t size, uint16_t where, uint8_t how)
{
    unsigned char index[HASHES];
    unsigned char have[CHUNKS];
    rfi_fetch fetch;
    rfi_head signed_head = head;
    const size_t whole = RFI_CHUNK_MIN + RFI_SEAL_BYTES;
    unsigned char *body = message + RFI_CHUNK_HEAD_BYTES;
    sent[whole + where % (sizeof sent - whole)] ^= how;
    rfi_fetch_index(&shape, sent, body, signed_head.root);
    memcpy(body + HASHES, bytes, size);
    rfi_hash(signed_head.root, body, HASHES + size);
    memset(got, 0, sizeof got);
    rfi_fetch_init(&fetch, &shape, got, index, have);
    fetch.opener = &opener;
    rfi_fetch_begin(&fetch, &signed_head);
    rfi_chunk_head(message, head.round, RFI_CHUNK_INDEX);
    rfi_taken taken = rfi_fetch_take(&fetch, 0, message, RFI_CHUNK_HEAD_BYTES + HASHES + size);
    bool large = size > RFI_BOXES_MAX;
    CHECK(taken == (is_good(bytes, size) ? RFI_TAKEN_PART : large ? RFI_TAKEN_BAD : RFI_TAKEN_SHUT));
    for (uint32_t number = 0; number < CHUNKS && taken == RFI_TAKEN_PART; number++) {
        size_t begin = 0;
        size_t part = rfi_fetch_part(sizeof sent, whole, number, &begin);
        memcpy(body, sent + begin, part);
        rfi_chunk_head(message, head.round, number);
        taken = rfi_fetch_take(&fetch, 0, message, RFI_CHUNK_HEAD_BYTES + part);
        CHECK(taken == (number == 0 ? RFI_TAKEN_PART : how ? RFI_TAKEN_SHUT : RFI_TAKEN_DONE));
        CHECK(memcmp(got, model, taken == RFI_TAKEN_DONE ? sizeof got : RFI_CHUNK_MIN) == 0);
    }
    CHECK(taken != RFI_TAKEN_PART && (taken == RFI_TAKEN_BAD) == fetch.active);
    sent[whole + where % (sizeof sent - whole)] ^= how;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char bytes[MOST];
    static bool made;
    rfi_seal seal;
    CHECK(rfi_crypto_start(NULL) == REEF_OK);
    if (!made) {
        make();
        made = true;
    }
    if (size < 4) {
        return 0;
    }
    uint16_t where = (uint16_t)(data[1] + 256 * data[2]);
    size_t first = (size_t)(data[0] % (HEARERS + 1)) * RFI_SEALED_BOX;
    size_t rest = size - 4 < MOST - first ? size - 4 : MOST - first;
    memcpy(bytes, boxes, first);
    memcpy(bytes + first, data + 4, rest);
    size = first + rest;
    if (size > 0 && data[0] & 128) {
        bytes[where % size] ^= data[3];
    }
    rfi_seal_begin(&seal, &head);
    CHECK(rfi_seal_find(&seal, &opener, bytes, size) == is_good(bytes, size));
    fetch_with(bytes, size, where, data[0] & 64 ? data[3] : 0);
    return 0;
}
