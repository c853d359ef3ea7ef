/* A window that is given any bytes as frames: the first byte of each message says how it comes, the next two its length. What is
 * read from a frame must lie within it, and without a valid signature nothing becomes a row or a claim. */
#include "check.h"
#include "net/window.h"

#include <stdint.h>
#include <string.h>

enum { PEERS = 3 };

static rfi_window *make(void)
{
    rfi_neighbour neighbours[PEERS];
    for (uint32_t l = 0; l < PEERS; l++) {
        neighbours[l] = (rfi_neighbour){.agent = l + 1, .weight = 0.25};
        memset(neighbours[l].key, (int)l + 1, RFI_KEY_BYTES);
    }
    const rfi_window_setup setup = {
        .shape = {.numbers = RFI_NUMBERS_F64, .count = 2, .chunk = RFI_CHUNK_MIN, .largest = 1e6},
        .count = PEERS,
        .neighbours = neighbours,
        .own_weight = 0.25,
        .malicious = 0.3,
        .stale = 2,
        .by = &rfi_ed25519};
    rfi_window *window = NULL;
    CHECK(rfi_window_create(&window, NULL, &setup, NULL) == REEF_OK);
    return window;
}

/* A head that was read says the same when it is written again. */
static void check_frame(const uint8_t *bytes, size_t size)
{
    rfi_head head;
    unsigned char again[RFI_HEAD_BYTES];
    if (rfi_frame_read(bytes, size, &head) == RFI_GOOD) {
        rfi_head_write(again, &head);
        CHECK(memcmp(again, bytes, sizeof again) == 0);
    }
    if (size >= (size_t)2 * RFI_MANIFEST_BYTES) {
        CHECK(!rfi_frame_proves(bytes, bytes + RFI_MANIFEST_BYTES, &rfi_ed25519));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CHECK(rfi_crypto_start(NULL) == REEF_OK);
    rfi_window *window = make();
    double now = 0;
    while (size >= 4) {
        size_t length = (size_t)data[1] + ((size_t)data[2] << 8);
        uint8_t how = data[0];
        uint64_t round = data[3];
        data += 4;
        size -= 4;
        length = length < size ? length : size;
        check_frame(data, length);
        uint32_t agent = how % 4;
        if (how & 16) {
            (void)rfi_window_chunk(window, now, agent, data, length);
            rfi_window_vain(window, agent, round, length > 0 ? data[0] : 0);
        } else {
            (void)rfi_window_frame(window, now, how & 4 ? RFI_PLACE_EVENT : RFI_PLACE_SLOT, agent, round, data, length);
        }
        rfi_window_advance(window, how & 8 ? round : 0);
        now += 0.25;
        data += length;
        size -= length;
    }
    CHECK(rfi_window_claimed(window) == -1);
    for (ptrdiff_t l = 0; l < PEERS; l++) {
        CHECK(!window->peers[l].heard && !rfi_window_row(window, l, window->round).model);
    }
    rfi_window_destroy(&window);
    return 0;
}
