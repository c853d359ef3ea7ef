/* Spec strings: rule[:key=value,...][ | rule...] -> reef_agg, and back. */
#include "agg/pipeline.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/spec.h"

#include <math.h>
#include <string.h>

static const char *const nan_words[] = {"drop-row", "drop-coordinate", "error", NULL};

/* What every last rule takes beside its own fields. */
static const reef_field common_fields[] = {
    {.name = "nan",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(reef_agg, nan),
     .preset = "drop-row",
     .unit = "",
     .help = "what to do with NaN and Inf: leave out the row, leave out the entry, or refuse",
     .words = nan_words},
};

static rfi_fields fields_of(const reef_rule *rule)
{
    return (rfi_fields){rule->name, rule->fields, rule->field_count};
}

static const char *rule_name(const void *context, ptrdiff_t i)
{
    return reef_rule_at(context, i)->name;
}

static rfi_catalogue rules_of(const reef_context *context)
{
    return (rfi_catalogue){.what = "rule", .name = rule_name, .user = context, .count = reef_rule_count(context)};
}

static reef_status set_parameters(reef_agg *agg, rfi_stage *stage, rfi_slice list, bool last, reef_error *error)
{
    rfi_target targets[] = {
        {fields_of(stage->rule), stage->params, NULL},
        {{stage->rule->name, common_fields, RFI_COUNT(common_fields)},
         agg,
         last ? NULL : "belongs to the last rule of a pipe"},
    };
    return rfi_spec_set(targets, RFI_COUNT(targets), list, error);
}

static const reef_field *liars_field(const reef_rule *rule)
{
    for (ptrdiff_t i = 0; i < rule->field_count; i++) {
        if (rule->fields[i].type == REEF_FIELD_LIARS) {
            return &rule->fields[i];
        }
    }
    return NULL;
}

static reef_status add_stage(reef_agg *agg, rfi_slice text, bool last, reef_error *error)
{
    rfi_slice list;
    bool has_list = false;
    rfi_slice name = rfi_trim(rfi_cut(text, ':', &list, &has_list));
    rfi_catalogue rules = rules_of(agg->context);
    const reef_rule *rule = reef_rule_at(agg->context, rfi_catalogue_find(&rules, name));
    if (name.length == 0) {
        return rfi_fail(error, REEF_E_SYNTAX, "a rule name is missing; a spec reads rule:key=value,... | rule:...");
    }
    if (!rule) {
        return rfi_catalogue_unknown(&rules, name, error);
    }
    if ((rule->mix != NULL) == last) {
        return rfi_fail(error, REEF_E_SYNTAX,
                        last ? "'%s' is a pre-aggregator; it needs a rule after it, for instance \"%s | ref\""
                             : "'%s' is no pre-aggregator; only the last part of a pipe may be a rule like \"%s\"",
                        rule->name, rule->name);
    }
    rfi_stage *stage = &agg->stages[agg->count];
    *stage = (rfi_stage){rule, NULL, liars_field(rule)};
    stage->params = rfi_allocate(agg->context, rule->params_size ? rule->params_size : 1);
    if (!stage->params) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for rule '%s'", rule->name);
    }
    agg->count++;
    memset(stage->params, 0, rule->params_size);
    rfi_fields own = fields_of(rule);
    reef_status status = rfi_fields_preset(&own, stage->params, error);
    if (status == REEF_OK && has_list) {
        status = set_parameters(agg, stage, list, last, error);
    }
    if (status == REEF_OK && rule->prepare) {
        status = rule->prepare(stage->params, error);
    }
    return status;
}

static reef_status add_stages(reef_agg *agg, const char *spec, reef_error *error)
{
    rfi_slice text;
    bool more = true;
    reef_status status = rfi_spec_text(spec, &text, error);
    if (status != REEF_OK) {
        return status;
    }
    while (more) {
        rfi_slice rest;
        rfi_slice part = rfi_trim(rfi_cut(text, '|', &rest, &more));
        if (agg->count == RFI_STAGES_MAX) {
            return rfi_fail(error, REEF_E_SYNTAX, "a pipe has at most %d parts", RFI_STAGES_MAX);
        }
        status = add_stage(agg, part, !more, error);
        if (status != REEF_OK) {
            return status;
        }
        text = rest;
    }
    const rfi_stage *last = &agg->stages[agg->count - 1];
    if (agg->count > 1 && last->rule->needs && (last->rule->needs(last->params) & REEF_NEED_SELF)) {
        return rfi_fail(error, REEF_E_SYNTAX,
                        "%s: keep_self needs the receiver's own row, and after a pre-aggregator there is none",
                        last->rule->name);
    }
    if (agg->count > 1 && (last->rule->traits & REEF_TRAIT_SENDERS)) {
        return rfi_fail(error, REEF_E_SYNTAX,
                        "%s remembers every sender, and a pre-aggregator mixes their rows; use it alone",
                        last->rule->name);
    }
    return REEF_OK;
}

