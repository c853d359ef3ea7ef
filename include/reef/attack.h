/* What liars send: attacks, by name or your own.
 *
 * Liars run the protocol like everybody else and change only what they send (or when, or the data they learn from). In every round a
 * liar is asked for the row it sends, given a view of what it may know. Randomness is a pure function of (seed, round, liar), so any
 * thread or process may compute any message.
 *
 * Rows are float32 of `length` = M x R numbers (see problem.h). With R > 1 repetitions side by side, an attack that works on whole
 * vectors (norms, inner products) has to treat each repetition by itself: only attacks with REEF_ATTACK_LANES are given R > 1.
 *
 * One round, for a caller:
 *     if (reef_attack_active(attack, round)) ask kind->message once per liar, or
 *         once for all liars           if reef_attack_traits has REEF_ATTACK_SAME and, with REEF_ATTACK_ROWS, known > 0,
 *         once per receiver            if it has REEF_ATTACK_EDGE, or REEF_ATTACK_ROWS with knowledge = neighbours;
 *     otherwise liars send `own`.
 */
#ifndef REEF_ATTACK_H
#define REEF_ATTACK_H

#include <reef/context.h>
#include <reef/field.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    REEF_ATTACK_LANES = 1 << 0,  /* takes R > 1 */
    REEF_ATTACK_EDGE = 1 << 1,   /* sends different rows to different receivers */
    REEF_ATTACK_LABELS = 1 << 2, /* lies in the data: liars learn from flipped labels and send what comes out */
    REEF_ATTACK_RULE = 1 << 3,   /* tries the rule in force (view->aggregate) */
    REEF_ATTACK_ROWS = 1 << 4, /* looks at the rows known; without it `known` may be 0 and knowledge does not matter */
    /* The row depends neither on liar nor on own nor on previous, provided known > 0 (with ROWS) and receiver_model (with EDGE). */
    REEF_ATTACK_SAME = 1 << 5,
    /* Likewise, but on previous it does depend: the same for liars of the same previous. */
    REEF_ATTACK_SAME_PREVIOUS = 1 << 6,
};

/* What a liar may know. */
typedef enum reef_knowledge {
    REEF_KNOW_ALL,        /* the rows of all honest agents */
    REEF_KNOW_NEIGHBOURS, /* those that the receiver hears: a message per receiver */
    REEF_KNOW_LIARS,      /* only what the liars themselves would have sent */
    REEF_KNOW_AUTO,       /* for create only: as the kind has it */
} reef_knowledge;

/* One liar about to send. Rows are finite unless honest agents have diverged. */
typedef struct reef_attack_view {
    int64_t round;
    uint64_t seed;
    ptrdiff_t liar;              /* number of the sender */
    ptrdiff_t receiver;          /* number of the receiver; -1: the same row goes to all */
    ptrdiff_t length;            /* M x R */
    ptrdiff_t lanes;             /* R */
    ptrdiff_t repetition;        /* number of lane 0's repetition */
    const float *own;            /* what it would have sent if honest */
    const float *previous;       /* its model before this round's adaptation */
    const float *receiver_model; /* the receiver's model or, with a server, the server's; NULL if not known */
    ptrdiff_t known; /* rows it knows: of honest agents, or under REEF_KNOW_LIARS of all liars as if honest; may be 0 */
    const float *const *rows;
    ptrdiff_t honest; /* honest rows and liars that the aggregation it aims at hears */
    ptrdiff_t liars;
    /* The rule in force on `count` rows: out receives length numbers; false if it fails. NULL if not offered. */
    bool (*aggregate)(void *user, const float *const *rows, ptrdiff_t count, float *out);
    void *user;
    float *work; /* reef_attack_work numbers, aligned as by malloc, of the calling thread alone */
} reef_attack_view;

/* A kind of attack. */
typedef struct reef_attack_kind {
    reef_kind kind;
    unsigned traits;          /* that hold whatever the parameters */
    reef_knowledge knowledge; /* preset of the common field */
    ptrdiff_t work_rows;      /* rows of `length` numbers that it needs for work */
    /* The row to send; out does not overlap anything in the view. Returns false to stay silent. NULL: sends `own` (label flip). */
    bool (*message)(const void *params, const reef_attack_view *view, float *out);
    /* Rounds by which the message arrives late: the row of round - delay is delivered, before that nothing. NULL: never
     * late. */
    int64_t (*delay)(const void *params);
    /* Traits for these parameters where they are more than `traits`. NULL: they never are. */
    unsigned (*traits_of)(const void *params);
} reef_attack_kind;

/* What every attack takes beside its own fields. */
typedef struct reef_attack_common {
    int knowledge;       /* reef_knowledge; never AUTO once created */
    int64_t from, until; /* rounds in which it attacks: from <= round < until (until 0: for ever) */
    int64_t on, off;     /* within them, `on` rounds of attack, then `off` of honesty; off 0: always */
} reef_attack_common;

typedef struct reef_attack reef_attack;

/* spec: kind:key=value,... for instance "additive:delta=1000", "alie:z=1.5,knowledge=liars", "sign_flip:on=10,off=10". */
REEF_API reef_status reef_attack_create(reef_context *context, reef_attack **attack, const char *spec,
                                        reef_error *error);
/* The same with a kind of your own, which must outlive the attack; params and common are copied and may be NULL: presets. */
REEF_API reef_status reef_attack_create_own(reef_context *context, reef_attack **attack, const reef_attack_kind *kind,
                                            const void *params, const reef_attack_common *common, reef_error *error);
REEF_API void reef_attack_destroy(reef_attack **attack);

REEF_API const reef_attack_kind *reef_attack_kind_of(const reef_attack *attack);
REEF_API const void *reef_attack_params(const reef_attack *attack);
REEF_API const reef_attack_common *reef_attack_common_of(const reef_attack *attack);
/* Traits for its parameters. */
REEF_API unsigned reef_attack_traits(const reef_attack *attack);
/* Rounds by which its messages are late, 0: never late. */
REEF_API int64_t reef_attack_delay(const reef_attack *attack);
/* Whether it attacks in a round. */
REEF_API bool reef_attack_active(const reef_attack *attack, int64_t round);
/* Numbers (not bytes) of work a view needs for rows of this length when at most `known` rows are known: 4 (known + 2) +
 * work_rows x length; -1 if that overflows or an argument is negative. */
REEF_API ptrdiff_t reef_attack_work(const reef_attack *attack, ptrdiff_t length, ptrdiff_t known);
/* The full spec with every parameter, like snprintf; returns its length. */
REEF_API size_t reef_attack_print(const reef_attack *attack, char *text, size_t size);

/* The kinds there are; index out of range or unknown name: NULL. */
REEF_API ptrdiff_t reef_attack_count(void);
REEF_API const reef_attack_kind *reef_attack_at(ptrdiff_t index);
REEF_API const reef_attack_kind *reef_attack_find(const char *name);
/* What every kind takes beside its own fields. */
REEF_API const reef_field *reef_attack_common_fields(ptrdiff_t *count);

#ifdef __cplusplus
}
#endif
#endif
