/* The small server, over real connections: who is answered, and streams that sleep, wake and end. */
#include "net/http.h"
#include "support/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { ROOM = 8192, SECONDS = 60 };

/* What the streams of the test send: letters, as many as there are now. */
typedef struct source {
    pthread_mutex_t lock;
    size_t letters;
    int open; /* streams */
} source;

typedef struct reader {
    source *from;
    size_t sent;
} reader;

static size_t read_letters(void *state, char *bytes, size_t size)
{
    reader *r = state;
    (void)pthread_mutex_lock(&r->from->lock);
    size_t more = r->from->letters - r->sent < size ? r->from->letters - r->sent : size;
    (void)pthread_mutex_unlock(&r->from->lock);
    memset(bytes, 'x', more);
    r->sent += more;
    return more;
}

static void close_letters(void *state)
{
    reader *r = state;
    (void)pthread_mutex_lock(&r->from->lock);
    r->from->open--;
    (void)pthread_mutex_unlock(&r->from->lock);
    free(r);
}

static bool open_letters(void *user, const char *path, rfi_http_stream *stream)
{
    reader *r = strcmp(path, "/letters") == 0 ? calloc(1, sizeof *r) : NULL;
    if (!r) {
        return false;
    }
    r->from = user;
    (void)pthread_mutex_lock(&r->from->lock);
    r->from->open++;
    (void)pthread_mutex_unlock(&r->from->lock);
    *stream = (rfi_http_stream){r, read_letters, close_letters};
    return true;
}

static bool get(void *user, const char *path, rfi_http_answer *answer)
{
    static const char fixed[] = "always the same";
    (void)user;
    if (strcmp(path, "/made") == 0) {
        *answer = (rfi_http_answer){"text/plain", strdup("made"), 4, true};
        return answer->body != NULL;
    }
    *answer = (rfi_http_answer){"text/plain", fixed, sizeof fixed - 1, false};
    return strcmp(path, "/") == 0;
}

static rfi_http *start(source *from)
{
    rfi_http *http = NULL;
    reef_error error = {REEF_OK, ""};
    const rfi_http_setup setup = {.user = from, .get = get, .open = open_letters};
    if (!rfi_http_version()[0]) {
        assert_int_equal(rfi_http_start(&http, &setup, &error), REEF_E_ENGINE);
        assert_non_null(strstr(error.text, "libmicrohttpd"));
        skip();
    }
    assert_int_equal(rfi_http_start(&http, &setup, &error), REEF_OK);
    return http;
}

static int reach(const rfi_http *http)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)rfi_http_port(http)),
                             .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    const struct timeval patience = {.tv_sec = SECONDS};
    int one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(one >= 0);
    assert_int_equal(setsockopt(one, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    assert_int_equal(connect(one, (struct sockaddr *)&to, sizeof to), 0);
    return one;
}

/* Sends a request; `host` NULL: as it should be. */
static int ask(const rfi_http *http, const char *method, const char *path, const char *host)
{
    char text[ROOM];
    int one = reach(http);
    (void)(host ? snprintf(text, sizeof text, "%s %s HTTP/1.1\r\n%s\r\n", method, path, host)
                : snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n",
                           method, path, rfi_http_port(http)));
    assert_int_equal(write(one, text, strlen(text)), strlen(text));
    return one;
}

/* Reads until `word` has come, or the end. */
static bool hears(int one, const char *word)
{
    char text[ROOM];
    size_t used = 0;
    ssize_t more = 1;
    while (more > 0 && used < sizeof text - 1) {
        more = read(one, text + used, sizeof text - 1 - used);
        used += more > 0 ? (size_t)more : 0;
        text[used] = '\0';
        if (strstr(text, word)) {
            return true;
        }
    }
    return false;
}

static bool answers(const rfi_http *http, const char *method, const char *path, const char *host, const char *word)
{
    int one = ask(http, method, path, host);
    bool heard = hears(one, word);
    assert_int_equal(close(one), 0);
    return heard;
}

static void test_who_is_answered(void **state)
{
    source from = {.lock = PTHREAD_MUTEX_INITIALIZER};
    (void)state;
    rfi_http *http = start(&from);
    assert_true(answers(http, "GET", "/", NULL, "always the same"));
    assert_true(answers(http, "GET", "/made", NULL, "made"));
    assert_true(answers(http, "GET", "/", NULL, "Content-Security-Policy: default-src 'none'"));
    assert_true(answers(http, "GET", "/none", NULL, " 404 "));
    assert_true(answers(http, "POST", "/", NULL, " 405 "));
    assert_true(answers(http, "GET", "/", "Host: evil.example\r\nConnection: close\r\n", " 403 "));
    assert_true(answers(http, "GET", "/", "Host: 127.0.0.1\r\nConnection: close\r\n", " 403 "));
    assert_false(answers(http, "GET", "/", "Connection: close\r\n", "always the same"));
    rfi_http_stop(&http);
    assert_null(http);
}

static void add_letters(source *from, size_t count)
{
    (void)pthread_mutex_lock(&from->lock);
    from->letters += count;
    (void)pthread_mutex_unlock(&from->lock);
}

