/* The senders a receiver remembers: places, growth, commit. */
#include "agg/senders.h"
#include "num/rng.h"

#include <assert.h>
#include <string.h>

/* ---- ids ---- */

/* Senders may choose their ids. With a key that they do not know they cannot choose such as come to stand in a row. */
static uint64_t hash_id(const rfi_id_table *table, int64_t id)
{
    return rfi_rng_key(table->key, (uint64_t)id);
}

ptrdiff_t rfi_id_table_size(ptrdiff_t places)
{
    ptrdiff_t size = 4;
    while (size < places && size < PTRDIFF_MAX / 8) {
        size *= 2;
    }
    return 2 * size;
}

void rfi_id_table_clear(const rfi_id_table *table)
{
    for (ptrdiff_t i = 0; i < table->size; i++) {
        table->places[i] = -1;
    }
}

/* The slot where the id is, or would be. */
static int32_t *slot_of(const rfi_id_table *table, const rfi_sender *who, int64_t id)
{
    ptrdiff_t mask = table->size - 1;
    ptrdiff_t at = (ptrdiff_t)(hash_id(table, id) & (uint64_t)mask);
    while (table->places[at] >= 0 && who[table->places[at]].id != id) {
        at = (at + 1) & mask;
    }
    return &table->places[at];
}

ptrdiff_t rfi_id_find(const rfi_id_table *table, const rfi_sender *who, int64_t id)
{
    return *slot_of(table, who, id);
}

bool rfi_id_enter(const rfi_id_table *table, const rfi_sender *who, ptrdiff_t place)
{
    int32_t *slot = slot_of(table, who, who[place].id);
    if (*slot >= 0) {
        return false;
    }
    *slot = (int32_t)place;
    return true;
}

/* ---- room ---- */

size_t rfi_senders_vector_size(const rfi_senders *s)
{
    return (size_t)s->sizes.numbers * (s->single ? sizeof(float) : sizeof(double));
}

unsigned char *rfi_senders_vector(const rfi_senders *s, ptrdiff_t place, ptrdiff_t vector)
{
    return s->vectors + (size_t)(place * s->sizes.vectors + vector) * rfi_senders_vector_size(s);
}

static ptrdiff_t triangle(ptrdiff_t size)
{
    return size * (size + 1) / 2;
}

ptrdiff_t rfi_senders_pairs(const rfi_senders *s, ptrdiff_t count)
{
    const reef_memory_sizes *z = &s->sizes;
    if (z->pair_numbers <= 0) {
        return 0;
    }
    ptrdiff_t places = count < z->pair_places ? count : z->pair_places;
    ptrdiff_t numbers = 0;
    bool fits = rfi_mul(places / z->pair_block, triangle(z->pair_block), &numbers) &&
                rfi_add(numbers, triangle(places % z->pair_block), &numbers) &&
                rfi_mul(numbers, z->pair_numbers, &numbers);
    return fits ? numbers : -1;
}

static void lay_out(rfi_senders *s, rfi_arena *arena)
{
    ptrdiff_t width = 0;
    if (!rfi_mul(s->sizes.vectors, s->sizes.numbers, &width)) {
        arena->overflow = true;
    }
    s->shared = rfi_arena_take(arena, (ptrdiff_t)s->sizes.shared, 1, 1);
    s->who = rfi_arena_take(arena, s->capacity, 1, sizeof(rfi_sender));
    s->records = rfi_arena_take(arena, s->capacity, (ptrdiff_t)s->sizes.record, 1);
    s->vectors = rfi_arena_take(arena, s->capacity, width, s->single ? sizeof(float) : sizeof(double));
    s->pairs = rfi_arena_take(arena, rfi_senders_pairs(s, s->capacity), 1, sizeof(float));
    s->table.places = rfi_arena_take(arena, s->table.size, 1, sizeof(int32_t));
}

