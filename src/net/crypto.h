/* Keys, signatures and hashes. crypto.c is the only file that sees libsodium.
 *
 * Everything signed begins with a tag of RFI_TAG_BYTES that says what it is, so that a signature on one kind of bytes is never
 * one on another kind. Callers put the tag in front; tags are listed here, in one place. */
#ifndef RFI_NET_CRYPTO_H
#define RFI_NET_CRYPTO_H

#include <reef/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RFI_HASH_BYTES 32
#define RFI_KEY_BYTES 32 /* a public key, and a seed */
#define RFI_SECRET_BYTES 64
#define RFI_SIGNATURE_BYTES 64
#define RFI_TAG_BYTES 16
#define RFI_BOX_BYTES 80  /* a key of RFI_KEY_BYTES, closed for one reader */
#define RFI_SEAL_BYTES 16 /* that bytes are longer when they are encrypted */

#define RFI_TAG_FRAME "reef frame 1\0\0\0" /* the terminating zero of the literal is the sixteenth byte */
#define RFI_TAG_RUN "reef run file 1"      /* likewise */
#define RFI_TAG_SEAL                                                                                                   \
    "reef sealed 1\0\0" /* not signed: what encrypted bytes are bound to, and what their key is made of */

/* One signing key. Wipe it with rfi_wipe when it is no longer needed. */
typedef struct rfi_keys {
    unsigned char public_key[RFI_KEY_BYTES];
    unsigned char secret[RFI_SECRET_BYTES];
} rfi_keys;

/* What a seed is used for. A broker can have texts of its choice signed by the key that logs in, so that key signs nothing
 * else. */
typedef enum rfi_key_use { RFI_KEY_IDENTITY = 1, RFI_KEY_LOGIN = 2 } rfi_key_use;

/* Must succeed before anything else here is called; may be called again and from any thread. */
reef_status rfi_crypto_start(reef_error *error);

/* The version of libsodium. */
const char *rfi_crypto_version(void);

/* The key of one use; a pure function of the seed. */
void rfi_keys_derive(rfi_keys *keys, const unsigned char seed[RFI_KEY_BYTES], rfi_key_use use);

/* Ed25519 over `size` bytes of message, tag included. */
void rfi_sign(unsigned char signature[RFI_SIGNATURE_BYTES], const rfi_keys *keys, const void *message, size_t size);
bool rfi_verify(const unsigned char signature[RFI_SIGNATURE_BYTES], const unsigned char key[RFI_KEY_BYTES],
                const void *message, size_t size);

/* Ed25519 with a nonce that is drawn, not derived, until the signature does not begin with a zero byte: libnats before 3.8 sends none at all
 * if it does, which is one login of 256. Anybody verifies it as any other. */
void rfi_sign_login(unsigned char signature[RFI_SIGNATURE_BYTES], const rfi_keys *keys, const void *message,
                    size_t size);

/* BLAKE2b-256. */
void rfi_hash(unsigned char hash[RFI_HASH_BYTES], const void *bytes, size_t size);
/* BLAKE2b-256 under a secret key. */
void rfi_hash_keyed(unsigned char hash[RFI_HASH_BYTES], const unsigned char key[RFI_KEY_BYTES], const void *bytes,
                    size_t size);

/* Where boxes for the owner of an identity go: the X25519 form of the key. False: it has none, because nobody can have made it as a key. */
bool rfi_box_address(unsigned char address[RFI_KEY_BYTES], const unsigned char identity[RFI_KEY_BYTES]);
/* Closes a key in a box that the owner of the address alone opens; who closes it cannot open it again. False: bad address. */
bool rfi_box_close(unsigned char box[RFI_BOX_BYTES], const unsigned char address[RFI_KEY_BYTES],
                   const unsigned char key[RFI_KEY_BYTES]);
/* Opens one that was closed for `identity`, whose address is given since it takes time to find. */
bool rfi_box_open(unsigned char key[RFI_KEY_BYTES], const unsigned char box[RFI_BOX_BYTES], const rfi_keys *identity,
                  const unsigned char address[RFI_KEY_BYTES]);

/* What encrypts: XChaCha20-Poly1305 with the number as nonce, so that no key may be used for two texts under one number. `bound` must be the
 * same when the text is decrypted. */
typedef struct rfi_cipher {
    const unsigned char *key; /* RFI_KEY_BYTES */
    uint32_t number;
    const unsigned char *bound;
    size_t bound_size;
} rfi_cipher;
/* to: size + RFI_SEAL_BYTES. */
void rfi_encrypt(unsigned char *to, const unsigned char *from, size_t size, const rfi_cipher *by);
/* to: size - RFI_SEAL_BYTES. False: not what was encrypted so; `to` then holds nothing of it. */
bool rfi_decrypt(unsigned char *to, const unsigned char *from, size_t size, const rfi_cipher *by);

/* base64url without padding: room for 4 characters per 3 bytes, rounded up, and the end. parse is false unless the text is exactly
 * `size` bytes so written. */
void rfi_text64_print(char *text, size_t room, const unsigned char *bytes, size_t size);
bool rfi_text64_parse(unsigned char *bytes, size_t size, const char *text, size_t length);
/* Bytes nobody can guess. */
void rfi_random(void *bytes, size_t size);
/* Clears memory in a way the compiler does not leave out. */
void rfi_wipe(void *bytes, size_t size);
/* Keeps memory with secrets out of swap and core dumps, as far as the system allows; unlock also wipes it. */
void rfi_lock(void *bytes, size_t size);
void rfi_unlock(void *bytes, size_t size);

#endif
