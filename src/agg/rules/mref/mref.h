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
#ifndef RFI_AGG_RULES_MREF_MREF_H
#define RFI_AGG_RULES_MREF_MREF_H

#include "base/memory.h"

#include <reef/agg.h>

#include <math.h>

enum { RFI_WINDOWS = 3 };

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
/* No honest average, nor any that a liar can cause, comes near this: they are clipped. */
#define RFI_MREF_LARGEST 1e12
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

/* The gate never opens beyond the tail it starts with: no row farther than 1 + 8 * 0.8 = 7.4 scales from the median counts. */
#define RFI_MREF_TAIL_MOST RFI_MREF_TAIL_START

/* Together. Products are averaged over twice the longest window: one misses colluders at z = .1, four is no better. */
enum { RFI_MREF_BANDS = 3, RFI_MREF_MET = RFI_MREF_BANDS, RFI_MREF_PAIR_NUMBERS };
/* Senders of a block, and places that have pairs: more senders than that are hardly ever heard together. */
enum { RFI_MREF_BLOCK = 256, RFI_MREF_PAIR_PLACES = 4096 };
/* Members it takes; looks per longest window; the least age of a typical sender, and rounds that two members were heard in. */
enum { RFI_MREF_TOGETHER_ROWS = 6, RFI_MREF_TOGETHER_LOOKS = 16, RFI_MREF_TOGETHER_FROM = 32 };
#define RFI_MREF_TOGETHER_MET 8.0
/* A liar without noise of its own must not have infinite correlations: no variance below so much of the typical one. */
#define RFI_MREF_TOGETHER_LEAST 0.05
/* The edge of the spectrum of independent noise fluctuates by about .6 q^(-2/3) of itself (Tracy and Widom): four to five times that. */
#define RFI_MREF_TOGETHER_EDGE 3.0
/* Two groups of noise are 3 + 45 / q apart once in 10^4 cuts. */
#define RFI_MREF_TOGETHER_APART 3.0
#define RFI_MREF_TOGETHER_APART_FEW 45.0
/* Within a quarter of their distance from the middle of two groups, it is doubtful who belongs where. */
#define RFI_MREF_TOGETHER_DOUBT 0.25
/* A cut may move the mean of the long averages away from the receiver's own average by so much of what noise leaves of one. A cut of colluders moves it
 * nearer, but for chance; the value was not tuned. */
#define RFI_MREF_TOGETHER_AWAY 0.5
/* Members are at most so many times younger than a typical sender, or than the longest window is long: who has its weight is judged. */
#define RFI_MREF_TOGETHER_AGE 4.0
/* Longest windows in which a lost weight comes back. 4: liars who watch their weight keep 2 to 3 dB, 8: 0.4 to 1.4. */
#define RFI_MREF_TOGETHER_REGAIN 8.0
/* Noise is shared from a correlation of 0.4 on, and four deviations of chance beyond that; fully 0.3 further on. One who adds as much noise of its
 * own as it copies has 0.7. And nobody can have 0.4 with more than six independent senders: few can be made to look like copies. The same
 * for groups: who has noise of its own but moves in a common rhythm is not left a voice. */
#define RFI_MREF_NOISE_NONE 0.4
#define RFI_MREF_NOISE_RISE 0.3
#define RFI_MREF_NOISE_CHANCE 4.0
/* Balance: senders without weight rise by so much of the gate's weight while those who have it double theirs. */
#define RFI_MREF_BALANCE_LEAST 0.01
/* Second opinion: a sender as far from the median as most counts 0.31, from 1.5 times as far on nothing; 2 is too mild for a third of the runs that it is
 * for. It is tried when disagreement fell by less than 5 % within half of the longest window, and goes on as long as the disagreement it leaves falls,
 * in itself and relative to that of all: at all in the first quarter of that window, by 10 % in each one after it, for 16 at most. Then it is not tried again before eight times the age: three
 * times saves some more runs, but honest agents that differ pay 2 dB in a run with a trial. */
