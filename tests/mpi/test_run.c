/* Runs spread over ranks against the same run in one process: equal models, metrics, counters and trust; stopped and resumed by fewer
 * ranks as well.
 * ranks: 1 2 3 4 8 */
#include "learn/ranks.h"
#include "mpi/ranked.h"
#include "support/runs.h"

#include <math.h>
#include <mpi.h>
#include <string.h>
#include <unistd.h>

enum { AGENTS = 26, M = 20, ROUNDS = 200, FEW = 12 };

/* Attacks that must know the honest rows: of all, or of those the receiver hears. */
static const char *const rules[] = {"ref", "vref", "median", "krum:f=2"};
static const char *const graphs[] = {"complete", "ring:k=3", "geometric:radius=0.6"};
static const char *const attacks[] = {"alie", "alie:knowledge=neighbours", "ipm:epsilon=2"};

static bool silent_or_late(const void *params, const reef_attack_view *view, float *out)
{
    (void)params;
    for (ptrdiff_t i = 0; i < view->length; i++) {
        out[i] = view->own[i] + view->previous[i] + (float)view->sender;
    }
    return (view->round + view->sender) % 3 != 0;
}

static int64_t two_rounds(const void *params)
{
    (void)params;
    return 2;
}

static const reef_attack_kind late = {
    .kind = {.name = "late", .summary = "", .citation = ""}, .message = silent_or_late, .delay = two_rounds};

static const world_plan special[] = {
    {.rule = "median",
     .strategy = "diffusion:order=cta,momentum=0.9",
     .graph = "ring:k=3",
     .attack = "sign_flip:reference=previous"},
    {.rule = "ref", .strategy = "diffusion:order=consensus", .graph = "ring:k=3", .attack = "alie"},
    {.rule = "ref", .strategy = "diffusion:order=consensus", .graph = "ring:k=3", .attack = "two_faced"},
    {.rule = "ref", .strategy = "diffusion:order=cta", .graph = "ring:k=3", .attack = "dissensus"},
    {.rule = "median", .graph = "ring:k=3", .own_attack = &late},
    {.rule = "trimmed:f=1,keep_self=true", .graph = "ring:k=3", .attack = "silent"},
    {.rule = "ref", .graph = "complete", .attack = "min_max"},
    {.rule = "ref", .graph = "complete", .attack = "mimic"},
    {.rule = "ref", .graph = "complete", .attack = "alie:knowledge=malicious,on=3,off=2"},
    {.rule = "ref", .graph = "complete", .attack = "nan"},
    {.rule = "cclip:tau=1", .graph = "ring:k=3", .attack = "gaussian"},
    {.rule = "mref", .graph = "complete", .attack = "alie:z=0.5"},
    {.rule = "mref:sketch=16", .graph = "geometric:radius=0.5", .attack = "sign_flip"},
    {.rule = "median", .graph = "ring:k=3", .links = "failing:p=0.3", .attack = "alie"},
    {.rule = "median", .graph = "erdos_renyi:p=0.4", .graphs = 3, .attack = "alie"},
    {.rule = "mean", .graph = "ring:k=3", .lanes = 4},
    {.rule = "", .strategy = "oracle", .graph = "ring:k=3"},
    {.rule = "", .strategy = "local"},
    {.rule = "", .strategy = "rsa_tv:lambda=0.02", .graph = "ring:k=3", .attack = "two_faced"},
    {.rule = "", .strategy = "rsa_tv:norm=l2", .graph = "ring:k=3", .links = "failing:p=0.3", .own_attack = &late},
    {.rule = "", .strategy = "rsa:lambda=0.05,weight_decay=0.01", .attack = "alie"},
    {.rule = "", .strategy = "rsa:norm=l2", .attack = "nan"},
    {.rule = "", .strategy = "rsa:norm=linf,momentum=0.9", .own_attack = &late},
    {.rule = "", .strategy = "rsa", .lanes = 4},
    {.rule = "ref", .strategy = "federated", .attack = "alie", .trust = true},
    {.rule = "median", .strategy = "federated:fraction=0.4,available=0.8,dropout=0.2", .attack = "sign_flip"},
    {.rule = "krum:f=2", .strategy = "federated:steps=2,steps_max=4,exchange=model", .attack = "ipm", .trust = true},
    {.rule = "vref", .strategy = "federated:mean_delay=2,staleness=3,momentum=0.5", .attack = "min_max"},
    {.rule = "mean", .strategy = "federated:server_step=0.5,server_momentum=0.9", .lanes = 4},
    {.rule = "trimmed:f=4", .strategy = "federated:clients=12", .attack = "alie:knowledge=malicious"},
    {.rule = "nnm:f=4 | ref", .strategy = "federated", .attack = "nan", .trust = true},
    {.rule = "cclip:tau=1", .strategy = "federated", .attack = "gaussian"},
    {.rule = "mref", .strategy = "federated:fraction=0.7", .attack = "alie:z=0.5", .trust = true},
    {.rule = "mref:sketch=16", .strategy = "federated", .attack = "silent"},
    {.rule = "median", .strategy = "federated:fraction=0.5", .own_attack = &late, .trust = true},
    {.rule = "mean",
     .strategy = "federated:weights=samples,batch=4",
     .problem = "softmax:data=digits",
     .attack = "label_flip"},
    {.rule = "mref",
     .strategy = "federated:batch=4",
     .problem = "mlp:data=digits,hidden=80",
     .attack = "sign_flip",
     .trust = true},
    {.rule = "krum:f=4", .strategy = "federated:batch=4", .problem = "mlp:data=digits,hidden=80", .attack = "alie"},
    {.rule = "", .strategy = "rsa:norm=l2,batch=4", .problem = "mlp:data=digits,hidden=80", .attack = "sign_flip"},
    {.rule = "ref", .graph = "ring:k=3", .problem = "softmax:data=digits", .attack = "label_flip"},
};

