/* What can be said about a cell without running it: metrics, theory, and everything that determines its results. */
#include "base/error.h"
#include "base/memory.h"
#include "experiment/config/experiment.h"
#include "learn/run.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* ---- metrics and theory ---- */

reef_status rfi_world_metrics(const rfi_world *w, bool wanted[RFI_METRICS], reef_error *error)
{
    const reef_experiment *e = w->experiment;
    bool trust = w->cell.numbers.trust;
    bool found = false;
    for (int i = 0; i < RFI_METRICS; i++) {
        const char *lacks = rfi_metric_lacks((rfi_metric)i, w->problem, trust);
        if (e->metrics[i] && lacks) {
            return rfi_fail_at(error, REEF_E_ARG, e->metric_nodes[i], false, "%s needs %s",
                               rfi_metric_name((rfi_metric)i), lacks);
        }
        bool usual = i == RFI_MSD || i >= RFI_LOSS;
        bool asked = e->chosen_metrics ? e->metrics[i] || (trust && i >= RFI_TRUST_HONEST) : usual;
        wanted[i] = asked && !lacks;
        found = found || wanted[i];
    }
    wanted[RFI_CONSENSUS] = wanted[RFI_CONSENSUS] || !found;
    return REEF_OK;
}

/* theory(p, mu) with the Perron vector of the honest agents; p and mu have room for K numbers each. */
static double predict(const rfi_world *w, const reef_run *run, double *p, double *mu)
{
    const reef_problem_kind *kind = reef_problem_kind_of(w->problem);
    reef_csr csr = reef_graph_csr(w->graph);
    reef_spectrum spectrum;
    const reef_spectrum_options options = {.no_second = true};
    if (reef_graph_spectrum(w->context, &csr, w->malicious, &options, p, &spectrum, NULL) != REEF_OK) {
        return (double)NAN;
    }
    for (ptrdiff_t k = 0; k < w->agents; k++) {
        mu[k] = run->adapt->mu;
    }
    return kind->theory(reef_problem_state(w->problem), p, mu, (ptrdiff_t)run->adapt->batch);
}

double rfi_world_theory(rfi_world *w)
{
    double theory = (double)NAN;
    reef_run *run = NULL;
    if (!w->graph || !reef_problem_kind_of(w->problem)->theory ||
        rfi_world_run(w, &(rfi_repeat_block){.dry = true, .lanes = 1}, &run, NULL) != REEF_OK) {
        return theory;
    }
    double *numbers = rfi_allocate_many(w->context, 2 * w->agents, sizeof *numbers);
    const char *name = run->strategy->kind.name;
    bool known = strcmp(name, "diffusion") == 0 || strcmp(name, "oracle") == 0;
    if (numbers && known && run->adapt->schedule == RFI_CONSTANT && run->adapt->momentum == 0 &&
        run->adapt->batch > 0) {
        theory = predict(w, run, numbers, numbers + w->agents);
    }
    rfi_release(w->context, numbers);
    reef_run_destroy(&run);
    return theory;
}

/* ---- everything that determines the results ---- */

