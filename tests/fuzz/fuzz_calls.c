/* Calls of the public interface in any order, with handles that are there or not, numbers in and out of range and texts good and bad.
 * Whatever comes: a status with a sentence, or a result; nothing else. */
#include "bytes.h"
#include "check.h"

#include <reef/reef.h>
#include <stdbool.h>
#include <string.h>

enum { ROWS = 6, LENGTH = 9, STEPS = 40 };

typedef struct desk {
    reef_context *context;
    reef_agg *agg;
    reef_plan *plan;
    reef_state *state;
    reef_report *report;
    reef_graph *graph;
    reef_links *links;
    reef_attack *attack;
    reef_problem *problem;
    reef_run *run;
    float x[ROWS][LENGTH];
    const void *rows[ROWS];
    float out[LENGTH];
    ptrdiff_t plan_rows;
    reef_error error;
} desk;

static const char *one_of(bytes *b, const char *const *texts, ptrdiff_t count)
{
    return texts[below(b, count)];
}
#define ONE_OF(b, ...)                                                                                                 \
    one_of((b), (const char *const[]){__VA_ARGS__},                                                                    \
           (ptrdiff_t)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)))

static ptrdiff_t odd_number(bytes *b)
{
    static const ptrdiff_t odd[] = {0, 1, 2, 3, 5, ROWS, LENGTH, -1, 1000, PTRDIFF_MAX, PTRDIFF_MIN};
    return odd[below(b, (ptrdiff_t)(sizeof odd / sizeof odd[0]))];
}

static void expect(desk *d, reef_status status)
{
    CHECK(status == REEF_OK || (d->error.status == status && d->error.text[0]));
    d->error = (reef_error){REEF_OK, ""};
}

/* What was made of an aggregator goes before it, and so on: what the headers ask of callers. */
static void drop_agg(desk *d)
{
    reef_run_destroy(&d->run);
    reef_plan_destroy(&d->plan);
    reef_state_destroy(&d->state);
    reef_agg_destroy(&d->agg);
}

static void drop_graph(desk *d)
{
    reef_run_destroy(&d->run);
    reef_links_destroy(&d->links);
    reef_graph_destroy(&d->graph);
}

static void drop_attack(desk *d)
{
    reef_run_destroy(&d->run);
    reef_attack_destroy(&d->attack);
}

static void drop_problem(desk *d)
{
    reef_run_destroy(&d->run);
    reef_problem_destroy(&d->problem);
}

static void make(desk *d, bytes *b)
{
    const ptrdiff_t lengths[] = {LENGTH};
    const reef_shape shape = {.rows = ROWS, .segments = 1, .lengths = lengths, .dtype = REEF_F32};
    switch (below(b, 8)) {
    case 0:
        drop_agg(d);
        expect(d, reef_agg_create(d->context, &d->agg,
                                  ONE_OF(b, "ref", "mref", "nnm:f=1 | median", "cclip", "krum:f=7", "", "ref:c=nan"),
                                  &d->error));
        break;
    case 1:
        reef_plan_destroy(&d->plan);
        expect(d, reef_plan_create(&d->plan, d->agg, take(b) % 8 ? &shape : NULL, &d->error));
        break;
    case 2:
        reef_state_destroy(&d->state);
        expect(d, reef_state_create(&d->state, d->agg, take(b) % 8 ? &shape : NULL, &d->error));
        break;
    case 3:
        reef_report_destroy(&d->report);
        expect(d, reef_report_create(d->context, &d->report, take(b) % 2 ? ROWS : 1 + below(b, ROWS), &d->error));
        break;
    case 4:
        drop_graph(d);
        expect(d, reef_graph_create(d->context, &d->graph, ONE_OF(b, "ring", "complete", "ring:k=9", "x"), ROWS, 1,
                                    &d->error));
        break;
    case 5:
        reef_run_destroy(&d->run);
        reef_links_destroy(&d->links);
        expect(d, reef_links_create(d->context, &d->links, ONE_OF(b, "static", "failing:p=0.5", ":"),
                                    (const reef_graph *const *)&d->graph, 1, 1, &d->error));
        break;
    case 6:
        drop_attack(d);
        expect(d, reef_attack_create(d->context, &d->attack, ONE_OF(b, "alie", "silent", "ipm:epsilon=x", "additive"),
                                     &d->error));
        break;
    default:
        drop_problem(d);
        expect(d, reef_problem_create(d->context, &d->problem, ONE_OF(b, "lms:dimension=4", "lms:dimension=-4", "lms"),
                                      ROWS, 1, &d->error));
    }
}

static void learn(desk *d, bytes *b)
{
    static const bool malicious[ROWS] = {true};
    const reef_run_setup setup = {.problem = d->problem,
                                  .strategy = ONE_OF(b, "diffusion:mu=0.1", "federated", "local", "rsa", "oracle", "?"),
                                  .rule = take(b) % 8 ? d->agg : NULL,
                                  .links = take(b) % 4 ? d->links : NULL,
                                  .attack = d->attack,
                                  .malicious = take(b) % 2 ? malicious : NULL,
                                  .trust = take(b) % 2};
    double numbers[ROWS];
    double work[ROWS];
    reef_trust_facts facts;
    switch (below(b, 4)) {
    case 0:
        reef_run_destroy(&d->run);
        expect(d, reef_run_create(d->context, &d->run, take(b) % 16 ? &setup : NULL, &d->error));
        break;
    case 1:
        expect(d, reef_run_step(d->run, below(b, 3), &d->error));
        break;
    case 2:
        expect(d, reef_run_trust_received(d->run, numbers, work, &d->error));
        expect(d, reef_run_trust_facts(d->run, &facts, &d->error));
        break;
    default:
        (void)reef_run_model(d->run, odd_number(b));
        (void)reef_run_holds(d->run, odd_number(b));
        (void)reef_run_round(d->run);
    }
}

