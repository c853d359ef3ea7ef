/* The thread pool: every part exactly once, by workers in range, whatever the number of threads, parts and callers. */
#include "base/context.h"
#include "base/pool.h"
#include "support/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PARTS_MAX = 3000, WORKERS_MAX = 16 };

typedef struct census {
    atomic_int runs[PARTS_MAX];
    atomic_int at_work[WORKERS_MAX]; /* two threads must never share a worker number at a time */
    ptrdiff_t parts, workers;
    atomic_int strange; /* numbers out of range, or a worker twice */
    atomic_int total;
} census;

static void count_part(void *job, ptrdiff_t part, ptrdiff_t worker)
{
    census *c = job;
    if (part < 0 || part >= c->parts || worker < 0 || worker >= c->workers) {
        atomic_fetch_add(&c->strange, 1);
        return;
    }
    if (atomic_fetch_add(&c->at_work[worker], 1)) {
        atomic_fetch_add(&c->strange, 1);
    }
    atomic_fetch_add(&c->runs[part], 1);
    atomic_fetch_add(&c->total, 1);
    atomic_fetch_sub(&c->at_work[worker], 1);
}

static void start_census(census *c, ptrdiff_t parts, ptrdiff_t workers)
{
    for (ptrdiff_t i = 0; i < PARTS_MAX; i++) {
        atomic_store(&c->runs[i], 0);
    }
    for (ptrdiff_t i = 0; i < WORKERS_MAX; i++) {
        atomic_store(&c->at_work[i], 0);
    }
    atomic_store(&c->strange, 0);
    atomic_store(&c->total, 0);
    c->parts = parts;
    c->workers = workers;
}

static bool every_part_once(census *c)
{
    bool good = atomic_load(&c->strange) == 0 && atomic_load(&c->total) == c->parts;
    for (ptrdiff_t i = 0; i < PARTS_MAX; i++) {
        good = good && atomic_load(&c->runs[i]) == (i < c->parts);
    }
    return good;
}

static reef_context *make_context(ptrdiff_t threads)
{
    reef_context *context = NULL;
    assert_int_equal(reef_context_create(&context, NULL, NULL), REEF_OK);
    assert_int_equal(reef_context_set_threads(context, threads, NULL), REEF_OK);
    return context;
}

static void every_part_is_run_once(void **state)
{
    static const ptrdiff_t threads[] = {1, 2, 3, 7, 16};
    static const ptrdiff_t parts[] = {0, 1, 2, 3, 5, 16, 17, 100, PARTS_MAX};
    static census c;
    (void)state;
    for (ptrdiff_t t = 0; t < COUNT(threads); t++) {
        reef_context *context = make_context(threads[t]);
        assert_int_equal(rfi_context_workers(context), threads[t]);
        for (ptrdiff_t i = 0; i < COUNT(parts) * MONTE_CARLO(20, 4); i++) {
            ptrdiff_t size = parts[i % COUNT(parts)];
            start_census(&c, size, threads[t]);
            rfi_pool_run(context, threads[t], size, count_part, &c);
            CHECK(every_part_once(&c), "%td threads, %td parts: %d runs, %d strange", threads[t], size,
                  atomic_load(&c.total), atomic_load(&c.strange));
        }
        reef_context_destroy(&context);
    }
}

/* Fewer workers than threads: the rest stay out. More than there are: as many as there are. */
static void workers_are_limited(void **state)
{
    static census c;
    reef_context *context = make_context(7);
    (void)state;
    for (ptrdiff_t workers = 0; workers <= 12; workers++) {
        for (int repeat = 0; repeat < MONTE_CARLO(30, 5); repeat++) {
            ptrdiff_t most = workers < 1 ? 1 : (workers > 7 ? 7 : workers);
            start_census(&c, 200, most);
            rfi_pool_run(context, workers, 200, count_part, &c);
            CHECK(every_part_once(&c), "%td workers: %d runs, %d strange", workers, atomic_load(&c.total),
                  atomic_load(&c.strange));
        }
    }
    reef_context_destroy(&context);
}

