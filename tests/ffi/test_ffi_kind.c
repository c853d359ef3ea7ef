/* Kinds of problems of the caller's through the flat interface: named in specs and experiment files, their failures errors of the run. */
#include "support/check.h"
#include "support/scratch.h"

#include <reef/reef.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AGENTS = 12, DIMENSION = 3, ROOM = 400, TEXT = 2000 };

/* What fails, and what was asked. Callbacks come from several threads. */
typedef struct journal {
    const char *fails; /* "make", "start", "ask", "score" or NULL */
    char parameters[REEF_TEXT_SIZE];
    atomic_long made, ended, asked, scored;
} journal;

static int refuse(const journal *j, const char *what, char *text, size_t room)
{
    if (!j->fails || strcmp(j->fails, what) != 0) {
        return 0;
    }
    (void)snprintf(text, room, "no %s today", what);
    return -1;
}

static int64_t make_object(void *user, const char *parameters, ptrdiff_t agents, uint64_t seed, ptrdiff_t *dimension,
                           int64_t *samples, char *text, size_t room)
{
    journal *j = user;
    assert_int_equal(agents, AGENTS);
    (void)seed;
    (void)snprintf(j->parameters, sizeof j->parameters, "%s", parameters);
    *dimension = DIMENSION;
    samples[1] = j->fails && strcmp(j->fails, "samples") == 0 ? 0 : 5;
    return refuse(j, "make", text, room) ? -1 : (int64_t)atomic_fetch_add(&j->made, 1);
}

static void end_object(void *user, int64_t object)
{
    journal *j = user;
    assert_true(object >= 0);
    (void)atomic_fetch_add(&j->ended, 1);
}

static int start_at(void *user, int64_t object, ptrdiff_t repetition, float *model, char *text, size_t room)
{
    (void)object;
    for (ptrdiff_t m = 0; m < DIMENSION; m++) {
        model[m] = (float)(10 + repetition);
    }
    return refuse(user, "start", text, room);
}

static int ask_for(void *user, int64_t object, ptrdiff_t count, const int32_t *agents, const float *models,
                   float *gradients, const unsigned char *flipped, int64_t round, int64_t step, int64_t size,
                   ptrdiff_t repetition, char *text, size_t room)
{
    journal *j = user;
    (void)object;
    (void)flipped;
    (void)step;
    (void)size;
    (void)repetition;
    for (ptrdiff_t i = 0; i < count * DIMENSION; i++) {
        assert_true(agents[i / DIMENSION] >= 0 && agents[i / DIMENSION] < AGENTS);
        gradients[i] = models[i] - 1;
    }
    (void)atomic_fetch_add(&j->asked, 1);
    return round == 4 ? refuse(j, "ask", text, room) : 0; /* in the last round */
}

static int score_of(void *user, int64_t object, const float *model, double *score, char *text, size_t room)
{
    journal *j = user;
    (void)object;
    score[0] = (double)model[0];
    (void)atomic_fetch_add(&j->scored, 1);
    return refuse(j, "score", text, room);
}

typedef struct world {
    journal journal;
    reef_ffi_kind_handle *kind;
    reef_context *context;
    scratch scratch;
} world;

static void open_world(world *w, const char *fails, ptrdiff_t threads)
{
    char text[ROOM] = "";
    *w = (world){.journal = {.fails = fails}};
    scratch_open(&w->scratch);
    assert_int_equal(reef_ffi_context(&w->context, threads, text, ROOM), REEF_OK);
    assert_int_equal(reef_ffi_problem_kind(&w->kind, "mine", "one of mine", make_object, end_object, start_at, ask_for,
                                           score_of, &w->journal, text, ROOM),
                     REEF_OK);
    assert_int_equal(reef_ffi_register(w->context, w->kind, text, ROOM), REEF_OK);
}

