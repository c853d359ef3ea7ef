/* The text of keys, against one that NATS publishes, and key files: their modes, damage, and that none is ever overwritten. */
#include "net/keys.h"
#include "support/check.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The user key of the nkeys page of the NATS manual: our reader agrees with theirs on letters and checksum. */
static const char published[] = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

static void reads_keys_of_nats(void **state)
{
    (void)state;
    unsigned char key[RFI_KEY_BYTES];
    char text[RFI_KEY_TEXT];
    assert_true(rfi_key_parse(key, RFI_LETTER_LOGIN, published, strlen(published)));
    rfi_key_print(text, RFI_LETTER_LOGIN, key);
    assert_string_equal(text, published);
    assert_false(rfi_key_parse(key, RFI_LETTER_IDENTITY, published, strlen(published)));
}

/* The secret of the key above, from the same page. */
static void prints_secrets_for_nats(void **state)
{
    (void)state;
    static const char secret[] = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    static const unsigned char seed[RFI_KEY_BYTES] = {0x29, 0x49, 0x7b, 0xa0, 0x0f, 0x41, 0xdd, 0x45, 0x93, 0x6b, 0x4c,
                                                      0xc4, 0xbd, 0xa1, 0xde, 0xcb, 0x67, 0xc1, 0x28, 0xe6, 0x9f, 0xb3,
                                                      0xd4, 0x90, 0xee, 0x82, 0x0d, 0xaf, 0x7c, 0x31, 0x8c, 0x0a};
    rfi_keys login = {.public_key = {0}};
    char text[RFI_NKEY_SEED_TEXT];
    memcpy(login.secret, seed, sizeof seed);
    rfi_login_print_seed(text, &login);
    assert_string_equal(text, secret);
}

static void text_goes_there_and_back(void **state)
{
    (void)state;
    static const rfi_key_letter letters[] = {RFI_LETTER_IDENTITY, RFI_LETTER_LOGIN, RFI_LETTER_SEED};
    for (int i = 0; i < 300; i++) {
        unsigned char key[RFI_KEY_BYTES];
        unsigned char back[RFI_KEY_BYTES];
        char text[RFI_KEY_TEXT];
        rfi_random(key, sizeof key);
        rfi_key_letter letter = letters[i % 3];
        rfi_key_print(text, letter, key);
        assert_int_equal(text[0], letter);
        assert_int_equal(strlen(text), RFI_KEY_TEXT - 1);
        assert_true(rfi_key_parse(back, letter, text, strlen(text)));
        assert_memory_equal(back, key, sizeof key);
        text[1 + i % 55] = text[1 + i % 55] == 'A' ? 'B' : 'A'; /* any wrong letter is noticed */
        assert_false(rfi_key_parse(back, letter, text, strlen(text)));
    }
}

static void refuses_other_texts(void **state)
{
    (void)state;
    unsigned char key[RFI_KEY_BYTES];
    char text[80];
    assert_false(rfi_key_parse(key, RFI_LETTER_LOGIN, published, 55));
    assert_false(rfi_key_parse(key, RFI_LETTER_LOGIN, published, 57));
    assert_false(rfi_key_parse(key, RFI_LETTER_LOGIN, "", 0));
    for (size_t i = 0; i < 56; i++) {
        static const char bad[] = {'0', '1', '8', 'a', ' ', '=', '\0', '\n'};
        memcpy(text, published, sizeof published);
        text[i] = bad[i % sizeof bad];
        assert_false(rfi_key_parse(key, RFI_LETTER_LOGIN, text, 56));
    }
}

typedef struct desk {
    scratch folder;
    char path[SCRATCH_PATH];
} desk;

static int set_up(void **state)
{
    desk *d = calloc(1, sizeof *d);
    *state = d;
    scratch_open(&d->folder);
    (void)scratch_path(&d->folder, "alice.key", d->path);
    return 0;
}

static int tear_down(void **state)
{
    desk *d = *state;
    scratch_close(&d->folder);
    free(d);
    return 0;
}

