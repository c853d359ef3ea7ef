/* Half precision to single by the processor's own instruction. io/half.c is the definition; it takes several times as long. */
#ifndef RFI_NUM_KERNELS_HALVES_H
#define RFI_NUM_KERNELS_HALVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does `count` numbers; false, and nothing done, where the processor cannot or REEF_ISA does not allow it. Any alignment. NaN stay NaN; the bits of
 * those that signal change. */
bool rfi_halves_widen(const uint16_t *half, ptrdiff_t count, float *out);

/* With F16C, which the caller has made sure of. */
void rfi_halves_widen_avx2(const uint16_t *half, ptrdiff_t count, float *out);

#endif
