/* reef aggregate: the job, from a checked command line to the outputs. */
#include "cmd_aggregate.h"
#include "commands.h"
#include "files.h"
#include "plugins.h"
#include "signals.h"

#include <errno.h>
#include <reef/reef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a merge tells on its way, and to whom. */
typedef struct listener {
    meter progress;
    findings *found;
} listener;

/* ---- what a merge tells ---- */

static void show_note(void *user, const char *sentence)
{
    listener *l = user;
    findings *found = l->found;
    meter_clear(&l->progress);
    fprintf(stderr, "reef aggregate: %s\n", sentence);
    char **notes = realloc(found->notes, (size_t)(found->note_count + 1) * sizeof *notes);
    char *copy = notes ? strdup(sentence) : NULL;
    if (notes) {
        found->notes = notes;
    }
    if (copy) {
        found->notes[found->note_count++] = copy;
    }
}

static void take_tensor(void *user, const char *name, int64_t numbers, const double *trust)
{
    note_tensor(&((listener *)user)->found->tensors, name, numbers, trust);
}

static void show_progress(void *user, double share)
{
    meter_show(&((listener *)user)->progress, share);
}

static bool ends_with(const char *path, const char *end)
{
    size_t length = strlen(path);
    return length > strlen(end) && strcmp(path + length - strlen(end), end) == 0;
}

/* The result is an npy file if the models are, else safetensors, whatever it is called; programs that go by the name would not read it. */
static void check_name(listener *l, const char *out)
{
    static const char start[] = "\x93NUMPY";
    char first[sizeof start - 1];
    char text[120];
    FILE *file = open_regular(out); /* NULL: a folder */
    bool npy = file && fread(first, 1, sizeof first, file) == sizeof first && memcmp(first, start, sizeof first) == 0;
    const char *end = npy ? ".safetensors" : ends_with(out, ".npz") ? ".npz" : ".npy";
    if (file && ends_with(out, end)) {
        (void)snprintf(text, sizeof text, "warning: the result is %s file, but its name ends with %s",
                       npy ? "an npy" : "a safetensors", end);
        show_note(l, text);
    }
    if (file) {
        (void)fclose(file);
    }
}

static void free_findings(findings *found)
{
    free_tensors(&found->tensors);
    for (ptrdiff_t i = 0; i < found->note_count; i++) {
        free(found->notes[i]);
    }
    free((void *)found->notes);
}

/* ---- the job ---- */

static bool is_readable(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode)) && access(path, R_OK) == 0;
}

/* A file that cannot be read is bad data; one that cannot be written, a failure. */
static int code_of(const request *r, reef_status status)
{
    bool unreadable = false;
    if (status == REEF_OK) {
        return EXIT_DONE;
    }
    if (status == REEF_E_ARG || status == REEF_E_WEIGHTS) {
        return EXIT_USAGE;
    }
    for (ptrdiff_t i = 0; status == REEF_E_FILE && i < r->count; i++) {
        unreadable = unreadable || !is_readable(r->paths[i]);
    }
    unreadable = unreadable || (status == REEF_E_FILE && r->merge.base && !is_readable(r->merge.base));
    return status == REEF_E_FORMAT || status == REEF_E_OVERFLOW || unreadable ? EXIT_MALFORMED : EXIT_FAILED;
}

/* Every model is open while it is merged: as many files as the system lets us have. */
static void allow_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static reef_status merge(const request *r, const char *out, reef_merge_report *report, findings *found,
                         reef_error *error)
{
    reef_context *context = NULL;
    listener l = {.progress = meter_start(r), .found = found};
    reef_merge_options wanted = r->merge;
    wanted.progress = l.progress.wanted ? show_progress : NULL;
    wanted.note = show_note;
    wanted.tensor = r->trust_tensors ? take_tensor : NULL;
    wanted.user = &l;
    allow_files();
    stop_on_signals();
    wanted.stop = &stop_wanted;
    reef_status status = plugins_context(&context, error);
    if (status == REEF_OK && r->threads) {
        status = reef_context_set_threads(context, r->threads, error);
    }
    if (status == REEF_OK) {
        status = reef_merge_files(context, &wanted, r->paths, r->count, out, report, error);
    }
    reef_context_destroy(&context);
    meter_clear(&l.progress);
    if (status == REEF_OK && out == r->out) {
        check_name(&l, out);
    }
    return status;
}

