/* Robust scales of one column.
 *
 *   MAD   median |x - centre|; times a factor that makes it estimate the Gaussian sigma.
 *   Qn    2.2219 d_n times the k-th smallest of |x_i - x_j|, i < j; k = C(h, 2), h = n/2 + 1
 *         (Rousseeuw and Croux 1993; d_n from Croux and Rousseeuw 1992).
 *   S     the pair (m, s) with the least s among those with  mean rho(|x - m| / (c0 s)) = 1/2,
 *         rho(u) = 1 - (1 - min(u, 1)^2)^3, c0 = 1.54764: Tukey's biweight with 50 % breakdown and consistency at
 *         the Gaussian (Rousseeuw and Yohai 1984). s(m) below denotes the M-scale, the root for fixed m.
 */
#include "num/scale.h"

#include "num/mest.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MAD_ROBUSTSP 1.4815
#define MAD_EXACT 1.482602218505602 /* 1 / normal quantile of 3/4 */

/* E[k_n MAD] = sigma for n Gaussian values and midpoint medians, n = 2, 3, .. 20 (Monte Carlo). */
static const double mad_factors[] = {1.7707102871294715, 2.2053259426217178, 2.0152553076058974, 1.8036841108694401,
                                     1.7621588055784745, 1.6887536242281667, 1.6715411756889635, 1.6342597156858687,
                                     1.6251485661734275, 1.6029883166521748, 1.5976107370086448, 1.5800958550631938,
                                     1.5756002020415087, 1.5657848842306266, 1.5639117408543421, 1.5546854139283972,
                                     1.5540448877906472, 1.5463868136922403, 1.5451138781174096};
#define MAD_FACTORS_LAST 20.0

/* k_n for a whole number n >= 2. */
static double finite_mad_factor(double n)
{
    return n <= MAD_FACTORS_LAST ? mad_factors[(int)n - 2] : MAD_EXACT * n / (n - 0.8);
}

double rfi_mad_factor(rfi_scale_kind kind, double n)
{
    if (kind == RFI_SCALE_MAD)
        return MAD_ROBUSTSP;
    if (kind != RFI_SCALE_MAD_FINITE)
        return MAD_EXACT;
    const double whole = n > 2.0 ? floor(n) : 2.0;
    const double part = n > 2.0 ? n - whole : 0.0;
    return (1.0 - part) * finite_mad_factor(whole) + part * finite_mad_factor(whole + 1.0);
}

double rfi_mad(const double *x, ptrdiff_t n, double centre, double *spare)
{
    assert(n >= 1);
    for (ptrdiff_t l = 0; l < n; l++)
        spare[l] = fabs(x[l] - centre);
    return rfi_median(spare, n, RFI_MEDIAN_AVERAGE);
}

double rfi_wmad(const double *x, const double *a, ptrdiff_t n, double centre, double half_tol, double *spare,
                ptrdiff_t *order, ptrdiff_t *order_spare)
{
    assert(n >= 1);
    for (ptrdiff_t l = 0; l < n; l++)
        spare[l] = fabs(x[l] - centre);
    rfi_argsort(spare, n, order, order_spare);
    return rfi_wmedian(spare, a, order, n, half_tol, RFI_MEDIAN_AVERAGE);
}

/* ---- Qn ---- */

#define QN_FACTOR 2.2219

/* d_n of Croux and Rousseeuw (1992). */
static double qn_finite_factor(ptrdiff_t n)
{
    static const double small[] = {0.399, 0.994, 0.512, 0.844, 0.611, 0.857, 0.669, 0.872}; /* n = 2..9 */
    if (n <= 9)
        return small[n - 2];
    return (double)n / ((double)n + (n % 2 == 1 ? 1.4 : 3.8));
}

/* Number of pairs i < j of the sorted column with x_j - x_i <= limit. The rounded difference is monotone in both
 * arguments, so the first partner of j only moves right. */
static int64_t pairs_within(const double *sorted, ptrdiff_t n, double limit)
{
    int64_t count = 0;
    ptrdiff_t first = 0;
    for (ptrdiff_t j = 1; j < n; j++) {
        while (sorted[j] - sorted[first] > limit)
            first++;
        count += j - first;
    }
    return count;
}

static double double_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* k-th smallest pairwise difference (k from 1), exactly: non-negative doubles are ordered like their bit patterns,
 * so bisection over those ends at the answer after at most 63 counts. */
static double kth_difference(const double *sorted, ptrdiff_t n, int64_t k)
{
    const double range = sorted[n - 1] - sorted[0];
    uint64_t low = 0;
    uint64_t high;
    memcpy(&high, &range, sizeof high);
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (pairs_within(sorted, n, double_of_bits(mid)) >= k)
            high = mid;
        else
            low = mid + 1;
    }
    return double_of_bits(low);
}

double rfi_qn(const double *x, ptrdiff_t n, double *spare)
{
    assert(n >= 1);
    if (n < 2)
        return 0.0;
    for (ptrdiff_t l = 0; l < n; l++)
        spare[l] = x[l];
    rfi_sort(spare, n);
    const int64_t h = n / 2 + 1;
    return QN_FACTOR * qn_finite_factor(n) * kth_difference(spare, n, h * (h - 1) / 2);
}

/* ---- S-estimate ---- */

#define S_MAX_STEPS 200
#define S_TOL 1e-12            /* error of the location, in scales */
#define M_SCALE_TOL 1e-8       /* last Newton step, relative */
#define M_SCALE_MAX_STEPS 3000 /* doubling from the smallest to the largest double takes 2100 */

