#include "num/lowrank.h"

#include "base/error.h"
#include "base/memory.h"
#include "num/rng.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* CHUNK columns are projected at once, so that T stays in the cache; EXTRA directions beyond the rank make the iteration converge. */
enum { CHUNK = 256, EXTRA = 8, ITERATIONS = 300, SWEEPS = 60, REFINEMENTS = 20 };

/* A vector of length 1 with no more than this beside others depends on them: what is left of it are rounding errors. */
static const double dependent = 1e-15;

/* Sums in eight strands, which compilers can keep in vector registers: the order is fixed. */
static double dot(const double *a, const double *b, ptrdiff_t count)
{
    double sums[8] = {0};
    ptrdiff_t i = 0;
    for (; i + 8 <= count; i += 8) {
        for (int j = 0; j < 8; j++) {
            sums[j] += a[i + j] * b[i + j];
        }
    }
    for (; i < count; i++) {
        sums[0] += a[i] * b[i];
    }
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

static void add(double *to, double times, const double *from, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        to[i] += times * from[i];
    }
}

static void scale(double *vector, double times, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        vector[i] *= times;
    }
}

/* Scaled by its largest number first: squares of small or large ones would be 0 or infinite. False if there is nothing but 0. */
static bool normalize(double *vector, ptrdiff_t count)
{
    double largest = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(vector[i]));
    }
    if (!(largest > 0) || !isfinite(largest)) {
        return false;
    }
    for (ptrdiff_t i = 0; i < count; i++) { /* 1 / largest may overflow */
        vector[i] /= largest;
    }
    scale(vector, 1 / sqrt(dot(vector, vector, count)), count);
    return true;
}

/* Makes vectors (rows of `length`) orthonormal, dropping those that depend on others; twice is enough (Gram-Schmidt). Returns how many are
 * left. */
static ptrdiff_t orthonormalize(double *vectors, ptrdiff_t count, ptrdiff_t length)
{
    ptrdiff_t kept = 0;
    for (ptrdiff_t v = 0; v < count && kept < length; v++) {
        double *vector = vectors + kept * length;
        if (v != kept) {
            memcpy(vector, vectors + v * length, (size_t)length * sizeof *vector);
        }
        bool good = normalize(vector, length);
        double left = 1;
        for (int round = 0; good && round < 2; round++) {
            for (ptrdiff_t k = 0; k < kept; k++) {
                add(vector, -dot(vectors + k * length, vector, length), vectors + k * length, length);
            }
            left = round == 0 ? sqrt(dot(vector, vector, length)) : left;
        }
        kept += good && left > dependent && normalize(vector, length);
    }
    return kept;
}

/* ---- eigenvalues ---- */

static void rotate(double *a, double *b, ptrdiff_t stride, ptrdiff_t count, double c, double s)
{
    for (ptrdiff_t i = 0; i < count; i++, a += stride, b += stride) {
        double x = *a;
        double y = *b;
        *a = c * x - s * y;
        *b = s * x + c * y;
    }
}

/* Makes element (p, q) 0. */
static void annihilate(double *matrix, ptrdiff_t n, ptrdiff_t p, ptrdiff_t q, double *vectors)
{
    double off = matrix[p * n + q];
    double theta = (matrix[q * n + q] - matrix[p * n + p]) / (2 * off);
    double t = (theta < 0 ? -1.0 : 1.0) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1);
    double s = t * c;
    rotate(matrix + p, matrix + q, n, n, c, s);
    rotate(matrix + p * n, matrix + q * n, 1, n, c, s);
    rotate(vectors + p * n, vectors + q * n, 1, n, c, s);
    matrix[p * n + q] = matrix[q * n + p] = 0;
}

static void sort_largest_first(double *matrix, ptrdiff_t n, double *vectors)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        ptrdiff_t best = i;
        for (ptrdiff_t j = i + 1; j < n; j++) {
            best = matrix[j * n + j] > matrix[best * n + best] ? j : best;
        }
        double value = matrix[i * n + i];
        matrix[i * n + i] = matrix[best * n + best];
        matrix[best * n + best] = value;
        for (ptrdiff_t k = 0; best != i && k < n; k++) {
            double x = vectors[i * n + k];
            vectors[i * n + k] = vectors[best * n + k];
            vectors[best * n + k] = x;
        }
    }
}

