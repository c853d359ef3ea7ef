#include "net/camp.h"

#include "net/broker.h"
#include "net/link_nats.h"
#include "net/node.h"
#include "support/check.h"

#include <reef/net.h>

#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double camp_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void camp_pause(void)
{
    (void)nanosleep(&(struct timespec){0, 50000}, NULL);
}

/* ---- the honest agents ---- */

typedef struct honest {
    rfi_netlink *link;
    rfi_node *node;
    double *phi;
} honest;

static reef_status record(void *user, uint64_t round, const unsigned char mark[RFI_HASH_BYTES], reef_error *error)
{
    (void)user;
    (void)round;
    (void)mark;
    (void)error;
    return REEF_OK;
}

/* The mean: one number of a hostile model would show. */
static bool combine(void *user, uint64_t round, const rfi_row *rows, const void *own, void *out)
{
    const rfi_window *window = rfi_node_window(((honest *)user)->node);
    double *mean = out;
    (void)round;
    for (uint64_t i = 0; i < window->setup.shape.count; i++) {
        double sum = own ? ((const double *)own)[i] : 0;
        double count = own != NULL;
        for (ptrdiff_t l = 0; l < window->setup.count; l++) {
            sum += rows[l].model ? ((const double *)rows[l].model)[i] : 0;
            count += rows[l].model != NULL;
        }
        mean[i] = sum / count;
    }
    return true;
}

/* In the process of the honest agents, where a failing assertion would run the other tests a second time. */
static void must(reef_status status, const reef_error *error)
{
    if (status != REEF_OK) {
        print_error("%s\n", error->text);
        _exit(3);
    }
}

static void enter(camp *c, const rfi_roster *roster, honest *h, int k)
{
    rfi_neighbour neighbours[RFI_NEIGHBOURS_MAX];
    uint32_t agents[RFI_NEIGHBOURS_MAX];
    reef_error error = {REEF_OK, ""};
    double own = 0;
    ptrdiff_t count = rfi_roster_neighbours(roster, k, neighbours, &own);
    for (ptrdiff_t l = 0; l < count; l++) {
        agents[l] = neighbours[l].agent;
    }
    h->phi = calloc(c->file.shape.count, sizeof *h->phi);
    const rfi_nats_setup via = {.url = c->server.url,
                                .run = c->file.run,
                                .agent = (uint32_t)k,
                                .count = count,
                                .agents = agents,
                                .login = &c->secrets[k].login};
    must(rfi_nats_open(&h->link, NULL, &via, &error), &error);
    rfi_node_setup setup = {.window = {.shape = c->file.shape,
                                       .epoch = 1,
                                       .count = count,
                                       .neighbours = neighbours,
                                       .own_weight = own,
                                       .malicious = c->file.terms.malicious,
                                       .stale = CAMP_STALE,
                                       .by = &rfi_ed25519},
                            .rounds = {.deadline = c->file.deadline},
                            .agent = (uint32_t)k,
                            .keys = &c->secrets[k].identity,
                            .boot = 100 + (uint64_t)k,
                            .model = h->phi,
                            .link = h->link,
                            .record = record,
                            .combine = combine,
                            .user = h};
    memcpy(setup.window.run, c->file.hash, sizeof setup.window.run);
    must(rfi_node_create(&h->node, NULL, &setup, camp_now(), &error), &error);
}

static void show(camp_view *view, const honest *h, int k)
{
    const rfi_window *window = rfi_node_window(h->node);
    const rfi_rounds *rounds = rfi_node_rounds(h->node);
    view->round[k] = rounds->round;
    view->combined[k] = rounds->combined;
    view->alone[k] = rounds->alone;
    for (ptrdiff_t l = 0; l < window->setup.count; l++) {
        const rfi_peer *peer = &window->peers[l];
        view->excluded[k][peer->who.agent] = peer->excluded;
        for (int cause = 0; cause < RFI_CAUSES; cause++) {
            view->counts[k][peer->who.agent][cause] = peer->counts[cause];
        }
    }
}

/* False: it has failed. */
static bool step(const camp *c, honest *h, int k)
{
    double until = 0;
    reef_error error = {REEF_OK, ""};
    rfi_node_state state = rfi_node_step(h->node, camp_now(), &until, &error);
    if (state == RFI_NODE_READY) {
        memcpy(h->phi, rfi_node_model(h->node), c->file.shape.count * sizeof *h->phi);
        h->phi[0] += k;
        rfi_node_offer(h->node, h->phi, camp_now());
    }
    show(c->view, h, k);
    if (state == RFI_NODE_FAILED) {
        print_error("agent %d: %s\n", k, error.text);
    }
    return state != RFI_NODE_FAILED && fabs(h->phi[0]) < 1e5; /* what nobody but hostile frames could bring about */
}

