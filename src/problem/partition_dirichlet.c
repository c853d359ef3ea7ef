/* dirichlet and by_quantity: shares drawn from Dirichlet(alpha, ..., alpha) over the agents.
 *
 *   dirichlet     for every class c:  p_c ~ Dir_K(alpha); agent k gets the share p_c(k) of the samples of class c
 *   by_quantity   p ~ Dir_K(alpha) once; agent k gets the share p(k) of all samples, at random
 *
 * A list of n samples is cut at round(n (p(1) + ... + p(k))). If an agent has fewer than `min` samples, all shares are drawn again,
 * at most `redraws` times; after that, samples are moved from the largest agents to those that lack some.
 */
#include "problem/spread.h"

#include "base/error.h"
#include "base/memory.h"
#include "num/gamma.h"

typedef struct dirichlet_params {
    double alpha;
    int64_t min;
    int64_t redraws;
} dirichlet_params;

static const reef_field dirichlet_fields[] = {
    {.name = "alpha",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(dirichlet_params, alpha),
     .preset = "0.5",
     .min = 1e-6,
     .max = 1e9,
     .unit = "",
     .help = "concentration: small values make agents heterogeneous (non-IID), large ones similar"},
    {.name = "min",
     .type = REEF_FIELD_INT,
     .offset = offsetof(dirichlet_params, min),
     .preset = "1",
     .min = 1,
     .max = 1e9,
     .unit = "samples",
     .help = "every agent gets at least this many"},
    {.name = "redraws",
     .type = REEF_FIELD_INT,
     .offset = offsetof(dirichlet_params, redraws),
     .preset = "10",
     .min = 0,
     .max = 1000,
     .unit = "",
     .help = "how often shares are redrawn to satisfy min before samples are moved"},
};

static reef_status check_least(const char *owner, const dirichlet_params *p, const rfi_spread *s, reef_error *error)
{
    ptrdiff_t needed = 0;
    if (!rfi_mul((ptrdiff_t)p->min, s->in.agents, &needed) || needed > s->in.samples) {
        return rfi_fail(error, REEF_E_RANGE,
                        "%s: min = %td samples for each of %td agents are more than the %td there are", owner,
                        (ptrdiff_t)p->min, s->in.agents, s->in.samples);
    }
    return REEF_OK;
}

/* Draws shares and deals out list[n] by them. */
static void deal(rfi_spread *s, double alpha, const ptrdiff_t *list, ptrdiff_t n)
{
    double sum = 0;
    ptrdiff_t next = 0;
    rfi_rng_dirichlet(&s->rng, alpha, s->share, s->in.agents);
    for (ptrdiff_t k = 0; k < s->in.agents; k++) {
        sum += s->share[k];
        ptrdiff_t cut = k + 1 < s->in.agents ? (ptrdiff_t)(sum * (double)n + 0.5) : n;
        for (; next < cut && next < n; next++) {
            s->owner[list[next]] = (int32_t)k;
        }
    }
}

static reef_status dirichlet_assign(const void *params, rfi_spread *s, reef_error *error)
{
    const dirichlet_params *p = params;
    reef_status status = check_least("dirichlet", p, s, error);
    if (status != REEF_OK) {
        return status;
    }
    rfi_rng_permutation(&s->rng, s->order, s->in.samples);
    rfi_sort_by_class(s, 0);
    for (int64_t draw = 0; draw <= p->redraws; draw++) {
        for (ptrdiff_t c = 0; c < s->in.classes; c++) {
            deal(s, p->alpha, s->sorted + s->class_start[c], s->class_start[c + 1] - s->class_start[c]);
        }
        if (rfi_count_sizes(s) >= p->min) {
            return REEF_OK;
        }
    }
    rfi_repair(s, (ptrdiff_t)p->min);
    return REEF_OK;
}

static reef_status quantity_assign(const void *params, rfi_spread *s, reef_error *error)
{
    const dirichlet_params *p = params;
    reef_status status = check_least("by_quantity", p, s, error);
    if (status != REEF_OK) {
        return status;
    }
    rfi_rng_permutation(&s->rng, s->order, s->in.samples);
    for (int64_t draw = 0; draw <= p->redraws; draw++) {
        deal(s, p->alpha, s->order, s->in.samples);
        if (rfi_count_sizes(s) >= p->min) {
            return REEF_OK;
        }
    }
    rfi_repair(s, (ptrdiff_t)p->min);
    return REEF_OK;
}

const rfi_partition_kind rfi_partition_dirichlet = {
    .kind =
        {
            .name = "dirichlet",
            .summary = "every class in shares drawn from a Dirichlet distribution",
            .citation =
                "Hsu, Qi and Brown, Measuring the effects of non-identical data distribution for federated visual "
                "classification (2019)",
            .fields = dirichlet_fields,
            .field_count = RFI_COUNT(dirichlet_fields),
            .params_size = sizeof(dirichlet_params),
        },
    .needs_labels = true,
    .assign = dirichlet_assign,
};

const rfi_partition_kind rfi_partition_by_quantity = {
    .kind =
        {
            .name = "by_quantity",
            .summary = "at random, in numbers drawn from a Dirichlet distribution",
            .citation =
                "Li, Diao, Chen and He, Federated learning on non-IID data silos: an experimental study, ICDE 2022",
            .fields = dirichlet_fields,
            .field_count = RFI_COUNT(dirichlet_fields),
            .params_size = sizeof(dirichlet_params),
        },
    .assign = quantity_assign,
};
