/* What an operator asks of a broker: whether it lets us in, and streams to store models in. */
#include "base/error.h"
#include "net/link_nats_inner.h"

#include <stdio.h>
#include <string.h>

/* CREATE or UPDATE. A stream that is there already is an error of its own number. */
static reef_status ask_for_stream(natsConnection *connection, const char *verb, const char *name, const char *body,
                                  bool *there, reef_error *error)
{
    enum { MILLISECONDS = 10000 };
    char subject[RFI_SUBJECT_TEXT];
    natsMsg *reply = NULL;
    (void)snprintf(subject, sizeof subject, "$JS.API.STREAM.%s.%s", verb, name);
    natsStatus s = natsConnection_RequestString(&reply, connection, subject, body, MILLISECONDS);
    if (s != NATS_OK) {
        return rfi_fail(error, REEF_E_ENGINE, "stream %s: %s", name, natsStatus_GetText(s));
    }
    const char *text = natsMsg_GetData(reply);
    const char *refused = strstr(text, "\"error\"");
    *there = refused && strstr(refused, "\"err_code\":10058");
    reef_status status = REEF_OK;
    if (refused && !*there) {
        status = rfi_fail(error, REEF_E_FILE, "the server refuses stream %s: %.160s", name, refused);
    }
    natsMsg_Destroy(reply);
    return status;
}

/* Another epoch may want another size of a stream, or another age of what is in it. */
static reef_status make_stream(natsConnection *connection, const char *name, const char *body, reef_error *error)
{
    bool there = false;
    reef_status status = ask_for_stream(connection, "CREATE", name, body, &there, error);
    if (status == REEF_OK && there) {
        status = ask_for_stream(connection, "UPDATE", name, body, &there, error);
    }
    return status;
}

/* inbox: begins the subjects of answers; NULL: libnats' own. */
static reef_status connect_by(natsConnection **connection, const rfi_nats_operator *by, const char *inbox,
                              reef_error *error)
{
    natsOptions *options = NULL;
    natsStatus s = natsOptions_Create(&options);
    s = s == NATS_OK ? natsOptions_SetURL(options, by->url) : s;
    s = s == NATS_OK ? natsOptions_SetAllowReconnect(options, false) : s;
    s = s == NATS_OK ? rfi_nats_set_trust(options, by->url, by->authority, by->login) : s;
    s = s == NATS_OK && inbox ? natsOptions_SetCustomInboxPrefix(options, inbox) : s;
    s = s == NATS_OK ? natsConnection_Connect(connection, options) : s;
    natsOptions_Destroy(options);
    if (s == NATS_OK) {
        return REEF_OK;
    }
    const char *more = nats_GetLastError(NULL);
    bool says_more = more && more[0] && !strstr(more, natsStatus_GetText(s)); /* not the same again */
    return rfi_fail(error, REEF_E_ENGINE, "no connection to %.100s: %s%s%.200s", by->url, natsStatus_GetText(s),
                    says_more ? ": " : "", says_more ? more : "");
}

static reef_status connect_once(natsConnection **connection, const rfi_nats_operator *by, reef_error *error)
{
    return connect_by(connection, by, NULL, error);
}

bool rfi_nats_answers(const rfi_nats_operator *by, const char *inbox, const char *subject, const char *body,
                      double seconds)
{
    natsConnection *connection = NULL;
    natsMsg *reply = NULL;
    bool answered =
        connect_by(&connection, by, inbox, NULL) == REEF_OK &&
        natsConnection_RequestString(&reply, connection, subject, body, (int64_t)(1000 * seconds)) == NATS_OK;
    natsMsg_Destroy(reply);
    natsConnection_Destroy(connection);
    return answered;
}

reef_status rfi_nats_try(const rfi_nats_operator *by, reef_error *error)
{
    natsConnection *connection = NULL;
    reef_status status = connect_once(&connection, by, error);
    natsConnection_Destroy(connection);
    return status;
}

reef_status rfi_nats_store(const rfi_nats_operator *by, const char *subject, const void *bytes, size_t size,
                           double seconds, reef_error *error)
{
    natsConnection *connection = NULL;
    reef_status status = connect_once(&connection, by, error);
    if (status == REEF_OK) {
        natsStatus s = natsConnection_Publish(connection, subject, bytes, (int)size);
        s = s == NATS_OK ? natsConnection_FlushTimeout(connection, (int64_t)(1000 * seconds)) : s;
        status = s == NATS_OK ? REEF_OK : rfi_fail(error, REEF_E_ENGINE, "%s: %s", subject, natsStatus_GetText(s));
    }
    natsConnection_Destroy(connection);
    return status;
}

reef_status rfi_nats_make_streams(const rfi_nats_operator *by, rfi_next_stream *request, void *user, reef_error *error)
{
    natsConnection *connection = NULL;
    char name[64];
    char body[1024];
    reef_status status = connect_once(&connection, by, error);
    for (ptrdiff_t i = 0; status == REEF_OK && request(user, i, name, body); i++) {
        status = make_stream(connection, name, body, error);
    }
    natsConnection_Destroy(connection);
    return status;
}
