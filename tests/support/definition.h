/* A rule against its definition (oracle.h): rows, what the definition makes of them, and the comparison. float64. */
#ifndef TESTS_SUPPORT_DEFINITION_H
#define TESTS_SUPPORT_DEFINITION_H

#include "support/oracle.h"

typedef struct definition {
    trial t;
    matrix x; /* the rows, for the functions of oracle.h */
    double want[LENGTH_MAX];
} definition;

/* One of each kind of rows in turn. */
rows_kind definition_rows(ptrdiff_t i);
void definition_make(definition *d, rows_kind kind, ptrdiff_t n, ptrdiff_t m, bool weigh, uint32_t seed);
/* Fails unless the rule gives d->want within tol. */
void definition_check(definition *d, const char *spec, double tol);
/* The same within tol times the largest entry. */
void definition_check_relative(definition *d, const char *spec, double tol);

/* char spec[]: a spec as by printf. */
#define SPEC(...)                                                                                                      \
    char spec[160];                                                                                                    \
    (void)snprintf(spec, sizeof spec, __VA_ARGS__)

#endif
