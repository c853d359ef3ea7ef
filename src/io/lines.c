/* Lines of a text. */
#include "io/lines.h"

#include "base/error.h"
#include "io/file.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void rfi_lines_start(rfi_lines *lines, const void *bytes, size_t size, const char *name)
{
    const char *text = bytes;
    size_t mark = size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    *lines = (rfi_lines){.name = name, .at = text + mark, .end = text + size, .start = text, .line = {text, 0}};
}

bool rfi_lines_next(rfi_lines *lines)
{
    while (lines->at < lines->end) {
        size_t left = (size_t)(lines->end - lines->at);
        const char *feed = memchr(lines->at, '\n', left);
        size_t length = feed ? (size_t)(feed - lines->at) : left;
        lines->start = lines->at;
        lines->number++;
        lines->at += length + (feed ? 1 : 0);
        const char *comment = length > 0 ? memchr(lines->start, '#', length) : NULL;
        lines->line = (rfi_slice){lines->start, comment ? (size_t)(comment - lines->start) : length};
        while (lines->line.length > 0 && strchr(" \t\r", lines->line.text[lines->line.length - 1]) &&
               lines->line.text[lines->line.length - 1] != '\0') {
            lines->line.length--;
        }
        if (lines->line.length > 0) {
            return true;
        }
    }
    return false;
}

reef_status rfi_lines_fail(const rfi_lines *lines, const char *place, reef_error *error, const char *format, ...)
{
    char what[200];
    va_list args;
    assert(place >= lines->start); /* a place in the line that is spoken of */
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return rfi_fail(error, REEF_E_FORMAT, "%s:%td:%td: %s", rfi_path_show(lines->name), lines->number,
                    place - lines->start + 1, what);
}

const char *rfi_shown(rfi_slice text, char shown[RFI_SHOWN_SIZE])
{
    size_t length = text.length > 40 ? 40 : text.length;
    for (size_t i = 0; i < length; i++) {
        shown[i] = text.text[i];
        if (shown[i] < ' ' || shown[i] > '~') {
            shown[i] = '?';
        }
    }
    (void)snprintf(shown + length, RFI_SHOWN_SIZE - length, "%s", text.length > length ? "..." : "");
    return shown;
}
