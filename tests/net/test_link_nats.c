/* Agents over a real nats-server: rounds with everybody present, models in chunks, an agent that comes late, a server that is killed. */
#include "net/frames.h"
#include "net/keys.h"
#include "net/link_nats.h"
#include "net/node.h"
#include "net/server.h"
#include "support/check.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { AGENTS = 4, LARGE = 20000 };

typedef struct member {
    rfi_keys keys;
    rfi_netlink *link;
    rfi_node *node;
    uint64_t next;
    double *phi;
    uint64_t missed; /* rounds that were over before it came */
} member;

typedef struct party {
    server server;
    member members[AGENTS];
    uint64_t count; /* numbers in a model */
    double deadline;
    bool wait_all; /* rounds wait for everybody, however slow the machine is */
} party;

/* libnats does not release a large message of which only a part had come when the connection was closed (natsParser_Destroy). Nothing else of it may
 * leak: a connection that nobody destroys leaks more than this. */
const char *__lsan_default_suppressions(void); /* NOLINT(bugprone-reserved-identifier): the sanitizer's name */
const char *__lsan_default_suppressions(void)  /* NOLINT(bugprone-reserved-identifier) */
{
    return "leak:natsBuf_Create\n";
}

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static reef_status record(void *user, uint64_t round, const unsigned char mark[RFI_HASH_BYTES], reef_error *error)
{
    (void)mark;
    (void)error;
    ((member *)user)->next = round + 1;
    return REEF_OK;
}

static bool combine(void *user, uint64_t round, const rfi_row *rows, const void *own, void *out)
{
    member *m = user;
    const rfi_window *window = rfi_node_window(m->node);
    (void)round;
    double count = own != NULL;
    double first = own ? ((const double *)own)[0] : 0;
    double last = own ? ((const double *)own)[window->setup.shape.count - 1] : 0;
    for (ptrdiff_t l = 0; l < window->setup.count; l++) {
        if (rows[l].model) {
            first += ((const double *)rows[l].model)[0];
            last += ((const double *)rows[l].model)[window->setup.shape.count - 1];
            count += 1;
        }
    }
    memset(out, 0, rfi_shape_bytes(&window->setup.shape));
    ((double *)out)[0] = first / count;
    ((double *)out)[window->setup.shape.count - 1] = last / count;
    return true;
}

static void enter(party *p, uint32_t k)
{
    member *m = &p->members[k];
    uint32_t agents[AGENTS - 1];
    rfi_neighbour neighbours[AGENTS - 1];
    reef_error error = {REEF_OK, ""};
    ptrdiff_t count = 0;
    for (uint32_t l = 0; l < AGENTS; l++) {
        if (l != k) {
            agents[count] = l;
            neighbours[count] = (rfi_neighbour){.agent = l, .weight = 1.0 / AGENTS};
            rfi_keys keys = frames_keys(l);
            memcpy(neighbours[count++].key, keys.public_key, RFI_KEY_BYTES);
        }
    }
    m->keys = frames_keys(k);
    m->phi = calloc(p->count, sizeof(double));
    const rfi_nats_setup via = {.url = p->server.url, .run = "t", .agent = k, .count = count, .agents = agents};
    CHECK(rfi_nats_open(&m->link, NULL, &via, &error) == REEF_OK, "%s", error.text);
    rfi_node_setup setup = {.window = {.shape = frames_shape(p->count),
                                       .epoch = 1,
                                       .count = count,
                                       .neighbours = neighbours,
                                       .own_weight = 1.0 / AGENTS,
                                       .malicious = 0.25,
                                       .stale = 2,
                                       .by = &rfi_ed25519},
                            .rounds = {.deadline = p->deadline, .wait_all = p->wait_all},
                            .agent = k,
                            .keys = &m->keys,
                            .boot = 100 + k,
                            .next = m->next,
                            .model = m->phi,
                            .link = m->link,
                            .record = record,
                            .combine = combine,
                            .user = m};
    memcpy(setup.window.run, frames_run, sizeof setup.window.run);
    CHECK(rfi_node_create(&m->node, NULL, &setup, now(), &error) == REEF_OK, "%s", error.text);
}

