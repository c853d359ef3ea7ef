/* Subjects as a broker may send them, of messages and of answers: whatever is taken from one is the same after it was written and read
 * again. */
#include "check.h"
#include "net/link_nats_subject.h"

#include <string.h>

enum { ROOM = 512 };

static void check_same(const rfi_topic *a, const rfi_topic *b)
{
    CHECK(a->kind == b->kind && a->agent == b->agent && a->round == b->round && a->number == b->number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const rfi_nats_names names = {.run = "t", .inbox = "_t.0.AAAAAAAAAAAAAAAAAAAAAA"};
    char text[ROOM];
    char again[RFI_SUBJECT_TEXT];
    rfi_topic topic;
    rfi_topic twice;
    if (size >= sizeof text) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    if (rfi_subject_read(&names, text, &topic)) {
        rfi_subject_print(&names, &topic, again);
        CHECK(strncmp(again, text, strlen(again)) == 0 && strlen(text) <= strlen(again) + 1); /* but for a last dot */
        CHECK(rfi_subject_read(&names, again, &twice));
        check_same(&topic, &twice);
    }
    if (rfi_inbox_read(&names, text, &topic)) {
        CHECK(strncmp(text, names.inbox, strlen(names.inbox)) == 0);
        rfi_subject_print(&names, &topic, again); /* fits, whatever the numbers */
        CHECK(memchr(again, '\0', sizeof again) != NULL);
    }
    return 0;
}
