/* reef aggregate: model files into one, and how much each was trusted. */
#include "cmd_aggregate.h"
#include "commands.h"
#include "files.h"
#include "plugins.h"

#include <reef/reef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

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

/* As many names as files, with commas between them, none empty. */
static bool read_ids(request *r)
{
    r->ids_memory = strdup(r->ids_text);
    r->ids = calloc((size_t)r->count, sizeof *r->ids);
    char *at = r->ids_memory;
    for (ptrdiff_t i = 0; at && r->ids && i < r->count; i++) {
        char *end = at + strcspn(at, ",");
        bool last = *end == '\0';
        if (end == at || last != (i + 1 == r->count)) {
            return false;
        }
        *end = '\0';
        r->ids[i] = at;
        at = end + 1;
    }
    r->merge.ids = r->ids;
    return at && r->ids;
}

/* "5GB", "200 MB", "64KiB", "1000": at least one byte. */
static bool read_size(const char *text, size_t *size)
{
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},    {"GB", 1e9},
                 {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}};
    char *end = NULL;
    double number = strtod(text, &end);
    while (end != text && *end == ' ') {
        end++;
    }
    for (size_t i = 0; end != text && i < sizeof units / sizeof *units; i++) {
        double bytes = number * units[i].bytes;
        if (strcmp(end, units[i].unit) == 0 && bytes >= 1 && bytes < 0x1p62) {
            *size = (size_t)bytes;
            return true;
        }
    }
    return false;
}

#define CAST_TYPES "F32 F16 BF16 F64 F8_E4M3 F8_E5M2"

/* What PyTorch calls a type is as good; what is none of its names stays as it is. */
static const char *type_named(const char *value)
{
    static const char *const names[][2] = {
        {"float32", "F32"},           {"float16", "F16"},         {"bfloat16", "BF16"}, {"float64", "F64"},
        {"float8_e4m3fn", "F8_E4M3"}, {"float8_e5m2", "F8_E5M2"}, {"fp16", "F16"},      {"fp32", "F32"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcasecmp(value, names[i][0]) == 0) {
            return names[i][1];
        }
    }
    return value;
}

/* Letters of any size. */
static bool is_cast_type(const char *value)
{
    const char *at = CAST_TYPES;
    for (size_t length; *at; at += length + (at[length] == ' ')) {
        length = strcspn(at, " ");
        if (strlen(value) == length && strncasecmp(at, value, length) == 0) {
            return true;
        }
    }
    return false;
}

