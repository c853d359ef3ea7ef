/* reef list: everything that has a name in an experiment, and its parameters, straight from the registries. */
#include "commands.h"
#include "json.h"
#include "plugins.h"
#include "terminal.h"

#include <math.h>
#include <reef/reef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    unsigned bit;
    const char *text;
} trait_texts[] = {
    {REEF_TRAIT_WEIGHTS, "uses unequal weights"},
    {REEF_TRAIT_REPLICATION, "an integer weight equals that many copies of the input"},
    {REEF_TRAIT_PERMUTATION, "the order of the inputs does not matter"},
    {REEF_TRAIT_TRANSLATION, "shifting all inputs shifts the result"},
    {REEF_TRAIT_SCALE, "scaling all inputs scales the result"},
    {REEF_TRAIT_HULL, "each coordinate stays between the smallest and the largest input"},
    {REEF_TRAIT_ROBUST, "as many malicious inputs as it tolerates have bounded influence"},
    {REEF_TRAIT_CENTRE, "remembers the last result (reef_state)"},
    {REEF_TRAIT_SENDERS, "remembers every sender (reef_state)"},
    {REEF_TRAIT_SELF, "can use the receiver's own input"},
};

static void print_range(const reef_field *field)
{
    if (field->type == REEF_FIELD_BOOL) {
        printf("true|false");
    } else if (field->type == REEF_FIELD_MALICIOUS) {
        printf("a count, a fraction, or max");
    } else if (field->type == REEF_FIELD_TEXT) {
        printf("text");
    } else if (field->type == REEF_FIELD_REST) {
        printf("any key=value");
    } else if (field->type != REEF_FIELD_WORD) {
        printf(field->type == REEF_FIELD_INT ? "whole number" : "number");
        if (field->max > 1e300) {
            printf(" from %g", field->min);
        } else if (field->min != 0 || field->max != 0) {
            printf(" %g to %g", field->min, field->max);
        }
        printf("%s", field->words ? ", or " : "");
    }
    for (int i = 0; field->words && field->words[i]; i++) {
        printf("%s%s", i ? "|" : "", field->words[i]);
    }
}

static void print_field(const reef_field *field)
{
    printf("  %s=%s\n      %s\n      takes: ", field->name, field->preset, field->help);
    print_range(field);
    if (field->unit && field->unit[0]) {
        printf("  (unit: %s)", field->unit);
    }
    printf("\n");
}

static const char *kind_of(const reef_rule *rule)
{
    if (rule->mix) {
        return "pre-aggregator";
    }
    if (rule->weigh) {
        return rule->column ? "selects inputs, then works elementwise" : "one weight per input";
    }
    return "elementwise";
}

/* What a report of the rule has besides trust. */
static void print_diagnostics(const char *title, const reef_diagnostic *table, ptrdiff_t count)
{
    if (count > 0) {
        printf("\n%s\n", title);
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        printf("  %s\n      %s\n", table[i].name, table[i].meaning);
    }
}

/* What `reef list` calls the families, in the order in which it names them. Rules come first and have more to say. */
static const struct shelf {
    reef_family family;
    const char *name; /* the plural is what the user types */
    const char *title;
} shelves[] = {
    {REEF_FAMILY_RULE, "rules", "Rules"},
    {REEF_FAMILY_GRAPH, "graphs", "Graphs: which agents hear each other"},
    {REEF_FAMILY_WEIGHTS, "weights", "Weights: combination weights that agents give to their neighbours"},
    {REEF_FAMILY_LINKS, "links", "Links: which links are up in a round"},
    {REEF_FAMILY_PROBLEM, "problems", "Problems: what agents learn"},
    {REEF_FAMILY_SOURCE, "sources", "Sources: where the data of a problem comes from"},
    {REEF_FAMILY_PARTITION, "partitions", "Partitions: how data is distributed over agents"},
    {REEF_FAMILY_STRATEGY, "strategies", "Strategies: how agents adapt, exchange and combine"},
    {REEF_FAMILY_ATTACK, "attacks", "Attacks: what malicious agents send"},
    {REEF_FAMILY_PLACEMENT, "placements", "Placements: which agents are malicious"},
};
enum { SHELVES = sizeof shelves / sizeof shelves[0], RULES = 0 };

