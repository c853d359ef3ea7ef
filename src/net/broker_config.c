/* What the server is told: who may log in, what each may say and hear, and the streams.
 *
 * Permissions are lists of what is allowed. An agent publishes under its own number and asks the store about its neighbours; both forms of
 * the request are listed, since the server that has the store cuts the domain off before it looks at permissions, and a leaf does not. */
#include "net/broker.h"

#include "base/error.h"
#include "net/echo.h"
#include "net/fetch.h"
#include "net/keys.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rfi_page_add(rfi_page *page, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int more = vsnprintf(NULL, 0, format, list);
    va_end(list);
    size_t need = page->size + (size_t)(more > 0 ? more : 0) + 1;
    if (need > page->room) {
        char *larger = realloc(page->text, 2 * need);
        if (!larger) {
            page->failed = true;
            return;
        }
        page->text = larger;
        page->room = 2 * need;
    }
    if (page->failed || more < 0) {
        page->failed = true;
        return;
    }
    va_start(list, format);
    (void)vsnprintf(page->text + page->size, page->room - page->size, format, list);
    va_end(list);
    page->size += (size_t)more;
}

void rfi_page_free(rfi_page *page)
{
    free(page->text);
    *page = (rfi_page){0};
}

/* ---- permissions ---- */

void rfi_allow_get(rfi_page *p, const char *run, char kind, unsigned long agent)
{
    rfi_page_add(p, ", \"$JS.API.DIRECT.GET.reef-%s-%c-%lu\", \"$JS.reef.API.DIRECT.GET.reef-%s-%c-%lu\"", run, kind,
                 agent, run, kind, agent);
}

void rfi_allow_own(rfi_page *p, const char *run, unsigned long k)
{
    rfi_page_add(p, ", \"reef.%s.s.%lu.*\", \"reef.%s.p.%lu.*.*\"", run, k, run, k);
    static const char kinds[] = "extc";
    for (size_t i = 0; i < sizeof kinds - 1; i++) {
        rfi_page_add(p, ", \"reef.%s.%c.%lu\"", run, kinds[i], k);
    }
}

void rfi_circle_find(const rfi_roster *r, ptrdiff_t k, rfi_circle *c)
{
    double own = 0;
    bool there = r && k < r->file->agents && !r->file->participants[k].removed;
    c->count = there ? rfi_roster_neighbours(r, k, c->neighbours, &own) : 0;
    c->others = there ? rfi_roster_witnesses(r, k, c->witnesses) : 0;
}

static void allow_neighbours(rfi_page *p, const char *run, const rfi_circle *c)
{
    for (ptrdiff_t l = 0; l < c->count; l++) {
        rfi_allow_get(p, run, 's', c->neighbours[l].agent);
        rfi_allow_get(p, run, 'p', c->neighbours[l].agent);
    }
}

static void allow_hearing(rfi_page *p, const char *run, const rfi_circle *c)
{
    for (ptrdiff_t l = 0; l < c->count; l++) {
        unsigned long agent = c->neighbours[l].agent;
        rfi_page_add(p, ", \"reef.%s.s.%lu.*\", \"reef.%s.e.%lu\"", run, agent, run, agent);
    }
    for (ptrdiff_t i = 0; i < c->others; i++) {
        rfi_page_add(p, ", \"reef.%s.e.%lu\"", run, (unsigned long)c->witnesses[i]);
    }
}

/* Where leaves may log in, too, agents and observers may not do so as leaves. */
static const char *kinds(const rfi_broker_setup *s)
{
    return s->leaves ? " allowed_connection_types: [\"STANDARD\"]," : "";
}

static void add_agent(rfi_page *p, const rfi_roster *r, const rfi_broker_setup *s, ptrdiff_t k)
{
    const rfi_roster *before = s->before;
    char key[RFI_KEY_TEXT];
    rfi_circle circles[2];
    const char *run = r->file->run;
    bool here = !r->file->participants[k].removed;
    rfi_circle_find(r, k, &circles[0]);
    rfi_circle_find(before, k, &circles[1]);
    rfi_key_print(key, RFI_LETTER_LOGIN, (here ? r : before)->file->participants[k].login);
    rfi_page_add(p,
                 "    { nkey: %s,%s permissions: {\n      publish: { allow: [\"$JS.API.DIRECT.GET.reef-%s-c\", "
                 "\"$JS.reef.API.DIRECT.GET.reef-%s-c\"",
                 key, kinds(s), run, run);
    rfi_allow_own(p, run, (unsigned long)k);
    rfi_allow_get(p, run, 's', (unsigned long)k);
    rfi_allow_get(p, run, 'p', (unsigned long)k);
    allow_neighbours(p, run, &circles[0]);
    allow_neighbours(p, run, &circles[1]);
    rfi_page_add(p, "] },\n      subscribe: { allow: [\"_%s.%td.*.>\", \"reef.%s.s.%td.*\", \"reef.%s.x.*\"", run, k,
                 run, k, run);
    allow_hearing(p, run, &circles[0]);
    allow_hearing(p, run, &circles[1]);
    rfi_page_add(p, "] } } }\n");
}

