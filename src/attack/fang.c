/* fang: directed deviation against trimmed mean and median. Where the honest mean moved up since the previous round, malicious agents send
 * values below all honest ones, otherwise above them. u is uniform in (0, 1), b > 1:
 *
 *   range=extremes   up:   from min_i x_i down to b min (min <= 0) or min / b (min > 0), the part u of the way
 *                    down: from max_i x_i up   to b max (max > 0) or max / b (max <= 0)
 *   range=sigma      up:   mu - (3 + u) sigma,   down: mu + (3 + u) sigma: for malicious agents that know only their own rows
 */
#include "attack/attack.h"

typedef struct fang_params {
    double b;
    int range;
    int draws;
} fang_params;

enum { EXTREMES, SIGMA };
enum { EACH, COMMON };
static const char *const ranges[] = {"extremes", "sigma", NULL};
static const char *const draws[] = {"each", "common", NULL};

static const reef_field fang_fields[] = {
    {.name = "b",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(fang_params, b),
     .preset = "2",
     .min = 1,
     .max = 1e30,
     .unit = "",
     .help = "how far beyond the extremes, as a factor"},
    {.name = "range",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(fang_params, range),
     .preset = "extremes",
     .unit = "",
     .help = "beyond the extremes of the known vectors, or 3 to 4 standard deviations from their mean",
     .words = ranges},
    {.name = "draws",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(fang_params, draws),
     .preset = "each",
     .unit = "",
     .help = "every malicious agent draws its own numbers, or all send the same, which costs less",
     .words = draws},
};

static void draw_uniform(const fang_params *p, const reef_attack_view *view, float *out)
{
    for (ptrdiff_t r = 0; r < view->lanes; r++) {
        rfi_rng rng;
        rfi_attack_rng(view, r, p->draws == COMMON ? 0 : view->sender, view->round, &rng);
        for (ptrdiff_t i = r; i < view->length; i += view->lanes) {
            out[i] = (float)rfi_rng_uniform(&rng);
        }
    }
}

/* Least and largest of the rows in a block. */
static void find_extremes(const reef_attack_view *view, ptrdiff_t from, ptrdiff_t count, double *least, double *largest)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        least[i] = (double)view->rows[0][from + i];
        largest[i] = least[i];
    }
    for (ptrdiff_t l = 1; l < view->known; l++) {
        const float *x = view->rows[l] + from;
        for (ptrdiff_t i = 0; i < count; i++) {
            least[i] = (double)x[i] < least[i] ? (double)x[i] : least[i];
            largest[i] = (double)x[i] > largest[i] ? (double)x[i] : largest[i];
        }
    }
}

/* The extreme that is left behind becomes the place to go from, and what it is moved to. */
static double beyond(const fang_params *p, bool up, double least, double largest, double u)
{
    double from = up ? least : largest;
    double to = (from > 0) == up ? from / p->b : from * p->b;
    return from + u * (to - from);
}

static void deviate(const fang_params *p, const reef_attack_view *view, ptrdiff_t from, float *out)
{
    double mean[RFI_ATTACK_BLOCK];
    double deviation[RFI_ATTACK_BLOCK];
    double least[RFI_ATTACK_BLOCK];
    double largest[RFI_ATTACK_BLOCK];
    ptrdiff_t count = rfi_block_count(view, from);
    bool sigma = p->range == SIGMA;
    rfi_attack_moments(view, from, count, mean, sigma ? deviation : NULL);
    if (!sigma) {
        find_extremes(view, from, count, least, largest);
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        bool up = mean[i] > (double)view->previous[from + i];
        double u = (double)out[from + i];
        double x = sigma ? mean[i] + (up ? -(3 + u) : 3 + u) * deviation[i] : beyond(p, up, least[i], largest[i], u);
        out[from + i] = rfi_to_float(x);
    }
}

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const fang_params *p = params;
    if (view->known == 0) {
        return rfi_attack_honest(view, out);
    }
    draw_uniform(p, view, out);
    for (ptrdiff_t from = 0; from < view->length; from += RFI_ATTACK_BLOCK) {
        deviate(p, view, from, out);
    }
    return true;
}

static unsigned traits_of(const void *params)
{
    const fang_params *p = params;
    return REEF_ATTACK_LANES | REEF_ATTACK_ROWS | (p->draws == COMMON ? REEF_ATTACK_SAME_PREVIOUS : 0);
}

const reef_attack_kind rfi_attack_fang = {
    .kind =
        {.name = "fang",
         .summary =
             "beyond the honest extremes, against the direction of the mean update: targets trimmed mean and median",
         .citation =
             "Fang, Cao, Jia, Gong, Local model poisoning attacks to Byzantine-robust federated learning (2020)",
         .fields = fang_fields,
         .field_count = RFI_COUNT(fang_fields),
         .params_size = sizeof(fang_params)},
    .traits = REEF_ATTACK_LANES | REEF_ATTACK_ROWS,
    .message = message,
    .traits_of = traits_of,
};
