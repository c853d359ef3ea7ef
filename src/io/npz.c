#include "io/npz.h"

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/json.h"
#include "io/lines.h"
#include "io/npy.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the records without what may follow in them, and the most that is read of a directory. */
enum { LOCAL = 30, ENTRY = 46, END = 22, END64 = 56, LOCATOR64 = 20, COMMENT_MAX = 65535 };
static const uint64_t directory_max = UINT64_C(64) << 20;

typedef struct archive {
    const reef_context *context;
    const rfi_reader *file;
    reef_error *error;
    uint64_t entries, size, start; /* of the central directory */
    unsigned char *directory;
} archive;

/* A member as the directory has it. */
typedef struct member {
    rfi_slice name;
    unsigned flags, method;
    uint64_t packed, bytes, header; /* header: where its local header is */
} member;

static uint64_t number(const unsigned char *bytes, int width)
{
    uint64_t value = 0;
    for (int i = width - 1; i >= 0; i--) {
        value = value << 8 | bytes[i];
    }
    return value;
}

static reef_status fail(const archive *a, const char *what)
{
    return rfi_fail(a->error, REEF_E_FORMAT, "%s: %s", rfi_path_show(a->file->path), what);
}

static reef_status fail_member(const archive *a, const member *m, const char *what)
{
    char shown[RFI_SHOWN_SIZE];
    return rfi_fail(a->error, REEF_E_FORMAT, "%s: '%s' in it %s", rfi_path_show(a->file->path),
                    rfi_shown(m->name, shown), what);
}

/* reason: a sentence about "it", which is what the reader of npy calls the member. */
static reef_status fail_array(const archive *a, const member *m, const char *reason)
{
    char shown[RFI_SHOWN_SIZE];
    return rfi_fail(a->error, REEF_E_FORMAT, "%s: '%s' in %s", rfi_path_show(a->file->path), rfi_shown(m->name, shown),
                    reason);
}

bool rfi_npz_begins(const void *bytes, size_t have)
{
    enum { NAME_LENGTH = 26 };
    const unsigned char *first = bytes;
    if (have < LOCAL || memcmp(first, "PK\3\4", 4) != 0) {
        return have >= END && memcmp(first, "PK\5\6", 4) == 0; /* an archive without members */
    }
    size_t length = (size_t)number(first + NAME_LENGTH, 2);
    return length > 4 && LOCAL + length <= have && memcmp(first + LOCAL + length - 4, ".npy", 4) == 0;
}

/* ---- the directory ---- */

/* Numbers that do not fit in the end record are in another one, which a locator before it leads to. */
static reef_status read_end64(archive *a, size_t end)
{
    unsigned char locator[LOCATOR64];
    unsigned char record[END64];
    if (end < LOCATOR64) {
        return fail(a, "its directory is damaged");
    }
    reef_status status = rfi_reader_get(a->file, end - LOCATOR64, locator, sizeof locator, a->error);
    if (status != REEF_OK) {
        return status;
    }
    uint64_t at = number(locator + 8, 8);
    if (memcmp(locator, "PK\6\7", 4) != 0 || at > end || end - at < END64) {
        return fail(a, "its directory is damaged");
    }
    status = rfi_reader_get(a->file, (size_t)at, record, sizeof record, a->error);
    if (status != REEF_OK) {
        return status;
    }
    if (memcmp(record, "PK\6\6", 4) != 0) {
        return fail(a, "its directory is damaged");
    }
    a->entries = number(record + 32, 8);
    a->size = number(record + 40, 8);
    a->start = number(record + 48, 8);
    return REEF_OK;
}

/* The end record is the last thing in the file but for a comment, whose length it states. */
static reef_status find_end(archive *a, unsigned char *tail, size_t length)
{
    size_t base = a->file->size - length;
    reef_status status = rfi_reader_get(a->file, base, tail, length, a->error);
    if (status != REEF_OK) {
        return status;
    }
    for (size_t at = length - END + 1; at-- > 0;) {
        const unsigned char *end = tail + at;
        if (memcmp(end, "PK\5\6", 4) != 0 || number(end + 20, 2) != length - at - END) {
            continue;
        }
        a->entries = number(end + 10, 2);
        a->size = number(end + 12, 4);
        a->start = number(end + 16, 4);
        bool large = a->entries == UINT16_MAX || a->size == UINT32_MAX || a->start == UINT32_MAX;
        status = large ? read_end64(a, base + at) : REEF_OK;
        uint64_t behind = base + at;
        if (status == REEF_OK && (a->start > behind || a->size > behind - a->start || a->entries > a->size / ENTRY)) {
            return fail(a, "its directory does not lie within the file");
        }
        return status;
    }
    return fail(a, "is a zip archive without an end; it was cut short");
}

