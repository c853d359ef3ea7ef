/* Combination weights a_lk: how much receiver k gives to sender l.
 *
 *   n_k  senders of k, itself among them      d  largest n_k      K  agents
 *   uniform            a_lk = 1 / n_k
 *   metropolis         a_lk = 1 / max(n_k, n_l),             the rest on a_kk
 *   laplacian          a_lk = beta,                          the rest on a_kk: A = I - beta L
 *   max_degree         a_lk = 1 / K,                         the rest on a_kk
 *   relative_degree    a_lk = n_l / sum over N_k of n_j
 *   relative_variance  a_lk = s_l^-2 / sum over N_k of s_j^-2
 *   hastings           a_lk = min(1 / n_k, p_l / (p_k n_l)), the rest on a_kk: p is the Perron vector
 *
 * A rule is either `pull`, the part of sender l before the column is scaled to one, or `pair`, the weight between two agents; what is
 * missing to one is then the agent's own, for which every link needs its way back and every agent its loop. */
#include "graph/graph.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

typedef struct weighing {
    const reef_graph *graph;
    const void *params;
    const reef_weight_data *data;
} weighing;

typedef struct weight_kind {
    reef_kind head;
    double (*pull)(const weighing *w, ptrdiff_t l);
    double (*pair)(const weighing *w, ptrdiff_t l, ptrdiff_t k);
    reef_status (*fill)(const weighing *w, double *weight, reef_error *error); /* neither of both */
    reef_status (*check)(const weighing *w, reef_error *error);                /* or NULL */
} weight_kind;

static double size_of(const weighing *w, ptrdiff_t k)
{
    return (double)(w->graph->start[k + 1] - w->graph->start[k]);
}

/* Positive numbers that can be multiplied and divided without care. */
static reef_status check_positive(const double *x, ptrdiff_t count, const char *what, reef_error *error)
{
    for (ptrdiff_t k = 0; k < count; k++) {
        if (!(x[k] >= 1e-100 && x[k] <= 1e100)) {
            return rfi_fail(error, REEF_E_WEIGHTS, "the %s of agent %td is %g; it must be positive (1e-100 to 1e100)",
                            what, k, x[k]);
        }
    }
    return REEF_OK;
}

/* ---- the rules ---- */

static double uniform_pull(const weighing *w, ptrdiff_t l)
{
    (void)w;
    (void)l;
    return 1;
}

static double metropolis_pair(const weighing *w, ptrdiff_t l, ptrdiff_t k)
{
    return 1 / fmax(size_of(w, l), size_of(w, k));
}

typedef struct laplacian_params {
    double beta;
} laplacian_params;

static const char *const auto_words[] = {"auto", NULL};

static const reef_field laplacian_fields[] = {
    {.name = "beta",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(laplacian_params, beta),
     .preset = "auto",
     .min = 1e-100,
     .max = 1,
     .unit = "",
     .help = "weight of every neighbour; auto: one over the largest neighbourhood",
     .words = auto_words},
};

static double laplacian_pair(const weighing *w, ptrdiff_t l, ptrdiff_t k)
{
    const laplacian_params *p = w->params;
    (void)l;
    (void)k;
    return isnan(p->beta) ? 1 / (double)w->graph->largest : p->beta;
}

static reef_status laplacian_check(const weighing *w, reef_error *error)
{
    const laplacian_params *p = w->params;
    double others = (double)(w->graph->largest - 1);
    if (p->beta * others > 1) { /* never for auto, which is NaN */
        return rfi_fail(
            error, REEF_E_WEIGHTS,
            "laplacian: beta = %g leaves an agent with %.0f neighbours a negative weight of its own; at most "
            "%.6g",
            p->beta, others, 1 / others);
    }
    return REEF_OK;
}

static double max_degree_pair(const weighing *w, ptrdiff_t l, ptrdiff_t k)
{
    (void)l;
    (void)k;
    return 1 / (double)w->graph->agents;
}

static double relative_degree_pull(const weighing *w, ptrdiff_t l)
{
    return size_of(w, l);
}

static double relative_variance_pull(const weighing *w, ptrdiff_t l)
{
    return 1 / w->data->variance[l];
}

