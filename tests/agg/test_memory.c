/* Memory per sender, for any rule: a rule of the test's own keeps a record, vectors, a shared record and pairs, and a ledger beside it, written in
 * the plainest way, says what they must be. By id, in any order and number; growth, limits, absence, failures, bytes. */
#include "agg/state.h"
#include "base/hash.h"
#include "support/alloc.h"
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the rule: the mean, and a diary of who was heard with whom ---- */

enum { LENGTH = 6, AGENTS = 24, ROWS = 7, PAIR_BLOCK = 5, PAIR_PLACES = 18 };
enum { LAST, SUM, VECTORS };

typedef struct diary_params {
    int64_t fail;   /* fails in the aggregation of this number */
    int64_t forget; /* 0: never */
    int64_t secret; /* 1: draws a seed */
    int64_t idle;   /* nothing is learned in every so many rounds; 0: never */
} diary_params;

#define FIELD(member)                                                                                                  \
    {                                                                                                                  \
        .name = #member, .type = REEF_FIELD_INT, .offset = offsetof(diary_params, member), .preset = "0", .min = 0,    \
        .max = 1e6, .unit = "", .help = "of the test"                                                                  \
    }
static const reef_field fields[] = {FIELD(fail), FIELD(forget), FIELD(secret), FIELD(idle)};

typedef struct diary_record {
    int64_t entries;
    double longest;
} diary_record;

static void diary_sizes(const void *params, ptrdiff_t rows, ptrdiff_t length, reef_memory_sizes *sizes)
{
    const diary_params *p = params;
    (void)rows;
    *sizes = (reef_memory_sizes){.numbers = length,
                                 .vectors = VECTORS,
                                 .record = sizeof(diary_record),
                                 .shared = sizeof(int64_t),
                                 .pair_numbers = 2,
                                 .pair_block = PAIR_BLOCK,
                                 .pair_places = PAIR_PLACES,
                                 .forget = p->forget,
                                 .largest = 1e6,
                                 .secret = p->secret};
}

static void diary_start(const void *params, void *record)
{
    diary_record *r = record;
    (void)params;
    r->longest = 0.5;
}

static reef_status diary_weigh(const void *params, const reef_points *points, double *share, reef_effort *effort,
                               reef_error *error)
{
    const diary_params *p = params;
    reef_recall *recall = points->recall;
    diary_record *records = recall->records;
    (void)effort;
    *(int64_t *)recall->shared += 1;
    for (ptrdiff_t l = 0; l < points->n; l++) {
        share[l] = points->a[l];
        records[l].entries++;
        records[l].longest = fmax(records[l].longest, recall->norm[l]);
        assert_int_equal(recall->heard[l] == 0, recall->age[l] == 1);
    }
    recall->number[0] = (double)(recall->seed >> 11);
    recall->idle = p->idle > 0 && recall->rounds % p->idle == 0;
    if (p->fail && recall->rounds == p->fail) {
        *error = (reef_error){REEF_E_RANGE, "as the test wants it"};
        return REEF_E_RANGE;
    }
    return REEF_OK;
}

static void diary_commit(const void *params, reef_recall *recall)
{
    double sum[LENGTH];
    (void)params;
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        const double *d = recall->residual + l * recall->numbers;
        reef_recall_read(recall, l, SUM, sum);
        for (ptrdiff_t i = 0; i < LENGTH; i++) {
            sum[i] += d[i];
        }
        reef_recall_write(recall, l, SUM, sum);
        reef_recall_average(recall, l, LAST, 1, 1);
        for (ptrdiff_t k = 0; k <= l; k++) {
            float *pair = reef_recall_pair(recall, l, k);
            if (pair) {
                assert_ptr_equal(pair, reef_recall_pair(recall, k, l));
                pair[0] += 1;
                pair[1] = (float)recall->rounds;
            }
        }
    }
}

static bool diary_sane(const void *record, int64_t age, int64_t rounds)
{
    const diary_record *r = record;
    return r->entries == age && age <= rounds && r->longest >= 0.5 && r->longest < 1e6;
}

static bool diary_sane_shared(const void *shared)
{
    return *(const int64_t *)shared >= 0;
}

static unsigned no_needs(const void *params)
{
    (void)params;
    return 0;
}

