/* Writing JSON (RFC 8259). */
#include "json.h"

#include "commands.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

json json_start(FILE *to)
{
    return (json){.to = to};
}

/* Bytes of the UTF-8 character that begins here; 0: it is none (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF). */
static int character(const unsigned char *c)
{
    int length = c[0] < 0x80 ? 1 : c[0] >= 0xC2 && c[0] < 0xE0 ? 2 : c[0] >= 0xE0 && c[0] < 0xF0 ? 3 : 4;
    if ((c[0] >= 0x80 && c[0] < 0xC2) || c[0] > 0xF4) {
        return 0;
    }
    for (int i = 1; i < length; i++) { /* the NUL at the end is no continuation */
        if ((c[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    bool overlong = (c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xF0 && c[1] < 0x90);
    bool outside = (c[0] == 0xED && c[1] >= 0xA0) || (c[0] == 0xF4 && c[1] >= 0x90);
    return overlong || outside ? 0 : length;
}

/* Harmless to look at, and the same character to who reads it: beyond 16 bits, JSON has two halves. */
static void put_code(FILE *to, unsigned long code)
{
    if (code > 0xFFFF) {
        fprintf(to, "\\u%04lx\\u%04lx", 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF));
    } else {
        fprintf(to, "\\u%04lx", code);
    }
}

static void quote(FILE *to, const char *text)
{
    unsigned long code = 0;
    (void)fputc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        int length = character(c);
        if (length == 0) {
            (void)fputs("\\ufffd", to);
        } else if (*c == '"' || *c == '\\') {
            fprintf(to, "\\%c", *c);
        } else if (control_length((const char *)c, &code) > 0) {
            put_code(to, code);
        } else {
            (void)fwrite(c, 1, (size_t)length, to);
        }
        c += length ? length : 1;
    }
    (void)fputc('"', to);
}

static void new_line(json *j)
{
    fprintf(j->to, "\n%*s", 2 * j->depth, "");
}

/* What stands before a value: comma, line, name. */
static void place(json *j, const char *name)
{
    if (j->depth == 0) {
        return;
    }
    assert((name != NULL) == (j->closing[j->depth - 1] == '}'));
    if (j->filled[j->depth - 1]) {
        (void)fputc(',', j->to);
    }
    j->filled[j->depth - 1] = true;
    new_line(j);
    if (name) {
        quote(j->to, name);
        (void)fputs(": ", j->to);
    }
}

void json_open(json *j, const char *name, char bracket)
{
    assert(j->depth < JSON_DEPTH_MAX && (bracket == '{' || bracket == '['));
    place(j, name);
    (void)fputc(bracket, j->to);
    j->filled[j->depth] = false;
    j->closing[j->depth++] = bracket == '{' ? '}' : ']';
}

void json_close(json *j)
{
    assert(j->depth > 0);
    j->depth--;
    if (j->filled[j->depth]) {
        new_line(j);
    }
    (void)fputc(j->closing[j->depth], j->to);
    if (j->depth == 0) {
        (void)fputc('\n', j->to);
    }
}

void json_text(json *j, const char *name, const char *value)
{
    place(j, name);
    if (value) {
        quote(j->to, value);
    } else {
        (void)fputs("null", j->to);
    }
}

void json_number(json *j, const char *name, double value)
{
    char text[40];
    place(j, name);
    if (!isfinite(value)) {
        (void)fputs("null", j->to);
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    (void)fputs(text, j->to);
}

void json_whole(json *j, const char *name, ptrdiff_t value)
{
    place(j, name);
    fprintf(j->to, "%td", value);
}

void json_flag(json *j, const char *name, bool value)
{
    place(j, name);
    (void)fputs(value ? "true" : "false", j->to);
}