static void no_context_means_the_caller(void **state)
{
    static census c;
    (void)state;
    assert_int_equal(rfi_context_workers(NULL), 1);
    rfi_pool_prepare(NULL);
    start_census(&c, 50, 1);
    rfi_pool_run(NULL, 8, 50, count_part, &c);
    assert_true(every_part_once(&c));
}

/* ---- workers that are there at the same time ---- */

/* Short parts are all done before the other threads wake up. Here each part waits for the others. */
typedef struct meeting {
    census c;
    atomic_int arrived;
} meeting;

static void sleep_ms(long ms)
{
    const struct timespec pause = {.tv_nsec = ms * 1000000};
    (void)nanosleep(&pause, NULL);
}

/* Until all parts have been begun; up to 20 s, on a busy machine. */
static void await_all(meeting *m)
{
    atomic_fetch_add(&m->arrived, 1);
    for (int i = 0; i < 20000 && atomic_load(&m->arrived) < m->c.parts; i++) {
        sleep_ms(1);
    }
}

static void meet(void *job, ptrdiff_t part, ptrdiff_t worker)
{
    meeting *m = job;
    bool good = worker >= 0 && worker < m->c.workers;
    if (!good || atomic_fetch_add(&m->c.at_work[worker], 1)) {
        atomic_fetch_add(&m->c.strange, 1);
    }
    await_all(m);
    if (good && worker > 0) {
        sleep_ms(5); /* the caller is done first, and has to wait */
    }
    atomic_fetch_add(&m->c.runs[part], 1);
    atomic_fetch_add(&m->c.total, 1);
}

/* As many parts as workers: each gets one, under its own number. */
static bool all_meet(reef_context *context, ptrdiff_t workers)
{
    static meeting m;
    start_census(&m.c, workers, workers);
    atomic_store(&m.arrived, 0);
    rfi_pool_run(context, workers, workers, meet, &m);
    return every_part_once(&m.c) && atomic_load(&m.arrived) == workers;
}

static void workers_meet(void **state)
{
    (void)state;
    for (ptrdiff_t threads = 1; threads <= 9; threads += 2) {
        reef_context *context = make_context(threads);
        for (ptrdiff_t workers = 1; workers <= threads; workers++) {
            CHECK(all_meet(context, workers), "%td of %td workers did not meet", workers, threads);
        }
        reef_context_destroy(&context);
    }
}

/* A child has to start threads of its own; the parent keeps its. */
static void workers_meet_after_fork(void **state)
{
    (void)state;
#ifdef TEST_NO_THREADS_AFTER_FORK
    skip();
#else
    reef_context *context = make_context(3);
    assert_true(all_meet(context, 3));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60); /* a hang ends the child */
        bool met = all_meet(context, 3);
        reef_context_destroy(&context);
        _exit(met ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status %x", (unsigned)status);
    assert_true(all_meet(context, 3));
    reef_context_destroy(&context);
#endif
}

/* ---- jobs inside jobs ---- */

typedef struct nest {
    reef_context *context;
    census inner[8];
} nest;

static void run_inner(void *job, ptrdiff_t part, ptrdiff_t worker)
{
    nest *n = job;
    (void)worker;
    rfi_pool_run(n->context, 4, 100, count_part, &n->inner[part]);
}

/* A job started from a part of another one is done by that thread alone, as worker 0. */
static void nested_jobs_run_alone(void **state)
{
    static nest n;
    (void)state;
    n.context = make_context(4);
    for (int repeat = 0; repeat < 10; repeat++) {
        for (int i = 0; i < 8; i++) {
            start_census(&n.inner[i], 100, 1);
        }
        rfi_pool_run(n.context, 4, 8, run_inner, &n);
        for (int i = 0; i < 8; i++) {
            assert_true(every_part_once(&n.inner[i]));
        }
    }
    reef_context_destroy(&n.context);
}

/* ---- several callers at the same time ---- */

typedef struct caller {
    reef_context *context;
    census c;
    int failures;
} caller;

static void *call_often(void *argument)
{
    caller *self = argument;
    for (int i = 0; i < MONTE_CARLO(300, 40); i++) {
        start_census(&self->c, i % 60, 3);
        rfi_pool_run(self->context, 3, i % 60, count_part, &self->c);
        self->failures += !every_part_once(&self->c);
    }
    return NULL;
}

