/* An agent whose models come from a client on a Unix socket: local.h has the protocol. The key stays in this process. */
#include "net/agent.h"
#include "net/local.h"
#include "net/notify.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* How often the agent looks whether it is to end, or somebody else is at the door. */
static const int look_milliseconds = 200;
static const double look_seconds = 0.2;
static const double patience_seconds = 2;
/* How often it says what it waits for, if it cannot begin. */
static const double explain_seconds = 15;

typedef struct door {
    const reef_agent_options *options;
    rfi_agent_setup setup;
    rfi_agent probe;   /* holds the state folder as long as there is no agent */
    reef_agent *agent; /* NULL: no client has said yet what its models look like */
    unsigned char layout[RFI_HASH_BYTES];
    bool has_model; /* of a round that has ended */
    bool last;      /* all rounds are done */
    bool stopped;   /* in the middle of a request */
    unsigned char *model;
    size_t bytes;
    int listener, client;
} door;

static bool is_over(const door *d)
{
    return d->options->stop && *d->options->stop;
}

/* ---- bytes ---- */

/* Whoever comes while a client is served is told so; once that client has gone it is the next one's turn. */
static void turn_away(const door *d)
{
    char byte;
    if (recv(d->client, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
        return;
    }
    static const char sentence[] = "another client is connected to this agent";
    unsigned char head[RFI_LOCAL_HEAD] = {'R', 'L', 'O', 'C'};
    int visitor = accept(d->listener, NULL, NULL);
    if (visitor < 0) {
        return;
    }
    head[16] = sizeof sentence - 1;
    head[24] = RFI_LOCAL_REFUSED;
    struct iovec parts[] = {{head, sizeof head}, {(void *)(uintptr_t)sentence, sizeof sentence - 1}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    (void)sendmsg(visitor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)close(visitor);
}

/* Waits until the client can be read from or written to; false: the agent is to end. */
static bool await_client(const door *d, short event)
{
    while (!is_over(d)) {
        rfi_notify_alive(rfi_now());
        struct pollfd files[] = {{.fd = d->client, .events = event}, {.fd = d->listener, .events = POLLIN}};
        if (poll(files, 2, look_milliseconds) < 0 && errno != EINTR) {
            return false;
        }
        if (files[0].revents) {
            return true;
        }
        if (files[1].revents) {
            turn_away(d);
        }
    }
    return false;
}

static bool read_client(void *user, void *bytes, size_t size)
{
    const door *d = user;
    unsigned char *to = bytes;
    while (size > 0 && !d->last && await_client(d, POLLIN)) {
        ssize_t part = recv(d->client, to, size, MSG_DONTWAIT);
        if (part == 0 || (part < 0 && errno != EAGAIN && errno != EINTR)) {
            return false;
        }
        to += part > 0 ? part : 0;
        size -= part > 0 ? (size_t)part : 0;
    }
    return size == 0;
}

static bool write_client(void *user, const void *bytes, size_t size)
{
    const door *d = user;
    const unsigned char *from = bytes;
    while (size > 0 && await_client(d, POLLOUT)) {
        ssize_t part = send(d->client, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (part < 0 && errno != EAGAIN && errno != EINTR) {
            return false;
        }
        from += part > 0 ? part : 0;
        size -= part > 0 ? (size_t)part : 0;
    }
    return size == 0;
}

/* ---- requests ---- */

/* The agent begins when the first client says what its models look like. */
static reef_status begin(door *d, const unsigned char *layout, reef_error *error)
{
    if (d->agent) {
        return memcmp(layout, d->layout, sizeof d->layout) == 0
                   ? REEF_OK
                   : rfi_fail(error, REEF_E_ARG, "the models of this agent have another layout than this client's");
    }
    rfi_agent_close(&d->probe, false);
    d->setup.layout = layout;
    reef_status status = rfi_agent_start(&d->agent, &d->setup, error);
    d->setup.layout = NULL;
    memcpy(d->layout, layout, sizeof d->layout);
    if (status == REEF_E_ARG) { /* of another layout than the run's: the next client may do better */
        reef_status again = rfi_agent_probe(&d->probe, &d->setup, NULL);
        return again == REEF_OK ? status : again;
    }
    return status;
}

static reef_status stopped(door *d, reef_error *error)
{
    d->stopped = true;
    return rfi_fail(error, REEF_E_ORDER, "the agent was told to end");
}

static reef_status hello(void *user, const unsigned char *layout, bool *joined, uint64_t *round, reef_error *error)
{
    door *d = user;
    int ready = 0;
    int has = 0;
    reef_status status = begin(d, layout, error);
    double explain_at = rfi_now() + explain_seconds / 5;
    while (status == REEF_OK && !ready) {
        rfi_notify_alive(rfi_now());
        if (rfi_now() >= explain_at) {
            rfi_agent_tell_waiting(d->agent, d->setup.authority);
            explain_at = rfi_now() + explain_seconds;
        }
        status =
            is_over(d) ? stopped(d, error) : reef_agent_join(d->agent, look_seconds, d->model, &ready, &has, error);
        turn_away(d);
    }
    if (status == REEF_OK && d->has_model) { /* half a model of a client that has gone may lie over the last result */
        status = reef_agent_wait(d->agent, 0, d->model, &has, error);
    }
    *joined = has;
    *round = status == REEF_OK ? (uint64_t)reef_agent_round(d->agent) : 0;
    return status;
}

static reef_status exchange(void *user, uint64_t *round, size_t *report, reef_error *error)
{
    door *d = user;
    double began = rfi_now();
    int done = 0;
    reef_status status = reef_agent_begin(d->agent, d->model, error);
    while (status == REEF_OK && !done) {
        rfi_notify_alive(rfi_now());
        status = is_over(d) ? stopped(d, error) : reef_agent_wait(d->agent, look_seconds, d->model, &done, error);
        turn_away(d);
    }
    if (status != REEF_OK) {
        return status;
    }
    d->has_model = true;
    *round = (uint64_t)reef_agent_round(d->agent) - 1;
    d->last = d->options->rounds > 0 && *round + 1 >= (uint64_t)d->options->rounds;
    *report = rfi_agent_report(d->agent, *round, rfi_now() - began, (char *)d->model + d->bytes, RFI_LOCAL_REPORT_MAX);
    return REEF_OK;
}

static uint64_t round_of(void *user)
{
    return (uint64_t)reef_agent_round(((door *)user)->agent);
}

static void note(void *user, const char *name, double value)
{
    const door *d = user;
    RFI_LOG(&d->setup.log, REEF_LOG_INFO, "note", RFI_LOG_NUMBER("round", round_of(user)), RFI_LOG_NUMBER(name, value));
    (void)!reef_agent_note(d->agent, name, value, NULL); /* only the first four names go to observers */
}

/* ---- the socket ---- */

/* A socket that a killed process has left is taken away; anything else at its place stays. */
static reef_status clear_place(const struct sockaddr_un *address, reef_error *error)
{
    struct stat what;
    if (lstat(address->sun_path, &what) != 0) {
        return REEF_OK;
    }
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); /* a busy one would have it wait */
    bool stale = S_ISSOCK(what.st_mode) && probe >= 0 &&
                 connect(probe, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED;
    if (probe >= 0) {
        (void)close(probe);
    }
    if (!stale || unlink(address->sun_path) != 0) {
        return rfi_fail(error, REEF_E_EXISTS, "%s exists already: choose another path for the socket",
                        rfi_path_show(address->sun_path));
    }
    return REEF_OK;
}

static reef_status open_door(door *d, reef_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(d->options->socket) >= sizeof address.sun_path) {
        return rfi_fail(error, REEF_E_ARG, "the path of a socket has at most %zu bytes", sizeof address.sun_path - 1);
    }
    memcpy(address.sun_path, d->options->socket, strlen(d->options->socket));
    reef_status status = clear_place(&address, error);
    if (status != REEF_OK) {
        return status;
    }
    d->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(S_IRWXG | S_IRWXO | S_IXUSR);
    bool bound = d->listener >= 0 && bind(d->listener, (const struct sockaddr *)&address, sizeof address) == 0;
    (void)umask(before);
    if (!bound || listen(d->listener, 4) != 0) {
        return rfi_fail(error, REEF_E_FILE, "%s: %s", rfi_path_show(d->options->socket), strerror(errno));
    }
    return REEF_OK;
}

static bool next_client(door *d)
{
    d->client = -1;
    while (d->client < 0 && !is_over(d)) {
        rfi_notify_alive(rfi_now());
        struct pollfd file = {.fd = d->listener, .events = POLLIN};
        if (poll(&file, 1, look_milliseconds) > 0) {
            d->client = accept(d->listener, NULL, NULL);
        }
    }
    if (d->client >= 0) {
        (void)fcntl(d->client, F_SETFD, FD_CLOEXEC);
    }
    return d->client >= 0;
}

/* Closing with bytes unread would throw the last answer away before a client that is still sending reads it: what it sends is taken for
 * a while, and dropped. */
static void see_off(const door *d)
{
    unsigned char dropped[4096];
    const double end = rfi_now() + patience_seconds;
    ssize_t part = shutdown(d->client, SHUT_WR) == 0;
    while (part > 0 && rfi_now() < end && !is_over(d)) {
        struct pollfd file = {.fd = d->client, .events = POLLIN};
        part = poll(&file, 1, look_milliseconds) > 0 ? recv(d->client, dropped, sizeof dropped, MSG_DONTWAIT) : 1;
    }
    (void)close(d->client);
}

static reef_status serve(door *d, const rfi_local_host *host, reef_error *error)
{
    rfi_local_end end = RFI_LOCAL_END_GONE;
    reef_error why = {REEF_OK, ""};
    while (end == RFI_LOCAL_END_GONE && !d->last && next_client(d)) {
        RFI_LOG(&d->setup.log, REEF_LOG_INFO, "client", RFI_LOG_TEXT("state", "connected"));
        end = rfi_local_serve(host, &why);
        see_off(d);
        RFI_LOG(&d->setup.log, REEF_LOG_INFO, "client",
                RFI_LOG_TEXT("state", end == RFI_LOCAL_END_LEFT ? "leaves" : "disconnected"));
    }
    bool failed = end == RFI_LOCAL_END_FAILED && !d->stopped && !rfi_agent_removed(d->agent);
    return failed ? rfi_fail(error, why.status, "%s", why.text) : REEF_OK;
}

/* ---- from the beginning to the end ---- */

/* What can be wrong with files is found before anybody comes. */
static reef_status look_at_files(door *d, rfi_local_host *host, reef_error *error)
{
    const rfi_agent *probe = &d->probe;
    reef_status status = rfi_agent_probe(&d->probe, &d->setup, error);
    if (status != REEF_OK) {
        return status;
    }
    const rfi_shape *shape = &probe->roster.shape;
    d->bytes = host->bytes = rfi_shape_bytes(shape);
    host->count = shape->count;
    host->numbers = shape->numbers;
    return probe->roster.problem
               ? rfi_fail(error, REEF_E_ARG, "run %s has a built-in problem: start its agents without --socket",
                          probe->file.run)
               : REEF_OK;
}

reef_status rfi_agent_local(const reef_agent_options *options, reef_error *error)
{
    door d = {.options = options,
              .setup = {.run_file = options->run_file,
                        .key = options->key,
                        .coordinator = options->coordinator,
                        .state = options->state,
                        .authority = options->authority,
                        .memory = options->memory,
                        .malicious_at_least = options->malicious_at_least,
                        .log = {options->log, options->level, options->tell, options->user},
                        .metrics = options->metrics},
              .listener = -1};
    rfi_local_host host = {.user = &d,
                           .read = read_client,
                           .write = write_client,
                           .hello = hello,
                           .exchange = exchange,
                           .note = note,
                           .round = round_of};
    reef_status status = look_at_files(&d, &host, error);
    if (status == REEF_OK) {
        d.model = host.room = rfi_allocate(NULL, d.bytes + RFI_LOCAL_REPORT_MAX);
        status = d.model ? open_door(&d, error) : rfi_fail(error, REEF_E_NOMEM, "no memory for a model");
    }
    if (status == REEF_OK) {
        RFI_LOG(&d.setup.log, REEF_LOG_INFO, "listening", RFI_LOG_TEXT("socket", options->socket),
                RFI_LOG_NUMBER("numbers", host.count), RFI_LOG_NUMBER("memory", d.probe.needs));
        rfi_notify("READY=1"); /* for clients: neighbours are looked for when the first one comes */
        status = serve(&d, &host, error);
        rfi_notify("STOPPING=1");
        (void)unlink(options->socket);
    }
    if (d.listener >= 0) {
        (void)close(d.listener);
    }
    reef_agent_destroy(&d.agent);
    rfi_agent_close(&d.probe, false);
    rfi_release(NULL, d.model);
    return status;
}
