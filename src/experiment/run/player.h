/* Experiments whose runs are executed elsewhere, and only measured and written down here. */
#ifndef RFI_EXPERIMENT_RUN_PLAYER_H
#define RFI_EXPERIMENT_RUN_PLAYER_H

#include <reef/experiment.h>
#include <reef/learn.h>

typedef struct rfi_player {
    void *user;
    /* Brings a run (learn/played.h) to so many rounds, waiting as long as it takes. */
    reef_status (*advance)(void *user, reef_run *run, int64_t round, reef_error *error);
    /* The first metric of a point; decibels where that is usual. */
    void (*told)(void *user, int64_t round, const char *metric, double value);
} rfi_player;

/* reef_experiment_run of an experiment with one cell and one repetition. Oracles are run here. */
reef_status rfi_experiment_play(const reef_experiment *experiment, const reef_experiment_options *options,
                                const rfi_player *player, reef_experiment_outcome *outcome, reef_error *error);

#endif
