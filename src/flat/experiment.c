/* Experiments through handles and numbers. */
#include "flat/flat.h"

typedef struct relay {
    reef_flat_progress progress;
    void *user;
} relay;

reef_status reef_flat_experiment(reef_context *context, reef_experiment **place, const char *path,
                                 const char *const *overrides, ptrdiff_t count, char *text, size_t room)
{
    reef_error error = {0};
    reef_status status = reef_experiment_load(context, place, path, overrides, count, &error);
    return rfi_flat_tell(status, &error, text, room);
}

static void hand_on(void *user, const reef_progress *p)
{
    const relay *to = user;
    to->progress(to->user, p->items, p->items_done, p->cells, p->cells_done, p->seconds);
}

reef_status reef_flat_experiment_run(const reef_experiment *experiment, const char *folder, int resume,
                                     reef_flat_progress progress, void *user, const volatile sig_atomic_t *stop,
                                     int *stopped, char *text, size_t room)
{
    reef_error error = {0};
    reef_experiment_outcome outcome = {0};
    relay to = {progress, user};
    reef_experiment_options options = {
        .folder = folder, .resume = resume != 0, .progress = progress ? hand_on : NULL, .user = &to, .stop = stop};
    reef_status status = reef_experiment_run(experiment, &options, &outcome, &error);
    if (stopped) {
        *stopped = outcome.stopped;
    }
    return rfi_flat_tell(status, &error, text, room);
}
