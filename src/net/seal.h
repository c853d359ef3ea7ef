/* Sealed models: encrypted by their sender, for those who hear it and nobody else. Brokers and strangers see sizes and times.
 *
 * Each model has a key of its own. Each part of it (the chunks, or all of an inline one as part 0) is XChaCha20-Poly1305 with the number of the
 * part as nonce, bound to run file, sender and round, so that nobody can pass off as their own what they cannot read. The head has the
 * BLAKE2b-256 of the key: all who open the frame have the same key, and thus the same model, so that marks of frames compare models as they do
 * without sealing. The key goes to each hearer in a box, closed for the X25519 form of its identity. The boxes follow the hashes of the index, or
 * an inline model; the signed root covers them, and they are stored and requested with what they follow.
 *
 * No key is ever used for two models. It is the keyed hash of 32 random bytes, run file, round and the model itself, under the sender's secret;
 * it exists only inside rfi_seal_model, and what that returns is sent, and sent again, as the same bytes. A process that was killed, or whose
 * journal could not be written, draws another. A random source that repeats itself (a virtual machine that was reset to a snapshot) gives the same key for
 * the same model only. */
#ifndef RFI_NET_SEAL_H
#define RFI_NET_SEAL_H

#include "net/frame.h"

/* One who hears the models of this agent. */
typedef struct rfi_hearer {
    uint32_t agent;
    unsigned char address[RFI_KEY_BYTES]; /* rfi_box_address */
} rfi_hearer;

/* Who opens boxes. */
typedef struct rfi_opener {
    uint32_t agent;
    const rfi_keys *identity; /* must outlive it */
    unsigned char address[RFI_KEY_BYTES];
} rfi_opener;

enum { RFI_BOUND_BYTES = RFI_TAG_BYTES + RFI_HASH_BYTES + RFI_KEY_BYTES + 8 };

/* What it takes to open one model. */
typedef struct rfi_seal {
    unsigned char bound[RFI_BOUND_BYTES]; /* tag, run file, identity of the sender, round */
    unsigned char commitment[RFI_HASH_BYTES];
    unsigned char key[RFI_KEY_BYTES];
} rfi_seal;

/* False: no box can be closed for such an identity. */
bool rfi_hearer_make(rfi_hearer *hearer, uint32_t agent, const unsigned char identity[RFI_KEY_BYTES]);
bool rfi_opener_make(rfi_opener *opener, uint32_t agent, const rfi_keys *identity);

/* The sender's side: encrypts a model of rfi_shape_bytes to `parts`, rfi_shape_payload, and closes its key in boxes for `count` hearers by
 * ascending number, RFI_SEALED_BOX each. The head must have run, key and round; flag and commitment are set here. Returns the bytes of the
 * boxes. */
size_t rfi_seal_model(rfi_head *head, const rfi_shape *shape, const rfi_keys *identity, const void *model,
                      const rfi_hearer *hearers, ptrdiff_t count, unsigned char *parts, unsigned char *boxes);

/* The receiver's side. Begins with a head that was verified. */
void rfi_seal_begin(rfi_seal *seal, const rfi_head *head);
/* Finds this agent's box among hostile bytes and takes the key out of it: false unless it is the one that the head commits to. */
bool rfi_seal_find(rfi_seal *seal, const rfi_opener *opener, const unsigned char *boxes, size_t size);
/* Decrypts one part of `size` bytes, RFI_SEAL_BYTES of which are not the model's. False: `to` holds nothing of it. */
bool rfi_seal_open(const rfi_seal *seal, uint32_t number, unsigned char *to, const unsigned char *from, size_t size);

#endif
