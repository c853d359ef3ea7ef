/* Standard normals by Philox4x32-10 and Box-Muller, sixteen blocks at a time: plain C that compilers turn into vector code,
 * compiled per instruction set (lanes_*.c).
 *
 *   y       31 bits of a word, made odd: an integer 1..2^31 - 1;  U = y / 2^31
 *   radius  sqrt(-2 log U), log U = e log 2 + log(1 + f), 1 + f in [sqrt(1/2), sqrt(2))
 *   s       30 bits of the next word, odd multiples of 2^-30 in (-1, 1); angle = pi/4 s
 *   a, b    cos and sin of the angle: the arc of a quarter turn around (1, 0); one bit mirrors it, another swaps a and b
 *
 * The polynomials are those of scripts/make_normal_polynomials.py. There is no fused multiply-add, no branch and no table, so
 * that a lane has the same bits everywhere.
 */
#include "num/normal.h"

#include <math.h>
#include <string.h>

enum { GROUP = 16 };

/* Element i of every array is one block of one stream. */
typedef struct group {
    uint32_t block[GROUP], agent[GROUP], repetition[GROUP];
} group;

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Two normals from two words. */
static inline void box_muller(uint32_t x, uint32_t v, float *first, float *second)
{
    const float u = (float)(int32_t)(x >> 1 | 1) * 0x1p-31F;
    const uint32_t above = bits_of(u) - UINT32_C(0x3F3504F3); /* sqrt(1/2) */
    const int32_t e = (int32_t)above >> 23;
    const float f = float_of((above & UINT32_C(0x7FFFFF)) + UINT32_C(0x3F3504F3)) - 1.0F;
    float p = 0.0873484537F;
    p = p * f + -0.143075228F;
    p = p * f + 0.149179742F;
    p = p * f + -0.165705085F;
    p = p * f + 0.199620724F;
    p = p * f + -0.250017554F;
    p = p * f + 0.333339512F;
    p = p * f + -0.499999911F;
    const float log_u = (float)e * 0.693147181F + (f + f * f * p);
    const float radius = sqrtf(-2.0F * log_u);

    const float s = (float)(int32_t)(v << 2 | 2) * 0x1p-31F;
    const float t = s * s;
    const float b = s * (0.785398126F + t * (-0.0807453692F + t * (0.00248987228F + t * -3.58774269e-05F)));
    const float a = 1.0F + t * (-0.308424503F + t * (0.0158503987F + t * -0.00031916055F));
    const uint32_t mirrored = bits_of(radius * a) ^ (v & UINT32_C(0x80000000));
    const uint32_t other = bits_of(radius * b);
    const uint32_t swap = (mirrored ^ other) & (0U - (v >> 30 & 1));
    *first = float_of(mirrored ^ swap);
    *second = float_of(other ^ swap);
}

#define PHILOX_M0 UINT32_C(0xD2511F53)
#define PHILOX_M1 UINT32_C(0xCD9E8D57)
#define PHILOX_W0 UINT32_C(0x9E3779B9)
#define PHILOX_W1 UINT32_C(0xBB67AE85)
#define PHILOX_ROUNDS 10

#ifdef PAIR
/* The vector files define PAIR, a vector of PAIRS 64-bit words, and its operations. A product of two 32-bit words takes 64 bits, so
 * the words at even places of a group are kept in one vector and those at odd places in another, each in the lower half of 64 bits;
 * whatever is in the upper halves is ignored by the products and dropped at the end. */
static inline void philox_round(PAIR c[4], PAIR k0, PAIR k1)
{
    const PAIR p0 = PAIR_MUL(c[0], PAIR_SET(PHILOX_M0));
    const PAIR p1 = PAIR_MUL(c[2], PAIR_SET(PHILOX_M1));
    c[0] = PAIR_XOR(PAIR_HIGH(p1), c[1], k0);
    c[2] = PAIR_XOR(PAIR_HIGH(p0), c[3], k1);
    c[1] = p1;
    c[3] = p0;
}

static inline void philox(const rfi_normal_stream *stream, const group *in, uint32_t out[4][GROUP])
{
    for (int g = 0; g < GROUP; g += 2 * PAIRS) {
        PAIR even[4] = {PAIR_LOAD(in->block + g), PAIR_LOAD(in->agent + g), PAIR_LOAD(in->repetition + g),
                        PAIR_SET(stream->round)};
        PAIR odd[4] = {PAIR_HIGH(even[0]), PAIR_HIGH(even[1]), PAIR_HIGH(even[2]), even[3]};
        PAIR k0 = PAIR_SET(stream->key[0]), k1 = PAIR_SET(stream->key[1]);
        for (int i = 0; i < PHILOX_ROUNDS; i++) {
            philox_round(even, k0, k1);
            philox_round(odd, k0, k1);
            k0 = PAIR_ADD(k0, PAIR_SET(PHILOX_W0));
            k1 = PAIR_ADD(k1, PAIR_SET(PHILOX_W1));
        }
        for (int w = 0; w < 4; w++) {
            PAIR_STORE(out[w] + g, PAIR_JOIN(even[w], odd[w]));
        }
    }
}
#else
static inline void philox(const rfi_normal_stream *stream, const group *in, uint32_t out[4][GROUP])
{
    for (int g = 0; g < GROUP; g++) {
        uint32_t c0 = in->block[g], c1 = in->agent[g], c2 = in->repetition[g], c3 = stream->round;
        for (uint32_t i = 0; i < PHILOX_ROUNDS; i++) {
            const uint64_t p0 = (uint64_t)PHILOX_M0 * c0;
            const uint64_t p1 = (uint64_t)PHILOX_M1 * c2;
            c0 = (uint32_t)(p1 >> 32) ^ c1 ^ (stream->key[0] + i * PHILOX_W0);
            c2 = (uint32_t)(p0 >> 32) ^ c3 ^ (stream->key[1] + i * PHILOX_W1);
            c1 = (uint32_t)p1;
            c3 = (uint32_t)p0;
        }
        out[0][g] = c0;
        out[1][g] = c1;
        out[2][g] = c2;
        out[3][g] = c3;
    }
}
#endif

