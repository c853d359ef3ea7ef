/* The trained model of a cell's first repetition as a safetensors file.
 *
 * Classifiers have one tensor per layer, layer0.weight (out x in) and layer0.bias and so on; other problems one vector, w. Where every
 * agent has a model of its own these are the mean over the benign agents, and the tensor `agents` (K x M) has them all. The file is
 * written when its repetition ends, beside the results of the cell, so that a run that goes on later has it too. */
#include "base/error.h"
#include "base/memory.h"
#include "experiment/outcome.h"
#include "io/file.h"
#include "learn/run.h"
#include "problem/network.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, ALIGNMENT = 8, START = 8, FILE_LIMIT = 1 << 30 };

/* Header and data as they grow. */
typedef struct draft {
    rfi_text header;
    size_t offset; /* of the next tensor, bytes */
} draft;

static void add_tensor(draft *d, const char *name, const ptrdiff_t *shape, ptrdiff_t rank)
{
    size_t count = 1;
    rfi_text_add(&d->header, ", \"%s\": {\"dtype\": \"F32\", \"shape\": [", name);
    for (ptrdiff_t i = 0; i < rank; i++) {
        rfi_text_add(&d->header, "%s%td", i ? ", " : "", shape[i]);
        count *= (size_t)shape[i];
    }
    size_t end = d->offset + count * sizeof(float);
    rfi_text_add(&d->header, "], \"data_offsets\": [%zu, %zu]}", d->offset, end);
    d->offset = end;
}

/* The layers of a classifier in the order of a model's numbers, or the vector itself. */
static void add_model(draft *d, const reef_problem *problem, ptrdiff_t dimension)
{
    if (reef_problem_kind_of(problem)->gradients != rfi_network_gradients) {
        add_tensor(d, "w", &dimension, 1);
        return;
    }
    const rfi_network *net = reef_problem_state(problem);
    for (ptrdiff_t i = 0; i < net->depth; i++) {
        char name[32];
        const ptrdiff_t shape[] = {net->layers[i].out, net->layers[i].in};
        (void)snprintf(name, sizeof name, "layer%td.weight", i);
        add_tensor(d, name, shape, 2);
        if (net->biased) {
            (void)snprintf(name, sizeof name, "layer%td.bias", i);
            add_tensor(d, name, shape, 1);
        }
    }
}

/* Mean over the benign agents in the first lane; the server's model where there is one. */
static void mean_model(const rfi_world *w, const reef_run *run, bool server, float *mean)
{
    ptrdiff_t lanes = reef_run_lanes(run);
    double benign = (double)(w->agents - w->liars);
    for (ptrdiff_t m = 0; m < reef_run_dimension(run); m++) {
        double sum = 0;
        for (ptrdiff_t k = 0; k < w->agents && !server; k++) {
            sum += w->liar[k] ? 0 : (double)reef_run_model(run, k)[m * lanes];
        }
        mean[m] = server ? reef_run_model(run, 0)[m * lanes] : (float)(sum / benign);
    }
}

static void copy_models(const reef_run *run, float *to)
{
    ptrdiff_t lanes = reef_run_lanes(run);
    ptrdiff_t dimension = reef_run_dimension(run);
    for (ptrdiff_t k = 0; k < reef_run_agents(run); k++) {
        const float *from = reef_run_model(run, k);
        for (ptrdiff_t m = 0; m < dimension; m++) {
            to[k * dimension + m] = from[m * lanes];
        }
    }
}

static void add_header(draft *d, const rfi_world *w, const reef_run *run, bool server)
{
    const ptrdiff_t shape[] = {w->agents, reef_run_dimension(run)};
    rfi_text_add(&d->header, "{\"__metadata__\": {\"reef\": \"%s\", \"round\": \"%lld\"}", reef_version(),
                 (long long)reef_run_round(run));
    add_model(d, w->problem, shape[1]);
    if (!server) {
        add_tensor(d, "agents", shape, 2);
    }
    rfi_text_add(&d->header, "}");
    while (d->header.size % ALIGNMENT && !d->header.failed) {
        rfi_text_add(&d->header, " ");
    }
}

