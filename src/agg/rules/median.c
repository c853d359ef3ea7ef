/* median: the coordinatewise (weighted) median, midpoint form.
 *
 * keep_self (BRIDGE): the neighbours are screened down to their middle one or two values and the receiver's own value is
 * always kept: the trimmed mean with keep_self at its largest f. */
#include "agg/rules/fast.h"
#include "agg/rules/rules.h"

typedef struct median_params {
    int even;
    bool keep_self;
} median_params;

static const char *const even_words[] = {"average", "lower", "upper", NULL};

static const reef_field median_fields[] = {
    {.name = "even",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(median_params, even),
     .preset = "average",
     .unit = "",
     .help = "what to take of two middle values: their average (numpy, ByzFL), the lower (torch.median), or the upper",
     .words = even_words},
    {.name = "keep_self",
     .type = REEF_FIELD_BOOL,
     .offset = offsetof(median_params, keep_self),
     .preset = "false",
     .unit = "",
     .help = "filter only the neighbours and always keep the receiver's own value (BRIDGE)"},
};

/* Middle values of the neighbours and the own value, by weight. */
static double with_self(const reef_column *column, double *share)
{
    ptrdiff_t n = column->n;
    ptrdiff_t *order = column->index;
    ptrdiff_t neighbours = 0;
    rfi_argsort(column->x, n, order, order + n);
    for (ptrdiff_t i = 0; i < n; i++) {
        order[neighbours] = order[i];
        neighbours += order[i] != column->self;
    }
    rfi_share_ranks(column, column->x, order, neighbours, (neighbours - 1) / 2, neighbours / 2 + 1, share);
    share[column->self] = column->a[column->self];
    return rfi_normalise_sum(column->x, share, n);
}

static double median_column(const void *params, const reef_column *column, double *share, reef_effort *effort)
{
    const median_params *p = params;
    (void)effort;
    if (p->keep_self && column->self >= 0) {
        return with_self(column, share);
    }
    return rfi_column_median(column, true, (rfi_median_kind)p->even, share);
}

static ptrdiff_t median_span(const void *params, reef_span *span)
{
    const median_params *p = params;
    if (p->keep_self || !rfi_span_weights(span)) {
        return -1;
    }
    rfi_span inner = rfi_span_of(span);
    rfi_kernel_report report = rfi_span_report(span);
    if (!span->equal) {
        return span->kernels->median_weighted(&inner, p->even, span->half_tol, &report);
    }
    return span->kernels->median(&inner, p->even, &report);
}

static unsigned median_needs(const void *params)
{
    const median_params *p = params;
    return p->keep_self ? REEF_NEED_SELF : 0;
}

static unsigned median_traits(const void *params)
{
    const median_params *p = params;
    unsigned traits = rfi_agg_median.traits;
    /* scaling by a negative number turns lower into upper */
    traits &= p->even ? ~(unsigned)REEF_TRAIT_SCALE : ~0U;
    unsigned lost = REEF_TRAIT_REPLICATION | REEF_TRAIT_PERMUTATION | REEF_TRAIT_ROBUST;
    return p->keep_self ? (traits & ~lost) | REEF_TRAIT_SELF : traits;
}

const reef_rule rfi_agg_median = {
    .kind = {.name = "median",
             .summary = "coordinatewise median; tolerates any malicious minority, 64 % Gaussian efficiency",
             .citation =
                 "Yin et al., Byzantine-robust distributed learning (ICML 2018); keep_self: Fang et al., BRIDGE (2022)",
             .fields = median_fields,
             .field_count = RFI_COUNT(median_fields),
             .params_size = sizeof(median_params)},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_REPLICATION | REEF_TRAIT_PERMUTATION | REEF_TRAIT_TRANSLATION |
              REEF_TRAIT_SCALE | REEF_TRAIT_HULL | REEF_TRAIT_ROBUST,
    .traits_of = median_traits,
    .needs = median_needs,
    .column = median_column,
    .span = median_span,
};
