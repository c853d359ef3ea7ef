/* Kinds of problems whose every call goes to the caller's functions: how Python brings problems of its own to experiment files.
 *
 * The library's callbacks return nothing, the caller's may fail (an exception): the first sentence is kept with the object, and the run
 * asks for it after every round and score (reef_problem_kind.failure).
 */
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "ffi/handles.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

enum { NAME_SIZE = 64, SUMMARY_SIZE = 200, FAILURE_SIZE = 240 };

/* What a file sets, as key=value,... */
typedef struct params {
    char rest[REEF_TEXT_SIZE];
} params;

struct reef_ffi_kind_handle {
    reef_problem_kind kind; /* first: the library has its address, which is that of the handle */
    char name[NAME_SIZE], summary[SUMMARY_SIZE];
    reef_ffi_make make;
    reef_ffi_end end;
    reef_ffi_start start;
    reef_ffi_ask ask;
    reef_ffi_score score;
    void *user;
};

/* Why it failed; apart from the state, which callbacks may not change. */
typedef struct failure {
    pthread_mutex_t lock;
    char text[FAILURE_SIZE]; /* "": it has not */
} failure;

typedef struct state {
    const reef_context *context;
    const reef_ffi_kind_handle *of;
    int64_t object;
    ptrdiff_t agents, dimension;
    int64_t *samples;
    failure *failure;
} state;

/* ---- failures ---- */

/* The first one stays. */
static void note(const state *s, int code, const char *text)
{
    if (code == 0) {
        return;
    }
    pthread_mutex_lock(&s->failure->lock);
    if (!s->failure->text[0]) {
        size_t used = 0;
        rfi_append(s->failure->text, FAILURE_SIZE, &used, "%.*s", FAILURE_SIZE - 1, text[0] ? text : "it failed");
    }
    pthread_mutex_unlock(&s->failure->lock);
}

static const char *failure_of(const void *memory)
{
    const state *s = memory;
    pthread_mutex_lock(&s->failure->lock);
    const char *text = s->failure->text[0] ? s->failure->text : NULL;
    pthread_mutex_unlock(&s->failure->lock);
    return text; /* written once */
}

/* ---- making ---- */

static void destroy(void *memory)
{
    state *s = memory;
    if (s->object >= 0) {
        s->of->end(s->of->user, s->object);
    }
    if (s->failure) {
        pthread_mutex_destroy(&s->failure->lock);
    }
    rfi_release(s->context, s->failure);
    rfi_release(s->context, s->samples);
    rfi_release(s->context, s);
}

static reef_status check_made(const state *s, const char *text, reef_error *error)
{
    ptrdiff_t numbers = 0;
    if (s->object < 0) {
        return rfi_fail(error, REEF_E_ARG, "%s: %s", s->of->name, text[0] ? text : "it could not be made");
    }
    for (ptrdiff_t k = 0; k < s->agents; k++) {
        if (s->samples[k] < 1) {
            return rfi_fail(error, REEF_E_ARG, "%s: agent %td has %lld samples; at least 1 is needed", s->of->name, k,
                            (long long)s->samples[k]);
        }
    }
    if (s->dimension > 0 && (!rfi_mul(s->dimension, s->agents, &numbers) || !rfi_mul(numbers, 8, &numbers))) {
        return rfi_fail(error, REEF_E_OVERFLOW, "%s: %td models of %td numbers are too large", s->of->name, s->agents,
                        s->dimension);
    }
    return REEF_OK;
}

static reef_status create(const void *given, const reef_problem_setup *setup, void **place, reef_error *error)
{
    const params *p = given;
    char text[FAILURE_SIZE] = "";
    state *s = rfi_allocate(setup->context, sizeof *s);
    if (!s) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a problem");
    }
    assert(setup->agents >= 1);
    *s = (state){.context = setup->context, .of = (const void *)setup->kind, .object = -1, .agents = setup->agents};
    s->samples = rfi_allocate_many(s->context, s->agents, sizeof *s->samples);
    s->failure = rfi_allocate(s->context, sizeof *s->failure);
    if (s->failure) {
        s->failure->text[0] = '\0';
        pthread_mutex_init(&s->failure->lock, NULL);
    }
    if (!s->samples || !s->failure) {
        destroy(s);
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a problem of %td agents", setup->agents);
    }
    for (ptrdiff_t k = 0; k < s->agents; k++) {
        s->samples[k] = 1;
    }
    s->object = s->of->make(s->of->user, p->rest, s->agents, setup->seed, &s->dimension, s->samples, text, sizeof text);
    text[FAILURE_SIZE - 1] = '\0';
    reef_status status = check_made(s, text, error);
    if (status != REEF_OK) {
        destroy(s);
        return status;
    }
    *place = s;
    return REEF_OK;
}

/* ---- asking ---- */

static ptrdiff_t dimension_of(const void *memory)
{
    return ((const state *)memory)->dimension;
}

