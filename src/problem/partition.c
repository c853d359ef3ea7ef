/* Partitions: checks, work space, the kind itself, then owners -> lists. */
#include "problem/partition.h"

#include "base/error.h"
#include "base/memory.h"
#include "problem/spread.h"

static const reef_kind *const kinds[] = {
#define RFI_PARTITION(name) &rfi_partition_##name.kind,
#include "problem/partition_list.h"

#include <assert.h>
#undef RFI_PARTITION
};

const rfi_family rfi_family_partition = {.number = REEF_FAMILY_PARTITION,
                                         .name = "partition",
                                         .what = "partition",
                                         .builtin = kinds,
                                         .builtin_count = RFI_COUNT(kinds)};

static reef_status check_input(const rfi_partition_input *in, reef_error *error)
{
    if (in->samples < 1 || in->samples >= UINT32_MAX || in->agents < 1 || in->agents > INT32_MAX) {
        return rfi_fail(error, REEF_E_RANGE, "%td samples cannot be distributed over %td agents", in->samples,
                        in->agents);
    }
    if (in->agents > in->samples) {
        return rfi_fail(error, REEF_E_RANGE, "%td agents, but only %td samples; each agent needs at least one",
                        in->agents, in->samples);
    }
    if (in->labels && (in->classes < 1 || in->classes > INT32_MAX)) {
        return rfi_fail(error, REEF_E_ARG, "labels need 1 to 2^31 - 1 classes, not %td", in->classes);
    }
    for (ptrdiff_t i = 0; in->labels && i < in->samples; i++) {
        if (in->labels[i] < 0 || in->labels[i] >= in->classes) {
            return rfi_fail(error, REEF_E_ARG, "label %d of sample %td is not in 0..%td", in->labels[i], i,
                            in->classes - 1);
        }
    }
    return REEF_OK;
}

/* Lays out the work space; measures only if the arena has no memory. */
static void lay_out(rfi_arena *arena, rfi_spread *s)
{
    ptrdiff_t n = s->in.samples;
    ptrdiff_t agents = s->in.agents;
    s->owner = rfi_arena_take(arena, n, 1, sizeof *s->owner);
    s->order = rfi_arena_take(arena, n, 1, sizeof *s->order);
    s->sorted = rfi_arena_take(arena, n, 1, sizeof *s->sorted);
    s->class_start = rfi_arena_take(arena, s->in.classes + 1, 1, sizeof *s->class_start);
    s->pick = rfi_arena_take(arena, s->in.classes, 1, sizeof *s->pick);
    s->who = rfi_arena_take(arena, agents, 1, sizeof *s->who);
    s->size = rfi_arena_take(arena, agents, 1, sizeof *s->size);
    s->share = rfi_arena_take(arena, agents, 1, sizeof *s->share);
}

/* Owners -> starts and lists, by counting. */
static void list_samples(rfi_partition *p, rfi_spread *s)
{
    (void)rfi_count_sizes(s);
    p->start[0] = 0;
    for (ptrdiff_t k = 0; k < p->agents; k++) {
        p->start[k + 1] = p->start[k] + s->size[k];
        assert(s->size[k] >= 1); /* nobody is left without a sample */
        s->size[k] = p->start[k];
    }
    assert(p->start[p->agents] == p->samples);
    for (ptrdiff_t i = 0; i < p->samples; i++) {
        assert(s->owner[i] >= 0 && s->owner[i] < p->agents);
        p->index[s->size[s->owner[i]]++] = i;
    }
}

static reef_status run(rfi_partition *p, const rfi_partition_kind *kind, const void *params, rfi_spread *s,
                       reef_error *error)
{
    rfi_arena measure = {0};
    lay_out(&measure, s);
    void *memory = measure.overflow ? NULL : rfi_allocate(p->context, (size_t)measure.used + RFI_ALIGNMENT);
    if (!memory) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory to distribute %td samples", p->samples);
    }
    rfi_arena arena = {.base = rfi_align(memory)};
    lay_out(&arena, s);
    rfi_rng_init(&s->rng, s->in.seed, RFI_PURPOSE_PARTITION, 0, 0, 0);
    reef_status status = kind->assign(params, s, error);
    if (status == REEF_OK) {
        rfi_repair(s, 1);
        list_samples(p, s);
    }
    rfi_release(p->context, memory);
    return status;
}

static reef_status fill(rfi_partition *p, const char *spec, const rfi_partition_input *input, reef_error *error)
{
    const reef_kind *head = NULL;
    void *params = NULL;
    rfi_spread s = {.in = *input};
    reef_status status = rfi_spec_read(p->context, &rfi_family_partition, spec, NULL, &head, &params, error);
    if (status != REEF_OK) {
        return status;
    }
    const rfi_partition_kind *kind = (const void *)head;
    s.in.classes = input->labels ? input->classes : 1;
    p->start = rfi_allocate(p->context, ((size_t)p->agents + 1) * sizeof *p->start);
    p->index = rfi_allocate(p->context, (size_t)p->samples * sizeof *p->index);
    if (kind->needs_labels && !input->labels) {
        status =
            rfi_fail(error, REEF_E_ARG, "%s distributes samples by class, but these have no classes", kind->kind.name);
    } else if (!p->start || !p->index) {
        status = rfi_fail(error, REEF_E_NOMEM, "not enough memory to distribute %td samples", p->samples);
    } else {
        status = run(p, kind, params, &s, error);
    }
    rfi_release(p->context, params);
    return status;
}

reef_status rfi_partition_create(const reef_context *context, const char *spec, const rfi_partition_input *input,
                                 rfi_partition **partition, reef_error *error)
{
    reef_status status = check_input(input, error);
    if (status != REEF_OK) {
        return status;
    }
    rfi_partition *p = rfi_allocate(context, sizeof *p);
    if (!p) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for a partition");
    }
    *p = (rfi_partition){.context = context, .agents = input->agents, .samples = input->samples};
    status = fill(p, spec, input, error);
    if (status != REEF_OK) {
        rfi_partition_destroy(&p);
        return status;
    }
    *partition = p;
    return REEF_OK;
}

void rfi_partition_destroy(rfi_partition **partition)
{
    rfi_partition *p = *partition;
    if (!p) {
        return;
    }
    rfi_release(p->context, p->start);
    rfi_release(p->context, p->index);
    rfi_release(p->context, p);
    *partition = NULL;
}
