/* alie: "a little is enough". All malicious agents send mu + z sigma (or minus), close enough to the honest rows to keep their weight.
 *
 * z=auto, for n agents of which f are malicious: with s = floor(n/2 + 1) - f honest supporters they are the majority, so z is the
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
    double weak;
    int64_t strike;
} alie_params;

/* So far do the weak ones go: far enough to pull, and near enough to stand between the others and the honest agents. */
static const double weak_part = 0.4;
enum { PURPOSE_WEAK = 0x7765616B };

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
     .help = "distance from the honest mean; auto: from the numbers of agents and malicious agents",
     .words = automatic},
    {.name = "sign",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(alie_params, sign),
     .preset = "plus",
     .unit = "",
     .help = "side of the mean on which the malicious agents are",
     .words = signs},
    {.name = "share",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(alie_params, share),
     .preset = "honest",
     .unit = "",
     .help = "for z=auto: count supporters among the honest agents, or among all",
     .words = shares},
    {.name = "period",
     .type = REEF_FIELD_INT,
     .offset = offsetof(alie_params, period),
     .preset = "0",
     .min = 0,
     .max = 1e12,
     .unit = "rounds",
     .help = "the side changes after this many rounds, again and again, so that averages do not reveal it; 0: never"},
    {.name = "jitter",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(alie_params, jitter),
     .preset = "0",
     .min = 0,
     .max = 1e30,
     .unit = "standard deviations",
     .help = "noise that each malicious agent adds on its own, so that no two send the same"},
    {.name = "weak",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(alie_params, weak),
     .preset = "0",
     .min = 0,
     .max = 1,
     .unit = "",
     .help =
         "fraction of the malicious agents, drawn once, that go only 0.4 times as far: a group of unequal members is "
         "harder to tell apart"},
    {.name = "strike",
     .type = REEF_FIELD_INT,
     .offset = offsetof(alie_params, strike),
     .preset = "1",
     .min = 1,
     .max = 1e12,
     .unit = "rounds",
     .help = "attack in one of this many; in the others send the honest mean, with noise, which hides what moves "
             "them"},
};

/* If malicious agents are the majority without supporters, or no supporter can be won, the quantile would be infinite: half an agent is left. */
double rfi_alie_z(ptrdiff_t honest, ptrdiff_t malicious_count, bool all)
{
    double h = honest > 0 ? (double)honest : 1;
    double f = malicious_count > 0 ? (double)malicious_count : 0;
    double supporters = floor((h + f) / 2 + 1) - f;
    double whole = all ? h + f : h;
    double share = (whole - supporters) / whole;
    double margin = 0.5 / whole;
    return rfi_normal_quantile(share < margin ? margin : share > 1 - margin ? 1 - margin : share);
}

static bool is_weak(const alie_params *p, const reef_attack_view *view)
{
    rfi_rng rng;
    rfi_rng_init(&rng, view->seed, PURPOSE_WEAK, (uint32_t)view->sender, 0, 0);
    return rfi_rng_uniform(&rng) < p->weak;
}

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const alie_params *p = params;
    double z = isnan(p->z) ? rfi_alie_z(view->honest, view->malicious_count, p->share == ALL) : p->z;
    bool other_side = p->period > 0 && view->round / p->period % 2;
    z *= is_weak(p, view) ? weak_part : 1;
    if (view->round % p->strike != 0) {
        z = 0;
    }
    rfi_attack_normal(view, view->sender, p->jitter, out);
    rfi_attack_shift(view, (p->sign == MINUS) != other_side ? -z : z, out);
    return true;
}

static unsigned traits_of(const void *params)
{
    const alie_params *p = params;
    return REEF_ATTACK_LANES | REEF_ATTACK_ROWS | (p->jitter > 0 || p->weak > 0 ? 0 : REEF_ATTACK_SAME);
}

const reef_attack_kind rfi_attack_alie = {
    .kind = {.name = "alie",
             .summary = "all malicious agents a few standard deviations from the honest mean",
             .citation =
                 "Baruch, Baruch, Goldberg, A little is enough: circumventing defenses for distributed learning (2019)",
             .fields = alie_fields,
             .field_count = RFI_COUNT(alie_fields),
             .params_size = sizeof(alie_params)},
    .traits = REEF_ATTACK_LANES | REEF_ATTACK_ROWS,
    .message = message,
    .traits_of = traits_of,
};
