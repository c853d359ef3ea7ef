/* Lines for the live page, kept in bounded memory for whoever comes late. */
#include "net/dash.h"

#include "base/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { AGENTS_MAX = 4096, LINE_MAX_BYTES = 65536, LIMIT_DEFAULT = 16 * 1024 * 1024 };

typedef enum kind { KIND_RUN, KIND_STATUS, KIND_EVENT, KIND_SCORE, KIND_END, KINDS } kind;
static const char *const beginnings[KINDS] = {
    "{\"type\":\"run\",\"time\":", "{\"type\":\"status\",\"time\":", "{\"type\":\"event\",\"time\":",
    "{\"type\":\"score\",\"time\":", "{\"type\":\"end\",\"time\":"};

/* A line as it is sent: "data: {...}\n\n". */
typedef struct line {
    uint64_t id;
    int readers; /* cursors that are in the middle of it */
    bool dead;   /* no longer kept; the last reader frees it */
    kind what;
    uint32_t agent;
    uint64_t turn; /* how many statuses its agent had sent before */
    size_t size;
    char text[];
} line;

typedef struct sender {
    uint64_t turns;
    line *newest;
} sender;

struct rfi_dash {
    pthread_mutex_t lock;
    line **lines; /* by ascending id */
    ptrdiff_t count, room;
    ptrdiff_t dead;
    size_t bytes, limit, run_bytes;
    uint64_t last_id;
    uint64_t stride; /* statuses are kept whose turn is a multiple of it */
    uint64_t lost;
    FILE *record; /* NULL: none, or no more */
    int unrecorded;
    sender senders[AGENTS_MAX];
};

reef_status rfi_dash_create(rfi_dash **dash, size_t limit, FILE *record, reef_error *error)
{
    rfi_dash *d = calloc(1, sizeof *d);
    *dash = NULL;
    if (!d || pthread_mutex_init(&d->lock, NULL) != 0) {
        free(d);
        return rfi_fail(error, REEF_E_NOMEM, "no memory for the live page");
    }
    d->limit = limit ? limit : LIMIT_DEFAULT;
    d->stride = 1;
    d->record = record;
    *dash = d;
    return REEF_OK;
}

void rfi_dash_destroy(rfi_dash **dash)
{
    rfi_dash *d = *dash;
    if (!d) {
        return;
    }
    for (ptrdiff_t i = 0; i < d->count; i++) {
        free(d->lines[i]);
    }
    free(d->lines);
    (void)pthread_mutex_destroy(&d->lock);
    free(d);
    *dash = NULL;
}

/* ---- what a line is ---- */

/* The number behind `key` at *at; a whole one below `most`. */
static bool read_agent(const char **at, const char *end, const char *key, uint32_t most, uint32_t *number)
{
    size_t length = strlen(key);
    uint32_t value = 0;
    const char *digit = *at + length;
    if ((size_t)(end - *at) <= length || memcmp(*at, key, length) != 0 || *digit < '0' || *digit > '9') {
        return false;
    }
    for (; digit < end && *digit >= '0' && *digit <= '9' && value < most; digit++) {
        value = 10 * value + (uint32_t)(*digit - '0');
    }
    *at = digit;
    *number = value;
    return value < most;
}

static bool is_clean(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] < ' ') {
            return false;
        }
    }
    return true;
}

/* Kind and agent of a line; false: it is none. */
static bool classify(const char *text, size_t size, kind *what, uint32_t *agent)
{
    if (size == 0 || text[size - 1] != '}' || !is_clean(text, size)) {
        return false;
    }
    for (int k = 0; k < KINDS; k++) {
        size_t length = strlen(beginnings[k]);
        if (size > length && memcmp(text, beginnings[k], length) == 0) {
            const char *at = text + length;
            at += strspn(at, "0123456789.+-eE"); /* ends at the closing brace at the latest */
            *what = (kind)k;
            *agent = 0;
            return k != KIND_STATUS || read_agent(&at, text + size, ",\"agent\":", AGENTS_MAX, agent);
        }
    }
    return false;
}

/* ---- keeping ---- */

