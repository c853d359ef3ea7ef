/* Keys, signatures and hashes against published values, and that keys for one use are not keys for another. */
#include "net/crypto.h"
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

static void from_hex(unsigned char *bytes, const char *hex)
{
    for (size_t i = 0; hex[2 * i]; i++) {
        const char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        char *end = NULL;
        bytes[i] = (unsigned char)strtoul(pair, &end, 16);
        assert_true(end == pair + 2);
    }
}

/* RFC 7693, appendix A has BLAKE2b-512; BLAKE2b-256 of the empty string and of "abc" as b2sum -l 256 prints them. */
static void hashes_are_blake2b(void **state)
{
    (void)state;
    unsigned char want[RFI_HASH_BYTES];
    unsigned char hash[RFI_HASH_BYTES];
    from_hex(want, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
    rfi_hash(hash, "", 0);
    assert_memory_equal(hash, want, sizeof hash);
    from_hex(want, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
    rfi_hash(hash, "abc", 3);
    assert_memory_equal(hash, want, sizeof hash);
}

/* RFC 8032, section 7.1, test 3. */
static void verifies_the_vectors_of_the_standard(void **state)
{
    (void)state;
    unsigned char key[RFI_KEY_BYTES];
    unsigned char signature[RFI_SIGNATURE_BYTES];
    const unsigned char message[] = {0xaf, 0x82};
    from_hex(key, "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025");
    from_hex(signature, "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
                        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a");
    assert_true(rfi_verify(signature, key, message, sizeof message));
    for (int bit = 0; bit < 8 * RFI_SIGNATURE_BYTES; bit += 37) {
        signature[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_false(rfi_verify(signature, key, message, sizeof message));
        signature[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_false(rfi_verify(signature, key, message, 1));
}

/* A key of small order would make one signature valid for many messages. */
static void refuses_weak_keys(void **state)
{
    (void)state;
    const unsigned char weak[RFI_KEY_BYTES] = {1};
    unsigned char signature[RFI_SIGNATURE_BYTES] = {1};
    assert_false(rfi_verify(signature, weak, "x", 1));
}

static void derives_one_key_per_use(void **state)
{
    (void)state;
    const unsigned char seed[RFI_KEY_BYTES] = {1, 2, 3};
    unsigned char other[RFI_KEY_BYTES] = {1, 2, 4};
    rfi_keys identity;
    rfi_keys again;
    rfi_keys login;
    rfi_keys_derive(&identity, seed, RFI_KEY_IDENTITY);
    rfi_keys_derive(&again, seed, RFI_KEY_IDENTITY);
    rfi_keys_derive(&login, seed, RFI_KEY_LOGIN);
    assert_memory_equal(&identity, &again, sizeof identity);
    assert_memory_not_equal(identity.public_key, login.public_key, RFI_KEY_BYTES);
    rfi_keys_derive(&again, other, RFI_KEY_IDENTITY);
    assert_memory_not_equal(identity.public_key, again.public_key, RFI_KEY_BYTES);

    unsigned char signature[RFI_SIGNATURE_BYTES];
    rfi_sign(signature, &identity, "message", 7);
    assert_true(rfi_verify(signature, identity.public_key, "message", 7));
    assert_false(rfi_verify(signature, login.public_key, "message", 7));
}

static void wipes_and_draws(void **state)
{
    (void)state;
    unsigned char a[32] = {0};
    unsigned char b[32] = {0};
    rfi_random(a, sizeof a);
    rfi_random(b, sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
    rfi_wipe(a, sizeof a);
    memset(b, 0, sizeof b);
    assert_memory_equal(a, b, sizeof a);
}

/* One derived signature of 256 begins with a zero; with drawn nonces none does, and all verify. */
static void logins_never_begin_with_zero(void **state)
{
    (void)state;
    static const unsigned char seed[RFI_KEY_BYTES] = "a seed";
    unsigned char signature[RFI_SIGNATURE_BYTES];
    unsigned char before[RFI_SIGNATURE_BYTES] = {0};
    rfi_keys keys;
    rfi_keys_derive(&keys, seed, RFI_KEY_LOGIN);
    for (int i = 0; i < 2000; i++) {
        rfi_sign_login(signature, &keys, &i, sizeof i);
        assert_int_not_equal(signature[0], 0);
        assert_true(rfi_verify(signature, keys.public_key, &i, sizeof i));
        assert_memory_not_equal(signature, before, sizeof before);
        memcpy(before, signature, sizeof before);
        signature[i % RFI_SIGNATURE_BYTES] ^= 1;
        assert_false(rfi_verify(signature, keys.public_key, &i, sizeof i));
    }
}

static int start(void **state)
{
    (void)state;
    reef_error error;
    reef_status first = rfi_crypto_start(&error);
    return first == REEF_OK && rfi_crypto_start(&error) == REEF_OK ? 0 : -1; /* a second time does no harm */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_blake2b), cmocka_unit_test(verifies_the_vectors_of_the_standard),
        cmocka_unit_test(refuses_weak_keys),  cmocka_unit_test(derives_one_key_per_use),
        cmocka_unit_test(wipes_and_draws),    cmocka_unit_test(logins_never_begin_with_zero),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
