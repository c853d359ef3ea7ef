/* Chunks of a model in any order, true and false, with loss and time: whatever comes, a model that is complete is the one that
 * was signed, and a request is never made for what is there. Each step is a byte: what happens, and to which chunk. */
#include "check.h"
#include "net/fetch.h"

#include <stdint.h>
#include <string.h>

enum { NUMBERS = 20000, CHUNKS = 3 };

static double model[NUMBERS];
static unsigned char got[sizeof model];
static unsigned char message[RFI_CHUNK_HEAD_BYTES + RFI_CHUNK_MIN];

static size_t fill(const rfi_fetch *fetch, const unsigned char *index, uint32_t number)
{
    size_t begin = 0;
    rfi_chunk_head(message, fetch->round, number);
    if (number == RFI_CHUNK_INDEX) {
        memcpy(message + RFI_CHUNK_HEAD_BYTES, index, (size_t)CHUNKS * RFI_HASH_BYTES);
        return RFI_CHUNK_HEAD_BYTES + (size_t)CHUNKS * RFI_HASH_BYTES;
    }
    size_t size = rfi_fetch_part(sizeof model, fetch->chunk, number, &begin);
    memcpy(message + RFI_CHUNK_HEAD_BYTES, (unsigned char *)model + begin, size);
    return RFI_CHUNK_HEAD_BYTES + size;
}

static void check_want(rfi_fetch *fetch, double now)
{
    uint32_t number = 0;
    for (int asked = 0; rfi_fetch_want(fetch, now, &number); asked++) {
        CHECK(asked < RFI_FLIGHTS);
        CHECK(number == RFI_CHUNK_INDEX ? !fetch->indexed : fetch->indexed && !fetch->have[number]);
    }
    CHECK(rfi_fetch_flying(fetch, now) <= RFI_FLIGHTS);
}

/* One message: true, damaged at a place the input chooses, cut, or of another round. */
static void step(rfi_fetch *fetch, double now, const unsigned char *index, uint8_t what, uint8_t more)
{
    uint32_t number = what % 4 == 3 ? RFI_CHUNK_INDEX : what % 4;
    size_t size = fill(fetch, index, number);
    bool active = fetch->active;
    bool harmed = true;
    switch (what / 4 % 8) {
    case 0:
        message[(size_t)more * 257 % size] ^= (unsigned char)(1U << what / 32);
        break;
    case 1:
        size -= 1 + more % size;
        break;
    case 2:
        rfi_chunk_head(message, fetch->round + more % 3, number);
        harmed = more % 3 != 0;
        break;
    default:
        harmed = false;
    }
    rfi_taken taken = rfi_fetch_take(fetch, now, message, size);
    CHECK(active || taken == RFI_TAKEN_NONE);
    CHECK(!harmed || taken == RFI_TAKEN_BAD || taken == RFI_TAKEN_NONE || taken == RFI_TAKEN_GONE);
    CHECK(harmed || taken != RFI_TAKEN_BAD);
    CHECK(taken != RFI_TAKEN_DONE || memcmp(got, model, sizeof model) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const rfi_shape shape = {.numbers = RFI_NUMBERS_F64, .count = NUMBERS, .chunk = RFI_CHUNK_MIN, .largest = 1e6};
    unsigned char sent[CHUNKS * RFI_HASH_BYTES];
    unsigned char index[CHUNKS * RFI_HASH_BYTES];
    unsigned char have[CHUNKS];
    rfi_head head = {.round = 5};
    rfi_fetch fetch;
    CHECK(rfi_crypto_start(NULL) == REEF_OK && rfi_shape_chunks(&shape) == CHUNKS);
    for (int i = 0; i < NUMBERS; i++) {
        model[i] = i;
    }
    memset(got, 0, sizeof got);
    rfi_fetch_index(&shape, (const unsigned char *)model, sent, head.root);
    rfi_fetch_init(&fetch, &shape, got, index, have);
    rfi_fetch_begin(&fetch, &head);
    double now = 0;
    for (size_t i = 0; i + 1 < size && i < 200; i += 2) {
        if (data[i] == 255) {
            rfi_fetch_begin(&fetch, &head);
        }
        step(&fetch, now, sent, data[i], data[i + 1]);
        if (data[i + 1] % 8 == 0) {
            rfi_fetch_vain(&fetch, head.round, data[i] % 4);
        }
        now += data[i + 1] / 256.0;
        check_want(&fetch, now);
    }
    return 0;
}
