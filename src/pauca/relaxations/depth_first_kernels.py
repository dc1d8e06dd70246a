"""The tree of one size, depth first, compiled: see ``depth_first``.

Columns are scaled so that D is one. Then what the relaxation of ``perspective`` needs is short: a column at zero is
pressed by ``|r|``, the end of the middle is at ``|u| = theta``, and its score is ``r^2 / 2``. The sum of the ``left``
largest scores is at most ``left tau + sum max(score - tau, 0)`` for any tau, and is that at ``tau = theta^2 / 2`` once
the relaxation is solved: nothing has to be sorted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pauca.relaxations.few_columns_kernels import find_sets
from pauca.relaxations.kernels import compiled, factorise, solve

# Rows of ``lines`` and ``places``, and columns of ``counts``.
SLOPE, LOSS = 0, 1
COLUMN, PIECE = 0, 1
WIDTH, LEFT, BRANCH, DONE, RELAXED = 0, 1, 2, 3, 4

# Rows of the numbers in ``Work`` below the square.
PLAIN, PULLED, U, PRODUCT, REST, BEST_U, BEST_SCORE, ROWS = -7, -6, -5, -4, -3, -2, -1, 7
ACTIVE, NOW, NEXT = 0, 1, 2


class Levels(NamedTuple):
    """The nodes from the root to the one in hand, a line for each: few arrays, as each takes a second to compile."""

    block: np.ndarray
    """What the columns that are in leave of H, on those that are not settled."""
    lines: np.ndarray
    """Their slopes, and what the relaxation would lose without them."""
    places: np.ndarray
    """Which columns they are, and their pieces."""
    inside: np.ndarray
    """A mark for every column that is in."""
    value: np.ndarray
    """The value of the model of the columns that are in."""
    counts: np.ndarray
    """How many columns are not settled, how many of them are to be chosen, the place of the one that is branched on,
    how many children were looked at, and whether pieces and losses are those of the node itself."""


class Work(NamedTuple):
    """Room for what is computed at a node."""

    numbers: np.ndarray
    """A square for linear systems, and ``ROWS`` lines."""
    places: np.ndarray


@compiled
def forget(s: Levels, level: int, place: int) -> None:
    """Leave out a column; the last one takes its place."""
    last = s.counts[level, WIDTH] - 1
    B = s.block[level]
    for j in range(last):
        B[place, j] = B[last, j]
    B[place, place] = B[last, last]
    for j in range(last):
        B[j, place] = B[place, j]
    for row in range(2):
        s.lines[level, row, place] = s.lines[level, row, last]
        s.places[level, row, place] = s.places[level, row, last]
    s.counts[level, WIDTH] = last


@compiled
def put_in(s: Levels, level: int, place: int, line: np.ndarray) -> None:
    """Take a column in."""
    m, B, q = s.counts[level, WIDTH], s.block[level], s.lines[level, SLOPE]
    inverse = 1 / B[place, place]
    share = q[place] * inverse
    s.value[level] -= 0.5 * q[place] * share
    for j in range(m):
        line[j] = B[place, j]
    for i in range(m):
        part = line[i] * inverse
        for j in range(m):
            B[i, j] -= part * line[j]
        q[i] -= share * line[i]
    s.inside[level, s.places[level, COLUMN, place]] = 1
    s.counts[level, LEFT] -= 1
    forget(s, level, place)


@compiled
def copy(s: Levels, level: int) -> None:
    """A child like its parent."""
    m, child = s.counts[level, WIDTH], level + 1
    s.counts[child, WIDTH], s.counts[child, LEFT], s.value[child] = m, s.counts[level, LEFT], s.value[level]
    s.counts[child, DONE] = 0
    for j in range(s.inside.shape[1]):
        s.inside[child, j] = s.inside[level, j]
    for row in range(2):
        for j in range(m):
            s.lines[child, row, j], s.places[child, row, j] = s.lines[level, row, j], s.places[level, row, j]
    for i in range(m):
        for j in range(m):
            s.block[child, i, j] = s.block[level, i, j]


@compiled
def gather(S: np.ndarray, piece: np.ndarray, m: int, w: Work) -> int:
    """The lower triangle of the system on the columns that are not zero; returns how many there are."""
    A, L, n = w.places[ACTIVE], w.numbers, 0
    for j in range(m):
        if piece[j] != 0:
            A[n] = j
            n += 1
    for x in range(n):
        i = A[x]
        for y in range(x + 1):
            L[x, y] = S[i, A[y]]
        if abs(piece[i]) == 1:
            L[x, x] -= 1 - 1e-9
    return n


@compiled
def solve_pieces(S: np.ndarray, q: np.ndarray, piece: np.ndarray, left: int, m: int, w: Work) -> float:
    """Fill u and Su where the columns are on the given pieces; returns theta, or -1 if the system is singular."""
    n, A, f = gather(S, piece, m, w), w.places[ACTIVE], w.numbers
    if not factorise(f, n):
        return -1.0
    room, middle, total = float(left), 0, 0.0
    for x in range(n):
        c = piece[A[x]]
        f[PLAIN, x], f[PULLED, x] = q[A[x]], 0.0
        if abs(c) == 1:
            middle += 1
            f[PULLED, x] = c
        else:
            room -= 1
    solve(f, f[PLAIN], n)
    if middle > 0:
        solve(f, f[PULLED], n)
        for x in range(n):
            c = piece[A[x]]
            if abs(c) == 1:
                total += c * f[PLAIN, x]
                room += c * f[PULLED, x]
    theta = max(total / room, 0.0) if middle > 0 and room > 1e-12 else 0.0
    for j in range(m):
        f[U, j], f[PRODUCT, j] = 0.0, 0.0
    for x in range(n):
        i, t = A[x], f[PLAIN, x] - theta * f[PULLED, x]
        f[U, i] = t
        for j in range(m):
            f[PRODUCT, j] += S[i, j] * t
    return theta


@compiled
def theta_without_middle(piece: np.ndarray, left: int, m: int, w: Work) -> float:
    """Any theta that keeps, or lets in, the right columns, where none is in the middle."""
    f, big, smallest, largest = w.numbers, 0, np.inf, 0.0
    for j in range(m):
        if piece[j] == 0:
            largest = max(largest, abs(f[REST, j]))
        else:
            big += 1
            smallest = min(smallest, abs(f[U, j]))
    if big >= left:
        return 0.5 * (smallest + largest)
    for _ in range(left - big - 1):
        following = 0.0
        for j in range(m):
            if piece[j] == 0 and abs(f[REST, j]) < largest:
                following = max(following, abs(f[REST, j]))
        largest = following
    return largest * (1 - 1e-9)


@compiled
def pivot(piece: np.ndarray, theta: float, m: int, w: Work) -> int:
    """The pieces where the solution lies; returns how many columns change theirs."""
    f, new, changes = w.numbers, w.places[NEXT], 0
    above, below = theta * (1 + 1e-10), theta * (1 - 1e-10)
    for j in range(m):
        c, u, r = piece[j], f[U, j], f[REST, j]
        new[j], sign = c, 1 if u > 0 else -1
        if c == 0:
            if abs(r) > above:
                new[j] = 1 if r > 0 else -1
        elif abs(c) == 1:
            if c * u < 0:
                new[j] = 0
            elif abs(u) > above:
                new[j] = 2 * sign
        else:
            new[j] = sign if abs(u) < below else 2 * sign
        changes += new[j] != c
    return changes


@compiled
def without_excess(piece: np.ndarray, left: int, m: int) -> int:
    """Put big columns in the middle where there are too many; returns how many columns are in the middle."""
    big = middle = 0
    for j in range(m):
        big += abs(piece[j]) == 2
        middle += abs(piece[j]) == 1
    if big > left:
        for j in range(m):
            if abs(piece[j]) == 2:
                piece[j] //= 2
        middle += big
    return middle


@compiled
def relax(s: Levels, level: int, sought: float, most_squares: float, steps: int, w: Work) -> tuple[float, float, bool]:
    """The best bound of some steps, its tau, and whether the system in ``w`` is that of the pieces it leads to.

    The node has then these pieces, and ``w`` solution and scores.

    A step whose system is singular, but for rounding at least, puts the middle columns to zero.
    """
    m, left, f, now = s.counts[level, WIDTH], s.counts[level, LEFT], w.numbers, w.places[NOW]
    q, kept, best, best_tau, fewest, stalled = s.lines[level, SLOPE], s.places[level, PIECE], -np.inf, 0.0, m + 1, 0
    for j in range(m):
        now[j] = kept[j]
    for _ in range(steps):
        middle = without_excess(now, left, m)
        theta = solve_pieces(s.block[level], q, now, left, m, w)
        inner = squares = 0.0
        for j in range(m):
            squares += f[U, j] * f[U, j]
            inner += f[U, j] * f[PRODUCT, j]
            f[REST, j] = q[j] - f[PRODUCT, j] + f[U, j]
        if theta < 0 or not squares <= most_squares:
            if middle == 0:
                break
            for j in range(m):
                now[j] = now[j] if abs(now[j]) == 2 else 0
            continue
        if middle == 0:
            theta = theta_without_middle(now, left, m, w)
        tau = 0.5 * theta * theta
        bound = s.value[level] - 0.5 * (inner - squares) - left * tau
        for j in range(m):
            bound -= max(0.5 * f[REST, j] * f[REST, j] - tau, 0.0)
        changes = pivot(now, theta, m, w)
        stalled += changes >= fewest
        fewest = min(fewest, changes)
        for j in range(m):
            now[j] = w.places[NEXT, j]
        if bound > best:
            best, best_tau, solved = bound, tau, changes == 0
            for j in range(m):
                f[BEST_U, j], f[BEST_SCORE, j], kept[j] = f[U, j], 0.5 * f[REST, j] * f[REST, j], now[j]
        if changes == 0 or best > sought or stalled >= 2:
            break
    return best, best_tau, solved


@compiled
def estimate_losses(s: Levels, level: int, solved: bool, w: Work) -> None:
    """What the relaxation would lose to first order without each column: ``u^2 / (2 K^-1_jj)``.

    If it is solved, the factor of K is there.
    """
    m, loss, f = s.counts[level, WIDTH], s.lines[level, LOSS], w.numbers
    for j in range(m):
        loss[j] = 1e-6 * f[BEST_SCORE, j]
    n = 0
    if solved:
        for j in range(m):
            n += s.places[level, PIECE, j] != 0
    else:
        n = gather(s.block[level], s.places[level, PIECE], m, w)
        if not factorise(f, n):
            return
    invert(f, n, f[PULLED], f[PLAIN])
    for x in range(n):
        i = w.places[ACTIVE, x]
        loss[i] += 0.5 * f[BEST_U, i] * f[BEST_U, i] / f[PLAIN, x]


@compiled
def invert(L: np.ndarray, n: int, line: np.ndarray, own: np.ndarray) -> None:
    """Invert a Cholesky factor in its place; ``own`` is filled with the diagonal of the inverse of the matrix."""
    for i in range(n):
        inverse, own[i] = 1 / L[i, i], 0.0
        for y in range(i):
            line[y] = 0.0
        for t in range(i):
            x = L[i, t]
            for y in range(t + 1):
                line[y] -= x * L[t, y]
        for y in range(i):
            L[i, y] = line[y] * inverse
            own[y] += L[i, y] * L[i, y]
        L[i, i] = inverse
        own[i] += inverse * inverse


@compiled
def screen(s: Levels, level: int, gap: float, tau: float, w: Work) -> None:
    """Settle the columns whose way out, or in, would raise the bound by more than the gap."""
    score, place = w.numbers[BEST_SCORE], int(np.int64(0))  # a literal 0 would be compiled for once more
    while place < s.counts[level, WIDTH]:
        last = s.counts[level, WIDTH] - 1
        if tau - score[place] > gap:
            forget(s, level, place)
        elif score[place] - tau > gap:
            put_in(s, level, place, w.numbers[PULLED])
        else:
            place += 1
            continue
        score[place] = score[last]


@compiled
def write(s: Levels, level: int, sets: np.ndarray, n: int, size: int, out: bool, found: np.ndarray) -> int:
    """The models of some sets of places, or of all but these, as marks; returns the number of models."""
    for t in range(n):
        line = found[t]
        for j in range(len(line)):
            line[j] = s.inside[level, j]
        for j in range(s.counts[level, WIDTH] if out else 0):
            line[s.places[level, COLUMN, j]] = 1
        for x in range(size):
            line[s.places[level, COLUMN, sets[t, x]]] = 0 if out else 1
    return n


@compiled
def without_few(s: Levels, level: int, inverse: np.ndarray, w: Work) -> float:
    """Value of the model with all columns; fills its coefficients (``U``) and the inverse of the block."""
    m, f, S, value = s.counts[level, WIDTH], w.numbers, s.block[level], s.value[level]
    for i in range(m):
        for j in range(i + 1):
            f[i, j] = S[i, j]
    if not factorise(f, m):
        return -np.inf
    invert(f, m, f[PULLED], f[PLAIN])
    for i in range(m):
        f[U, i] = 0.0
        for j in range(m):
            inverse[i, j] = 0.0
    for t in range(m):
        fitted = 0.0
        for j in range(t + 1):
            fitted += f[t, j] * s.lines[level, SLOPE, j]
        value -= 0.5 * fitted * fitted
        for i in range(t + 1):
            f[U, i] += f[t, i] * fitted
            for j in range(i + 1):
                inverse[i, j] += f[t, i] * f[t, j]
    return value


@compiled
def close(s: Levels, level: int, sought: float, sets: np.ndarray, spare: np.ndarray, found: np.ndarray, w: Work) -> int:
    """The models of a node of which few columns are missing, or few must go; returns their number."""
    m, left, f = s.counts[level, WIDTH], s.counts[level, LEFT], w.numbers
    size, out = min(left, m - left), left > m - left
    value = without_few(s, level, spare[1], w) if out else s.value[level]
    if size == 0:
        return write(s, level, sets, int(value <= sought), size, out, found)
    sign = 1.0 if out else -1.0
    limit = sign * 2 * (sought - value)
    if out:
        n = find_sets(f[U], spare[1], m, size, limit, sign, spare[0], f[PLAIN], sets)
    else:
        n = find_sets(s.lines[level, SLOPE], s.block[level], m, size, limit, sign, spare[0], f[PLAIN], sets)
    return write(s, level, sets, n, size, out, found)


@compiled
def fewest(s: Levels, level: int) -> int:
    """How many columns are missing, or must go, whichever is less; negative if there are not as many."""
    left = s.counts[level, LEFT]
    return min(left, s.counts[level, WIDTH] - left)


@compiled
def bounded(s: Levels, level: int, sought: float, most_squares: float, steps: int, w: Work) -> int:
    """Relax a node and settle columns; then as ``fewest``, and -1 if nothing is sought below it."""
    bound, tau, solved = relax(s, level, sought, most_squares, steps, w)
    if bound > sought:
        return -1
    s.counts[level, RELAXED] = bound > -np.inf
    if bound > -np.inf:
        estimate_losses(s, level, solved, w)
        screen(s, level, sought - bound, tau, w)
    return fewest(s, level)


@compiled
def begin_child(s: Levels, level: int, w: Work) -> None:
    """The next child: with the column whose loss would be largest, or without it."""
    side, child = s.counts[level, DONE], level + 1
    if side == 0:
        best = -1.0
        for j in range(s.counts[level, WIDTH]):
            if s.lines[level, LOSS, j] > best:
                best, s.counts[level, BRANCH] = s.lines[level, LOSS, j], j
    s.counts[level, DONE] += 1
    place = s.counts[level, BRANCH]
    copy(s, level)
    # With a big column in, or one at zero out, solution, bound and losses are those of the parent.
    same = 2 if side == 0 else 0
    s.counts[child, RELAXED] = s.counts[level, RELAXED] == 1 and abs(s.places[level, PIECE, place]) == same
    if side == 0:
        put_in(s, child, place, w.numbers[PULLED])
    else:
        forget(s, child, place)


@compiled
def search(
    s: Levels,
    level: int,
    most_nodes: int,
    sought: float,
    most_squares: float,
    steps: int,
    few: int,
    sets: np.ndarray,
    spare: np.ndarray,
    found: np.ndarray,
    w: Work,
) -> tuple[int, int, int]:
    """Look at nodes until models are found, or so many were looked at; begins with the node at ``level`` itself.

    Where at most ``few`` columns are missing, or must go, models are found by formulas. Returns the level of the next
    node, which is -1 at the end, how many models were found, and how many nodes it took.
    """
    nodes = count = 0
    while level >= 0 and nodes < most_nodes and count == 0:
        if s.counts[level, DONE] == 2:
            level -= 1
            continue
        if s.counts[level, DONE] >= 0:
            begin_child(s, level, w)
            level += 1
        else:
            s.counts[level, DONE] = 0
        nodes += 1
        least = fewest(s, level)
        if least > few and s.counts[level, RELAXED] == 0:
            least = bounded(s, level, sought, most_squares, steps, w)
        if 0 <= least <= few:
            count = close(s, level, sought, sets, spare, found, w)
        if least <= few:
            level -= 1
    return level, count, nodes
