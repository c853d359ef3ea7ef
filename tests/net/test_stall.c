/* A broker that logs an agent in and then reads nothing any more: what is published to it must not hold the agent up for ever, and not at all
 * for long where another broker works. */
#include "net/link_nats.h"
#include "support/check.h"

#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 512 * 1024, CHUNKS = 64, HANG_SECONDS = 120 };

typedef struct deaf_server {
    int listener;
    int port;
    pid_t pid;
} deaf_server;

/* Greets a client, and answers its first PING. */
static void greet(int client, const char *answer)
{
    static const char info[] = "INFO {\"server_id\":\"x\",\"version\":\"2.9.10\",\"proto\":1,\"headers\":true,"
                               "\"nonce\":\"Zm9vYmFyYmF6-_A\",\"max_payload\":1048576}\r\n";
    char said[8192] = "";
    size_t have = 0;
    if (send(client, info, sizeof info - 1, MSG_NOSIGNAL) != (ssize_t)(sizeof info - 1)) {
        return;
    }
    while (have + 1 < sizeof said && !strstr(said, "PING\r\n")) {
        ssize_t more = recv(client, said + have, sizeof said - have - 1, 0);
        if (more <= 0) {
            return;
        }
        have += (size_t)more;
        said[have] = '\0';
    }
    (void)send(client, answer, strlen(answer), MSG_NOSIGNAL);
}

static void listen_anywhere(deaf_server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->listener, 8), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &size), 0);
    s->port = ntohs(at.sin_port);
}

static void deaf_open(deaf_server *s)
{
    listen_anywhere(s);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (s->pid == 0) {
        (void)alarm(3 * HANG_SECONDS);
        for (;;) { /* whoever comes again is greeted again; connections stay open */
            int client = accept(s->listener, NULL, NULL);
            if (client >= 0) {
                greet(client, "PONG\r\n");
            }
        }
    }
}

static void deaf_close(deaf_server *s)
{
    (void)kill(s->pid, SIGKILL);
    (void)waitpid(s->pid, NULL, 0);
    (void)close(s->listener);
}