#define RFI_MREF_OPINION_NONE 1.5
#define RFI_MREF_OPINION_FAR 4.0 /* distances beyond it are no more disagreement than this */
#define RFI_MREF_OPINION_STALLED 0.95
#define RFI_MREF_OPINION_GAIN 0.9
#define RFI_MREF_OPINION_SPREAD 0.5
enum { RFI_MREF_OPINION_LOOKS = 4, RFI_MREF_OPINION_LEAST = 2, RFI_MREF_OPINION_MOST = 16, RFI_MREF_OPINION_PAUSE = 8 };
/* Rounds that a state may have been told of: far beyond any run, and far from an overflow. */
#define RFI_MREF_ROUNDS_MOST (INT64_MAX / 4)
/* Steps of Lanczos' method. What acts together is looked at where it stands out of the other eigenvalues; a cut of averages may be made where it does not:
 * a gap of a hundredth of the spectrum leaves an error of 1e-7 after 40 steps. */
enum { RFI_MREF_AXIS_STEPS = 20, RFI_MREF_SPLIT_STEPS = 40 };

/* What H = 1 changes beside. Where honest agents differ for good averaging longer does not help, so the split has to go nearer to what chance
 * does (two groups of noise are 3 + 45 / n apart once in 10^4 cuts). Windows need hardly more room: their scale S has grown already. The
 * first form of the rule doubled the bounds of windows, and its split was no keener. */
#define RFI_MREF_SPREAD_WIDER 0.25
#define RFI_MREF_SPREAD_APART 3.0
#define RFI_MREF_SPREAD_APART_FEW 35.0
#define RFI_MREF_SPREAD_WIDER_FIRST 1.0
/* Averages over a few rounds are one and the same sample in all windows, and heterogeneous honest agents form groups in it: with 8 a sixth of such cuts in
 * the first 16 rounds are left, with 16 one in ten. */
#define RFI_MREF_SPLIT_YOUNG 16.0
typedef struct rfi_mref_tolerance {
    double wider;            /* bounds of windows and rhythm grow by this part */
    double apart, apart_few; /* the split needs apart + apart_few / n, */
    double young;            /* and young / t times as much while a typical age t is less than that */
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
    RFI_MREF_PRECISION, /* averages count for the centre by their precision */
    RFI_MREF_TOGETHER,
    RFI_MREF_PROBATION,
    RFI_MREF_BALANCE,
    RFI_MREF_OPINION, /* the second one */
    RFI_MREF_ADDITIONS, /* the first form of the rule: copies, and votes by them, the five parts above and what absence costs are left out, the
                           gate has no bound, the split does not wait, and spread is tolerated as it was there */
} rfi_mref_part;

/* Words of horizon and sketch. */
enum { RFI_MREF_AUTO = -1, RFI_MREF_FULL_MEMORY = -2 };

typedef struct rfi_mref_params {
    int64_t horizon; /* rounds; -1: from the step size */
    int64_t sketch;  /* D; -1: by the length of the model, -2: full */
    int64_t lazy;    /* evaluations per window; 0: in every round */
    int64_t forget;  /* rounds of absence after which a sender starts afresh */
    int64_t seed;    /* of the sketch; -1: that of the state */
    int without;     /* rfi_mref_part */
} rfi_mref_params;

/* What the rule tells of a sender: the factors its tests left. Its weight is the smallest of gate to energy, times the smaller one of copies and
 * together, times those of probation and of the second opinion, raised to that of the gate as far as balance needs (RFI_MREF_BALANCED). */
