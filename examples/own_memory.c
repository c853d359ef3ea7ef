/* A rule of your own that remembers its senders, with one function more than a rule without memory: the library keeps what it remembers by
 * sender id, through absences, newcomers and restarts.
 *
 *   drift   E_l = exponential average of the residuals of sender l, each shortened to the typical length
 *           r_l = |E_l| over the median of such lengths; full weight up to 1.5, none from 2.5
 */
#include <reef/reef.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What is kept: one vector per sender, of the whole model or of a sketch of it; and scratch memory. */
static void drift_sizes(const void *params, ptrdiff_t rows, ptrdiff_t length, reef_memory_sizes *sizes)
{
    (void)params;
    *sizes = (reef_memory_sizes){.numbers = length <= 256 ? length : 256, .vectors = 1};
    sizes->work = (size_t)(rows + sizes->numbers) * sizeof(double);
}

static double median_of(const double *x, ptrdiff_t n)
{
    ptrdiff_t i = 0;
    for (ptrdiff_t below = n, above = n; 2 * below > n || 2 * above > n; i++) {
        below = above = 0;
        for (ptrdiff_t j = 0; j < n; j++) {
            below += x[j] < x[i];
            above += x[j] > x[i];
        }
    }
    return x[i - 1];
}

static double rate_of(const reef_recall *recall, ptrdiff_t l)
{
    return fmax(0.02, 1 / (double)recall->age[l]);
}

/* Length of E_l as it will be after this round's residual, over what noise would leave of it. */
static double drift_of(const reef_recall *recall, ptrdiff_t l, double typical, double *average)
{
    double squares = 0;
    reef_recall_read(recall, l, 0, average);
    for (ptrdiff_t i = 0; i < recall->numbers; i++) {
        double d = recall->residual[l * recall->numbers + i] / fmax(recall->norm[l], typical);
        average[i] += rate_of(recall, l) * (d - average[i]);
        squares += average[i] * average[i];
    }
    return sqrt(squares / rate_of(recall, l));
}

static reef_status drift_weigh(const void *params, const reef_points *points, double *share, reef_effort *effort,
                               reef_error *error)
{
    reef_recall *recall = points->recall;
    double *drift = recall->work;
    double typical = median_of(recall->norm, points->n);
    double sum = 0;
    (void)params, (void)effort, (void)error;
    recall->idle = !(typical > 0 && isfinite(typical)); /* most rows are equal: nothing to learn */
    for (ptrdiff_t l = 0; l < points->n; l++) {
        drift[l] = recall->idle ? recall->norm[l] : drift_of(recall, l, typical, drift + points->n);
    }
    double middle = median_of(drift, points->n);
    for (ptrdiff_t l = 0; l < points->n; l++) {
        recall->factor[l] =
            drift[l] <= middle ? 1 : fmin(fmax(2.5 - drift[l] / middle, 0), 1); /* for the report, too */
        share[l] = points->a[l] * recall->factor[l];
        sum += share[l];
    }
    for (ptrdiff_t l = 0; l < points->n; l++) {
        share[l] /= sum; /* > 0: half of the senders are within the median */
    }
    return REEF_OK;
}

/* The result is complete: what was learned becomes memory. */
static void drift_commit(const void *params, reef_recall *recall)
{
    double typical = median_of(recall->norm, recall->n);
    (void)params;
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        reef_recall_average(recall, l, 0, rate_of(recall, l), 1 / fmax(recall->norm[l], typical));
    }
}

static const reef_diagnostic drift_tests[] = {{"drift", "its residuals point the same way round after round"}};
static const reef_memory drift_memory = {
    .version = 1, .sizes = drift_sizes, .commit = drift_commit, .factors = drift_tests, .factor_count = 1};
static const reef_rule drift = {
    .kind = {.name = "drift", .summary = "leaves out senders whose residuals do not average out", .citation = ""},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE | REEF_TRAIT_HULL | REEF_TRAIT_SENDERS,
    .weigh = drift_weigh,
    .memory = &drift_memory,
};

/* --- using it: agents 0 to 2 of 12 pull a little, always in the same direction; 9 of the 12 are heard per round, in any order --- */

enum { AGENTS = 12, HEARD = 9, LENGTH = 20, ROUNDS = 400, EARLY = 200, COLLUDERS = 3 };

static double noise(void)
{
    static unsigned state = 1;
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        state = state * 1664525U + 1013904223U;
        sum += (double)(state >> 8) / (1 << 24);
    }
    return sum - 6;
}

static reef_status play(const reef_agg *agg, reef_state *memory, reef_report *report, double *off, reef_error *error)
{
    double data[HEARD][LENGTH];
    double out[LENGTH];
    const void *rows[HEARD];
    int64_t ids[HEARD];
    reef_status status = REEF_OK;
    for (int round = 0; round < ROUNDS && status == REEF_OK; round++) {
        for (int i = 0; i < HEARD; i++) {
            rows[i] = data[i];
            ids[i] = (i * 5 + round * 7) % AGENTS;
            for (int m = 0; m < LENGTH; m++) {
                data[i][m] = noise() + (ids[i] < COLLUDERS ? 0.7 : 0);
            }
        }
        const reef_input input = {.rows = rows, .ids = ids, .state = memory};
        status = reef_agg_apply(agg, &input, HEARD, LENGTH, REEF_F64, out, report, error);
        *off += round >= EARLY ? out[0] / (ROUNDS - EARLY) : 0;
    }
    for (int i = 0; status == REEF_OK && memory && i < HEARD; i++) {
        char why[80];
        (void)reef_report_explain(report, i, why, sizeof why);
        printf("agent %2d, heard %lld times: trust %.2f  %s\n", (int)ids[i], (long long)reef_state_age(memory, ids[i]),
               reef_report_trust(report)[i], why);
    }
    return status;
}

int main(void)
{
    const ptrdiff_t length = LENGTH;
    const reef_shape shape = {.rows = HEARD, .segments = 1, .lengths = &length, .dtype = REEF_F64};
    reef_context *context = NULL;
    reef_agg *agg = NULL;
    reef_state *memory = NULL;
    reef_report *report = NULL;
    reef_error error = {REEF_OK, ""};
    double with = 0;
    double without = 0;
    bool done = reef_context_create(&context, NULL, &error) == REEF_OK &&
                reef_kind_register(context, REEF_FAMILY_RULE, &drift.kind, &error) == REEF_OK &&
                reef_agg_create(context, &agg, "drift", &error) == REEF_OK &&
                reef_report_create(context, &report, HEARD, &error) == REEF_OK &&
                reef_state_create(&memory, agg, &shape, &error) == REEF_OK &&
                play(agg, memory, report, &with, &error) == REEF_OK &&
                play(agg, NULL, report, &without, &error) == REEF_OK;
    if (done) {
        printf("off by %.2f with memory, %.2f without; %d senders remembered\n", with, without,
               (int)reef_state_senders(memory));
    } else {
        fprintf(stderr, "%s\n", error.text);
    }
    done = done && reef_state_senders(memory) == AGENTS && fabs(with) < 0.3 * fabs(without);
    reef_state_destroy(&memory);
    reef_report_destroy(&report);
    reef_agg_destroy(&agg);
    reef_context_destroy(&context);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
