/* alie: "a little is enough". All liars send mu + z sigma (or minus), near enough to the honest rows to be believed.
 *
 * z=auto, for n agents of which f lie: with s = floor(n/2 + 1) - f honest supporters the liars are the majority, so z is the
 * largest number with Phi(z) < (h - s) / h, h = n - f (share=honest), or < (n - s) / n (share=all; descriptions differ).
 */
#include "attack/attack.h"

#include "num/special.h"

#include <math.h>

typedef struct alie_params {
    double z; /* NaN: auto */
    int sign;
    int share;
    int64_t period;
    double jitter;
} alie_params;

enum { PLUS, MINUS };
enum { HONEST, ALL };
static const char *const signs[] = {"plus", "minus", NULL};
static const char *const shares[] = {"honest", "all", NULL};
static const char *const automatic[] = {"auto", NULL};

static const reef_field alie_fields[] = {
    {.name = "z",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(alie_params, z),
     .preset = "auto",
     .min = 0,
     .max = 1e30,
     .unit = "standard deviations",
     .help = "distance from the mean of the honest rows; auto: from the numbers of agents and liars",
     .words = automatic},
    {.name = "sign",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(alie_params, sign),
     .preset = "plus",
     .unit = "",
     .help = "on which side of the mean",
     .words = signs},
    {.name = "share",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(alie_params, share),
     .preset = "honest",
     .unit = "",
     .help = "z=auto: supporters counted among the honest agents, or among all",
     .words = shares},
    {.name = "period",
     .type = REEF_FIELD_INT,
     .offset = offsetof(alie_params, period),
     .preset = "0",
     .min = 0,
     .max = 1e12,
     .unit = "rounds",
     .help = "after which the side changes, again and again, so that no average shows it; 0: never"},
    {.name = "jitter",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(alie_params, jitter),
     .preset = "0",
     .min = 0,
     .max = 1e30,
     .unit = "standard deviations",
     .help = "of noise that each liar adds for itself, so that no two send the same"},
};

/* Where the liars are the majority alone, or nobody can be won, the quantile would be infinite: one half of an agent is left. */
double rfi_alie_z(ptrdiff_t honest, ptrdiff_t liars, bool all)
{
    double h = honest > 0 ? (double)honest : 1;
    double f = liars > 0 ? (double)liars : 0;
    double supporters = floor((h + f) / 2 + 1) - f;
    double whole = all ? h + f : h;
    double share = (whole - supporters) / whole;
    double margin = 0.5 / whole;
    return rfi_normal_quantile(share < margin ? margin : share > 1 - margin ? 1 - margin : share);
}

/* Each liar's own noise. */
static void draw(const alie_params *p, const reef_attack_view *view, float *out)
{
    for (ptrdiff_t r = 0; r < view->lanes; r++) {
        rfi_rng rng;
        rfi_attack_rng(view, r, view->liar, view->round, &rng);
        for (ptrdiff_t i = r; i < view->length; i += view->lanes) {
            out[i] = rfi_to_float(p->jitter * rfi_rng_normal(&rng));
        }
    }
}

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const alie_params *p = params;
    double z = isnan(p->z) ? rfi_alie_z(view->honest, view->liars, p->share == ALL) : p->z;
    double mean[RFI_ATTACK_BLOCK];
    double deviation[RFI_ATTACK_BLOCK];
    bool other_side = p->period > 0 && view->round / p->period % 2;
    z = (p->sign == MINUS) != other_side ? -z : z;
    if (p->jitter > 0) {
        draw(p, view, out);
    }
    for (ptrdiff_t from = 0; from < view->length; from += RFI_ATTACK_BLOCK) {
        ptrdiff_t count = rfi_block_count(view, from);
        rfi_attack_moments(view, from, count, mean, deviation);
        for (ptrdiff_t i = 0; i < count; i++) {
            double own = p->jitter > 0 ? (double)out[from + i] : 0;
            out[from + i] = rfi_to_float(mean[i] + (z + own) * deviation[i]);
        }
    }
    return true;
}

static unsigned traits_of(const void *params)
{
    const alie_params *p = params;
    return REEF_ATTACK_LANES | REEF_ATTACK_ROWS | (p->jitter > 0 ? 0 : REEF_ATTACK_SAME);
}

const reef_attack_kind rfi_attack_alie = {
    .kind = {.name = "alie",
             .summary = "all liars a few standard deviations from the mean of the honest rows",
             .citation =
                 "Baruch, Baruch, Goldberg, A little is enough: circumventing defenses for distributed learning (2019)",
             .fields = alie_fields,
             .field_count = RFI_COUNT(alie_fields),
             .params_size = sizeof(alie_params)},
    .traits = REEF_ATTACK_LANES | REEF_ATTACK_ROWS,
    .message = message,
    .traits_of = traits_of,
};