typedef enum rfi_mref_factor {
    RFI_MREF_BY_GATE,
    RFI_MREF_BY_SHORT, /* and the two longer windows */
    RFI_MREF_BY_SPLIT = RFI_MREF_BY_SHORT + RFI_WINDOWS,
    RFI_MREF_BY_RHYTHM,
    RFI_MREF_BY_ENERGY,
    RFI_MREF_BY_COPIES,
    RFI_MREF_BY_TOGETHER,
    RFI_MREF_BY_AGE,
    RFI_MREF_BY_OPINION,
    RFI_MREF_FACTORS
} rfi_mref_factor;
/* And of a round, for each window one after the other. */
typedef enum rfi_mref_number {
    RFI_MREF_ROUNDS,
    RFI_MREF_SPREAD_OF,
    RFI_MREF_SEPARATION,
    RFI_MREF_NUMBERS
} rfi_mref_number;
/* And after them. */
enum { RFI_MREF_APART = RFI_WINDOWS * RFI_MREF_NUMBERS, RFI_MREF_BALANCED, RFI_MREF_NUMBER_COUNT };

/* ---- memory ---- */

/* By which test a sender was judged at one window. */
enum { RFI_BY_WINDOW, RFI_BY_SPLIT, RFI_BY_RHYTHM, RFI_BY_COPIES, RFI_BY_COUNT };

/* What is kept of a sender beside its averages E_j, the vectors of its memory. No padding: it is saved as it is. */
typedef struct rfi_mref_trace {
    int64_t judged[RFI_WINDOWS];              /* its age when window j was last evaluated */
    double tail;                              /* T: mean square of q - 1, the tail of its distances */
    double energy;                            /* V: mean square of its clipped distances */
    double rhythm[RFI_WINDOWS];               /* F_j: mean square of its distances at window j */
    double factor[RFI_WINDOWS][RFI_BY_COUNT]; /* weights as last evaluated */
    double believed;                          /* its largest weight since the last look, by the tests gate to energy */
    double voice;                             /* its factor by copies then */
    double together;                          /* what it has left after acting together with others */
    double noise;                             /* one over the number of those that share its noise */
    double presence;                          /* part of the rounds it was heard in, when it was last heard */
} rfi_mref_trace;

/* And of all together. */
typedef struct rfi_mref_shared {
    double spread[RFI_WINDOWS];     /* H_j: 0 honest noise only .. 1 honest agents differ for good */
    double separation[RFI_WINDOWS]; /* I_j of the split, 0: none was made */
    double together;                /* separation of those who act together over the bound, when last looked at */
    /* Of the second opinion, as sums over this look so far, and as means over the last one (before: the one before). Level: logarithm of the scale;
     * near: disagreement of those it leaves, in squared scales; kept: the same relative to that of all. */
    double level_sum, level_last, level_before;
    double near_sum, near_last;
    double kept_sum, kept_last;
    int64_t rounds; /* of this look */
    int64_t looks;  /* so far */
    int64_t trial;  /* looks that the second opinion has counted for; 0: it does not count */
    int64_t pause;  /* it is not tried before this round */
} rfi_mref_shared;

enum { RFI_MREF_WORK = 10 };
/* Rows among which the centre and the axis of the split are looked for, if there are more of them. */
enum { RFI_MREF_SAMPLE = 256 };

