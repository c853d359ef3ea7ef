/* Overrides "path=value" of a tree, from a command line. */
#ifndef RFI_EXPERIMENT_CONFIG_OVERRIDE_H
#define RFI_EXPERIMENT_CONFIG_OVERRIDE_H

#include "experiment/config/experiment.h"

/* Puts the overrides, in order, into the tree; the experiment owns what they are made of. */
reef_status rfi_override_all(reef_experiment *experiment, const char *const *overrides, ptrdiff_t count,
                             reef_error *error);
void rfi_override_free(reef_experiment *experiment);

#endif
