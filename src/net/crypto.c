/* libsodium behind the few calls Reef needs. */
#include "net/crypto.h"

#include "base/error.h"
#include "net/bytes.h"

#include <sodium.h>
#include <string.h>

_Static_assert(crypto_sign_PUBLICKEYBYTES == RFI_KEY_BYTES && crypto_sign_SEEDBYTES == RFI_KEY_BYTES, "keys");
_Static_assert(crypto_sign_SECRETKEYBYTES == RFI_SECRET_BYTES && crypto_sign_BYTES == RFI_SIGNATURE_BYTES,
               "signatures");
_Static_assert(crypto_box_SEALBYTES + RFI_KEY_BYTES == RFI_BOX_BYTES && crypto_box_PUBLICKEYBYTES == RFI_KEY_BYTES,
               "boxes");
_Static_assert(crypto_aead_xchacha20poly1305_ietf_KEYBYTES == RFI_KEY_BYTES &&
                   crypto_aead_xchacha20poly1305_ietf_ABYTES == RFI_SEAL_BYTES,
               "encryption");
_Static_assert(crypto_kdf_KEYBYTES == RFI_KEY_BYTES && crypto_kdf_CONTEXTBYTES == 8, "derivation");

reef_status rfi_crypto_start(reef_error *error)
{
    if (sodium_init() < 0) {
        return rfi_fail(error, REEF_E_ENGINE, "libsodium could not be initialised: the system gives no random numbers");
    }
    return REEF_OK;
}

const char *rfi_crypto_version(void)
{
    return sodium_version_string();
}

void rfi_keys_derive(rfi_keys *keys, const unsigned char seed[RFI_KEY_BYTES], rfi_key_use use)
{
    unsigned char own[RFI_KEY_BYTES];
    const char *context = use == RFI_KEY_IDENTITY ? "reefiden" : "reeflogn";
    (void)crypto_kdf_derive_from_key(own, sizeof own, (uint64_t)use, context, seed);
    (void)crypto_sign_seed_keypair(keys->public_key, keys->secret, own);
    sodium_memzero(own, sizeof own);
}

void rfi_sign(unsigned char signature[RFI_SIGNATURE_BYTES], const rfi_keys *keys, const void *message, size_t size)
{
    (void)crypto_sign_detached(signature, NULL, message, size, keys->secret);
}

/* RFC 8032 with r at random: R = r B, S = r + H(R, A, M) a. */
void rfi_sign_login(unsigned char signature[RFI_SIGNATURE_BYTES], const rfi_keys *keys, const void *message,
                    size_t size)
{
    unsigned char expanded[crypto_hash_sha512_BYTES];
    unsigned char hash[crypto_hash_sha512_BYTES];
    unsigned char r[crypto_core_ed25519_SCALARBYTES];
    unsigned char product[crypto_core_ed25519_SCALARBYTES];
    crypto_hash_sha512_state state;
    (void)crypto_hash_sha512(expanded, keys->secret, RFI_KEY_BYTES); /* the first half of the secret is its seed */
    expanded[0] &= 248;
    expanded[31] &= 127;
    expanded[31] |= 64;
    do {
        crypto_core_ed25519_scalar_random(r);
    } while (crypto_scalarmult_ed25519_base_noclamp(signature, r) != 0 || signature[0] == 0);
    (void)crypto_hash_sha512_init(&state);
    (void)crypto_hash_sha512_update(&state, signature, RFI_KEY_BYTES);
    (void)crypto_hash_sha512_update(&state, keys->public_key, RFI_KEY_BYTES);
    (void)crypto_hash_sha512_update(&state, message, size);
    (void)crypto_hash_sha512_final(&state, hash);
    crypto_core_ed25519_scalar_reduce(product, hash);
    crypto_core_ed25519_scalar_mul(product, product, expanded);
    crypto_core_ed25519_scalar_add(signature + RFI_KEY_BYTES, r, product);
    sodium_memzero(expanded, sizeof expanded);
    sodium_memzero(r, sizeof r);
}

