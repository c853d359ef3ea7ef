/* The folder of results: one run at a time, of one configuration.
 *
 *   .lock           held (flock) while a run works in the folder; names the process
 *   config.yaml, overrides.txt   what the folder belongs to, written first
 *   manifest.json   the mark of completeness: removed first, written last
 * What belongs to an earlier run and is not made by this one (arrays/, models/, the page; checkpoints unless the run is resumed) is removed; files
 * of other names stay. */
#include "base/error.h"
#include "experiment/run/runner.h"
#include "io/file.h"
#include "io/stream.h"
#include "io/yaml.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = RFI_FOLDER_SIZE + 300 };

static const char *path_of(const rfi_runner *r, const char *name, char path[PATH_SIZE])
{
    (void)snprintf(path, PATH_SIZE, "%s/%s", r->options->folder, name);
    return path;
}

/* ---- the lock ---- */

/* "process 77 on host since 2026-01-01T00:00:00Z", as the holder wrote it; what cannot be shown is left out. */
static void read_holder(int lock, char *holder, size_t size)
{
    ssize_t length = pread(lock, holder, size - 1, 0);
    holder[length > 0 ? length : 0] = '\0';
    for (char *c = holder; *c; c++) {
        if (*c < ' ' || *c > '~') {
            *c = '?';
        }
    }
    if (holder[0] == '\0') {
        (void)snprintf(holder, size, "another process");
    }
}

static void write_holder(int lock)
{
    char host[64] = "?";
    char when[32] = "?";
    char text[160];
    struct tm now;
    time_t seconds = time(NULL);
    (void)gethostname(host, sizeof host - 1);
    if (gmtime_r(&seconds, &now)) {
        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &now);
    }
    int length = snprintf(text, sizeof text, "process %ld on %s since %s", (long)getpid(), host, when);
    if (ftruncate(lock, 0) != 0 || pwrite(lock, text, (size_t)length, 0) != length) {
        return; /* who waits learns less; the lock holds all the same */
    }
}

/* How long a resumed run waits for the lock, in tenths of a second: ranks of a job that was killed may outlive its launcher a little. */
enum { PATIENCE = 100 };

/* Tries, and with `patient` keeps trying for a while; errno says why it failed. */
static bool try_lock(int file, bool patient)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    bool locked = flock(file, LOCK_EX | LOCK_NB) == 0;
    for (int i = 0; !locked && errno == EWOULDBLOCK && patient && i < PATIENCE; i++) {
        (void)nanosleep(&pause, NULL);
        locked = flock(file, LOCK_EX | LOCK_NB) == 0;
    }
    return locked;
}

