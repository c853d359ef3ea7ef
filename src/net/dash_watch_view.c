/* A run file in force for an observer: who is who, what was seen of them, and the line that tells a page of it. */
#include "net/dash_watch_inner.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

/* ---- what was seen ---- */

static reef_status take_rooms(rfi_view *v, reef_error *error)
{
    reef_csr csr = reef_graph_csr(v->roster.graph);
    ptrdiff_t agents = v->file.agents;
    v->sights = rfi_allocate_many(NULL, agents, sizeof *v->sights);
    v->counters = rfi_allocate_many(NULL, csr.start[agents] + 1, sizeof *v->counters);
    v->tellings = rfi_allocate_many(NULL, csr.start[agents] + 1, sizeof *v->tellings);
    v->accusations = rfi_allocate_many(NULL, csr.start[agents] + 1, sizeof *v->accusations);
    if (!v->sights || !v->counters || !v->tellings || !v->accusations) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td agents", agents);
    }
    memset(v->accusations, 0, ((size_t)csr.start[agents] + 1) * sizeof *v->accusations);
    memset(v->counters, 0, ((size_t)csr.start[agents] + 1) * sizeof *v->counters);
    for (ptrdiff_t k = 0; k < agents; k++) {
        v->sights[k] = (rfi_sight){.epoch = v->file.terms.epoch,
                                   .heard = -HUGE_VAL,
                                   .refused = v->counters + csr.start[k],
                                   .told_at = v->tellings + csr.start[k],
                                   .accused = v->accusations + csr.start[k]};
        for (int by = 0; by < RFI_WATCH_EARS; by++) {
            v->sights[k].bucket[by].tokens = RFI_BUCKET_MOST;
        }
    }
    for (ptrdiff_t k = 0; k < agents; k++) {
        for (ptrdiff_t i = csr.start[k]; i < csr.start[k + 1]; i++) {
            v->tellings[i] = -HUGE_VAL;
            v->sights[csr.senders[i]].audience += csr.senders[i] != k;
        }
    }
    return REEF_OK;
}

/* What an agent has said of those that it hears in both epochs. */
static void carry_over(rfi_view *v, const rfi_view *before, ptrdiff_t agent)
{
    reef_csr csr = reef_graph_csr(v->roster.graph);
    reef_csr past = reef_graph_csr(before->roster.graph);
    rfi_sight kept = before->sights[agent];
    kept.audience = v->sights[agent].audience;
    kept.accusers = v->sights[agent].accusers;
    kept.refused = v->sights[agent].refused;
    kept.told_at = v->sights[agent].told_at;
    kept.accused = v->sights[agent].accused;
    v->sights[agent] = kept;
    for (ptrdiff_t i = csr.start[agent]; i < csr.start[agent + 1]; i++) {
        ptrdiff_t sender = csr.senders[i];
        ptrdiff_t place = sender < before->file.agents ? reef_csr_find(&past, sender, agent) : -1;
        if (place >= 0) {
            place -= past.start[agent];
            kept.refused[i - csr.start[agent]] = before->sights[agent].refused[place];
            kept.told_at[i - csr.start[agent]] = before->sights[agent].told_at[place];
            kept.accused[i - csr.start[agent]] = before->sights[agent].accused[place];
        }
    }
}

static void count_accusers(rfi_view *v)
{
    reef_csr csr = reef_graph_csr(v->roster.graph);
    for (ptrdiff_t i = 0; i < csr.start[v->file.agents]; i++) {
        v->sights[csr.senders[i]].accusers += v->accusations[i];
    }
}

reef_status rfi_view_make(rfi_view **view, rfi_runfile *file, const rfi_view *before, reef_error *error)
{
    *view = NULL;
    rfi_view *v = rfi_allocate(NULL, sizeof *v);
    if (!v) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td agents", file->agents);
    }
    *v = (rfi_view){.file = *file};
    reef_status status = rfi_roster_create(NULL, &v->file, &v->roster, error);
    if (status == REEF_OK) {
        status = take_rooms(v, error);
    }
    if (status != REEF_OK) {
        v->file = (rfi_runfile){0};
        rfi_view_free(&v);
        return status;
    }
    for (ptrdiff_t k = 0; before && k < before->file.agents; k++) {
        carry_over(v, before, k);
    }
    count_accusers(v);
    *file = (rfi_runfile){0};
    *view = v;
    return REEF_OK;
}

void rfi_view_free(rfi_view **view)
{
    rfi_view *v = *view;
    *view = NULL;
    if (v) {
        rfi_roster_free(&v->roster);
        rfi_runfile_free(&v->file);
        rfi_release(NULL, v->sights);
        rfi_release(NULL, v->counters);
        rfi_release(NULL, v->tellings);
        rfi_release(NULL, v->accusations);
        rfi_release(NULL, v);
    }
}

/* ---- the line ---- */

static const char *metric_of(const rfi_roster *r)
{
    unsigned traits = r->problem ? reef_problem_kind_of(r->problem)->traits : 0;
    const char *classes = traits & REEF_PROBLEM_CLASSES ? "accuracy" : NULL;
    return traits & REEF_PROBLEM_OPTIMUM ? "msd_db" : classes;
}

reef_status rfi_watch_put_run(const rfi_watch *w, double time, reef_error *error)
{
    const rfi_view *v = w->view;
    reef_csr csr = reef_graph_csr(v->roster.graph);
    ptrdiff_t agents = v->file.agents;
    ptrdiff_t count = 0;
    const char **names = rfi_allocate_many(NULL, agents, sizeof *names);
    rfi_dash_edge *edges = rfi_allocate_many(NULL, csr.start[agents] + 1, sizeof *edges);
    bool *removed = rfi_allocate_many(NULL, agents, sizeof *removed);
    if (!names || !edges || !removed) {
        rfi_release(NULL, (void *)names);
        rfi_release(NULL, edges);
        rfi_release(NULL, removed);
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the links of %td agents", agents);
    }
    for (ptrdiff_t k = 0; k < agents; k++) {
        removed[k] = v->file.participants[k].removed;
        names[k] = v->file.participants[k].name;
        for (ptrdiff_t i = csr.start[k]; i < csr.start[k + 1]; i++) {
            if (csr.senders[i] != k) {
                edges[count++] = (rfi_dash_edge){(uint32_t)csr.senders[i], (uint32_t)k, csr.weight[i]};
            }
        }
    }
    bool known = v->file.is_test && v->roster.malicious_count > 0;
    const rfi_dash_run run = {.time = time,
                              .epoch = v->file.terms.epoch,
                              .name = v->file.run,
                              .rule = v->file.terms.rule,
                              .attack = known && v->file.test.attack[0] ? v->file.test.attack : NULL,
                              .rounds = v->file.is_test ? (uint64_t)v->file.test.rounds : 0,
                              .metric = metric_of(&v->roster),
                              .agents = agents,
                              .names = names,
                              .edges = count,
                              .edge = edges,
                              .removed = removed,
                              .malicious = known ? v->roster.malicious : NULL};
    rfi_dash_put_run(w->dash, &run);
    rfi_release(NULL, (void *)names);
    rfi_release(NULL, edges);
    rfi_release(NULL, removed);
    return REEF_OK;
}