static const reef_diagnostic numbers[] = {{"seed", "of the state"}};
static const reef_memory diary_memory = {.version = 3,
                                         .sizes = diary_sizes,
                                         .start = diary_start,
                                         .commit = diary_commit,
                                         .is_sane = diary_sane,
                                         .is_sane_shared = diary_sane_shared,
                                         .numbers = numbers,
                                         .number_count = 1};
static const reef_rule diary = {
    .kind = {.name = "diary",
             .summary = "the mean, and a diary",
             .citation = "",
             .fields = fields,
             .field_count = COUNT(fields),
             .params_size = sizeof(diary_params)},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_PERMUTATION | REEF_TRAIT_SENDERS,
    .needs = no_needs,
    .weigh = diary_weigh,
    .memory = &diary_memory,
};

/* ---- the desk: rounds with some of the agents, and the ledger ---- */

typedef struct entry {
    int64_t age, heard;
    double last[LENGTH], sum[LENGTH], longest;
    int64_t met[AGENTS]; /* rounds with another since both are remembered */
} entry;

typedef struct desk {
    alloc_log log;
    reef_context *context;
    reef_agg *agg;
    reef_state *memory;
    reef_report *report;
    double x[ROWS][LENGTH], out[LENGTH];
    const void *rows[ROWS];
    int64_t ids[ROWS];
    ptrdiff_t n;
    uint64_t random;
    int64_t rounds;
    entry ledger[AGENTS]; /* by agent; its id is 1000 - 7 agent */
} desk;

static int64_t id_of(ptrdiff_t agent)
{
    return 1000 - 7 * agent;
}

static uint64_t draw(desk *k)
{
    k->random = k->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return k->random >> 33;
}

static void open_state(const desk *k, reef_state **memory, ptrdiff_t rows)
{
    const ptrdiff_t length = LENGTH;
    const reef_shape shape = {.rows = rows, .segments = 1, .lengths = &length, .dtype = REEF_F64};
    assert_int_equal(reef_state_create(memory, k->agg, &shape, NULL), REEF_OK);
}

static void open_desk(desk *k, const char *spec, ptrdiff_t room)
{
    *k = (desk){.random = 7, .log = {.fail_at = -1}};
    k->context = alloc_context(&k->log, 1);
    assert_int_equal(reef_kind_register(k->context, REEF_FAMILY_RULE, &diary.kind, NULL), REEF_OK);
    assert_int_equal(reef_agg_create(k->context, &k->agg, spec, NULL), REEF_OK);
    assert_int_equal(reef_report_create(NULL, &k->report, ROWS, NULL), REEF_OK);
    open_state(k, &k->memory, room);
}

static void close_desk(desk *k)
{
    reef_state_destroy(&k->memory);
    reef_report_destroy(&k->report);
    reef_agg_destroy(&k->agg);
    reef_context_destroy(&k->context);
    assert_int_equal(atomic_load(&k->log.live), 0);
    assert_false(atomic_load(&k->log.broken));
}

/* n different agents of the first `among`, in any order, with new rows. */
static void fill(desk *k, ptrdiff_t n, ptrdiff_t among)
{
    ptrdiff_t agents[AGENTS];
    for (ptrdiff_t i = 0; i < among; i++) {
        agents[i] = i;
    }
    k->n = n;
    for (ptrdiff_t l = 0; l < n; l++) {
        ptrdiff_t other = l + (ptrdiff_t)(draw(k) % (uint64_t)(among - l));
        ptrdiff_t agent = agents[other];
        agents[other] = agents[l];
        agents[l] = agent;
        k->ids[l] = id_of(agent);
        k->rows[l] = k->x[l];
        for (ptrdiff_t i = 0; i < LENGTH; i++) {
            k->x[l][i] = (double)(draw(k) % 1000) / 100;
        }
    }
}

static reef_status apply_to(desk *k, reef_state *memory, reef_error *error)
{
    const reef_input input = {.rows = k->rows, .ids = k->ids, .state = memory};
    reef_report *report = k->n == ROWS ? k->report : NULL;
    return reef_agg_apply(k->agg, &input, k->n, LENGTH, REEF_F64, k->out, report, error);
}

