/* Each link is down in a round with probability p. */
#include "graph/links/links.h"

typedef struct failing_params {
    double p;
    bool symmetric;
} failing_params;

static const reef_field failing_fields[] = {
    {.name = "p",
     .type = REEF_FIELD_REAL,
     .offset = offsetof(failing_params, p),
     .preset = "0.1",
     .min = 0,
     .max = 1,
     .unit = "",
     .help = "probability that a link is down in a round"},
    {.name = "symmetric",
     .type = REEF_FIELD_BOOL,
     .offset = offsetof(failing_params, symmetric),
     .preset = "true",
     .unit = "",
     .help = "both directions of a link fail together"},
};

static bool failing_is_up(rfi_asking *ask, int32_t sender)
{
    const failing_params *p = ask->params;
    bool turned = p->symmetric && sender > ask->receiver;
    rfi_rng rng;
    rfi_links_rng(ask->seed, ask->round, turned ? sender : ask->receiver, turned ? ask->receiver : sender,
                  RFI_USE_FAILING, &rng);
    return rfi_rng_uniform(&rng) >= p->p;
}

const rfi_link_kind rfi_links_failing = {.kind = {.name = "failing",
                                                  .summary = "each link is down in a round with probability p",
                                                  .citation = "",
                                                  .fields = failing_fields,
                                                  .field_count = RFI_COUNT(failing_fields),
                                                  .params_size = sizeof(failing_params)},
                                         .is_up = failing_is_up};
