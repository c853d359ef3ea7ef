/* A plug-in built for another version of the binary interface. Its function must not be called. */
#include <reef/plugin.h>
#include <stdlib.h>

#undef REEF_ABI_VERSION
#define REEF_ABI_VERSION 1

REEF_PLUGIN(registry, error)
{
    (void)registry;
    (void)error;
    abort();
}
