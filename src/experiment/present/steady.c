/* Whether a steady state really is one.
 *
 * The steady state of a curve is its mean over the last rounds. If a straight line through the points of these rounds (least squares, in
 * the unit in which the metric is shown) still changes by more than TREND_LEAST over them, and by more than four of its standard errors
 * and three times the scatter of the points around it, the curve has not converged, and the number says how long the run was rather than
 * how good the rule is. The change along a line fitted to n independent points has the variance 12 s^2 / n where their mean has s^2 / n; points
 * that follow each other are not independent, but that changes both alike, so its standard error is sqrt(12) times that of the steady
 * state, which is known from the repetitions. Powers above DIVERGED decibels have diverged. */
#include "experiment/run/outcome.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double DIVERGED = 40;               /* dB */
static const double TREND_LEAST[] = {0.5, 0.01}; /* in decibels, and of shares such as the accuracy */

/* Sums over the points of the steady state: x is the round, y the metric as it is shown. */
typedef struct line {
    double n, x, y, xx, xy, yy;
} line;

static double shown(rfi_metric metric, double value)
{
    return rfi_metric_decibels(metric) ? 10 * log10(fmax(value, 1e-300)) : value;
}

static line sum_points(const rfi_outcome *o, ptrdiff_t row, rfi_metric metric, int64_t steady)
{
    line s = {0};
    for (ptrdiff_t p = 0; p < o->points; p++) {
        double x = (double)(rfi_outcome_round(o, p) - o->rounds);
        double y = shown(metric, rfi_outcome_at(o, row, p).mean);
        if (rfi_outcome_round(o, p) > o->rounds - steady && isfinite(y)) {
            s.n += 1;
            s.x += x;
            s.y += y;
            s.xx += x * x;
            s.xy += x * y;
            s.yy += y * y;
        }
    }
    return s;
}

/* What must be exceeded for a change to count. */
static double noise(const rfi_outcome *o, ptrdiff_t row, rfi_metric metric, const line *s, double slope)
{
    rfi_moments m = rfi_outcome_at(o, row, o->points);
    double error = rfi_outcome_error(o, m);
    double around = (s->yy - s->y * s->y / s->n) - slope * (s->xy - s->x * s->y / s->n);
    bool decibels = rfi_metric_decibels(metric);
    error = isnan(error) ? 0 : error;
    error *= decibels ? 10 / (log(10) * m.mean) : 1;
    return fmax(TREND_LEAST[!decibels], fmax(4 * sqrt(12) * error, 3 * sqrt(fmax(around, 0) / s->n)));
}

void rfi_steady_note(const rfi_outcome *o, ptrdiff_t row, rfi_metric metric, int64_t steady, char *text, size_t size)
{
    double last = shown(metric, rfi_outcome_at(o, row, o->points).mean);
    line s = sum_points(o, row, metric, steady);
    double spread = s.xx - s.x * s.x / fmax(s.n, 1);
    size_t used = 0;
    text[0] = '\0';
    if (rfi_metric_decibels(metric) && !(last <= DIVERGED)) {
        rfi_append(text, size, &used, "diverged");
        return;
    }
    if (s.n < 4 || !(spread > 0)) {
        return; /* too few points to tell */
    }
    double slope = (s.xy - s.x * s.y / s.n) / spread;
    if (fabs(slope) * (double)steady > noise(o, row, metric, &s, slope)) {
        bool decibels = rfi_metric_decibels(metric);
        rfi_append(text, size, &used, "not steady: still %s %.2g%s per 100 rounds", slope < 0 ? "falling" : "rising",
                   100 * fabs(slope), decibels ? " dB" : "");
    }
}
