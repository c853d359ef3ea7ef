/* The thread pool of a context. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/pool.h"

#include "base/context.h"
#include "base/memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#if defined(__linux__)
#include <sched.h>
#endif

struct rfi_pool {
    pid_t owner; /* process whose threads these are */
    ptrdiff_t threads;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;  /* a job is there, or the end */
    pthread_cond_t idle;  /* a thread has finished its share */
    unsigned long number; /* of the job, so that a thread takes part once */
    ptrdiff_t invited;    /* threads that may still join the job */
    ptrdiff_t running;
    bool ending;

    rfi_job run;
    void *job;
    ptrdiff_t parts;
    atomic_ptrdiff_t next;

    pthread_t thread[];
};

ptrdiff_t rfi_processor_count(void)
{
#if defined(__linux__) && defined(CPU_COUNT)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
    }
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (ptrdiff_t)online : 1;
}

ptrdiff_t rfi_context_workers(const reef_context *context)
{
    return context ? context->threads : 1;
}

static void work(rfi_pool *pool, ptrdiff_t worker)
{
    for (;;) {
        ptrdiff_t part = atomic_fetch_add(&pool->next, 1);
        if (part >= pool->parts) {
            return;
        }
        pool->run(pool->job, part, worker);
    }
}

static void *serve(void *argument)
{
    rfi_pool *pool = argument;
    unsigned long seen = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->ending && (pool->number == seen || pool->invited == 0)) {
            pthread_cond_wait(&pool->wake, &pool->lock);
        }
        if (pool->ending) {
            break;
        }
        seen = pool->number;
        ptrdiff_t worker = pool->invited--; /* worker 0 is the caller */
        pool->running++;
        pthread_mutex_unlock(&pool->lock);
        work(pool, worker);
        pthread_mutex_lock(&pool->lock);
        if (--pool->running == 0) {
            pthread_cond_signal(&pool->idle);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static rfi_pool *create_pool(reef_context *context)
{
    ptrdiff_t threads = context->threads - 1;
    rfi_pool *pool = rfi_allocate(context, sizeof *pool + (size_t)threads * sizeof(pthread_t));
    if (!pool) {
        return NULL;
    }
    *pool = (rfi_pool){.owner = getpid()};
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->idle, NULL);
    while (pool->threads < threads && pthread_create(&pool->thread[pool->threads], NULL, serve, pool) == 0) {
        pool->threads++;
    }
    return pool;
}

/* The pool of this process; NULL if there is not enough memory for one. */
static rfi_pool *find_pool(reef_context *context)
{
    if (context->pool && context->pool->owner != getpid()) {
        rfi_release(context, context->pool); /* the parent's: its threads do not exist here */
        context->pool = NULL;
    }
    if (!context->pool) {
        context->pool = create_pool(context);
    }
    return context->pool;
}

void rfi_pool_prepare(reef_context *context)
{
    if (context && context->threads > 1 && !atomic_flag_test_and_set(&context->busy)) {
        (void)find_pool(context);
        atomic_flag_clear(&context->busy);
    }
}

static void run_alone(ptrdiff_t parts, rfi_job run, void *job)
{
    for (ptrdiff_t part = 0; part < parts; part++) {
        run(job, part, 0);
    }
}

/* Opens the job to the threads, works with them, and waits for the last one. */
static void run_together(rfi_pool *pool, ptrdiff_t workers, ptrdiff_t parts, rfi_job run, void *job)
{
    pthread_mutex_lock(&pool->lock);
    pool->run = run;
    pool->job = job;
    pool->parts = parts;
    atomic_store(&pool->next, 0);
    pool->number++;
    pool->invited = pool->threads < workers - 1 ? pool->threads : workers - 1;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);

    work(pool, 0);

    pthread_mutex_lock(&pool->lock);
    pool->invited = 0; /* who has not come yet is not needed any more */
    while (pool->running > 0) {
        pthread_cond_wait(&pool->idle, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
}

void rfi_pool_run(reef_context *context, ptrdiff_t workers, ptrdiff_t parts, rfi_job run, void *job)
{
    assert(workers >= 0 && parts >= 0);
    if (!context || workers < 2 || parts < 2 || atomic_flag_test_and_set(&context->busy)) {
        run_alone(parts, run, job);
        return;
    }
    rfi_pool *pool = find_pool(context);
    if (pool && pool->threads > 0) {
        run_together(pool, workers, parts, run, job);
    } else {
        run_alone(parts, run, job);
    }
    atomic_flag_clear(&context->busy);
}

void rfi_pool_destroy(reef_context *context)
{
    rfi_pool *pool = context->pool;
    context->pool = NULL;
    if (pool && pool->owner == getpid()) {
        pthread_mutex_lock(&pool->lock);
        pool->ending = true;
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->lock);
        for (ptrdiff_t i = 0; i < pool->threads; i++) {
            pthread_join(pool->thread[i], NULL);
        }
        pthread_cond_destroy(&pool->idle);
        pthread_cond_destroy(&pool->wake);
        pthread_mutex_destroy(&pool->lock);
    }
    rfi_release(context, pool);
}
