/* A nats-server of our own: started, given the streams of the run, and started again when it ends. */
#include "net/broker.h"

#include "base/error.h"
#include "io/file.h"
#include "net/agent.h"
#include "net/broker_files.h"
#include "net/keys.h"
#include "net/link_nats.h"
#include "net/notify.h"
#include "net/runfile_text.h"

#include <reef/net.h>

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct broker {
    const reef_broker_options *options;
    rfi_log log;
    rfi_file bytes; /* of the run file in force */
    rfi_runfile file;
    rfi_roster roster;
    rfi_runfile old_file; /* of the epoch before, if has_old */
    rfi_roster old_roster;
    bool has_old;
    struct stat seen; /* the run file when last looked at */
    rfi_keys login;   /* of the operator: drawn at every start, known to nobody else */
    char program[RFI_PATH_SIZE];
    char config[RFI_PATH_SIZE];
    char kept[RFI_PATH_SIZE]; /* the run file in force, if it is not the one that was given */
    rfi_broker_files *files;
    double files_told_at;
    double hand_out_at, hand_out_every; /* the run file, again */
    char listen[300];
    char url[320];
    rfi_secret leaf; /* of a leaf: its key... */
    char credentials[RFI_PATH_SIZE];
    rfi_hub hub; /* ...and its hub */
    rfi_hub_watch watch;
    pid_t child;     /* 0: none */
    off_t log_start; /* of the server's log: where the lines of the latest start begin */
} broker;

static void pause_briefly(void)
{
    (void)nanosleep(&(struct timespec){0, 50000000}, NULL);
}

static bool must_stop(const broker *b)
{
    return b->options->stop && *b->options->stop;
}

/* ---- the server ---- */

static reef_status start_server(broker *b, reef_error *error)
{
    pid_t parent = getpid();
    b->log_start = rfi_broker_log_size(b->options->store);
    b->child = fork();
    if (b->child < 0) {
        b->child = 0;
        return rfi_fail(error, REEF_E_ENGINE, "%s cannot be started: %s", b->program, strerror(errno));
    }
    if (b->child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) {
            _exit(1);
        }
        (void)execl(b->program, b->program, "-c", b->config, (char *)NULL);
        _exit(127);
    }
    return REEF_OK;
}

/* Ends it; a server that does not obey within 5 s is killed. */
static void stop_server(broker *b)
{
    enum { PAUSES = 100 };
    if (!b->child) {
        return;
    }
    (void)kill(b->child, SIGTERM);
    for (int i = 0; i < PAUSES; i++) {
        if (waitpid(b->child, NULL, WNOHANG) == b->child) {
            b->child = 0;
            return;
        }
        pause_briefly();
    }
    (void)kill(b->child, SIGKILL);
    (void)waitpid(b->child, NULL, 0);
    b->child = 0;
}

/* Whether it runs; reaps one that has ended. */
static bool is_running(broker *b)
{
    if (b->child && waitpid(b->child, NULL, WNOHANG) == b->child) {
        b->child = 0;
    }
    return b->child != 0;
}

static bool next_stream(void *user, ptrdiff_t index, char *name, char *body)
{
    const broker *b = user;
    return rfi_stream_request(&b->roster, index, name, body);
}

/* Agents that look for the next file find it by its epoch. */
static reef_status hand_out(const broker *b, double seconds, reef_error *error)
{
    char subject[128];
    const rfi_nats_operator by = {.url = b->url, .login = &b->login, .authority = b->options->authority};
    (void)snprintf(subject, sizeof subject, "reef.%s.c.b.%lld", b->file.run, (long long)b->file.terms.epoch);
    return rfi_nats_store(&by, subject, b->bytes.bytes, b->bytes.size, seconds, error);
}

/* Observers hear a file and cannot ask for it: who was not connected just then, or comes later with the file of an epoch that is over, gets it
 * the next time. */
