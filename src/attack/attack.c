/* Making attacks from strings and kinds, and querying them. */
#include "attack/attack.h"

#include "base/error.h"
#include "base/text.h"
#include "base/memory.h"
#include "base/spec.h"

static const reef_kind *const kinds[] = {
#define REEF_ATTACK(name) &rfi_attack_##name.kind,
#include "attack/attack_list.h"
#undef REEF_ATTACK
};

struct reef_attack {
    reef_context *context;
    const reef_attack_kind *kind;
    void *params;
    reef_attack_common common;
};

static const char *const knowledges[] = {
    [REEF_KNOW_ALL] = "all",
    [REEF_KNOW_NEIGHBOURS] = "neighbours",
    [REEF_KNOW_MALICIOUS] = "malicious",
    [REEF_KNOW_AUTO] = "auto",
    NULL,
};

static const reef_field common_fields[] = {
    {.name = "knowledge",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(reef_attack_common, knowledge),
     .preset = "auto",
     .unit = "",
     .help = "what the attacker knows: the vectors of all honest agents, of those the receiver hears, or only of the "
             "malicious agents; auto: as usual for the attack",
     .words = knowledges},
    {.name = "from",
     .type = REEF_FIELD_INT,
     .offset = offsetof(reef_attack_common, from),
     .preset = "0",
     .min = 0,
     .max = 9e15,
     .unit = "rounds",
     .help = "first round of the attack"},
    {.name = "until",
     .type = REEF_FIELD_INT,
     .offset = offsetof(reef_attack_common, until),
     .preset = "0",
     .min = 0,
     .max = 9e15,
     .unit = "rounds",
     .help = "round in which the attack ends; 0: never"},
    {.name = "on",
     .type = REEF_FIELD_INT,
     .offset = offsetof(reef_attack_common, on),
     .preset = "1",
     .min = 1,
     .max = 1e15,
     .unit = "rounds",
     .help = "attack for this many rounds in a row, then behave honestly for `off` rounds"},
    {.name = "off",
     .type = REEF_FIELD_INT,
     .offset = offsetof(reef_attack_common, off),
     .preset = "0",
     .min = 0,
     .max = 1e15,
     .unit = "rounds",
     .help = "behave honestly for this many rounds after every `on` rounds of attack; 0: always attack"},
};

static reef_status check_kind(const reef_kind *head, reef_error *error)
{
    const reef_attack_kind *kind = (const void *)head;
    bool knows = kind->knowledge >= REEF_KNOW_ALL && kind->knowledge < REEF_KNOW_AUTO;
    if (kind->work_rows < 0 || !knows) {
        return rfi_fail(error, REEF_E_ARG, "attack '%s' needs work_rows >= 0 and a knowledge other than auto",
                        head->name);
    }
    return REEF_OK;
}

const rfi_family rfi_family_attack = {.number = REEF_FAMILY_ATTACK,
                                      .size = sizeof(reef_attack_kind),
                                      .name = "attack",
                                      .what = "kind of attack",
                                      .builtin = kinds,
                                      .builtin_count = RFI_COUNT(kinds),
                                      .common = {"attack", common_fields, RFI_COUNT(common_fields)},
                                      .check = check_kind};

/* ---- making ---- */

static reef_attack *new_attack(reef_context *context, reef_error *error)
{
    reef_attack *attack = rfi_allocate(context, sizeof *attack);
    if (!attack) {
        (void)rfi_fail(error, REEF_E_NOMEM, "not enough memory for an attack");
        return NULL;
    }
    *attack = (reef_attack){.context = context};
    return attack;
}

/* What the fields cannot say one by one; resolves auto. */
static reef_status check_common(const reef_attack_kind *kind, reef_attack_common *common, reef_error *error)
{
    const char *name = kind->kind.name;
    if (common->knowledge == REEF_KNOW_AUTO) {
        common->knowledge = (int)kind->knowledge;
    }
    if (common->knowledge < REEF_KNOW_ALL || common->knowledge >= REEF_KNOW_AUTO) {
        return rfi_fail(error, REEF_E_RANGE, "%s: unknown knowledge value %d", name, common->knowledge);
    }
    if (common->from < 0 || common->until < 0 || common->on < 1 || common->off < 0 ||
        common->on > INT64_MAX - common->off) {
        return rfi_fail(error, REEF_E_RANGE, "%s: from, until and off must not be negative, on must be positive", name);
    }
    if (common->until > 0 && common->until <= common->from) {
        return rfi_fail(error, REEF_E_RANGE, "%s: until = %lld does not come after from = %lld", name,
                        (long long)common->until, (long long)common->from);
    }
    return REEF_OK;
}

