/* reef aggregate: model files into one, and who was believed. */
#include "commands.h"

#include <errno.h>
#include <math.h>
#include <reef/reef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { RULE_TEXT = 4200, NAME_SHOWN = 40 };

/* What the command line says. */
typedef struct request {
    reef_merge_options merge;
    const char *rule, *nan, *out, *trust;
    const char *weights_text;
    double *weights;
    long threads;
    bool quiet;
    const char *const *paths;
    ptrdiff_t count;
    char spec[RULE_TEXT]; /* rule with nan= */
} request;

/* Progress on a terminal, once a second after the first two. */
typedef struct meter {
    double start, last;
    bool shown;
} meter;

/* ---- the command line ---- */

static int complain(const char *what, const char *value)
{
    return bad_usage(&command_aggregate, what, value);
}

/* As many numbers as files, with commas between them; the library judges their values. */
static bool read_weights(request *r)
{
    const char *at = r->weights_text;
    r->weights = calloc((size_t)r->count, sizeof *r->weights);
    for (ptrdiff_t i = 0; r->weights && i < r->count; i++) {
        char *end = NULL;
        r->weights[i] = strtod(at, &end);
        if (end == at || *end != (i + 1 < r->count ? ',' : '\0')) {
            return false;
        }
        at = end + 1;
    }
    r->merge.weights = r->weights;
    return r->weights != NULL;
}

enum { OPT_WHOLE = 256, OPT_TENSOR, OPT_NAN, OPT_INTEGERS, OPT_DROP, OPT_TRUST, OPT_NO_TRUST, OPT_THREADS, OPT_MEMORY };
static const option_row options[] = {
    {'o', "output", "OUT", "where the result goes; written beside it first, then renamed", VALUE_FILE, NULL},
    {'r', "rule", "SPEC", "rule, as in `reef list`; default: ref. \"vref\", \"nnm:f=2 | ref\", ...", VALUE_RULE, NULL},
    {'w', "weights", "W,W,...", "one weight per file, by size of its data for instance; default: equal", VALUE_TEXT,
     NULL},
    {OPT_WHOLE, "whole-model", NULL, "rules that compare whole vectors see the model as one (default)", VALUE_NONE,
     NULL},
    {OPT_TENSOR, "per-tensor", NULL, "they judge each tensor by itself", VALUE_NONE, NULL},
    {OPT_NAN, "nan", "POLICY", "files with NaN or Inf: drop-row (default: leave the file out),\ndrop-coordinate, error",
     VALUE_WORDS, "drop-row drop-coordinate error"},
    {OPT_INTEGERS, "integers", "HOW",
     "tensors of whole numbers or truth values, element by element:\nmajority (default; where there is none, from the "
     "most trusted\nfile), trusted (from that file)",
     VALUE_WORDS, "majority trusted"},
    {OPT_DROP, "drop-bad", NULL, "go on without files that cannot be read or differ from most others", VALUE_NONE,
     NULL},
    {OPT_TRUST, "trust", "FILE", "write the table of trust as csv", VALUE_FILE, NULL},
    {OPT_NO_TRUST, "no-trust", NULL, "do not measure trust: faster with trimmed, meamed and unequal\nweights",
     VALUE_NONE, NULL},
    {OPT_THREADS, "threads", "N", "default: all processors", VALUE_TEXT, NULL},
    {OPT_MEMORY, "memory", "MB", "for blocks of the files; default: 128", VALUE_TEXT, NULL},
    {'q', "quiet", NULL, "no table", VALUE_NONE, NULL},
};

