/* Structs that callers fill in state their size; those of another version of the interface are refused. */
#include "base/error.h"

reef_status rfi_check_size(size_t stated, size_t known, const char *name, reef_error *error)
{
    if (stated == 0 || stated == known) {
        return REEF_OK;
    }
    return rfi_fail(error, REEF_E_ARG,
                    "%s has %zu bytes, but Reef %s expects %zu; compile against the headers of this version", name,
                    stated, reef_version(), known);
}
