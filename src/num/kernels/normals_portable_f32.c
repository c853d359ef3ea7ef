/* Normals in plain C. */
#include "num/kernels/normals.h"

rfi_normals rfi_normals_portable;

void rfi_normals_portable(const rfi_normal_stream *stream, const uint32_t *agents, const uint32_t *repetitions,
                          ptrdiff_t lanes, ptrdiff_t first, ptrdiff_t count, float *out)
{
    normals(stream, agents, repetitions, lanes, first, count, out);
}
