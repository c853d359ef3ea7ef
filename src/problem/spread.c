/* Steps that several partitions share. */
#include "problem/spread.h"

#include <assert.h>

ptrdiff_t rfi_even_part(ptrdiff_t i, ptrdiff_t n, ptrdiff_t parts)
{
    assert(i >= 0 && i < n && n <= UINT32_MAX && parts >= 1 && parts <= INT32_MAX);
    return i * parts / n;
}

void rfi_sort_by_class(rfi_spread *s, ptrdiff_t from)
{
    ptrdiff_t classes = s->in.classes;
    ptrdiff_t place = from;
    for (ptrdiff_t c = 0; c <= classes; c++) {
        s->class_start[c] = 0;
    }
    for (ptrdiff_t i = from; i < s->in.samples; i++) {
        s->class_start[s->in.labels[s->order[i]]]++;
    }
    for (ptrdiff_t c = 0; c <= classes; c++) {
        ptrdiff_t count = s->class_start[c];
        s->class_start[c] = place;
        place += count;
    }
    for (ptrdiff_t i = from; i < s->in.samples; i++) {
        s->sorted[s->class_start[s->in.labels[s->order[i]]]++] = s->order[i];
    }
    for (ptrdiff_t c = classes; c > 0; c--) { /* each start has moved on to the next one */
        s->class_start[c] = s->class_start[c - 1];
    }
    s->class_start[0] = from;
}

ptrdiff_t rfi_count_sizes(rfi_spread *s)
{
    ptrdiff_t smallest = s->in.samples;
    for (ptrdiff_t k = 0; k < s->in.agents; k++) {
        s->size[k] = 0;
    }
    for (ptrdiff_t i = 0; i < s->in.samples; i++) {
        s->size[s->owner[i]]++;
    }
    for (ptrdiff_t k = 0; k < s->in.agents; k++) {
        smallest = s->size[k] < smallest ? s->size[k] : smallest;
    }
    return smallest;
}

/* How many samples are above (or are missing below) a level. */
static ptrdiff_t above(const rfi_spread *s, ptrdiff_t level)
{
    ptrdiff_t sum = 0;
    for (ptrdiff_t k = 0; k < s->in.agents; k++) {
        sum += s->size[k] > level ? s->size[k] - level : 0;
    }
    return sum;
}

static ptrdiff_t below(const rfi_spread *s, ptrdiff_t level)
{
    ptrdiff_t sum = 0;
    for (ptrdiff_t k = 0; k < s->in.agents; k++) {
        sum += s->size[k] < level ? level - s->size[k] : 0;
    }
    return sum;
}

void rfi_repair(rfi_spread *s, ptrdiff_t least)
{
    assert(least * s->in.agents <= s->in.samples);
    (void)rfi_count_sizes(s);
    ptrdiff_t missing = below(s, least);
    ptrdiff_t low = least; /* enough above it, since least * K <= N */
    ptrdiff_t high = s->in.samples;
    ptrdiff_t receiver = 0;
    if (missing == 0) {
        return;
    }
    while (high - low > 1) {
        ptrdiff_t middle = low + (high - low) / 2;
        if (above(s, middle) >= missing) {
            low = middle;
        } else {
            high = middle;
        }
    }
    rfi_rng_permutation(&s->rng, s->order, s->in.samples);
    for (ptrdiff_t i = 0; missing > 0 && i < s->in.samples; i++) {
        int32_t *owner = &s->owner[s->order[i]];
        if (s->size[*owner] <= low) {
            continue;
        }
        while (s->size[receiver] >= least) {
            receiver++;
        }
        s->size[*owner]--;
        s->size[receiver]++;
        *owner = (int32_t)receiver;
        missing--;
    }
}
