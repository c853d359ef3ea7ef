/* The specs that conformance tests run: every rule and pre-aggregator, their options and dialects, and pipes. */
#ifndef TESTS_SUPPORT_SPECS_H
#define TESTS_SUPPORT_SPECS_H

#include <stdbool.h>
#include <stddef.h>

extern const char *const all_specs[];
extern const ptrdiff_t all_specs_count;

/* Row counts and lengths that conformance tests run. */
extern const ptrdiff_t row_counts[];
extern const ptrdiff_t row_counts_count;
extern const ptrdiff_t lengths[];
extern const ptrdiff_t lengths_count;

/* The spec has a stage of that name. */
bool spec_uses(const char *spec, const char *rule);
/* How far two equivalent computations of the same result may lie apart, in units of the largest value. float32 results
 * are solved to 1e-6 scales. */
double spec_tolerance(const char *spec, bool single);

#endif
