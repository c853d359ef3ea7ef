/* The code for sixteen lanes in plain C. */
#include "num/kernels/sixteen_lanes_tmpl.h"

const rfi_lanes rfi_lanes_portable = {"portable", normals, residual, scale};
