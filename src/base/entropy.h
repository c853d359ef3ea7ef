/* Random numbers of the system, for what others must not be able to guess. Everything that has to be reproducible uses num/rng.h. */
#ifndef RFI_BASE_ENTROPY_H
#define RFI_BASE_ENTROPY_H

#include <stdbool.h>
#include <stdint.h>

/* False: the system has none. */
bool rfi_entropy(uint64_t *number);

#endif
