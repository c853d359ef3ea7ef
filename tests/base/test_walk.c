/* Walks on threads: every coordinate once, in order within a part, and when a walk ends early. */
#include "base/error.h"
#include "base/walk.h"
#include "support/check.h"

#include <stdatomic.h>
#include <string.h>

enum { SEGMENTS = 4, LONGEST = 1000, WORKERS = 3 };

static const ptrdiff_t lengths[SEGMENTS] = {1, 1000, 64, 65};

typedef struct record {
    atomic_int visits[SEGMENTS][LONGEST];
    atomic_int entered, stretches;
    ptrdiff_t next[WORKERS]; /* where the worker's stretch must begin */
    ptrdiff_t grain, step, from;
    reef_status fails; /* what the stretch with coordinate 500 of segment 1 says */
    atomic_bool enough;
} record;

static record seen;

static void enter(void *user, const rfi_stretch *part)
{
    record *r = user;
    atomic_fetch_add(&r->entered, 1);
    assert_true(part->m0 % r->grain == 0 || part->m0 == r->from);
    assert_true(part->m1 % r->grain == 0 || part->m1 == lengths[part->segment] || r->from);
    r->next[part->worker] = part->m0;
}

static reef_status visit(void *user, const rfi_stretch *at, reef_error *error)
{
    record *r = user;
    atomic_fetch_add(&r->stretches, 1);
    assert_int_equal(at->m0, r->next[at->worker]);
    assert_true(at->m0 < at->m1 && (r->step == 0 || at->m1 - at->m0 <= r->step));
    for (ptrdiff_t m = at->m0; m < at->m1; m++) {
        atomic_fetch_add(&r->visits[at->segment][m], 1);
    }
    r->next[at->worker] = at->m1;
    bool here = at->segment == 1 && at->m0 <= 500 && at->m1 > 500;
    atomic_store(&r->enough, atomic_load(&r->enough) || here);
    return here && r->fails ? rfi_fail(error, r->fails, "coordinate 500") : REEF_OK;
}

static bool enough(void *user)
{
    return atomic_load(&((record *)user)->enough);
}

static rfi_walk walk_of(reef_context *context, ptrdiff_t *parts, ptrdiff_t grain, ptrdiff_t step)
{
    memset(&seen, 0, sizeof seen);
    seen.grain = grain;
    seen.step = step;
    rfi_walk_parts(lengths, SEGMENTS, grain, parts);
    return (rfi_walk){.context = context,
                      .workers = WORKERS,
                      .segments = SEGMENTS,
                      .lengths = lengths,
                      .parts = parts,
                      .grain = grain,
                      .step = step,
                      .to = PTRDIFF_MAX,
                      .user = &seen,
                      .enter = enter,
                      .visit = visit};
}

static void check_all(ptrdiff_t segment, ptrdiff_t from, ptrdiff_t to)
{
    for (ptrdiff_t m = 0; m < lengths[segment]; m++) {
        assert_int_equal(atomic_load(&seen.visits[segment][m]), m >= from && m < to);
    }
}

static void everything_once(void **state)
{
    static const ptrdiff_t grains[] = {1, 64, 100, 1000, PTRDIFF_MAX};
    static const ptrdiff_t steps[] = {0, 1, 7, 64, 5000};
    ptrdiff_t parts[SEGMENTS + 1];
    reef_context *context = *state;
    for (ptrdiff_t i = 0; i < COUNT(grains) * COUNT(steps); i++) {
        rfi_walk walk = walk_of(context, parts, grains[i / COUNT(steps)], steps[i % COUNT(steps)]);
        assert_int_equal(rfi_walk_run(&walk, NULL), REEF_OK);
        assert_int_equal(atomic_load(&seen.entered), parts[SEGMENTS]);
        for (ptrdiff_t s = 0; s < SEGMENTS; s++) {
            check_all(s, 0, lengths[s]);
        }
    }
}

/* A slice that begins and ends within parts, and an empty one. */
static void slices(void **state)
{
    ptrdiff_t parts[SEGMENTS + 1];
    static const ptrdiff_t ends[][2] = {{0, 1000}, {30, 31}, {99, 100}, {150, 905}, {200, 300}, {0, 0}, {1000, 1000}};
    for (ptrdiff_t i = 0; i < COUNT(ends); i++) {
        rfi_walk walk = walk_of(*state, parts, 100, 0);
        rfi_walk_parts(lengths + 1, 1, 100, parts);
        walk.segments = 1;
        walk.lengths = lengths + 1;
        walk.from = ends[i][0];
        walk.to = ends[i][1];
        walk.enter = NULL;
        walk.workers = 1;
        seen.next[0] = walk.from;
        assert_int_equal(rfi_walk_run(&walk, NULL), REEF_OK);
        for (ptrdiff_t m = 0; m < lengths[1]; m++) {
            assert_int_equal(atomic_load(&seen.visits[0][m]), m >= walk.from && m < walk.to);
        }
    }
}

/* One worker visits in order: after the failure nothing more, unless it can be borne. */
static void failures(void **state)
{
    ptrdiff_t parts[SEGMENTS + 1];
    for (int tolerated = 0; tolerated < 2; tolerated++) {
        reef_error error = {0};
        rfi_walk walk = walk_of(*state, parts, 100, 10);
        walk.workers = 1;
        walk.tolerated = tolerated ? REEF_E_FAR : REEF_OK;
        seen.fails = REEF_E_FAR;
        assert_int_equal(rfi_walk_run(&walk, &error), REEF_E_FAR);
        assert_string_equal(error.text, "coordinate 500");
        check_all(1, 0, tolerated ? 1000 : 510);
        check_all(3, 0, tolerated ? lengths[3] : 0);
    }
}

static void ends_when_it_is_enough(void **state)
{
    ptrdiff_t parts[SEGMENTS + 1];
    rfi_walk walk = walk_of(*state, parts, 100, 10);
    walk.workers = 1;
    walk.over = enough;
    assert_int_equal(rfi_walk_run(&walk, NULL), REEF_OK);
    check_all(1, 0, 510);
    check_all(2, 0, 0);
}

static int make_context(void **state)
{
    reef_context *context = NULL;
    int failed = reef_context_create(&context, NULL, NULL) || reef_context_set_threads(context, WORKERS, NULL);
    *state = context;
    return failed;
}

static int drop_context(void **state)
{
    reef_context *context = *state;
    reef_context_destroy(&context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_once),
        cmocka_unit_test(slices),
        cmocka_unit_test(failures),
        cmocka_unit_test(ends_when_it_is_enough),
    };
    return cmocka_run_group_tests(tests, make_context, drop_context);
}