static int merge_to(const request *r, const char *out, reef_merge_report *report, findings *found)
{
    reef_error error = {REEF_OK, ""};
    int code = code_of(r, merge(r, out, report, found, &error));
    if (code != EXIT_DONE) {
        fprintf(stderr, "reef aggregate: %s\n", error.text);
    }
    return code;
}

/* The result is written in any order, a stream from beginning to end: a file between them holds it, in a folder of its own. Its name says that it
 * is one file, whatever the models are. */
static int merge_to_stream(const request *r, reef_merge_report *report, findings *found)
{
    char folder[4096];
    char between[4096 + 32];
    const char *base = getenv("TMPDIR");
    int length = snprintf(folder, sizeof folder, "%s/reef-XXXXXX", base && base[0] ? base : "/tmp");
    if (length >= (int)sizeof folder || !mkdtemp(folder)) {
        fprintf(stderr, "reef aggregate: %s: cannot make a temporary folder: %s\n", printable_path(folder),
                strerror(errno));
        return EXIT_FAILED;
    }
    (void)snprintf(between, sizeof between, "%s/merged.safetensors", folder);
    int code = merge_to(r, between, report, found);
    FILE *result = code == EXIT_DONE ? open_regular(between) : NULL;
    int number = errno;
    (void)unlink(between); /* now: a reader that goes away ends this process */
    (void)rmdir(folder);
    if (code == EXIT_DONE && !result) {
        fprintf(stderr, "reef aggregate: %s: cannot open: %s\n", printable_path(between), strerror(number));
        return EXIT_FAILED;
    }
    if (result) {
        code = copy_to_stream("aggregate", result, r->out);
        (void)fclose(result);
    }
    return code;
}

/* Where the tables and the memory go: a merge may take an hour, and must not be without a place for them at its end. */
static int check_places(const request *r)
{
    const char *const places[] = {r->trust, r->trust_tensors, r->merge.state};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i] && check_place("aggregate", places[i]) != EXIT_DONE) {
            return EXIT_FAILED;
        }
    }
    return EXIT_DONE;
}

/* Tables, once the result is in its place. */
static int write_tables(const request *r, const reef_merge_report *report, const findings *found)
{
    int code = EXIT_DONE;
    if (r->trust) {
        code = write_trust(r, report);
    }
    if (code == EXIT_DONE && r->trust_tensors) {
        code = write_tensors(r, &found->tensors);
    }
    if (code != EXIT_DONE) {
        fprintf(stderr, "reef aggregate: the result%s in place; only this table is missing\n",
                r->merge.state ? " and the memory are" : " is");
    }
    return code;
}

int do_request(const request *r)
{
    if (check_places(r) != EXIT_DONE) {
        return EXIT_FAILED;
    }
    reef_merge_report report = {.files = calloc((size_t)r->count + 1, sizeof *report.files)};
    if (!report.files) {
        fprintf(stderr, "reef aggregate: no memory for %td files\n", r->count);
        return EXIT_FAILED;
    }
    findings found = {.tensors = {.files = r->count}};
    int code = is_stream(r->out) ? merge_to_stream(r, &report, &found) : merge_to(r, r->out, &report, &found);
    if (code == EXIT_DONE) {
        warn_of_copies(r, &report);
    }
    if (code == EXIT_DONE && !r->quiet && !r->json) {
        print_report(r, &report);
    }
    if (code == EXIT_DONE) {
        code = write_tables(r, &report, &found);
    }
    if (code == EXIT_DONE && r->trust_tensors && !r->quiet && !r->json) {
        print_by_tensor(r, &found.tensors);
    }
    if (code == EXIT_DONE && r->json) {
        print_json(r, &report, &found);
    }
    free_findings(&found);
    free(report.files);
    return code;
}
