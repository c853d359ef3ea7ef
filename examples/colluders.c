/* A server hears 12 agents, round after round. Three of them collude: each of their numbers is half a standard deviation off, well within
 * the honest spread. No single-round rule can detect that; mref remembers, and says why it stops trusting them.
 * Build: cc colluders.c $(pkg-config --cflags --libs reef) -lm */
#include <math.h>
#include <reef/reef.h>
#include <stdio.h>

enum { AGENTS = 12, MALICIOUS = 3, NUMBERS = 20, ROUNDS = 120, HALF = ROUNDS / 2 };

/* Approximately normal noise of variance 1, without a library. */
static double noise(unsigned *state)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        *state = *state * 1664525U + 1013904223U;
        sum += (double)(*state >> 8) / (1 << 24);
    }
    return sum - 6;
}

static void receive(float rows[AGENTS][NUMBERS], unsigned *state)
{
    for (int l = 0; l < AGENTS; l++) {
        for (int m = 0; m < NUMBERS; m++) {
            rows[l][m] = (float)(noise(state) + (l < MALICIOUS ? 0.5 : 0)); /* the truth is 0 */
        }
    }
}

/* Length of the mean result over the second half of the rounds: noise averages out, as it does in learning; the bias of the colluders does
 * not. */
static reef_status listen(const char *spec, double *bias, reef_report *report, reef_error *error)
{
    float rows[AGENTS][NUMBERS];
    float out[NUMBERS];
    double mean[NUMBERS] = {0};
    const void *pointers[AGENTS];
    const ptrdiff_t length = NUMBERS;
    const reef_shape shape = {.rows = AGENTS, .segments = 1, .lengths = &length, .dtype = REEF_F32};
    unsigned state = 1;
    reef_agg *agg = NULL;
    reef_plan *plan = NULL;
    reef_state *memory = NULL;
    reef_status status = reef_agg_create(NULL, &agg, spec, error);
    status = status == REEF_OK ? reef_plan_create(&plan, agg, &shape, error) : status;
    status = status == REEF_OK ? reef_state_create(&memory, agg, &shape, error) : status;
    for (int round = 0; status == REEF_OK && round < ROUNDS; round++) {
        receive(rows, &state);
        for (int l = 0; l < AGENTS; l++) {
            pointers[l] = rows[l];
        }
        status = reef_plan_apply(plan, &(reef_input){.rows = pointers, .state = memory}, out, report, error);
        for (int m = 0; round >= HALF && m < NUMBERS; m++) {
            mean[m] += (double)out[m] / HALF;
        }
    }
    *bias = 0;
    for (int m = 0; m < NUMBERS; m++) {
        *bias += mean[m] * mean[m];
    }
    *bias = sqrt(*bias);
    reef_state_destroy(&memory);
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
    return status;
}

int main(void)
{
    static const char *const rules[] = {"mean", "median", "vref", "mref"};
    reef_report *report = NULL;
    reef_error error;
    double bias[4] = {0};
    reef_status status = reef_report_create(NULL, &report, AGENTS, &error);
    for (int i = 0; status == REEF_OK && i < 4; i++) {
        status = listen(rules[i], &bias[i], report, &error);
        printf("%-8s is off by %.2f\n", rules[i], bias[i]);
    }
    if (status != REEF_OK) {
        return fprintf(stderr, "%s\n", error.text), 1;
    }
    bool found = bias[3] < 0.6 * bias[0] && bias[3] < 0.6 * bias[2];
    for (int l = 0; l < AGENTS; l++) {
        char why[80] = "";
        (void)reef_report_explain(report, l, why, sizeof why);
        printf("agent %2d: trust %.2f  %s\n", l, reef_report_trust(report)[l], why);
        found = found && (reef_report_trust(report)[l] < 0.5) == (l < MALICIOUS);
    }
    reef_report_destroy(&report);
    return found ? 0 : 1;
}
