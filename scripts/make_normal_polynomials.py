#!/usr/bin/env python3
"""Prints the polynomials of src/num/kernels/normals_tmpl.h: best approximations in the largest weighted error (Remez exchange).

    log:  log(1 + f) = f + f^2 P(f)        on [sqrt(1/2) - 1, sqrt(2) - 1], relative error
    sine:   sin(pi/4 s) = s P(s^2)         on [-1, 1], absolute error
    cosine: cos(pi/4 s) = 1 + s^2 P(s^2)   on [-1, 1], absolute error
"""
import math
import struct


def solve(rows, right):
    """Gaussian elimination with pivots."""
    n = len(right)
    a = [row + [r] for row, r in zip(rows, right)]
    for i in range(n):
        p = max(range(i, n), key=lambda r: abs(a[r][i]))
        a[i], a[p] = a[p], a[i]
        for r in range(i + 1, n):
            q = a[r][i] / a[i][i]
            a[r] = [x - q * y for x, y in zip(a[r], a[i])]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (a[i][n] - sum(a[i][j] * x[j] for j in range(i + 1, n))) / a[i][i]
    return x


def remez(f, weight, low, high, terms, grid=4000):
    """Coefficients c with the smallest largest |sum c_j x^j - f(x)| weight(x), and that error."""
    points = [low + (high - low) * (1 - math.cos(math.pi * i / grid)) / 2 for i in range(grid + 1)]
    at = [round(grid * (i + 0.5) / (terms + 1)) for i in range(terms + 1)]
    for _ in range(50):
        rows = [[points[i] ** j for j in range(terms)] + [(-1) ** n / weight(points[i])] for n, i in enumerate(at)]
        c = solve(rows, [f(points[i]) for i in at])[:terms]
        error = [(sum(c[j] * x**j for j in range(terms)) - f(x)) * weight(x) for x in points]
        # One extreme of each run of equal sign.
        runs, new = [[0]], []
        for i in range(1, grid + 1):
            if error[i] * error[i - 1] < 0:
                runs.append([])
            runs[-1].append(i)
        new = [max(run, key=lambda i: abs(error[i])) for run in runs]
        while len(new) > terms + 1:
            new.pop(0 if abs(error[new[0]]) < abs(error[new[-1]]) else -1)
        if len(new) < terms + 1 or new == at:
            break
        at = new
    return c, max(abs(e) for e in error)


def show(name, c, error):
    single = [struct.unpack("f", struct.pack("f", x))[0] for x in c]
    print(f"{name}: error {error * 2**24:.3f} x 2^-24")
    print("   ", ", ".join(f"{x:.9g}F" for x in single))


def log_rest(f):
    return -0.5 + f / 3 - f * f / 4 + f**3 / 5 if abs(f) < 1e-3 else (math.log1p(f) - f) / (f * f)


def sine_rest(t):
    s = math.sqrt(t)
    return math.sin(math.pi / 4 * s) / s if t > 1e-12 else math.pi / 4


def cosine_rest(t):
    q = math.pi / 4
    return -2 * math.sin(q / 2 * math.sqrt(t)) ** 2 / t if t > 1e-12 else -q * q / 2


show("log", *remez(log_rest, lambda f: f * f / max(abs(math.log1p(f)), 1e-5), 0.5**0.5 - 1, 2**0.5 - 1, 8))
show("sine", *remez(sine_rest, lambda t: math.sqrt(t) + 1e-3, 0.0, 1.0, 4))
show("cosine", *remez(cosine_rest, lambda t: t + 1e-4, 0.0, 1.0, 3))
