/* Filling in a reef_error. */
#ifndef RFI_BASE_ERROR_H
#define RFI_BASE_ERROR_H

#include <reef/status.h>

/* Stores status and formatted text in error (if not NULL) and returns status, so that callers can
 * write `return rfi_fail(error, REEF_E_ARG, ...)`. Text that is too long is cut. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
reef_status
rfi_fail(reef_error *error, reef_status status, const char *format, ...);

#endif
