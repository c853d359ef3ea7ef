/* The engine over MPI, the only file that uses it. Part of libreef_mpi; needs nothing from libreef but its types.
 *
 * Pieces are sent from where they are and received where they belong: a parcel is a derived datatype of absolute addresses, so there are
 * no counts beyond 2^31 and no copies of ours. The types of an exchange are kept for the next one with the same pieces.
 *
 * If a machine has more ranks than processors, a waiting rank yields its processor between two polls. Not every MPI does that on its
 * own, and then three ranks on two processors are slower by a factor of hundreds. */
#include <assert.h>
#include <reef/mpi.h>

#include "engine/metis.h"

#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes of the blocks that large pieces are made of, and words per reduction. */
enum { BLOCK = 1 << 30, WORDS = 1 << 24 };

typedef struct mpi_state {
    MPI_Comm comm;
    bool started; /* MPI was initialised here */
    bool crowded; /* more ranks than processors on this machine */
} mpi_state;

/* One side of an exchange: a datatype per peer, and what they were made of. */
typedef struct side {
    MPI_Datatype *types;
    int *counts; /* 0 or 1 */
    void ***pieces;
    ptrdiff_t *numbers;
    size_t *bytes;
} side;

typedef struct exchange {
    MPI_Comm comm; /* a graph of ranks; MPI_COMM_NULL: nobody to talk to anywhere */
    MPI_Aint *zeros;
    ptrdiff_t peers;
    side send, receive;
    MPI_Request request;
} exchange;

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static reef_status
fail(reef_error *error, reef_status status, const char *format, ...)
{
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        error->status = status;
        (void)vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return status;
}

static MPI_Comm comm_of(const reef_engine *engine)
{
    return ((const mpi_state *)engine->state)->comm;
}

/* REEF_OK, or MPI's own words. */
static reef_status check(int code, const char *what, reef_error *error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS) {
        return REEF_OK;
    }
    (void)MPI_Error_string(code, text, &length);
    return fail(error, REEF_E_ENGINE, "%s: %.200s", what, text);
}

/* ---- waiting ---- */

static bool is_crowded(const reef_engine *engine)
{
    return ((const mpi_state *)engine->state)->crowded;
}

/* The end of what `code` says has begun. */
static int finish(const reef_engine *engine, int code, MPI_Request *request)
{
    int done = 0;
    if (code == MPI_SUCCESS && !is_crowded(engine)) {
        // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): the caller has started it
        return MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    while (code == MPI_SUCCESS && !done) {
        code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (!done) {
            (void)sched_yield();
        }
    }
    return code;
}

/* from NULL: in place. */
static int reduce(const reef_engine *engine, const void *from, void *to, int count, MPI_Datatype type, MPI_Op op)
{
    MPI_Request request = MPI_REQUEST_NULL;
    from = from ? from : MPI_IN_PLACE;
    if (!is_crowded(engine)) {
        return MPI_Allreduce(from, to, count, type, op, comm_of(engine));
    }
    // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): finish waits
    return finish(engine, MPI_Iallreduce(from, to, count, type, op, comm_of(engine), &request), &request);
}

static int broadcast(const reef_engine *engine, void *data, int count, MPI_Datatype type, int root)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (!is_crowded(engine)) {
        return MPI_Bcast(data, count, type, root, comm_of(engine));
    }
    // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): finish waits
    return finish(engine, MPI_Ibcast(data, count, type, root, comm_of(engine), &request), &request);
}

/* ---- datatypes ---- */

static bool is_empty(const reef_parcel *parcel)
{
    return parcel->count == 0 || parcel->bytes == 0;
}

/* So many bytes, however many. */
static int bytes_type(size_t bytes, MPI_Datatype *type)
{
    assert(bytes > 0);
    if (bytes <= INT_MAX) {
        return MPI_Type_contiguous((int)bytes, MPI_BYTE, type);
    }
    MPI_Datatype block;
    int code = MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
    if (code != MPI_SUCCESS) {
        return code;
    }
    const int counts[2] = {(int)(bytes / BLOCK), (int)(bytes % BLOCK)};
    const MPI_Aint places[2] = {0, (MPI_Aint)(bytes / BLOCK * BLOCK)};
    const MPI_Datatype parts[2] = {block, MPI_BYTE};
    code = MPI_Type_create_struct(2, counts, places, parts, type);
    (void)MPI_Type_free(&block);
    return code;
}

