/* Spreading agents over ranks by METIS (in libreef_mpi). */
#ifndef RFI_ENGINE_METIS_H
#define RFI_ENGINE_METIS_H

#include <reef/engine.h>
#include <stdbool.h>

/* Whether there is a METIS. */
bool rfi_metis_there(void);
/* owner[k] = part of agent k, so that few links go from part to part. False: no METIS, no memory, or a graph it cannot or need not
 * take; owner is then unspecified. */
bool rfi_metis_partition(ptrdiff_t agents, const ptrdiff_t *start, const int32_t *senders, int32_t parts,
                         int32_t *owner);

#endif
