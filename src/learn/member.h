/* Internals of members (reef/member.h): member_make.c makes them, member.c runs their rounds and saves them. */
#ifndef RFI_LEARN_MEMBER_H
#define RFI_LEARN_MEMBER_H

#include "learn/run.h"

#include <reef/member.h>

struct reef_member {
    reef_context *context;
    void *memory;
    reef_member_setup setup; /* arrays and texts are NULL: copied */
    void *params;            /* of the strategy; or NULL */
    const rfi_adapt *adapt;  /* in them; or NULL */
    ptrdiff_t dimension;
    size_t bytes; /* of a model */
    bool uniform; /* the rule cannot use weights */
    bool keeps_self;
    ptrdiff_t self;       /* place of the own row */
    int64_t *ids;         /* senders */
    double *expected;     /* weights if all rows are there */
    double *weights;      /* as used */
    const void **rows;    /* as used */
    bool *malicious;      /* by sender */
    const float **known;  /* rows a malicious agent knows */
    ptrdiff_t honest_all; /* of the network */
    unsigned char *w, *phi, *out, *lie;
    float *velocity;  /* or NULL */
    const void *sent; /* own row; NULL: silent */
    void *batch_work; /* of the problem */
    float *attack_work;
    reef_plan *plan;
    reef_state *state; /* or NULL */
    reef_report *report;
};

#endif
