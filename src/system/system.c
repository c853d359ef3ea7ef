/* What the library is made of, gathered from the modules that know. */
#include <reef/system.h>

#include "base/pool.h"
#include "io/yaml.h"
#include "num/blas.h"
#include "num/kernels/kernels.h"

reef_system reef_system_facts(void)
{
    const rfi_kernels *kernels = rfi_kernels_find(true);
    return (reef_system){.instructions = kernels ? kernels->name : "scalar",
                         .blas = rfi_blas_name(),
                         .yaml = rfi_yaml_available(),
                         .threads = rfi_processor_count()};
}