static void leave(member *m)
{
    rfi_node_destroy(&m->node);
    rfi_nats_close(&m->link);
    free(m->phi);
    m->phi = NULL;
}

static uint64_t rounds_of(const member *m)
{
    return m->node ? m->missed + rfi_node_rounds(m->node)->combined + rfi_node_rounds(m->node)->alone : UINT64_MAX;
}

/* Everybody who is there plays until each has so many rounds behind it; at most 60 s. */
static void play(party *p, uint64_t rounds)
{
    double end = now() + 60;
    for (bool done = false; !done;) {
        CHECK(now() < end, "agents are at rounds %llu %llu %llu %llu after 60 s",
              (unsigned long long)rounds_of(&p->members[0]), (unsigned long long)rounds_of(&p->members[1]),
              (unsigned long long)rounds_of(&p->members[2]), (unsigned long long)rounds_of(&p->members[3]));
        done = true;
        for (int k = 0; k < AGENTS; k++) {
            member *m = &p->members[k];
            double until = 0;
            reef_error error = {REEF_OK, ""};
            if (!m->node) {
                continue;
            }
            rfi_node_state state = rfi_node_step(m->node, now(), &until, &error);
            CHECK(state != RFI_NODE_FAILED, "agent %d: %s", k, error.text);
            if (state == RFI_NODE_READY && rounds_of(m) < rounds) {
                memcpy(m->phi, rfi_node_model(m->node), p->count * sizeof(double));
                m->phi[0] += k;
                m->phi[p->count - 1] -= k;
                rfi_node_offer(m->node, m->phi, now());
            }
            done = done && rounds_of(m) >= rounds;
        }
        rfi_nats_wait(p->members[0].link, 0.002);
    }
}

static int set_up(void **state)
{
    party *p = calloc(1, sizeof *p);
    *state = p;
    if (rfi_crypto_start(NULL) != REEF_OK) {
        return -1;
    }
    p->count = 2;
    p->deadline = 20;
    server_start(&p->server, "");
    server_streams(&p->server, AGENTS);
    return 0;
}

static int tear_down(void **state)
{
    party *p = *state;
    for (int k = 0; k < AGENTS; k++) {
        leave(&p->members[k]);
    }
    server_end(&p->server);
    free(p);
    return 0;
}

/* With everybody there each round adds the mean of 0, 1, 2, 3 to the first number. */
static void check_full(const party *p, uint64_t rounds)
{
    for (int k = 0; k < AGENTS; k++) {
        const double *model = rfi_node_model(p->members[k].node);
        const rfi_rounds *r = rfi_node_rounds(p->members[k].node);
        CHECK_CLOSE(model[0], 1.5 * (double)rounds, 0, "first number");
        CHECK_CLOSE(model[p->count - 1], -1.5 * (double)rounds, 0, "last number");
        assert_int_equal(r->combined, rounds);
        assert_int_equal(r->alone + r->idles + r->skipped, 0);
        for (int l = 0; l < AGENTS - 1; l++) {
            assert_int_equal(rfi_node_window(p->members[k].node)->peers[l].counts[RFI_USED], rounds);
        }
    }
}

static void everybody_is_there(void **state)
{
    party *p = *state;
    p->wait_all = true;
    for (uint32_t k = 0; k < AGENTS; k++) {
        enter(p, k);
    }
    play(p, 20);
    check_full(p, 20);
}

static void models_come_in_chunks(void **state)
{
    party *p = *state;
    p->count = LARGE;
    p->wait_all = true;
    for (uint32_t k = 0; k < AGENTS; k++) {
        enter(p, k);
    }
    play(p, 10);
    check_full(p, 10);
}

static void a_late_agent_joins(void **state)
{
    party *p = *state;
    p->deadline = 1;
    for (uint32_t k = 0; k + 1 < AGENTS; k++) {
        enter(p, k);
    }
    play(p, 8);
    p->deadline = 20; /* it has all the time it needs to fetch their models */
    p->members[AGENTS - 1].missed = 7;
    enter(p, AGENTS - 1);
    play(p, 8); /* the others have done theirs; it joins where they are and does one */
    const rfi_rounds *late = rfi_node_rounds(p->members[AGENTS - 1].node);
    assert_int_equal(late->joined, 1);
    assert_true(late->combined > 0 && late->round >= 8);
}

