/* Trust from the sender's side: how much of an agent is in the models of those who hear it, and what tests left of its weight.
 *
 * Effective weight over fair share, or a factor, is summed over receivers in whole steps of 2^-30, so that the bits depend neither on their order nor
 * on which of them are on this rank or share a class. */
#include "base/error.h"
#include "learn/run.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const double step = 0x1p-30;

/* Sums of steps, in the caller's numbers. */
static void add_steps(double *cell, int64_t more)
{
    int64_t sum;
    memcpy(&sum, cell, sizeof sum);
    sum += more;
    memcpy(cell, &sum, sizeof sum);
}

/* One effective weight over fair share; the bound keeps the sum over all receivers within 2^62 steps. */
static int64_t steps_of(const reef_run *run, double trust, double fair)
{
    double most = 0x1p32 / (double)run->all;
    assert(fair > 0);
    return (int64_t)rint(fmax(-most, fmin(most, trust / fair)) / step);
}

/* What is asked about: trust, or a test. */
enum { TRUST = -1 };

/* Of the sender number i of a class. */
static int64_t steps_at(const reef_run *run, ptrdiff_t i, ptrdiff_t what)
{
    return what == TRUST ? steps_of(run, run->trust[i], run->fair[i])
                         : steps_of(run, run->factors[i * run->factor_count + what], 1);
}

/* Adds what is asked of the senders that a class of receivers hears. counts: receivers that were to hear them. */
static void add_class(const reef_run *run, ptrdiff_t what, ptrdiff_t at, int64_t members, double *received,
                      double *counts)
{
    const int32_t *senders = run->trust_senders + at * run->largest;
    const double *fair = run->fair + at * run->largest;
    for (ptrdiff_t i = 0; i < run->trust_counts[at]; i++) {
        ptrdiff_t l = senders[i];
        ptrdiff_t id = run->server ? l : rfi_id(run, l);
        bool own =
            !run->server && run->class_of[l] == at && !run->malicious[l]; /* what it thinks of itself does not count */
        int64_t others = members - own;
        assert(id >= 0 && id < run->all && others >= 0);
        if (fair[i] > 0 && others > 0) {
            add_steps(&received[id], others * steps_at(run, at * run->largest + i, what));
            add_steps(&counts[id], others);
        }
    }
}

/* Adds what all ranks have, some agents at a time. */
static reef_status add_ranks(const reef_run *run, double *received, double *counts, reef_error *error)
{
    enum { AGENTS = 1 << 16 };
    const reef_engine *e = run->ranks->engine;
    ptrdiff_t block = run->all < AGENTS ? run->all : AGENTS;
    ptrdiff_t width = 2 * block;
    int64_t *sums = rfi_run_take(run, e->size * width, sizeof *sums);
    reef_status status =
        sums ? REEF_OK : rfi_fail(error, REEF_E_NOMEM, "not enough memory for the trust of %td agents", block);
    status = e->ops->agree(e, status, error);
    for (ptrdiff_t from = 0; from < run->all && status == REEF_OK && sums; from += block) {
        ptrdiff_t count = run->all - from < block ? run->all - from : block;
        int64_t *mine = sums + e->rank * width;
        memset(sums, 0, (size_t)(e->size * width) * sizeof *sums);
        memcpy(mine, received + from, (size_t)count * sizeof *mine);
        memcpy(mine + block, counts + from, (size_t)count * sizeof *mine);
        status = e->ops->merge(e, sums, (size_t)(e->size * width) * sizeof *sums, error);
        for (int32_t r = 0; r < e->size && status == REEF_OK; r++) {
            for (ptrdiff_t i = 0; i < count && r != e->rank; i++) {
                add_steps(&received[from + i], sums[r * width + i]);
                add_steps(&counts[from + i], sums[r * width + block + i]);
            }
        }
    }
    rfi_release(run->context, sums);
    return status;
}

static reef_status receive(const reef_run *run, ptrdiff_t what, double *received, double *work, reef_error *error)
{
    reef_status status = REEF_OK;
    memset(received, 0, (size_t)run->all * sizeof *received);
    memset(work, 0, (size_t)run->all * sizeof *work);
    if (run->server) { /* of which all ranks know */
        add_class(run, what, 0, 1, received, work);
    } else {
        memset(run->members, 0, (size_t)run->agents * sizeof *run->members);
        for (ptrdiff_t k = 0; k < run->own; k++) {
            run->members[run->class_of[k]] += !run->malicious[k];
        }
        for (ptrdiff_t i = 0; i < run->classes; i++) {
            add_class(run, what, i, run->members[i], received, work);
        }
        status = run->ranks ? add_ranks(run, received, work, error) : REEF_OK;
    }
    for (ptrdiff_t id = 0; id < run->all; id++) {
        int64_t sum;
        int64_t count;
        memcpy(&sum, &received[id], sizeof sum);
        memcpy(&count, &work[id], sizeof count);
        received[id] = count > 0 ? (double)sum * step / (double)count : (double)NAN;
    }
    return status;
}

void rfi_watch_trust(reef_run *run)
{
    double sum = 0;
    double count = 0;
    if (!run->received || receive(run, TRUST, run->received, run->received + run->all, NULL) != REEF_OK) {
        return;
    }
    for (ptrdiff_t id = 0; id < run->all; id++) {
        bool heard = rfi_is_malicious(run, id) && !isnan(run->received[id]);
        sum += heard ? run->received[id] : 0;
        count += heard;
    }
    run->watched = count > 0 ? sum / count : run->watched;
}

reef_status reef_run_trust_received(const reef_run *run, double *received, double *work, reef_error *error)
{
    if (!run) {
        return rfi_fail(error, REEF_E_ARG, "reef_run_trust_received needs a run");
    }
    return run->trust ? receive(run, TRUST, received, work, error)
                      : rfi_fail(error, REEF_E_ARG, "the run does not record trust; set setup.trust");
}

reef_status reef_run_factor_received(const reef_run *run, ptrdiff_t factor, double *received, double *work,
                                     reef_error *error)
{
    if (!run) {
        return rfi_fail(error, REEF_E_ARG, "reef_run_factor_received needs a run");
    }
    if (!run->factors || factor < 0 || factor >= run->factor_count) {
        return rfi_fail(error, REEF_E_ARG,
                        "the run does not record factor %td: it needs setup.trust and a rule that tests its senders",
                        factor);
    }
    return receive(run, factor, received, work, error);
}
