/* Trust from the sender's side: how much of an agent is in the models of those who hear it. */
#include "base/error.h"
#include "learn/run.h"

#include <math.h>
#include <string.h>

/* Adds effective weight over fair share of the senders that a class of receivers hears. counts: receivers that were to hear them. */
static void add_class(const reef_run *run, ptrdiff_t at, double members, double *received, double *counts)
{
    const int32_t *senders = run->trust_senders + at * run->largest;
    const double *trust = run->trust + at * run->largest;
    const double *fair = run->fair + at * run->largest;
    for (ptrdiff_t i = 0; i < run->trust_counts[at]; i++) {
        ptrdiff_t l = senders[i];
        bool own =
            !run->server && run->class_of[l] == at && !run->liar[l]; /* what it thinks of itself does not count */
        double others = members - own;
        if (fair[i] > 0 && others > 0) {
            received[l] += others * trust[i] / fair[i];
            counts[l] += others;
        }
    }
}

reef_status reef_run_trust_received(const reef_run *run, double *received, double *work, reef_error *error)
{
    if (!run->trust) {
        return rfi_fail(error, REEF_E_ARG, "the run keeps no trust (setup.trust)");
    }
    memset(received, 0, (size_t)run->agents * sizeof *received);
    memset(work, 0, (size_t)run->agents * sizeof *work);
    if (run->server) {
        add_class(run, 0, 1, received, work);
    } else {
        memset(run->members, 0, (size_t)run->agents * sizeof *run->members);
        for (ptrdiff_t k = 0; k < run->agents; k++) {
            run->members[run->class_of[k]] += !run->liar[k];
        }
        for (ptrdiff_t i = 0; i < run->classes; i++) {
            add_class(run, i, run->members[i], received, work);
        }
    }
    for (ptrdiff_t l = 0; l < run->agents; l++) {
        received[l] = work[l] > 0 ? received[l] / work[l] : (double)NAN;
    }
    return REEF_OK;
}
