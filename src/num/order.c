/* Order statistics of one column: sorting, selection, medians, weighted medians.
 *
 * These are the plain versions every faster kernel is checked against, so they favour clarity. The columns come
 * from senders who may know the code: both quicksort and quickselect watch their own progress and fall back to
 * heapsort (Musser 1997, "Introspective sorting and selection algorithms"), hence no ordering is quadratic.
 *
 *   n   number of values          C_j  cumulative weight in sorted order
 *   W   sum of the weights        t    half_tol * W
 */
#include "num/order.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

/* Below this length insertion sort wins over partitioning. */
#define SMALL 16

#ifndef NDEBUG
static bool all_numbers(const double *x, ptrdiff_t n)
{
    bool numbers = true;
    for (ptrdiff_t i = 0; i < n; i++) {
        numbers = numbers && !isnan(x[i]);
    }
    return numbers;
}

static bool is_sorted(const double *x, const ptrdiff_t *order, ptrdiff_t n)
{
    bool sorted = true;
    for (ptrdiff_t i = 1; i < n; i++) {
        sorted = sorted && (order ? x[order[i - 1]] <= x[order[i]] : x[i - 1] <= x[i]);
    }
    return sorted;
}
#endif

static void swap(double *x, ptrdiff_t i, ptrdiff_t j)
{
    const double t = x[i];
    x[i] = x[j];
    x[j] = t;
}

static void insertion_sort(double *x, ptrdiff_t n)
{
    for (ptrdiff_t i = 1; i < n; i++) {
        const double value = x[i];
        ptrdiff_t j = i;
        for (; j > 0 && x[j - 1] > value; j--)
            x[j] = x[j - 1];
        x[j] = value;
    }
}

/* Swaps two elements of x and, where there are companions, of a. */
static void swap_pair(double *x, double *a, ptrdiff_t i, ptrdiff_t j)
{
    swap(x, i, j);
    if (a)
        swap(a, i, j);
}

/* Restores the max-heap property of x[0..n) below `root`; a (or NULL) follows x. */
static void sift_down(double *x, double *a, ptrdiff_t root, ptrdiff_t n)
{
    for (;;) {
        ptrdiff_t child = 2 * root + 1;
        if (child >= n)
            return;
        if (child + 1 < n && x[child + 1] > x[child])
            child++;
        if (x[root] >= x[child])
            return;
        swap_pair(x, a, root, child);
        root = child;
    }
}

static void heap_sort(double *x, double *a, ptrdiff_t n)
{
    for (ptrdiff_t root = n / 2 - 1; root >= 0; root--)
        sift_down(x, a, root, n);
    for (ptrdiff_t end = n - 1; end > 0; end--) {
        swap_pair(x, a, 0, end);
        sift_down(x, a, 0, end);
    }
}

/* Median of first, middle and last; leaves those three in order, so that both scans of the partition have a
 * sentinel. */
static double median_of_three(double *x, ptrdiff_t n)
{
    const ptrdiff_t centre = n / 2;
    if (x[centre] < x[0])
        swap(x, centre, 0);
    if (x[n - 1] < x[0])
        swap(x, n - 1, 0);
    if (x[n - 1] < x[centre])
        swap(x, n - 1, centre);
    return x[centre];
}

/* Hoare partition: x[0..split] <= pivot <= x[split+1..n), 0 <= split < n - 1, for n >= 3. Stopping on equal
 * values keeps the halves even when all of them coincide. */
static ptrdiff_t partition(double *x, ptrdiff_t n)
{
    const double pivot = median_of_three(x, n);
    ptrdiff_t i = -1;
    ptrdiff_t j = n;
    for (;;) {
        do
            i++;
        while (x[i] < pivot);
        do
            j--;
        while (x[j] > pivot);
        if (i >= j)
            return j;
        swap(x, i, j);
    }
}

/* Partitions allowed before heapsort takes over: 2 log2 n. */
static int depth_limit(ptrdiff_t n)
{
    int depth = 0;
    for (; n > 1; n /= 2)
        depth += 2;
    return depth;
}

static void intro_sort(double *x, ptrdiff_t n, int depth)
{
    while (n > SMALL) {
        if (depth-- == 0) {
            heap_sort(x, NULL, n);
            return;
        }
        const ptrdiff_t left = partition(x, n) + 1;
        intro_sort(x, left, depth);
        x += left;
        n -= left;
    }
    insertion_sort(x, n);
}

void rfi_sort(double *x, ptrdiff_t n)
{
    assert(n >= 0 && all_numbers(x, n));
    intro_sort(x, n, depth_limit(n));
}

void rfi_sort_pairs(double *x, double *a, ptrdiff_t n)
{
    assert(n >= 0 && all_numbers(x, n));
    heap_sort(x, a, n);
}