bool rfi_senders_create(rfi_senders *s, ptrdiff_t capacity)
{
    rfi_arena arena = {0};
    s->capacity = capacity;
    s->count = 0;
    s->table.size = rfi_id_table_size(capacity);
    s->table.key = s->seed;
    lay_out(s, &arena);
    size_t bytes = (size_t)arena.used + RFI_ALIGNMENT - 1;
    s->block = arena.overflow || capacity > INT32_MAX ? NULL : rfi_allocate(s->context, bytes);
    if (!s->block) {
        return false;
    }
    arena = (rfi_arena){.base = rfi_align(s->block)};
    lay_out(s, &arena);
    rfi_senders_reset(s);
    return true;
}

void rfi_senders_destroy(rfi_senders *s)
{
    rfi_release(s->context, s->block);
    s->block = NULL;
}

static void fill_table(const rfi_senders *s)
{
    rfi_id_table_clear(&s->table);
    for (ptrdiff_t i = 0; i < s->count; i++) {
        (void)rfi_id_enter(&s->table, s->who, i);
    }
}

void rfi_senders_reset(rfi_senders *s)
{
    s->count = 0;
    s->rounds = 0;
    if (s->sizes.shared) {
        memset(s->shared, 0, s->sizes.shared);
    }
    fill_table(s);
}

/* Of a memory that can be a part of a larger one. */
static void copy_senders(rfi_senders *to, const rfi_senders *from)
{
    size_t count = (size_t)from->count;
    to->count = from->count;
    to->rounds = from->rounds;
    memcpy(to->shared, from->shared, from->sizes.shared);
    memcpy(to->who, from->who, count * sizeof *to->who);
    memcpy(to->records, from->records, count * from->sizes.record);
    memcpy(to->vectors, from->vectors, count * (size_t)from->sizes.vectors * rfi_senders_vector_size(from));
    memcpy(to->pairs, from->pairs, (size_t)rfi_senders_pairs(from, from->count) * sizeof(float));
    fill_table(to);
}

bool rfi_senders_reserve(rfi_senders *s, ptrdiff_t wanted, ptrdiff_t least)
{
    ptrdiff_t most = s->limit > least ? s->limit : least;
    wanted = wanted < most ? wanted : most;
    if (wanted <= s->capacity) {
        return true;
    }
    ptrdiff_t capacity = s->capacity < most / 2 ? 2 * s->capacity : most;
    rfi_senders larger = *s;
    if (!rfi_senders_create(&larger, capacity > wanted ? capacity : wanted)) {
        return false;
    }
    copy_senders(&larger, s);
    rfi_senders_destroy(s);
    *s = larger;
    return true;
}

/* ---- one aggregation ---- */

ptrdiff_t rfi_senders_find(const rfi_senders *s, int64_t id)
{
    return rfi_id_find(&s->table, s->who, id);
}

/* May `one` be forgotten rather than `other`? Who was away for so long that it would start afresh; then the younger one, so that any number of
 * ids that were heard once make room for each other and not for those whom one knows; then the one not heard for longer. */
static bool goes_before(const rfi_senders *s, const rfi_sender *one, const rfi_sender *other)
{
    int64_t forget = s->sizes.forget > 0 ? s->sizes.forget : INT64_MAX;
    bool one_gone = s->rounds - one->heard > forget;
    bool other_gone = s->rounds - other->heard > forget;
    if (one_gone != other_gone) {
        return one_gone;
    }
    if (one->age != other->age) {
        return one->age < other->age;
    }
    return one->heard != other->heard ? one->heard < other->heard : one->id < other->id;
}

/* A heap of places: who is on top goes last. */
static void sift_down(const rfi_senders *s, ptrdiff_t *heap, ptrdiff_t count, ptrdiff_t at)
{
    for (ptrdiff_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        bool right = child + 1 < count && goes_before(s, &s->who[heap[child]], &s->who[heap[child + 1]]);
        child += right;
        if (!goes_before(s, &s->who[heap[at]], &s->who[heap[child]])) {
            return;
        }
        ptrdiff_t kept = heap[at];
        heap[at] = heap[child];
        heap[child] = kept;
        at = child;
    }
}

