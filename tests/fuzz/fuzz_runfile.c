/* Any bytes as a run file, and any bytes signed by a coordinator who is malicious: refused with a sentence, or read to something whose
 * numbers are in their ranges and from which a roster can be made or not, again with a sentence. */
#include "check.h"
#include "net/roster.h"
#include "net/runfile.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void check_file(rfi_runfile *file)
{
    rfi_roster roster;
    reef_error error = {REEF_OK, ""};
    CHECK(rfi_is_token(file->run) && file->agents >= 1 && file->agents <= RFI_AGENTS_MAX);
    CHECK(file->terms.malicious >= 0 && file->terms.malicious < 0.5 && file->brokers >= 1);
    CHECK(file->terms.stale >= 0 && file->terms.stale <= RFI_STALE_MAX && file->deadline > 0);
    CHECK(!file->is_test || rfi_runfile_local(file));
    for (ptrdiff_t i = 0; i < file->leaves; i++) {
        CHECK(rfi_runfile_leaf(file, file->leaf[i].login) == &file->leaf[i] && file->leaf[i].url[0]);
    }
    for (ptrdiff_t k = 0; k < file->agents; k++) {
        const rfi_participant *who = &file->participants[k];
        CHECK(who->leaves <= RFI_BROKERS_MAX && (!who->leaves || !who->removed));
        for (int i = 0; i < who->leaves; i++) {
            CHECK(who->leaf[i] < file->leaves && rfi_runfile_behind(file, k, file->leaf[who->leaf[i]].login));
        }
    }
    file->test.problem[0] = '\0'; /* problems have a fuzz target of their own, and may be large */
    if (rfi_roster_create(NULL, file, &roster, &error) == REEF_OK) {
        rfi_tolerance t;
        rfi_roster_tolerance(&roster, 0, &t);
        CHECK(t.malicious <= t.neighbours && t.absent <= t.neighbours);
        rfi_roster_free(&roster);
        rfi_runfile_stand(file, file->agents - 1);
        CHECK(file->brokers >= 1 && file->brokers <= RFI_BROKERS_MAX);
    } else {
        CHECK(error.text[0]);
    }
}

static void check_bytes(const void *bytes, size_t size)
{
    rfi_runfile file;
    reef_error error = {REEF_OK, ""};
    if (rfi_runfile_read(NULL, bytes, size, "run.yaml", &file, &error) == REEF_OK) {
        check_file(&file);
        rfi_runfile_free(&file);
    } else {
        CHECK(error.text[0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned char seed[RFI_KEY_BYTES] = "coordinator";
    char line[RFI_SIGNED_SIZE];
    rfi_keys keys;
    if (size > 4096) {
        return 0;
    }
    CHECK(rfi_crypto_start(NULL) == REEF_OK);
    check_bytes(data, size);
    rfi_keys_derive(&keys, seed, RFI_KEY_IDENTITY);
    size_t length = rfi_runfile_sign(data, size, &keys, line);
    char *text = malloc(size + length);
    CHECK(text);
    memcpy(text, data, size);
    memcpy(text + size, line, length);
    check_bytes(text, size + length);
    free(text);
    return 0;
}
