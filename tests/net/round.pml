/* Round protocol of one run: H honest agents and a malicious one (the liar), all hear all, weight 1 each out of W = H + 1; F = 1.
 * Volatile: i.  Durable: J (last round signed, plus 1) and a checkpoint of any age.  Broker: slot, write once.
 * Loss, delay and deadlines: whether a slot that is there is heard is a free choice. The liar has frames for all rounds from the start.
 * Mutations (-D): LATE_JOURNAL, FORGET_JOURNAL, WEAK_QUORUM, COUNT_FRAMES, EAGER_JUMP. Each must make an assertion fail. */
#define H 3
#define W 4
#ifndef R
#define R 4                      /* rounds 0..R-1; a jump goes at least one ahead */
#endif
#define LIAR 3
#ifndef CRASHES
#define CRASHES 2
#endif
#define BIT(a, r) (1 << ((a) * R + (r)))

int slot;                        /* bit (agent, round): the slot is taken */
int ghost;                       /* bit (agent, round): signed by that honest agent, published or not */
byte J[H];
byte crashes;
byte top;                        /* ghost: highest round + 1 signed by an honest agent */

/* A frame of round i - 2 or later stands for its sender, however many there are. */
#define HEARD(l) ((slot >> ((l) * R)) & ~(((1 << i) - 1) >> 2) & ((1 << R) - 1))

inline sign() {
    assert((ghost & BIT(me, i)) == 0);          /* never two models for one round */
    ghost = ghost | BIT(me, i);
    if :: i + 1 > top -> top = i + 1 :: else fi
}
inline l_all() { slot = BIT(LIAR, R) - BIT(LIAR, 0) }
inline publish() { slot = slot | BIT(me, i) }
inline may_crash() { if :: crashes < CRASHES -> crashes++; goto start :: skip fi }

proctype honest(byte me) {
    byte i; byte n; byte l; byte liars; byte r; byte claims; byte q;
start:
    atomic {
        n = 0; l = 0; liars = 0; r = 0; claims = 0; q = 0;
        do :: i > 0 -> i-- :: break od;         /* the checkpoint may be of any age */
#ifndef FORGET_JOURNAL
        if :: i < J[me] -> i = J[me] :: else fi   /* a round that was signed is over, published or not */
#endif
    }
round_:
    atomic {
        if :: i >= R -> goto done :: else fi;
#ifdef LATE_JOURNAL
        sign(); publish(); may_crash(); J[me] = i + 1
#else
        J[me] = i + 1                             /* durable before the key is used */
#endif
        ; may_crash()
    }
#ifndef LATE_JOURNAL
    atomic { sign(); may_crash(); publish(); may_crash() }
#endif
    atomic {
        n = 1; liars = 0; l = 0;
        do
        :: l == W -> break
        :: l < W && l == me -> l++
        :: l < W && l != me && HEARD(l) ->
            n++; if :: l == LIAR -> liars++ :: else fi;
#ifdef COUNT_FRAMES
            if :: l == LIAR -> n++; liars++ :: else fi;          /* a second frame of one sender counts again */
#endif
            l++
        :: l < W && l != me -> l++                               /* not there, lost, or late */
        od;
#ifdef WEAK_QUORUM
        if :: n >= 2 -> assert(n - liars > liars) :: else fi;
#else
        if :: n > 2 -> assert(n - liars > liars) :: else fi;      /* combine only if weight > 2 F; otherwise a self step */
#endif
        n = 0; liars = 0; l = 0;
        may_crash();
        r = R;                                                    /* fast forward */
        do
        :: r > i + 1 ->
            r--; l = 0; claims = 0;
            do
            :: l == W -> break
            :: l < W && l == me -> l++
            :: l < W && l != me ->
                q = r;
                do :: q < R && !(slot & BIT(l, q)) -> q++ :: else -> break od;
                if :: q < R -> claims++ :: else fi; l++
            od;
#ifdef EAGER_JUMP
            if :: claims > 0 -> break :: else fi
#else
            if :: claims > 1 -> break :: else fi                  /* weight > F */
#endif
        :: r <= i + 1 -> r = 0; break
        od;
        if
        :: r > 0 -> assert(r < top); i = r                        /* some honest agent has been there */
        :: else -> i++
        fi;
        q = 0; claims = 0; l = 0; r = 0;
#ifndef FORGET_JOURNAL
        if :: i < J[me] -> i = J[me] :: else fi
#endif
    }
    goto round_;
done:
    skip
}

init { atomic { l_all(); run honest(0); run honest(1); run honest(2) } }