bool rfi_verify(const unsigned char signature[RFI_SIGNATURE_BYTES], const unsigned char key[RFI_KEY_BYTES],
                const void *message, size_t size)
{
    return crypto_sign_verify_detached(signature, message, size, key) == 0;
}

void rfi_hash(unsigned char hash[RFI_HASH_BYTES], const void *bytes, size_t size)
{
    (void)crypto_generichash(hash, RFI_HASH_BYTES, bytes, size, NULL, 0);
}

void rfi_hash_keyed(unsigned char hash[RFI_HASH_BYTES], const unsigned char key[RFI_KEY_BYTES], const void *bytes,
                    size_t size)
{
    (void)crypto_generichash(hash, RFI_HASH_BYTES, bytes, size, key, RFI_KEY_BYTES);
}

bool rfi_box_address(unsigned char address[RFI_KEY_BYTES], const unsigned char identity[RFI_KEY_BYTES])
{
    return crypto_sign_ed25519_pk_to_curve25519(address, identity) == 0;
}

bool rfi_box_close(unsigned char box[RFI_BOX_BYTES], const unsigned char address[RFI_KEY_BYTES],
                   const unsigned char key[RFI_KEY_BYTES])
{
    return crypto_box_seal(box, key, RFI_KEY_BYTES, address) == 0;
}

bool rfi_box_open(unsigned char key[RFI_KEY_BYTES], const unsigned char box[RFI_BOX_BYTES], const rfi_keys *identity,
                  const unsigned char address[RFI_KEY_BYTES])
{
    unsigned char secret[crypto_scalarmult_SCALARBYTES];
    (void)crypto_sign_ed25519_sk_to_curve25519(secret, identity->secret);
    bool opened = crypto_box_seal_open(key, box, RFI_BOX_BYTES, address, secret) == 0;
    sodium_memzero(secret, sizeof secret);
    return opened;
}

static void nonce_of(unsigned char nonce[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES], uint32_t number)
{
    memset(nonce, 0, crypto_aead_xchacha20poly1305_ietf_NPUBBYTES);
    rfi_put(nonce, number, sizeof number);
}

void rfi_encrypt(unsigned char *to, const unsigned char *from, size_t size, const rfi_cipher *by)
{
    unsigned char nonce[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES];
    nonce_of(nonce, by->number);
    (void)crypto_aead_xchacha20poly1305_ietf_encrypt(to, NULL, from, size, by->bound, by->bound_size, NULL, nonce,
                                                     by->key);
}

bool rfi_decrypt(unsigned char *to, const unsigned char *from, size_t size, const rfi_cipher *by)
{
    unsigned char nonce[crypto_aead_xchacha20poly1305_ietf_NPUBBYTES];
    nonce_of(nonce, by->number);
    return crypto_aead_xchacha20poly1305_ietf_decrypt(to, NULL, NULL, from, size, by->bound, by->bound_size, nonce,
                                                      by->key) == 0;
}

void rfi_text64_print(char *text, size_t room, const unsigned char *bytes, size_t size)
{
    (void)sodium_bin2base64(text, room, bytes, size, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

bool rfi_text64_parse(unsigned char *bytes, size_t size, const char *text, size_t length)
{
    size_t got = 0;
    return sodium_base642bin(bytes, size, text, length, NULL, &got, NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING) ==
               0 &&
           got == size;
}

void rfi_random(void *bytes, size_t size)
{
    randombytes_buf(bytes, size);
}

void rfi_wipe(void *bytes, size_t size)
{
    sodium_memzero(bytes, size);
}

void rfi_lock(void *bytes, size_t size)
{
    (void)sodium_mlock(bytes, size);
}

void rfi_unlock(void *bytes, size_t size)
{
    (void)sodium_munlock(bytes, size);
}
