/* Going over to the next epoch. The coordinator's next run file takes the place of the one the agent was started with, or comes through the
 * network (net/handout.h); the agent checks that it may follow, and works by it from the round on that it names. Nothing of what was signed or
 * learned is lost: journal, model, the rule's memory, and what is held of those who are neighbours in both.
 *
 * `run.yaml` in the state folder is the file in force, so that an agent that is started again before that round goes on with the others, and
 * one that is started with a file of an epoch that is over does not go back to it. `run.next.yaml` is the one to come, `run.before.yaml` the
 * one before, whose proofs against two-faced agents still count. */
#include "net/agent.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"
#include "net/audit.h"
#include "net/epoch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const double look_seconds = 1;
static const double pass_on_seconds = 10;
static const double complain_seconds = 60;
/* How long the last model of an epoch may take to reach a broker. */
static const double deliver_seconds = 3;

/* ---- the file in force ---- */

/* Rehearsals that do not care for the disk are about thousands of agents on one machine: they keep no copy. */
static bool keeps_files(const rfi_agent *a)
{
    return !a->file.is_test || a->file.test.sync;
}

static reef_status keep_file(const rfi_agent *a, reef_error *error)
{
    rfi_file bytes = {0};
    if (!keeps_files(a)) {
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

/* Works by another file than the one that was given. */
static reef_status work_by(rfi_agent *a, const rfi_runfile *file, reef_error *error)
{
    a->file = *file;
    rfi_roster_free(&a->roster);
    reef_status status = rfi_roster_create(NULL, &a->file, &a->roster, error);
    if (status == REEF_OK && (rfi_runfile_find(&a->file, a->secret.identity.public_key) != a->place ||
                              a->file.participants[a->place].removed)) {
        return rfi_fail(error, REEF_E_ARG, "the state folder %.200s belongs to another agent", a->folder);
    }
    return status;
}

/* The given file is the one to come. */
static reef_status wait_for_given(rfi_agent *a, const rfi_runfile *kept, reef_error *error)
{
    a->next = a->file;
    a->has_next = true;
    reef_status status = work_by(a, kept, error);
    if (status == REEF_OK) {
        status = rfi_file_read(NULL, a->run_file, RFI_RUNFILE_MAX, &a->next_bytes, error);
    }
    if (status != REEF_OK || !keeps_files(a)) {
        return status;
    }
    const rfi_piece all = {a->next_bytes.bytes, a->next_bytes.size};
    return rfi_file_write(NULL, a->next_file, &all, 1, error);
}

/* The state folder has a file of the same run. A later one counts: epochs that are over do not come back. The one before the given one is
 * in force until that begins. */
static reef_status choose(rfi_agent *a, rfi_runfile *kept, reef_error *error)
{
    if (kept->terms.epoch > a->file.terms.epoch) {
        RFI_LOG(&a->log, REEF_LOG_INFO, "run_file_kept", RFI_LOG_NUMBER("epoch", kept->terms.epoch),
                RFI_LOG_NUMBER("given", a->file.terms.epoch));
        rfi_runfile_free(&a->file);
        return work_by(a, kept, error);
    }
    if (rfi_epoch_follows(kept, &a->file, NULL) == REEF_OK) {
        return wait_for_given(a, kept, error);
    }
    bool same = memcmp(kept->hash, a->file.hash, sizeof kept->hash) == 0;
    rfi_runfile_free(kept);
    return same ? REEF_OK : keep_file(a, error);
}

/* The file to come, as the process before has left it. */
static void take_up_next(rfi_agent *a)
{
    rfi_file bytes = {0};
    rfi_runfile next;
    if (a->has_next || !keeps_files(a) || rfi_file_read(NULL, a->next_file, RFI_RUNFILE_MAX, &bytes, NULL) != REEF_OK) {
        return;
    }
    bool good = rfi_runfile_read(NULL, bytes.bytes, bytes.size, a->next_file, &next, NULL) == REEF_OK;
    if (good && rfi_handout_judge(&a->handout, &a->file, NULL, &next, NULL) == RFI_HANDED_TAKEN) {
        a->next = next;
        a->next_bytes = bytes;
        a->has_next = true;
        return;
    }
    if (good) {
        rfi_runfile_free(&next);
    }
    rfi_file_free(NULL, &bytes);
}

/* A process that ended between the two renames of move_files has left the file in force under the name of the one before. */
static void undo_half_move(const rfi_agent *a)
{
    if (access(a->kept_file, F_OK) != 0 && access(a->next_file, F_OK) == 0) {
        (void)rename(a->past_file, a->kept_file);
    }
}

reef_status rfi_epoch_resume(rfi_agent *a, reef_error *error)
{
    rfi_runfile kept;
    const struct {
        char *path;
        const char *name;
    } files[] = {{a->kept_file, "run.yaml"}, {a->past_file, "run.before.yaml"}, {a->next_file, "run.next.yaml"}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (snprintf(files[i].path, RFI_PATH_SIZE, "%s/%s", a->folder, files[i].name) >= RFI_PATH_SIZE) {
            return rfi_fail(error, REEF_E_FILE, "the path of the state folder is too long");
        }
    }
    rfi_handout_start(&a->handout, a->malicious_at_least, rfi_now());
    undo_half_move(a);
    reef_status status =
        access(a->kept_file, F_OK) == 0 ? rfi_runfile_load(NULL, a->kept_file, &kept, error) : REEF_E_FILE;
    if (status == REEF_E_NOMEM) {
        return status;
    }
    if (status != REEF_OK) {
        status = keep_file(a, error);
    } else if (memcmp(kept.id, a->file.id, sizeof kept.id) != 0 ||
               memcmp(kept.coordinator, a->file.coordinator, sizeof kept.coordinator) != 0) {
        rfi_runfile_free(&kept);
        status = keep_file(a, error);
    } else {
        status = choose(a, &kept, error);
    }
    recall(a);
    take_up_next(a);
    return status;
}

/* ---- the file to come ---- */

static void expect(rfi_agent *a)
{
    rfi_edition after = {.known = true, .epoch = (uint32_t)a->next.terms.epoch, .from = (uint64_t)a->next.terms.from};
    memcpy(after.run, a->next.hash, sizeof after.run);
    rfi_node_expect(a->node, &after);
    RFI_LOG(&a->log, REEF_LOG_INFO, "epoch_known", RFI_LOG_NUMBER("epoch", a->next.terms.epoch),
            RFI_LOG_NUMBER("from", a->next.terms.from), RFI_LOG_NUMBER("round", rfi_node_rounds(a->node)->round),
            RFI_LOG_TEXT("by", a->by_hand ? "file" : "network"));
}

/* Takes over file and bytes, once the state folder has them. */
static bool adopt(rfi_agent *a, rfi_runfile *next, rfi_file *bytes, bool by_hand)
{
    reef_error why = {REEF_OK, ""};
    if (keeps_files(a) &&
        rfi_file_write(NULL, a->next_file, &(rfi_piece){bytes->bytes, bytes->size}, 1, &why) != REEF_OK) {
        RFI_LOG(&a->log, REEF_LOG_WARNING, "run_file_ignored", RFI_LOG_TEXT("why", why.text));
        return false;
    }
    a->next = *next;
    a->next_bytes = *bytes;
    a->has_next = true;
    a->by_hand = by_hand;
    a->passed_on_at = -pass_on_seconds;
    rfi_handout_turn(&a->handout);
    expect(a);
    return true;
}

static void complain(rfi_agent *a, rfi_handed result, const char *why, bool by_hand, double now)
{
    unsigned long long count = a->handout.counts[result] - a->complained[result];
    if (!by_hand &&
        (!rfi_handed_offends(result) || (a->complained[result] && now - a->complained_at[result] < complain_seconds))) {
        return;
    }
    if (!by_hand) {
        a->complained[result] = a->handout.counts[result];
        a->complained_at[result] = now;
    }
    if (result == RFI_HANDED_SECOND) {
        (void)rfi_audit_line(a->folder, "second_file", "epoch=%lld",
                             (long long)(a->has_next ? a->next.terms.epoch : a->file.terms.epoch));
    } else if (!by_hand) {
        (void)rfi_audit_line(a->folder, "run_file_refused", "cause=%s count=%llu", rfi_handed_text(result), count);
    }
    RFI_LOG(&a->log, REEF_LOG_WARNING, "run_file_ignored", RFI_LOG_TEXT("why", why),
            RFI_LOG_TEXT("from", by_hand ? "file" : "network"), RFI_LOG_NUMBER("count", by_hand ? 1 : count));
}

/* A file in place of the one that the agent was started with. */
static void take_by_hand(rfi_agent *a, double now)
{
    rfi_runfile next;
    rfi_file bytes = {0};
    reef_error why = {REEF_OK, ""};
    rfi_handed result = RFI_HANDED_REFUSED;
    bool good = rfi_file_read(NULL, a->run_file, RFI_RUNFILE_MAX, &bytes, &why) == REEF_OK &&
                rfi_runfile_read(NULL, bytes.bytes, bytes.size, a->run_file, &next, &why) == REEF_OK;
    if (good) {
        result = rfi_handout_judge(&a->handout, &a->file, a->has_next ? &a->next : NULL, &next, &why);
        if (result == RFI_HANDED_TAKEN && !a->has_next && adopt(a, &next, &bytes, true)) {
            return;
        }
        rfi_runfile_free(&next);
    }
    rfi_file_free(NULL, &bytes);
    if (result != RFI_HANDED_TAKEN && result != RFI_HANDED_KNOWN) {
        complain(a, result, why.text, true, now);
    }
}

/* A file from the network. */
void rfi_epoch_offered(void *user, const unsigned char *bytes, size_t size, double now)
{
    rfi_agent *a = user;
    rfi_runfile next;
    reef_error why = {REEF_OK, ""};
    a->handout.way = rfi_node_window(a->node)->way;
    rfi_handed result =
        rfi_handout_check(&a->handout, now, &a->file, a->has_next ? &a->next : NULL, bytes, size, &next, &why);
    if (result != RFI_HANDED_TAKEN) {
        complain(a, result, why.text, false, now);
        return;
    }
    rfi_file copy = {.bytes = rfi_allocate(NULL, size), .size = size};
    if (copy.bytes) {
        memcpy(copy.bytes, bytes, size);
    }
    if (!copy.bytes || !adopt(a, &next, &copy, false)) { /* it is asked for again */
        rfi_runfile_free(&next);
        rfi_file_free(NULL, &copy);
    }
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
        a->by_hand = true; /* or was passed on before this process: once more does no harm */
        a->passed_on_at = -pass_on_seconds;
        expect(a);
    }
}

/* Who was given the file hands it out; where there are several brokers everybody does, since not all may have heard it. */
static void pass_on(rfi_agent *a, double now)
{
    if (a->has_next && (a->by_hand || a->file.brokers > 1) && now - a->passed_on_at >= pass_on_seconds) {
        const rfi_topic topic = {.kind = RFI_TOPIC_FILE, .agent = (uint32_t)a->place};
        a->passed_on_at = now;
        a->link->ops->publish(a->link, &topic, a->next_bytes.bytes, a->next_bytes.size);
    }
}

static void ask(rfi_agent *a, double now)
{
    uint32_t agents[RFI_NEIGHBOURS_MAX];
    const rfi_window *window = rfi_node_window(a->node);
    double until = 0;
    rfi_topic topic;
    for (ptrdiff_t l = 0; l < window->setup.count; l++) {
        agents[l] = window->peers[l].who.agent;
    }
    rfi_handout_pace(&a->handout, a->file.agents);
    if (!a->has_next &&
        rfi_handout_ask(&a->handout, now, a->file.terms.epoch, agents, window->setup.count, &topic, &until)) {
        a->link->ops->get(a->link, &topic);
    }
}

void rfi_epoch_look(rfi_agent *a, double now)
{
    if (now - a->looked_at < look_seconds) {
        return;
    }
    a->looked_at = now;
    if (has_changed(a)) {
        take_by_hand(a, now);
    }
    ask(a, now);
    pass_on(a, now);
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
    rfi_agent_free_member(a);
    rfi_roster_free(&a->roster);
    rfi_runfile_free(&a->file);
    a->file = a->next;
    a->next = (rfi_runfile){0};
    a->has_next = false;
    rfi_file_free(NULL, &a->next_bytes);
    rfi_handout_turn(&a->handout);
    reef_status status = rfi_roster_create(NULL, &a->file, &a->roster, error);
    memcpy(a->roster.shape.layout, layout, sizeof layout);
    return status;
}

/* The file to come is in force. A process that is killed in between has the other two, and goes over again. */
static reef_status move_files(rfi_agent *a, reef_error *error)
{
    if (!keeps_files(a)) {
        return REEF_OK;
    }
    (void)rename(a->kept_file, a->past_file); /* without it, proofs of the epoch before are not taken after a restart */
    return rename(a->next_file, a->kept_file) == 0
               ? REEF_OK
               : rfi_fail(error, REEF_E_FILE, "%s cannot be renamed", rfi_path_show(a->next_file));
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
    if (rfi_node_rounds(old)->phase == RFI_PHASE_READY) {
        rfi_agent_deliver(a, fmin(deliver_seconds, a->file.deadline), NULL);
    }
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
    return move_files(a, error);
}