static const rfi_mest s_family = {RFI_TUKEY, 1.54764, S_TOL, S_MAX_STEPS};

/* Values sorted ascending, with their weights (NULL: equal) and the sum of those. */
typedef struct column {
    const double *x;
    const double *a;
    ptrdiff_t n;
    double mass;
} column;

static double share(const column *col, ptrdiff_t l)
{
    return col->a ? col->a[l] : 1.0;
}

/* excess = mean rho - 1/2 for location m and scale s; slope = -d excess / d log s. */
static double scale_excess(const column *col, double m, double s, double *slope)
{
    const double radius = s_family.c * s;
    double rho = 0.0;
    double gain = 0.0;
    for (ptrdiff_t l = 0; l < col->n; l++) {
        const double u = fabs(col->x[l] - m) / radius;
        const double q = u < 1.0 ? u : 1.0;
        const double q2 = q * q;
        rho += share(col, l) * q2 * (3.0 + q2 * (q2 - 3.0));
        gain += share(col, l) * 6.0 * q2 * (1.0 - q2) * (1.0 - q2);
    }
    *slope = gain / col->mass;
    return rho / col->mass - 0.5;
}

/* s(m) by Newton's method from guess > 0, kept inside the bracket it builds; less than half of the weight may be at
 * m. Convergence is quadratic, so the result of a step below M_SCALE_TOL is exact to rounding. */
static double m_scale(const column *col, double m, double guess)
{
    double low = 0.0;
    double high = HUGE_VAL;
    double s = guess;
    for (int i = 0; i < M_SCALE_MAX_STEPS; i++) {
        double slope;
        const double excess = scale_excess(col, m, s, &slope);
        if (excess > 0.0)
            low = s;
        else
            high = s;
        const double step = slope > 0.0 ? s * (excess / slope) : HUGE_VAL;
        if (fabs(step) <= M_SCALE_TOL * s)
            return s + step;
        if (s + step > low && s + step < high && step < s)
            s += step;
        else
            s = high < HUGE_VAL ? 0.5 * (low + high) : 2.0 * s;
    }
    return s;
}

/* Descends from *m to a minimum of s(m); each step lowers mean rho at the old scale, hence s(m). */
static double descend(const column *col, double guess, double *m)
{
    double s = m_scale(col, *m, guess);
    for (int i = 0; i < S_MAX_STEPS; i++) {
        const rfi_mest_move move = rfi_mest_step(&s_family, col->x, col->a, col->n, *m, s, 0.5);
        if (move.distance <= S_TOL * s || *m + move.step == *m)
            break;
        *m += move.step;
        s = m_scale(col, *m, s);
    }
    return s;
}

/* Whether some value holds at least half of the weight; if two do, *where is midway between them. */
static bool half_coincides(const column *col, double *where)
{
    const double half = (0.5 - RFI_HALF_TOL_F64) * col->mass;
    bool found = false;
    double held = 0.0;
    for (ptrdiff_t l = 0; l < col->n; l++) {
        held = (l > 0 && col->x[l] == col->x[l - 1] ? held : 0.0) + share(col, l);
        if (held >= half) {
            *where = found ? rfi_midpoint(*where, col->x[l]) : col->x[l];
            found = true;
        }
    }
    return found;
}

/* Middle of the shortest interval that holds more than half of the weight, and its length. */
static double shortest_half(const column *col, double *shortest)
{
    const double half = (0.5 + RFI_HALF_TOL_F64) * col->mass;
    double held = 0.0;
    double centre = col->x[0];
    ptrdiff_t left = 0;
    *shortest = HUGE_VAL;
    for (ptrdiff_t right = 0; right < col->n; right++) {
        held += share(col, right);
        while (held - share(col, left) > half)
            held -= share(col, left++);
        const double length = col->x[right] - col->x[left];
        if (held > half && length < *shortest) {
            *shortest = length;
            centre = rfi_midpoint(col->x[left], col->x[right]);
        }
    }
    return centre;
}

/* Fills spare with the sorted values (and weights). */
static column sorted_column(const double *x, const double *a, ptrdiff_t n, double *spare)
{
    double mass = 0.0;
    for (ptrdiff_t l = 0; l < n; l++) {
        spare[l] = x[l];
        spare[n + l] = a ? a[l] : 1.0;
        mass += spare[n + l];
    }
    if (a)
        rfi_sort_pairs(spare, spare + n, n);
    else
        rfi_sort(spare, n);
    return (column){spare, a ? spare + n : NULL, n, mass};
}

double rfi_s_estimate(const double *x, const double *a, ptrdiff_t n, double *location, double *spare)
{
    assert(n >= 1);
    const column col = sorted_column(x, a, n, spare);
    if (half_coincides(&col, location))
        return 0.0;
    double shortest;
    double other = shortest_half(&col, &shortest);
    const bool lost = shortest < 16.0 * DBL_MIN; /* too close together to iterate on */
    *location = a ? rfi_wmedian(col.x, col.a, NULL, n, RFI_HALF_TOL_F64, RFI_MEDIAN_AVERAGE)
                  : rfi_median_sorted(col.x, n, RFI_MEDIAN_AVERAGE);
    if (lost)
        return 0.0;
    const double scale = descend(&col, shortest, location);
    const double other_scale = descend(&col, shortest, &other);
    if (!(other_scale < scale))
        return scale;
    *location = other;
    return other_scale;
}
