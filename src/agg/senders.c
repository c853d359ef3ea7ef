/* The senders a receiver remembers: a table by agent id, averages per window, and their bytes.
 *
 * When all places are taken a new sender gets that of the one heard of least recently, which starts afresh if it comes back. */
#include "agg/recall.h"

#include <math.h>
#include <string.h>

static uint64_t hash_id(int64_t id)
{
    uint64_t x = (uint64_t)id * UINT64_C(0x9E3779B97F4A7C15);
    return x ^ (x >> 29);
}

static size_t number_size(const rfi_senders *s)
{
    return s->single ? sizeof(float) : sizeof(double);
}

void rfi_senders_lay_out(rfi_senders *s, rfi_arena *arena)
{
    s->table_size = 4;
    while (s->table_size < s->capacity && s->table_size < PTRDIFF_MAX / 8) {
        s->table_size *= 2;
    }
    s->table_size *= 2;
    ptrdiff_t width = 0;
    if (!rfi_mul(RFI_WINDOWS, s->numbers, &width)) {
        arena->overflow = true;
        return;
    }
    s->traces = rfi_arena_take(arena, s->capacity, 1, sizeof(rfi_trace));
    s->table = rfi_arena_take(arena, s->table_size, 1, sizeof(int32_t));
    s->averages = rfi_arena_take(arena, s->capacity, width, number_size(s));
}

static void enter(rfi_senders *s, ptrdiff_t place)
{
    ptrdiff_t mask = s->table_size - 1;
    ptrdiff_t at = (ptrdiff_t)(hash_id(s->traces[place].id) & (uint64_t)mask);
    while (s->table[at] >= 0) {
        at = (at + 1) & mask;
    }
    s->table[at] = (int32_t)place;
}

static void rebuild_table(rfi_senders *s)
{
    for (ptrdiff_t i = 0; i < s->table_size; i++) {
        s->table[i] = -1;
    }
    for (ptrdiff_t i = 0; i < s->count; i++) {
        enter(s, i);
    }
}

void rfi_senders_reset(rfi_senders *s)
{
    s->count = 0;
    s->rounds = 0;
    for (int j = 0; j < RFI_WINDOWS; j++) {
        s->spread[j] = 0;
        s->separation[j] = 0;
    }
    rebuild_table(s);
}

ptrdiff_t rfi_senders_find(const rfi_senders *s, int64_t id)
{
    ptrdiff_t mask = s->table_size - 1;
    ptrdiff_t at = (ptrdiff_t)(hash_id(id) & (uint64_t)mask);
    while (s->table[at] >= 0 && s->traces[s->table[at]].id != id) {
        at = (at + 1) & mask;
    }
    return s->table[at];
}

static unsigned char *average_at(const rfi_senders *s, ptrdiff_t place, int window)
{
    ptrdiff_t first = (place * RFI_WINDOWS + window) * s->numbers;
    return (unsigned char *)s->averages + first * (ptrdiff_t)number_size(s);
}

void rfi_senders_read(const rfi_senders *s, ptrdiff_t place, int window, double *average)
{
    const void *from = average_at(s, place, window);
    if (!s->single) {
        memcpy(average, from, (size_t)s->numbers * sizeof *average);
        return;
    }
    const float *narrow = from;
    for (ptrdiff_t i = 0; i < s->numbers; i++) {
        average[i] = (double)narrow[i];
    }
}

double rfi_recall_rate(const rfi_recall *recall, int window, int64_t age)
{
    return fmax(1 / (double)recall->window[window], 1 / (double)age);
}

/* ---- commit ---- */

/* Place for a new sender: a free one, or that of the sender missing for longest. */
static ptrdiff_t make_room(rfi_senders *s, int64_t id)
{
    if (s->count < s->capacity) {
        s->traces[s->count].id = id;
        enter(s, s->count);
        return s->count++;
    }
    ptrdiff_t oldest = 0;
    for (ptrdiff_t i = 1; i < s->count; i++) {
        oldest = s->traces[i].seen < s->traces[oldest].seen ? i : oldest;
    }
    s->traces[oldest].id = id;
    rebuild_table(s);
    return oldest;
}

static void average_row(rfi_senders *s, const rfi_recall *recall, ptrdiff_t l, ptrdiff_t place, bool fresh)
{
    const double *d = recall->residual + l * s->numbers;
    for (int j = 0; j < RFI_WINDOWS; j++) {
        double rate = rfi_recall_rate(recall, j, recall->traces[l].age);
        float *narrow = (float *)(void *)average_at(s, place, j);
        double *wide = (double *)(void *)average_at(s, place, j);
        for (ptrdiff_t i = 0; i < s->numbers; i++) {
            double old = fresh ? 0 : (s->single ? (double)narrow[i] : wide[i]);
            double now = old + rate * (recall->clip[l] * d[i] - old);
            if (s->single) {
                narrow[i] = (float)now;
            } else {
                wide[i] = now;
            }
        }
    }
}