static reef_status read_directory(archive *a)
{
    size_t length = a->file->size < END + COMMENT_MAX ? a->file->size : END + COMMENT_MAX;
    if (length < END) {
        return fail(a, "is a zip archive without an end; it was cut short");
    }
    unsigned char *tail = rfi_allocate(a->context, length);
    reef_status status =
        tail ? find_end(a, tail, length) : rfi_fail(a->error, REEF_E_NOMEM, "no memory for the end of an npz file");
    rfi_release(a->context, tail);
    if (status == REEF_OK && a->size > directory_max) {
        status = fail(a, "has a directory of more than 64 MB");
    }
    if (status != REEF_OK) {
        return status;
    }
    a->directory = rfi_allocate(a->context, (size_t)a->size + 1);
    return a->directory ? rfi_reader_get(a->file, (size_t)a->start, a->directory, (size_t)a->size, a->error)
                        : rfi_fail(a->error, REEF_E_NOMEM, "no memory for the directory of an npz file");
}

/* Sizes that do not fit in an entry follow it, in this order. */
static bool read_extra(member *m, const unsigned char *extra, size_t length)
{
    uint64_t *large[3];
    int count = 0;
    large[count] = &m->bytes;
    count += m->bytes == UINT32_MAX;
    large[count] = &m->packed;
    count += m->packed == UINT32_MAX;
    large[count] = &m->header;
    count += m->header == UINT32_MAX;
    for (size_t at = 0; count > 0 && length - at >= 4;) {
        size_t size = (size_t)number(extra + at + 2, 2);
        if (size > length - at - 4) {
            return false;
        }
        if (number(extra + at, 2) == 1) {
            for (int i = 0; i < count && size >= 8 * (size_t)count; i++) {
                *large[i] = number(extra + at + 4 + 8 * (size_t)i, 8);
            }
            return size >= 8 * (size_t)count;
        }
        at += 4 + size;
    }
    return count == 0;
}

/* The entry at *at, and *at behind it. */
static reef_status read_entry(const archive *a, size_t *at, member *m)
{
    const unsigned char *entry = a->directory + *at;
    size_t room = (size_t)a->size - *at;
    if (room < ENTRY || memcmp(entry, "PK\1\2", 4) != 0) {
        return fail(a, "its directory is damaged");
    }
    size_t name = (size_t)number(entry + 28, 2);
    size_t extra = (size_t)number(entry + 30, 2);
    size_t length = ENTRY + name + extra + (size_t)number(entry + 32, 2);
    *m = (member){.name = {(const char *)entry + ENTRY, name},
                  .flags = (unsigned)number(entry + 8, 2),
                  .method = (unsigned)number(entry + 10, 2),
                  .packed = number(entry + 20, 4),
                  .bytes = number(entry + 24, 4),
                  .header = number(entry + 42, 4)};
    if (length > room || !read_extra(m, entry + ENTRY + name, extra)) {
        return fail(a, "its directory is damaged");
    }
    *at += length;
    return REEF_OK;
}

/* ---- members ---- */

static reef_status check_member(const archive *a, const member *m)
{
    size_t length = m->name.length;
    if (length < 4 || memcmp(m->name.text + length - 4, ".npy", 4) != 0) {
        return fail_member(a, m, "is not an npy array");
    }
    if (!rfi_json_is_text(m->name)) {
        return fail_member(a, m, "has a name that is not UTF-8, or holds control characters");
    }
    if (rfi_equals((rfi_slice){m->name.text, length - 4}, "__metadata__")) {
        return fail_member(a, m, "has the name that safetensors files keep for metadata");
    }
    if (m->flags & 1) {
        return fail_member(a, m, "is encrypted");
    }
    if (m->method != 0) {
        return fail_member(a, m, "is compressed (numpy.savez_compressed); save the arrays with numpy.savez");
    }
    return m->packed == m->bytes ? REEF_OK : fail_member(a, m, "has two sizes");
}

/* Where the bytes of a member begin. */
static reef_status find_data(const archive *a, const member *m, uint64_t *data)
{
    unsigned char local[LOCAL];
    if (m->header > a->start || a->start - m->header < LOCAL) {
        return fail_member(a, m, "does not lie within the file");
    }
    reef_status status = rfi_reader_get(a->file, (size_t)m->header, local, sizeof local, a->error);
    if (status != REEF_OK) {
        return status;
    }
    *data = m->header + LOCAL + number(local + 26, 2) + number(local + 28, 2);
    if (memcmp(local, "PK\3\4", 4) != 0 || *data > a->start || a->start - *data < m->bytes) {
        return fail_member(a, m, "does not lie within the file");
    }
    return REEF_OK;
}

