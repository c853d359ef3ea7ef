/* Who is not enrolled does not get in, who is cannot turn the store's answers against others, and a false server gets no signature that it
 * could use. REEF_STRANGERS sets how many try. */
#include "net/camp.h"
#include "net/link_nats.h"
#include "support/check.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HALF_OPEN = 16, COUNT_NUMBERS = 20000 };

/* ---- strangers ---- */

enum { NOBODY, UNKNOWN_KEY, FALSE_SIGNATURE, OLD_SIGNATURE, PASSWORD, GARBAGE, NO_LOGIN, WAYS };

/* Tries one way of getting in; true: it worked. */
static bool try_way(const camp *c, int way, const char *old_signature, char why[WIRE_TEXT])
{
    wire w;
    char user[RFI_KEY_TEXT];
    char text[WIRE_TEXT];
    unsigned char seed[RFI_KEY_BYTES];
    rfi_keys own;
    bool in = false;
    rfi_random(seed, sizeof seed);
    rfi_keys_derive(&own, seed, RFI_KEY_LOGIN);
    rfi_key_print(user, RFI_LETTER_LOGIN, way == UNKNOWN_KEY ? own.public_key : c->secrets[0].login.public_key);
    CHECK(wire_open(&w, c->server.port), "way %d: no connection", way);
    switch (way) {
    case NOBODY:
        in = wire_login(&w, NULL, NULL);
        break;
    case UNKNOWN_KEY:
    case FALSE_SIGNATURE:
        in = wire_login(&w, user, &own);
        break;
    case OLD_SIGNATURE:
        (void)snprintf(text, sizeof text, "CONNECT {\"protocol\":1,\"nkey\":\"%s\",\"sig\":\"%s\"}\r\n", user,
                       old_signature);
        in = wire_send(&w, text, strlen(text)) && wire_flush(&w) && w.errors == 0;
        break;
    case PASSWORD:
        (void)snprintf(text, sizeof text, "CONNECT {\"protocol\":1,\"user\":\"%s\",\"pass\":\"admin\"}\r\n", user);
        in = wire_send(&w, text, strlen(text)) && wire_flush(&w) && w.errors == 0;
        break;
    case GARBAGE:
        rfi_random(text, sizeof text);
        in = wire_send(&w, text, sizeof text) && wire_flush(&w) && w.errors == 0;
        break;
    default: /* speaks without a login */
        in = wire_publish(&w, "reef.t.s.3.1", NULL, text, 0) && wire_flush(&w) && w.errors == 0;
        break;
    }
    (void)snprintf(why, WIRE_TEXT, "%s", w.error);
    wire_close(&w);
    return in;
}

/* A signature by agent 0's login, but of another connection's nonce. */
static void sign_once(const camp *c, char *signature, size_t room)
{
    wire w;
    unsigned char bytes[RFI_SIGNATURE_BYTES];
    assert_true(wire_open(&w, c->server.port));
    rfi_sign(bytes, &c->secrets[0].login, w.nonce, strlen(w.nonce));
    rfi_text64_print(signature, room, bytes, sizeof bytes);
    wire_close(&w);
}

static void strangers_do_not_get_in(void **state)
{
    camp *c = *state;
    wire open[HALF_OPEN];
    char signature[128];
    char why[WIRE_TEXT];
    const char *wanted = getenv("REEF_STRANGERS");
    long tries = wanted ? strtol(wanted, NULL, 10) : MONTE_CARLO(1000, 200);
    sign_once(c, signature, sizeof signature);
    for (int i = 0; i < HALF_OPEN; i++) { /* these never say anything */
        assert_true(wire_open(&open[i], c->server.port));
    }
    camp_combine(c, 1);
    for (long i = 0; i < tries; i++) {
        int way = (int)(i % WAYS);
        CHECK(!try_way(c, way, signature, why), "way %d worked", way);
        CHECK(way == GARBAGE || strstr(why, "Authorization Violation"), "way %d: %s", way, why);
    }
    camp_combine(c, 2);
    for (int k = 0; k < CAMP_HONEST; k++) {
        assert_int_equal(camp_heard(c, k, CAMP_MALLORY), 0);
    }
    for (int i = 0; i < HALF_OPEN; i++) {
        wire_close(&open[i]);
    }
    camp_enter(c, &open[0], 0); /* the same client with the right key */
    wire_close(&open[0]);
}

/* ---- reflection ---- */

static void answers_go_to_who_asked(void **state)
{
    camp *c = *state;
    wire victim;
    wire attacker;
    static unsigned char chunk[65536];
    static const char request[] = "{\"last_by_subj\":\"reef.t.p.3.0.0\"}";
    static const char get[] = "$JS.API.DIRECT.GET.reef-t-p-3";
    static const char *const guesses[] = {
        "_t.0.AAAAAAAAAAAAAAAAAAAAAA.c.3.0.0", "_t.0.*.c.3.0.0", "_t.0.>", "_t.0.*.>", "_t.0", "_t.*.*.>", ">"};
    camp_enter(c, &victim, 0);
    camp_enter(c, &attacker, CAMP_MALLORY);
    assert_true(wire_subscribe(&victim, "_t.0.h8Jx2mQf0LwZr5TkVbN3sY.>", 1) && wire_flush(&victim));
    assert_int_equal(victim.errors, 0);
    assert_true(wire_publish(&attacker, "reef.t.p.3.0.0", NULL, chunk, sizeof chunk) && wire_flush(&attacker));
    for (int i = 0; i < 700; i++) {
        assert_true(wire_publish(&attacker, get, guesses[i % COUNT(guesses)], request, sizeof request - 1));
    }
    assert_true(wire_flush(&attacker) && wire_flush(&victim));
    assert_int_equal(victim.messages, 0);
    /* that it would come if the inbox were known */
    assert_true(wire_publish(&attacker, get, "_t.0.h8Jx2mQf0LwZr5TkVbN3sY.c.3.0.0", request, sizeof request - 1));
    assert_true(wire_wait(&victim));
    assert_true(victim.bytes >= sizeof chunk);
    /* and nobody else can hear it being used */
    assert_true(wire_subscribe(&attacker, "_t.0.>", 2) && wire_flush(&attacker));
    CHECK(strstr(attacker.error, "Permissions Violation"), "%s", attacker.error);
    wire_close(&victim);
    wire_close(&attacker);
}