static void hand_out_again(broker *b)
{
    static const double patience = 2;
    static const double rarely = 60;
    if (!b->options->hub && rfi_now() >= b->hand_out_at) {
        (void)hand_out(b, patience, NULL);
        b->hand_out_every = fmin(2 * b->hand_out_every, rarely);
        b->hand_out_at = rfi_now() + b->hand_out_every;
    }
}

/* Makes the streams as soon as the server listens; a leaf has none. */
static reef_status make_streams(broker *b, reef_error *error)
{
    enum { PAUSES = 600 };
    static const double patience = 10;
    reef_status status = REEF_E_ENGINE;
    const rfi_nats_operator by = {.url = b->url, .login = &b->login, .authority = b->options->authority};
    for (int i = 0; i < PAUSES && status == REEF_E_ENGINE && !must_stop(b); i++) {
        if (!is_running(b)) {
            return rfi_broker_ended("has ended", b->options->store, b->log_start, error);
        }
        pause_briefly();
        status = b->options->hub ? rfi_nats_try(&by, error) : rfi_nats_make_streams(&by, next_stream, b, error);
        if (status == REEF_OK && !b->options->hub) {
            status = hand_out(b, patience, error);
        }
    }
    return must_stop(b) ? REEF_OK : status;
}

/* ---- setting up ---- */

/* HOST:PORT of the run file's broker, or of the leaf. */
static void default_listen(broker *b)
{
    const rfi_leaf *leaf = b->options->hub ? rfi_runfile_leaf(&b->file, b->leaf.login.public_key) : NULL;
    const char *url = leaf ? leaf->url : b->file.broker[0];
    const char *host = strstr(url, "://");
    (void)snprintf(b->listen, sizeof b->listen, "%s",
                   b->options->listen ? b->options->listen : (host ? host + 3 : url));
}

static reef_status write_config(broker *b, reef_error *error)
{
    rfi_page page = {0};
    const rfi_broker_setup setup = {.listen = b->listen,
                                    .store = b->options->store,
                                    .certificate = b->options->certificate,
                                    .private_key = b->options->private_key,
                                    .operator_login = &b->login,
                                    .before = b->has_old ? &b->old_roster : NULL,
                                    .leaves = b->options->leaves,
                                    .hub = b->options->hub ? &b->hub : NULL};
    reef_status status = rfi_broker_config(&b->roster, &setup, &page, error);
    if (status == REEF_OK && b->options->print) {
        b->options->tell(b->options->user, page.text);
    } else if (status == REEF_OK) {
        status = rfi_file_write(NULL, b->config, &(rfi_piece){page.text, page.size}, 1, error);
    }
    rfi_page_free(&page);
    return status;
}

/* A run file and its bytes; nothing is left of them on failure. */
static reef_status load(const char *path, rfi_file *bytes, rfi_runfile *file, reef_error *error)
{
    rfi_file read = {0};
    reef_status status = rfi_file_read(NULL, path, RFI_RUNFILE_MAX, &read, error);
    if (status == REEF_OK) {
        status = rfi_runfile_read(NULL, read.bytes, read.size, path, file, error);
    }
    if (status != REEF_OK) {
        rfi_file_free(NULL, &read);
        return status;
    }
    *bytes = read;
    return REEF_OK;
}

/* The file that was given, or a later one of the same run, which an agent has handed out before. */
static reef_status load_file(broker *b, reef_error *error)
{
    rfi_runfile kept;
    rfi_file bytes;
    if (snprintf(b->kept, sizeof b->kept, "%s/run.yaml", b->options->store) >= (int)sizeof b->kept) {
        return rfi_fail(error, REEF_E_FILE, "the path of the store is too long");
    }
    reef_status status = load(b->options->run_file, &b->bytes, &b->file, error);
    if (status != REEF_OK || b->options->print || load(b->kept, &bytes, &kept, NULL) != REEF_OK) {
        return status;
    }
    bool later = memcmp(kept.id, b->file.id, sizeof kept.id) == 0 &&
                 memcmp(kept.coordinator, b->file.coordinator, sizeof kept.coordinator) == 0 &&
                 kept.terms.epoch > b->file.terms.epoch;
    if (later) {
        RFI_LOG(&b->log, REEF_LOG_INFO, "run_file_kept", RFI_LOG_NUMBER("epoch", kept.terms.epoch),
                RFI_LOG_NUMBER("given", b->file.terms.epoch));
    }
    rfi_runfile_free(later ? &b->file : &kept);
    rfi_file_free(NULL, later ? &b->bytes : &bytes);
    b->file = later ? kept : b->file;
    b->bytes = later ? bytes : b->bytes;
    return REEF_OK;
}