static const reef_rule *rule_of(const reef_kind *kind)
{
    return (const void *)kind;
}

static void print_traits(const reef_rule *rule)
{
    printf("  kind:      %s\n", kind_of(rule));
    if (rule->bound_text) {
        printf("  tolerates: f malicious of n inputs if %s\n", rule->bound_text);
    }
    printf("\nTraits (with the parameters below)\n");
    for (size_t i = 0; i < sizeof trait_texts / sizeof trait_texts[0]; i++) {
        if (rule->traits & trait_texts[i].bit) {
            printf("  - %s\n", trait_texts[i].text);
        }
    }
    if (!(rule->traits & REEF_TRAIT_WEIGHTS)) {
        printf("  - refuses unequal weights\n");
    }
}

static void print_kind(const struct shelf *shelf, const reef_kind *kind)
{
    ptrdiff_t count = 0;
    const reef_field *common = reef_kind_common(shelf->family, kind, &count);
    printf("%s%s%s - %s\n", tint_on(stdout, TINT_HEADING), kind->name, tint_off(stdout), kind->summary);
    if (kind->citation[0]) {
        printf("  source:    %s\n", kind->citation);
    }
    if (shelf->family == REEF_FAMILY_RULE) {
        print_traits(rule_of(kind));
    }
    printf("\nParameters (with their defaults)\n");
    for (ptrdiff_t i = 0; i < kind->field_count; i++) {
        print_field(&kind->fields[i]);
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        print_field(&common[i]);
    }
    if (kind->field_count + count == 0) {
        printf("  none\n");
    }
    const reef_memory *memory = shelf->family == REEF_FAMILY_RULE ? rule_of(kind)->memory : NULL;
    if (memory) {
        print_diagnostics("Tests of every sender (each leaves a factor of its weight, 0 to 1)", memory->factors,
                          memory->factor_count);
        print_diagnostics("Numbers about the round", memory->numbers, memory->number_count);
    }
}

/* "attacks", or "attack". */
static bool names(const char *plural, const char *typed)
{
    size_t length = strlen(plural);
    return strcmp(plural, typed) == 0 || (strlen(typed) == length - 1 && strncmp(plural, typed, length - 1) == 0);
}

static const struct shelf *find_shelf(const char *name)
{
    for (int i = 0; i < SHELVES; i++) {
        if (names(shelves[i].name, name)) {
            return &shelves[i];
        }
    }
    return NULL;
}

static void print_names(const reef_context *context, const struct shelf *shelf, int width, bool mixers)
{
    const reef_kind *kind = NULL;
    for (ptrdiff_t i = 0; (kind = reef_kind_at(context, shelf->family, i)) != NULL; i++) {
        if (shelf->family != REEF_FAMILY_RULE || (rule_of(kind)->mix != NULL) == mixers) {
            printf("  %-*s %s\n", width, kind->name, kind->summary);
        }
    }
}

static void print_shelf(const reef_context *context, const struct shelf *shelf)
{
    printf("%s%s%s\n", tint_on(stdout, TINT_HEADING), shelf->title, tint_off(stdout));
    if (shelf->family != REEF_FAMILY_RULE) {
        print_names(context, shelf, 18, false);
        printf("\n`reef list %s NAME` shows parameters and defaults.\n", shelf->name);
        return;
    }
    print_names(context, shelf, 10, false);
    printf("\nPre-aggregators (before a rule, as in \"nnm:f=4 | ref\")\n");
    print_names(context, shelf, 10, true);
    printf("\n`reef list RULE` shows parameters, defaults, traits and the source. Also:");
    for (int i = RULES + 1; i < SHELVES; i++) {
        printf("%s `reef list %s`", i > RULES + 1 ? "," : "", shelves[i].name);
    }
    printf(".\n");
}

