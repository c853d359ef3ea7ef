/* The trained model of a cell's first repetition as a safetensors file.
 *
 * Classifiers have one tensor per layer, layer0.weight (out x in) and layer0.bias and so on; other problems one vector, w. Where every
 * agent has a model of its own these are the mean over the honest agents, and the tensor `agents` (K x M) has them all. The file is
 * written when its repetition ends, beside the results of the cell, so that a run that is resumed later has it, too. */
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "experiment/run/outcome.h"
#include "io/file.h"
#include "io/stream.h"
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

/* Mean over the honest agents, all lanes; sums in the order of agents. */
static reef_status mean_model(const rfi_world *w, const reef_run *run, double *mean, reef_error *error)
{
    double honest = (double)(w->agents - w->malicious_count);
    if (run->ranks) {
        return rfi_ranks_mean(run, mean, error);
    }
    memset(mean, 0, (size_t)run->length * sizeof *mean);
    for (ptrdiff_t k = 0; k < w->agents; k++) {
        const float *model = reef_run_model(run, k);
        for (ptrdiff_t i = 0; i < run->length && !w->malicious[k]; i++) {
            mean[i] += (double)model[i];
        }
    }
    for (ptrdiff_t i = 0; i < run->length; i++) {
        mean[i] /= honest;
    }
    return REEF_OK;
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

/* A file under way. Over ranks the first one writes; the others bring their models. */
typedef struct writing {
    const rfi_world *world;
    const reef_run *run;
    bool writes, server;
    rfi_writer file;
    size_t at;    /* bytes so far */
    float *row;   /* M: one lane */
    double *mean; /* M R; NULL with a server */
    float *rows;  /* `chunk` models */
    ptrdiff_t chunk;
} writing;

static reef_status agree(const writing *w, reef_status status, reef_error *error)
{
    const reef_engine *e = w->run->ranks ? w->run->ranks->engine : NULL;
    return e ? e->ops->agree(e, status, error) : status;
}

static reef_status put(writing *w, const void *bytes, size_t size, reef_error *error)
{
    reef_status status = rfi_writer_put(&w->file, w->at, bytes, size, error);
    w->at += size;
    return status;
}

/* The first lane of a model. */
static reef_status put_model(writing *w, const float *model, reef_error *error)
{
    for (ptrdiff_t m = 0; m < w->run->dimension; m++) {
        w->row[m] = model[m * w->run->lanes];
    }
    return put(w, w->row, (size_t)w->run->dimension * sizeof(float), error);
}

static reef_status put_mean(writing *w, reef_error *error)
{
    for (ptrdiff_t m = 0; m < w->run->dimension; m++) {
        w->row[m] = (float)w->mean[m * w->run->lanes];
    }
    return put(w, w->row, (size_t)w->run->dimension * sizeof(float), error);
}

/* Opens the file and writes everything before the models. */
static reef_status put_header(writing *w, const char *path, reef_error *error)
{
    draft d = {.header = {.context = w->world->context}};
    unsigned char length[START];
    add_header(&d, w->world, w->run, w->server);
    reef_status status = d.header.failed ? rfi_fail(error, REEF_E_NOMEM, "not enough memory for the header of a model")
                                         : rfi_writer_open(w->world->context, &w->file, path, error);
    for (int i = 0; i < START; i++) {
        length[i] = (unsigned char)(d.header.size >> 8 * i);
    }
    if (status == REEF_OK) {
        status = put(w, length, START, error);
    }
    if (status == REEF_OK) {
        status = put(w, d.header.bytes, d.header.size, error);
    }
    rfi_text_free(&d.header);
    return status;
}

/* The models of all agents, some at a time. */
static reef_status put_agents(writing *w, reef_error *error)
{
    const reef_run *run = w->run;
    reef_status status = REEF_OK;
    for (ptrdiff_t first = 0; first < run->all && status == REEF_OK; first += w->chunk) {
        ptrdiff_t count = run->all - first < w->chunk ? run->all - first : w->chunk;
        status = run->ranks ? rfi_ranks_fetch(run, first, count, w->rows, error) : REEF_OK;
        for (ptrdiff_t k = first; k < first + count && w->writes && status == REEF_OK; k++) {
            status = put_model(w, run->ranks ? w->rows + (k - first) * run->stride : reef_run_model(run, k), error);
        }
        status = agree(w, status, error);
    }
    return status;
}

static reef_status take_rooms(writing *w, reef_error *error)
{
    enum { ROWS_BYTES = 1 << 25 };
    const reef_run *run = w->run;
    const reef_context *context = w->world->context;
    w->chunk = ROWS_BYTES / (run->stride * (ptrdiff_t)sizeof(float)) + 1;
    w->chunk = w->chunk < run->all ? w->chunk : run->all;
    bool fetches = run->ranks && w->writes && !w->server;
    w->row = rfi_allocate_many(context, run->dimension, sizeof *w->row);
    w->mean = w->server ? NULL : rfi_allocate_many(context, run->length, sizeof *w->mean);
    w->rows = fetches ? rfi_allocate_many(context, w->chunk, (size_t)run->stride * sizeof(float)) : NULL;
    bool ready = w->row && (w->server || w->mean) && (!fetches || w->rows);
    return ready ? REEF_OK
                 : rfi_fail(error, REEF_E_NOMEM, "not enough memory for a model of %td numbers", run->dimension);
}

reef_status rfi_model_write(const rfi_world *world, const reef_run *run, const char *folder, const char *key,
                            reef_error *error)
{
    char path[PATH_SIZE];
    writing w = {.world = world, .run = run, .server = run->serves_all, .file = {.descriptor = -1}};
    w.writes = !run->ranks || run->ranks->engine->rank == 0;
    reef_status status = take_rooms(&w, error);
    if (status == REEF_OK && w.writes) {
        status = path_of(folder, key, path)
                     ? put_header(&w, path, error)
                     : rfi_fail(error, REEF_E_FILE, "the path of the results folder is too long");
    }
    status = agree(&w, status, error);
    if (status == REEF_OK && !w.server) {
        status = mean_model(world, run, w.mean, error);
    }
    if (status == REEF_OK && w.writes) {
        status = w.server ? put_model(&w, run->server, error) : put_mean(&w, error);
    }
    status = agree(&w, status, error);
    if (status == REEF_OK && !w.server) {
        status = put_agents(&w, error);
    }
    if (status == REEF_OK && w.writes) {
        status = rfi_writer_commit(&w.file, error);
    } else {
        rfi_writer_abandon(&w.file);
    }
    rfi_release(world->context, w.row);
    rfi_release(world->context, w.mean);
    rfi_release(world->context, w.rows);
    return agree(&w, status, error);
}

reef_status rfi_model_sum(const reef_context *context, const char *folder, const char *key, uint64_t *sum,
                          reef_error *error)
{
    char path[PATH_SIZE];
    rfi_reader reader = {.descriptor = -1};
    *sum = RFI_HASH_START;
    reef_status status = path_of(folder, key, path)
                             ? rfi_reader_open(&reader, path, error)
                             : rfi_fail(error, REEF_E_FILE, "the path of the results folder is too long");
    if (status == REEF_OK) {
        status = rfi_reader_sum(context, &reader, sum, error);
    }
    rfi_reader_close(&reader);
    return status;
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
        return rfi_fail(error, REEF_E_FILE, "the path of the results folder is too long");
    }
    (void)snprintf(cells, sizeof cells, "%s/cells", folder);
    reef_status status = rfi_make_folder(to, error);
    for (ptrdiff_t i = 0; i < e->cells && status == REEF_OK; i++) {
        bool fits = path_of(cells, results->keys[i], from) &&
                    (size_t)snprintf(to, sizeof to, "%s/models/cell-%td.safetensors", folder, i) < sizeof to;
        if (!fits) {
            return rfi_fail(error, REEF_E_FILE, "the path of the results folder is too long");
        }
        /* Another name for the same file where the disk allows it: it is only ever replaced, never written into. */
        (void)unlink(to);
        status = link(from, to) == 0 ? REEF_OK : copy_file(e->context, from, to, error);
    }
    return status;
}
