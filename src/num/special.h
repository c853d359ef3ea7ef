/* Special functions behind the tuning constants (chi distribution, incomplete gamma). */
#ifndef RFI_NUM_SPECIAL_H
#define RFI_NUM_SPECIAL_H

/* Regularised lower incomplete gamma function P(a, x), a > 0, x >= 0. Relative error about 1e-14 (a = 1e9: 3e-13);
 * O(sqrt(a)) operations near x = a. */
double rfi_gamma_p(double a, double x);

/* Median of the chi distribution with `dof` >= 1 degrees of freedom. */
double rfi_chi_median(double dof);

/* Density of the chi distribution at r > 0, dof >= 1; 0 elsewhere. */
double rfi_chi_density(double dof, double r);

/* Distribution function and quantile of the standard normal (p = 0 and 1: minus and plus infinity). */
double rfi_normal_cdf(double z);
double rfi_normal_quantile(double p);

#endif
