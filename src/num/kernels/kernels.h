/* Fast kernels: coordinates in the lanes of vector registers, all rows of a coordinate in one lane.
 *
 * Every kernel works on a span of coordinates of n rows and is checked against the scalar rules of src/agg, which
 * remain the definition. A lane's operations depend on that lane alone, so a coordinate gets the same bits at any
 * offset, in any order and on any thread. What a kernel cannot decide safely (a value that is not finite, sums that overflow, an
 * iteration that does not settle) it leaves to the caller, by listing the coordinate as hard.
 */
#ifndef RFI_NUM_KERNELS_KERNELS_H
#define RFI_NUM_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most coordinates a span may have. */
#define RFI_SPAN_MAX 4096
/* Bytes of scratch for n rows: so many columns of vectors of the widest kind, and one of sorted 16-bit numbers. */
#define RFI_SPAN_COLUMNS 9
#define RFI_SPAN_SCRATCH(n) ((size_t)((RFI_SPAN_COLUMNS + 1) * (n)) * 64)

/* Products that a sum in single precision takes one after the other. */
enum { RFI_GRAM_ADDITIONS = 64 };

typedef enum rfi_kernel_family { RFI_KERNEL_TUKEY, RFI_KERNEL_HUBER } rfi_kernel_family;

/* M-estimate with count median and MAD. */
typedef struct rfi_kernel_mest {
    int family;        /* rfi_kernel_family */
    double c;          /* tuning constant, in scales */
    double mad_factor; /* scale = mad_factor * MAD */
    double floor;      /* least scale, 0: none */
    double tol;        /* in scales */
    int max_iter;
} rfi_kernel_mest;

/* Effort and trust of a span, added to what is there. */
typedef struct rfi_kernel_report {
    double *share;     /* n: sums of effective weights over the coordinates, NULL: not wanted */
    int64_t *rejected; /* n: coordinates with share 0 */
    unsigned char
        *none; /* n x stride: 1 is put where a row has share 0, beside the zeros that are there; NULL: not wanted */
    ptrdiff_t stride;
    int64_t iterations;
    int max_iterations;
} rfi_kernel_report;

typedef struct rfi_span {
    const void *const *rows; /* n pointers to the first coordinate, any alignment */
    const double *weights;   /* n, sum 1, or NULL for equal ones */
    bool with_zero;          /* sums: the weights sum to less than 1, the rest being the share of 0 */
    ptrdiff_t n;
    ptrdiff_t count; /* coordinates, 1..RFI_SPAN_MAX */
    void *out;       /* count numbers */
    void *scratch;   /* RFI_SPAN_SCRATCH(n) bytes, 64-byte aligned */
    int32_t *
        hard; /* RFI_SPAN_MAX: coordinates left to the caller, ascending; out is unspecified there, or as it should be at ~hard < 0 */
} rfi_span;

/* Sketches of residuals: groups of so many coordinates, each turned by some places and with a sign per coordinate. */
enum { RFI_SKETCH_GROUP = 64, RFI_SKETCH_LANES = 16 };
typedef struct rfi_turns {
    const void *sign;           /* 1 or -1 per coordinate, whole groups, in the type of the rows */
    const unsigned char *shift; /* 0..63 per group */
} rfi_turns;
/* Numbers of the rows' type that `residual` needs to work with. */
#define RFI_RESIDUAL_ROOM(n) ((n) * (2 * RFI_SKETCH_GROUP + 3 * RFI_SKETCH_LANES))

/* One mean of rows with equal weights: made from the sum of the rows that most means have, the core. */
typedef struct rfi_mean {
    const double *part;     /* n: positive for the rows it is made of */
    double factor;          /* 1 / their number */
    const uint16_t *change; /* numbers of rows: of the core, taken away; then others, added */
    int taken, added;
    ptrdiff_t place; /* which row of `out` it is */
} rfi_mean;

typedef struct rfi_means {
    const void *const *rows; /* n pointers to the first coordinate, any alignment */
    const bool *core;        /* n */
    ptrdiff_t n;
    ptrdiff_t count;      /* coordinates */
    const rfi_mean *mean; /* `means` of them */
    ptrdiff_t means;
    void *
        out; /* rows of the same type, `stride` numbers from one to the next: count rounded up to whole vectors, or more */
    ptrdiff_t stride; /* whole vectors */
    void *scratch;    /* RFI_SPAN_SCRATCH(n) bytes, 64-byte aligned */
} rfi_means;
/* Most rows that means may be made of. */
enum { RFI_MEANS_ROWS = 256 };