/* One aggregation: what the library shows of it, and what the rule makes of that. Lies in the scratch of the memory, for the commit. */
typedef struct rfi_mref_view {
    const reef_recall *memory;   /* for the averages as they were */
    ptrdiff_t n;                 /* rows */
    ptrdiff_t self;              /* which row is the receiver's own, or -1 */
    ptrdiff_t numbers;           /* D */
    ptrdiff_t width;             /* D up to a multiple of 4: rows of averages end in zeros */
    double step;                 /* step size, 0: unknown */
    int64_t rounds;              /* t, this aggregation counted */
    const double *residual;      /* n x D: d_l */
    const double *norm;          /* n: r_l, +Inf if it overflows */
    const int64_t *age;          /* n: this aggregation counted */
    int64_t typical_age;         /* their lower median */
    double long_noise;           /* what independent noise would leave of an average over the longest window */
    bool own;                    /* few rows: the receiver's own decides */
    rfi_mref_trace *traces;      /* n: as they will be after this aggregation */
    rfi_mref_shared *shared;     /* likewise */
    double *spread, *separation; /* RFI_WINDOWS: in it */
    int64_t window[RFI_WINDOWS];
    double *clip;       /* n: y_l = clip_l d_l is what enters the averages */
    double *gate;       /* n: weight by the distance now */
    double *weight;     /* n: smallest of all, shared with copies */
    double *by_energy;  /* n */
    double *by_copies;  /* n: the largest of all windows */
    double *by_age;     /* n */
    double *by_opinion; /* n */
    double *average;    /* n x width: E_j of the window under way */
    double *work;       /* RFI_MREF_WORK n */
    double *
        matrix; /* sample^2 of distances, or a Gram matrix of at most that size and room for its first vector; or what together.c works on */
    double *look_raw; /* RFI_MREF_BLOCK */
    double *look_vector;
    double *look_variance;
    ptrdiff_t *look_index;
    bool *look_goes;
    const void **sample_rows; /* of the matrix, for kernels: with their scratch, and what they leave to others */
    void *sample_scratch;
    int32_t *sample_hard;
    double *line;     /* 3 x width */
    ptrdiff_t *index; /* 3 n */
} rfi_mref_view;

/* mref/memory.c */
extern const reef_memory rfi_mref_memory;
/* Begins the view of an aggregation, in the scratch of its memory. */
rfi_mref_view *rfi_mref_look(const rfi_mref_params *params, const reef_recall *recall);
/* Rate of the average of window j after `age` aggregations. */
double rfi_mref_rate(const rfi_mref_view *view, int window, int64_t age);
/* Members that are looked at together at a time in aggregations of n rows. */
ptrdiff_t rfi_mref_look_rows(ptrdiff_t n);

