/* The folder in which an agent keeps what must outlive the process. */
#include "net/agent.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"
#include "net/audit.h"
#include "net/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static reef_status path_in(const rfi_agent *a, const char *name, char path[RFI_PATH_SIZE], reef_error *error)
{
    return snprintf(path, RFI_PATH_SIZE, "%s/%s", a->folder, name) < RFI_PATH_SIZE
               ? REEF_OK
               : rfi_fail(error, REEF_E_FILE, "the path of the state folder is too long");
}

static reef_status fail_errno(reef_error *error, const char *path)
{
    return rfi_fail(error, REEF_E_FILE, "%s: %s", rfi_path_show(path), strerror(errno));
}

static reef_status take_lock(rfi_agent *a, reef_error *error)
{
    char path[RFI_PATH_SIZE];
    reef_status status = path_in(a, "lock", path, error);
    if (status != REEF_OK) {
        return status;
    }
    a->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (a->lock < 0) {
        return fail_errno(error, path);
    }
    if (flock(a->lock, LOCK_EX | LOCK_NB) != 0) {
        return rfi_fail(error, REEF_E_ORDER, "another process works in %s: one agent per key and state folder",
                        rfi_path_show(a->folder));
    }
    return REEF_OK;
}

/* The coordinator is the one of the first start, or nobody. */
static reef_status pin_coordinator(rfi_agent *a, const char *given, reef_error *error)
{
    char path[RFI_PATH_SIZE];
    char text[RFI_KEY_TEXT + 1] = "";
    reef_status status = path_in(a, "coordinator", path, error);
    if (status != REEF_OK) {
        return status;
    }
    if (given) {
        status = rfi_runfile_signed_by(&a->file, given, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    if (access(path, F_OK) == 0) {
        rfi_file kept = {0};
        status = rfi_file_read(NULL, path, RFI_KEY_TEXT, &kept, error);
        if (status != REEF_OK) {
            return status;
        }
        (void)snprintf(text, sizeof text, "%.*s", (int)strcspn((const char *)kept.bytes, "\n"),
                       (const char *)kept.bytes);
        rfi_file_free(NULL, &kept);
        return rfi_runfile_signed_by(&a->file, text, error);
    }
    if (!given && !rfi_runfile_local(&a->file)) {
        return rfi_fail(
            error, REEF_E_ARG,
            "at the first start --coordinator R... says whose run files are to be trusted; ask them for it");
    }
    rfi_key_print(text, RFI_LETTER_IDENTITY, a->file.coordinator);
    text[RFI_KEY_TEXT - 1] = '\n';
    return rfi_file_write(NULL, path, &(rfi_piece){text, RFI_KEY_TEXT}, 1, error);
}

/* Who can put files there can put an older journal in place, and have the agent sign a round twice. */
static reef_status check_folder(const char *folder, reef_error *error)
{
    struct stat about;
    if (stat(folder, &about) != 0) {
        return fail_errno(error, folder);
    }
    return about.st_mode & S_IWOTH
               ? rfi_fail(error, REEF_E_FILE,
                          "everybody may write to the state folder %s (mode %04o): give the agent a folder of its own, "
                          "or chmod o-w this one",
                          rfi_path_show(folder), (unsigned)(about.st_mode & 07777))
               : REEF_OK;
}

reef_status rfi_state_enter(rfi_agent *a, const rfi_agent_setup *setup, reef_error *error)
{
    if (snprintf(a->folder, sizeof a->folder, "%s", setup->state) >= (int)sizeof a->folder) {
        return rfi_fail(error, REEF_E_FILE, "the path of the state folder is too long");
    }
    if (mkdir(a->folder, S_IRWXU) != 0 && errno != EEXIST) {
        return fail_errno(error, a->folder);
    }
    reef_status status = check_folder(a->folder, error);
    if (status == REEF_OK) {
        status = take_lock(a, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    return pin_coordinator(a, setup->coordinator, error);
}

/* ---- checkpoints ---- */

static const char magic[8] = {'R', 'E', 'E', 'F', 'A', 'G', 'T', '1'};
enum { AT_RUN = 8, AT_KEY = 24, AT_ROUND = 56, AT_SIZE = 64, HEAD = 72 };
static const char *const names[2] = {"checkpoint.1", "checkpoint.2"};

static void write_head(const rfi_agent *a, uint64_t round, size_t size, unsigned char head[HEAD])
{
    memcpy(head, magic, sizeof magic);
    memcpy(head + AT_RUN, a->file.id, RFI_RUN_ID_BYTES);
    memcpy(head + AT_KEY, a->secret.identity.public_key, RFI_KEY_BYTES);
    rfi_put(head + AT_ROUND, round, 8);
    rfi_put(head + AT_SIZE, size, 8);
}

reef_status rfi_checkpoint_put(rfi_agent *a, reef_error *error)
{
    char path[RFI_PATH_SIZE];
    size_t size = reef_member_size(a->member);
    unsigned char *bytes = rfi_allocate(NULL, HEAD + size + RFI_HASH_BYTES);
    if (!bytes) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a checkpoint");
    }
    write_head(a, rfi_node_rounds(a->node)->round, size, bytes);
    reef_status status = reef_member_save(a->member, bytes + HEAD, size, error);
    rfi_hash(bytes + HEAD + size, bytes, HEAD + size);
    if (status == REEF_OK) {
        status = path_in(a, names[1 - a->generation], path, error);
    }
    if (status == REEF_OK) {
        status = rfi_file_write(NULL, path, &(rfi_piece){bytes, HEAD + size + RFI_HASH_BYTES}, 1, error);
    }
    if (status == REEF_OK) {
        a->generation = 1 - a->generation;
    }
    rfi_release(NULL, bytes);
    return status;
}

/* Whether the file is a whole checkpoint of this agent; its round. */
static bool is_whole(const rfi_agent *a, const rfi_file *file, uint64_t *round)
{
    unsigned char head[HEAD];
    unsigned char hash[RFI_HASH_BYTES];
    if (file->size < HEAD + RFI_HASH_BYTES) {
        return false;
    }
    size_t size = file->size - HEAD - RFI_HASH_BYTES;
    *round = rfi_take(file->bytes + AT_ROUND, 8);
    write_head(a, *round, size, head);
    rfi_hash(hash, file->bytes, HEAD + size);
    return *round < RFI_ROUND_LIMIT && memcmp(head, file->bytes, HEAD) == 0 &&
           memcmp(hash, file->bytes + HEAD + size, sizeof hash) == 0;
}

/* A state that the member refuses is as good as none; one that there is no memory for is not: the agent would begin anew without it. */
static reef_status take_whole(rfi_agent *a, const rfi_file *file, bool *taken, reef_error *error)
{
    reef_status status = reef_member_load(a->member, file->bytes + HEAD, file->size - HEAD - RFI_HASH_BYTES, error);
    *taken = status == REEF_OK;
    return status == REEF_E_NOMEM ? status : REEF_OK;
}

/* Reads one of the two; not there, not whole or not this agent's: as good as none. */
static reef_status read_one(const rfi_agent *a, int which, rfi_file *file, bool *whole, uint64_t *round,
                            reef_error *error)
{
    char path[RFI_PATH_SIZE];
    reef_status status = path_in(a, names[which], path, error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_file_read(NULL, path, SIZE_MAX / 2, file, error);
    *whole = status == REEF_OK && is_whole(a, file, round);
    return status == REEF_E_NOMEM ? status : REEF_OK;
}

reef_status rfi_checkpoint_take(rfi_agent *a, uint64_t *round, reef_error *error)
{
    rfi_file files[2] = {{0}};
    uint64_t rounds[2] = {0};
    bool whole[2] = {false};
    reef_status status = REEF_OK;
    for (int i = 0; i < 2 && status == REEF_OK; i++) {
        status = read_one(a, i, &files[i], &whole[i], &rounds[i], error);
    }
    int newest = whole[1] && (!whole[0] || rounds[1] > rounds[0]);
    bool taken = false;
    for (int i = 0; i < 2 && !taken && status == REEF_OK; i++) { /* the newer first */
        int which = i == 0 ? newest : 1 - newest;
        if (whole[which]) {
            status = take_whole(a, &files[which], &taken, error);
        }
        if (taken) {
            *round = rounds[which];
            a->generation = which;
        }
    }
    rfi_file_free(NULL, &files[0]);
    rfi_file_free(NULL, &files[1]);
    return status;
}

/* ---- the audit log ---- */

void rfi_audit(rfi_agent *a)
{
    const rfi_window *window = rfi_node_window(a->node);
    for (ptrdiff_t i = 0; i < window->setup.count * RFI_CAUSES; i++) {
        const rfi_peer *peer = &window->peers[i / RFI_CAUSES];
        rfi_cause cause = (rfi_cause)(i % RFI_CAUSES);
        uint64_t more = peer->counts[cause] - a->audited[i];
        if (more == 0 || !rfi_is_offence(cause)) {
            continue;
        }
        (void)rfi_audit_line(a->folder, "refused", "round=%llu neighbour=%s cause=%s count=%llu",
                             (unsigned long long)rfi_node_rounds(a->node)->round,
                             a->file.participants[peer->who.agent].name, rfi_cause_text(cause),
                             (unsigned long long)more);
        rfi_tell_refusals(a, peer, cause, more);
        a->audited[i] = peer->counts[cause];
    }
}
