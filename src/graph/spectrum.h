/* Eigenvalues of a network: what perron.c, lanczos.c and power.c share.
 *
 * The operator is A of the honest agents among themselves: links from malicious agents are left out, and each honest column is scaled to sum one.
 * Columns sum to one, so 1'A = 1': the Perron vector p is the fixed point, and vectors of sum zero stay so. */
#ifndef RFI_GRAPH_SPECTRUM_H
#define RFI_GRAPH_SPECTRUM_H

#include "graph/graph.h"

typedef struct rfi_operator {
    const reef_context *context;
    const reef_csr *csr;
    const bool *malicious; /* or NULL */
    double *scale;         /* K: one over the honest weight of each column; 0 for malicious agents */
    ptrdiff_t honest;
    double tolerance;
    ptrdiff_t max_iterations;
} rfi_operator;

static inline bool rfi_operator_malicious(const rfi_operator *op, ptrdiff_t k)
{
    return op->malicious && op->malicious[k];
}

/* y = A x; entries of malicious agents are 0 in y and ignored in x. */
void rfi_operate(const rfi_operator *op, const double *x, double *y);

/* p if a_lk p_k = a_kl p_l has a solution: exact, in one walk. *reversible says whether; if false, p is undefined. The honest agents must be
 * strongly connected. */
reef_status rfi_perron_reversible(const rfi_operator *op, double *p, bool *reversible, reef_error *error);
/* p by power iteration. lazy: of (I + A) / 2, which converges for periodic A too. */
reef_status rfi_perron_power(const rfi_operator *op, bool lazy, double *p, reef_spectrum *spectrum, reef_error *error);

/* The second largest modulus of an eigenvalue: for reversible A, and for any. Both fill in the second_ members. */
reef_status rfi_second_reversible(const rfi_operator *op, const double *p, reef_spectrum *spectrum, reef_error *error);
reef_status rfi_second_general(const rfi_operator *op, const double *p, reef_spectrum *spectrum, reef_error *error);

/* x becomes a random direction, the same every time. */
void rfi_random_direction(const rfi_operator *op, double *x);
double rfi_dot(const double *x, const double *y, ptrdiff_t n);

#endif