static void a_killed_server_costs_time_only(void **state)
{
    party *p = *state;
    p->deadline = 2;
    for (uint32_t k = 0; k < AGENTS; k++) {
        enter(p, k);
    }
    play(p, 5);
    server_kill(&p->server);
    play(p, 6); /* alone, or with what they have */
    server_start(&p->server, "");
    uint64_t before[AGENTS];
    for (int k = 0; k < AGENTS; k++) {
        before[k] = rfi_node_rounds(p->members[k].node)->combined;
    }
    play(p, 16);
    for (int k = 0; k < AGENTS; k++) {
        CHECK(rfi_node_rounds(p->members[k].node)->combined >= before[k] + 5, "agent %d does not combine again", k);
    }
}

/* From now on the server lets nobody in but the owner of these keys. */
static void ask_for_a_login(party *p, const rfi_keys *keys)
{
    char user[RFI_KEY_TEXT];
    char config[200];
    server_kill(&p->server);
    rfi_key_print(user, RFI_LETTER_LOGIN, keys->public_key);
    (void)snprintf(config, sizeof config, "authorization { users: [ { nkey: %s } ] }", user);
    server_start(&p->server, config);
}

static void login_with_a_key(void **state)
{
    party *p = *state;
    rfi_keys keys = frames_keys(50);
    rfi_keys stranger = frames_keys(51);
    reef_error error = {REEF_OK, ""};
    ask_for_a_login(p, &keys);
    rfi_nats_setup setup = {.url = p->server.url, .run = "t", .agent = 0, .login = &keys};
    const rfi_topic slot = {.kind = RFI_TOPIC_SLOT};
    const rfi_keys *const logins[] = {&keys, &stranger};
    for (int i = 0; i < 2; i++) {
        rfi_netlink *link = NULL;
        rfi_message message;
        setup.login = logins[i];
        bool answered = false;
        reef_status status = rfi_nats_open(&link, NULL, &setup, &error);
        for (double end = now() + (i == 0 ? 20 : 1); status == REEF_OK && now() < end && !answered;) {
            link->ops->get(link, &slot);
            rfi_nats_wait(link, 0.2);
            while (link->ops->poll(link, &message)) {
                answered = answered || message.kind == RFI_MESSAGE_ABSENT;
            }
        }
        CHECK(answered == (i == 0), "login %d: %d", i, answered);
        rfi_nats_close(&link);
    }
}

/* A server that asks for no signature, and so sends no nonce, is none to log in at; it is tried again, like one that is away. */
static void no_login_where_none_is_asked_for(void **state)
{
    const party *p = *state;
    const rfi_keys keys = frames_keys(50);
    const rfi_nats_setup setup = {.url = p->server.url, .run = "t", .agent = 0, .login = &keys};
    rfi_netlink *link = NULL;
    rfi_nats_counts counts;
    rfi_message message;
    reef_error error = {REEF_OK, ""};
    CHECK(rfi_nats_open(&link, NULL, &setup, &error) == REEF_OK, "%s", error.text);
    for (double end = now() + 3; now() < end; rfi_nats_wait(link, 0.1)) {
        (void)link->ops->poll(link, &message);
        rfi_nats_count(link, &counts);
        assert_false(counts.up || rfi_nats_refused(link));
    }
    rfi_nats_close(&link);
}

