/* The header of a .npy file is a Python dictionary with three keys in any order; what is read here is that grammar and no
 * more of Python. */
#include "io/npy.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/lines.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC = 6, ALIGN = 64, GROWTH_DIGITS = 21 };

/* Where we are in the header. */
typedef struct cursor {
    const char *name; /* of the file */
    const char *start, *at, *end;
    size_t offset; /* of `start` in the file */
    reef_error *error;
} cursor;

static reef_status fail_at(const cursor *c, const char *what)
{
    return rfi_fail(c->error, REEF_E_FORMAT, "%s: byte %zu: %s", rfi_path_show(c->name),
                    c->offset + (size_t)(c->at - c->start), what);
}

static void skip_blanks(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n')) {
        c->at++;
    }
}

/* Steps over `mark` if it comes next. */
static bool take(cursor *c, char mark)
{
    skip_blanks(c);
    bool there = c->at < c->end && *c->at == mark;
    c->at += there ? 1 : 0;
    return there;
}

static bool take_word(cursor *c, const char *word)
{
    size_t length = strlen(word);
    skip_blanks(c);
    bool there = (size_t)(c->end - c->at) >= length && memcmp(c->at, word, length) == 0;
    c->at += there ? length : 0;
    return there;
}

static bool take_string(cursor *c, rfi_slice *text)
{
    skip_blanks(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) {
        return false;
    }
    const char *close = memchr(c->at + 1, *c->at, (size_t)(c->end - c->at - 1));
    if (!close) {
        return false;
    }
    *text = (rfi_slice){c->at + 1, (size_t)(close - c->at - 1)};
    c->at = close + 1;
    return true;
}

/* ---- the three values ---- */

static bool machine_is_big(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}

static reef_status unsupported(const cursor *c, rfi_slice text)
{
    char shown[RFI_SHOWN_SIZE];
    return rfi_fail(c->error, REEF_E_FORMAT,
                    "%s: elements of type '%s' are not supported; "
                    "b1, i1, i2, i4, i8, u1, u2, u4, u8, f2, f4 and f8 are",
                    rfi_path_show(c->name), rfi_shown(text, shown));
}

static reef_status read_type(cursor *c, rfi_array *array)
{
    static const struct {
        char letter;
        int size;
        rfi_type type;
    } types[] = {
#define TYPE_ROW(code, letter, size) {(letter), (size), code},
        RFI_TYPE_LIST(TYPE_ROW)
#undef TYPE_ROW
    };
    rfi_slice text;
    if (!take_string(c, &text)) {
        return fail_at(c, "'descr' should be a type such as '<f4'");
    }
    if (text.length != 3 || text.text[0] == '\0' || !strchr("<>=|", text.text[0])) {
        return unsupported(c, text);
    }
    char order = text.text[0];
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        bool same = types[i].letter != '\0' && types[i].letter == text.text[1] && types[i].size == text.text[2] - '0';
        if (same && (types[i].size == 1 || order != '|')) {
            array->type = types[i].type;
            array->big_endian = order == '>' || (order == '=' && machine_is_big());
            return REEF_OK;
        }
    }
    return unsupported(c, text);
}

static reef_status read_order(cursor *c, rfi_array *array)
{
    array->fortran = take_word(c, "True");
    if (!array->fortran && !take_word(c, "False")) {
        return fail_at(c, "'fortran_order' should be True or False");
    }
    return REEF_OK;
}

/* One dimension; Python 2 wrote an L after it. */
static reef_status read_dimension(cursor *c, ptrdiff_t *dimension)
{
    skip_blanks(c);
    const char *first = c->at;
    *dimension = 0;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        if (!rfi_mul(*dimension, 10, dimension) || !rfi_add(*dimension, *c->at - '0', dimension)) {
            return fail_at(c, "a dimension is too large");
        }
        c->at++;
    }
    if (c->at == first) {
        return fail_at(c, "a dimension should be a whole number");
    }
    c->at += c->at < c->end && *c->at == 'L' ? 1 : 0;
    return REEF_OK;
}

