/* Models and trust from outside. */
#include "learn/played.h"

#include "learn/run.h"

#include <assert.h>
#include <string.h>

void rfi_played_model(reef_run *run, ptrdiff_t k, const float *model)
{
    memcpy(rfi_row(run, run->w, k), model, (size_t)run->length * sizeof *model);
    run->home[k] = (int32_t)k;
}

void rfi_played_trust(reef_run *run, ptrdiff_t k, const int32_t *senders, ptrdiff_t count, const double *share,
                      const double *fair, const double *factors)
{
    ptrdiff_t at = k * run->largest; /* every receiver is a class of its own here */
    if (!run->trust) {
        return;
    }
    assert(run->class_of[k] == k && count <= run->largest);
    run->trust_counts[k] = count;
    memcpy(run->trust_senders + at, senders, (size_t)count * sizeof *senders);
    memcpy(run->trust + at, share, (size_t)count * sizeof *share);
    memcpy(run->fair + at, fair, (size_t)count * sizeof *fair);
    if (run->factors) {
        memcpy(run->factors + at * run->factor_count, factors, (size_t)(count * run->factor_count) * sizeof *factors);
    }
}

void rfi_played_round(reef_run *run, int64_t round)
{
    run->round = round;
    run->counts.rounds = round;
}
