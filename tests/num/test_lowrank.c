/* Factors of low rank: exact where the matrix has that rank, optimal where it has not (against singular values that are known), for numbers of any
 * size, and never 0 on both sides. */
#include "num/lowrank.h"
#include "num/rng.h"
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 23, COLUMNS = 31, RANK = 4, SPAN = 9 };

static double matrix[ROWS * COLUMNS], product[ROWS * COLUMNS];
static double left[ROWS * ROWS], right[ROWS * COLUMNS];
static double basis[(ROWS + SPAN) * ROWS];

/* Discrete cosines: orthonormal, and written down independently of what is tested. */
static double cosine(ptrdiff_t order, ptrdiff_t i, ptrdiff_t length)
{
    double angle = acos(-1.0) / (double)length * ((double)i + 0.5) * (double)order;
    return sqrt((order ? 2.0 : 1.0) / (double)length) * cos(angle);
}

/* A matrix with these singular values. */
static void make_matrix(const double *values, ptrdiff_t count)
{
    memset(matrix, 0, sizeof matrix);
    for (ptrdiff_t i = 0; i < ROWS; i++) {
        for (ptrdiff_t j = 0; j < COLUMNS; j++) {
            for (ptrdiff_t k = 0; k < count; k++) {
                matrix[i * COLUMNS + j] += values[k] * cosine(k, i, ROWS) * cosine(k, j, COLUMNS);
            }
        }
    }
}

/* Columns with most of the leading directions in them, and some of something else. */
static void make_basis(ptrdiff_t span)
{
    rfi_rng rng;
    rfi_rng_init(&rng, 5, 5, 0, 0, 0);
    for (ptrdiff_t s = 0; s < span; s++) {
        for (ptrdiff_t i = 0; i < ROWS; i++) {
            basis[s * ROWS + i] = cosine(s, i, ROWS) + 0.1 * rfi_rng_normal(&rng);
        }
    }
}

static rfi_lowrank_error solve(ptrdiff_t span, ptrdiff_t rank)
{
    rfi_lowrank_error far = {-1, -1};
    const rfi_lowrank problem = {
        .rows = ROWS, .columns = COLUMNS, .rank = rank, .numbers = matrix, .wide = true, .span = span, .basis = basis};
    assert_int_equal(rfi_lowrank_factor(NULL, &problem, left, right, &far, NULL), REEF_OK);
    for (ptrdiff_t i = 0; i < ROWS; i++) {
        for (ptrdiff_t j = 0; j < COLUMNS; j++) {
            product[i * COLUMNS + j] = 0;
            for (ptrdiff_t r = 0; r < rank; r++) {
                product[i * COLUMNS + j] += left[i * rank + r] * right[r * COLUMNS + j];
            }
        }
    }
    return far;
}

static double distance(void)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < ROWS * COLUMNS; i++) {
        sum += (product[i] - matrix[i]) * (product[i] - matrix[i]);
    }
    return sqrt(sum);
}

static void exact(void **state)
{
    (void)state;
    make_matrix((const double[]){5, 3, 2, 1}, 4);
    make_basis(SPAN);
    rfi_lowrank_error far = solve(SPAN, RANK);
    assert_true(fabs(far.size - sqrt(39)) < 1e-12 && far.miss < 1e-12 && distance() < 1e-12);
    /* as many columns as rows, or none */
    make_basis(ROWS + SPAN);
    (void)solve(ROWS + SPAN, RANK);
    assert_true(distance() < 1e-12);
}

static void optimal(void **state)
{
    (void)state;
    static const double values[] = {5, 4, 3, 2, 0.2, 0.1, 0.05};
    double lost = 0.2 * 0.2 + 0.1 * 0.1 + 0.05 * 0.05;
    make_matrix(values, 7);
    make_basis(SPAN);
    rfi_lowrank_error far = solve(SPAN, RANK);
    assert_true(far.miss >= sqrt(lost) * (1 - 1e-9) && far.miss <= sqrt(lost) * 1.001);
    assert_true(fabs(far.miss - distance()) < 1e-12);
    /* both factors share each singular value */
    for (ptrdiff_t r = 0; r < RANK; r++) {
        double l = 0;
        double t = 0;
        for (ptrdiff_t i = 0; i < ROWS; i++) {
            l += left[i * RANK + r] * left[i * RANK + r];
        }
        for (ptrdiff_t j = 0; j < COLUMNS; j++) {
            t += right[r * COLUMNS + j] * right[r * COLUMNS + j];
        }
        assert_true(fabs(l - values[r]) < 1e-2 && fabs(t - values[r]) < 1e-2);
    }
}

static void any_size(void **state)
{
    (void)state;
    static const double units[] = {1e-300, 1e-30, 1, 1e30, 1e150};
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        make_matrix((const double[]){5 * units[u], 3 * units[u]}, 2);
        make_basis(SPAN);
        rfi_lowrank_error far = solve(SPAN, RANK);
        assert_true(far.miss <= 1e-12 * far.size && fabs(far.size / units[u] - sqrt(34)) < 1e-12);
    }
    /* a column of the basis that is 0, one twice, and one that is enormous */
    make_matrix((const double[]){5, 3}, 2);
    make_basis(SPAN);
    memset(basis + 2 * ROWS, 0, ROWS * sizeof *basis);
    memcpy(basis + 3 * ROWS, basis, ROWS * sizeof *basis);
    for (ptrdiff_t i = 0; i < ROWS; i++) {
        basis[4 * ROWS + i] *= 1e300;
    }
    assert_true(solve(SPAN, RANK).miss < 1e-12);
}

static void nothing(void **state)
{
    (void)state;
    memset(matrix, 0, sizeof matrix);
    memset(basis, 0, sizeof basis);
    rfi_lowrank_error far = solve(SPAN, RANK);
    assert_true(far.size == 0 && far.miss == 0 && distance() == 0);
    for (ptrdiff_t r = 0; r < RANK; r++) {
        double sum = 0;
        for (ptrdiff_t j = 0; j < COLUMNS; j++) {
            sum += right[r * COLUMNS + j] * right[r * COLUMNS + j];
        }
        assert_true(sum > 0.1 && sum < 10);
    }
}

static void eigenvalues(void **state)
{
    (void)state;
    enum { N = 12 };
    double a[N * N];
    double vectors[N * N];
    for (ptrdiff_t i = 0; i < N; i++) {
        for (ptrdiff_t j = 0; j < N; j++) {
            a[i * N + j] = 0;
            for (ptrdiff_t k = 0; k < N; k++) {
                a[i * N + j] += (double)(k * k) * cosine(k, i, N) * cosine(k, j, N);
            }
        }
    }
    rfi_jacobi(a, N, vectors);
    for (ptrdiff_t k = 0; k < N; k++) {
        double along = 0;
        for (ptrdiff_t i = 0; i < N; i++) {
            along += vectors[k * N + i] * cosine(N - 1 - k, i, N);
        }
        assert_true(fabs(a[k * N + k] - (double)((N - 1 - k) * (N - 1 - k))) < 1e-10);
        assert_true(fabs(fabs(along) - 1) < 1e-10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact),   cmocka_unit_test(optimal),     cmocka_unit_test(any_size),
        cmocka_unit_test(nothing), cmocka_unit_test(eigenvalues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
