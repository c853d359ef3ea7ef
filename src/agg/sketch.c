/* Sketches of residuals: a few numbers that preserve lengths and directions, and can be summed in parts.
 *
 *   sketch[bucket(m)] += sign(m) d(m)
 *
 * Signs and turns are a hash of the key and the number of the group of 64 coordinates, so nothing is stored. Within a group no two
 * coordinates meet (D >= 64), and two of different groups meet with probability 1/D. */
#include "agg/recall.h"

#include <string.h>

enum { GROUP = 64 };

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* Where the coordinates of one group go. */
typedef struct turn {
    double sign[GROUP];
    ptrdiff_t width; /* coordinates that go to different places: GROUP, or D if that is less */
    ptrdiff_t base;  /* first of these places */
    uint64_t shifts; /* a byte per `width` coordinates */
} turn;

/* Signs of a group, and its turns. */
static uint64_t hash_group(uint64_t key, int64_t group, uint64_t *signs)
{
    *signs = mix(key ^ mix((uint64_t)group * 2 + 1));
    return mix(key ^ mix((uint64_t)group * 2 + 2));
}

static turn turn_of(uint64_t key, ptrdiff_t numbers, int64_t group)
{
    turn t = {.width = numbers < GROUP ? numbers : GROUP};
    uint64_t bits = 0;
    t.shifts = hash_group(key, group, &bits);
    t.base = numbers > GROUP ? GROUP * (ptrdiff_t)((t.shifts >> 32) % (uint64_t)(numbers / GROUP)) : 0;
    for (ptrdiff_t i = 0; i < GROUP; i++) {
        t.sign[i] = bits >> i & 1 ? -1 : 1;
    }
    return t;
}

/* `count` numbers, each to the place beside the last one's. */
static void add_signed(const double *x, const double *sign, ptrdiff_t count, double *to)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        to[i] += sign[i] * x[i];
    }
}

static void add_group(const turn *t, const double *x, ptrdiff_t count, double *to)
{
    for (ptrdiff_t at = 0; at < count; at += t->width) {
        ptrdiff_t shift = (ptrdiff_t)(t->shifts >> (at / t->width * 8) & (uint64_t)(t->width - 1));
        ptrdiff_t here = count - at < t->width ? count - at : t->width;
        ptrdiff_t first = here < t->width - shift ? here : t->width - shift;
        add_signed(x + at, t->sign + at, first, to + t->base + shift);
        add_signed(x + at + first, t->sign + at + first, here - first, to + t->base);
    }
}

void rfi_sketch_add(uint64_t key, ptrdiff_t numbers, const double *centred, ptrdiff_t stride, ptrdiff_t n, int64_t at,
                    ptrdiff_t count, double *to)
{
    for (ptrdiff_t from = 0; from < count; from += GROUP) {
        turn t = turn_of(key, numbers, (at + from) / GROUP);
        ptrdiff_t here = count - from < GROUP ? count - from : GROUP;
        for (ptrdiff_t l = 0; l < n; l++) {
            add_group(&t, centred + l * stride + from, here, to + l * numbers);
        }
    }
}

void rfi_sketch_turns(uint64_t key, int64_t at, ptrdiff_t count, bool single, void *sign, unsigned char *shift)
{
    for (ptrdiff_t from = 0; from < count; from += GROUP) {
        uint64_t bits = 0;
        shift[from / GROUP] = (unsigned char)(hash_group(key, (at + from) / GROUP, &bits) & (GROUP - 1));
        for (ptrdiff_t i = 0; single && i < GROUP; i++) {
            ((float *)sign)[from + i] = 1 - 2 * (float)(bits >> i & 1);
        }
        for (ptrdiff_t i = 0; !single && i < GROUP; i++) {
            ((double *)sign)[from + i] = 1 - 2 * (double)(bits >> i & 1);
        }
    }
}

void rfi_squares_add(const double *centred, ptrdiff_t stride, ptrdiff_t n, ptrdiff_t count, double *sum)
{
    enum { LANES = 8 };
    for (ptrdiff_t l = 0; l < n; l++) {
        const double *x = centred + l * stride;
        double part[LANES] = {0};
        ptrdiff_t t = 0;
        for (; t + LANES <= count; t += LANES) {
            for (int i = 0; i < LANES; i++) {
                part[i] += x[t + i] * x[t + i];
            }
        }
        for (; t < count; t++) {
            part[t % LANES] += x[t] * x[t];
        }
        sum[l] += ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
    }
}