/* Who is in the run, or was until the next epoch begins; at a leaf, of those who are behind it. */
static bool has_login(const rfi_roster *r, const rfi_broker_setup *s, ptrdiff_t k)
{
    const rfi_roster *before = s->before;
    if (s->hub) {
        return rfi_runfile_behind(r->file, k, s->hub->login->public_key) ||
               (before && rfi_runfile_behind(before->file, k, s->hub->login->public_key));
    }
    return !r->file->participants[k].removed ||
           (before && k < before->file->agents && !before->file->participants[k].removed);
}

static void add_observer(rfi_page *p, const rfi_runfile *file, const rfi_broker_setup *s, const rfi_participant *who)
{
    char key[RFI_KEY_TEXT];
    rfi_key_print(key, RFI_LETTER_LOGIN, who->login);
    rfi_page_add(p,
                 "    { nkey: %s,%s permissions: { publish: { deny: \">\" }, subscribe: { allow: [\"reef.%s.t.*\", "
                 "\"reef.%s.x.*\", \"reef.%s.c.>\"] } } }\n",
                 key, kinds(s), file->run, file->run, file->run);
}

/* Paths go into quotes, where two characters mean something else. */
static bool is_plain(const char *path)
{
    for (const char *at = path; *at; at++) {
        if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ') {
            return false;
        }
    }
    return true;
}

/* The store. At a leaf there is none: requests go on to the hub, whose domain they name. */
static void add_store(rfi_page *p, const rfi_roster *r, const rfi_broker_setup *s)
{
    double agents = (double)r->file->agents;
    double disk = agents * (double)rfi_stream_slots(r) + (double)rfi_stream_files(r) + 64e6;
    double memory = agents * (double)rfi_stream_chunks(r) + 64e6;
    rfi_page_add(p, "jetstream { store_dir: \"%s\", domain: reef, max_mem: %.0f, max_file: %.0f }\n", s->store, memory,
                 disk);
}

static void add_limits(rfi_page *p, const rfi_roster *r, const rfi_broker_setup *s)
{
    const rfi_leaf *leaf = s->hub ? rfi_runfile_leaf(r->file, s->hub->login->public_key) : NULL;
    rfi_page_add(
        p,
        "listen: \"%s\"\nserver_name: \"reef-%s%s%s\"\nlogfile: \"%s/server.log\"\npid_file: "
        "\"%s/server.pid\"\nmax_payload: 1048576\nwrite_deadline: \"10s\"\nping_interval: \"10s\"\nping_max: 2\n"
        "max_connections: %td\nmax_subscriptions: 1024\n",
        s->listen, r->file->run, s->hub ? "-" : "", leaf ? leaf->name : (s->hub ? "leaf" : ""), s->store, s->store,
        4 * r->file->agents + 64);
    if (!s->hub) {
        add_store(p, r, s);
    }
    if (s->certificate) {
        rfi_page_add(p, "tls { cert_file: \"%s\", key_file: \"%s\" }\n", s->certificate, s->private_key);
    }
}

reef_status rfi_broker_config(const rfi_roster *r, const rfi_broker_setup *s, rfi_page *p, reef_error *error)
{
    char key[RFI_KEY_TEXT];
    const char *const texts[] = {s->store,       s->listen, s->certificate,
                                 s->private_key, s->leaves, s->hub ? s->hub->authority : NULL};
    bool plain = true;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        plain = plain && (!texts[i] || is_plain(texts[i]));
    }
    if (!plain) {
        return rfi_fail(error, REEF_E_ARG, "quotes, backslashes and control characters cannot be in paths of a broker");
    }
    add_limits(p, r, s);
    if (s->leaves) {
        rfi_broker_add_leaves(p, s);
    }
    if (s->hub) {
        rfi_broker_add_hub(p, s->hub);
    }
    rfi_key_print(key, RFI_LETTER_LOGIN, s->operator_login->public_key);
    rfi_page_add(p, "authorization {\n  timeout: 20\n  users: [\n    { nkey: %s }\n", key);
    for (ptrdiff_t k = 0; k < r->file->agents; k++) {
        if (has_login(r, s, k)) {
            add_agent(p, r, s, k);
        }
    }
    if (s->leaves) {
        rfi_broker_add_leaf_logins(p, r, s->before);
    }
    for (ptrdiff_t i = 0; i < r->file->observers && !s->hub; i++) {
        add_observer(p, r->file, s, &r->file->observer[i]);
    }
    rfi_page_add(p, "  ]\n}\n");
    return p->failed ? rfi_fail(error, REEF_E_NOMEM, "no memory for the configuration of the server") : REEF_OK;
}

