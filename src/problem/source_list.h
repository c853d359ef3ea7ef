/* The data sources, in the order in which they are listed. To add one, add a line: RFI_SOURCE(name) stands for the
 * const rfi_source rfi_source_name of src/problem/source_name.c. */
RFI_SOURCE(digits)
RFI_SOURCE(npy)
RFI_SOURCE(csv)
RFI_SOURCE(libsvm)
RFI_SOURCE(idx)
RFI_SOURCE(gaussian)
