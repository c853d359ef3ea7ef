/* A run that is executed elsewhere: its agents are separate processes, and only their models and trust are here, to be measured. */
#ifndef RFI_LEARN_PLAYED_H
#define RFI_LEARN_PLAYED_H

#include <reef/learn.h>

/* Like reef_run_create; the run is never stepped. One repetition, no engine; strategies without a server. */
reef_status rfi_played_create(reef_context *context, reef_run **run, const reef_run_setup *setup, reef_error *error);
/* The model of agent k: M numbers. */
void rfi_played_model(reef_run *run, ptrdiff_t k, const float *model);
/* What agent k made of its senders in the last round: their effective weights, their fair shares, and what each test of the rule left of
 * them (senders x tests). Nothing if the run keeps no trust. */
void rfi_played_trust(reef_run *run, ptrdiff_t k, const int32_t *senders, ptrdiff_t count, const double *share,
                      const double *fair, const double *factors);
/* So many rounds are done. */
void rfi_played_round(reef_run *run, int64_t round);

#endif
