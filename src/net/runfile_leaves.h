/* Leaves in run files, for runfile.c; what other files need to know about them is in runfile.h. */
#ifndef RFI_NET_RUNFILE_LEAVES_H
#define RFI_NET_RUNFILE_LEAVES_H

#include "net/runfile.h"

/* `leaves:`, a map of names to logins and addresses. */
reef_status rfi_leaves_read(rfi_runfile *file, const rfi_yaml_node *map, reef_error *error);
/* Once all is read: finds the leaves that agents name, and refuses a login that is somebody else's. */
reef_status rfi_leaves_check(const rfi_runfile *file, const char *source, reef_error *error);

#endif
