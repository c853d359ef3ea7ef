/* The last line of a run file: its signature. */
#include "net/keys.h"
#include "net/runfile.h"

#include <stdio.h>
#include <string.h>

static const char sign_mark[] = "# signed ";
enum { MARK = sizeof sign_mark - 1, KEY_LETTERS = RFI_KEY_TEXT - 1, SIGNATURE_LETTERS = 86 };
enum { SIGNED_LINE = MARK + KEY_LETTERS + 1 + SIGNATURE_LETTERS };
_Static_assert(SIGNED_LINE + 2 <= RFI_SIGNED_SIZE, "the line fits");

static void lay_out(unsigned char message[RFI_TAG_BYTES + RFI_HASH_BYTES], const void *bytes, size_t size)
{
    memcpy(message, RFI_TAG_RUN, RFI_TAG_BYTES);
    rfi_hash(message + RFI_TAG_BYTES, bytes, size);
}

size_t rfi_runfile_sign(const void *draft, size_t size, const rfi_keys *coordinator, char line[RFI_SIGNED_SIZE])
{
    unsigned char message[RFI_TAG_BYTES + RFI_HASH_BYTES];
    unsigned char signature[RFI_SIGNATURE_BYTES];
    char key[RFI_KEY_TEXT];
    char text[SIGNATURE_LETTERS + 1];
    lay_out(message, draft, size);
    rfi_sign(signature, coordinator, message, sizeof message);
    rfi_key_print(key, RFI_LETTER_IDENTITY, coordinator->public_key);
    rfi_text64_print(text, sizeof text, signature, sizeof signature);
    return (size_t)snprintf(line, RFI_SIGNED_SIZE, "%s%s %s\n", sign_mark, key, text);
}

bool rfi_runfile_signed(const char *bytes, size_t *size, unsigned char by[RFI_KEY_BYTES],
                        unsigned char hash[RFI_HASH_BYTES])
{
    unsigned char message[RFI_TAG_BYTES + RFI_HASH_BYTES];
    unsigned char signature[RFI_SIGNATURE_BYTES];
    size_t end = *size > 0 && bytes[*size - 1] == '\n' ? *size - 1 : *size;
    if (end < SIGNED_LINE + 1 || bytes[end - SIGNED_LINE - 1] != '\n') {
        return false;
    }
    const char *line = bytes + end - SIGNED_LINE;
    const char *text = line + MARK + KEY_LETTERS + 1;
    if (memcmp(line, sign_mark, MARK) != 0 || text[-1] != ' ' ||
        !rfi_key_parse(by, RFI_LETTER_IDENTITY, line + MARK, KEY_LETTERS) ||
        !rfi_text64_parse(signature, sizeof signature, text, SIGNATURE_LETTERS)) {
        return false;
    }
    *size = (size_t)(line - bytes);
    lay_out(message, bytes, *size);
    memcpy(hash, message + RFI_TAG_BYTES, RFI_HASH_BYTES);
    return rfi_verify(signature, by, message, sizeof message);
}
