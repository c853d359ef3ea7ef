/* How an agent steps: the fields all strategies share, and one gradient step. For runs and for members. */
#ifndef RFI_LEARN_STEP_H
#define RFI_LEARN_STEP_H

#include <stddef.h>
#include <stdint.h>

typedef enum rfi_schedule { RFI_CONSTANT, RFI_INVERSE, RFI_SQRT, RFI_PIECEWISE } rfi_schedule;

typedef struct rfi_adapt {
    double mu;
    int schedule;  /* rfi_schedule */
    double decay;  /* rounds after which 1/t and 1/sqrt(t) have halved (or divided by sqrt 2) the step */
    double factor; /* piecewise: factor per `every` rounds */
    int64_t every;
    int64_t batch; /* samples per gradient, 0: all */
    double momentum;
} rfi_adapt;

/* The step size in a round, times an agent's own factor. */
double rfi_step_at(const rfi_adapt *adapt, double factor, int64_t round);
/* to = base - mu to, where to holds the gradient. */
void rfi_step_move(ptrdiff_t length, const float *restrict base, float mu, float *restrict to);
/* velocity = beta velocity + (1 - beta) gradient; the gradient becomes it. */
void rfi_step_smooth(ptrdiff_t length, float beta, float *restrict velocity, float *restrict gradient);

#endif
