/* by_class: every agent has samples of exactly c classes.
 *
 * There are K c slots: slot t belongs to agent who[t / c] and to class pick[t mod P], where who and pick are random permutations of
 * the agents and of the P classes that have samples. As c <= P the slots of an agent have different classes, and as K c >= P
 * every class has a slot. The samples of a class, in random order, are cut evenly over its slots.
 */
#include "problem/spread.h"

#include "base/error.h"
#include "base/memory.h"

typedef struct class_params {
    int64_t classes;
} class_params;

static const reef_field class_fields[] = {
    {.name = "classes",
     .type = REEF_FIELD_INT,
     .offset = offsetof(class_params, classes),
     .preset = "2",
     .min = 1,
     .max = 2147483647,
     .unit = "",
     .help = "number of classes of each agent"},
};

/* pick[0..P-1] = the classes with samples, in random order; returns P. */
static ptrdiff_t pick_classes(rfi_spread *s)
{
    ptrdiff_t present = 0;
    for (ptrdiff_t c = 0; c < s->in.classes; c++) {
        if (s->class_start[c + 1] > s->class_start[c]) {
            s->pick[present++] = c;
        }
    }
    for (ptrdiff_t i = present - 1; i > 0; i--) { /* Fisher and Yates */
        ptrdiff_t j = (ptrdiff_t)rfi_rng_below(&s->rng, (uint32_t)(i + 1));
        ptrdiff_t kept = s->pick[i];
        s->pick[i] = s->pick[j];
        s->pick[j] = kept;
    }
    return present;
}

static reef_status check_slots(const class_params *p, const rfi_spread *s, ptrdiff_t present, ptrdiff_t *slots,
                               reef_error *error)
{
    if (p->classes > present) {
        return rfi_fail(error, REEF_E_RANGE, "by_class: classes = %td, but there are only %td with samples",
                        (ptrdiff_t)p->classes, present);
    }
    if (!rfi_mul(s->in.agents, (ptrdiff_t)p->classes, slots)) {
        return rfi_fail(error, REEF_E_OVERFLOW, "by_class: agents times classes overflow");
    }
    if (*slots < present) {
        return rfi_fail(error, REEF_E_RANGE, "by_class: %td agents of %td classes cannot hold all %td classes",
                        s->in.agents, (ptrdiff_t)p->classes, present);
    }
    return REEF_OK;
}

static reef_status class_assign(const void *params, rfi_spread *s, reef_error *error)
{
    const class_params *p = params;
    ptrdiff_t slots = 0;
    rfi_rng_permutation(&s->rng, s->order, s->in.samples);
    rfi_sort_by_class(s, 0);
    rfi_rng_permutation(&s->rng, s->who, s->in.agents);
    ptrdiff_t present = pick_classes(s);
    reef_status status = check_slots(p, s, present, &slots, error);
    for (ptrdiff_t q = 0; status == REEF_OK && q < present; q++) {
        ptrdiff_t c = s->pick[q];
        ptrdiff_t count = s->class_start[c + 1] - s->class_start[c];
        ptrdiff_t holders = (slots - q + present - 1) / present;
        if (count < holders) {
            return rfi_fail(error, REEF_E_RANGE, "by_class: class %td has %td samples for %td agents", c, count,
                            holders);
        }
        for (ptrdiff_t i = 0; i < count; i++) {
            ptrdiff_t slot = q + rfi_even_part(i, count, holders) * present;
            s->owner[s->sorted[s->class_start[c] + i]] = (int32_t)s->who[slot / p->classes];
        }
    }
    return status;
}

const rfi_partition_kind rfi_partition_by_class = {
    .kind =
        {
            .name = "by_class",
            .summary = "every agent has samples of the same number of classes",
            .citation =
                "after McMahan et al., Communication-efficient learning of deep networks from decentralized data, "
                "AISTATS 2017",
            .fields = class_fields,
            .field_count = RFI_COUNT(class_fields),
            .params_size = sizeof(class_params),
        },
    .needs_labels = true,
    .assign = class_assign,
};