/* ---- JSON ---- */

static void json_field(json *j, const reef_field *field)
{
    static const char *const types[] = {
        [REEF_FIELD_INT] = "whole number",   [REEF_FIELD_REAL] = "number",
        [REEF_FIELD_BOOL] = "true or false", [REEF_FIELD_WORD] = "word",
        [REEF_FIELD_TEXT] = "text",          [REEF_FIELD_MALICIOUS] = "count, fraction or max",
    };
    bool limited = field->min != 0 || field->max != 0;
    json_open(j, NULL, '{');
    json_text(j, "name", field->name);
    json_text(j, "type", types[field->type]);
    json_text(j, "default", field->preset);
    json_text(j, "help", field->help);
    json_text(j, "unit", field->unit && field->unit[0] ? field->unit : NULL);
    json_number(j, "min", limited ? field->min : (double)NAN);
    json_number(j, "max", limited && field->max < 1e300 ? field->max : (double)NAN);
    json_open(j, "words", '[');
    for (int i = 0; field->words && field->words[i]; i++) {
        json_text(j, NULL, field->words[i]);
    }
    json_close(j);
    json_close(j);
}

static void json_rule(json *j, const reef_rule *rule)
{
    json_text(j, "kind", kind_of(rule));
    json_text(j, "tolerates", rule->bound_text);
    json_open(j, "properties", '[');
    for (size_t i = 0; i < sizeof trait_texts / sizeof trait_texts[0]; i++) {
        if (rule->traits & trait_texts[i].bit) {
            json_text(j, NULL, trait_texts[i].text);
        }
    }
    json_close(j);
}

static void json_kind(json *j, const struct shelf *shelf, const reef_kind *kind)
{
    ptrdiff_t count = 0;
    const reef_field *common = reef_kind_common(shelf->family, kind, &count);
    json_open(j, NULL, '{');
    json_text(j, "family", shelf->name);
    json_text(j, "name", kind->name);
    json_text(j, "summary", kind->summary);
    json_text(j, "source", kind->citation[0] ? kind->citation : NULL);
    if (shelf->family == REEF_FAMILY_RULE) {
        json_rule(j, rule_of(kind));
    }
    json_open(j, "parameters", '[');
    for (ptrdiff_t i = 0; i < kind->field_count; i++) {
        json_field(j, &kind->fields[i]);
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        json_field(j, &common[i]);
    }
    json_close(j);
    json_close(j);
}

/* All kinds of the shelves from `first` up to `past`. */
static void json_shelves(const reef_context *context, int first, int past)
{
    const reef_kind *kind = NULL;
    json j = json_start(stdout);
    json_open(&j, NULL, '[');
    for (int s = first; s < past; s++) {
        for (ptrdiff_t i = 0; (kind = reef_kind_at(context, shelves[s].family, i)) != NULL; i++) {
            json_kind(&j, &shelves[s], kind);
        }
    }
    json_close(&j);
}

/* ---- the command ---- */

typedef struct request {
    reef_context *context;
    bool as_json;
} request;

/* Prints it if it is there. */
static bool found_on(const request *r, const struct shelf *shelf, const char *name)
{
    const reef_kind *kind = reef_kind_find(r->context, shelf->family, name);
    if (kind && r->as_json) {
        json j = json_start(stdout);
        json_open(&j, NULL, '[');
        json_kind(&j, shelf, kind);
        json_close(&j);
    } else if (kind) {
        print_kind(shelf, kind);
    }
    return kind != NULL;
}

/* The library's own message knows the nearest name of a rule. */
static int no_rule(reef_context *context, const char *name)
{
    reef_agg *agg = NULL;
    reef_error error = {REEF_OK, "give the name of a rule alone, without parameters"};
    if (reef_agg_create(context, &agg, name, &error) == REEF_OK) {
        reef_agg_destroy(&agg);
    }
    fprintf(stderr, "reef list: %s\n", error.text);
    return EXIT_USAGE;
}

