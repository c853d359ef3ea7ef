/* Growing texts, and where they are written: everything that an experiment writes. */
#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"
#include "experiment/run/outcome.h"
#include "io/file.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool grow(rfi_text *text, size_t more)
{
    if (text->failed || more < text->room - text->size) {
        return !text->failed;
    }
    size_t room = 2 * (text->room + more) + 256;
    char *bytes = rfi_allocate(text->context, room);
    if (!bytes) {
        text->failed = true;
        return false;
    }
    if (text->bytes) {
        memcpy(bytes, text->bytes, text->size);
    }
    rfi_release(text->context, text->bytes);
    text->bytes = bytes;
    text->room = room;
    return true;
}

void rfi_text_add(rfi_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || !grow(text, (size_t)length + 1)) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(text->bytes + text->size, text->room - text->size, format, arguments);
    va_end(arguments);
    text->size += (size_t)length;
}

void rfi_text_number(rfi_text *text, double number)
{
    char digits[RFI_REAL_SIZE];
    if (isfinite(number)) {
        rfi_print_real(number, digits);
        rfi_text_add(text, "%s", digits);
    } else {
        rfi_text_add(text, "%s", isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
    }
}

void rfi_text_free(rfi_text *text)
{
    rfi_release(text->context, text->bytes);
    *text = (rfi_text){.context = text->context};
}

reef_status rfi_text_write(const rfi_text *text, const char *folder, const char *name, reef_error *error)
{
    char path[4096];
    if (text->failed) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for %s", name);
    }
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) {
        return rfi_fail(error, REEF_E_FILE, "%s: the path is too long", rfi_path_show(folder));
    }
    return rfi_file_write(text->context, path, &(rfi_piece){text->bytes, text->size}, 1, error);
}

reef_status rfi_make_folder(const char *path, reef_error *error)
{
    char part[4096];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part) {
        return rfi_fail(error, REEF_E_FILE, "'%s' cannot be used as a folder", rfi_path_show(path));
    }
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0') {
            continue;
        }
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST) {
            return rfi_fail(error, REEF_E_FILE, "%s: cannot create the folder: %s", rfi_path_show(part),
                            strerror(errno));
        }
    }
    return REEF_OK;
}

void rfi_text_field(rfi_text *text, const char *value)
{
    if (!strpbrk(value, ",\"\n\r")) {
        rfi_text_add(text, "%s", value);
        return;
    }
    rfi_text_add(text, "\"");
    for (; *value; value++) {
        if (*value == '"') {
            rfi_text_add(text, "\"");
        }
        rfi_text_add(text, "%c", *value);
    }
    rfi_text_add(text, "\"");
}

void rfi_text_bytes(rfi_text *text, const char *bytes, size_t size)
{
    if (size > 0 && grow(text, size + 1)) {
        memcpy(text->bytes + text->size, bytes, size);
        text->size += size;
    }
}

void rfi_text_html(rfi_text *text, const char *words, size_t length)
{
    static const char marks[] = "&<>\"'";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    size_t from = 0;
    for (size_t i = 0; i < length; i++) {
        const char *mark = words[i] ? strchr(marks, words[i]) : NULL;
        if (!mark && words[i]) {
            continue;
        }
        rfi_text_bytes(text, words + from, i - from);
        rfi_text_add(text, "%s", mark ? names[mark - marks] : "&#65533;");
        from = i + 1;
    }
    rfi_text_bytes(text, words + from, length - from);
}
