/* Filling in a reef_error. */
#ifndef RFI_BASE_ERROR_H
#define RFI_BASE_ERROR_H

#include <assert.h>
#include <reef/status.h>
#include <stddef.h>

/* Stores status and formatted text in error (if not NULL) and returns status, so that callers can
 * write `return rfi_fail(error, REEF_E_ARG, ...)`. Text that is too long is cut. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
reef_status
rfi_fail(reef_error *error, reef_status status, const char *format, ...);

#ifdef __clang_analyzer__
/* The analyzer does not see into the function: what comes back is the status that went in. */
#define rfi_fail(error, status, ...) ((void)(rfi_fail)(error, status, __VA_ARGS__), (status))
#endif

/* The size that a caller's struct states (0: as version 0.2 has it) against the one that this library knows. */
reef_status rfi_check_size(size_t stated, size_t known, const char *name, reef_error *error);

/* For calls that cannot fail with these arguments. */
static inline void rfi_certain(reef_status status)
{
    assert(status == REEF_OK);
    (void)status;
}

#endif
