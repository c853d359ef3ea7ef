/* From a requested Gaussian efficiency to a tuning constant, and back. */
#ifndef RFI_NUM_TUNING_H
#define RFI_NUM_TUNING_H

#include "num/mest.h"
#include "num/scale.h"

/* Efficiencies the constants are offered for; others are moved to the nearer end. */
#define RFI_EFFICIENCY_MIN 0.5
#define RFI_EFFICIENCY_MAX 0.999

/* Asymptotic Gaussian efficiency of the M-estimate with constant c (exact integrals). */
double rfi_mest_efficiency(rfi_mest_loss family, double c);
/* Its inverse. 0.95: Tukey 4.6851, Huber 1.345. Huber never falls below 2/pi, the median's efficiency: what is
 * wanted below it gets c = 0.001. */
double rfi_mest_tune(rfi_mest_loss family, double efficiency);

/* Multivariate Tukey biweight with one weight per vector of `dof` coordinates (vref):
 * asymptotic efficiency for rejection radius c, and its inverse. dof = 1 is the case above. */
double rfi_joint_efficiency(double dof, double c);
double rfi_joint_tune(double dof, double efficiency);
/* kappa_B = max(c_B / chi_B, 2): rejection radius in units of the median residual norm. The floor
 * keeps the iteration from collapsing onto one agent when dof is large; it binds for every dof above 4096. */
double rfi_joint_kappa(double dof, double efficiency);

/* Finite-sample tuning of REF: the constant (capped at RFI_FINITE_C_MAX) whose efficiency at the
 * Gaussian with n values is the wanted one, and the efficiency it achieves (less than wanted where
 * the cap binds). From a generated table for n = 3..64, interpolated; beyond, the loss 1/efficiency - 1 approaches its
 * limit like 1/n. n is the effective number of values, 1 / sum a^2, and need not be whole. n <= 2: any c gives the
 * mean. Made for efficiencies .80 to .99 (within .01); below, c stays above the table's smallest (2 for 1.4815 MAD,
 * Qn and S) and more than wanted may be achieved; above, the table goes on up to the cap. */
#define RFI_FINITE_C_MAX 12.0
typedef struct rfi_finite_tuning {
    double c;
    double achieved;
} rfi_finite_tuning;
rfi_finite_tuning rfi_finite_tune(rfi_scale_kind scale, double n, double efficiency);

#endif
