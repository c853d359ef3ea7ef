/* Canonical pairwise sums. memory row 0 is the leaf, row 1 + j the waiting subtree of level j. */
#include "num/treesum.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

ptrdiff_t rfi_treesum_rows(int levels)
{
    return (ptrdiff_t)levels + 2;
}

static double *row(const rfi_treesum *sum, int level)
{
    return sum->memory + (ptrdiff_t)(level + 1) * sum->length;
}

static void add_to_left(const double *left, double *right, ptrdiff_t length)
{
    for (ptrdiff_t i = 0; i < length; i++) {
        right[i] = left[i] + right[i];
    }
}

static void clear_leaf(rfi_treesum *sum)
{
    memset(sum->memory, 0, (size_t)sum->length * sizeof *sum->memory);
}

void rfi_treesum_start(rfi_treesum *sum)
{
    sum->filled = 0;
    clear_leaf(sum);
}

double *rfi_treesum_leaf(rfi_treesum *sum)
{
    return sum->memory;
}

void rfi_treesum_push(rfi_treesum *sum)
{
    assert(sum->length >= 1);
    int level = 0;
    while (sum->filled >> level & 1) {
        add_to_left(row(sum, level), sum->memory, sum->length);
        sum->filled &= ~(1UL << level);
        level++;
    }
    memcpy(row(sum, level), sum->memory, (size_t)sum->length * sizeof *sum->memory);
    sum->filled |= 1UL << level;
    clear_leaf(sum);
}

void rfi_treesum_finish(rfi_treesum *sum, double *out)
{
    bool first = true;
    memset(out, 0, (size_t)sum->length * sizeof *out);
    for (int level = 0; sum->filled >> level; level++) {
        if (!(sum->filled >> level & 1)) {
            continue;
        }
        if (first) {
            memcpy(out, row(sum, level), (size_t)sum->length * sizeof *out);
            first = false;
        } else {
            add_to_left(row(sum, level), out, sum->length);
        }
    }
    rfi_treesum_start(sum);
}

void rfi_treesum_slots(double *slots, ptrdiff_t count, ptrdiff_t length)
{
    assert(count >= 1 && length >= 1);
    for (ptrdiff_t step = 1; step < count; step *= 2) {
        for (ptrdiff_t i = 0; i + step < count; i += 2 * step) {
            double *left = slots + i * length;
            const double *right = slots + (i + step) * length;
            for (ptrdiff_t j = 0; j < length; j++) {
                left[j] += right[j];
            }
        }
    }
}
