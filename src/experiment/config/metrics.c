/* What an experiment measures, by name. */
#include "base/fields.h"
#include "experiment/config/experiment.h"

#include <math.h>

/* What a metric needs. */
typedef enum need { NEEDS_NOTHING, NEEDS_OPTIMUM, NEEDS_EXCESS, NEEDS_SCORE, NEEDS_CLASSES, NEEDS_TRUST } need;

static const struct {
    const char *name;
    need needs;
    bool decibels;
} metrics[RFI_METRICS] = {
    [RFI_MSD] = {"msd", NEEDS_OPTIMUM, true},
    [RFI_EXCESS] = {"excess", NEEDS_EXCESS, true},
    [RFI_CONSENSUS] = {"consensus", NEEDS_NOTHING, true},
    [RFI_LOSS] = {"loss", NEEDS_SCORE, false},
    [RFI_ACCURACY] = {"accuracy", NEEDS_CLASSES, false},
    [RFI_WORST_ACCURACY] = {"worst_accuracy", NEEDS_CLASSES, false},
    [RFI_TRUST_HONEST] = {"trust_honest", NEEDS_TRUST, false},
    [RFI_TRUST_MALICIOUS] = {"trust_malicious", NEEDS_TRUST, false},
    [RFI_TRUST_AUC] = {"trust_auc", NEEDS_TRUST, false},
};

const char *rfi_metric_name(rfi_metric metric)
{
    return metrics[metric].name;
}

bool rfi_metric_decibels(rfi_metric metric)
{
    return metrics[metric].decibels;
}

const char *rfi_metric_lacks(rfi_metric metric, const reef_problem *problem, bool trust)
{
    const reef_problem_kind *kind = reef_problem_kind_of(problem);
    switch (metrics[metric].needs) {
    case NEEDS_OPTIMUM:
        return kind->optimum ? NULL : "a problem whose optimum is known";
    case NEEDS_EXCESS:
        return kind->excess ? NULL : "a problem whose excess risk is known";
    case NEEDS_SCORE:
        return kind->score ? NULL : "a problem with test data";
    case NEEDS_CLASSES:
        return kind->score && (kind->traits & REEF_PROBLEM_CLASSES) ? NULL : "a problem that classifies";
    case NEEDS_TRUST:
        return trust ? NULL : "trust: true";
    case NEEDS_NOTHING:
        break;
    }
    return NULL;
}

static bool any(const bool wanted[RFI_METRICS], rfi_metric from, rfi_metric to)
{
    bool found = false;
    for (int i = (int)from; i <= (int)to; i++) {
        found = found || wanted[i];
    }
    return found;
}

reef_status rfi_metric_eval(const reef_run *run, const bool wanted[RFI_METRICS], double *values, reef_error *error)
{
    ptrdiff_t lanes = reef_run_lanes(run);
    reef_score score = {(double)NAN, (double)NAN, (double)NAN};
    reef_trust_facts trust = {(double)NAN, (double)NAN, (double)NAN};
    reef_status status = REEF_OK;
    if (any(wanted, RFI_LOSS, RFI_WORST_ACCURACY)) {
        status = reef_run_score(run, &score, error);
    }
    if (status == REEF_OK && any(wanted, RFI_TRUST_HONEST, RFI_TRUST_AUC) && reef_run_round(run) > 0) {
        status = reef_run_trust_facts(run, &trust, error);
    }
    const double single[RFI_METRICS] = {[RFI_LOSS] = score.loss,
                                        [RFI_ACCURACY] = score.accuracy,
                                        [RFI_WORST_ACCURACY] = score.worst_accuracy,
                                        [RFI_TRUST_HONEST] = trust.honest,
                                        [RFI_TRUST_MALICIOUS] = trust.malicious_count,
                                        [RFI_TRUST_AUC] = trust.auc};
    for (int i = 0; i < RFI_METRICS && status == REEF_OK; i++) {
        if (!wanted[i]) {
            continue;
        }
        if (i == RFI_MSD) {
            status = reef_run_msd(run, NULL, values, error);
        } else if (i == RFI_EXCESS) {
            status = reef_run_excess(run, values, error);
        } else if (i == RFI_CONSENSUS) {
            reef_run_consensus(run, values);
        } else {
            values[0] = single[i]; /* R = 1 with these */
        }
        values += lanes;
    }
    return status;
}
