/* Structured logs: each event is one line, whatever its texts hold. */
#include "net/log.h"
#include "support/check.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static char line[2048];
static int lines;

static void keep(void *user, const char *text)
{
    (void)user;
    lines++;
    (void)snprintf(line, sizeof line, "%s", text);
}

static void tell(reef_log_format format, reef_log_level least, const char *text, double number)
{
    const rfi_log log = {format, least, keep, NULL};
    RFI_LOG(&log, REEF_LOG_INFO, "ready", RFI_LOG_TEXT("run", text), RFI_LOG_NUMBER("agents", number));
}

static void formats(void **state)
{
    (void)state;
    tell(REEF_LOG_PLAIN, REEF_LOG_INFO, "demo", 12);
    assert_string_equal(line, "ready: run=demo agents=12");
    tell(REEF_LOG_PLAIN, REEF_LOG_INFO, "two words", 0.25);
    assert_string_equal(line, "ready: run=\"two words\" agents=0.25");
    tell(REEF_LOG_LOGFMT, REEF_LOG_INFO, "demo", (double)NAN);
    assert_non_null(strstr(line, "Z level=info event=ready run=demo agents=nan"));
    assert_int_equal(strncmp(line, "time=2", 6), 0);
}

static void json(void **state)
{
    (void)state;
    char hostile[300];
    for (int i = 0; i < 255; i++) {
        hostile[i] = (char)(i + 1);
    }
    hostile[255] = '\0';
    tell(REEF_LOG_JSON, REEF_LOG_INFO, hostile, (double)INFINITY);
    assert_null(strchr(line, '\n'));
    json_t *object = json_loads(line, 0, NULL);
    assert_non_null(object);
    assert_string_equal(json_string_value(json_object_get(object, "event")), "ready");
    assert_true(json_is_null(json_object_get(object, "agents")));
    json_decref(object);
}

static void long_texts(void **state)
{
    (void)state;
    char hostile[4000];
    memset(hostile, '"', sizeof hostile);
    hostile[sizeof hostile - 1] = '\0';
    tell(REEF_LOG_JSON, REEF_LOG_INFO, hostile, 1);
    assert_true(strlen(line) < 1024);
    tell(REEF_LOG_LOGFMT, REEF_LOG_INFO, hostile, 1);
    assert_true(strlen(line) < 1024);
}

static void levels(void **state)
{
    (void)state;
    lines = 0;
    tell(REEF_LOG_JSON, REEF_LOG_WARNING, "demo", 1);
    assert_int_equal(lines, 0);
    tell(REEF_LOG_JSON, REEF_LOG_DEBUG, "demo", 1);
    assert_int_equal(lines, 1);
    const rfi_log nobody = {.tell = NULL};
    RFI_LOG(&nobody, REEF_LOG_ERROR, "ready", RFI_LOG_NUMBER("a", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(formats), cmocka_unit_test(json), cmocka_unit_test(long_texts),
                                       cmocka_unit_test(levels)};
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
