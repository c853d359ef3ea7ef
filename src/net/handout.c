/* What is taken of run files that come through the network, and when they are asked for. */
#include "net/handout.h"

#include "base/error.h"
#include "net/epoch.h"

#include <math.h>
#include <string.h>

static const double ask_seconds = 1;
static const double asks_per_second = 100;
static const double most_tokens = 8;
static const double tokens_per_second = 2;

const char *rfi_handed_text(rfi_handed result)
{
    static const char *const texts[RFI_HANDED_RESULTS] = {"taken", "known",     "old",    "early",  "length",
                                                          "rate",  "signature", "second", "refused"};
    return texts[result];
}

bool rfi_handed_offends(rfi_handed result)
{
    return result == RFI_HANDED_LENGTH || result >= RFI_HANDED_SIGNATURE;
}

void rfi_handout_start(rfi_handout *h, double malicious_at_least, double now)
{
    *h = (rfi_handout){.malicious_at_least = malicious_at_least, .every = ask_seconds, .ask_at = now};
    for (int way = 0; way < RFI_WAYS; way++) {
        h->tokens[way] = most_tokens;
        h->filled_at[way] = now;
    }
}

void rfi_handout_pace(rfi_handout *h, ptrdiff_t agents)
{
    h->every = fmax(ask_seconds, (double)agents / asks_per_second);
}

void rfi_handout_turn(rfi_handout *h)
{
    h->seen_count = 0;
}

/* ---- what is taken ---- */

rfi_handed rfi_handout_judge(const rfi_handout *h, const rfi_runfile *file, const rfi_runfile *next,
                             const rfi_runfile *candidate, reef_error *why)
{
    int64_t epoch = candidate->terms.epoch;
    bool same_run = memcmp(candidate->id, file->id, sizeof file->id) == 0 &&
                    memcmp(candidate->coordinator, file->coordinator, sizeof file->coordinator) == 0;
    if (same_run && (memcmp(candidate->hash, file->hash, sizeof file->hash) == 0 ||
                     (next && memcmp(candidate->hash, next->hash, sizeof next->hash) == 0))) {
        return RFI_HANDED_KNOWN;
    }
    if (same_run && epoch < file->terms.epoch) {
        (void)rfi_fail(why, REEF_E_ARG, "epoch %lld is over: this is epoch %lld", (long long)epoch,
                       (long long)file->terms.epoch);
        return RFI_HANDED_OLD;
    }
    if (same_run && (epoch == file->terms.epoch || (next && epoch == next->terms.epoch))) {
        (void)rfi_fail(why, REEF_E_ARG, "the coordinator has signed two files for epoch %lld; the second is ignored",
                       (long long)epoch);
        return RFI_HANDED_SECOND;
    }
    if (candidate->terms.malicious < h->malicious_at_least) {
        (void)rfi_fail(why, REEF_E_ARG, "the next epoch allows for malicious: %g only, not %g",
                       candidate->terms.malicious, h->malicious_at_least);
        return RFI_HANDED_REFUSED;
    }
    if (rfi_epoch_follows(file, candidate, why) != REEF_OK) {
        return same_run && epoch > file->terms.epoch + 1 ? RFI_HANDED_EARLY : RFI_HANDED_REFUSED;
    }
    return RFI_HANDED_TAKEN;
}

static bool take_token(rfi_handout *h, double now)
{
    double *tokens = &h->tokens[h->way];
    *tokens = fmin(most_tokens, *tokens + fmax(0, now - h->filled_at[h->way]) * tokens_per_second);
    h->filled_at[h->way] = now;
    bool there = *tokens >= 1;
    *tokens -= there ? 1 : 0;
    return there;
}

static void remember(rfi_handout *h, const unsigned char hash[RFI_HASH_BYTES], rfi_handed result)
{
    int at = h->seen_count < RFI_HANDOUT_MEMORY ? h->seen_count++ : (int)(h->counts[result] % RFI_HANDOUT_MEMORY);
    memcpy(h->seen[at].hash, hash, RFI_HASH_BYTES);
    h->seen[at].result = result;
}

