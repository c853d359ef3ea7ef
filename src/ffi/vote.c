/* Votes on tensors of whole numbers, for models that are in memory. */
#include "ffi/handles.h"

#include "base/error.h"
#include "base/memory.h"
#include "num/vote.h"

#include <assert.h>
#include <math.h>

typedef struct ballot_box {
    const void **ballots; /* rows */
    double *weights;      /* rows */
} ballot_box;

static void lay_out(ballot_box *box, rfi_arena *arena, ptrdiff_t rows)
{
    box->ballots = rfi_arena_take(arena, rows, 1, sizeof *box->ballots);
    box->weights = rfi_arena_take(arena, rows, 1, sizeof *box->weights);
}

/* Who votes, with which weight, and who decides without a majority. */
static reef_status enrol(rfi_vote *vote, ballot_box *box, const void *const *data, const double *weights,
                         const double *trust, reef_error *error)
{
    assert(vote->rows >= 1 && vote->total == 0);
    vote->arbiter = -1;
    for (ptrdiff_t l = 0; l < vote->rows; l++) {
        double weight = weights ? weights[l] : 1;
        if (!isfinite(weight) || weight < 0) {
            return rfi_fail(error, REEF_E_WEIGHTS, "weight %td is %g; weights are finite and not negative", l, weight);
        }
        if (!data[l]) {
            return rfi_fail(error, REEF_E_ARG, "row %td is NULL", l);
        }
        box->weights[l] = weight;
        box->ballots[l] = weight > 0 ? data[l] : NULL;
        bool better =
            vote->arbiter < 0 || rfi_vote_prefers(trust ? trust[l] : 0, weight, trust ? trust[vote->arbiter] : 0,
                                                  box->weights[vote->arbiter]);
        vote->arbiter = weight > 0 && better ? l : vote->arbiter;
    }
    vote->total = rfi_vote_scale(box->weights, vote->rows);
    vote->ballots = box->ballots;
    vote->weights = box->weights;
    return vote->arbiter < 0 ? rfi_fail(error, REEF_E_NO_ROWS, "none of the %td rows has a vote", vote->rows) : REEF_OK;
}

reef_status reef_ffi_vote(ptrdiff_t rows, ptrdiff_t count, ptrdiff_t width, const void *const *data,
                          const double *weights, const double *trust, void *out, char *text, size_t room)
{
    reef_error error = {0};
    ballot_box box;
    rfi_arena sizes = {0};
    rfi_vote vote = {.rows = rows, .width = (size_t)width};
    if (rows < 1 || count < 1 || width < 1 || !data || !out) {
        return rfi_ffi_tell(rfi_fail(&error, REEF_E_ARG, "a vote needs rows with elements, and a place for the result"),
                            &error, text, room);
    }
    lay_out(&box, &sizes, rows);
    void *memory = sizes.overflow ? NULL : rfi_allocate(NULL, (size_t)sizes.used + RFI_ALIGNMENT);
    if (!memory) {
        return rfi_ffi_tell(rfi_fail(&error, REEF_E_NOMEM, "not enough memory for %td rows", rows), &error, text, room);
    }
    lay_out(&box, &(rfi_arena){.base = rfi_align(memory)}, rows);
    reef_status status = enrol(&vote, &box, data, weights, trust, &error);
    if (status == REEF_OK) {
        assert(vote.total > 0 && box.ballots[vote.arbiter]); /* who decides has a vote */
        (void)rfi_vote_decide(&vote, count, out);
    }
    rfi_release(NULL, memory);
    return rfi_ffi_tell(status, &error, text, room);
}
