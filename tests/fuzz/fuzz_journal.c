/* The two places of a journal as any bytes: refused with a sentence, or read to something that is written again the same. The
 * first byte says how many of the bytes are laid over a true journal, so that the input needs no right checksum. */
#include "check.h"
#include "net/bytes.h"
#include "net/journal.h"

#include <stdint.h>
#include <string.h>

static const unsigned char run[RFI_RUN_ID_BYTES] = "run";
static const unsigned char key[RFI_KEY_BYTES] = "key";

static void true_place(unsigned char *place, uint64_t next)
{
    memset(place, 0, RFI_JOURNAL_PLACE);
    memcpy(place, "REEFJRN1", 8);
    memcpy(place + 8, run, sizeof run);
    memcpy(place + 24, key, sizeof key);
    rfi_put(place + 56, next, 8);
    rfi_hash(place + 96, place, 96);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char bytes[2 * RFI_JOURNAL_PLACE];
    unsigned char before[2 * RFI_JOURNAL_PLACE];
    if (size < 3) {
        return 0;
    }
    CHECK(rfi_crypto_start(NULL) == REEF_OK);
    uint64_t next[2] = {data[0] % 16, data[0] / 16};
    true_place(bytes, next[0]);
    true_place(bytes + RFI_JOURNAL_PLACE, next[1]);
    memcpy(before, bytes, sizeof before);
    size_t at = ((size_t)data[1] + ((size_t)data[2] << 8)) % sizeof bytes;
    size_t length = size - 3 < sizeof bytes - at ? size - 3 : sizeof bytes - at;
    memcpy(bytes + at, data + 3, length);

    rfi_journal journal = {.file = -1};
    reef_error error = {REEF_OK, ""};
    reef_status status = rfi_journal_read(&journal, bytes, run, key, &error);
    bool same[2];
    for (int i = 0; i < 2; i++) {
        same[i] = memcmp(bytes + i * RFI_JOURNAL_PLACE, before + i * RFI_JOURNAL_PLACE, RFI_JOURNAL_PLACE) == 0;
    }
    if (same[0] || same[1]) { /* one whole place is enough, and the later of two counts */
        uint64_t want = same[0] && same[1] ? (next[0] > next[1] ? next[0] : next[1]) : next[same[0] ? 0 : 1];
        CHECK(status == REEF_OK && journal.next == want && journal.damaged == !(same[0] && same[1]));
    } else {
        CHECK(status == REEF_E_FORMAT && error.text[0]);
    }
    return 0;
}