static int take_option(void *user, int option, const char *value)
{
    request *r = user;
    long number = 0;
    switch (option) {
    case 'o':
        r->out = value;
        return EXIT_DONE;
    case 'r':
        r->rule = value;
        return EXIT_DONE;
    case 'w':
        r->weights_text = value;
        return EXIT_DONE;
    case OPT_WHOLE:
        r->merge.per_tensor = false;
        return EXIT_DONE;
    case OPT_TENSOR:
        r->merge.per_tensor = true;
        return EXIT_DONE;
    case OPT_NAN:
        r->nan = value;
        return EXIT_DONE;
    case OPT_INTEGERS:
        r->merge.integers = strcmp(value, "trusted") == 0 ? REEF_MERGE_TRUSTED : REEF_MERGE_MAJORITY;
        return strcmp(value, "trusted") == 0 || strcmp(value, "majority") == 0
                   ? EXIT_DONE
                   : complain("--integers takes majority or trusted, not", value);
    case OPT_DROP:
        r->merge.drop_bad = true;
        return EXIT_DONE;
    case OPT_TRUST:
        r->trust = value;
        return EXIT_DONE;
    case OPT_NO_TRUST:
        r->merge.no_trust = true;
        return EXIT_DONE;
    case OPT_THREADS:
        return read_whole(value, 1, REEF_THREADS_MAX, &r->threads) ? EXIT_DONE
                                                                   : complain("--threads takes 1 to 1024, not", value);
    case OPT_MEMORY:
        if (!read_whole(value, 1, 1L << 20, &number)) {
            return complain("--memory takes megabytes, 1 to 1048576, not", value);
        }
        r->merge.memory = (size_t)number << 20;
        return EXIT_DONE;
    default:
        r->quiet = true;
        return EXIT_DONE;
    }
}

/* The spec with --nan in it, checked before any file is touched. */
static int make_spec(request *r)
{
    reef_agg *agg = NULL;
    reef_error error;
    const char *last = strrchr(r->rule, '|');
    bool parameters = strchr(last ? last : r->rule, ':') != NULL;
    int length = snprintf(r->spec, sizeof r->spec, "%s%s%s", r->rule, r->nan ? (parameters ? ",nan=" : ":nan=") : "",
                          r->nan ? r->nan : "");
    if (length < 0 || (size_t)length >= sizeof r->spec) {
        return complain("the rule is too long", NULL);
    }
    if (reef_agg_create(&agg, r->spec, &error) != REEF_OK) {
        fprintf(stderr, "reef aggregate: %s\n", error.text);
        return EXIT_USAGE;
    }
    reef_agg_destroy(&agg);
    r->merge.rule = r->spec;
    return EXIT_DONE;
}

static int read_request(request *r, int argc, char **argv)
{
    int code = read_options(&command_aggregate, &argc, argv, take_option, r);
    if (code != EXIT_DONE) {
        return code;
    }
    r->paths = (const char *const *)argv + 1;
    r->count = argc - 1;
    if (r->count == 0 || !r->out) {
        return complain(r->out ? "no model given" : "-o OUT is missing", NULL);
    }
    if (r->weights_text && !read_weights(r)) {
        return complain("--weights takes one number per file, with commas between them, not", r->weights_text);
    }
    return make_spec(r);
}

/* ---- what is printed ---- */

static const char *show(const char *path)
{
    size_t length = strlen(path);
    return length > NAME_SHOWN ? path + length - NAME_SHOWN : path;
}

static const char *reason_of(const reef_merge_file *file)
{
    static const char *const reasons[] = {"used", "weight 0", "NaN or Inf", "bad file"};
    return reasons[file->reason];
}

static void print_table(const request *r, const reef_merge_report *report)
{
    int width = 4;
    for (ptrdiff_t i = 0; i < r->count; i++) {
        int length = (int)strlen(show(r->paths[i]));
        width = length > width ? length : width;
    }
    printf("%-*s  %8s  %6s  %8s  %s\n", width, "file", "weight", "trust", "rejected", "fate");
    for (ptrdiff_t i = 0; i < r->count; i++) {
        const reef_merge_file *file = &report->files[i];
        printf("%-*s  %8.4g  ", width, show(r->paths[i]), r->weights ? r->weights[i] : 1.0);
        if (isnan(file->trust)) { /* not measured */
            printf("%6s  %8s  ", "-", "-");
        } else {
            printf("%6.3f  %6.1f %%  ", file->trust, 100 * file->rejected);
        }
        printf("%s\n", reason_of(file));
    }
    for (ptrdiff_t i = 0; i < r->count; i++) {
        if (report->files[i].why[0]) {
            printf("left out: %s\n", report->files[i].why);
        }
    }
}

