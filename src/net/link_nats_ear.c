/* Somebody who only listens to a run: observers, and brokers that wait for run files. */
#include "base/error.h"
#include "base/memory.h"
#include "net/link_nats_inner.h"
#include "net/runfile.h"
#include "net/status.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Messages that wait to be heard, and their bytes: as if each were as long as it may be. Agents may send the largest that a broker takes. */
enum { EAR_SUBJECTS = 3, EAR_PENDING = 8192, EAR_FILES = 64 };
enum { EAR_BYTES = EAR_PENDING * (int)RFI_STATUS_FRAME_MAX, EAR_FILE_BYTES = EAR_FILES * (int)RFI_RUNFILE_MAX };

struct rfi_nats_ear {
    natsOptions *options;
    natsConnection *connection;
    natsSubscription *subscriptions[EAR_SUBJECTS];
    rfi_keys login;
    rfi_nats_hear *hear;
    void *user;
    pthread_mutex_t mutex; /* what follows; held while `hear` runs */
    pthread_cond_t changed;
    bool deaf; /* nothing is to be heard any more */
    bool refused;
    int open; /* subscriptions and the connection that may still call back */
};

static void ear_heard(natsConnection *connection, natsSubscription *subscription, natsMsg *message, void *closure)
{
    rfi_nats_ear *ear = closure;
    (void)connection;
    (void)subscription;
    (void)pthread_mutex_lock(&ear->mutex);
    if (!ear->deaf) {
        ear->hear(ear->user, natsMsg_GetSubject(message), (const unsigned char *)natsMsg_GetData(message),
                  (size_t)natsMsg_GetDataLength(message));
    }
    (void)pthread_mutex_unlock(&ear->mutex);
    natsMsg_Destroy(message);
}

static void ear_one_less(void *closure)
{
    rfi_nats_ear *ear = closure;
    (void)pthread_mutex_lock(&ear->mutex);
    assert(ear->open > 0);
    ear->open--;
    (void)pthread_cond_signal(&ear->changed);
    (void)pthread_mutex_unlock(&ear->mutex);
}

static void ear_connected(natsConnection *connection, void *closure)
{
    (void)connection;
    (void)closure;
}

static void ear_closed(natsConnection *connection, void *closure)
{
    rfi_nats_ear *ear = closure;
    (void)connection;
    (void)pthread_mutex_lock(&ear->mutex);
    ear->refused = !ear->deaf;
    (void)pthread_mutex_unlock(&ear->mutex);
    ear_one_less(closure);
}

static natsStatus ear_connect(rfi_nats_ear *ear, const rfi_nats_ear_setup *setup)
{
    natsStatus s = natsOptions_Create(&ear->options);
    natsOptions *o = ear->options;
    s = s == NATS_OK ? natsOptions_SetURL(o, setup->url) : s;
    s = s == NATS_OK ? rfi_nats_try_again(o) : s;
    s = s == NATS_OK ? natsOptions_SetRetryOnFailedConnect(o, true, ear_connected, ear) : s;
    s = s == NATS_OK ? natsOptions_SetClosedCB(o, ear_closed, ear) : s;
    s = s == NATS_OK ? rfi_nats_set_trust(o, setup->url, setup->authority, &ear->login) : s;
    s = s == NATS_OK ? natsConnection_Connect(&ear->connection, o) : s;
    s = s == NATS_NOT_YET_CONNECTED ? NATS_OK : s;
    ear->open += s == NATS_OK;
    return s;
}

static natsStatus ear_subscribe(rfi_nats_ear *ear, const rfi_nats_ear_setup *setup)
{
    static const char *const kinds[EAR_SUBJECTS] = {"t.*", "x.*", "c.>"};
    natsStatus s = NATS_OK;
    for (int i = 0; s == NATS_OK && i < (setup->what ? 1 : EAR_SUBJECTS); i++) {
        char subject[RFI_SUBJECT_TEXT];
        (void)snprintf(subject, sizeof subject, "reef.%s.%s", setup->run, setup->what ? setup->what : kinds[i]);
        s = natsConnection_Subscribe(&ear->subscriptions[i], ear->connection, subject, ear_heard, ear);
        s = s == NATS_OK
                ? natsSubscription_SetPendingLimits(ear->subscriptions[i], setup->what ? EAR_FILES : EAR_PENDING,
                                                    setup->what ? EAR_FILE_BYTES : EAR_BYTES)
                : s;
        if (s == NATS_OK) {
            (void)pthread_mutex_lock(&ear->mutex);
            ear->open++;
            (void)pthread_mutex_unlock(&ear->mutex);
            s = natsSubscription_SetOnCompleteCB(ear->subscriptions[i], ear_one_less, ear);
        }
    }
    return s;
}

reef_status rfi_nats_listen(rfi_nats_ear **ear, const rfi_nats_ear_setup *setup, reef_error *error)
{
    *ear = NULL;
    if (strncmp(setup->url, "tls://", 6) != 0 && !rfi_is_loopback(setup->url)) {
        return rfi_fail(error, REEF_E_ARG, "a broker on another machine is reached by tls://host:port only");
    }
    rfi_nats_ear *made = rfi_allocate(NULL, sizeof *made);
    if (!made) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a connection");
    }
    memset(made, 0, sizeof *made);
    made->login = *setup->login;
    made->hear = setup->hear;
    made->user = setup->user;
    (void)pthread_mutex_init(&made->mutex, NULL);
    (void)pthread_cond_init(&made->changed, NULL);
    natsStatus s = ear_connect(made, setup);
    s = s == NATS_OK ? ear_subscribe(made, setup) : s;
    *ear = made;
    if (s != NATS_OK) {
        rfi_nats_ear_close(ear);
        return rfi_fail(error, REEF_E_ENGINE, "no connection to %.100s: %s", setup->url, natsStatus_GetText(s));
    }
    return REEF_OK;
}

bool rfi_nats_ear_refused(rfi_nats_ear *ear)
{
    (void)pthread_mutex_lock(&ear->mutex);
    bool refused = ear->refused;
    (void)pthread_mutex_unlock(&ear->mutex);
    return refused;
}

/* Waits for what libnats still has to call, but not for ever. */
static bool ear_is_quiet(rfi_nats_ear *ear)
{
    enum { SECONDS = 5 };
    struct timespec until;
    int status = 0;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SECONDS;
    (void)pthread_mutex_lock(&ear->mutex);
    while (ear->open > 0 && status == 0) {
        status = pthread_cond_timedwait(&ear->changed, &ear->mutex, &until);
    }
    bool quiet = ear->open == 0;
    (void)pthread_mutex_unlock(&ear->mutex);
    return quiet;
}

void rfi_nats_ear_close(rfi_nats_ear **handle)
{
    rfi_nats_ear *ear = *handle;
    *handle = NULL;
    if (!ear) {
        return;
    }
    (void)pthread_mutex_lock(&ear->mutex);
    ear->deaf = true;
    (void)pthread_mutex_unlock(&ear->mutex);
    if (ear->connection) {
        natsConnection_Close(ear->connection);
    }
    for (int i = 0; i < EAR_SUBJECTS; i++) {
        natsSubscription_Destroy(ear->subscriptions[i]);
    }
    natsConnection_Destroy(ear->connection);
    natsOptions_Destroy(ear->options);
    rfi_wipe(&ear->login, sizeof ear->login);
    if (ear_is_quiet(ear)) { /* better some memory lost than a thread writing to what is no longer there */
        (void)pthread_cond_destroy(&ear->changed);
        (void)pthread_mutex_destroy(&ear->mutex);
        rfi_release(NULL, ear);
    }
}
