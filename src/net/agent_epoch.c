/* Going over to the next epoch. The coordinator's next run file takes the place of the one the agent was started with; the agent sees that,
 * checks that it may follow, and works by it from the round on that it names. Nothing of what was signed or learned is lost: journal, model,
 * the rule's memory, and what is held of those who are neighbours in both.
 *
 * `run.yaml` in the state folder is the file in force, so that an agent that is started again before that round goes on with the others;
 * `run.before.yaml` is the one before, whose proofs against two-faced agents still count. */
#include "net/agent.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"
#include "net/audit.h"
#include "net/epoch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const double look_seconds = 1;

/* ---- the file in force ---- */

/* Rehearsals that do not care for the disk are about thousands of agents on one machine: they keep no copy. */
static reef_status keep_file(const rfi_agent *a, reef_error *error)
{
    rfi_file bytes = {0};
    if (a->file.is_test && !a->file.test.sync) {
        return REEF_OK;
    }
    reef_status status = rfi_file_read(NULL, a->run_file, RFI_RUNFILE_MAX, &bytes, error);
    if (status == REEF_OK) {
        status = rfi_file_write(NULL, a->kept_file, &(rfi_piece){bytes.bytes, bytes.size}, 1, error);
    }
    rfi_file_free(NULL, &bytes);
    return status;
}

/* The hash of the file before this one, if there was one. */
static void recall(rfi_agent *a)
{
    rfi_runfile past;
    if (rfi_runfile_load(NULL, a->past_file, &past, NULL) != REEF_OK) {
        return;
    }
    if (memcmp(past.id, a->file.id, sizeof past.id) == 0 && past.terms.epoch < a->file.terms.epoch) {
        memcpy(a->before, past.hash, sizeof a->before);
    }
    rfi_runfile_free(&past);
}

/* The file that was given is the one to come; the one that was kept is in force until then. */
static reef_status go_back(rfi_agent *a, rfi_runfile *kept, reef_error *error)
{
    a->next = a->file;
    a->has_next = true;
    a->file = *kept;
    rfi_roster_free(&a->roster);
    return rfi_roster_create(NULL, &a->file, &a->roster, error);
}

reef_status rfi_epoch_resume(rfi_agent *a, reef_error *error)
{
    rfi_runfile kept;
    if (snprintf(a->kept_file, sizeof a->kept_file, "%s/run.yaml", a->folder) >= (int)sizeof a->kept_file ||
        snprintf(a->past_file, sizeof a->past_file, "%s/run.before.yaml", a->folder) >= (int)sizeof a->past_file) {
        return rfi_fail(error, REEF_E_FILE, "the path of the state folder is too long");
    }
    recall(a);
    if (access(a->kept_file, F_OK) != 0 || rfi_runfile_load(NULL, a->kept_file, &kept, NULL) != REEF_OK) {
        return keep_file(a, error);
    }
    bool same_run = memcmp(kept.id, a->file.id, sizeof kept.id) == 0;
    bool earlier = same_run && kept.terms.epoch > a->file.terms.epoch;
    if (same_run && rfi_epoch_follows(&kept, &a->file, NULL) == REEF_OK &&
        rfi_runfile_find(&kept, a->secret.identity.public_key) == a->place) {
        return go_back(a, &kept, error);
    }
    bool same = memcmp(kept.hash, a->file.hash, sizeof kept.hash) == 0;
    long long epoch = (long long)kept.terms.epoch;
    rfi_runfile_free(&kept);
    if (earlier) {
        return rfi_fail(error, REEF_E_ARG, "the run file is of epoch %lld, but this agent is in epoch %lld already",
                        (long long)a->file.terms.epoch, epoch);
    }
    return same ? REEF_OK : keep_file(a, error);
}

/* ---- the file to come ---- */

static void expect(rfi_agent *a)
{
    rfi_edition after = {.known = true, .epoch = (uint32_t)a->next.terms.epoch, .from = (uint64_t)a->next.terms.from};
    memcpy(after.run, a->next.hash, sizeof after.run);
    rfi_node_expect(a->node, &after);
    RFI_LOG(&a->log, REEF_LOG_INFO, "epoch_known", RFI_LOG_NUMBER("epoch", a->next.terms.epoch),
            RFI_LOG_NUMBER("from", a->next.terms.from), RFI_LOG_NUMBER("round", rfi_node_rounds(a->node)->round));
}

static reef_status may_follow(const rfi_agent *a, const rfi_runfile *next, reef_error *error)
{
    if (next->terms.epoch == a->file.terms.epoch) {
        (void)rfi_audit_line(a->folder, "second_file", "epoch=%lld", (long long)next->terms.epoch);
        return rfi_fail(error, REEF_E_ARG, "the coordinator has signed two files for epoch %lld; the second is ignored",
                        (long long)next->terms.epoch);
    }
    if (next->terms.malicious < a->malicious_at_least) {
        return rfi_fail(error, REEF_E_ARG, "the next epoch allows for malicious: %g only, not %g",
                        next->terms.malicious, a->malicious_at_least);
    }
    return rfi_epoch_follows(&a->file, next, error);
}

