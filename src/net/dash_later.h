/* Run files of later epochs, as an observer gets them: the file that it was started with is replaced, or agents and brokers hand the next one
 * out through the network. Where a file comes from does not matter. It counts if the coordinator of the file in force has signed it and it may
 * follow that file, directly or after files in between that the observer has missed. */
#ifndef RFI_NET_DASH_LATER_H
#define RFI_NET_DASH_LATER_H

#include "net/runfile.h"

#include <sys/stat.h>

enum { RFI_LATER_FILES = 4 };

typedef struct rfi_later {
    rfi_runfile files[RFI_LATER_FILES]; /* by ascending epoch */
    int count;
    struct stat seen; /* the file on the disk, when it was last looked at */
    double looked_at;
} rfi_later;

/* Takes a file from the network. False: it is known, or of no use, and why has a sentence. */
bool rfi_later_take(rfi_later *later, const rfi_runfile *file, const void *bytes, size_t size, reef_error *why);
/* Looks at the disk, at most once a second. False: nothing new, and why is empty; or why has a sentence. */
bool rfi_later_look(rfi_later *later, const rfi_runfile *file, const char *path, double now, reef_error *why);
/* The file of an epoch, or NULL. */
const rfi_runfile *rfi_later_find(const rfi_later *later, int64_t epoch);
/* Moves the file of that epoch, which is there, to *file; those before it are freed. */
void rfi_later_turn(rfi_later *later, int64_t epoch, rfi_runfile *file);
void rfi_later_free(rfi_later *later);

#endif
