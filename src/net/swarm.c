/* reef swarm: an experiment, played by processes that speak to each other through a broker, measured and written down as `reef run` does.
 *
 * The experiment's own machinery measures and writes: where it would compute a round it waits until the agents' records have come so far
 * (experiment/run/player.h), and puts their models into the run. */
#include "net/swarm.h"

#include "base/error.h"
#include "base/memory.h"
#include "experiment/run/player.h"
#include "learn/played.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* ---- what can be played ---- */

/* Makes one agent's member and throws it away: what one agent alone cannot do is told now, and not by its process. */
static reef_status try_member(const rfi_world *w, ptrdiff_t k, reef_error *error)
{
    reef_csr csr = reef_graph_csr(w->graph);
    const char *strategy = w->cell.specs[RFI_PART_STRATEGY];
    reef_member *member = NULL;
    const reef_member_setup setup = {.problem = w->problem,
                                     .strategy = strategy[0] ? strategy : "diffusion",
                                     .rule = w->rule,
                                     .agent = k,
                                     .senders = csr.start[k + 1] - csr.start[k],
                                     .sender = csr.senders + csr.start[k],
                                     .weights = csr.weight + csr.start[k],
                                     .dtype = REEF_F32,
                                     .attack = w->attack,
                                     .agents = w->agents,
                                     .malicious = w->malicious};
    reef_status status = reef_member_create(w->context, &member, &setup, error);
    reef_member_destroy(&member);
    return status;
}

static reef_status try_members(const rfi_world *w, reef_error *error)
{
    ptrdiff_t k = 0;
    while (w->malicious && k < w->agents && !w->malicious[k]) {
        k++;
    }
    reef_status status = try_member(w, 0, error);
    return status == REEF_OK && w->malicious && k < w->agents ? try_member(w, k, error) : status;
}

static reef_status check_cell(rfi_swarm *s, reef_error *error)
{
    const rfi_world *w = s->world;
    if (!w->graph || !w->rule) {
        return rfi_fail(error, REEF_E_ARG, "agents on a network need a graph and a rule");
    }
    if (!reef_links_always_up(w->links)) {
        return rfi_fail(error, REEF_E_ARG, "links that fail are the network's business: use --drop");
    }
    for (int part = 0; part < RFI_PARTS; part++) {
        if (strlen(w->cell.specs[part]) >= REEF_TEXT_SIZE) {
            return rfi_fail(error, REEF_E_ARG, "%s: more than %d characters", rfi_part_names[part], REEF_TEXT_SIZE - 1);
        }
    }
    s->agents = w->agents;
    s->rounds = w->cell.numbers.rounds;
    return try_members(w, error);
}

static reef_status load(rfi_swarm *s, reef_error *error)
{
    enum { OVERRIDES_MAX = 65 };
    const char *overrides[OVERRIDES_MAX];
    const reef_swarm_options *o = s->options;
    ptrdiff_t count = o->override_count < OVERRIDES_MAX - 1 ? o->override_count : OVERRIDES_MAX - 1;
    for (ptrdiff_t i = 0; i < count; i++) {
        overrides[i] = o->overrides[i];
    }
    overrides[count++] = "repetitions=1";
    reef_status status = reef_context_create(&s->context, NULL, error);
    if (status == REEF_OK) {
        status = reef_context_set_threads(s->context, 1, error);
    }
    if (status == REEF_OK) {
        status = reef_experiment_load(s->context, &s->experiment, o->file, overrides, count, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    if (s->experiment->cells != 1) {
        return rfi_fail(
            error, REEF_E_ARG,
            "%s has %td configurations, but a swarm runs one: choose it with --set, for instance --set rule=mref",
            reef_experiment_name(s->experiment), s->experiment->cells);
    }
    s->world = rfi_world_create(s->experiment, s->context);
    if (!s->world) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a cell");
    }
    status = rfi_world_set(s->world, 0, error);
    if (status != REEF_OK) {
        return status;
    }
    return check_cell(s, error);
}

static reef_status make_pupils(rfi_swarm *s, reef_error *error)
{
    reef_csr csr = reef_graph_csr(s->world->graph);
    ptrdiff_t dimension = reef_problem_dimension(s->world->problem);
    s->pupils = rfi_allocate_many(NULL, s->agents, sizeof *s->pupils);
    if (!s->pupils) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td agents", s->agents);
    }
    memset(s->pupils, 0, (size_t)s->agents * sizeof *s->pupils);
    for (ptrdiff_t k = 0; k < s->agents; k++) {
        s->pupils[k].record = -1;
    }
    for (ptrdiff_t k = 0; k < s->agents; k++) {
        rfi_pupil *p = &s->pupils[k];
        p->shape = rfi_record_shape_of(dimension, csr.start[k + 1] - csr.start[k], s->world->rule);
        p->bytes = rfi_allocate(NULL, 2 * p->shape.size); /* one that is read, and one being read */
        if (!p->bytes) {
            return rfi_fail(error, REEF_E_NOMEM, "no memory for the models of %td agents", s->agents);
        }
    }
    return REEF_OK;
}