/* A neighbour that sends the largest messages a broker takes costs no memory for them: they are kept empty, to be refused. */
static void large_messages_take_no_more_room(void **state)
{
    enum { LARGE_BYTES = 1000000, MANY = 40 };
    party *p = *state;
    static unsigned char bytes[LARGE_BYTES];
    const uint32_t sender = 1;
    const rfi_nats_setup to = {.url = p->server.url, .run = "t", .agent = 0, .count = 1, .agents = &sender};
    const rfi_nats_setup from = {.url = p->server.url, .run = "t", .agent = sender};
    rfi_netlink *receiver = NULL;
    rfi_netlink *liar = NULL;
    rfi_message message;
    size_t sum = 0;
    int count = 0;
    assert_int_equal(rfi_nats_open(&receiver, NULL, &to, NULL), REEF_OK);
    assert_int_equal(rfi_nats_open(&liar, NULL, &from, NULL), REEF_OK);
    for (int i = 0; i < 2 * MANY; i++) { /* nobody polls meanwhile */
        const rfi_topic topic = {
            .kind = i < MANY ? RFI_TOPIC_SLOT : RFI_TOPIC_EVENT, .agent = sender, .round = (uint64_t)i};
        liar->ops->publish(liar, &topic, bytes, sizeof bytes);
    }
    rfi_nats_close(&liar); /* waits until the server has them */
    for (double end = now() + 2; now() < end;) {
        struct timespec pause = {0, 50000000};
        (void)nanosleep(&pause, NULL);
    }
    while (receiver->ops->poll(receiver, &message)) {
        sum += message.kind == RFI_MESSAGE_DATA ? message.size : 0;
        count += message.kind == RFI_MESSAGE_DATA;
    }
    CHECK(count > 0 && sum == 0, "%d messages of %zu bytes", count, sum);
    rfi_nats_close(&receiver);
}

/* Until the server knows what the link listens to: it takes a link's wishes in turn. */
static void wait_until_it_listens(rfi_netlink *link)
{
    const rfi_topic slot = {.kind = RFI_TOPIC_SLOT};
    rfi_message message = {.kind = RFI_MESSAGE_DATA};
    for (double end = now() + 60; message.kind != RFI_MESSAGE_ABSENT;) {
        CHECK(now() < end, "the store says nothing");
        link->ops->get(link, &slot);
        rfi_nats_wait(link, 0.2);
        while (message.kind != RFI_MESSAGE_ABSENT && link->ops->poll(link, &message)) {
        }
    }
}

/* What is too long for a frame is refused like anything else: it comes, without what it held, and what came with it comes, too. */
static void a_large_message_displaces_no_other(void **state)
{
    enum { MESSAGES = 6, MOST = 1 << 20, SMALL = 1000, WAYS_IN = 2 };
    party *p = *state;
    static unsigned char bytes[MOST];
    static const rfi_topic_kind kinds[WAYS_IN] = {RFI_TOPIC_SLOT, RFI_TOPIC_EVENT};
    const uint32_t sender = 1;
    const rfi_nats_setup to = {.url = p->server.url, .run = "t", .agent = 0, .count = 1, .agents = &sender};
    const rfi_nats_setup from = {.url = p->server.url, .run = "t", .agent = sender};
    rfi_netlink *receiver = NULL;
    rfi_netlink *liar = NULL;
    rfi_message message;
    int large = 0;
    int small = 0;
    assert_int_equal(rfi_nats_open(&receiver, NULL, &to, NULL), REEF_OK);
    assert_int_equal(rfi_nats_open(&liar, NULL, &from, NULL), REEF_OK);
    wait_until_it_listens(receiver);
    for (int i = 0; i < WAYS_IN * MESSAGES; i++) { /* the first of each kind is large; nobody polls meanwhile */
        const rfi_topic topic = {.kind = kinds[i / MESSAGES], .agent = sender, .round = (uint64_t)i};
        liar->ops->publish(liar, &topic, bytes, i % MESSAGES ? SMALL : MOST);
    }
    rfi_nats_close(&liar);
    (void)nanosleep(&(struct timespec){1, 0}, NULL);
    for (double end = now() + 60; large + small < WAYS_IN * MESSAGES;) {
        CHECK(now() < end, "%d large messages and %d small ones came", large, small);
        rfi_nats_wait(receiver, 0.2);
        while (receiver->ops->poll(receiver, &message)) {
            small += message.kind == RFI_MESSAGE_DATA && message.size == SMALL;
            large += message.kind == RFI_MESSAGE_DATA && message.size == 0;
        }
    }
    assert_int_equal(large, WAYS_IN);
    rfi_nats_close(&receiver);
}

/* What an observer has heard, on a thread of libnats: the first message keeps it busy until it is told to go on. */
typedef struct audience {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool busy, released;
    int count;
    size_t bytes;
} audience;

