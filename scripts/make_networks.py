#!/usr/bin/env python3
"""Writes src/num/kernels/networks.h: sorting networks for 2..32 vectors, and the bitonic merge of 32.

Each network is Batcher's merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, Algorithm M), which works for any
number of elements. Every one is proved here before it is written, by the 0-1 principle: a network that sorts all sequences of
zeros and ones sorts everything. Up to 16 elements all 2^n sequences are tried; above, the network is cut into the two halves
and the merge that it consists of, and the merge is tried on all pairs of sorted halves. The bitonic merge is tried on all
bitonic sequences of zeros and ones.

Usage: scripts/make_networks.py > src/num/kernels/networks.h
"""

LARGEST = 32


def merge_exchange(n):
    pairs = []
    top = 1
    while 2 * top < n:
        top *= 2
    p = top
    while p > 0:
        q, r, d = top, 0, p
        while True:
            pairs += [(i, i + d) for i in range(n - d) if i & p == r]
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2
    return pairs


def bitonic_merge(n):
    pairs, d = [], n // 2
    while d > 0:
        pairs += [(i, i + d) for i in range(n) if i & d == 0]
        d //= 2
    return pairs


def run(pairs, bits):
    """Applies a network to many 0-1 sequences at once: bits[i] holds element i of all of them."""
    for i, j in pairs:
        bits[i], bits[j] = bits[i] & bits[j], bits[i] | bits[j]
    return bits


def is_sorted(bits):
    return all(bits[i] & ~bits[i + 1] == 0 for i in range(len(bits) - 1))


def columns(sequences, n):
    return [sum(1 << k for k, s in enumerate(sequences) if s[i]) for i in range(n)]


def proved_by_all(pairs, n):
    count = 1 << n
    bits = []
    for i in range(n):
        block = 1 << i
        bits.append(sum(((1 << block) - 1) << (start + block) for start in range(0, count, 2 * block)))
    return is_sorted(run(pairs, bits))


def proved_by_stages(pairs, n):
    """Algorithm M leaves, before its last stage p = 1, the even and the odd places sorted among themselves. The first part is
    proved as two networks of half the size, the last stage on all pairs of sorted 0-1 sequences in even and odd places."""
    last = [(i, i + d) for d, parity in [(1, 0)] + odd_distances(n) for i in range(n - d) if i & 1 == parity]
    first = pairs[: len(pairs) - len(last)]
    if pairs[len(first):] != last or any((j - i) % 2 for i, j in first):
        return False
    for parity in (0, 1):
        half = [(i // 2, j // 2) for i, j in first if i % 2 == parity]
        if not proved(half, len(range(parity, n, 2))):
            return False
    evens, odds = len(range(0, n, 2)), len(range(1, n, 2))
    sequences = []
    for a in range(evens + 1):
        for b in range(odds + 1):
            sequences.append([(i // 2 >= evens - a) if i % 2 == 0 else (i // 2 >= odds - b) for i in range(n)])
    return is_sorted(run(last, columns(sequences, n)))


def odd_distances(n):
    top, found = 1, []
    while 2 * top < n:
        top *= 2
    q = top
    while q > 1:
        found.append((q - 1, 1))
        q //= 2
    return found


def proved(pairs, n):
    return proved_by_all(pairs, n) if n <= 16 else proved_by_stages(pairs, n)


def proved_bitonic(pairs, n):
    sequences = []
    for start in range(n + 1):
        for end in range(start, n + 1):
            inside = [start <= i < end for i in range(n)]
            sequences += [inside, [not x for x in inside]]
    return is_sorted(run(pairs, columns(sequences, n)))


def write(name, pairs):
    print(f"KERNEL void {name}(key *x)\n{{")
    for start in range(0, len(pairs), 8):
        print("    " + " ".join(f"SORT2({i}, {j});" for i, j in pairs[start:start + 8]))
    print("}\n")


def main():
    networks = {n: merge_exchange(n) for n in range(2, LARGEST + 1)}
    merge = bitonic_merge(LARGEST)
    for n, pairs in networks.items():
        assert proved(pairs, n), n
    assert proved_bitonic(merge, LARGEST)
    print("/* GENERATED and proved by scripts/make_networks.py. Do not edit.")
    print(" * sort_n sorts x[0..n) ascending in every lane; merge_32 sorts a bitonic sequence. */")
    print("/* clang-format off */")
    for n, pairs in networks.items():
        write(f"sort_{n}", pairs)
    write(f"merge_{LARGEST}", merge)
    print(f"#define FOR_EACH_NETWORK(X) " + " ".join(f"X({n})" for n in range(2, LARGEST + 1)))
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
