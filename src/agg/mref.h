/* MREF: weights from memory, values from now. The inside of the rule, and its constants.
 *
 * A memoryless rule cannot see colluders who stay inside the honest spread. But a bias persists and honest noise does not:
 * averaged over W rounds it shrinks like 1 / sqrt(2 W - 1). So every sender's residuals are averaged over three windows, the
 * weights come from these averages, and the values from the messages of this round alone.
 *
 *   t      rounds                         q_l = r_l / s   distance from the median over the median of such distances
 *   T_l    mean of (q_l - 1)^2            tau^2           its median: the tail of honest distances
 *   V_l    mean of min(q_l, g1)^2         v               median of sqrt V: the size of an honest residual
 *   E_jl   average residual, window W_j   S_p = v / sqrt(2 W - 1): what independent noise would leave of it
 *   h      spread of honest norms around 1, from the dimension (h0) and the tail (tau^2 - h0 over the rounds averaged)
 *   H_j    0: the averages scatter like noise .. 1: honest agents differ for good, so that distance is no guilt
 *   z      small neighbourhoods: medians of few numbers are rough
 *   c_l    copies: senders whose averages coincide with those of l have one voice together, 1 / c_l each
 *   flat(r; k1, k2) = 1 up to k1, 0 from k2, (1 - u^2)^2 with u = (r - k1) / (k2 - k1) between
 */
#ifndef RFI_AGG_MREF_H
#define RFI_AGG_MREF_H

#include "agg/recall.h"

/* ---- constants, each with its reason ---- */

/* Windows. The first reacts, the last is 10 / mu (theory: the recursion itself averages over 1 / mu, and the floor stays O(mu) for W ~
 * 1 / mu), the one between is their geometric mean: 8, 64, 512 at mu = 0.02. */
enum { RFI_MREF_SHORTEST = 8, RFI_MREF_LONGEST = 512, RFI_MREF_HORIZON_MAX = 8192 };
#define RFI_MREF_HORIZON_STEPS 10.0

/* Gate: full weight up to 1 + 4 tau, none from 1 + 8 tau. tau starts at 0.8, wide enough for single samples (batch 1). */
#define RFI_MREF_GATE_FULL 4.0
#define RFI_MREF_GATE_NONE 8.0
#define RFI_MREF_TAIL_START 0.64 /* 0.8^2 */
#define RFI_MREF_TAIL_CAP 8.0    /* q beyond it says nothing more about the tail */
#define RFI_MREF_TAIL_DELAY 8.0  /* rounds that the starting value counts for */
#define RFI_MREF_TAIL_RATE (1.0 / 64)

/* Windows and energies: full weight up to 2 h above 1, none from 6 h: honest norms exceed the first in about 3 % of the rounds. */
#define RFI_MREF_FULL 2.0
#define RFI_MREF_NONE 6.0
/* h0 = 1 / (2 D) is the variance of a chi norm over its mean; D counts up to 16, because gradient noise has a low effective rank. */
#define RFI_MREF_RANK 16.0
/* S is never below 0.9 of what noise would leave: liars without noise cannot shrink the scale. */
#define RFI_MREF_FLOOR 0.9
/* H grows from 0 to 1 while S goes from 1.4 to 2.0 times what noise would leave. */
#define RFI_MREF_SPREAD_FROM 1.4
#define RFI_MREF_SPREAD_TO 2.0
/* Energies: tolerance that stays however long one averages (honest agents differ a little), without and with spread. */
#define RFI_MREF_ENERGY_FULL 0.25
#define RFI_MREF_ENERGY_NONE 0.75
#define RFI_MREF_ENERGY_FULL_SPREAD 0.6
#define RFI_MREF_ENERGY_NONE_SPREAD 1.25
#define RFI_MREF_RHYTHM_CAP 4.0 /* one wild round says no more than this */
/* z = 1 + 25 / n^2; 1 + 60 / n^2 where the receiver's own row decides (n <= 5). */
#define RFI_MREF_FEW 25.0
#define RFI_MREF_FEW_OWN 60.0
enum { RFI_MREF_OWN_ROWS = REEF_FEW_ROWS };
/* Centre and scale: reweighted so often. */
enum { RFI_MREF_STEPS = 4 };
/* Split: needs so many accepted agents; two groups of noise are rarely 5 + 25 / n pooled deviations apart; at most two cuts. */
enum { RFI_MREF_SPLIT_ROWS = 8, RFI_MREF_SPLIT_GROUP = 2, RFI_MREF_SPLIT_CUTS = 2 };
#define RFI_MREF_SPLIT_ACCEPTED 0.5
#define RFI_MREF_SPLIT_APART 5.0
#define RFI_MREF_SPLIT_APART_FEW 25.0
#define RFI_MREF_SPLIT_NONE 1.3
/* Copies: averages nearer to each other than 0.15 of the typical distance are the same voice, from 0.3 on they are not. Independent noise in
 * ten dimensions comes as near as 0.3 once in 10^4 pairs, and at all windows at once hardly ever. In D < 10 dimensions it comes as near as
 * 0.3^(10 / D) as often, which is the bound there. */
