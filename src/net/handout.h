/* Run files of later epochs, handed out through the network. An agent that was given one keeps a copy at the brokers under its own name, and a
 * broker that uses one keeps it by its epoch. Agents keep asking for the next file, the broker and their neighbours in turn.
 *
 * Where a file comes from is not trusted. It counts only if it is signed by the coordinator of the file in force and may follow that file, just
 * like one given by hand: old epochs cannot be replayed, and a second file of an epoch is ignored. Until the signature has been verified,
 * bytes change nothing but counters, and the number of verifications is bounded. */
#ifndef RFI_NET_HANDOUT_H
#define RFI_NET_HANDOUT_H

#include "net/link.h"
#include "net/runfile.h"

/* What became of a file. */
typedef enum rfi_handed {
    RFI_HANDED_TAKEN,     /* it is the next one */
    RFI_HANDED_KNOWN,     /* that, or the one in force, again */
    RFI_HANDED_OLD,       /* of an epoch that is over */
    RFI_HANDED_EARLY,     /* of an epoch after the next one */
    RFI_HANDED_LENGTH,    /* empty, or larger than run files are */
    RFI_HANDED_RATE,      /* not looked at: too many came, or memory is short */
    RFI_HANDED_SIGNATURE, /* not signed, or not by the coordinator */
    RFI_HANDED_SECOND,    /* the coordinator has signed two different files for one epoch */
    RFI_HANDED_REFUSED,   /* signed by the coordinator, but no run file, or none that may follow */
    RFI_HANDED_RESULTS
} rfi_handed;
const char *rfi_handed_text(rfi_handed result);
/* Nobody sends such a file who has received what the coordinator has signed once. */
bool rfi_handed_offends(rfi_handed result);

enum { RFI_HANDOUT_MEMORY = 8 };

typedef struct rfi_handout {
    double malicious_at_least; /* files that allow for less malicious weight are refused */
    uint64_t counts[RFI_HANDED_RESULTS];
    unsigned way; /* set by the caller: the broker by which comes what is checked next */
    double tokens
        [RFI_WAYS]; /* files that may be looked at, by that broker: one that floods must not use up what others need... */
    double filled_at[RFI_WAYS]; /* ...and when they were counted */
    double every;               /* seconds between questions */
    double ask_at;
    uint64_t turn; /* who is asked next */
    struct {
        unsigned char hash[RFI_HASH_BYTES];
        rfi_handed result;
    } seen[RFI_HANDOUT_MEMORY]; /* signed files that were of no use, so that they are not read again */
    int seen_count;
} rfi_handout;

void rfi_handout_start(rfi_handout *handout, double malicious_at_least, double now);
/* So many agents ask the same brokers: together at most a hundred times a second. */
void rfi_handout_pace(rfi_handout *handout, ptrdiff_t agents);
/* Another file is in force, or the next one is known: what was of no use before may be of use now. */
void rfi_handout_turn(rfi_handout *handout);

/* Whether `candidate`, read and signed, is the next file behind `file`; `next`: the one that is known to be already, or NULL. */
rfi_handed rfi_handout_judge(const rfi_handout *handout, const rfi_runfile *file, const rfi_runfile *next,
                             const rfi_runfile *candidate, reef_error *why);
/* Checks bytes from the network, and counts. RFI_HANDED_TAKEN: *taken is the file, for the caller to free. Otherwise why has a sentence. */
rfi_handed rfi_handout_check(rfi_handout *handout, double now, const rfi_runfile *file, const rfi_runfile *next,
                             const void *bytes, size_t size, rfi_runfile *taken, reef_error *why);

/* The time has come to ask: what for, the broker and `count` neighbours in turn. *until: otherwise, when to come again. */
bool rfi_handout_ask(rfi_handout *handout, double now, int64_t epoch, const uint32_t *agents, ptrdiff_t count,
                     rfi_topic *topic, double *until);

#endif
