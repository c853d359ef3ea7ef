/* The build configuration, and what the machine offers. */
#ifndef REEF_SYSTEM_H
#define REEF_SYSTEM_H

#include <reef/status.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Facts about build and machine. */
typedef struct reef_system {
    const char *instructions; /* vector code in use for float32: "avx512", "portable", ..., or "scalar" */
    const char *blas;         /* "OpenBLAS", "BLAS" or "plain C" */
    bool yaml;                /* experiments can be read */
    ptrdiff_t threads;        /* as many as the affinity mask of this process allows */
} reef_system;

/* These facts in the current environment; REEF_ISA limits the instructions. */
REEF_API reef_system reef_system_facts(void);

#ifdef __cplusplus
}
#endif
#endif
