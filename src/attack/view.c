/* What several attacks need from a view: work, moments of the rows, random streams. */
#include "attack/attack.h"

#include <math.h>

const char *const rfi_references[] = {"zero", "previous", NULL};

/* Work begins with the pointers, which keeps them aligned. */
enum { FLOATS_PER_POINTER = sizeof(const float *) / sizeof(float) };
_Static_assert(FLOATS_PER_POINTER <= 2, "4 (known + 2) floats hold 2 (known + 2) pointers");

float *rfi_attack_row(const reef_attack_view *view, ptrdiff_t i)
{
    return view->work + 4 * (view->known + 2) + i * view->length;
}

const float **rfi_attack_pointers(const reef_attack_view *view)
{
    return (const float **)(void *)view->work;
}

void rfi_attack_moments(const reef_attack_view *view, ptrdiff_t from, ptrdiff_t count, double *mean, double *deviation)
{
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
        ptrdiff_t left = view->length - from;
        ptrdiff_t count = left < RFI_ATTACK_BLOCK ? left : RFI_ATTACK_BLOCK;
        rfi_attack_moments(view, from, count, sum, NULL);
        for (ptrdiff_t i = 0; i < count; i++) {
            mean[from + i] = rfi_to_float(sum[i]);
        }
    }
}

/* Rounds beyond 32 bits move on to other keys. */
void rfi_attack_rng(const reef_attack_view *view, ptrdiff_t lane, ptrdiff_t agent, int64_t round, rfi_rng *rng)
{
    enum { PURPOSE_ATTACK = 0x6174746B };
    uint64_t purpose = PURPOSE_ATTACK + ((uint64_t)round >> 32 << 32);
    rfi_rng_init(rng, view->seed, purpose, (uint32_t)agent, (uint32_t)(view->repetition + lane), (uint32_t)round);
}
