/* reef list: the rules and their parameters, straight from the registry. */
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

static void print_all(void)
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
    printf("\n`reef list RULE` shows parameters, defaults, traits and the source.\n");
}

static int run_list(int argc, char **argv)
{
    if (argc > 2) {
        fprintf(stderr, "reef list: one rule at a time; see `reef list --help`\n");
        return EXIT_USAGE;
    }
    if (argc == 1) {
        print_all();
        return EXIT_DONE;
    }
    const reef_rule *rule = reef_rule_find(NULL, argv[1]);
    if (!rule) { /* the library's own message knows the nearest name */
        reef_agg *agg = NULL;
        reef_error error = {REEF_OK, "that is a spec, not the name of a rule"};
        if (reef_agg_create(&agg, argv[1], &error) == REEF_OK) {
            reef_agg_destroy(&agg);
        }
        fprintf(stderr, "reef list: %s\n", error.text);
        return EXIT_USAGE;
    }
    print_rule(rule);
    return EXIT_DONE;
}

const command command_list = {
    "list",
    "list the aggregation rules, or explain one of them",
    "Usage: reef list [RULE]\n\n"
    "Without an argument: every rule and pre-aggregator with one line on what it does.\n"
    "With one: its source, what it can bear, its traits, and its parameters with defaults and ranges.\n\n"
    "A rule is used by its spec, rule:key=value,..., with pre-aggregators before it:\n"
    "  ref:efficiency=0.98        nnm:f=4 | ref        trimmed:f=25%\n",
    run_list,
};