/* The key of a leaf, which the run file must name, and the hub. */
static reef_status prepare_leaf(broker *b, reef_error *error)
{
    const reef_broker_options *o = b->options;
    if (!rfi_is_broker(o->hub)) {
        return rfi_fail(error, REEF_E_ARG, "a hub is tls://HOST:PORT, or nats://127.0.0.1:PORT on this machine");
    }
    reef_status status = rfi_secret_read(o->key, &b->leaf, error);
    if (status != REEF_OK) {
        return status;
    }
    if (!rfi_runfile_leaf(&b->file, b->leaf.login.public_key)) {
        return rfi_fail(error, REEF_E_ARG,
                        "the key in %.100s belongs to no leaf of run %s: has the coordinator listed it under leaves:?",
                        o->key, b->file.run);
    }
    if (snprintf(b->credentials, sizeof b->credentials, "%s/" RFI_LEAF_FILE, o->store) >= (int)sizeof b->credentials) {
        return rfi_fail(error, REEF_E_FILE, "the path of the store is too long");
    }
    b->hub =
        (rfi_hub){.url = o->hub, .authority = o->authority, .credentials = b->credentials, .login = &b->leaf.login};
    return REEF_OK;
}

/* Whoever is not on this machine is spoken to through TLS alone. */
static reef_status check_listen(const broker *b, reef_error *error)
{
    char leaves[320];
    if (!b->options->certificate && !b->options->listen && !b->options->hub && !b->options->print &&
        strncmp(b->file.broker[0], "tls://", strlen("tls://")) == 0) {
        return rfi_fail(error, REEF_E_ARG,
                        "agents expect TLS at %.200s: --cert and --private-key are missing (or --listen, where another "
                        "program does TLS)",
                        b->file.broker[0]);
    }
    (void)snprintf(leaves, sizeof leaves, "nats://%s", b->options->leaves ? b->options->leaves : "127.0.0.1:0");
    return b->options->certificate || (rfi_is_loopback(b->url) && rfi_is_loopback(leaves))
               ? REEF_OK
               : rfi_fail(error, REEF_E_ARG, "a broker for other machines needs --cert and --private-key");
}