/* The npy header of a member, as much as there is of it. */
static reef_status read_npy(const archive *a, const member *m, uint64_t data, rfi_array *array, size_t *start)
{
    unsigned char first[12] = {0};
    reef_error reason;
    size_t have = m->bytes < sizeof first ? (size_t)m->bytes : sizeof first;
    reef_status status = rfi_reader_get(a->file, (size_t)data, first, have, a->error);
    if (status != REEF_OK) {
        return status;
    }
    uint64_t length = first[6] == 1 ? 10 + number(first + 8, 2) : 12 + number(first + 8, 4);
    length = length < RFI_NPY_LOOK_MAX ? length : RFI_NPY_LOOK_MAX;
    length = length < m->bytes ? length : m->bytes;
    unsigned char *header = rfi_allocate(a->context, (size_t)length + 1);
    if (!header) {
        return rfi_fail(a->error, REEF_E_NOMEM, "no memory for the header of an array");
    }
    status = rfi_reader_get(a->file, (size_t)data, header, (size_t)length, a->error);
    if (status == REEF_OK && rfi_npy_look(header, (size_t)length, (size_t)m->bytes, "it", array, start, &reason)) {
        status = fail_array(a, m, reason.text);
    }
    rfi_release(a->context, header);
    return status;
}

static bool little_endian(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 1;
}

/* `shape` has room for RFI_RANK_MAX numbers, `letters` for the name. */
static reef_status take_member(const archive *a, const member *m, ptrdiff_t *shape, char *letters, rfi_tensor *tensor)
{
    rfi_array array;
    uint64_t data = 0;
    size_t start = 0;
    reef_status status = check_member(a, m);
    if (status == REEF_OK) {
        status = find_data(a, m, &data);
    }
    if (status == REEF_OK) {
        status = read_npy(a, m, data, &array, &start);
    }
    if (status != REEF_OK) {
        return status;
    }
    if (array.fortran && array.rank > 1) {
        return fail_member(a, m, "is in Fortran order; save numpy.ascontiguousarray of it");
    }
    if (array.big_endian == little_endian() && rfi_type_size(array.type) > 1) {
        return fail_member(
            a, m, "is in the other byte order; save it in that of this machine, astype(dtype.newbyteorder('='))");
    }
    memcpy(shape, array.shape, (size_t)array.rank * sizeof *shape);
    memcpy(letters, m->name.text, m->name.length);
    *tensor = (rfi_tensor){.name = {letters, m->name.length - 4},
                           .type = array.type,
                           .rank = array.rank,
                           .shape = shape,
                           .count = array.count,
                           .start = (size_t)data + start,
                           .bytes = (size_t)array.count * rfi_type_size(array.type)};
    return REEF_OK;
}

static int by_start(const void *a, const void *b)
{
    const rfi_tensor *x = a;
    const rfi_tensor *y = b;
    return x->start != y->start ? (x->start > y->start) - (x->start < y->start) : rfi_tensor_compare(x, y);
}

static reef_status take_members(const archive *a, rfi_safetensors *table)
{
    size_t at = 0;
    ptrdiff_t *shapes = (ptrdiff_t *)(void *)(table->tensors + a->entries);
    char *letters = (char *)(shapes + RFI_RANK_MAX * a->entries);
    uint64_t left = a->start; /* bytes that no member has had: the same ones, read again and again, would take long */
    for (; table->count < (ptrdiff_t)a->entries; table->count++) {
        member m;
        reef_status status = read_entry(a, &at, &m);
        if (status == REEF_OK) {
            status = take_member(a, &m, shapes, letters, &table->tensors[table->count]);
        }
        if (status == REEF_OK && m.bytes > left) {
            status = fail(a, "has arrays that overlap");
        }
        if (status != REEF_OK) {
            return status;
        }
        left -= m.bytes;
        shapes += RFI_RANK_MAX;
        letters += m.name.length;
    }
    qsort(table->tensors, (size_t)table->count, sizeof *table->tensors, by_start);
    for (ptrdiff_t i = 1; i < table->count; i++) {
        const rfi_tensor *before = &table->tensors[i - 1];
        if (before->start + before->bytes > table->tensors[i].start) {
            return fail(a, "has arrays that overlap");
        }
    }
    return REEF_OK;
}

reef_status rfi_npz_read(const reef_context *context, const rfi_reader *file, rfi_safetensors *table, reef_error *error)
{
    archive a = {.context = context, .file = file, .error = error};
    *table = (rfi_safetensors){0};
    reef_status status = read_directory(&a);
    if (status == REEF_OK) { /* entries are at least 46 bytes of at most 64 MB, so none of this overflows */
        size_t each = sizeof(rfi_tensor) + RFI_RANK_MAX * sizeof(ptrdiff_t);
        table->memory = rfi_allocate(context, (size_t)a.entries * each + (size_t)a.size + 1);
        table->tensors = table->memory;
        status = table->memory ? take_members(&a, table) : rfi_fail(error, REEF_E_NOMEM, "no memory for an npz file");
    }
    if (status != REEF_OK) {
        rfi_safetensors_free(context, table);
    }
    rfi_release(context, a.directory);
    return status;
}
