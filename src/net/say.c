/* One line at a time. */
#include "net/say.h"

#include "base/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

void rfi_say(const rfi_teller *to, const char *format, ...)
{
    char line[400];
    va_list list;
    assert(to->tell);
    va_start(list, format);
    (void)vsnprintf(line, sizeof line, format, list);
    va_end(list);
    rfi_hide_control(line); /* what others have written is among it */
    to->tell(to->user, line);
}
