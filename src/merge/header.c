/* Headers of safetensors files: each is read once, however many files have it. */
#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"
#include "merge/model.h"

#include <assert.h>
#include <string.h>

static void free_header(const reef_context *context, rfi_header *header)
{
    rfi_release(context, header->text);
    rfi_safetensors_free(context, &header->table);
    rfi_release(context, header);
}

static void use(rfi_shard *shard, rfi_header *header)
{
    header->users++;
    shard->header = header;
    shard->table = header->table;
}

/* Reads and checks a text that no other file is known to have. */
static reef_status read_new(const reef_context *context, rfi_shard *shard, rfi_header *header, reef_error *error)
{
    return rfi_safetensors_read(context, header->text, header->length, header->room, shard->file.path, &header->table,
                                error);
}

/* Whether the file's header is the one that another has: nothing is kept of it. */
static reef_status compare(const rfi_shard *shard, size_t length, const rfi_header *with, bool *same, reef_error *error)
{
    char part[16384];
    reef_status status = REEF_OK;
    *same = with && with->text && with->length == length && with->room == shard->file.size - shard->data;
    for (size_t at = 0; status == REEF_OK && *same && at < length; at += sizeof part) {
        size_t size = length - at < sizeof part ? length - at : sizeof part;
        status = rfi_reader_get(&shard->file, RFI_SAFETENSORS_START + at, part, size, error);
        *same = status == REEF_OK && memcmp(part, with->text + at, size) == 0;
    }
    return status;
}

/* Takes the text of the shard's header from its file. */
static reef_status take_text(const reef_context *context, rfi_shard *shard, size_t length, rfi_header **made,
                             reef_error *error)
{
    rfi_header *header = rfi_allocate(context, sizeof *header);
    char *text = rfi_allocate(context, length + 1);
    if (!header || !text) {
        rfi_release(context, text);
        rfi_release(context, header);
        return rfi_fail(error, REEF_E_NOMEM, "%s: no memory for its header of %zu bytes",
                        rfi_path_show(shard->file.path), length);
    }
    *header = (rfi_header){.text = text, .length = length, .room = shard->file.size - shard->data};
    *made = header;
    return rfi_reader_get(&shard->file, RFI_SAFETENSORS_START, text, length, error);
}

/* Only the last header is compared with the next: of the others the text is of no use. */
static void forget_text(const reef_context *context, rfi_shard *shard)
{
    if (shard && shard->header) {
        rfi_release(context, shard->header->text);
        shard->header->text = NULL;
    }
}

reef_status rfi_header_read(const reef_context *context, rfi_shard *shard, const void *first, size_t have,
                            rfi_shard *like, reef_error *error)
{
    size_t length = 0;
    rfi_header *header = NULL;
    reef_status status = rfi_safetensors_length(first, have, shard->file.size, shard->file.path, &length, error);
    if (status != REEF_OK) {
        return status;
    }
    shard->data = RFI_SAFETENSORS_START + length;
    bool same = false;
    status = compare(shard, length, like ? like->header : NULL, &same, error);
    if (status == REEF_OK && same) {
        assert(like->data == shard->data);
        use(shard, like->header);
        return REEF_OK;
    }
    if (status == REEF_OK) {
        status = take_text(context, shard, length, &header, error);
    }
    if (status == REEF_OK) {
        status = read_new(context, shard, header, error);
    }
    if (status != REEF_OK) {
        if (header) {
            free_header(context, header);
        }
        return status;
    }
    forget_text(context, like);
    use(shard, header);
    return REEF_OK;
}

void rfi_header_release(const reef_context *context, rfi_shard *shard)
{
    rfi_header *header = shard->header;
    if (!header) {
        rfi_safetensors_free(context, &shard->table); /* of an npz file */
        return;
    }
    shard->header = NULL;
    shard->table = (rfi_safetensors){0};
    assert(header->users > 0);
    header->users--;
    if (header->users == 0) {
        free_header(context, header);
    }
}
