/* Figures: from results made up here, what the scripts draw and the data they draw it from. */
#include "experiment/present/figures.h"
#include "io/file.h"
#include "support/check.h"
#include "support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS_MAX = 16, REPETITIONS = 4 };

/* An experiment, results of all its cells, and the figures made of them. */
typedef struct exhibit {
    scratch scratch;
    reef_experiment *experiment;
    rfi_outcome cells[CELLS_MAX], oracles[CELLS_MAX];
    const rfi_outcome *cell_list[CELLS_MAX], *oracle_list[CELLS_MAX];
    rfi_file data, script;
} exhibit;

static void open_exhibit(exhibit *x, const char *text, rfi_metric metric, ptrdiff_t agents)
{
    static const rfi_cell_numbers numbers = {.rounds = 4, .every = 2}; /* points at rounds 0, 2 and 4 */
    bool wanted[RFI_METRICS] = {false};
    reef_error error = {REEF_OK, ""};
    *x = (exhibit){0};
    scratch_open(&x->scratch);
    reef_status status = reef_experiment_read(NULL, &x->experiment, text, strlen(text), "f.yaml", NULL, 0, &error);
    CHECK(status == REEF_OK, "%s", error.text);
    assert_true(x->experiment->cells <= CELLS_MAX);
    wanted[metric] = true;
    for (ptrdiff_t i = 0; i < x->experiment->cells; i++) {
        assert_true(rfi_outcome_init(&x->cells[i], NULL, &numbers, wanted, agents, 1));
        assert_int_equal(x->cells[i].points, 3);
        x->cells[i].repetitions = REPETITIONS;
        x->cell_list[i] = &x->cells[i];
    }
}

/* A mean and its standard error, at a point of the curve (3: the steady state). */
static void put(rfi_outcome *o, ptrdiff_t point, double mean, double error)
{
    o->moments[point] = (rfi_moments){mean, error * error * REPETITIONS * (REPETITIONS - 1)};
    assert_true(fabs(rfi_outcome_error(o, o->moments[point]) - error) <= 1e-12 * mean);
}

/* -10 dB in cell 0, -20 in cell 1, ...; 10 less with every point. */
static void put_powers(exhibit *x)
{
    for (ptrdiff_t i = 0; i < x->experiment->cells; i++) {
        for (ptrdiff_t p = 0; p <= x->cells[i].points; p++) {
            double mean = pow(10, (double)(-i - 1 - p));
            put(&x->cells[i], p, mean, mean / 4);
        }
    }
}

static void draw(exhibit *x)
{
    const rfi_results results = {.experiment = x->experiment, .cells = x->cell_list, .oracles = x->oracle_list};
    reef_error error = {REEF_OK, ""};
    CHECK(rfi_figures_write(&results, x->scratch.folder, &error) == REEF_OK, "%s", error.text);
}

static bool exists(const exhibit *x, const char *name)
{
    char path[SCRATCH_PATH];
    rfi_file file = {0};
    bool found = rfi_file_read(NULL, scratch_path(&x->scratch, name, path), 1 << 24, &file, NULL) == REEF_OK;
    rfi_file_free(NULL, &file);
    return found;
}

/* Files end with a zero byte behind their size. */
static void look_at(exhibit *x, const char *name)
{
    char file[64];
    char path[SCRATCH_PATH];
    rfi_file_free(NULL, &x->data);
    rfi_file_free(NULL, &x->script);
    (void)snprintf(file, sizeof file, "figures/%s.dat", name);
    assert_int_equal(rfi_file_read(NULL, scratch_path(&x->scratch, file, path), 1 << 24, &x->data, NULL), REEF_OK);
    (void)snprintf(file, sizeof file, "figures/%s.gp", name);
    assert_int_equal(rfi_file_read(NULL, scratch_path(&x->scratch, file, path), 1 << 24, &x->script, NULL), REEF_OK);
}

