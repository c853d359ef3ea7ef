/* mref, and its first form without the additions, against the numpy specification: same rows and ids, 300 rounds, full memory in float64
 * (tests/golden/make_mref.py). */
#include "agg/rules/mref/mref.h"
#include "support/check.h"
#include "support/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 20, COLUMNS = 40, ROUNDS = 300, SCENES = 29 };

/* Who is there, see make_mref.py. */
enum { ALL, NEW_IDS, AWAY, SOME, FLOOD, TURNS, AGREE, LEAVE, HEAVY };

typedef struct scene {
    int number;
    int n, m, malicious_count;
    double lie;
    int period;
    double spread;
    int heavy, self;
    bool same, additions;
    int there; /* one of these */
    double shared;
    int horizon;
    reef_agg *agg;
    reef_plan *plan;
    reef_state *memory;
    reef_report *report;
    double x[ROWS][COLUMNS];
    double out[COLUMNS];
} scene;

static double hashed(const uint64_t *parts, int count)
{
    uint64_t x = 0;
    for (int i = 0; i < count; i++) {
        x += parts[i] + UINT64_C(0x9E3779B97F4A7C15);
        x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
        x ^= x >> 31;
    }
    return (double)(x >> 11) * 0x1p-53;
}

static double noise(int number, int t, int l, int m)
{
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        const uint64_t parts[] = {(uint64_t)number, (uint64_t)t, (uint64_t)l, (uint64_t)m, (uint64_t)i};
        sum += hashed(parts, COUNT(parts));
    }
    return sum - 2;
}

static void fill_rows(scene *s, int t)
{
    double sign = s->period && t / s->period % 2 ? -1 : 1;
    double agree = s->there == AGREE && t > 64 ? pow(2, -(t - 64) / 16.0) : 1;
    double leave = s->there == LEAVE && t >= 48 ? pow(1.25, (t - 32) / 16.0) : 1;
    for (int l = 0; l < s->n; l++) {
        const uint64_t parts[] = {(uint64_t)s->number, (uint64_t)t, (uint64_t)l, 1000};
        double side = s->there == LEAVE && l % 3 == 0 ? -sign : sign;
        double size = s->heavy ? 1 + 7 * pow(hashed(parts, COUNT(parts)), 4) : 1;
        for (int c = 0; c < s->m; c++) {
            int like = s->same && l < s->malicious_count ? 0 : l;
            double own = s->spread * noise(s->number, 999999, like, c) * (l < s->malicious_count ? 1 : agree);
            double common = l < s->malicious_count ? s->shared * noise(s->number, t, 1000, c) : 0;
            s->x[l][c] = 3 + size * noise(s->number, t, like, c) + own + common +
                         (l < s->malicious_count ? s->lie * leave * side : 0);
        }
    }
}

static void open_scene(scene *s, const char *line)
{
    *s = (scene){.number = 0};
    double field[14];
    char spec[80];
    char *at = (char *)(uintptr_t)(line + strlen("scene"));
    for (int i = 0; i < COUNT(field); i++) {
        const char *from = at;
        field[i] = strtod(from, &at);
        assert_true(at > from);
    }
    s->number = (int)field[0];
    s->n = (int)field[1];
    s->m = (int)field[2];
    s->malicious_count = (int)field[3];
    s->lie = field[4];
    s->period = (int)field[5];
    s->spread = field[6];
    s->heavy = (int)field[7];
    s->self = (int)field[8];
    s->same = field[9] != 0;
    s->additions = field[10] != 0;
    s->there = (int)field[11];
    s->shared = field[12];
    s->horizon = (int)field[13];
    (void)snprintf(spec, sizeof spec, "mref:sketch=full,lazy=0,horizon=%d%s", s->horizon,
                   s->additions ? "" : ",without=additions");
    s->agg = make_agg(spec);
    assert_true(s->n <= ROWS && s->m <= COLUMNS);
    const ptrdiff_t length = s->m;
    const reef_shape shape = {.rows = s->n, .segments = 1, .lengths = &length, .dtype = REEF_F64};
    assert_int_equal(reef_plan_create(&s->plan, s->agg, &shape, NULL), REEF_OK);
    assert_int_equal(reef_state_create(&s->memory, s->agg, &shape, NULL), REEF_OK);
    reef_state_set_limit(s->memory, s->there == FLOOD ? s->n : 1000000);
    assert_int_equal(reef_report_create(NULL, &s->report, s->n, NULL), REEF_OK);
}

