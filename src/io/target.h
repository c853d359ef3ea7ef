/* Where an output goes: to the file at the end of symbolic links, which stay, and with the permissions that file has. */
#ifndef RFI_IO_TARGET_H
#define RFI_IO_TARGET_H

#include <reef/status.h>
#include <stdbool.h>
#include <sys/types.h>

enum { RFI_PATH_MAX = 4096 };

typedef struct rfi_target {
    char path[RFI_PATH_MAX]; /* no symbolic link itself */
    bool exists;             /* then it has the following */
    mode_t type, mode;       /* S_IFREG, ...; permissions */
    uid_t owner;
    gid_t group;
} rfi_target;

/* REEF_E_FILE if links lead in a circle, or may not be followed. A target that is not there yet is none. */
reef_status rfi_target_find(const char *path, rfi_target *target, reef_error *error);

/* Gives a new file the owner and permissions of the target, if that exists. What cannot be given is left; a group that would be another
 * than before gets the rights of the others. */
void rfi_target_dress(const rfi_target *target, int descriptor);
/* Makes a folder beside the target, its path with a number after it, with the mode and owner of the target if that is there. False with errno set. */
bool rfi_target_make_folder(const rfi_target *target, char *name, size_t room);

#endif
