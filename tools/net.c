/* Loading libreef_net. */
#include "net.h"

#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool refuse(reef_error *error, const char *why)
{
    error->status = REEF_E_FILE;
    (void)snprintf(error->text, sizeof error->text, "agents on a network need libreef_net: %s", why);
    return false;
}

#ifdef REEF_NET_LIBRARY
#include <dlfcn.h>

/* From the build folder or beside the installed command, or where REEF_NET says. Never unloaded: libnats has threads. */
bool net_find(const char *name, void *function, size_t size, reef_error *error)
{
    const char *path = getenv("REEF_NET");
    void *library = dlopen(path && path[0] ? path : REEF_NET_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, name) : NULL;
    if (!symbol) {
        const char *why = dlerror();
        return refuse(error, why ? why : "not a Reef library");
    }
    memcpy(function, &symbol, size); /* POSIX promises that a function's address survives the way through void * */
    return true;
}

#else

bool net_find(const char *name, void *function, size_t size, reef_error *error)
{
    (void)name;
    (void)function;
    (void)size;
    return refuse(error, "this reef was built without libsodium and libnats (Debian: libsodium-dev, libnats-dev)");
}

#endif

int net_exit_code(reef_status status)
{
    switch (status) {
    case REEF_OK:
        return EXIT_DONE;
    case REEF_E_FORMAT:
        return EXIT_MALFORMED;
    case REEF_E_ORDER:
        return EXIT_KEY;
    case REEF_E_FILE:
        return EXIT_DISK;
    case REEF_E_NOMEM:
    case REEF_E_ENGINE:
        return EXIT_FAILED;
    default:
        return EXIT_USAGE;
    }
}

void net_failed(const char *name, reef_log_format format, const reef_error *error)
{
    void (*tell)(reef_log_format, const char *, reef_tell *, void *) = NULL;
    reef_error ignored = {REEF_OK, ""};
    if (format != REEF_LOG_PLAIN && NET_FIND("reef_net_tell_failure", tell, &ignored)) {
        tell(format, error->text, net_log, NULL);
    } else {
        fprintf(stderr, "reef %s: %s\n", name, error->text);
    }
}

static int find_word(const char *text, const char *const *words)
{
    int at = 0;
    while (words[at] && strcmp(words[at], text) != 0) {
        at++;
    }
    return words[at] ? at : -1;
}

bool net_log_format(const char *text, reef_log_format *format)
{
    static const char *const words[] = {"plain", "logfmt", "json", NULL};
    int at = find_word(text, words);
    *format = at < 0 ? *format : (reef_log_format)at;
    return at >= 0;
}

bool net_log_level(const char *text, reef_log_level *level)
{
    static const char *const words[] = {"debug", "info", "warning", "error", NULL};
    int at = find_word(text, words);
    *level = at < 0 ? *level : (reef_log_level)(at + REEF_LOG_DEBUG);
    return at >= 0;
}

void net_print(void *user, const char *line)
{
    (void)user;
    printf("%s\n", line);
}

void net_log(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "%s\n", line);
}
