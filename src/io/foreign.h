/* Files that are not what they were taken for, named by their first bytes. */
#ifndef RFI_IO_FOREIGN_H
#define RFI_IO_FOREIGN_H

#include <stddef.h>

/* As many first bytes as are looked at. */
#define RFI_FOREIGN_LOOK 512

/* What a file is and what to do with it, as the end of a sentence ("is a GGUF file ..."); NULL if its first bytes are none of those that
 * are known. No file of the safetensors, npy or npz format begins like any of them. */
const char *rfi_foreign(const void *bytes, size_t have);

#endif
