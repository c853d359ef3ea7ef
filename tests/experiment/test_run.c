/* Running: the same bytes for any number of threads and after a stop, values that the theory predicts, files that are refused. */
#include "base/hash.h"
#include "experiment/run/outcome.h"
#include "io/file.h"
#include "support/alloc.h"
#include "support/check.h"
#include "support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lanes (mean, ref), single repetitions (vref), trust and oracles; 21 runs do not fill the last block. */
static const char grid[] = "agents: 8\ngraph: complete\nproblem: {kind: lms, dimension: 4}\n"
                           "strategy: diffusion:mu=0.05\nrule: [mean, ref, vref]\nmalicious: [0, 2]\n"
                           "attack: additive:delta=10\nrounds: 60\nrepetitions: 21\nevery: 7\nsteady: 20\n"
                           "metrics: [msd, excess, consensus]\noracle: true\n";

typedef struct world {
    scratch scratch;
    reef_context *context;
    reef_experiment *experiment;
} world;

static void open_world(world *w, const char *text, ptrdiff_t threads)
{
    reef_error error = {REEF_OK, ""};
    *w = (world){0};
    scratch_open(&w->scratch);
    assert_int_equal(reef_context_create(&w->context, NULL, NULL), REEF_OK);
    assert_int_equal(reef_context_set_threads(w->context, threads, NULL), REEF_OK);
    reef_status status =
        reef_experiment_read(w->context, &w->experiment, text, strlen(text), "f.yaml", NULL, 0, &error);
    CHECK(status == REEF_OK, "%s", error.text);
}

