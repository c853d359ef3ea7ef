/* Which run files of later epochs an observer keeps. */
#include "net/dash_later.h"

#include "base/error.h"
#include "io/file.h"
#include "net/epoch.h"

#include <string.h>

static const double look_seconds = 1;

static void drop(rfi_later *l, int at)
{
    rfi_runfile_free(&l->files[at]);
    l->count--;
    memmove(l->files + at, l->files + at + 1, (size_t)(l->count - at) * sizeof *l->files);
}

/* Takes the file over, unless there is one of its epoch, or room for earlier ones alone. */
static bool keep(rfi_later *l, rfi_runfile *next)
{
    int at = 0;
    while (at < l->count && l->files[at].terms.epoch < next->terms.epoch) {
        at++;
    }
    if (at == RFI_LATER_FILES || (at < l->count && l->files[at].terms.epoch == next->terms.epoch)) {
        return false;
    }
    if (l->count == RFI_LATER_FILES) {
        drop(l, l->count - 1);
    }
    memmove(l->files + at + 1, l->files + at, (size_t)(l->count - at) * sizeof *l->files);
    l->files[at] = *next;
    l->count++;
    return true;
}

/* As rfi_epoch_follows, but files in between may be missing: an observer needs only to know who is who. */
static reef_status may_follow(const rfi_runfile *file, const rfi_runfile *next, reef_error *why)
{
    rfi_runfile moved = *next;
    if (next->terms.epoch <= file->terms.epoch) {
        return rfi_fail(why, REEF_E_ARG, "epoch %lld of run %s is over", (long long)next->terms.epoch, file->run);
    }
    moved.terms.epoch = file->terms.epoch + 1;
    return rfi_epoch_follows(file, &moved, why);
}

static bool is_known(const rfi_later *l, const rfi_runfile *file, const unsigned char hash[RFI_HASH_BYTES])
{
    bool known = memcmp(hash, file->hash, RFI_HASH_BYTES) == 0;
    for (int i = 0; i < l->count; i++) {
        known = known || memcmp(hash, l->files[i].hash, RFI_HASH_BYTES) == 0;
    }
    return known;
}

static bool take(rfi_later *l, const rfi_runfile *file, const void *bytes, size_t size, const char *source,
                 reef_error *why)
{
    unsigned char by[RFI_KEY_BYTES];
    unsigned char hash[RFI_HASH_BYTES];
    size_t draft = size;
    rfi_runfile next;
    *why = (reef_error){REEF_OK, ""};
    if (!rfi_runfile_signed(bytes, &draft, by, hash) || memcmp(by, file->coordinator, sizeof by) != 0) {
        (void)rfi_fail(why, REEF_E_FORMAT, "it is not signed by the coordinator of run %s", file->run);
        return false;
    }
    if (is_known(l, file, hash) || rfi_runfile_read(NULL, bytes, size, source, &next, why) != REEF_OK) {
        return false;
    }
    if (may_follow(file, &next, why) != REEF_OK || !keep(l, &next)) {
        rfi_runfile_free(&next);
        return false;
    }
    return true;
}

bool rfi_later_take(rfi_later *l, const rfi_runfile *file, const void *bytes, size_t size, reef_error *why)
{
    if (size == 0 || size > RFI_RUNFILE_MAX) {
        (void)rfi_fail(why, REEF_E_FORMAT, "a run file has 1 to %zu bytes, not %zu", RFI_RUNFILE_MAX, size);
        return false;
    }
    return take(l, file, bytes, size, "run file of the network", why);
}

/* Whether the file on the disk is another one than when last looked at. */
static bool has_changed(rfi_later *l, const char *path)
{
    struct stat now;
    if (stat(path, &now) != 0) {
        return false;
    }
    bool same = now.st_ino == l->seen.st_ino && now.st_size == l->seen.st_size &&
                now.st_mtim.tv_sec == l->seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == l->seen.st_mtim.tv_nsec;
    l->seen = now;
    return !same;
}

bool rfi_later_look(rfi_later *l, const rfi_runfile *file, const char *path, double now, reef_error *why)
{
    rfi_file bytes = {0};
    *why = (reef_error){REEF_OK, ""};
    if (now - l->looked_at < look_seconds) {
        return false;
    }
    l->looked_at = now;
    if (!has_changed(l, path) || rfi_file_read(NULL, path, RFI_RUNFILE_MAX, &bytes, why) != REEF_OK) {
        return false;
    }
    bool new = take(l, file, bytes.bytes, bytes.size, path, why);
    rfi_file_free(NULL, &bytes);
    return new;
}

const rfi_runfile *rfi_later_find(const rfi_later *l, int64_t epoch)
{
    for (int i = 0; i < l->count; i++) {
        if (l->files[i].terms.epoch == epoch) {
            return &l->files[i];
        }
    }
    return NULL;
}

void rfi_later_turn(rfi_later *l, int64_t epoch, rfi_runfile *file)
{
    while (l->count > 0 && l->files[0].terms.epoch < epoch) {
        drop(l, 0);
    }
    *file = l->files[0];
    l->files[0] = (rfi_runfile){0};
    drop(l, 0);
}

void rfi_later_free(rfi_later *l)
{
    while (l->count > 0) {
        drop(l, l->count - 1);
    }
}