static double median(const desk *k, ptrdiff_t i)
{
    double sorted[ROWS];
    for (ptrdiff_t l = 0; l < k->n; l++) {
        ptrdiff_t j = l;
        for (; j > 0 && sorted[j - 1] > k->x[l][i]; j--) {
            sorted[j] = sorted[j - 1];
        }
        sorted[j] = k->x[l][i];
    }
    return (sorted[(k->n - 1) / 2] + sorted[k->n / 2]) / 2;
}

static entry *entry_of(desk *k, int64_t id)
{
    return &k->ledger[(1000 - id) / 7];
}

static void forget(desk *k, ptrdiff_t agent)
{
    k->ledger[agent] = (entry){.longest = 0.5};
    for (ptrdiff_t i = 0; i < AGENTS; i++) {
        k->ledger[i].met[agent] = 0;
    }
}

/* Writes the round at hand into the ledger. */
static void note(desk *k, int64_t forget_after)
{
    k->rounds++;
    for (ptrdiff_t l = 0; l < k->n; l++) {
        entry *e = entry_of(k, k->ids[l]);
        double squares = 0;
        if (e->age == 0 || (forget_after && k->rounds - e->heard > forget_after)) {
            forget(k, e - k->ledger);
        }
        for (ptrdiff_t i = 0; i < LENGTH; i++) {
            e->last[i] = k->x[l][i] - median(k, i);
            e->sum[i] += e->last[i];
            squares += e->last[i] * e->last[i];
        }
        e->age++;
        e->heard = k->rounds;
        e->longest = fmax(e->longest, sqrt(squares));
    }
    for (ptrdiff_t l = 0; l < k->n; l++) {
        for (ptrdiff_t j = 0; j < k->n; j++) {
            entry_of(k, k->ids[l])->met[(1000 - k->ids[j]) / 7]++;
        }
    }
}

static void check_pairs(const rfi_senders *s, const desk *k, ptrdiff_t agent)
{
    ptrdiff_t place = rfi_senders_find(s, id_of(agent));
    reef_recall view = {.n = 2, .memory = (rfi_senders *)(uintptr_t)s};
    for (ptrdiff_t other = 0; other < AGENTS; other++) {
        const ptrdiff_t places[2] = {place, rfi_senders_find(s, id_of(other))};
        view.place = places;
        const float *pair = reef_recall_pair(&view, 0, 1);
        bool kept = places[1] >= 0 && place < PAIR_PLACES && places[1] < PAIR_PLACES &&
                    place / PAIR_BLOCK == places[1] / PAIR_BLOCK;
        assert_int_equal(pair != NULL, kept);
        CHECK(!pair || (int64_t)pair[0] == k->ledger[agent].met[other], "agents %td and %td met %g times, not %lld",
              agent, other, (double)pair[0], (long long)k->ledger[agent].met[other]);
    }
}

/* The memory says what the ledger says. */
static void check_memory(const desk *k, const reef_state *memory)
{
    const rfi_senders *s = &memory->senders;
    ptrdiff_t count = 0;
    assert_int_equal(s->rounds, k->rounds);
    assert_int_equal(*(const int64_t *)(const void *)s->shared, k->rounds);
    for (ptrdiff_t agent = 0; agent < AGENTS; agent++) {
        const entry *e = &k->ledger[agent];
        assert_int_equal(reef_state_age(memory, id_of(agent)), e->age);
        ptrdiff_t place = rfi_senders_find(s, id_of(agent));
        assert_int_equal(place >= 0, e->age > 0);
        if (place < 0) {
            continue;
        }
        const diary_record *r = (const void *)(s->records + (size_t)place * sizeof *r);
        const double *last = (const void *)rfi_senders_vector(s, place, LAST);
        const double *sum = (const void *)rfi_senders_vector(s, place, SUM);
        count++;
        assert_int_equal(s->who[place].heard, e->heard);
        assert_int_equal(r->entries, e->age);
        CHECK_CLOSE(r->longest, e->longest, 1e-12, "the longest residual");
        for (ptrdiff_t i = 0; i < LENGTH; i++) {
            CHECK_CLOSE(last[i], e->last[i], 1e-12, "the last residual");
            CHECK_CLOSE(sum[i], e->sum[i], 1e-10, "the sum of residuals");
        }
        check_pairs(s, k, agent);
    }
    assert_int_equal(reef_state_senders(memory), count);
}