static void print_integers(const request *r, const reef_merge_report *report)
{
    printf("%lld integer or boolean %s with %lld %s, not averaged: ", (long long)report->integer_tensors,
           report->integer_tensors == 1 ? "tensor" : "tensors", (long long)report->integers,
           report->integers == 1 ? "element" : "elements");
    if (r->merge.integers == REEF_MERGE_TRUSTED) {
        printf("taken from %s, the most trusted file; the files differ at %lld\n", show(r->paths[report->trusted]),
               (long long)report->disputed);
        return;
    }
    printf("by majority; the files differ at %lld", (long long)report->disputed);
    if (report->undecided) {
        printf(", %lld without a majority taken from %s, the most trusted file", (long long)report->undecided,
               show(r->paths[report->trusted]));
    }
    printf("\n");
}

static void print_report(const request *r, const reef_merge_report *report)
{
    ptrdiff_t used = 0;
    print_table(r, report);
    for (ptrdiff_t i = 0; i < r->count; i++) {
        used += report->files[i].reason == REEF_MERGE_USED;
    }
    printf("%lld numbers in %lld %s of %td files by %s, %s\n", (long long)report->numbers,
           (long long)(report->tensors - report->integer_tensors),
           report->tensors - report->integer_tensors == 1 ? "tensor" : "tensors", used, r->spec,
           r->merge.per_tensor ? "each tensor by itself" : "the model as a whole");
    if (report->integer_tensors) {
        print_integers(r, report);
    }
    if (report->masked) {
        printf("%lld entries were NaN or Inf and left out\n", (long long)report->masked);
    }
    if (report->unconverged) {
        printf("%lld times the iteration ended before its tolerance\n", (long long)report->unconverged);
    }
}

/* A field of a csv line, quoted. */
static void put_quoted(FILE *to, const char *text)
{
    (void)fputc('"', to);
    for (; *text; text++) {
        (void)fputs(*text == '"' ? "\"\"" : (char[2]){*text, '\0'}, to);
    }
    (void)fputc('"', to);
}

static void print_trust(const request *r, const reef_merge_report *report, FILE *to)
{
    (void)fprintf(to, "file,weight,trust,rejected,fate,why\n");
    for (ptrdiff_t i = 0; i < r->count; i++) {
        const reef_merge_file *file = &report->files[i];
        put_quoted(to, r->paths[i]);
        (void)fprintf(to, ",%.17g,%.17g,%.17g,%s,", r->weights ? r->weights[i] : 1.0, file->trust, file->rejected,
                      reason_of(file));
        put_quoted(to, file->why);
        (void)fputc('\n', to);
    }
}

