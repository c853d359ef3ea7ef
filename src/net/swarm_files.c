/* The files of a swarm: a key per agent, and the run file with what the experiment says. */
#include "net/swarm.h"

#include "base/error.h"
#include "base/number.h"
#include "io/file.h"
#include "net/broker.h"
#include "net/link_nats_subject.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

bool rfi_swarm_path(const rfi_swarm *s, char path[RFI_PATH_SIZE], const char *name, ptrdiff_t number)
{
    int length = number < 0 ? snprintf(path, RFI_PATH_SIZE, "%s/%s", s->folder, name)
                            : snprintf(path, RFI_PATH_SIZE, "%s/%s-%td", s->folder, name, number);
    return length < RFI_PATH_SIZE;
}

/* Removes a folder of files and folders, never following links out of it. */
void rfi_swarm_remove(const char *folder)
{
    DIR *list = opendir(folder);
    for (struct dirent *entry = list ? readdir(list) : NULL; entry; entry = readdir(list)) {
        char path[RFI_PATH_SIZE];
        struct stat about;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path ||
            lstat(path, &about) != 0) {
            continue;
        }
        if (S_ISDIR(about.st_mode)) {
            rfi_swarm_remove(path);
        } else {
            (void)unlink(path);
        }
    }
    if (list) {
        (void)closedir(list);
    }
    (void)rmdir(folder);
}

double rfi_swarm_malicious_weight(const rfi_swarm *s)
{
    reef_csr csr = reef_graph_csr(s->world->graph);
    const bool *malicious = s->world->malicious;
    double most = 0;
    for (ptrdiff_t k = 0; malicious && k < csr.agents; k++) {
        double weight = 0;
        for (ptrdiff_t i = csr.start[k]; i < csr.start[k + 1] && !malicious[k]; i++) {
            weight += malicious[csr.senders[i]] ? csr.weight[i] : 0;
        }
        most = fmax(most, weight);
    }
    return most;
}

/* A port that nobody listens on just now, held by the socket. */
static bool find_port(int *held, int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    *held = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool found = *held >= 0 && bind(*held, (struct sockaddr *)&address, size) == 0 &&
                 getsockname(*held, (struct sockaddr *)&address, &size) == 0;
    *port = (int)ntohs(address.sin_port);
    return found;
}

/* One for each broker; a server may still find its port taken, and then the swarm ends with a sentence. */
static reef_status find_ports(rfi_swarm *s, reef_error *error)
{
    int held[RFI_BROKERS_MAX];
    bool found = s->brokers <= RFI_BROKERS_MAX;
    ptrdiff_t count = 0;
    while (found && count < s->brokers) {
        int port = 0;
        found = find_port(&held[count], &port);
        (void)snprintf(s->url[count], sizeof s->url[count], "nats://127.0.0.1:%d", port);
        count++;
    }
    while (count > 0) {
        if (held[--count] >= 0) {
            (void)close(held[count]);
        }
    }
    return found ? REEF_OK
                 : rfi_fail(error, REEF_E_ENGINE, "this machine has no free ports for %td brokers (at most %d)",
                            s->brokers, RFI_BROKERS_MAX);
}

/* ---- the run file ---- */

