/* Classifiers: layers of units on a data set, cross-entropy loss. Without hidden layers: softmax and logistic regression.
 *
 *   a_0 = x,  z_l = W_l a_(l-1) + b_l,  a_l = h(z_l) for hidden layers      W_l: out_l x in_l
 *   classes > 2 or two outputs:  p = softmax(z_L), loss -log p_y            one output:  p = 1 / (1 + exp(-z_L)) of class 1
 *
 * A model holds, layer by layer, W_l row by row and then b_l (if there are biases).
 */
#ifndef RFI_PROBLEM_NETWORK_H
#define RFI_PROBLEM_NETWORK_H

#include "base/memory.h"
#include "problem/finite.h"

enum { RFI_LAYERS_MAX = 8 };
enum { RFI_RELU, RFI_TANH };

typedef struct rfi_layer {
    ptrdiff_t in, out;
    ptrdiff_t weights; /* where W_l and b_l begin in a model */
    ptrdiff_t biases;
} rfi_layer;

typedef struct rfi_network {
    rfi_finite finite;
    rfi_layer layers[RFI_LAYERS_MAX];
    ptrdiff_t depth;     /* layers */
    ptrdiff_t dimension; /* M */
    bool biased;
    int activation;
    uint64_t seed;
} rfi_network;

/* What a kind asks for. */
typedef struct rfi_network_plan {
    const char *name;
    const ptrdiff_t *hidden; /* units of the hidden layers */
    ptrdiff_t hidden_count;  /* less than RFI_LAYERS_MAX */
    bool single;             /* two classes, one output */
    bool biased;
    int activation;
} rfi_network_plan;

reef_status rfi_network_create(const rfi_finite_params *params, const rfi_network_plan *plan,
                               const reef_problem_setup *setup, void **state, reef_error *error);

/* Entries of the problems. */
void rfi_network_destroy(void *state);
ptrdiff_t rfi_network_dimension(const void *state);
size_t rfi_network_work_size(const void *state, ptrdiff_t size, ptrdiff_t lanes);
void rfi_network_start(const void *state, ptrdiff_t lanes, ptrdiff_t repetition, float *model);
void rfi_network_gradients(const void *state, const reef_batch *batch);
void rfi_network_score(const void *state, const float *model, reef_score *score, void *memory);
ptrdiff_t rfi_network_samples(const void *state, ptrdiff_t agent);

/* ---- between the files ---- */

/* Rows done at once: larger mini-batches are done in pieces of this size, so that work space is bounded. */
enum { RFI_ROWS_MAX = 256 };

/* Work space of one thread, for up to `room` rows. */
typedef struct rfi_network_work {
    ptrdiff_t rows;
    float *values[RFI_LAYERS_MAX + 1]; /* a_l, rows x out_l; values[0]: the samples */
    float *slopes[2];                  /* derivatives of the loss by z_l, turn by turn */
    ptrdiff_t *index;                  /* numbers of the samples */
    int32_t *labels;
    ptrdiff_t *hits; /* per class: right, and all */
} rfi_network_work;

/* Lays it out for `room` rows in the arena (which may only measure). */
void rfi_network_lay_out(const rfi_network *net, ptrdiff_t room, rfi_arena *arena, rfi_network_work *work);
/* Fetches samples index[0..rows-1]; flipped: y -> classes - 1 - y. */
void rfi_network_fetch(const rfi_network *net, bool flipped, rfi_network_work *work);
/* values[0] -> values[depth], the last being z_L. */
void rfi_network_forward(const rfi_network *net, const float *model, rfi_network_work *work);
/* slopes of the last layer -> gradient, added to what is there if `add`. Which of work->slopes they are in: [0]. */
void rfi_network_backward(const rfi_network *net, const float *model, bool add, float *gradient,
                          rfi_network_work *work);

#endif
