/* come_and_go: sends honest messages, under ids that change. This models honest churn: the messages are as good as any, but nobody knows their senders
 * for long. */
#include "attack/attack.h"

typedef struct come_and_go_params {
    int64_t identity;
} come_and_go_params;

static const reef_field come_and_go_fields[] = {
    {.name = "identity",
     .type = REEF_FIELD_INT,
     .offset = offsetof(come_and_go_params, identity),
     .preset = "1",
     .min = 1,
     .max = 1e15,
     .unit = "rounds",
     .help = "how long a sender stays before another one takes its place"},
};

static bool message(const void *params, const reef_attack_view *view, float *out)
{
    (void)params;
    return rfi_attack_honest(view, out);
}

static int64_t identity(const void *params)
{
    const come_and_go_params *p = params;
    return p->identity;
}

const reef_attack_kind rfi_attack_come_and_go = {
    .kind = {.name = "come_and_go",
             .summary = "honest behaviour under changing ids: honest senders that come and go",
             .citation = "",
             .fields = come_and_go_fields,
             .field_count = RFI_COUNT(come_and_go_fields),
             .params_size = sizeof(come_and_go_params)},
    .traits = REEF_ATTACK_LANES,
    .message = message,
    .identity = identity,
};
