/* A table of beginnings, and what needs a second look. A safetensors file begins with the length of its header, below 100 MB: its fifth to
 * eighth byte are zero, and then comes a {. */
#include "io/foreign.h"

#include "io/npz.h"

#include <stdbool.h>
#include <string.h>

#define SAVE_AS "save it as safetensors (safetensors.torch.save_file)"

typedef struct beginning {
    const char *bytes;
    size_t length;
    const char *is;
} beginning;

#define BEGINS(bytes, is)                                                                                              \
    {                                                                                                                  \
        bytes, sizeof(bytes) - 1, is                                                                                   \
    }

static const beginning beginnings[] = {
    BEGINS("GGUF",
           "is a GGUF file (llama.cpp), whose numbers are quantized; merge the models before they are converted"),
    BEGINS("version https://git-lfs", "is a Git LFS pointer, not the model itself; get that with `git lfs pull`"),
    BEGINS("\x89HDF\r\n\x1a\n", "is an HDF5 file (Keras .h5); save the weights as safetensors or npy"),
    BEGINS("\x1f\x8b", "is compressed by gzip; unpack it first"),
    BEGINS("\x28\xb5\x2f\xfd", "is compressed by zstd; unpack it first"),
    BEGINS("\xfd"
           "7zXZ",
           "is compressed by xz; unpack it first"),
};

static bool is_blank(unsigned char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static unsigned char lower(unsigned char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte - 'A' + 'a') : byte;
}

/* True if `word`, in small letters, stands at the beginning in letters of any size. */
static bool begins(const unsigned char *bytes, size_t have, const char *word)
{
    size_t length = strlen(word);
    bool same = have >= length;
    for (size_t i = 0; same && i < length; i++) {
        same = lower(bytes[i]) == (unsigned char)word[i];
    }
    return same;
}

/* Text: what a web server sends in place of a model, and the small files that lie beside one. */
static const char *name_text(const unsigned char *bytes, size_t have)
{
    bool mark = have >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0;
    size_t at = mark ? 3 : 0;
    while (at < have && is_blank(bytes[at])) {
        at++;
    }
    bytes += at;
    have -= at;
    if (begins(bytes, have, "<!doctype html") || begins(bytes, have, "<html") || begins(bytes, have, "<head")) {
        return "is an HTML page, such as a web server sends in place of a file (a login, an error); download the model "
               "again";
    }
    if (begins(bytes, have, "<?xml") || begins(bytes, have, "<error>")) {
        return "is XML, such as a storage service sends in place of a file; download the model again";
    }
    if (have >= 2 && bytes[0] == '{' && (is_blank(bytes[1]) || bytes[1] == '"' || bytes[1] == '}')) {
        return "is JSON, not a model; if it is the index of a model in shards, give the folder that it is in";
    }
    return NULL;
}

/* A zip archive is named by the name of its first file. */
static const char *name_zip(const unsigned char *bytes, size_t have)
{
    enum { NAME_LENGTH = 26, NAME = 30 };
    if (have < 4 || memcmp(bytes, "PK\3\4", 4) != 0) {
        return NULL;
    }
    size_t room = have > NAME ? have - NAME : 0;
    size_t length = room > 0 ? bytes[NAME_LENGTH] + ((size_t)bytes[NAME_LENGTH + 1] << 8) : 0;
    const char *name = (const char *)bytes + NAME;
    length = length < room ? length : room;
    if (rfi_npz_begins(bytes, have)) {
        return NULL;
    }
    if (length >= 8 && memcmp(name + length - 8, "data.pkl", 8) == 0) {
        return "is a pickled PyTorch file (.pt, .pth, .bin), which can run code when it is loaded; " SAVE_AS;
    }
    return "is a zip archive, but none of arrays (.npz); save the model as safetensors or npz";
}

/* Protocol 2 and later; PyTorch before 1.6, and pickles of anything else. */
static bool is_pickle(const unsigned char *bytes, size_t have)
{
    return have >= 3 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5;
}

/* Protocol buffers have no mark. ONNX: field 1, the version, a small number; then field 2, the producer, field 7, the graph, or field 8. */
static bool is_onnx(const unsigned char *bytes, size_t have)
{
    return have >= 8 && bytes[0] == 0x08 && bytes[1] >= 1 && bytes[1] <= 20 &&
           (bytes[2] == 0x12 || bytes[2] == 0x3a || bytes[2] == 0x42);
}

/* Space that was made for a file whose content never came. */
static bool is_blank_space(const unsigned char *bytes, size_t have)
{
    bool blank = have >= 16;
    for (size_t i = 0; blank && i < have; i++) {
        blank = bytes[i] == 0;
    }
    return blank;
}

static bool may_be_safetensors(const unsigned char *bytes, size_t have)
{
    return have > 8 && (bytes[4] | bytes[5] | bytes[6] | bytes[7]) == 0 && bytes[8] == '{';
}

const char *rfi_foreign(const void *bytes, size_t have)
{
    const unsigned char *first = bytes;
    if (may_be_safetensors(first, have)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        const beginning *b = &beginnings[i];
        if (have >= b->length && memcmp(bytes, b->bytes, b->length) == 0) {
            return b->is;
        }
    }
    if (have == 0) {
        return "is empty; its download or copy has failed";
    }
    if (is_blank_space(first, have)) {
        return "begins with zeros, as a file does whose download or copy was not finished; get it again";
    }
    const char *zip = name_zip(first, have);
    if (zip) {
        return zip;
    }
    if (is_pickle(first, have)) {
        return "is a pickled file (PyTorch's old .bin, .pt), which can run code when it is loaded; " SAVE_AS;
    }
    if (is_onnx(first, have)) {
        return "is an ONNX file; merge the weights before they are exported, as safetensors or npy";
    }
    return name_text(first, have);
}