static void drop(rfi_dash *d, line *l)
{
    if (l->dead) {
        return;
    }
    l->dead = true;
    d->bytes -= l->size;
    d->run_bytes -= l->what == KIND_RUN ? l->size : 0;
    d->dead++;
    if (l->what == KIND_STATUS && d->senders[l->agent].newest == l) {
        d->senders[l->agent].newest = NULL;
    }
}

/* Takes dead lines that nobody is reading out of the list. */
static void compact(rfi_dash *d)
{
    ptrdiff_t kept = 0;
    d->dead = 0;
    for (ptrdiff_t i = 0; i < d->count; i++) {
        line *l = d->lines[i];
        if (l->dead && l->readers == 0) {
            free(l);
        } else {
            d->lines[kept++] = l;
            d->dead += l->dead;
        }
    }
    d->count = kept;
}

static void thin_statuses(rfi_dash *d)
{
    d->stride *= 2;
    for (ptrdiff_t i = 0; i < d->count; i++) {
        line *l = d->lines[i];
        if (l->what == KIND_STATUS && l->turn % d->stride != 0 && d->senders[l->agent].newest != l) {
            drop(d, l);
        }
    }
}

/* Drops the oldest lines of the log until they take no more than `most` bytes. */
static void thin_log(rfi_dash *d, size_t most)
{
    size_t bytes = 0;
    for (ptrdiff_t i = d->count - 1; i >= 0; i--) {
        line *l = d->lines[i];
        if (!l->dead && l->what != KIND_RUN && l->what != KIND_STATUS) {
            bytes += l->size;
            if (bytes > most) {
                drop(d, l);
            }
        }
    }
}

/* The members of a run may change often: the first line of the run and the latest ones stay. */
static void thin_runs(rfi_dash *d, size_t more)
{
    bool first = true;
    for (ptrdiff_t i = 0; i < d->count && d->run_bytes + more > d->limit / 2; i++) {
        line *l = d->lines[i];
        if (!l->dead && l->what == KIND_RUN) {
            if (!first) {
                drop(d, l);
            }
            first = false;
        }
    }
}

static void make_room(rfi_dash *d)
{
    const uint64_t stride_max = UINT64_C(1) << 40;
    if (d->bytes > d->limit) {
        thin_log(d, d->limit / 4);
    }
    while (d->bytes > d->limit && d->stride < stride_max) {
        thin_statuses(d);
    }
    for (ptrdiff_t i = 0; i < d->count && d->bytes > d->limit; i++) { /* the last words of very many agents */
        if (d->lines[i]->what != KIND_RUN) {
            drop(d, d->lines[i]);
        }
    }
    compact(d);
}

static bool grow(rfi_dash *d)
{
    if (d->count < d->room) {
        return true;
    }
    ptrdiff_t room = d->room ? 2 * d->room : 1024;
    line **larger = realloc(d->lines, (size_t)room * sizeof(line *));
    if (!larger) {
        return false;
    }
    d->lines = larger;
    d->room = room;
    return true;
}

/* The status that was the newest until now stays only if it is its turn. */
static void succeed(rfi_dash *d, line *l)
{
    sender *s = &d->senders[l->agent];
    line *before = s->newest;
    l->turn = s->turns++;
    s->newest = l;
    if (before && before->turn % d->stride != 0) {
        drop(d, before);
    }
}

static void keep(rfi_dash *d, line *l)
{
    if (!grow(d)) {
        d->lost++;
        free(l);
        return;
    }
    l->id = ++d->last_id;
    d->lines[d->count++] = l;
    d->bytes += l->size;
    d->run_bytes += l->what == KIND_RUN ? l->size : 0;
    if (l->what == KIND_STATUS) {
        succeed(d, l);
    }
    if (d->bytes > d->limit || d->dead > d->count / 2 + 64) {
        make_room(d);
    }
}

