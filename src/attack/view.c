/* What several attacks need from a view: work, sums over the rows, trials of the rule, random streams. */
#include "attack/attack.h"

#include <assert.h>
#include <math.h>

const char *const rfi_references[] = {"zero", "previous", NULL};

/* Work begins with the pointers, which keeps them aligned. */
_Static_assert(sizeof(const float *) <= 2 * sizeof(float), "4 (known + 2) floats hold 2 (known + 2) pointers");

bool rfi_attack_honest(const reef_attack_view *view, float *out)
{
    for (ptrdiff_t i = 0; i < view->length; i++) {
        out[i] = view->own[i];
    }
    return true;
}

float *rfi_attack_row(const reef_attack_view *view, ptrdiff_t i)
{
    assert(view->work && i >= 0 && view->length % view->lanes == 0);
    return view->work + 4 * (view->known + 2) + i * view->length;
}

const float **rfi_attack_pointers(const reef_attack_view *view)
{
    return (const float **)(void *)view->work;
}

void rfi_attack_moments(const reef_attack_view *view, ptrdiff_t from, ptrdiff_t count, double *mean, double *deviation)
{
    assert(count >= 1 && count <= RFI_ATTACK_BLOCK && from >= 0 && from + count <= view->length);
    double n = (double)view->known;
    for (ptrdiff_t i = 0; i < count; i++) {
        mean[i] = view->known > 0 ? 0 : (double)view->own[from + i];
    }
    for (ptrdiff_t l = 0; l < view->known; l++) {
        const float *x = view->rows[l] + from;
        for (ptrdiff_t i = 0; i < count; i++) {
            mean[i] += (double)x[i];
        }
    }
    for (ptrdiff_t i = 0; i < count && view->known > 0; i++) {
        mean[i] /= n;
    }
    if (!deviation) {
        return;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        deviation[i] = 0;
    }
    for (ptrdiff_t l = 0; l < view->known; l++) {
        const float *x = view->rows[l] + from;
        for (ptrdiff_t i = 0; i < count; i++) {
            double d = (double)x[i] - mean[i];
            deviation[i] += d * d;
        }
    }
    for (ptrdiff_t i = 0; i < count && view->known > 0; i++) {
        deviation[i] = sqrt(deviation[i] / n);
    }
}

void rfi_attack_mean(const reef_attack_view *view, float *mean)
{
    double sum[RFI_ATTACK_BLOCK];
    for (ptrdiff_t from = 0; from < view->length; from += RFI_ATTACK_BLOCK) {
        ptrdiff_t count = rfi_block_count(view, from);
        rfi_attack_moments(view, from, count, sum, NULL);
        for (ptrdiff_t i = 0; i < count; i++) {
            mean[from + i] = rfi_to_float(sum[i]);
        }
    }
}

/* sum[i] += (a - b) d for `width` neighbouring numbers. */
static inline void add_products(const float *a, const float *b, const float *d, ptrdiff_t width, double *sum)
{
    for (ptrdiff_t i = 0; i < width; i++) {
        double u = b ? (double)a[i] - (double)b[i] : (double)a[i];
        sum[i] += d ? u * (double)d[i] : u * u;
    }
}

/* Coordinate m goes to partial sum m mod PARTS, and the parts are added up in the end: one lane alone then keeps vector units busy, and
 * the bits do not depend on how many lanes there are. */
enum { PARTS = RFI_LANE_GROUP };

static double sum_alone(ptrdiff_t length, const float *a, const float *b, const float *d)
{
    double sum[PARTS] = {0};
    double total = 0;
    ptrdiff_t i = 0;
    for (; i + PARTS <= length; i += PARTS) {
        add_products(a + i, b ? b + i : NULL, d ? d + i : NULL, PARTS, sum);
    }
    add_products(a + i, b ? b + i : NULL, d ? d + i : NULL, length - i, sum);
    for (ptrdiff_t k = 0; k < PARTS; k++) {
        total += sum[k];
    }
    return total;
}

void rfi_lane_products(const reef_attack_view *view, ptrdiff_t first, ptrdiff_t count, const float *a, const float *b,
                       const float *d, double *sum)
{
    assert(count >= 1 && count <= RFI_LANE_GROUP && first + count <= view->lanes);
    double parts[PARTS][RFI_LANE_GROUP] = {{0}};
    if (view->lanes == 1) {
        sum[0] = sum_alone(view->length, a, b, d);
        return;
    }
    for (ptrdiff_t i = first, m = 0; i < view->length; i += view->lanes, m++) {
        add_products(a + i, b ? b + i : NULL, d ? d + i : NULL, count, parts[m % PARTS]);
    }
    for (ptrdiff_t j = 0; j < count; j++) {
        sum[j] = 0;
        for (ptrdiff_t k = 0; k < PARTS; k++) {
            sum[j] += parts[k][j];
        }
    }
}

bool rfi_attack_try(const reef_attack_view *view, const float *candidate, float *result)
{
    if (!view->aggregate) {
        return false;
    }
    const float **rows = rfi_attack_pointers(view);
    double per_row = view->honest > 0 ? (double)view->malicious_count / (double)view->honest : 1;
    double wanted = round(per_row * (double)view->known);
    double copies = wanted < 1 ? 1 : wanted > (double)view->known + 1 ? (double)view->known + 1 : wanted;
    ptrdiff_t count = view->known + (ptrdiff_t)copies;
    assert(copies >= 1 && count <= 2 * (view->known + 2)); /* the room that rfi_attack_pointers has */
    for (ptrdiff_t l = 0; l < count; l++) {
        rows[l] = l < view->known ? view->rows[l] : candidate;
    }
    return view->aggregate(view->user, rows, count, result);
}

/* Rounds beyond 32 bits move on to other keys. */
void rfi_attack_rng(const reef_attack_view *view, ptrdiff_t lane, ptrdiff_t agent, int64_t round, rfi_rng *rng)
{
    enum { PURPOSE_ATTACK = 0x6174746B };
    uint64_t purpose = PURPOSE_ATTACK + ((uint64_t)round >> 32 << 32);
    rfi_rng_init(rng, view->seed, purpose, (uint32_t)agent, (uint32_t)(view->repetition + lane), (uint32_t)round);
}

void rfi_attack_normal(const reef_attack_view *view, ptrdiff_t agent, double size, float *out)
{
    assert(size >= 0 && view->lanes >= 1 && view->length % view->lanes == 0);
    for (ptrdiff_t r = 0; r < view->lanes; r++) {
        rfi_rng rng;
        rfi_attack_rng(view, r, agent, view->round, &rng);
        for (ptrdiff_t i = r; i < view->length; i += view->lanes) {
            out[i] = size > 0 ? rfi_to_float(size * rfi_rng_normal(&rng)) : 0;
        }
    }
}

void rfi_attack_shift(const reef_attack_view *view, double shift, float *out)
{
    double mean[RFI_ATTACK_BLOCK];
    double deviation[RFI_ATTACK_BLOCK];
    for (ptrdiff_t from = 0; from < view->length; from += RFI_ATTACK_BLOCK) {
        ptrdiff_t count = rfi_block_count(view, from);
        rfi_attack_moments(view, from, count, mean, deviation);
        for (ptrdiff_t i = 0; i < count; i++) {
            out[from + i] = rfi_to_float(mean[i] + (shift + (double)out[from + i]) * deviation[i]);
        }
    }
}
