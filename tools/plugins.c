/* Plug-ins of the command. Only the person who starts the command names them: never an experiment file, which would make it a program. */
#include "plugins.h"

#include "commands.h"

#include <reef/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLUGINS_MAX = 64 };
static const char *paths[PLUGINS_MAX];
static int path_count;
static char environment[32768]; /* REEF_PLUGINS, cut into paths */

static int add_path(const char *path)
{
    if (path_count == PLUGINS_MAX) {
        fprintf(stderr, "reef: more than %d plug-ins\n", PLUGINS_MAX);
        return EXIT_USAGE;
    }
    paths[path_count++] = path;
    return EXIT_DONE;
}

static int take_environment(void)
{
    const char *list = getenv("REEF_PLUGINS");
    char *rest = NULL;
    if (!list) {
        return EXIT_DONE;
    }
    int length = snprintf(environment, sizeof environment, "%s", list);
    if (length < 0 || (size_t)length >= sizeof environment) {
        fprintf(stderr, "reef: REEF_PLUGINS has more than %zu characters\n", sizeof environment - 1);
        return EXIT_USAGE;
    }
    int code = EXIT_DONE;
    for (char *path = strtok_r(environment, ":", &rest); path && code == EXIT_DONE; path = strtok_r(NULL, ":", &rest)) {
        code = add_path(path);
    }
    return code;
}

/* "--plugin PATH" or "--plugin=PATH" at argv[1]: how many arguments it takes, 0: it is something else. */
static int read_option(int argc, char **argv, const char **path)
{
    static const char name[] = "--plugin";
    size_t length = sizeof name - 1;
    if (argc < 2 || strncmp(argv[1], name, length) != 0 || (argv[1][length] != '\0' && argv[1][length] != '=')) {
        return 0;
    }
    bool attached = argv[1][length] == '=';
    *path = attached ? argv[1] + length + 1 : argc > 2 ? argv[2] : "";
    return attached ? 1 : 2;
}

int plugins_take(int *argc, char ***argv)
{
    const char *path = NULL;
    int taken = 0;
    int code = take_environment();
    while (code == EXIT_DONE && (taken = read_option(*argc, *argv, &path)) > 0) {
        if (!path[0]) {
            fprintf(stderr, "reef: --plugin needs the path of a plug-in; see `reef help`\n");
            return EXIT_USAGE;
        }
        code = add_path(path);
        (*argv)[taken] = (*argv)[0];
        *argv += taken;
        *argc -= taken;
    }
    return code;
}

reef_status plugins_context(reef_context **context, reef_error *error)
{
    reef_status status = reef_context_create(context, NULL, error);
    for (int i = 0; i < path_count && status == REEF_OK; i++) {
        status = reef_plugin_load(*context, paths[i], error);
    }
    if (status != REEF_OK) {
        reef_context_destroy(context);
    }
    return status;
}

int plugins_try(void)
{
    reef_context *context = NULL;
    reef_error error = {REEF_OK, ""};
    if (path_count > 0 && plugins_context(&context, &error) != REEF_OK) {
        fprintf(stderr, "reef: %s\n", error.text);
        return EXIT_MALFORMED;
    }
    reef_context_destroy(&context);
    return EXIT_DONE;
}

const char *plugins_at(int index)
{
    return index >= 0 && index < path_count ? paths[index] : NULL;
}