static line *make_line(const char *text, size_t size, kind what, uint32_t agent)
{
    static const char before[] = "data: ";
    static const char after[] = "\n\n";
    size_t whole = size + sizeof before + sizeof after - 2;
    line *l = malloc(sizeof *l + whole);
    if (!l) {
        return NULL;
    }
    *l = (line){.what = what, .agent = agent, .size = whole};
    memcpy(l->text, before, sizeof before - 1);
    memcpy(l->text + sizeof before - 1, text, size);
    memcpy(l->text + sizeof before - 1 + size, after, sizeof after - 1);
    return l;
}

/* A record with a hole would play back as if nothing had been there: it ends with the first line that finds no room. */
static void write_down(rfi_dash *d, const char *text, size_t size)
{
    errno = 0;
    if (d->record && (fwrite(text, 1, size, d->record) != size || fputc('\n', d->record) == EOF)) {
        d->unrecorded = errno ? errno : EIO;
        d->record = NULL;
    }
}

bool rfi_dash_put_line(rfi_dash *d, const char *text, size_t size)
{
    kind what = KIND_END;
    uint32_t agent = 0;
    if (!classify(text, size, &what, &agent)) {
        return false;
    }
    line *l = make_line(text, size, what, agent);
    (void)pthread_mutex_lock(&d->lock);
    write_down(d, text, size);
    if (l && what == KIND_RUN) {
        thin_runs(d, l->size);
    }
    bool fits = l && (what == KIND_RUN ? d->run_bytes + l->size <= d->limit / 2 : l->size <= LINE_MAX_BYTES);
    if (fits) {
        keep(d, l);
    } else {
        free(l);
        d->lost++;
    }
    (void)pthread_mutex_unlock(&d->lock);
    return true;
}

void rfi_dash_flush(rfi_dash *d)
{
    (void)pthread_mutex_lock(&d->lock);
    errno = 0;
    if (d->record && fflush(d->record) != 0) {
        d->unrecorded = errno ? errno : EIO;
        d->record = NULL;
    }
    (void)pthread_mutex_unlock(&d->lock);
}

int rfi_dash_unrecorded(rfi_dash *d)
{
    (void)pthread_mutex_lock(&d->lock);
    int why = d->unrecorded;
    (void)pthread_mutex_unlock(&d->lock);
    return why;
}

size_t rfi_dash_bytes(rfi_dash *d)
{
    (void)pthread_mutex_lock(&d->lock);
    size_t bytes = d->bytes;
    (void)pthread_mutex_unlock(&d->lock);
    return bytes;
}

uint64_t rfi_dash_lost(rfi_dash *d)
{
    (void)pthread_mutex_lock(&d->lock);
    uint64_t lost = d->lost;
    (void)pthread_mutex_unlock(&d->lock);
    return lost;
}

/* ---- reading ---- */

/* The first line behind `id` that is still kept, or NULL. */
static line *find_after(const rfi_dash *d, uint64_t id)
{
    ptrdiff_t low = 0;
    ptrdiff_t high = d->count;
    while (low < high) {
        ptrdiff_t middle = (low + high) / 2;
        if (d->lines[middle]->id <= id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (low < d->count && d->lines[low]->dead) {
        low++;
    }
    return low < d->count ? d->lines[low] : NULL;
}

size_t rfi_dash_read(rfi_dash *d, rfi_dash_cursor *c, char *bytes, size_t size)
{
    size_t used = 0;
    (void)pthread_mutex_lock(&d->lock);
    while (used < size) {
        line *l = c->line ? c->line : find_after(d, c->after);
        if (!l) {
            break;
        }
        l->readers += c->line ? 0 : 1;
        c->line = l;
        size_t part = l->size - c->offset < size - used ? l->size - c->offset : size - used;
        memcpy(bytes + used, l->text + c->offset, part);
        used += part;
        c->offset += part;
        if (c->offset == l->size) {
            *c = (rfi_dash_cursor){.after = l->id};
            l->readers--;
        }
    }
    (void)pthread_mutex_unlock(&d->lock);
    return used;
}

void rfi_dash_close(rfi_dash *d, rfi_dash_cursor *c)
{
    (void)pthread_mutex_lock(&d->lock);
    if (c->line) {
        ((line *)c->line)->readers--;
        c->line = NULL;
    }
    (void)pthread_mutex_unlock(&d->lock);
}
