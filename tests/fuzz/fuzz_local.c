/* Any bytes as the requests of a client: every answer is whole, HELLO comes before models, what is refused ends the connection, and the
 * agent sees whole models only. The first byte says what the agent does. */
#include "check.h"
#include "net/bytes.h"
#include "net/local.h"

#include <math.h>
#include <string.h>

enum { COUNT = 3, BYTES = COUNT * 4 };

typedef struct world {
    const uint8_t *data;
    size_t left;
    unsigned char behaviour;
    bool greeted;
    bool ended;    /* an answer with a status was sent */
    uint64_t owed; /* bytes that the last head has promised */
    int requests;  /* that the agent has seen */
    int answers;   /* with status 0 */
    unsigned char room[BYTES + RFI_LOCAL_REPORT_MAX];
} world;

static bool take(void *user, void *bytes, size_t size)
{
    world *w = user;
    CHECK(w->owed == 0 && !w->ended && size > 0);
    if (size > w->left) {
        return false;
    }
    memcpy(bytes, w->data, size);
    w->data += size;
    w->left -= size;
    return true;
}

static bool give(void *user, const void *bytes, size_t size)
{
    world *w = user;
    if (w->owed == 0) {
        const unsigned char *head = bytes;
        CHECK(size == RFI_LOCAL_HEAD && memcmp(head, "RLOC", 4) == 0 && !w->ended);
        uint64_t status = rfi_take(head + 24, 4);
        CHECK(status <= RFI_LOCAL_REFUSED && rfi_take(head + 28, 4) == 0);
        w->owed = rfi_take(head + 16, 8);
        CHECK(w->owed <= sizeof w->room + RFI_LOCAL_WELCOME_BYTES);
        w->ended = status != 0;
        CHECK(!w->ended || w->owed > 0); /* a sentence */
        w->answers += !w->ended;
    } else {
        CHECK(size <= w->owed);
        w->owed -= size;
    }
    return !(w->behaviour & 128) || w->left % 5 != 0; /* a client that stops to read */
}

static reef_status fail_by(const world *w, int bit, reef_error *error)
{
    memcpy(error->text, "no", 3);
    return w->behaviour & bit ? (w->behaviour & 64 ? REEF_E_FILE : REEF_E_ARG) : REEF_OK;
}

static reef_status hello(void *user, const unsigned char *layout, bool *joined, uint64_t *round, reef_error *error)
{
    world *w = user;
    CHECK(!w->greeted && layout);
    w->greeted = true;
    w->requests++;
    *joined = w->behaviour & 1;
    *round = 7;
    return fail_by(w, 2, error);
}

static reef_status exchange(void *user, uint64_t *round, size_t *report, reef_error *error)
{
    world *w = user;
    CHECK(w->greeted);
    w->requests++;
    *round = 8;
    *report = w->behaviour & 4 ? RFI_LOCAL_REPORT_MAX : 2;
    return fail_by(w, 8, error);
}

static void note(void *user, const char *name, double value)
{
    world *w = user;
    CHECK(w->greeted && name[0] && strlen(name) <= RFI_LOCAL_NAME_BYTES && isfinite(value));
    w->requests++;
}

static uint64_t round_of(void *user)
{
    CHECK(((world *)user)->greeted);
    return 9;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static world w;
    reef_error error = {REEF_OK, ""};
    if (size == 0) {
        return 0;
    }
    w = (world){.data = data + 1, .left = size - 1, .behaviour = data[0]};
    const rfi_local_host host = {.user = &w,
                                 .bytes = BYTES,
                                 .count = COUNT,
                                 .numbers = 1,
                                 .room = w.room,
                                 .read = take,
                                 .write = give,
                                 .hello = hello,
                                 .exchange = exchange,
                                 .note = note,
                                 .round = round_of};
    rfi_local_end end = rfi_local_serve(&host, &error);
    CHECK((end == RFI_LOCAL_END_FAILED) == (error.status != REEF_OK));
    CHECK(w.answers <= w.requests + (end == RFI_LOCAL_END_LEFT));
    if (!(w.behaviour & 128)) {
        CHECK(w.owed == 0);
        CHECK(w.ended || w.answers == w.requests + (end == RFI_LOCAL_END_LEFT));
    }
    return 0;
}
