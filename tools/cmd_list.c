/* reef list: everything that has a name in an experiment, and its parameters, straight from the registries. */
#include "commands.h"

#include <reef/reef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    unsigned bit;
    const char *text;
} trait_texts[] = {
    {REEF_TRAIT_WEIGHTS, "uses unequal weights"},
    {REEF_TRAIT_REPLICATION, "an integer weight equals that many copies of the row"},
    {REEF_TRAIT_PERMUTATION, "the order of the rows does not matter"},
    {REEF_TRAIT_TRANSLATION, "shifting all rows shifts the result"},
    {REEF_TRAIT_SCALE, "scaling all rows scales the result"},
    {REEF_TRAIT_HULL, "each coordinate stays between the smallest and the largest input"},
    {REEF_TRAIT_ROBUST, "liars within its bound cannot carry the result away"},
    {REEF_TRAIT_CENTRE, "remembers the last result (reef_state)"},
    {REEF_TRAIT_SENDERS, "remembers every sender (reef_state)"},
    {REEF_TRAIT_SELF, "can use the receiver's own row"},
};

static void print_range(const reef_field *field)
{
    if (field->type == REEF_FIELD_BOOL) {
        printf("true|false");
    } else if (field->type == REEF_FIELD_LIARS) {
        printf("a count, a fraction, or max");
    } else if (field->type == REEF_FIELD_TEXT) {
        printf("text");
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
        return rule->column ? "chooses rows, then elementwise" : "one weight per row";
    }
    return "elementwise";
}

