/* What an agent tells about itself: STATUS frames for observers, its log, its metrics. */
#include "net/agent.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double tell_seconds = 1;

static const char *own_name(const rfi_agent *a)
{
    return a->file.participants[a->place].name;
}

/* ---- figures ---- */

static uint64_t resident_bytes(void)
{
    char text[100] = "";
    char *at = text;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        (void)!fgets(text, sizeof text, file);
        (void)fclose(file);
    }
    (void)strtoull(text, &at, 10); /* all pages; then those in memory */
    uint64_t pages = strtoull(at, NULL, 10);
    long page = sysconf(_SC_PAGESIZE);
    return page > 0 ? pages * (uint64_t)page : 0;
}

static double norm_of(const rfi_agent *a)
{
    const void *model = reef_member_model(a->member);
    double sum = 0;
    bool single = a->roster.shape.numbers == RFI_NUMBERS_F32;
    for (uint64_t m = 0; m < a->roster.shape.count; m++) {
        double value = single ? (double)((const float *)model)[m] : ((const double *)model)[m];
        sum += value * value;
    }
    return isfinite(sum) ? sqrt(sum) : 0;
}

/* The cause of which more frames were refused since it was last asked; otherwise none. */
static rfi_cause newest_cause(const rfi_peer *peer, uint64_t *told)
{
    rfi_cause newest = RFI_GOOD;
    for (int cause = 0; cause < RFI_CAUSES; cause++) {
        bool more = peer->counts[cause] > told[cause];
        newest = more && rfi_is_offence((rfi_cause)cause) ? (rfi_cause)cause : newest;
        told[cause] = peer->counts[cause];
    }
    return newest;
}

static void fill_entry(rfi_agent *a, ptrdiff_t l, rfi_status_entry *e)
{
    const rfi_peer *peer = &rfi_node_window(a->node)->peers[l];
    uint64_t refused = rfi_offences(peer);
    *e = (rfi_status_entry){.agent = peer->who.agent,
                            .trust = a->telemetry.trust[l],
                            .age = a->telemetry.age[l],
                            .cause = peer->excluded ? RFI_EXCLUDED : newest_cause(peer, a->told + l * RFI_CAUSES),
                            .test = a->telemetry.test[l],
                            .refused = refused > UINT32_MAX ? UINT32_MAX : (uint32_t)refused};
}

/* A bit per broker: it is connected; and what went through all of them. */
static void count_links(const rfi_agent *a, rfi_status *s)
{
    for (ptrdiff_t i = 0; i < a->file.brokers; i++) {
        rfi_nats_counts counts;
        rfi_nats_count(a->brokers[i], &counts);
        s->links |= counts.up ? 1U << i : 0;
        s->received += counts.in;
        s->sent += counts.out;
    }
}

void rfi_tell_status(rfi_agent *a, rfi_status *s)
{
    const rfi_rounds *r = rfi_node_rounds(a->node);
    const rfi_telemetry *t = &a->telemetry;
    *s = (rfi_status){.standing = t->standing,
                      .round = r->round,
                      .combined = r->combined,
                      .alone = r->alone,
                      .skipped = r->skipped,
                      .idle = r->idles,
                      .weight = rfi_node_weight(a->node),
                      .adapt = (float)t->stages[RFI_STAGE_ADAPT].last,
                      .wait = (float)t->stages[RFI_STAGE_WAIT].last,
                      .combine = (float)t->stages[RFI_STAGE_COMBINE].last,
                      .resident = resident_bytes(),
                      .norm = norm_of(a),
                      .count = (unsigned)rfi_node_window(a->node)->setup.count};
    memcpy(s->notes, t->notes, sizeof s->notes);
    count_links(a, s);
    for (ptrdiff_t l = 0; l < (ptrdiff_t)s->count; l++) {
        fill_entry(a, l, &s->entries[l]);
    }
}

/* ---- rounds ---- */

void rfi_tell_round(rfi_agent *a, double now)
{
    rfi_telemetry *t = &a->telemetry;
    const rfi_rounds *r = rfi_node_rounds(a->node);
    ptrdiff_t count = rfi_node_window(a->node)->setup.count;
    bool combined = r->alone == a->alone_done;
    rfi_telemetry_ended(t, now);
    t->standing = combined ? RFI_STANDING_COMBINED : r->idle ? RFI_STANDING_IDLE : RFI_STANDING_ALONE;
    reef_member_trust(a->member, a->shares, a->shares + count + 1);
    for (ptrdiff_t l = 0; l < count; l++) {
        ptrdiff_t sender = l + (l >= a->self);
        double trust = a->shares[sender] / a->shares[count + 1 + sender];
        bool known = combined && isfinite(trust) && t->age[l] != RFI_AGE_ABSENT;
        ptrdiff_t test = known ? reef_report_cause(reef_member_report(a->member), sender) : -1;
        t->trust[l] = known ? (float)trust : -1;
        t->test[l] = test >= 0 && test < UINT8_MAX ? (unsigned char)(test + 1) : 0;
    }
}

