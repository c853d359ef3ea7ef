#include "base/walk.h"

#include "base/pool.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

/* Parts next to each other go to one worker, which reads and writes them together; so many bundles of them per worker keep all busy to the end. */
enum { BUNDLES = 64 };

void rfi_walk_parts(const ptrdiff_t *lengths, ptrdiff_t segments, ptrdiff_t grain, ptrdiff_t *parts)
{
    parts[0] = 0;
    for (ptrdiff_t s = 0; s < segments; s++) {
        assert(lengths[s] > 0);
        parts[s + 1] = parts[s] + (lengths[s] - 1) / grain + 1;
    }
}

/* The segment that a part belongs to. */
static ptrdiff_t segment_of(const rfi_walk *walk, ptrdiff_t part)
{
    ptrdiff_t low = 0;
    ptrdiff_t high = walk->segments;
    while (high - low > 1) {
        ptrdiff_t middle = low + (high - low) / 2;
        if (walk->parts[middle] <= part) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static rfi_stretch part_at(const rfi_walk *walk, ptrdiff_t part, ptrdiff_t worker)
{
    ptrdiff_t segment = segment_of(walk, part);
    ptrdiff_t length = walk->lengths[segment];
    ptrdiff_t m0 = (part - walk->parts[segment]) * walk->grain;
    ptrdiff_t m1 = length - m0 > walk->grain ? m0 + walk->grain : length;
    return (rfi_stretch){worker, segment, m0 > walk->from ? m0 : walk->from, m1 < walk->to ? m1 : walk->to};
}

/* The state of a walk. */
typedef struct journey {
    const rfi_walk *walk;
    ptrdiff_t first;    /* part */
    ptrdiff_t end;      /* behind the last */
    ptrdiff_t bundle;   /* parts that a worker takes at once */
    atomic_int status;  /* the first failure stays */
    reef_error failure; /* with it */
} journey;

static bool is_over(journey *j)
{
    int status = atomic_load(&j->status);
    return (status != REEF_OK && status != (int)j->walk->tolerated) || (j->walk->over && j->walk->over(j->walk->user));
}

static void keep_failure(journey *j, reef_status status, const reef_error *error)
{
    int none = REEF_OK;
    if (atomic_compare_exchange_strong(&j->status, &none, (int)status)) {
        j->failure = *error;
    }
}

static void run_part(journey *j, ptrdiff_t number, ptrdiff_t worker)
{
    const rfi_walk *walk = j->walk;
    reef_error error;
    if (is_over(j)) {
        return;
    }
    rfi_stretch part = part_at(walk, number, worker);
    if (walk->enter) {
        walk->enter(walk->user, &part);
    }
    for (rfi_stretch at = part; at.m0 < part.m1; at.m0 = at.m1) {
        at.m1 = walk->step > 0 && part.m1 - at.m0 > walk->step ? at.m0 + walk->step : part.m1;
        reef_status status = walk->visit(walk->user, &at, &error);
        if (status != REEF_OK) {
            keep_failure(j, status, &error);
        }
        if (at.m1 < part.m1 && is_over(j)) {
            return;
        }
    }
}

static void run_bundle(void *job, ptrdiff_t number, ptrdiff_t worker)
{
    journey *j = job;
    ptrdiff_t first = j->first + number * j->bundle;
    for (ptrdiff_t part = first; part < j->end && part < first + j->bundle; part++) {
        run_part(j, part, worker);
    }
}

reef_status rfi_walk_run(const rfi_walk *walk, reef_error *error)
{
    assert(walk->workers >= 1 && walk->segments >= 1 && walk->grain >= 1 && walk->step >= 0);
    ptrdiff_t parts = walk->parts[walk->segments];
    journey j; /* the failure is written before it is read: filling it with zeros would be felt in short walks */
    j.walk = walk;
    j.first = 0;
    if (walk->to < PTRDIFF_MAX) {
        assert(walk->segments == 1 && walk->from >= 0 && walk->to <= walk->lengths[0]);
        j.first = walk->from / walk->grain;
        parts = walk->to > walk->from ? (walk->to - 1) / walk->grain - j.first + 1 : 0;
    }
    j.end = j.first + parts;
    j.bundle = parts / (walk->workers * BUNDLES) + 1;
    atomic_init(&j.status, REEF_OK);
    rfi_pool_run(walk->context, walk->workers, (parts + j.bundle - 1) / j.bundle, run_bundle, &j);
    reef_status status = (reef_status)atomic_load(&j.status);
    if (status != REEF_OK && error) {
        *error = j.failure;
    }
    return status;
}
