"""The relaxation of ``perspective`` and the last columns of ``backends``, compiled: node by node, with the same steps.

Imported when a tree has grown large, because numba takes a while to load, and some seconds to compile on first use in
an installation. Sums are taken in another order than NumPy's; nothing else differs. Arrays are copied and counted in
loops, for assigned slices, ``np.partition`` and ``max`` take long to compile.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uintp

# Sums may be taken in any order and fused with products.
compiled = njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"}, error_model="numpy")


@compiled
def factorise(L: np.ndarray, n: int) -> bool:
    """Cholesky factor in the place of the lower triangle; False if the matrix is not positive definite."""
    for j in range(n):
        rest = L[j, j]
        for t in range(j):
            rest -= L[j, t] * L[j, t]
        if not rest > 1e-15:
            return False
        root = np.sqrt(rest)
        L[j, j] = root
        for i in range(j + 1, n):
            rest = L[i, j]
            for t in range(j):
                rest -= L[i, t] * L[j, t]
            L[i, j] = rest / root
    return True


@compiled
def solve(L: np.ndarray, b: np.ndarray, n: int) -> None:
    """Solve with a Cholesky factor, in place."""
    for i in range(n):
        rest = b[i]
        for t in range(i):
            rest -= L[i, t] * b[t]
        b[i] = rest / L[i, i]
    for i in range(n - 1, -1, -1):
        x = b[i] / L[i, i]
        b[i] = x
        for t in range(i):
            b[t] -= L[i, t] * x


@compiled
def gather(H: np.ndarray, D: np.ndarray, code: np.ndarray, kept: float, A: np.ndarray, L: np.ndarray) -> int:
    """The lower triangle of the system on the columns that are not zero; returns how many there are."""
    n = 0
    for j in range(len(code)):
        if code[j] != 0 and code[j] != -3:
            A[n] = j
            n += 1
    for x in range(n):
        i = A[x]
        for y in range(x + 1):
            L[x, y] = H[i, A[y]]
        if abs(code[i]) == 1:
            L[x, x] -= D[i] * kept
    return n


@compiled
def keep_largest(top: np.ndarray, n: int, most: int, x: float) -> int:
    """Put x among the n largest numbers so far, in falling order, of which ``most`` are kept; returns their number."""
    if n < most:
        p = n
        n += 1
    elif x > top[most - 1]:
        p = most - 1
    else:
        return n
    while p > 0 and top[p - 1] < x:
        top[p] = top[p - 1]
        p -= 1
    top[p] = x
    return n


@compiled
def largest(scores: np.ndarray, code: np.ndarray, k: int, top: np.ndarray) -> float:
    """Sum of the k largest scores of the free columns."""
    n = 0
    for j in range(len(scores)):
        if abs(code[j]) == 3:
            continue
        n = keep_largest(top, n, k, scores[j])
    total = 0.0
    for t in range(n):
        total += top[t]
    return total


@compiled
def threshold(code: np.ndarray, size: np.ndarray, pressure: np.ndarray, left: int, top: np.ndarray) -> float:
    """Theta where no column is in the middle, as in ``perspective``."""
    count, smallest = 0, np.inf
    for j in range(len(code)):
        if abs(code[j]) == 2:
            count += 1
            smallest = min(smallest, size[j])
    wanted, n = max(left - count, 1), 0
    for j in range(len(code)):
        if code[j] != 0:
            continue
        n = keep_largest(top, n, wanted, pressure[j])
    if count < left:
        return top[wanted - 1] * (1 - 1e-9) if n >= wanted else 0.0
    return 0.5 * (smallest + (top[0] if n > 0 else 0.0))


@compiled
def pivot(
    code: np.ndarray,
    u: np.ndarray,
    r: np.ndarray,
    size: np.ndarray,
    pressure: np.ndarray,
    theta: float,
    new: np.ndarray,
    beyond: np.ndarray,
) -> int:
    """The pieces where a solution lies; returns how many columns change theirs."""
    above, below, changes = theta * (1 + 1e-10), theta * (1 - 1e-10), 0
    for j in range(len(code)):
        c = code[j]
        new[j], beyond[j] = c, 0.0
        level = abs(c)
        if level == 3:
            continue
        sign = 1 if u[j] > 0 else (-1 if u[j] < 0 else 0)
        if level == 0:
            if pressure[j] > above:
                new[j] = 1 if r[j] > 0 else -1
                beyond[j] = pressure[j] - theta
        elif level == 1:
            if c * u[j] < 0:
                new[j], beyond[j] = 0, size[j]
            elif size[j] > above:
                new[j], beyond[j] = 2 * sign, size[j] - theta
        elif size[j] < below:
            new[j], beyond[j] = sign, theta - size[j]
        else:
            new[j] = 2 * sign
        changes += new[j] != c
    return changes


@compiled
def admit_few(code: np.ndarray, new: np.ndarray, beyond: np.ndarray, limits: np.ndarray, top: np.ndarray) -> int:
    """Let few columns leave zero at a time, as in ``perspective``; returns how many wait."""
    entering = active = 0
    for j in range(len(code)):
        entering += code[j] == 0 and new[j] != 0
        active += code[j] != 0 and code[j] != -3
    admitted = int(max(limits[6] * active, limits[7]))
    if entering <= admitted:
        return 0
    n = waits = 0
    for j in range(len(code)):
        if code[j] == 0 and new[j] != 0:
            n = keep_largest(top, n, admitted, beyond[j])
    smallest = top[admitted - 1]
    for j in range(len(code)):
        if code[j] == 0 and new[j] != 0 and beyond[j] < smallest:
            new[j] = 0
            waits += 1
    return waits


@compiled
def solve_pieces(
    H: np.ndarray,
    q: np.ndarray,
    D: np.ndarray,
    code: np.ndarray,
    left: int,
    kept: float,
    A: np.ndarray,
    L: np.ndarray,
    plain: np.ndarray,
    pulled: np.ndarray,
    u: np.ndarray,
    hu: np.ndarray,
) -> float:
    """U and Hu where the columns are on the given pieces; returns theta, or -1 if the system is singular."""
    n = gather(H, D, code, kept, A, L)
    if not factorise(L, n):
        return -1.0
    room = float(left)
    for x in range(n):
        i = A[x]
        room -= abs(code[i]) == 2
        plain[x], pulled[x] = q[i], code[i] * np.sqrt(D[i]) if abs(code[i]) == 1 else 0.0
    solve(L, plain, n)
    solve(L, pulled, n)
    total = 0.0
    for x in range(n):
        i = A[x]
        if abs(code[i]) == 1:
            total += code[i] * np.sqrt(D[i]) * plain[x]
            room += code[i] * np.sqrt(D[i]) * pulled[x]
    theta = max(total / room, 0.0) if room > 1e-12 else 0.0
    u[:] = 0.0
    hu[:] = 0.0
    for x in range(n):
        i = A[x]
        w = plain[x] - theta * pulled[x]
        u[i] = w
        for j in range(len(hu)):
            hu[j] += H[i, j] * w
    return theta


@compiled
def dual(
    q: np.ndarray,
    constant: float,
    most_squares: float,
    D: np.ndarray,
    code: np.ndarray,
    left: int,
    u: np.ndarray,
    hu: np.ndarray,
    r: np.ndarray,
    size: np.ndarray,
    pressure: np.ndarray,
    score: np.ndarray,
    top: np.ndarray,
) -> float:
    """The bound at u; fills r, ``|u| sqrt(D)``, ``|r| / sqrt(D)`` and the scores."""
    inner = charge = squares = 0.0
    for j in range(len(q)):
        root, rest = np.sqrt(D[j]), q[j] - hu[j]
        inner += u[j] * hu[j]
        size[j], pressure[j], r[j], score[j] = abs(u[j]) * root, 0.0, 0.0, 0.0
        squares += size[j] * size[j]
        if abs(code[j]) != 3:
            inner -= D[j] * u[j] * u[j]
            r[j] = rest + D[j] * u[j]
            pressure[j], score[j] = abs(r[j]) / root, 0.5 * r[j] * r[j] / D[j]
        elif code[j] == 3:
            charge += rest * u[j] + 0.5 * rest * rest / D[j]
    if not squares <= most_squares * constant:
        return -np.inf
    return constant - 0.5 * inner - charge - largest(score, code, left, top)


@compiled
def count_at(code: np.ndarray, level: int) -> int:
    """How many columns are on a piece of this level, with either sign."""
    count = 0
    for j in range(len(code)):
        count += abs(code[j]) == level
    return count


@compiled
def relax_rows(
    H: np.ndarray,
    q: np.ndarray,
    constant: float,
    diagonals: np.ndarray,
    pieces: np.ndarray,
    lefts: np.ndarray,
    cuts: np.ndarray,
    limits: np.ndarray,
    us: np.ndarray,
    bounds: np.ndarray,
    scores: np.ndarray,
    thetas: np.ndarray,
) -> None:
    """``perspective.relax`` for every line; ``pieces`` and the last four are overwritten with what is found.

    ``limits``: largest number of steps, steps in blocks, steps until columns change one by one, share of the violation,
    share of D that middle columns give up, the most squares of a credible solution, and the columns admitted at a time,
    as a multiple of the active ones and at least.
    """
    m = len(q)
    L, A = np.empty((m, m)), np.empty(m, np.int64)
    plain, pulled, u, hu, r = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    size, pressure, beyond, score, top = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m + 1)
    code, new = np.empty(m, np.int8), np.empty(m, np.int8)
    for row in range(len(pieces)):
        D, left, best = diagonals[row], lefts[row], -np.inf
        for j in range(m):
            code[j] = pieces[row, j]
        fewest, stalled = m + 1, 0
        for _ in range(int(limits[0])):
            if count_at(code, 2) > left:
                for j in range(m):
                    code[j] = code[j] // 2 if abs(code[j]) == 2 else code[j]
            theta = solve_pieces(H, q, D, code, left, limits[4], A, L, plain, pulled, u, hu)
            if theta < 0:
                break
            bound = dual(q, constant, limits[5], D, code, left, u, hu, r, size, pressure, score, top)
            if count_at(code, 1) == 0:
                theta = threshold(code, size, pressure, left, top)
            changes = pivot(code, u, r, size, pressure, theta, new, beyond)
            changes -= admit_few(code, new, beyond, limits, top)
            if bound > best:
                best, thetas[row] = bound, theta
                for j in range(m):
                    us[row, j], scores[row, j], pieces[row, j] = u[j], score[j], new[j]
            stalled += changes >= fewest
            fewest = min(fewest, changes)
            if changes == 0 or best >= cuts[row]:
                break
            if stalled >= limits[1]:
                least = 0.0
                for j in range(m):
                    least = max(least, beyond[j])
                least *= 1.0 if stalled >= limits[2] else limits[3]
                for j in range(m):
                    new[j] = code[j] if beyond[j] < least else new[j]
            code, new = new, code
        bounds[row] = best


@compiled
def estimate_rows(
    H: np.ndarray, diagonals: np.ndarray, pieces: np.ndarray, us: np.ndarray, kept: float, estimates: np.ndarray
) -> None:
    """``perspective.removal_estimates`` for every line."""
    m = len(H)
    L, W, A = np.empty((m, m)), np.empty((m, m)), np.empty(m, np.int64)
    own = np.empty(m)
    for row in range(len(pieces)):
        n = gather(H, diagonals[row], pieces[row], kept, A, L)
        estimates[row] = 0.0
        if not factorise(L, n):
            continue
        own[:n] = 0.0
        for i in range(n):
            for y in range(i):
                W[i, y] = 0.0
            W[i, i] = 1.0
            for t in range(i):
                x = L[i, t]
                for y in range(t + 1):
                    W[i, y] -= x * W[t, y]
            for y in range(i + 1):
                W[i, y] /= L[i, i]
                own[y] += W[i, y] * W[i, y]
        for x in range(n):
            i = A[x]
            if abs(pieces[row, i]) != 3:
                estimates[row, i] = 0.5 * us[row, i] ** 2 / own[x]


@compiled
def conditional(
    H: np.ndarray, q: np.ndarray, constant: float, inside: np.ndarray, free: np.ndarray, dependent: float
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Value of the model of ``inside``, slopes and squares of ``free`` given it, and their part in it.

    Columns that ``inside`` leaves nothing of have a square of -1. The value is infinite if ``inside`` is dependent.
    """
    f, m = len(inside), len(free)
    L, B, z = np.empty((f, f)), np.empty((f, m)), np.empty(f)
    slope, own = np.empty(m), np.empty(m)
    for x in range(f):
        for y in range(x + 1):
            L[x, y] = H[inside[x], inside[y]]
    if not factorise(L, f):
        return np.inf, slope, own, B
    for b in range(m):
        slope[b], own[b] = q[free[b]], H[free[b], free[b]]
    value = constant
    for x in range(f):
        rest = q[inside[x]]
        for t in range(x):
            rest -= L[x, t] * z[t]
        z[x] = rest / L[x, x]
        value -= 0.5 * z[x] * z[x]
        for b in range(m):
            B[x, b] = H[inside[x], free[b]]
        for t in range(x):
            w = L[x, t]
            for b in range(m):
                B[x, b] -= w * B[t, b]
        for b in range(m):
            B[x, b] /= L[x, x]
            slope[b] -= B[x, b] * z[x]
            own[b] -= B[x, b] * B[x, b]
    for a in range(m):
        if not own[a] > dependent * H[free[a], free[a]]:
            own[a] = -1.0
    return value, slope, own, B