/* The same world, its run spread over ranks. */
static void spread_world(world *w, const world_plan *plan, const reef_engine *over)
{
    reef_error error = {REEF_OK, ""};
    world_open(w, plan);
    const reef_run_setup setup = {.problem = w->problem,
                                  .strategy = plan->strategy ? plan->strategy : "diffusion",
                                  .rule = w->rule,
                                  .links = w->links,
                                  .attack = w->attack,
                                  .malicious = w->malicious,
                                  .seed = plan->seed,
                                  .lanes = plan->lanes,
                                  .trust = plan->trust,
                                  .engine = over};
    reef_run_destroy(&w->run);
    REQUIRE(reef_run_create(w->context, &w->run, &setup, &error) == REEF_OK, "%s", error.text);
}

static void step(world *w, int64_t rounds)
{
    reef_error error = {REEF_OK, ""};
    REQUIRE(reef_run_step(w->run, rounds, &error) == REEF_OK, "%s", error.text);
}

static ptrdiff_t check_models(const world *a, const world *b, const char *what)
{
    ptrdiff_t held = 0;
    size_t bytes = (size_t)(reef_run_dimension(a->run) * reef_run_lanes(a->run)) * sizeof(float);
    for (ptrdiff_t k = 0; k < reef_run_agents(a->run); k++) {
        const float *model = reef_run_model(b->run, k);
        REQUIRE((model != NULL) == reef_run_holds(b->run, k), "%s: agent %td", what, k);
        REQUIRE(!model || memcmp(model, reef_run_model(a->run, k), bytes) == 0, "%s: agent %td differs in round %d",
                what, k, (int)reef_run_round(b->run));
        held += model != NULL;
    }
    return held;
}

static void check_number(double x, double alone, const char *metric, const char *what)
{
    REQUIRE(memcmp(&x, &alone, sizeof x) == 0 || (isnan(x) && isnan(alone)), "%s: %s is %.17g, alone %.17g", what,
            metric, x, alone);
}

