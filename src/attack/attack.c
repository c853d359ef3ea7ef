/* Making attacks from specs and kinds, and asking them. */
#include "attack/attack.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/spec.h"

#include <string.h>

static const reef_attack_kind *const kinds[] = {
#define REEF_ATTACK(name) &rfi_attack_##name,
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
    [REEF_KNOW_LIARS] = "liars",
    [REEF_KNOW_AUTO] = "auto",
    NULL,
};

static const reef_field common_fields[] = {
    {.name = "knowledge",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(reef_attack_common, knowledge),
     .preset = "auto",
     .unit = "",
     .help = "rows known: of all honest agents, of those the receiver hears, only the liars' own; auto: as usual for "
             "the attack",
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
     .help = "round in which it is over; 0: never"},
    {.name = "on",
     .type = REEF_FIELD_INT,
     .offset = offsetof(reef_attack_common, on),
     .preset = "1",
     .min = 1,
     .max = 1e15,
     .unit = "rounds",
     .help = "attacks so many rounds in a row, then rests for `off`"},
    {.name = "off",
     .type = REEF_FIELD_INT,
     .offset = offsetof(reef_attack_common, off),
     .preset = "0",
     .min = 0,
     .max = 1e15,
     .unit = "rounds",
     .help = "rounds of honesty after every `on` rounds; 0: attacks always"},
};

static const rfi_fields common_table = {"attack", common_fields, RFI_COUNT(common_fields)};

/* ---- kinds ---- */

ptrdiff_t reef_attack_count(void)
{
    return RFI_COUNT(kinds);
}

const reef_attack_kind *reef_attack_at(ptrdiff_t index)
{
    return index >= 0 && index < RFI_COUNT(kinds) ? kinds[index] : NULL;
}

static const reef_kind *kind_of(const void *user, ptrdiff_t index)
{
    (void)user;
    return &kinds[index]->kind;
}

static const char *name_of(const void *user, ptrdiff_t index)
{
    return kind_of(user, index)->name;
}

static const rfi_catalogue catalogue = {"kind of attack", name_of, kind_of, NULL, RFI_COUNT(kinds)};

const reef_attack_kind *reef_attack_find(const char *name)
{
    return name ? reef_attack_at(rfi_catalogue_find(&catalogue, (rfi_slice){name, strlen(name)})) : NULL;
}

const reef_field *reef_attack_common_fields(ptrdiff_t *count)
{
    *count = RFI_COUNT(common_fields);
    return common_fields;
}

/* ---- making ---- */

static reef_attack *new_attack(reef_context *context, reef_error *error)
{
    reef_attack *attack = rfi_allocate(context, sizeof *attack);
    if (!attack) {
        (void)rfi_fail(error, REEF_E_NOMEM, "no memory for an attack");
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
        return rfi_fail(error, REEF_E_RANGE, "%s: there is no knowledge number %d", name, common->knowledge);
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
    ptrdiff_t index = 0;
    if (!attack || !spec) {
        return rfi_fail(error, REEF_E_ARG, "reef_attack_create: the attack or the spec is missing");
    }
    reef_attack *made = new_attack(context, error);
    if (!made) {
        return REEF_E_NOMEM;
    }
    rfi_target common = {common_table, &made->common, NULL};
    reef_status status = rfi_spec_read(context, &catalogue, spec, &common, &index, &made->params, error);
    if (status == REEF_OK) {
        made->kind = kinds[index];
    }
    return finish(status, made, attack, error);
}

static bool is_sound(const reef_attack_kind *kind)
{
    const reef_kind *head = &kind->kind;
    return head->name && head->name[0] && head->field_count >= 0 && head->field_count <= 32 &&
           (head->fields || head->field_count == 0) && kind->work_rows >= 0 && kind->knowledge >= REEF_KNOW_ALL &&
           kind->knowledge < REEF_KNOW_AUTO;
}

static reef_status fill_own(reef_attack *attack, const void *params, const reef_attack_common *common,
                            reef_error *error)
{
    const reef_kind *head = &attack->kind->kind;
    size_t bytes = head->params_size ? head->params_size : 1;
    attack->params = rfi_allocate(attack->context, bytes);
    if (!attack->params) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for attack '%s'", head->name);
    }
    memset(attack->params, 0, bytes);
    reef_status status = REEF_OK;
    if (params) {
        memcpy(attack->params, params, head->params_size);
    } else {
        rfi_fields table = {head->name, head->fields, head->field_count};
        status = rfi_fields_preset(&table, attack->params, error);
    }
    if (common) {
        attack->common = *common;
    } else if (status == REEF_OK) {
        status = rfi_fields_preset(&common_table, &attack->common, error);
    }
    return status;
}

reef_status reef_attack_create_own(reef_context *context, reef_attack **attack, const reef_attack_kind *kind,
                                   const void *params, const reef_attack_common *common, reef_error *error)
{
    if (!attack || !kind || !is_sound(kind)) {
        return rfi_fail(error, REEF_E_ARG,
                        "reef_attack_create_own: a kind with a name, at most 32 fields and work_rows >= 0 is needed");
    }
    reef_attack *made = new_attack(context, error);
    if (!made) {
        return REEF_E_NOMEM;
    }
    made->kind = kind;
    return finish(fill_own(made, params, common, error), made, attack, error);
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
    return attack->kind;
}

const void *reef_attack_params(const reef_attack *attack)
{
    return attack->params;
}

const reef_attack_common *reef_attack_common_of(const reef_attack *attack)
{
    return &attack->common;
}

unsigned reef_attack_traits(const reef_attack *attack)
{
    const reef_attack_kind *kind = attack->kind;
    return kind->traits_of ? kind->traits_of(attack->params) : kind->traits;
}

int64_t reef_attack_delay(const reef_attack *attack)
{
    return attack->kind->delay ? attack->kind->delay(attack->params) : 0;
}

bool reef_attack_active(const reef_attack *attack, int64_t round)
{
    const reef_attack_common *c = &attack->common;
    if (round < c->from || (c->until > 0 && round >= c->until)) {
        return false;
    }
    return c->off == 0 || (round - c->from) % (c->on + c->off) < c->on;
}

ptrdiff_t reef_attack_work(const reef_attack *attack, ptrdiff_t length, ptrdiff_t known)
{
    ptrdiff_t rows = 0;
    ptrdiff_t more = 0;
    ptrdiff_t sum = 0;
    bool fits = rfi_mul(attack->kind->work_rows, length, &rows) && rfi_add(known, 2, &more) &&
                rfi_mul(more, 4, &more) && rfi_add(rows, more, &sum);
    return fits ? sum : -1;
}

size_t reef_attack_print(const reef_attack *attack, char *text, size_t size)
{
    size_t used = 0;
    reef_attack_common shown = attack->common;
    rfi_target common = {common_table, &shown, NULL};
    rfi_spec_print(&attack->kind->kind, attack->params, &common, text, size, &used);
    return used;
}