/* A text in double quotes. */
static void add_text(rfi_page *page, const char *key, const char *text)
{
    rfi_page_add(page, "%s: \"", key);
    for (const char *at = text; *at; at++) {
        rfi_page_add(page, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
    }
    rfi_page_add(page, "\"\n");
}

static reef_status add_agents(rfi_swarm *s, rfi_page *page, reef_error *error)
{
    rfi_page_add(page, "agents:\n");
    for (ptrdiff_t k = 0; k < s->agents; k++) {
        char path[RFI_PATH_SIZE];
        char keys[REEF_NET_KEYS_SIZE];
        reef_status status = rfi_swarm_path(s, path, "key", k)
                                 ? reef_net_key_make(path, keys, error)
                                 : rfi_fail(error, REEF_E_FILE, "the path of the swarm's folder is too long");
        if (status != REEF_OK) {
            return status;
        }
        rfi_page_add(page, "  agent-%td: \"%s\"\n", k, keys);
    }
    return REEF_OK;
}

/* The login of who watches. */
static reef_status add_observer(const rfi_swarm *s, rfi_page *page, reef_error *error)
{
    char path[RFI_PATH_SIZE];
    char keys[REEF_NET_KEYS_SIZE];
    if (!rfi_swarm_watched(s)) {
        return REEF_OK;
    }
    reef_status status = rfi_swarm_path(s, path, "observer.key", -1)
                             ? reef_net_key_make(path, keys, error)
                             : rfi_fail(error, REEF_E_FILE, "the path of the swarm's folder is too long");
    if (status == REEF_OK) {
        rfi_page_add(page, "observers:\n  dash: \"%s\"\n", keys + strcspn(keys, " ") + 1);
    }
    return status;
}

static void add_test(const rfi_swarm *s, rfi_page *page)
{
    const rfi_cell *cell = &s->world->cell;
    const char *mark = "";
    rfi_page_add(page, "test:\n  ");
    add_text(page, "problem", cell->specs[RFI_PART_PROBLEM]);
    if (s->world->attack && s->world->malicious_count > 0) {
        rfi_page_add(page, "  ");
        add_text(page, "attack", cell->specs[RFI_PART_ATTACK]);
    }
    rfi_page_add(page, "  malicious: \"");
    for (ptrdiff_t k = 0; s->world->malicious && k < s->agents; k++) {
        if (s->world->malicious[k]) {
            rfi_page_add(page, "%s%td", mark, k);
            mark = " ";
        }
    }
    rfi_page_add(page,
                 "\"\n  two_faced: %.17g\n  late: %.17g\n  drop: %.17g\n  sync: false\n  wait: %s\n  rounds: %lld\n  "
                 "every: %lld\n",
                 s->options->two_faced, s->options->late, s->options->drop, s->options->patient ? "true" : "false",
                 (long long)cell->numbers.rounds, (long long)cell->numbers.every);
}

static void add_terms(const rfi_swarm *s, rfi_page *page)
{
    enum { ID = 16 };
    const rfi_cell *cell = &s->world->cell;
    unsigned char id[ID];
    const char *weights = cell->specs[RFI_PART_WEIGHTS];
    const char *strategy = cell->specs[RFI_PART_STRATEGY];
    rfi_random(id, sizeof id);
    rfi_page_add(page, "id: ");
    for (int i = 0; i < ID; i++) {
        rfi_page_add(page, "%02x", id[i]);
    }
    rfi_page_add(page, "\nseed: %lld\nmalicious: %.17g\nlargest: 1e30\ndeadline: %.17gs\nbrokers: [",
                 (long long)cell->numbers.seed, s->options->malicious, s->options->deadline);
    for (ptrdiff_t i = 0; i < s->brokers; i++) {
        rfi_page_add(page, "%s\"%s\"", i ? ", " : "", s->url[i]);
    }
    rfi_page_add(page, "]\n");
    if (s->options->seal) {
        rfi_page_add(page, "seal: true\n");
    }
    if (s->options->stale >= 0) {
        rfi_page_add(page, "stale: %d\n", s->options->stale);
    }
    add_text(page, "graph", cell->specs[RFI_PART_GRAPH]);
    add_text(page, "weights", weights[0] ? weights : "uniform");
    add_text(page, "rule", cell->specs[RFI_PART_RULE]);
    add_text(page, "strategy", strategy[0] ? strategy : "diffusion");
}

/* The experiment's name as far as a run can have it; the live page has it as title. */
static void name_run(const rfi_swarm *s, char run[RFI_RUN_TOKEN + 1])
{
    enum { LETTERS = 26 };
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const char *from = reef_experiment_name(s->experiment);
    size_t used = 0;
    for (; *from && used < RFI_RUN_TOKEN; from++) {
        const char *upper = strchr(letters, *from);
        const char *kept = upper && upper - letters < LETTERS ? upper + LETTERS : upper;
        if (kept || (used > 0 && run[used - 1] != '-')) { /* one dash for all that cannot be in it */
            memcpy(run + used++, kept ? kept : "-", 1);
        }
    }
    used -= used > 0 && run[used - 1] == '-';
    run[used] = '\0';
    if (used == 0) {
        (void)snprintf(run, RFI_RUN_TOKEN + 1, "swarm");
    }
}

/* What every agent would find wrong is told once, before any process is started. */
static reef_status check_run_file(const rfi_swarm *s, reef_error *error)
{
    rfi_runfile file;
    rfi_roster roster = {0};
    reef_status status = rfi_runfile_load(NULL, s->run_file, &file, error);
    if (status == REEF_OK) {
        status = rfi_roster_create(NULL, &file, &roster, error);
        rfi_roster_free(&roster);
        rfi_runfile_free(&file);
    }
    return status;
}

static reef_status write_run_file(rfi_swarm *s, reef_error *error)
{
    char key[RFI_PATH_SIZE];
    char draft[RFI_PATH_SIZE];
    char keys[REEF_NET_KEYS_SIZE];
    char run[RFI_RUN_TOKEN + 1];
    rfi_page page = {0};
    if (!rfi_swarm_path(s, key, "coordinator.key", -1) || !rfi_swarm_path(s, draft, "draft.yaml", -1) ||
        !rfi_swarm_path(s, s->run_file, "run.yaml", -1)) {
        return rfi_fail(error, REEF_E_FILE, "the path of the swarm's folder is too long");
    }
    reef_status status = reef_net_key_make(key, keys, error);
    if (status != REEF_OK) {
        return status;
    }
    name_run(s, run);
    rfi_page_add(&page, "reef: 1\nrun: \"%s\"\ncoordinator: %.*s\n", run, (int)strcspn(keys, " "), keys);
    add_terms(s, &page);
    add_test(s, &page);
    status = add_agents(s, &page, error);
    if (status == REEF_OK) {
        status = add_observer(s, &page, error);
    }
    if (status == REEF_OK && page.failed) {
        status = rfi_fail(error, REEF_E_NOMEM, "no memory for a run file");
    }
    if (status == REEF_OK && page.size > RFI_RUNFILE_MAX - RFI_SIGNED_SIZE) {
        status = rfi_fail(error, REEF_E_ARG, "%td agents do not fit into a run file, which has %zu KiB at most",
                          s->agents, RFI_RUNFILE_MAX / 1024);
    }
    if (status == REEF_OK) {
        status = rfi_file_write(NULL, draft, &(rfi_piece){page.text, page.size}, 1, error);
    }
    rfi_page_free(&page);
    if (status == REEF_OK) {
        status = reef_net_sign(draft, key, s->run_file, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    return check_run_file(s, error);
}

reef_status rfi_swarm_write(rfi_swarm *s, reef_error *error)
{
    reef_status status = rfi_crypto_start(error);
    if (status == REEF_OK) {
        status = find_ports(s, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    return write_run_file(s, error);
}
