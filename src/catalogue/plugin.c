/* Plug-ins: from a file to kinds in a context.
 *
 * What the file says of itself is looked at before any function of ours in it is called; that its constructors have run by then is the
 * nature of shared libraries. */
#include "base/context.h"
#include "base/error.h"
#include "base/text.h"

#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <reef/plugin.h>
#include <string.h>
#include <sys/stat.h>

typedef reef_status plugin_function(const reef_registry *registry, reef_error *error);

/* What dlerror says begins with the path, which the message has already. */
static const char *reason_of(const char *path)
{
    const char *text = dlerror();
    size_t length = strlen(path);
    if (!text) {
        return "unknown reason";
    }
    return strncmp(text, path, length) == 0 && strncmp(text + length, ": ", 2) == 0 ? text + length + 2 : text;
}

static reef_status open_library(const char *path, void **library, reef_error *error)
{
    char place[PATH_MAX];
    struct stat about;
    size_t used = 0;
    /* without a slash the loader would search its own folders */
    rfi_append(place, sizeof place, &used, "%s%s", strchr(path, '/') ? "" : "./", path);
    if (used >= sizeof place) {
        return rfi_fail(error, REEF_E_FILE, "the path of a plug-in has %zu characters; at most %d are possible", used,
                        PATH_MAX - 1);
    }
    if (stat(place, &about) == 0 && !S_ISREG(about.st_mode)) { /* the loader would wait for a pipe */
        return rfi_fail(error, REEF_E_FILE, "%.160s cannot be loaded as a plug-in: it is not a regular file", path);
    }
    *library = dlopen(place, RTLD_NOW | RTLD_LOCAL);
    if (!*library) {
        return rfi_fail(error, REEF_E_FILE,
                        "%.120s cannot be loaded as a plug-in (%.100s); it should be a shared library built as "
                        "docs/plugins.md says",
                        path, reason_of(place));
    }
    return REEF_OK;
}

static reef_status find_function(void *library, const char *path, plugin_function **function, reef_error *error)
{
    const int *abi = dlsym(library, "reef_plugin_abi");
    void *symbol = dlsym(library, "reef_plugin");
    if (!abi || !symbol) {
        return rfi_fail(error, REEF_E_FORMAT,
                        "%.160s is not a Reef plug-in: it does not define %s; begin its function with REEF_PLUGIN, as "
                        "docs/plugins.md says",
                        path, symbol ? "reef_plugin_abi" : "reef_plugin");
    }
    if (*abi != REEF_ABI_VERSION) {
        return rfi_fail(error, REEF_E_FORMAT,
                        "%.120s was built for version %d of Reef's binary interface, but this is version %d (Reef %s); "
                        "rebuild it with the headers of this version",
                        path, *abi, REEF_ABI_VERSION, REEF_VERSION_STRING);
    }
    memcpy((void *)function, &symbol, sizeof symbol); /* POSIX: a function's address fits; ISO C has no cast for it */
    return REEF_OK;
}

static reef_status add_all(reef_context *context, plugin_function *function, const char *path, reef_error *error)
{
    const reef_registry registry = {context, reef_kind_register};
    ptrdiff_t before = context->added_count;
    reef_error why = {REEF_OK, ""};
    reef_status status = function(&registry, &why);
    if (status == REEF_OK) {
        return REEF_OK;
    }
    assert(context->added_count >= before); /* kinds are only ever added */
    context->added_count = before;
    return rfi_fail(error, status, "plug-in %.100s: %.200s", path, why.text[0] ? why.text : reef_status_text(status));
}

reef_status reef_plugin_load(reef_context *context, const char *path, reef_error *error)
{
    void *library = NULL;
    plugin_function *function = NULL;
    if (!context || !path || !path[0]) {
        return rfi_fail(error, REEF_E_ARG, "reef_plugin_load needs a context and the path of a plug-in");
    }
    reef_status status = open_library(path, &library, error);
    if (status != REEF_OK) {
        return status;
    }
    status = find_function(library, path, &function, error);
    if (status == REEF_OK) {
        status = add_all(context, function, path, error);
    }
    if (status != REEF_OK) {
        (void)dlclose(library); /* nothing points into it */
    }
    return status;
}
