/* Leaves: servers between some of the agents and a broker, their hub. The hub has the store; a leaf passes on.
 *
 * A leaf logs in at its hub with a key of its own, which the run file names. The hub lets it do what the agents behind it may do, all of them
 * together: speak under their names, hear their neighbours, ask the store about those. So a malicious leaf can do to its own agents what a
 * malicious broker can do to all, and to others no more than its agents could. What it may hear besides: run files, which are public, and an
 * inbox of its own, by which it asks whether the hub is there. */
#include "net/broker.h"

#include "base/error.h"
#include "io/file.h"
#include "net/agent.h"
#include "net/keys.h"

#include <reef/net.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The prefix of the inbox by which a leaf asks its hub whether it is there. */
static void print_inbox(char *text, size_t size, const char *run, const char *leaf)
{
    (void)snprintf(text, size, "_%s.l-%s", run, leaf); /* agents' have a number there */
}

/* ---- the hub ---- */

void rfi_broker_add_leaves(rfi_page *p, const rfi_broker_setup *s)
{
    rfi_page_add(p, "leafnodes {\n  listen: \"%s\"\n  authorization { timeout: 20 }\n", s->leaves);
    if (s->certificate) {
        rfi_page_add(p, "  tls { cert_file: \"%s\", key_file: \"%s\", timeout: 20 }\n", s->certificate, s->private_key);
    }
    rfi_page_add(p, "}\n");
}

/* Older servers look only at what leaves want to hear. */
void rfi_hub_tell_version(const rfi_log *log)
{
    enum { MAJOR = 2, MINOR = 14 };
    char path[RFI_PATH_SIZE];
    char version[32];
    int major = 0;
    int minor = 0;
    bool known = reef_net_server(path, sizeof path, &major, &minor);
    if (known && (major < MAJOR || (major == MAJOR && minor < MINOR))) {
        (void)snprintf(version, sizeof version, "%d.%d", major, minor);
        RFI_LOG(log, REEF_LOG_WARNING, "leaves_unchecked", RFI_LOG_TEXT("version", version),
                RFI_LOG_TEXT(
                    "why", "nats-server before 2.14 does not check what leaves publish: a malicious leaf can do what a "
                           "malicious broker can"));
    }
}

/* What the agents behind a leaf have to do with an agent. */
enum { OWN = 1, NEIGHBOUR = 2, WITNESS = 4 };

static void mark(const rfi_roster *r, const rfi_leaf *leaf, unsigned char *marks)
{
    for (ptrdiff_t k = 0; r && k < r->file->agents; k++) {
        rfi_circle c;
        if (!rfi_runfile_behind(r->file, k, leaf->login)) {
            continue;
        }
        rfi_circle_find(r, k, &c);
        marks[k] |= OWN;
        for (ptrdiff_t l = 0; l < c.count; l++) {
            marks[c.neighbours[l].agent] |= NEIGHBOUR;
        }
        for (ptrdiff_t i = 0; i < c.others; i++) {
            marks[c.witnesses[i]] |= WITNESS;
        }
    }
}

static void add_leaf(rfi_page *p, const rfi_roster *r, const rfi_roster *before, const rfi_leaf *leaf)
{
    unsigned char marks[RFI_AGENTS_MAX] = {0};
    char key[RFI_KEY_TEXT];
    char inbox[2 * RFI_NAME_SIZE + 8];
    const char *run = r->file->run;
    mark(r, leaf, marks);
    mark(before, leaf, marks);
    rfi_key_print(key, RFI_LETTER_LOGIN, leaf->login);
    print_inbox(inbox, sizeof inbox, run, leaf->name);
    rfi_page_add(p,
                 "    { nkey: %s, allowed_connection_types: [\"LEAFNODE\"], permissions: {\n      publish: { allow: "
                 "[\"$JS.API.DIRECT.GET.reef-%s-c\", \"$JS.reef.API.DIRECT.GET.reef-%s-c\"",
                 key, run, run);
    for (unsigned long k = 0; k < RFI_AGENTS_MAX; k++) {
        if (marks[k] & OWN) {
            rfi_allow_own(p, run, k);
        }
        if (marks[k] & (OWN | NEIGHBOUR)) {
            rfi_allow_get(p, run, 's', k);
            rfi_allow_get(p, run, 'p', k);
        }
    }
    rfi_page_add(p, "] },\n      subscribe: { allow: [\"%s.>\", \"reef.%s.c.>\", \"reef.%s.x.*\"", inbox, run, run);
    for (unsigned long k = 0; k < RFI_AGENTS_MAX; k++) {
        if (marks[k] & OWN) {
            rfi_page_add(p, ", \"_%s.%lu.*.>\"", run, k);
        }
        if (marks[k] & (OWN | NEIGHBOUR)) {
            rfi_page_add(p, ", \"reef.%s.s.%lu.*\"", run, k);
        }
        if (marks[k] & (NEIGHBOUR | WITNESS)) {
            rfi_page_add(p, ", \"reef.%s.e.%lu\"", run, k);
        }
    }
    rfi_page_add(p, "] } } }\n");
}