/* Adjacent pieces are sent as one. */
static ptrdiff_t join(const reef_parcel *parcel, MPI_Aint *places)
{
    ptrdiff_t runs = 0;
    for (ptrdiff_t i = 0; i < parcel->count; i++) {
        MPI_Aint place;
        (void)MPI_Get_address(parcel->pieces[i], &place);
        places[i] = place;
        runs += i == 0 || places[i] != places[i - 1] + (MPI_Aint)parcel->bytes;
    }
    return runs;
}

static int parcel_type(const reef_parcel *parcel, MPI_Datatype *type)
{
    MPI_Datatype piece = MPI_DATATYPE_NULL;
    assert(!is_empty(parcel));
    MPI_Aint *places = parcel->count <= INT_MAX ? malloc((size_t)parcel->count * sizeof *places) : NULL;
    int code = places ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (code == MPI_SUCCESS) {
        bool whole = join(parcel, places) == 1;
        size_t bytes = whole ? parcel->bytes * (size_t)parcel->count : parcel->bytes;
        int count = whole ? 1 : (int)parcel->count;
        code = bytes_type(bytes, &piece);
        code = code == MPI_SUCCESS ? MPI_Type_create_hindexed_block(count, 1, places, piece, type) : code;
        code = code == MPI_SUCCESS ? MPI_Type_commit(type) : code;
    }
    if (piece != MPI_DATATYPE_NULL) {
        (void)MPI_Type_free(&piece);
    }
    free(places);
    return code;
}

/* ---- sides ---- */

static void forget(side *s, ptrdiff_t i)
{
    if (s->counts[i]) {
        (void)MPI_Type_free(&s->types[i]);
    }
    free((void *)s->pieces[i]);
    s->pieces[i] = NULL;
    s->types[i] = MPI_BYTE;
    s->counts[i] = 0;
    s->numbers[i] = 0;
    s->bytes[i] = 0;
}

static bool open_side(side *s, ptrdiff_t peers)
{
    size_t count = peers > 0 ? (size_t)peers : 1;
    s->types = malloc(count * sizeof(MPI_Datatype));
    s->counts = calloc(count, sizeof *s->counts);
    s->pieces = calloc(count, sizeof *s->pieces);
    s->numbers = calloc(count, sizeof *s->numbers);
    s->bytes = calloc(count, sizeof *s->bytes);
    for (ptrdiff_t i = 0; s->types && i < peers; i++) {
        s->types[i] = MPI_BYTE;
    }
    return s->types && s->counts && s->pieces && s->numbers && s->bytes;
}

static void close_side(side *s, ptrdiff_t peers)
{
    for (ptrdiff_t i = 0; s->types && s->counts && s->pieces && s->numbers && s->bytes && i < peers; i++) {
        forget(s, i);
    }
    free((void *)s->types);
    free(s->counts);
    free((void *)s->pieces);
    free(s->numbers);
    free(s->bytes);
}

static int keep(side *s, ptrdiff_t i, const reef_parcel *parcel)
{
    forget(s, i);
    size_t bytes = (size_t)parcel->count * sizeof *s->pieces[i];
    s->pieces[i] = malloc(bytes);
    if (!s->pieces[i]) {
        return MPI_ERR_NO_MEM;
    }
    int code = parcel_type(parcel, &s->types[i]);
    if (code == MPI_SUCCESS) {
        memcpy((void *)s->pieces[i], (const void *)parcel->pieces, bytes);
        s->counts[i] = 1;
        s->numbers[i] = parcel->count;
        s->bytes[i] = parcel->bytes;
    } else {
        s->types[i] = MPI_BYTE;
    }
    return code;
}

