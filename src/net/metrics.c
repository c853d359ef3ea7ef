/* The text that Prometheus reads, and where it is served. */
#include "net/metrics.h"

#include "base/error.h"
#include "net/http.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void begin(rfi_page *p, const char *name, const char *type, const char *help)
{
    rfi_page_add(p, "# HELP reef_agent_%s %s\n# TYPE reef_agent_%s %s\n", name, help, name, type);
}

static void gauge(rfi_page *p, const char *name, const char *help, double value)
{
    begin(p, name, "gauge", help);
    rfi_page_add(p, "reef_agent_%s %.17g\n", name, value);
}

static const char *peer_name(const rfi_metrics_view *v, ptrdiff_t l)
{
    return v->file->participants[v->window->peers[l].who.agent].name;
}

static void add_rounds(const rfi_metrics_view *v, rfi_page *p)
{
    const rfi_rounds *r = v->rounds;
    const struct {
        const char *result;
        uint64_t count;
    } rows[] = {{"combined", r->combined}, {"self", r->alone}, {"skipped", r->skipped}, {"idle", r->idles}};
    gauge(p, "round", "The current or next round.", (double)r->round);
    begin(p, "rounds_total", "counter", "Rounds since the start, by how they ended.");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rfi_page_add(p, "reef_agent_rounds_total{result=\"%s\"} %llu\n", rows[i].result,
                     (unsigned long long)rows[i].count);
    }
    gauge(p, "weight",
          "Weight of the models in the last combination, including the agent's own; 0 after a round alone.",
          v->status->weight);
}

static void add_stages(const rfi_metrics_view *v, rfi_page *p)
{
    begin(p, "phase_seconds", "histogram", "Where the time of a round goes.");
    for (int s = 0; s < RFI_STAGES; s++) {
        const rfi_histogram *h = &v->telemetry->stages[s];
        const char *name = rfi_stage_text((rfi_telemetry_stage)s);
        unsigned long long sum = 0;
        for (int b = 0; b < RFI_BUCKETS; b++) {
            sum += h->counts[b];
            rfi_page_add(p, "reef_agent_phase_seconds_bucket{phase=\"%s\",le=\"%g\"} %llu\n", name,
                         rfi_bucket_seconds[b], sum);
        }
        rfi_page_add(p,
                     "reef_agent_phase_seconds_bucket{phase=\"%s\",le=\"+Inf\"} %llu\n"
                     "reef_agent_phase_seconds_sum{phase=\"%s\"} %.17g\n"
                     "reef_agent_phase_seconds_count{phase=\"%s\"} %llu\n",
                     name, (unsigned long long)h->count, name, h->sum, name, (unsigned long long)h->count);
    }
}

static void add_peers(const rfi_metrics_view *v, rfi_page *p)
{
    const rfi_status *s = v->status;
    begin(p, "peer_trust", "gauge", "Effective weight of a neighbour over its fair share in the last combination.");
    for (ptrdiff_t l = 0; l < (ptrdiff_t)s->count; l++) {
        if (s->entries[l].trust >= 0) {
            rfi_page_add(p, "reef_agent_peer_trust{peer=\"%s\"} %.9g\n", peer_name(v, l), (double)s->entries[l].trust);
        }
    }
    begin(p, "peer_age_rounds", "gauge",
          "Age of the model of a neighbour in the last combination; absent if none was used.");
    for (ptrdiff_t l = 0; l < (ptrdiff_t)s->count; l++) {
        if (s->entries[l].age != RFI_AGE_ABSENT) {
            rfi_page_add(p, "reef_agent_peer_age_rounds{peer=\"%s\"} %u\n", peer_name(v, l), s->entries[l].age);
        }
    }
    begin(p, "frames_total", "counter", "Frames of a neighbour, by what became of them.");
    for (ptrdiff_t i = 0; i < (ptrdiff_t)s->count * RFI_CAUSES; i++) {
        uint64_t count = v->window->peers[i / RFI_CAUSES].counts[i % RFI_CAUSES];
        rfi_page_add(p, "reef_agent_frames_total{peer=\"%s\",result=\"%s\"} %llu\n", peer_name(v, i / RFI_CAUSES),
                     rfi_cause_text((rfi_cause)(i % RFI_CAUSES)), (unsigned long long)count);
    }
}