void rfi_jacobi(double *matrix, ptrdiff_t order, double *vectors)
{
    const ptrdiff_t n = order;
    bool changed = true;
    memset(vectors, 0, (size_t)(n * n) * sizeof *vectors);
    for (ptrdiff_t i = 0; i < n; i++) {
        vectors[i * n + i] = 1;
    }
    for (int sweep = 0; changed && sweep < SWEEPS; sweep++) {
        changed = false;
        for (ptrdiff_t p = 0; p < n; p++) {
            for (ptrdiff_t q = p + 1; q < n; q++) {
                double size = sqrt(fabs(matrix[p * n + p])) * sqrt(fabs(matrix[q * n + q]));
                if (fabs(matrix[p * n + q]) > 1e-15 * size && fabs(matrix[p * n + q]) > 1e-300) {
                    annihilate(matrix, n, p, q, vectors);
                    changed = true;
                }
            }
        }
    }
    sort_largest_first(matrix, n, vectors);
}

/* ---- the matrix ---- */

typedef struct work {
    const rfi_lowrank *in;
    double unit;    /* the largest number of R; everything is divided by it */
    ptrdiff_t q;    /* of the basis */
    ptrdiff_t b;    /* vectors that are iterated */
    double *t;      /* q x columns */
    double *g;      /* q x q: T T' */
    double *v, *w;  /* b x q */
    double *h, *u;  /* b x b */
    double *z;      /* b x columns */
    double *row;    /* columns */
    double *strip;  /* 4 x CHUNK */
    double *before; /* rank: values of the step before */
} work;

/* Numbers of R from row i, column j on, in units. */
static void load(const work *k, ptrdiff_t i, ptrdiff_t j, ptrdiff_t count, double *to)
{
    const float *single = k->in->numbers;
    const double *number = k->in->numbers;
    ptrdiff_t at = i * k->in->columns + j;
    for (ptrdiff_t c = 0; c < count; c++) {
        to[c] = (k->in->wide ? number[at + c] : (double)single[at + c]) / k->unit;
    }
}

static double find_unit(const work *k)
{
    double largest = 0;
    for (ptrdiff_t i = 0; i < k->in->rows; i++) {
        load(k, i, 0, k->in->columns, k->row);
        for (ptrdiff_t j = 0; j < k->in->columns; j++) {
            largest = fmax(largest, fabs(k->row[j]));
        }
    }
    return largest;
}

/* Columns [j, j + count) of T = Q' R, four rows of R at a time. */
static void project_strip(const work *k, ptrdiff_t j, ptrdiff_t count)
{
    const rfi_lowrank *in = k->in;
    for (ptrdiff_t i = 0; i < in->rows; i += 4) {
        ptrdiff_t height = in->rows - i < 4 ? in->rows - i : 4;
        memset(k->strip, 0, 4 * CHUNK * sizeof *k->strip);
        for (ptrdiff_t r = 0; r < height; r++) {
            load(k, i + r, j, count, k->strip + r * CHUNK);
        }
        for (ptrdiff_t p = 0; p < k->q; p++) {
            double *t = k->t + p * in->columns + j;
            double f[4] = {0};
            memcpy(f, in->basis + p * in->rows + i, (size_t)height * sizeof *f);
            const double *x = k->strip;
            for (ptrdiff_t c = 0; c < count; c++) {
                t[c] += (f[0] * x[c] + f[1] * x[CHUNK + c]) + (f[2] * x[2 * CHUNK + c] + f[3] * x[3 * CHUNK + c]);
            }
        }
    }
}

static void project(const work *k)
{
    ptrdiff_t n = k->in->columns;
    memset(k->t, 0, (size_t)(k->q * n) * sizeof *k->t);
    for (ptrdiff_t j = 0; j < n; j += CHUNK) {
        project_strip(k, j, n - j < CHUNK ? n - j : CHUNK);
    }
    for (ptrdiff_t p = 0; p < k->q; p++) {
        for (ptrdiff_t r = 0; r <= p; r++) {
            k->g[p * k->q + r] = k->g[r * k->q + p] = dot(k->t + p * n, k->t + r * n, n);
        }
    }
}

/* ---- the largest directions ---- */

