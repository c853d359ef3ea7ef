/* Speed of gradients: what a round costs before anything is sent.
 *
 * Each line is one problem and packing. Reported is the smallest wall-clock time of a call over `repeats`, per agent and repetition, and that
 * time per number of the model and sample, which for lms is close to the cost of one random normal.
 *
 * usage: bench_problems [--repeats N]     (other flags are for other benchmarks and are ignored)
 */
#include <reef/reef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct bench_case {
    const char *spec;
    ptrdiff_t agents;
    int32_t lanes;
    int32_t size;
} bench_case;

static const bench_case cases[] = {
    {"lms", 32, 16, 1},
    {"lms", 512, 1, 1},
    {"lms", 32, 16, 16},
    {"lms:covariance=diagonal,heterogeneity=0.1", 32, 16, 1},
    {"lms:covariance=ar1,outliers=0.1,loss=huber", 32, 16, 1},
    {"lms:dimension=10000", 1, 16, 1},
    {"lms:dimension=10000", 16, 1, 1},
    {"logistic", 10, 1, 32},
    {"softmax", 10, 1, 32},
    {"mlp:hidden=64", 10, 1, 32},
    {"mlp:hidden=(256,128)", 10, 1, 32},
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *need(void *memory)
{
    if (!memory) {
        fprintf(stderr, "bench_problems: no memory\n");
        exit(1);
    }
    return memory;
}

/* Seconds of one call, the least of all. */
static double measure(const reef_problem *problem, reef_batch *batch, int repeats)
{
    const reef_problem_kind *kind = reef_problem_kind_of(problem);
    double best = 1e9;
    for (int i = 0; i < repeats; i++) {
        double start = now();
        enum { CALLS = 10 };
        for (int j = 0; j < CALLS; j++) {
            batch->round++;
            kind->gradients(reef_problem_state(problem), batch);
        }
        double spent = (now() - start) / CALLS;
        best = spent < best ? spent : best;
    }
    return best;
}

static void run(const bench_case *c, int repeats)
{
    reef_problem *problem = NULL;
    reef_error error;
    if (reef_problem_create(NULL, &problem, c->spec, c->agents, 1, &error) != REEF_OK) {
        fprintf(stderr, "bench_problems: %s\n", error.text);
        exit(1);
    }
    const ptrdiff_t length = reef_problem_dimension(problem) * c->lanes;
    const size_t bytes = reef_problem_kind_of(problem)->work_size(reef_problem_state(problem), c->size, c->lanes);
    float *models = need(calloc((size_t)(c->agents * length), sizeof *models));
    float *gradients = need(calloc((size_t)(c->agents * length), sizeof *gradients));
    const float **in = need(calloc((size_t)c->agents, sizeof *in));
    float **out = need(calloc((size_t)c->agents, sizeof *out));
    int32_t *agents = need(calloc((size_t)c->agents, sizeof *agents));
    void *work = need(aligned_alloc(64, (bytes + 63) / 64 * 64));
    for (ptrdiff_t k = 0; k < c->agents; k++) {
        agents[k] = (int32_t)k;
        in[k] = models + k * length;
        out[k] = gradients + k * length;
    }
    reef_batch batch = {.count = c->agents,
                        .agents = agents,
                        .models = in,
                        .gradients = out,
                        .size = c->size,
                        .lanes = c->lanes,
                        .work = work};
    const double each = 1e9 * measure(problem, &batch, repeats) / (double)(c->agents * c->lanes);
    printf("%-44s K %4td  R %2d  B %2d  %12.1f ns  %6.2f ns per number and sample\n", c->spec, c->agents, c->lanes,
           c->size, each, each / ((double)reef_problem_dimension(problem) * c->size));
    free(models);
    free(gradients);
    free(in);
    free(out);
    free(agents);
    free(work);
    reef_problem_destroy(&problem);
}

int main(int argc, char **argv)
{
    int repeats = 50;
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--repeats") == 0) {
            repeats = (int)strtol(argv[i + 1], NULL, 10);
        }
    }
    printf("one gradient, per agent and repetition\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run(&cases[i], repeats);
    }
    return 0;
}