static void check_metrics(const world *a, const world *b, bool trust, const char *what)
{
    double x[4];
    double y[4];
    reef_error error;
    reef_score s;
    reef_score t;
    reef_run_consensus(a->run, x);
    reef_run_consensus(b->run, y);
    check_number(y[0], x[0], "consensus", what);
    if (reef_run_msd(a->run, NULL, x, &error) == REEF_OK) {
        REQUIRE(reef_run_msd(b->run, NULL, y, &error) == REEF_OK, "%s", error.text);
        check_number(y[0], x[0], "MSD", what);
    }
    if (reef_run_excess(a->run, x, &error) == REEF_OK) {
        REQUIRE(reef_run_excess(b->run, y, &error) == REEF_OK, "%s", error.text);
        check_number(y[0], x[0], "excess risk", what);
    }
    if (reef_run_score(a->run, &s, &error) == REEF_OK) {
        REQUIRE(reef_run_score(b->run, &t, &error) == REEF_OK, "%s", error.text);
        check_number(t.loss, s.loss, "loss", what);
        check_number(t.accuracy, s.accuracy, "accuracy", what);
    }
    if (trust) {
        reef_trust_facts f;
        reef_trust_facts g;
        REQUIRE(reef_run_trust_facts(a->run, &f, &error) == REEF_OK, "%s", error.text);
        REQUIRE(reef_run_trust_facts(b->run, &g, &error) == REEF_OK, "%s", error.text);
        check_number(g.honest, f.honest, "trust in the honest", what);
        check_number(g.malicious_count, f.malicious_count, "trust in liars", what);
        check_number(g.auc, f.auc, "AUC", what);
        double received[2][AGENTS];
        double work[AGENTS];
        REQUIRE(reef_run_trust_received(a->run, received[0], work, &error) == REEF_OK, "%s", error.text);
        REQUIRE(reef_run_trust_received(b->run, received[1], work, &error) == REEF_OK, "%s", error.text);
        for (ptrdiff_t k = 0; k < AGENTS; k++) {
            check_number(received[1][k], received[0][k], "trust received", what);
        }
        for (int test = 0; test < REEF_FACTORS_MAX; test++) {
            reef_status known = reef_run_factor_received(a->run, test, received[0], work, &error);
            REQUIRE(reef_run_factor_received(b->run, test, received[1], work, &error) == known, "%s", what);
            for (ptrdiff_t k = 0; known == REEF_OK && k < AGENTS; k++) {
                check_number(received[1][k], received[0][k], "what a test left", what);
            }
        }
    }
}

