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

/* Logins that are refused in a row before it is given up. */
enum { EAR_REVIVALS = 4 };

/* Messages that wait to be heard, and their bytes: as if each were as long as it may be. Agents may send the largest that a broker takes. */
enum { EAR_SUBJECTS = 3, EAR_PENDING = 8192, EAR_FILES = 64 };
enum { EAR_BYTES = EAR_PENDING * (int)RFI_STATUS_FRAME_MAX, EAR_FILE_BYTES = EAR_FILES * (int)RFI_RUNFILE_MAX };

struct rfi_nats_ear {
    natsOptions *options;
    natsConnection *connection;
    natsSubscription *subscriptions[EAR_SUBJECTS];
    rfi_keys login;
    rfi_nats_ear_setup setup; /* run and what are copied, and nothing else of it outlives the beginning */
    char run[RFI_NAME_SIZE], what[8];
    double revive_at; /* not before; of the thread that tends */
    rfi_nats_hear *hear;
    void *user;
    pthread_mutex_t mutex; /* what follows; held while `hear` runs */
    pthread_cond_t changed;
    bool deaf;    /* nothing is to be heard any more */
    bool closed;  /* libnats has given up */
    int refusals; /* of the login, since it was last connected */
    int open;     /* subscriptions and the connection that may still call back */
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
    rfi_nats_ear *ear = closure;
    (void)connection;
    (void)pthread_mutex_lock(&ear->mutex);
    ear->refusals = 0;
    (void)pthread_mutex_unlock(&ear->mutex);
}

static void ear_closed(natsConnection *connection, void *closure)
{
    rfi_nats_ear *ear = closure;
    (void)connection;
    (void)pthread_mutex_lock(&ear->mutex);
    ear->closed = true;
    (void)pthread_mutex_unlock(&ear->mutex);
    ear_one_less(closure);
}

static natsStatus ear_set_options(rfi_nats_ear *ear, const rfi_nats_ear_setup *setup)
{
    natsStatus s = natsOptions_Create(&ear->options);
    natsOptions *o = ear->options;
    s = s == NATS_OK ? natsOptions_SetURL(o, setup->url) : s;
    s = s == NATS_OK ? rfi_nats_try_again(o) : s;
    s = s == NATS_OK ? natsOptions_SetRetryOnFailedConnect(o, true, ear_connected, ear) : s;
    s = s == NATS_OK ? natsOptions_SetReconnectedCB(o, ear_connected, ear) : s;
    s = s == NATS_OK ? natsOptions_SetClosedCB(o, ear_closed, ear) : s;
    return s == NATS_OK ? rfi_nats_set_trust(o, setup->url, setup->authority, &ear->login) : s;
}

static natsStatus ear_connect(rfi_nats_ear *ear)
{
    natsStatus s = natsConnection_Connect(&ear->connection, ear->options);
    s = s == NATS_NOT_YET_CONNECTED ? NATS_OK : s;
    (void)pthread_mutex_lock(&ear->mutex);
    ear->open += s == NATS_OK;
    (void)pthread_mutex_unlock(&ear->mutex);
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
            if (s != NATS_OK) { /* it will not call */
                ear_one_less(ear);
            }
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
    (void)snprintf(made->run, sizeof made->run, "%s", setup->run);
    (void)snprintf(made->what, sizeof made->what, "%s", setup->what ? setup->what : "");
    made->setup = (rfi_nats_ear_setup){.run = made->run, .what = setup->what ? made->what : NULL};
    (void)pthread_mutex_init(&made->mutex, NULL);
    (void)pthread_cond_init(&made->changed, NULL);
    natsStatus s = ear_set_options(made, setup);
    s = s == NATS_OK ? ear_connect(made) : s;
    s = s == NATS_OK ? ear_subscribe(made, setup) : s;
    if (s == NATS_CONNECTION_CLOSED || s == NATS_INVALID_SUBSCRIPTION) { /* given up meanwhile: it is begun anew */
        (void)pthread_mutex_lock(&made->mutex);
        made->closed = true;
        (void)pthread_mutex_unlock(&made->mutex);
        s = NATS_OK;
    }
    *ear = made;
    if (s != NATS_OK) {
        rfi_nats_ear_close(ear);
        return rfi_fail(error, REEF_E_ENGINE, "no connection to %.100s: %s", setup->url, natsStatus_GetText(s));
    }
    return REEF_OK;
}

static void ear_disconnect(rfi_nats_ear *ear)
{
    for (int i = 0; i < EAR_SUBJECTS; i++) {
        natsSubscription_Destroy(ear->subscriptions[i]);
        ear->subscriptions[i] = NULL;
    }
    natsConnection_Destroy(ear->connection);
    ear->connection = NULL;
}

/* As for links: a login that is refused is counted, anything else passes some day. Which it was libnats says only if it does not try again by
 * itself. */
static void ear_revive(rfi_nats_ear *ear)
{
    ear_disconnect(ear);
    natsStatus s = natsOptions_SetRetryOnFailedConnect(ear->options, false, NULL, NULL);
    s = s == NATS_OK ? ear_connect(ear) : s;
    bool refused = rfi_nats_refuses(s);
    if (s == NATS_OK) {
        ear_connected(ear->connection, ear);
        s = ear_subscribe(ear, &ear->setup);
    }
    (void)pthread_mutex_lock(&ear->mutex);
    ear->closed = ear->closed || s != NATS_OK;
    ear->refusals += refused;
    (void)pthread_mutex_unlock(&ear->mutex);
}

void rfi_nats_ear_tend(rfi_nats_ear *ear)
{
    static const double pause = 1;
    (void)pthread_mutex_lock(&ear->mutex);
    bool due = ear->closed && ear->refusals < EAR_REVIVALS && rfi_nats_now() >= ear->revive_at;
    ear->closed = ear->closed && !due;
    (void)pthread_mutex_unlock(&ear->mutex);
    if (due) {
        ear_revive(ear);
        ear->revive_at = rfi_nats_now() + pause;
    }
}

bool rfi_nats_ear_refused(rfi_nats_ear *ear)
{
    (void)pthread_mutex_lock(&ear->mutex);
    bool refused = ear->closed && ear->refusals >= EAR_REVIVALS;
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
    ear_disconnect(ear);
    natsOptions_Destroy(ear->options);
    rfi_wipe(&ear->login, sizeof ear->login);
    if (ear_is_quiet(ear)) { /* better some memory lost than a thread writing to what is no longer there */
        (void)pthread_cond_destroy(&ear->changed);
        (void)pthread_mutex_destroy(&ear->mutex);
        rfi_release(NULL, ear);
    }
}
