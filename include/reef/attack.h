/* Attacks: what malicious agents send, by name or your own.
 *
 * Malicious agents run the protocol like all others and change only what they send (or when, or the data they learn from). In every
 * round, such an agent is given a view of what it may know and asked for the row to send. Randomness is a pure function of (seed, round, sender), so any
 * thread or process may compute any message.
 *
 * Rows are float32 of `length` = M x R numbers (see problem.h). With R > 1 repetitions side by side, an attack that works on whole
 * vectors (norms, inner products) has to treat each repetition separately; only attacks with REEF_ATTACK_LANES are given R > 1.
 *
 * One round, for a caller:
 *     if (reef_attack_active(attack, round)) ask kind->message once per malicious agent, or
 *         once for all of them         if reef_attack_traits has REEF_ATTACK_SAME and, with REEF_ATTACK_ROWS, known > 0,
 *         once per receiver            if it has REEF_ATTACK_EDGE, or REEF_ATTACK_ROWS with knowledge = neighbours;
 *     otherwise they send `own`.
 */
#ifndef REEF_ATTACK_H
#define REEF_ATTACK_H

#include <reef/context.h>
#include <reef/registry.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    REEF_ATTACK_LANES = 1 << 0, /* takes R > 1 */
    REEF_ATTACK_EDGE = 1 << 1,  /* sends different rows to different receivers */
    REEF_ATTACK_LABELS =
        1 << 2, /* the attack is in the data: malicious agents learn from flipped labels and send what comes out */
    REEF_ATTACK_RULE = 1 << 3, /* tries out the rule in use (view->aggregate) */
    REEF_ATTACK_ROWS =
        1 << 4, /* looks at the known rows; without this `known` may be 0, and knowledge does not matter */
    /* The row does not depend on sender, own or previous, provided known > 0 (with ROWS) and receiver_model (with EDGE). */
    REEF_ATTACK_SAME = 1 << 5,
    /* Likewise, but it depends on previous: the same for senders with the same previous. */
    REEF_ATTACK_SAME_PREVIOUS = 1 << 6,
    REEF_ATTACK_TRUST = 1 << 7, /* watches the weight that malicious agents get (view->trust) */
};

/* What a malicious agent may know. */
typedef enum reef_knowledge {
    REEF_KNOW_ALL,        /* the rows of all honest agents */
    REEF_KNOW_NEIGHBOURS, /* those that the receiver hears: one message per receiver */
    REEF_KNOW_MALICIOUS,  /* only what the malicious agents themselves would have sent */
    REEF_KNOW_AUTO,       /* for create only: the kind's default */
} reef_knowledge;

/* One malicious agent about to send. Rows are finite unless honest agents have diverged. */
typedef struct reef_attack_view {
    int64_t round;               /* from 0 */
    uint64_t seed;               /* of the attack's own draws */
    ptrdiff_t sender;            /* number of the sender */
    ptrdiff_t receiver;          /* number of the receiver; -1: the same row goes to all */
    ptrdiff_t length;            /* M x R */
    ptrdiff_t lanes;             /* R */
    ptrdiff_t repetition;        /* number of lane 0's repetition */
    const float *own;            /* what it would have sent if honest */
    const float *previous;       /* its model before this round's adaptation */
    const float *receiver_model; /* the receiver's model or, with a server, the server's; NULL if not known */
    ptrdiff_t
        known; /* rows it knows: those of honest agents or, under REEF_KNOW_MALICIOUS, those of all malicious ones as if honest; may be 0 */
    const float *const *rows;  /* the rows it knows */
    ptrdiff_t honest;          /* honest rows that the attacked aggregation hears */
    ptrdiff_t malicious_count; /* malicious rows that it hears */
    /* Applies the rule in use to `count` rows: out receives length numbers; false if it fails. NULL if not offered. */
    bool (*aggregate)(void *user, const float *const *rows, ptrdiff_t count, float *out);
    void *user;  /* passed to aggregate */
    float *work; /* reef_attack_work numbers, aligned as by malloc, of the calling thread alone */
    /* Mean effective weight over fair share that honest receivers gave to malicious senders when they last heard them; 1 before that, and if it
     * cannot be known. */
    double trust;
} reef_attack_view;