/* ---- watching ---- */

bool rfi_swarm_watched(const rfi_swarm *s)
{
    return s->options->dash || s->options->record;
}

void rfi_swarm_note(rfi_swarm *s, const char *what, ptrdiff_t agent)
{
    if (s->live.dash) {
        rfi_dash_put_event(s->live.dash, rfi_watch_time(s->live.watch), what, agent, -1, NULL);
    }
}

static reef_status open_live(rfi_swarm *s, reef_error *error)
{
    const reef_swarm_options *o = s->options;
    char key[RFI_PATH_SIZE];
    char line[120];
    if (!rfi_swarm_watched(s)) {
        return REEF_OK;
    }
    if (!rfi_swarm_path(s, key, "observer.key", -1)) {
        return rfi_fail(error, REEF_E_FILE, "the path of the swarm's folder is too long");
    }
    const rfi_live_setup setup = {
        .watch = {.run_file = s->run_file, .key = key}, .serve = o->dash, .port = o->dash_port, .record = o->record};
    reef_status status = rfi_live_open(&s->live, &setup, error);
    if (status == REEF_OK && o->dash && o->tell_page) {
        (void)snprintf(line, sizeof line, "http://127.0.0.1:%d/ shows the run", rfi_live_port(&s->live));
        o->tell_page(o->user, line);
    }
    return status;
}

/* The run is over; who looks at the page may look on. */
static void end_live(rfi_swarm *s)
{
    const reef_swarm_options *o = s->options;
    if (!s->live.dash) {
        return;
    }
    rfi_dash_put_end(s->live.dash, rfi_watch_time(s->live.watch), "all agents have ended");
    if (o->dash && o->stop && o->tell_page) {
        o->tell_page(o->user, "the run is over; Ctrl-C ends the page");
    }
    while (o->dash && o->stop && !*o->stop) {
        rfi_live_tend(&s->live);
        (void)nanosleep(&(struct timespec){.tv_nsec = 250000000}, NULL);
    }
}

/* ---- playing ---- */

static void put_agent(const rfi_swarm *s, ptrdiff_t k, reef_run *run)
{
    const rfi_pupil *p = &s->pupils[k];
    const unsigned char *at = p->bytes + sizeof(rfi_record_head);
    if (p->records_read == 0) {
        return; /* it has never begun: its model stays as it was */
    }
    const double *numbers = (const double *)(const void *)(at + p->shape.model);
    reef_csr csr = reef_graph_csr(s->world->graph);
    rfi_played_model(run, k, (const float *)(const void *)at);
    rfi_played_trust(run, k, csr.senders + csr.start[k], p->shape.senders, numbers, numbers + p->shape.senders,
                     numbers + 2 * p->shape.senders);
}

