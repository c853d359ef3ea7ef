/* shared_noise: every malicious agent sends the honest mean plus noise that they share, and a little of its own. No average shows a bias, but while
 * honest noise averages out, shared noise does not and stays in the result. With several ids each, which take turns, malicious agents may seem to be
 * the majority. */
#include "attack/attack.h"

typedef struct shared_noise_params {
    double z;
    double jitter;
    int64_t ids;
} shared_noise_params;

static const reef_field shared_noise_fields[] = {
    {.name = "z",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(shared_noise_params, z),
     .preset = "1",
     .min = 0,
     .max = 1e30,
     .unit = "standard deviations",
     .help = "size of the noise that the malicious agents share, relative to the honest noise"},
    {.name = "jitter",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(shared_noise_params, jitter),
     .preset = "0.35",
     .min = 0,
     .max = 1e30,
     .unit = "standard deviations",
     .help = "noise that each malicious agent adds on its own, so that no two send the same"},
    {.name = "ids",
     .type = REEF_FIELD_INT,
     .offset = offsetof(shared_noise_params, ids),
     .preset = "1",
     .min = 1,
     .max = 1e6,
     .unit = "",
     .help = "number of ids of each malicious agent; one of them is drawn in every round"},
};

/* The stream of nobody in particular. */
enum { SHARED = -1 };

/* out += z shared noise. */
static void add_shared(const reef_attack_view *view, double z, float *out)
{
    for (ptrdiff_t r = 0; r < view->lanes; r++) {
        rfi_rng rng;
        rfi_attack_rng(view, r, SHARED, view->round, &rng);
        for (ptrdiff_t i = r; i < view->length; i += view->lanes) {
            out[i] = rfi_to_float((double)out[i] + z * rfi_rng_normal(&rng));
        }
    }
}

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const shared_noise_params *p = params;
    rfi_attack_normal(view, view->sender, p->jitter, out);
    add_shared(view, p->z, out);
    rfi_attack_shift(view, 0, out);
    return true;
}

static int64_t identity(const void *params)
{
    const shared_noise_params *p = params;
    return p->ids > 1 ? -p->ids : 0;
}

static unsigned traits_of(const void *params)
{
    const shared_noise_params *p = params;
    return REEF_ATTACK_LANES | REEF_ATTACK_ROWS | (p->jitter > 0 ? 0 : REEF_ATTACK_SAME);
}

const reef_attack_kind rfi_attack_shared_noise = {
    .kind = {.name = "shared_noise",
             .summary = "the honest mean plus noise that the malicious agents share",
             .citation = "",
             .fields = shared_noise_fields,
             .field_count = RFI_COUNT(shared_noise_fields),
             .params_size = sizeof(shared_noise_params)},
    .traits = REEF_ATTACK_LANES | REEF_ATTACK_ROWS,
    .message = message,
    .identity = identity,
    .traits_of = traits_of,
};