static void aggregate(desk *d, bytes *b)
{
    const int64_t ids[ROWS] = {0, 1, 2, 3, 4, take(b) % 8};
    double weights[ROWS];
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        weights[l] = (double)(below(b, 9) - 1);
        d->x[l][below(b, LENGTH)] = take(b) % 16 ? (float)below(b, 99) : (float)odd_number(b);
    }
    const reef_input input = {.rows = d->rows,
                              .ids = take(b) % 2 ? ids : NULL,
                              .weights = take(b) % 4 ? NULL : weights,
                              .state = take(b) % 2 ? d->state : NULL,
                              .has_self = take(b) % 4 == 0,
                              .self = odd_number(b)};
    reef_report *report = take(b) % 2 ? d->report : NULL;
    if (take(b) % 2) {
        expect(d, reef_plan_apply(d->plan, &input, d->out, report, &d->error));
    } else {
        ptrdiff_t rows = take(b) % 8 ? ROWS : -below(b, 3);
        expect(d, reef_agg_apply(d->agg, &input, rows, LENGTH, REEF_F32, d->out, report, &d->error));
    }
}

/* The steps of a plan in any order: what is out of order is told. */
static void step_plan(desk *d, bytes *b)
{
    const reef_input input = {.rows = d->rows};
    switch (below(b, 7)) {
    case 0:
        expect(d, reef_plan_begin(d->plan, &input, take(b) % 2 ? d->report : NULL, &d->error));
        break;
    case 1:
        expect(d, reef_plan_observe(d->plan, odd_number(b), odd_number(b), odd_number(b), odd_number(b), d->rows,
                                    &d->error));
        break;
    case 2:
        expect(d, reef_plan_observe(d->plan, 0, 0, 0, LENGTH, d->rows, &d->error));
        break;
    case 3:
        expect(d, reef_plan_solve(d->plan, &d->error));
        break;
    case 4:
        expect(d, reef_plan_combine(d->plan, 0, 0, 0, LENGTH, d->rows, d->out, &d->error));
        break;
    case 5:
        expect(d, reef_plan_drop(d->plan, &d->error));
        break;
    default:
        expect(d, reef_plan_end(d->plan, &d->error));
    }
}

static void read_report(desk *d, bytes *b)
{
    char text[200];
    ptrdiff_t row = odd_number(b);
    (void)reef_report_reason(d->report, row);
    (void)reef_report_cause(d->report, row);
    (void)reef_report_factor(d->report, row, odd_number(b));
    (void)reef_report_factor_name(d->report, odd_number(b));
    (void)reef_report_number_name(d->report, odd_number(b));
    (void)reef_report_number(d->report, odd_number(b));
    (void)reef_report_explain(d->report, row, text, sizeof text);
    (void)reef_agg_tolerates(d->agg, odd_number(b));
    (void)reef_state_centre(d->state, odd_number(b));
    (void)reef_state_age(d->state, odd_number(b));
    (void)reef_state_room(d->state, below(b, 9));
}

static void save_state(desk *d, bytes *b)
{
    static unsigned char saved[1 << 16];
    static size_t size;
    if (take(b) % 2) {
        size_t wanted = reef_state_size(d->state);
        reef_status status = reef_state_save(d->state, saved, wanted <= sizeof saved ? wanted : 0, &d->error);
        size = status == REEF_OK ? wanted : 0;
        expect(d, status);
    } else {
        expect(d, reef_state_load(d->state, saved, size, &d->error));
    }
    if (take(b) % 4 == 0) {
        reef_state_set_limit(d->state, odd_number(b));
        reef_state_set_seed(d->state, take(b));
    }
    if (take(b) % 8 == 0) {
        reef_state_reset(d->state);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    typedef void action(desk *, bytes *);
    static action *const actions[] = {make,      make,      make,      learn,       learn,     aggregate,
                                      aggregate, step_plan, step_plan, read_report, save_state};
    static desk d;
    memset(&d, 0, sizeof d);
    bytes b = {data, size, (uint32_t)size};
    for (ptrdiff_t l = 0; l < ROWS; l++) {
        d.rows[l] = d.x[l];
    }
    if (take(&b) % 4) {
        expect(&d, reef_context_create(&d.context, NULL, &d.error));
    }
    for (int i = 0; i < STEPS && (b.left > 0 || i < 8); i++) {
        actions[below(&b, (ptrdiff_t)(sizeof actions / sizeof actions[0]))](&d, &b);
    }
    drop_agg(&d);
    drop_graph(&d);
    drop_attack(&d);
    drop_problem(&d);
    reef_report_destroy(&d.report);
    reef_context_destroy(&d.context);
    return 0;
}