static void close_exhibit(exhibit *x)
{
    char command[2 * SCRATCH_PATH];
    for (ptrdiff_t i = 0; i < x->experiment->cells; i++) {
        rfi_outcome_fini(&x->cells[i], NULL);
        rfi_outcome_fini(&x->oracles[i], NULL);
    }
    rfi_file_free(NULL, &x->data);
    rfi_file_free(NULL, &x->script);
    reef_experiment_destroy(&x->experiment);
    (void)snprintf(command, sizeof command, "rm -rf '%s/figures'", x->scratch.folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a folder of our own */
    scratch_close(&x->scratch);
}

/* ---- reading what was written ---- */

static bool has(const rfi_file *file, const char *words)
{
    size_t length = strlen(words);
    const char *at = (const char *)file->bytes;
    for (size_t i = 0; i + length <= file->size; i++) {
        if (memcmp(at + i, words, length) == 0) {
            return true;
        }
    }
    return false;
}

#define DRAWS(x, words) CHECK(has(&(x)->script, words), "the script does not draw \"%s\"", words)

/* Rows of gnuplot's block number `block`, as `index` counts them; -1: there is no such block. *line: the first row. */
static ptrdiff_t find_block(const exhibit *x, ptrdiff_t block, const char **line)
{
    const char *at = (const char *)x->data.bytes;
    const char *end = at + x->data.size;
    ptrdiff_t rows = 0;
    ptrdiff_t blanks = 0;
    *line = NULL;
    for (; at < end; at = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1) {
        if (*at == '#') {
            continue;
        }
        blanks = *at == '\n' ? blanks + 1 : 0;
        if (blanks == 2) {
            block--;
        } else if (blanks == 0 && block == 0) {
            *line = *line ? *line : at;
            rows++;
        }
    }
    return *line ? rows : -1;
}

static double number(const exhibit *x, ptrdiff_t block, ptrdiff_t row, ptrdiff_t column)
{
    const char *at = NULL;
    char *rest = NULL;
    ptrdiff_t rows = find_block(x, block, &at);
    CHECK(row < rows, "block %td has %td rows", block, rows);
    for (; row > 0; row--) {
        at = strchr(at, '\n') + 1;
    }
    double value = strtod(at, &rest);
    for (; column > 0; column--) {
        assert_true(*rest == ' ');
        value = strtod(rest, &rest);
    }
    return value;
}

static ptrdiff_t rows_of(const exhibit *x, ptrdiff_t block)
{
    const char *line = NULL;
    return find_block(x, block, &line);
}

#define COMMON "agents: 5\nproblem: {kind: lms, dimension: 3}\nstrategy: diffusion\nrounds: 4\nrepetitions: 4\n"

/* ---- the figures ---- */

static void curves(void **state)
{
    exhibit x;
    (void)state;
    open_exhibit(&x, "name: two rules\n" COMMON "graph: complete\nrule: [mean, ref]\n", RFI_MSD, 0);
    put_powers(&x);
    put(&x.cells[1], 0, 1e9, 1e9);   /* diverged: leaves the figure at 20 dB */
    put(&x.cells[1], 1, 1e-3, 1e-3); /* a band that would reach below zero ends 20 dB below */
    assert_true(
        rfi_outcome_init(&x.oracles[0], NULL, &(rfi_cell_numbers){.rounds = 4, .every = 2}, x.cells[0].wanted, 0, 0));
    x.oracles[0].repetitions = REPETITIONS;
    for (ptrdiff_t p = 0; p < 3; p++) {
        put(&x.oracles[0], p, 1e-6, 1e-8);
    }
    x.oracle_list[0] = &x.oracles[0];
    x.cells[0].theory = 1e-5;
    draw(&x);
    look_at(&x, "curves");
    for (ptrdiff_t p = 0; p < 3; p++) {
        assert_true(number(&x, 0, p, 0) == 2.0 * (double)p);
        CHECK_CLOSE(number(&x, 0, p, 1), -10.0 * (double)(p + 1), 1e-9, "mean");
        CHECK_CLOSE(number(&x, 0, p, 2), -10.0 * (double)(p + 1) + 10 * log10(0.5), 1e-9, "two errors below");
        CHECK_CLOSE(number(&x, 0, p, 3), -10.0 * (double)(p + 1) + 10 * log10(1.5), 1e-9, "two errors above");
        CHECK_CLOSE(number(&x, 2, p, 1), -60, 1e-9, "oracle");
    }
    assert_true(number(&x, 1, 0, 1) == 60 && number(&x, 1, 0, 3) == 60); /* on its way out, no plateau at the edge */
    assert_true(number(&x, 1, 0, 4) == RFI_COLOUR_TOP && isnan(number(&x, 1, 1, 4)) && isnan(number(&x, 0, 0, 4)));
    CHECK_CLOSE(number(&x, 1, 1, 2), -50, 1e-9, "the end of the band");
    assert_int_equal(rows_of(&x, 0), 3);
    assert_int_equal(rows_of(&x, 3), -1);
    DRAWS(&x, "set title 'two rules: learning curves (triangles: above +20 dB)'");
    DRAWS(&x, "set ylabel 'mean-square deviation (MSD) [dB]'");
    DRAWS(&x, "set xlabel 'round'");
    DRAWS(&x, "set yrange [*:20]");
    DRAWS(&x, "'curves.dat' index 0 using 1:3:4 with filledcurves lc rgb '#7f7f7f'");
    DRAWS(&x, "index 0 using 1:2 with lines lw 2 lc rgb '#7f7f7f' dt 1 title 'mean'");
    DRAWS(&x, "index 1 using 1:2 with lines lw 2 lc rgb '#0072b2' dt 1 title 'ref'");
    DRAWS(&x, "'curves.dat' index 1 using 1:5 with points pt 9");
    assert_false(has(&x.script, "index 0 using 1:5"));
    DRAWS(&x, "index 2 using 1:2 with lines lw 7 lc rgb '#b5b5b5' title 'oracle'");
    DRAWS(&x, "  -50 with lines dt 3 lw 2 lc 'black' title 'theory");
    assert_false(exists(&x, "figures/final.gp") || exists(&x, "figures/matrix.gp") || exists(&x, "figures/graph.gp"));
    close_exhibit(&x);
}

static const char parameter[] =
    "name: parameter\n" COMMON "graph: complete\nmalicious: 1\nrule: [mean, ref]\nattack: {kind: additive, delta: [0, "
    "0.1, 10, 1000]}\n";

/* Against the parameter, on a logarithmic axis with zero apart. */
static void final(void **state)
{
    exhibit x;
    (void)state;
    open_exhibit(&x, parameter, RFI_MSD, 0);
    put_powers(&x);
    draw(&x);
    look_at(&x, "final");
    for (ptrdiff_t s = 0; s < 2; s++) {
        assert_int_equal(rows_of(&x, s), 4);
        for (ptrdiff_t v = 0; v < 4; v++) {
            static const double places[] = {-100, -1, 1, 3};
            CHECK_CLOSE(number(&x, s, v, 1), -10.0 * (double)(4 * s + v + 1) - 30, 1e-9, "steady state");
            if (v > 0) {
                CHECK_CLOSE(number(&x, s, v, 0), places[v], 1e-12, "log10 of the parameter");
            }
        }
        assert_true(number(&x, s, 0, 0) < -1.5); /* below the least, apart from it */
    }
    DRAWS(&x, "set xlabel 'attack strength delta'");
    DRAWS(&x, "set xtics ('0' -");
    DRAWS(&x, "'0.1' -1, '1' 0, '10' 1, '100' 2, '1000' 3");
    DRAWS(&x, "'final.dat' index 0 using 1:2:3:4 with yerrorlines lw 2 ps 0.9 pt 2 lc rgb '#7f7f7f' dt 1 title 'mean'");
    DRAWS(&x, "index 1 using 1:2:3:4 with yerrorlines lw 2 ps 0.9 pt 5 lc rgb '#0072b2' dt 1 title 'ref'");
    assert_false(has(&x.script, "oracle"));
    close_exhibit(&x);
}

/* A panel per rule: rows of pixels with the colours of the nearest value, and a strip for zero. */
static void heat(void **state)
{
    exhibit x;
    (void)state;
    open_exhibit(&x, parameter, RFI_MSD, 0);
    put_powers(&x);
    draw(&x);
    look_at(&x, "heat");
    for (ptrdiff_t s = 0; s < 2; s++) {
        double shift = -40.0 * (double)s;
        assert_int_equal(rows_of(&x, 2 * s), 120);
        assert_int_equal(rows_of(&x, 2 * s + 1), 2);
        for (ptrdiff_t p = 0; p < 3; p++) {
            double less = -10.0 * (double)p + shift;
            CHECK_CLOSE(number(&x, 2 * s, 0, p), -20 + less, 1e-4, "delta 0.1 at the bottom");
            CHECK_CLOSE(number(&x, 2 * s, 60, p), -30 + less, 1e-4, "delta 10 in the middle");
            CHECK_CLOSE(number(&x, 2 * s, 119, p), -40 + less, 1e-4, "delta 1000 at the top");
            CHECK_CLOSE(number(&x, 2 * s + 1, 0, p), -10 + less, 1e-4, "zero in its strip");
            CHECK_CLOSE(number(&x, 2 * s + 1, 1, p), -10 + less, 1e-4, "zero in its strip");
        }
    }
    assert_int_equal(rows_of(&x, 4), -1);
    DRAWS(&x, "set cbrange [-100:-10]");
    DRAWS(&x, "set multiplot layout 1,2 margins ");
    DRAWS(&x, "title 'parameter: over rounds, one panel per rule or setting'");
    DRAWS(&x, "unset colorbox\nunset label 1\n"); /* one bar and one name of the vertical axes, at the first panel */
    DRAWS(&x, "set title 'mean'\nplot 'heat.dat' index 0 matrix using ($1*2):(low + ($2 + 0.5)*step):3 with image");
    DRAWS(&x, "'' index 1 matrix using ($1*2):(zero + ($2 - 0.5)*half):3 with image");
    DRAWS(&x, "set title 'ref'\nplot 'heat.dat' index 2 matrix");
    close_exhibit(&x);
}

static const char square[] =
    "name: square\n" COMMON "graph: complete\nmalicious: 1\nrule: [mean, ref]\nattack: [sign_flip, zero, gaussian]\n";

static void check_worst(const exhibit *x, ptrdiff_t rule, ptrdiff_t attack, double value)
{
    char words[120];
    (void)snprintf(words, sizeof words, "set object rectangle from %.2f,%.2f to %.2f,%.2f front fillstyle empty",
                   (double)attack - 0.47, (double)rule - 0.45, (double)attack + 0.47, (double)rule + 0.45);
    DRAWS(x, words);
    assert_true(number(x, 0, 4 * rule + 3, 0) == 3.2); /* once more in a column of its own */
    CHECK_CLOSE(number(x, 0, 4 * rule + 3, 3), value, 0.051, "worst");
}

/* Rules against attacks, the worst marked: the largest error, or the smallest accuracy. */
static void matrix(void **state)
{
    static const double errors[6] = {0.1, 1e4, 1e-3, 0.5, 0.25, 0.9};
    exhibit x;
    (void)state;
    open_exhibit(&x, square, RFI_MSD, 0);
    for (ptrdiff_t i = 0; i < 6; i++) {
        put(&x.cells[i], 3, errors[i], 0);
    }
    draw(&x);
    look_at(&x, "matrix");
    assert_int_equal(rows_of(&x, 0), 8);
    for (ptrdiff_t i = 0; i < 6; i++) {
        ptrdiff_t line = i / 3;
        ptrdiff_t row = line * 4 + i % 3;
        double shown = 10 * log10(errors[i]);
        assert_true(number(&x, 0, row, 0) == (double)(i % 3) && number(&x, 0, row, 1) == (double)line);
        CHECK_CLOSE(number(&x, 0, row, 2), fmin(shown, RFI_COLOUR_TOP), 1e-9, "colour");
        CHECK_CLOSE(number(&x, 0, row, 3), shown, 0.051, "text, not cut");
    }
    assert_true(number(&x, 0, 1, 4) == 0x101010 && number(&x, 0, 2, 4) == 0xffffff); /* ink on bright and on dark */
    check_worst(&x, 0, 1, 40);
    check_worst(&x, 1, 2, 10 * log10(0.9));
    DRAWS(&x, "set ytics ('mean' 0, 'ref' 1)");
    DRAWS(&x, "set xtics ('sign_flip' 0, 'zero' 1, 'gaussian' 2, 'worst' 3.2)");
    DRAWS(&x, "set cbrange [-30:20]");
    close_exhibit(&x);

    open_exhibit(&x, square, RFI_ACCURACY, 0);
    for (ptrdiff_t i = 0; i < 6; i++) {
        put(&x.cells[i], 3, 0.1 + 0.15 * (double)i, 0);
    }
    draw(&x);
    look_at(&x, "matrix");
    check_worst(&x, 0, 0, 10);
    check_worst(&x, 1, 0, 55);
    DRAWS(&x, "set cblabel 'test accuracy [%]'");
    close_exhibit(&x);
}

/* A panel for each value of a third list: one title for all, and each panel has only what sets it apart, which leaves room for the colour bar. */
static void panels(void **state)
{
    exhibit x;
    (void)state;
    open_exhibit(&x,
                 "name: panels\n" COMMON
                 "graph: complete\nrule: [mean, ref]\nattack: [sign_flip, zero]\nmalicious: [1, 2]\n",
                 RFI_MSD, 0);
    for (ptrdiff_t i = 0; i < 8; i++) {
        put(&x.cells[i], 3, 0.1 + 0.1 * (double)i, 0);
    }
    draw(&x);
    look_at(&x, "matrix");
    DRAWS(&x, "title 'panels: rules against attacks (framed: the worst for each rule)'\nset colorbox");
    DRAWS(&x, "set title '1 malicious'\nplot 'matrix.dat' index 0");
    DRAWS(&x, "set title '2 malicious'\nplot 'matrix.dat' index 1");
    close_exhibit(&x);
}

/* A ring of five: every link joins the places of two neighbours, and the malicious agent is a square. */
static void network(void **state)
{
    exhibit x;
    double place[5][2];
    (void)state;
    open_exhibit(
        &x,
        "name: network\n" COMMON
        "graph: ring\nmalicious: 1\nplacement: {kind: list, agents: '2'}\nattack: zero\nrule: ref\ntrust: true\n",
        RFI_MSD, 5);
    put_powers(&x);
    for (ptrdiff_t k = 0; k < 5; k++) {
        x.cells[0].moments[4 + k] = (rfi_moments){k == 2 ? 0.125 : k == 3 ? 7 : 1, 0};
    }
    draw(&x);
    look_at(&x, "graph");
    assert_int_equal(rows_of(&x, 0), 1 + 5);
    assert_int_equal(rows_of(&x, 1), 1 + 4);
    assert_int_equal(rows_of(&x, 2), 1 + 1);
    for (ptrdiff_t i = 0; i < 5; i++) {
        ptrdiff_t block = i < 4 ? 1 : 2;
        ptrdiff_t row = i < 4 ? i + 1 : 1;
        ptrdiff_t agent = (ptrdiff_t)number(&x, block, row, 3);
        assert_true((agent == 2) == (block == 2));
        CHECK_CLOSE(number(&x, block, row, 2), agent == 2 ? 0.125 : agent == 3 ? 1.5 : 1, 1e-12, "trust, cut at 1.5");
        for (int c = 0; c < 2; c++) {
            place[agent][c] = number(&x, block, row, c);
            assert_true(fabs(place[agent][c]) <= 1);
        }
    }
    for (ptrdiff_t i = 1; i <= 5; i++) {
        int joined = 0;
        for (ptrdiff_t k = 0; k < 5; k++) {
            const double *a = place[k];
            const double *b = place[(k + 1) % 5];
            for (int turned = 0; turned < 2; turned++) {
                const double *from = turned ? b : a;
                const double *to = turned ? a : b;
                joined += hypot(number(&x, 0, i, 0) - from[0], number(&x, 0, i, 1) - from[1]) < 1e-9 &&
                          hypot(number(&x, 0, i, 0) + number(&x, 0, i, 2) - to[0],
                                number(&x, 0, i, 1) + number(&x, 0, i, 3) - to[1]) < 1e-9;
            }
        }
        assert_int_equal(joined, 1);
    }
    DRAWS(&x, "'graph.dat' index 0 using 1:2:3:4 with vectors nohead");
    DRAWS(&x, "index 2 using 1:2:3 with points pt 5");
    close_exhibit(&x);
}

/* A rule looks the same in every figure, lines of one rule differ in their dash, and what is not a rule of Reef has a colour too. */
static void looks(void **state)
{
    exhibit x;
    (void)state;
    open_exhibit(&x,
                 "name: looks\n" COMMON
                 "graph: complete\nrule: [ref, 'ref:efficiency=0.9', mref, 'nnm:f=1 | ref', 'trimmed:f=1']\n",
                 RFI_MSD, 0);
    put_powers(&x);
    draw(&x);
    look_at(&x, "curves");
    DRAWS(&x, "lc rgb '#0072b2' dt 1 title 'ref'");
    DRAWS(&x, "lc rgb '#0072b2' dt 2 title 'ref:efficiency=0.9'");
    DRAWS(&x, "lc rgb '#0072b2' dt 4 title 'nnm:f=1 | ref'");
    DRAWS(&x, "lc rgb '#d55e00' dt 1 title 'mref'");
    DRAWS(&x, "lc rgb '#56b4e9' dt 1 title 'trimmed:f=1'");
    assert_false(has(&x.script, "yrange")); /* nothing leaves the figure */
    close_exhibit(&x);
}

/* Labels that would run into each other are left out. */
static void ticks(void **state)
{
    exhibit x;
    (void)state;
    open_exhibit(
        &x,
        "name: ticks\nagents: 5\nproblem: {kind: lms, dimension: 3}\nrounds: 4\nrepetitions: 4\n"
        "graph: complete\nrule: ref\nmalicious: 0\nstrategy: {kind: diffusion, mu: [0.001, 0.0011, 0.0012, 0.03, "
        "0.06]}\n",
        RFI_MSD, 0);
    put_powers(&x);
    draw(&x);
    look_at(&x, "final");
    DRAWS(&x, "set xlabel 'step size mu'");
    DRAWS(&x, "set xtics ('0.001' 0.001, '0.03' 0.03, '0.06' 0.06)");
    close_exhibit(&x);
}

/* Of too many lines, those of all rules under one attack are shown, never one rule under one attack beside another rule under another. */
static void crowd(void **state)
{
    exhibit x;
    (void)state;
    open_exhibit(&x,
                 "name: crowd\n" COMMON "graph: complete\nmalicious: 1\nrule: [mean, ref]\n"
                 "attack: [none, sign_flip, zero, gaussian, alie, ipm, mimic]\n",
                 RFI_MSD, 0);
    put_powers(&x);
    draw(&x);
    look_at(&x, "curves");
    CHECK_CLOSE(number(&x, 0, 0, 1), -40, 1e-9, "mean under gaussian, cell 3");
    CHECK_CLOSE(number(&x, 1, 0, 1), -110, 1e-9, "ref under gaussian, cell 10");
    assert_int_equal(rows_of(&x, 2), -1);
    DRAWS(&x, "set title 'crowd: learning curves, attack gaussian'");
    DRAWS(&x, "title 'mean'");
    DRAWS(&x, "title 'ref'");
    close_exhibit(&x);
}

/* Between powers of ten there are 2 and 5 where they have room. */
static void fine_ticks(void **state)
{
    exhibit x;
    (void)state;
    open_exhibit(&x,
                 "name: fine\n" COMMON "graph: complete\nmalicious: 1\nrule: [mean, ref]\n"
                 "attack: {kind: additive, delta: [0.1, 1, 10]}\n",
                 RFI_MSD, 0);
    put_powers(&x);
    draw(&x);
    look_at(&x, "final");
    DRAWS(&x, "set xtics ('0.05' -1.3");
    DRAWS(&x, "'0.1' -1, '0.2' -0.69");
    look_at(&x, "curves");
    DRAWS(&x, "title 'ref, delta = 10'");
    close_exhibit(&x);
}

/* gnuplot runs what stands in backquotes; and figures of an earlier run do not stay. */
static void safe_and_clean(void **state)
{
    exhibit x;
    char path[SCRATCH_PATH];
    rfi_text text = {0};
    (void)state;
    rfi_figure_safe(&text, "a'b`rm`\"c\\d\n");
    assert_int_equal(text.size, 12);
    assert_memory_equal(text.bytes, "a_b_rm__c_d_", 12);
    rfi_text_free(&text);
    open_exhibit(&x, parameter, RFI_MSD, 0);
    put_powers(&x);
    draw(&x);
    (void)scratch_file(&x.scratch, "figures/heat.svg", "old", 3, path);
    assert_true(exists(&x, "figures/heat.gp") && exists(&x, "figures/heat.svg"));
    for (ptrdiff_t i = 0; i < x.experiment->cells; i++) {
        x.cells[i].wanted[RFI_MSD] = i == 0; /* nothing that all cells have */
    }
    draw(&x);
    assert_false(exists(&x, "figures/heat.gp") || exists(&x, "figures/heat.svg") || exists(&x, "figures/curves.gp"));
    close_exhibit(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curves), cmocka_unit_test(final),   cmocka_unit_test(heat),           cmocka_unit_test(matrix),
        cmocka_unit_test(panels), cmocka_unit_test(network), cmocka_unit_test(safe_and_clean), cmocka_unit_test(looks),
        cmocka_unit_test(ticks),  cmocka_unit_test(crowd),   cmocka_unit_test(fine_ticks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
