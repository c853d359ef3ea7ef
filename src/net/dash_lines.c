/* The lines of the live page, member by member. */
#include "net/broker.h"
#include "net/dash.h"

#include <math.h>
#include <string.h>

/* A text in quotes; what a reader of JSON or a terminal would stumble over becomes '?'. */
static void add_text(rfi_page *p, const char *before, const char *text)
{
    enum { LONGEST = 400 };
    char safe[2 * LONGEST + 1];
    size_t used = 0;
    for (size_t i = 0; text && text[i] && i < LONGEST; i++) {
        unsigned char letter = (unsigned char)text[i];
        if (letter == '"' || letter == '\\') {
            safe[used++] = '\\';
        }
        safe[used] = '?';
        if (letter >= ' ' && letter <= '~') {
            safe[used] = text[i];
        }
        used++;
    }
    safe[used] = '\0';
    rfi_page_add(p, "%s\"%s\"", before, safe);
}

static void add_number(rfi_page *p, const char *before, double number)
{
    if (isfinite(number)) {
        rfi_page_add(p, "%s%.6g", before, number);
    } else {
        rfi_page_add(p, "%snull", before);
    }
}

static void put(rfi_dash *dash, rfi_page *p)
{
    if (!p->failed) {
        (void)rfi_dash_put_line(dash, p->text, p->size);
    }
    rfi_page_free(p);
}

/* The numbers of those agents. */
static void add_agents(rfi_page *p, const char *before, const bool *which, ptrdiff_t agents)
{
    const char *mark = "";
    rfi_page_add(p, "%s[", before);
    for (ptrdiff_t k = 0; k < agents; k++) {
        if (which[k]) {
            rfi_page_add(p, "%s%td", mark, k);
            mark = ",";
        }
    }
    rfi_page_add(p, "]");
}

void rfi_dash_put_run(rfi_dash *dash, const rfi_dash_run *r)
{
    rfi_page p = {0};
    rfi_page_add(&p, "{\"type\":\"run\",\"time\":%.10g,\"version\":1", r->time);
    if (r->epoch > 0) {
        rfi_page_add(&p, ",\"epoch\":%lld", (long long)r->epoch);
    }
    add_text(&p, ",\"name\":", r->name);
    add_text(&p, ",\"rule\":", r->rule);
    if (r->attack) {
        add_text(&p, ",\"attack\":", r->attack);
    }
    if (r->metric) {
        add_text(&p, ",\"metric\":", r->metric);
    }
    rfi_page_add(&p, ",\"rounds\":%llu,\"agents\":[", (unsigned long long)r->rounds);
    for (ptrdiff_t k = 0; k < r->agents; k++) {
        add_text(&p, k ? "," : "", r->names[k]);
    }
    rfi_page_add(&p, "],\"edges\":[");
    for (ptrdiff_t e = 0; e < r->edges; e++) {
        rfi_page_add(&p, "%s[%lu,%lu,%.4g]", e ? "," : "", (unsigned long)r->edge[e].from, (unsigned long)r->edge[e].to,
                     r->edge[e].weight);
    }
    rfi_page_add(&p, "]");
    if (r->removed && memchr(r->removed, 1, (size_t)r->agents * sizeof *r->removed)) {
        add_agents(&p, ",\"removed\":", r->removed, r->agents);
    }
    if (r->malicious) {
        add_agents(&p, ",\"malicious\":", r->malicious, r->agents);
    }
    rfi_page_add(&p, "}");
    put(dash, &p);
}

static void add_peer(rfi_page *p, const char *mark, const rfi_dash_peer *peer)
{
    bool why = peer->why && peer->why[0];
    rfi_page_add(p, "%s[%lu", mark, (unsigned long)peer->agent);
    add_number(p, ",", peer->trust);
    rfi_page_add(p, ",%d,%llu", peer->age, (unsigned long long)peer->refused);
    if (why || (peer->cause && peer->cause[0])) {
        add_text(p, ",", peer->cause ? peer->cause : "");
    }
    if (why) {
        add_text(p, ",", peer->why);
    }
    rfi_page_add(p, "]");
}

static void add_counts(rfi_page *p, const rfi_dash_status *s)
{
    rfi_page_add(p, ",\"combined\":%llu,\"alone\":%llu,\"skipped\":%llu,\"idle\":%llu", (unsigned long long)s->combined,
                 (unsigned long long)s->alone, (unsigned long long)s->skipped, (unsigned long long)s->idle);
    add_number(p, ",\"weight\":", s->weight);
    add_number(p, ",\"seconds\":[", s->adapt);
    add_number(p, ",", s->wait);
    add_number(p, ",", s->combine);
    add_number(p, "],\"bytes\":[", s->received);
    add_number(p, ",", s->sent);
    add_number(p, "],\"resident\":", s->resident);
}

void rfi_dash_put_status(rfi_dash *dash, const rfi_dash_status *s)
{
    rfi_page p = {0};
    rfi_page_add(&p, "{\"type\":\"status\",\"time\":%.3f,\"agent\":%lu,\"round\":%llu", s->time,
                 (unsigned long)s->agent, (unsigned long long)s->round);
    if (s->state) {
        add_text(&p, ",\"state\":", s->state);
    }
    add_counts(&p, s);
    rfi_page_add(&p, ",\"metrics\":{");
    for (ptrdiff_t i = 0; i < s->metrics; i++) {
        add_text(&p, i ? "," : "", s->metric[i].name);
        add_number(&p, ":", s->metric[i].value);
    }
    rfi_page_add(&p, "},\"peers\":[");
    for (ptrdiff_t i = 0; i < s->peers; i++) {
        add_peer(&p, i ? "," : "", &s->peer[i]);
    }
    rfi_page_add(&p, "]}");
    put(dash, &p);
}

void rfi_dash_put_event(rfi_dash *dash, double time, const char *what, int64_t agent, int64_t by, const char *text)
{
    rfi_page p = {0};
    rfi_page_add(&p, "{\"type\":\"event\",\"time\":%.3f", time);
    add_text(&p, ",\"what\":", what);
    if (agent >= 0) {
        rfi_page_add(&p, ",\"agent\":%lld", (long long)agent);
    }
    if (by >= 0) {
        rfi_page_add(&p, ",\"by\":%lld", (long long)by);
    }
    if (text) {
        add_text(&p, ",\"text\":", text);
    }
    rfi_page_add(&p, "}");
    put(dash, &p);
}

void rfi_dash_put_score(rfi_dash *dash, double time, uint64_t round, const char *name, double value)
{
    rfi_page p = {0};
    rfi_page_add(&p, "{\"type\":\"score\",\"time\":%.3f,\"round\":%llu", time, (unsigned long long)round);
    add_text(&p, ",\"name\":", name);
    add_number(&p, ",\"value\":", value);
    rfi_page_add(&p, "}");
    put(dash, &p);
}

void rfi_dash_put_end(rfi_dash *dash, double time, const char *text)
{
    rfi_page p = {0};
    rfi_page_add(&p, "{\"type\":\"end\",\"time\":%.3f", time);
    add_text(&p, ",\"text\":", text);
    rfi_page_add(&p, "}");
    put(dash, &p);
}