/* Waits until all agents have come so far. */
static reef_status advance(void *user, reef_run *run, int64_t round, reef_error *error)
{
    rfi_swarm *s = user;
    while (!rfi_swarm_reached(s, round)) {
        if (s->options->stop && *s->options->stop) {
            return rfi_fail(error, REEF_E_ENGINE, "stopped at round %lld", (long long)round);
        }
        reef_status status = rfi_swarm_tend(s, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    for (ptrdiff_t k = 0; k < s->agents; k++) {
        put_agent(s, k, run);
    }
    rfi_played_round(run, round);
    return REEF_OK;
}

static void told(void *user, int64_t round, const char *metric, double value)
{
    rfi_swarm *s = user;
    if (s->live.dash) {
        const char *name = strcmp(metric, "msd") == 0 ? "msd_db" : metric;
        rfi_dash_put_score(s->live.dash, rfi_watch_time(s->live.watch), (uint64_t)round, name, value);
    }
    (void)snprintf(s->metric, sizeof s->metric, "%s", metric);
    s->value = value;
}

/* All agents have done their last round and end by themselves. */
static reef_status wait_for_ends(rfi_swarm *s, reef_error *error)
{
    enum { SECONDS = 60 };
    reef_status status = REEF_OK;
    bool all = false;
    for (double end = rfi_now() + SECONDS; !all && status == REEF_OK && rfi_now() < end;) {
        all = true;
        for (ptrdiff_t k = 0; k < s->agents; k++) {
            all = all && s->pupils[k].ended;
        }
        status = all ? REEF_OK : rfi_swarm_tend(s, error);
    }
    return status;
}

static void sum_up(const rfi_swarm *s, reef_swarm_outcome *outcome)
{
    for (ptrdiff_t k = 0; k < s->agents; k++) {
        const rfi_record_head *last = &s->pupils[k].last;
        outcome->combined += (int64_t)last->combined;
        outcome->alone += (int64_t)last->alone;
        outcome->refused += (int64_t)last->refused;
    }
    outcome->agents = s->agents;
    outcome->seconds = rfi_now() - s->began;
}

static reef_status play(rfi_swarm *s, reef_swarm_outcome *outcome, reef_error *error)
{
    const reef_swarm_options *o = s->options;
    const rfi_player player = {.user = s, .advance = advance, .told = told};
    const reef_experiment_options options = {.folder = o->results, .force = o->force, .models = true, .stop = o->stop};
    reef_experiment_outcome done;
    reef_status status = rfi_swarm_write(s, error);
    if (status == REEF_OK) {
        status = rfi_swarm_start_brokers(s, error);
    }
    if (status == REEF_OK) {
        status = open_live(s, error);
    }
    if (status == REEF_OK) {
        s->began = rfi_now();
        status = rfi_experiment_play(s->experiment, &options, &player, &done, error);
    }
    if (status == REEF_OK && done.stopped) {
        status = rfi_fail(error, REEF_E_ENGINE, "stopped");
    }
    if (status == REEF_OK) {
        status = wait_for_ends(s, error);
    }
    sum_up(s, outcome);
    if (status == REEF_OK) {
        end_live(s);
    }
    return status;
}

/* ---- beginning and end ---- */

static reef_status make_folder(rfi_swarm *s, reef_error *error)
{
    const char *keep = s->options->keep;
    const char *place = getenv("TMPDIR");
    int length =
        keep ? snprintf(s->folder, sizeof s->folder, "%s", keep)
             : snprintf(s->folder, sizeof s->folder, "%s/reef-swarm-XXXXXX", place && place[0] ? place : "/tmp");
    if (length >= (int)sizeof s->folder) {
        return rfi_fail(error, REEF_E_FILE, "the path of the swarm's folder is too long");
    }
    bool made = keep ? mkdir(s->folder, S_IRWXU) == 0 : mkdtemp(s->folder) != NULL;
    return made ? REEF_OK : rfi_fail(error, REEF_E_FILE, "%.200s: %s", s->folder, strerror(errno));
}

static reef_status run_swarm(rfi_swarm *s, reef_swarm_outcome *outcome, reef_error *error)
{
    reef_status status = make_folder(s, error);
    if (status != REEF_OK) {
        return status;
    }
    status = make_pupils(s, error);
    if (status == REEF_OK) {
        status = play(s, outcome, error);
    }
    rfi_swarm_end(s);
    reef_status closed = rfi_live_close(&s->live, status == REEF_OK ? error : NULL);
    if (!s->options->keep) {
        rfi_swarm_remove(s->folder);
    }
    if (status != REEF_OK) {
        return status;
    }
    return closed;
}

/* What was not given: F as the placement needs it and at least a third, patience unless something is to go wrong, and time enough for
 * all to be started. */
static void fill_in(rfi_swarm *s, reef_swarm_options *o)
{
    const double third = 1.0 / 3;
    const double most = 0.4999;
    if (!(o->malicious > 0)) {
        o->malicious = fmin(fmax(third, rfi_swarm_malicious_weight(s)), most);
    }
    const char *attack = s->world->cell.specs[RFI_PART_ATTACK];
    bool unheard =
        strncmp(attack, "silent", 6) == 0 || strncmp(attack, "nan", 3) == 0; /* nothing comes that can be used */
    bool trouble = unheard || o->drop > 0 || o->kills > 0 || o->two_faced != 0 || o->late > 0;
    o->patient = o->patient || !trouble;
    if (!(o->deadline > 0)) {
        o->deadline = o->patient ? 60 + 0.2 * (double)s->agents : 2;
    }
    s->kills = o->kills;
    s->brokers = o->brokers > 0 ? o->brokers : 1;
    s->draws = (uint64_t)s->world->cell.numbers.seed;
}

reef_status reef_net_swarm(const reef_swarm_options *options, reef_swarm_outcome *outcome, reef_error *error)
{
    reef_status status = rfi_check_size(options->size, sizeof *options, "reef_swarm_options", error);
    if (status != REEF_OK) {
        return status;
    }
    reef_swarm_options filled = *options;
    rfi_swarm s = {.options = &filled};
    *outcome = (reef_swarm_outcome){0};
    status = load(&s, error);
    if (status == REEF_OK) {
        fill_in(&s, &filled);
        status = run_swarm(&s, outcome, error);
    }
    rfi_world_destroy(&s.world);
    reef_experiment_destroy(&s.experiment);
    reef_context_destroy(&s.context);
    return status;
}
