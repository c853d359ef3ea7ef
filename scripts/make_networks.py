#!/usr/bin/env python3
"""Writes src/num/kernels/networks.h: sorting networks for 1..32 vectors, and the bitonic merge of 32.

Up to 16 elements: Green's network of 60 comparators for 16 (Knuth, The Art of Computer Programming 3, 5.3.4) without the
comparators of the places that are missing, or Batcher's merge exchange (5.2.2, Algorithm M), whichever is shorter. Above: the
first 16 sorted, the others sorted, and Batcher's odd-even merge of the two, in depth-first order so that few values are in use at
a time.

Every network is proved here before it is written, by the 0-1 principle: a network that sorts all sequences of zeros and ones
sorts everything. Up to 16 elements all 2^n sequences are tried; the merges are tried on all pairs of sorted 0-1 sequences, the
bitonic merge on all bitonic ones.

Usage: scripts/make_networks.py > src/num/kernels/networks.h
"""

HALF = 16
LARGEST = 2 * HALF

GREEN_REST = [  # after the 32 comparators of places that differ in one bit
    (5, 10), (6, 9), (3, 12), (13, 14), (4, 8), (7, 11), (1, 2),
    (1, 4), (7, 13), (2, 8), (11, 14),
    (2, 4), (5, 6), (9, 10), (11, 13), (3, 8), (7, 12),
    (6, 8), (10, 12), (3, 5), (7, 9),
    (3, 4), (5, 6), (7, 8), (9, 10), (11, 12),
    (6, 7), (8, 9),
]


def green():
    return [(i, i | d) for d in (1, 2, 4, 8) for i in range(HALF) if not i & d] + GREEN_REST


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


def odd_even_merge(places):
    """Of the sorted first and second half of `places`."""
    if len(places) == 2:
        return [tuple(places)]
    last = [(places[i], places[i + 1]) for i in range(1, len(places) - 1, 2)]
    return odd_even_merge(places[0::2]) + odd_even_merge(places[1::2]) + last


def first_places(pairs, n):
    """The network for n elements: the others count as infinite and never move."""
    return [(i, j) for i, j in pairs if j < n]


def sorter(n):
    return min(first_places(green(), n), merge_exchange(n), key=len)


def joiner(n):
    return first_places(odd_even_merge(list(range(LARGEST))), n)


def bitonic_merge(places):
    half = len(places) // 2
    if half == 0:
        return []
    first = [(places[i], places[i + half]) for i in range(half)]
    return first + bitonic_merge(places[:half]) + bitonic_merge(places[half:])


def run(pairs, bits):
    """Applies a network to many 0-1 sequences at once: bits[i] holds element i of all of them."""
    for i, j in pairs:
        bits[i], bits[j] = bits[i] & bits[j], bits[i] | bits[j]
    return bits


def is_sorted(bits):
    return all(bits[i] & ~bits[i + 1] == 0 for i in range(len(bits) - 1))


def columns(sequences, n):
    return [sum(1 << k for k, s in enumerate(sequences) if s[i]) for i in range(n)]


def proved_sorter(pairs, n):
    count = 1 << n
    bits = []
    for i in range(n):
        block = 1 << i
        bits.append(sum(((1 << block) - 1) << (start + block) for start in range(0, count, 2 * block)))
    return is_sorted(run(pairs, bits))


def proved_joiner(pairs, n):
    sequences = []
    for zeros in range(HALF + 1):
        for others in range(n - HALF + 1):
            sequences.append([i >= zeros if i < HALF else i - HALF >= others for i in range(n)])
    return is_sorted(run(pairs, columns(sequences, n)))


def proved_bitonic(pairs, n):
    sequences = []
    for start in range(n + 1):
        for end in range(start, n + 1):
            inside = [start <= i < end for i in range(n)]
            sequences += [inside, [not x for x in inside]]
    return is_sorted(run(pairs, columns(sequences, n)))


def write(name, pairs, before=()):
    print(f"KERNEL void {name}(key *x)\n{{")
    for line in before:
        print("    " + line)
    for start in range(0, len(pairs), 8):
        print("    " + " ".join(f"SORT2({i}, {j});" for i, j in pairs[start:start + 8]))
    print("}\n")


def main():
    merge = bitonic_merge(list(range(LARGEST)))
    assert proved_bitonic(merge, LARGEST)
    print("/* GENERATED and proved by scripts/make_networks.py. Do not edit.")
    print(" * sort_n sorts x[0..n) ascending in every lane; join_n does if x[0..16) and x[16..n) are sorted; merge_32 if x is")
    print(" * bitonic. */")
    print("/* clang-format off */")
    write("sort_1", [], ["(void)x;"])
    for n in range(2, HALF + 1):
        assert proved_sorter(sorter(n), n), n
        write(f"sort_{n}", sorter(n))
    for n in range(HALF + 1, LARGEST + 1):
        assert proved_joiner(joiner(n), n), n
        write(f"join_{n}", joiner(n))
    write(f"merge_{LARGEST}", merge)
    print("/* X(n, how many are joined to the first 16). */")
    print("#define FOR_EACH_SHORT(X) " + " ".join(f"X({n}, 0)" for n in range(1, HALF + 1)))
    print("#define FOR_EACH_LONG(X) " + " ".join(f"X({n}, {n - HALF})" for n in range(HALF + 1, LARGEST + 1)))
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