static void close_scene(scene *s)
{
    reef_report_destroy(&s->report);
    reef_state_destroy(&s->memory);
    reef_plan_destroy(&s->plan);
    reef_agg_destroy(&s->agg);
}

static bool is_there(const scene *s, int l, int t)
{
    const uint64_t parts[] = {(uint64_t)s->number, (uint64_t)t, (uint64_t)l, 2000};
    if (s->there == AWAY) {
        return l >= s->malicious_count || t < 60 || t >= 220;
    }
    return (s->there != SOME && s->there != FLOOD) || hashed(parts, COUNT(parts)) < 0.8;
}

static int64_t id_of(const scene *s, int l, int t)
{
    const uint64_t parts[] = {(uint64_t)s->number, (uint64_t)t, (uint64_t)l, 3000};
    if (l >= s->malicious_count || s->there == ALL || s->there == AWAY || s->there == SOME || s->there == AGREE ||
        s->there == LEAVE) {
        return l;
    }
    return s->there == TURNS ? l + 1000 * (int64_t)(3 * hashed(parts, COUNT(parts)))
                             : 1000 + (int64_t)t * s->malicious_count + l;
}

static void step(scene *s, int t)
{
    const void *rows[ROWS];
    int64_t ids[ROWS];
    double weights[ROWS];
    for (int l = 0; l < s->n; l++) {
        rows[l] = s->x[l];
        ids[l] = id_of(s, l, t);
        weights[l] = is_there(s, l, t) * (s->there == HEAVY && l < s->malicious_count ? 3 : 1);
    }
    const reef_input input = {
        .rows = rows, .ids = ids, .weights = weights, .state = s->memory, .has_self = s->self >= 0, .self = s->self};
    fill_rows(s, t);
    assert_int_equal(reef_plan_apply(s->plan, &input, s->out, s->report, NULL), REEF_OK);
}

/* As its factors make it, see mref.h. */
static double weight_of(const scene *s, ptrdiff_t l)
{
    double b = 1;
    if (reef_report_reason(s->report, l) != REEF_USED) {
        return 0;
    }
    for (int test = 0; test < RFI_MREF_BY_COPIES; test++) {
        b = fmin(b, reef_report_factor(s->report, l, test));
    }
    b *= fmin(reef_report_factor(s->report, l, RFI_MREF_BY_COPIES),
              reef_report_factor(s->report, l, RFI_MREF_BY_TOGETHER));
    b *= reef_report_factor(s->report, l, RFI_MREF_BY_AGE) * reef_report_factor(s->report, l, RFI_MREF_BY_OPINION);
    double gate = reef_report_factor(s->report, l, RFI_MREF_BY_GATE);
    double c = reef_report_number(s->report, RFI_MREF_BALANCED);
    return s->additions ? fmin(gate, c * b + (c - 1) * RFI_MREF_BALANCE_LEAST * gate) : b;
}

/* The numbers of a line, the first being the round. */
static void check_line(const scene *s, const char *line, const char *what, int count, double tolerance)
{
    char *at = NULL;
    char text[80];
    int t = (int)strtol(line + strlen(what), &at, 10);
    for (int i = 0; i < count; i++) {
        double want = strtod(at, &at);
        bool weights = what[0] == 'w';
        (void)snprintf(text, sizeof text, "scene %d, round %d, %s %d", s->number, t, what, i);
        CHECK_CLOSE(weights ? weight_of(s, i) : s->out[i], want, tolerance, text);
    }
}

static void weights_of_the_specification(void **state)
{
    static char line[8192];
    scene s = {.number = -1};
    int scenes = 0;
    int rounds = 0;
    FILE *file = fopen(REEF_GOLDEN_DIR "/mref_golden.txt", "r");
    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "scene", 5) == 0) {
            close_scene(&s);
            open_scene(&s, line);
            scenes++;
        } else if (strncmp(line, "weights", 7) == 0) {
            step(&s, (int)strtol(line + 7, NULL, 10));
            check_line(&s, line, "weights", s.n, 1e-6);
            rounds++;
        } else {
            check_line(&s, line, "out", s.m, 1e-7);
        }
    }
    close_scene(&s);
    (void)fclose(file);
    assert_int_equal(scenes, SCENES);
    assert_int_equal(rounds, SCENES * ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(weights_of_the_specification)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
