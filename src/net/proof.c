/* Proofs of two-faced senders, for people: checked without a network. */
#include <reef/net.h>

#include "base/error.h"
#include "io/file.h"
#include "net/audit.h"
#include "net/echo.h"
#include "net/keys.h"
#include "net/runfile.h"
#include "net/say.h"

#include <string.h>

/* What the two manifests say. */
static void describe(const rfi_teller *to, const unsigned char *proof, const rfi_head *head)
{
    char key[RFI_KEY_TEXT];
    char text[2 * RFI_HASH_BYTES + 1];
    unsigned char mark[RFI_HASH_BYTES];
    rfi_key_print(key, RFI_LETTER_IDENTITY, head->key);
    rfi_audit_hex(text, head->run, sizeof head->run);
    rfi_say(to, "signed by:  %s, agent %lu", key, (unsigned long)head->agent);
    rfi_say(to, "run file:   %s, epoch %lu", text, (unsigned long)head->epoch);
    rfi_say(to, "round:      %llu", (unsigned long long)head->round);
    for (int i = 0; i < 2; i++) {
        rfi_frame_mark(mark, proof + (ptrdiff_t)i * RFI_MANIFEST_BYTES);
        rfi_audit_hex(text, mark, sizeof mark);
        rfi_say(to, "model %d:    mark %s", i + 1, text);
    }
}

/* Whose key it is in a run file. */
static reef_status name_signer(const rfi_teller *to, const char *run_file, const rfi_head *head, reef_error *error)
{
    rfi_runfile file;
    reef_status status = rfi_runfile_load(NULL, run_file, &file, error);
    if (status != REEF_OK) {
        return status;
    }
    ptrdiff_t place = rfi_runfile_find(&file, head->key);
    bool same = memcmp(file.hash, head->run, sizeof head->run) == 0;
    if (place >= 0) {
        rfi_say(to, "agent:      %s of run %s%s", file.participants[place].name, file.run,
                same ? "" : "; both models are from another run file than this");
    } else {
        status = rfi_fail(error, REEF_E_ARG, "the key belongs to no agent of run %s", file.run);
    }
    rfi_runfile_free(&file);
    return status;
}

static reef_status judge(const rfi_teller *to, const rfi_file *file, const char *path, const char *run_file,
                         bool *proven, reef_error *error)
{
    rfi_head head;
    if (file->size != RFI_PROOF_BYTES || !rfi_frame_manifest(file->bytes, &head) ||
        !rfi_frame_manifest(file->bytes + RFI_MANIFEST_BYTES, &head)) {
        return rfi_fail(error, REEF_E_FORMAT, "%s is not a proof: a proof is two signed manifests, %d bytes",
                        rfi_path_show(path), RFI_PROOF_BYTES);
    }
    describe(to, file->bytes, &head);
    reef_status status = run_file ? name_signer(to, run_file, &head, error) : REEF_OK;
    if (status != REEF_OK) {
        return status;
    }
    *proven = rfi_proof_read(file->bytes, &rfi_ed25519, &head);
    rfi_say(to, "%s",
            *proven ? "valid proof: both signatures verify, and the two models differ"
                    : "NOT a proof: a signature does not verify, or the two do not contradict each other");
    return REEF_OK;
}

reef_status reef_net_proof(const char *path, const char *run_file, reef_tell *tell, void *user, bool *proven,
                           reef_error *error)
{
    rfi_file file = {0};
    const rfi_teller to = {tell, user};
    *proven = false;
    reef_status status = rfi_crypto_start(error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_file_read(NULL, path, 1 << 20, &file, error);
    if (status != REEF_OK) {
        return status;
    }
    status = judge(&to, &file, path, run_file, proven, error);
    rfi_file_free(NULL, &file);
    return status;
}
