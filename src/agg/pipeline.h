/* The contents of a reef_agg: the parsed rule string. Stages 0..count-2 are pre-aggregators, the last one is the rule. */
#ifndef RFI_AGG_PIPELINE_H
#define RFI_AGG_PIPELINE_H

#include <reef/agg.h>

enum { RFI_STAGES_MAX = 8 };

typedef enum rfi_nan_policy { RFI_NAN_DROP_ROW, RFI_NAN_DROP_COORDINATE, RFI_NAN_ERROR } rfi_nan_policy;

typedef struct rfi_stage {
    const reef_rule *rule;
    void *params;                      /* owned */
    const reef_field *malicious_count; /* the rule's f field, or NULL */
} rfi_stage;

struct reef_agg {
    reef_context *context;
    ptrdiff_t count;
    rfi_stage stages[RFI_STAGES_MAX];
    int nan; /* rfi_nan_policy */
};

/* Malicious rows that a stage expects among n by its own setting; 0 for rules without f. */
ptrdiff_t rfi_stage_malicious(const rfi_stage *stage, ptrdiff_t n);

/* registry.c: whether a rule is one of the library's own. */
bool rfi_rule_is_builtin(const reef_rule *rule);

#endif
