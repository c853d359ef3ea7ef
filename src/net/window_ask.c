/* What rounds ask of a window: how far the neighbourhood is, rows to combine, whether more is to be expected, who offends. Changes
 * nothing. */
#include "net/window.h"

#include <math.h>

/* The weight of claims it takes. Of those who claim, F may be malicious and send nothing; the others should exceed 2 F with the own
 * row. But no more is asked than honest neighbours alone can give. */
static double claims_wanted(const rfi_window_setup *setup)
{
    double f = setup->malicious;
    double own = setup->own_weight;
    return fmax(f, fmin(3 * f - own, 1 - own - f - 2 * RFI_WEIGHT_SLACK)) + RFI_WEIGHT_SLACK;
}

int64_t rfi_window_claimed(const rfi_window *window)
{
    int64_t claimed = -1;
    double wanted = claims_wanted(&window->setup);
    for (ptrdiff_t l = 0; l < window->setup.count; l++) {
        int64_t candidate = window->peers[l].claim;
        if (window->peers[l].excluded || candidate <= claimed) {
            continue;
        }
        double weight = 0;
        for (ptrdiff_t k = 0; k < window->setup.count; k++) {
            const rfi_peer *peer = &window->peers[k];
            weight += !peer->excluded && peer->claim >= candidate ? peer->who.weight : 0;
        }
        if (weight > wanted) {
            claimed = candidate;
        }
    }
    return claimed;
}

/* An excluded neighbour was there, if only to be excluded: were it left out, neighbours with more than 1 - 2 F of the weight could have
 * themselves excluded while others start, and keep these waiting for ever, and with them all who wait to see them go on. */
double rfi_window_heard(const rfi_window *window)
{
    double weight = window->setup.own_weight;
    for (ptrdiff_t l = 0; l < window->setup.count; l++) {
        const rfi_peer *peer = &window->peers[l];
        weight += peer->heard || peer->excluded ? peer->who.weight : 0;
    }
    return weight;
}

rfi_row rfi_window_row(const rfi_window *window, ptrdiff_t peer, uint64_t round)
{
    rfi_row row = {NULL, 0};
    const rfi_peer *from = &window->peers[peer];
    for (int s = 0; s < 2 && !from->excluded; s++) {
        const rfi_slot *slot = &from->slots[s];
        int64_t age = (int64_t)round - (int64_t)slot->round;
        if (slot->state != RFI_SLOT_COMPLETE || age > window->setup.stale) {
            continue;
        }
        if (!row.model || age == 0 || (row.age != 0 && age < row.age)) {
            row = (rfi_row){slot->model, age};
        }
    }
    return row;
}

bool rfi_window_settled(const rfi_window *window, ptrdiff_t peer, uint64_t round, bool exact)
{
    rfi_peer *from = &window->peers[peer];
    if (from->excluded || from->left) {
        return true;
    }
    rfi_row row = rfi_window_row(window, peer, round);
    if (row.model && row.age == 0) {
        return true;
    }
    /* It has gone on, and something else of it stands for this round; what of this round is still arriving is worth waiting for. */
    const rfi_slot *slot = rfi_peer_slot(from, round);
    return !exact && from->claim > (int64_t)round && row.model && !(slot && slot->state == RFI_SLOT_ARRIVING);
}

double rfi_window_weight(const rfi_window *window, uint64_t round, bool without_old)
{
    double weight = 0;
    for (ptrdiff_t l = 0; l < window->setup.count; l++) {
        rfi_row row = rfi_window_row(window, l, round);
        weight += row.model && (!without_old || row.age <= 0) ? window->peers[l].who.weight : 0;
    }
    return weight;
}

bool rfi_is_offence(rfi_cause cause)
{
    static const rfi_cause offences[] = {RFI_LENGTH,    RFI_FORMAT,    RFI_SENDER, RFI_CONFIG, RFI_SUBJECT, RFI_SHAPE,
                                         RFI_SIGNATURE, RFI_TWO_FACED, RFI_CHUNK,  RFI_VALUE,  RFI_SEAL};
    for (size_t i = 0; i < sizeof offences / sizeof offences[0]; i++) {
        if (offences[i] == cause) {
            return true;
        }
    }
    return false;
}

uint64_t rfi_offences(const rfi_peer *peer)
{
    uint64_t sum = 0;
    for (int cause = 0; cause < RFI_CAUSES; cause++) {
        sum += rfi_is_offence((rfi_cause)cause) ? peer->counts[cause] : 0;
    }
    return sum;
}
