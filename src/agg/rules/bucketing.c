/* bucketing: rows are shuffled and averaged in buckets of s. The order is a function of the seed and the number of the round.
 * A malicious row spoils one bucket at most, so f stays the same while the number of rows shrinks to ceil(n / s). */
#include "agg/rules/rules.h"
#include "num/rng.h"

typedef struct bucketing_params {
    int64_t s;
    int64_t seed;
} bucketing_params;

/* Keeps these random numbers apart from those of other purposes with the same seed. */
static const uint64_t purpose = 0x6275636b6574; /* "bucket" */

static const reef_field bucketing_fields[] = {
    {.name = "s",
     .type = REEF_FIELD_INT,
     .offset = offsetof(bucketing_params, s),
     .preset = "2",
     .min = 1,
     .max = 1e9,
     .unit = "rows",
     .help = "inputs per bucket"},
    {.name = "seed",
     .type = REEF_FIELD_INT,
     .offset = offsetof(bucketing_params, seed),
     .preset = "0",
     .min = 0,
     .max = 9e15,
     .unit = "",
     .help = "seed of the random order, which changes from round to round"},
};

static ptrdiff_t bucketing_mixed(const void *params, ptrdiff_t n)
{
    const bucketing_params *p = params;
    return p->s >= n ? 1 : (n - 1) / (ptrdiff_t)p->s + 1;
}

static reef_status bucketing_mix(const void *params, const reef_points *points, double *matrix, double *weights,
                                 reef_error *error)
{
    const bucketing_params *p = params;
    ptrdiff_t n = points->n;
    ptrdiff_t *order = points->index;
    ptrdiff_t buckets = bucketing_mixed(params, n);
    rfi_rng rng;
    (void)error;
    uint64_t round = (uint64_t)points->round;
    rfi_rng_init(&rng, (uint64_t)p->seed, purpose, 0, (uint32_t)(round >> 32), (uint32_t)round);
    rfi_rng_permutation(&rng, order, n);
    for (ptrdiff_t b = 0; b < buckets; b++) {
        ptrdiff_t first = b * (buckets > 1 ? (ptrdiff_t)p->s : n);
        ptrdiff_t last = b + 1 == buckets ? n : first + (ptrdiff_t)p->s;
        double *row = matrix + b * points->count;
        double sum = 0;
        for (ptrdiff_t i = first; i < last; i++) {
            row[order[i]] = points->a[order[i]];
            sum += points->a[order[i]];
        }
        for (ptrdiff_t i = first; i < last; i++) {
            row[order[i]] /= sum;
        }
        weights[b] = sum;
    }
    return REEF_OK;
}

/* Nothing: the order is drawn without looking. */
static unsigned bucketing_needs(const void *params)
{
    (void)params;
    return 0;
}

const reef_rule rfi_agg_bucketing = {
    .kind = {.name = "bucketing",
             .summary = "averages the inputs in random buckets of s",
             .citation = "Karimireddy, He, Jaggi, Byzantine-robust learning on heterogeneous datasets (ICLR 2022)",
             .fields = bucketing_fields,
             .field_count = RFI_COUNT(bucketing_fields),
             .params_size = sizeof(bucketing_params)},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE | REEF_TRAIT_HULL,
    .needs = bucketing_needs,
    .mixed = bucketing_mixed,
    .mix = bucketing_mix,
};
