/* A whole run in memory: agents, brokers and the network between them in virtual time, with faults drawn from a seed. The same seed
 * is the same run, event by event.
 *
 * Until the network heals: messages are lost, delayed, reordered, repeated and damaged; agents crash at any point and come back with
 * a checkpoint of any age; groups are cut off for longer than the store remembers; brokers may be hostile (drop, replay, forge, show
 * one agent's frames as another's, answer with anything, show each half of the agents another model of a two-faced
 * sender), and one of two may be gone for good; malicious agents, of at most F of the weight in every neighbourhood, send
 * what they like. After it all honest agents must combine again, and a two-faced sender must be excluded by all honest agents that hear it,
 * if two of them were shown different models. No honest agent ever is.
 *
 * With `epochs` there is a second run file. Agents get to know it at any time, before or after the round from which it holds, and go over
 * to it; nobody signs a round under the wrong one of the two files that it knows.
 *
 * After every event the promises of net/round.h are checked against what really happened, which only the simulation knows. */
#ifndef TESTS_NET_SIM_H
#define TESTS_NET_SIM_H

#include <stdbool.h>
#include <stdint.h>

/* Errors built in on purpose: each must be found by the checks, otherwise they check nothing. */
typedef enum sim_sabotage {
    SIM_NONE,
    SIM_FORGET_JOURNAL, /* what was signed is forgotten in a crash */
    SIM_WEAK_QUORUM,    /* rows are combined without regard to F */
    SIM_NO_SIGNATURES,  /* every signature is taken for valid */
    SIM_NO_ECHOES,      /* nobody compares what was received */
    SIM_SABOTAGES
} sim_sabotage;

typedef struct sim_options {
    uint64_t seed;
    sim_sabotage sabotage;
    bool real;   /* Ed25519 instead of the cheap signatures */
    bool large;  /* models in chunks */
    bool plain;  /* without echoes, as seeds that were kept from before there were any */
    bool epochs; /* the coordinator signs a second run file, which everybody gets to know at another time */
    bool sealed; /* models are sealed */
    bool trace;  /* every event on standard error */
} sim_options;

typedef struct sim_result {
    bool good;
    char why[200];     /* the promise that was broken, and where */
    uint64_t combined; /* of all honest agents */
    uint64_t alone;
    uint64_t crashes;
    uint64_t idles;
    uint64_t joined;
    uint64_t stale; /* rows used that were not of the round */
    uint64_t excluded;
    uint64_t shut;   /* models that did not open */
    uint64_t epochs; /* that honest agents have gone over to */
    double seconds;  /* virtual */
} sim_result;

sim_result sim_run(const sim_options *options);

#endif