/* Hands over what was made, or clears it away. */
static reef_status finish(reef_status status, reef_attack *made, reef_attack **attack, reef_error *error)
{
    if (status == REEF_OK) {
        status = check_common(made->kind, &made->common, error);
    }
    if (status != REEF_OK) {
        reef_attack_destroy(&made);
        return status;
    }
    *attack = made;
    return REEF_OK;
}

reef_status reef_attack_create(reef_context *context, reef_attack **attack, const char *spec, reef_error *error)
{
    const reef_kind *kind = NULL;
    if (!attack || !spec) {
        return rfi_fail(error, REEF_E_ARG, "reef_attack_create: attack or its description is NULL");
    }
    reef_attack *made = new_attack(context, error);
    if (!made) {
        return REEF_E_NOMEM;
    }
    reef_status status = rfi_spec_read(context, &rfi_family_attack, spec, &made->common, &kind, &made->params, error);
    made->kind = (const void *)kind;
    return finish(status, made, attack, error);
}

reef_status reef_attack_create_own(reef_context *context, reef_attack **attack, const reef_attack_kind *kind,
                                   const void *params, const reef_attack_common *common, reef_error *error)
{
    if (!attack) {
        return rfi_fail(error, REEF_E_ARG, "reef_attack_create_own: attack is NULL");
    }
    reef_status status = rfi_kind_check(&rfi_family_attack, kind ? &kind->kind : NULL, error);
    if (status != REEF_OK) {
        return status;
    }
    reef_attack *made = new_attack(context, error);
    if (!made) {
        return REEF_E_NOMEM;
    }
    made->kind = kind;
    status = rfi_spec_copy(context, &rfi_family_attack, &kind->kind, params, &made->params, error);
    if (status == REEF_OK && !common) {
        status = rfi_fields_preset(&rfi_family_attack.common, &made->common, error);
    } else if (status == REEF_OK) {
        made->common = *common;
    }
    return finish(status, made, attack, error);
}

void reef_attack_destroy(reef_attack **attack)
{
    if (!attack || !*attack) {
        return;
    }
    const reef_context *context = (*attack)->context;
    rfi_release(context, (*attack)->params);
    rfi_release(context, *attack);
    *attack = NULL;
}

/* ---- asking ---- */

const reef_attack_kind *reef_attack_kind_of(const reef_attack *attack)
{
    if (!attack) {
        return NULL;
    }
    return attack->kind;
}

const void *reef_attack_params(const reef_attack *attack)
{
    if (!attack) {
        return NULL;
    }
    return attack->params;
}

const reef_attack_common *reef_attack_common_of(const reef_attack *attack)
{
    if (!attack) {
        return NULL;
    }
    return &attack->common;
}

unsigned reef_attack_traits(const reef_attack *attack)
{
    if (!attack) {
        return 0;
    }
    const reef_attack_kind *kind = attack->kind;
    return kind->traits_of ? kind->traits_of(attack->params) : kind->traits;
}

int64_t reef_attack_delay(const reef_attack *attack)
{
    if (!attack) {
        return 0;
    }
    return attack->kind->delay ? attack->kind->delay(attack->params) : 0;
}

int64_t reef_attack_identity(const reef_attack *attack, ptrdiff_t agent, ptrdiff_t agents, int64_t round)
{
    int64_t rounds = attack && attack->kind->identity ? attack->kind->identity(attack->params) : 0;
    uint64_t number = rounds > 0 ? (uint64_t)(round / rounds) + 1 : 0;
    if (rounds < 0) {
        number = rfi_rng_key((uint64_t)agent, (uint64_t)round) % (0 - (uint64_t)rounds);
    }
    return (int64_t)(((uint64_t)agent + number * (uint64_t)agents) & INT64_MAX);
}

bool reef_attack_active(const reef_attack *attack, int64_t round)
{
    if (!attack) {
        return false;
    }
    const reef_attack_common *c = &attack->common;
    if (round < c->from || (c->until > 0 && round >= c->until)) {
        return false;
    }
    return c->off == 0 || (round - c->from) % (c->on + c->off) < c->on;
}

ptrdiff_t reef_attack_work(const reef_attack *attack, ptrdiff_t length, ptrdiff_t known)
{
    if (!attack) {
        return 0;
    }
    ptrdiff_t rows = 0;
    ptrdiff_t more = 0;
    ptrdiff_t sum = 0;
    bool fits = rfi_mul(attack->kind->work_rows, length, &rows) && rfi_add(known, 2, &more) &&
                rfi_mul(more, 4, &more) && rfi_add(rows, more, &sum);
    return fits ? sum : -1;
}

size_t reef_attack_print(const reef_attack *attack, char *text, size_t size)
{
    if (!attack) {
        return rfi_no_text(text, size);
    }
    size_t used = 0;
    rfi_spec_print(&rfi_family_attack, &attack->kind->kind, attack->params, &attack->common, text, size, &used);
    return used;
}