@compiled
def products_after(H: np.ndarray, free: np.ndarray, B: np.ndarray, a: int, line: np.ndarray) -> None:
    """What is left of the products of a free column with those after it; ``B`` is the part of each in the model."""
    row = H[free[a]]
    for b in range(uintp(a + 1), uintp(len(free))):
        line[b] = row[free[b]]
    for t in range(len(B)):
        w = B[t, a]
        for b in range(uintp(a + 1), uintp(len(free))):
            line[b] -= w * B[t, b]


@compiled
def best_partner(
    line: np.ndarray,
    above: np.ndarray,
    share: float,
    slope: np.ndarray,
    own: np.ndarray,
    b: int,
    dependent: float,
    best: float,
) -> tuple[float, int]:
    """What b gains with the best of the columns after it, and which that is, if that is more than ``best``.

    The products of b are ``line - share * above``.
    """
    inverse, coef = 1 / own[b], slope[b] / own[b]
    wanted, better, second = best - coef * slope[b], 0, -1
    # One loop without branches and divisions, which is done for several columns at a time, finds out whether any is.
    # Places without a sign, as negative ones would have to be turned around.
    for c in range(uintp(b + 1), uintp(len(own))):
        product = line[c] - share * above[c]
        left = own[c] - product * product * inverse
        rest = slope[c] - coef * product
        better += rest * rest > wanted * left
    if better == 0:
        return best, second
    for c in range(b + 1, len(own)):
        product = line[c] - share * above[c]
        left = own[c] - product * product * inverse
        rest = slope[c] - coef * product
        # A square of -1 leaves less, so that the pair is none.
        if left > dependent * abs(own[c]) and rest * rest / left > wanted:
            wanted, second = rest * rest / left, c
    return wanted + coef * slope[b], second