#define RFI_MREF_COPY_NONE 0.3
#define RFI_MREF_COPY_FULL 0.5 /* of the bound */
#define RFI_MREF_COPY_NUMBERS 10.0
/* Senders so much younger than the others that their averages are twice as noisy are not judged by the split. */
#define RFI_MREF_SPLIT_NOISE 2.0

/* What H = 1 changes beside. Where honest agents differ for good averaging longer does not help, so the split has to go nearer to what chance
 * does (two groups of noise are 3 + 45 / n apart once in 10^4 cuts). Windows need hardly more room: their scale S has grown already. The
 * first form of the rule doubled the bounds of windows, and its split was no keener. */
#define RFI_MREF_SPREAD_WIDER 0.25
#define RFI_MREF_SPREAD_APART 3.0
#define RFI_MREF_SPREAD_APART_FEW 35.0
#define RFI_MREF_SPREAD_WIDER_FIRST 1.0
typedef struct rfi_mref_tolerance {
    double wider;            /* bounds of windows and rhythm grow by this part */
    double apart, apart_few; /* the split needs apart + apart_few / n */
} rfi_mref_tolerance;

/* ---- parameters ---- */

/* A part that can be left out, to see what it is worth. */
typedef enum rfi_mref_part {
    RFI_MREF_ALL,
    RFI_MREF_GATE,
    RFI_MREF_SHORT,
    RFI_MREF_MIDDLE,
    RFI_MREF_LONG,
    RFI_MREF_SPLIT,
    RFI_MREF_RHYTHM,
    RFI_MREF_ENERGY,
    RFI_MREF_MEDOID,
    RFI_MREF_SPREAD,
    RFI_MREF_TAIL,
    RFI_MREF_NOISE_FLOOR,
    RFI_MREF_COPIES,
    RFI_MREF_ADDITIONS, /* copies, and tolerance of spread as the first form of the rule had it: the numpy specification of that form */
} rfi_mref_part;

typedef struct rfi_mref_params {
    int64_t horizon; /* rounds; -1: from the step size */
    int64_t sketch;  /* D; -1: by the length of the model, -2: full */
    int64_t lazy;    /* evaluations per window; 0: in every round */
    int64_t forget;  /* rounds of absence after which a sender starts afresh */
    int64_t seed;    /* of the sketch */
    int without;     /* rfi_mref_part */
} rfi_mref_params;

/* What an aggregation needs to know of all parts. */
typedef struct rfi_mref_round {
    const rfi_mref_params *params;
    rfi_recall *recall;
    ptrdiff_t n;
    bool own;         /* few rows: the receiver's own decides */
    double tau2;      /* tau^2 */
    double gate_full; /* g1 */
    double h0, excess;
    double few;     /* z */
    double typical; /* v */
    int64_t age;    /* of a typical sender: lower median */
    double *q;      /* n: r / s */
    const rfi_mref_tolerance *tolerance;
} rfi_mref_round;

/* Memory of a rule of this kind: D for M coordinates, and the rate of evaluations. */
ptrdiff_t rfi_mref_numbers(const void *params, ptrdiff_t total);
uint64_t rfi_mref_key(const void *params);

/* Vectors of n numbers to work with, from 0 to RFI_RECALL_WORK - 1. mref_window.c has the first five, whoever it calls the next two; row
 * medians of distances, copies and q have the last three. */
enum { RFI_MREF_ROW_MEDIANS = RFI_RECALL_WORK - 3, RFI_MREF_VOICE, RFI_MREF_Q };
static inline double *rfi_mref_work(const rfi_mref_round *round, int i)
{
    return round->recall->work + i * round->n;
}
double rfi_mref_flat(double r, double full, double none);
/* Median of n numbers; x stays as it is. */
double rfi_mref_median(const double *x, ptrdiff_t n, double *spare);
/* Euclidean distance of two vectors of `count` numbers. */
double rfi_mref_distance(const double *x, const double *y, ptrdiff_t count);

/* mref_gate.c: tail, gate and what enters the averages; energy. */
void rfi_mref_gate(rfi_mref_round *round, double scale);
void rfi_mref_energy(rfi_mref_round *round);
/* mref_window.c: window j. */
void rfi_mref_window(rfi_mref_round *round, int j);
/* mref_centre.c: distances between the averages of the window under way (a sample of them), and the medians of its rows. */
void rfi_mref_distances(const rfi_mref_round *round);
/* The centre of n averages of D numbers. */
void rfi_mref_centre(const rfi_mref_round *round, double *centre);
/* mref_copies.c: voice[l] = 1 / c_l. */
void rfi_mref_copies(const rfi_mref_round *round, const double *beta, double *voice);
/* mref_split.c: lowers split[l] for the smaller of two groups far apart among rows with beta > 1/2; returns how far apart they are. */
double rfi_mref_split(const rfi_mref_round *round, double spread, const double *beta, const double *noise,
                      double *split);

#endif
