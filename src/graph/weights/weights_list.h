/* The kinds of weights, in the order in which they are listed. To add one, add a line: RFI_WEIGHTS(name) stands for the
 * const rfi_weight_kind rfi_weights_name of src/graph/weights/name.c. */
RFI_WEIGHTS(uniform)
RFI_WEIGHTS(metropolis)
RFI_WEIGHTS(laplacian)
RFI_WEIGHTS(max_degree)
RFI_WEIGHTS(relative_degree)
RFI_WEIGHTS(relative_variance)
RFI_WEIGHTS(hastings)
RFI_WEIGHTS(file)