/* Stable merge of the sorted runs from[lo..mid) and from[mid..hi) into `to`. */
static void merge_runs(const double *x, const ptrdiff_t *from, ptrdiff_t lo, ptrdiff_t mid, ptrdiff_t hi, ptrdiff_t *to)
{
    ptrdiff_t left = lo;
    ptrdiff_t right = mid;
    for (ptrdiff_t k = lo; k < hi; k++) {
        const int take_right = left == mid || (right < hi && x[from[right]] < x[from[left]]);
        to[k] = take_right ? from[right++] : from[left++];
    }
}

void rfi_argsort(const double *x, ptrdiff_t n, ptrdiff_t *order, ptrdiff_t *spare)
{
    assert(n >= 0 && all_numbers(x, n));
    ptrdiff_t *from = order;
    ptrdiff_t *to = spare;
    for (ptrdiff_t i = 0; i < n; i++)
        from[i] = i;
    for (ptrdiff_t width = 1; width<n; width = width> n / 2 ? n : 2 * width) {
        for (ptrdiff_t lo = 0; lo<n; lo += n - lo> 2 * width ? 2 * width : n - lo) {
            const ptrdiff_t mid = n - lo > width ? lo + width : n;
            const ptrdiff_t hi = n - mid > width ? mid + width : n;
            merge_runs(x, from, lo, mid, hi, to);
        }
        ptrdiff_t *const t = from;
        from = to;
        to = t;
    }
    if (from != order)
        for (ptrdiff_t i = 0; i < n; i++)
            order[i] = from[i];
}

/* Reorders x so that x[k] is its k-th smallest (from 0), nothing before it is larger and nothing behind it
 * smaller. */
static void select_kth(double *x, ptrdiff_t n, ptrdiff_t k)
{
    int depth = depth_limit(n);
    while (n > SMALL && depth-- > 0) {
        const ptrdiff_t left = partition(x, n) + 1;
        if (k < left) {
            n = left;
        } else {
            x += left;
            n -= left;
            k -= left;
        }
    }
    rfi_sort(x, n);
}

double rfi_midpoint(double a, double b)
{
    /* Halving an odd subnormal rounds, so equal values are returned as they are. */
    return a == b ? a : 0.5 * a + 0.5 * b;
}

/* The median from the two middle order statistics of an even number of values. */
static double middle(double lower, double upper, rfi_median_kind kind)
{
    if (kind == RFI_MEDIAN_LOWER)
        return lower;
    return kind == RFI_MEDIAN_UPPER ? upper : rfi_midpoint(lower, upper);
}

double rfi_median_sorted(const double *x, ptrdiff_t n, rfi_median_kind kind)
{
    assert(n >= 1 && is_sorted(x, NULL, n));
    return middle(x[(n - 1) / 2], x[n / 2], kind);
}

double rfi_median(double *x, ptrdiff_t n, rfi_median_kind kind)
{
    assert(n >= 1 && all_numbers(x, n));
    const ptrdiff_t half = n / 2;
    select_kth(x, n, half);
    if (n % 2 == 1)
        return x[half];
    double lower = x[0];
    for (ptrdiff_t i = 1; i < half; i++)
        lower = x[i] > lower ? x[i] : lower;
    return middle(lower, x[half], kind);
}

/* A sum with its rounding error (Knuth's two-sum). Cumulating 1e5 equal weights in one double already errs by
 * more than RFI_HALF_TOL_F64, and equal weights must give the ordinary median. */
typedef struct exact_sum {
    double sum;
    double error;
} exact_sum;

static void add(exact_sum *total, double value)
{
    const double sum = total->sum + value;
    const double part = sum - total->sum;
    total->error += (total->sum - (sum - part)) + (value - part);
    total->sum = sum;
}

void rfi_wmedian_ranks(const double *a, const ptrdiff_t *order, ptrdiff_t n, double half_tol, ptrdiff_t *lower,
                       ptrdiff_t *upper)
{
    assert(n >= 1);
    exact_sum total = {0.0, 0.0};
    for (ptrdiff_t j = 0; j < n; j++)
        add(&total, a[j]);
    const double mass = total.sum + total.error;
    const double low = 0.5 * mass - half_tol * mass;
    const double high = 0.5 * mass + half_tol * mass;

    exact_sum below = {0.0, 0.0};
    *lower = n - 1;
    *upper = n - 1;
    for (ptrdiff_t j = 0; j < n; j++) {
        add(&below, a[order ? order[j] : j]);
        const double cumulative = below.sum + below.error;
        if (cumulative >= low && j < *lower)
            *lower = j;
        if (cumulative > high) {
            *upper = j;
            return;
        }
    }
}

double rfi_wmedian(const double *x, const double *a, const ptrdiff_t *order, ptrdiff_t n, double half_tol,
                   rfi_median_kind kind)
{
    assert(n >= 1 && is_sorted(x, order, n));
    ptrdiff_t lower;
    ptrdiff_t upper;
    rfi_wmedian_ranks(a, order, n, half_tol, &lower, &upper);
    return order ? middle(x[order[lower]], x[order[upper]], kind) : middle(x[lower], x[upper], kind);
}
