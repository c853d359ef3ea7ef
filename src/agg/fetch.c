/* Reading columns: bytes of the caller -> raw values -> points of a space.
 *
 * A hole is an entry left out under nan=drop-coordinate. In a mixed row the remaining raw rows stand in for the holes
 * (factor refill); a mixed row without any value left has a gap at that column. Under the other policies a non-finite entry
 * marks its row as suspect, reads as 0 meanwhile, and the aggregation is started again without the row. */
#include "agg/plan.h"
#include "io/precision.h"
#include "num/order.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

size_t rfi_dtype_size(reef_dtype dtype)
{
    return dtype == REEF_F32 ? sizeof(float) : sizeof(double);
}

/* memcpy because rows may have any alignment. */
double rfi_load(reef_dtype dtype, const void *base, ptrdiff_t index)
{
    if (dtype == REEF_F32) {
        float value;
        memcpy(&value, (const char *)base + index * (ptrdiff_t)sizeof value, sizeof value);
        return (double)value;
    }
    double value;
    memcpy(&value, (const char *)base + index * (ptrdiff_t)sizeof value, sizeof value);
    return value;
}

double rfi_load_from(rfi_type type, const void *row, ptrdiff_t index)
{
    if (type == RFI_F32 || type == RFI_F64) {
        return rfi_load(type == RFI_F32 ? REEF_F32 : REEF_F64, row, index);
    }
    uint16_t half;
    float value;
    memcpy(&half, (const char *)row + index * (ptrdiff_t)sizeof half, sizeof half);
    rfi_widen_to_f32(type, &half, 1, &value);
    return (double)value;
}

void rfi_store(reef_dtype dtype, void *base, ptrdiff_t index, double value)
{
    if (dtype == REEF_F32) {
        float narrow = (float)value;
        memcpy((char *)base + index * (ptrdiff_t)sizeof narrow, &narrow, sizeof narrow);
    } else {
        memcpy((char *)base + index * (ptrdiff_t)sizeof value, &value, sizeof value);
    }
}

double rfi_smallest_normal(reef_dtype dtype)
{
    return dtype == REEF_F32 ? (double)FLT_MIN : DBL_MIN;
}

ptrdiff_t rfi_space_rows(const reef_plan *plan, const rfi_space *space)
{
    return space->mixed ? plan->n_mixed : plan->n_raw;
}

ptrdiff_t rfi_space_points(const reef_plan *plan, const rfi_space *space)
{
    return rfi_space_rows(plan, space) + space->origin + space->centre;
}

void rfi_fetch(reef_plan *plan, rfi_worker *worker, const void *const *rows, ptrdiff_t offset, ptrdiff_t count)
{
    assert(count >= 1 && count <= RFI_CHUNK && offset >= 0);
    bool keep_row = plan->agg->nan == RFI_NAN_DROP_COORDINATE;
    double smallest = rfi_smallest_normal(plan->dtype);
    for (ptrdiff_t i = 0; i < plan->n_raw; i++) {
        ptrdiff_t l = plan->m.active[i];
        for (ptrdiff_t t = 0; t < count; t++) {
            double value = rfi_load_from(worker->type, rows[l], offset + t);
            bool bad = !isfinite(value);
            if (plan->kernels && fabs(value) < smallest) {
                value = 0; /* as the kernels see it */
            }
            worker->tile[t * plan->rows + i] = bad ? 0 : value;
            worker->hole[t * plan->rows + i] = bad;
            if (bad && !keep_row) {
                atomic_store(&plan->m.suspect[l], true);
                atomic_store(&plan->any_suspect, true);
            }
        }
    }
}

/* z = refill * sum over rows with a value of C_kp x_p, a number of the rows' type; the origin's share adds nothing. */
static double mix_row(const reef_plan *plan, rfi_worker *worker, ptrdiff_t k, const double *x, const bool *hole)
{
    const double *c = plan->m.matrix + k * (plan->rows + 1);
    double mass = 0;
    double left = 0;
    double sum = 0;
    double low = c[plan->n_raw] > 0 ? 0 : (double)INFINITY;
    double high = c[plan->n_raw] > 0 ? 0 : -(double)INFINITY;
    for (ptrdiff_t p = 0; p < plan->n_raw; p++) {
        mass += c[p];
        if (c[p] > 0 && !hole[p]) {
            left += c[p];
            sum += c[p] * x[p];
            low = fmin(low, x[p]);
            high = fmax(high, x[p]);
        }
    }
    worker->gap[k] = mass > 0 && left == 0;
    worker->refill[k] = left > 0 && left != mass ? mass / left : 1;
    if (low > high) {
        return 0; /* a gap */
    }
    double value =
        fmin(fmax(worker->refill[k] * sum, low), high); /* not out of the hull by rounding, nor to infinity */
    return plan->dtype == REEF_F32 ? (double)(float)value : value;
}

double rfi_points_median(rfi_worker *worker, ptrdiff_t rows)
{
    ptrdiff_t n = 0;
    for (ptrdiff_t i = 0; i < rows; i++) {
        if (!worker->gap[i]) {
            worker->work[n++] = worker->points[i];
        }
    }
    return n ? rfi_median(worker->work, n, RFI_MEDIAN_AVERAGE) : 0;
}

static double centre_value(const reef_plan *plan, rfi_worker *worker, ptrdiff_t rows, ptrdiff_t segment, ptrdiff_t m)
{
    if (plan->centre_known) {
        return rfi_state_value(plan->input.state, segment, m);
    }
    return plan->needs & REEF_NEED_MEDIAN ? rfi_points_median(worker, rows) : 0;
}

ptrdiff_t rfi_column_points(reef_plan *plan, rfi_worker *worker, const rfi_space *space, ptrdiff_t t, ptrdiff_t segment,
                            ptrdiff_t m)
{
    assert(t >= 0 && t < RFI_CHUNK && m >= 0 && m < plan->m.lengths[segment]);
    const double *x = worker->tile + t * plan->rows;
    const bool *hole = worker->hole + t * plan->rows;
    ptrdiff_t rows = rfi_space_rows(plan, space);
    ptrdiff_t present = 0;
    for (ptrdiff_t k = 0; k < rows; k++) {
        if (space->mixed && plan->agg->count > 1) {
            worker->points[k] = mix_row(plan, worker, k, x, hole);
        } else {
            worker->points[k] = x[k];
            worker->gap[k] = hole[k];
            worker->refill[k] = 1;
        }
        present += !worker->gap[k];
    }
    ptrdiff_t next = rows;
    if (space->origin) {
        worker->points[next++] = 0;
    }
    if (space->centre) {
        worker->points[next] = centre_value(plan, worker, rows, segment, m);
    }
    return present;
}