static reef_status relative_variance_check(const weighing *w, reef_error *error)
{
    if (!w->data || !w->data->variance) {
        return rfi_fail(error, REEF_E_WEIGHTS, "relative_variance needs the noise variance of every agent");
    }
    return check_positive(w->data->variance, w->graph->agents, "noise variance", error);
}

static double hastings_pair(const weighing *w, ptrdiff_t l, ptrdiff_t k)
{
    const double *p = w->data ? w->data->perron : NULL;
    double ratio = p ? p[l] / p[k] : 1;
    return fmin(1 / size_of(w, k), ratio / size_of(w, l));
}

static reef_status hastings_check(const weighing *w, reef_error *error)
{
    bool given = w->data && w->data->perron;
    return given ? check_positive(w->data->perron, w->graph->agents, "wanted share", error) : REEF_OK;
}

typedef struct file_params {
    char path[REEF_TEXT_SIZE];
    int format;
    bool directed;
} file_params;

static const char *const formats[] = {"edges", "matrix", NULL};

static const reef_field file_fields[] = {
    {.name = "path",
     .type = REEF_FIELD_TEXT,
     .offset = offsetof(file_params, path),
     .preset = "",
     .unit = "",
     .help = "the file; it must have a weight for every link of the graph and for no other"},
    {.name = "format",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(file_params, format),
     .preset = "edges",
     .unit = "",
     .help = "one link per line (l k weight), or a matrix with a row per sender and a column per receiver",
     .words = formats},
    {.name = "directed",
     .type = REEF_FIELD_BOOL,
     .offset = offsetof(file_params, directed),
     .preset = "false",
     .unit = "",
     .help = "edges: a weight holds only from the first to the second agent"},
};

/* The first link that only one of the two graphs has. */
static reef_status compare_links(const reef_graph *graph, const reef_graph *file, const char *path, reef_error *error)
{
    for (ptrdiff_t k = 0; k < graph->agents; k++) {
        ptrdiff_t i = graph->start[k];
        ptrdiff_t j = file->start[k];
        while (i < graph->start[k + 1] || j < file->start[k + 1]) {
            int32_t ours = i < graph->start[k + 1] ? graph->senders[i++] : INT32_MAX;
            int32_t theirs = j < file->start[k + 1] ? file->senders[j++] : INT32_MAX;
            if (ours != theirs) {
                bool missing = ours < theirs;
                return rfi_fail(error, REEF_E_WEIGHTS, "%s has %s weight for the link %d -> %td, which the graph %s",
                                path, missing ? "no" : "a", (int)(missing ? ours : theirs), k,
                                missing ? "has" : "has not");
            }
        }
    }
    return REEF_OK;
}

static reef_status file_fill(const weighing *w, double *weight, reef_error *error)
{
    const file_params *p = w->params;
    char spec[REEF_TEXT_SIZE + 64];
    size_t used = 0;
    reef_graph *file = NULL;
    if (p->path[0] == '\0') {
        return rfi_fail(error, REEF_E_SYNTAX, "file: a path is missing, for instance file:path=weights.txt");
    }
    rfi_append(spec, sizeof spec, &used, "file:values=weights,format=%s,directed=%s,path=%s", formats[p->format],
               p->directed ? "true" : "false", p->path);
    reef_status status = rfi_graph_make(w->graph->context, &file, spec, w->graph->agents, 0, NULL, error);
    if (status == REEF_OK) {
        status = compare_links(w->graph, file, p->path, error);
    }
    if (status == REEF_OK) {
        memcpy(weight, file->weight, (size_t)reef_graph_links(file) * sizeof *weight);
    }
    reef_graph_destroy(&file);
    return status;
}

#define SAYED "Sayed, Adaptation, Learning, and Optimization over Networks (2014)"

