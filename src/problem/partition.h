/* Partitions: who gets which samples. N samples are spread over K agents, every sample to exactly one agent and at least one
 * sample to every agent.
 *
 * A partition is named by a spec `kind:key=value,...` (docs/data.md); partition_list.h has the kinds. The same spec, labels and
 * seed give the same partition on every machine.
 */
#ifndef RFI_PROBLEM_PARTITION_H
#define RFI_PROBLEM_PARTITION_H

#include "base/spec.h"

#include <stdint.h>

typedef struct rfi_partition {
    const reef_context *context;
    ptrdiff_t agents;  /* K */
    ptrdiff_t samples; /* N */
    ptrdiff_t *start;  /* K + 1, from 0 to N */
    ptrdiff_t *index;  /* agent k has samples index[start[k]] .. index[start[k + 1] - 1], ascending */
} rfi_partition;

/* What is spread: usually the training part of a data set. */
typedef struct rfi_partition_input {
    ptrdiff_t samples; /* N, up to 2^32 - 1 */
    const int32_t
        *labels; /* N, in 0..classes-1; NULL (classes 0) if there are none, which iid and by_quantity accept */
    ptrdiff_t classes;
    ptrdiff_t agents; /* K, 1 to N */
    uint64_t seed;
} rfi_partition_input;

reef_status rfi_partition_create(const reef_context *context, const char *spec, const rfi_partition_input *input,
                                 rfi_partition **partition, reef_error *error);
/* Accepts NULL, sets the pointer to NULL. */
void rfi_partition_destroy(rfi_partition **partition);

extern const rfi_family rfi_family_partition;

#endif
