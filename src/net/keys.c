/* Keys as text and as files. */
#include "net/keys.h"

#include "base/error.h"
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
static const char label[] = "reef-secret-1 ";

enum { RAW = 1 + RFI_KEY_BYTES + 2, LETTERS = RFI_KEY_TEXT - 1, LABEL = sizeof label - 1, LINE = LABEL + LETTERS + 1 };
_Static_assert(RAW * 8 == LETTERS * 5, "35 bytes are 56 letters, without a rest");

/* CRC-16/XMODEM, as nkeys have it. */
static unsigned crc16(const unsigned char *bytes, size_t size)
{
    unsigned crc = 0;
    for (size_t i = 0; i < size; i++) {
        crc ^= (unsigned)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc << 1) ^ (crc & 0x8000U ? 0x1021U : 0U);
        }
        crc &= 0xFFFFU;
    }
    return crc;
}

static unsigned value_of(char letter)
{
    const char *found = letter ? strchr(alphabet, letter) : NULL;
    return found ? (unsigned)(found - alphabet) : 32;
}

/* Puts the checksum behind all but the last two bytes, and writes all as letters. */
static void print(char *text, unsigned char *raw, size_t size)
{
    unsigned crc = crc16(raw, size - 2);
    raw[size - 2] = (unsigned char)crc;
    raw[size - 1] = (unsigned char)(crc >> 8);
    unsigned held = 0; /* bits not yet written */
    int bits = 0;
    size_t at = 0;
    for (size_t i = 0; i < size; i++) {
        held = (held << 8) | raw[i];
        for (bits += 8; bits >= 5; bits -= 5) {
            text[at++] = alphabet[(held >> (bits - 5)) & 31U];
        }
        held &= (1U << bits) - 1;
    }
    if (bits > 0) {
        text[at++] = alphabet[(held << (5 - bits)) & 31U];
    }
    text[at] = '\0';
    rfi_wipe(raw, size);
}

void rfi_key_print(char text[RFI_KEY_TEXT], rfi_key_letter letter, const unsigned char key[RFI_KEY_BYTES])
{
    unsigned char raw[RAW];
    raw[0] = (unsigned char)(value_of((char)letter) << 3);
    memcpy(raw + 1, key, RFI_KEY_BYTES);
    print(text, raw, sizeof raw);
}

void rfi_login_print_seed(char text[RFI_NKEY_SEED_TEXT], const rfi_keys *login)
{
    unsigned char raw[1 + RAW];
    unsigned user = value_of(RFI_LETTER_LOGIN) << 3;
    raw[0] = (unsigned char)((value_of(RFI_LETTER_SEED) << 3) | (user >> 5));
    raw[1] = (unsigned char)((user & 31U) << 3);
    memcpy(raw + 2, login->secret, RFI_KEY_BYTES); /* the first half of the secret is its seed */
    print(text, raw, sizeof raw);
}

bool rfi_key_parse(unsigned char key[RFI_KEY_BYTES], rfi_key_letter letter, const char *text, size_t length)
{
    unsigned char raw[RAW];
    unsigned held = 0;
    int bits = 0;
    size_t at = 0;
    if (length != LETTERS) {
        return false;
    }
    for (size_t i = 0; i < LETTERS; i++) {
        unsigned value = value_of(text[i]);
        if (value > 31) {
            return false;
        }
        held = (held << 5) | value;
        bits += 5;
        if (bits >= 8) {
            bits -= 8;
            raw[at++] = (unsigned char)(held >> bits);
        }
        held &= (1U << bits) - 1;
    }
    unsigned crc = crc16(raw, RAW - 2);
    bool good = raw[0] == value_of((char)letter) << 3 && raw[RAW - 2] == (crc & 255U) && raw[RAW - 1] == crc >> 8;
    if (good) {
        memcpy(key, raw + 1, RFI_KEY_BYTES);
    }
    rfi_wipe(raw, sizeof raw);
    return good;
}

static void derive(rfi_secret *secret, const unsigned char seed[RFI_KEY_BYTES])
{
    rfi_keys_derive(&secret->identity, seed, RFI_KEY_IDENTITY);
    rfi_keys_derive(&secret->login, seed, RFI_KEY_LOGIN);
}

static reef_status fail_errno(reef_error *error, const char *path)
{
    return rfi_fail(error, REEF_E_FILE, "%s: %s", rfi_path_show(path), strerror(errno));
}

