/* Echoes, shown manifests and proofs from any bytes: the first byte of each message says how it comes, the next two its length. Heads may be
 * repaired so that the bytes get past the checks of run, sender and length; signatures count as valid for the witness alone. Nothing is
 * read beyond a message, and without two valid manifests of one round nobody is excluded. */
#include "check.h"
#include "net/echo.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { AGENTS = 4, WITNESS = 3, FRAME = RFI_MANIFEST_BYTES + 8192 };

static int answers;

static void count(rfi_netlink *link, const rfi_topic *topic, const void *bytes, size_t size)
{
    rfi_head head;
    (void)link;
    (void)topic;
    CHECK(rfi_frame_read(bytes, size, &head) == RFI_GOOD);
    answers++;
}

static const unsigned char *key_of(void *user, uint32_t agent)
{
    static unsigned char key[RFI_KEY_BYTES];
    (void)user;
    memset(key, (int)agent + 1, sizeof key);
    return key;
}

static void never(void *user, uint32_t agent, const unsigned char proof[RFI_PROOF_BYTES])
{
    (void)user;
    (void)agent;
    CHECK(!proof); /* any call accuses somebody */
}

static void sign(unsigned char signature[RFI_SIGNATURE_BYTES], const rfi_keys *keys, const void *message, size_t size)
{
    (void)keys;
    (void)message;
    (void)size;
    memset(signature, 0, RFI_SIGNATURE_BYTES);
}

static bool of_witness(const unsigned char signature[RFI_SIGNATURE_BYTES], const unsigned char key[RFI_KEY_BYTES],
                       const void *message, size_t size)
{
    (void)signature;
    (void)message;
    (void)size;
    return key[0] == WITNESS + 1;
}

static const rfi_signatures signatures = {sign, of_witness};
static const rfi_netlink_ops counting = {count, NULL, NULL};

static rfi_window *make_window(void)
{
    rfi_neighbour neighbours[2];
    for (uint32_t l = 0; l < 2; l++) {
        neighbours[l] = (rfi_neighbour){.agent = l + 1, .weight = 1.0 / 3};
        memcpy(neighbours[l].key, key_of(NULL, l + 1), RFI_KEY_BYTES);
    }
    const rfi_window_setup setup = {
        .shape = {.numbers = RFI_NUMBERS_F64, .count = 2, .chunk = RFI_CHUNK_MIN, .largest = 1e6},
        .count = 2,
        .neighbours = neighbours,
        .own_weight = 1.0 / 3,
        .malicious = 0.3,
        .stale = 2,
        .by = &signatures};
    rfi_window *window = NULL;
    CHECK(rfi_window_create(&window, NULL, &setup, NULL) == REEF_OK);
    for (int l = 0; l < 2; l++) { /* something is held of both */
        rfi_held *held = &window->peers[l].kept[0];
        *held = (rfi_held){.held = true, .round = 0};
    }
    return window;
}

/* Makes the head one of the witness for a payload of this size. */
static void repair(unsigned char *frame, size_t size)
{
    static const rfi_frame_type types[] = {RFI_FRAME_ECHO, RFI_FRAME_SHOW, RFI_FRAME_PROOF};
    size_t payload = size - RFI_MANIFEST_BYTES;
    rfi_head head = {.type = types[frame[5] % 3],
                     .flags = RFI_FLAG_INLINE,
                     .agent = WITNESS,
                     .round = frame[80],
                     .payload = payload};
    head.count = head.type == RFI_FRAME_ECHO ? payload / RFI_ECHO_ENTRY_BYTES : payload / RFI_MANIFEST_BYTES;
    memcpy(head.key, key_of(NULL, WITNESS), sizeof head.key);
    rfi_hash(head.root, frame + RFI_MANIFEST_BYTES, payload);
    rfi_head_write(frame, &head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char frame[FRAME];
    const uint32_t witness = WITNESS;
    rfi_netlink link = {&counting};
    rfi_keys keys = {0};
    rfi_echo *echo = NULL;
    rfi_head blank = {.agent = 0};
    double now = 0;
    CHECK(rfi_crypto_start(NULL) == REEF_OK);
    rfi_window *window = make_window();
    const rfi_echo_setup setup = {.agents = AGENTS, .key = key_of, .count = 1, .witnesses = &witness, .proved = never};
    const rfi_echo_parts parts = {.window = window, .link = &link, .keys = &keys};
    CHECK(rfi_echo_create(&echo, NULL, &setup, &parts, NULL) == REEF_OK);
    memcpy(blank.key, key_of(NULL, 0), sizeof blank.key);
    answers = 0;
    while (size >= 3) {
        uint8_t how = data[0];
        size_t length = (size_t)data[1] + ((size_t)(data[2] % 32) << 8);
        data += 3;
        size -= 3;
        length = length < size ? length : size;
        memcpy(frame, data, length);
        data += length;
        size -= length;
        if (how & 1 && length >= RFI_MANIFEST_BYTES) {
            repair(frame, length);
        }
        unsigned char *exact = malloc(length + 1); /* so that reading beyond the message is seen */
        CHECK(exact);
        memcpy(exact, frame, length);
        const rfi_topic topic = {.kind = how & 2 ? RFI_TOPIC_PROOF : RFI_TOPIC_EVENT,
                                 .agent = (uint32_t)(how >> 4) % 6};
        if (rfi_echo_wants(echo, &topic, exact, length)) {
            (void)rfi_echo_frame(echo, now, &topic, exact, length, &blank);
        }
        free(exact);
        if (how & 4) {
            now += 0.6;
            rfi_echo_round(echo, now, &blank);
        }
    }
    CHECK(!window->peers[0].excluded && !window->peers[1].excluded);
    rfi_echo_destroy(&echo);
    rfi_window_destroy(&window);
    return 0;
}
