/* MREF: who stands with whom. Pairs are kept within blocks of places, and senders get places in the order in which they are first heard. A flood of
 * new ids would fill the blocks, and senders that come after it would stand among themselves, where nobody is left to compare them with. So
 * senders that are heard move forward, into places of such as are hardly heard any more: with half of their presence or less. */
#include "agg/rules/mref/mref.h"
#include "agg/senders.h"

/* Rows that may move at a time: what it costs is bounded, and everybody's turn comes. */
enum { MOVES = 32 };

static double presence_at(const rfi_senders *s, const rfi_mref_view *view, ptrdiff_t place)
{
    const rfi_mref_trace *trace = (const rfi_mref_trace *)(const void *)(s->records + (size_t)place * s->sizes.record);
    return rfi_mref_faded(view, trace->presence, view->rounds - s->who[place].heard);
}

/* The place below `end` whose sender is heard least. */
static ptrdiff_t least_heard(const rfi_senders *s, const rfi_mref_view *view, ptrdiff_t end)
{
    ptrdiff_t least = 0;
    double smallest = 1;
    for (ptrdiff_t place = 0; place < end; place++) {
        double presence = s->who[place].heard < view->rounds ? presence_at(s, view, place) : 1;
        if (presence < smallest) {
            smallest = presence;
            least = place;
        }
    }
    return least;
}

static void move_forward(const rfi_senders *s, const rfi_mref_view *view, ptrdiff_t place)
{
    ptrdiff_t end = place / RFI_MREF_BLOCK * RFI_MREF_BLOCK;
    end = end < s->sizes.pair_places ? end : s->sizes.pair_places;
    ptrdiff_t least = least_heard(s, view, end);
    bool absent = s->who[least].heard < view->rounds;
    if (absent && presence_at(s, view, place) >= 2 * presence_at(s, view, least)) {
        rfi_senders_swap(s, least, place);
    }
}

void rfi_mref_regroup(const reef_recall *recall, const rfi_mref_view *view)
{
    const rfi_senders *s = recall->memory;
    if (s->count <= RFI_MREF_BLOCK) {
        return;
    }
    ptrdiff_t from = (ptrdiff_t)((view->rounds / RFI_MREF_SHORTEST * MOVES) % view->n);
    ptrdiff_t moves = 0;
    for (ptrdiff_t i = 0; i < view->n && moves < MOVES; i++) {
        ptrdiff_t place = rfi_senders_find(s, recall->ids[(from + i) % view->n]);
        if (place >= RFI_MREF_BLOCK) {
            move_forward(s, view, place);
            moves++;
        }
    }
}
