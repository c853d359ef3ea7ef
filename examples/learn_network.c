/* Learning over a network with malicious agents: 60 agents estimate one model, each from data of its own, and exchange it with 8 neighbours. Six
 * of them add an offset to what they send. The mean follows them; REF-Diffusion does not, and its trust shows who they are.
 * Build: cc learn_network.c $(pkg-config --cflags --libs reef) -lm */
#include <math.h>
#include <reef/reef.h>
#include <stdio.h>

enum { AGENTS = 60, ROUNDS = 1200, EVERY = 200 };

/* What both runs have in common. */
typedef struct network {
    reef_problem *problem;
    reef_graph *graph;
    reef_links *links;
    reef_attack *attack;
    bool malicious[AGENTS];
} network;

static reef_status make_network(network *n, reef_error *error)
{
    reef_placement placement = {
        .how = REEF_PLACE_RANDOM, .malicious_count = {REEF_MALICIOUS_COUNT, 6}, .keep_majority = true, .seed = 1};
    reef_status status = reef_problem_create(NULL, &n->problem, "lms:dimension=10,noise=0.01", AGENTS, 1, error);
    if (status == REEF_OK) {
        status = reef_graph_create(NULL, &n->graph, "regular:degree=8", AGENTS, 1, error);
    }
    if (status == REEF_OK) {
        reef_csr csr = reef_graph_csr(n->graph);
        status = reef_graph_place_malicious(NULL, &csr, &placement, n->malicious, NULL, error);
    }
    if (status == REEF_OK) {
        const reef_graph *graphs[] = {n->graph};
        status = reef_links_create(NULL, &n->links, "static", graphs, 1, 1, error);
    }
    return status == REEF_OK ? reef_attack_create(NULL, &n->attack, "additive:delta=1", error) : status;
}

/* Runs one rule; msd receives the mean square deviation from the truth, in dB, after every EVERY rounds. */
static reef_status learn(const network *n, const char *rule, double *msd, reef_trust_facts *trust, reef_error *error)
{
    reef_agg *agg = NULL;
    reef_run *run = NULL;
    reef_status status = reef_agg_create(NULL, &agg, rule, error);
    if (status == REEF_OK) {
        const reef_run_setup setup = {.problem = n->problem,
                                      .strategy = "diffusion:mu=0.01,batch=4",
                                      .rule = agg,
                                      .links = n->links,
                                      .attack = n->attack,
                                      .malicious = n->malicious,
                                      .trust = true};
        status = reef_run_create(NULL, &run, &setup, error);
    }
    for (int i = 0; status == REEF_OK && i < ROUNDS / EVERY; i++) {
        status = reef_run_step(run, EVERY, error);
        if (status == REEF_OK) {
            status = reef_run_msd(run, NULL, &msd[i], error);
            msd[i] = 10 * log10(msd[i]);
        }
    }
    if (status == REEF_OK) {
        status = reef_run_trust_facts(run, trust, error);
    }
    reef_run_destroy(&run);
    reef_agg_destroy(&agg);
    return status;
}

int main(void)
{
    static const char *const rules[] = {"mean", "ref"};
    double msd[2][ROUNDS / EVERY];
    reef_trust_facts trust[2];
    network n = {0};
    reef_error error;
    reef_status status = make_network(&n, &error);
    for (int i = 0; status == REEF_OK && i < 2; i++) {
        status = learn(&n, rules[i], msd[i], &trust[i], &error);
    }
    if (status == REEF_OK) {
        printf("%8s %10s %10s   MSD in dB, 6 of %d agents malicious\n", "rounds", rules[0], rules[1], AGENTS);
        for (int i = 0; i < ROUNDS / EVERY; i++) {
            printf("%8d %10.1f %10.1f\n", (i + 1) * EVERY, msd[0][i], msd[1][i]);
        }
        for (int i = 0; i < 2; i++) {
            printf("%-4s trusts honest agents %.2f, malicious ones %.2f (fair share: 1); ranks %.0f %% of pairs "
                   "correctly\n",
                   rules[i], trust[i].honest, trust[i].malicious_count, 100 * trust[i].auc);
        }
    } else {
        fprintf(stderr, "%s\n", error.text);
    }
    reef_attack_destroy(&n.attack);
    reef_links_destroy(&n.links);
    reef_graph_destroy(&n.graph);
    reef_problem_destroy(&n.problem);
    bool as_told = status == REEF_OK && msd[0][ROUNDS / EVERY - 1] > 0 && msd[1][ROUNDS / EVERY - 1] < -30;
    return as_told ? 0 : 1;
}
