/* The senders a receiver remembers: a table by id, and what the rule keeps about each, about all, and about pairs of them.
 *
 * Senders have places 0, 1, ..., in the order in which they were first heard. There is room for `capacity` of them, which grows as new ones
 * are heard; beyond `limit` a new sender gets the place of the youngest absent one. Nothing here changes during an aggregation: room is made
 * before it, and what it learned is stored at its end. */
#ifndef RFI_AGG_SENDERS_H
#define RFI_AGG_SENDERS_H

#include "base/memory.h"

#include <reef/agg.h>

/* No padding: saved as it is. */
typedef struct rfi_sender {
    int64_t id;
    int64_t age;   /* aggregations it took part in */
    int64_t heard; /* number of the last of them */
} rfi_sender;

/* Places by id: a hash table, -1: empty. */
typedef struct rfi_id_table {
    int32_t *places;
    ptrdiff_t size; /* a power of two, more than twice the places */
    uint64_t key;   /* of the hash */
} rfi_id_table;

typedef struct reef_senders {
    const reef_context *context;
    reef_memory_sizes sizes;
    bool single; /* vectors are float32, else float64 */
    ptrdiff_t capacity, count, limit;
    int64_t rounds; /* aggregations so far */
    uint64_t seed;
    void *block; /* the memory behind all that follows */
    unsigned char *shared;
    rfi_sender *who;        /* capacity */
    unsigned char *records; /* capacity x sizes.record */
    unsigned char *vectors; /* capacity x sizes.vectors x sizes.numbers */
    float *pairs;
    rfi_id_table table;
} rfi_senders;

/* ---- ids ---- */

ptrdiff_t rfi_id_table_size(ptrdiff_t places);
void rfi_id_table_clear(const rfi_id_table *table);
/* Place of an id among `who`, -1: none. */
ptrdiff_t rfi_id_find(const rfi_id_table *table, const rfi_sender *who, int64_t id);
/* Enters the id at a place; false if it is there already. */
bool rfi_id_enter(const rfi_id_table *table, const rfi_sender *who, ptrdiff_t place);

/* ---- senders ---- */

/* Room for `capacity` senders; sizes, single and limit are set. False: no memory, or more than fits in memory addresses. */
bool rfi_senders_create(rfi_senders *senders, ptrdiff_t capacity);
void rfi_senders_destroy(rfi_senders *senders);
/* Forgets everybody; the seed stays. */
void rfi_senders_reset(rfi_senders *senders);
/* Room for `wanted` senders, as far as the limit goes but for `least` of them in any case. False: no memory, and nothing changed. */
bool rfi_senders_reserve(rfi_senders *senders, ptrdiff_t wanted, ptrdiff_t least);
ptrdiff_t rfi_senders_find(const rfi_senders *senders, int64_t id);
/* Takes over ages and records of an aggregation, finds places (recall->place) for new senders, and clears what was kept of their places. spare: n places
 * to work with. */
void rfi_senders_commit(rfi_senders *senders, const reef_recall *recall, ptrdiff_t *place, ptrdiff_t *spare);

/* Bytes of a vector, and where one is. */
size_t rfi_senders_vector_size(const rfi_senders *senders);
unsigned char *rfi_senders_vector(const rfi_senders *senders, ptrdiff_t place, ptrdiff_t vector);
/* float32 numbers that are kept of the pairs of the first `count` places, one after the other; -1 if that overflows. */
ptrdiff_t rfi_senders_pairs(const rfi_senders *senders, ptrdiff_t count);

/* Numbers of the pair of two places; NULL: none are kept. */
float *rfi_senders_pair(const rfi_senders *senders, ptrdiff_t one, ptrdiff_t other);
/* Two senders change places; what was kept of their pairs is lost. */
void rfi_senders_swap(const rfi_senders *senders, ptrdiff_t one, ptrdiff_t other);

/* ---- senders_bytes.c: what a saved state has of them ---- */

/* Bytes of the first `count` senders; 0 if they overflow. */
size_t rfi_senders_size(const rfi_senders *senders, ptrdiff_t count);
void rfi_senders_save(const rfi_senders *senders, unsigned char *bytes);
/* Takes `count` senders after `rounds` aggregations from rfi_senders_size(count) bytes, if the rule could have left them behind. */
reef_status rfi_senders_load(rfi_senders *senders, const reef_memory *memory, ptrdiff_t count, int64_t rounds,
                             const unsigned char *bytes, reef_error *error);

#endif
