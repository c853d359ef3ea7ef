/* Plug-ins of the command: `reef --plugin PATH COMMAND ...` and the paths of REEF_PLUGINS, with colons between them. */
#ifndef REEF_TOOLS_PLUGINS_H
#define REEF_TOOLS_PLUGINS_H

#include <reef/context.h>

/* Reads the environment and takes the options before the command off *argc and *argv, which must live as long as the process. Returns
 * EXIT_DONE, or the code to end with after a message. */
int plugins_take(int *argc, char ***argv);
/* Loads all of them once, so that a bad one is told of before any work. Returns as above. */
int plugins_try(void);
/* A context with everything that the plug-ins bring, those of the environment first. *context is NULL after a failure. */
reef_status plugins_context(reef_context **context, reef_error *error);
/* Path number i, NULL behind the last. */
const char *plugins_at(int index);

#endif
