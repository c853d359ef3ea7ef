/* Is a network fit for robust learning? Makes a random network of 100 agents, places malicious agents where they do the most harm, and checks what
 * the theory requires: honest majorities everywhere, connected honest agents, and how much each of them counts in the end.
 * Build: cc check_network.c $(pkg-config --cflags --libs reef) -lm */
#include <reef/reef.h>
#include <stdio.h>

enum { AGENTS = 100 };

static const char *yes_no(bool flag)
{
    return flag ? "yes" : "NO";
}

static void print_facts(const reef_graph_facts *facts)
{
    printf("agents %td, malicious %td, each hears %td to %td\n", facts->agents, facts->malicious_count, facts->smallest,
           facts->largest);
    printf("honest majority everywhere, by number: %s (least: %.2f at agent %td)\n", yes_no(facts->by_count.holds),
           facts->by_count.share, facts->by_count.worst);
    printf("honest majority everywhere, by weight: %s (least: %.2f at agent %td)\n", yes_no(facts->by_weight.holds),
           facts->by_weight.share, facts->by_weight.worst);
    printf("honest agents connected: %s, primitive: %s\n", yes_no(facts->connected), yes_no(facts->primitive));
    if (facts->self_heavy > 0) {
        printf("warning: %td agents give themselves half of the weight or more, agent %td first\n", facts->self_heavy,
               facts->self_heavy_first);
    }
}

int main(void)
{
    bool malicious[AGENTS];
    double share[AGENTS];
    ptrdiff_t placed = 0;
    reef_graph *graph = NULL;
    reef_graph_facts facts;
    reef_spectrum spectrum;
    reef_error error;
    /* As many malicious agents as every honest neighbourhood tolerates, each where it does the most harm. */
    reef_placement placement = {
        .how = REEF_PLACE_WORST, .malicious_count = {REEF_MALICIOUS_MAX, 0}, .keep_majority = true};
    if (reef_graph_create(NULL, &graph, "regular:degree=8", AGENTS, 1, &error) != REEF_OK ||
        reef_graph_set_weights(graph, "metropolis", NULL, &error) != REEF_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    reef_csr csr = reef_graph_csr(graph);
    if (reef_graph_place_malicious(NULL, &csr, &placement, malicious, &placed, &error) != REEF_OK ||
        reef_graph_check(NULL, &csr, malicious, &facts, &error) != REEF_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    print_facts(&facts);
    /* Among themselves, the honest agents agree on sum p_k w_k: the Perron vector says how much each of them counts. */
    reef_status status = reef_graph_spectrum(NULL, &csr, malicious, NULL, share, &spectrum, &error);
    if (status == REEF_OK) {
        double least = 1;
        double most = 0;
        for (int k = 0; k < AGENTS; k++) {
            least = !malicious[k] && share[k] < least ? share[k] : least;
            most = share[k] > most ? share[k] : most;
        }
        printf("shares of honest agents: %.4f to %.4f; disagreement shrinks by %.3f per round\n", least, most,
               spectrum.second);
    } else {
        printf("%s\n", error.text);
    }
    reef_graph_destroy(&graph);
    return facts.by_count.holds && facts.malicious_count == placed ? 0 : 1;
}
