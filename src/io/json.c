/* Reading and writing the parts of JSON. */
#include "io/json.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"

#include <stdint.h>
#include <string.h>

reef_status rfi_json_fail(const rfi_json *c, const char *what)
{
    return rfi_fail(c->error, REEF_E_FORMAT, "%s: byte %zu: %s", rfi_path_show(c->name),
                    c->offset + (size_t)(c->at - c->start), what);
}

void rfi_json_blanks(rfi_json *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r')) {
        c->at++;
    }
}

bool rfi_json_take(rfi_json *c, char mark)
{
    rfi_json_blanks(c);
    bool there = c->at < c->end && *c->at == mark;
    c->at += there ? 1 : 0;
    return there;
}

/* ---- text ---- */

static void put_letter(rfi_json *c, uint32_t byte)
{
    if (c->letter) {
        c->letter[c->letters] = (char)(unsigned char)byte;
    }
    c->letters++;
}

static void put_code(rfi_json *c, uint32_t code)
{
    if (code < 0x80) {
        put_letter(c, code);
        return;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint32_t lead[] = {0, 0xC0, 0xE0, 0xF0};
    put_letter(c, lead[more] | code >> (6 * more));
    while (more-- > 0) {
        put_letter(c, 0x80 | (code >> (6 * more) & 0x3F));
    }
}

/* Four hexadecimal digits. */
static bool take_hex(rfi_json *c, uint32_t *code)
{
    *code = 0;
    if (c->end - c->at < 4) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        char digit = *c->at++;
        bool lower = digit >= 'a' && digit <= 'f';
        bool upper = digit >= 'A' && digit <= 'F';
        if (!lower && !upper && (digit < '0' || digit > '9')) {
            return false;
        }
        *code = *code << 4 | (uint32_t)(lower ? digit - 'a' + 10 : upper ? digit - 'A' + 10 : digit - '0');
    }
    return true;
}

