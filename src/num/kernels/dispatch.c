/* Choosing kernels: the last entry of the list that the processor can run and REEF_ISA allows. */
#include "num/kernels/halves.h"
#include "num/kernels/kernels.h"
#include "num/lanes.h"

#include <stdlib.h>
#include <string.h>

extern const rfi_kernels rfi_kernels_portable_f32, rfi_kernels_portable_f64;
extern const rfi_lanes rfi_lanes_portable;
#if defined(__x86_64__)
extern const rfi_kernels rfi_kernels_avx2_f32, rfi_kernels_avx2_f64;
extern const rfi_kernels rfi_kernels_avx512_f32, rfi_kernels_avx512_f64, rfi_kernels_avx512i_f32;
extern const rfi_kernels rfi_kernels_avx2_f16, rfi_kernels_avx512_f16, rfi_kernels_avx512i_f16;
extern const rfi_kernels rfi_kernels_avx2_bf16, rfi_kernels_avx512_bf16, rfi_kernels_avx512i_bf16;
extern const rfi_lanes rfi_lanes_avx2, rfi_lanes_avx512;
#elif defined(__aarch64__)
extern const rfi_kernels rfi_kernels_neon_f32, rfi_kernels_neon_f64, rfi_kernels_neon_f16, rfi_kernels_neon_bf16;
#endif

/* From the plainest to the fastest, but see pays_here. */
static const rfi_kernels *const all[][4] = {
    {&rfi_kernels_portable_f64, &rfi_kernels_portable_f32},
#if defined(__x86_64__)
    {&rfi_kernels_avx2_f64, &rfi_kernels_avx2_f32, &rfi_kernels_avx2_f16, &rfi_kernels_avx2_bf16},
    {&rfi_kernels_avx512_f64, &rfi_kernels_avx512_f32, &rfi_kernels_avx512_f16, &rfi_kernels_avx512_bf16},
    {&rfi_kernels_avx512_f64, &rfi_kernels_avx512i_f32, &rfi_kernels_avx512i_f16, &rfi_kernels_avx512i_bf16},
#elif defined(__aarch64__)
    {&rfi_kernels_neon_f64, &rfi_kernels_neon_f32, &rfi_kernels_neon_f16, &rfi_kernels_neon_bf16},
#endif
};
/* Columns of that table. */
enum { DOUBLE, SINGLE, HALF, BRAIN };

/* The same for lanes; on Arm the compiler makes NEON code of the plain C. */
static const rfi_lanes *const all_lanes[] = {
    &rfi_lanes_portable,
#if defined(__x86_64__)
    &rfi_lanes_avx2,
    &rfi_lanes_avx512,
#endif
};
enum { COUNT = sizeof all / sizeof all[0], LANES_COUNT = sizeof all_lanes / sizeof all_lanes[0] };

static bool runs_here(int index)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    switch (index) {
    case 1:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case 2:
    case 3:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    default:
        return true;
    }
#else
    (void)index;
    return true;
#endif
}

/* Sorting integers in 512 bits is the faster way on AMD processors only. */
static bool pays_here(int index)
{
#if defined(__x86_64__)
    return index != 3 || __builtin_cpu_is("amd");
#else
    (void)index;
    return true;
#endif
}

const rfi_kernels *rfi_kernels_at(bool single, int index)
{
    return index >= 0 && index < COUNT && runs_here(index) ? all[index][single] : NULL;
}

const rfi_kernels *rfi_kernels_find(bool single)
{
    const char *cap = getenv("REEF_ISA");
    const rfi_kernels *best = NULL;
    if (cap && strcmp(cap, "scalar") == 0) {
        return NULL;
    }
    for (int i = 0; rfi_kernels_at(single, i); i++) {
        bool named = cap && strcmp(cap, all[i][true]->name) == 0;
        best = named || pays_here(i) ? all[i][single] : best;
        if (named) {
            break;
        }
    }
    return best;
}

const rfi_kernels *rfi_kernels_halved(const rfi_kernels *single, bool brain)
{
    for (int i = 0; i < COUNT; i++) {
        if (all[i][SINGLE] == single && (brain || rfi_halves_here())) {
            return all[i][brain ? BRAIN : HALF];
        }
    }
    return NULL;
}

const rfi_lanes *rfi_lanes_at(int index)
{
    return index >= 0 && index < LANES_COUNT && runs_here(index) ? all_lanes[index] : NULL;
}

const rfi_lanes *rfi_lanes_find(void)
{
    const char *cap = getenv("REEF_ISA");
    const rfi_lanes *best = NULL;
    for (int i = 0; rfi_lanes_at(i); i++) {
        best = rfi_lanes_at(i);
        if (cap && (strcmp(cap, best->name) == 0 || strcmp(cap, "scalar") == 0)) {
            break;
        }
    }
    return best;
}