void rfi_senders_commit(rfi_senders *s, const rfi_recall *recall)
{
    if (recall->idle) {
        return;
    }
    s->rounds = recall->rounds;
    memcpy(s->spread, recall->spread, sizeof s->spread);
    memcpy(s->separation, recall->separation, sizeof s->separation);
    for (ptrdiff_t l = 0; l < recall->n; l++) { /* those who are here are not the ones to make room */
        if (recall->place[l] >= 0) {
            s->traces[recall->place[l]].seen = recall->rounds;
        }
    }
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        ptrdiff_t place = rfi_senders_find(s, recall->traces[l].id);
        place = place >= 0 ? place : make_room(s, recall->traces[l].id);
        average_row(s, recall, l, place, recall->traces[l].age == 1);
        s->traces[place] = recall->traces[l];
    }
}

/* ---- bytes: counters, then traces and averages of those remembered; the rest is 0 ---- */

typedef struct head {
    int64_t numbers, capacity, count, rounds, single;
    double spread[RFI_WINDOWS], separation[RFI_WINDOWS];
} head;

static size_t averages_size(const rfi_senders *s)
{
    return (size_t)(s->capacity * RFI_WINDOWS * s->numbers) * number_size(s);
}

size_t rfi_senders_size(const rfi_senders *s)
{
    return sizeof(head) + (size_t)s->capacity * sizeof(rfi_trace) + averages_size(s);
}

void rfi_senders_save(const rfi_senders *s, unsigned char *bytes)
{
    head h = {
        .numbers = s->numbers, .capacity = s->capacity, .count = s->count, .rounds = s->rounds, .single = s->single};
    memcpy(h.spread, s->spread, sizeof h.spread);
    memcpy(h.separation, s->separation, sizeof h.separation);
    memset(bytes, 0, rfi_senders_size(s));
    memcpy(bytes, &h, sizeof h);
    memcpy(bytes + sizeof h, s->traces, (size_t)s->count * sizeof(rfi_trace));
    memcpy(bytes + sizeof h + (size_t)s->capacity * sizeof(rfi_trace), s->averages,
           (size_t)(s->count * RFI_WINDOWS * s->numbers) * number_size(s));
}

static bool in_range(double x, double least, double most)
{
    return x >= least && x <= most;
}

/* Squares of clipped numbers, and factors: nothing that a liar could have made larger. */
static bool is_sane_trace(const rfi_trace *t, int64_t rounds)
{
    const double most = 1e12;
    bool sane = t->age >= 1 && t->age <= rounds && t->seen >= 1 && t->seen <= rounds;
    sane = sane && in_range(t->tail, 0, most) && in_range(t->energy, 0, most);
    for (int j = 0; j < RFI_WINDOWS; j++) {
        sane = sane && t->judged[j] >= 0 && t->judged[j] <= t->age && in_range(t->rhythm[j], 0, most);
        for (int i = 0; i < RFI_BY_COUNT; i++) {
            sane = sane && in_range(t->factor[j][i], 0, 1);
        }
    }
    return sane;
}

static bool is_sane_head(const rfi_senders *s, const head *h)
{
    bool sane = h->numbers == s->numbers && h->capacity == s->capacity && h->single == s->single;
    sane = sane && h->count >= 0 && h->count <= s->capacity && h->rounds >= 0 && h->rounds <= INT64_MAX / 4;
    for (int j = 0; j < RFI_WINDOWS; j++) {
        sane = sane && in_range(h->spread[j], 0, 1) && in_range(h->separation[j], 0, 1e300);
    }
    return sane;
}

static bool are_finite(const rfi_senders *s, const unsigned char *bytes, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        float narrow;
        double wide;
        memcpy(&narrow, bytes + (size_t)i * number_size(s), sizeof narrow);
        if (s->single) {
            wide = (double)narrow;
        } else {
            memcpy(&wide, bytes + (size_t)i * number_size(s), sizeof wide);
        }
        if (!in_range(wide, -1e12, 1e12)) {
            return false;
        }
    }
    return true;
}

bool rfi_senders_load(rfi_senders *s, const unsigned char *bytes)
{
    head h;
    memcpy(&h, bytes, sizeof h);
    const unsigned char *traces = bytes + sizeof h;
    const unsigned char *averages = traces + (size_t)s->capacity * sizeof(rfi_trace);
    bool sane = is_sane_head(s, &h);
    for (ptrdiff_t i = 0; sane && i < h.count; i++) {
        rfi_trace t;
        memcpy(&t, traces + (size_t)i * sizeof t, sizeof t);
        sane = is_sane_trace(&t, h.rounds);
    }
    ptrdiff_t numbers = sane ? (ptrdiff_t)h.count * RFI_WINDOWS * s->numbers : 0;
    if (!sane || !are_finite(s, averages, numbers)) {
        return false;
    }
    s->count = (ptrdiff_t)h.count;
    s->rounds = h.rounds;
    memcpy(s->spread, h.spread, sizeof s->spread);
    memcpy(s->separation, h.separation, sizeof s->separation);
    memcpy(s->traces, traces, (size_t)s->count * sizeof(rfi_trace));
    memcpy(s->averages, averages, (size_t)numbers * number_size(s));
    rebuild_table(s);
    return true;
}
