/* Walking over the coordinates of some segments on the workers of a context.
 *
 * Every segment is cut into parts at multiples of the grain. Workers take parts, or bundles of neighbouring parts if there are many, in any
 * order; a worker visits its part from front to back, in stretches of at most `step`. The first failure ends the walk. */
#ifndef RFI_BASE_WALK_H
#define RFI_BASE_WALK_H

#include <reef/context.h>
#include <stdbool.h>

/* Coordinates m0 .. m1 - 1 of a segment, and which worker has them. */
typedef struct rfi_stretch {
    ptrdiff_t worker, segment, m0, m1;
} rfi_stretch;

typedef struct rfi_walk {
    reef_context *context;
    ptrdiff_t workers; /* at most */
    ptrdiff_t segments;
    const ptrdiff_t *lengths; /* segments */
    const ptrdiff_t *parts;   /* segments + 1, from rfi_walk_parts */
    ptrdiff_t grain;
    ptrdiff_t step;     /* 0: a part at once */
    ptrdiff_t from, to; /* of a single segment only these coordinates are visited; otherwise 0 and PTRDIFF_MAX */

    void *user;
    /* Called before the stretches of a part, with the whole of it; NULL: need not. */
    void (*enter)(void *user, const rfi_stretch *part);
    reef_status (*visit)(void *user, const rfi_stretch *at, reef_error *error);
    /* True once visiting more serves nothing; NULL: never. */
    bool (*over)(void *user);
    reef_status tolerated; /* a failure that does not end the walk but is reported at its end; REEF_OK: none */
} rfi_walk;

/* Numbers the parts: those of segment s are parts[s] to parts[s + 1] - 1. */
void rfi_walk_parts(const ptrdiff_t *lengths, ptrdiff_t segments, ptrdiff_t grain, ptrdiff_t *parts);

/* Visits everything, and returns the status of the first visit that has failed. */
reef_status rfi_walk_run(const rfi_walk *walk, reef_error *error);

#endif