/* What an aggregation needs to know of all parts. */
typedef struct rfi_mref_round {
    const rfi_mref_params *params;
    rfi_mref_view *recall;
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

/* D for M coordinates. */
ptrdiff_t rfi_mref_numbers(const rfi_mref_params *params, ptrdiff_t length);

/* Vectors of n numbers to work with, from 0 to RFI_MREF_WORK - 1. mref/window.c has the first five, whoever it calls the next two; row
 * medians of distances, copies and q have the last three. */
enum { RFI_MREF_ROW_MEDIANS = RFI_MREF_WORK - 3, RFI_MREF_VOICE, RFI_MREF_Q };
static inline double *rfi_mref_work(const rfi_mref_round *round, int i)
{
    return round->recall->work + i * round->n;
}
static inline double *rfi_mref_average(const rfi_mref_view *view, ptrdiff_t l)
{
    return view->average + l * view->width;
}
double rfi_mref_flat(double r, double full, double none);
/* Median of n numbers; x stays as it is. */
double rfi_mref_median(const double *x, ptrdiff_t n, double *spare);
/* Median of n sizes, one per sender: the larger one of two, by heads and by votes. By votes, senders that had one voice together in their last rounds
 * count as one: many copies of a small message must not make the others look large. */
double rfi_mref_vote(const rfi_mref_view *view, const double *x, double *spare);
/* Inner product and Euclidean distance of two vectors of `width` numbers, a multiple of 4: four sums side by side, whatever the machine. They are here
 * because they are most of the work where models are short. */
static inline double rfi_mref_product(const double *x, const double *y, ptrdiff_t width)
{
    double a = 0;
    double b = 0;
    double c = 0;
    double d = 0;
    for (ptrdiff_t i = 0; i < width; i += 4) {
        a += x[i] * y[i];
        b += x[i + 1] * y[i + 1];
        c += x[i + 2] * y[i + 2];
        d += x[i + 3] * y[i + 3];
    }
    return (a + c) + (b + d);
}

static inline double rfi_mref_distance(const double *x, const double *y, ptrdiff_t width)
{
    double a = 0;
    double b = 0;
    double c = 0;
    double d = 0;
    for (ptrdiff_t i = 0; i < width; i += 4) {
        a += (x[i] - y[i]) * (x[i] - y[i]);
        b += (x[i + 1] - y[i + 1]) * (x[i + 1] - y[i + 1]);
        c += (x[i + 2] - y[i + 2]) * (x[i + 2] - y[i + 2]);
        d += (x[i + 3] - y[i + 3]) * (x[i + 3] - y[i + 3]);
    }
    return sqrt((a + c) + (b + d));
}
/* Is a part left out, by itself or with all additions? */
bool rfi_mref_left_out(const rfi_mref_params *params, rfi_mref_part part);

/* mref/gate.c: tail, gate and what enters the averages; energy. */
void rfi_mref_gate(rfi_mref_round *round, double scale);
void rfi_mref_energy(rfi_mref_round *round);
/* mref/shares.c: absence costs age, at the beginning of a round; probation and balance at its end. balance returns the factor c, 1: there was enough weight. */
void rfi_mref_discount_absence(const reef_recall *recall, const rfi_mref_view *view);
/* The part of the last rounds, two longest windows of them, that senders were heard in, and what is left of it `gap` rounds later. */
void rfi_mref_count_presence(const reef_recall *recall, const rfi_mref_view *view);
double rfi_mref_faded(const rfi_mref_view *view, double presence, int64_t gap);
void rfi_mref_put_on_probation(const rfi_mref_round *round);
double rfi_mref_balance(const rfi_mref_round *round, const double *a);
/* mref/opinion.c: a second opinion, where learning has stalled and honest senders differ. */
void rfi_mref_ask_again(const rfi_mref_round *round, double scale);
/* mref/pairs.c: products of this round enter those of pairs; averages have been moved. */
void rfi_mref_move_pairs(const reef_recall *recall, const rfi_mref_view *view);
/* mref/together.c: who acts together? After an aggregation, every so many rounds. */
int64_t rfi_mref_look_every(const rfi_mref_view *view);
void rfi_mref_look_together(const rfi_mref_params *params, const reef_recall *recall, const rfi_mref_view *view);
/* mref/regroup.c: senders that are heard move into the blocks of those they are heard with. Behind all else, because places change. */
void rfi_mref_regroup(const reef_recall *recall, const rfi_mref_view *view);
/* mref/correlate.c: the q x q inner products G become R; var: q variances; room in mean for q numbers. False: nothing moves. */
bool rfi_mref_correlate(double *gram, ptrdiff_t q, double *mean, double *var);
/* mref/axis.c: first eigenvalue of a symmetric q x q matrix, and its vector, in at most `steps` steps (up to RFI_MREF_SPLIT_STEPS); room for (steps + 1) q
 * numbers. 0 if the matrix vanishes; the vector is any then. */
double rfi_mref_first_vector(const double *a, ptrdiff_t q, int steps, double *vector, double *room);
/* mref/window.c: window j. */
void rfi_mref_window(rfi_mref_round *round, int j);
/* mref/centre.c: distances between the averages of the window under way (a sample of them), and the medians of its rows. */
void rfi_mref_distances(const rfi_mref_round *round);
/* The centre of n averages of D numbers. */
void rfi_mref_centre(const rfi_mref_round *round, double *centre);
/* mref/copies.c: voice[l] = 1 / c_l. */
void rfi_mref_copies(const rfi_mref_round *round, const double *beta, double *voice);
/* mref/split.c: best cut of n numbers, sorted by `order`, into the first `cut` and the rest; returns how far apart in pooled deviations. */
double rfi_mref_best_cut(const double *along, ptrdiff_t n, const ptrdiff_t *order, ptrdiff_t *cut);
/* Lowers split[l] for the smaller of two groups far apart among rows with beta > 1/2; returns how far apart they are. */
double rfi_mref_split(const rfi_mref_round *round, double spread, const double *beta, const double *noise,
                      double *split);

#endif
