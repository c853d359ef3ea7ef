"""Makes mref_golden.txt: weights of the numpy specification mref_reference.py, for tests/agg/test_mref_golden.c.

Usage: python3 make_mref.py > mref_golden.txt   (numpy)

The rows are made again by the test: each number is a hash of (scene, round, row, column), exact in float64."""
import numpy as np
from mref_reference import MREF

MASK = (1 << 64) - 1
ROUNDS = 300


def hashed(*parts):
    """Splitmix64 over the parts, then a uniform number in [0, 1)."""
    x = 0
    for part in parts:
        x = (x + part + 0x9E3779B97F4A7C15) & MASK
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
        x ^= x >> 31
    return (x >> 11) * 2.0 ** -53


def noise(scene, t, l, m):
    return sum(hashed(scene, t, l, m, i) for i in range(4)) - 2


# rows, columns, liars, lie, half period (0: constant), honest spread, heavy tails, own row, liars all send the same, additions, who is there,
# noise that liars share, longest window
# the liars have new ids in every round; are away in rounds 60 to 219; four in five rows are there in a round; that with new ids, and no room
# for more senders than rows; each liar has three ids that take turns; honest agents that
# differ agree more and more from round 64 on; the liars leave from round 48 on, for two sides; they have new ids in every round, and weights
# three times as large
ALL, NEW_IDS, AWAY, SOME, FLOOD, TURNS, AGREE, LEAVE, HEAVY = range(9)
SCENES = [
    (16, 6, 5, 0.4, 0, 0.0, 0, -1, 0, 0, ALL, 0.0),     # colluders inside the honest spread
    (12, 40, 3, 0.05, 0, 0.0, 0, -1, 0, 0, ALL, 0.0),   # weaker, in more dimensions than senders
    (20, 4, 6, 0.6, 12, 0.0, 0, -1, 0, 0, ALL, 0.0),    # lies that change sign
    (10, 5, 2, 50.0, 0, 0.0, 1, -1, 0, 0, ALL, 0.0),    # gross lies, heavy tails
    (14, 3, 3, 0.5, 0, 0.6, 0, -1, 0, 0, ALL, 0.0),     # honest agents that differ for good
    (5, 4, 1, 0.7, 0, 0.0, 0, 2, 0, 0, ALL, 0.0),       # few rows, the receiver's own among them
    (7, 2, 2, 1.0, 30, 0.0, 1, 2, 0, 0, ALL, 0.0),      # more than five: the own row does not matter
    (14, 3, 3, 0.5, 0, 0.6, 0, -1, 0, 1, ALL, 0.0),     # the rule with its additions: honest agents that differ for good
    (12, 6, 4, 0.1, 0, 0.0, 0, -1, 1, 1, ALL, 0.0),     # copies
    (20, 8, 8, 0.6, 0, 0.4, 0, -1, 0, 1, ALL, 0.0),     # a group among agents that differ
    (5, 4, 2, 0.3, 0, 0.0, 0, 2, 1, 1, ALL, 0.0),       # copies among few
    (20, 10, 8, 0.3, 10, 0.0, 0, -1, 0, 1, ALL, 0.0),   # colluders who change sides: together
    (20, 6, 6, 0.0, 0, 0.0, 1, -1, 0, 1, ALL, 0.8),     # shared noise, heavy tails
    (16, 6, 4, 0.7, 0, 0.0, 0, -1, 0, 1, NEW_IDS, 0.0), # newcomers in every round: probation, and balance at first
    (16, 6, 5, 0.3, 0, 0.2, 0, -1, 0, 1, AWAY, 0.0),    # who comes back
    (20, 8, 7, 0.4, 8, 0.0, 0, -1, 0, 1, SOME, 0.5),    # a server that hears some
    (16, 6, 6, 0.5, 0, 0.2, 0, -1, 0, 1, FLOOD, 0.0),   # a flood of new ids, and room for few
    (18, 6, 7, 0.0, 0, 0.0, 0, -1, 0, 1, ALL, 1.5),     # senders that share most of their noise: one voice
    (20, 10, 8, 0.0, 0, 0.0, 0, -1, 0, 1, TURNS, 0.7),  # more ids than honest senders, taking turns; half of the weight has to remain
    (20, 10, 8, 0.12, 0, 0.0, 0, 2, 0, 1, ALL, 0.0),    # a receiver in the smaller group: together does not cut it
    (20, 8, 8, 0.05, 0, 0.6, 0, -1, 1, 1, ALL, 0.0),    # copies in the middle of agents that differ: votes, not heads
    (18, 5, 3, 0.5, 0, 0.6, 0, -1, 0, 1, ALL, 0.0, 64), # agents that differ for good: a second opinion that helps nobody
    (18, 5, 7, 0.6, 0, 0.8, 0, -1, 0, 1, AGREE, 0.0, 64),  # one that does
    (18, 6, 7, 0.8, 0, 0.8, 0, -1, 0, 1, LEAVE, 0.0, 64),  # liars who want it to last
    (20, 10, 8, 0.6, 16, 0.0, 0, -1, 0, 1, ALL, 0.0),   # colluders whom the split has out whenever it is looked who acts together
    (20, 10, 8, 1.6, 2, 0.0, 0, -1, 0, 1, ALL, 0.0),    # two camps, each of which seems to share its noise
    (19, 2, 0, 0.0, 0, 0.0, 0, -1, 0, 1, ALL, 0.0, 32), # noise in two directions: two groups that are none
    (16, 6, 5, 0.7, 0, 0.0, 0, -1, 0, 1, HEAVY, 0.0),   # combination weights: balance counts them
    (12, 3, 5, 99., 0, 0.3, 0, -1, 0, 0, HEAVY, 0.0),   # all weights vanish
]