static void files_are_private_and_stay(void **state)
{
    desk *d = *state;
    reef_error error = {REEF_OK, ""};
    rfi_secret made;
    rfi_secret read;
    struct stat about;
    mode_t before = umask(0);
    CHECK(rfi_secret_make(d->path, &made, &error) == REEF_OK, "%s", error.text);
    (void)umask(before);
    assert_int_equal(stat(d->path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(rfi_secret_read(d->path, &read, &error), REEF_OK);
    assert_memory_equal(&made, &read, sizeof made);
    assert_memory_not_equal(made.identity.public_key, made.login.public_key, RFI_KEY_BYTES);
    assert_int_equal(rfi_secret_make(d->path, &read, &error), REEF_E_FILE); /* never overwritten */
    assert_int_equal(rfi_secret_read(d->path, &read, &error), REEF_OK);
    assert_memory_equal(&made, &read, sizeof made);
    static const mode_t open_modes[] = {0640, 0604, 0660, 0610, 0601};
    for (ptrdiff_t i = 0; i < COUNT(open_modes); i++) {
        assert_int_equal(chmod(d->path, open_modes[i]), 0);
        assert_int_equal(rfi_secret_read(d->path, &read, &error), REEF_E_FILE);
    }
    assert_int_equal(chmod(d->path, 0400), 0);
    assert_int_equal(rfi_secret_read(d->path, &read, &error), REEF_OK);
}

static void damaged_files_are_refused(void **state)
{
    desk *d = *state;
    reef_error error = {REEF_OK, ""};
    rfi_secret secret;
    char bytes[128];
    assert_int_equal(rfi_secret_make(d->path, &secret, &error), REEF_OK);
    FILE *file = fopen(d->path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(size, 14 + 56 + 1);
    for (size_t i = 0; i <= size; i++) {
        char damaged[130];
        size_t now = size;
        memcpy(damaged, bytes, size);
        if (i == size) {
            damaged[now++] = '\n'; /* one line, no more */
        } else {
            damaged[i] ^= 1;
        }
        (void)scratch_file(&d->folder, "bob.key", damaged, now, d->path);
        assert_int_equal(chmod(d->path, 0600), 0);
        CHECK(rfi_secret_read(d->path, &secret, &error) == REEF_E_FORMAT, "byte %zu passes", i);
    }
    (void)scratch_file(&d->folder, "bob.key", bytes, 0, d->path);
    assert_int_equal(rfi_secret_read(d->path, &secret, &error), REEF_E_FORMAT);
    assert_int_equal(rfi_secret_read(d->folder.folder, &secret, &error), REEF_E_FILE);
    assert_int_equal(rfi_secret_read("/nowhere/key", &secret, &error), REEF_E_FILE);
    assert_int_equal(rfi_secret_make("/nowhere/key", &secret, &error), REEF_E_FILE);
}

/* A broker may ask for any text to be signed. */
static void only_nonces_are_signed_for_brokers(void **state)
{
    (void)state;
    assert_true(rfi_is_nonce("Zm9vYmFyYmF6-_A"));
    assert_true(rfi_is_nonce("abcdefghijk"));
    assert_false(rfi_is_nonce("abcdefghij"));
    assert_false(rfi_is_nonce("reef frame 1    "));
    assert_false(rfi_is_nonce("abcdefghijk="));
    char longer[66];
    memset(longer, 'a', 65);
    longer[65] = '\0';
    assert_false(rfi_is_nonce(longer));
    longer[64] = '\0';
    assert_true(rfi_is_nonce(longer));
    assert_false(rfi_is_nonce(NULL));
}

static int start(void **state)
{
    (void)state;
    return rfi_crypto_start(NULL) == REEF_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_keys_of_nats),
        cmocka_unit_test(prints_secrets_for_nats),
        cmocka_unit_test(text_goes_there_and_back),
        cmocka_unit_test(refuses_other_texts),
        cmocka_unit_test_setup_teardown(files_are_private_and_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_files_are_refused, set_up, tear_down),
        cmocka_unit_test(only_nonces_are_signed_for_brokers),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
