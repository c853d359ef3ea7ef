/* Runs over ranks: time of a round beside one process, and of the exchange beside a bare MPI loop that sends the same bytes between the
 * same ranks (the floor).
 *     ranks.sh N bench_ranks [--agents TOTAL] [--length M] [--json FILE]
 * 8 agents per rank (or TOTAL over all of them) on a ring, each hears itself and two to either side; rule mean; M = 10, 1e4, 1e6.
 * All times are the best of several, since other programs only ever make them worse. */
#include <mpi.h>
#include <reef/mpi.h>
#include <reef/reef.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PER_RANK = 8, NEAR = 2, REPEATS = 7, LINE = 16 };

static reef_engine *engine;

static void must(bool good, const char *what, const reef_error *error)
{
    if (!good) {
        fprintf(stderr, "bench_ranks: %s: %s\n", what, error ? error->text : "failed");
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
}

/* ---- a problem that costs little: J_k(w) = |w - k|^2 / 2 ---- */

typedef struct hill {
    ptrdiff_t dimension;
} hill;

static ptrdiff_t wanted; /* M of the next problem */

static reef_status create(const void *params, const reef_problem_setup *setup, void **state, reef_error *error)
{
    hill *h = malloc(sizeof *h);
    (void)params;
    (void)setup;
    (void)error;
    if (h) {
        h->dimension = wanted;
    }
    *state = h;
    return h ? REEF_OK : REEF_E_NOMEM;
}

static ptrdiff_t dimension(const void *state)
{
    return ((const hill *)state)->dimension;
}

static size_t work_size(const void *state, ptrdiff_t size, ptrdiff_t lanes)
{
    (void)state;
    (void)size;
    (void)lanes;
    return 0;
}

static void gradients(const void *state, const reef_batch *batch)
{
    ptrdiff_t count = dimension(state) * batch->lanes;
    for (ptrdiff_t i = 0; i < batch->count; i++) {
        float centre = (float)(batch->agents[i] % 7);
        for (ptrdiff_t m = 0; m < count; m++) {
            batch->gradients[i][m] = batch->models[i][m] - centre;
        }
    }
}

static const reef_problem_kind kind = {.kind = {.name = "hill", .summary = "", .citation = ""},
                                       .create = create,
                                       .destroy = free,
                                       .dimension = dimension,
                                       .work_size = work_size,
                                       .gradients = gradients};

/* ---- rounds ---- */

typedef struct setting {
    reef_context *context;
    reef_problem *problem;
    reef_graph *graph;
    reef_links *links;
    reef_agg *rule;
} setting;

static void open_setting(setting *s, ptrdiff_t agents)
{
    reef_error error;
    *s = (setting){.context = NULL};
    must(reef_context_create(&s->context, NULL, &error) == REEF_OK, "context", &error);
    must(reef_context_set_threads(s->context, 1, &error) == REEF_OK, "threads", &error);
    must(reef_problem_create_own(s->context, &s->problem, &kind, NULL, agents, 1, &error) == REEF_OK, "problem",
         &error);
    must(reef_graph_create(s->context, &s->graph, "ring:k=2", agents, 1, &error) == REEF_OK, "graph", &error);
    const reef_graph *graphs[1] = {s->graph};
    must(reef_links_create(s->context, &s->links, "static", graphs, 1, 1, &error) == REEF_OK, "links", &error);
    must(reef_agg_create(s->context, &s->rule, "mean", &error) == REEF_OK, "rule", &error);
}

static void close_setting(setting *s)
{
    reef_agg_destroy(&s->rule);
    reef_links_destroy(&s->links);
    reef_graph_destroy(&s->graph);
    reef_problem_destroy(&s->problem);
    reef_context_destroy(&s->context);
}

/* Seconds per round, the best of some; over: NULL for one process. */
static double time_rounds(const setting *s, const reef_engine *over, int64_t rounds)
{
    reef_error error;
    reef_run *run = NULL;
    double best = 1e30;
    const reef_run_setup setup = {
        .problem = s->problem, .strategy = "diffusion:mu=0.1", .rule = s->rule, .links = s->links, .engine = over};
    must(reef_run_create(s->context, &run, &setup, &error) == REEF_OK, "run", &error);
    must(reef_run_step(run, 1, &error) == REEF_OK, "step", &error);
    for (int i = 0; i < REPEATS; i++) {
        if (over) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
        double start = MPI_Wtime();
        must(reef_run_step(run, rounds, &error) == REEF_OK, "step", &error);
        double seconds = (MPI_Wtime() - start) / (double)rounds;
        best = seconds < best ? seconds : best;
    }
    reef_run_destroy(&run);
    return best;
}

/* ---- exchange ---- */

/* Two rows to either neighbour and two from it. */
typedef struct trade {
    float *rows; /* 4 to send, 4 to receive */
    ptrdiff_t stride;
    int32_t peers[2];
    ptrdiff_t peer_count; /* 0, 1 (two ranks: both sides are the same) or 2 */
    ptrdiff_t each;       /* rows to and from each peer */
} trade;

static void open_trade(trade *t, ptrdiff_t length)
{
    int32_t left = (engine->rank + engine->size - 1) % engine->size;
    int32_t right = (engine->rank + 1) % engine->size;
    *t = (trade){.stride = (length + LINE - 1) / LINE * LINE};
    t->peer_count = engine->size > 2 ? 2 : engine->size - 1;
    t->each = engine->size > 2 ? NEAR : 2 * NEAR;
    t->peers[0] = left < right ? left : right;
    t->peers[1] = left < right ? right : left;
    t->rows = calloc((size_t)(4 * NEAR * t->stride), sizeof *t->rows);
    must(t->rows != NULL, "no memory", NULL);
}

/* Contiguous, nothing but MPI. NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): it cannot follow the array */
static void bare(const trade *t)
{
    MPI_Request requests[4];
    int count = 0;
    int numbers = (int)(t->each * t->stride);
    for (ptrdiff_t p = 0; p < t->peer_count; p++) {
        MPI_Irecv(t->rows + (2 * NEAR + p * t->each) * t->stride, numbers, MPI_FLOAT, t->peers[p], 0, MPI_COMM_WORLD,
                  &requests[count++]);
    }
    for (ptrdiff_t p = 0; p < t->peer_count; p++) {
        MPI_Isend(t->rows + p * t->each * t->stride, numbers, MPI_FLOAT, t->peers[p], 0, MPI_COMM_WORLD,
                  &requests[count++]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

static void ours(const trade *t, void *pattern)
{
    reef_error error;
    void *pieces[4 * NEAR];
    reef_parcel parcels[4];
    for (ptrdiff_t i = 0; i < 4 * NEAR; i++) {
        pieces[i] = t->rows + i * t->stride;
    }
    for (ptrdiff_t p = 0; p < t->peer_count; p++) {
        size_t bytes = (size_t)t->stride * sizeof(float);
        parcels[p] = (reef_parcel){pieces + p * t->each, t->each, bytes};
        parcels[2 + p] = (reef_parcel){pieces + 2 * NEAR + p * t->each, t->each, bytes};
    }
    must(engine->ops->begin(engine, pattern, parcels, parcels + 2, &error) == REEF_OK, "begin", &error);
    must(engine->ops->end(engine, pattern, &error) == REEF_OK, "end", &error);
}

static double time_trade(const trade *t, void *pattern, bool by_us, int rounds)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < rounds; i++) {
        if (by_us) {
            ours(t, pattern);
        } else {
            bare(t);
        }
    }
    return (MPI_Wtime() - start) / rounds;
}

/* Both in turns; the slowest rank's best time of each. */
static void time_exchange(ptrdiff_t length, int rounds, double seconds[2])
{
    trade t;
    void *pattern = NULL;
    reef_error error;
    double best[2] = {1e30, 1e30};
    open_trade(&t, length);
    must(engine->ops->connect(engine, t.peers, t.peer_count, &pattern, &error) == REEF_OK, "connect", &error);
    bool few = rounds < 10; /* long ones are timed one by one: the more, the likelier one that nobody disturbs */
    for (int i = 0; i < 2 * REPEATS * (few ? 4 * rounds : 1); i++) {
        double now = time_trade(&t, pattern, i % 2, few ? 1 : rounds);
        best[i % 2] = now < best[i % 2] ? now : best[i % 2];
    }
    MPI_Allreduce(best, seconds, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    engine->ops->disconnect(engine, pattern);
    free(t.rows);
}

/* ---- table ---- */

static void bench(ptrdiff_t length, ptrdiff_t agents, FILE *json)
{
    setting s;
    int64_t rounds = length > 100000 ? 3 : (length > 1000 ? 50 : 500);
    double exchange[2] = {0, 0};
    wanted = length;
    open_setting(&s, agents);
    double spread = time_rounds(&s, engine, rounds);
    double alone = engine->rank == 0 ? time_rounds(&s, NULL, rounds) : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    time_exchange(length, (int)rounds, exchange);
    close_setting(&s);
    if (engine->rank == 0) {
        double bytes = engine->size > 1 ? 2.0 * NEAR * (double)length * sizeof(float) : 0;
        double over = exchange[0] > 0 && engine->size > 1 ? 100 * (exchange[1] / exchange[0] - 1) : 0;
        printf("%5d %6td %8td %11.1f %11.1f %11.3g %11.2f %11.2f %9.0f%%\n", (int)engine->size, agents, length,
               1 / spread, 1 / alone, bytes, 1e6 * exchange[1], 1e6 * exchange[0], over);
        if (json) {
            fprintf(json,
                    "{\"ranks\":%d,\"agents\":%td,\"M\":%td,\"round_s\":%.9g,\"alone_s\":%.9g,\"bytes\":%.9g,"
                    "\"exchange_s\":%.9g,\"floor_s\":%.9g}\n",
                    (int)engine->size, agents, length, spread, alone, bytes, exchange[1], exchange[0]);
        }
    }
}

int main(int argc, char **argv)
{
    static const ptrdiff_t lengths[] = {10, 10000, 1000000};
    reef_error error;
    FILE *json = NULL;
    must(reef_mpi_start(&engine, &error) == REEF_OK, "MPI", &error);
    ptrdiff_t agents = (ptrdiff_t)PER_RANK * engine->size;
    ptrdiff_t only = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--agents") == 0) {
            agents = strtol(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--length") == 0) {
            only = strtol(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--json") == 0 && engine->rank == 0) {
            json = fopen(argv[i + 1], "a");
        }
    }
    must(agents >= 2 * NEAR + 1, "too few agents", NULL);
    if (engine->rank == 0) {
        printf("ranks agents        M    rounds/s    in process   sent bytes  exchange us    floor us   overhead\n");
    }
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        if (only == 0 || only == lengths[i]) {
            bench(lengths[i], agents, json);
        }
    }
    if (json) {
        (void)fclose(json);
    }
    reef_mpi_stop(&engine);
    return 0;
}
