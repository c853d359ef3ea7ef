/* The journal: the last round an identity has signed, on the disk before the key is used. It is what keeps an agent that has crashed
 * and restarted from signing a second model for a round.
 *
 * A file of two places of 512 bytes, written in turn: "REEFJRN1", run id 16, identity key 32, next round u64 (the last round
 * signed plus 1), mark 32, BLAKE2b-256 of all that; the rest is zero. Of two valid places the one with the later round counts. A
 * write that was interrupted leaves the other place, and no signature was made for what it should have recorded. */
#ifndef RFI_NET_JOURNAL_H
#define RFI_NET_JOURNAL_H

#include "net/frame.h"

#include <reef/context.h>

#define RFI_RUN_ID_BYTES 16
#define RFI_JOURNAL_PLACE 512

typedef struct rfi_journal {
    int file; /* -1: closed */
    bool sync;
    bool damaged; /* one place could not be read: the round may be older than what was signed */
    bool failed;  /* a write failed; what the disk holds is unknown, so nothing may be signed any more */
    int place;    /* where the next record goes */
    unsigned char run[RFI_RUN_ID_BYTES];
    unsigned char key[RFI_KEY_BYTES];
    uint64_t next; /* the first round that may be signed */
    unsigned char mark[RFI_HASH_BYTES];
} rfi_journal;

/* Reads the two places of a journal as they lie on the disk: for a file of another run or key, or without a valid place, an
 * error. Fills in next, mark, place and damaged. */
reef_status rfi_journal_read(rfi_journal *journal, const unsigned char bytes[2 * RFI_JOURNAL_PLACE],
                             const unsigned char run[RFI_RUN_ID_BYTES], const unsigned char key[RFI_KEY_BYTES],
                             reef_error *error);

/* Opens the journal at path, or makes one that says nothing was signed. sync false leaves out the flush to the disk: for tests
 * of many agents on one machine that crash as processes, never with the machine. */
reef_status rfi_journal_open(rfi_journal *journal, const reef_context *context, const char *path,
                             const unsigned char run[RFI_RUN_ID_BYTES], const unsigned char key[RFI_KEY_BYTES],
                             bool sync, reef_error *error);
/* Records that `round` is about to be signed; round >= journal->next. When it fails nothing may be signed, now or later. */
reef_status rfi_journal_record(rfi_journal *journal, uint64_t round, const unsigned char mark[RFI_HASH_BYTES],
                               reef_error *error);
/* Accepts a closed one. */
void rfi_journal_close(rfi_journal *journal);

#endif
