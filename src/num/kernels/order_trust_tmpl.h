/* Shares of the rows in a mean of order statistics, equal weights, added up over the coordinates of a span. Part of kernels_tmpl.h.
 *
 * The ranks first .. last - 1 of a column count, one unit each. Values that tie at the first or the last of them divide the ranks that are left
 * for them, as the scalar rules have it. Without such ties, the usual case, a value has one unit between the ends and none outside: then
 * it is enough to count those inside, some groups at a time. */

typedef struct rank_ends {
    vec low, high;           /* the values at the first and the last rank */
    vec low_part, high_part; /* units of a value that equals them */
    mask counted;            /* lanes that are not hard */
} rank_ends;

/* Room for the sums: behind the columns that the rules of order statistics use. */
static trust_sums rank_sums(const rfi_span *span)
{
    vec *scratch = span->scratch;
    trust_sums sums = {.share = scratch + 5 * span->n, .total = (wide *)(void *)(scratch + 6 * span->n)};
    clear_trust(&sums, span->n);
    return sums;
}

/* Ranks of first .. last - 1 among so many values that are smaller, over those that tie. */
KERNEL vec tied_part(vec smaller, vec ties, ptrdiff_t first, ptrdiff_t last)
{
    vec from = v_max(smaller, v_set((real)first));
    vec to = v_min(v_add(smaller, ties), v_set((real)last));
    return v_div(v_sub(to, from), v_max(ties, v_set(1)));
}

KERNEL rank_ends rank_ends_of(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, vec low, vec high, ptrdiff_t first,
                              ptrdiff_t last)
{
    const row *rows = (const row *)span->rows;
    vec zero = v_set(0);
    vec one = v_set(1);
    vec under_low = zero;
    vec at_low = zero;
    vec under_high = zero;
    vec at_high = zero;
    for (ptrdiff_t l = 0; l < span->n; l++) {
        vec x = load_lanes(rows[l], at, lanes);
        under_low = v_add(under_low, v_select(v_less(x, low), one, zero));
        at_low = v_add(at_low, v_select(v_equal(x, low), one, zero));
        under_high = v_add(under_high, v_select(v_less(x, high), one, zero));
        at_high = v_add(at_high, v_select(v_equal(x, high), one, zero));
    }
    return (rank_ends){low, high, tied_part(under_low, at_low, first, last),
                       tied_part(under_high, at_high, first, last), m_first(0)};
}

/* Adds the units of one row's lanes to its sum, and notes those without any. */
KERNEL void add_units(trust_sums *sums, rfi_kernel_report *report, ptrdiff_t l, ptrdiff_t at, vec units, mask counted)
{
    units = v_select(counted, units, v_set(0));
    sums->share[l] = v_add(sums->share[l], units);
    note_none(report, l, at, m_bits(m_andnot(counted, v_less(v_set(0), units))));
}

KERNEL void trust_ranks(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, const rank_ends *e, trust_sums *sums,
                        rfi_kernel_report *report)
{
    const row *rows = (const row *)span->rows;
    for (ptrdiff_t l = 0; l < span->n; l++) {
        vec x = load_lanes(rows[l], at, lanes);
        mask inside = m_and(v_less(e->low, x), v_less(x, e->high));
        vec units = v_select(inside, v_set(1), v_set(0));
        units = v_select(v_equal(x, e->high), e->high_part, units);
        units = v_select(v_equal(x, e->low), e->low_part, units);
        add_units(sums, report, l, at, units, e->counted);
    }
    count_groups(sums, span->n, 1);
}

/* What a unit is worth ends the sums. */
static void finish_units(const rfi_span *span, trust_sums *sums, rfi_kernel_report *report, double unit)
{
    count_groups(sums, span->n, TRUST_GROUPS);
    for (ptrdiff_t l = 0; l < span->n; l++) {
        report->share[l] += unit * sum_of_lanes(sums, l);
    }
}

/* ---- the median and the trimmed mean: groups are collected and counted together ---- */

enum { RANK_GROUPS = 4 };

typedef struct rank_trust {
    trust_sums sums;             /* of groups with ties */
    ptrdiff_t first, last;       /* ranks that count */
    int64_t *inside;             /* n: lanes of groups without ties, from one end to the other */
    int32_t *now;                /* n: the same of the groups at hand */
    int64_t counted;             /* lanes of groups without ties */
    ptrdiff_t at;                /* the groups at hand: the first one's coordinate */
    int groups;                  /* how many */
    rank_ends ends[RANK_GROUPS]; /* with nothing between them in lanes that do not count */
} rank_trust;

