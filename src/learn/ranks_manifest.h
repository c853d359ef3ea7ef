/* The manifest of a checkpoint over ranks: what ranks_save.c writes and ranks_load.c reads. */
#ifndef RFI_LEARN_RANKS_MANIFEST_H
#define RFI_LEARN_RANKS_MANIFEST_H

#include "learn/run.h"

enum { RFI_PART_PATH = 4096, RFI_COUNTERS = 8 };

/* What it says of a file. */
typedef struct rfi_entry {
    uint64_t bytes, sum;
} rfi_entry;

typedef struct rfi_manifest {
    uint64_t mark;
    int64_t round, ranks;
    int64_t counts[RFI_COUNTERS];
    rfi_entry *entries; /* ranks of them */
} rfi_manifest;

/* Where the manifest of the checkpoint before the newest is; false: the path is too long. */
bool rfi_manifest_before(const char *path, char before[RFI_PART_PATH]);
/* The file of a rank; false: the path is too long. */
bool rfi_part_name(const char *path, int64_t round, ptrdiff_t rank, char name[RFI_PART_PATH]);
/* The files of a round, each removed by one of the present ranks. */
void rfi_parts_remove(const char *path, int64_t round, int64_t ranks, const reef_engine *e);
/* All files beside a manifest that were ever written for it, those of jobs that died in the middle too. */
void rfi_parts_forget(const char *path);

reef_status rfi_manifest_write(const reef_run *run, const char *path, uint64_t mark, const reef_run_counts *counts,
                               const rfi_entry *entries, reef_error *error);
/* The round and number of ranks that a manifest names; false: there is none that can be read. */
bool rfi_manifest_round(const reef_run *run, const char *path, int64_t *round, int64_t *ranks);
/* All of it, if it is of a run with this mark; entries are the caller's to release. */
reef_status rfi_manifest_read(const reef_run *run, const char *path, uint64_t mark, rfi_manifest *m, reef_error *error);

#endif
