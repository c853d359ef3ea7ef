/* The registry of rules: the built-in list, then the user's. */
#include "agg/rules.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

static const reef_rule *const builtin[] = {
#define REEF_AGG(name) &rfi_agg_##name,
#include "agg/agg_list.h"
#undef REEF_AGG
};

ptrdiff_t reef_rule_count(const reef_context *context)
{
    return RFI_COUNT(builtin) + (context ? context->rule_count : 0);
}

const reef_rule *reef_rule_at(const reef_context *context, ptrdiff_t index)
{
    if (index < 0 || index >= reef_rule_count(context)) {
        return NULL;
    }
    return index < RFI_COUNT(builtin) ? builtin[index] : context->rules[index - RFI_COUNT(builtin)];
}

const reef_rule *reef_rule_find(const reef_context *context, const char *name)
{
    for (ptrdiff_t i = 0; name && i < reef_rule_count(context); i++) {
        const reef_rule *rule = reef_rule_at(context, i);
        if (strcmp(rule->name, name) == 0) {
            return rule;
        }
    }
    return NULL;
}

/* Letters, digits, - and _, so that a name cannot break a spec string. */
static bool is_plain_name(const char *name)
{
    size_t allowed = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return allowed > 0 && allowed <= 32 && name[allowed] == '\0';
}

static reef_status check_rule(const reef_rule *rule, reef_error *error)
{
    if (!rule || !rule->name || !is_plain_name(rule->name)) {
        return rfi_fail(error, REEF_E_ARG, "a rule needs a name of 1 to 32 letters, digits, - or _");
    }
    if (!rule->summary || !rule->citation || (rule->field_count > 0 && !rule->fields)) {
        return rfi_fail(error, REEF_E_ARG, "rule '%s' needs a summary, a citation (\"\" if none) and its fields",
                        rule->name);
    }
    if (rule->field_count < 0 || rule->field_count > 32) {
        return rfi_fail(error, REEF_E_ARG, "rule '%s' has %td fields; at most 32 are possible", rule->name,
                        rule->field_count);
    }
    bool global = rule->weigh || rule->mix;
    if ((!rule->column && !global) || (rule->mix && (rule->column || rule->weigh || !rule->mixed))) {
        return rfi_fail(error, REEF_E_ARG, "rule '%s' needs column, weigh, both, or mix with mixed", rule->name);
    }
    if (global && !rule->needs) {
        return rfi_fail(error, REEF_E_ARG, "rule '%s' has weigh or mix and must say what it needs", rule->name);
    }
    if (rule->traits & REEF_TRAIT_SENDERS) {
        return rfi_fail(error, REEF_E_ARG, "rule '%s': a memory per sender is for the library's own rules", rule->name);
    }
    for (ptrdiff_t i = 0; i < rule->field_count; i++) {
        if (rule->fields[i].type == REEF_FIELD_LIARS && (!rule->bound || !rule->bound_text)) {
            return rfi_fail(error, REEF_E_ARG, "rule '%s' takes f and must say how many liars it can bear", rule->name);
        }
    }
    return REEF_OK;
}

static bool grow(reef_context *context)
{
    if (context->rule_count < context->rule_room) {
        return true;
    }
    ptrdiff_t room = context->rule_room ? 2 * context->rule_room : 8;
    const reef_rule **rules = rfi_allocate(context, (size_t)room * sizeof(const reef_rule *));
    if (!rules) {
        return false;
    }
    for (ptrdiff_t i = 0; i < context->rule_count; i++) {
        rules[i] = context->rules[i];
    }
    rfi_release(context, (void *)context->rules);
    context->rules = rules;
    context->rule_room = room;
    return true;
}

reef_status reef_agg_register(reef_context *context, const reef_rule *rule, reef_error *error)
{
    if (!context) {
        return rfi_fail(error, REEF_E_ARG, "reef_agg_register: rules are added to a context, and it is NULL");
    }
    reef_status status = check_rule(rule, error);
    if (status != REEF_OK) {
        return status;
    }
    if (reef_rule_find(context, rule->name)) {
        return rfi_fail(error, REEF_E_NAME, "there is a rule named '%s' already", rule->name);
    }
    if (!grow(context)) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory to register rule '%s'", rule->name);
    }
    context->rules[context->rule_count++] = rule;
    return REEF_OK;
}
