/* An attack of your own against two rules: the malicious agents agree on one vector just beyond the honest ones, all on one side. The program
 * prints how far it moves each rule, next to some of the built-in attacks.
 * Build: cc own_attack.c $(pkg-config --cflags --libs reef) -lm */
#include <reef/reef.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- the attack: mean + reach * (largest - mean) in every coordinate --- */

typedef struct edge_params {
    double reach;
} edge_params;

static const reef_field edge_fields[] = {
    {.name = "reach",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(edge_params, reach),
     .preset = "1.1",
     .min = 0,
     .max = 1e6,
     .unit = "",
     .help = "where between the mean (0) and the largest honest value (1), or beyond"},
};

static bool edge_message(const void *params, const reef_attack_view *view, float *out)
{
    const edge_params *p = params;
    for (ptrdiff_t i = 0; i < view->length;
         i++) { /* repetitions side by side need no care: each number is independent */
        double sum = 0;
        double largest = view->known > 0 ? (double)view->rows[0][i] : (double)view->own[i];
        for (ptrdiff_t l = 0; l < view->known; l++) {
            sum += (double)view->rows[l][i];
            largest = fmax(largest, (double)view->rows[l][i]);
        }
        double mean = view->known > 0 ? sum / (double)view->known : largest;
        out[i] = (float)(mean + p->reach * (largest - mean));
    }
    return true;
}

static const reef_attack_kind edge = {
    .kind = {.name = "edge",
             .summary = "just beyond the largest honest values",
             .citation = "",
             .fields = edge_fields,
             .field_count = 1,
             .params_size = sizeof(edge_params)},
    .traits = REEF_ATTACK_LANES | REEF_ATTACK_ROWS | REEF_ATTACK_SAME,
    .message = edge_message,
};

/* --- a round of 15 agents, 4 of them malicious --- */

enum { HONEST = 11, MALICIOUS = 4, LENGTH = 1000 };

typedef struct round_data {
    float rows[HONEST + MALICIOUS][LENGTH]; /* what is sent; those of the malicious agents come last */
    float own[MALICIOUS][LENGTH];           /* what they would have sent if honest */
    float previous[LENGTH];                 /* where every agent started */
} round_data;

static double draw(void) /* roughly normal, from the C library for brevity */
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        sum += (double)rand() / RAND_MAX; /* NOLINT(cert-msc30-c): an example */
    }
    return sum;
}

static void begin(round_data *data)
{
    for (int m = 0; m < LENGTH; m++) {
        data->previous[m] = 0.9F;
        for (int l = 0; l < HONEST; l++) {
            data->rows[l][m] = (float)(1 + 0.1 * draw());
        }
        for (int l = 0; l < MALICIOUS; l++) {
            data->own[l][m] = (float)(1 + 0.1 * draw());
        }
    }
}

/* The malicious agents fill in their rows. */
static int lie(const reef_attack *attack, round_data *data)
{
    const reef_attack_kind *kind = reef_attack_kind_of(attack);
    const float *known[HONEST];
    float *work = malloc((size_t)reef_attack_work(attack, LENGTH, HONEST) * sizeof *work);
    if (!work) {
        return 0;
    }
    for (int l = 0; l < HONEST; l++) {
        known[l] = data->rows[l];
    }
    for (int l = 0; l < MALICIOUS; l++) {
        reef_attack_view view = {.seed = 1,
                                 .sender = HONEST + l,
                                 .receiver = -1,
                                 .length = LENGTH,
                                 .lanes = 1,
                                 .own = data->own[l],
                                 .previous = data->previous,
                                 .known = HONEST,
                                 .rows = known,
                                 .honest = HONEST,
                                 .malicious_count = MALICIOUS,
                                 .work = work};
        (void)kind->message(reef_attack_params(attack), &view, data->rows[HONEST + l]);
    }
    free(work);
    return 1;
}

/* Root mean square distance of the rule's result from the mean of the honest rows; -1 if it fails. */
static double moved(const char *rule, const round_data *data, reef_error *error)
{
    float out[LENGTH];
    const void *rows[HONEST + MALICIOUS];
    double sum = 0;
    reef_agg *agg = NULL;
    for (int l = 0; l < HONEST + MALICIOUS; l++) {
        rows[l] = data->rows[l];
    }
    reef_status status = reef_agg_create(NULL, &agg, rule, error);
    if (status == REEF_OK) {
        reef_input input = {.rows = rows};
        status = reef_agg_apply(agg, &input, HONEST + MALICIOUS, LENGTH, REEF_F32, out, NULL, error);
    }
    reef_agg_destroy(&agg);
    if (status != REEF_OK) {
        return -1;
    }
    for (int m = 0; m < LENGTH; m++) {
        double mean = 0;
        for (int l = 0; l < HONEST; l++) {
            mean += (double)data->rows[l][m] / HONEST;
        }
        sum += ((double)out[m] - mean) * ((double)out[m] - mean);
    }
    return sqrt(sum / LENGTH);
}

static int report(const reef_attack *attack, round_data *data)
{
    reef_error error = {REEF_OK, ""};
    if (!lie(attack, data)) {
        return 0;
    }
    double mean = moved("mean", data, &error);
    double ref = moved("ref", data, &error);
    printf("%-10s moves mean by %8.3f, ref by %6.3f %s\n", reef_attack_kind_of(attack)->kind.name, mean, ref,
           error.text);
    return mean >= 0 && ref >= 0 && ref < 0.2; /* honest rows scatter by 0.1 */
}

int main(void)
{
    static const char *const others[] = {"additive", "alie:z=1.5", "ipm", "min_max"};
    static round_data data;
    reef_error error = {REEF_OK, ""};
    reef_attack *attack = NULL;
    begin(&data);
    if (reef_attack_create_own(NULL, &attack, &edge, NULL, NULL, &error) != REEF_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    int good = report(attack, &data);
    reef_attack_destroy(&attack);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (reef_attack_create(NULL, &attack, others[i], &error) != REEF_OK) {
            fprintf(stderr, "%s\n", error.text);
            return 1;
        }
        good &= report(attack, &data);
        reef_attack_destroy(&attack);
    }
    return good ? 0 : 1;
}
