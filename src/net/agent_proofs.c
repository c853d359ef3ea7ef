/* Proofs against two-faced senders in the state folder: `proof-NUMBER` of the agent they are about, two manifests one behind the other,
 * as `reef proof` reads them. Each is checked again when it is read. */
#include "net/agent.h"

#include "base/error.h"
#include "io/file.h"
#include "net/audit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rfi_proof_keep(void *user, uint32_t agent, const unsigned char proof[RFI_PROOF_BYTES])
{
    const rfi_agent *a = user;
    char path[RFI_PATH_SIZE];
    char text[2 * RFI_PROOF_BYTES + 1];
    rfi_head head;
    if (a->restoring ||
        snprintf(path, sizeof path, "%s/proof-%lu", a->folder, (unsigned long)agent) >= (int)sizeof path) {
        return;
    }
    /* If the disk is full the proof is not there after a restart, and the sender has to be found once more. */
    (void)rfi_file_write(NULL, path, &(rfi_piece){proof, RFI_PROOF_BYTES}, 1, NULL);
    if (rfi_frame_manifest(proof, &head)) {
        rfi_audit_hex(text, proof, RFI_PROOF_BYTES);
        (void)rfi_audit_line(a->folder, "two_faced", "at=%llu agent=%s round=%llu file=proof-%lu proof=%s",
                             (unsigned long long)rfi_node_rounds(a->node)->round, a->file.participants[agent].name,
                             (unsigned long long)head.round, (unsigned long)agent, text);
    }
}

static void take_file(rfi_agent *a, const char *name)
{
    char path[RFI_PATH_SIZE];
    rfi_file file = {0};
    if (snprintf(path, sizeof path, "%s/%s", a->folder, name) < (int)sizeof path &&
        rfi_file_read(NULL, path, RFI_PROOF_BYTES, &file, NULL) == REEF_OK && file.size == RFI_PROOF_BYTES) {
        (void)rfi_node_accuse(a->node, file.bytes);
    }
    rfi_file_free(NULL, &file);
}

void rfi_proofs_take(rfi_agent *a)
{
    DIR *list = opendir(a->folder);
    a->restoring = true;
    for (struct dirent *entry = list ? readdir(list) : NULL; entry; entry = readdir(list)) {
        if (strncmp(entry->d_name, "proof-", 6) == 0) {
            take_file(a, entry->d_name);
        }
    }
    a->restoring = false;
    if (list) {
        (void)closedir(list);
    }
}
