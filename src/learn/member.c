/* One agent's part of a run. In a round it does what adapt.c, lie.c and combine.c do for each of many agents; tests compare the
 * results bit by bit. */
#include "learn/member.h"

#include "base/error.h"
#include "base/hash.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- a round ---- */

ptrdiff_t reef_member_dimension(const reef_member *member)
{
    if (!member) {
        return 0;
    }
    return member->dimension;
}

reef_dtype reef_member_dtype(const reef_member *member)
{
    if (!member) {
        return REEF_F32;
    }
    return member->setup.dtype;
}

const void *reef_member_model(const reef_member *member)
{
    if (!member) {
        return NULL;
    }
    return member->w;
}

void reef_member_set_model(reef_member *member, const void *model)
{
    if (!member) {
        return;
    }
    memcpy(member->w, model, member->bytes);
}

const void *reef_member_adapt(reef_member *m, int64_t round)
{
    if (!m) {
        return NULL;
    }
    const reef_member_setup *s = &m->setup;
    if (!s->problem) {
        return NULL;
    }
    const int32_t agent = (int32_t)s->agent;
    const float *model = (const float *)(const void *)m->w;
    float *phi = (float *)(void *)m->phi;
    const bool flipped =
        s->attack && (reef_attack_traits(s->attack) & REEF_ATTACK_LABELS) && reef_attack_active(s->attack, round);
    const reef_batch batch = {.count = 1,
                              .agents = &agent,
                              .models = &model,
                              .gradients = &phi,
                              .flipped = flipped ? &flipped : NULL,
                              .round = round,
                              .size = (int32_t)m->adapt->batch,
                              .lanes = 1,
                              .repetition = (int32_t)s->repetition,
                              .work = m->batch_work};
    reef_problem_kind_of(s->problem)->gradients(reef_problem_state(s->problem), &batch);
    if (m->velocity) {
        rfi_step_smooth(m->dimension, (float)m->adapt->momentum, m->velocity, phi);
    }
    double factor = s->step_factor > 0 ? s->step_factor : 1;
    rfi_step_move(m->dimension, model, (float)rfi_step_at(m->adapt, factor, round), phi);
    m->sent = m->phi;
    return m->phi;
}

void reef_member_offer(reef_member *member, const void *phi)
{
    if (!member) {
        return;
    }
    memcpy(member->phi, phi, member->bytes);
    member->sent = member->phi;
}

const void *reef_member_message(reef_member *m, int64_t round, const void *const *rows)
{
    if (!m) {
        return NULL;
    }
    const reef_attack *attack = m->setup.attack;
    m->sent = m->phi;
    if (!attack || !reef_attack_active(attack, round) || !reef_attack_kind_of(attack)->message) {
        return m->sent;
    }
    bool together = reef_attack_common_of(attack)->knowledge == REEF_KNOW_MALICIOUS;
    ptrdiff_t known = 0;
    for (ptrdiff_t i = 0; (reef_attack_traits(attack) & REEF_ATTACK_ROWS) && i < m->setup.senders; i++) {
        const void *row = i == m->self ? (const void *)m->phi : rows[i];
        if (row && m->malicious[i] == together) {
            m->known[known++] = row;
        }
    }
    const reef_attack_view view = {.round = round,
                                   .seed = m->setup.seed,
                                   .sender = m->setup.agent,
                                   .receiver = -1,
                                   .length = m->dimension,
                                   .lanes = 1,
                                   .repetition = m->setup.repetition,
                                   .own = (const float *)(const void *)m->phi,
                                   .previous = (const float *)(const void *)m->w,
                                   .known = known,
                                   .rows = m->known,
                                   .honest = m->honest_all,
                                   .malicious_count = m->setup.agents - m->honest_all,
                                   .work = m->attack_work,
                                   .trust = 1};
    float *lie = (float *)(void *)m->lie;
    m->sent = reef_attack_kind_of(attack)->message(reef_attack_params(attack), &view, lie) ? lie : NULL;
    return m->sent;
}

static reef_status apply(reef_member *m, int64_t round, const void *const *rows, bool own, reef_error *error)
{
    bool complete = true;
    for (ptrdiff_t i = 0; i < m->setup.senders; i++) {
        const void *row = rows[i];
        if (i == m->self) {
            row = !own ? NULL : (m->sent ? m->sent : (m->keeps_self ? (const void *)m->phi : NULL));
        }
        m->rows[i] = row ? row : m->phi;
        m->weights[i] = row ? m->expected[i] : 0;
        complete = complete && row;
    }
    double step = m->adapt ? rfi_step_at(m->adapt, 1, round) : 0;
    const reef_input input = {.rows = m->rows,
                              .weights = complete && m->uniform ? NULL : m->weights,
                              .ids = m->state ? m->ids : NULL,
                              .has_self = own,
                              .self = m->self,
                              .round = round,
                              .step = m->state && isfinite(step) ? step : 0,
                              .state = m->state};
    return reef_plan_apply(m->plan, &input, m->out, m->report, error);
}

reef_status reef_member_combine(reef_member *m, int64_t round, const void *const *rows, reef_error *error)
{
    if (!m) {
        return rfi_fail(error, REEF_E_ARG, "reef_member_combine needs a member");
    }
    reef_status status = apply(m, round, rows, true, error);
    memcpy(m->w, status == REEF_OK ? m->out : m->phi, m->bytes);
    return status;
}

