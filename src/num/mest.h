/* M-estimates of location with a fixed scale: Tukey's biweight and Huber's function.
 *
 *   x_l  values, a_l  weights (> 0, sum 1), s  scale (> 0, fixed), m  location, c  tuning constant
 *   r = (x - m) / s ;  psi(r) = r b(r)
 *   Tukey  b(r) = (1 - min(|r|/c, 1)^2)^2      Huber  b(r) = min(1, c/|r|)
 *
 * The ratio is clipped before it is squared, so no finite outlier overflows.
 * Wherever weights are taken, a may be NULL (equal weights), and its sum only scales the objective.
 */
#ifndef RFI_NUM_MEST_H
#define RFI_NUM_MEST_H

#include <stdbool.h>
#include <stddef.h>

typedef enum rfi_mest_loss { RFI_TUKEY, RFI_HUBER } rfi_mest_loss;

typedef struct rfi_mest {
    rfi_mest_loss family;
    double c;     /* tuning constant, in scales */
    double tol;   /* stop when the stationary point is within tol * s */
    int max_iter; /* cap on Newton steps */
} rfi_mest;

typedef struct rfi_location {
    double value;
    int iterations;
    bool converged;
} rfi_location;

/* b(r) for one value: 1 at the centre, 0 (Tukey) when rejected. */
double rfi_mest_weight(const rfi_mest *est, double x, double m, double s);

/* Sum of a_l rho((x_l - m)/s), rho' = psi: what the estimate minimises. */
double rfi_mest_objective(const rfi_mest *est, const double *x, const double *a, ptrdiff_t n, double m, double s);

typedef struct rfi_mest_move {
    double step;     /* sum a b d / max(sum a psi', guard sum a b); 0 when every value has weight 0 */
    double distance; /* |sum a b d / sum a psi'|: how far the stationary point is; infinite where psi' is no help */
} rfi_mest_move;

/* One guarded Newton step from m. With guard >= 1/2 the objective does not increase. */
rfi_mest_move rfi_mest_step(const rfi_mest *est, const double *x, const double *a, ptrdiff_t n, double m, double s,
                            double guard);

/* Guarded Newton from `start`:
 *   m += clamp( sum a b d / max(sum a psi', g sum a b), -s, +s ),  d = x - m
 * g = 0.3 with the clamp for the first 6 steps, then g = 0.5 (at most twice the IRLS step, hence
 * monotone descent), halved where it turns back. Same fixed points as IRLS. Ends when the unguarded
 * step is within tol * s (where the guard binds, steps are shorter than what is left) or m stands still.
 * All |x| must be below 2^1000. */
rfi_location rfi_mest_solve(const rfi_mest *est, const double *x, const double *a, ptrdiff_t n, double start, double s);

#endif
