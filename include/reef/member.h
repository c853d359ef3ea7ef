/* One agent's part of a run, on its own: it adapts its model to its own data, returns what to send, and combines what it is given. How rows
 * get from agent to agent is up to the caller. If all rows of every round arrive, the result is bit-identical to that of reef_run.
 *
 * One round:
 *     phi = reef_member_adapt(member, round);            or reef_member_offer(member, phi), with the caller's model
 *     row = reef_member_message(member, round, rows);    phi, unless the agent is malicious (tests)
 *     reef_member_combine(member, round, rows, &error);  w = rule(rows)
 *
 * Only strategies that adapt before they send work for a single agent: diffusion with order=atc. */
#ifndef REEF_MEMBER_H
#define REEF_MEMBER_H

#include <reef/agg.h>
#include <reef/attack.h>
#include <reef/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A member, to be used by one thread at a time. The context and all objects of the setup must outlive it. */
typedef struct reef_member reef_member;

/* All objects must outlive the member; arrays and texts are copied. */
typedef struct reef_member_setup {
    size_t size; /* sizeof of this struct, so that later versions can add members; 0: as version 0.2 has it */
    const reef_problem *problem; /* NULL: models come from the caller */
    const char
        *strategy; /* how it adapts, for instance "diffusion:mu=0.05"; its step size also sets the horizon of mref */
    const reef_agg *rule;      /* the rule that combines */
    ptrdiff_t agent;           /* this agent's number */
    ptrdiff_t senders;         /* how many agents it hears, including itself */
    const int32_t *sender;     /* their numbers, ascending */
    const double *weights;     /* their weights, positive */
    ptrdiff_t dimension;       /* numbers in a model; 0: the problem's */
    reef_dtype dtype;          /* of rows and models; REEF_F32 with a problem */
    double step_factor;        /* factor for the step size, as in reef_run_setup; 0: 1 */
    ptrdiff_t repetition;      /* whose data; 0 without a problem */
    const reef_attack *attack; /* for tests; NULL: malicious agents send what honest ones would */
    uint64_t seed;             /* of the attack's random draws */
    ptrdiff_t agents;          /* for tests: agents in the network, of which... */
    const bool *malicious;     /* ...these are malicious; NULL: none */
} reef_member_setup;

/* Makes a member at round 0. */
REEF_API REEF_MUST_CHECK reef_status reef_member_create(reef_context *context, reef_member **member,
                                                        const reef_member_setup *setup, reef_error *error);
/* Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_member_destroy(reef_member **member);

/* M. */
REEF_API ptrdiff_t reef_member_dimension(const reef_member *member);
/* Type of the numbers in its models. */
REEF_API reef_dtype reef_member_dtype(const reef_member *member);
/* The model w. */
REEF_API const void *reef_member_model(const reef_member *member);
/* Replaces the model, M finite numbers. */
REEF_API void reef_member_set_model(reef_member *member, const void *model);

/* phi = w - mu gradient, from the agent's own data of this round. Members without a problem have none: NULL. */
REEF_API const void *reef_member_adapt(reef_member *member, int64_t round);
/* Takes the caller's model as phi. */
REEF_API void reef_member_offer(reef_member *member, const void *phi);
/* What the agent sends in this round: phi, or the attack's row if it is malicious; NULL: nothing. rows: by sender, what the agent has heard in
 * this round so far, NULL for nothing; only malicious agents look at them, and only at those of honest agents. */
REEF_API const void *reef_member_message(reef_member *member, int64_t round, const void *const *rows);
/* w = rule(rows), with the rows that have arrived, by sender (NULL: absent). The agent's own entry is ignored: its row is what
 * reef_member_message returned, or phi. If the rule cannot work with these rows, the status says so and w = phi. */
REEF_API REEF_MUST_CHECK reef_status reef_member_combine(reef_member *member, int64_t round, const void *const *rows,
                                                         reef_error *error);
/* The same without the agent's own row, for an agent that joins late; on failure w stays as it is. */
REEF_API REEF_MUST_CHECK reef_status reef_member_adopt(reef_member *member, int64_t round, const void *const *rows,
                                                       reef_error *error);
/* How much weight each sender had in the last combination: its effective weight, and its fair share;
 * both sum to one, or to 0 if nothing was combined. Either may be NULL. */
REEF_API void reef_member_trust(const reef_member *member, double *share, double *fair);
/* Sets the seed of the random draws of the rule's memory (reef_state_set_seed), before the first round; for tests whose results must be
 * reproducible. */
REEF_API void reef_member_set_seed(reef_member *member, uint64_t seed);
/* The rule's report on the last combination, by sender; valid until the next. */
REEF_API const reef_report *reef_member_report(const reef_member *member);

/* The size of the state between two rounds (w, momentum, the rule's memory) as bytes, for a member created from the same setup on a machine of
 * the same byte order. Loading fails without changing anything if the bytes are damaged or belong to another setup. The size
 * changes as senders are heard. */
REEF_API size_t reef_member_size(const reef_member *member);
/* Writes the state to `bytes`. */
REEF_API REEF_MUST_CHECK reef_status reef_member_save(const reef_member *member, void *bytes, size_t size,
                                                      reef_error *error);
/* Continues from a saved state; on failure nothing has changed. */
REEF_API REEF_MUST_CHECK reef_status reef_member_load(reef_member *member, const void *bytes, size_t size,
                                                      reef_error *error);

#ifdef __cplusplus
}
#endif
#endif
