/* Same setup, same bits: with any number of threads, lane by lane, and after a stop and a resume. */
#include "base/hash.h"
#include "support/check.h"
#include "support/runs.h"
#include "support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- threads ---- */

/* 300 agents with 240 numbers are 72000: above the 65536 from which threads are used. */
enum { MANY = 300 };

static bool edge_message(const void *params, const reef_attack_view *view, float *out)
{
    (void)params;
    for (ptrdiff_t i = 0; i < view->length; i++) {
        out[i] = view->own[i] + (float)(view->receiver % 5) + (view->known > 0 ? view->rows[view->known - 1][i] : 0);
    }
    return true;
}

static const reef_attack_kind two_faced = {.kind = {.name = "two_faced", .summary = "", .citation = ""},
                                           .traits = REEF_ATTACK_EDGE | REEF_ATTACK_ROWS,
                                           .knowledge = REEF_KNOW_NEIGHBOURS,
                                           .message = edge_message};

/* Sends what the rule in force makes of its own row and those known: differs if some thread could not try it. */
static bool tried_message(const void *params, const reef_attack_view *view, float *out)
{
    const float *rows[3] = {view->own, view->rows[0], view->rows[1]};
    (void)params;
    if (!view->aggregate || !view->aggregate(view->user, rows, 3, out)) {
        memset(out, 0, (size_t)view->length * sizeof *out);
    }
    out[view->sender % view->length] += 1;
    return true;
}

static const reef_attack_kind tries = {.kind = {.name = "tries", .summary = "", .citation = ""},
                                       .traits = REEF_ATTACK_RULE | REEF_ATTACK_ROWS,
                                       .message = tried_message};

static const world_plan large[] = {
    {.graph = "ring:k=3", .rule = "ref", .attack = "alie:knowledge=neighbours", .malicious_count = 40},
    {.graph = "ring:k=3",
     .rule = "median",
     .own_attack = &two_faced,
     .malicious_count = 40,
     .strategy = "diffusion:order=cta"},
    {.graph = "regular:degree=8", .weights = "metropolis", .links = "failing:p=0.2", .rule = "ref", .trust = true},
    {.graph = "regular:degree=8", .rule = "trimmed:f=1,keep_self=true", .strategy = "diffusion:order=consensus"},
    {.graph = "regular:degree=8", .rule = "krum:f=2", .attack = "gaussian", .malicious_count = 30},
    {.graph = "complete", .rule = "ref", .attack = "sign_flip", .malicious_count = 60},
    {.graph = "complete", .rule = "cclip:tau=1", .strategy = "diffusion:momentum=0.9"},
    {.graph = "complete", .rule = "mref", .attack = "alie:z=1", .malicious_count = 60, .trust = true},
    {.graph = "ring:k=2",
     .rule = "mref",
     .attack = "gaussian",
     .malicious_count = 40}, /* five rows: the own one decides */
    {.graph = "regular:degree=8",
     .links = "failing:p=0.2",
     .rule = "mref:sketch=16",
     .attack = "gaussian",
     .malicious_count = 40},
    {.strategy = "federated:fraction=0.5,dropout=0.1",
     .rule = "mref:sketch=64",
     .malicious_count = 50,
     .attack = "gaussian"},
    {.strategy = "federated:fraction=0.5,steps=2,steps_max=4,momentum=0.5,mean_delay=1",
     .rule = "ref",
     .malicious_count = 50,
     .attack = "gaussian"},
    {.strategy = "federated", .rule = "median", .own_attack = &tries, .malicious_count = 50},
    {.strategy = "rsa:norm=l2", .rule = "", .attack = "sign_flip", .malicious_count = 50},
    {.strategy = "rsa_tv", .rule = "", .graph = "ring:k=3", .own_attack = &two_faced, .malicious_count = 50},
    {.strategy = "local", .rule = ""},
    {.strategy = "oracle", .rule = "", .graph = "regular:degree=8", .malicious_count = 50},
};