/* A kind of attack. */
typedef struct reef_attack_kind {
    reef_kind kind;           /* name, summary, citation, fields */
    unsigned traits;          /* those that hold for all parameters */
    reef_knowledge knowledge; /* preset of the common field */
    ptrdiff_t work_rows;      /* rows of `length` numbers that it needs for work */
    /* The row to send; out does not overlap anything in the view. Returns false to stay silent. NULL: sends `own` (label flip). */
    bool (*message)(const void *params, const reef_attack_view *view, float *out);
    /* Rounds by which the message is late: the row of round - delay is delivered, and nothing before that. NULL: never
     * late. */
    int64_t (*delay)(const void *params);
    /* Rounds after which a malicious agent gets a new id; -k: it has k ids, one of which is drawn in every round. NULL or 0: never. */
    int64_t (*identity)(const void *params);
    /* Traits for these parameters, if they are more than `traits`. NULL: they never are. */
    unsigned (*traits_of)(const void *params);
} reef_attack_kind;

/* What every attack takes besides its own fields. */
typedef struct reef_attack_common {
    int knowledge;       /* reef_knowledge; never AUTO once created */
    int64_t from, until; /* rounds in which it attacks: from <= round < until (until 0: no end) */
    int64_t on, off;     /* within them, `on` rounds of attack, then `off` of honesty; off 0: always */
} reef_attack_common;

/* An attack: immutable after create, usable from many threads. The context must outlive it, and so must a kind of your own. */
typedef struct reef_attack reef_attack;

/* spec: kind:key=value,... for instance "additive:delta=1000", "alie:z=1.5,knowledge=malicious", "sign_flip:on=10,off=10". */
REEF_API REEF_MUST_CHECK reef_status reef_attack_create(reef_context *context, reef_attack **attack, const char *spec,
                                                        reef_error *error);
/* The same with a kind of your own, which must outlive the attack; params and common are copied and may be NULL: presets. */
REEF_API REEF_MUST_CHECK reef_status reef_attack_create_own(reef_context *context, reef_attack **attack,
                                                            const reef_attack_kind *kind, const void *params,
                                                            const reef_attack_common *common, reef_error *error);
/* Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_attack_destroy(reef_attack **attack);

/* What kind of attack it is. */
REEF_API const reef_attack_kind *reef_attack_kind_of(const reef_attack *attack);
/* Its own parameters, in the struct that its kind describes. */
REEF_API const void *reef_attack_params(const reef_attack *attack);
/* The parameters that every attack has. */
REEF_API const reef_attack_common *reef_attack_common_of(const reef_attack *attack);
/* Traits for its parameters. */
REEF_API unsigned reef_attack_traits(const reef_attack *attack);
/* Rounds by which its messages are late, 0: never late. */
REEF_API int64_t reef_attack_delay(const reef_attack *attack);
/* Whether it attacks in a round. */
REEF_API bool reef_attack_active(const reef_attack *attack, int64_t round);
/* The id under which receivers hear malicious agent `agent` of `agents`: its number, or ids that no other agent has (attack NULL: its number). */
REEF_API int64_t reef_attack_identity(const reef_attack *attack, ptrdiff_t agent, ptrdiff_t agents, int64_t round);
/* Numbers (not bytes) of work that a view needs for rows of this length, if at most `known` rows are known: 4 (known + 2) +
 * work_rows x length; -1 if that overflows or an argument is negative. */
REEF_API ptrdiff_t reef_attack_work(const reef_attack *attack, ptrdiff_t length, ptrdiff_t known);
/* The full text with every parameter, like snprintf; returns its length. */
REEF_API size_t reef_attack_print(const reef_attack *attack, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