/* What nearest_word looks through. */
typedef struct names_of {
    const reef_context *context;
    const struct shelf *shelf;
} names_of;

static const char *name_at(const void *user, int i)
{
    const names_of *n = user;
    const reef_kind *kind = reef_kind_at(n->context, n->shelf->family, i);
    return kind ? kind->name : NULL;
}

static int list_kind(const request *r, const struct shelf *shelf, const char *name)
{
    char shown[80];
    if (found_on(r, shelf, name)) {
        return EXIT_DONE;
    }
    if (shelf->family == REEF_FAMILY_RULE) {
        return no_rule(r->context, name);
    }
    const names_of all = {r->context, shelf};
    int meant = nearest_word(name, name_at, &all);
    fprintf(stderr, "reef list: there is no '%s' among the %s; ", printable(name, shown, sizeof shown), shelf->name);
    if (meant >= 0) {
        fprintf(stderr, "did you mean '%s'? ", name_at(&all, meant));
    }
    fprintf(stderr, "See `reef list %s`\n", shelf->name);
    return EXIT_USAGE;
}

/* Whatever has that name, rules first. */
static int list_any(const request *r, const char *name)
{
    for (int i = 0; i < SHELVES; i++) {
        if (found_on(r, &shelves[i], name)) {
            return EXIT_DONE;
        }
    }
    return no_rule(r->context, name);
}

static int list(const request *r, int argc, char **argv)
{
    const struct shelf *shelf = argc > 1 ? find_shelf(argv[1]) : &shelves[RULES];
    if (argc > 3 || (argc == 3 && !shelf)) {
        return bad_usage(&command_list, "one name at a time, not also", argv[argc - 1]);
    }
    if (argc == 3) {
        return list_kind(r, shelf, argv[2]);
    }
    if (!shelf) {
        return list_any(r, argv[1]);
    }
    if (r->as_json) {
        int first = (int)(shelf - shelves);
        json_shelves(r->context, first, argc > 1 ? first + 1 : SHELVES);
    } else {
        print_shelf(r->context, shelf);
    }
    return EXIT_DONE;
}

enum { OPT_JSON = 256 };
static const option_row options[] = {
    {OPT_JSON, "json", NULL, "prints JSON, described in reef-list(1); without KIND and NAME: of all kinds", VALUE_NONE,
     NULL},
};

static int take_option(void *user, int code, const char *value)
{
    request *r = user;
    (void)code;
    (void)value;
    r->as_json = true;
    return EXIT_DONE;
}

static int run_list(int argc, char **argv)
{
    request r = {.as_json = false};
    reef_error error;
    int code = read_options(&command_list, &argc, argv, take_option, &r);
    if (code != EXIT_DONE) {
        return code;
    }
    if (plugins_context(&r.context, &error) != REEF_OK) {
        fprintf(stderr, "reef list: %s\n", error.text);
        return EXIT_FAILED;
    }
    code = list(&r, argc, argv);
    reef_context_destroy(&r.context);
    return code;
}

const command command_list = {
    "list",
    "list rules, attacks, graphs, problems, ..., or explain one of them",
    "Usage: reef list [NAME] [OPTIONS]\n"
    "       reef list KIND [NAME] [OPTIONS]\n\n"
    "Without an argument: every rule and pre-aggregator, one line each.\n"
    "With a name: its source, how many malicious inputs it tolerates, its properties, and its parameters with defaults "
    "and\n"
    "ranges. KIND is rules, graphs, weights, links, problems, sources, partitions, strategies, attacks or "
    "placements.\n\n"
    "A rule string is rule:key=value,..., with pre-aggregators before it:\n"
    "  ref:efficiency=0.98        nnm:f=4 | ref        trimmed:f=25%\n",
    OPTIONS(options),
    "Exit codes: 0 done, 1 a plug-in cannot be loaded, 2 there is nothing of that name.\n",
    VALUE_NAME,
    "rules graphs weights links problems sources partitions strategies attacks placements",
    run_list,
};