static void any_number_of_threads(void **state)
{
    static const ptrdiff_t counts[] = {2, 7};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(large); i++) {
        world_plan plan = large[i];
        world one;
        plan.agents = MANY;
        plan.problem = "lms:dimension=240";
        plan.threads = 1;
        world_open(&one, &plan);
        world_step(&one, 4);
        for (ptrdiff_t j = 0; j < COUNT(counts); j++) {
            char what[100];
            world more;
            plan.threads = counts[j];
            (void)snprintf(what, sizeof what, "setup %td on %td threads", i, counts[j]);
            world_open(&more, &plan);
            world_step(&more, 4);
            check_same(&one, &more, what);
            world_close(&more);
        }
        world_close(&one);
    }
}

/* ---- lanes ---- */

enum { LANES = 16, FEW = 12 };

/* Lane r of a run of 16 lanes against repetition r by itself: the same bits. Elementwise rules work on each column by itself, whatever
 * its place among the others; the problem draws by repetition. */
static void check_lanes(const world_plan *common, const char *what)
{
    world all;
    world_plan plan = *common;
    plan.agents = FEW;
    plan.lanes = LANES;
    plan.repetition = 3;
    world_open(&all, &plan);
    world_step(&all, 30);
    for (ptrdiff_t r = 0; r < LANES; r++) {
        world one;
        plan.lanes = 1;
        plan.repetition = 3 + r;
        world_open(&one, &plan);
        world_step(&one, 30);
        for (ptrdiff_t k = 0; k < FEW; k++) {
            const float *x = reef_run_model(all.run, k);
            const float *y = reef_run_model(one.run, k);
            for (ptrdiff_t m = 0; m < reef_run_dimension(one.run); m++) {
                CHECK(memcmp(&x[m * LANES + r], &y[m], sizeof y[m]) == 0, "%s: lane %td of agent %td: %.9g, alone %.9g",
                      what, r, k, (double)x[m * LANES + r], (double)y[m]);
            }
        }
        world_close(&one);
    }
    world_close(&all);
}

static void lanes_are_repetitions(void **state)
{
    static const char *const rules[] = {"mean",
                                        "median",
                                        "ref",
                                        "trimmed:f=2",
                                        "meamed:f=2",
                                        "huber",
                                        "tukey",
                                        "median:keep_self=true",
                                        "trimmed:f=1,keep_self=true"};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(rules); i++) {
        check_lanes(&(world_plan){.rule = rules[i], .attack = "gaussian", .malicious_count = 2}, rules[i]);
        check_lanes(&(world_plan){.rule = rules[i], .graph = "ring:k=3", .weights = "metropolis"}, rules[i]);
    }
    check_lanes(
        &(world_plan){.rule = "ref", .attack = "alie:knowledge=neighbours", .malicious_count = 2, .graph = "ring:k=3"},
        "alie to single receivers");
    check_lanes(&(world_plan){.rule = "ref", .attack = "alie:jitter=0.5", .malicious_count = 2}, "alie with noise");
    check_lanes(&(world_plan){.rule = "mean", .strategy = "diffusion:order=cta,momentum=0.5"}, "cta");
    check_lanes(&(world_plan){.rule = "ref", .strategy = "federated:fraction=0.5,steps=2"}, "federated");
    check_lanes(&(world_plan){.rule = "", .strategy = "rsa:norm=linf", .attack = "sign_flip", .malicious_count = 2},
                "rsa");
    check_lanes(&(world_plan){.rule = "", .strategy = "rsa_tv:norm=l2"}, "rsa_tv");
    check_lanes(&(world_plan){.rule = "", .strategy = "oracle", .malicious_count = 2}, "oracle");
    check_lanes(&(world_plan){.rule = "", .strategy = "local"}, "local");
}

/* ---- checkpoints ---- */

static bool own_message(const void *params, const reef_attack_view *view, float *out)
{
    (void)params;
    memcpy(out, view->own, (size_t)view->length * sizeof *out);
    return view->round % 3 != 1; /* now and then silent */
}