static const weight_kind kinds[] = {
    {.head = {.name = "uniform", .summary = "averaging: all senders alike", .citation = ""}, .pull = uniform_pull},
    {.head = {.name = "metropolis",
              .summary = "one over the larger of the two neighbourhoods; doubly stochastic",
              .citation = "Xiao, Boyd, Fast linear iterations for distributed averaging (2004)"},
     .pair = metropolis_pair},
    {.head = {.name = "laplacian",
              .summary = "I - beta L: every neighbour the same weight beta; doubly stochastic",
              .citation = "Xiao, Boyd, Fast linear iterations for distributed averaging (2004)",
              .fields = laplacian_fields,
              .field_count = RFI_COUNT(laplacian_fields),
              .params_size = sizeof(laplacian_params)},
     .pair = laplacian_pair,
     .check = laplacian_check},
    {.head = {.name = "max_degree",
              .summary = "I - L / K: needs to know only the number of agents; doubly stochastic, slow",
              .citation = SAYED},
     .pair = max_degree_pair},
    {.head = {.name = "relative_degree", .summary = "senders by the size of their neighbourhood", .citation = SAYED},
     .pull = relative_degree_pull},
    {.head = {.name = "relative_variance",
              .summary = "senders by one over their noise variance, which must be given",
              .citation = SAYED},
     .pull = relative_variance_pull,
     .check = relative_variance_check},
    {.head = {.name = "hastings",
              .summary = "the Perron vector is the one given; without one, equal shares",
              .citation = "Hastings, Monte Carlo sampling methods using Markov chains, Biometrika 57 (1970)"},
     .pair = hastings_pair,
     .check = hastings_check},
    {.head = {.name = "file",
              .summary = "from a text file, for the links that the graph has",
              .citation = "",
              .fields = file_fields,
              .field_count = RFI_COUNT(file_fields),
              .params_size = sizeof(file_params)},
     .fill = file_fill},
};

/* ---- filling and checking columns ---- */

static void fill_pull(const weighing *w, double (*pull)(const weighing *, ptrdiff_t), double *weight)
{
    const reef_graph *graph = w->graph;
    for (ptrdiff_t k = 0; k < graph->agents; k++) {
        double sum = 0;
        for (ptrdiff_t i = graph->start[k]; i < graph->start[k + 1]; i++) {
            weight[i] = pull(w, graph->senders[i]);
            sum += weight[i];
        }
        for (ptrdiff_t i = graph->start[k]; i < graph->start[k + 1]; i++) {
            weight[i] /= sum;
        }
    }
}

static reef_status fill_pair(const weighing *w, const weight_kind *kind, double *weight, reef_error *error)
{
    const reef_graph *graph = w->graph;
    if (!graph->symmetric) {
        return rfi_fail(error, REEF_E_WEIGHTS, "%s needs a graph in which every link has its way back",
                        kind->head.name);
    }
    for (ptrdiff_t k = 0; k < graph->agents; k++) {
        double others = 0;
        ptrdiff_t own = -1;
        for (ptrdiff_t i = graph->start[k]; i < graph->start[k + 1]; i++) {
            if (graph->senders[i] == k) {
                own = i;
            } else {
                weight[i] = kind->pair(w, graph->senders[i], k);
                others += weight[i];
            }
        }
        if (own < 0) {
            return rfi_fail(error, REEF_E_WEIGHTS,
                            "%s gives an agent itself what is left of its column, and agent %td does not hear itself; "
                            "use loops=true",
                            kind->head.name, k);
        }
        weight[own] = fmax(0, 1 - others);
    }
    return REEF_OK;
}

void rfi_weigh_uniform(const reef_graph *graph, double *weight)
{
    weighing w = {graph, NULL, NULL};
    fill_pull(&w, uniform_pull, weight);
}

/* Sum of column k, or NaN if an entry is negative or not finite. An agent without senders has an empty column, which is in order. */
static double column_sum(const reef_csr *csr, const double *weight, ptrdiff_t k)
{
    double sum = csr->start[k] == csr->start[k + 1] ? 1 : 0;
    for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1]; i++) {
        sum += weight[i] >= 0 && weight[i] <= 1e300 ? weight[i] : (double)NAN;
    }
    return sum;
}

static reef_status check_column(const reef_csr *csr, const double *weight, ptrdiff_t k, double tolerance, double *sum,
                                reef_error *error)
{
    *sum = column_sum(csr, weight, k);
    if (isnan(*sum)) {
        return rfi_fail(error, REEF_E_WEIGHTS, "a weight that agent %td gives is negative or not finite", k);
    }
    if (!(fabs(*sum - 1) <= tolerance)) {
        return rfi_fail(error, REEF_E_WEIGHTS, "the weights that agent %td gives to its senders sum to %.9g, not to 1",
                        k, *sum);
    }
    return REEF_OK;
}

