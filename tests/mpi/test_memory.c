/* What a rank holds of a cell whose agents are spread, counted and limited by an allocator: the more ranks the less, from loading the
 * experiment to its results. What is too large for one process then runs on several.
 * ranks: 2 4 8 */
#include "mpi/ranked.h"

#include <ftw.h>
#include <reef/reef.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AGENTS = 256, M = 32768, HEAD = 16 };

typedef struct counter {
    _Atomic size_t now, peak;
    size_t limit;
} counter;

static void *count_allocate(void *user, size_t bytes)
{
    counter *c = user;
    size_t before = atomic_fetch_add(&c->now, bytes);
    unsigned char *memory = before + bytes <= c->limit ? malloc(bytes + HEAD) : NULL;
    if (!memory) {
        atomic_fetch_sub(&c->now, bytes);
        return NULL;
    }
    size_t peak = atomic_load(&c->peak);
    while (peak < before + bytes && !atomic_compare_exchange_weak(&c->peak, &peak, before + bytes)) {
    }
    memcpy(memory, &bytes, sizeof bytes);
    return memory + HEAD;
}

static void count_release(void *user, void *memory)
{
    counter *c = user;
    size_t bytes;
    unsigned char *start = (unsigned char *)memory - HEAD;
    memcpy(&bytes, start, sizeof bytes);
    atomic_fetch_sub(&c->now, bytes);
    free(start);
}

/* An experiment of one cell, and the rows of agents that a rank of `ranks` holds. */
typedef struct trial {
    const char *text;
    ptrdiff_t (*rows)(ptrdiff_t ranks);
    ptrdiff_t
        others; /* rows that any process has, whatever its agents: work of the problem and the rule, metrics, the server's model */
    int fewest; /* ranks from which on one of them holds less than a process that has all agents */
} trial;

/* w and phi of its own agents and of three on either side. */
static ptrdiff_t rows_of_ring(ptrdiff_t ranks)
{
    return 2 * (AGENTS / ranks + 6);
}

/* phi of its own agents, and a slice of those of all. */
static ptrdiff_t rows_of_server(ptrdiff_t ranks)
{
    return 2 * AGENTS / ranks;
}

static const trial trials[] = {
    {"graph: ring:k=3\nstrategy: diffusion\nrule: median\n", rows_of_ring, 75, 2},
    {"strategy: federated\nrule: median\n", rows_of_server, 75, 4},
    {"strategy: federated\nrule: krum:f=2\nmalicious: 2\nattack: sign_flip\ntrust: true\n", rows_of_server, 130, 4},
    {"strategy: federated\nrule: mref\n", rows_of_server, 110, 4},
};

/* Loads and runs it with at most so much memory. */
static reef_status run_in(counter *c, const char *yaml, const char *folder, const reef_engine *over, reef_error *error)
{
    reef_context *context = NULL;
    reef_experiment *e = NULL;
    const reef_allocator allocator = {.allocate = count_allocate, .release = count_release, .user = c};
    const reef_experiment_options options = {
        .folder = over ? folder : NULL, .force = true, .engine = over, .distribute = REEF_DISTRIBUTE_AGENTS};
    reef_status status = reef_context_create(&context, &allocator, error);
    status = status == REEF_OK ? reef_context_set_threads(context, 1, error) : status;
    status = status == REEF_OK ? reef_experiment_load(context, &e, yaml, NULL, 0, error) : status;
    status = over ? over->ops->agree(over, status, error) : status;
    status = status == REEF_OK ? reef_experiment_run(e, &options, NULL, error) : status;
    reef_experiment_destroy(&e);
    reef_context_destroy(&context);
    REQUIRE(atomic_load(&c->now) == 0, "%zu bytes are left", atomic_load(&c->now));
    return status;
}

static void write_yaml(const trial *t, const char *path)
{
    FILE *file = fopen(path, "w");
    REQUIRE(file, "%s", path);
    fprintf(file, "agents: %d\nproblem: {kind: lms, dimension: %d}\nrounds: 2\nrepetitions: 1\n%s", AGENTS, M, t->text);
    REQUIRE(fclose(file) == 0, "%s", path);
}

static void check_trial(const trial *t, const char *folder)
{
    char yaml[200];
    reef_error error = {REEF_OK, ""};
    const size_t row = (size_t)M * sizeof(float);
    (void)snprintf(yaml, sizeof yaml, "%s/trial.yaml", folder);
    if (engine->rank == 0) {
        write_yaml(t, yaml);
    }
    REQUIRE(engine->ops->barrier(engine, &error) == REEF_OK, "%s", error.text);
    counter shared = {.limit = (size_t)(t->rows(engine->size) + t->others) * row};
    REQUIRE(run_in(&shared, yaml, folder, engine, &error) == REEF_OK, "%s: %s", t->text, error.text);
    counter whole = {.limit = SIZE_MAX};
    if (engine->rank > 0) {
        return;
    }
    REQUIRE(run_in(&whole, yaml, folder, NULL, &error) == REEF_OK, "%s: %s", t->text, error.text);
    if (engine->size >= t->fewest) {
        REQUIRE(atomic_load(&shared.peak) < 4 * atomic_load(&whole.peak) / 5, "%s: %zu bytes, all of it %zu", t->text,
                atomic_load(&shared.peak), atomic_load(&whole.peak));
        counter same = {.limit = atomic_load(&shared.peak)};
        REQUIRE(run_in(&same, yaml, folder, NULL, &error) == REEF_E_NOMEM, "%s: all agents in so little", t->text);
    }
    printf("%d ranks: %.1f MB, all agents %.1f MB\n", (int)engine->size, 1e-6 * (double)atomic_load(&shared.peak),
           1e-6 * (double)atomic_load(&whole.peak));
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *where)
{
    (void)facts;
    (void)kind;
    (void)where;
    return remove(path);
}

int main(void)
{
    char folder[100];
    reef_error error = {REEF_OK, ""};
    REQUIRE(reef_mpi_start(&engine, &error) == REEF_OK, "%s", error.text);
    int64_t number = engine->rank == 0 ? (int64_t)getpid() : 0;
    REQUIRE(engine->ops->merge(engine, &number, sizeof number, &error) == REEF_OK, "%s", error.text);
    (void)snprintf(folder, sizeof folder, "%s/reef-memory-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
                   (int)number);
    REQUIRE(engine->rank > 0 || mkdir(folder, 0777) == 0, "%s", folder);
    for (ptrdiff_t i = 0; i < COUNT(trials); i++) {
        check_trial(&trials[i], folder);
    }
    REQUIRE(engine->ops->barrier(engine, &error) == REEF_OK, "%s", error.text);
    REQUIRE(engine->rank > 0 || nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0, "%s", folder);
    reef_mpi_stop(&engine);
    return 0;
}
