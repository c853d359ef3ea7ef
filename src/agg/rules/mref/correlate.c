/* MREF: correlations of senders from inner products, see mref/together.c for what they are for. */
#include "agg/rules/mref/mref.h"

#include <math.h>

/* G becomes C; returns its trace. */
static double centre(double *gram, ptrdiff_t q, double *mean)
{
    double all = 0;
    double trace = 0;
    for (ptrdiff_t i = 0; i < q; i++) {
        mean[i] = 0;
        for (ptrdiff_t j = 0; j < q; j++) {
            mean[i] += gram[i * q + j] / (double)q;
        }
        all += mean[i] / (double)q;
    }
    for (ptrdiff_t i = 0; i < q; i++) {
        for (ptrdiff_t j = 0; j < q; j++) {
            gram[i * q + j] += all - mean[i] - mean[j];
        }
        trace += gram[i * q + i];
    }
    return trace;
}

bool rfi_mref_correlate(double *gram, ptrdiff_t q, double *mean, double *var)
{
    double n = (double)q;
    double typical = centre(gram, q, mean) / (n - 1);
    for (ptrdiff_t i = 0; i < q; i++) {
        double own = (gram[i * q + i] - typical / n) / (1 - 2 / n);
        var[i] = fmax(own, RFI_MREF_TOGETHER_LEAST * typical);
    }
    for (ptrdiff_t i = 0; typical > 0 && i < q; i++) {
        for (ptrdiff_t j = 0; j < q; j++) {
            double beyond = gram[i * q + j] + (var[i] + var[j] - typical) / n;
            gram[i * q + j] = i == j ? 0 : beyond / sqrt(var[i] * var[j]);
        }
    }
    return typical > 0;
}
