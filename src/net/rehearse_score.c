/* Scores of agents on built-in problems, for whoever watches. */
#include "net/rehearse.h"

#include "base/error.h"
#include "base/memory.h"
#include "net/agent.h"

#include <math.h>

static const double patience =
    100; /* a score is not taken again before so many times its duration are over, and a second */

reef_status rfi_scorer_make(rfi_scorer *s, const reef_problem *problem, reef_error *error)
{
    const reef_problem_kind *kind = reef_problem_kind_of(problem);
    ptrdiff_t dimension = reef_problem_dimension(problem);
    *s = (rfi_scorer){.problem = problem};
    bool classes = (kind->traits & REEF_PROBLEM_CLASSES) && kind->score;
    bool optimum = (kind->traits & REEF_PROBLEM_OPTIMUM) && kind->optimum;
    s->optimum = optimum ? rfi_allocate_many(NULL, dimension, sizeof *s->optimum) : NULL;
    size_t size = classes ? kind->work_size(reef_problem_state(problem), 0, 1) : 0;
    s->memory = classes ? rfi_allocate(NULL, size + RFI_ALIGNMENT) : NULL;
    s->work = s->memory ? rfi_align(s->memory) : NULL;
    return (optimum && !s->optimum) || (classes && !s->work)
               ? rfi_fail(error, REEF_E_NOMEM, "no memory for scores of an agent")
               : REEF_OK;
}

static double msd(const rfi_scorer *s, const float *model, int64_t round)
{
    double sum = 0;
    reef_problem_kind_of(s->problem)->optimum(reef_problem_state(s->problem), -1, NULL, round, 0, s->optimum);
    for (ptrdiff_t m = 0; m < reef_problem_dimension(s->problem); m++) {
        double off = (double)model[m] - s->optimum[m];
        sum += off * off;
    }
    return 10 * log10(fmax(sum, 1e-300));
}

void rfi_scorer_note(rfi_scorer *s, rfi_telemetry *telemetry, const float *model, int64_t round)
{
    double began = rfi_now();
    if (began < s->due || (!s->optimum && !s->work)) {
        return;
    }
    if (s->optimum) {
        (void)rfi_telemetry_note(telemetry, "msd_db", msd(s, model, round));
    }
    if (s->work) {
        reef_score score;
        reef_problem_kind_of(s->problem)->score(reef_problem_state(s->problem), model, &score, s->work);
        (void)rfi_telemetry_note(telemetry, "accuracy", score.accuracy);
    }
    double now = rfi_now();
    s->due = now + fmax(0.9, patience * (now - began));
}

void rfi_scorer_free(rfi_scorer *s)
{
    rfi_release(NULL, s->optimum);
    rfi_release(NULL, s->memory);
    *s = (rfi_scorer){0};
}