static void step(desk *k, ptrdiff_t n, ptrdiff_t among, int64_t forget_after)
{
    reef_error error = {REEF_OK, ""};
    fill(k, n, among);
    CHECK(apply_to(k, k->memory, &error) == REEF_OK, "%s", error.text);
    note(k, forget_after);
}

/* ---- who is remembered ---- */

/* Room for two at first; any number of rows of any agents in any order. */
static void senders_are_remembered_by_id(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "diary", 2);
    for (int round = 0; round < 200; round++) {
        step(&k, 1 + (ptrdiff_t)(draw(&k) % ROWS), round < 20 ? ROWS : AGENTS, 0);
        check_memory(&k, k.memory);
    }
    assert_int_equal(reef_state_senders(k.memory), AGENTS);
    reef_state_reset(k.memory);
    assert_int_equal(reef_state_senders(k.memory), 0);
    assert_int_equal(reef_state_age(k.memory, id_of(3)), 0);
    close_desk(&k);
}

static void the_order_of_rows_changes_nothing(void **state)
{
    desk k;
    reef_state *other = NULL;
    (void)state;
    open_desk(&k, "diary", ROWS);
    open_state(&k, &other, 1);
    for (int round = 0; round < 30; round++) {
        step(&k, ROWS, AGENTS, 0);
        for (ptrdiff_t l = 0; l < ROWS / 2; l++) { /* the other way round */
            const void *row = k.rows[l];
            int64_t id = k.ids[l];
            k.rows[l] = k.rows[ROWS - 1 - l];
            k.ids[l] = k.ids[ROWS - 1 - l];
            k.rows[ROWS - 1 - l] = row;
            k.ids[ROWS - 1 - l] = id;
        }
        assert_int_equal(apply_to(&k, other, NULL), REEF_OK);
        const rfi_senders *a = &k.memory->senders;
        const rfi_senders *b = &other->senders;
        for (ptrdiff_t agent = 0; agent < AGENTS; agent++) {
            ptrdiff_t here = rfi_senders_find(a, id_of(agent));
            ptrdiff_t there = rfi_senders_find(b, id_of(agent));
            assert_int_equal(here >= 0, there >= 0);
            if (here >= 0) {
                assert_memory_equal(rfi_senders_vector(a, here, 0), rfi_senders_vector(b, there, 0),
                                    VECTORS * LENGTH * sizeof(double));
            }
        }
    }
    reef_state_destroy(&other);
    close_desk(&k);
}

static void who_was_away_for_long_starts_afresh(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "diary:forget=5", ROWS);
    for (int round = 0; round < 120; round++) {
        step(&k, 3, AGENTS / 2, 5);
        check_memory(&k, k.memory);
    }
    close_desk(&k);
}

static void idle_rounds_leave_nothing(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "diary:idle=3", ROWS);
    step(&k, 4, ROWS, 0);
    step(&k, 4, ROWS, 0);
    fill(&k, 4, AGENTS);
    assert_int_equal(apply_to(&k, k.memory, NULL), REEF_OK); /* the third */
    check_memory(&k, k.memory);
    close_desk(&k);
}

/* Absent, and known for a shorter time; or heard less recently; or of lower id. */
static bool goes_before(const desk *k, ptrdiff_t one, ptrdiff_t other)
{
    const entry *a = &k->ledger[one];
    const entry *b = &k->ledger[other];
    if (a->age != b->age) {
        return a->age < b->age;
    }
    return a->heard != b->heard ? a->heard < b->heard : id_of(one) < id_of(other);
}

/* Beyond the limit the youngest absent one goes, with all that was kept of it and its pairs. */
static void the_limit_holds(void **state)
{
    enum { LIMIT = 9 };
    desk k;
    (void)state;
    open_desk(&k, "diary", 2);
    reef_state_set_limit(k.memory, LIMIT);
    for (int round = 0; round < 150; round++) {
        step(&k, 4, AGENTS, 0);
        ptrdiff_t known = 0;
        for (ptrdiff_t agent = 0; agent < AGENTS; agent++) {
            known += k.ledger[agent].age > 0;
        }
        for (; known > LIMIT; known--) {
            ptrdiff_t goes = -1;
            for (ptrdiff_t agent = 0; agent < AGENTS; agent++) {
                bool absent = k.ledger[agent].age > 0 && k.ledger[agent].heard < k.rounds;
                goes = absent && (goes < 0 || goes_before(&k, agent, goes)) ? agent : goes;
            }
            forget(&k, goes);
        }
        check_memory(&k, k.memory);
        assert_true(reef_state_senders(k.memory) <= LIMIT);
    }
    close_desk(&k);
}