static void close_world(world *w)
{
    char command[2 * SCRATCH_PATH];
    reef_experiment_destroy(&w->experiment);
    reef_context_destroy(&w->context);
    (void)snprintf(command, sizeof command, "cd '%s' && rm -rf cells figures arrays models", w->scratch.folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a folder of our own */
    scratch_close(&w->scratch);
}

static reef_experiment_outcome run_in(const world *w, const reef_experiment_options *more)
{
    reef_experiment_options options = more ? *more : (reef_experiment_options){0};
    reef_experiment_outcome outcome = {0};
    reef_error error = {REEF_OK, ""};
    options.folder = w->scratch.folder;
    CHECK(reef_experiment_run(w->experiment, &options, &outcome, &error) == REEF_OK, "%s", error.text);
    return outcome;
}

static rfi_file read_result(const world *w, const char *name)
{
    char path[SCRATCH_PATH];
    rfi_file file = {0};
    reef_error error = {REEF_OK, ""};
    reef_status status = rfi_file_read(NULL, scratch_path(&w->scratch, name, path), 1 << 24, &file, &error);
    CHECK(status == REEF_OK, "%s", error.text);
    return file;
}

static void check_same(const world *a, const world *b, const char *name)
{
    rfi_file first = read_result(a, name);
    rfi_file second = read_result(b, name);
    CHECK(first.size == second.size && memcmp(first.bytes, second.bytes, first.size) == 0, "%s differs", name);
    rfi_file_free(NULL, &first);
    rfi_file_free(NULL, &second);
}

static void threads_change_no_byte(void **state)
{
    (void)state;
    static const ptrdiff_t threads[] = {2, 7};
    world one;
    open_world(&one, grid, 1);
    (void)run_in(&one, NULL);
    for (ptrdiff_t i = 0; i < COUNT(threads); i++) {
        world many;
        open_world(&many, grid, threads[i]);
        (void)run_in(&many, NULL);
        check_same(&one, &many, "summary.csv");
        check_same(&one, &many, "curves.csv");
        close_world(&many);
    }
    close_world(&one);
}

/* Stops after some items. */
typedef struct stopper {
    volatile sig_atomic_t stop;
    ptrdiff_t items;
} stopper;

static void count_down(void *user, const reef_progress *progress)
{
    stopper *s = user;
    s->stop = progress->items_done >= s->items;
}

static void resume_gives_the_same_bytes(void **state)
{
    (void)state;
    static const ptrdiff_t stops[] = {1, 10, 30};
    world whole;
    open_world(&whole, grid, 1);
    (void)run_in(&whole, NULL);
    for (ptrdiff_t i = 0; i < COUNT(stops); i++) {
        world parts;
        stopper s = {0, stops[i]};
        open_world(&parts, grid, 1);
        reef_experiment_outcome first =
            run_in(&parts, &(reef_experiment_options){.progress = count_down, .user = &s, .stop = &s.stop});
        assert_true(first.stopped);
        assert_int_equal(scratch_count(&parts.scratch),
                         3); /* configuration, lock, the folder of the cells; no tables */
        reef_experiment_outcome second = run_in(&parts, &(reef_experiment_options){.resume = true});
        assert_false(second.stopped);
        check_same(&whole, &parts, "summary.csv");
        check_same(&whole, &parts, "curves.csv");
        reef_experiment_outcome third = run_in(&parts, &(reef_experiment_options){.resume = true});
        assert_int_equal(third.reused, 6);
        check_same(&whole, &parts, "summary.csv");
        close_world(&parts);
    }
    close_world(&whole);
}

/* Trust, arrays and models too are the same bytes after a stop, and cells without a model are run again for it. */
static void all_results_survive_a_stop(void **state)
{
    (void)state;
    static const char *const names[] = {"trust.csv",         "summary.csv",
                                        "curves.csv",        "arrays/msd.npy",
                                        "arrays/msd_se.npy", "arrays/round.npy",
                                        "arrays/trust.npy",  "models/cell-0.safetensors",
                                        "check.txt",         "models/cell-3.safetensors"};
    static const char text[] = "agents: 8\ngraph: erdos_renyi:p=0.6\nproblem: {kind: lms, dimension: 4}\n"
                               "strategy: diffusion:mu=0.05\nrule: [mean, ref]\nmalicious: [0, 2]\ntrust: true\n"
                               "attack: additive:delta=10\nrounds: 30\nrepetitions: 3\n";
    const reef_experiment_options all = {.arrays = true, .models = true};
    world whole;
    world parts;
    open_world(&whole, text, 2);
    (void)run_in(&whole, &all);
    open_world(&parts, text, 1);
    stopper s = {0, 4};
    reef_experiment_options first = all;
    first.progress = count_down;
    first.user = &s;
    first.stop = &s.stop;
    assert_true(run_in(&parts, &first).stopped);
    reef_experiment_outcome second = run_in(&parts, &(reef_experiment_options){.resume = true});
    assert_true(second.reused > 0);
    reef_experiment_outcome third =
        run_in(&parts, &(reef_experiment_options){.resume = true, .arrays = true, .models = true});
    assert_int_equal(third.reused, second.reused);
    for (ptrdiff_t i = 0; i < COUNT(names); i++) {
        check_same(&whole, &parts, names[i]);
    }
    close_world(&whole);
    close_world(&parts);
}

/* REF trusts two far liars not at all; the mean everybody alike. Cells in order: mean, then ref; 8 agents each. */
static void trust_is_that_of_the_senders(void **state)
{
    (void)state;
    static const char text[] = "agents: 8\ngraph: complete\nproblem: {kind: lms, dimension: 4}\n"
                               "strategy: diffusion:mu=0.05\nrule: [mean, ref]\nmalicious: 2\ntrust: true\n"
                               "attack: additive:delta=10\nrounds: 30\nrepetitions: 3\n";
    world w;
    open_world(&w, text, 1);
    (void)run_in(&w, NULL);
    rfi_file file = read_result(&w, "trust.csv");
    const char *at = strchr((char *)file.bytes, '\n') + 1;
    for (int row = 0; row < 16; row++, at = strchr(at, '\n') + 1) {
        char *rest = strchr(strchr(at, ',') + 1, ','); /* behind cell and rule */
        long agent = strtol(rest + 1, &rest, 10);
        long malicious = strtol(rest + 1, &rest, 10);
        double trust = strtod(rest + 1, &rest);
        assert_int_equal(*rest, ',');
        assert_int_equal(agent, row % 8);
        double expected = row < 8 ? 1 : malicious ? 0 : 8.0 / 6;
        CHECK_CLOSE(trust, expected, row < 8 ? 1e-12 : malicious ? 0 : 0.3, "trust");
    }
    rfi_file_free(NULL, &file);
    close_world(&w);
}

/* A rule that remembers says why: who copies an honest agent has one voice together with it, who is honest needs no word. */
static void trust_says_why(void **state)
{
    static const char text[] = "agents: 12\ngraph: complete\nproblem: {kind: lms, dimension: 10}\n"
                               "strategy: diffusion:mu=0.02,batch=16\nrule: mref\nmalicious: 3\ntrust: true\n"
                               "attack: [mimic, additive:delta=10]\nrounds: 200\nsteady: 50\nrepetitions: 2\n";
    static const char *const said[] = {"copies leaves 0.2", "gate leaves 0.00"};
    world w;
    (void)state;
    open_world(&w, text, 1);
    (void)run_in(&w, NULL);
    rfi_file file = read_result(&w, "trust.csv");
    const char *at = strchr((char *)file.bytes, '\n') + 1;
    int silent = 0;
    for (int row = 0; row < 24; row++, at = strchr(at, '\n') + 1) {
        char line[200] = "";
        memcpy(line, at, (size_t)(strchr(at, '\n') - at));
        const char *why = strrchr(line, ',') + 1;
        char *rest = strchr(strchr(line, ',') + 1, ','); /* behind cell and attack */
        (void)strtol(rest + 1, &rest, 10);
        bool malicious = strtol(rest + 1, NULL, 10) == 1;
        silent += why[0] == '\0';
        CHECK(!malicious || strncmp(why, said[row / 12], strlen(said[row / 12])) == 0, "%s", line);
    }
    CHECK(silent >= 14 && silent <= 12 - 4 + 12 - 3, "%d of 24 are believed",
          silent); /* in the first cell one is copied */
    rfi_file_free(NULL, &file);
    close_world(&w);
}

static void changed_experiments_reuse_nothing(void **state)
{
    (void)state;
    static const char *const changes[] = {"seed=2", "rounds=61", "problem.noise=0.02", "repetitions=22", "steady=21"};
    world w;
    open_world(&w, grid, 1);
    (void)run_in(&w, NULL);
    reef_experiment *original = w.experiment;
    for (ptrdiff_t i = 0; i < COUNT(changes); i++) {
        w.experiment = NULL;
        assert_int_equal(
            reef_experiment_read(w.context, &w.experiment, grid, strlen(grid), "f.yaml", &changes[i], 1, NULL),
            REEF_OK);
        reef_error error;
        const reef_experiment_options plain = {.folder = w.scratch.folder, .resume = true};
        assert_int_equal(reef_experiment_run(w.experiment, &plain, NULL, &error), REEF_E_EXISTS);
        reef_experiment_outcome outcome = run_in(&w, &(reef_experiment_options){.resume = true, .force = true});
        CHECK(outcome.reused == 0, "%s reused %td cells", changes[i], outcome.reused);
        reef_experiment_destroy(&w.experiment);
    }
    w.experiment = original;
    close_world(&w);
}

/* A file of a cell, cut or altered anywhere, is not taken. */
static void damaged_cells_are_run_again(void **state)
{
    (void)state;
    static const bool wanted[RFI_METRICS] = {[RFI_MSD] = true};
    const rfi_cell_numbers numbers = {.rounds = 4, .every = 2, .steady = 1};
    scratch s;
    rfi_outcome outcome;
    rfi_outcome read;
    char path[SCRATCH_PATH];
    scratch_open(&s);
    assert_true(rfi_outcome_init(&outcome, NULL, &numbers, wanted, 0, 0));
    assert_true(rfi_outcome_init(&read, NULL, &numbers, wanted, 0, 0));
    outcome.repetitions = 3;
    outcome.moments[1] = (rfi_moments){0.1, INFINITY};
    outcome.moments[2] = (rfi_moments){-1e-300, NAN};
    assert_int_equal(rfi_store_write(NULL, s.folder, "some key\n", &outcome, NULL), REEF_OK);
    assert_int_equal(rfi_store_read(NULL, s.folder, "some key\n", &read), RFI_STORED);
    assert_int_equal(read.repetitions, 3);
    assert_true(read.moments[1].mean == 0.1 && isinf(read.moments[1].squares));
    assert_true(read.moments[2].mean == -1e-300 && isnan(read.moments[2].squares));
    assert_false(read.has_model);
    assert_int_equal(rfi_store_read(NULL, s.folder, "other key\n", &read), RFI_STORED_NOT);
    /* the name is a hash of the key */
    uint64_t hash = rfi_hash_bytes(RFI_HASH_START, "some key\n", strlen("some key\n"));
    char name[40];
    (void)snprintf(name, sizeof name, "%016llx.txt", (unsigned long long)hash);
    rfi_file file = {0};
    assert_int_equal(rfi_file_read(NULL, scratch_path(&s, name, path), 1 << 20, &file, NULL), REEF_OK);
    for (size_t size = 0; size < file.size; size++) {
        (void)scratch_file(&s, name, file.bytes, size, path);
        CHECK(rfi_store_read(NULL, s.folder, "some key\n", &read) == RFI_STORED_DAMAGED, "%zu bytes of %zu were taken",
              size, file.size);
    }
    for (size_t i = 0; i < 8 * file.size; i++) {
        file.bytes[i / 8] ^= (unsigned char)(1U << i % 8);
        (void)scratch_file(&s, name, file.bytes, file.size, path);
        CHECK(rfi_store_read(NULL, s.folder, "some key\n", &read) == RFI_STORED_DAMAGED, "bit %zu altered, and taken",
              i);
        file.bytes[i / 8] ^= (unsigned char)(1U << i % 8);
    }
    static const char earlier[] = "reef cell, format 1, version 0.1.0\n";
    (void)scratch_file(&s, name, earlier, sizeof earlier - 1, path);
    assert_int_equal(rfi_store_read(NULL, s.folder, "some key\n", &read), RFI_STORED_NOT);
    rfi_file_free(NULL, &file);
    rfi_outcome_fini(&outcome, NULL);
    rfi_outcome_fini(&read, NULL);
    scratch_close(&s);
}

static void blocks_merge_to_the_statistics_of_all(void **state)
{
    (void)state;
    static const double x[] = {1, 4, -2, 7.5, 3, 3, 0.25, 9};
    static const bool wanted[RFI_METRICS] = {[RFI_MSD] = true};
    const rfi_cell_numbers numbers = {.rounds = 1, .every = 1, .steady = 1};
    const rfi_moments all = rfi_moments_of(x, COUNT(x));
    double squares = 0;
    for (ptrdiff_t i = 0; i < COUNT(x); i++) {
        squares += (x[i] - 25.75 / 8) * (x[i] - 25.75 / 8);
    }
    CHECK_CLOSE(all.mean, 25.75 / 8, 1e-15, "mean");
    CHECK_CLOSE(all.squares, squares, 1e-12, "squares");
    for (ptrdiff_t cut = 1; cut < COUNT(x); cut++) {
        rfi_outcome sum;
        rfi_outcome part;
        assert_true(rfi_outcome_init(&sum, NULL, &numbers, wanted, 0, 0));
        assert_true(rfi_outcome_init(&part, NULL, &numbers, wanted, 0, 0));
        for (int side = 0; side < 2; side++) {
            part.repetitions = side ? COUNT(x) - cut : cut;
            part.moments[0] = rfi_moments_of(side ? x + cut : x, part.repetitions);
            rfi_outcome_merge(&sum, &part);
        }
        assert_int_equal(sum.repetitions, COUNT(x));
        CHECK_CLOSE(sum.moments[0].mean, all.mean, 1e-14, "merged mean");
        CHECK_CLOSE(sum.moments[0].squares, all.squares, 1e-12, "merged squares");
        CHECK_CLOSE(rfi_outcome_error(&sum, sum.moments[0]), sqrt(squares / 7 / 8), 1e-12, "standard error");
        rfi_outcome_fini(&sum, NULL);
        rfi_outcome_fini(&part, NULL);
    }
}

/* The number in column `name` of a row of summary.csv. */
static double summary_number(const world *w, const char *name, int row)
{
    rfi_file file = read_result(w, "summary.csv");
    char *text = (char *)file.bytes;
    int column = 0;
    const char *at = strstr(text, name);
    assert_non_null(at);
    for (const char *c = text; c < at; c++) {
        column += *c == ',';
    }
    for (char *c = strchr(text, '\n'); row > 0; row--) {
        text = c + 1;
        c = strchr(text, '\n');
    }
    for (; column > 0; column--) {
        text = strchr(text, ',') + 1;
    }
    double number = strtod(text, NULL);
    rfi_file_free(NULL, &file);
    return number;
}

/* Section 4 without liars and with two: the mean is at its theory, the oracle too, and REF near it. */
static void the_mean_is_where_theory_says(void **state)
{
    (void)state;
    static const char text[] = "agents: 32\ngraph: complete\nproblem: lms\nstrategy: diffusion:mu=0.01\n"
                               "rule: [mean, ref]\nmalicious: [0, 2]\nattack: additive:delta=1000\n"
                               "rounds: 2000\nsteady: 800\nevery: 20\nrepetitions: 48\noracle: true\n";
    world w;
    open_world(&w, text, 0);
    (void)run_in(&w, NULL);
    CHECK_CLOSE(summary_number(&w, "theory_db", 1), -48.03, 0.01, "theory");
    CHECK_CLOSE(summary_number(&w, "msd_db", 1), -48.03, 0.5, "mean without liars");
    CHECK_CLOSE(summary_number(&w, "oracle_db", 2), -47.75, 0.5, "oracle with two liars");
    CHECK_CLOSE(summary_number(&w, "msd_db", 2), 85.9, 0.2, "mean with two liars");
    CHECK_CLOSE(summary_number(&w, "msd_db", 4), -47.7, 0.8, "ref with two liars");
    close_world(&w);
}

static void failing_allocations_are_statuses(void **state)
{
    (void)state;
    static const char text[] = "agents: 4\ngraph: complete\nproblem: {kind: lms, dimension: 2}\nrule: mean\n"
                               "rounds: 4\nrepetitions: 3\noracle: true\nmalicious: 1\nattack: additive\n";
    static const char *const overrides[] = {"strategy.mu=0.1"};
    bool done = false;
    for (int at = 0; !done; at++) {
        alloc_log log;
        reef_context *context = alloc_context(&log, 1);
        reef_experiment *e = NULL;
        log.fail_at = at;
        reef_status status = reef_experiment_read(context, &e, text, strlen(text), "f.yaml", overrides, 1, NULL);
        status = status == REEF_OK ? reef_experiment_run(e, NULL, NULL, NULL) : status;
        done = status == REEF_OK && log.total <= at;
        log.fail_at = -1;
        reef_experiment_destroy(&e);
        reef_context_destroy(&context);
        CHECK(log.live == 0 && !log.broken, "allocation %d leaks", at);
        CHECK(at < 5000, "it never ends");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_change_no_byte),
        cmocka_unit_test(resume_gives_the_same_bytes),
        cmocka_unit_test(all_results_survive_a_stop),
        cmocka_unit_test(trust_is_that_of_the_senders),
        cmocka_unit_test(trust_says_why),
        cmocka_unit_test(changed_experiments_reuse_nothing),
        cmocka_unit_test(damaged_cells_are_run_again),
        cmocka_unit_test(blocks_merge_to_the_statistics_of_all),
        cmocka_unit_test(the_mean_is_where_theory_says),
        cmocka_unit_test(failing_allocations_are_statuses),
    };
    return rfi_yaml_available() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