/* Types for these parcels, new ones only where they differ from the last ones. */
static int load_side(side *s, ptrdiff_t peers, const reef_parcel *parcels)
{
    int code = MPI_SUCCESS;
    for (ptrdiff_t i = 0; i < peers && code == MPI_SUCCESS; i++) {
        const reef_parcel *p = &parcels[i];
        bool same =
            s->counts[i] && p->count == s->numbers[i] && p->bytes == s->bytes[i] &&
            memcmp((const void *)s->pieces[i], (const void *)p->pieces, (size_t)p->count * sizeof *p->pieces) == 0;
        if (is_empty(p)) {
            forget(s, i);
        } else if (!same) {
            code = keep(s, i, p);
        }
    }
    return code;
}

/* ---- exchange ---- */

static void disconnect(const reef_engine *engine, void *pattern)
{
    exchange *x = pattern;
    (void)engine;
    if (!x) {
        return;
    }
    close_side(&x->send, x->peers);
    close_side(&x->receive, x->peers);
    if (x->comm != MPI_COMM_NULL) {
        (void)MPI_Comm_free(&x->comm);
    }
    free(x->zeros);
    free(x);
}

static reef_status connect_peers(const reef_engine *engine, const int32_t *peers, ptrdiff_t count, void **pattern,
                                 reef_error *error)
{
    exchange *x = calloc(1, sizeof *x);
    size_t room = count > 0 ? (size_t)count : 1;
    int *ranks = malloc(room * sizeof *ranks);
    int *weights = malloc(room * sizeof *weights);
    bool ready = x && ranks && weights;
    *pattern = NULL;
    if (x) {
        x->comm = MPI_COMM_NULL;
        x->peers = count;
        x->request = MPI_REQUEST_NULL;
        x->zeros = calloc(room, sizeof *x->zeros);
        bool sending = open_side(&x->send, count);
        ready = open_side(&x->receive, count) && sending && x->zeros && ready;
    }
    reef_status status = ready ? REEF_OK : fail(error, REEF_E_NOMEM, "not enough memory for %td neighbours", count);
    status = engine->ops->agree(engine, status, error);
    if (status == REEF_OK && ready) {
        for (ptrdiff_t i = 0; i < count; i++) {
            ranks[i] = peers[i];
            weights[i] = 1;
        }
        int code = MPI_Dist_graph_create_adjacent(comm_of(engine), (int)count, ranks, weights, (int)count, ranks,
                                                  weights, MPI_INFO_NULL, 0, &x->comm);
        status = check(code, "MPI_Dist_graph_create_adjacent", error);
    }
    free(weights);
    free(ranks);
    if (status != REEF_OK) {
        disconnect(engine, x);
        return status;
    }
    *pattern = x;
    return REEF_OK;
}

static reef_status begin(const reef_engine *engine, void *pattern, const reef_parcel *send, const reef_parcel *receive,
                         reef_error *error)
{
    exchange *x = pattern;
    (void)engine;
    assert(x->comm != MPI_COMM_NULL && x->request == MPI_REQUEST_NULL); /* the last one has ended */
    int code = load_side(&x->send, x->peers, send);
    code = code == MPI_SUCCESS ? load_side(&x->receive, x->peers, receive) : code;
    if (code == MPI_SUCCESS) {
        code = MPI_Ineighbor_alltoallw(MPI_BOTTOM, x->send.counts, x->zeros, x->send.types, MPI_BOTTOM,
                                       x->receive.counts, x->zeros, x->receive.types, x->comm, &x->request);
    }
    return check(code, "MPI_Ineighbor_alltoallw", error);
}

static void poke(const reef_engine *engine, void *pattern)
{
    exchange *x = pattern;
    int done = 0;
    (void)engine;
    (void)MPI_Test(&x->request, &done, MPI_STATUS_IGNORE);
}

static reef_status end(const reef_engine *engine, void *pattern, reef_error *error)
{
    exchange *x = pattern;
    return check(finish(engine, MPI_SUCCESS, &x->request), "MPI_Wait", error);
}

