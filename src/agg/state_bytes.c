/* States as bytes: one container for all rules.
 *
 *   head        magic, version, byte order, size, rule and its version, shape, lengths, counters, seed
 *   body        the centre, or the senders (senders_bytes.c)
 *   checksum    FNV-1a of everything before it
 * Every length in the head must be that of the state that is loaded; only the number of senders may differ, and the size must agree with it.
 * A single damaged byte always changes the checksum; bytes that were forged to fit it must still be in range. */
#include "agg/state.h"

#include "base/error.h"
#include "base/hash.h"

#include <math.h>
#include <string.h>

enum { VERSION = 1, RULE_NAME = 40 };
static const char magic[8] = {'R', 'E', 'E', 'F', 'S', 'T', 'A', 'T'};
static const char first_magic[8] = "REEFMEM"; /* of 0.1, without version and checksum */

/* Numbers of 64 bits only: no padding. */
typedef struct head {
    char magic[8];
    uint64_t version;
    uint64_t order; /* 0x0102030405060708 as the writing machine has it */
    uint64_t size;  /* of it all */
    char rule[RULE_NAME];
    int64_t rule_version;
    uint64_t shape; /* hash of the lengths of the segments */
    int64_t dtype, single;
    int64_t numbers, vectors, record, shared, pair_numbers, pair_block, pair_places;
    int64_t known; /* the centre is */
    int64_t senders, rounds;
    uint64_t seed;
} head;

static head head_of(const reef_state *state)
{
    const rfi_senders *s = &state->senders;
    head h = {.version = VERSION, .order = UINT64_C(0x0102030405060708), .dtype = state->dtype, .known = state->known};
    memcpy(h.magic, magic, sizeof magic);
    strncpy(h.rule, state->rule->kind.name, sizeof h.rule - 1);
    h.size = reef_state_size(state);
    h.shape = RFI_HASH_START;
    for (ptrdiff_t i = 0; i <= state->segments; i++) {
        h.shape = rfi_hash_number(h.shape, (uint64_t)state->offsets[i]);
    }
    if (state->recalls) {
        h.rule_version = state->rule->memory->version;
        h.single = s->single;
        h.numbers = s->sizes.numbers;
        h.vectors = s->sizes.vectors;
        h.record = (int64_t)s->sizes.record;
        h.shared = (int64_t)s->sizes.shared;
        h.pair_numbers = s->sizes.pair_numbers;
        h.pair_block = s->sizes.pair_block;
        h.pair_places = s->sizes.pair_places;
        h.senders = s->count;
        h.rounds = s->rounds;
        h.seed = s->seed;
    }
    return h;
}

static size_t centre_size(const reef_state *state)
{
    return (size_t)state->offsets[state->segments] * rfi_dtype_size(state->dtype);
}

size_t reef_state_room(const reef_state *state, ptrdiff_t senders)
{
    if (!state) {
        return 0;
    }
    size_t around = sizeof(head) + sizeof(uint64_t);
    if (!state->recalls) {
        return around + centre_size(state);
    }
    size_t size = senders >= 0 ? rfi_senders_size(&state->senders, senders) : 0;
    bool fits = size > 0 || (senders == 0 && state->senders.sizes.shared == 0);
    return fits && size <= PTRDIFF_MAX - around ? around + size : 0;
}

size_t reef_state_size(const reef_state *state)
{
    if (!state) {
        return 0;
    }
    return reef_state_room(state, state->recalls ? state->senders.count : 0);
}

reef_status reef_state_save(const reef_state *state, void *bytes, size_t size, reef_error *error)
{
    if (!state || !bytes || size != reef_state_size(state)) {
        return rfi_fail(error, REEF_E_ARG,
                        "reef_state_save: the state or bytes are NULL, or the size differs from reef_state_size()");
    }
    head h = head_of(state);
    unsigned char *body = (unsigned char *)bytes + sizeof h;
    unsigned char *tail = (unsigned char *)bytes + size - sizeof(uint64_t);
    memcpy(bytes, &h, sizeof h);
    if (state->recalls) {
        rfi_senders_save(&state->senders, body);
    } else if (state->known) {
        memcpy(body, state->now, centre_size(state));
    } else {
        memset(body, 0, centre_size(state));
    }
    uint64_t sum = rfi_hash_bytes(RFI_HASH_START, bytes, size - sizeof sum);
    memcpy(tail, &sum, sizeof sum);
    return REEF_OK;
}

/* ---- loading ---- */

