/* Run files that a broker receives from agents: one that may follow the file in force is kept until the broker switches to it. */
#ifndef RFI_NET_BROKER_FILES_H
#define RFI_NET_BROKER_FILES_H

#include "io/file.h"
#include "net/handout.h"
#include "net/link_nats.h"

typedef struct rfi_broker_files rfi_broker_files;

/* Listens at the broker's own server, which need not run yet; at a leaf's also to the files that its hub hands out. bytes: the file in force, which was read before. */
reef_status rfi_broker_files_open(rfi_broker_files **files, const rfi_nats_operator *by, bool leaf,
                                  const rfi_file *bytes, reef_error *error);
/* Accepts NULL, sets the pointer to NULL. */
void rfi_broker_files_close(rfi_broker_files **files);
/* Another file is in force. */
reef_status rfi_broker_files_turn(rfi_broker_files *files, const rfi_file *bytes, reef_error *error);
/* The next file, if somebody has handed it out: the caller frees the bytes. */
bool rfi_broker_files_take(rfi_broker_files *files, rfi_file *bytes);
/* Files since the last call that nobody honest hands out, and what was wrong with the last of them. */
uint64_t rfi_broker_files_refused(rfi_broker_files *files, reef_error *why);

#endif