static void print_rule(const reef_rule *rule)
{
    printf("%s - %s\n", rule->name, rule->summary);
    if (rule->citation[0]) {
        printf("  after: %s\n", rule->citation);
    }
    printf("  kind:  %s\n", kind_of(rule));
    if (rule->bound_text) {
        printf("  bears: %s\n", rule->bound_text);
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
    printf("\nParameters (with their defaults)\n");
    for (ptrdiff_t i = 0; i < rule->field_count; i++) {
        print_field(&rule->fields[i]);
    }
    if (!rule->mix) {
        printf("  nan=drop-row\n      what to do with NaN and Inf: leave out the row, leave out the entry, or refuse\n"
               "      takes: drop-row|drop-coordinate|error\n");
    } else if (rule->field_count == 0) {
        printf("  none\n");
    }
}

/* ---- kinds of other things ---- */

static const reef_kind *problem_kind(ptrdiff_t index)
{
    const reef_problem_kind *kind = reef_problem_at(index);
    return kind ? &kind->kind : NULL;
}

static const reef_kind *attack_kind(ptrdiff_t index)
{
    const reef_attack_kind *kind = reef_attack_at(index);
    return kind ? &kind->kind : NULL;
}

/* The plural is what the user types; fields that all kinds take may be NULL. */
static const struct shelf {
    const char *name;
    const reef_kind *(*at)(ptrdiff_t index);
    const reef_field *(*common)(ptrdiff_t *count);
    const char *title;
} shelves[] = {
    {"graphs", reef_graph_kind_at, reef_graph_common_fields, "Graphs: who hears whom"},
    {"weights", reef_weight_kind_at, NULL, "Weights: how much agents give to those they hear"},
    {"links", reef_link_kind_at, reef_link_common_fields, "Links that fail or change"},
    {"problems", problem_kind, NULL, "Problems: what agents learn"},
    {"strategies", reef_strategy_at, NULL, "Strategies: how agents adapt, exchange and combine"},
    {"attacks", attack_kind, reef_attack_common_fields, "Attacks: what liars send"},
};
enum { SHELVES = sizeof shelves / sizeof shelves[0] };

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

static void print_shelf(const struct shelf *shelf)
{
    printf("%s\n", shelf->title);
    for (ptrdiff_t i = 0; shelf->at(i); i++) {
        printf("  %-18s %s\n", shelf->at(i)->name, shelf->at(i)->summary);
    }
    printf("\n`reef list %s NAME` shows parameters and defaults.\n", shelf->name);
}

static void print_kind(const struct shelf *shelf, const reef_kind *kind)
{
    ptrdiff_t count = 0;
    const reef_field *common = shelf->common ? shelf->common(&count) : NULL;
    printf("%s - %s\n", kind->name, kind->summary);
    if (kind->citation[0]) {
        printf("  after: %s\n", kind->citation);
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
}

/* Prints it if it is there. */
static bool found_on(const struct shelf *shelf, const char *name)
{
    for (ptrdiff_t i = 0; shelf->at(i); i++) {
        if (strcmp(shelf->at(i)->name, name) == 0) {
            print_kind(shelf, shelf->at(i));
            return true;
        }
    }
    return false;
}

static int list_kind(const struct shelf *shelf, const char *name)
{
    if (found_on(shelf, name)) {
        return EXIT_DONE;
    }
    fprintf(stderr, "reef list: there is no '%s' among the %s; `reef list %s` names them\n", name, shelf->name,
            shelf->name);
    return EXIT_USAGE;
}

/* ---- the command ---- */

static void print_rules(void)
{
    for (int pre = 0; pre < 2; pre++) {
        printf(pre ? "\nPre-aggregators (before a rule, as in \"nnm:f=4 | ref\")\n" : "Rules\n");
        for (ptrdiff_t i = 0; i < reef_rule_count(NULL); i++) {
            const reef_rule *rule = reef_rule_at(NULL, i);
            if ((rule->mix != NULL) == pre) {
                printf("  %-10s %s\n", rule->name, rule->summary);
            }
        }
    }
    printf("\n`reef list RULE` shows parameters, defaults, traits and the source. Also:");
    for (int i = 0; i < SHELVES; i++) {
        printf("%s `reef list %s`", i ? "," : "", shelves[i].name);
    }
    printf(".\n");
}

static int list_rule(const char *name)
{
    const reef_rule *rule = reef_rule_find(NULL, name);
    if (!rule) { /* the library's own message knows the nearest name */
        reef_agg *agg = NULL;
        reef_error error = {REEF_OK, "that is a spec, not the name of a rule"};
        if (reef_agg_create(&agg, name, &error) == REEF_OK) {
            reef_agg_destroy(&agg);
        }
        fprintf(stderr, "reef list: %s\n", error.text);
        return EXIT_USAGE;
    }
    print_rule(rule);
    return EXIT_DONE;
}

static int run_list(int argc, char **argv)
{
    bool rules = argc == 1 || names("rules", argv[1]);
    const struct shelf *shelf = argc > 1 ? find_shelf(argv[1]) : NULL;
    if (argc > 3 || (argc == 3 && !shelf && !rules)) {
        fprintf(stderr, "reef list: one name at a time; see `reef list --help`\n");
        return EXIT_USAGE;
    }
    if (argc == 3) {
        return rules ? list_rule(argv[2]) : list_kind(shelf, argv[2]);
    }
    if (rules) {
        print_rules();
        return EXIT_DONE;
    }
    if (shelf) {
        print_shelf(shelf);
        return EXIT_DONE;
    }
    for (int i = 0; !reef_rule_find(NULL, argv[1]) && i < SHELVES; i++) {
        if (found_on(&shelves[i], argv[1])) {
            return EXIT_DONE;
        }
    }
    return list_rule(argv[1]);
}

const command command_list = {
    "list",
    "list rules, graphs, problems, attacks, ..., or explain one of them",
    "Usage: reef list [NAME]\n"
    "       reef list KIND [NAME]\n\n"
    "Without an argument: every rule and pre-aggregator with one line on what it does.\n"
    "With one: its source, what it can bear, its traits, and its parameters with defaults and ranges.\n"
    "KIND is rules, graphs, weights, links, problems, strategies or attacks.\n\n"
    "A rule is used by its spec, rule:key=value,..., with pre-aggregators before it:\n"
    "  ref:efficiency=0.98        nnm:f=4 | ref        trimmed:f=25%\n",
    NULL,
    0,
    "Exit codes: 0 done, 2 there is no such thing.\n",
    VALUE_WORDS,
    "rules graphs weights links problems strategies attacks",
    run_list,
};
