/* A shared library without anything that a plug-in has. */
#include <reef/status.h>

REEF_API int reef_something_else(void);
int reef_something_else(void)
{
    return 1;
}