static int64_t late_by(const void *params)
{
    (void)params;
    return 4;
}

static const reef_attack_kind late = {.kind = {.name = "late", .summary = "", .citation = ""},
                                      .traits = REEF_ATTACK_LANES,
                                      .message = own_message,
                                      .delay = late_by};

static const world_plan resumed[] = {
    {.rule = "ref", .attack = "additive", .malicious_count = 2},
    {.rule = "mean",
     .strategy = "diffusion:order=cta,momentum=0.9",
     .attack = "sign_flip:reference=previous",
     .malicious_count = 2},
    {.rule = "mean",
     .strategy = "diffusion:order=consensus,momentum=0.9",
     .attack = "sign_flip:reference=previous",
     .malicious_count = 2},
    {.rule = "cclip:tau=0.1", .graph = "ring:k=2"},
    {.rule = "mref", .graph = "ring:k=2", .attack = "alie:z=1", .malicious_count = 1},
    {.rule = "mref", .graph = "complete", .attack = "whitewash", .malicious_count = 3}, /* more senders than agents */
    {.rule = "mref:sketch=16", .graph = "ring:k=3", .links = "failing:p=0.2"},
    {.rule = "vref", .graph = "complete", .attack = "adaptive:z=3,least=0", .malicious_count = 3},
    {.rule = "vref", .strategy = "federated:fraction=0.7", .attack = "adaptive:z=3,least=0", .malicious_count = 3},
    {.rule = "mref",
     .strategy = "federated:fraction=0.7,dropout=0.2,available=0.9",
     .attack = "gaussian",
     .malicious_count = 2},
    {.rule = "median", .own_attack = &late, .malicious_count = 3, .lanes = 4},
    {.rule = "median", .links = "failing:p=0.4", .graph = "ring:k=2"},
    {.rule = "ref",
     .strategy = "federated:mean_delay=3,clients=8,steps_max=3,server_momentum=0.5,momentum=0.5",
     .own_attack = &late,
     .malicious_count = 3},
    {.rule = "cclip",
     .strategy = "federated:fraction=0.5,dropout=0.2,available=0.9",
     .attack = "gaussian",
     .malicious_count = 2},
    {.rule = "", .strategy = "rsa:weight_decay=0.01", .attack = "sign_flip", .malicious_count = 2},
    {.rule = "", .strategy = "rsa_tv:momentum=0.5", .attack = "sign_flip:reference=previous", .malicious_count = 2},
    {.rule = "", .strategy = "local:schedule=sqrt"},
    {.rule = "", .strategy = "oracle", .malicious_count = 2},
};

/* Saved after 0, 1, ... rounds, loaded into a run that has gone another way, and both go on. */
static void a_stop_changes_nothing(void **state)
{
    static const int64_t stops[] = {0, 1, 2, 3, 5, 8};
    scratch s;
    reef_error error;
    (void)state;
    scratch_open(&s);
    for (ptrdiff_t i = 0; i < COUNT(resumed); i++) {
        for (ptrdiff_t j = 0; j < COUNT(stops); j++) {
            char path[SCRATCH_PATH];
            char what[100];
            world a;
            world b;
            (void)snprintf(what, sizeof what, "setup %td stopped after %lld rounds", i, (long long)stops[j]);
            world_open(&a, &resumed[i]);
            world_open(&b, &resumed[i]);
            world_step(&a, stops[j]);
            world_step(&b, 7 - j);
            CHECK(reef_run_save(a.run, scratch_path(&s, "run", path), &error) == REEF_OK, "%s", error.text);
            CHECK(reef_run_load(b.run, path, &error) == REEF_OK, "%s: %s", what, error.text);
            check_same(&a, &b, what);
            for (int round = 0; round < 9; round++) {
                world_step(&a, 1);
                world_step(&b, 1);
                check_same(&a, &b, what);
            }
            world_close(&a);
            world_close(&b);
        }
    }
    scratch_close(&s);
}

