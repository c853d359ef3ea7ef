/* A broker that logs an agent in and then reads nothing any more: what is published to it must not hold the agent up for ever, and not at all
 * for long where another broker works. */
#include "net/link_nats.h"
#include "support/check.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNK = 512 * 1024, CHUNKS = 64, HANG_SECONDS = 120 };

typedef struct deaf_server {
    int listener;
    int port;
    pid_t pid;
} deaf_server;

/* Greets a client, answers its first PING, and lets the connection lie. */
static void greet(int client)
{
    static const char info[] = "INFO {\"server_id\":\"x\",\"version\":\"2.9.10\",\"proto\":1,\"headers\":true,"
                               "\"max_payload\":1048576}\r\n";
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
    (void)send(client, "PONG\r\n", 6, MSG_NOSIGNAL);
}

static void deaf_open(deaf_server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->listener, 8), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &size), 0);
    s->port = ntohs(at.sin_port);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (s->pid == 0) {
        (void)alarm(3 * HANG_SECONDS);
        for (;;) { /* whoever comes again is greeted again; connections stay open */
            int client = accept(s->listener, NULL, NULL);
            if (client >= 0) {
                greet(client);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deaf_broker_holds_nobody_up_for_ever),
        cmocka_unit_test(a_deaf_broker_is_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