/* ---- failures ---- */

static unsigned char *bytes_of(const reef_state *memory, size_t *size)
{
    *size = reef_state_size(memory);
    unsigned char *bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(reef_state_save(memory, bytes, *size, NULL), REEF_OK);
    return bytes;
}

static void check_unchanged(const reef_state *memory, const unsigned char *bytes, size_t size)
{
    size_t now_size = 0;
    unsigned char *now = bytes_of(memory, &now_size);
    assert_int_equal(now_size, size);
    assert_memory_equal(now, bytes, size);
    free(now);
}

static void failures_change_nothing(void **state)
{
    desk k;
    reef_error error = {REEF_OK, ""};
    size_t size = 0;
    (void)state;
    open_desk(&k, "diary:fail=6,nan=error", 2);
    for (int round = 0; round < 5; round++) {
        step(&k, 5, 8, 0);
    }
    unsigned char *before = bytes_of(k.memory, &size);
    fill(&k, ROWS, AGENTS);
    assert_int_equal(apply_to(&k, k.memory, &error), REEF_E_RANGE); /* the rule fails, in the sixth */
    check_unchanged(k.memory, before, size);
    k.x[2][3] = NAN;
    assert_int_equal(apply_to(&k, k.memory, &error), REEF_E_NONFINITE);
    check_unchanged(k.memory, before, size);
    fill(&k, ROWS, AGENTS);
    k.ids[4] = k.ids[1];
    assert_int_equal(apply_to(&k, k.memory, &error), REEF_E_ARG);
    assert_non_null(strstr(error.text, "two rows"));
    check_unchanged(k.memory, before, size);
    free(before);
    close_desk(&k);
}

/* Every allocation of a round in which the memory has to grow fails once. */
static void no_memory_to_grow(void **state)
{
    desk k;
    size_t size = 0;
    (void)state;
    open_desk(&k, "diary", 3);
    step(&k, 3, 3, 0);
    unsigned char *before = bytes_of(k.memory, &size);
    reef_error error = {REEF_OK, ""};
    reef_status status = REEF_E_NOMEM;
    int failures = 0;
    fill(&k, ROWS, AGENTS);
    for (; status == REEF_E_NOMEM; failures++) {
        check_unchanged(k.memory, before, size);
        k.log.fail_at = atomic_load(&k.log.total) + failures;
        status = apply_to(&k, k.memory, &error);
    }
    k.log.fail_at = -1;
    assert_int_equal(status, REEF_OK);
    assert_int_equal(failures, 3); /* the plan, the larger memory, none */
    note(&k, 0);
    check_memory(&k, k.memory);
    free(before);
    close_desk(&k);
}

/* ---- bytes ---- */

static void sign(unsigned char *bytes, size_t size)
{
    uint64_t sum = rfi_hash_bytes(RFI_HASH_START, bytes, size - sizeof sum);
    memcpy(bytes + size - sizeof sum, &sum, sizeof sum);
}

/* Saved in any round, loaded into a state with less room that remembers others: both go on alike. */
static void saved_and_loaded(void **state)
{
    desk k;
    (void)state;
    open_desk(&k, "diary", 2);
    for (int round = 0; round < 25; round++) {
        reef_state *twin = NULL;
        size_t size = 0;
        unsigned char *bytes = bytes_of(k.memory, &size);
        assert_int_equal(size, reef_state_room(k.memory, reef_state_senders(k.memory)));
        open_state(&k, &twin, 1);
        fill(&k, 3, AGENTS);
        assert_int_equal(apply_to(&k, twin, NULL), REEF_OK);
        assert_int_equal(reef_state_load(twin, bytes, size, NULL), REEF_OK);
        check_unchanged(twin, bytes, size);
        free(bytes);
        step(&k, ROWS, AGENTS, 0);
        assert_int_equal(apply_to(&k, twin, NULL), REEF_OK);
        check_memory(&k, twin);
        bytes = bytes_of(k.memory, &size);
        check_unchanged(twin, bytes, size);
        free(bytes);
        reef_state_destroy(&twin);
    }
    close_desk(&k);
}