static void add_links(const rfi_metrics_view *v, rfi_page *p)
{
    unsigned long long in = 0;
    unsigned long long out = 0;
    unsigned long long again = 0;
    begin(p, "link_up", "gauge", "Whether the agent is connected to a broker.");
    for (ptrdiff_t i = 0; i < v->links; i++) {
        /* addresses of run files have no quotes or backslashes (runfile.c) */
        rfi_page_add(p, "reef_agent_link_up{broker=\"%s\"} %d\n", v->file->broker[i], v->counts[i].up ? 1 : 0);
        in += v->counts[i].in;
        out += v->counts[i].out;
        again += v->counts[i].reconnects;
    }
    begin(p, "bytes_total", "counter", "Bytes of messages to and from brokers.");
    rfi_page_add(p, "reef_agent_bytes_total{direction=\"in\"} %llu\nreef_agent_bytes_total{direction=\"out\"} %llu\n",
                 in, out);
    begin(p, "reconnects_total", "counter", "Connections to brokers that were lost and made again.");
    rfi_page_add(p, "reef_agent_reconnects_total %llu\n", again);
}

static void add_files(const rfi_metrics_view *v, rfi_page *p)
{
    gauge(p, "epoch", "The epoch of the run file in force.", (double)v->file->terms.epoch);
    begin(p, "run_files_total", "counter", "Run files that came through the network, by what became of them.");
    for (int i = 0; i < RFI_HANDED_RESULTS; i++) {
        rfi_page_add(p, "reef_agent_run_files_total{result=\"%s\"} %llu\n", rfi_handed_text((rfi_handed)i),
                     (unsigned long long)v->handout->counts[i]);
    }
}

void rfi_metrics_print(const rfi_metrics_view *v, rfi_page *p)
{
    double excluded = 0;
    for (ptrdiff_t l = 0; l < v->window->setup.count; l++) {
        excluded += v->window->peers[l].excluded ? 1 : 0;
    }
    add_rounds(v, p);
    add_stages(v, p);
    add_peers(v, p);
    add_links(v, p);
    add_files(v, p);
    gauge(p, "excluded", "Neighbours that were proved to be two-faced.", excluded);
    gauge(p, "unechoed", "Witnesses from which no echo has come for four rounds and three seconds.",
          (double)rfi_echo_missing(v->echo));
    gauge(p, "resident_bytes", "Resident memory of the process.", (double)v->status->resident);
    begin(p, "user", "gauge", "Numbers reported by the program that uses the agent.");
    for (int i = 0; i < RFI_NOTES && v->telemetry->notes[i].name[0]; i++) {
        rfi_page_add(p, "reef_agent_user{name=\"%s\"} %.17g\n", v->telemetry->notes[i].name,
                     v->telemetry->notes[i].value);
    }
}

/* ---- serving ---- */

struct rfi_metrics {
    rfi_http *http;
    pthread_mutex_t lock;
    char *text;
    size_t size;
};

/* On the server's thread. */
static bool get(void *user, const char *path, rfi_http_answer *answer)
{
    rfi_metrics *m = user;
    if (strcmp(path, "/metrics") != 0) {
        return false;
    }
    (void)pthread_mutex_lock(&m->lock);
    char *copy = malloc(m->size + 1);
    if (copy && m->size > 0) {
        memcpy(copy, m->text, m->size);
    }
    answer->type = "text/plain; version=0.0.4; charset=utf-8";
    answer->body = copy;
    answer->size = m->size;
    answer->release = true;
    (void)pthread_mutex_unlock(&m->lock);
    return copy != NULL;
}

reef_status rfi_metrics_open(rfi_metrics **metrics, int port, reef_error *error)
{
    *metrics = NULL;
    rfi_metrics *m = calloc(1, sizeof *m);
    if (!m || pthread_mutex_init(&m->lock, NULL) != 0) {
        free(m);
        return rfi_fail(error, REEF_E_NOMEM, "no memory for metrics");
    }
    const rfi_http_setup setup = {.port = port, .user = m, .get = get};
    reef_status status = rfi_http_start(&m->http, &setup, error);
    *metrics = m;
    if (status != REEF_OK) {
        rfi_metrics_close(metrics);
    }
    return status;
}

int rfi_metrics_port(const rfi_metrics *m)
{
    return rfi_http_port(m->http);
}

void rfi_metrics_put(rfi_metrics *m, const char *text, size_t size)
{
    char *copy = malloc(size + 1);
    if (!copy) {
        return;
    }
    memcpy(copy, text, size);
    (void)pthread_mutex_lock(&m->lock);
    char *old = m->text;
    m->text = copy;
    m->size = size;
    (void)pthread_mutex_unlock(&m->lock);
    free(old);
    rfi_http_wake(m->http);
}

void rfi_metrics_close(rfi_metrics **metrics)
{
    rfi_metrics *m = *metrics;
    *metrics = NULL;
    if (m) {
        rfi_http_stop(&m->http);
        (void)pthread_mutex_destroy(&m->lock);
        free(m->text);
        free(m);
    }
}
