/* Gamma and Dirichlet variates, bit-identical on every machine: only +, -, *, / and sqrt of IEEE doubles are
 * used, and no function of the C library whose last bit may differ. */
#ifndef RFI_NUM_GAMMA_H
#define RFI_NUM_GAMMA_H

#include "num/rng.h"

/* ln x for finite x > 0 and e^x for x <= 0, to about 1e-15 relative to max(1, |x|); below -700 the latter is 0. */
double rfi_exact_log(double x);
double rfi_exact_exp(double x);

/* Logarithm of a Gamma(shape, 1) variate, shape > 0. The logarithm, because small shapes give variates below any double. */
double rfi_rng_log_gamma(rfi_rng *rng, double shape);

/* A point of the simplex, Dirichlet(alpha, ..., alpha) of n >= 1 parts: share[i] >= 0 with sum 1 up to rounding. */
void rfi_rng_dirichlet(rfi_rng *rng, double alpha, double *share, ptrdiff_t n);

#endif
