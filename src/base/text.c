/* Slices, suggestions, appending. */
#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

rfi_slice rfi_trim(rfi_slice slice)
{
    while (slice.length > 0 && is_space(slice.text[0])) {
        slice.text++;
        slice.length--;
    }
    while (slice.length > 0 && is_space(slice.text[slice.length - 1])) {
        slice.length--;
    }
    return slice;
}

bool rfi_equals(rfi_slice slice, const char *word)
{
    return strlen(word) == slice.length && memcmp(slice.text, word, slice.length) == 0;
}

/* What a terminal obeys (C0, DEL, C1), and what Unicode has to steer how text is laid out, which shows nothing itself: a name with it can
 * read as another one. Joiners (U+200C, U+200D) are no such thing: Persian, Hindi and emojis are written with them. */
static const struct {
    uint32_t first, last;
} controls[] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},     {0x61C, 0x61C},
                {0x180E, 0x180E}, {0x200B, 0x200B}, {0x200E, 0x200F}, {0x2028, 0x202E},
                {0x2060, 0x206F}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0001, 0xE007F}};

/* The character in UTF-8 at `text`, which has left > 0 bytes; *length: its bytes, 1 if they are no UTF-8. */
static uint32_t read_character(const char *text, size_t left, size_t *length)
{
    const unsigned char *c = (const unsigned char *)text;
    size_t bytes = c[0] >= 0xF0 ? 4 : c[0] >= 0xE0 ? 3 : c[0] >= 0xC0 ? 2 : 1;
    uint32_t code = bytes > 1 ? c[0] & (0x7FU >> bytes) : c[0];
    bool whole = bytes <= left && (c[0] < 0x80 || bytes > 1);
    for (size_t i = 1; whole && i < bytes; i++) {
        whole = (c[i] & 0xC0) == 0x80;
        code = code << 6 | (c[i] & 0x3FU);
    }
    *length = whole ? bytes : 1;
    return whole ? code : UINT32_MAX;
}

/* How many bytes the control character at `text` has; 0: it is none. */
static size_t control_length(const char *text, size_t left)
{
    size_t length = 0;
    uint32_t code = read_character(text, left, &length);
    bool found = false;
    for (size_t i = 0; !found && i < sizeof controls / sizeof *controls; i++) {
        found = code >= controls[i].first && code <= controls[i].last;
    }
    return found ? length : 0;
}

bool rfi_has_control(rfi_slice slice)
{
    bool found = false;
    for (size_t i = 0; !found && i < slice.length; i++) {
        found = control_length(slice.text + i, slice.length - i) > 0;
    }
    return found;
}

void rfi_hide_control(char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        memset(text + i, '?', control_length(text + i, length - i));
    }
}

bool rfi_is_word(rfi_slice slice)
{
    bool word = slice.length > 0 && slice.length <= 32;
    for (size_t i = 0; word && i < slice.length; i++) {
        char c = slice.text[i];
        word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '.';
    }
    return word;
}

rfi_slice rfi_cut(rfi_slice slice, char mark, rfi_slice *rest, bool *found)
{
    const char *at = slice.length > 0 ? memchr(slice.text, mark, slice.length) : NULL;
    *found = at != NULL;
    if (!at) {
        *rest = (rfi_slice){slice.text + slice.length, 0};
        return slice;
    }
    size_t before = (size_t)(at - slice.text);
    *rest = (rfi_slice){at + 1, slice.length - before - 1};
    return (rfi_slice){slice.text, before};
}

enum { LONGEST_NAME = 32 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Names are compared without regard to case, so that "REF" suggests "ref"; tolower() would depend on the locale. */
static char lower(char letter)
{
    if (letter >= 'A' && letter <= 'Z') {
        return (char)(letter - 'A' + 'a');
    }
    return letter;
}

/* Three rows of the usual table are enough: swapping neighbours looks two rows back. */
int rfi_edit_distance(rfi_slice slice, const char *word)
{
    int rows[3][LONGEST_NAME + 1];
    size_t width = strlen(word);
    if (width > LONGEST_NAME || slice.length > LONGEST_NAME) {
        return 2 * LONGEST_NAME;
    }
    for (size_t j = 0; j <= width; j++) {
        rows[0][j] = (int)j;
    }
    for (size_t i = 1; i <= slice.length; i++) {
        int *now = rows[i % 3];
        const int *last = rows[(i + 2) % 3];
        const int *before = rows[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= width; j++) {
            char a = lower(slice.text[i - 1]);
            char b = lower(word[j - 1]);
            now[j] = least(last[j - 1] + (a != b), least(now[j - 1], last[j]) + 1);
            if (i > 1 && j > 1 && a == lower(word[j - 2]) && lower(slice.text[i - 2]) == b) {
                now[j] = least(now[j], before[j - 2] + 1);
            }
        }
    }
    return rows[slice.length % 3][width];
}

bool rfi_is_nearer(rfi_slice slice, const char *word, int *best)
{
    int distance = rfi_edit_distance(slice, word);
    int allowed = 1 + (int)(slice.length / 3);
    if (distance > allowed || distance >= *best) {
        return false;
    }
    *best = distance;
    return true;
}

size_t rfi_no_text(char *text, size_t size)
{
    if (text && size > 0) {
        text[0] = '\0';
    }
    return 0;
}

void rfi_append(char *buffer, size_t size, size_t *used, const char *format, ...)
{
    size_t room = *used < size ? size - *used : 0;
    va_list args;
    va_start(args, format);
    int written = vsnprintf(room ? buffer + *used : NULL, room, format, args);
    va_end(args);
    if (written > 0) {
        *used += (size_t)written;
    }
}