static bool path_of(const char *folder, const char *key, char path[PATH_SIZE])
{
    char name[RFI_STORE_NAME];
    rfi_store_name(key, ".safetensors", name);
    return (size_t)snprintf(path, PATH_SIZE, "%s/%s", folder, name) < PATH_SIZE;
}

reef_status rfi_model_write(const rfi_world *w, const reef_run *run, const char *folder, const char *key,
                            reef_error *error)
{
    const bool server = run->server && run->serves_all;
    const ptrdiff_t dimension = reef_run_dimension(run);
    const ptrdiff_t count = server ? dimension : dimension * (w->agents + 1); /* the run holds more than that */
    char path[PATH_SIZE];
    draft d = {.header = {.context = w->context}};
    float *numbers = rfi_allocate_many(w->context, count, sizeof *numbers);
    add_header(&d, w, run, server);
    reef_status status = numbers && !d.header.failed && path_of(folder, key, path)
                             ? REEF_OK
                             : rfi_fail(error, REEF_E_NOMEM, "no memory for a model of %td numbers", count);
    if (status == REEF_OK) {
        unsigned char length[START];
        for (int i = 0; i < START; i++) {
            length[i] = (unsigned char)(d.header.size >> 8 * i);
        }
        mean_model(w, run, server, numbers);
        if (!server) {
            copy_models(run, numbers + dimension);
        }
        const rfi_piece pieces[] = {
            {length, START}, {d.header.bytes, d.header.size}, {numbers, (size_t)count * sizeof *numbers}};
        status = rfi_file_write(w->context, path, pieces, RFI_COUNT(pieces), error);
    }
    rfi_release(w->context, numbers);
    rfi_text_free(&d.header);
    return status;
}

bool rfi_model_exists(const char *folder, const char *key)
{
    char path[PATH_SIZE];
    return path_of(folder, key, path) && access(path, R_OK) == 0;
}

void rfi_model_remove(const char *folder, const char *key)
{
    char path[PATH_SIZE];
    if (path_of(folder, key, path)) {
        (void)unlink(path);
    }
}

static reef_status copy_file(const reef_context *context, const char *from, const char *to, reef_error *error)
{
    rfi_file file = {0};
    reef_status status = rfi_file_read(context, from, FILE_LIMIT, &file, error);
    if (status == REEF_OK) {
        status = rfi_file_write(context, to, &(rfi_piece){file.bytes, file.size}, 1, error);
    }
    rfi_file_free(context, &file);
    return status;
}

reef_status rfi_models_write(const rfi_results *results, const char *folder, reef_error *error)
{
    const reef_experiment *e = results->experiment;
    char cells[PATH_SIZE];
    char from[PATH_SIZE];
    char to[PATH_SIZE];
    if ((size_t)snprintf(to, sizeof to, "%s/models", folder) >= sizeof to) {
        return rfi_fail(error, REEF_E_FILE, "the path of the results is too long");
    }
    (void)snprintf(cells, sizeof cells, "%s/cells", folder);
    reef_status status = rfi_make_folder(to, error);
    for (ptrdiff_t i = 0; i < e->cells && status == REEF_OK; i++) {
        bool fits = path_of(cells, results->keys[i], from) &&
                    (size_t)snprintf(to, sizeof to, "%s/models/cell-%td.safetensors", folder, i) < sizeof to;
        if (!fits) {
            return rfi_fail(error, REEF_E_FILE, "the path of the results is too long");
        }
        /* Another name for the same file where the disk allows it: it is only ever replaced, never written into. */
        (void)unlink(to);
        status = link(from, to) == 0 ? REEF_OK : copy_file(e->context, from, to, error);
    }
    return status;
}