static bool next_stream(void *user, ptrdiff_t index, char *name, char *body)
{
    return rfi_stream_request(user, index, name, body);
}

/* Until it is told to end; the exit code tells how it went. */
static int be_honest(camp *c, const camp_terms *terms, rfi_roster *roster)
{
    honest agents[CAMP_HONEST] = {{0}};
    bool good = true;
    const rfi_nats_operator by = {.url = c->server.url, .login = &c->operator_login};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)alarm(900);
    /* So that the memory of the process is what is held: large messages are given back at once, and threads share what is free. */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 16);
    (void)mallopt(M_ARENA_MAX, 1);
    if (terms->streams && rfi_nats_make_streams(&by, next_stream, roster, NULL) != REEF_OK) {
        return 2;
    }
    for (int k = 0; k < CAMP_HONEST && !terms->empty; k++) {
        enter(c, roster, &agents[k], k);
    }
    for (int turn = 0; good && !c->view->stop; turn = (turn + 1) % CAMP_HONEST) {
        if (terms->empty) {
            c->view->round[0] = 1; /* the streams are there */
            camp_pause();
            continue;
        }
        for (int k = 0; good && k < CAMP_HONEST; k++) {
            good = step(c, &agents[k], k);
        }
        rfi_nats_wait(agents[turn].link, 0.0005);
    }
    for (int k = 0; k < CAMP_HONEST; k++) {
        rfi_node_destroy(&agents[k].node);
        rfi_nats_close(&agents[k].link);
        free(agents[k].phi);
    }
    rfi_roster_free(roster);
    rfi_runfile_free(&c->file);
    return good ? 0 : 1;
}

/* ---- the run ---- */

static void write_run(camp *c, const camp_terms *terms)
{
    char path[SCRATCH_PATH];
    char draft[SCRATCH_PATH];
    char keys[REEF_NET_KEYS_SIZE];
    char key[SCRATCH_PATH];
    char name[16];
    char text[4096];
    reef_error error = {REEF_OK, ""};
    CHECK(reef_net_key_make(scratch_path(&c->folder, "boss", key), keys, &error) == REEF_OK, "%s", error.text);
    int length = snprintf(text, sizeof text,
                          "reef: 1\nrun: t\nid: 000102030405060708090a0b0c0d0e0f\ncoordinator: %.*s\ngraph: complete\n"
                          "weights: uniform\nrule: mean\nmalicious: 0.25\ndeadline: %gs\nchunk: 64KiB\n"
                          "model: {count: %llu, type: f64}\nbrokers: [\"nats://127.0.0.1:4222\"]\nagents:\n",
                          (int)strcspn(keys, " "), keys, terms->deadline, (unsigned long long)terms->count);
    for (int k = 0; k < CAMP_AGENTS; k++) {
        (void)snprintf(name, sizeof name, "key-%d", k);
        CHECK(reef_net_key_make(scratch_path(&c->folder, name, path), keys, &error) == REEF_OK, "%s", error.text);
        CHECK(rfi_secret_read(path, &c->secrets[k], &error) == REEF_OK, "%s", error.text);
        length += snprintf(text + length, sizeof text - (size_t)length, "  agent-%d: \"%s\"\n", k, keys);
    }
    (void)scratch_file(&c->folder, "draft", text, (size_t)length, draft);
    CHECK(reef_net_sign(draft, key, scratch_path(&c->folder, "run", path), &error) == REEF_OK, "%s", error.text);
    CHECK(rfi_runfile_load(NULL, path, &c->file, &error) == REEF_OK, "%s", error.text);
}

static void start_server(camp *c, const rfi_roster *roster)
{
    unsigned char seed[RFI_KEY_BYTES];
    char store[SCRATCH_PATH];
    reef_error error = {REEF_OK, ""};
    rfi_page page = {0};
    rfi_random(seed, sizeof seed);
    rfi_keys_derive(&c->operator_login, seed, RFI_KEY_LOGIN);
    scratch_open(&c->server.folder); /* the server removes its store with it */
    (void)snprintf(store, sizeof store, "%s.store", c->server.folder.folder);
    assert_int_equal(mkdir(store, 0700), 0);
    const rfi_broker_setup setup = {.listen = "127.0.0.1:-1", .store = store, .operator_login = &c->operator_login};
    CHECK(rfi_broker_config(roster, &setup, &page, &error) == REEF_OK, "%s", error.text);
    server_start(&c->server, page.text);
    rfi_page_free(&page);
}

