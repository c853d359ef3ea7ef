/* What a broker makes of run files that its agents hand out. */
#include "net/broker_files.h"

#include "base/error.h"
#include "base/memory.h"
#include "net/agent.h"
#include "net/link_nats_subject.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const double agent_seconds = 1; /* between files of one agent that are looked at */

struct rfi_broker_files {
    rfi_nats_ear *ear;
    pthread_mutex_t lock; /* all that follows */
    rfi_nats_names names;
    rfi_runfile file; /* in force */
    rfi_handout handout;
    rfi_file offered;                    /* the next one, not taken yet */
    double heard_at[RFI_AGENTS_MAX + 1]; /* the last: of the hub */
    uint64_t told;                       /* refused, when last asked */
    reef_error why;
};

/* Nobody who floods keeps a file of somebody else from being looked at: each agent has a second of its own. */
static void consider(rfi_broker_files *f, uint32_t agent, const unsigned char *bytes, size_t size)
{
    rfi_runfile next;
    double now = rfi_now();
    if ((agent >= (uint64_t)f->file.agents && agent != RFI_AGENTS_MAX) || now - f->heard_at[agent] < agent_seconds ||
        f->offered.bytes) {
        f->handout.counts[RFI_HANDED_RATE]++;
        return;
    }
    f->heard_at[agent] = now;
    f->handout.tokens[0] = 1; /* the second is the limit here */
    rfi_handed result = rfi_handout_check(&f->handout, now, &f->file, NULL, bytes, size, &next, &f->why);
    if (result != RFI_HANDED_TAKEN) {
        return;
    }
    rfi_runfile_free(&next);
    f->offered.bytes = rfi_allocate(NULL, size);
    if (f->offered.bytes) {
        memcpy(f->offered.bytes, bytes, size);
        f->offered.size = size;
    }
}

static void hear(void *user, const char *subject, const unsigned char *bytes, size_t size)
{
    rfi_broker_files *f = user;
    rfi_topic topic;
    (void)pthread_mutex_lock(&f->lock);
    size_t head = strlen("reef.") + strlen(f->names.run) + 1;
    if (strlen(subject) > head && strncmp(subject + head, "c.b.", 4) == 0) {
        consider(f, RFI_AGENTS_MAX, bytes, size);
    } else if (rfi_subject_read(&f->names, subject, &topic) && topic.kind == RFI_TOPIC_FILE) {
        consider(f, topic.agent, bytes, size);
    }
    (void)pthread_mutex_unlock(&f->lock);
}

reef_status rfi_broker_files_open(rfi_broker_files **files, const rfi_nats_operator *by, bool leaf,
                                  const rfi_file *bytes, reef_error *error)
{
    rfi_broker_files *f = rfi_allocate(NULL, sizeof *f);
    *files = f;
    if (!f) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a broker");
    }
    memset(f, 0, sizeof *f);
    for (int k = 0; k <= RFI_AGENTS_MAX; k++) {
        f->heard_at[k] = -agent_seconds;
    }
    (void)pthread_mutex_init(&f->lock, NULL);
    rfi_handout_start(&f->handout, 0, 0);
    reef_status status = rfi_broker_files_turn(f, bytes, error);
    if (status == REEF_OK) {
        (void)snprintf(f->names.run, sizeof f->names.run, "%s", f->file.run);
        const rfi_nats_ear_setup setup = {.url = by->url,
                                          .run = f->names.run,
                                          .login = by->login,
                                          .authority = by->authority,
                                          .what = leaf ? "c.>" : "c.*",
                                          .hear = hear,
                                          .user = f};
        status = rfi_nats_listen(&f->ear, &setup, error);
    }
    if (status != REEF_OK) {
        rfi_broker_files_close(files);
    }
    return status;
}

void rfi_broker_files_close(rfi_broker_files **files)
{
    rfi_broker_files *f = *files;
    *files = NULL;
    if (f) {
        rfi_nats_ear_close(&f->ear); /* nothing is heard any more */
        rfi_runfile_free(&f->file);
        rfi_file_free(NULL, &f->offered);
        (void)pthread_mutex_destroy(&f->lock);
        rfi_release(NULL, f);
    }
}

reef_status rfi_broker_files_turn(rfi_broker_files *f, const rfi_file *bytes, reef_error *error)
{
    rfi_runfile file;
    reef_status status = rfi_runfile_read(NULL, bytes->bytes, bytes->size, "run file", &file, error);
    if (status != REEF_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&f->lock);
    rfi_runfile_free(&f->file);
    f->file = file;
    rfi_file_free(NULL, &f->offered); /* of no use any more, or the same */
    rfi_handout_turn(&f->handout);
    (void)pthread_mutex_unlock(&f->lock);
    return REEF_OK;
}

bool rfi_broker_files_take(rfi_broker_files *f, rfi_file *bytes)
{
    rfi_nats_ear_tend(f->ear);
    (void)pthread_mutex_lock(&f->lock);
    *bytes = f->offered;
    f->offered = (rfi_file){0};
    (void)pthread_mutex_unlock(&f->lock);
    return bytes->bytes != NULL;
}

uint64_t rfi_broker_files_refused(rfi_broker_files *f, reef_error *why)
{
    uint64_t all = 0;
    (void)pthread_mutex_lock(&f->lock);
    for (int i = 0; i < RFI_HANDED_RESULTS; i++) {
        all += rfi_handed_offends((rfi_handed)i) ? f->handout.counts[i] : 0;
    }
    uint64_t more = all - f->told;
    f->told = all;
    *why = f->why;
    (void)pthread_mutex_unlock(&f->lock);
    return more;
}
