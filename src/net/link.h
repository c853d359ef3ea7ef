/* The way to the brokers, as a table of operations: NATS in link_nats.c, a simulated network in tests/net. Nothing that comes
 * through it is trusted. */
#ifndef RFI_NET_LINK_H
#define RFI_NET_LINK_H

#include <reef/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Messages of one neighbour that a link keeps until they are polled; more are lost. */
enum { RFI_LINK_QUEUE = 8 };

typedef enum rfi_topic_kind {
    RFI_TOPIC_SLOT,   /* frames of an agent, one place per round, write-once as far as the broker keeps its word */
    RFI_TOPIC_CHUNK,  /* parts of large models: a ring of RFI_RING (net/fetch.h) rounds */
    RFI_TOPIC_EVENT,  /* hello, good-bye and echoes; not stored */
    RFI_TOPIC_PROOF,  /* proofs against two-faced senders */
    RFI_TOPIC_STATUS, /* what an agent says about itself, for observers; not stored */
    RFI_TOPIC_FILE, /* a run file of a later epoch: the last one that an agent handed out, or that of an epoch (net/handout.h) */
} rfi_topic_kind;

/* Seconds after which a broker that takes nothing of what is sent to it is given up, and the connection made anew. */
#define RFI_LINK_PATIENCE 10.0

/* Brokers of an agent at most, from 1 on, and 0: any of them. */
#define RFI_WAYS 9

/* In place of an agent: the broker itself. */
#define RFI_TOPIC_BROKER UINT32_MAX

typedef struct rfi_topic {
    rfi_topic_kind kind;
    uint32_t agent;
    uint64_t round;  /* slots and chunks; the epoch of a broker's run file */
    uint32_t number; /* chunks */
    bool exact;      /* a slot that is asked for: that of the round, not the newest */
    unsigned way;    /* by which of several brokers it comes or is to go; 0: all of them, or the only one */
} rfi_topic;

typedef enum rfi_message_kind {
    RFI_MESSAGE_DATA,   /* published or stored bytes */
    RFI_MESSAGE_ABSENT, /* the store has nothing under the topic asked for */
    RFI_MESSAGE_UP, /* connected, or connected again, by the topic's way: what was published there may have been lost */
} rfi_message_kind;

typedef struct rfi_message {
    rfi_message_kind kind;
    rfi_topic topic;
    const unsigned char *bytes; /* until the next call of poll */
    size_t size;
    bool partial; /* a slot of this agent, of which other brokers may hold a newer one: they have not answered yet */
} rfi_message;

typedef struct rfi_netlink rfi_netlink;

typedef struct rfi_netlink_ops {
    /* Sends, or does not: nothing is promised, so nothing is returned. Copies the bytes. Takes RFI_LINK_PATIENCE at most. */
    void (*publish)(rfi_netlink *link, const rfi_topic *topic, const void *bytes, size_t size);
    /* Asks the store: for the newest slot of an agent, unless the topic wants it exact; for a chunk that very one. */
    void (*get)(rfi_netlink *link, const rfi_topic *topic);
    /* The next message, if there is one; never waits. */
    bool (*poll)(rfi_netlink *link, rfi_message *message);
} rfi_netlink_ops;

/* The first member of every link. */
struct rfi_netlink {
    const rfi_netlink_ops *ops;
};

#endif