@compiled
def best_pair(
    H: np.ndarray, q: np.ndarray, constant: float, inside: np.ndarray, free: np.ndarray, below: float, dependent: float
) -> tuple[float, np.ndarray]:
    """Value of the best model of ``inside`` and two of ``free``, and their places in ``free``; if it is below a limit.

    Otherwise the places are -1.
    """
    value, slope, own, B = conditional(H, q, constant, inside, free, dependent)
    best, places, line = max(2 * (value - below), 0.0), np.full(2, -1), np.empty(len(free))
    for b in range(len(free) if value < np.inf else 0):
        if own[b] > 0:
            # Line by line: a table of them all would not stay in the cache.
            products_after(H, free, B, b, line)
            best, c = best_partner(line, line, 0.0, slope, own, b, dependent, best)
            if c >= 0:
                places[0], places[1] = b, c
    return value - 0.5 * best, places


@compiled
def best_triple(
    H: np.ndarray, q: np.ndarray, constant: float, inside: np.ndarray, free: np.ndarray, below: float, dependent: float
) -> tuple[float, np.ndarray]:
    """Value of the best model of ``inside`` and three of ``free``, and their places, as ``best_pair``."""
    m = len(free)
    value, slope, own, B = conditional(H, q, constant, inside, free, dependent)
    best, places, S = max(2 * (value - below), 0.0), np.full(3, -1), np.empty((m, m))
    slope_left, own_left = np.empty(m), np.empty(m)
    for a in range(m if value < np.inf else 0):
        products_after(H, free, B, a, S[a])
    for a in range(m if value < np.inf else 0):
        if not own[a] > 0:
            continue
        alone, first = slope[a] * slope[a] / own[a], S[a]
        for c in range(a + 1, m):
            slope_left[c] = slope[c] - first[c] * (slope[a] / own[a])
            left = own[c] - first[c] * first[c] / own[a]
            own_left[c] = left if left > dependent * abs(own[c]) else -1.0
        for b in range(a + 1, m):
            if own_left[b] > 0:
                share = first[b] / own[a]
                gain, c = best_partner(S[b], first, share, slope_left, own_left, b, dependent, best - alone)
                if c >= 0:
                    best, places[0], places[1], places[2] = alone + gain, a, b, c
    return value - 0.5 * best, places
