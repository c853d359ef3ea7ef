/* A model of three layers, aggregated by VREF with one weight per agent and layer (block=segment), and the trust that
 * each agent received in each layer: agent 3 is malicious in the head only, agent 5 in every layer. */
#include <reef/reef.h>
#include <stdbool.h>
#include <stdio.h>

enum { AGENTS = 8, LAYERS = 3, TOTAL = 600 + 300 + 100 };

static const char *const names[LAYERS] = {"embedding", "hidden", "head"};
static const ptrdiff_t lengths[LAYERS] = {600, 300, 100};

static bool lies(int agent, int layer)
{
    return agent == 5 || (agent == 3 && layer == 2);
}

/* A model dictionary: one tensor per layer, each in its own piece of memory. models[s][l] is layer s of agent l. */
static float storage[AGENTS][TOTAL];
static float result[TOTAL];
static const void *models[LAYERS][AGENTS];
static void *out[LAYERS];

static void make_models(void)
{
    unsigned state = 7;
    ptrdiff_t start = 0;
    for (int s = 0; s < LAYERS; s++) {
        out[s] = result + start;
        for (int l = 0; l < AGENTS; l++) {
            models[s][l] = storage[l] + start;
            for (ptrdiff_t m = start; m < start + lengths[s]; m++) {
                state = state * 1664525U + 1013904223U;
                storage[l][m] = (float)state * 0x1p-32F - 0.5F + (lies(l, s) ? 2.0F : 0.0F);
            }
        }
        start += lengths[s];
    }
}

/* Trust in one layer: the mean of abar_l(m) / a_l over its coordinates, with equal weights a_l = 1 / AGENTS. */
static double layer_trust(const double *shares, int agent, ptrdiff_t start, ptrdiff_t length)
{
    double sum = 0;
    for (ptrdiff_t m = start; m < start + length; m++) {
        sum += shares[agent * TOTAL + m];
    }
    return sum / (double)length * AGENTS;
}

/* Prints the table; returns the number of wrong judgements over agents and layers. */
static int print_trust(const double *shares)
{
    int wrong = 0;
    printf("trust ");
    for (int s = 0; s < LAYERS; s++) {
        printf("%11s", names[s]);
    }
    for (int l = 0; l < AGENTS; l++) {
        ptrdiff_t start = 0;
        printf("\nagent%d", l);
        for (int s = 0; s < LAYERS; s++) {
            double trust = layer_trust(shares, l, start, lengths[s]);
            printf("%10.2f%c", trust, lies(l, s) ? '*' : ' ');
            wrong += lies(l, s) ? trust > 0.01 : trust < 0.5;
            start += lengths[s];
        }
    }
    printf("\n(* where the agent is malicious)\n");
    return wrong;
}

int main(void)
{
    static double shares[AGENTS * TOTAL]; /* the effective weight of each agent at each coordinate, if you want it */
    const void *const *rows[LAYERS] = {models[0], models[1], models[2]};
    reef_shape shape = {.rows = AGENTS, .segments = LAYERS, .lengths = lengths, .dtype = REEF_F32};
    reef_agg *agg = NULL;
    reef_plan *plan = NULL;
    reef_report *report = NULL;
    reef_error error;
    int wrong = 1;
    make_models();
    reef_status status = reef_agg_create(NULL, &agg, "vref:block=segment", &error);
    if (status == REEF_OK) {
        status = reef_plan_create(&plan, agg, &shape, &error);
    }
    if (status == REEF_OK) {
        status = reef_report_create(NULL, &report, AGENTS, &error);
    }
    if (status == REEF_OK) {
        reef_report_keep_shares(report, shares, NULL);
        status = reef_plan_apply_segments(plan, &(reef_input){.round = 0}, rows, out, report, &error);
    }
    if (status == REEF_OK) {
        wrong = print_trust(shares);
    } else {
        fprintf(stderr, "%s\n", error.text);
    }
    reef_report_destroy(&report);
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
    return wrong == 0 ? 0 : 1;
}
