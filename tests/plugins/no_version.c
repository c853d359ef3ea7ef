/* A function with the right name in a library that does not say for which version it was built. It must not be called. */
#include <reef/plugin.h>
#include <stdlib.h>

REEF_API reef_status reef_plugin(const reef_registry *registry, reef_error *error);
reef_status reef_plugin(const reef_registry *registry, reef_error *error)
{
    (void)registry;
    (void)error;
    abort();
}