/* Written beside it, then renamed: a table that was there stays whole. A pipe or a device is written to as it is. */
static int write_trust(const request *r, const reef_merge_report *report)
{
    char beside[4096];
    struct stat found;
    bool direct = stat(r->trust, &found) == 0 && !S_ISREG(found.st_mode);
    int length = snprintf(beside, sizeof beside, "%s.%ld.tmp", r->trust, (long)getpid());
    FILE *to = direct ? fopen(r->trust, "w") : length < (int)sizeof beside ? fopen(beside, "wx") : NULL;
    if (!to) {
        fprintf(stderr, "reef aggregate: %s: cannot open: %s\n", r->trust,
                length < (int)sizeof beside ? strerror(errno) : "the path is too long");
        return EXIT_FAILED;
    }
    print_trust(r, report, to);
    bool bad = ferror(to) != 0;
    bad = fclose(to) != 0 || bad;
    if (bad || (!direct && rename(beside, r->trust) != 0)) {
        fprintf(stderr, "reef aggregate: %s: cannot write: %s\n", r->trust, strerror(errno));
        if (!direct) {
            (void)remove(beside);
        }
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void show_progress(void *user, double share)
{
    meter *m = user;
    double now = seconds();
    if (now - m->start > 2 && now - m->last > 0.5) {
        fprintf(stderr, "\r%3.0f %%", 100 * share);
        m->last = now;
        m->shown = true;
    }
}

/* ---- the job ---- */

static bool is_readable(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISREG(found.st_mode) && access(path, R_OK) == 0;
}

/* A file that cannot be read is bad data; one that cannot be written, a failure. */
static int code_of(const request *r, reef_status status)
{
    bool unreadable = false;
    if (status == REEF_OK) {
        return EXIT_DONE;
    }
    for (ptrdiff_t i = 0; status == REEF_E_FILE && i < r->count; i++) {
        unreadable = unreadable || !is_readable(r->paths[i]);
    }
    return status == REEF_E_FORMAT || status == REEF_E_OVERFLOW || unreadable ? EXIT_MALFORMED : EXIT_FAILED;
}

static reef_status merge(const request *r, reef_merge_report *report, reef_error *error)
{
    reef_context *context = NULL;
    meter m = {.start = seconds()};
    reef_merge_options wanted = r->merge;
    if (isatty(STDERR_FILENO)) {
        wanted.progress = show_progress;
        wanted.user = &m;
    }
    reef_status status = reef_context_create(&context, NULL, error);
    if (status == REEF_OK && r->threads) {
        status = reef_context_set_threads(context, r->threads, error);
    }
    if (status == REEF_OK) {
        status = reef_merge_files(context, &wanted, r->paths, r->count, r->out, report, error);
    }
    reef_context_destroy(&context);
    if (m.shown) {
        fprintf(stderr, "\r      \r");
    }
    return status;
}

static int do_request(const request *r)
{
    reef_error error = {REEF_OK, ""};
    reef_merge_report report = {.files = calloc((size_t)r->count + 1, sizeof *report.files)};
    if (!report.files) {
        fprintf(stderr, "reef aggregate: no memory for %td files\n", r->count);
        return EXIT_FAILED;
    }
    int code = code_of(r, merge(r, &report, &error));
    if (code != EXIT_DONE) {
        fprintf(stderr, "reef aggregate: %s\n", error.text);
    } else if (!r->quiet) {
        print_report(r, &report);
    }
    if (code == EXIT_DONE && r->trust) {
        code = write_trust(r, &report);
    }
    free(report.files);
    return code;
}

static int run_aggregate(int argc, char **argv)
{
    request r = {.rule = "ref"};
    int code = read_request(&r, argc, argv);
    if (code == EXIT_DONE) {
        code = do_request(&r);
    }
    free(r.weights);
    return code;
}

const command command_aggregate = {
    "aggregate",
    "merge model files (safetensors, npy) into one, and tell who was believed",
    "Usage: reef aggregate [OPTIONS] MODEL... -o OUT\n\n"
    "Merges checkpoints of the same model into one, so that bad ones among them do little harm, and tells who was\n"
    "believed. Files are safetensors or npy; OUT has the format of MODEL. Files of any size are read in blocks.\n",
    OPTIONS(options),
    "Trust is the mean effective weight of a file over its fair share: 1 fully believed, 0 ignored. `rejected` is the\n"
    "share of the numbers at which it had no say.\n\n"
    "Exit codes: 0 done, 1 the job failed (a file cannot be written, too many liars), 2 wrong usage,\n"
    "3 bad data: a file cannot be read, is malformed, or differs from the others.\n\n"
    "  reef aggregate site*.safetensors -o merged.safetensors\n"
    "  reef aggregate --rule vref --trust trust.csv a.safetensors b.safetensors c.safetensors -o merged.safetensors\n",
    VALUE_MODEL,
    NULL,
    run_aggregate,
};
