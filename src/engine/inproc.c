/* The engine of one process, which communicates only with itself. */
#include <assert.h>
#include <reef/engine.h>

#include "base/error.h"

#include <string.h>

static reef_status none(const reef_engine *engine, const int32_t *peers, ptrdiff_t count, void **pattern,
                        reef_error *error)
{
    (void)engine;
    (void)peers;
    *pattern = NULL;
    return count == 0 ? REEF_OK : rfi_fail(error, REEF_E_ARG, "a single process has no peers");
}

static void leave(const reef_engine *engine, void *pattern)
{
    (void)engine;
    assert(!pattern); /* connect hands out none */
    (void)pattern;
}

static reef_status nothing(const reef_engine *engine, void *pattern, const reef_parcel *send,
                           const reef_parcel *receive, reef_error *error)
{
    (void)engine;
    assert(!pattern);
    (void)pattern;
    (void)send;
    (void)receive;
    (void)error;
    return REEF_OK;
}

static reef_status over(const reef_engine *engine, void *pattern, reef_error *error)
{
    (void)engine;
    (void)pattern;
    (void)error;
    return REEF_OK;
}

static reef_status to_itself(const reef_engine *engine, const reef_parcel *send, const reef_parcel *receive,
                             reef_error *error)
{
    (void)engine;
    if (send->count != receive->count || send->bytes != receive->bytes) {
        return rfi_fail(error, REEF_E_ARG, "%td pieces are sent and %td expected", send->count, receive->count);
    }
    for (ptrdiff_t i = 0; i < send->count; i++) {
        memcpy(receive->pieces[i], send->pieces[i], send->bytes);
    }
    return REEF_OK;
}

static reef_status known(const reef_engine *engine, void *bytes, size_t count, reef_error *error)
{
    (void)engine;
    (void)bytes;
    (void)count;
    (void)error;
    return REEF_OK;
}

static reef_status own(const reef_engine *engine, reef_status mine, reef_error *error)
{
    (void)engine;
    (void)error;
    return mine;
}

static reef_status alone(const reef_engine *engine, reef_error *error)
{
    (void)engine;
    (void)error;
    return REEF_OK;
}

static void give_up(const reef_engine *engine, int code)
{
    (void)engine;
    (void)code;
}

static const reef_engine_ops ops = {
    .name = "in process",
    .connect = none,
    .disconnect = leave,
    .begin = nothing,
    .end = over,
    .all_to_all = to_itself,
    .merge = known,
    .agree = own,
    .barrier = alone,
    .abort = give_up,
};

const reef_engine *reef_engine_alone(void)
{
    static const reef_engine engine = {.ops = &ops, .rank = 0, .size = 1, .sharing = 1};
    return &engine;
}