/* Each returns the number of hard coordinates. */
typedef struct reef_kernels {
    const char *name; /* of the instruction set */
    /* out = sum w_l x_l in double precision; weights NULL: the mean */
    ptrdiff_t (*sum)(const rfi_span *span);
    /* Means of many rows each (NULL: not here); false if one is not finite. */
    bool (*means)(const rfi_means *means);
    /* the lower, upper or mean of the two middle values: kind as rfi_median_kind; equal weights, like the next two */
    ptrdiff_t (*median)(const rfi_span *span, int kind, rfi_kernel_report *report);
    /* mean without the f smallest and largest */
    ptrdiff_t (*trimmed)(const rfi_span *span, ptrdiff_t f, rfi_kernel_report *report);
    /* mean of the `kept` values nearest to the median, ties in part */
    ptrdiff_t (*meamed)(const rfi_span *span, ptrdiff_t kept, rfi_kernel_report *report);
    /* The same three with unequal weights, which must not be tiny (rfi_span_weights); half_tol as that of rfi_wmedian. */
    ptrdiff_t (*median_weighted)(const rfi_span *span, int kind, double half_tol, rfi_kernel_report *report);
    ptrdiff_t (*trimmed_weighted)(const rfi_span *span, ptrdiff_t f, rfi_kernel_report *report);
    ptrdiff_t (*meamed_weighted)(const rfi_span *span, ptrdiff_t kept, rfi_kernel_report *report);
    ptrdiff_t (*mest)(const rfi_span *span, const rfi_kernel_mest *est, rfi_kernel_report *report);
    /* centred[p * stride + t] = x_p(t) - median(t) for all rows, and the medians (count of each, rounded up to whole vectors); *largest:
     * greatest |centred|. Returns false if some value is not finite. */
    bool (*centre)(const rfi_span *span, double *centred, ptrdiff_t stride, double *medians, double *largest);
    /* sum[packed pair p >= q] += centred_p' centred_q over count coordinates (a multiple of 16, zero padded) */
    void (*gram)(const double *centred, ptrdiff_t stride, ptrdiff_t points, ptrdiff_t count, double *sum);
    /* Both in single precision, for float32 (NULL: not here); centred numbers may overflow. They have a relative error of at most 3 * 2^-24; at most
     * RFI_GRAM_ADDITIONS products are added one after the other before they go on in double precision. */
    bool (*centre_single)(const rfi_span *span, float *centred, ptrdiff_t stride, double *medians);
    void (*gram_single)(const float *centred, ptrdiff_t stride, ptrdiff_t points, ptrdiff_t count, double *sum);
    /* What `centre` makes of the span's rows, with medians that are known; comes with the two before. */
    void (*away)(const rfi_span *span, const double *medians, double *centred, ptrdiff_t stride);
    /* squares[l] = |x_l - median|^2 over the span, sketch[l * 64 + (i + shift) % 64] = sum over groups of sign (x_l - median), in the
     * precision of the rows. Returns false if some value is not finite. */
    bool (*residual)(const rfi_span *span, const rfi_turns *turns, void *room, double *squares, double *sketch);
} rfi_kernels;

/* Denormal numbers count as zero between begin and end (on processors where they would be slow); end takes what begin returned. */
unsigned rfi_flush_begin(void);
void rfi_flush_end(unsigned before);

/* The kernels for a type, the best this processor runs; REEF_ISA in the environment (portable, avx2, avx512, avx512i, neon) caps it, and
 * REEF_ISA=scalar gives NULL: the scalar rules do everything. `single`: float32, else float64. */
const rfi_kernels *rfi_kernels_find(bool single);
/* The kernels that give for rows of float16 or bfloat16 what those for float32 give for the same numbers; results and all else are float32.
 * NULL: none, such rows must be widened. */
const rfi_kernels *rfi_kernels_halved(const rfi_kernels *single, bool brain);
/* All that this processor runs, for tests: index from 0, NULL at the end. */
const rfi_kernels *rfi_kernels_at(bool single, int index);

#endif
