/* Gram matrices of a chunk in the cache: the library's kernel beside ssyrk of OpenBLAS, where that is installed.
 *
 * K rows of 1024 float32 numbers, as agg/gram.c hands them over. The kernel adds at most 64 products one after the other and goes on in
 * double precision, which its error bound needs; ssyrk sums all 1024 in single precision. One thread; the smallest processor time of many
 * batches, in nanoseconds per coordinate.
 *
 * usage: bench_gram [--repeats N]     batches, 200 unless told (other flags are for other benchmarks and are ignored)
 */
#include "num/kernels/kernels.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 128, COUNT = 1024, STRIDE = COUNT + 16, BATCH = 20 };
enum { ROW_MAJOR = 101, LOWER = 122, AS_IT_IS = 111 };

typedef void ssyrk(int order, int half, int transposed, int n, int k, float alpha, const float *a, int lda, float beta,
                   float *c, int ldc);

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of OpenBLAS, with one thread; NULL: it is not there. */
static ssyrk *find_blas(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    if (!library) {
        return NULL;
    }
    void (*set_threads)(int) = NULL;
    ssyrk *found = NULL;
    void *symbol = dlsym(library, "openblas_set_num_threads");
    memcpy(&set_threads, &symbol, sizeof symbol);
    symbol = dlsym(library, "cblas_ssyrk");
    memcpy(&found, &symbol, sizeof symbol);
    if (set_threads) {
        set_threads(1);
    }
    return found;
}

static float rows[MOST * STRIDE];
static double sums[MOST * (MOST + 1) / 2];
static float product[MOST * MOST];

/* Nanoseconds per coordinate; blas NULL: of the kernel. */
static double measure(const rfi_kernels *kernels, ssyrk *blas, int points, int repeats)
{
    double least = 1e9;
    for (int repeat = 0; repeat < repeats; repeat++) {
        double start = now();
        for (int i = 0; i < BATCH; i++) {
            if (blas) {
                blas(ROW_MAJOR, LOWER, AS_IT_IS, points, COUNT, 1, rows, STRIDE, 0, product, MOST);
            } else {
                kernels->gram_single(rows, STRIDE, points, COUNT, sums);
            }
        }
        double time = 1e9 * (now() - start) / BATCH / COUNT;
        least = time < least ? time : least;
    }
    return least;
}

int main(int argc, char **argv)
{
    static const int sizes[] = {8, 16, 32, 64, 128};
    const rfi_kernels *kernels = rfi_kernels_find(true);
    ssyrk *blas = find_blas();
    uint32_t state = 1;
    int repeats = 200;
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--repeats") == 0) {
            repeats = (int)strtol(argv[i + 1], NULL, 10);
        }
    }
    for (ptrdiff_t i = 0; i < MOST * STRIDE; i++) {
        state = state * 1664525 + 1013904223;
        rows[i] = (float)(int32_t)state * 0x1p-31F;
    }
    if (!kernels || !kernels->gram_single) {
        printf("Gram matrices: these kernels have none in single precision\n");
        return 0;
    }
    printf("Gram matrix of %d coordinates in the cache, %s: nanoseconds per coordinate, one thread\n\n", COUNT,
           kernels->name);
    printf("%4s  %9s  %9s\n", "K", "kernel", blas ? "ssyrk" : "(no OpenBLAS)");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        printf("%4d  %9.2f", sizes[i], measure(kernels, NULL, sizes[i], repeats));
        if (blas) {
            printf("  %9.2f", measure(kernels, blas, sizes[i], repeats));
        }
        printf("\n");
    }
    return 0;
}
