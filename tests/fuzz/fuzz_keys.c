/* The text of keys, and what a broker asks a login key to sign: a key that is read is printed as the same text, and no nonce could be the
 * head of a frame. */
#include "check.h"
#include "net/keys.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const rfi_key_letter letters[] = {RFI_LETTER_IDENTITY, RFI_LETTER_LOGIN, RFI_LETTER_SEED};
    unsigned char key[RFI_KEY_BYTES];
    char text[RFI_KEY_TEXT];
    char nonce[256];
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++) {
        if (rfi_key_parse(key, letters[i], (const char *)data, size)) {
            rfi_key_print(text, letters[i], key);
            CHECK(size == RFI_KEY_TEXT - 1 && memcmp(text, data, size) == 0);
        }
    }
    if (size >= RFI_KEY_BYTES) { /* and the other way round */
        rfi_key_print(text, RFI_LETTER_LOGIN, data);
        CHECK(rfi_key_parse(key, RFI_LETTER_LOGIN, text, strlen(text)) && memcmp(key, data, sizeof key) == 0);
        CHECK(!rfi_key_parse(key, RFI_LETTER_IDENTITY, text, strlen(text)));
    }
    if (size < sizeof nonce) {
        memcpy(nonce, data, size);
        nonce[size] = '\0';
        CHECK(!rfi_is_nonce(nonce) || (strlen(nonce) >= 11 && strlen(nonce) <= 64 && !strpbrk(nonce, " \t\r\n.\"\\")));
    }
    return 0;
}