/* A file that is refused leaves the run as it was: it goes on like its twin. */
static void check_refused(const world_plan *plan, const char *path, const char *what)
{
    world a;
    world b;
    reef_error error = {0};
    world_open(&a, plan);
    world_open(&b, plan);
    world_step(&a, 3);
    world_step(&b, 3);
    CHECK(reef_run_load(a.run, path, &error) != REEF_OK, "%s is taken", what);
    CHECK(strstr(error.text, "run"), "%s: %s", what, error.text); /* the file is called so */
    check_same(&a, &b, what);
    world_step(&a, 5);
    world_step(&b, 5);
    check_same(&a, &b, what);
    world_close(&a);
    world_close(&b);
}

#define BASE .rule = "cclip", .strategy = "federated:mean_delay=3", .attack = "gaussian", .malicious_count = 2

static void other_setups_are_refused(void **state)
{
    static const double factor[] = {1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const bool others[12] = {false, true, true};
    static const world_plan plans[] = {
        {BASE, .seed = 1},
        {BASE, .problem_seed = 1},
        {BASE, .problem = "lms:dimension=5,noise=0.02"},
        {BASE, .repetition = 1},
        {BASE, .step_factor = factor},
        {BASE, .malicious = others},
        {.rule = "cclip:tau=3", .strategy = "federated:mean_delay=3", .attack = "gaussian", .malicious_count = 2},
        {.rule = "cclip", .strategy = "federated:mean_delay=2", .attack = "gaussian", .malicious_count = 2},
        {.rule = "cclip", .strategy = "federated:mean_delay=3", .attack = "gaussian:sigma=3", .malicious_count = 2},
    };
    static const world_plan networks[] = {
        {.rule = "median", .links = "failing:p=0.4"},
        {.rule = "median", .links = "failing:p=0.3", .graph = "ring"},
        {.rule = "median", .links = "failing:p=0.3", .weights = "metropolis", .graph = "star"},
        {.rule = "median", .links = "failing:p=0.3", .graphs = 2},
    };
    scratch s;
    char path[SCRATCH_PATH];
    reef_error error;
    world w;
    (void)state;
    scratch_open(&s);
    world_open(&w, &(world_plan){BASE});
    world_step(&w, 5);
    assert_int_equal(reef_run_save(w.run, scratch_path(&s, "run", path), &error), REEF_OK);
    world_close(&w);
    for (ptrdiff_t i = 0; i < COUNT(plans); i++) {
        char what[60];
        (void)snprintf(what, sizeof what, "the checkpoint of another setup (%td)", i);
        check_refused(&plans[i], path, what);
    }
    world_open(&w, &(world_plan){.rule = "median", .links = "failing:p=0.3"});
    assert_int_equal(reef_run_save(w.run, path, &error), REEF_OK);
    world_close(&w);
    for (ptrdiff_t i = 0; i < COUNT(networks); i++) {
        check_refused(&networks[i], path, "the checkpoint of another network");
    }
    scratch_close(&s);
}

static size_t read_bytes(const char *path, unsigned char *bytes, size_t room)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, room, file);
    assert_int_equal(fclose(file), 0);
    return size;
}

static void damaged_files_are_refused(void **state)
{
    static unsigned char bytes[20000];
    scratch s;
    char path[SCRATCH_PATH];
    reef_error error;
    world w;
    (void)state;
    scratch_open(&s);
    world_open(&w, &(world_plan){BASE});
    world_step(&w, 5);
    assert_int_equal(reef_run_save(w.run, scratch_path(&s, "run", path), &error), REEF_OK);
    world_close(&w);
    size_t size = read_bytes(path, bytes, sizeof bytes);
    assert_true(size > 200 && size < sizeof bytes - 1);
    const size_t lengths[] = {0, 1, 8, 15, 24, size / 2, size - 1, size + 1};
    for (ptrdiff_t i = 0; i < COUNT(lengths); i++) {
        check_refused(&(world_plan){BASE}, scratch_file(&s, "run", bytes, lengths[i], path),
                      "a run file of other length");
    }
    for (size_t at = 0; at < size; at += 1 + size / 40) {
        bytes[at] ^= 0x10;
        check_refused(&(world_plan){BASE}, scratch_file(&s, "run", bytes, size, path), "a changed run file");
        bytes[at] ^= 0x10;
    }
    check_refused(&(world_plan){BASE}, "/nowhere/run", "a run file that is not there");
    scratch_close(&s);
}

