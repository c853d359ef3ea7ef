/* The last signed round, durable. */
#include "net/journal.h"

#include "base/error.h"
#include "io/file.h"
#include "net/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = {'R', 'E', 'E', 'F', 'J', 'R', 'N', '1'};

enum { AT_RUN = 8, AT_KEY = 24, AT_NEXT = 56, AT_MARK = 64, AT_SUM = 96, AT_ZERO = 128 };

static void write_place(unsigned char place[RFI_JOURNAL_PLACE], const rfi_journal *journal, uint64_t next,
                        const unsigned char mark[RFI_HASH_BYTES])
{
    memset(place, 0, RFI_JOURNAL_PLACE);
    memcpy(place, magic, sizeof magic);
    memcpy(place + AT_RUN, journal->run, sizeof journal->run);
    memcpy(place + AT_KEY, journal->key, sizeof journal->key);
    rfi_put(place + AT_NEXT, next, 8);
    memcpy(place + AT_MARK, mark, RFI_HASH_BYTES);
    rfi_hash(place + AT_SUM, place, AT_SUM);
}

static bool place_is_whole(const unsigned char *place)
{
    unsigned char sum[RFI_HASH_BYTES];
    rfi_hash(sum, place, AT_SUM);
    return memcmp(place, magic, sizeof magic) == 0 && memcmp(sum, place + AT_SUM, sizeof sum) == 0 &&
           rfi_all_zero(place + AT_ZERO, RFI_JOURNAL_PLACE - AT_ZERO) &&
           rfi_take(place + AT_NEXT, 8) <= RFI_ROUND_LIMIT;
}

reef_status rfi_journal_read(rfi_journal *journal, const unsigned char bytes[2 * RFI_JOURNAL_PLACE],
                             const unsigned char run[RFI_RUN_ID_BYTES], const unsigned char key[RFI_KEY_BYTES],
                             reef_error *error)
{
    bool whole[2];
    int newest = -1;
    for (int i = 0; i < 2; i++) {
        const unsigned char *place = bytes + (size_t)i * RFI_JOURNAL_PLACE;
        whole[i] = place_is_whole(place);
        if (!whole[i]) {
            continue;
        }
        if (memcmp(place + AT_RUN, run, RFI_RUN_ID_BYTES) != 0 || memcmp(place + AT_KEY, key, RFI_KEY_BYTES) != 0) {
            return rfi_fail(error, REEF_E_FORMAT,
                            "the journal belongs to another run or another key; give each run and key its own state "
                            "folder");
        }
        if (newest < 0 || rfi_take(place + AT_NEXT, 8) > rfi_take(bytes + AT_NEXT, 8)) {
            newest = i;
        }
    }
    if (newest < 0) {
        return rfi_fail(error, REEF_E_FORMAT,
                        "the journal is damaged: which rounds were signed is not known any more. Restore it, or join "
                        "with a new key");
    }
    const unsigned char *place = bytes + (size_t)newest * RFI_JOURNAL_PLACE;
    memcpy(journal->run, run, sizeof journal->run);
    memcpy(journal->key, key, sizeof journal->key);
    journal->next = rfi_take(place + AT_NEXT, 8);
    memcpy(journal->mark, place + AT_MARK, sizeof journal->mark);
    journal->place = 1 - newest;
    journal->damaged = !whole[0] || !whole[1];
    return REEF_OK;
}

static reef_status make_new(const reef_context *context, const char *path, const unsigned char *run,
                            const unsigned char *key, reef_error *error)
{
    static const unsigned char no_mark[RFI_HASH_BYTES] = {0};
    unsigned char bytes[2 * RFI_JOURNAL_PLACE];
    rfi_journal blank = {.file = -1};
    memcpy(blank.run, run, sizeof blank.run);
    memcpy(blank.key, key, sizeof blank.key);
    write_place(bytes, &blank, 0, no_mark);
    write_place(bytes + RFI_JOURNAL_PLACE, &blank, 0, no_mark);
    const rfi_piece piece = {bytes, sizeof bytes};
    return rfi_file_write(context, path, &piece, 1, error);
}

reef_status rfi_journal_open(rfi_journal *journal, const reef_context *context, const char *path,
                             const unsigned char run[RFI_RUN_ID_BYTES], const unsigned char key[RFI_KEY_BYTES],
                             bool sync, reef_error *error)
{
    struct stat found;
    *journal = (rfi_journal){.file = -1, .sync = sync};
    reef_status status = REEF_OK;
    if (lstat(path, &found) != 0 && errno == ENOENT) {
        status = make_new(context, path, run, key, error);
    }
    rfi_file content = {NULL, 0};
    if (status == REEF_OK) {
        status = rfi_file_read(context, path, (size_t)2 * RFI_JOURNAL_PLACE, &content, error);
    }
    if (status == REEF_OK && content.size != (size_t)2 * RFI_JOURNAL_PLACE) {
        status = rfi_fail(error, REEF_E_FORMAT, "%s: a journal has %d bytes, not %zu", rfi_path_show(path),
                          2 * RFI_JOURNAL_PLACE, content.size);
    }
    if (status == REEF_OK) {
        status = rfi_journal_read(journal, content.bytes, run, key, error);
    }
    rfi_file_free(context, &content);
    if (status == REEF_OK) {
        journal->file = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        if (journal->file < 0) {
            status = rfi_fail(error, REEF_E_FILE, "%s: %s", rfi_path_show(path), strerror(errno));
        }
    }
    return status;
}

static bool write_whole(int file, const unsigned char *bytes, size_t size, off_t at)
{
    while (size > 0) {
        ssize_t done = pwrite(file, bytes, size, at);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return false;
        }
        bytes += done;
        size -= (size_t)done;
        at += done;
    }
    return true;
}

reef_status rfi_journal_record(rfi_journal *journal, uint64_t round, const unsigned char mark[RFI_HASH_BYTES],
                               reef_error *error)
{
    unsigned char place[RFI_JOURNAL_PLACE];
    if (journal->failed || journal->file < 0) {
        return rfi_fail(error, REEF_E_FILE, "the journal cannot be written since an earlier failure");
    }
    if (round < journal->next || round >= RFI_ROUND_LIMIT) {
        return rfi_fail(error, REEF_E_ORDER, "round %llu was signed already or is beyond all rounds",
                        (unsigned long long)round);
    }
    write_place(place, journal, round + 1, mark);
    errno = 0;
    if (!write_whole(journal->file, place, sizeof place, (off_t)journal->place * RFI_JOURNAL_PLACE) ||
        (journal->sync && fdatasync(journal->file) != 0)) {
        /* After a failed flush the kernel may have dropped the pages: trying again would only seem to help. */
        journal->failed = true;
        return rfi_fail(error, REEF_E_FILE, "the journal cannot be written: %s", strerror(errno));
    }
    journal->next = round + 1;
    memcpy(journal->mark, mark, sizeof journal->mark);
    journal->place = 1 - journal->place;
    journal->damaged = false;
    return REEF_OK;
}

void rfi_journal_close(rfi_journal *journal)
{
    if (journal->file >= 0) {
        (void)close(journal->file);
    }
    journal->file = -1;
}
