/* STATUS: any bytes as a payload and as a frame. What is read is written back with the same bytes, and nothing is taken without a valid
 * signature. */
#include "check.h"
#include "net/status.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static rfi_status status;
    unsigned char again[RFI_STATUS_MAX];
    rfi_head head;
    CHECK(rfi_crypto_start(NULL) == REEF_OK);
    if (rfi_status_read(data, size, &status)) {
        CHECK(rfi_status_write(again, &status) == size);
        CHECK(memcmp(again, data, size) == 0);
    }
    if (size >= RFI_MANIFEST_BYTES) {
        const rfi_status_sender from = {.agent = (uint32_t)data[12],
                                        .epoch = (uint32_t)data[8],
                                        .run = data + 16,
                                        .key = data + 48,
                                        .by = &rfi_ed25519};
        CHECK(rfi_status_take(&from, data, size, &head, &status) != RFI_GOOD);
    }
    return 0;
}
