/* Records: what an agent on a built-in problem writes down for whoever measures the run. A file of records of one size:
 *
 *   round u64, combined u64, alone u64, refused u64 (frames, as offences), the model (M numbers), then for each sender, ascending: its
 *   effective weight in the last combination f64, its fair share f64, and what each test of the rule left of it f64.
 *
 * Numbers are as this machine has them: records are read where they were written. */
#ifndef RFI_NET_REHEARSE_H
#define RFI_NET_REHEARSE_H

#include "net/telemetry.h"

#include <reef/agg.h>
#include <reef/problem.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rfi_record_head {
    uint64_t round; /* rounds behind it */
    uint64_t combined, alone;
    uint64_t refused;
} rfi_record_head;

/* Where things are in a record. */
typedef struct rfi_record_shape {
    size_t model; /* bytes, a multiple of 8 */
    ptrdiff_t senders, factors;
    size_t size;
} rfi_record_shape;

static inline rfi_record_shape rfi_record_shape_of(ptrdiff_t dimension, ptrdiff_t senders, const reef_agg *rule)
{
    const reef_memory *memory = reef_agg_rule(rule)->memory;
    rfi_record_shape s = {.model = ((size_t)dimension * sizeof(float) + 7) / 8 * 8, .senders = senders};
    s.factors = memory ? memory->factor_count : 0;
    s.size = sizeof(rfi_record_head) + s.model + (size_t)(senders * (2 + s.factors)) * sizeof(double);
    return s;
}

/* rehearse_score.c: how good the agent's model is, told as a note: "msd_db" where the problem knows its optimum, "accuracy" where it classifies. Takes at
 * most a hundredth of the time. */
typedef struct rfi_scorer {
    const reef_problem *problem;
    double *optimum; /* M numbers; NULL: not known */
    void *memory;    /* where `work` is */
    void *work;      /* NULL: it does not classify */
    double due;      /* not before */
} rfi_scorer;
reef_status rfi_scorer_make(rfi_scorer *scorer, const reef_problem *problem, reef_error *error);
void rfi_scorer_note(rfi_scorer *scorer, rfi_telemetry *telemetry, const float *model, int64_t round);
void rfi_scorer_free(rfi_scorer *scorer);

#endif
