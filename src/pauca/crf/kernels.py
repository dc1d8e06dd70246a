"""Compiled passes over chains. Imported only when they are first needed: Numba takes a while to load.

Conventions
-----------
Labels are padded with zeros to a ``width`` that is a multiple of four, so that sums over them go four at a time without
a remainder. ``strength[r]`` is ``exp(score - largest score)`` of row r, so that its largest entry is one;
``forth[u, s]`` is ``exp`` of the transition from u to s less the largest transition, and ``back`` its transpose.

With both scaled like that, the sum over labels of a forward message shrinks in a step by no more than
``exp(-(range of the transitions))`` and grows by no more than the number of labels. That tells beforehand how many
steps may go by until messages must be scaled back to one (``every``), and no step needs to look for underflow.

Chains go in teams of four, longest first: ``messages[i, t]`` and ``factors[i, t]`` are those of member i at step t, and
``starts[i]`` is the position of its first step.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Sums may be taken in any order and fused with products; nothing here relies on signed zeros, infinities or NaN.
FAST = {"contract", "reassoc", "nsz"}

# Steps of the way back that are held until they are counted by one matrix product.
BLOCK = 128

# Chains that go together, so that each row of the transitions is read once for all.
TEAM = 4

compiled = njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
exactly = njit(cache=True, nogil=True, error_model="numpy")


@compiled
def times(out: np.ndarray, matrix: np.ndarray, vector: np.ndarray, by: np.ndarray) -> None:
    """``out = (matrix @ vector) * by``."""
    for u in range(vector.shape[0]):
        row, total = matrix[u], 0.0
        for s in range(vector.shape[0]):
            total += row[s] * vector[s]
        out[u] = total * by[u]


@compiled
def times_four(
    out: tuple[np.ndarray, ...], matrix: np.ndarray, vectors: tuple[np.ndarray, ...], by: tuple[np.ndarray, ...]
) -> None:
    """``times`` for four vectors: half as long as one by one, as each row of the matrix is read but once."""
    a, b, c, d = vectors
    for u in range(matrix.shape[0]):
        row, of_a, of_b, of_c, of_d = matrix[u], 0.0, 0.0, 0.0, 0.0
        for s in range(matrix.shape[0]):
            of_a += row[s] * a[s]
            of_b += row[s] * b[s]
            of_c += row[s] * c[s]
            of_d += row[s] * d[s]
        out[0][u] = of_a * by[0][u]
        out[1][u] = of_b * by[1][u]
        out[2][u] = of_c * by[2][u]
        out[3][u] = of_d * by[3][u]


@compiled
def scaled(vector: np.ndarray) -> float:
    """Scale a message to a sum of one, in place; what it summed to."""
    total = 0.0
    for s in range(vector.shape[0]):
        total += vector[s]
    factor = 1.0 / total
    for s in range(vector.shape[0]):
        vector[s] *= factor
    return total


@compiled
def go_forth(
    messages: np.ndarray,
    factors: np.ndarray,
    strength: np.ndarray,
    back: np.ndarray,
    rows: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    every: int,
    begin: int,
    end: int,
    totals: np.ndarray,
) -> None:
    """Forward messages of a team from step ``begin`` to ``end``; ``totals`` adds the logarithms of their sums."""
    team, width = starts.shape[0], strength.shape[1]
    for t in range(begin, end):
        if t == 0:
            for i in range(team):
                first, here = messages[i, 0], strength[rows[starts[i]]]
                for s in range(width):
                    first[s] = here[s]
        elif team == TEAM:
            a, b, c, d = starts
            times_four(
                (messages[0, t], messages[1, t], messages[2, t], messages[3, t]),
                back,
                (messages[0, t - 1], messages[1, t - 1], messages[2, t - 1], messages[3, t - 1]),
                (strength[rows[a + t]], strength[rows[b + t]], strength[rows[c + t]], strength[rows[d + t]]),
            )
        else:
            for i in range(team):
                times(messages[i, t], back, messages[i, t - 1], strength[rows[starts[i] + t]])
        for i in range(team):
            factors[i, t] = 1.0
            if t % every == 0 or t == lengths[i] - 1:
                total = scaled(messages[i, t])
                factors[i, t] = 1.0 / total
                totals[i] += np.log(total)


@compiled
def add_up(
    messages: np.ndarray,
    sent: np.ndarray,
    shares: np.ndarray,
    places: np.ndarray,
    first: int,
    end: int,
    marginals: np.ndarray,
    counts: np.ndarray,
    squared: bool,
) -> None:
    """Sums over the steps from ``first`` to ``end`` of one chain, for which ``sent`` and ``shares`` are held."""
    if squared:
        shares *= shares
    for t in range(first, end):
        mass, share = marginals[places[t]], shares[t - first]
        for s in range(share.shape[0]):
            mass[s] += share[s]
    begin = max(first, 1)
    if end > begin:
        ahead, onward = messages[begin - 1 : end - 1], sent[begin - first : end - first]
        if squared:
            ahead, onward = ahead * ahead, onward * onward
        counts += np.dot(ahead.T, onward)


@compiled
def go_back(
    messages: np.ndarray,
    factors: np.ndarray,
    strength: np.ndarray,
    forth: np.ndarray,
    rows: np.ndarray,
    places: np.ndarray,
    starts: np.ndarray,
    begin: int,
    end: int,
    returned: np.ndarray,
    sent: np.ndarray,
    shares: np.ndarray,
    marginals: np.ndarray,
    counts: np.ndarray,
    squared: bool,
) -> None:
    """Add what a team has from step ``end`` back to ``begin`` to ``marginals``, by row of ``places``, and ``counts``.

    Backward messages take over the factors of the forward ones, so that the products of the two sum to one at every
    step as they stand. Those of the last step are ``returned``. Transitions are counted short of the factor ``forth``.
    ``squared`` sums squares of probabilities instead.
    """
    team, width, ones = starts.shape[0], strength.shape[1], np.ones(strength.shape[1])
    while end > begin:
        first = max(end - BLOCK, begin)
        for t in range(end - 1, first - 1, -1):
            step = t - first
            for i in range(team):
                ahead, here, message, factor = messages[i, t], strength[rows[starts[i] + t]], returned[i], factors[i, t]
                share, onward = shares[i, step], sent[i, step]
                for s in range(width):
                    share[s] = ahead[s] * message[s]
                for s in range(width):
                    onward[s] = here[s] * message[s] * factor
            if t == 0:
                break
            if team == TEAM:
                times_four(
                    (returned[0], returned[1], returned[2], returned[3]),
                    forth,
                    (sent[0, step], sent[1, step], sent[2, step], sent[3, step]),
                    (ones, ones, ones, ones),
                )
            else:
                for i in range(team):
                    times(returned[i], forth, sent[i, step], ones)
        for i in range(team):
            add_up(messages[i], sent[i], shares[i], places[starts[i] :], first, end, marginals, counts, squared)
        end = first


@compiled
def both_ways(
    strength: np.ndarray,
    forth: np.ndarray,
    back: np.ndarray,
    rows: np.ndarray,
    places: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    every: int,
    totals: np.ndarray,
    marginals: np.ndarray,
    counts: np.ndarray,
    squared: bool,
) -> None:
    """There and back over several chains, longest first: together as far as all of a team go, and alone from there."""
    n, width = starts.shape[0], strength.shape[1]
    messages, factors = np.empty((TEAM, lengths[0], width)), np.empty((TEAM, lengths[0]))
    returned, sent, shares = np.empty((TEAM, width)), np.empty((TEAM, BLOCK, width)), np.empty((TEAM, BLOCK, width))
    totals[:] = 0.0
    first = 0
    while first < n:
        team = TEAM if first + TEAM <= n else 1
        mine = slice(first, first + team)
        begins, ends, found, together = starts[mine], lengths[mine], totals[mine], lengths[first + team - 1]
        go_forth(messages, factors, strength, back, rows, begins, ends, every, 0, together, found)
        returned[:] = 1.0
        for i in range(team):
            one, end = slice(i, i + 1), ends[i]
            ahead, scales, begin = messages[one], factors[one], begins[one]
            go_forth(ahead, scales, strength, back, rows, begin, ends[one], every, together, end, found[one])
            work = (returned[one], sent[one], shares[one])
            go_back(
                ahead, scales, strength, forth, rows, places, begin, together, end, *work, marginals, counts, squared
            )
        work = (returned, sent, shares)
        go_back(
            messages, factors, strength, forth, rows, places, begins, 0, together, *work, marginals, counts, squared
        )
        first += team


@exactly
def log_sum(values: np.ndarray) -> float:
    """``log sum exp``."""
    largest = values.max()
    total = 0.0
    for s in range(values.shape[0]):
        total += np.exp(values[s] - largest)
    return largest + np.log(total)


@exactly
def in_logarithms(
    scores: np.ndarray,
    transitions: np.ndarray,
    rows: np.ndarray,
    places: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    totals: np.ndarray,
    marginals: np.ndarray,
    counts: np.ndarray,
    squared: bool,
) -> None:
    """There and back in logarithms, many times slower: for transitions so far apart that messages cannot be scaled.

    Messages are shifted to sums of one at every step all the same: small numbers keep more digits.
    """
    n = scores.shape[1]
    messages, message, sent, work = np.empty((lengths[0], n)), np.empty(n), np.empty(n), np.empty(n)
    for i in range(starts.shape[0]):
        first, length = starts[i], lengths[i]
        totals[i] = 0.0
        for t in range(length):
            for s in range(n):
                messages[t, s] = scores[rows[first + t], s]
                if t > 0:
                    messages[t, s] += log_sum(messages[t - 1] + transitions[:, s])
            total = log_sum(messages[t])
            messages[t] -= total
            totals[i] += total
        message[:] = 0.0
        for t in range(length - 1, -1, -1):
            work[:] = messages[t] + message
            message -= log_sum(work)
            mass = marginals[places[first + t]]
            for s in range(n):
                probability = np.exp(messages[t, s] + message[s])
                mass[s] += probability * probability if squared else probability
            if t == 0:
                break
            sent[:] = scores[rows[first + t]] + message
            for u in range(n):
                message[u] = log_sum(transitions[u] + sent)
            total = log_sum(messages[t - 1] + message)
            for u in range(n):
                for s in range(n):
                    probability = np.exp(messages[t - 1, u] + transitions[u, s] + sent[s] - total)
                    counts[u, s] += probability * probability if squared else probability


@exactly
def best_labels(
    scores: np.ndarray,
    transitions: np.ndarray,
    rows: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    labels: np.ndarray,
) -> None:
    """Viterbi's algorithm over several chains; ties go to the lowest label."""
    n = scores.shape[1]
    came_from = np.empty((lengths[0], n), dtype=np.int32)
    best, following = np.empty(n), np.empty(n)
    for i in range(starts.shape[0]):
        first, length = starts[i], lengths[i]
        best[:] = scores[rows[first]]
        for t in range(1, length):
            for s in range(n):
                before, value = 0, best[0] + transitions[0, s]
                for u in range(1, n):
                    if best[u] + transitions[u, s] > value:
                        before, value = u, best[u] + transitions[u, s]
                came_from[t, s] = before
                following[s] = value + scores[rows[first + t], s]
            best[:] = following
        label = 0
        for s in range(1, n):
            if best[s] > best[label]:
                label = s
        labels[first + length - 1] = label
        for t in range(length - 1, 0, -1):
            label = came_from[t, label]
            labels[first + t - 1] = label
