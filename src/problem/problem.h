/* The built-in learning problems. */
#ifndef RFI_PROBLEM_PROBLEM_H
#define RFI_PROBLEM_PROBLEM_H

#include "base/registry.h"

#include <reef/problem.h>

extern const rfi_family rfi_family_problem;

#define RFI_PROBLEM(name) extern const reef_problem_kind rfi_problem_##name;
#include "problem/problem_list.h"
#undef RFI_PROBLEM

#endif
