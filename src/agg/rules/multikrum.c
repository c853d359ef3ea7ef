/* multikrum: the weighted mean of the m rows with the smallest Krum scores (krum.c). Scores count rows, the mean weighs them. */
#include "agg/rules/krum.h"
#include "agg/rules/rules.h"

typedef struct multikrum_params {
    reef_malicious f;
    int64_t m;
    int dialect;
} multikrum_params;

static const char *const m_words[] = {"auto", NULL};

static const reef_field multikrum_fields[] = {
    RFI_FIELD_F(multikrum_params, "max"),
    {.name = "m",
     .type = REEF_FIELD_INT,
     .offset = offsetof(multikrum_params, m),
     .preset = "auto",
     .min = 1,
     .max = 1e9,
     .unit = "rows",
     .help = "how many inputs are averaged; auto: n - f, never more than that",
     .words = m_words},
    {.name = "dialect",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(multikrum_params, dialect),
     .preset = "paper",
     .unit = "",
     .help =
         "nearest others in a score: n - f - 2 (paper, flower) or n - f - 1 (byzfl); all but paper take n >= 2 f + 1",
     .words = rfi_krum_dialects},
};

static ptrdiff_t multikrum_bound(const void *params, ptrdiff_t n)
{
    return rfi_krum_bound(((const multikrum_params *)params)->dialect, n);
}

static reef_status multikrum_weigh(const void *params, const reef_points *points, double *share, reef_effort *effort,
                                   reef_error *error)
{
    const multikrum_params *p = params;
    ptrdiff_t n = points->n;
    ptrdiff_t most = n - points->f;
    ptrdiff_t kept = p->m < 0 || p->m > most ? most : (ptrdiff_t)p->m;
    ptrdiff_t neighbours = rfi_krum_neighbours(n, points->f, p->dialect);
    double *score = points->work + n;
    ptrdiff_t *order = points->index;
    bool *keep = (bool *)(points->index + 2 * n);
    (void)effort;
    (void)error;
    for (ptrdiff_t l = 0; l < n; l++) {
        keep[l] = true;
    }
    rfi_krum_prepare(points);
    for (ptrdiff_t l = 0; l < n; l++) {
        score[l] = rfi_krum_score(points, keep, l, neighbours);
    }
    rfi_argsort(score, n, order, order + n);
    for (ptrdiff_t i = kept; i < n; i++) {
        keep[order[i]] = false;
    }
    rfi_share_kept(points, keep, share);
    return REEF_OK;
}

const reef_rule rfi_agg_multikrum = {
    .kind = {.name = "multikrum",
             .summary = "mean of the m inputs with the best Krum scores",
             .citation = "Blanchard et al., Machine learning with adversaries (NeurIPS 2017)",
             .fields = multikrum_fields,
             .field_count = RFI_COUNT(multikrum_fields),
             .params_size = sizeof(multikrum_params)},
    .traits = REEF_TRAIT_WEIGHTS | REEF_TRAIT_PERMUTATION | REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE |
              REEF_TRAIT_HULL | REEF_TRAIT_ROBUST,
    .bound = multikrum_bound,
    .bound_text = "n >= 2 f + 3 (dialect=byzfl and flower: n >= 2 f + 1)",
    .needs = rfi_needs_gram,
    .weigh = multikrum_weigh,
};