static reef_status all_to_all(const reef_engine *engine, const reef_parcel *send, const reef_parcel *receive,
                              reef_error *error)
{
    ptrdiff_t size = engine->size;
    side from = {0};
    side to = {0};
    int *zeros = calloc((size_t)size, sizeof *zeros);
    bool opened = open_side(&from, size);
    bool ready = open_side(&to, size) && opened && zeros;
    int code = ready ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    code = code == MPI_SUCCESS ? load_side(&from, size, send) : code;
    code = code == MPI_SUCCESS ? load_side(&to, size, receive) : code;
    if (code == MPI_SUCCESS) {
        MPI_Request request = MPI_REQUEST_NULL;
        code = MPI_Ialltoallw(MPI_BOTTOM, from.counts, zeros, from.types, MPI_BOTTOM, to.counts, zeros, to.types,
                              comm_of(engine), &request);
        code = finish(engine, code, &request);
    }
    close_side(&from, size);
    close_side(&to, size);
    free(zeros);
    return check(code, "MPI_Ialltoallw", error);
}

/* ---- agreement ---- */

static reef_status merge(const reef_engine *engine, void *bytes, size_t count, reef_error *error)
{
    unsigned char *at = bytes;
    int code = MPI_SUCCESS;
    while (count > 0 && code == MPI_SUCCESS) {
        bool words = count >= sizeof(uint64_t) && (uintptr_t)at % sizeof(uint64_t) == 0;
        size_t unit = words ? sizeof(uint64_t) : 1;
        size_t rest = count / unit;
        int now = rest < WORDS ? (int)rest : WORDS;
        code = reduce(engine, NULL, at, now, words ? MPI_UINT64_T : MPI_BYTE, MPI_BOR);
        at += (size_t)now * unit;
        count -= (size_t)now * unit;
    }
    return check(code, "MPI_Allreduce", error);
}

static reef_status agree(const reef_engine *engine, reef_status mine, reef_error *error)
{
    int told[2] = {mine == REEF_OK ? engine->size : engine->rank, -(mine != REEF_OK)};
    int heard[2] = {0, 0}; /* the first that failed, and minus one if any has */
    int all = 0;
    reef_error first = {mine, ""};
    int code = reduce(engine, told, heard, 1, MPI_INT, MPI_MIN);
    if (code != MPI_SUCCESS || heard[0] == engine->size) {
        return code == MPI_SUCCESS ? REEF_OK : check(code, "MPI_Allreduce", error);
    }
    assert(heard[0] >= 0 && heard[0] < engine->size);
    code = reduce(engine, &told[1], &all, 1, MPI_INT, MPI_SUM);
    if (mine != REEF_OK && error) {
        first = *error;
        first.status = mine;
    }
    code = code == MPI_SUCCESS ? broadcast(engine, &first, (int)sizeof first, MPI_BYTE, heard[0]) : code;
    if (code != MPI_SUCCESS) {
        return check(code, "MPI_Bcast", error);
    }
    first.text[sizeof first.text - 1] = '\0';
    if (-all == engine->size) { /* all alike: nobody is to blame */
        return fail(error, first.status, "%s", first.text);
    }
    return fail(error, first.status, "rank %d: %s", heard[0], first.text);
}

static reef_status barrier(const reef_engine *engine, reef_error *error)
{
    MPI_Request request = MPI_REQUEST_NULL;
    return check(finish(engine, MPI_Ibarrier(comm_of(engine), &request), &request), "MPI_Ibarrier", error);
}

static void end_all(const reef_engine *engine, int code)
{
    (void)MPI_Abort(comm_of(engine), code);
}

/* One rank asks METIS, so that all have the same answer. */
static reef_status partition(const reef_engine *engine, ptrdiff_t agents, const ptrdiff_t *start,
                             const int32_t *senders, int32_t *owner, reef_error *error)
{
    int cut = 0;
    assert(agents >= 1 && agents <= INT32_MAX);
    if (engine->rank == 0) {
        cut = rfi_metis_partition(agents, start, senders, engine->size, owner);
    }
    int code = broadcast(engine, &cut, 1, MPI_INT, 0);
    if (code == MPI_SUCCESS && cut) { /* agents are numbered in 32 bits */
        code = broadcast(engine, owner, (int)agents, MPI_INT32_T, 0);
    }
    for (ptrdiff_t k = 0; !cut && k < agents; k++) {
        owner[k] = (int32_t)((int64_t)k * engine->size / agents);
    }
    return check(code, "MPI_Bcast", error);
}