/* w = v G; returns how much of the trace is in the span of v. */
static double multiply(const work *k)
{
    double trace = 0;
    for (ptrdiff_t i = 0; i < k->b; i++) {
        for (ptrdiff_t p = 0; p < k->q; p++) {
            k->w[i * k->q + p] = dot(k->v + i * k->q, k->g + p * k->q, k->q);
        }
        trace += dot(k->w + i * k->q, k->v + i * k->q, k->q);
    }
    return trace;
}

/* Orthonormal directions; those that depend on others, since their values are too small for T T', are found anew at random. */
static void keep_apart(work *k, rfi_rng *rng)
{
    ptrdiff_t kept = orthonormalize(k->v, k->b, k->q);
    for (int tries = 0; kept < k->b && tries < 3; tries++) {
        for (ptrdiff_t i = kept * k->q; i < k->b * k->q; i++) {
            k->v[i] = rfi_rng_normal(rng);
        }
        kept = orthonormalize(k->v, k->b, k->q);
    }
    k->b = kept;
}

static void start(work *k, rfi_rng *rng)
{
    rfi_rng_init(rng, 1, RFI_PURPOSE_LOWRANK, 0, 0, 0);
    for (ptrdiff_t i = 0; i < k->b * k->q; i++) {
        k->v[i] = rfi_rng_normal(rng);
    }
    keep_apart(k, rng);
}

/* Orthogonal iteration, then Rayleigh and Ritz: the rows of v become the leading eigenvectors of G. */
static void find_directions(work *k)
{
    double before = -1;
    rfi_rng rng;
    start(k, &rng);
    for (int i = 0; i < ITERATIONS; i++) {
        double trace = multiply(k);
        if (!(trace > before + 1e-14 * fabs(before))) {
            break;
        }
        before = trace;
        double *swap = k->v;
        k->v = k->w;
        k->w = swap;
        keep_apart(k, &rng);
    }
    (void)multiply(k);
    for (ptrdiff_t i = 0; i < k->b; i++) {
        for (ptrdiff_t j = 0; j <= i; j++) {
            k->h[i * k->b + j] = k->h[j * k->b + i] = dot(k->w + i * k->q, k->v + j * k->q, k->q);
        }
    }
    rfi_jacobi(k->h, k->b, k->u);
    memset(k->w, 0, (size_t)(k->b * k->q) * sizeof *k->w);
    for (ptrdiff_t i = 0; i < k->b; i++) {
        for (ptrdiff_t j = 0; j < k->b; j++) {
            add(k->w + i * k->q, k->u[i * k->b + j], k->v + j * k->q, k->q);
        }
    }
}

/* Makes rows p and r of z orthogonal, and turns w alike; false if they are. */
static bool part_rows(const work *k, ptrdiff_t p, ptrdiff_t r)
{
    const ptrdiff_t n = k->in->columns;
    double *a = k->z + p * n;
    double *b = k->z + r * n;
    double aa = dot(a, a, n);
    double bb = dot(b, b, n);
    double ab = dot(a, b, n);
    if (!(fabs(ab) > 1e-15 * sqrt(aa) * sqrt(bb)) || !(fabs(ab) > 1e-300)) {
        return false;
    }
    double theta = (bb - aa) / (2 * ab);
    double t = (theta < 0 ? -1.0 : 1.0) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1);
    rotate(a, b, 1, n, c, t * c);
    rotate(k->w + p * k->q, k->w + r * k->q, 1, k->q, c, t * c);
    return true;
}

/* The largest first. */
static void sort_rows(const work *k)
{
    for (ptrdiff_t i = 0; i < k->b; i++) {
        ptrdiff_t best = i;
        for (ptrdiff_t j = i + 1; j < k->b; j++) {
            best = k->h[j * k->b + j] > k->h[best * k->b + best] ? j : best;
        }
        double value = k->h[i * k->b + i];
        k->h[i * k->b + i] = k->h[best * k->b + best];
        k->h[best * k->b + best] = value;
        if (best != i) {
            rotate(k->w + i * k->q, k->w + best * k->q, 1, k->q, 0, 1);
        }
    }
}

/* Singular values and left directions of T, as many as it has rows. The eigenvectors of T T' make its rows nearly orthogonal, but know nothing of
 * values below 1e-8 of the largest; what is left of the rows' products is rotated away, pair by pair (one-sided Jacobi). */