def rows(number, scene, t):
    n, m, liars, lie, period, spread, heavy, _, same, _, there, shared = scene[:12]
    agree = 2.0 ** -max(0, (t - 64) / 16) if there == AGREE else 1.0
    x = np.zeros((n, m))
    sign = -1.0 if period and t // period % 2 else 1.0
    leave = 1.25 ** ((t - 32) / 16) if there == LEAVE and t >= 48 else 1.0
    for l in range(n):
        like = 0 if same and l < liars else l
        size = 1 + 7 * hashed(number, t, l, 1000) ** 4 if heavy else 1.0
        for c in range(m):
            own = spread * noise(number, 999999, like, c) * (1.0 if l < liars else agree)
            common = shared * noise(number, t, 1000, c) if l < liars else 0.0
            side = -sign if there == LEAVE and l % 3 == 0 else sign
            x[l, c] = 3 + size * noise(number, t, like, c) + own + common + (lie * leave * side if l < liars else 0.0)
    return x


def present(number, scene, t):
    """Numbers of the rows that are there."""
    n, liars, who = scene[0], scene[2], scene[10]
    if who == AWAY and 60 <= t < 220:
        return list(range(liars, n))
    if who in (SOME, FLOOD):
        return [l for l in range(n) if hashed(number, t, l, 2000) < 0.8]
    return list(range(n))


def ids(number, scene, t, there):
    if scene[10] == TURNS:
        return [l + 1000 * int(3 * hashed(number, t, l, 3000)) if l < scene[2] else l for l in there]
    return [1000 + t * scene[2] + l if scene[10] in (NEW_IDS, FLOOD, HEAVY) and l < scene[2] else l for l in there]


def main():
    for number, scene in enumerate(SCENES):
        n, m = scene[:2]
        horizon = scene[12] if len(scene) > 12 else 512
        rule = MREF(3 * n if scene[10] == TURNS else n, m, own=scene[7] if scene[7] >= 0 else None, additions=bool(scene[9]), horizon=horizon)
        print("scene", number, *scene[:12], horizon)
        for t in range(ROUNDS):
            there = present(number, scene, t)
            a = np.array([3.0 if scene[10] == HEAVY and l < scene[2] else 1.0 for l in there])
            out = rule.step(rows(number, scene, t)[there], ids(number, scene, t, there), a / a.sum())
            weights = np.zeros(n)
            weights[there] = rule.weights
            print("weights", t, *("%.12g" % b for b in weights))
            print("out", t, *("%.14g" % v for v in out))


main()