enum {
    OPT_WHOLE = 256,
    OPT_TENSOR,
    OPT_NAN,
    OPT_INTEGERS,
    OPT_DROP,
    OPT_TRUST,
    OPT_NO_TRUST,
    OPT_THREADS,
    OPT_MEMORY,
    OPT_SHARD,
    OPT_STATE,
    OPT_IDS,
    OPT_TENSORS,
    OPT_CAST,
    OPT_COMMON,
    OPT_MISSING,
    OPT_FACTORS,
    OPT_BASE,
    OPT_JSON
};
static const option_row options[] = {
    {'o', "output", "OUT", "where the result goes; written beside it first, then renamed.\n- is standard output",
     VALUE_FILE, NULL},
    {'r', "rule", "SPEC", "rule, as in `reef list`; default: ref. \"vref\", \"nnm:f=2 | ref\", ...", VALUE_RULE, NULL},
    {'w', "weights", "W,W,...", "one weight per file, for instance the size of its data; default: equal", VALUE_TEXT,
     NULL},
    {OPT_WHOLE, "whole-model", NULL, "rules that compare whole vectors compare whole models (default)", VALUE_NONE,
     NULL},
    {OPT_TENSOR, "per-tensor", NULL, "rules that compare whole vectors treat each tensor separately", VALUE_NONE, NULL},
    {OPT_NAN, "nan", "POLICY", "files with NaN or Inf: drop-row (default: leave the file out),\ndrop-coordinate, error",
     VALUE_WORDS, "drop-row drop-coordinate error"},
    {OPT_INTEGERS, "integers", "HOW",
     "integer and boolean tensors, element by element:\nmajority (default; where there is none, from the "
     "most trusted\nfile), trusted (from that file)",
     VALUE_WORDS, "majority trusted"},
    {OPT_DROP, "drop-bad", NULL,
     "continue without files that are malformed or differ from most others,\nas long as most remain", VALUE_NONE, NULL},
    {OPT_CAST, "cast", "TYPE",
     "floating-point tensors of the result get this type, whatever types the\nfiles have: F32, F16, BF16, F64, "
     "F8_E4M3, F8_E5M2",
     VALUE_WORDS, CAST_TYPES},
    {OPT_COMMON, "common", NULL, "merge only the tensors that all files have", VALUE_NONE, NULL},
    {OPT_MISSING, "ignore-missing", NULL,
     "files may lack tensors; a tensor that more than half of the files\nhave is merged from those", VALUE_NONE, NULL},
    {OPT_FACTORS, "factors", NULL, "merge the factors of LoRA adapters instead of their products", VALUE_NONE, NULL},
    {OPT_BASE, "base", "MODEL",
     "aggregate differences from this model, and add the result to it; for\nrules with an origin: clip, arc, cclip",
     VALUE_FILE, NULL},
    {OPT_TRUST, "trust", "FILE", "write the trust table as csv; - is standard output", VALUE_FILE, NULL},
    {OPT_TENSORS, "trust-tensors", "FILE",
     "write the trust of each file in each tensor as csv, and print which\nfiles were down-weighted where", VALUE_FILE,
     NULL},
    {OPT_NO_TRUST, "no-trust", NULL, "do not measure trust, which takes up to half of the time", VALUE_NONE, NULL},
    {OPT_STATE, "state", "FILE",
     "file in which mref remembers the sites from merge to merge; created\nif missing, replaced after the merge",
     VALUE_FILE, NULL},
    {OPT_IDS, "ids", "ID,ID,...",
     "names of the sites for --state, in the order of the models; default:\nthe last part of each path, without "
     ".safetensors, .npy or .npz",
     VALUE_TEXT, NULL},
    {OPT_SHARD, "shard-size", "SIZE",
     "make OUT a folder with files of at most this size, or of one tensor:\n5GB, 500MB, ...; default: as in the first "
     "MODEL",
     VALUE_TEXT, NULL},
    {OPT_THREADS, "threads", "N", "default: all processors", VALUE_TEXT, NULL},
    {OPT_MEMORY, "memory", "MB", "memory for blocks of the files; default: 128", VALUE_TEXT, NULL},
    {OPT_JSON, "json", NULL, "print the report as JSON on standard output", VALUE_NONE, NULL},
    {'q', "quiet", NULL, "no table and no progress; warnings stay", VALUE_NONE, NULL},
};

/* Options whose value is taken as it is; false: this is none of those. */
static bool take_text(request *r, int option, const char *value)
{
    switch (option) {
    case 'o':
        r->out = value;
        return true;
    case 'r':
        r->rule = value;
        return true;
    case 'w':
        r->weights_text = value;
        return true;
    case OPT_NAN:
        r->nan = value;
        return true;
    case OPT_TRUST:
        r->trust = value;
        return true;
    case OPT_TENSORS:
        r->trust_tensors = value;
        return true;
    case OPT_STATE:
        r->merge.state = value;
        return true;
    case OPT_IDS:
        r->ids_text = value;
        return true;
    case OPT_CAST:
        r->merge.cast = type_named(value);
        return true;
    case OPT_BASE:
        r->merge.base = value;
        return true;
    default:
        return false;
    }
}