/* ---- telling ---- */

static void send_status(rfi_agent *a, const rfi_status *status)
{
    unsigned char frame[RFI_STATUS_FRAME_MAX];
    rfi_head head = {.epoch = (uint32_t)a->file.terms.epoch, .agent = (uint32_t)a->place, .boot = a->boot};
    memcpy(head.run, a->file.hash, sizeof head.run);
    memcpy(head.key, a->secret.identity.public_key, sizeof head.key);
    size_t size = rfi_status_frame(frame, &head, status, &a->secret.identity, &rfi_ed25519);
    const rfi_topic topic = {.kind = RFI_TOPIC_STATUS, .agent = (uint32_t)a->place};
    a->link->ops->publish(a->link, &topic, frame, size);
}

static void put_metrics(rfi_agent *a, const rfi_status *status)
{
    rfi_page page = {0};
    rfi_nats_counts counts[RFI_BROKERS_MAX];
    for (ptrdiff_t i = 0; i < a->file.brokers; i++) {
        rfi_nats_count(a->brokers[i], &counts[i]);
    }
    const rfi_metrics_view view = {.file = &a->file,
                                   .status = status,
                                   .telemetry = &a->telemetry,
                                   .window = rfi_node_window(a->node),
                                   .echo = rfi_node_echo(a->node),
                                   .rounds = rfi_node_rounds(a->node),
                                   .links = a->file.brokers,
                                   .counts = counts,
                                   .handout = &a->handout};
    rfi_metrics_print(&view, &page);
    if (!page.failed) {
        rfi_metrics_put(a->metrics, page.text, page.size);
    }
    rfi_page_free(&page);
}

static void log_changes(rfi_agent *a, const rfi_status *s)
{
    bool up = s->links != 0;
    if (up != a->told_up) {
        RFI_LOG(&a->log, up ? REEF_LOG_INFO : REEF_LOG_WARNING, up ? "connected" : "disconnected",
                RFI_LOG_TEXT("agent", own_name(a)), RFI_LOG_TEXT("broker", a->file.broker[0]));
        a->told_up = up;
    }
    if (s->alone > a->told_alone) {
        RFI_LOG(&a->log, REEF_LOG_WARNING, "no_quorum", RFI_LOG_TEXT("agent", own_name(a)),
                RFI_LOG_NUMBER("round", s->round), RFI_LOG_NUMBER("rounds_alone", s->alone - a->told_alone));
        a->told_alone = s->alone;
    }
    RFI_LOG(&a->log, REEF_LOG_DEBUG, "progress", RFI_LOG_TEXT("agent", own_name(a)), RFI_LOG_NUMBER("round", s->round),
            RFI_LOG_NUMBER("combined", s->combined), RFI_LOG_NUMBER("alone", s->alone),
            RFI_LOG_NUMBER("weight", s->weight));
}

void rfi_tell(rfi_agent *a, double now, bool last)
{
    rfi_status status;
    if (!last && now - a->told_at < tell_seconds) {
        return;
    }
    a->told_at = now;
    rfi_tell_status(a, &status);
    status.standing = last ? RFI_STANDING_LEFT : status.standing;
    if (a->metrics) {
        put_metrics(a, &status);
    }
    if (a->file.observers > 0) {
        send_status(a, &status);
    }
    log_changes(a, &status);
}

void rfi_tell_refusals(const rfi_agent *a, const rfi_peer *peer, rfi_cause cause, uint64_t count)
{
    RFI_LOG(&a->log, REEF_LOG_WARNING, "refused", RFI_LOG_TEXT("agent", own_name(a)),
            RFI_LOG_TEXT("neighbour", a->file.participants[peer->who.agent].name),
            RFI_LOG_TEXT("cause", rfi_cause_text(cause)), RFI_LOG_NUMBER("count", count));
}

const char *rfi_agent_lacks(double heard, double above)
{
    return heard > above ? "enough neighbours are heard from, but not enough of their models have come"
                         : "too few neighbours are heard from";
}

/* A connection is tried for the sake of its error: the one that is made again and again does not tell. */
void rfi_agent_explain(const rfi_log *log, const char *name, const rfi_nats_operator *by, double heard, double above)
{
    reef_error why = {REEF_OK, ""};
    if (rfi_nats_try(by, &why) != REEF_OK) {
        RFI_LOG(log, REEF_LOG_WARNING, "waiting", RFI_LOG_TEXT("agent", name), RFI_LOG_TEXT("why", why.text));
    } else {
        RFI_LOG(log, REEF_LOG_INFO, "waiting", RFI_LOG_TEXT("agent", name),
                RFI_LOG_TEXT("why", rfi_agent_lacks(heard, above)), RFI_LOG_NUMBER("weight", heard),
                RFI_LOG_NUMBER("above", above));
    }
}