/* An enrolled agent that breaks the protocol of the server harms itself. */
static void too_large_a_message_ends_the_sender(void **state)
{
    camp *c = *state;
    wire w;
    static const char text[] = "PUB reef.t.s.3.1 2000000\r\n";
    camp_enter(c, &w, CAMP_MALLORY);
    assert_true(wire_send(&w, text, sizeof text - 1));
    assert_false(wire_flush(&w));
    CHECK(strstr(w.error, "Maximum Payload"), "%s", w.error);
    wire_close(&w);
    camp_enter(c, &w, 0);
    wire_close(&w);
}

/* ---- a false server ---- */

typedef struct false_server {
    int listener;
    int port;
} false_server;

static void false_open(false_server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->listener, 8), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &size), 0);
    s->port = ntohs(at.sin_port);
}

/* Greets the next client with a nonce; what it answers within some seconds, "" if it goes away. */
static void false_greet(const false_server *s, const char *nonce, char *answer, size_t room)
{
    char info[1024];
    size_t have = 0;
    struct pollfd one = {.fd = s->listener, .events = POLLIN};
    answer[0] = '\0';
    CHECK(poll(&one, 1, 20000) == 1, "nobody comes");
    int client = accept(s->listener, NULL, NULL);
    int length = snprintf(info, sizeof info,
                          "INFO {\"server_id\":\"x\",\"version\":\"2.9.10\",\"proto\":1,\"headers\":true,"
                          "\"auth_required\":true,\"max_payload\":1048576,\"nonce\":\"%s\"}\r\n",
                          nonce);
    assert_int_equal(send(client, info, (size_t)length, MSG_NOSIGNAL), length);
    one.fd = client;
    while (have + 1 < room && !strstr(answer, "\r\n") && poll(&one, 1, 5000) == 1) {
        ssize_t more = recv(client, answer + have, room - have - 1, 0);
        if (more <= 0) {
            break;
        }
        have += (size_t)more;
        answer[have] = '\0';
    }
    (void)close(client);
}

static bool has_signature(const char *answer)
{
    const char *at = strstr(answer, "\"sig\":\"");
    return at && at[7] != '"';
}

static void a_false_server_gets_no_signature(void **state)
{
    /* the beginning of what agents sign as a frame, what the coordinator signs, and a nonce that is too short or too long */
    static const char *const hostile[] = {"reef frame 1", "reef run file 1 ", "short", "AAAA AAAA AAAA AAAA",
                                          "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
    (void)state;
    false_server s;
    char url[64];
    static char answer[8192];
    reef_error error = {REEF_OK, ""};
    rfi_keys login;
    unsigned char seed[RFI_KEY_BYTES] = "a seed";
    rfi_netlink *link = NULL;
    assert_int_equal(rfi_crypto_start(NULL), REEF_OK);
    rfi_keys_derive(&login, seed, RFI_KEY_LOGIN);
    false_open(&s);
    (void)snprintf(url, sizeof url, "nats://127.0.0.1:%d", s.port);
    pid_t client = fork(); /* which asks again and again, as agents do */
    assert_true(client >= 0);
    if (client == 0) {
        const rfi_nats_setup setup = {.url = url, .run = "t", .login = &login};
        rfi_message message;
        (void)alarm(120);
        (void)close(s.listener);
        if (rfi_nats_open(&link, NULL, &setup, &error) != REEF_OK) {
            _exit(1);
        }
        for (;;) {
            (void)link->ops->poll(link, &message);
            rfi_nats_wait(link, 0.1);
        }
    }
    for (ptrdiff_t i = 0; i < COUNT(hostile); i++) {
        false_greet(&s, hostile[i], answer, sizeof answer);
        CHECK(!has_signature(answer), "%s is answered by %s", hostile[i], answer);
    }
    false_greet(&s, "PXoWU7zWAMt75FY", answer, sizeof answer); /* as a server would */
    CHECK(has_signature(answer), "%s", answer);
    (void)kill(client, SIGKILL);
    (void)waitpid(client, NULL, 0);
    (void)close(s.listener);
}

/* ---- */

static int set_up_with(void **state, const camp_terms *terms)
{
    camp *c = calloc(1, sizeof *c);
    camp_open(c, terms);
    *state = c;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, &(camp_terms){.count = 4, .deadline = 1});
}

static int set_up_empty(void **state)
{
    return set_up_with(state, &(camp_terms){.count = COUNT_NUMBERS, .deadline = 1, .streams = true, .empty = true});
}

static int tear_down(void **state)
{
    camp_close(*state);
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(strangers_do_not_get_in, set_up, tear_down),
        cmocka_unit_test_setup_teardown(answers_go_to_who_asked, set_up_empty, tear_down),
        cmocka_unit_test_setup_teardown(too_large_a_message_ends_the_sender, set_up_empty, tear_down),
        cmocka_unit_test(a_false_server_gets_no_signature),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