static reef_status read_shape(cursor *c, rfi_array *array)
{
    if (!take(c, '(')) {
        return fail_at(c, "'shape' should be a tuple such as (3, 4)");
    }
    array->rank = 0;
    while (!take(c, ')')) {
        if (array->rank == RFI_RANK_MAX) {
            return fail_at(c, "more than 8 dimensions");
        }
        reef_status status = read_dimension(c, &array->shape[array->rank]);
        if (status != REEF_OK) {
            return status;
        }
        array->rank++;
        bool comma = take(c, ',');
        skip_blanks(c);
        if (!comma && (c->at == c->end || *c->at != ')' || array->rank == 1)) {
            return fail_at(c, "a comma is missing after a dimension");
        }
    }
    return REEF_OK;
}

static reef_status read_header(cursor *c, rfi_array *array)
{
    static const struct {
        const char *key;
        reef_status (*read)(cursor *, rfi_array *);
    } keys[] = {{"descr", read_type}, {"fortran_order", read_order}, {"shape", read_shape}};
    bool seen[3] = {false};
    if (!take(c, '{')) {
        return fail_at(c, "the header should begin with {");
    }
    for (int n = 0; n < 3; n++) {
        rfi_slice key;
        int which = 0;
        if (!take_string(c, &key) || !take(c, ':')) {
            return fail_at(c, "the header should have the keys 'descr', 'fortran_order' and 'shape'");
        }
        while (which < 3 && !rfi_equals(key, keys[which].key)) {
            which++;
        }
        if (which == 3 || seen[which]) {
            return fail_at(c, which == 3 ? "unknown key in the header" : "a key appears twice in the header");
        }
        seen[which] = true;
        reef_status status = keys[which].read(c, array);
        if (status != REEF_OK) {
            return status;
        }
        if (!take(c, ',') && n < 2) {
            return fail_at(c, "a comma is missing in the header");
        }
    }
    if (!take(c, '}')) {
        return fail_at(c, "the header should end with }");
    }
    skip_blanks(c);
    return c->at == c->end ? REEF_OK : fail_at(c, "something follows the header's }");
}

/* ---- the file ---- */

static reef_status check_size(const rfi_array *array, const char *name, size_t room, size_t start, reef_error *error)
{
    size_t want = (size_t)array->count * rfi_type_size(array->type);
    if (want > room) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: byte %zu: the file ends after %zu of %zu bytes of data",
                        rfi_path_show(name), start + room, room, want);
    }
    if (want < room) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: byte %zu: %zu byte%s the data", rfi_path_show(name), start + want,
                        room - want, room - want == 1 ? " follows" : "s follow");
    }
    return REEF_OK;
}

/* Finds the header: its text is bytes[*start .. *start + *length). */
static reef_status find_header(const unsigned char *b, size_t have, size_t size, const char *shown, size_t *start,
                               size_t *length, reef_error *error)
{
    if (have < MAGIC + 4 || memcmp(b, magic, MAGIC) != 0) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: byte 0: this is not an .npy file", shown);
    }
    if (b[6] < 1 || b[6] > 3 || b[7] != 0) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: byte 6: unknown version %d.%d; 1.0, 2.0 and 3.0 are supported",
                        shown, b[6], b[7]);
    }
    *start = b[6] == 1 ? MAGIC + 4 : MAGIC + 6;
    *length = b[8] | (size_t)b[9] << 8;
    if (b[6] > 1 && have >= *start) {
        *length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    }
    if (size < *start || *length > size - *start) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: byte 8: the file ends within its header", shown);
    }
    if (*length > have - *start) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: byte 8: the header has %zu bytes; at most %zu are supported", shown,
                        *length, have - *start);
    }
    return REEF_OK;
}