/* A file with a signature: by whom, and was it seen before? */
static rfi_handed look_up(const rfi_handout *h, const rfi_runfile *file, const rfi_runfile *next, const void *bytes,
                          size_t size, unsigned char hash[RFI_HASH_BYTES], reef_error *why)
{
    unsigned char by[RFI_KEY_BYTES];
    if (!rfi_runfile_signed(bytes, &size, by, hash) || memcmp(by, file->coordinator, sizeof by) != 0) {
        (void)rfi_fail(why, REEF_E_FORMAT, "the file is not signed by the coordinator of run %s", file->run);
        return RFI_HANDED_SIGNATURE;
    }
    if (memcmp(hash, file->hash, RFI_HASH_BYTES) == 0 || (next && memcmp(hash, next->hash, RFI_HASH_BYTES) == 0)) {
        return RFI_HANDED_KNOWN;
    }
    for (int i = 0; i < h->seen_count; i++) {
        if (memcmp(hash, h->seen[i].hash, RFI_HASH_BYTES) == 0) {
            (void)rfi_fail(why, REEF_E_ARG, "the file was looked at before");
            return h->seen[i].result;
        }
    }
    return RFI_HANDED_TAKEN;
}

static rfi_handed check(rfi_handout *h, double now, const rfi_runfile *file, const rfi_runfile *next, const void *bytes,
                        size_t size, rfi_runfile *taken, reef_error *why)
{
    unsigned char hash[RFI_HASH_BYTES];
    if (size == 0 || size > RFI_RUNFILE_MAX) {
        (void)rfi_fail(why, REEF_E_FORMAT, "a run file has 1 to %zu bytes, not %zu", RFI_RUNFILE_MAX, size);
        return RFI_HANDED_LENGTH;
    }
    if (!take_token(h, now)) {
        (void)rfi_fail(why, REEF_E_FORMAT, "too many files");
        return RFI_HANDED_RATE;
    }
    rfi_handed result = look_up(h, file, next, bytes, size, hash, why);
    if (result != RFI_HANDED_TAKEN) {
        return result;
    }
    reef_status status = rfi_runfile_read(NULL, bytes, size, "run file of the network", taken, why);
    if (status == REEF_E_NOMEM) { /* not the file's fault: it may be the right one */
        return RFI_HANDED_RATE;
    }
    if (status != REEF_OK) {
        remember(h, hash, RFI_HANDED_REFUSED);
        return RFI_HANDED_REFUSED;
    }
    result = rfi_handout_judge(h, file, next, taken, why);
    if (result != RFI_HANDED_TAKEN) {
        rfi_runfile_free(taken);
        remember(h, hash, result);
    }
    return result;
}

rfi_handed rfi_handout_check(rfi_handout *h, double now, const rfi_runfile *file, const rfi_runfile *next,
                             const void *bytes, size_t size, rfi_runfile *taken, reef_error *why)
{
    rfi_handed result = check(h, now, file, next, bytes, size, taken, why);
    h->counts[result]++;
    return result;
}

/* ---- what is asked for ---- */

bool rfi_handout_ask(rfi_handout *h, double now, int64_t epoch, const uint32_t *agents, ptrdiff_t count,
                     rfi_topic *topic, double *until)
{
    *until = h->ask_at;
    if (now < h->ask_at) {
        return false;
    }
    uint64_t turn = h->turn++;
    h->ask_at = *until = now + h->every;
    bool broker = turn % 2 == 0 || count == 0;
    *topic = (rfi_topic){.kind = RFI_TOPIC_FILE,
                         .agent = broker ? RFI_TOPIC_BROKER : agents[turn / 2 % (uint64_t)count],
                         .round = broker ? (uint64_t)epoch + 1 : 0};
    return true;
}