void rfi_broker_add_leaf_logins(rfi_page *p, const rfi_roster *r, const rfi_roster *before)
{
    for (ptrdiff_t i = 0; i < r->file->leaves; i++) {
        add_leaf(p, r, before, &r->file->leaf[i]);
    }
    for (ptrdiff_t i = 0; before && i < before->file->leaves; i++) { /* those that are in the epoch before alone */
        if (!rfi_runfile_leaf(r->file, before->file->leaf[i].login)) {
            add_leaf(p, r, before, &before->file->leaf[i]);
        }
    }
}

/* ---- the leaf ---- */

/* How nats-server wants to read its login: 2.10 and later as a line of its configuration, which is included from a file with stricter permissions;
 * before, as credentials alone, with a JWT in front, at which hubs of this kind do not look. */
static bool takes_nkeys(void)
{
    enum { MAJOR = 2, NKEYS_MINOR = 10 };
    char path[RFI_PATH_SIZE];
    int major = 0;
    int minor = 0;
    return reef_net_server(path, sizeof path, &major, &minor) &&
           (major > MAJOR || (major == MAJOR && minor >= NKEYS_MINOR));
}

void rfi_broker_add_hub(rfi_page *p, const rfi_hub *hub)
{
    bool encrypted = strncmp(hub->url, "tls://", 6) == 0;
    rfi_page_add(p, "leafnodes {\n  remotes: [ {\n    urls: [\"%s%s\"]\n", encrypted ? "tls://" : "nats-leaf://",
                 strstr(hub->url, "://") + 3);
    if (takes_nkeys()) {
        rfi_page_add(p, "    include \"%s\"\n", RFI_LEAF_FILE); /* beside the configuration */
    } else {
        rfi_page_add(p, "    credentials: \"%s\"\n", hub->credentials);
    }
    if (encrypted) { /* a server without TLS is refused, and one with a certificate for another host */
        rfi_page_add(p, "    tls { timeout: 20");
        if (hub->authority) {
            rfi_page_add(p, ", ca_file: \"%s\"", hub->authority);
        }
        rfi_page_add(p, " }\n");
    }
    rfi_page_add(p, "  } ]\n}\n");
}

reef_status rfi_hub_write_credentials(const rfi_hub *hub, reef_error *error)
{
    char seed[RFI_NKEY_SEED_TEXT];
    char text[256];
    static const char credentials[] = "-----BEGIN NATS USER JWT-----\nnone\n------END NATS USER JWT------\n\n"
                                      "-----BEGIN USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n";
    rfi_login_print_seed(seed, hub->login);
    int size = takes_nkeys() ? snprintf(text, sizeof text, "nkey: \"%s\"\n", seed)
                             : snprintf(text, sizeof text, credentials, seed);
    (void)unlink(hub->credentials); /* of an earlier process; who can write here may as well have the key */
    int file = open(hub->credentials, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    bool written = file >= 0 && write(file, text, (size_t)size) == (ssize_t)size;
    int why = errno;
    if (file >= 0 && close(file) != 0 && written) {
        written = false;
        why = errno;
    }
    rfi_wipe(seed, sizeof seed);
    rfi_wipe(text, sizeof text);
    return written ? REEF_OK : rfi_fail(error, REEF_E_FILE, "%s: %s", rfi_path_show(hub->credentials), strerror(why));
}

/* What the hub has to do: to let this leaf in, and to look into its store. */
static bool hub_answers(const rfi_runfile *file, const rfi_hub *hub, const rfi_nats_operator *by)
{
    static const double patience = 2;
    char inbox[2 * RFI_NAME_SIZE + 8];
    char subject[2 * RFI_NAME_SIZE + 32];
    const rfi_leaf *leaf = rfi_runfile_leaf(file, hub->login->public_key);
    print_inbox(inbox, sizeof inbox, file->run, leaf ? leaf->name : "");
    (void)snprintf(subject, sizeof subject, "$JS.reef.API.DIRECT.GET.reef-%s-c", file->run);
    return leaf && rfi_nats_answers(by, inbox, subject, "{\"last_by_subj\":\"reef.none\"}", patience);
}

void rfi_hub_look(rfi_hub_watch *w, const rfi_log *log, const rfi_runfile *file, const rfi_hub *hub,
                  const rfi_nats_operator *by)
{
    static const double soon = 1;
    static const double rarely = 5;
    if (rfi_now() < w->ask_at) {
        return;
    }
    bool up = hub_answers(file, hub, by);
    double now = rfi_now();
    bool begins = !up && !w->told && now - w->since < rarely;
    w->ask_at = now + (up ? rarely : soon);
    if ((up == w->up && w->told) || begins) {
        return;
    }
    w->up = up;
    w->told = true;
    if (up) {
        RFI_LOG(log, REEF_LOG_INFO, "connected", RFI_LOG_TEXT("hub", hub->url));
    } else {
        RFI_LOG(log, REEF_LOG_WARNING, "disconnected", RFI_LOG_TEXT("hub", hub->url),
                RFI_LOG_TEXT("why", "it does not answer; server.log in the store says more"));
    }
}
