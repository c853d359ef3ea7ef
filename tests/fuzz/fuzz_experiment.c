/* Experiments made of keys and values that mostly fit, with lists that become a grid and sometimes bytes of any kind: read, checked, and,
 * made small by overrides, run. Each step works or has a sentence that begins with the place; the same experiment run twice, once with
 * threads, tells the same first metric of every cell. */
#include "bytes.h"
#include "check.h"

#include <math.h>
#include <reef/reef.h>
#include <stdbool.h>
#include <string.h>

enum { TEXT = 4096, CELLS = 8 };

typedef struct line {
    const char *key;
    const char *values[10];
} line;

static const line lines[] = {
    {"agents", {"4", "6", "1", "0", "-3", "5.5", "1e30", "[3, 5]", "many"}},
    {"graph",
     {"ring", "complete", "ring:k=2", "star", "grid", "erdos_renyi:p=0.5", "ring:k=99", "nonsense",
      "[ring, complete]"}},
    {"weights", {"uniform", "metropolis", "uniform:x=1", "[uniform, metropolis]"}},
    {"links", {"static", "failing:p=0.3", "failing:p=2", "{kind: failing, p: [0.1, 0.2]}"}},
    {"problem",
     {"{kind: lms, dimension: 3}", "lms:dimension=4", "{kind: lms, dimension: [2, 3]}", "{kind: lms, dimension: 0}",
      "{kind: quadratic}", "{kind: none}", "{dimension: 3}", "lms:noise=nan"}},
    {"strategy",
     {"diffusion:mu=0.05", "federated:fraction=0.5", "rsa", "{kind: diffusion, mu: [0.01, 0.1]}", "local", "oracle",
      "diffusion:mu=-1", "diffusion:mu=1e308"}},
    {"rule",
     {"median", "[mean, ref]", "mref", "trimmed:f=1", "nnm:f=1 | ref", "krum:f=9",
      "{kind: ref, efficiency: [0.9, 0.95]}", "cclip", "vref"}},
    {"attack",
     {"alie", "[alie, ipm]", "additive:delta=10", "silent", "{kind: additive, delta: [1, inf]}", "come_and_go",
      "label_flip"}},
    {"malicious", {"1", "[0, 2]", "50%", "100", "-1", "0.25"}},
    {"placement", {"random", "worst", "{kind: list, agents: [1]}", "nobody"}},
    {"trust", {"true", "false", "maybe"}},
    {"metrics", {"[msd]", "[msd, consensus]", "[score]", "msd", "[msd, msd]", "[]"}},
    {"oracle", {"true", "false"}},
    {"seed", {"1", "-1", "18446744073709551615", "[1, 2]"}},
    {"rounds", {"3", "0", "1e9", "[2, 3]"}},
    {"repetitions", {"1", "2", "0", "9"}},
    {"name", {"x", "../x", "\"a\\nb\"", "\"\""}},
};

static void put(char *text, size_t *used, const char *piece, size_t length)
{
    if (*used + length + 1 < TEXT) {
        memcpy(text + *used, piece, length);
        *used += length;
        text[*used] = '\0';
    }
}

static void put_line(bytes *b, char *text, size_t *used, const line *l)
{
    ptrdiff_t count = 0;
    while (count < 10 && l->values[count]) {
        count++;
    }
    /* the first values are the good ones: half of the time one of them */
    ptrdiff_t which = take(b) % 2 ? below(b, count < 2 ? count : 2) : below(b, count);
    put(text, used, l->key, strlen(l->key));
    put(text, used, ": ", 2);
    put(text, used, l->values[which], strlen(l->values[which]));
    if (below(b, 24) == 0) {
        char odd[2] = {(char)take(b), (char)take(b)};
        put(text, used, odd, sizeof odd);
    }
    put(text, used, "\n", 1);
}

static size_t draw(bytes *b, char *text)
{
    size_t used = 0;
    ptrdiff_t count = (ptrdiff_t)(sizeof lines / sizeof lines[0]);
    text[0] = '\0';
    for (ptrdiff_t i = 0; i < count; i++) {
        bool needed = i < 2 || i == 4 || i == 5 || i == 6; /* agents, graph, problem, strategy, rule */
        if (below(b, 8) < (needed ? 7 : 2)) {
            put_line(b, text, &used, &lines[i]);
        }
    }
    return used;
}

typedef struct told {
    double value[CELLS];
} told;

static void on_progress(void *user, const reef_progress *progress)
{
    told *t = user;
    if (progress->finished >= 0 && progress->finished < CELLS) {
        t->value[progress->finished] = progress->value;
    }
}

static void on_facts(void *user, ptrdiff_t cell, const reef_cell_facts *facts)
{
    char text[2048];
    (void)user;
    CHECK(cell >= 0);
    CHECK(reef_cell_facts_print(facts, text, sizeof text, NULL) > 0 || text[0] == '\0');
}

static reef_status run(const reef_experiment *experiment, told *t)
{
    reef_error error = {REEF_OK, ""};
    const reef_experiment_options options = {.progress = on_progress, .user = t};
    reef_experiment_outcome outcome;
    memset(t, 0, sizeof *t);
    reef_status status = reef_experiment_run(experiment, &options, &outcome, &error);
    CHECK(status == REEF_OK || (error.status == status && error.text[0]));
    return status;
}

static void check_names(const reef_experiment *experiment)
{
    char value[256];
    for (ptrdiff_t a = 0; a < reef_experiment_axes(experiment); a++) {
        CHECK(reef_experiment_axis(experiment, a));
        CHECK(reef_experiment_value(experiment, 0, a, value, sizeof value) > 0);
    }
    CHECK(reef_experiment_name(experiment)[0] && !reef_experiment_axis(experiment, reef_experiment_axes(experiment)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const small[] = {"rounds=3", "repetitions=2"};
    static reef_context *context;
    char text[TEXT];
    reef_experiment *alone = NULL;
    reef_experiment *shared = NULL;
    reef_error error = {REEF_OK, ""};
    if (!context) {
        CHECK(reef_context_create(&context, NULL, NULL) == REEF_OK &&
              reef_context_set_threads(context, 3, NULL) == REEF_OK);
    }
    bytes b = {data, size, (uint32_t)size};
    size_t length = draw(&b, text);
    ptrdiff_t overrides = below(&b, 8) ? 2 : 0;
    reef_status status = reef_experiment_read(NULL, &alone, text, length, "fuzz", small, overrides, &error);
    CHECK(reef_experiment_read(context, &shared, text, length, "fuzz", small, overrides, NULL) == status);
    if (status != REEF_OK) {
        CHECK(!alone && !shared && error.status == status && error.text[0]);
        return 0;
    }
    check_names(alone);
    if (reef_experiment_check_all(alone, on_facts, NULL, &error) != REEF_OK) {
        CHECK(error.text[0]);
    }
    if (overrides > 0 && reef_experiment_cells(alone) <= CELLS) {
        told one;
        told three;
        status = run(alone, &one);
        CHECK(run(shared, &three) == status);
        CHECK(status != REEF_OK || memcmp(&one, &three, sizeof one) == 0);
    }
    reef_experiment_destroy(&alone);
    reef_experiment_destroy(&shared);
    return 0;
}
