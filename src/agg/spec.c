/* Spec strings: rule[:key=value,...][ | rule...] -> reef_agg, and back. */
#include "agg/driver.h"
#include "agg/pipeline.h"
#include "base/error.h"
#include "base/text.h"
#include "base/memory.h"
#include "base/spec.h"

#include <math.h>
#include <string.h>

static const reef_field *malicious_field(const reef_rule *rule)
{
    for (ptrdiff_t i = 0; i < rule->kind.field_count; i++) {
        if (rule->kind.fields[i].type == REEF_FIELD_MALICIOUS) {
            return &rule->kind.fields[i];
        }
    }
    return NULL;
}

static reef_status add_stage(reef_agg *agg, rfi_slice text, bool last, reef_error *error)
{
    const reef_kind *kind = NULL;
    rfi_slice list;
    reef_status status = rfi_spec_find(agg->context, &rfi_family_rule, text, &kind, &list, error);
    if (status != REEF_OK) {
        return status;
    }
    const reef_rule *rule = (const void *)kind;
    if ((rule->mix != NULL) == last) {
        return rfi_fail(
            error, REEF_E_SYNTAX,
            last ? "'%s' is a pre-aggregator; it needs a rule after it, for instance \"%s | ref\""
                 : "'%s' is a rule, not a pre-aggregator; a rule comes last in a pipeline, as in \"nnm | %s\"",
            kind->name, kind->name);
    }
    rfi_stage *stage = &agg->stages[agg->count];
    *stage = (rfi_stage){rule, NULL, malicious_field(rule)};
    status = rfi_spec_fill(agg->context, &rfi_family_rule, kind, list, agg, &stage->params, error);
    if (status != REEF_OK) {
        return status;
    }
    agg->count++;
    return rule->prepare ? rule->prepare(stage->params, error) : REEF_OK;
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
            return rfi_fail(error, REEF_E_SYNTAX, "a pipeline has at most %d parts", RFI_STAGES_MAX);
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
                        "%s: keep_self needs the receiver's own input, which a pre-aggregator mixes with others",
                        last->rule->kind.name);
    }
    if (agg->count > 1 && (last->rule->traits & REEF_TRAIT_SENDERS)) {
        return rfi_fail(error, REEF_E_SYNTAX,
                        "%s remembers every sender, but a pre-aggregator mixes their inputs; use the rule alone",
                        last->rule->kind.name);
    }
    return REEF_OK;
}

reef_status reef_agg_create(reef_context *context, reef_agg **agg, const char *spec, reef_error *error)
{
    if (!agg || !spec) {
        return rfi_fail(error, REEF_E_ARG, "reef_agg_create: %s is NULL", agg ? "spec" : "agg");
    }
    reef_agg *made = rfi_allocate(context, sizeof *made);
    if (!made) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for an aggregator");
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
    if (!agg) {
        return rfi_no_text(text, size);
    }
    size_t used = 0;
    for (ptrdiff_t i = 0; i < agg->count; i++) {
        const rfi_stage *stage = &agg->stages[i];
        rfi_append(text, size, &used, "%s", i ? " | " : "");
        rfi_spec_print(&rfi_family_rule, &stage->rule->kind, stage->params, agg, text, size, &used);
    }
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
    if (!agg) {
        return 0;
    }
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

const reef_rule *reef_agg_rule(const reef_agg *agg)
{
    if (!agg) {
        return NULL;
    }
    return agg->stages[agg->count - 1].rule;
}

reef_context *rfi_agg_context(const reef_agg *agg)
{
    return agg->context;
}

bool rfi_agg_refuses_nan(const reef_agg *agg)
{
    return agg->nan == RFI_NAN_ERROR;
}

ptrdiff_t rfi_stage_malicious(const rfi_stage *stage, ptrdiff_t n)
{
    if (!stage->malicious_count || n < 1) {
        return 0;
    }
    const reef_malicious *malicious_count =
        (const void *)((const char *)stage->params + stage->malicious_count->offset);
    switch (malicious_count->kind) {
    case REEF_MALICIOUS_COUNT:
        return (ptrdiff_t)malicious_count->value;
    case REEF_MALICIOUS_FRACTION:
        return (ptrdiff_t)floor(malicious_count->value * (double)n);
    case REEF_MALICIOUS_MAX:
        break;
    }
    return stage->rule->bound(stage->params, n);
}

ptrdiff_t reef_agg_tolerates(const reef_agg *agg, ptrdiff_t n)
{
    if (!agg) {
        return -1;
    }
    ptrdiff_t least = -1;
    for (ptrdiff_t i = 0; i < agg->count && n >= 1; i++) {
        const rfi_stage *stage = &agg->stages[i];
        if (stage->malicious_count) {
            ptrdiff_t own = rfi_stage_malicious(stage, n);
            least = least < 0 || own < least ? own : least;
        }
        n = stage->rule->mixed ? stage->rule->mixed(stage->params, n) : n;
    }
    return least;
}
