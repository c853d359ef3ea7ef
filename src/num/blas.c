/* The only file that uses a BLAS. If there is one, cmake/ReefBlas.cmake defines REEF_BLAS_LIBRARY: what to load.
 *
 * It is loaded by the first problem that computes with it, not with the program: when threaded builds of OpenBLAS are loaded, they start threads and take 128 MB of
 * addresses for each, and if `ulimit -v` leaves too little, they wait for it forever. Programs that only
 * aggregate are not affected; those that learn get a message. */
#include "num/blas.h"

#include "base/error.h"

#ifdef REEF_BLAS_LIBRARY

#include "base/pool.h"

#include <assert.h>
#include <cblas.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* What OpenBLAS takes of addresses: its code with that of the libraries it needs, and a buffer and a stack per thread. */
#define CODE_BYTES ((size_t)64 << 20)
#define THREAD_BYTES ((size_t)160 << 20)

/* Written once, under the lock of rfi_blas_load; who computes has called that before. */
static __typeof__(cblas_sgemm) *sgemm;
static __typeof__(cblas_sgemv) *sgemv;
/* Where addresses are limited one product is done at a time, in the one buffer that is there by then. */
static bool limited;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

const char *rfi_blas_name(void)
{
    return strstr(REEF_BLAS_LIBRARY, "openblas") ? "OpenBLAS" : "BLAS";
}

static bool addresses_limited(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/* OpenBLAS would start as many threads as the environment says, or as there are processors. */
static size_t bytes_needed(void)
{
    const char *text = getenv("OPENBLAS_NUM_THREADS");
    long threads = text ? strtol(text, NULL, 10) : 0;
    if (threads < 1 || threads > rfi_processor_count()) {
        threads = rfi_processor_count();
    }
    return CODE_BYTES + (size_t)threads * THREAD_BYTES;
}

static bool bytes_available(size_t bytes)
{
    void *volatile place = malloc(bytes); /* addresses only: nothing is written; volatile, or compilers leave it out */
    bool there = place != NULL;
    free(place);
    return there;
}

/* POSIX: the address of a function fits into a pointer; ISO C has no cast for it. */
static void take(void *library, const char *name, void *function, size_t size)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, size);
}

/* Has OpenBLAS take its buffer now, while there is room for it; it keeps it. */
static void warm_up(void)
{
    enum { SIDE = 64 };
    float x[SIDE * SIDE] = {0};
    float y[SIDE * SIDE];
    sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, SIDE, SIDE, SIDE, 1, x, SIDE, x, SIDE, 0, y, SIDE);
}

static reef_status load(reef_error *error)
{
    void (*set_threads)(int) = NULL;
    size_t bytes = bytes_needed();
    limited = addresses_limited();
    if (limited && !bytes_available(bytes)) {
        return rfi_fail(error, REEF_E_NOMEM,
                        "%s needs %zu MB of address space, more than the limit leaves; raise ulimit -v",
                        REEF_BLAS_LIBRARY, bytes >> 20);
    }
    void *library = dlopen(REEF_BLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL); /* and never closed: its threads run */
    if (!library) {
        const char *reason = dlerror();
        return rfi_fail(error, REEF_E_FILE,
                        "products of matrices need %s, which cannot be loaded (%.160s); install it, or build Reef with "
                        "-DREEF_BLAS=OFF",
                        REEF_BLAS_LIBRARY, reason ? reason : "unknown reason");
    }
    take(library, "openblas_set_num_threads", (void *)&set_threads, sizeof set_threads);
    if (set_threads) {
        set_threads(1);
    }
    take(library, "cblas_sgemv", (void *)&sgemv, sizeof sgemv);
    take(library, "cblas_sgemm", (void *)&sgemm, sizeof sgemm);
    if (!sgemm || !sgemv) {
        return rfi_fail(error, REEF_E_FILE, "%s has no cblas_sgemm or no cblas_sgemv; install OpenBLAS",
                        REEF_BLAS_LIBRARY);
    }
    if (limited) {
        warm_up();
    }
    return REEF_OK;
}

reef_status rfi_blas_load(reef_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    (void)pthread_mutex_lock(&lock);
    reef_status status = REEF_OK;
    if (!sgemm || !sgemv) {
        status = load(error);
    }
    (void)pthread_mutex_unlock(&lock);
    return status;
}

static void enter(void)
{
    if (limited) {
        (void)pthread_mutex_lock(&one_at_a_time);
    }
}

static void leave(void)
{
    if (limited) {
        (void)pthread_mutex_unlock(&one_at_a_time);
    }
}

static bool fits(ptrdiff_t a, ptrdiff_t b, ptrdiff_t c)
{
    return a <= INT_MAX && b <= INT_MAX && c <= INT_MAX;
}

static CBLAS_TRANSPOSE transpose(bool yes)
{
    return yes ? CblasTrans : CblasNoTrans;
}

void rfi_sgemm(bool ta, bool tb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha, const float *a, ptrdiff_t lda,
               const float *b, ptrdiff_t ldb, float beta, float *c, ptrdiff_t ldc)
{
    /* Some BLAS return at once for k = 0 without scaling C, and none takes sizes beyond int. */
    if (k < 1 || alpha == 0 || !fits(m, n, k) || !fits(lda, ldb, ldc)) {
        rfi_plain_sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
    assert(sgemm);
    enter();
    sgemm(CblasRowMajor, transpose(ta), transpose(tb), (int)m, (int)n, (int)k, alpha, a, (int)lda, b, (int)ldb, beta, c,
          (int)ldc);
    leave();
}

void rfi_sgemv(bool ta, ptrdiff_t m, ptrdiff_t n, float alpha, const float *a, ptrdiff_t lda, const float *x,
               float beta, float *y)
{
    if (m < 1 || n < 1 || alpha == 0 || !fits(m, n, lda)) {
        rfi_plain_sgemv(ta, m, n, alpha, a, lda, x, beta, y);
        return;
    }
    /* Reference BLAS multiplies y by beta = 0 in some versions; clearing it first makes NaN in y harmless everywhere. */
    for (ptrdiff_t i = 0; beta == 0 && i < (ta ? n : m); i++) {
        y[i] = 0;
    }
    assert(sgemv);
    enter();
    sgemv(CblasRowMajor, transpose(ta), (int)m, (int)n, alpha, a, (int)lda, x, 1, beta, y, 1);
    leave();
}

#else

const char *rfi_blas_name(void)
{
    return "plain C";
}

reef_status rfi_blas_load(reef_error *error)
{
    (void)error;
    return REEF_OK;
}

void rfi_sgemm(bool ta, bool tb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha, const float *a, ptrdiff_t lda,
               const float *b, ptrdiff_t ldb, float beta, float *c, ptrdiff_t ldc)
{
    rfi_plain_sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void rfi_sgemv(bool ta, ptrdiff_t m, ptrdiff_t n, float alpha, const float *a, ptrdiff_t lda, const float *x,
               float beta, float *y)
{
    rfi_plain_sgemv(ta, m, n, alpha, a, lda, x, beta, y);
}

#endif