/* Every bit, every length: refused with a sentence, and the state that was to take it is as before. */
static void check_damage(reef_state *memory, reef_state *victim)
{
    size_t size = 0;
    size_t victim_size = 0;
    unsigned char *bytes = bytes_of(memory, &size);
    unsigned char *before = bytes_of(victim, &victim_size);
    unsigned char *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    copy[size] = 0;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        reef_error error = {REEF_OK, ""};
        copy[bit / 8] ^= (unsigned char)(1U << bit % 8);
        CHECK(reef_state_load(victim, copy, size, &error) == REEF_E_FORMAT, "bit %zu of %zu is taken", bit, 8 * size);
        assert_true(error.text[0] != '\0');
        copy[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
    for (size_t length = 0; length <= size + 1; length++) {
        reef_error error = {REEF_OK, ""};
        CHECK(length == size || reef_state_load(victim, copy, length, &error) == REEF_E_FORMAT,
              "%zu of %zu bytes are taken", length, size);
    }
    check_unchanged(victim, before, victim_size);
    assert_int_equal(reef_state_load(victim, bytes, size, NULL), REEF_OK);
    check_unchanged(victim, bytes, size);
    free(copy);
    free(before);
    free(bytes);
}

static void damaged_bytes_are_refused(void **state)
{
    desk k;
    reef_state *victim = NULL;
    (void)state;
    open_desk(&k, "diary", 2);
    open_state(&k, &victim, 3);
    for (int round = 0; round < 4; round++) {
        step(&k, 5, 9, 0);
        assert_int_equal(apply_to(&k, victim, NULL), REEF_OK);
    }
    step(&k, 5, 9, 0);
    check_damage(k.memory, victim);
    reef_state_destroy(&victim);
    close_desk(&k);
}

/* The centre of centered clipping lies in the same container. */
static void damaged_centres_are_refused(void **state)
{
    const ptrdiff_t lengths[] = {3, LENGTH};
    double x[3][3 + LENGTH] = {{1, 2, 3, 4, 5}, {2, 3, 4}, {9, 8, 7, 6}};
    double out[3 + LENGTH];
    const void *first[] = {x[0], x[1], x[2]};
    const void *second[] = {x[0] + 3, x[1] + 3, x[2] + 3};
    const void *const *const rows[] = {first, second};
    void *const outs[] = {out, out + 3};
    reef_agg *agg = NULL;
    reef_plan *plan = NULL;
    reef_state *states[2] = {NULL, NULL};
    const reef_shape shape = {.rows = 3, .segments = 2, .lengths = lengths, .dtype = REEF_F64};
    (void)state;
    assert_int_equal(reef_agg_create(NULL, &agg, "nnm:f=1 | cclip:tau=2", NULL), REEF_OK);
    assert_int_equal(reef_plan_create(&plan, agg, &shape, NULL), REEF_OK);
    assert_int_equal(reef_state_create(&states[0], agg, &shape, NULL), REEF_OK);
    assert_int_equal(reef_state_create(&states[1], agg, &shape, NULL), REEF_OK);
    check_damage(states[1], states[0]); /* before anything is known */
    const reef_input input = {.state = states[0]};
    assert_int_equal(reef_plan_apply_segments(plan, &input, rows, outs, NULL, NULL), REEF_OK);
    check_damage(states[0], states[1]);
    assert_memory_equal(reef_state_centre(states[1], 1), out + 3, LENGTH * sizeof(double));
    reef_state_destroy(&states[0]);
    reef_state_destroy(&states[1]);
    reef_plan_destroy(&plan);
    reef_agg_destroy(&agg);
}

/* With a checksum that fits: refused, or a memory that can be used. */
static void forged_bytes_do_no_harm(void **state)
{
    desk k;
    reef_state *victim = NULL;
    size_t size = 0;
    int refused = 0;
    (void)state;
    open_desk(&k, "diary", 2);
    open_state(&k, &victim, 2);
    for (int round = 0; round < 6; round++) {
        step(&k, 5, 9, 0);
    }
    unsigned char *bytes = bytes_of(k.memory, &size);
    for (size_t at = 0; at < size - sizeof(uint64_t); at++) {
        unsigned char old = bytes[at];
        reef_error error = {REEF_OK, ""};
        bytes[at] = (unsigned char)(at % 2 ? 0xFF : old ^ 0x40);
        sign(bytes, size);
        bool taken = reef_state_load(victim, bytes, size, &error) == REEF_OK;
        refused += !taken;
        assert_true(taken || error.text[0]);
        fill(&k, ROWS, AGENTS);
        assert_int_equal(apply_to(&k, victim, NULL), REEF_OK);
        bytes[at] = old;
    }
    CHECK(refused > (int)size / 5, "%d of %zu refused", refused, size);
    free(bytes);
    reef_state_destroy(&victim);
    close_desk(&k);
}

/* Two senders of one id would make a table that finds one of them, or none. */
static void an_id_is_there_once(void **state)
{
    desk k;
    size_t size = 0;
    reef_error error = {REEF_OK, ""};
    (void)state;
    open_desk(&k, "diary", 2);
    step(&k, 5, 9, 0);
    unsigned char *bytes = bytes_of(k.memory, &size);
    size_t first = reef_state_room(k.memory, 0) - sizeof(uint64_t); /* what stands before the senders */
    memcpy(bytes + first + sizeof(rfi_sender), bytes + first, sizeof(int64_t));
    sign(bytes, size);
    assert_int_equal(reef_state_load(k.memory, bytes, size, &error), REEF_E_FORMAT);
    check_memory(&k, k.memory);
    free(bytes);
    close_desk(&k);
}

/* Bytes of another kind, each with its sentence. */
static void check_sentence(reef_state *memory, unsigned char *bytes, size_t size, const char *words)
{
    reef_error error = {REEF_OK, ""};
    sign(bytes, size);
    assert_int_equal(reef_state_load(memory, bytes, size, &error), REEF_E_FORMAT);
    CHECK(strstr(error.text, words), "'%s' instead of '%s'", error.text, words);
}

static void foreign_bytes_have_their_sentence(void **state)
{
    enum { VERSION_AT = 8, RULE_AT = 32, RULE_VERSION_AT = 72, SHAPE_AT = 80 };
    desk k;
    size_t size = 0;
    (void)state;
    open_desk(&k, "diary", 2);
    step(&k, 3, 9, 0);
    unsigned char *bytes = bytes_of(k.memory, &size);
    assert_string_equal((const char *)bytes + RULE_AT, "diary");
    bytes[VERSION_AT]++;
    check_sentence(k.memory, bytes, size, "has format 2; this version of Reef reads format 1");
    bytes[VERSION_AT]--;
    bytes[RULE_AT]++;
    check_sentence(k.memory, bytes, size, "a rule other than diary");
    bytes[RULE_AT]--;
    bytes[RULE_VERSION_AT]--;
    check_sentence(k.memory, bytes, size, "version 2 of what diary remembers");
    bytes[RULE_VERSION_AT]++;
    bytes[SHAPE_AT]++;
    check_sentence(k.memory, bytes, size, "another shape");
    bytes[SHAPE_AT]--;
    memcpy(bytes, "REEFMEM", 8);
    check_sentence(k.memory, bytes, size, "Reef 0.1");
    static const unsigned char zip[] = {'P', 'K', 3, 4};
    memcpy(bytes, zip, sizeof zip);
    check_sentence(k.memory, bytes, size, "not a saved state");
    assert_int_equal(reef_state_load(k.memory, NULL, 0, NULL), REEF_E_ARG);
    free(bytes);
    close_desk(&k);
}

static void a_state_of_more_senders_than_the_limit_is_refused(void **state)
{
    desk k;
    size_t size = 0;
    reef_error error = {REEF_OK, ""};
    reef_state *small = NULL;
    (void)state;
    open_desk(&k, "diary", 2);
    for (int round = 0; round < 9; round++) {
        step(&k, ROWS, AGENTS, 0);
    }
    unsigned char *bytes = bytes_of(k.memory, &size);
    open_state(&k, &small, 2);
    reef_state_set_limit(small, 5);
    assert_int_equal(reef_state_load(small, bytes, size, &error), REEF_E_RANGE);
    assert_int_equal(reef_state_senders(small), 0);
    free(bytes);
    reef_state_destroy(&small);
    close_desk(&k);
}

/* ---- seeds ---- */

static double seed_seen(desk *k, reef_state *memory)
{
    fill(k, ROWS, AGENTS);
    assert_int_equal(apply_to(k, memory, NULL), REEF_OK);
    return reef_report_number(k->report, 0);
}

static void seeds_are_kept(void **state)
{
    desk k;
    reef_state *other = NULL;
    size_t size = 0;
    (void)state;
    open_desk(&k, "diary:secret=1", 2);
    open_state(&k, &other, 2);
    double seed = seed_seen(&k, k.memory);
    assert_true(seed != 0 && seed != seed_seen(&k, other));
    reef_state_reset(k.memory);
    assert_true(seed_seen(&k, k.memory) == seed);
    unsigned char *bytes = bytes_of(k.memory, &size);
    assert_int_equal(reef_state_load(other, bytes, size, NULL), REEF_OK);
    assert_true(seed_seen(&k, other) == seed);
    reef_state_set_seed(other, UINT64_C(77) << 11);
    assert_true(seed_seen(&k, other) == 77);
    free(bytes);
    reef_state_destroy(&other);
    close_desk(&k);
    open_desk(&k, "diary", 2); /* which has no secrets */
    assert_true(seed_seen(&k, k.memory) == 0);
    close_desk(&k);
}

/* ---- registration ---- */

static void bad_sizes(const void *params, ptrdiff_t rows, ptrdiff_t length, reef_memory_sizes *sizes)
{
    diary_sizes(params, rows, length, sizes);
    sizes->numbers = 5; /* neither all nor a power of two */
}

static void what_cannot_be_registered(void **state)
{
    static const reef_diagnostic nameless[] = {{NULL, "nothing"}};
    reef_memory memory = diary_memory;
    reef_rule rule = diary;
    reef_context *context = NULL;
    reef_agg *agg = NULL;
    reef_error error = {REEF_OK, ""};
    size_t bytes = 0;
    const ptrdiff_t length = LENGTH;
    const reef_shape shape = {.rows = 3, .segments = 1, .lengths = &length, .dtype = REEF_F64};
    (void)state;
    assert_int_equal(reef_context_create(&context, NULL, NULL), REEF_OK);
    rule.memory = NULL; /* the trait alone */
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_RULE, &rule.kind, &error), REEF_E_ARG);
    rule.memory = &memory;
    rule.traits = REEF_TRAIT_WEIGHTS; /* the memory alone */
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_RULE, &rule.kind, &error), REEF_E_ARG);
    rule.traits = diary.traits;
    memory.sizes = NULL;
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_RULE, &rule.kind, &error), REEF_E_ARG);
    memory.sizes = bad_sizes;
    memory.factors = nameless;
    memory.factor_count = 1;
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_RULE, &rule.kind, &error), REEF_E_ARG);
    memory.factor_count = 0;
    assert_int_equal(reef_kind_register(context, REEF_FAMILY_RULE, &rule.kind, &error), REEF_OK);
    assert_int_equal(reef_agg_create(context, &agg, "nnm | diary", &error), REEF_E_SYNTAX);
    assert_int_equal(reef_agg_create(context, &agg, "diary", &error), REEF_OK);
    assert_int_equal(reef_plan_size(agg, &shape, &bytes, &error), REEF_E_RANGE); /* known when there is a shape */
    reef_agg_destroy(&agg);
    reef_context_destroy(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(senders_are_remembered_by_id),
        cmocka_unit_test(the_order_of_rows_changes_nothing),
        cmocka_unit_test(who_was_away_for_long_starts_afresh),
        cmocka_unit_test(idle_rounds_leave_nothing),
        cmocka_unit_test(the_limit_holds),
        cmocka_unit_test(failures_change_nothing),
        cmocka_unit_test(no_memory_to_grow),
        cmocka_unit_test(saved_and_loaded),
        cmocka_unit_test(damaged_bytes_are_refused),
        cmocka_unit_test(damaged_centres_are_refused),
        cmocka_unit_test(forged_bytes_do_no_harm),
        cmocka_unit_test(an_id_is_there_once),
        cmocka_unit_test(foreign_bytes_have_their_sentence),
        cmocka_unit_test(a_state_of_more_senders_than_the_limit_is_refused),
        cmocka_unit_test(seeds_are_kept),
        cmocka_unit_test(what_cannot_be_registered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
