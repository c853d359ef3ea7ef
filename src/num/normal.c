/* Keys of streams of normals; the numbers are made in num/kernels/normals_tmpl.h. */
#include "num/normal.h"

#include "num/rng.h"

rfi_normal_stream rfi_normal_open(uint64_t seed, uint64_t purpose, int64_t round, int32_t step)
{
    const uint64_t place = (uint64_t)round >> 32 << 32 | (uint32_t)step;
    const uint64_t key = rfi_rng_key(rfi_rng_key(seed, purpose), place);
    return (rfi_normal_stream){{(uint32_t)key, (uint32_t)(key >> 32)}, (uint32_t)(uint64_t)round};
}
