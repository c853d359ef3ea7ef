/* Experiments through handles and numbers. */
#include "ffi/handles.h"

#include <assert.h>

typedef struct relay {
    reef_ffi_progress progress;
    void *user;
} relay;

reef_status reef_ffi_experiment(reef_context *context, reef_experiment **place, const char *path,
                                const char *const *overrides, ptrdiff_t count, char *text, size_t room)
{
    reef_error error = {0};
    reef_status status = reef_experiment_load(context, place, path, overrides, count, &error);
    return rfi_ffi_tell(status, &error, text, room);
}

static void hand_on(void *user, const reef_progress *p)
{
    const relay *to = user;
    assert(to->progress && p->items_done <= p->items && p->cells_done <= p->cells);
    to->progress(to->user, p->items, p->items_done, p->cells, p->cells_done, p->seconds);
}

reef_status reef_ffi_experiment_run(const reef_experiment *experiment, const char *folder, int resume, int force,
                                    reef_ffi_progress progress, void *user, const volatile sig_atomic_t *stop,
                                    int *stopped, char *text, size_t room)
{
    reef_error error = {0};
    reef_experiment_outcome outcome = {0};
    relay to = {progress, user};
    reef_experiment_options options = {.folder = folder,
                                       .resume = resume != 0,
                                       .force = force != 0,
                                       .progress = progress ? hand_on : NULL,
                                       .user = &to,
                                       .stop = stop};
    reef_status status = reef_experiment_run(experiment, &options, &outcome, &error);
    if (stopped) {
        *stopped = outcome.stopped;
    }
    return rfi_ffi_tell(status, &error, text, room);
}

reef_status reef_ffi_experiment_report(const char *folder, char *text, size_t room)
{
    reef_error error = {0};
    return rfi_ffi_tell(reef_experiment_report(NULL, folder, &error), &error, text, room);
}
