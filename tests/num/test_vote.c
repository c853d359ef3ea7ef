/* Votes on whole numbers: majorities by weight, rows without a vote, and who decides where there is no majority. */
#include "num/vote.h"
#include "support/check.h"

#include <stdint.h>

enum { ROWS = 5, COUNT_OF_ELEMENTS = 4 };

/* Element 0: all agree; 1: three of five; 2: no majority; 3: all differ. */
static const int16_t ballots[ROWS][COUNT_OF_ELEMENTS] = {
    {7, 1, 5, 10}, {7, 2, 5, 20}, {7, 1, 6, 30}, {7, 1, 6, 40}, {7, 3, 9, 50}};

static rfi_turnout run(const double *weights, const bool *votes, ptrdiff_t arbiter, bool decides, int16_t *out)
{
    const void *rows[ROWS];
    rfi_vote vote = {.rows = ROWS,
                     .ballots = rows,
                     .weights = weights,
                     .arbiter = arbiter,
                     .arbiter_decides = decides,
                     .width = sizeof ballots[0][0]};
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        rows[l] = votes[l] ? ballots[l] : NULL;
        vote.total += votes[l] ? weights[l] : 0;
    }
    return rfi_vote_decide(&vote, COUNT_OF_ELEMENTS, out);
}

static void check(const int16_t *out, int first, int second, int third, int fourth)
{
    const int wanted[COUNT_OF_ELEMENTS] = {first, second, third, fourth};
    for (ptrdiff_t i = 0; i < COUNT_OF_ELEMENTS; i++) {
        CHECK(out[i] == wanted[i], "element %td is %d instead of %d", i, out[i], wanted[i]);
    }
}

static const bool everybody[ROWS] = {true, true, true, true, true};

static void equal_weights(void **state)
{
    static const double weights[ROWS] = {1, 1, 1, 1, 1};
    int16_t out[COUNT_OF_ELEMENTS];
    (void)state;
    rfi_turnout turnout = run(weights, everybody, 4, false, out);
    check(out, 7, 1, 9, 50);
    assert_int_equal(turnout.disputed, 3);
    assert_int_equal(turnout.undecided, 2);
    turnout = run(weights, everybody, 1, true, out); /* the arbiter alone */
    check(out, 7, 2, 5, 20);
    assert_int_equal(turnout.disputed, 3);
    assert_int_equal(turnout.undecided, 0);
}

static void weights_count(void **state)
{
    static const double weights[ROWS] = {1, 9, 1, 1, 1};
    int16_t out[COUNT_OF_ELEMENTS];
    (void)state;
    rfi_turnout turnout = run(weights, everybody, 0, false, out);
    check(out, 7, 2, 5, 20);
    assert_int_equal(turnout.undecided, 0);
}

static void rows_without_a_vote(void **state)
{
    static const double weights[ROWS] = {1, 1, 1, 1, 1};
    static const bool votes[ROWS] = {false, true, true, true, false};
    int16_t out[COUNT_OF_ELEMENTS];
    (void)state;
    rfi_turnout turnout = run(weights, votes, 1, false, out);
    check(out, 7, 1, 6, 20);
    assert_int_equal(turnout.disputed, 3);
    assert_int_equal(turnout.undecided, 1);
}

static void half_is_no_majority(void **state)
{
    static const double weights[ROWS] = {1, 1, 1, 1, 1};
    static const bool votes[ROWS] = {true, true, true, true, false};
    int16_t out[COUNT_OF_ELEMENTS];
    (void)state;
    (void)run(weights, votes, 3, false, out);
    check(out, 7, 1, 6, 40);
    (void)run(weights, votes, 0, false, out);
    check(out, 7, 1, 5, 10);
}

static void who_decides(void **state)
{
    (void)state;
    assert_true(rfi_vote_prefers(1, 1, 0.5, 9));
    assert_false(rfi_vote_prefers(0.5, 9, 1, 1));
    assert_true(rfi_vote_prefers(1, 2, 1, 1));
    assert_false(rfi_vote_prefers(1, 1, 1, 1)); /* the first stays */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_weights),       cmocka_unit_test(weights_count), cmocka_unit_test(rows_without_a_vote),
        cmocka_unit_test(half_is_no_majority), cmocka_unit_test(who_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
