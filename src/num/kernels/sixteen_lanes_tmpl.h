/* The code of num/lanes.h, compiled per instruction set (lanes_*.c). Sixteen lanes are one vector of the compiler's, which it keeps in as
 * many registers as it takes. */
#include "num/lanes.h"

#include "num/kernels/normals_tmpl.h"

typedef float lanes_vector __attribute__((vector_size(RFI_LANES * sizeof(float))));

static void residual(const float *u, const float *target, const float *model, ptrdiff_t stride, ptrdiff_t count,
                     float *error)
{
    lanes_vector sum, x, w;
    memcpy(&sum, error, sizeof sum);
    for (ptrdiff_t m = 0; m < count; m++) {
        memcpy(&x, u + m * RFI_LANES, sizeof x);
        memcpy(&w, model + m * stride, sizeof w);
        sum += x * (target[m] - w);
    }
    memcpy(error, &sum, sizeof sum);
}

static void scale(const float *u, const float *factor, bool add, ptrdiff_t stride, ptrdiff_t count, float *sum)
{
    lanes_vector f, x, before = {0};
    memcpy(&f, factor, sizeof f);
    for (ptrdiff_t m = 0; m < count; m++) {
        memcpy(&x, u + m * RFI_LANES, sizeof x);
        x *= f;
        if (add) {
            memcpy(&before, sum + m * stride, sizeof before);
            x += before;
        }
        memcpy(sum + m * stride, &x, sizeof x);
    }
}