static reef_status prepare(broker *b, reef_error *error)
{
    unsigned char seed[RFI_KEY_BYTES];
    const char *scheme = b->options->certificate ? "tls" : "nats";
    reef_status status = rfi_broker_check(b->options, error);
    if (status == REEF_OK) {
        status = load_file(b, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    status = b->options->hub ? prepare_leaf(b, error) : REEF_OK;
    if (status == REEF_OK) {
        status = rfi_roster_create(NULL, &b->file, &b->roster, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    default_listen(b);
    (void)snprintf(b->url, sizeof b->url, "%s://%s", scheme, b->listen);
    status = check_listen(b, error);
    if (status != REEF_OK) {
        return status;
    }
    if (!b->options->print && mkdir(b->options->store, S_IRWXU) != 0 && errno != EEXIST) {
        return rfi_fail(error, REEF_E_FILE, "%s: %s", rfi_path_show(b->options->store), strerror(errno));
    }
    if (!rfi_broker_find(b->program, sizeof b->program)) {
        return rfi_fail(error, REEF_E_FILE,
                        "nats-server was not found: install it, or set REEF_NATS_SERVER to its path");
    }
    if (snprintf(b->config, sizeof b->config, "%s/server.conf", b->options->store) >= (int)sizeof b->config) {
        return rfi_fail(error, REEF_E_FILE, "the path of the store is too long");
    }
    if (b->options->leaves && !b->options->print) {
        rfi_hub_tell_version(&b->log);
    }
    rfi_random(seed, sizeof seed);
    rfi_keys_derive(&b->login, seed, RFI_KEY_LOGIN);
    rfi_wipe(seed, sizeof seed);
    status = b->options->hub && !b->options->print ? rfi_hub_write_credentials(&b->hub, error) : REEF_OK;
    if (status != REEF_OK) {
        return status;
    }
    return write_config(b, error);
}

/* ---- epochs ---- */

static bool has_changed(broker *b)
{
    struct stat now;
    if (stat(b->options->run_file, &now) != 0) {
        return false;
    }
    bool same = now.st_ino == b->seen.st_ino && now.st_size == b->seen.st_size &&
                now.st_mtim.tv_sec == b->seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == b->seen.st_mtim.tv_nsec;
    b->seen = now;
    return !same;
}

/* The next file takes the place of the one in force, which is kept beside it: until the next epoch begins, agents work by both. */
static void move_on(broker *b, const rfi_runfile *next, const rfi_roster *roster)
{
    rfi_roster_free(&b->old_roster);
    rfi_runfile_free(&b->old_file);
    b->old_file = b->file;
    b->old_roster = b->roster;
    b->old_roster.file = &b->old_file;
    b->has_old = true;
    b->file = *next;
    b->roster = *roster;
    b->roster.file = &b->file;
}

/* A run file that may be the next one. Anything else is ignored, with a sentence. */
static bool may_follow(broker *b, const rfi_file *bytes, rfi_runfile *next, rfi_roster *roster)
{
    reef_error why = {REEF_OK, ""};
    const rfi_handout any = {.malicious_at_least = 0};
    reef_status status = rfi_runfile_read(NULL, bytes->bytes, bytes->size, "run file", next, &why);
    if (status == REEF_OK) {
        rfi_handed result = rfi_handout_judge(&any, &b->file, NULL, next, &why);
        if (result == RFI_HANDED_TAKEN && rfi_roster_create(NULL, next, roster, &why) == REEF_OK) {
            return true;
        }
        rfi_runfile_free(next);
        if (result == RFI_HANDED_KNOWN) {
            return false;
        }
    }
    RFI_LOG(&b->log, REEF_LOG_WARNING, "run_file_ignored", RFI_LOG_TEXT("why", why.text));
    return false;
}

/* Takes over the bytes: if they may follow, the server is started again with the logins of both epochs. Agents find it again by
 * themselves. */
static reef_status take_next(broker *b, rfi_file *bytes, reef_error *error)
{
    rfi_runfile next;
    rfi_roster roster = {0};
    if (!may_follow(b, bytes, &next, &roster)) {
        rfi_file_free(NULL, bytes);
        return REEF_OK;
    }
    move_on(b, &next, &roster);
    rfi_file_free(NULL, &b->bytes);
    b->bytes = *bytes;
    RFI_LOG(&b->log, REEF_LOG_INFO, "epoch", RFI_LOG_NUMBER("epoch", b->file.terms.epoch),
            RFI_LOG_NUMBER("from", b->file.terms.from));
    reef_status status = rfi_file_write(NULL, b->kept, &(rfi_piece){b->bytes.bytes, b->bytes.size}, 1, error);
    if (status == REEF_OK) {
        status = rfi_broker_files_turn(b->files, &b->bytes, error);
    }
    if (status == REEF_OK) {
        status = write_config(b, error);
    }
    stop_server(b);
    return status;
}

/* The next file comes in place of the one that was given, or from an agent. */
static reef_status look_for_next(broker *b, reef_error *error)
{
    static const double tell_seconds = 60;
    reef_error why = {REEF_OK, ""};
    rfi_file bytes = {0};
    bool there = has_changed(b);
    if (there && rfi_file_read(NULL, b->options->run_file, RFI_RUNFILE_MAX, &bytes, &why) != REEF_OK) {
        RFI_LOG(&b->log, REEF_LOG_WARNING, "run_file_ignored", RFI_LOG_TEXT("why", why.text));
        there = false;
    }
    there = there || rfi_broker_files_take(b->files, &bytes);
    if (rfi_now() - b->files_told_at >= tell_seconds) {
        uint64_t refused = rfi_broker_files_refused(b->files, &why);
        b->files_told_at = refused > 0 ? rfi_now() : b->files_told_at;
        if (refused > 0) {
            RFI_LOG(&b->log, REEF_LOG_WARNING, "run_file_ignored", RFI_LOG_TEXT("why", why.text),
                    RFI_LOG_TEXT("from", "network"), RFI_LOG_NUMBER("count", refused));
        }
    }
    return there ? take_next(b, &bytes, error) : REEF_OK;
}

/* Until it is told to end. Streams in memory are gone after a restart, so all are made anew, which those on the disk do not mind. */
static reef_status supervise(broker *b, reef_error *error)
{
    enum { TRIES = 5 };
    double last = 0;
    double looked = rfi_now();
    int quick = 0; /* ends in a row shortly after a start */
    (void)has_changed(b);
    while (!must_stop(b)) {
        if (is_running(b)) {
            rfi_notify_alive(rfi_now());
            pause_briefly();
            if (rfi_now() - looked >= 1) {
                looked = rfi_now();
                if (b->options->hub) {
                    rfi_hub_look(&b->watch, &b->log, &b->file, &b->hub,
                                 &(rfi_nats_operator){b->url, &b->login, b->options->authority});
                }
                hand_out_again(b);
                reef_status status = look_for_next(b, error);
                if (status != REEF_OK) {
                    return status;
                }
            }
            continue;
        }
        quick = rfi_now() - last < 10 ? quick + 1 : 0;
        last = rfi_now();
        if (quick > TRIES) {
            return rfi_broker_ended("ends again and again", b->options->store, b->log_start, error);
        }
        reef_status status = start_server(b, error);
        if (status == REEF_OK) {
            status = make_streams(b, error);
        }
        if (status != REEF_OK && b->child) {
            return status;
        }
        if (b->child && !must_stop(b)) {
            b->hand_out_every = 1;
            b->watch.since = rfi_now();
            b->hand_out_at = rfi_now() + b->hand_out_every;
            rfi_notify("READY=1");
            RFI_LOG(&b->log, REEF_LOG_INFO, "ready", RFI_LOG_TEXT("run", b->file.run), RFI_LOG_TEXT("url", b->url),
                    RFI_LOG_NUMBER("agents", b->file.agents));
        }
    }
    return REEF_OK;
}

reef_status reef_net_broker(const reef_broker_options *options, reef_error *error)
{
    broker b = {.options = options, .log = {options->log, options->level, options->tell, options->user}};
    reef_status status = rfi_check_size(options->size, sizeof *options, "reef_broker_options", error);
    if (status == REEF_OK) {
        status = rfi_crypto_start(error);
    }
    if (status != REEF_OK) {
        return status;
    }
    status = prepare(&b, error);
    if (status == REEF_OK && !options->print) {
        const rfi_nats_operator by = {.url = b.url, .login = &b.login, .authority = options->authority};
        status = rfi_broker_files_open(&b.files, &by, options->hub != NULL, &b.bytes, error);
    }
    if (status == REEF_OK && !options->print) {
        status = supervise(&b, error);
    }
    rfi_notify("STOPPING=1");
    rfi_broker_files_close(&b.files);
    stop_server(&b);
    if (b.credentials[0] && !options->print) {
        (void)unlink(b.credentials);
    }
    rfi_wipe(&b.login, sizeof b.login);
    rfi_wipe(&b.leaf, sizeof b.leaf);
    rfi_roster_free(&b.roster);
    rfi_runfile_free(&b.file);
    rfi_roster_free(&b.old_roster);
    rfi_runfile_free(&b.old_file);
    rfi_file_free(NULL, &b.bytes);
    return status;
}
