/* trimmed: the mean of what is left when the f smallest and the f largest values of each coordinate are removed.
 *
 * Removal is by count, the mean of the rest by weight. The rest is summed directly: "sum minus extremes" would lose all accuracy to one
 * huge value. keep_self (BRIDGE) screens only the neighbours and always keeps the receiver's own value, so that
 * |N| - 2 f + 1 of |N| neighbours and itself are averaged. */
#include "agg/rules/fast.h"
#include "agg/rules/rules.h"

#include <math.h>

typedef struct trimmed_params {
    reef_malicious f;
    double beta;
    bool keep_self;
} trimmed_params;

static const char *const beta_words[] = {"auto", NULL};

static const reef_field trimmed_fields[] = {
    RFI_FIELD_F(trimmed_params, "20%"),
    {.name = "beta",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(trimmed_params, beta),
     .preset = "auto",
     .min = 0,
     .max = 0.499999,
     .unit = "",
     .help = "fraction removed on each side, floor(beta n) values (Flower, scipy); replaces f when given",
     .words = beta_words},
    {.name = "keep_self",
     .type = REEF_FIELD_BOOL,
     .offset = offsetof(trimmed_params, keep_self),
     .preset = "false",
     .unit = "",
     .help = "filter only the neighbours and always keep the receiver's own value (BRIDGE)"},
};

static reef_status trimmed_prepare(void *params, reef_error *error)
{
    trimmed_params *p = params;
    (void)error;
    if (!isnan(p->beta)) {
        p->f = (reef_malicious){REEF_MALICIOUS_FRACTION, p->beta};
    }
    return REEF_OK;
}

/* keep_self removes 2 f of the n - 1 neighbours. */
static ptrdiff_t trimmed_bound(const void *params, ptrdiff_t n)
{
    const trimmed_params *p = params;
    return p->keep_self ? (n > 2 ? (n - 2) / 2 : 0) : (n - 1) / 2;
}

static double trimmed_column(const void *params, const reef_column *column, double *share, reef_effort *effort)
{
    const trimmed_params *p = params;
    ptrdiff_t n = column->n;
    ptrdiff_t self = p->keep_self ? column->self : -1;
    ptrdiff_t *order = column->index;
    ptrdiff_t screened = 0;
    (void)effort;
    rfi_argsort(column->x, n, order, order + n);
    for (ptrdiff_t i = 0; i < n; i++) {
        order[screened] = order[i];
        screened += order[i] != self;
    }
    rfi_share_ranks(column, column->x, order, screened, column->f, screened - column->f, share);
    if (self >= 0) {
        share[self] = column->a[self];
    }
    return rfi_normalise_sum(column->x, share, n);
}

static ptrdiff_t trimmed_span(const void *params, reef_span *span)
{
    const trimmed_params *p = params;
    if (p->keep_self || !rfi_span_weights(span)) {
        return -1;
    }
    rfi_span inner = rfi_span_of(span);
    rfi_kernel_report report = rfi_span_report(span);
    if (!span->equal) {
        return span->kernels->trimmed_weighted(&inner, span->f, &report);
    }
    return span->kernels->trimmed(&inner, span->f, &report);
}

static unsigned trimmed_needs(const void *params)
{
    const trimmed_params *p = params;
    return p->keep_self ? REEF_NEED_SELF : 0;
}

static unsigned trimmed_traits(const void *params)
{
    const trimmed_params *p = params;
    unsigned lost = REEF_TRAIT_PERMUTATION | REEF_TRAIT_ROBUST;
    return p->keep_self ? (rfi_agg_trimmed.traits & ~lost) | REEF_TRAIT_SELF : rfi_agg_trimmed.traits;
}

const reef_rule rfi_agg_trimmed = {
    .kind = {.name = "trimmed",
             .summary = "coordinatewise trimmed mean: without the f smallest and f largest values",
             .citation =
                 "Yin et al., Byzantine-robust distributed learning (ICML 2018); keep_self: Fang et al., BRIDGE (2022)",
             .fields = trimmed_fields,
             .field_count = RFI_COUNT(trimmed_fields),
             .params_size = sizeof(trimmed_params)},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_PERMUTATION | REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE |
              REEF_TRAIT_HULL | REEF_TRAIT_ROBUST,
    .prepare = trimmed_prepare,
    .traits_of = trimmed_traits,
    .bound = trimmed_bound,
    .bound_text = RFI_BOUND_MINORITY_TEXT " (keep_self: n >= 2 f + 2)",
    .needs = trimmed_needs,
    .column = trimmed_column,
    .span = trimmed_span,
};
