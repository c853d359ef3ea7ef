/* The learning problems, in the order in which they are listed. To add one, add a line: RFI_PROBLEM(name) stands for the
 * const reef_problem_kind rfi_problem_name of src/problem/name.c. */
RFI_PROBLEM(lms)
RFI_PROBLEM(logistic)
RFI_PROBLEM(softmax)
RFI_PROBLEM(mlp)