/* A file system without locks (ENOLCK and the like) is no reason not to run. */
static reef_status take_lock(rfi_runner *r, reef_error *error)
{
    char path[PATH_SIZE];
    char holder[160];
    r->lock_file = open(path_of(r, ".lock", path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (r->lock_file < 0) {
        return rfi_fail(error, REEF_E_FILE, "%s: cannot be created: %s", rfi_path_show(path), strerror(errno));
    }
    if (try_lock(r->lock_file, r->options->resume)) {
        write_holder(r->lock_file);
        return REEF_OK;
    }
    if (errno != EWOULDBLOCK) {
        return REEF_OK;
    }
    read_holder(r->lock_file, holder, sizeof holder);
    (void)close(r->lock_file);
    r->lock_file = -1;
    return rfi_fail(error, REEF_E_FILE, "%s is in use: %s is running in it", rfi_path_show(r->options->folder), holder);
}

void rfi_folder_leave(rfi_runner *r)
{
    if (r->lock_file >= 0) {
        if (ftruncate(r->lock_file, 0) != 0) {
            errno = 0; /* it names who held it last, which does no harm */
        }
        (void)close(r->lock_file);
        r->lock_file = -1;
    }
}

/* ---- of which configuration ---- */

static void print_overrides(const reef_experiment *e, rfi_text *text)
{
    for (ptrdiff_t i = 0; i < e->override_count; i++) {
        rfi_text_add(text, "%s\n", e->override_texts[i]);
    }
}

/* Whether the folder has a file of this name, and with other bytes; none at all is as good as an empty one if `optional`. */
static bool differs(const rfi_runner *r, const char *name, const char *bytes, size_t size, bool optional)
{
    char path[PATH_SIZE];
    rfi_file file = {0};
    if (rfi_file_read(r->experiment->context, path_of(r, name, path), RFI_YAML_BYTES_MAX, &file, NULL) != REEF_OK) {
        return access(path, F_OK) == 0 || (optional && size > 0);
    }
    bool same = file.size == size && (size == 0 || memcmp(file.bytes, bytes, size) == 0);
    rfi_file_free(r->experiment->context, &file);
    return !same;
}

/* A file that a run would replace or remove, in a folder that no run has been in; NULL: there is none. */
static const char *find_foreign(const rfi_runner *r)
{
    static const char *const files[] = {"manifest.json", "report.html", "summary.csv",
                                        "curves.csv",    "trust.csv",   "check.txt"};
    char path[PATH_SIZE];
    for (ptrdiff_t i = 0; i < RFI_COUNT(files); i++) {
        if (access(path_of(r, files[i], path), F_OK) == 0) {
            return files[i];
        }
    }
    return NULL;
}

static reef_status check_configuration(const rfi_runner *r, const rfi_text *overrides, reef_error *error)
{
    const reef_experiment *e = r->experiment;
    char path[PATH_SIZE];
    bool known = access(path_of(r, "config.yaml", path), F_OK) == 0;
    bool other = differs(r, "config.yaml", e->text, e->text_size, false) ||
                 (known && differs(r, "overrides.txt", overrides->bytes, overrides->size, true));
    const char *foreign = known ? NULL : find_foreign(r);
    if (r->options->force || (!other && !foreign)) {
        return REEF_OK;
    }
    if (foreign) {
        return rfi_fail(
            error, REEF_E_EXISTS,
            "%s has a %s but no config.yaml: it is not of a run; use another folder, or replace it (--force)",
            rfi_path_show(r->options->folder), foreign);
    }
    return rfi_fail(error, REEF_E_EXISTS,
                    "%s has the results of another configuration; use another folder, or replace them (--force)",
                    rfi_path_show(r->options->folder));
}

static reef_status write_configuration(const rfi_runner *r, const rfi_text *overrides, reef_error *error)
{
    const reef_experiment *e = r->experiment;
    char path[PATH_SIZE];
    const rfi_text text = {.context = e->context, .bytes = e->text, .size = e->text_size};
    reef_status status = rfi_text_write(&text, r->options->folder, "config.yaml", error);
    if (status == REEF_OK && overrides->size > 0) {
        status = rfi_text_write(overrides, r->options->folder, "overrides.txt", error);
    } else if (status == REEF_OK) {
        (void)unlink(path_of(r, "overrides.txt", path));
    }
    return status;
}

/* ---- what is left of earlier runs ---- */

/* Whether a file in one of these folders has a name that runs give. Others are somebody's: the results may go to a folder that has models
 * and checkpoints of its own. */
static bool is_array(const char *name)
{
    char own[64];
    bool found = strcmp(name, "round.npy") == 0 || strcmp(name, "trust.npy") == 0;
    for (int m = 0; m < 2 * RFI_METRICS && !found; m++) {
        (void)snprintf(own, sizeof own, "%s%s.npy", rfi_metric_name((rfi_metric)(m / 2)), m % 2 ? "_se" : "");
        found = strcmp(name, own) == 0;
    }
    return found;
}

static bool is_model(const char *name)
{
    size_t digits = strncmp(name, "cell-", 5) == 0 ? strspn(name + 5, "0123456789") : 0;
    return digits > 0 && strcmp(name + 5 + digits, ".safetensors") == 0;
}

/* rfi_checkpoint_path, and the parts of ranks. */
static bool is_checkpoint(const char *name)
{
    size_t digits = strspn(name, "0123456789abcdef") == 16 && name[16] == '-' ? strspn(name + 17, "0123456789") : 0;
    return digits > 0 && (name[17 + digits] == '\0' || name[17 + digits] == '.');
}

/* Files of earlier runs, and the folder if nothing else is in it. */
static void remove_folder(const rfi_runner *r, const char *name, bool is_ours(const char *name))
{
    char path[PATH_SIZE];
    char file[PATH_SIZE + 300];
    DIR *folder = opendir(path_of(r, name, path));
    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        (void)snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (is_ours(entry->d_name)) {
            (void)unlink(file);
        }
    }
    if (folder) {
        (void)closedir(folder);
        rfi_sweep_folder(path);
        (void)rmdir(path);
    }
}

static void remove_old(const rfi_runner *r)
{
    static const char *const files[] = {"manifest.json", "report.html"};
    char path[PATH_SIZE];
    assert(r->lock_file >= 0); /* the folder is ours */
    for (ptrdiff_t i = 0; i < RFI_COUNT(files); i++) {
        (void)unlink(path_of(r, files[i], path));
    }
    remove_folder(r, "arrays", is_array);
    remove_folder(r, "models", is_model);
    if (!r->options->resume) {
        remove_folder(r, "checkpoints", is_checkpoint);
    }
}

static reef_status find_cells(rfi_runner *r, reef_error *error)
{
    if ((size_t)snprintf(r->folder, sizeof r->folder, "%s/cells", r->options->folder) >= sizeof r->folder) {
        return rfi_fail(error, REEF_E_FILE, "the path of the results folder is too long");
    }
    return REEF_OK;
}

reef_status rfi_folder_visit(rfi_runner *r, reef_error *error)
{
    reef_status status = find_cells(r, error);
    if (status != REEF_OK) {
        return status;
    }
    return take_lock(r, error);
}

reef_status rfi_folder_enter(rfi_runner *r, reef_error *error)
{
    const char *folder = r->options->folder;
    if (!folder) {
        return REEF_OK;
    }
    reef_status found = find_cells(r, error);
    if (found != REEF_OK) {
        return found;
    }
    if (r->engine && r->engine->rank) { /* rank 0 does it for all */
        return REEF_OK;
    }
    rfi_text overrides = {.context = r->experiment->context};
    print_overrides(r->experiment, &overrides);
    reef_status status = rfi_make_folder(folder, error);
    if (status == REEF_OK) {
        status = take_lock(r, error);
    }
    if (status == REEF_OK) {
        status = check_configuration(r, &overrides, error);
    }
    if (status == REEF_OK) {
        remove_old(r);
        status = write_configuration(r, &overrides, error);
    }
    rfi_text_free(&overrides);
    if (status != REEF_OK) {
        return status;
    }
    return rfi_make_folder(r->folder, error);
}