static void take_next(rfi_agent *a)
{
    rfi_runfile next;
    reef_error why = {REEF_OK, ""};
    reef_status status = rfi_runfile_load(NULL, a->run_file, &next, &why);
    if (status == REEF_OK && memcmp(next.hash, a->file.hash, sizeof next.hash) == 0) {
        rfi_runfile_free(&next);
        return;
    }
    if (status == REEF_OK) {
        status = may_follow(a, &next, &why);
        if (status != REEF_OK) {
            rfi_runfile_free(&next);
        }
    }
    if (status != REEF_OK) {
        RFI_LOG(&a->log, REEF_LOG_WARNING, "run_file_ignored", RFI_LOG_TEXT("why", why.text));
        return;
    }
    rfi_runfile_free(&a->next);
    a->next = next;
    a->has_next = true;
    expect(a);
}

/* Whether the file is another one than when last looked at. */
static bool has_changed(rfi_agent *a)
{
    struct stat now;
    if (stat(a->run_file, &now) != 0) {
        return false;
    }
    bool same = now.st_ino == a->seen.st_ino && now.st_size == a->seen.st_size &&
                now.st_mtim.tv_sec == a->seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == a->seen.st_mtim.tv_nsec;
    a->seen = now;
    return !same;
}

void rfi_epoch_begin(rfi_agent *a)
{
    (void)has_changed(a);
    if (a->has_next) {
        expect(a);
    }
}

void rfi_epoch_look(rfi_agent *a, double now)
{
    if (now - a->looked_at < look_seconds) {
        return;
    }
    a->looked_at = now;
    if (has_changed(a)) {
        take_next(a);
    }
}

/* ---- going over ---- */

bool rfi_epoch_due(const rfi_agent *a)
{
    const rfi_rounds *rounds = rfi_node_rounds(a->node);
    bool between = rounds->phase == RFI_PHASE_READY || rounds->phase == RFI_PHASE_GATHER;
    return a->has_next && between && rfi_rounds_aligned(rounds) >= (uint64_t)a->next.terms.from;
}

/* The next file and all that follows from it. The member goes first: it uses the rule of the old one. */
static reef_status replace_file(rfi_agent *a, reef_error *error)
{
    unsigned char layout[RFI_HASH_BYTES];
    memcpy(layout, a->roster.shape.layout, sizeof layout);
    memcpy(a->before, a->file.hash, sizeof a->before);
    (void)rename(a->kept_file, a->past_file); /* without it, proofs of the epoch before are not taken after a restart */
    rfi_agent_free_member(a);
    rfi_roster_free(&a->roster);
    rfi_runfile_free(&a->file);
    a->file = a->next;
    a->next = (rfi_runfile){0};
    a->has_next = false;
    reef_status status = rfi_roster_create(NULL, &a->file, &a->roster, error);
    memcpy(a->roster.shape.layout, layout, sizeof layout);
    return status;
}

/* From here on there is no way back: whatever fails ends the agent before it signs anything else. */
static reef_status go_over(rfi_agent *a, reef_error *error)
{
    size_t size = reef_member_size(a->member);
    unsigned char *bytes = rfi_allocate(NULL, size); /* the model and the rule's memory */
    if (!bytes) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the next epoch");
    }
    reef_status status = reef_member_save(a->member, bytes, size, error);
    if (status == REEF_OK) {
        status = replace_file(a, error);
    }
    if (status == REEF_OK) {
        status = rfi_agent_make_member(a, error);
    }
    if (status == REEF_OK) {
        status = reef_member_load(a->member, bytes, size, error);
    }
    rfi_release(NULL, bytes);
    if (status != REEF_OK) {
        return status;
    }
    return rfi_agent_make_node(a, rfi_node_rounds(a->node)->round, error);
}

/* What was told and written down of neighbours before is not told again. */
static void settle_counts(rfi_agent *a)
{
    const rfi_window *window = rfi_node_window(a->node);
    for (ptrdiff_t i = 0; i < window->setup.count * RFI_CAUSES; i++) {
        a->audited[i] = a->told[i] = window->peers[i / RFI_CAUSES].counts[i % RFI_CAUSES];
    }
}

reef_status rfi_epoch_turn(rfi_agent *a, reef_error *error)
{
    rfi_node *old = a->node;
    if (a->next.participants[a->place].removed) {
        a->removed = true;
        return rfi_fail(error, REEF_E_ORDER, "%s was removed from run %s in epoch %lld; its last model is kept",
                        a->file.participants[a->place].name, a->file.run, (long long)a->next.terms.epoch);
    }
    (void)rfi_checkpoint_put(a, NULL);
    rfi_audit(a);
    rfi_links_close(a);
    reef_status status = go_over(a, error);
    if (status != REEF_OK) { /* half of it is another epoch's: nothing more is done with it */
        rfi_node_destroy(&a->node);
        return status;
    }
    rfi_node_succeed(a->node, old);
    rfi_node_destroy(&old);
    settle_counts(a);
    a->phi = NULL;
    a->epochs++;
    a->seen = (struct stat){0}; /* another one may be there already */
    rfi_telemetry_forget(&a->telemetry);
    RFI_LOG(&a->log, REEF_LOG_INFO, "epoch", RFI_LOG_NUMBER("epoch", a->file.terms.epoch),
            RFI_LOG_NUMBER("round", rfi_node_rounds(a->node)->round),
            RFI_LOG_NUMBER("neighbours", rfi_node_window(a->node)->setup.count));
    return keep_file(a, error);
}
