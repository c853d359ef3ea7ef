/* Rows of 16 bits for the kernels in NEON: widened to single precision as they are loaded. */
#include "num/kernels/sort_16.h"

#define ROWS_STORED
#define SORT_16 rfi_sort_16_neon
#define SORT_16_LANES RFI_SORT_16_NEON
/* Bits of magnitudes that are not finite, or so large that their sum might not be. */
#ifdef STORED_F16
#define LARGE_BITS 0x7C00
#else
#define LARGE_BITS 0x6F80
#endif
typedef uint16_t stored;

KERNEL vec widened(uint16x4_t number)
{
#ifdef STORED_F16
    return vcvt_f32_f16(vreinterpret_f16_u16(number));
#else
    return vreinterpretq_f32_u32(vshll_n_u16(number, 16));
#endif
}

KERNEL vec v_load_stored(const void *p)
{
    uint16x4_t number;
    memcpy(&number, p, sizeof number);
    return widened(number);
}

KERNEL vec v_load_stored_part(const void *p, ptrdiff_t n)
{
    uint16x4_t number = vdup_n_u16(0);
    memcpy(&number, p, (size_t)n * sizeof(stored));
    return widened(number);
}

KERNEL real number_of(stored number)
{
    return vgetq_lane_f32(widened(vdup_n_u16(number)), 0);
}
