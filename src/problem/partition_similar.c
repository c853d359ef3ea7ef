/* iid and gamma_similarity.
 *
 * iid: a random permutation cut into K pieces whose sizes differ by at most one.
 * gamma_similarity: of a random permutation the first round(gamma N) samples are spread like that; the rest is sorted by label
 * and cut into K consecutive pieces, which go to the agents in random order. gamma = 1 is iid, gamma = 0 gives most agents one
 * or two classes.
 */
#include "problem/spread.h"

typedef struct similarity_params {
    double gamma;
} similarity_params;

static const reef_field similarity_fields[] = {
    {.name = "gamma",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(similarity_params, gamma),
     .preset = "0.5",
     .min = 0,
     .max = 1,
     .unit = "share of the samples",
     .help = "share of the samples spread at random; the rest is sorted by label"},
};

static void spread_evenly(rfi_spread *s, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        s->owner[s->order[i]] = (int32_t)rfi_even_part(i, count, s->in.agents);
    }
}

static reef_status iid_assign(const void *params, rfi_spread *s, reef_error *error)
{
    (void)params;
    (void)error;
    rfi_rng_permutation(&s->rng, s->order, s->in.samples);
    spread_evenly(s, s->in.samples);
    return REEF_OK;
}

static reef_status similarity_assign(const void *params, rfi_spread *s, reef_error *error)
{
    const similarity_params *p = params;
    ptrdiff_t n = s->in.samples;
    ptrdiff_t alike = (ptrdiff_t)(p->gamma * (double)n + 0.5);
    (void)error;
    rfi_rng_permutation(&s->rng, s->order, n);
    rfi_rng_permutation(&s->rng, s->who, s->in.agents);
    spread_evenly(s, alike);
    rfi_sort_by_class(s, alike);
    for (ptrdiff_t i = alike; i < n; i++) {
        s->owner[s->sorted[i]] = (int32_t)s->who[rfi_even_part(i - alike, n - alike, s->in.agents)];
    }
    return REEF_OK;
}

const rfi_partition_kind rfi_partition_iid = {
    .kind = {.name = "iid", .summary = "at random, in equal numbers", .citation = ""},
    .assign = iid_assign,
};

const rfi_partition_kind rfi_partition_gamma_similarity = {
    .kind =
        {
            .name = "gamma_similarity",
            .summary = "a share gamma at random, the rest sorted by label",
            .citation =
                "Karimireddy et al., SCAFFOLD: stochastic controlled averaging for federated learning, ICML 2020",
            .fields = similarity_fields,
            .field_count = RFI_COUNT(similarity_fields),
            .params_size = sizeof(similarity_params),
        },
    .needs_labels = true,
    .assign = similarity_assign,
};