/* The `count` senders, of those not heard in this round, whose memory is worth least, and that one first. In one pass, however many ids are new: a flood
 * of them must not take longer than the senders that are known. */
static void find_leavers(const rfi_senders *s, ptrdiff_t count, ptrdiff_t *leavers)
{
    ptrdiff_t found = 0;
    for (ptrdiff_t i = 0; count > 0 && i < s->count; i++) {
        if (s->who[i].heard == s->rounds) {
            continue;
        }
        if (found < count) {
            leavers[found++] = i;
            for (ptrdiff_t at = found / 2 - 1; found == count && at >= 0; at--) {
                sift_down(s, leavers, count, at);
            }
        } else if (goes_before(s, &s->who[i], &s->who[leavers[0]])) {
            leavers[0] = i;
            sift_down(s, leavers, count, 0);
        }
    }
    assert(found == count); /* there are at least as many places as rows */
    for (ptrdiff_t end = found - 1; end > 0; end--) {
        ptrdiff_t last = leavers[0];
        leavers[0] = leavers[end];
        leavers[end] = last;
        sift_down(s, leavers, end, 0);
    }
}

/* Places for senders that have none: free ones, then those of others. */
static void make_room(rfi_senders *s, const reef_recall *recall, ptrdiff_t newcomers, ptrdiff_t *place,
                      ptrdiff_t *spare)
{
    ptrdiff_t room = s->capacity - s->count;
    ptrdiff_t leave = newcomers > room ? newcomers - room : 0;
    ptrdiff_t next = 0;
    find_leavers(s, leave, spare);
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        if (place[l] >= 0) {
            continue;
        }
        bool is_free = s->count < s->capacity;
        place[l] = is_free ? s->count++ : spare[next++];
        s->who[place[l]].id = recall->ids[l];
        if (leave == 0) {
            (void)rfi_id_enter(&s->table, s->who, place[l]);
        }
    }
    if (leave > 0) {
        fill_table(s);
    }
}

float *rfi_senders_pair(const rfi_senders *s, ptrdiff_t one, ptrdiff_t other)
{
    const reef_memory_sizes *z = &s->sizes;
    ptrdiff_t high = one > other ? one : other;
    ptrdiff_t low = one > other ? other : one;
    if (z->pair_numbers <= 0 || high >= z->pair_places || high / z->pair_block != low / z->pair_block) {
        return NULL;
    }
    ptrdiff_t pairs = high / z->pair_block * triangle(z->pair_block) + triangle(high % z->pair_block);
    return s->pairs + (pairs + low % z->pair_block) * z->pair_numbers;
}

static void clear_pairs(const rfi_senders *s, ptrdiff_t place)
{
    size_t pair = (size_t)(s->sizes.pair_numbers > 0 ? s->sizes.pair_numbers : 0) * sizeof(float);
    ptrdiff_t first = pair ? place / s->sizes.pair_block * s->sizes.pair_block : 0;
    for (ptrdiff_t i = first; pair && i < s->count && i - first < s->sizes.pair_block; i++) {
        float *numbers = rfi_senders_pair(s, place, i);
        if (numbers) {
            memset(numbers, 0, pair);
        }
    }
}

/* Another sender has the place now, or the same one starts afresh. */
static void clear_place(const rfi_senders *s, ptrdiff_t place)
{
    memset(rfi_senders_vector(s, place, 0), 0, (size_t)s->sizes.vectors * rfi_senders_vector_size(s));
    clear_pairs(s, place);
}

static void swap_bytes(unsigned char *one, unsigned char *other, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned char kept = one[i];
        one[i] = other[i];
        other[i] = kept;
    }
}