/* Room behind what the rules of order statistics and rank_sums use. */
static rank_trust rank_trust_of(const rfi_span *span, const rfi_kernel_report *report, ptrdiff_t first, ptrdiff_t last)
{
    rank_trust trust = {.first = first, .last = last};
    if (report->share) {
        trust.sums = rank_sums(span);
        trust.inside = (int64_t *)(void *)((char *)span->scratch + (RFI_SPAN_COLUMNS - 1) * span->n * 64);
        trust.now = (int32_t *)(void *)(trust.inside + span->n);
        memset(trust.inside, 0, (size_t)span->n * sizeof *trust.inside);
    }
    return trust;
}

/* Counts the values from one end to the other, of each row and of all. */
KERNEL int64_t count_inside(const rfi_span *span, const rank_trust *trust, int groups, ptrdiff_t lanes)
{
    const row *rows = (const row *)span->rows;
    int64_t all = 0;
    for (ptrdiff_t l = 0; l < span->n; l++) {
        uint64_t bits = 0;
        UNROLL
        for (int g = 0; g < groups; g++) {
            const rank_ends *e = &trust->ends[g];
            vec x = load_lanes(rows[l], trust->at + g * LANES, lanes);
            bits |= (uint64_t)m_bits(v_within(e->low, x, e->high)) << g * LANES;
        }
        trust->now[l] = __builtin_popcountll(bits);
        all += trust->now[l];
    }
    return all;
}

/* The groups at hand. In every lane that counts at least last - first values are inside; if there are no more in any, nothing ties. */
KERNEL void trust_at_hand(const rfi_span *span, rank_trust *trust, int groups, ptrdiff_t lanes,
                          rfi_kernel_report *report)
{
    int64_t counted = 0;
    for (int g = 0; g < groups; g++) {
        counted += __builtin_popcount(m_bits(trust->ends[g].counted));
    }
    int64_t inside = report->none ? -1 : count_inside(span, trust, groups, lanes);
    if (inside == counted * (trust->last - trust->first)) {
        trust->counted += counted;
        for (ptrdiff_t l = 0; l < span->n; l++) {
            trust->inside[l] += trust->now[l];
        }
        return;
    }
    for (int g = 0; g < groups; g++) {
        const rank_ends *e = &trust->ends[g];
        ptrdiff_t at = trust->at + g * LANES;
        rank_ends ends = rank_ends_of(span, at, lanes, e->low, e->high, trust->first, trust->last);
        ends.counted = e->counted;
        trust_ranks(span, at, lanes, &ends, &trust->sums, report);
    }
}

/* A group more: the values at the ends of its ranks, and its hard lanes. */
KERNEL void trust_order(const rfi_span *span, ptrdiff_t at, ptrdiff_t lanes, vec low, vec high, mask hard,
                        rank_trust *trust, rfi_kernel_report *report)
{
    trust->at = trust->groups ? trust->at : at;
    mask counted = m_andnot(m_first(lanes), hard);
    if (!m_all(counted)) {
        low = v_select(counted, low, v_set((real)INFINITY));
        high = v_select(counted, high, v_set(-(real)INFINITY));
    }
    trust->ends[trust->groups++] = (rank_ends){low, high, low, high, counted};
    if (trust->groups == RANK_GROUPS && lanes == LANES) {
        trust->groups = 0;
        trust_at_hand(span, trust, RANK_GROUPS, LANES, report);
    } else if (at + LANES >= span->count) {
        int groups = trust->groups;
        trust->groups = 0;
        for (int g = 0; g < groups; g++) {
            trust->ends[0] = trust->ends[g];
            trust->at = at - (groups - 1 - g) * LANES;
            trust_at_hand(span, trust, 1, lanes_at(span, trust->at), report);
        }
    }
}

static void finish_order(const rfi_span *span, rank_trust *trust, rfi_kernel_report *report)
{
    double unit = 1 / (double)(trust->last - trust->first);
    finish_units(span, &trust->sums, report, unit);
    for (ptrdiff_t l = 0; l < span->n; l++) {
        report->share[l] += unit * (double)trust->inside[l];
        report->rejected[l] += trust->counted - trust->inside[l];
    }
}