static void solve_rows(work *k)
{
    const ptrdiff_t n = k->in->columns;
    bool changed = true;
    assert(k->b == k->q);
    memcpy(k->h, k->g, (size_t)(k->q * k->q) * sizeof *k->h);
    rfi_jacobi(k->h, k->q, k->w);
    memset(k->z, 0, (size_t)(k->b * n) * sizeof *k->z);
    for (ptrdiff_t i = 0; i < k->b; i++) {
        for (ptrdiff_t p = 0; p < k->q; p++) {
            add(k->z + i * n, k->w[i * k->q + p], k->t + p * n, n);
        }
    }
    for (int sweep = 0; changed && sweep < SWEEPS; sweep++) {
        changed = false;
        for (ptrdiff_t p = 0; p < k->b; p++) {
            for (ptrdiff_t r = p + 1; r < k->b; r++) {
                changed = part_rows(k, p, r) || changed;
            }
        }
    }
    memset(k->h, 0, (size_t)(k->b * k->b) * sizeof *k->h);
    for (ptrdiff_t i = 0; i < k->b; i++) {
        k->h[i * k->b + i] = dot(k->z + i * n, k->z + i * n, n);
    }
    sort_rows(k);
}

/* A step beyond the given columns: the basis becomes R Z', where Z are the leading directions on the right, so that the left ones are those of R
 * and not of its projection. */
static void refine(work *k)
{
    const rfi_lowrank *in = k->in;
    memset(k->z, 0, (size_t)(k->b * in->columns) * sizeof *k->z);
    for (ptrdiff_t i = 0; i < k->b; i++) {
        for (ptrdiff_t p = 0; p < k->q; p++) {
            add(k->z + i * in->columns, k->w[i * k->q + p], k->t + p * in->columns, in->columns);
        }
    }
    ptrdiff_t count = orthonormalize(k->z, k->b, in->columns);
    for (ptrdiff_t m = 0; m < in->rows; m++) {
        load(k, m, 0, in->columns, k->row);
        for (ptrdiff_t i = 0; i < count; i++) {
            in->basis[i * in->rows + m] = dot(k->row, k->z + i * in->columns, in->columns);
        }
    }
    k->q = orthonormalize(in->basis, count, in->rows);
    k->b = k->q;
}

/* Steps until the values that are kept stay as they are. */
static void refine_well(work *k)
{
    double *before = k->before;
    for (int i = 0; i < REFINEMENTS; i++) {
        double change = 0;
        refine(k);
        project(k);
        solve_rows(k);
        for (ptrdiff_t v = 0; v < k->in->rank && v < k->b; v++) {
            double value = sqrt(k->h[v * k->b + v]);
            change = fmax(change, i > 0 ? fabs(value - before[v]) : (double)INFINITY);
            before[v] = value;
        }
        if (k->b == 0 || change <= 4 * DBL_EPSILON * before[0]) {
            return;
        }
    }
}

/* ---- factors ---- */

/* The sign of a direction means nothing; its largest number is made positive, so that it does not depend on how it was found. */
static double sign_of(const double *vector, ptrdiff_t count)
{
    ptrdiff_t best = 0;
    for (ptrdiff_t i = 1; i < count; i++) {
        best = fabs(vector[i]) > fabs(vector[best]) ? i : best;
    }
    return vector[best] < 0 ? -1 : 1;
}

static void fill_at_random(double *row, ptrdiff_t count, ptrdiff_t which)
{
    rfi_rng rng;
    rfi_rng_init(&rng, 2, RFI_PURPOSE_LOWRANK, (uint32_t)which, 0, 0);
    for (ptrdiff_t j = 0; j < count; j++) {
        row[j] = rfi_rng_normal(&rng) / sqrt((double)count);
    }
}