/* Number i of element g goes to out[i * stride + g]. */
static inline void make(const rfi_normal_stream *stream, const group *in, ptrdiff_t stride, float *restrict out)
{
    uint32_t words[4][GROUP];
    philox(stream, in, words);
    for (int w = 0; w < 4; w += 2) {
        float *restrict first = out + w * stride;
        float *restrict second = first + stride;
        for (int g = 0; g < GROUP; g++) {
            box_muller(words[w][g], words[w + 1][g], &first[g], &second[g]);
        }
    }
}

/* Elements are numbered block by block, all lanes of a block next to each other. Those from `from` on, as many as a group takes; beyond
 * the last (`until`) the last again. */
static void gather(const uint32_t *agents, const uint32_t *repetitions, ptrdiff_t lanes, ptrdiff_t from,
                   ptrdiff_t until, group *in)
{
    ptrdiff_t block = from / lanes;
    ptrdiff_t lane = from % lanes;
    for (int g = 0; g < GROUP; g++) {
        in->block[g] = (uint32_t)block;
        in->agent[g] = agents[lane];
        in->repetition[g] = repetitions[lane];
        if (from + g + 1 < until && ++lane == lanes) {
            lane = 0;
            block++;
        }
    }
}

/* One lane: whole blocks go out as they are. */
static void scatter_blocks(const float *restrict made, float *restrict out)
{
    for (ptrdiff_t g = 0; g < GROUP; g++) {
        for (ptrdiff_t i = 0; i < 4; i++) {
            out[4 * g + i] = made[i * GROUP + g];
        }
    }
}

/* From the made numbers of elements from..until-1 to their places; numbers below `first` or from `last` on are not wanted. */
static void scatter(const float *made, const group *in, ptrdiff_t lanes, ptrdiff_t from, ptrdiff_t until,
                    ptrdiff_t first, ptrdiff_t last, float *out)
{
    for (ptrdiff_t e = from; e < until; e++) {
        const ptrdiff_t g = e - from;
        const ptrdiff_t number = 4 * (ptrdiff_t)in->block[g];
        for (ptrdiff_t i = 0; i < 4 && number + i < last; i++) {
            out[(number + i - first) * lanes + e % lanes] = made[i * GROUP + g];
        }
    }
}

/* Groups that need not be of one block: few lanes, or the last ones of many. */
static void make_some(const rfi_normal_stream *stream, const uint32_t *agents, const uint32_t *repetitions,
                      ptrdiff_t lanes, ptrdiff_t first, ptrdiff_t count, float *out)
{
    group in;
    float made[4 * GROUP];
    const ptrdiff_t last = first + count;
    const ptrdiff_t end = (last + 3) / 4 * lanes;
    for (ptrdiff_t from = first / 4 * lanes; from < end; from += GROUP) {
        const ptrdiff_t until = from + GROUP < end ? from + GROUP : end;
        gather(agents, repetitions, lanes, from, until, &in);
        make(stream, &in, GROUP, made);
        if (lanes == 1 && 4 * (from + GROUP) <= last) {
            scatter_blocks(made, out + 4 * from - first);
        } else {
            scatter(made, &in, lanes, from, until, first, last, out);
        }
    }
}

/* Sixteen lanes of the caller's, block after block. */
static void make_lanes(const rfi_normal_stream *stream, group *in, ptrdiff_t lanes, ptrdiff_t first, ptrdiff_t count,
                       float *out)
{
    float made[4 * GROUP];
    for (ptrdiff_t done = 0; done < count; done += 4) {
        for (int g = 0; g < GROUP; g++) {
            in->block[g] = (uint32_t)((first + done) / 4);
        }
        if (done + 4 <= count) {
            make(stream, in, lanes, out + done * lanes);
            continue;
        }
        make(stream, in, GROUP, made);
        for (ptrdiff_t i = 0; i < count - done; i++) {
            memcpy(out + (done + i) * lanes, made + i * GROUP, GROUP * sizeof *out);
        }
    }
}

/* The kernel itself: rfi_normals of num/normal.h. */
static void normals(const rfi_normal_stream *stream, const uint32_t *agents, const uint32_t *repetitions,
                    ptrdiff_t lanes, ptrdiff_t first, ptrdiff_t count, float *out)
{
    group in;
    if (lanes % GROUP != 0) {
        make_some(stream, agents, repetitions, lanes, first, count, out);
        return;
    }
    for (ptrdiff_t lane = 0; lane < lanes; lane += GROUP) {
        memcpy(in.agent, agents + lane, sizeof in.agent);
        memcpy(in.repetition, repetitions + lane, sizeof in.repetition);
        make_lanes(stream, &in, lanes, first, count, out + lane);
    }
}
