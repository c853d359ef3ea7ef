/* The partitions, in the order in which they are listed. To add one, add a line: RFI_PARTITION(name) stands for the
 * const rfi_partition_kind rfi_partition_name, in one of the files src/problem/partition_*.c. */
RFI_PARTITION(iid)
RFI_PARTITION(dirichlet)
RFI_PARTITION(gamma_similarity)
RFI_PARTITION(by_class)
RFI_PARTITION(by_quantity)