static void concurrent_callers(void **state)
{
    static caller callers[4];
    pthread_t threads[4];
    reef_context *context = make_context(3);
    (void)state;
    for (int i = 0; i < 4; i++) {
        callers[i].context = context;
        callers[i].failures = 0;
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(callers[i].failures, 0);
    }
    reef_context_destroy(&context);
}

/* ---- life and death ---- */

static void pools_come_and_go(void **state)
{
    static census c;
    (void)state;
    for (int i = 0; i < MONTE_CARLO(60, 10); i++) {
        reef_context *context = make_context(1 + i % 5);
        if (i % 3) {
            rfi_pool_prepare(context);
            rfi_pool_prepare(context);
        }
        if (i % 2) {
            start_census(&c, 40, 1 + i % 5);
            rfi_pool_run(context, 1 + i % 5, 40, count_part, &c);
            assert_true(every_part_once(&c));
        }
        if (i % 7 == 0) { /* another number of threads: a new pool */
            assert_int_equal(reef_context_set_threads(context, 3, NULL), REEF_OK);
            start_census(&c, 40, 3);
            rfi_pool_run(context, 3, 40, count_part, &c);
            assert_true(every_part_once(&c));
        }
        rfi_pool_destroy(context); /* destroy of a context does it again */
        reef_context_destroy(&context);
        assert_null(context);
    }
}

static void numbers_of_threads(void **state)
{
    static const ptrdiff_t bad[] = {-1, -1000, REEF_THREADS_MAX + 1, PTRDIFF_MAX, PTRDIFF_MIN};
    reef_context *context = make_context(0);
    reef_error error = {0};
    (void)state;
    assert_true(rfi_processor_count() >= 1);
    assert_int_equal(rfi_context_workers(context), rfi_processor_count());
    assert_int_equal(reef_context_set_threads(context, 5, &error), REEF_OK);
    for (ptrdiff_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(reef_context_set_threads(context, bad[i], &error), REEF_E_ARG);
        assert_int_equal(error.status, REEF_E_ARG);
        assert_int_equal(rfi_context_workers(context), 5);
    }
    assert_int_equal(reef_context_set_threads(NULL, 2, &error), REEF_E_ARG);
    assert_int_equal(reef_context_set_threads(context, REEF_THREADS_MAX, &error), REEF_OK);
    assert_int_equal(rfi_context_workers(context), REEF_THREADS_MAX);
    assert_int_equal(reef_context_set_threads(context, 0, &error), REEF_OK);
    assert_int_equal(rfi_context_workers(context), rfi_processor_count());
    reef_context_destroy(&context);
}

/* Without memory for a pool the caller does the work. */
static void *refuse(void *user, size_t bytes)
{
    int *left = user;
    return (*left)-- > 0 ? malloc(bytes) : NULL;
}

static void release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static void no_memory_for_a_pool(void **state)
{
    static census c;
    int left = 1; /* the context itself */
    reef_allocator allocator = {.allocate = refuse, .release = release, .user = &left};
    reef_context *context = NULL;
    (void)state;
    assert_int_equal(reef_context_create(&context, &allocator, NULL), REEF_OK);
    assert_int_equal(reef_context_set_threads(context, 4, NULL), REEF_OK);
    rfi_pool_prepare(context);
    start_census(&c, 30, 1);
    rfi_pool_run(context, 4, 30, count_part, &c);
    assert_true(every_part_once(&c));
    reef_context_destroy(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_is_run_once),
        cmocka_unit_test(workers_are_limited),
        cmocka_unit_test(no_context_means_the_caller),
        cmocka_unit_test(nested_jobs_run_alone),
        cmocka_unit_test(concurrent_callers),
        cmocka_unit_test(pools_come_and_go),
        cmocka_unit_test(numbers_of_threads),
        cmocka_unit_test(no_memory_for_a_pool),
        cmocka_unit_test(workers_meet),
        cmocka_unit_test(workers_meet_after_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
