/* Inside of the simulation, shared by its files: sim.c plays, sim_link.c is the network, sim_check.c watches. */
#ifndef TESTS_NET_SIM_WORLD_H
#define TESTS_NET_SIM_WORLD_H

#include "net/node.h"
#include "net/sim.h"
#include "num/rng.h"

#include <setjmp.h>

enum {
    SIM_AGENTS = 9,
    SIM_BROKERS = 2,
    SIM_ROUNDS = 4096,
    SIM_STORE = 8,
    SIM_LARGE = 8200,
    SIM_SMALL = 2,
    SIM_CHECKPOINTS = 4
};

typedef enum sim_character {
    SIM_HONEST,
    SIM_SILENT,
    SIM_FAR,       /* claims rounds far ahead */
    SIM_TWO_FACED, /* signs two models for each round */
    SIM_GARBAGE,   /* floods with bytes of all kinds */
    SIM_NOT_A_NUMBER,
    SIM_LATE,
    SIM_FALSE_ECHO, /* lies in its echoes, and accuses honest agents */
    SIM_CHARACTERS
} sim_character;

typedef enum sim_event_kind {
    SIM_ARRIVE_BROKER,
    SIM_ASK_BROKER,
    SIM_ARRIVE_AGENT,
    SIM_WAKE,
    SIM_MODEL,
    SIM_START
} sim_event_kind;

typedef struct sim_event {
    double at;
    uint64_t order; /* events at one time happen in the order they were made */
    sim_event_kind kind;
    int agent;
    int broker;
    uint64_t life; /* of the agent: events of an earlier life mean nothing */
    rfi_message_kind message;
    rfi_topic topic;
    unsigned char *bytes;
    size_t size;
} sim_event;

typedef struct sim_stored {
    bool there;
    rfi_topic topic;
    unsigned char *bytes;
    size_t size;
} sim_stored;

typedef struct sim_broker {
    bool hostile;
    double dead_from; /* from then on it is gone for good */
    bool splits;      /* shows each half of the agents another model of a two-faced sender, and neither the other's */
    sim_stored slots[SIM_AGENTS][SIM_STORE]; /* at round modulo the size */
    uint64_t newest[SIM_AGENTS];             /* round plus 1 */
    sim_stored chunks[SIM_AGENTS][RFI_RING][3];
} sim_broker;

typedef struct sim_world sim_world;

typedef struct sim_link {
    rfi_netlink base;
    sim_world *world;
    int agent;
    bool mute; /* crashes before anything more is sent */
} sim_link;

typedef struct sim_agent {
    sim_character character;
    rfi_keys keys;
    rfi_node *node;
    sim_link link;
    uint64_t life;
    bool up;
    bool crash; /* at the end of this step */
    uint64_t boot;
    uint64_t next; /* the journal: survives crashes */
    double knows;  /* when it gets to know the second run file */
    bool second;   /* which it works by: survives crashes */
    double phi[SIM_LARGE];
    struct {
        uint64_t round;
        double model[SIM_LARGE];
    } checkpoint[SIM_CHECKPOINTS];
    int checkpoints;
    bool proven[SIM_AGENTS]; /* proofs on its disk: survive crashes */
    unsigned char proofs[SIM_AGENTS][RFI_PROOF_BYTES];
    sim_event inbox; /* the message being delivered */
    bool has_message;
    double slowness; /* seconds to make a model */
    bool making;     /* a model is being made */
    double wake;     /* when it is to be woken; wakes at other times are out of date */
    /* What really happened. */
    bool signed_[SIM_ROUNDS];
    unsigned char mark[SIM_ROUNDS][RFI_HASH_BYTES];
    double value[SIM_ROUNDS]; /* first number of the model signed */
    uint64_t top;             /* the last round signed or recorded, plus 1 */
    uint64_t healed_combined; /* combinations since the network healed */
    uint64_t faces_since;     /* rounds since then for which it has signed two models */
} sim_agent;

struct sim_world {
    sim_options options;
    rfi_rng rng;
    double now;
    sim_event event; /* the one that happens; a failed check leaves its bytes behind */
    sim_event *heap;
    ptrdiff_t events;
    ptrdiff_t room;
    uint64_t order;
    int agents;
    int brokers;
    int reach; /* neighbours on each side of the ring; 0: all */
    sim_agent agent[SIM_AGENTS];
    sim_broker broker[SIM_BROKERS];
    bool linked[SIM_AGENTS][SIM_AGENTS];
    bool witness[SIM_AGENTS][SIM_AGENTS]; /* hear a common sender */
    double malicious;                     /* F */
    double deadline;
    uint64_t from; /* the second epoch's first round */
    double loss, repeat, damage, crash;
    double delay;
    bool cut;      /* agents of different sides do not hear each other */
    unsigned side; /* bit per agent */
    unsigned half; /* of a broker that splits views: bit per agent */
    double cut_from, cut_until;
    bool healed;
    double healed_at;
    sim_result result;
    jmp_buf failed;
};

/* Ends the run with a promise that was broken. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3), noreturn))
#endif
void sim_fail(sim_world *world, const char *format, ...);
#define SIM_CHECK(world, condition, ...)                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            sim_fail(world, __VA_ARGS__);                                                                              \
        }                                                                                                              \
    } while (0)

double sim_uniform(sim_world *world);
bool sim_chance(sim_world *world, double probability);
int sim_below(sim_world *world, int bound);

/* Takes over event->bytes. */
void sim_later(sim_world *world, double seconds, sim_event event);
void sim_at(sim_world *world, double at, sim_event event);
unsigned char *sim_copy(const void *bytes, size_t size);
rfi_shape sim_shape(const sim_world *world);
/* Who hears an agent, if models are sealed; returns how many. */
ptrdiff_t sim_hearers(const sim_world *world, int agent, rfi_hearer hearers[SIM_AGENTS]);

extern const rfi_netlink_ops sim_link_ops;
/* A message or a question has come to a broker. */
void sim_broker_takes(sim_world *world, sim_event *event);
void sim_broker_asked(sim_world *world, const sim_event *event);
void sim_brokers_clear(sim_world *world);
/* What a malicious agent makes of a message it is about to send to a broker; true if it goes out. *bytes may be replaced. */
bool sim_malicious(sim_world *world, int agent, int broker, rfi_topic *topic, unsigned char **bytes, size_t *size);

/* The watching side. */
void sim_saw_record(sim_world *world, int agent, uint64_t round, const unsigned char *mark);
void sim_saw_frame(sim_world *world, int agent, const unsigned char *bytes, size_t size);
void sim_saw_rows(sim_world *world, int agent, uint64_t round, const rfi_row *rows, bool own);
void sim_saw_step(sim_world *world, int agent, double until);
void sim_saw_proof(sim_world *world, int agent, uint32_t accused);
/* Two-faced senders that every honest receiver has to have excluded by now, and has not; -1: none. */
int sim_unproven(const sim_world *world);

#endif