/* ---- streams ---- */

/* Of an agent, whatever the next epoch makes of the graph. */
static size_t most_boxes(const rfi_roster *r)
{
    size_t others = (size_t)r->file->agents;
    return r->shape.sealed ? (others < RFI_HEARERS_MAX ? others : RFI_HEARERS_MAX) * RFI_SEALED_BOX : 0;
}

size_t rfi_stream_slots(const rfi_roster *r)
{
    enum { FRAMES = 2048, LEAST = 4 << 20, MOST = 64 << 20 };
    size_t within = rfi_shape_chunks(&r->shape) ? 0 : rfi_shape_payload(&r->shape) + most_boxes(r);
    size_t frame = RFI_MANIFEST_BYTES + 128 + within;
    size_t bytes = FRAMES * frame;
    bytes = bytes < LEAST ? LEAST : bytes;
    return bytes > MOST ? MOST : bytes;
}

size_t rfi_stream_chunks(const rfi_roster *r)
{
    enum { MODELS = 5, ABOUT = 256, SLACK = 1 << 16 }; /* ABOUT: what the server keeps with each message */
    size_t chunks = rfi_shape_chunks(&r->shape);
    size_t model = rfi_shape_payload(&r->shape) + chunks * (RFI_HASH_BYTES + ABOUT) + ABOUT + most_boxes(r);
    return chunks ? MODELS * model + SLACK : 0;
}

static void slots_body(const rfi_roster *r, ptrdiff_t k, const char *name, char body[RFI_STREAM_BODY])
{
    double age = fmax(10, 4 * r->file->deadline) * 1e9;
    (void)snprintf(
        body, RFI_STREAM_BODY,
        "{\"name\":\"%s\",\"subjects\":[\"reef.%s.s.%td.*\"],\"storage\":\"file\",\"max_msgs_per_subject\":1,"
        "\"discard\":\"new\",\"discard_new_per_subject\":true,\"max_age\":%.0f,\"max_bytes\":%zu,"
        "\"deny_delete\":true,\"deny_purge\":true,\"allow_direct\":true}",
        name, r->file->run, k, age, rfi_stream_slots(r));
}

static void chunks_body(const rfi_roster *r, ptrdiff_t k, const char *name, char body[RFI_STREAM_BODY])
{
    (void)snprintf(
        body, RFI_STREAM_BODY,
        "{\"name\":\"%s\",\"subjects\":[\"reef.%s.p.%td.*.*\"],\"storage\":\"memory\",\"max_msgs_per_subject\":1,"
        "\"discard\":\"old\",\"max_bytes\":%zu,\"allow_direct\":true}",
        name, r->file->run, k, rfi_stream_chunks(r));
}

size_t rfi_stream_files(const rfi_roster *r)
{
    enum { EPOCHS = 16, ABOUT = 512 };
    return ((size_t)r->file->agents + EPOCHS) * (RFI_RUNFILE_MAX + ABOUT);
}

/* One place for each agent, which only that agent can fill, and the last files of the broker by their epochs. */
static void files_body(const rfi_roster *r, const char *name, char body[RFI_STREAM_BODY])
{
    const char *run = r->file->run;
    (void)snprintf(body, RFI_STREAM_BODY,
                   "{\"name\":\"%s\",\"subjects\":[\"reef.%s.c.*\",\"reef.%s.c.b.*\"],\"storage\":\"file\","
                   "\"max_msgs_per_subject\":1,\"discard\":\"old\",\"max_bytes\":%zu,\"max_msg_size\":%zu,"
                   "\"deny_delete\":true,\"deny_purge\":true,\"allow_direct\":true}",
                   name, run, run, rfi_stream_files(r), RFI_RUNFILE_MAX);
}

bool rfi_stream_request(const rfi_roster *r, ptrdiff_t index, char name[RFI_STREAM_NAME], char body[RFI_STREAM_BODY])
{
    bool chunked = rfi_stream_chunks(r) > 0;
    ptrdiff_t per_agent = chunked ? 2 : 1;
    ptrdiff_t k = index / per_agent;
    if (index == r->file->agents * per_agent) {
        (void)snprintf(name, RFI_STREAM_NAME, "reef-%s-c", r->file->run);
        files_body(r, name, body);
        return true;
    }
    if (k >= r->file->agents) {
        return false;
    }
    bool slots = index % per_agent == 0;
    (void)snprintf(name, RFI_STREAM_NAME, "reef-%s-%c-%td", r->file->run, slots ? 's' : 'p', k);
    (slots ? slots_body : chunks_body)(r, k, name, body);
    return true;
}
