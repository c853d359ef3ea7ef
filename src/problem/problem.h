/* The built-in learning problems. */
#ifndef RFI_PROBLEM_PROBLEM_H
#define RFI_PROBLEM_PROBLEM_H

#include <reef/problem.h>

#define RFI_PROBLEM(name) extern const reef_problem_kind rfi_problem_##name;
#include "problem/problem_list.h"
#undef RFI_PROBLEM

#endif
