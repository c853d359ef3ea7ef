/* The bytes of remembered senders: shared record, then ids with ages, records, vectors and pairs of the senders in the order of their places. */
#include "agg/senders.h"
#include "base/error.h"

#include <math.h>
#include <string.h>

/* The parts, one after the other. */
typedef struct parts {
    size_t who, records, vectors, pairs, end;
} parts;

/* False if they overflow. */
static bool find_parts(const rfi_senders *s, ptrdiff_t count, parts *p)
{
    const size_t widths[] = {sizeof(rfi_sender), s->sizes.record,
                             (size_t)s->sizes.vectors * rfi_senders_vector_size(s)};
    size_t *starts[] = {&p->who, &p->records, &p->vectors, &p->pairs};
    ptrdiff_t at = (ptrdiff_t)s->sizes.shared;
    ptrdiff_t size = 0;
    bool fits = true;
    for (int i = 0; fits && i < 4; i++) {
        *starts[i] = (size_t)at;
        fits = i == 3 || (rfi_mul(count, (ptrdiff_t)widths[i], &size) && rfi_add(at, size, &at));
    }
    fits = fits && rfi_mul(rfi_senders_pairs(s, count), (ptrdiff_t)sizeof(float), &size) && rfi_add(at, size, &at);
    p->end = (size_t)at;
    return fits;
}

size_t rfi_senders_size(const rfi_senders *s, ptrdiff_t count)
{
    parts p;
    return find_parts(s, count, &p) ? p.end : 0;
}

void rfi_senders_save(const rfi_senders *s, unsigned char *bytes)
{
    parts p;
    (void)find_parts(s, s->count, &p);
    memcpy(bytes, s->shared, s->sizes.shared);
    memcpy(bytes + p.who, s->who, p.records - p.who);
    memcpy(bytes + p.records, s->records, p.vectors - p.records);
    memcpy(bytes + p.vectors, s->vectors, p.pairs - p.vectors);
    memcpy(bytes + p.pairs, s->pairs, p.end - p.pairs);
}

/* ---- what can be loaded ---- */

static bool are_numbers(const unsigned char *bytes, size_t size, bool single, double largest)
{
    size_t width = single ? sizeof(float) : sizeof(double);
    double most = largest > 0 ? largest : 0x1.fffffffffffffp+1023;
    for (size_t at = 0; at < size; at += width) {
        float narrow = 0;
        double wide = 0;
        if (single) {
            memcpy(&narrow, bytes + at, sizeof narrow);
            wide = (double)narrow;
        } else {
            memcpy(&wide, bytes + at, sizeof wide);
        }
        if (!(fabs(wide) <= most)) {
            return false;
        }
    }
    return true;
}

/* Ages fit the rounds, no id is there twice, and the rule has no objection. */
static bool are_senders(const rfi_senders *s, const reef_memory *memory)
{
    bool sane = true;
    rfi_id_table_clear(&s->table);
    for (ptrdiff_t i = 0; sane && i < s->count; i++) {
        const rfi_sender *who = &s->who[i];
        sane = who->age >= 1 && who->age <= s->rounds && who->heard >= 1 && who->heard <= s->rounds;
        sane = sane && rfi_id_enter(&s->table, s->who, i);
        sane = sane &&
               (!memory->is_sane || memory->is_sane(s->records + (size_t)i * s->sizes.record, who->age, s->rounds));
    }
    return sane && (!memory->is_sane_shared || memory->is_sane_shared(s->shared));
}

reef_status rfi_senders_load(rfi_senders *s, const reef_memory *memory, ptrdiff_t count, int64_t rounds,
                             const unsigned char *bytes, reef_error *error)
{
    parts p;
    rfi_senders loaded = *s;
    if (count > s->limit && count > s->capacity) {
        return rfi_fail(error, REEF_E_RANGE, "the saved state has %td senders; this state is limited to %td", count,
                        s->limit);
    }
    if (!find_parts(s, count, &p) || !rfi_senders_create(&loaded, count > s->capacity ? count : s->capacity)) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a state of %td senders", count);
    }
    loaded.count = count;
    loaded.rounds = rounds;
    memcpy(loaded.shared, bytes, s->sizes.shared);
    memcpy(loaded.who, bytes + p.who, p.records - p.who);
    memcpy(loaded.records, bytes + p.records, p.vectors - p.records);
    memcpy(loaded.vectors, bytes + p.vectors, p.pairs - p.vectors);
    memcpy(loaded.pairs, bytes + p.pairs, p.end - p.pairs);
    bool sane = are_numbers(bytes + p.vectors, p.pairs - p.vectors, s->single, s->sizes.largest);
    sane =
        sane && are_numbers(bytes + p.pairs, p.end - p.pairs, true, s->sizes.largest) && are_senders(&loaded, memory);
    rfi_senders_destroy(sane ? s : &loaded);
    if (!sane) {
        return rfi_fail(error, REEF_E_FORMAT, "the saved state contains values that its rule cannot produce");
    }
    *s = loaded;
    return REEF_OK;
}
