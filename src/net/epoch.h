/* Epochs: a run file may be followed by another one of the same coordinator. Agents may be added at the end or removed, and graph, weights, F,
 * deadline, observers, brokers and leaves may change. Everything else stays, so that what was signed and learned before keeps its meaning. */
#ifndef RFI_NET_EPOCH_H
#define RFI_NET_EPOCH_H

#include "net/runfile.h"

/* Rounds between what is current and the first round of a new epoch, so that everybody has the file in time. */
enum { RFI_EPOCH_NOTICE = 10 };

/* Whether `next` may follow `file`: the epoch after it. Otherwise a sentence. */
reef_status rfi_epoch_follows(const rfi_runfile *file, const rfi_runfile *next, reef_error *error);

#endif
