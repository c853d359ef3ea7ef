/* A wall clock that is set while a program runs, for that program alone: preloaded (LD_PRELOAD), it adds to CLOCK_REALTIME the seconds that a file
 * holds ($REEF_CLOCK: one double, changed by whoever tests). The monotonic clock stays what it is, as it does when somebody sets the time of
 * a machine; and a wait for a time on the wall clock ends when that clock says so, hence too late if it was set back. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef int get_time(clockid_t clock, struct timespec *t);
typedef int wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until);

static const double slice = 0.02; /* a wait looks so often whether the clock was set */

/* Seconds that the wall clock is ahead. */
static double ahead(void)
{
    static const volatile double *_Atomic seconds;
    if (!seconds) {
        const char *path = getenv("REEF_CLOCK");
        int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        void *map = file >= 0 ? mmap(NULL, sizeof *seconds, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
        if (file >= 0) {
            (void)close(file);
        }
        if (map == MAP_FAILED) {
            return 0;
        }
        seconds = map;
    }
    return *seconds;
}

static double number(const struct timespec *t)
{
    return (double)t->tv_sec + 1e-9 * (double)t->tv_nsec;
}

static struct timespec later(const struct timespec *t, double by)
{
    double whole = floor(by);
    struct timespec sum = {t->tv_sec + (time_t)whole, t->tv_nsec + (long)((by - whole) * 1e9)};
    sum.tv_sec += sum.tv_nsec / 1000000000L;
    sum.tv_nsec %= 1000000000L;
    return sum;
}

static int true_time(clockid_t clock, struct timespec *t)
{
    static get_time *_Atomic next;
    if (!next) {
        *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    }
    return next(clock, t);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int status = true_time(clock, t);
    if (status == 0 && clock == CLOCK_REALTIME) {
        *t = later(t, ahead());
    }
    return status;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *t)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (t) {
        *t = now.tv_sec;
    }
    return now.tv_sec;
}

/* Times on the monotonic clock are those of seconds since the machine was started, or of a namespace; on the wall clock they are seconds since
 * 1970, years away from that whatever it is set to here. */
static int is_monotonic(const struct timespec *until)
{
    struct timespec wall;
    struct timespec steady;
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    (void)true_time(CLOCK_MONOTONIC, &steady);
    return fabs(number(until) - number(&steady)) < fabs(number(until) - number(&wall));
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    static wait_until *_Atomic next;
    if (!next) {
        *(void **)&next = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
        if (!next) {
            *(void **)&next = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
        }
    }
    if (is_monotonic(until)) {
        return next(condition, mutex, until);
    }
    for (;;) {
        struct timespec now;
        struct timespec real;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        (void)true_time(CLOCK_REALTIME, &real);
        double left = number(until) - number(&now);
        if (left <= 0) {
            return ETIMEDOUT;
        }
        struct timespec end = later(&real, fmin(left, slice));
        int status = next(condition, mutex, &end);
        if (status != ETIMEDOUT) {
            return status;
        }
    }
}