/* What follows a backslash. Code points beyond 16 bits come as a pair of surrogates, which alone mean nothing. */
static bool take_escape(rfi_json *c)
{
    static const char marks[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    uint32_t code;
    uint32_t low;
    if (c->at == c->end) {
        return false;
    }
    char mark = *c->at++;
    const char *simple = mark ? strchr(marks, mark) : NULL;
    if (simple) {
        put_code(c, (unsigned char)meant[simple - marks]);
        return true;
    }
    if (mark != 'u' || !take_hex(c, &code)) {
        return false;
    }
    if (code >= 0xD800 && code < 0xE000) {
        bool paired = code < 0xDC00 && c->end - c->at >= 2 && c->at[0] == '\\' && c->at[1] == 'u';
        c->at += paired ? 2 : 0;
        if (!paired || !take_hex(c, &low) || low < 0xDC00 || low >= 0xE000) {
            return false;
        }
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    put_code(c, code);
    return true;
}

/* One character in UTF-8, the shortest form and no surrogate. */
static bool take_character(rfi_json *c)
{
    unsigned char first = (unsigned char)*c->at++;
    int more = first < 0x80 ? 0 : first < 0xC2 ? -1 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : first < 0xF5 ? 3 : -1;
    if (first < 0x20 || more < 0 || c->end - c->at < more) {
        return false;
    }
    static const unsigned char kept[] = {0x7F, 0x1F, 0x0F, 0x07};
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    uint32_t code = first & kept[more];
    for (int i = 0; i < more; i++) {
        unsigned char next = (unsigned char)*c->at++;
        if ((next & 0xC0) != 0x80) {
            return false;
        }
        code = code << 6 | (next & 0x3F);
    }
    if (code < least[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        return false;
    }
    put_code(c, code);
    return true;
}

/* What most names are made of, at once: characters of ASCII that stand for themselves. */
static void take_plain(rfi_json *c)
{
    const char *first = c->at;
    while (c->at < c->end && *c->at >= ' ' && *c->at != '"' && *c->at != '\\') {
        if ((unsigned char)*c->at >= 0x80) {
            break;
        }
        c->at++;
    }
    size_t length = (size_t)(c->at - first);
    if (c->letter && length > 0) {
        memcpy(c->letter + c->letters, first, length);
    }
    c->letters += (ptrdiff_t)length;
}

reef_status rfi_json_text(rfi_json *c, const char *missing, rfi_slice *text)
{
    if (!rfi_json_take(c, '"')) {
        return rfi_json_fail(c, missing);
    }
    ptrdiff_t first = c->letters;
    take_plain(c);
    while (c->at < c->end && *c->at != '"') {
        if (*c->at == '\\') {
            c->at++;
            if (!take_escape(c)) {
                return rfi_json_fail(c, "a string has an escape sequence that JSON does not know");
            }
        } else if (!take_character(c)) {
            return rfi_json_fail(c, "a string is not UTF-8, or contains a control character");
        }
    }
    if (c->at == c->end) {
        return rfi_json_fail(c, "the file ends within a string");
    }
    c->at++;
    *text = (rfi_slice){c->letter ? c->letter + first : "", (size_t)(c->letters - first)};
    return REEF_OK;
}

bool rfi_json_is_text(rfi_slice text)
{
    rfi_json c = {.at = text.text, .end = text.text + text.length};
    bool good = true;
    while (good && c.at < c.end) {
        good = take_character(&c);
    }
    return good;
}

bool rfi_json_word(rfi_json *c, rfi_slice *word)
{
    rfi_json_blanks(c);
    if (c->at == c->end || *c->at != '"') {
        return false;
    }
    const char *close = memchr(c->at + 1, '"', (size_t)(c->end - c->at - 1));
    if (!close) {
        return false;
    }
    *word = (rfi_slice){c->at + 1, (size_t)(close - c->at - 1)};
    c->at = close + 1;
    return true;
}

/* ---- numbers ---- */

reef_status rfi_json_number(rfi_json *c, ptrdiff_t *number)
{
    rfi_json_blanks(c);
    const char *first = c->at;
    ptrdiff_t small = 0; /* so few digits cannot overflow */
    while (c->at < c->end && c->at - first < 18 && *c->at >= '0' && *c->at <= '9') {
        small = 10 * small + (*c->at - '0');
        c->at++;
    }
    *number = small;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        if (!rfi_mul(*number, 10, number) || !rfi_add(*number, *c->at - '0', number)) {
            return rfi_json_fail(c, "a number is too large");
        }
        c->at++;
    }
    bool whole = c->at > first && (*first != '0' || c->at == first + 1);
    bool more = c->at < c->end && strchr(".eE", *c->at) && *c->at;
    return whole && !more ? REEF_OK : rfi_json_fail(c, "expected a whole number that is not negative");
}

/* ---- any value ---- */

/* Over plain characters to the next that means something: the end of a number or a word. */
static void skip_plain(rfi_json *c)
{
    while (c->at < c->end && !strchr("\"{}[],: \n\t\r", *c->at)) {
        c->at++;
    }
}

reef_status rfi_json_skip(rfi_json *c)
{
    ptrdiff_t depth = 0;
    ptrdiff_t kept = c->letters;
    char *letter = c->letter;
    rfi_slice text;
    c->letter = NULL;
    do {
        const char *before = c->at;
        rfi_json_blanks(c);
        char next = '\0';
        if (c->at < c->end) {
            next = *c->at;
        }
        if (next == '"') {
            reef_status status = rfi_json_text(c, "", &text);
            if (status != REEF_OK) {
                return status;
            }
        } else if (next == '{' || next == '[') {
            c->at++;
            depth++;
        } else if (next == '}' || next == ']') {
            c->at++;
            depth--;
        } else if ((next == ',' || next == ':') && depth > 0) {
            c->at++;
        } else {
            skip_plain(c);
        }
        if (depth < 0 || c->at == before || c->at == c->end) {
            return rfi_json_fail(c, "there should be a value");
        }
    } while (depth > 0);
    c->letter = letter;
    c->letters = kept;
    return REEF_OK;
}

/* ---- writing ---- */

void rfi_json_put(char *to, size_t *used, const char *plain)
{
    size_t length = strlen(plain);
    for (size_t i = 0; to && i < length; i++) {
        to[*used + i] = plain[i];
    }
    *used += length;
}

void rfi_json_put_text(char *to, size_t *used, rfi_slice text)
{
    static const char hex[] = "0123456789abcdef";
    rfi_json_put(to, used, "\"");
    for (size_t i = 0; i < text.length; i++) {
        unsigned char byte = (unsigned char)text.text[i];
        char plain[2] = {text.text[i], '\0'};
        char coded[] = "\\u0000";
        coded[4] = hex[byte >> 4];
        coded[5] = hex[byte & 15];
        if (byte == '"' || byte == '\\') {
            rfi_json_put(to, used, "\\");
        }
        rfi_json_put(to, used, byte < 0x20 ? coded : plain);
    }
    rfi_json_put(to, used, "\"");
}
