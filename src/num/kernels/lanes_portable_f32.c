/* The code for sixteen lanes in plain C. */
#include "num/kernels/lanes.h"

const rfi_lanes rfi_lanes_portable = {"portable", normals, residual, scale};