reef_status rfi_npy_look(const void *bytes, size_t have, size_t size, const char *name, rfi_array *array, size_t *start,
                         reef_error *error)
{
    size_t first = 0;
    size_t length = 0;
    const char *shown = rfi_path_show(name);
    reef_status status = find_header(bytes, have, size, shown, &first, &length, error);
    if (status != REEF_OK) {
        return status;
    }
    const char *text = (const char *)bytes + first;
    cursor c = {name, text, text, text + length, first, error};
    rfi_array found = {0};
    status = read_header(&c, &found);
    if (status == REEF_OK && !rfi_array_measure(&found)) {
        status = rfi_fail(error, REEF_E_OVERFLOW, "%s: its shape has more elements than memory can hold", shown);
    }
    if (status != REEF_OK) {
        return status;
    }
    status = check_size(&found, name, size - first - length, first + length, error);
    if (status != REEF_OK) {
        return status;
    }
    *array = found;
    *start = first + length;
    return REEF_OK;
}

reef_status rfi_npy_read(const void *bytes, size_t size, const char *name, rfi_array *array, reef_error *error)
{
    size_t start = 0;
    reef_status status = rfi_npy_look(bytes, size, size, name, array, &start, error);
    if (status != REEF_OK) {
        return status;
    }
    array->data = (const unsigned char *)bytes + start;
    return REEF_OK;
}

/* ---- writing ---- */

static void append_shape(int rank, const ptrdiff_t *shape, char *text, size_t size, size_t *used)
{
    rfi_append(text, size, used, "(");
    for (int i = 0; i < rank; i++) {
        rfi_append(text, size, used, i ? ", %td" : "%td", shape[i]);
    }
    rfi_append(text, size, used, rank == 1 ? ",)" : ")");
}

size_t rfi_npy_header(rfi_type type, int rank, const ptrdiff_t *shape, char header[RFI_NPY_HEADER_MAX])
{
    assert(rank >= 0 && rank <= RFI_RANK_MAX);
    static const char letters[] = {
#define TYPE_LETTER(code, letter, size) [code] = (letter),
        RFI_TYPE_LIST(TYPE_LETTER)
#undef TYPE_LETTER
    };
    size_t used = MAGIC + 4;
    size_t width = rfi_type_size(type);
    char order = machine_is_big() ? '>' : '<';
    memcpy(header, magic, MAGIC);
    header[6] = 1;
    header[7] = 0;
    rfi_append(header, RFI_NPY_HEADER_MAX, &used,
               "{'descr': '%c%c%zu', 'fortran_order': False, 'shape': ", width == 1 ? '|' : order, letters[type],
               width);
    append_shape(rank, shape, header, RFI_NPY_HEADER_MAX, &used);
    rfi_append(header, RFI_NPY_HEADER_MAX, &used, ", }");
    /* NumPy leaves room for the first dimension to grow to 21 digits, then pads to a multiple of 64. */
    if (rank > 0) {
        char digits[32];
        int length = snprintf(digits, sizeof digits, "%td", shape[0]);
        rfi_append(header, RFI_NPY_HEADER_MAX, &used, "%*s", GROWTH_DIGITS - length, "");
    }
    size_t end = used + ALIGN - (used + 1) % ALIGN + 1;
    memset(header + used, ' ', end - used - 1);
    header[end - 1] = '\n';
    size_t text = end - MAGIC - 4;
    header[8] = (char)(text & 0xFF);
    header[9] = (char)(text >> 8);
    return end;
}

reef_status rfi_npy_write(const reef_context *context, const char *path, rfi_type type, int rank,
                          const ptrdiff_t *shape, const void *data, reef_error *error)
{
    char header[RFI_NPY_HEADER_MAX];
    rfi_array array = {.type = type, .rank = rank};
    bool good =
        rank >= 0 && rank <= RFI_RANK_MAX && (type == RFI_F32 || type == RFI_F64 || type == RFI_I32 || type == RFI_I64);
    for (int i = 0; good && i < rank; i++) {
        array.shape[i] = shape[i];
        good = shape[i] >= 0;
    }
    if (!good || !rfi_array_measure(&array)) {
        return rfi_fail(error, REEF_E_ARG, "%s: this type or shape cannot be written", rfi_path_show(path));
    }
    size_t length = rfi_npy_header(type, rank, shape, header);
    rfi_piece pieces[2] = {{header, length}, {data, (size_t)array.count * rfi_type_size(type)}};
    return rfi_file_write(context, path, pieces, 2, error);
}