static int take_option(void *user, int option, const char *value)
{
    request *r = user;
    long number = 0;
    if (take_text(r, option, value)) {
        return EXIT_DONE;
    }
    switch (option) {
    case OPT_WHOLE:
        r->merge.per_tensor = false;
        return EXIT_DONE;
    case OPT_TENSOR:
        r->merge.per_tensor = true;
        return EXIT_DONE;
    case OPT_INTEGERS:
        r->merge.integers = strcmp(value, "trusted") == 0 ? REEF_MERGE_TRUSTED : REEF_MERGE_MAJORITY;
        return strcmp(value, "trusted") == 0 || strcmp(value, "majority") == 0
                   ? EXIT_DONE
                   : complain("--integers takes majority or trusted, not", value);
    case OPT_DROP:
        r->merge.drop_bad = true;
        return EXIT_DONE;
    case OPT_FACTORS:
        r->merge.factors = true;
        return EXIT_DONE;
    case OPT_COMMON:
        r->merge.common = true;
        return EXIT_DONE;
    case OPT_MISSING:
        r->merge.ignore_missing = true;
        return EXIT_DONE;
    case OPT_JSON:
        r->json = true;
        return EXIT_DONE;
    case OPT_NO_TRUST:
        r->merge.no_trust = true;
        return EXIT_DONE;
    case OPT_SHARD:
        return read_size(value, &r->merge.shard_size) ? EXIT_DONE
                                                      : complain("--shard-size takes a size such as 5GB, not", value);
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
    reef_context *context = NULL;
    reef_status status = plugins_context(&context, &error);
    if (status == REEF_OK) {
        status = reef_agg_create(context, &agg, r->spec, &error);
    }
    if (status != REEF_OK) {
        fprintf(stderr, "reef aggregate: %s\n", error.text);
    }
    reef_agg_destroy(&agg);
    reef_context_destroy(&context);
    r->merge.rule = r->spec;
    return status == REEF_OK ? EXIT_DONE : EXIT_USAGE;
}

/* A file that is there may be replaced by a new table only if it is an old one, or empty: a forgotten value makes a model that of --trust. */
static bool may_be_trust(const char *path, const char *head)
{
    const size_t length = strlen(head);
    char line[64] = "";
    if (is_stream(path) || access(path, F_OK) != 0) {
        return true; /* written to as it is, or new */
    }
    FILE *file = open_regular(path);
    bool table = file && (fread(line, 1, length, file) == 0 ? !ferror(file) : !strcmp(line, head));
    if (file) {
        (void)fclose(file);
    }
    return table;
}

/* Whether a path names something in this folder. */
static bool is_in(const char *path, const char *folder)
{
    char place[4096];
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) + 1 : 1;
    return snprintf(place, sizeof place, "%.*s", length, slash ? path : ".") < (int)sizeof place &&
           reef_file_same(place, folder);
}

