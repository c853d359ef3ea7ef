/* The one hash of Reef: FNV-1a with 64 bits (Fowler, Noll, Vo). It names files, detects accidental damage, and fills tables; it is no
 * protection against deliberate forgery. */
#ifndef RFI_BASE_HASH_H
#define RFI_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The hash of nothing: what every hash begins with. */
#define RFI_HASH_START UINT64_C(0xcbf29ce484222325)

/* Each continues from `hash`, so that pieces one after the other give the hash of the whole. bytes may be NULL if count is 0. */
uint64_t rfi_hash_bytes(uint64_t hash, const void *bytes, size_t count);
/* Its eight bytes, the lowest first, on every machine. */
uint64_t rfi_hash_number(uint64_t hash, uint64_t number);
/* With the zero at its end, so that "ab", "c" and "a", "bc" differ. */
uint64_t rfi_hash_text(uint64_t hash, const char *text);

#endif
