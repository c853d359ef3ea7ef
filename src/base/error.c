/* Status texts and error messages. */
#include "base/error.h"

#include "base/text.h"

#include <reef/version.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const status_texts[] = {
#define STATUS_TEXT(code, number, text) [code] = (text),
    REEF_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
};

const char *reef_status_text(reef_status status)
{
    size_t count = sizeof status_texts / sizeof status_texts[0];
    if ((size_t)status >= count) {
        return "unknown status";
    }
    return status_texts[status];
}

const char *reef_version(void)
{
    return REEF_VERSION_STRING;
}

int reef_abi_version(void)
{
    return REEF_ABI_VERSION;
}

#undef rfi_fail
reef_status rfi_fail(reef_error *error, reef_status status, const char *format, ...)
{
    if (error) {
        va_list args;
        va_start(args, format);
        error->status = status;
        (void)vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
        rfi_hide_control(error->text); /* texts of file names and files are among it */
    }
    return status;
}