/* One block for the models of a call, one for its gradients. */
static size_t work_size(const void *memory, ptrdiff_t size, ptrdiff_t lanes)
{
    const state *s = memory;
    (void)size;
    (void)lanes;
    return 2 * (size_t)s->agents * (size_t)s->dimension * sizeof(float);
}

static void start_at(const void *memory, ptrdiff_t lanes, ptrdiff_t repetition, float *model)
{
    const state *s = memory;
    char text[FAILURE_SIZE] = "";
    assert(s->object >= 0);
    (void)lanes;
    note(s, s->of->start(s->of->user, s->object, repetition, model, text, sizeof text), text);
}

static void ask(const void *memory, const reef_batch *batch)
{
    const state *s = memory;
    char text[FAILURE_SIZE] = "";
    size_t row = (size_t)s->dimension * sizeof(float);
    float *models = batch->work;
    assert(s->object >= 0 && batch->count <= s->agents && batch->lanes == 1); /* work_size has room for so many */
    float *results = models + s->agents * s->dimension;
    for (ptrdiff_t i = 0; i < batch->count; i++) {
        memcpy(models + i * s->dimension, batch->models[i], row);
    }
    memset(results, 0, (size_t)batch->count * row);
    note(s,
         s->of->ask(s->of->user, s->object, batch->count, batch->agents, models, results,
                    (const unsigned char *)batch->flipped, batch->round, batch->step, batch->size, batch->repetition,
                    text, sizeof text),
         text);
    for (ptrdiff_t i = 0; i < batch->count; i++) {
        memcpy(batch->gradients[i], results + i * s->dimension, row);
    }
}

static void score_of(const void *memory, const float *model, reef_score *score, void *work)
{
    const state *s = memory;
    char text[FAILURE_SIZE] = "";
    double numbers[3] = {(double)NAN, (double)NAN, (double)NAN};
    (void)work;
    note(s, s->of->score(s->of->user, s->object, model, numbers, text, sizeof text), text);
    *score = (reef_score){numbers[0], numbers[1], numbers[2]};
}

static ptrdiff_t samples_of(const void *memory, ptrdiff_t agent)
{
    const state *s = memory;
    assert(agent >= 0 && agent < s->agents && s->samples[agent] >= 1); /* check_made */
    return (ptrdiff_t)s->samples[agent];
}

/* ---- kinds ---- */

static const reef_field fields[] = {{.name = "parameters",
                                     .type = REEF_FIELD_REST,
                                     .offset = offsetof(params, rest),
                                     .preset = "",
                                     .unit = "",
                                     .help = "whatever its class takes"}};

static const reef_problem_kind calls = {
    .kind = {.citation = "", .fields = fields, .field_count = 1, .params_size = sizeof(params)},
    .traits = REEF_PROBLEM_WHOLE | REEF_PROBLEM_CLASSES,
    .create = create,
    .destroy = destroy,
    .dimension = dimension_of,
    .work_size = work_size,
    .start = start_at,
    .gradients = ask,
    .score = score_of,
    .samples = samples_of,
    .failure = failure_of,
};

static bool fits(const char *text, size_t room)
{
    return text && strnlen(text, room) < room;
}

reef_status reef_ffi_problem_kind(reef_ffi_kind_handle **place, const char *name, const char *summary,
                                  reef_ffi_make make, reef_ffi_end end, reef_ffi_start start, reef_ffi_ask ask_for,
                                  reef_ffi_score score, void *user, char *text, size_t room)
{
    reef_error error = {0};
    if (!place || !fits(name, NAME_SIZE) || !fits(summary, SUMMARY_SIZE) || !make || !end || !start || !ask_for ||
        !score) {
        reef_status bad = rfi_fail(&error, REEF_E_ARG,
                                   "a problem needs a name of less than %d characters, a summary of less than %d, and "
                                   "all its functions",
                                   NAME_SIZE, SUMMARY_SIZE);
        return rfi_ffi_tell(bad, &error, text, room);
    }
    reef_ffi_kind_handle *made = rfi_allocate(NULL, sizeof *made);
    if (!made) {
        return rfi_ffi_tell(rfi_fail(&error, REEF_E_NOMEM, "no memory for a problem"), &error, text, room);
    }
    *made = (reef_ffi_kind_handle){
        .kind = calls, .make = make, .end = end, .start = start, .ask = ask_for, .score = score, .user = user};
    memcpy(made->name, name, strlen(name) + 1);
    memcpy(made->summary, summary, strlen(summary) + 1);
    made->kind.kind.name = made->name;
    made->kind.kind.summary = made->summary;
    *place = made;
    return REEF_OK;
}

void reef_ffi_kind_destroy(reef_ffi_kind_handle **kind)
{
    if (kind) {
        rfi_release(NULL, *kind);
        *kind = NULL;
    }
}

reef_status reef_ffi_register(reef_context *context, const reef_ffi_kind_handle *kind, char *text, size_t room)
{
    reef_error error = {0};
    const reef_kind *head = kind ? &kind->kind.kind : NULL;
    return rfi_ffi_tell(reef_kind_register(context, REEF_FAMILY_PROBLEM, head, &error), &error, text, room);
}