static bool write_line(int file, const char *line)
{
    size_t done = 0;
    while (done < LINE) {
        ssize_t part = write(file, line + done, LINE - done);
        if (part < 0 && errno == EINTR) {
            continue;
        }
        if (part <= 0) {
            return false;
        }
        done += (size_t)part;
    }
    return fsync(file) == 0;
}

reef_status rfi_secret_make(const char *path, rfi_secret *secret, reef_error *error)
{
    unsigned char seed[RFI_KEY_BYTES];
    char line[LINE + 1];
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file < 0) {
        return errno == EEXIST
                   ? rfi_fail(error, REEF_E_FILE, "%s exists; keys are never overwritten: choose another name",
                              rfi_path_show(path))
                   : fail_errno(error, path);
    }
    rfi_random(seed, sizeof seed);
    memcpy(line, label, LABEL);
    rfi_key_print(line + LABEL, RFI_LETTER_SEED, seed);
    line[LINE - 1] = '\n';
    bool written = write_line(file, line);
    reef_status status = written ? REEF_OK : fail_errno(error, path);
    if (close(file) != 0 && status == REEF_OK) {
        status = fail_errno(error, path);
    }
    if (status == REEF_OK) {
        derive(secret, seed);
    } else {
        (void)unlink(path); /* ours: it did not exist before */
    }
    rfi_wipe(seed, sizeof seed);
    rfi_wipe(line, sizeof line);
    return status;
}

/* A service manager hands keys over in a folder of its own with an access list for the service's user alone, which shows as bits of the
 * group. */
static bool is_credential(const char *path)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    size_t length = folder ? strlen(folder) : 0;
    return length > 1 && strncmp(path, folder, length) == 0 && path[length] == '/' && !strchr(path + length + 1, '/');
}

static reef_status check_mode(mode_t mode, const char *path, reef_error *error)
{
    if (mode & (is_credential(path) ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO)) {
        return rfi_fail(error, REEF_E_FILE,
                        "%s may be read by others (mode %03o); chmod 600 it, and consider the key known",
                        rfi_path_show(path), (unsigned)(mode & 0777));
    }
    return REEF_OK;
}

/* The beginning of a regular file, and its mode. */
static reef_status read_start(const char *path, char *bytes, size_t room, ssize_t *size, mode_t *mode,
                              reef_error *error)
{
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        return fail_errno(error, path);
    }
    reef_status status = fstat(file, &about) == 0 ? REEF_OK : fail_errno(error, path);
    if (status == REEF_OK && !S_ISREG(about.st_mode)) {
        status = rfi_fail(error, REEF_E_FILE, "%s is not a regular file", rfi_path_show(path));
    }
    if (status == REEF_OK) {
        *mode = about.st_mode;
        do {
            *size = read(file, bytes, room);
        } while (*size < 0 && errno == EINTR);
        status = *size < 0 ? fail_errno(error, path) : REEF_OK;
    }
    (void)close(file);
    return status;
}

/* Another file, such as a run file, is called that, and not a key that others may read. */
reef_status rfi_secret_read(const char *path, rfi_secret *secret, reef_error *error)
{
    unsigned char seed[RFI_KEY_BYTES];
    char line[LINE + 1]; /* one more than there should be */
    ssize_t size = 0;
    mode_t mode = 0;
    reef_status status = read_start(path, line, sizeof line, &size, &mode, error);
    if (status == REEF_OK && (size < LABEL || memcmp(line, label, LABEL) != 0)) {
        status =
            rfi_fail(error, REEF_E_FORMAT, "%s is not a Reef key file; `reef keys new` makes one", rfi_path_show(path));
    }
    if (status == REEF_OK) {
        status = check_mode(mode, path, error);
    }
    if (status == REEF_OK) {
        bool whole = (size == LINE && line[LINE - 1] == '\n') || size == LINE - 1;
        if (whole && rfi_key_parse(seed, RFI_LETTER_SEED, line + LABEL, LETTERS)) {
            derive(secret, seed);
        } else {
            status = rfi_fail(error, REEF_E_FORMAT, "the key file %s is damaged", rfi_path_show(path));
        }
    }
    rfi_wipe(seed, sizeof seed);
    rfi_wipe(line, sizeof line);
    return status;
}

bool rfi_is_nonce(const char *text)
{
    enum { LEAST = 11, MOST = 64 };
    size_t length = text ? strlen(text) : 0;
    return length >= LEAST && length <= MOST &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == length;
}
