/* Where the server is, which version it has, whether it can be started as is wanted, and why it has ended. */
#include "net/broker.h"

#include "base/error.h"
#include "io/file.h"
#include "net/runfile_text.h"

#include <reef/net.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_program(const char *path)
{
    return access(path, X_OK) == 0;
}

static bool on_the_path(const char *name, char *path, size_t size)
{
    const char *folders = getenv("PATH");
    while (folders && *folders) {
        int length = (int)strcspn(folders, ":");
        if (length > 0 && snprintf(path, size, "%.*s/%s", length, folders, name) < (int)size && is_program(path)) {
            return true;
        }
        folders += length + (folders[length] == ':');
    }
    return false;
}

bool rfi_broker_find(char *path, size_t size)
{
    const char *named = getenv("REEF_NATS_SERVER");
    if (named && named[0]) {
        return snprintf(path, size, "%s", named) < (int)size && is_program(path);
    }
    /* Debian's folder is often not on the PATH of users. */
    return on_the_path("nats-server", path, size) ||
           (snprintf(path, size, "/usr/sbin/nats-server") < (int)size && is_program(path));
}

/* The first line that `path -v` prints: "nats-server: v2.9.10". */
static bool ask_version(const char *path, int *major, int *minor)
{
    int ends[2];
    char line[128] = "";
    if (pipe(ends) != 0) {
        return false;
    }
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl(path, path, "-v", (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    ssize_t size = child > 0 ? read(ends[0], line, sizeof line - 1) : -1;
    (void)close(ends[0]);
    if (child > 0) {
        (void)waitpid(child, NULL, 0);
    }
    const char *number = size > 0 ? strstr(line, ": v") : NULL;
    if (!number) {
        return false;
    }
    char *end = NULL;
    *major = (int)strtol(number + 3, &end, 10);
    *minor = *end == '.' ? (int)strtol(end + 1, NULL, 10) : 0;
    return true;
}

reef_status rfi_broker_check(const reef_broker_options *o, reef_error *error)
{
    const char *const addresses[] = {o->listen, o->leaves};
    const char *const files[] = {o->certificate, o->private_key, o->authority};
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        if (addresses[i] && !rfi_has_port(addresses[i])) {
            return rfi_fail(error, REEF_E_ARG,
                            "'%.200s' is no address to listen on: HOST:PORT, with a port from 1 to 65535",
                            addresses[i]);
        }
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !o->print; i++) {
        if (files[i] && access(files[i], R_OK) != 0) {
            return rfi_fail(error, REEF_E_FILE, "%s: %s", rfi_path_show(files[i]), strerror(errno));
        }
    }
    return REEF_OK;
}

static FILE *open_log(const char *store)
{
    enum { LONGEST = 4096 };
    char path[LONGEST];
    return snprintf(path, sizeof path, "%s/server.log", store) < (int)sizeof path ? fopen(path, "re") : NULL;
}

off_t rfi_broker_log_size(const char *store)
{
    FILE *log = open_log(store);
    off_t size = log && fseeko(log, 0, SEEK_END) == 0 ? ftello(log) : 0;
    if (log) {
        (void)fclose(log);
    }
    return size > 0 ? size : 0;
}

reef_status rfi_broker_ended(const char *how, const char *store, off_t from, reef_error *error)
{
    char why[200] = "";
    FILE *log = open_log(store);
    if (log && rfi_broker_log_size(store) >= from) { /* else it has begun anew */
        (void)fseeko(log, from, SEEK_SET);
    }
    for (char line[512]; log && fgets(line, sizeof line, log);) {
        const char *fatal = strstr(line, "[FTL] ");
        const char *error_line = fatal ? fatal : strstr(line, "[ERR] ");
        if (error_line) {
            line[strcspn(line, "\n")] = '\0';
            (void)snprintf(why, sizeof why, ": %.190s", error_line + strlen("[FTL] "));
        }
    }
    if (log) {
        (void)fclose(log);
    }
    return why[0]
               ? rfi_fail(error, REEF_E_ENGINE, "nats-server %s%s; its log is %.200s/server.log", how, why, store)
               : rfi_fail(error, REEF_E_ENGINE,
                          "nats-server %s without an error in its log, %.200s/server.log; what it has printed is above",
                          how, store);
}

bool reef_net_server(char *path, size_t size, int *major, int *minor)
{
    *major = *minor = 0;
    return rfi_broker_find(path, size) && ask_version(path, major, minor);
}
