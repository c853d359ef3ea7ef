/* Figures of a results folder from its configuration and cells alone.
 *
 * A folder may come from a stranger, and gnuplot runs what a script says: scripts are generated again, and those in the folder are never
 * read. config.yaml, the overrides and the name in manifest.json, and the files in cells/ are data. */
#include "base/error.h"
#include "base/memory.h"
#include "experiment/run/runner.h"
#include "io/file.h"
#include "io/yaml.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MANIFEST_MAX = 1 << 30, OVERRIDES_MAX = 64, NAME_TEXT = 256 };

/* What manifest.json says about how the configuration was used. */
typedef struct usage {
    rfi_file file;
    rfi_yaml yaml;
    char name[NAME_TEXT];                     /* as an override */
    const char *overrides[OVERRIDES_MAX + 1]; /* of the file, and the name */
    ptrdiff_t count;
} usage;

/* name='...', a quote doubled: a text of YAML whatever is in it. */
static bool override_name(usage *u, const char *name)
{
    size_t used = 0;
    rfi_append(u->name, sizeof u->name, &used, "name='");
    for (; *name; name++) {
        rfi_append(u->name, sizeof u->name, &used, *name == '\'' ? "''" : "%c", *name);
    }
    rfi_append(u->name, sizeof u->name, &used, "'");
    assert(u->count < RFI_COUNT(u->overrides));
    u->overrides[u->count++] = u->name;
    return used < sizeof u->name;
}

/* JSON is YAML. The cells, which may be many, are cut off. */
static reef_status read_usage(const reef_context *context, const char *path, usage *u, reef_error *error)
{
    static const char cells[] = "\n  \"cells\": [";
    reef_status status = rfi_file_read(context, path, MANIFEST_MAX, &u->file, error);
    if (status != REEF_OK) {
        return status;
    }
    char *end = strstr((char *)u->file.bytes, cells);
    size_t size = end ? (size_t)(end - (char *)u->file.bytes) + 1 : 0;
    if (end) {
        end[0] = '}';
    }
    status = end ? rfi_yaml_read(context, u->file.bytes, size, path, &u->yaml, error)
                 : rfi_fail(error, REEF_E_FORMAT, "%s: not the manifest of a run", rfi_path_show(path));
    if (status != REEF_OK) {
        return status;
    }
    const rfi_yaml_node *list = rfi_yaml_find(u->yaml.root, "overrides");
    const rfi_yaml_node *name = rfi_yaml_find(u->yaml.root, "name");
    bool good =
        list && list->type == RFI_YAML_LIST && list->count < OVERRIDES_MAX && name && name->type == RFI_YAML_SCALAR;
    for (const rfi_yaml_node *node = good ? list->first : NULL; node; node = node->next) {
        good = good && node->type == RFI_YAML_SCALAR;
        u->overrides[u->count++] = node->text;
    }
    return good && override_name(u, name->text)
               ? REEF_OK
               : rfi_fail(error, REEF_E_FORMAT, "%s: not the manifest of a run", rfi_path_show(path));
}

/* Files of a linked folder would be replaced wherever it points. */
static reef_status check_figures(const char *folder, reef_error *error)
{
    char path[RFI_FOLDER_SIZE + 16];
    struct stat about;
    (void)snprintf(path, sizeof path, "%s/figures", folder);
    if (lstat(path, &about) == 0 && S_ISLNK(about.st_mode)) {
        return rfi_fail(error, REEF_E_FILE, "%s: is a symbolic link, and figures are not drawn where it leads",
                        rfi_path_show(path));
    }
    return REEF_OK;
}

static reef_status redraw(const reef_experiment *e, const char *folder, reef_error *error)
{
    const reef_experiment_options options = {.folder = folder, .resume = true};
    reef_experiment_outcome outcome = {0};
    rfi_runner *r = rfi_runner_create(e, &options, error);
    if (!r) {
        return REEF_E_NOMEM;
    }
    reef_status status = check_figures(folder, error);
    if (status == REEF_OK) {
        status = rfi_folder_visit(r, error);
    }
    if (status == REEF_OK) {
        status = rfi_make_jobs(r, error);
    }
    if (status == REEF_OK) {
        rfi_load_jobs(r, &outcome);
        status = rfi_all_done(r) ? rfi_runner_write(r, 0, rfi_figures_write, error)
                                 : rfi_fail(error, REEF_E_FORMAT,
                                            "%s: has results of %td of %td configurations that this version can use; "
                                            "complete the others with `reef run --resume`",
                                            rfi_path_show(folder), outcome.reused, e->cells);
    }
    rfi_runner_destroy(r);
    return status;
}

reef_status reef_experiment_redraw(reef_context *context, const char *folder, reef_error *error)
{
    char path[RFI_FOLDER_SIZE + 16];
    usage u = {.count = 0};
    reef_experiment *e = NULL;
    if (!folder || strlen(folder) >= RFI_FOLDER_SIZE) {
        return rfi_fail(error, REEF_E_ARG, "reef_experiment_redraw: the folder is missing or its path too long");
    }
    (void)snprintf(path, sizeof path, "%s/manifest.json", folder);
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return rfi_fail(error, REEF_E_FILE, "%s has no manifest.json: it is not the results folder of a finished run",
                        rfi_path_show(folder));
    }
    reef_status status = read_usage(context, path, &u, error);
    (void)snprintf(path, sizeof path, "%s/config.yaml", folder);
    if (status == REEF_OK) {
        status = reef_experiment_load(context, &e, path, u.overrides, u.count, error);
    }
    if (status == REEF_OK) {
        status = redraw(e, folder, error);
    }
    reef_experiment_destroy(&e);
    rfi_yaml_free(context, &u.yaml);
    rfi_file_free(context, &u.file);
    return status;
}