reef_status reef_member_adopt(reef_member *m, int64_t round, const void *const *rows, reef_error *error)
{
    if (!m) {
        return rfi_fail(error, REEF_E_ARG, "reef_member_adopt needs a member");
    }
    reef_status status = apply(m, round, rows, false, error);
    if (status != REEF_OK) {
        return status;
    }
    memcpy(m->w, m->out, m->bytes);
    return REEF_OK;
}

void reef_member_trust(const reef_member *m, double *share, double *fair)
{
    if (!m) {
        return;
    }
    double sum = 0;
    double expected = 0;
    const double *given = reef_report_trust(m->report);
    for (ptrdiff_t i = 0; i < m->setup.senders; i++) {
        sum += m->weights[i];
        expected += m->expected[i];
    }
    for (ptrdiff_t i = 0; i < m->setup.senders; i++) {
        if (share) {
            share[i] = sum > 0 ? given[i] * m->weights[i] / sum : 0;
        }
        if (fair) {
            fair[i] = m->expected[i] / expected;
        }
    }
}

void reef_member_set_seed(reef_member *m, uint64_t seed)
{
    if (!m) {
        return;
    }
    if (m->state) {
        reef_state_set_seed(m->state, seed);
    }
}

const reef_report *reef_member_report(const reef_member *member)
{
    if (!member) {
        return NULL;
    }
    return member->report;
}

/* ---- saving ----
 * "REEFMBR1", hash of what follows u64, fingerprint u64, then w, velocity and the rule's state. */

enum { AT_HASH = 8, AT_FINGERPRINT = 16, HEAD = 24 };
static const char magic[AT_HASH] = {'R', 'E', 'E', 'F', 'M', 'B', 'R', '1'};

static uint64_t fingerprint(const reef_member *m)
{
    uint64_t hash = rfi_hash_number(RFI_HASH_START, (uint64_t)m->setup.agent);
    hash = rfi_hash_number(hash, (uint64_t)m->dimension);
    hash = rfi_hash_number(hash, (uint64_t)m->setup.dtype);
    hash = rfi_hash_number(hash, m->velocity != NULL);
    return rfi_hash_number(hash, m->state != NULL);
}

/* All but the rule's state, whose size changes as senders are heard. */
static size_t fixed_size(const reef_member *m)
{
    return HEAD + m->bytes + (m->velocity ? m->bytes : 0);
}

size_t reef_member_size(const reef_member *m)
{
    if (!m) {
        return 0;
    }
    return fixed_size(m) + (m->state ? reef_state_size(m->state) : 0);
}

reef_status reef_member_save(const reef_member *m, void *bytes, size_t size, reef_error *error)
{
    if (!m || !bytes || size != reef_member_size(m)) {
        return rfi_fail(error, REEF_E_ARG,
                        "the member or the buffer is NULL, or the size differs from reef_member_size()");
    }
    unsigned char *at = bytes;
    uint64_t print = fingerprint(m);
    memcpy(at, magic, sizeof magic);
    memcpy(at + AT_FINGERPRINT, &print, sizeof print);
    memcpy(at + HEAD, m->w, m->bytes);
    unsigned char *rest = at + HEAD + m->bytes;
    if (m->velocity) {
        memcpy(rest, m->velocity, m->bytes);
        rest += m->bytes;
    }
    assert(rest == at + fixed_size(m));
    reef_status status = m->state ? reef_state_save(m->state, rest, reef_state_size(m->state), error) : REEF_OK;
    uint64_t hash = rfi_hash_bytes(RFI_HASH_START, at + AT_FINGERPRINT, size - AT_FINGERPRINT);
    memcpy(at + AT_HASH, &hash, sizeof hash);
    return status;
}

reef_status reef_member_load(reef_member *m, const void *bytes, size_t size, reef_error *error)
{
    if (!m) {
        return rfi_fail(error, REEF_E_ARG, "reef_member_load needs a member");
    }
    const unsigned char *at = bytes;
    uint64_t hash = 0;
    uint64_t print = 0;
    size_t fixed = fixed_size(m);
    if (!bytes || size < fixed || (!m->state && size > fixed) || memcmp(at, magic, sizeof magic) != 0) {
        return rfi_fail(error, REEF_E_FORMAT, "the state belongs to another setup (%zu bytes, expected %zu)", size,
                        reef_member_size(m));
    }
    memcpy(&hash, at + AT_HASH, sizeof hash);
    memcpy(&print, at + AT_FINGERPRINT, sizeof print);
    if (hash != rfi_hash_bytes(RFI_HASH_START, at + AT_FINGERPRINT, size - AT_FINGERPRINT)) {
        return rfi_fail(error, REEF_E_FORMAT, "the state of the member is damaged: wrong checksum");
    }
    if (print != fingerprint(m)) {
        return rfi_fail(error, REEF_E_FORMAT, "the state is that of another agent, model or rule");
    }
    reef_status status = m->state ? reef_state_load(m->state, at + fixed, size - fixed, error) : REEF_OK;
    if (status != REEF_OK) {
        return status;
    }
    memcpy(m->w, at + HEAD, m->bytes);
    if (m->velocity) {
        memcpy(m->velocity, at + HEAD + m->bytes, m->bytes);
    }
    return REEF_OK;
}
