/* Key files and the text of keys.
 *
 * The text of a key is that of NATS nkeys: a byte that makes the first letter, 32 bytes, CRC-16 (XMODEM) of these, all in base32 without
 * padding: 56 letters. Identities begin with R, logins with U as NATS wants them, seeds with S. A key file is one line, "reef-secret-1 "
 * and the seed; nobody but its owner may read it. */
#ifndef RFI_NET_KEYS_H
#define RFI_NET_KEYS_H

#include "net/crypto.h"

#include <reef/context.h>

#define RFI_KEY_TEXT 57 /* with the terminating zero */

typedef enum rfi_key_letter { RFI_LETTER_IDENTITY = 'R', RFI_LETTER_LOGIN = 'U', RFI_LETTER_SEED = 'S' } rfi_key_letter;

void rfi_key_print(char text[RFI_KEY_TEXT], rfi_key_letter letter, const unsigned char key[RFI_KEY_BYTES]);
/* Reads exactly `length` characters; false if they are no key of that letter. */
bool rfi_key_parse(unsigned char key[RFI_KEY_BYTES], rfi_key_letter letter, const char *text, size_t length);

/* The secret of a login as programs of NATS want it: a seed that begins with SU. Wipe it. */
#define RFI_NKEY_SEED_TEXT 59 /* with the terminating zero */
void rfi_login_print_seed(char text[RFI_NKEY_SEED_TEXT], const rfi_keys *login);

/* What a key file stands for. Wipe it with rfi_wipe. */
typedef struct rfi_secret {
    rfi_keys identity;
    rfi_keys login;
} rfi_secret;

/* Draws a new seed and writes the key file, readable by its owner alone. A file that exists is never touched. */
reef_status rfi_secret_make(const char *path, rfi_secret *secret, reef_error *error);
/* Refuses files that others may read. */
reef_status rfi_secret_read(const char *path, rfi_secret *secret, reef_error *error);

/* Whether a login key may sign this: the nonces of nats-server are 11 to 64 characters of the base64url alphabet, and nothing else is
 * ever signed for a broker. NULL, from one that asks for no signature, is none. */
bool rfi_is_nonce(const char *text);

#endif
