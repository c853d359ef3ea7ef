/* reef keys: keys of agents, and signed run files. */
#include "commands.h"
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    const char *key, *to, *coordinator, *after;
    double current; /* round */
} arguments;

enum { OPT_KEY = 256, OPT_COORDINATOR, OPT_AFTER, OPT_ROUND };
static const option_row options[] = {
    {OPT_KEY, "key", "FILE", "sign: the coordinator's key file", VALUE_FILE, NULL},
    {'o', "output", "FILE", "new: the key file (default: NAME.key); sign: the run file", VALUE_FILE, NULL},
    {OPT_AFTER, "after", "RUN.yaml", "sign: the run file of the epoch that the draft follows", VALUE_FILE, NULL},
    {OPT_ROUND, "round", "N", "sign: the current round of the run (default: 0); `from` must be at least 10 later",
     VALUE_TEXT, NULL},
    {OPT_COORDINATOR, "coordinator", "R...", "verify: the identity that must have signed the file", VALUE_TEXT, NULL},
};

static int take_option(void *user, int code, const char *value)
{
    arguments *a = user;
    char *end = NULL;
    switch (code) {
    case OPT_KEY:
        a->key = value;
        break;
    case OPT_AFTER:
        a->after = value;
        break;
    case OPT_COORDINATOR:
        a->coordinator = value;
        break;
    case OPT_ROUND:
        a->current = strtod(value, &end);
        if (end == value || *end != '\0' || !(a->current >= 0 && a->current <= 1e14)) {
            return bad_usage(&command_keys, "--round takes a number, not", value);
        }
        break;
    default:
        a->to = value;
        break;
    }
    return EXIT_DONE;
}

static int complain(const reef_error *error)
{
    fprintf(stderr, "reef keys: %s\n", error->text);
    return net_exit_code(error->status);
}

/* As run files have it: another name could not be enrolled. */
static bool is_name(const char *name)
{
    size_t length = strlen(name);
    return length >= 1 && length <= 32 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == length;
}

static int make_key(const arguments *a, const char *name)
{
    reef_status (*make)(const char *, char *, reef_error *) = NULL;
    char keys[REEF_NET_KEYS_SIZE];
    char path[4096];
    reef_error error = {REEF_OK, ""};
    if (!is_name(name)) {
        return bad_usage(&command_keys, "a name has 1 to 32 letters a-z, digits, _ and -, not", name);
    }
    if (snprintf(path, sizeof path, "%s%s", a->to ? a->to : name, a->to ? "" : ".key") >= (int)sizeof path) {
        return bad_usage(&command_keys, "the name is too long", NULL);
    }
    if (!NET_FIND("reef_net_key_make", make, &error) || make(path, keys, &error) != REEF_OK) {
        return complain(&error);
    }
    printf("%s: \"%s\"\n", name, keys);
    fprintf(stderr,
            "reef keys: %s is secret. Give the line above to the coordinator of the run: it goes under agents:, "
            "or for an observer or a leaf only its U... under observers: or leaves:\n",
            printable_path(path));
    return EXIT_DONE;
}

static int show_key(const arguments *a, const char *path)
{
    reef_status (*show)(const char *, char *, reef_error *) = NULL;
    char keys[REEF_NET_KEYS_SIZE];
    reef_error error = {REEF_OK, ""};
    (void)a;
    if (!NET_FIND("reef_net_key_show", show, &error) || show(path, keys, &error) != REEF_OK) {
        return complain(&error);
    }
    printf("%s\n", keys);
    return EXIT_DONE;
}

static int sign_draft(const arguments *a, const char *draft)
{
    reef_status (*sign)(const char *, const char *, const char *, int64_t, const char *, reef_error *) = NULL;
    reef_error error = {REEF_OK, ""};
    if (!a->key || !a->to) {
        return bad_usage(&command_keys, "sign needs --key FILE and -o FILE", NULL);
    }
    if (!NET_FIND("reef_net_sign_after", sign, &error) ||
        sign(draft, a->key, a->after, (int64_t)a->current, a->to, &error) != REEF_OK) {
        return complain(&error);
    }
    return EXIT_DONE;
}

static int verify_file(const arguments *a, const char *path)
{
    reef_status (*check)(const char *, const char *, reef_tell *, void *, ptrdiff_t *, reef_error *) = NULL;
    reef_error error = {REEF_OK, ""};
    if (!NET_FIND("reef_net_check", check, &error) ||
        check(path, a->coordinator, net_print, NULL, NULL, &error) != REEF_OK) {
        return complain(&error);
    }
    return EXIT_DONE;
}

static int run_keys(int argc, char **argv)
{
    static const struct {
        const char *word;
        int (*run)(const arguments *a, const char *what);
    } words[] = {{"new", make_key}, {"show", show_key}, {"sign", sign_draft}, {"verify", verify_file}};
    arguments a = {0};
    int code = read_options(&command_keys, &argc, argv, take_option, &a);
    if (code != EXIT_DONE) {
        return code;
    }
    if (argc != 3) {
        return bad_usage(&command_keys, "expected: new NAME, show FILE, sign DRAFT or verify RUNFILE", NULL);
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].word, argv[1]) == 0) {
            return words[i].run(&a, argv[2]);
        }
    }
    return bad_usage(&command_keys, "new, show, sign or verify, not", argv[1]);
}

const command command_keys = {
    "keys",
    "keys of agents on a network, and signed run files",
    "Usage: reef keys new NAME [-o FILE]\n"
    "       reef keys show FILE\n"
    "       reef keys sign DRAFT.yaml --key FILE -o RUN.yaml [--after OLD.yaml --round N]\n"
    "       reef keys verify RUN.yaml [--coordinator R...]\n\n"
    "new     makes a key, writes it to a file that only you can read, and prints the line with which the\n"
    "        coordinator enrols you\n"
    "show    prints the public half of a key file\n"
    "sign    makes a run file from a draft: members, graph, rule, limits, whether models are sealed\n"
    "        (docs/network.md); with --after it checks that the file may follow another\n"
    "verify  checks a run file, and prints how many malicious and absent neighbours each agent tolerates\n",
    OPTIONS(options),
    "Exit codes: 0 done, 2 wrong usage or configuration, 3 a malformed or changed file, 5 a file cannot be read or "
    "written.\n",
    VALUE_WORDS,
    "new show sign verify",
    run_keys,
};
