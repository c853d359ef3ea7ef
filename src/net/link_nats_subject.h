/* The subjects that messages travel under, as text: written for those we send, read from those the broker hands us. */
#ifndef RFI_NET_LINK_NATS_SUBJECT_H
#define RFI_NET_LINK_NATS_SUBJECT_H

#include "net/link.h"

enum { RFI_SUBJECT_TEXT = 192, RFI_RUN_TOKEN = 32 };

/* What the subjects of one link begin with. */
typedef struct rfi_nats_names {
    char run[RFI_RUN_TOKEN + 1];
    char inbox[RFI_SUBJECT_TEXT]; /* where answers go, without the last dot */
} rfi_nats_names;

/* Draws the inbox of an agent of names->run. */
void rfi_draw_inbox(rfi_nats_names *names, uint32_t agent);
/* What is stored or sent under a topic. */
void rfi_subject_print(const rfi_nats_names *names, const rfi_topic *topic, char subject[RFI_SUBJECT_TEXT]);
/* A model, an event, a proof or an agent's run file by its subject; false: none of them, or of another run. */
bool rfi_subject_read(const rfi_nats_names *names, const char *subject, rfi_topic *topic);
/* What an answer is about, by the subject it came under. The round of a model is not in it. */
bool rfi_inbox_read(const rfi_nats_names *names, const char *subject, rfi_topic *topic);

#endif
