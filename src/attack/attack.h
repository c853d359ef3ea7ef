/* Internals of attacks: the kinds, and what several of them need.
 *
 * Notation: x_1..x_n are the rows known, M coordinates of R lanes (repetitions) each; mu and sigma their mean and standard deviation
 * (divisor n) per coordinate and lane. Sums run in double, over rows in the order given.
 */
#ifndef RFI_ATTACK_ATTACK_H
#define RFI_ATTACK_ATTACK_H

#include "base/registry.h"
#include "num/rng.h"

#include <float.h>
#include <reef/attack.h>

extern const rfi_family rfi_family_attack;

#define REEF_ATTACK(name) extern const reef_attack_kind rfi_attack_##name;
#include "attack/attack_list.h"
#undef REEF_ATTACK

/* To float, without leaving the finite numbers; NaN stays. */
static inline float rfi_to_float(double x)
{
    return x > (double)FLT_MAX ? FLT_MAX : x < -(double)FLT_MAX ? -FLT_MAX : (float)x;
}

/* Sends own: for what is honest, and when nothing is known. Returns true. */
bool rfi_attack_honest(const reef_attack_view *view, float *out);

/* ---- work ---- */

/* Row number i of the view's work. */
float *rfi_attack_row(const reef_attack_view *view, ptrdiff_t i);
/* Room for 2 (known + 2) pointers in the view's work. */
const float **rfi_attack_pointers(const reef_attack_view *view);

/* ---- what to measure deviations from ---- */

/* Messages are models. Attacks that the literature states for gradients or updates take the update to be message - previous;
 * with reference=zero they treat the message itself so. */
typedef enum rfi_reference { RFI_REFERENCE_ZERO, RFI_REFERENCE_PREVIOUS } rfi_reference;
extern const char *const rfi_references[];

#define RFI_FIELD_REFERENCE(params, default)                                                                           \
    {                                                                                                                  \
        .name = "reference", .type = REEF_FIELD_WORD, .offset = offsetof(params, reference), .preset = default,        \
        .unit = "", .help = "what updates are measured from: zero, or the malicious agent's model before this round",  \
        .words = rfi_references                                                                                        \
    }

/* The row of the reference; NULL: zero. */
static inline const float *rfi_reference_row(const reef_attack_view *view, int reference)
{
    return reference == RFI_REFERENCE_PREVIOUS ? view->previous : NULL;
}
/* SAME or SAME_PREVIOUS. */
static inline unsigned rfi_reference_trait(int reference)
{
    return reference == RFI_REFERENCE_PREVIOUS ? REEF_ATTACK_SAME_PREVIOUS : REEF_ATTACK_SAME;
}

/* ---- statistics of the rows known ---- */

/* Coordinates (times lanes) handled at a time, so that sums in double stay on the stack. */
enum { RFI_ATTACK_BLOCK = 256 };
/* Numbers of the block that begins at `from`. */
static inline ptrdiff_t rfi_block_count(const reef_attack_view *view, ptrdiff_t from)
{
    return view->length - from < RFI_ATTACK_BLOCK ? view->length - from : RFI_ATTACK_BLOCK;
}

/* mu and sigma (unless NULL) of the numbers from..from+count-1 of the rows, count <= RFI_ATTACK_BLOCK. Without rows: own and 0. */
void rfi_attack_moments(const reef_attack_view *view, ptrdiff_t from, ptrdiff_t count, double *mean, double *deviation);
/* Noise of standard deviation `size` from the stream of an agent in this round. */
void rfi_attack_normal(const reef_attack_view *view, ptrdiff_t agent, double size, float *out);
/* out = mean of the rows known + (shift + out) times their deviation. */
void rfi_attack_shift(const reef_attack_view *view, double shift, float *out);
/* mu as a row. */
void rfi_attack_mean(const reef_attack_view *view, float *mean);

/* z of ALIE for h honest agents and f malicious ones; `all`: the share is of all agents instead of the honest ones. */
double rfi_alie_z(ptrdiff_t honest, ptrdiff_t malicious_count, bool all);

/* ---- sums over whole rows, lane by lane ---- */

/* Lanes that one call sums at most. */
enum { RFI_LANE_GROUP = 16 };

/* sum[j] = sum over coordinates of (a - b) d in lane first + j, j < count <= RFI_LANE_GROUP. b NULL: zero; d NULL: a - b. */
void rfi_lane_products(const reef_attack_view *view, ptrdiff_t first, ptrdiff_t count, const float *a, const float *b,
                       const float *d, double *sum);
/* Lanes of the group that begins with lane `first`. */
static inline ptrdiff_t rfi_lane_count(const reef_attack_view *view, ptrdiff_t first)
{
    return view->lanes - first < RFI_LANE_GROUP ? view->lanes - first : RFI_LANE_GROUP;
}

/* ---- trying the rule in force ---- */

/* The rule on the rows known and copies of `candidate`, as many per known row as there are malicious agents per honest one, at least one and
 * at most one more than rows are known. False if there is no rule or it fails. Needs rfi_attack_pointers. */
bool rfi_attack_try(const reef_attack_view *view, const float *candidate, float *result);

/* ---- random numbers ---- */

/* The stream of one lane. agent: the malicious agent, or 0 for what they all have in common; round: that of the view, or 0 for what is constant. */
void rfi_attack_rng(const reef_attack_view *view, ptrdiff_t lane, ptrdiff_t agent, int64_t round, rfi_rng *rng);

#endif
