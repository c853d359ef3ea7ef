/* The family of rules: the built-in list, and what a rule from outside must provide. */
#include "agg/driver.h"
#include "agg/pipeline.h"
#include "agg/rules/rules.h"
#include "base/error.h"

static const reef_kind *const builtin[] = {
#define REEF_AGG(name) &rfi_agg_##name.kind,
#include "agg/rules/rule_list.h"
#undef REEF_AGG
};

bool rfi_rule_is_builtin(const reef_rule *rule)
{
    for (size_t i = 0; i < RFI_COUNT(builtin); i++) {
        if (builtin[i] == &rule->kind) {
            return true;
        }
    }
    return false;
}

static bool are_named(const reef_diagnostic *table, ptrdiff_t count, ptrdiff_t most)
{
    bool named = count >= 0 && count <= most && (table || count == 0);
    for (ptrdiff_t i = 0; named && i < count; i++) {
        named = table[i].name && table[i].meaning;
    }
    return named;
}

static reef_status check_memory(const reef_rule *rule, reef_error *error)
{
    const reef_memory *memory = rule->memory;
    if (!memory != !(rule->traits & REEF_TRAIT_SENDERS)) {
        return rfi_fail(error, REEF_E_ARG,
                        "rule '%s': a rule that remembers senders needs both REEF_TRAIT_SENDERS and a memory",
                        rule->kind.name);
    }
    if (!memory) {
        return REEF_OK;
    }
    reef_status fits = rfi_check_size(memory->size, sizeof *memory, "reef_memory", error);
    if (fits != REEF_OK) {
        return fits;
    }
    if (!rule->weigh || rule->column || rule->scope || (rule->traits & REEF_TRAIT_CENTRE) || !memory->sizes) {
        return rfi_fail(error, REEF_E_ARG,
                        "rule '%s' remembers senders: it needs weigh and the sizes of its memory, and has no column, "
                        "scope or centre",
                        rule->kind.name);
    }
    if (!are_named(memory->factors, memory->factor_count, REEF_FACTORS_MAX) ||
        !are_named(memory->numbers, memory->number_count, REEF_NUMBERS_MAX)) {
        return rfi_fail(error, REEF_E_ARG,
                        "rule '%s': at most %d factors and %d numbers, each with a name and a meaning", rule->kind.name,
                        REEF_FACTORS_MAX, REEF_NUMBERS_MAX);
    }
    return REEF_OK;
}

static reef_status check_rule(const reef_kind *kind, reef_error *error)
{
    const reef_rule *rule = (const void *)kind;
    bool global = rule->weigh || rule->mix;
    if ((!rule->column && !global) || (rule->mix && (rule->column || rule->weigh || !rule->mixed))) {
        return rfi_fail(error, REEF_E_ARG, "rule '%s' needs column, weigh, both, or mix with mixed", rule->kind.name);
    }
    if (global && !rule->needs && !rule->memory) {
        return rfi_fail(error, REEF_E_ARG, "rule '%s' has weigh or mix and must state what it needs", rule->kind.name);
    }
    reef_status status = check_memory(rule, error);
    if (status != REEF_OK) {
        return status;
    }
    for (ptrdiff_t i = 0; i < rule->kind.field_count; i++) {
        if (rule->kind.fields[i].type == REEF_FIELD_MALICIOUS && (!rule->bound || !rule->bound_text)) {
            return rfi_fail(error, REEF_E_ARG,
                            "rule '%s' takes f and must state how many malicious inputs it tolerates", rule->kind.name);
        }
    }
    return REEF_OK;
}

/* A pre-aggregator hands its rows on: what to do with NaN is for the last rule. */
static bool is_mixer(const reef_kind *kind)
{
    const reef_rule *rule = (const void *)kind;
    return rule->mix != NULL;
}

static const char *const nan_words[] = {"drop-row", "drop-coordinate", "error", NULL};

static const reef_field common_fields[] = {
    {.name = "nan",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(reef_agg, nan),
     .preset = "drop-row",
     .unit = "",
     .help = "what to do with NaN and Inf: drop the input, drop the entry, or refuse",
     .words = nan_words},
};

const rfi_family rfi_family_rule = {.number = REEF_FAMILY_RULE,
                                    .size = sizeof(reef_rule),
                                    .name = "rule",
                                    .what = "rule",
                                    .builtin = builtin,
                                    .builtin_count = RFI_COUNT(builtin),
                                    .common = {"rule", common_fields, RFI_COUNT(common_fields)},
                                    .lacks_common = is_mixer,
                                    .lacks_text = "belongs to the last rule of a pipeline",
                                    .check = check_rule};