/* Runs `what` in a process of its own; false: it hangs, or says so. */
static bool ends(bool (*what)(int port), int port)
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)alarm(HANG_SECONDS);
        _exit(what(port) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static rfi_netlink *deaf_link(int port)
{
    char url[64];
    rfi_netlink *link = NULL;
    reef_error error = {REEF_OK, ""};
    (void)snprintf(url, sizeof url, "nats://127.0.0.1:%d", port);
    const rfi_nats_setup setup = {.url = url, .run = "t"};
    CHECK(rfi_nats_open(&link, NULL, &setup, &error) == REEF_OK, "%s", error.text);
    return link;
}

static void publish_model(rfi_netlink *link)
{
    static unsigned char chunk[CHUNK];
    for (uint32_t number = 0; number < CHUNKS; number++) {
        const rfi_topic topic = {.kind = RFI_TOPIC_CHUNK, .number = number};
        link->ops->publish(link, &topic, chunk, sizeof chunk);
    }
}

/* More than any socket holds back, then asking and leaving, which write as well. */
static bool publish_to_the_deaf(int port)
{
    rfi_netlink *link = deaf_link(port);
    const rfi_topic slot = {.kind = RFI_TOPIC_SLOT};
    publish_model(link);
    link->ops->get(link, &slot);
    rfi_nats_close(&link);
    return true;
}

static void a_deaf_broker_holds_nobody_up_for_ever(void **state)
{
    (void)state;
    deaf_server s;
    deaf_open(&s);
    CHECK(ends(publish_to_the_deaf, s.port), "an agent hangs on a broker that does not read");
    deaf_close(&s);
}

/* Then the connection is made anew, as if the broker had been away. */
static bool comes_again(int port)
{
    enum { TRIES = 600 };
    rfi_netlink *link = deaf_link(port);
    rfi_message message;
    int up = 0;
    publish_model(link);
    for (int i = 0; i < TRIES && up < 2; i++) {
        while (link->ops->poll(link, &message)) {
            up += message.kind == RFI_MESSAGE_UP;
        }
        rfi_nats_wait(link, 0.1);
    }
    rfi_nats_close(&link);
    return up >= 2;
}

static void a_deaf_broker_is_tried_again(void **state)
{
    (void)state;
    deaf_server s;
    deaf_open(&s);
    CHECK(ends(comes_again, s.port), "the connection to a broker that does not read is never made anew");
    deaf_close(&s);
}

/* ---- a broker that lets nobody in ---- */

typedef struct door {
    deaf_server server;
    int knocks; /* a byte for each connection */
} door;

/* Whoever comes is sent away; the first so many are greeted before, and told `why` after the login. */
static void door_open(door *d, int greeted, const char *why)
{
    int ends[2];
    int knocks = 0;
    assert_int_equal(pipe(ends), 0);
    listen_anywhere(&d->server);
    d->knocks = ends[0];
    d->server.pid = fork();
    assert_true(d->server.pid >= 0);
    if (d->server.pid == 0) {
        (void)alarm(3 * HANG_SECONDS);
        for (;;) {
            int client = accept(d->server.listener, NULL, NULL);
            (void)!write(ends[1], "k", 1);
            if (client >= 0 && knocks++ < greeted) {
                greet(client, why);
            }
            (void)close(client);
        }
    }
    (void)close(ends[1]);
}

static int door_close(door *d)
{
    int knocks = 0;
    char knock = 0;
    deaf_close(&d->server);
    while (read(d->knocks, &knock, 1) == 1) {
        knocks++;
    }
    (void)close(d->knocks);
    return knocks;
}

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* 0.2, 0.4, 0.8, ... seconds and up to a half more: after 5 s there were at most 6 attempts, where a constant wait has 12 to 25. A slow machine
 * makes fewer. */
static void a_broker_that_is_away_is_tried_ever_more_slowly(void **state)
{
    (void)state;
    door d;
    door_open(&d, 1, "PONG\r\n");
    rfi_netlink *link = deaf_link(d.server.port);
    for (double end = now() + 5; now() < end; rfi_nats_wait(link, 0.1)) {
        rfi_message message;
        (void)link->ops->poll(link, &message);
    }
    rfi_nats_close(&link);
    int knocks = door_close(&d);
    CHECK(knocks >= 2 && knocks <= 8, "%d attempts within 5 s", knocks);
}

/* Brokers tell of others of their cluster. A malicious one could name any machine, and one that is reached without TLS. */
static void a_broker_sends_nobody_elsewhere(void **state)
{
    static const char info[] = "PONG\r\nINFO {\"server_id\":\"x\",\"version\":\"2.9.10\",\"proto\":1,\"headers\":true,"
                               "\"max_payload\":1048576,\"connect_urls\":[\"127.0.0.1:%d\"]}\r\n";
    char answer[sizeof info + 16];
    (void)state;
    door d;
    door elsewhere;
    door_open(&elsewhere, 0, "");
    (void)snprintf(answer, sizeof answer, info, elsewhere.server.port);
    door_open(&d, INT_MAX, answer);
    rfi_netlink *link = deaf_link(d.server.port);
    for (double end = now() + 3; now() < end; rfi_nats_wait(link, 0.1)) {
        rfi_message message;
        (void)link->ops->poll(link, &message);
    }
    rfi_nats_close(&link);
    int knocks = door_close(&d);
    CHECK(knocks >= 2, "%d attempts", knocks);
    assert_int_equal(door_close(&elsewhere), 0);
}

/* A broker without time for a login is no broker that refuses it, although libnats gives up both alike: the agent must not end. */
static void a_busy_broker_is_not_one_that_refuses(void **state)
{
    enum { BUSY, FULL, REFUSES, DOORS };
    static const char *const answers[DOORS] = {"-ERR 'Authentication Timeout'\r\n",
                                               "-ERR 'maximum connections exceeded'\r\n",
                                               "-ERR 'Authorization Violation'\r\n"};
    static const double long_enough = 15; /* where all counted as refusals, it took 9 s */
    door doors[DOORS];
    rfi_netlink *links[DOORS];
    (void)state;
    for (int i = 0; i < DOORS; i++) {
        door_open(&doors[i], INT_MAX, answers[i]);
        links[i] = deaf_link(doors[i].server.port);
    }
    double began = now();
    while (now() < began + HANG_SECONDS && (now() < began + long_enough || !rfi_nats_refused(links[REFUSES]))) {
        rfi_message message;
        for (int i = 0; i < DOORS; i++) {
            (void)links[i]->ops->poll(links[i], &message);
        }
        rfi_nats_wait(links[0], 0.1);
    }
    for (int i = 0; i < DOORS; i++) {
        CHECK(rfi_nats_refused(links[i]) == (i == REFUSES), "refused or not: %s", answers[i]);
        rfi_nats_close(&links[i]);
        CHECK(door_close(&doors[i]) >= 4, "it is not tried again: %s", answers[i]);
    }
}

static void hear_nothing(void *user, const char *subject, const unsigned char *bytes, size_t size)
{
    (void)user;
    (void)subject;
    (void)bytes;
    (void)size;
}

/* The same holds for observers. */
static void an_observer_waits_for_a_busy_broker(void **state)
{
    enum { BUSY, REFUSES, DOORS };
    static const char *const answers[DOORS] = {"-ERR 'Authentication Timeout'\r\n",
                                               "-ERR 'Authorization Violation'\r\n"};
    static const rfi_keys nobody;
    static const double long_enough = 10;
    door doors[DOORS];
    rfi_nats_ear *ears[DOORS];
    (void)state;
    for (int i = 0; i < DOORS; i++) {
        char url[64];
        door_open(&doors[i], INT_MAX, answers[i]);
        (void)snprintf(url, sizeof url, "nats://127.0.0.1:%d", doors[i].server.port);
        const rfi_nats_ear_setup setup = {.url = url, .run = "t", .login = &nobody, .hear = hear_nothing};
        assert_int_equal(rfi_nats_listen(&ears[i], &setup, NULL), REEF_OK);
    }
    double began = now();
    while (now() < began + HANG_SECONDS && (now() < began + long_enough || !rfi_nats_ear_refused(ears[REFUSES]))) {
        for (int i = 0; i < DOORS; i++) {
            rfi_nats_ear_tend(ears[i]);
        }
        (void)nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    for (int i = 0; i < DOORS; i++) {
        CHECK(rfi_nats_ear_refused(ears[i]) == (i == REFUSES), "refused or not: %s", answers[i]);
        rfi_nats_ear_close(&ears[i]);
        CHECK(door_close(&doors[i]) >= 4, "it is not tried again: %s", answers[i]);
    }
}

static void waits_double(void **state)
{
    (void)state;
    for (int attempt = 1; attempt < 100; attempt++) {
        double least = attempt < 6 ? 200.0 * (1 << (attempt - 1)) : 3000;
        int64_t first = rfi_nats_delay(attempt, 0);
        int64_t last = rfi_nats_delay(attempt, UINT32_MAX);
        CHECK((double)first >= least && last > first + first / 3 && last <= 5000, "attempt %d: %lld to %lld ms",
              attempt, (long long)first, (long long)last);
        CHECK(attempt > 5 || (double)last <= 1.5 * least, "attempt %d: up to %lld ms", attempt, (long long)last);
    }
    assert_int_equal(rfi_nats_delay(0, 0), 200);
    assert_true(rfi_nats_delay(INT32_MAX, UINT32_MAX) <= 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deaf_broker_holds_nobody_up_for_ever),
        cmocka_unit_test(a_deaf_broker_is_tried_again),
        cmocka_unit_test(a_broker_that_is_away_is_tried_ever_more_slowly),
        cmocka_unit_test(a_broker_sends_nobody_elsewhere),
        cmocka_unit_test(a_busy_broker_is_not_one_that_refuses),
        cmocka_unit_test(an_observer_waits_for_a_busy_broker),
        cmocka_unit_test(waits_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