/* Files that a spec names may change without it: their size and time belong to it. */
static void print_files(const char *spec, char *text, size_t size, size_t *used)
{
    bool more = false;
    rfi_slice list;
    (void)rfi_cut((rfi_slice){spec, strlen(spec)}, ':', &list, &more);
    while (more) {
        bool found = false;
        char path[REEF_TEXT_SIZE];
        struct stat facts;
        rfi_slice value;
        rfi_slice pair = rfi_cut(list, ',', &list, &more);
        (void)rfi_cut(pair, '=', &value, &found);
        if (!found || value.length == 0 || value.length >= sizeof path) {
            continue;
        }
        memcpy(path, value.text, value.length);
        path[value.length] = '\0';
        if (stat(path, &facts) == 0 && S_ISREG(facts.st_mode)) {
            rfi_append(text, size, used, "file %s %lld bytes, time %lld.%09ld\n", path, (long long)facts.st_size,
                       (long long)facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
        }
    }
}

static void print_part(char *text, size_t size, size_t *used, const char *name, const char *spec)
{
    rfi_append(text, size, used, "%s %s\n", name, spec);
    print_files(spec, text, size, used);
}

/* The specs with every parameter where the object can say it, so that ways of writing the same are the same. */
static void print_parts(rfi_world *w, bool oracle, char *text, size_t size, size_t *used)
{
    char spec[RFI_SPEC_LENGTH_MAX + 1] = "";
    if (w->graph) {
        (void)reef_graph_print(w->graph, spec, sizeof spec);
        print_part(text, size, used, "graph", spec);
        print_part(text, size, used, "weights", w->cell.specs[RFI_PART_WEIGHTS]);
        print_part(text, size, used, "links", w->cell.specs[RFI_PART_LINKS]);
    }
    (void)reef_problem_print(w->problem, spec, sizeof spec);
    print_part(text, size, used, "problem", spec);
    if (w->rule && !oracle) {
        (void)reef_agg_print(w->rule, spec, sizeof spec);
        print_part(text, size, used, "rule", spec);
    }
    if (w->attack && !oracle && w->malicious_count > 0) {
        (void)reef_attack_print(w->attack, spec, sizeof spec);
        print_part(text, size, used, "attack", spec);
    }
    print_part(text, size, used, "placement", w->cell.specs[RFI_PART_PLACEMENT]);
}

reef_status rfi_world_print(rfi_world *w, bool oracle, char *text, size_t size, reef_error *error)
{
    char spec[RFI_SPEC_LENGTH_MAX + 1];
    const rfi_cell_numbers *n = &w->cell.numbers;
    bool wanted[RFI_METRICS] = {false};
    reef_run *run = NULL;
    size_t used = 0;
    reef_status status = rfi_world_run(w, &(rfi_repeat_block){.oracle = oracle, .dry = true, .lanes = 1}, &run, error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_world_metrics(w, wanted, error);
    if (status != REEF_OK) {
        return status;
    }
    (void)reef_run_print(run, spec, sizeof spec);
    reef_run_destroy(&run);
    rfi_append(text, size, &used, "agents %td\nmalicious %td\nrounds %lld\nrepetitions %lld\nseed %lld\n", w->agents,
               w->malicious_count, (long long)n->rounds, (long long)n->repetitions, (long long)n->seed);
    rfi_append(text, size, &used, "every %lld\nsteady %lld\ntrust %s\n", (long long)n->every, (long long)n->steady,
               n->trust && !oracle ? "true" : "false");
    print_part(text, size, &used, "strategy", spec);
    print_parts(w, oracle, text, size, &used);
    rfi_append(text, size, &used, "metrics");
    for (int i = 0; i < RFI_METRICS; i++) {
        if (wanted[i] && (!oracle || i < RFI_TRUST_HONEST)) {
            rfi_append(text, size, &used, " %s", rfi_metric_name((rfi_metric)i));
        }
    }
    rfi_append(text, size, &used, "\n");
    return used < size ? REEF_OK : rfi_fail(error, REEF_E_OVERFLOW, "the description of a cell is too long");
}

/* A check takes seconds: passes over the links of a large graph are few, and its gap is then an estimate. */
static ptrdiff_t most_passes(const reef_csr *csr)
{
    const double work = 5e8; /* numbers touched */
    double passes = work / (double)(csr->start[csr->agents] + 4 * csr->agents);
    return passes > 5000 ? 5000 : passes < 20 ? 20 : (ptrdiff_t)passes;
}

static reef_status check_graph(const rfi_world *w, reef_cell_facts *facts, reef_error *error)
{
    reef_csr csr = reef_graph_csr(w->graph);
    double *p = rfi_allocate_many(w->context, w->agents, sizeof *p);
    if (!p) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %td agents", w->agents);
    }
    reef_status status = reef_graph_check(w->context, &csr, w->malicious, &facts->graph, error);
    const reef_spectrum_options options = {.max_iterations = most_passes(&csr)};
    facts->has_graph = status == REEF_OK;
    facts->has_spectrum = facts->has_graph && reef_graph_spectrum(w->context, &csr, w->malicious, &options, p,
                                                                  &facts->spectrum, NULL) == REEF_OK;
    facts->perron_min = 1;
    for (ptrdiff_t k = 0; facts->has_spectrum && k < w->agents; k++) {
        facts->perron_max = fmax(facts->perron_max, p[k]);
        facts->perron_min = w->malicious[k] ? facts->perron_min : fmin(facts->perron_min, p[k]);
    }
    rfi_release(w->context, p);
    return status;
}

reef_status rfi_world_facts(rfi_world *w, bool same_network, reef_cell_facts *facts, reef_error *error)
{
    reef_status status = REEF_OK;
    if (!same_network) {
        *facts = (reef_cell_facts){.tolerated = -1, .theory = (double)NAN};
        status = w->graph ? check_graph(w, facts, error) : REEF_OK;
    }
    if (status != REEF_OK) {
        return status;
    }
    facts->malicious_count = w->malicious_count;
    facts->no_attack = w->malicious_count > 0 && w->cell.specs[RFI_PART_ATTACK][0] == '\0';
    facts->tolerated = w->rule ? reef_agg_tolerates(w->rule, w->graph ? facts->graph.smallest : w->agents) : -1;
    return REEF_OK;
}

reef_status reef_experiment_check(const reef_experiment *experiment, ptrdiff_t cell, reef_cell_facts *facts,
                                  reef_error *error)
{
    if (!experiment || !facts || cell < 0 || cell >= experiment->cells) {
        return rfi_fail(error, REEF_E_ARG, "reef_experiment_check: there is no configuration %td", cell);
    }
    rfi_world *w = rfi_world_create(experiment, experiment->context);
    if (!w) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a configuration");
    }
    reef_status status = rfi_world_set(w, cell, error);
    if (status == REEF_OK) {
        status = rfi_world_facts(w, false, facts, error);
    }
    if (status == REEF_OK) {
        facts->theory = rfi_world_theory(w);
    }
    rfi_world_destroy(&w);
    return status;
}
