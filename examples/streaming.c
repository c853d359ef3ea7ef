/* Aggregating with your own loop and threads: models that come from files, sockets or several processes and are never
 * in memory together. Multi-Krum needs distances between whole models, so the ranges are visited twice: observe, then combine.
 * The result is bit-identical to one call of reef_agg_apply for any split and any number of threads, and this program checks that. */
#include <reef/reef.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { AGENTS = 9, LENGTH = 50000, WORKERS = 3 };

typedef enum visit_kind { OBSERVE, COMBINE, SCAN } visit_kind;

typedef struct task {
    reef_plan *plan;
    visit_kind kind;
    ptrdiff_t worker; /* each thread has its own number, below shape.workers */
    float (*models)[LENGTH];
    float *out;
    reef_status status;
    reef_error error;
} task;

/* One range. The row pointers point to its first coordinate, wherever that is in memory. */
static reef_status visit(task *t, ptrdiff_t m0, ptrdiff_t m1)
{
    const void *rows[AGENTS];
    for (int l = 0; l < AGENTS; l++) {
        rows[l] = t->models[l] + m0;
    }
    switch (t->kind) {
    case OBSERVE:
        return reef_plan_observe(t->plan, t->worker, 0, m0, m1, rows, &t->error);
    case COMBINE:
        return reef_plan_combine(t->plan, t->worker, 0, m0, m1, rows, t->out + m0, &t->error);
    case SCAN:
        break;
    }
    return reef_plan_scan(t->plan, 0, m0, m1, rows, &t->error);
}

/* Every WORKERS-th range of one grain; ranges start at multiples of the grain. */
static void *work(void *argument)
{
    task *t = argument;
    ptrdiff_t grain = reef_plan_grain(t->plan);
    t->status = REEF_OK;
    for (ptrdiff_t m0 = t->worker * grain; t->status == REEF_OK && m0 < LENGTH; m0 += WORKERS * grain) {
        ptrdiff_t m1 = LENGTH - m0 < grain ? LENGTH : m0 + grain;
        t->status = visit(t, m0, m1);
    }
    return NULL;
}

/* All ranges, by all threads; returns the first error, if any. */
static reef_status in_parallel(const task *common, visit_kind kind, reef_error *error)
{
    pthread_t threads[WORKERS];
    task tasks[WORKERS];
    bool started[WORKERS];
    reef_status status = REEF_OK;
    for (int i = 0; i < WORKERS; i++) {
        tasks[i] = *common;
        tasks[i].kind = kind;
        tasks[i].worker = i;
        started[i] = pthread_create(&threads[i], NULL, work, &tasks[i]) == 0;
        if (!started[i]) {
            work(&tasks[i]); /* no thread could be started: do it here */
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        if (started[i]) {
            pthread_join(threads[i], NULL);
        }
        if (status == REEF_OK && tasks[i].status != REEF_OK) {
            status = tasks[i].status;
            *error = tasks[i].error;
        }
    }
    return status;
}

static reef_status observe_and_combine(const task *t, reef_error *error)
{
    reef_status status = REEF_OK;
    for (ptrdiff_t pass = 0; status == REEF_OK && pass < reef_plan_passes(t->plan); pass++) {
        status = in_parallel(t, OBSERVE, error);
        if (status == REEF_OK) {
            status = reef_plan_solve(t->plan, error);
        }
    }
    return status == REEF_OK ? in_parallel(t, COMBINE, error) : status;
}

/* The whole sequence. If a row with NaN is found on the way, it is left out, and everything is done once more without it. */
static reef_status stream(const task *t, reef_report *report, reef_error *error)
{
    reef_status status = reef_plan_begin(t->plan, &(reef_input){.round = 0}, report, error);
    if (status != REEF_OK) {
        return status;
    }
    status = observe_and_combine(t, error);
    if (reef_plan_suspect(t->plan)) {
        status = in_parallel(t, SCAN, error);
        status = status == REEF_OK ? reef_plan_drop(t->plan, error) : status;
        status = status == REEF_OK ? observe_and_combine(t, error) : status;
    }
    return status == REEF_OK ? reef_plan_end(t->plan, error) : status;
}

static void make_models(float (*models)[LENGTH])
{
    unsigned state = 1;
    for (int l = 0; l < AGENTS; l++) {
        for (int m = 0; m < LENGTH; m++) {
            state = state * 1664525U + 1013904223U;
            models[l][m] = (float)state * 0x1p-32F + (l == 4 ? 3.0F : 0.0F); /* agent 4 is malicious */
        }
    }
    models[6][LENGTH / 2] = NAN; /* agent 6 is broken */
}

static reef_status run(float (*models)[LENGTH], float *streamed, float *whole, reef_report *report, reef_error *error)
{
    const void *rows[AGENTS];
    ptrdiff_t length = LENGTH;
    reef_shape shape = {.rows = AGENTS, .segments = 1, .lengths = &length, .dtype = REEF_F32, .workers = WORKERS};
    reef_agg *agg = NULL;
    task common = {.models = models, .out = streamed};
    for (int l = 0; l < AGENTS; l++) {
        rows[l] = models[l];
    }
    reef_status status = reef_agg_create(NULL, &agg, "multikrum:f=2", error);
    if (status == REEF_OK) {
        status = reef_plan_create(&common.plan, agg, &shape, error);
    }
    if (status == REEF_OK) {
        printf("%d coordinates by %d threads in ranges of %td\n", LENGTH, WORKERS, reef_plan_grain(common.plan));
        status = stream(&common, report, error);
    }
    if (status == REEF_OK) { /* the same in one call */
        status = reef_agg_apply(agg, &(reef_input){.rows = rows}, AGENTS, LENGTH, REEF_F32, whole, NULL, error);
    }
    reef_plan_destroy(&common.plan);
    reef_agg_destroy(&agg);
    return status;
}

static bool same_bits(const void *one, const void *other, size_t bytes)
{
    return memcmp(one, other, bytes) == 0;
}

int main(void)
{
    static float models[AGENTS][LENGTH];
    static float streamed[LENGTH];
    static float whole[LENGTH];
    reef_report *report = NULL;
    reef_error error = {REEF_OK, ""};
    make_models(models);
    reef_status status = reef_report_create(NULL, &report, AGENTS, &error);
    if (status == REEF_OK) {
        status = run(models, streamed, whole, report, &error);
    }
    if (status != REEF_OK) {
        fprintf(stderr, "%s\n", error.text);
        reef_report_destroy(&report);
        return 1;
    }
    bool same = same_bits(streamed, whole, sizeof whole);
    const double *trust = reef_report_trust(report);
    bool found = trust[4] == 0 && reef_report_reason(report, 6) == REEF_NONFINITE;
    printf("agent 4 (malicious): trust %.2f; agent 6 (NaN): %s\n", trust[4],
           reef_report_reason(report, 6) == REEF_NONFINITE ? "left out" : "used");
    printf("streamed and whole results are %s\n", same ? "the same, bit for bit" : "DIFFERENT");
    reef_report_destroy(&report);
    return same && found ? 0 : 1;
}
