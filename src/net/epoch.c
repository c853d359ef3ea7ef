/* What may change from one epoch to the next. */
#include "net/epoch.h"

#include "base/error.h"

#include <string.h>

static reef_status check_participants(const rfi_runfile *file, const rfi_runfile *next, reef_error *error)
{
    if (next->agents < file->agents) {
        return rfi_fail(error, REEF_E_ARG, "%s is missing: who leaves keeps the place, as `%s: removed`",
                        file->participants[next->agents].name, file->participants[next->agents].name);
    }
    for (ptrdiff_t k = 0; k < file->agents; k++) {
        const rfi_participant *one = &file->participants[k];
        const rfi_participant *other = &next->participants[k];
        if (strcmp(one->name, other->name) != 0) {
            return rfi_fail(error, REEF_E_ARG, "place %td is %s's, not %s's: new agents come at the end", k, one->name,
                            other->name);
        }
        if (one->removed && !other->removed) {
            return rfi_fail(error, REEF_E_ARG, "%s was removed: a new agent has a new name and place", one->name);
        }
        if (!other->removed && (memcmp(one->identity, other->identity, RFI_KEY_BYTES) != 0 ||
                                memcmp(one->login, other->login, RFI_KEY_BYTES) != 0)) {
            return rfi_fail(error, REEF_E_ARG, "%s has other keys: remove it and enrol the new keys under another name",
                            one->name);
        }
    }
    return REEF_OK;
}

static bool same_shape(const rfi_runfile *a, const rfi_runfile *b)
{
    return a->shape.count == b->shape.count && a->shape.numbers == b->shape.numbers &&
           a->shape.chunk == b->shape.chunk && a->shape.largest == b->shape.largest && a->any_layout == b->any_layout &&
           memcmp(a->shape.layout, b->shape.layout, RFI_HASH_BYTES) == 0;
}

static const char *changed_term(const rfi_runfile *file, const rfi_runfile *next)
{
    const rfi_terms *a = &file->terms;
    const rfi_terms *b = &next->terms;
    const struct {
        bool same;
        const char *what;
    } terms[] = {
        {strcmp(file->run, next->run) == 0, "run"},
        {memcmp(file->id, next->id, sizeof file->id) == 0, "id"},
        {memcmp(file->coordinator, next->coordinator, RFI_KEY_BYTES) == 0, "coordinator"},
        {a->seed == b->seed, "seed"},
        {a->stale == b->stale, "stale"},
        {strcmp(a->rule, b->rule) == 0, "rule"},
        {strcmp(a->strategy, b->strategy) == 0, "strategy"},
        {same_shape(file, next), "model, chunk or largest"},
        {a->seal == b->seal, "seal"},
        {file->is_test == next->is_test && strcmp(file->test.problem, next->test.problem) == 0, "test"},
    };
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
        if (!terms[i].same) {
            return terms[i].what;
        }
    }
    return NULL;
}

reef_status rfi_epoch_follows(const rfi_runfile *file, const rfi_runfile *next, reef_error *error)
{
    const char *changed = changed_term(file, next);
    if (changed) {
        return rfi_fail(error, REEF_E_ARG, "%s cannot change from one epoch of run %s to the next", changed, file->run);
    }
    if (next->terms.epoch != file->terms.epoch + 1) {
        return rfi_fail(error, REEF_E_ARG, "epoch %lld of run %s is followed by %lld, not by %lld",
                        (long long)file->terms.epoch, file->run, (long long)file->terms.epoch + 1,
                        (long long)next->terms.epoch);
    }
    if (next->terms.from <= file->terms.from) {
        return rfi_fail(error, REEF_E_ARG, "from: %lld is not after round %lld, where the epoch before begins",
                        (long long)next->terms.from, (long long)file->terms.from);
    }
    return check_participants(file, next, error);
}
