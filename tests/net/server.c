#include "net/server.h"

#include "support/check.h"

#include <dirent.h>
#include <nats/nats.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void run_server(const char *config)
{
    const char *named = getenv("REEF_NATS_SERVER");
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)alarm(300);
    if (!freopen("/dev/null", "w", stderr)) {
        _exit(127);
    }
    if (named) {
        (void)execl(named, named, "-c", config, (char *)NULL);
    }
    (void)execlp("nats-server", "nats-server", "-c", config, (char *)NULL);
    (void)execl("/usr/sbin/nats-server", "nats-server", "-c", config,
                (char *)NULL); /* Debian's, often not on the PATH */
    _exit(127);
}

/* The port stands in nats-server_PID.ports, a line of JSON. */
static bool find_url(server *s)
{
    char path[SCRATCH_PATH];
    char name[64];
    char text[512] = {0};
    (void)snprintf(name, sizeof name, "nats-server_%ld.ports", (long)s->pid);
    FILE *file = fopen(scratch_path(&s->folder, name, path), "r");
    if (!file) {
        return false;
    }
    size_t size = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    const char *url = strstr(text, "nats://");
    return size > 0 && url && sscanf(url, "nats://127.0.0.1:%d", &s->port) == 1;
}

void server_start(server *s, const char *more)
{
    char path[SCRATCH_PATH];
    static char config[65536];
    if (!s->folder.folder[0]) {
        scratch_open(&s->folder);
    }
    (void)snprintf(s->store, sizeof s->store, "%s.store", s->folder.folder);
    int length = snprintf(config, sizeof config,
                          "listen: \"127.0.0.1:%d\"\nports_file_dir: \"%s\"\n"
                          "jetstream { store_dir: \"%s\", domain: reef, max_mem: 256MB, max_file: 256MB }\n%s\n",
                          s->port ? s->port : -1, s->folder.folder, s->store, more);
    assert_true(length < (int)sizeof config);
    (void)scratch_file(&s->folder, "server.conf", config, strlen(config), path);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (s->pid == 0) {
        run_server(path);
    }
    for (int i = 0; i < 1000; i++) {
        if (find_url(s)) {
            (void)snprintf(s->url, sizeof s->url, "nats://127.0.0.1:%d", s->port);
            return;
        }
        int status = 0;
        CHECK(waitpid(s->pid, &status, WNOHANG) == 0,
              "nats-server does not start (status %d): install it, or set "
              "REEF_NATS_SERVER",
              status);
        (void)nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
    fail_msg("nats-server does not listen after 20 s");
}

void server_kill(server *s)
{
    char path[SCRATCH_PATH];
    char name[64];
    assert_int_equal(kill(s->pid, SIGKILL), 0);
    assert_int_equal(waitpid(s->pid, NULL, 0), s->pid);
    (void)snprintf(name, sizeof name, "nats-server_%ld.ports", (long)s->pid);
    (void)unlink(scratch_path(&s->folder, name, path));
    s->pid = 0;
}

static void remove_tree(const char *path)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        char inner[1024];
        struct stat about;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) >= (int)sizeof inner ||
            lstat(inner, &about) != 0) {
            continue;
        }
        if (S_ISDIR(about.st_mode)) {
            remove_tree(inner);
        } else {
            (void)unlink(inner);
        }
    }
    if (folder) {
        (void)closedir(folder);
    }
    (void)rmdir(path);
}

void server_end(server *s)
{
    if (s->pid) {
        server_kill(s);
    }
    remove_tree(s->store);
    scratch_close(&s->folder);
}

static void make_stream(natsConnection *connection, const char *config, const char *name)
{
    char subject[128];
    natsMsg *reply = NULL;
    (void)snprintf(subject, sizeof subject, "$JS.API.STREAM.CREATE.%s", name);
    natsStatus s = natsConnection_RequestString(&reply, connection, subject, config, 10000);
    CHECK(s == NATS_OK, "%s: %s", name, natsStatus_GetText(s));
    CHECK(!strstr(natsMsg_GetData(reply), "\"error\""), "%s: %s", name, natsMsg_GetData(reply));
    natsMsg_Destroy(reply);
}

void server_streams(const server *s, int agents)
{
    natsConnection *connection = NULL;
    assert_int_equal(natsConnection_ConnectTo(&connection, s->url), NATS_OK);
    for (int k = 0; k < agents; k++) {
        char config[512];
        char name[32];
        (void)snprintf(name, sizeof name, "reef-t-s-%d", k);
        (void)snprintf(config, sizeof config,
                       "{\"name\":\"%s\",\"subjects\":[\"reef.t.s.%d.*\"],\"storage\":\"file\","
                       "\"max_msgs_per_subject\":1,\"discard\":\"new\",\"discard_new_per_subject\":true,"
                       "\"max_bytes\":1048576,\"deny_delete\":true,\"deny_purge\":true,\"allow_direct\":true}",
                       name, k);
        make_stream(connection, config, name);
        (void)snprintf(name, sizeof name, "reef-t-p-%d", k);
        (void)snprintf(config, sizeof config,
                       "{\"name\":\"%s\",\"subjects\":[\"reef.t.p.%d.*.*\"],\"storage\":\"memory\","
                       "\"max_msgs_per_subject\":1,\"discard\":\"old\",\"max_bytes\":4194304,\"allow_direct\":true}",
                       name, k);
        make_stream(connection, config, name);
    }
    natsConnection_Destroy(connection);
}
