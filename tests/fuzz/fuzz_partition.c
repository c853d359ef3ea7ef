/* Partition specs: any text and small input are either refused with a sentence, or give every sample to exactly one agent and
 * every agent a sample. The first bytes choose samples, classes, agents and seed. */
#include "check.h"
#include "problem/partition.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 4, SAMPLES = 256 };

static void check_partition(const rfi_partition *p)
{
    bool seen[SAMPLES] = {false};
    CHECK(p->start[0] == 0 && p->start[p->agents] == p->samples);
    for (ptrdiff_t k = 0; k < p->agents; k++) {
        CHECK(p->start[k + 1] > p->start[k]);
    }
    for (ptrdiff_t i = 0; i < p->samples; i++) {
        CHECK(p->index[i] >= 0 && p->index[i] < p->samples && !seen[p->index[i]]);
        seen[p->index[i]] = true;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int32_t labels[SAMPLES];
    rfi_partition *p = NULL;
    reef_error error = {REEF_OK, ""};
    if (size < HEAD) {
        return 0;
    }
    rfi_partition_input input = {
        .samples = data[0], .classes = data[1] % 16, .agents = data[2], .seed = data[3], .labels = labels};
    for (ptrdiff_t i = 0; i < input.samples; i++) { /* lopsided, with classes that may be missing */
        labels[i] = input.classes ? (int32_t)(i * i % 23 % input.classes) : 0;
    }
    input.labels = input.classes ? labels : NULL;
    char *spec = malloc(size - HEAD + 1);
    CHECK(spec);
    memcpy(spec, data + HEAD, size - HEAD);
    spec[size - HEAD] = '\0';
    if (rfi_partition_create(NULL, spec, &input, &p, &error) == REEF_OK) {
        check_partition(p);
    } else {
        CHECK(!p && error.status != REEF_OK && error.text[0]);
    }
    rfi_partition_destroy(&p);
    free(spec);
    return 0;
}