static void share_view(camp *c)
{
    char path[SCRATCH_PATH];
    int file = open(scratch_path(&c->folder, "view", path), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    assert_true(file >= 0 && ftruncate(file, (off_t)sizeof *c->view) == 0);
    c->view = mmap(NULL, sizeof *c->view, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_true(c->view != MAP_FAILED);
    (void)close(file);
}

void camp_open(camp *c, const camp_terms *terms)
{
    rfi_roster roster;
    reef_error error = {REEF_OK, ""};
    memset(c, 0, sizeof *c);
    assert_int_equal(rfi_crypto_start(NULL), REEF_OK);
    scratch_open(&c->folder);
    write_run(c, terms);
    CHECK(rfi_roster_create(NULL, &c->file, &roster, &error) == REEF_OK, "%s", error.text);
    start_server(c, &roster);
    share_view(c);
    c->honest = fork();
    assert_true(c->honest >= 0);
    if (c->honest == 0) {
        _exit(be_honest(c, terms, &roster));
    }
    rfi_roster_free(&roster);
    for (double end = camp_now() + 60; terms->empty && camp_round(c) == 0;) {
        CHECK(camp_now() < end, "no streams after 60 s");
        camp_pause();
    }
}

void camp_close(camp *c)
{
    int status = 0;
    c->view->stop = true;
    assert_int_equal(waitpid(c->honest, &status, 0), c->honest);
    CHECK(status == 0, "the honest agents ended with status %d", status);
    server_end(&c->server);
    (void)munmap(c->view, sizeof *c->view);
    rfi_runfile_free(&c->file);
    scratch_close(&c->folder);
}

/* ---- looking at it, and getting in ---- */

void camp_enter(const camp *c, wire *w, int agent)
{
    char user[RFI_KEY_TEXT];
    const rfi_keys *login = agent < 0 ? &c->operator_login : &c->secrets[agent].login;
    rfi_key_print(user, RFI_LETTER_LOGIN, login->public_key);
    assert_true(wire_open(w, c->server.port));
    CHECK(wire_login(w, user, login), "login of agent %d: %s", agent, w->error);
}

uint64_t camp_count(const camp *c, int receiver, int sender, rfi_cause cause)
{
    return c->view->counts[receiver][sender][cause];
}

uint64_t camp_heard(const camp *c, int receiver, int sender)
{
    uint64_t sum = 0;
    for (int cause = 0; cause < RFI_CAUSES; cause++) {
        bool of_rows = cause == RFI_USED || cause == RFI_STALE || cause == RFI_GONE || cause == RFI_TIMEOUT;
        sum += of_rows ? 0 : camp_count(c, receiver, sender, (rfi_cause)cause);
    }
    return sum;
}

uint64_t camp_round(const camp *c)
{
    uint64_t most = 0;
    for (int k = 0; k < CAMP_HONEST; k++) {
        most = c->view->round[k] > most ? c->view->round[k] : most;
    }
    return most;
}

void camp_combine(const camp *c, uint64_t more)
{
    for (int k = 0; k < CAMP_HONEST; k++) {
        uint64_t before = c->view->combined[k];
        for (double end = camp_now() + 60; c->view->combined[k] < before + more;) {
            CHECK(camp_now() < end, "agent %d has combined %llu times in a minute, at round %llu", k,
                  (unsigned long long)(c->view->combined[k] - before), (unsigned long long)c->view->round[k]);
            camp_pause();
        }
    }
}

long camp_memory(const camp *c, bool most)
{
    char path[64];
    char line[256];
    long kilobytes = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)c->honest);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        kilobytes = strncmp(line, most ? "VmHWM:" : "VmRSS:", 6) == 0 ? strtol(line + 6, NULL, 10) : kilobytes;
    }
    (void)fclose(file);
    assert_true(kilobytes > 0);
    return kilobytes;
}

rfi_head camp_head(const camp *c, int agent, uint64_t round, const double *model)
{
    const rfi_shape *shape = &c->file.shape;
    rfi_head head = {.type = RFI_FRAME_MODEL,
                     .numbers = shape->numbers,
                     .epoch = 1,
                     .agent = (uint32_t)agent,
                     .round = round,
                     .count = shape->count,
                     .payload = rfi_shape_bytes(shape),
                     .chunks = rfi_shape_chunks(shape),
                     .boot = 666};
    memcpy(head.run, c->file.hash, sizeof head.run);
    memcpy(head.key, c->secrets[agent].identity.public_key, sizeof head.key);
    if (head.chunks) {
        unsigned char index[64 * RFI_HASH_BYTES];
        assert_true(head.chunks <= 64);
        head.chunk = shape->chunk;
        rfi_fetch_index(shape, (const unsigned char *)model, index, head.root);
    } else {
        head.flags = RFI_FLAG_INLINE;
        rfi_hash(head.root, model, rfi_shape_bytes(shape));
    }
    return head;
}
