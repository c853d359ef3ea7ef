/* Symbolic links are followed by hand, since the new file is made beside their end. */
#include "io/target.h"

#include "base/error.h"
#include "io/file.h"
#include "io/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <reef/file.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40, FOLDER_TRIES = 100 };

/* path = where the link at `path` leads. False with errno set: EINVAL if it is no link, ENOENT if it is nothing. */
static bool follow(char path[RFI_PATH_MAX])
{
    char to[RFI_PATH_MAX];
    const char *slash = strrchr(path, '/');
    ssize_t length = readlink(path, to, sizeof to);
    if (length < 0) {
        return false;
    }
    size_t folder = length > 0 && to[0] == '/' ? 0 : slash ? (size_t)(slash - path) + 1 : 0;
    if (folder + (size_t)length >= RFI_PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(path + folder, to, (size_t)length);
    path[folder + (size_t)length] = '\0';
    return true;
}

/* Follows links to the end. False with errno set. */
static bool follow_all(char path[RFI_PATH_MAX])
{
    for (int i = 0; i < LINKS_MAX; i++) {
        if (!follow(path)) {
            return errno == EINVAL || errno == ENOENT;
        }
    }
    errno = ELOOP;
    return false;
}

/* The system is asked about the path as it was given: it may refuse to follow another user's link, and it knows links that are more than
 * their text (/dev/stdout). */
static reef_status look_at(const char *path, rfi_target *target, struct stat *about, reef_error *error)
{
    *about = (struct stat){0};
    target->exists = stat(path, about) == 0;
    if (!target->exists && errno != ENOENT) {
        return rfi_fail_errno(error, path, "write", errno);
    }
    target->type = about->st_mode & S_IFMT;
    target->mode = about->st_mode & (S_IRWXU | S_IRWXG | S_IRWXO | (S_ISDIR(about->st_mode) ? S_ISGID : 0));
    target->owner = about->st_uid;
    target->group = about->st_gid;
    return REEF_OK;
}

reef_status rfi_target_find(const char *path, rfi_target *target, reef_error *error)
{
    struct stat about;
    struct stat end;
    size_t length = strlen(path);
    if (length >= RFI_PATH_MAX) {
        return rfi_fail_errno(error, path, "write", ENAMETOOLONG);
    }
    memcpy(target->path, path, length + 1);
    reef_status status = look_at(path, target, &about, error);
    if (status != REEF_OK || (target->exists && !S_ISREG(about.st_mode))) {
        return status;
    }
    if (!follow_all(target->path)) {
        return rfi_fail_errno(error, path, "write", errno);
    }
    if (target->exists &&
        (lstat(target->path, &end) != 0 || end.st_dev != about.st_dev || end.st_ino != about.st_ino)) {
        return rfi_fail(error, REEF_E_FILE, "%s: cannot write: the symbolic link cannot be resolved",
                        rfi_path_show(path));
    }
    return REEF_OK;
}

void rfi_target_dress(const rfi_target *target, int descriptor)
{
    struct stat now;
    mode_t mode = target->mode;
    if (!target->exists) {
        return;
    }
    (void)!fchown(descriptor, target->owner, target->group);
    if (fstat(descriptor, &now) != 0 || now.st_gid != target->group) {
        mode = (mode & ~(mode_t)(S_IRWXG | S_ISGID)) | (mode & S_IRWXO) << 3;
    }
    (void)fchmod(descriptor, mode);
}

bool rfi_target_make_folder(const rfi_target *target, char *name, size_t room)
{
    int made = -1;
    for (int i = 0; made != 0 && i < FOLDER_TRIES; i++) {
        (void)snprintf(name, room, "%s.%ld-%d.tmp", target->path, (long)getpid(), i);
        made = mkdir(name, target->exists ? S_IRWXU : S_IRWXU | S_IRWXG | S_IRWXO);
        if (made != 0 && errno != EEXIST) {
            return false;
        }
    }
    int folder = made == 0 && target->exists ? open(name, O_RDONLY | O_CLOEXEC | O_DIRECTORY) : -1;
    if (folder >= 0) {
        rfi_target_dress(target, folder);
        (void)close(folder);
    }
    return made == 0;
}

/* What `path` has before its last slash: "/" or "." if nothing. */
static bool look_at_folder(const char *path, struct stat *about)
{
    char folder[RFI_PATH_MAX];
    const char *slash = strrchr(path, '/');
    (void)snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    return stat(folder, about) == 0;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool reef_file_same(const char *a, const char *b)
{
    struct stat about_a;
    struct stat about_b;
    rfi_target target_a;
    rfi_target target_b;
    if (!a || !b) {
        return false;
    }
    bool is_a = stat(a, &about_a) == 0;
    bool is_b = stat(b, &about_b) == 0;
    if (!is_a && !is_b && rfi_target_find(a, &target_a, NULL) == REEF_OK &&
        rfi_target_find(b, &target_b, NULL) == REEF_OK) {
        is_a = look_at_folder(target_a.path, &about_a);
        is_b =
            look_at_folder(target_b.path, &about_b) && strcmp(last_part(target_a.path), last_part(target_b.path)) == 0;
    }
    return is_a && is_b && about_a.st_dev == about_b.st_dev && about_a.st_ino == about_b.st_ino;
}