static void hear_slowly(void *user, const char *subject, const unsigned char *bytes, size_t size)
{
    audience *a = user;
    (void)subject;
    (void)bytes;
    (void)pthread_mutex_lock(&a->lock);
    a->busy = true;
    (void)pthread_cond_broadcast(&a->changed);
    while (!a->released) {
        (void)pthread_cond_wait(&a->changed, &a->lock);
    }
    a->count++;
    a->bytes += size;
    (void)pthread_mutex_unlock(&a->lock);
}

/* Until no more has come for a second. */
static void wait_until_all_is_heard(audience *a)
{
    int before = -1;
    int heard = 0;
    while (heard != before || heard < 2) {
        before = heard;
        (void)nanosleep(&(struct timespec){1, 0}, NULL);
        (void)pthread_mutex_lock(&a->lock);
        heard = a->count;
        (void)pthread_mutex_unlock(&a->lock);
    }
}

/* However long an observer is busy, and whatever an agent sends meanwhile, what waits takes a bounded room. */
static void an_observer_that_is_busy_takes_no_more_room(void **state)
{
    enum { LARGE_BYTES = 1000000, MANY = 80, MOST = 40 };
    party *p = *state;
    static unsigned char bytes[LARGE_BYTES];
    audience a = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    const rfi_keys login = frames_keys(50);
    const rfi_nats_ear_setup to = {.url = p->server.url, .run = "t", .login = &login, .hear = hear_slowly, .user = &a};
    const rfi_nats_setup from = {.url = p->server.url, .run = "t", .agent = 1, .login = &login};
    const rfi_topic topic = {.kind = RFI_TOPIC_STATUS, .agent = 1};
    rfi_nats_ear *ear = NULL;
    rfi_netlink *liar = NULL;
    ask_for_a_login(p, &login);
    assert_int_equal(rfi_nats_listen(&ear, &to, NULL), REEF_OK);
    assert_int_equal(rfi_nats_open(&liar, NULL, &from, NULL), REEF_OK);
    bool busy = false;
    for (double end = now() + 60; !busy;) {
        CHECK(now() < end, "nothing is heard");
        liar->ops->publish(liar, &topic, "", 1);
        (void)nanosleep(&(struct timespec){0, 50000000}, NULL);
        (void)pthread_mutex_lock(&a.lock);
        busy = a.busy;
        (void)pthread_mutex_unlock(&a.lock);
    }
    for (int i = 0; i < MANY; i++) {
        liar->ops->publish(liar, &topic, bytes, sizeof bytes);
    }
    rfi_nats_close(&liar); /* waits until the server has them */
    (void)nanosleep(&(struct timespec){2, 0}, NULL);
    (void)pthread_mutex_lock(&a.lock);
    a.released = true;
    (void)pthread_cond_broadcast(&a.changed);
    (void)pthread_mutex_unlock(&a.lock);
    wait_until_all_is_heard(&a);
    CHECK(a.bytes > LARGE_BYTES && a.bytes <= (size_t)MOST * LARGE_BYTES, "%d messages of %zu bytes", a.count, a.bytes);
    rfi_nats_ear_close(&ear);
}

static void refuses_brokers_without_tls(void **state)
{
    (void)state;
    rfi_netlink *link = NULL;
    reef_error error = {REEF_OK, ""};
    rfi_nats_setup setup = {.url = "nats://broker.example:4222", .run = "t"};
    assert_int_equal(rfi_nats_open(&link, NULL, &setup, &error), REEF_E_ARG);
    setup.url = "nats://127.0.0.1.example:4222";
    assert_int_equal(rfi_nats_open(&link, NULL, &setup, &error), REEF_E_ARG);
    setup.url = "nats://127.0.0.1:4222";
    setup.run = "a.>";
    assert_int_equal(rfi_nats_open(&link, NULL, &setup, &error), REEF_E_ARG);
    assert_null(link);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(everybody_is_there),
        TEST(models_come_in_chunks),
        TEST(a_late_agent_joins),
        TEST(a_killed_server_costs_time_only),
        TEST(large_messages_take_no_more_room),
        TEST(a_large_message_displaces_no_other),
        TEST(an_observer_that_is_busy_takes_no_more_room),
        TEST(login_with_a_key),
        TEST(no_login_where_none_is_asked_for),
        cmocka_unit_test(refuses_brokers_without_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