/* A checkpoint of 0.1 had a checksum of another kind: it is known for what it is. */
static void earlier_formats_are_named(void **state)
{
    static const char old[64] = "REEFRUN2";
    scratch s;
    char path[SCRATCH_PATH];
    reef_error error;
    world w;
    (void)state;
    scratch_open(&s);
    world_open(&w, &(world_plan){BASE});
    assert_int_equal(reef_run_load(w.run, scratch_file(&s, "run", old, sizeof old, path), &error), REEF_E_FORMAT);
    assert_non_null(strstr(error.text, "earlier version"));
    world_close(&w);
    scratch_close(&s);
}

/* Files with a right checksum that say what no run can be in. */
static void forged_files_are_refused(void **state)
{
    enum { HEAD = 16, COUNTERS = 8, HOMES = HEAD + 8 + COUNTERS * 8 };
    static unsigned char bytes[20000];
    static const struct {
        size_t at, width;
        int64_t value;
    } forgeries[] = {{HEAD, 8, -1},  {HEAD, 8, INT64_MAX}, {HEAD + 16, 8, INT64_MAX},
                     {HOMES, 4, 12}, {HOMES + 44, 4, -1},  {0, 8, INT64_MAX / 2}};
    scratch s;
    char path[SCRATCH_PATH];
    reef_error error;
    world w;
    (void)state;
    scratch_open(&s);
    world_open(&w, &(world_plan){BASE});
    world_step(&w, 5);
    assert_int_equal(reef_run_save(w.run, scratch_path(&s, "run", path), &error), REEF_OK);
    world_close(&w);
    size_t size = read_bytes(path, bytes, sizeof bytes);
    /* behind the journeys (12 of 16 bytes) come the flag and centre of the rule's state, then the checksum */
    size_t journeys = size - 8 - (1 + 5 * sizeof(float)) - sizeof(int64_t) * 2 * 12;
    for (ptrdiff_t i = 0; i < COUNT(forgeries); i++) {
        unsigned char kept[8];
        size_t at = forgeries[i].at ? forgeries[i].at : journeys;
        memcpy(kept, bytes + at, 8);
        memcpy(bytes + at, &forgeries[i].value, forgeries[i].width);
        uint64_t sum = rfi_hash_bytes(RFI_HASH_START, bytes, size - 8);
        memcpy(bytes + size - 8, &sum, 8);
        check_refused(&(world_plan){BASE}, scratch_file(&s, "run", bytes, size, path), "a forged run file");
        memcpy(bytes + at, kept, 8);
    }
    /* a centre that is not finite */
    const float nan = NAN;
    memcpy(bytes + size - 8 - sizeof nan, &nan, sizeof nan);
    uint64_t sum = rfi_hash_bytes(RFI_HASH_START, bytes, size - 8);
    memcpy(bytes + size - 8, &sum, 8);
    world_open(&w, &(world_plan){BASE});
    assert_int_not_equal(reef_run_load(w.run, scratch_file(&s, "run", bytes, size, path), &error), REEF_OK);
    assert_int_equal(reef_run_round(w.run), 0);
    world_close(&w);
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads),     cmocka_unit_test(lanes_are_repetitions),
        cmocka_unit_test(a_stop_changes_nothing),    cmocka_unit_test(other_setups_are_refused),
        cmocka_unit_test(damaged_files_are_refused), cmocka_unit_test(forged_files_are_refused),
        cmocka_unit_test(earlier_formats_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
