/* Numbers from text, one at a time. */
#include "io/numbers.h"

#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "io/file.h"
#include "io/stream.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static void step(rfi_numbers *reader)
{
    if (reader->file) {
        reader->ahead = getc(reader->file);
    } else {
        reader->ahead = reader->at < reader->length ? (unsigned char)reader->text[reader->at++] : EOF;
    }
}

reef_status rfi_numbers_open(rfi_numbers *reader, const char *path, reef_error *error)
{
    rfi_reader opened;
    reef_status status = rfi_reader_open(&opened, path, error);
    if (status != REEF_OK) {
        return status;
    }
    FILE *file = fdopen(opened.descriptor, "rb");
    if (!file) {
        int number = errno;
        rfi_reader_close(&opened);
        return rfi_fail_errno(error, path, "open", number);
    }
    *reader = (rfi_numbers){.name = path, .file = file, .line = 1};
    step(reader);
    return REEF_OK;
}

void rfi_numbers_memory(rfi_numbers *reader, const char *name, const char *text, size_t length)
{
    *reader = (rfi_numbers){.name = name, .text = text, .length = length, .line = 1};
    step(reader);
}

void rfi_numbers_close(rfi_numbers *reader)
{
    if (reader->file) {
        (void)fclose(reader->file);
        reader->file = NULL;
    }
}

static bool is_between(int c)
{
    return c == ' ' || c == '\t' || c == ',' || c == ';' || c == '\r';
}

static void pass_comment(rfi_numbers *reader)
{
    while (reader->ahead != '\n' && reader->ahead != EOF) {
        step(reader);
    }
}

/* The number that begins at `ahead`. What is none is not shown: the file may hold anything, and who reads the message may not be who
 * may read the file. */
static rfi_numbers_item read_word(rfi_numbers *reader, double *value, reef_status *status, reef_error *error)
{
    char word[RFI_NUMBER_LENGTH_MAX + 1];
    rfi_slice slice = {word, 0};
    while (reader->ahead != EOF && reader->ahead != '\n' && reader->ahead != '#' && !is_between(reader->ahead)) {
        if (slice.length < sizeof word) { /* what does not fit is no number */
            word[slice.length++] = (char)reader->ahead;
        }
        step(reader);
    }
    if (!rfi_read_real(slice, value)) {
        *status = rfi_fail(error, REEF_E_FORMAT, "%s:%td: this is not a list of finite decimal numbers",
                           rfi_path_show(reader->name), reader->line);
        return RFI_NUMBERS_ERROR;
    }
    return RFI_NUMBERS_VALUE;
}

rfi_numbers_item rfi_numbers_next(rfi_numbers *reader, double *value, reef_status *status, reef_error *error)
{
    for (;;) {
        if (reader->ahead == '#') {
            pass_comment(reader);
        } else if (reader->ahead == '\n') {
            step(reader);
            reader->line++;
            return RFI_NUMBERS_LINE_END;
        } else if (reader->ahead == EOF) {
            break;
        } else if (is_between(reader->ahead)) {
            step(reader);
        } else {
            return read_word(reader, value, status, error);
        }
    }
    if (reader->file && ferror(reader->file)) {
        *status =
            rfi_fail(error, REEF_E_FILE, "%s:%td: reading failed: %s", reader->name, reader->line, strerror(errno));
        return RFI_NUMBERS_ERROR;
    }
    return RFI_NUMBERS_END;
}
