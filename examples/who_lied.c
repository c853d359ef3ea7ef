/* Ten agents send a model of 1000 numbers each; three of them are malicious. REF combines the models so that their influence is
 * bounded, and its report says who was down-weighted. Build: cc who_lied.c $(pkg-config --cflags --libs reef) -lm */
#include <reef/reef.h>
#include <math.h>
#include <stdio.h>

enum { AGENTS = 10, LENGTH = 1000 };

/* Uniform noise of standard deviation 1, the same in every run. */
static double noise(void)
{
    static unsigned state = 1;
    state = state * 1664525U + 1013904223U;
    return ((double)state * 0x1p-32 - 0.5) * sqrt(12);
}

int main(void)
{
    static float models[AGENTS][LENGTH];
    static float combined[LENGTH];
    const void *rows[AGENTS]; /* Reef takes one pointer per agent; the models may be anywhere in memory */
    reef_agg *agg = NULL;
    reef_report *report = NULL;
    reef_error error;
    for (int l = 0; l < AGENTS; l++) {
        rows[l] = models[l];
        for (int m = 0; m < LENGTH; m++) { /* the true model is 1 everywhere */
            models[l][m] = (float)(1 + noise());
        }
    }
    for (int m = 0; m < LENGTH; m++) {
        models[2][m] = -20;         /* agent 2 pulls the other way */
        models[5][m] += 1e6F;       /* agent 5 shouts */
        models[7][m] = m ? 1 : NAN; /* agent 7 has one broken number */
    }
    reef_input input = {.rows = rows};
    /* A rule is named by a rule string; `reef list` in a shell shows all of them. */
    if (reef_agg_create(NULL, &agg, "ref", &error) != REEF_OK ||
        reef_report_create(NULL, &report, AGENTS, &error) != REEF_OK ||
        reef_agg_apply(agg, &input, AGENTS, LENGTH, REEF_F32, combined, report, &error) != REEF_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    double squares = 0;
    for (int m = 0; m < LENGTH; m++) {
        squares += pow((double)combined[m] - 1, 2);
    }
    printf("error per number: %.2f (one honest agent alone: 1.00)\n", sqrt(squares / LENGTH));
    int right = 0;
    for (int l = 0; l < AGENTS; l++) { /* trust 1 is a fair share, 0 means ignored */
        double trust = reef_report_trust(report)[l];
        right += (trust < 0.5) == (l == 2 || l == 5 || l == 7);
        printf("agent %d: trust %.2f%s\n", l, trust, trust < 0.5 ? "  <- down-weighted" : "");
    }
    reef_report_destroy(&report);
    reef_agg_destroy(&agg);
    return right == AGENTS && squares / LENGTH < 0.2 ? 0 : 1;
}