void rfi_senders_swap(const rfi_senders *s, ptrdiff_t one, ptrdiff_t other)
{
    size_t record = s->sizes.record;
    int32_t *slot = slot_of(&s->table, s->who, s->who[one].id);
    int32_t *other_slot = slot_of(&s->table, s->who, s->who[other].id);
    *slot = (int32_t)other;
    *other_slot = (int32_t)one;
    rfi_sender kept = s->who[one];
    s->who[one] = s->who[other];
    s->who[other] = kept;
    swap_bytes(s->records + (size_t)one * record, s->records + (size_t)other * record, record);
    swap_bytes(rfi_senders_vector(s, one, 0), rfi_senders_vector(s, other, 0),
               (size_t)s->sizes.vectors * rfi_senders_vector_size(s));
    clear_pairs(s, one);
    clear_pairs(s, other);
}

void rfi_senders_commit(rfi_senders *s, const reef_recall *recall, ptrdiff_t *place, ptrdiff_t *spare)
{
    ptrdiff_t newcomers = 0;
    s->rounds = recall->rounds;
    memcpy(s->shared, recall->shared, s->sizes.shared);
    for (ptrdiff_t l = 0; l < recall->n; l++) { /* those who are here are not the ones to make room */
        place[l] = rfi_senders_find(s, recall->ids[l]);
        if (place[l] >= 0) {
            s->who[place[l]].heard = recall->rounds;
        } else {
            newcomers++;
        }
    }
    make_room(s, recall, newcomers, place, spare);
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        s->who[place[l]] = (rfi_sender){recall->ids[l], recall->age[l], recall->rounds};
        memcpy(s->records + (size_t)place[l] * s->sizes.record,
               (const unsigned char *)recall->records + (size_t)l * s->sizes.record, s->sizes.record);
    }
    for (ptrdiff_t l = 0; l < recall->n; l++) {
        if (recall->heard[l] == 0) {
            clear_place(s, place[l]);
        }
    }
}

/* ---- what the rule reads and writes ---- */

static const rfi_senders *memory_of(const reef_recall *recall, ptrdiff_t row)
{
    assert(recall);
    bool known = recall->memory && row >= 0 && row < recall->n && recall->place[row] >= 0;
    return known ? recall->memory : NULL;
}

void reef_recall_read(const reef_recall *recall, ptrdiff_t row, ptrdiff_t vector, double *numbers)
{
    const rfi_senders *s = memory_of(recall, row);
    if (!s) {
        memset(numbers, 0, (size_t)recall->numbers * sizeof *numbers);
        return;
    }
    const void *from = rfi_senders_vector(s, recall->place[row], vector);
    if (!s->single) {
        memcpy(numbers, from, rfi_senders_vector_size(s));
        return;
    }
    const float *narrow = from;
    for (ptrdiff_t i = 0; i < recall->numbers; i++) {
        numbers[i] = (double)narrow[i];
    }
}

void reef_recall_write(const reef_recall *recall, ptrdiff_t row, ptrdiff_t vector, const double *numbers)
{
    const rfi_senders *s = memory_of(recall, row);
    void *to = s ? rfi_senders_vector(s, recall->place[row], vector) : NULL;
    float *narrow = to;
    if (s && !s->single) {
        memcpy(to, numbers, rfi_senders_vector_size(s));
    }
    for (ptrdiff_t i = 0; s && s->single && i < recall->numbers; i++) {
        narrow[i] = (float)numbers[i];
    }
}

void reef_recall_average(const reef_recall *recall, ptrdiff_t row, ptrdiff_t vector, double rate, double factor)
{
    const rfi_senders *s = memory_of(recall, row);
    const double *d = recall->residual + row * recall->numbers;
    void *at = s ? rfi_senders_vector(s, recall->place[row], vector) : NULL;
    float *narrow = at;
    double *wide = at;
    for (ptrdiff_t i = 0; s && i < recall->numbers; i++) {
        double old = s->single ? (double)narrow[i] : wide[i];
        double now = old + rate * (factor * d[i] - old);
        if (s->single) {
            narrow[i] = (float)now;
        } else {
            wide[i] = now;
        }
    }
}

float *reef_recall_pair(const reef_recall *recall, ptrdiff_t row, ptrdiff_t other)
{
    const rfi_senders *s = memory_of(recall, row);
    return s && memory_of(recall, other) ? rfi_senders_pair(s, recall->place[row], recall->place[other]) : NULL;
}