/* Counters of all ranks together. */
static void check_counts(const world *a, const world *b, const char *what)
{
    reef_run_counts x = reef_run_counts_of(a->run);
    reef_run_counts y = reef_run_counts_of(b->run);
    int64_t mine[] = {y.messages, y.bytes, y.gradients, y.kept, y.dropped, y.silent, y.late};
    const int64_t alone[] = {x.messages, x.bytes, x.gradients, x.kept, x.dropped, x.silent, x.late};
    int64_t all[COUNT(mine)];
    MPI_Allreduce(mine, all, (int)COUNT(mine), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (ptrdiff_t i = 0; i < COUNT(mine); i++) {
        REQUIRE(all[i] == alone[i], "%s: counter %td is %lld, alone %lld", what, i, (long long)all[i],
                (long long)alone[i]);
    }
    REQUIRE(x.rounds == y.rounds, "%s: rounds", what);
}

static void check_trust(const world *a, const world *b, bool server, const char *what)
{
    int32_t senders[2][AGENTS];
    double shares[2][AGENTS];
    for (ptrdiff_t k = 0; k < AGENTS; k++) {
        ptrdiff_t x = reef_run_trust(a->run, k, senders[0], shares[0], AGENTS);
        ptrdiff_t y = reef_run_trust(b->run, k, senders[1], shares[1], AGENTS);
        REQUIRE(y == (server || reef_run_holds(b->run, k) ? x : 0), "%s: senders of %td", what, k);
        REQUIRE(memcmp(senders[0], senders[1], (size_t)y * sizeof(int32_t)) == 0, "%s: senders of %td", what, k);
        REQUIRE(memcmp(shares[0], shares[1], (size_t)y * sizeof(double)) == 0, "%s: shares of %td", what, k);
    }
}

static void check_plan(const world_plan *plan, int64_t rounds, const char *what)
{
    world alone;
    world spread;
    world_open(&alone, plan);
    spread_world(&spread, plan, engine);
    for (int part = 0; part < 2; part++) {
        step(&alone, rounds / 2);
        step(&spread, rounds / 2);
        (void)check_models(&alone, &spread, what);
        check_metrics(&alone, &spread, plan->trust, what);
        check_counts(&alone, &spread, what);
        if (plan->trust) {
            check_trust(&alone, &spread, plan->strategy && strncmp(plan->strategy, "federated", 9) == 0, what);
        }
    }
    world_close(&spread);
    world_close(&alone);
}

static bool malicious_count[AGENTS];

static void bits_are_the_same(void)
{
    for (ptrdiff_t r = 0; r < COUNT(rules); r++) {
        for (ptrdiff_t g = 0; g < COUNT(graphs); g++) {
            ptrdiff_t a = (r + g) % COUNT(attacks);
            char what[200];
            (void)snprintf(what, sizeof what, "%s on %s under %s", rules[r], graphs[g], attacks[a]);
            check_plan(&(world_plan){.agents = AGENTS,
                                     .problem = "lms:dimension=20",
                                     .rule = rules[r],
                                     .graph = graphs[g],
                                     .attack = attacks[a],
                                     .malicious = malicious_count,
                                     .trust = (r + g) % 2},
                       ROUNDS, what);
        }
    }
}

static world_plan special_plan(ptrdiff_t i)
{
    world_plan plan = special[i];
    plan.agents = AGENTS;
    plan.malicious = malicious_count;
    plan.problem = plan.problem ? plan.problem : "lms:dimension=20";
    return plan;
}

static void special_cases(void)
{
    for (ptrdiff_t i = 0; i < COUNT(special); i++) {
        char what[60];
        world_plan plan = special_plan(i);
        (void)snprintf(what, sizeof what, "special case %td", i);
        check_plan(&plan, FEW, what);
    }
}

static void remove_files(const char *path, int ranks)
{
    char name[200];
    for (int r = 0; r < 2 * ranks; r++) {
        (void)snprintf(name, sizeof name, "%s.%d.%d.safetensors", path, r < ranks ? 3 : 7, r % ranks);
        (void)unlink(name);
    }
    (void)snprintf(name, sizeof name, "%s.before", path);
    (void)unlink(name);
    (void)unlink(path);
}

/* Saved by all ranks after 3 and 7 rounds, loaded by some of them, which go on like the undisturbed run. */
static void fewer_ranks_go_on(void)
{
    char path[100] = "";
    int number = engine->rank == 0 ? (int)getpid() : 0;
    int some = engine->rank <= engine->size / 2;
    MPI_Comm half;
    reef_engine *over = NULL;
    reef_error error = {REEF_OK, ""};
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    (void)snprintf(path, sizeof path, "%s/reef-ranks-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", number);
    MPI_Comm_split(MPI_COMM_WORLD, some, 0, &half);
    REQUIRE(reef_mpi_engine_create(&over, &half, &error) == REEF_OK, "%s", error.text);
    for (ptrdiff_t i = 0; i<COUNT(special); i += engine->size> 4 ? 4 : 1) {
        char what[60];
        char name[200];
        world_plan plan = special_plan(i);
        world alone;
        world saved;
        (void)snprintf(what, sizeof what, "special case %td resumed", i);
        spread_world(&saved, &plan, engine);
        step(&saved, 3);
        REQUIRE(reef_run_save(saved.run, path, &error) == REEF_OK, "%s: %s", what, error.text);
        step(&saved, 4);
        REQUIRE(reef_run_save(saved.run, path, &error) == REEF_OK, "%s: %s", what, error.text);
        world_close(&saved);
        MPI_Barrier(MPI_COMM_WORLD);
        (void)snprintf(name, sizeof name, "%s.3.0.safetensors", path);
        REQUIRE(access(name, F_OK) == 0, "%s: the files of the checkpoint before are not there", what);
        if (some) {
            world_open(&alone, &plan);
            spread_world(&saved, &plan, over);
            step(&saved, 2); /* another way */
            REQUIRE(reef_run_load(saved.run, path, &error) == REEF_OK, "%s: %s", what, error.text);
            step(&alone, 7);
            (void)check_models(&alone, &saved, what);
            step(&alone, 5);
            step(&saved, 5);
            (void)check_models(&alone, &saved, what);
            world_close(&saved);
            world_close(&alone);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    reef_mpi_engine_destroy(&over);
    MPI_Comm_free(&half);
    if (engine->rank == 0) {
        remove_files(path, engine->size);
    }
}

/* A damaged file, a manifest of another run, none at all: the same refusal on all ranks. */
static void bad_checkpoints_are_refused(void)
{
    char path[100] = "";
    char name[200];
    int number = engine->rank == 0 ? (int)getpid() : 0;
    reef_error error = {REEF_OK, ""};
    world_plan plan = special_plan(0);
    world w;
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    (void)snprintf(path, sizeof path, "%s/reef-bad-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", number);
    spread_world(&w, &plan, engine);
    REQUIRE(reef_run_load(w.run, path, &error) == REEF_E_FILE, "there is nothing to load");
    step(&w, 7);
    REQUIRE(reef_run_save(w.run, path, &error) == REEF_OK, "%s", error.text);
    world_plan other = plan;
    world v;
    other.seed = 9;
    spread_world(&v, &other, engine);
    REQUIRE(reef_run_load(v.run, path, &error) == REEF_E_FORMAT && strstr(error.text, "another setup"), "%s",
            error.text);
    world_close(&v);
    if (engine->rank == 0) {
        (void)snprintf(name, sizeof name, "%s.7.%d.safetensors", path, (int)engine->size - 1);
        FILE *file = fopen(name, "r+b");
        REQUIRE(file && fseek(file, -1, SEEK_END) == 0 && fputc(77, file) == 77 && fclose(file) == 0, "no file");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    REQUIRE(reef_run_load(w.run, path, &error) == REEF_E_FORMAT && strstr(error.text, "damaged"), "%s", error.text);
    if (engine->rank == 0) {
        FILE *file = fopen(path, "wb");
        REQUIRE(file && fputs("reef checkpoint over ranks, format 1\n", file) > 0 && fclose(file) == 0, "no file");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    REQUIRE(reef_run_load(w.run, path, &error) == REEF_E_FORMAT && strstr(error.text, "earlier version"), "%s",
            error.text);
    world_close(&w);
    if (engine->rank == 0) {
        remove_files(path, engine->size);
    }
}

/* Another last byte in a file of the checkpoint of a round, or in its manifest. */
static void damage(const char *name)
{
    if (engine->rank == 0) {
        FILE *file = fopen(name, "r+b");
        int last = file && fseek(file, -1, SEEK_END) == 0 ? fgetc(file) : EOF;
        REQUIRE(last != EOF && fseek(file, -1, SEEK_END) == 0 && fputc(last ^ 1, file) != EOF && fclose(file) == 0,
                "%s", name);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The newest checkpoint is damaged: the one before it is taken, and reaches the same models. */
static void the_checkpoint_before_is_kept(void)
{
    enum { EACH = 3 };
    char path[100] = "";
    char name[200];
    int number = engine->rank == 0 ? (int)getpid() : 0;
    reef_error error = {REEF_OK, ""};
    world_plan plan = special_plan(0);
    world w;
    world v;
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    (void)snprintf(path, sizeof path, "%s/reef-two-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", number);
    spread_world(&w, &plan, engine);
    for (int i = 0; i < 3; i++) {
        step(&w, EACH);
        REQUIRE(reef_run_save(w.run, path, &error) == REEF_OK, "%s", error.text);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* each rank has removed what is its own when its save returns, and no other's */
    (void)snprintf(name, sizeof name, "%s.%d.0.safetensors", path, EACH);
    REQUIRE(access(name, F_OK) != 0, "files of the first of three checkpoints are left");
    for (int manifest = 0; manifest < 2; manifest++) {
        (void)snprintf(name, sizeof name, "%s.%d.0.safetensors", path, 3 * EACH);
        damage(manifest ? path : name);
        spread_world(&v, &plan, engine);
        REQUIRE(reef_run_load(v.run, path, &error) == REEF_OK, "%s", error.text);
        REQUIRE(reef_run_round(v.run) == 2 * EACH, "round %lld", (long long)reef_run_round(v.run));
        step(&v, EACH);
        for (ptrdiff_t k = 0; k < AGENTS; k++) {
            bool here = reef_run_holds(w.run, k);
            REQUIRE(!here || memcmp(reef_run_model(v.run, k), reef_run_model(w.run, k),
                                    (size_t)reef_problem_dimension(w.problem) * sizeof(float)) == 0,
                    "the model of agent %td differs", k);
        }
        world_close(&v);
    }
    (void)snprintf(name, sizeof name, "%s.before", path);
    damage(name);
    spread_world(&v, &plan, engine);
    REQUIRE(reef_run_load(v.run, path, &error) == REEF_E_FORMAT && strstr(error.text, "damaged"), "%s", error.text);
    rfi_ranks_forget(v.run, path);
    REQUIRE(engine->rank != 0 || (access(path, F_OK) != 0 && access(name, F_OK) != 0), "something is left");
    world_close(&v);
    world_close(&w);
}

/* What cannot be spread is refused by all ranks alike, and so is what fails on one of them only. */
static void refusals(void)
{
    reef_error error = {REEF_OK, ""};
    world w;
    world_plan plan = {.agents = AGENTS, .strategy = "federated", .rule = "mean", .problem = "lms:dimension=20"};
    world_open(&w, &plan);
    reef_run_setup setup = {.problem = w.problem, .strategy = "federated:clients=27", .rule = w.rule, .engine = engine};
    reef_run *run = NULL;
    REQUIRE(reef_run_create(w.context, &run, &setup, &error) == REEF_E_RANGE && !run, "27 clients of 26 agents");
    REQUIRE(strstr(error.text, "clients=27"), "%s", error.text);
    setup.strategy = engine->rank == engine->size - 1 ? "nonsense" : "local";
    REQUIRE(reef_run_create(w.context, &run, &setup, &error) == REEF_E_NAME && !run, "nonsense is taken");
    REQUIRE(strstr(error.text, "nonsense"), "%s", error.text);
    world_close(&w);
}

int main(void)
{
    reef_error error = {REEF_OK, ""};
    REQUIRE(reef_mpi_start(&engine, &error) == REEF_OK, "%s", error.text);
    for (ptrdiff_t k = 0; k < AGENTS; k += 7) {
        malicious_count[k] = true;
    }
    bits_are_the_same();
    special_cases();
    fewer_ranks_go_on();
    bad_checkpoints_are_refused();
    the_checkpoint_before_is_kept();
    refusals();
    reef_mpi_stop(&engine);
    return 0;
}
