/* An agent's way to its brokers: a connection to each, made one link; in tests with something that goes wrong on the way. */
#include "net/agent.h"

#include "base/error.h"
#include "base/hash.h"
#include "net/link_many.h"

_Static_assert(RFI_MANY_MAX >= RFI_BROKERS_MAX, "all brokers of a run file fit");

/* Witnesses that are not neighbours. */
static ptrdiff_t others(const rfi_agent *a, const uint32_t *agents, ptrdiff_t count, uint32_t *list)
{
    uint32_t witnesses[RFI_WITNESSES_MAX];
    ptrdiff_t found = rfi_roster_witnesses(&a->roster, a->place, witnesses);
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < found; i++) {
        bool neighbour = false;
        for (ptrdiff_t l = 0; l < count; l++) {
            neighbour |= agents[l] == witnesses[i];
        }
        if (!neighbour) {
            list[kept++] = witnesses[i];
        }
    }
    return kept;
}

/* Connects to a broker; the agent waits for messages of all at the first. */
static reef_status connect_to(rfi_agent *a, ptrdiff_t i, rfi_nats_setup *setup, reef_error *error)
{
    setup->url = a->file.broker[i];
    setup->leader = a->nats;
    reef_status status = rfi_nats_open(&a->brokers[i], NULL, setup, error);
    if (status != REEF_OK) {
        return status;
    }
    a->nats = i == 0 ? a->brokers[0] : a->nats;
    a->ways[i] = a->brokers[i];
    bool false_face = i % 2 == 1 && a->roster.malicious[a->place] && a->file.test.two_faced != 0;
    return false_face ? rfi_faces_open(&a->ways[i], a, a->brokers[i], a->file.test.two_faced, error) : REEF_OK;
}

reef_status rfi_links_open(rfi_agent *a, const char *authority, const rfi_neighbour *neighbours, ptrdiff_t count,
                           reef_error *error)
{
    uint32_t agents[RFI_NEIGHBOURS_MAX];
    uint32_t list[RFI_WITNESSES_MAX];
    for (ptrdiff_t l = 0; l < count; l++) {
        agents[l] = neighbours[l].agent;
    }
    rfi_nats_setup setup = {.run = a->file.run,
                            .agent = (uint32_t)a->place,
                            .count = count,
                            .agents = agents,
                            .other_count = others(a, agents, count, list),
                            .others = list,
                            .login = &a->secret.login,
                            .authority = authority};
    for (ptrdiff_t i = 0; i < a->file.brokers; i++) {
        reef_status status = connect_to(a, i, &setup, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    reef_status status = rfi_many_open(&a->many, NULL, setup.agent, a->ways, (int)a->file.brokers, rfi_now, error);
    a->link = a->many;
    if (status != REEF_OK || !(a->file.test.drop > 0)) {
        return status;
    }
    uint64_t seed = rfi_hash_number(rfi_hash_number(RFI_HASH_START, (uint64_t)a->file.terms.seed), (uint64_t)a->place);
    return rfi_drop_open(&a->link, NULL, a->many, a->file.test.drop, seed, error);
}

void rfi_links_close(rfi_agent *a)
{
    if (a->link != a->many) {
        rfi_drop_close(&a->link);
    }
    rfi_many_close(&a->many);
    for (ptrdiff_t i = RFI_BROKERS_MAX - 1; i >= 0; i--) { /* the first last: the others tell it of messages */
        if (a->ways[i] != a->brokers[i]) {
            rfi_faces_close(&a->ways[i]);
        }
        rfi_nats_close(&a->brokers[i]);
        a->ways[i] = NULL;
    }
    a->nats = a->link = NULL;
}

bool rfi_links_refused(const rfi_agent *a)
{
    bool all = true;
    for (ptrdiff_t i = 0; i < a->file.brokers; i++) {
        all = all && rfi_nats_refused(a->brokers[i]);
    }
    return all;
}