reef_status reef_graph_check_weights(const reef_csr *csr, double tolerance, reef_error *error)
{
    double sum = 0;
    reef_status status = REEF_OK;
    for (ptrdiff_t k = 0; k < csr->agents && status == REEF_OK; k++) {
        status = check_column(csr, csr->weight, k, tolerance, &sum, error);
    }
    return status;
}

reef_status rfi_scale_columns(const reef_csr *csr, double *weight, reef_error *error)
{
    for (ptrdiff_t k = 0; k < csr->agents; k++) {
        double sum = 0;
        reef_status status = check_column(csr, weight, k, RFI_COLUMN_TOLERANCE, &sum, error);
        if (status != REEF_OK) {
            return status;
        }
        for (ptrdiff_t i = csr->start[k]; i < csr->start[k + 1]; i++) {
            weight[i] /= sum;
        }
    }
    return REEF_OK;
}

/* ---- the interface ---- */

ptrdiff_t reef_weight_kind_count(void)
{
    return RFI_COUNT(kinds);
}

const reef_kind *reef_weight_kind_at(ptrdiff_t index)
{
    return index >= 0 && index < RFI_COUNT(kinds) ? &kinds[index].head : NULL;
}

static const reef_kind *kind_of(const void *user, ptrdiff_t index)
{
    (void)user;
    return reef_weight_kind_at(index);
}

static const char *name_of(const void *user, ptrdiff_t index)
{
    return kind_of(user, index)->name;
}

static const rfi_catalogue catalogue = {"weight rule", name_of, kind_of, NULL, RFI_COUNT(kinds)};

const reef_kind *reef_weight_kind_find(const char *name)
{
    return name ? reef_weight_kind_at(rfi_catalogue_find(&catalogue, (rfi_slice){name, strlen(name)})) : NULL;
}

static reef_status fill(const weighing *w, const weight_kind *kind, double *weight, reef_error *error)
{
    reef_csr csr = reef_graph_csr(w->graph);
    reef_status status = kind->check ? kind->check(w, error) : REEF_OK;
    if (status != REEF_OK) {
        return status;
    }
    if (kind->pull) {
        fill_pull(w, kind->pull, weight);
    } else {
        status = kind->pair ? fill_pair(w, kind, weight, error) : kind->fill(w, weight, error);
    }
    return status == REEF_OK ? rfi_scale_columns(&csr, weight, error) : status;
}

static double *new_weights(const reef_graph *graph, reef_error *error)
{
    double *weight = rfi_allocate_many(graph->context, reef_graph_links(graph), sizeof *weight);
    if (!weight) {
        (void)rfi_fail(error, REEF_E_NOMEM, "no memory for the weights of %td links", reef_graph_links(graph));
    }
    return weight;
}

/* New weights take the place of the old ones if all went well. */
static reef_status keep(reef_graph *graph, double *weight, reef_status status)
{
    rfi_release(graph->context, status == REEF_OK ? graph->weight : weight);
    if (status == REEF_OK) {
        graph->weight = weight;
    }
    return status;
}

reef_status reef_graph_set_weights(reef_graph *graph, const char *spec, const reef_weight_data *data, reef_error *error)
{
    ptrdiff_t index = 0;
    void *params = NULL;
    if (!graph || !spec) {
        return rfi_fail(error, REEF_E_ARG, "reef_graph_set_weights: %s is NULL", graph ? "spec" : "graph");
    }
    reef_status status = rfi_spec_read(graph->context, &catalogue, spec, NULL, &index, &params, error);
    if (status != REEF_OK) {
        return status;
    }
    weighing w = {graph, params, data};
    double *weight = new_weights(graph, error);
    status = weight ? fill(&w, &kinds[index], weight, error) : REEF_E_NOMEM;
    rfi_release(graph->context, params);
    return keep(graph, weight, status);
}

reef_status reef_graph_put_weights(reef_graph *graph, const double *weight, reef_error *error)
{
    if (!graph || !weight) {
        return rfi_fail(error, REEF_E_ARG, "reef_graph_put_weights: %s is NULL", graph ? "weight" : "graph");
    }
    reef_csr csr = reef_graph_csr(graph);
    double *copy = new_weights(graph, error);
    if (!copy) {
        return REEF_E_NOMEM;
    }
    memcpy(copy, weight, (size_t)reef_graph_links(graph) * sizeof *copy);
    return keep(graph, copy, rfi_scale_columns(&csr, copy, error));
}