static void close_world(world *w)
{
    assert_int_equal(w->journal.made, w->journal.ended);
    reef_context_destroy(&w->context);
    reef_ffi_kind_destroy(&w->kind);
    assert_null(w->kind);
    char command[SCRATCH_PATH + 32];
    (void)snprintf(command, sizeof command, "rm -rf '%s/out'", w->scratch.folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a folder of ours */
    scratch_close(&w->scratch);
}

static reef_status run_file(world *w, char text[ROOM])
{
    static const char yaml[] =
        "name: mine\nagents: 12\nrounds: 5\nrepetitions: 6\nevery: 5\nsteady: 1\ngraph: complete\n"
        "problem: {kind: mine, width: [3, 4], path: a b, list: 'x:y=1,z=2'}\n"
        "strategy: {kind: diffusion, mu: 0.5}\nrule: [mean, median]\n";
    char path[SCRATCH_PATH];
    char out[SCRATCH_PATH];
    reef_experiment *e = NULL;
    (void)scratch_file(&w->scratch, "mine.yaml", yaml, sizeof yaml - 1, path);
    reef_status status = reef_ffi_experiment(w->context, &e, path, NULL, 0, text, ROOM);
    if (status == REEF_OK) {
        status =
            reef_ffi_experiment_run(e, scratch_path(&w->scratch, "out", out), 0, 0, NULL, NULL, NULL, NULL, text, ROOM);
    }
    reef_experiment_destroy(&e);
    return status;
}

static void runs_from_a_file(void **state)
{
    char text[ROOM] = "";
    char path[SCRATCH_PATH];
    world w;
    reef_summary *summary = NULL;
    (void)state;
    open_world(&w, NULL, 3);
    CHECK(run_file(&w, text) == REEF_OK, "%s", text);
    assert_string_equal(w.journal.parameters, "width=4,path=a b,list=(x:y=1,z=2)");
    assert_int_equal(w.journal.made, 2); /* shared by rules and repetitions */
    assert_int_equal(w.journal.asked, 2 * 2 * 6 * 5);
    assert_true(w.journal.scored > 0);
    assert_int_equal(reef_summary_load(NULL, &summary, scratch_path(&w.scratch, "out", path), NULL), REEF_OK);
    assert_int_equal(reef_summary_rows(summary), 4);
    assert_string_equal(reef_summary_name(summary, 1), "problem.width");
    reef_summary_destroy(&summary);
    assert_int_equal(reef_ffi_experiment_report(path, text, ROOM), REEF_OK);
    close_world(&w);
}

static void failures_end_the_run(void **state)
{
    static const char *const places[] = {"make", "start", "ask", "score"};
    (void)state;
    for (ptrdiff_t i = 0; i < 2 * COUNT(places); i++) {
        char text[ROOM] = "";
        char wanted[64];
        char path[SCRATCH_PATH];
        world w;
        open_world(&w, places[i / 2], i % 2 ? 4 : 1);
        (void)snprintf(wanted, sizeof wanted, "mine: no %s today", places[i / 2]);
        CHECK(run_file(&w, text) == REEF_E_ARG, "%s: %s", places[i / 2], text);
        CHECK(strstr(text, wanted), "%s", text);
        assert_int_not_equal(access(scratch_path(&w.scratch, "out/summary.csv", path), F_OK), 0);
        close_world(&w);
    }
}

static void says_what_it_takes(void **state)
{
    char text[ROOM] = "";
    char spec[TEXT];
    world w;
    reef_problem *problem = NULL;
    reef_error error;
    (void)state;
    open_world(&w, NULL, 1);
    assert_int_equal(reef_problem_create(w.context, &problem, "mine:b=(1,2), parameters=7", AGENTS, 1, &error),
                     REEF_OK);
    assert_int_equal(reef_problem_dimension(problem), DIMENSION);
    (void)reef_problem_print(problem, spec, sizeof spec);
    assert_string_equal(spec, "mine:b=(1,2),parameters=7");
    reef_problem_destroy(&problem);
    assert_int_equal(reef_problem_create(w.context, &problem, "mine", AGENTS, 1, &error), REEF_OK);
    (void)reef_problem_print(problem, spec, sizeof spec);
    assert_string_equal(spec, "mine");
    reef_problem_destroy(&problem);
    assert_int_equal(reef_ffi_register(w.context, w.kind, text, ROOM), REEF_E_NAME);
    w.journal.fails = "samples";
    assert_int_equal(reef_problem_create(w.context, &problem, "mine", AGENTS, 1, &error), REEF_E_ARG);
    CHECK(strstr(error.text, "agent 1 has 0 samples"), "%s", error.text);
    close_world(&w);
}

static void refuses_what_is_no_kind(void **state)
{
    char text[ROOM] = "";
    char name[100];
    reef_ffi_kind_handle *kind = NULL;
    reef_problem *problem = NULL;
    reef_error error;
    (void)state;
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    const char *const names[] = {"", name, NULL};
    for (ptrdiff_t i = 0; i < COUNT(names); i++) {
        reef_status status = reef_ffi_problem_kind(&kind, names[i], "", make_object, end_object, start_at, ask_for,
                                                   score_of, NULL, text, ROOM);
        reef_context *context = NULL;
        assert_int_equal(reef_ffi_context(&context, 1, text, ROOM), REEF_OK);
        assert_true(status == REEF_E_ARG || reef_ffi_register(context, kind, text, ROOM) == REEF_E_ARG);
        reef_context_destroy(&context);
        reef_ffi_kind_destroy(&kind);
    }
    assert_int_equal(
        reef_ffi_problem_kind(&kind, "a", "b", make_object, end_object, NULL, ask_for, score_of, NULL, text, ROOM),
        REEF_E_ARG);
    assert_null(kind);
    assert_int_equal(reef_ffi_register(NULL, NULL, text, ROOM), REEF_E_ARG);
    assert_int_equal(reef_problem_create(NULL, &problem, "python:module=a.py,class=B", 3, 1, &error), REEF_E_NAME);
    CHECK(strstr(error.text, "--allow-code"), "%s", error.text);
}

/* More than the rest has room for. */
static void long_parameters_are_refused(void **state)
{
    char spec[REEF_TEXT_SIZE + 200] = "mine";
    size_t used = 4;
    world w;
    reef_problem *problem = NULL;
    reef_error error;
    (void)state;
    for (int i = 0; used + 20 < sizeof spec; i++) {
        used += (size_t)snprintf(spec + used, sizeof spec - used, "%ckey%d=value", i ? ',' : ':', i);
    }
    open_world(&w, NULL, 1);
    assert_int_equal(reef_problem_create(w.context, &problem, spec, AGENTS, 1, &error), REEF_E_RANGE);
    assert_null(problem);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_from_a_file),
        cmocka_unit_test(failures_end_the_run),
        cmocka_unit_test(says_what_it_takes),
        cmocka_unit_test(refuses_what_is_no_kind),
        cmocka_unit_test(long_parameters_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
