/* Frames: what agents sign and send. A head of 256 bytes, a signature of 64, and the payload if it is small.
 *
 *   offset bytes  field
 *        0     4  "REEF"
 *        4     1  version, 1
 *        5     1  type (rfi_frame_type)
 *        6     1  numbers (rfi_number_type)
 *        7     1  flags: bit 0 inline, bit 1 sealed (net/seal.h); others 0
 *        8     4  epoch
 *       12     4  agent number of the sender
 *       16    32  hash of the run file
 *       48    32  identity key of the sender
 *       80     8  round, below 2^48
 *       88     8  MODEL: numbers in the model; otherwise entries of the payload
 *       96     8  payload bytes: of the model, if it is sealed with RFI_SEAL_BYTES more for each part, and inline with the boxes as well
 *      104     4  bytes of the model per chunk, 0 if inline
 *      108     4  chunks, 0 if inline
 *      112    32  root: BLAKE2b-256 of the payload (inline) or of the index, which is 32 bytes per chunk, each BLAKE2b-256, and behind
 *                   them the boxes if it is sealed
 *      144    32  layout of the model, zero: a plain vector
 *      176    32  commitment to the key if sealed, otherwise zero
 *      208     8  boot: drawn when the process starts, tells two processes with one key apart
 *      216    40  zero
 *      256    64  Ed25519 over RFI_TAG_FRAME and bytes 0..255
 *
 * Integers are little endian. There are no variable fields, strings or compression. A manifest is a MODEL frame without payload;
 * its mark is BLAKE2b-256 of the head alone, because a malicious sender can make many valid signatures for one head. */
#ifndef RFI_NET_FRAME_H
#define RFI_NET_FRAME_H

#include "net/crypto.h"

#include <stdint.h>

#define RFI_HEAD_BYTES 256
#define RFI_MANIFEST_BYTES (RFI_HEAD_BYTES + RFI_SIGNATURE_BYTES)
#define RFI_FRAME_AT_TYPE 5 /* for those who must tell frames apart before they are read */
#define RFI_INLINE_MAX ((size_t)64 * 1024)
/* Boxes with the key of a sealed model: agent number u32 and box, by ascending number. */
#define RFI_SEALED_BOX (4 + RFI_BOX_BYTES)
#define RFI_HEARERS_MAX 256
#define RFI_BOXES_MAX ((size_t)RFI_HEARERS_MAX * RFI_SEALED_BOX)
/* The largest frame there is. */
#define RFI_FRAME_MAX (RFI_MANIFEST_BYTES + RFI_INLINE_MAX + RFI_SEAL_BYTES + RFI_BOXES_MAX)
#define RFI_ROUND_LIMIT (UINT64_C(1) << 48)
#define RFI_NUMBERS_MAX ((UINT64_C(1) << 31) - 1)
#define RFI_PAYLOAD_MAX (UINT64_C(8) << 30)
#define RFI_CHUNKS_MAX 16384
#define RFI_CHUNK_MIN ((size_t)64 * 1024)
#define RFI_CHUNK_MAX ((size_t)1024 * 1024 - 4096)

typedef enum rfi_frame_type {
    RFI_FRAME_MODEL = 1,
    RFI_FRAME_HELLO = 2, /* round holds the last journaled round plus 1; 0: nothing signed yet */
    RFI_FRAME_ECHO = 3,
    RFI_FRAME_SHOW = 4,
    RFI_FRAME_PROOF = 5,
    RFI_FRAME_STATUS = 6,
    RFI_FRAME_BYE = 7,
} rfi_frame_type;

typedef enum rfi_number_type { RFI_NO_NUMBERS = 0, RFI_NUMBERS_F32 = 1, RFI_NUMBERS_F64 = 2 } rfi_number_type;

#define RFI_FLAG_INLINE 1U
#define RFI_FLAG_SEALED 2U

typedef struct rfi_head {
    rfi_frame_type type;
    rfi_number_type numbers;
    unsigned flags;
    uint32_t epoch;
    uint32_t agent;
    unsigned char run[RFI_HASH_BYTES];
    unsigned char key[RFI_KEY_BYTES];
    uint64_t round;
    uint64_t count;
    uint64_t payload;
    uint32_t chunk;
    uint32_t chunks;
    unsigned char root[RFI_HASH_BYTES];
    unsigned char layout[RFI_HASH_BYTES];
    unsigned char commitment[RFI_HASH_BYTES];
    uint64_t boot;
} rfi_head;

/* Why a frame, or the model it names, is refused or how it was used, in the order of the checks. Each neighbour has a counter
 * for each. */