/* Whole, undamaged, and of a format that is known here. */
static reef_status check_container(const unsigned char *bytes, size_t size, head *h, reef_error *error)
{
    uint64_t sum = 0;
    if (size >= sizeof first_magic && memcmp(bytes, first_magic, sizeof first_magic) == 0) {
        return rfi_fail(error, REEF_E_FORMAT,
                        "the state was saved by Reef 0.1, whose format is no longer read; start with a fresh state");
    }
    if (size < sizeof *h + sizeof sum || memcmp(bytes, magic, sizeof magic) != 0) {
        return rfi_fail(error, REEF_E_FORMAT, "this is not a saved state (%zu bytes)", size);
    }
    memcpy(h, bytes, sizeof *h);
    if (h->order != UINT64_C(0x0102030405060708)) {
        return rfi_fail(error, REEF_E_FORMAT,
                        "the state was saved on a machine with another byte order, or is damaged");
    }
    if (h->version != VERSION) {
        return rfi_fail(error, REEF_E_FORMAT, "the state has format %llu; this version of Reef reads format %d",
                        (unsigned long long)h->version, VERSION);
    }
    memcpy(&sum, bytes + size - sizeof sum, sizeof sum);
    if (h->size != size || sum != rfi_hash_bytes(RFI_HASH_START, bytes, size - sizeof sum)) {
        return rfi_fail(error, REEF_E_FORMAT, "the saved state is damaged: wrong checksum, or %zu of %llu bytes", size,
                        (unsigned long long)h->size);
    }
    return REEF_OK;
}

/* Of this rule, shape and lengths. */
static reef_status check_kind(const reef_state *state, const head *h, reef_error *error)
{
    head own = head_of(state);
    if (memcmp(h->rule, own.rule, sizeof own.rule) != 0) {
        return rfi_fail(error, REEF_E_FORMAT, "the saved state belongs to a rule other than %s", own.rule);
    }
    if (h->rule_version != own.rule_version) {
        return rfi_fail(error, REEF_E_FORMAT,
                        "the saved state has version %lld of what %s remembers; this version of Reef reads %lld",
                        (long long)h->rule_version, own.rule, (long long)own.rule_version);
    }
    own.size = h->size;
    own.known = h->known;
    own.senders = h->senders;
    own.rounds = h->rounds;
    own.seed = h->seed;
    if (memcmp(h, &own, sizeof own) != 0) {
        return rfi_fail(error, REEF_E_FORMAT,
                        "the saved state has another shape, or belongs to %s with other memory parameters", own.rule);
    }
    bool sane = h->senders >= 0 && h->senders <= INT32_MAX && h->rounds >= 0 && h->rounds <= INT64_MAX / 4;
    sane = sane && (h->known == 0 || (h->known == 1 && !state->recalls));
    sane = sane && h->size == reef_state_room(state, (ptrdiff_t)h->senders);
    return sane ? REEF_OK : rfi_fail(error, REEF_E_FORMAT, "the saved state is inconsistent: impossible counters");
}

static reef_status load_centre(reef_state *state, bool known, const unsigned char *centre, reef_error *error)
{
    for (ptrdiff_t m = 0; m < state->offsets[state->segments]; m++) {
        if (!isfinite(rfi_load(state->dtype, centre, m))) {
            return rfi_fail(error, REEF_E_FORMAT, "the centre of the saved state is not finite at coordinate %td", m);
        }
    }
    memcpy(state->now, centre, centre_size(state));
    state->known = known;
    memset(state->given, known ? 1 : 0, (size_t)state->segments * sizeof *state->given);
    return REEF_OK;
}

reef_status reef_state_load(reef_state *state, const void *bytes, size_t size, reef_error *error)
{
    head h;
    if (!state || !bytes) {
        return rfi_fail(error, REEF_E_ARG, "reef_state_load: %s is NULL", state ? "bytes" : "state");
    }
    reef_status status = check_container(bytes, size, &h, error);
    if (status != REEF_OK) {
        return status;
    }
    status = check_kind(state, &h, error);
    if (status != REEF_OK) {
        return status;
    }
    const unsigned char *body = (const unsigned char *)bytes + sizeof h;
    if (!state->recalls) {
        return load_centre(state, h.known, body, error);
    }
    status = rfi_senders_load(&state->senders, state->rule->memory, (ptrdiff_t)h.senders, h.rounds, body, error);
    if (status != REEF_OK) {
        return status;
    }
    state->senders.seed = h.seed;
    return REEF_OK;
}
