/* Vector code over sixteen lanes next to each other: number m of lane l at [m * stride + l]. What the lanes are (repetitions of an
 * experiment, agents) is up to the caller. A lane's result is bit-identical on every instruction set and next to any other lanes.
 */
#ifndef RFI_NUM_LANES_H
#define RFI_NUM_LANES_H

#include "num/normal.h"

#include <stdbool.h>

enum { RFI_LANES = 16 };

typedef struct rfi_lanes {
    const char *name; /* of the instruction set */
    rfi_normals *normals;
    /* error[l] += sum over m < count, ascending, of u[m * 16 + l] (target[m] - model[m * stride + l]) */
    void (*residual)(const float *u, const float *target, const float *model, ptrdiff_t stride, ptrdiff_t count,
                     float *error);
    /* sum[m * stride + l] = u[m * 16 + l] factor[l], added to what is there if `add` */
    void (*scale)(const float *u, const float *factor, bool add, ptrdiff_t stride, ptrdiff_t count, float *sum);
} rfi_lanes;

/* The fastest that this processor runs; REEF_ISA caps it as in num/kernels/kernels.h (scalar: plain C). */
const rfi_lanes *rfi_lanes_find(void);
/* All that this processor runs, for tests: index from 0, NULL at the end. */
const rfi_lanes *rfi_lanes_at(int index);

#endif
