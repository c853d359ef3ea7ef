/* A flood of ids must not make aggregations slow: new ones in every round beyond the limit of senders, and ids chosen to stand in a row in a table. */
#include "agg/senders.h"
#include "support/check.h"
#include "support/trial.h"

#include <stdlib.h>
#include <time.h>

enum { ROWS = 1000, NUMBERS = 2, LIMIT = 32000, TIMES = 4 };

typedef struct flood {
    reef_agg *agg;
    reef_plan *plan;
    reef_state *memory;
    double x[ROWS][NUMBERS];
    const void *rows[ROWS];
    int64_t ids[ROWS];
} flood;

static void open_flood(flood *f)
{
    const ptrdiff_t length = NUMBERS;
    const reef_shape shape = {.rows = ROWS, .segments = 1, .lengths = &length, .dtype = REEF_F64};
    *f = (flood){.agg = make_agg("mref:horizon=16,without=together")};
    assert_int_equal(reef_plan_create(&f->plan, f->agg, &shape, NULL), REEF_OK);
    assert_int_equal(reef_state_create(&f->memory, f->agg, &shape, NULL), REEF_OK);
    reef_state_set_limit(f->memory, LIMIT);
    for (int l = 0; l < ROWS; l++) {
        f->rows[l] = f->x[l];
        for (int i = 0; i < NUMBERS; i++) {
            f->x[l][i] = (double)(l * (7 + 6 * i) % 101);
        }
    }
}

static void close_flood(flood *f)
{
    reef_state_destroy(&f->memory);
    reef_plan_destroy(&f->plan);
    reef_agg_destroy(&f->agg);
}

/* Processor time of some rounds with ids from `first` on, `step` more in every round. */
static double rounds(flood *f, int64_t first, int64_t step, int count)
{
    double out[NUMBERS];
    const clock_t begin = clock();
    for (int round = 0; round < count; round++) {
        for (int l = 0; l < ROWS; l++) {
            f->ids[l] = first + round * step + l;
        }
        const reef_input input = {.rows = f->rows, .ids = f->ids, .state = f->memory};
        assert_int_equal(reef_plan_apply(f->plan, &input, out, NULL, NULL), REEF_OK);
    }
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* Each new id looked through all senders for one to replace: as long as 60 rounds of known ids. */
static void new_ids_beyond_the_limit(void **state)
{
    flood f;
    (void)state;
    open_flood(&f);
    (void)rounds(&f, 0, ROWS, LIMIT / ROWS);
    assert_int_equal(reef_state_senders(f.memory), LIMIT);
    double fresh = rounds(&f, LIMIT, ROWS, TIMES);
    double known = rounds(&f, LIMIT + (TIMES - 1) * ROWS, 0, TIMES);
    assert_int_equal(reef_state_senders(f.memory), LIMIT);
    CHECK(fresh < 12 * known + 0.05, "%g s with new ids, %g s with known ones", fresh, known);
    close_flood(&f);
}

/* Ids whose products with the golden ratio, which was all that the hash made of them, differ in the upper bits only. */
static int64_t colliding(uint64_t number)
{
    return (int64_t)((number << 47) * UINT64_C(0xF1DE83E19937733D));
}

static void chosen_ids_do_not_collide(void **state)
{
    enum { COUNT_OF = 20000 };
    static rfi_sender who[COUNT_OF];
    const ptrdiff_t size = rfi_id_table_size(COUNT_OF);
    rfi_id_table table = {.places = malloc((size_t)size * sizeof(int32_t)), .size = size, .key = 5};
    (void)state;
    assert_non_null(table.places);
    rfi_id_table_clear(&table);
    for (ptrdiff_t i = 0; i < COUNT_OF; i++) {
        who[i].id = colliding((uint64_t)i);
        assert_true(rfi_id_enter(&table, who, i));
    }
    ptrdiff_t run = 0;
    ptrdiff_t longest = 0;
    for (ptrdiff_t at = 0; at < size; at++) {
        run = table.places[at] >= 0 ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    CHECK(longest < 200, "%td ids stand in a row", longest);
    free(table.places);
}

/* Nor is it known which ones would: the table of another state has them elsewhere. */
static void tables_differ(void **state)
{
    int32_t places[2][64];
    rfi_sender who[16];
    (void)state;
    for (uint64_t key = 0; key < 2; key++) {
        rfi_id_table table = {.places = places[key], .size = 64, .key = key};
        rfi_id_table_clear(&table);
        for (ptrdiff_t i = 0; i < 16; i++) {
            who[i].id = i;
            assert_true(rfi_id_enter(&table, who, i));
            assert_int_equal(rfi_id_find(&table, who, i), i);
        }
    }
    assert_memory_not_equal(places[0], places[1], sizeof places[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(new_ids_beyond_the_limit),
                                       cmocka_unit_test(chosen_ids_do_not_collide), cmocka_unit_test(tables_differ)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
