/* Plug-ins: shared libraries that add rules, attacks and problems of your own to the command and to Python, without changing either.
 *
 * A plug-in defines one function with REEF_PLUGIN, which adds its kinds to the registry it is given:
 *
 *     #include <reef/reef.h>
 *     static const reef_rule mine = {...};
 *     REEF_PLUGIN(registry, error)
 *     {
 *         return registry->add(registry->context, REEF_FAMILY_RULE, &mine.kind, error);
 *     }
 *
 * `reef --plugin ./mine.so run ...`, REEF_PLUGINS=/path/mine.so for the command and for Python, reef.load_plugin("./mine.so") in Python,
 * and reef_plugin_load in C load it: see docs/plugins.md. A plug-in is code and runs with all rights of the process: the library never
 * loads one on its own, and an experiment file cannot load one.
 */
#ifndef REEF_PLUGIN_H
#define REEF_PLUGIN_H

#include <reef/registry.h>
#include <reef/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a plug-in is given. It calls the library through this, so that it need not be linked with it. */
typedef struct reef_registry {
    reef_context *context; /* the context to add kinds to */
    /* As reef_kind_register. */
    reef_status (*add)(reef_context *context, reef_family family, const reef_kind *kind, reef_error *error);
} reef_registry;

/* Begins the function of a plug-in, and states the version of the interface for which it was built. The function may be called once for
 * each context of a process, from one thread at a time. If it fails, everything that it added is removed. */
// NOLINTBEGIN(bugprone-macro-parentheses): names of parameters take none
#define REEF_PLUGIN(registry, error)                                                                                   \
    REEF_API extern const int reef_plugin_abi;                                                                         \
    const int reef_plugin_abi = REEF_ABI_VERSION;                                                                      \
    REEF_API reef_status reef_plugin(const reef_registry *registry, reef_error *error);                                \
    reef_status reef_plugin(const reef_registry *registry, reef_error *error)
// NOLINTEND(bugprone-macro-parentheses)

/* Loads a plug-in into a context. It stays in memory until the process ends. A path without a slash is a file in the current folder.
 * Must not be called while others use the context. */
REEF_API REEF_MUST_CHECK reef_status reef_plugin_load(reef_context *context, const char *path, reef_error *error);

#ifdef __cplusplus
}
#endif
#endif