static const reef_engine_ops ops = {
    .name = "mpi",
    .connect = connect_peers,
    .disconnect = disconnect,
    .begin = begin,
    .poke = poke,
    .end = end,
    .all_to_all = all_to_all,
    .merge = merge,
    .agree = agree,
    .barrier = barrier,
    .abort = end_all,
    .partition = partition,
};

/* ---- create ---- */

static int look_around(reef_engine *e, MPI_Comm comm)
{
    int number = 0;
    MPI_Comm machine = MPI_COMM_NULL;
    int code = MPI_Comm_rank(comm, &number);
    e->rank = number;
    code = code == MPI_SUCCESS ? MPI_Comm_size(comm, &number) : code;
    e->size = number;
    code = code == MPI_SUCCESS ? MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine) : code;
    code = code == MPI_SUCCESS ? MPI_Comm_size(machine, &number) : code;
    e->sharing = number;
    if (machine != MPI_COMM_NULL) {
        (void)MPI_Comm_free(&machine);
    }
    return code;
}

reef_status reef_mpi_engine_create(reef_engine **engine, const void *communicator, reef_error *error)
{
    MPI_Comm from;
    int ready = 0;
    (void)MPI_Initialized(&ready);
    if (!engine || !communicator || !ready) {
        return fail(error, ready ? REEF_E_ARG : REEF_E_ORDER, "reef_mpi_engine_create: %s",
                    ready ? "an argument is NULL" : "MPI is not initialised");
    }
    *engine = NULL;
    memcpy(&from, communicator, sizeof(MPI_Comm));
    reef_engine *e = calloc(1, sizeof *e);
    mpi_state *state = calloc(1, sizeof *state);
    if (!e || !state) {
        free(e);
        free(state);
        return fail(error, REEF_E_NOMEM, "not enough memory for an engine");
    }
    e->ops = &ops;
    e->state = state;
    int code = MPI_Comm_dup(from, &state->comm);
    code = code == MPI_SUCCESS ? MPI_Comm_set_errhandler(state->comm, MPI_ERRORS_RETURN) : code;
    code = code == MPI_SUCCESS ? look_around(e, state->comm) : code;
    state->crowded = e->sharing > sysconf(_SC_NPROCESSORS_ONLN);
    if (code != MPI_SUCCESS) {
        free(e);
        free(state);
        return check(code, "MPI_Comm_dup", error);
    }
    assert(e->rank >= 0 && e->rank < e->size && e->sharing >= 1 && e->sharing <= e->size);
    *engine = e;
    return REEF_OK;
}

void reef_mpi_engine_destroy(reef_engine **engine)
{
    if (!engine || !*engine) {
        return;
    }
    mpi_state *state = (*engine)->state;
    (void)MPI_Comm_free(&state->comm);
    free(state);
    free(*engine);
    *engine = NULL;
}

reef_status reef_mpi_start(reef_engine **engine, reef_error *error)
{
    int before = 0;
    int level = 0;
    MPI_Comm world = MPI_COMM_WORLD;
    (void)MPI_Initialized(&before);
    if (!before) {
        reef_status status = check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread", error);
        if (status != REEF_OK) {
            return status;
        }
    }
    reef_status status = reef_mpi_engine_create(engine, &world, error);
    if (status == REEF_OK && engine && *engine) {
        ((mpi_state *)(*engine)->state)->started = !before;
    }
    return status;
}

void reef_mpi_stop(reef_engine **engine)
{
    if (engine && *engine) {
        bool started = ((mpi_state *)(*engine)->state)->started;
        reef_mpi_engine_destroy(engine);
        if (started) {
            (void)MPI_Finalize();
        }
    }
}

const char *reef_mpi_describe(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING + 32];
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    (void)MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    (void)snprintf(text, sizeof text, "%s, %s METIS", version, rfi_metis_there() ? "with" : "without");
    return text;
}