static void test_streams(void **state)
{
    enum { STREAMS = 5 };
    source from = {.lock = PTHREAD_MUTEX_INITIALIZER};
    int streams[STREAMS];
    (void)state;
    rfi_http *http = start(&from);
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = ask(http, "GET", "/letters", NULL);
        assert_true(hears(streams[i], "text/event-stream"));
    }
    for (int i = 0; i < 20; i++) { /* they sleep and are woken again and again, whether there is something or not */
        rfi_http_wake(http);
    }
    add_letters(&from, 3);
    rfi_http_wake(http);
    for (int i = 0; i < STREAMS; i++) {
        assert_true(hears(streams[i], "xxx"));
    }
    assert_int_equal(close(streams[0]), 0); /* one goes, the others get the rest */
    add_letters(&from, 4);
    rfi_http_wake(http);
    for (int i = 1; i < STREAMS; i++) {
        assert_true(hears(streams[i], "xxxx"));
    }
    rfi_http_stop(&http); /* with streams that sleep */
    assert_int_equal(from.open, 0);
    for (int i = 1; i < STREAMS; i++) {
        assert_int_equal(close(streams[i]), 0);
    }
}

/* Three times as many pages as there is room for, one after the other, faster than anything is sent to them. */
static void test_pages_that_come_and_go(void **state)
{
    source from = {.lock = PTHREAD_MUTEX_INITIALIZER};
    (void)state;
    rfi_http *http = start(&from);
    for (int i = 0; i < 150; i++) {
        assert_true(answers(http, "GET", "/letters", NULL, "text/event-stream"));
    }
    rfi_http_stop(&http);
    assert_int_equal(from.open, 0);
}

static void test_port_in_use(void **state)
{
    source from = {.lock = PTHREAD_MUTEX_INITIALIZER};
    rfi_http *second = NULL;
    reef_error error = {REEF_OK, ""};
    (void)state;
    rfi_http *http = start(&from);
    const rfi_http_setup setup = {.port = rfi_http_port(http), .get = get};
    assert_int_equal(rfi_http_start(&second, &setup, &error), REEF_E_ENGINE);
    assert_null(second);
    assert_non_null(strstr(error.text, "cannot listen on 127.0.0.1:"));
    assert_non_null(strstr(error.text, "the port is in use; choose another"));
    rfi_http_stop(&http);
}

/* A request that comes letter by letter, on all connections that there are: whoever comes next is answered all the same. */
static void test_slow_requests(void **state)
{
    enum { ALL = 64, TENTHS = 600 };
    int slow[ALL];
    source from = {.lock = PTHREAD_MUTEX_INITIALIZER};
    (void)state;
    rfi_http *http = start(&from);
    for (int i = 0; i < ALL; i++) {
        slow[i] = reach(http);
        assert_int_equal(write(slow[i], "GET / HT", 8), 8);
    }
    int late = ask(http, "GET", "/", NULL);
    const struct timeval at_once = {.tv_usec = 100000};
    char letter = 'x';
    assert_int_equal(setsockopt(late, SOL_SOCKET, SO_RCVTIMEO, &at_once, sizeof at_once), 0);
    bool heard = false;
    for (int i = 0; i < TENTHS && !heard; i++) {
        for (int k = 0; k < ALL; k++) {
            (void)send(slow[k], &letter, 1, MSG_NOSIGNAL);
        }
        rfi_http_wake(http);
        heard = hears(late, "always the same");
    }
    assert_true(heard);
    for (int i = 0; i < ALL; i++) {
        (void)close(slow[i]);
    }
    (void)close(late);
    rfi_http_stop(&http);
}

/* Streams leave room for other requests. */
static void test_many_streams(void **state)
{
    enum { MOST = 48 };
    int streams[MOST];
    source from = {.lock = PTHREAD_MUTEX_INITIALIZER};
    (void)state;
    rfi_http *http = start(&from);
    add_letters(&from, 1);
    for (int i = 0; i < MOST; i++) {
        streams[i] = ask(http, "GET", "/letters", NULL);
        assert_true(hears(streams[i], "x"));
    }
    assert_true(answers(http, "GET", "/letters", NULL, " 503 "));
    assert_true(answers(http, "GET", "/", NULL, "always the same"));
    for (int i = 0; i < MOST; i++) {
        (void)close(streams[i]);
    }
    bool room = false;
    for (int i = 0; i < SECONDS && !room; i++) { /* who has gone is noticed by writing */
        add_letters(&from, 1);
        rfi_http_wake(http);
        (void)sleep(1);
        room = answers(http, "GET", "/letters", NULL, " 200 ");
    }
    assert_true(room);
    rfi_http_stop(&http);
    assert_int_equal(from.open, 0);
}

/* Browsers leave out the port where it is that of HTTP. */
static void test_default_port(void **state)
{
    enum { HTTP = 80 };
    source from = {.lock = PTHREAD_MUTEX_INITIALIZER};
    rfi_http *http = NULL;
    const rfi_http_setup setup = {.port = HTTP, .user = &from, .get = get};
    (void)state;
    if (rfi_http_start(&http, &setup, NULL) != REEF_OK) {
        skip(); /* taken, or only for root */
    }
    assert_true(answers(http, "GET", "/", "Host: 127.0.0.1\r\nConnection: close\r\n", " 200 "));
    assert_true(answers(http, "GET", "/", "Host: localhost\r\nConnection: close\r\n", " 200 "));
    assert_true(answers(http, "GET", "/", NULL, " 200 "));
    assert_true(answers(http, "GET", "/", "Host: evil.example\r\nConnection: close\r\n", " 403 "));
    rfi_http_stop(&http);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_answered), cmocka_unit_test(test_streams),
        cmocka_unit_test(test_port_in_use),     cmocka_unit_test(test_pages_that_come_and_go),
        cmocka_unit_test(test_default_port),    cmocka_unit_test(test_slow_requests),
        cmocka_unit_test(test_many_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