#define RFI_CAUSE_LIST(X)                                                                                              \
    X(RFI_GOOD, "good")           /* accepted */                                                                       \
    X(RFI_LENGTH, "length")       /* too short, or its size is not what the head says */                               \
    X(RFI_FORMAT, "format")       /* magic, version, type, flags, or bytes that must be zero */                        \
    X(RFI_SENDER, "sender")       /* agent number or key is not that of the subject */                                 \
    X(RFI_EXCLUDED, "excluded")   /* a proof against the sender is held */                                             \
    X(RFI_CONFIG, "config")       /* another epoch or run file */                                                      \
    X(RFI_SUBJECT, "subject")     /* the round in the subject differs */                                               \
    X(RFI_OLD, "old")             /* below the window */                                                               \
    X(RFI_REPEAT, "repeat")       /* known already; no offence */                                                      \
    X(RFI_SHAPE, "shape")         /* numbers, sizes or layout are not those of the run */                              \
    X(RFI_RATE, "rate")           /* more at once than are verified: a flood, or what has piled up */                  \
    X(RFI_SIGNATURE, "signature") /* does not verify */                                                                \
    X(RFI_FUTURE, "future")       /* above the window: raises the claim, is no row now */                              \
    X(RFI_TWO_FACED, "two_faced") /* another frame is held for this round: both together are the proof */              \
    X(RFI_CHUNK, "chunk")         /* payload, index or chunk has the wrong hash */                                     \
    X(RFI_GONE, "gone")           /* the ring of chunks has moved on; no offence */                                    \
    X(RFI_TIMEOUT, "timeout")     /* not complete by the deadline; no offence */                                       \
    X(RFI_VALUE, "value")         /* a number is not finite or too large */                                            \
    X(RFI_USED, "used")           /* entered a combination, of the same round */                                       \
    X(RFI_STALE, "stale")         /* entered a combination, of another round */                                        \
    /* Last, since what agents report has the others by number. */                                                     \
    X(RFI_SEAL, "seal") /* as signed, but the key is not in the box, not the one committed to, or opens nothing */

typedef enum rfi_cause {
#define RFI_CAUSE_ENUM(code, text) code,
    RFI_CAUSE_LIST(RFI_CAUSE_ENUM)
#undef RFI_CAUSE_ENUM
        RFI_CAUSES
} rfi_cause;

/* The word of a cause, as in logs and metrics. */
const char *rfi_cause_text(rfi_cause cause);

/* Signing and verifying of a message with its tag. The simulated network has cheap ones of its own, so that thousands of
 * schedules can be played; everything else uses rfi_sign and rfi_verify. */
typedef struct rfi_signatures {
    void (*sign)(unsigned char signature[RFI_SIGNATURE_BYTES], const rfi_keys *keys, const void *message, size_t size);
    bool (*verify)(const unsigned char signature[RFI_SIGNATURE_BYTES], const unsigned char key[RFI_KEY_BYTES],
                   const void *message, size_t size);
} rfi_signatures;
extern const rfi_signatures rfi_ed25519;

/* Lays the head out. Fields are taken as they are. */
void rfi_head_write(unsigned char bytes[RFI_HEAD_BYTES], const rfi_head *head);

/* Checks length and format of `size` hostile bytes and fills in *head: RFI_GOOD, RFI_LENGTH or RFI_FORMAT. On RFI_LENGTH *head
 * is not touched. Payloads of frames other than MODEL are always inline. */
rfi_cause rfi_frame_read(const unsigned char *bytes, size_t size, rfi_head *head);

/* Writes the signature behind a head already laid out in frame. */
void rfi_frame_sign(unsigned char frame[RFI_MANIFEST_BYTES], const rfi_keys *keys, const rfi_signatures *by);
/* The signature verifies under the key in the head. */
bool rfi_frame_verify(const unsigned char frame[RFI_MANIFEST_BYTES], const rfi_signatures *by);
void rfi_frame_mark(unsigned char mark[RFI_HASH_BYTES], const unsigned char head[RFI_HEAD_BYTES]);

/* Fills in *head from a manifest whose payload, if it is inline, was left out, as proofs hold them; false: it is none. */
bool rfi_frame_manifest(const unsigned char bytes[RFI_MANIFEST_BYTES], rfi_head *head);

/* Two manifests prove that their signer is two-faced: both verify, and key, run and round are the same but not the mark. */
bool rfi_frame_proves(const unsigned char one[RFI_MANIFEST_BYTES], const unsigned char other[RFI_MANIFEST_BYTES],
                      const rfi_signatures *by);

/* What every model of a run looks like. */
typedef struct rfi_shape {
    rfi_number_type numbers;
    uint64_t count;                       /* numbers in a model, at least 1 */
    uint32_t chunk;                       /* bytes per chunk of models that are not inline */
    unsigned char layout[RFI_HASH_BYTES]; /* zero: a plain vector */
    double largest;                       /* a magnitude above it refuses the model */
    bool sealed;                          /* encrypted for those who hear the sender: net/seal.h */
} rfi_shape;

/* Bytes of a model, and chunks of it (0: inline). The shape must have passed rfi_shape_check. */
size_t rfi_shape_bytes(const rfi_shape *shape);
uint32_t rfi_shape_chunks(const rfi_shape *shape);
/* The same as they are sent: bytes of all parts, without the boxes of an inline one, and of one part that is not the last. */
size_t rfi_shape_payload(const rfi_shape *shape);
size_t rfi_shape_part(const rfi_shape *shape);
reef_status rfi_shape_check(const rfi_shape *shape, reef_error *error);
/* The head announces a model of this shape. */
bool rfi_shape_fits(const rfi_shape *shape, const rfi_head *head);
/* All numbers of a model are finite and not beyond the largest. */
bool rfi_shape_values(const rfi_shape *shape, const void *model);

#endif