reef_status reef_agg_create_in(reef_context *context, reef_agg **agg, const char *spec, reef_error *error)
{
    if (!agg || !spec) {
        return rfi_fail(error, REEF_E_ARG, "reef_agg_create: %s is NULL", agg ? "spec" : "agg");
    }
    reef_agg *made = rfi_allocate(context, sizeof *made);
    if (!made) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for an aggregator");
    }
    *made = (reef_agg){.context = context};
    reef_status status = add_stages(made, spec, error);
    if (status != REEF_OK) {
        reef_agg_destroy(&made);
        return status;
    }
    *agg = made;
    return REEF_OK;
}

reef_status reef_agg_create(reef_agg **agg, const char *spec, reef_error *error)
{
    return reef_agg_create_in(NULL, agg, spec, error);
}

void reef_agg_destroy(reef_agg **agg)
{
    if (!agg || !*agg) {
        return;
    }
    const reef_context *context = (*agg)->context;
    for (ptrdiff_t i = 0; i < (*agg)->count; i++) {
        rfi_release(context, (*agg)->stages[i].params);
    }
    rfi_release(context, *agg);
    *agg = NULL;
}

size_t reef_agg_print(const reef_agg *agg, char *text, size_t size)
{
    size_t used = 0;
    for (ptrdiff_t i = 0; i < agg->count; i++) {
        const rfi_stage *stage = &agg->stages[i];
        rfi_append(text, size, &used, "%s%s", i ? " | " : "", stage->rule->name);
        for (ptrdiff_t j = 0; j < stage->rule->field_count; j++) {
            const reef_field *field = &stage->rule->fields[j];
            rfi_append(text, size, &used, "%c%s=", j ? ',' : ':', field->name);
            rfi_field_print(field, stage->params, text, size, &used);
        }
    }
    const rfi_stage *last = &agg->stages[agg->count - 1];
    rfi_append(text, size, &used, "%cnan=%s", last->rule->field_count ? ',' : ':', nan_words[agg->nan]);
    return used;
}

static bool is_elementwise(const reef_agg *agg)
{
    const rfi_stage *last = &agg->stages[agg->count - 1];
    bool floor = last->rule->relative_floor && last->rule->relative_floor(last->params) > 0;
    return agg->count == 1 && last->rule->column && !last->rule->weigh && !floor;
}

unsigned reef_agg_traits(const reef_agg *agg)
{
    unsigned traits = ~0U;
    unsigned memory = 0; /* traits that one stage is enough for */
    for (ptrdiff_t i = 0; i < agg->count; i++) {
        const rfi_stage *stage = &agg->stages[i];
        unsigned own = stage->rule->traits_of ? stage->rule->traits_of(stage->params) : stage->rule->traits;
        memory |= own & (REEF_TRAIT_CENTRE | REEF_TRAIT_SELF | REEF_TRAIT_SENDERS);
        traits &= own;
    }
    const unsigned alone = REEF_TRAIT_CENTRE | REEF_TRAIT_SELF | REEF_TRAIT_SENDERS | REEF_TRAIT_ELEMENTWISE;
    traits = (traits & ~alone) | memory;
    return is_elementwise(agg) ? traits | REEF_TRAIT_ELEMENTWISE : traits;
}

ptrdiff_t rfi_stage_liars(const rfi_stage *stage, ptrdiff_t n)
{
    if (!stage->liars || n < 1) {
        return 0;
    }
    const reef_liars *liars = (const void *)((const char *)stage->params + stage->liars->offset);
    switch (liars->kind) {
    case REEF_LIARS_COUNT:
        return (ptrdiff_t)liars->value;
    case REEF_LIARS_FRACTION:
        return (ptrdiff_t)floor(liars->value * (double)n);
    case REEF_LIARS_MAX:
        break;
    }
    return stage->rule->bound(stage->params, n);
}

ptrdiff_t reef_agg_liars(const reef_agg *agg, ptrdiff_t n)
{
    ptrdiff_t least = -1;
    for (ptrdiff_t i = 0; i < agg->count && n >= 1; i++) {
        const rfi_stage *stage = &agg->stages[i];
        if (stage->liars) {
            ptrdiff_t own = rfi_stage_liars(stage, n);
            least = least < 0 || own < least ? own : least;
        }
        n = stage->rule->mixed ? stage->rule->mixed(stage->params, n) : n;
    }
    return least;
}
