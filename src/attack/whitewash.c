/* whitewash: ALIE by malicious agents that return under a new id every few rounds, so that no memory has anything against them; or that stay away
 * between their visits until what is remembered of them has faded. Each adds noise of its own, so that no two send the same. */
#include "attack/attack.h"

typedef struct whitewash_params {
    double z;
    double jitter;
    int64_t identity;
    int64_t away;
    int ids;
    int64_t period;
} whitewash_params;

enum { NEW, SAME };
static const char *const id_words[] = {"new", "same", NULL};

static const reef_field whitewash_fields[] = {
    {.name = "z",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(whitewash_params, z),
     .preset = "1.2",
     .min = 0,
     .max = 1e30,
     .unit = "standard deviations",
     .help = "distance below the honest mean"},
    {.name = "jitter",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(whitewash_params, jitter),
     .preset = "1",
     .min = 0,
     .max = 1e30,
     .unit = "standard deviations",
     .help = "noise that each malicious agent adds on its own"},
    {.name = "identity",
     .type = REEF_FIELD_INT,
     .offset = offsetof(whitewash_params, identity),
     .preset = "1",
     .min = 1,
     .max = 1e15,
     .unit = "rounds",
     .help = "length of a visit, after which the agent takes another id"},
    {.name = "away",
     .type = REEF_FIELD_INT,
     .offset = offsetof(whitewash_params, away),
     .preset = "0",
     .min = 0,
     .max = 1e15,
     .unit = "rounds",
     .help = "length of the silence before every visit"},
    {.name = "ids",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(whitewash_params, ids),
     .preset = "new",
     .unit = "",
     .help = "new: a new id for every visit; same: the agent always returns under its own id",
     .words = id_words},
    {.name = "period",
     .type = REEF_FIELD_INT,
     .offset = offsetof(whitewash_params, period),
     .preset = "0",
     .min = 0,
     .max = 1e12,
     .unit = "rounds",
     .help = "after which the side changes, again and again; 0: never"},
};

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    const whitewash_params *p = params;
    if (view->round % (p->away + p->identity) < p->away) {
        return false;
    }
    rfi_attack_normal(view, view->sender, p->jitter, out);
    bool other_side = p->period > 0 && view->round / p->period % 2;
    rfi_attack_shift(view, other_side ? p->z : -p->z, out);
    return true;
}

static int64_t identity(const void *params)
{
    const whitewash_params *p = params;
    return p->ids == SAME ? 0 : p->away + p->identity;
}

const reef_attack_kind rfi_attack_whitewash = {
    .kind = {.name = "whitewash",
             .summary = "a few standard deviations from the honest mean, under changing ids",
             .citation = "",
             .fields = whitewash_fields,
             .field_count = RFI_COUNT(whitewash_fields),
             .params_size = sizeof(whitewash_params)},
    .traits = REEF_ATTACK_LANES | REEF_ATTACK_ROWS,
    .message = message,
    .identity = identity,
};
