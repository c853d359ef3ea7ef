/* Field tables by family, number and part. */
#include "flat/flat.h"

#include <reef/reef.h>
#include <string.h>

/* One kind of any family. */
typedef struct entry {
    const char *name, *summary, *citation;
    unsigned traits;
    const reef_field *fields;
    ptrdiff_t field_count;
    const reef_field *common; /* fields that every kind of the family takes */
    ptrdiff_t common_count;
} entry;

static entry of_head(const reef_kind *head, unsigned traits)
{
    return head ? (entry){.name = head->name,
                          .summary = head->summary,
                          .citation = head->citation,
                          .traits = traits,
                          .fields = head->fields,
                          .field_count = head->field_count}
                : (entry){0};
}

static ptrdiff_t count_rules(void)
{
    return reef_rule_count(NULL);
}

static entry rule_at(ptrdiff_t index)
{
    const reef_rule *rule = reef_rule_at(NULL, index);
    return rule ? (entry){.name = rule->name,
                          .summary = rule->summary,
                          .citation = rule->citation,
                          .traits = rule->traits,
                          .fields = rule->fields,
                          .field_count = rule->field_count}
                : (entry){0};
}

static entry attack_at(ptrdiff_t index)
{
    const reef_attack_kind *kind = reef_attack_at(index);
    entry found = of_head(kind ? &kind->kind : NULL, kind ? kind->traits : 0);
    found.common = reef_attack_common_fields(&found.common_count);
    return found;
}

static entry graph_at(ptrdiff_t index)
{
    entry found = of_head(reef_graph_kind_at(index), 0);
    found.common = reef_graph_common_fields(&found.common_count);
    return found;
}

static entry weights_at(ptrdiff_t index)
{
    return of_head(reef_weight_kind_at(index), 0);
}

static entry links_at(ptrdiff_t index)
{
    entry found = of_head(reef_link_kind_at(index), 0);
    found.common = reef_link_common_fields(&found.common_count);
    return found;
}

static entry problem_at(ptrdiff_t index)
{
    const reef_problem_kind *kind = reef_problem_at(index);
    return of_head(kind ? &kind->kind : NULL, kind ? kind->traits : 0);
}

static entry strategy_at(ptrdiff_t index)
{
    return of_head(reef_strategy_at(index), 0);
}

typedef struct family {
    const char *name;
    ptrdiff_t (*count)(void);
    entry (*at)(ptrdiff_t index);
} family;

static const family families[] = {
    {"rule", count_rules, rule_at},
    {"attack", reef_attack_count, attack_at},
    {"graph", reef_graph_kind_count, graph_at},
    {"weights", reef_weight_kind_count, weights_at},
    {"links", reef_link_kind_count, links_at},
    {"problem", reef_problem_count, problem_at},
    {"strategy", reef_strategy_count, strategy_at},
};

static const family *find_family(const char *name)
{
    for (size_t i = 0; name && i < sizeof families / sizeof *families; i++) {
        if (strcmp(families[i].name, name) == 0) {
            return &families[i];
        }
    }
    return NULL;
}

/* entry.name is NULL if there is no such kind. */
static entry find_kind(const char *name, ptrdiff_t kind)
{
    const family *found = find_family(name);
    return found ? found->at(kind) : (entry){0};
}

static const reef_field *find_field(const char *name, ptrdiff_t kind, ptrdiff_t field)
{
    entry e = find_kind(name, kind);
    if (!e.name || field < 0 || field >= e.field_count + e.common_count) {
        return NULL;
    }
    return field < e.field_count ? &e.fields[field] : &e.common[field - e.field_count];
}

ptrdiff_t reef_flat_kinds(const char *name)
{
    const family *found = find_family(name);
    return found ? found->count() : -1;
}

/* The text whose name is `part`, NULL: none has it. */
static const char *choose(const char *part, const char *const *names, const char *const *texts, size_t count)
{
    for (size_t i = 0; part && i < count; i++) {
        if (strcmp(part, names[i]) == 0) {
            return texts[i];
        }
    }
    return NULL;
}

const char *reef_flat_kind(const char *name, ptrdiff_t kind, const char *part)
{
    static const char *const names[] = {"name", "summary", "citation"};
    entry e = find_kind(name, kind);
    const char *const texts[] = {e.name, e.summary, e.citation};
    return e.name ? choose(part, names, texts, 3) : NULL;
}

unsigned reef_flat_traits(const char *name, ptrdiff_t kind)
{
    return find_kind(name, kind).traits;
}

int reef_flat_is_mixer(ptrdiff_t rule)
{
    const reef_rule *found = reef_rule_at(NULL, rule);
    return found && found->mix;
}

ptrdiff_t reef_flat_fields(const char *name, ptrdiff_t kind)
{
    entry e = find_kind(name, kind);
    return e.name ? e.field_count + e.common_count : -1;
}

const char *reef_flat_field(const char *name, ptrdiff_t kind, ptrdiff_t field, const char *part)
{
    static const char *const names[] = {"name", "preset", "unit", "help"};
    const reef_field *found = find_field(name, kind, field);
    const char *const texts[] = {found ? found->name : NULL, found ? found->preset : NULL, found ? found->unit : NULL,
                                 found ? found->help : NULL};
    return choose(part, names, texts, 4);
}

int reef_flat_field_type(const char *name, ptrdiff_t kind, ptrdiff_t field)
{
    const reef_field *found = find_field(name, kind, field);
    return found ? (int)found->type : -1;
}

double reef_flat_field_limit(const char *name, ptrdiff_t kind, ptrdiff_t field, int high)
{
    const reef_field *found = find_field(name, kind, field);
    return !found ? 0 : high ? found->max : found->min;
}

const char *reef_flat_field_word(const char *name, ptrdiff_t kind, ptrdiff_t field, ptrdiff_t word)
{
    const reef_field *found = find_field(name, kind, field);
    for (ptrdiff_t i = 0; found && found->words && found->words[i]; i++) {
        if (i == word) {
            return found->words[i];
        }
    }
    return NULL;
}
