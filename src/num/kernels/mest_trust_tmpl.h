/* Shares of the rows in a solved M-estimate: b / sum b, added up over the coordinates of a span. Part of kernels_tmpl.h; notation in
 * mest_group_tmpl.h. */

/* What a group's shares are made of; unequal weights of the rows are left for the end (finish_trust). */
typedef struct trust_terms {
    vec upper, inverse, shift; /* d = (x - upper) inverse + shift */
    vec factor;                /* 1 / sum b, or 0 in lanes that do not count */
    mask counted;
    bool rejects; /* some value may have share 0 */
} trust_terms;

KERNEL trust_terms trust_terms_of(const mest_lanes *q, vec total, mask counted, bool rejects)
{
    vec shift = v_fma(q->m0.half, q->inverse, v_sub(v_set(0), q->t));
    vec factor = v_select(counted, v_div(v_set(1), total), v_set(0));
    return (trust_terms){q->m0.upper, q->inverse, shift, factor, counted, rejects};
}

/* Sums per row: lane by lane over some groups, until equal addends would begin to round the same way every time; then in double
 * precision over the span. */
enum { TRUST_GROUPS = 16 };

typedef struct trust_sums {
    vec *share;  /* n */
    wide *total; /* n */
    int groups;
} trust_sums;

static void clear_trust(trust_sums *sums, ptrdiff_t n)
{
    sums->groups = 0;
    for (ptrdiff_t l = 0; l < n; l++) {
        sums->share[l] = v_set(0);
        sums->total[l] = w_zero();
    }
}

/* Notes that so many groups more have been added. */
static void count_groups(trust_sums *sums, ptrdiff_t n, int groups)
{
    sums->groups += groups;
    if (sums->groups >= TRUST_GROUPS) {
        sums->groups = 0;
        for (ptrdiff_t l = 0; l < n; l++) {
            sums->total[l] = w_add(sums->total[l], sums->share[l]);
            sums->share[l] = v_set(0);
        }
    }
}

static double sum_of_lanes(const trust_sums *sums, ptrdiff_t l)
{
    double lane[LANES];
    double sum = 0;
    w_store(lane, sums->total[l]);
    for (int i = 0; i < LANES; i++) {
        sum += lane[i];
    }
    return sum;
}

static void finish_trust(const rfi_span *span, trust_sums *sums, rfi_kernel_report *report)
{
    count_groups(sums, span->n, TRUST_GROUPS);
    for (ptrdiff_t l = 0; l < span->n; l++) {
        double sum = sum_of_lanes(sums, l);
        report->share[l] += span->weights ? span->weights[l] * sum : sum;
    }
}

/* Counts the lanes in which a row has no share, a bit each from `at` on, and marks their coordinates if that is wanted. Without a
 * branch: whether there are any is hard to foresee. */
KERNEL void note_none(rfi_kernel_report *report, ptrdiff_t l, ptrdiff_t at, uint64_t bits)
{
    report->rejected[l] += __builtin_popcountll(bits);
    for (; bits && report->none; bits &= bits - 1) {
        report->none[l * report->stride + at + __builtin_ctzll(bits)] = 1;
    }
}

/* The share of x is b factor; here b. *none: lanes without a share. */
KERNEL vec trust_of(vec x, const trust_terms *g, int family, bool rejects, unsigned *none)
{
    *none = 0;
    vec d = v_fma(v_sub(x, g->upper), g->inverse, g->shift);
    if (family == RFI_KERNEL_HUBER) {
        return v_div(v_set(1), v_max(v_abs(d), v_set(1)));
    }
    vec z = v_max(v_fnma(d, d, v_set(1)), v_set(0));
    if (rejects) {
        *none = m_bits(m_and(g->counted, v_equal(z, v_set(0))));
    }
    return v_mul(z, z);
}

/* Groups of LANES (of `lanes`, if it is one) from `at` on: one pass over their rows. */
KERNEL void add_trust(const rfi_span *span, ptrdiff_t at, int groups, ptrdiff_t lanes, const trust_terms *terms,
                      int family, bool rejects, vec *share, rfi_kernel_report *report)
{
    const row *rows = (const row *)span->rows;
    for (ptrdiff_t l = 0; l < span->n; l++) {
        vec sum = share[l];
        uint64_t bits = 0;
        UNROLL
        for (int g = 0; g < groups; g++) {
            unsigned none = 0;
            vec x = load_lanes(rows[l], at + g * LANES, lanes);
            sum = v_fma(trust_of(x, &terms[g], family, rejects, &none), terms[g].factor, sum);
            bits |= (uint64_t)none << g * LANES;
        }
        if (rejects) {
            note_none(report, l, at, bits);
        }
        share[l] = sum;
    }
}

KERNEL void trust_groups(const rfi_span *span, ptrdiff_t at, int groups, ptrdiff_t lanes, const trust_terms *terms,
                         int family, trust_sums *sums, rfi_kernel_report *report)
{
    bool rejects = false;
    for (int g = 0; g < groups; g++) {
        rejects = rejects || terms[g].rejects;
    }
    if (family == RFI_KERNEL_HUBER) {
        add_trust(span, at, groups, lanes, terms, RFI_KERNEL_HUBER, false, sums->share, report);
    } else if (rejects) {
        add_trust(span, at, groups, lanes, terms, RFI_KERNEL_TUKEY, true, sums->share, report);
    } else {
        add_trust(span, at, groups, lanes, terms, RFI_KERNEL_TUKEY, false, sums->share, report);
    }
    count_groups(sums, span->n, groups);
}

/* Of values x, one per row, that lie in different groups: lane i is that of coordinate[i]. */
static void trust_collected(const rfi_span *span, const vec *x, const int32_t *coordinate, const trust_terms *terms,
                            int family, trust_sums *sums, rfi_kernel_report *report)
{
    for (ptrdiff_t l = 0; l < span->n; l++) {
        unsigned none = 0;
        vec b = trust_of(x[l], terms, family, true, &none);
        sums->share[l] = v_fma(b, terms->factor, sums->share[l]);
        for (; none; none &= none - 1) {
            note_none(report, l, coordinate[__builtin_ctz(none)], 1);
        }
    }
    count_groups(sums, span->n, 1);
}