/* Nothing is read, and nothing is lost, if an output would replace an input or the other output. */
static int check_outputs(const request *r)
{
    if (r->trust && same_output(r->out, r->trust)) {
        return complain("the result and the trust table cannot both go to", r->out);
    }
    if (r->trust_tensors &&
        (same_output(r->out, r->trust_tensors) || (r->trust && same_output(r->trust, r->trust_tensors)) ||
         (r->merge.state && same_output(r->merge.state, r->trust_tensors)))) {
        return complain("--trust-tensors needs a file of its own, not", r->trust_tensors);
    }
    if (r->merge.state && (is_stream(r->merge.state) || same_output(r->out, r->merge.state) ||
                           (r->trust && same_output(r->trust, r->merge.state)))) {
        return complain("--state needs a file of its own, not", r->merge.state);
    }
    if (r->merge.state && is_stream(r->out)) { /* which may break off after the memory was replaced */
        return complain("--state goes with a result that is a file or folder, not", r->out);
    }
    if (r->merge.state && is_in(r->merge.state, r->out)) { /* which must be empty until the result takes its place */
        return complain("--state needs a place outside of the result's folder, not", r->merge.state);
    }
    if (r->merge.base && !is_stream(r->out) && reef_file_same(r->merge.base, r->out)) {
        return complain("the result would replace what is the base:", r->out);
    }
    for (ptrdiff_t i = 0; i < r->count; i++) {
        if (!is_stream(r->out) && reef_file_same(r->paths[i], r->out)) {
            return complain("the result would replace an input:", r->out);
        }
        if (r->trust_tensors && !is_stream(r->trust_tensors) && reef_file_same(r->paths[i], r->trust_tensors)) {
            return complain("--trust-tensors would replace an input:", r->trust_tensors);
        }
        if (r->merge.state && reef_file_same(r->paths[i], r->merge.state)) {
            return complain("--state would replace an input:", r->merge.state);
        }
        if (r->trust && !is_stream(r->trust) && reef_file_same(r->paths[i], r->trust)) {
            return complain("the trust table would replace an input:", r->trust);
        }
    }
    if (r->trust && !may_be_trust(r->trust, trust_head)) {
        return complain("--trust would replace a file that is not a trust table:", r->trust);
    }
    if (r->trust_tensors && !may_be_trust(r->trust_tensors, tensors_head)) {
        return complain("--trust-tensors would replace a file that is not such a table:", r->trust_tensors);
    }
    if (r->trust_tensors && r->merge.no_trust) {
        return complain("--trust-tensors and --no-trust exclude each other", NULL);
    }
    if (r->merge.shard_size && is_stream(r->out)) {
        return complain("--shard-size makes a folder, which cannot be written to", r->out);
    }
    if (is_standard_output(r->out) && isatty(STDOUT_FILENO)) {
        return complain("a model is not written to a terminal; send standard output to a file or another command",
                        NULL);
    }
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
    if (r->out[0] == '\0') {
        return complain("the name of the result, -o OUT, is empty", NULL);
    }
    if (r->weights_text && !read_weights(r)) {
        return complain("--weights takes one number per file, with commas between them, not", r->weights_text);
    }
    if (r->ids_text && !read_ids(r)) {
        return complain("--ids takes one name per model, with commas between them, not", r->ids_text);
    }
    if (r->merge.cast && !is_cast_type(r->merge.cast)) {
        return complain("--cast takes one of " CAST_TYPES ", not", r->merge.cast);
    }
    if (r->merge.common && r->merge.ignore_missing) {
        return complain("--common and --ignore-missing exclude each other", NULL);
    }
    if (r->ids_text && !r->merge.state) {
        return complain("--ids goes with --state", NULL);
    }
    bool taken = is_standard_output(r->out) || (r->trust && is_standard_output(r->trust)) ||
                 (r->trust_tensors && is_standard_output(r->trust_tensors));
    if (r->json && taken) {
        return complain("--json goes to standard output, where another output goes already", NULL);
    }
    code = check_outputs(r);
    r->say = taken ? stderr : stdout;
    return code == EXIT_DONE ? make_spec(r) : code;
}

static int run_aggregate(int argc, char **argv)
{
    request r = {.rule = "ref"};
    int code = read_request(&r, argc, argv);
    if (code == EXIT_DONE) {
        code = do_request(&r);
    }
    free(r.weights);
    free((void *)r.ids);
    free(r.ids_memory);
    return code;
}

const command command_aggregate = {
    "aggregate",
    "merge model files or folders (safetensors, npy, npz) into one, and report how much each was trusted",
    "Usage: reef aggregate [OPTIONS] MODEL... -o OUT\n\n"
    "Merges checkpoints of the same model into one, so that the influence of bad ones is bounded, and prints how much\n"
    "each was trusted. MODEL is a safetensors, npy or npz file, or a folder in Hugging Face's layout\n"
    "(model.safetensors, or shards with their index); OUT is of the same kind, or safetensors if\n"
    "the models are npz files. Files of any size are read in blocks.\n",
    OPTIONS(options),
    "Trust is the mean effective weight of a file over its fair share: 1 is its full share, 0 means ignored. "
    "`rejected`\n"
    "is the share of the numbers in which it had no weight.\n\n"
    "Exit codes: 0 done, 1 the job failed (a file cannot be written, too many malicious models), 2 wrong usage,\n"
    "3 bad data: a file cannot be read, is malformed, or differs from the others.\n\n"
    "  reef aggregate site*.safetensors -o merged.safetensors\n"
    "  reef aggregate --rule vref --trust trust.csv a.safetensors b.safetensors c.safetensors -o merged.safetensors\n"
    "  reef aggregate siteA/ siteB/ siteC/ -o merged/\n",
    VALUE_MODEL,
    NULL,
    run_aggregate,
};