static void make_factors(const work *k, double *left, double *right)
{
    const rfi_lowrank *in = k->in;
    double largest = k->b > 0 ? k->h[0] : 0;
    for (ptrdiff_t i = 0; i < in->rank; i++) {
        double *to = right + i * in->columns;
        double square = i < k->b ? k->h[i * k->b + i] : 0;
        bool there = square > dependent * dependent * largest && square > 0;
        double times = there ? sqrt(sqrt(square)) : 0;
        const double *u = k->w + i * k->q;
        memset(to, 0, (size_t)in->columns * sizeof *to);
        for (ptrdiff_t p = 0; there && p < k->q; p++) {
            add(to, u[p] / times, k->t + p * in->columns, in->columns);
        }
        double sign = there ? sign_of(to, in->columns) : 1;
        scale(to, sign, in->columns);
        for (ptrdiff_t m = 0; m < in->rows; m++) {
            double sum = 0;
            for (ptrdiff_t p = 0; there && p < k->q; p++) {
                sum += u[p] * in->basis[p * in->rows + m];
            }
            left[m * in->rank + i] = sign * times * sum;
        }
        if (!there) {
            fill_at_random(to, in->columns, i);
        }
    }
}

static rfi_lowrank_error measure(const work *k, const double *left, const double *right)
{
    const rfi_lowrank *in = k->in;
    rfi_lowrank_error far = {0, 0};
    for (ptrdiff_t i = 0; i < in->rows; i++) {
        load(k, i, 0, in->columns, k->row);
        far.size += dot(k->row, k->row, in->columns);
        for (ptrdiff_t r = 0; r < in->rank; r++) {
            add(k->row, -left[i * in->rank + r], right + r * in->columns, in->columns);
        }
        far.miss += dot(k->row, k->row, in->columns);
    }
    return (rfi_lowrank_error){k->unit * sqrt(far.size), k->unit * sqrt(far.miss)};
}

/* ---- all of it ---- */

static void lay_out(work *k, rfi_arena *arena)
{
    const rfi_lowrank *in = k->in;
    k->t = rfi_arena_take(arena, k->q, in->columns, sizeof(double));
    k->g = rfi_arena_take(arena, k->q, k->q, sizeof(double));
    k->v = rfi_arena_take(arena, k->b, k->q, sizeof(double));
    k->w = rfi_arena_take(arena, k->b, k->q, sizeof(double));
    k->h = rfi_arena_take(arena, k->b, k->b, sizeof(double));
    k->u = rfi_arena_take(arena, k->b, k->b, sizeof(double));
    k->z = rfi_arena_take(arena, k->b, in->columns, sizeof(double));
    k->row = rfi_arena_take(arena, in->columns, 1, sizeof(double));
    k->strip = rfi_arena_take(arena, 4, CHUNK, sizeof(double));
    k->before = rfi_arena_take(arena, in->rank, 1, sizeof(double));
}

/* Q of the columns that were given; of as many as there are rows, simply the axes. */
static ptrdiff_t make_basis(const rfi_lowrank *in)
{
    if (in->span < in->rows) {
        return orthonormalize(in->basis, in->span, in->rows);
    }
    memset(in->basis, 0, (size_t)(in->rows * in->rows) * sizeof *in->basis);
    for (ptrdiff_t i = 0; i < in->rows; i++) {
        in->basis[i * in->rows + i] = 1;
    }
    return in->rows;
}

reef_status rfi_lowrank_factor(const reef_context *context, const rfi_lowrank *problem, double *left, double *right,
                               rfi_lowrank_error *far, reef_error *error)
{
    work k = {.in = problem, .unit = 1, .q = make_basis(problem)};
    k.b = problem->rank + EXTRA < k.q ? problem->rank + EXTRA : k.q;
    rfi_arena sizes = {0};
    lay_out(&k, &sizes);
    void *memory = sizes.overflow ? NULL : rfi_allocate(context, (size_t)sizes.used + RFI_ALIGNMENT);
    if (!memory) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory to factor a matrix of %td x %td", problem->rows,
                        problem->columns);
    }
    rfi_arena arena = {.base = rfi_align(memory)};
    lay_out(&k, &arena);
    double largest = find_unit(&k);
    k.unit = largest > 0 ? largest : 1;
    if (k.q > 0) {
        project(&k);
        find_directions(&k);
        refine_well(&k);
    }
    make_factors(&k, left, right);
    *far = measure(&k, left, right);
    double root = sqrt(k.unit);
    scale(left, root, problem->rows * problem->rank);
    scale(right, largest > 0 ? root : 1, problem->columns * problem->rank);
    rfi_release(context, memory);
    return REEF_OK;
}
