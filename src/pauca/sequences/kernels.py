"""Compiled passes over chains. Imported only when they are first needed: Numba takes a while to load.

Conventions
-----------
Labels are padded with zeros to a ``width`` that is a multiple of four, so that sums over them go four at a time without
a remainder. ``strength[r]`` is ``exp(score - largest score)`` of row r, so that its largest entry is one;
``forth[u, s]`` is ``exp`` of the transition from u to s less the largest transition, and ``back`` its transpose.

With both scaled like that, the sum over labels of a forward message shrinks in a step by no more than
``exp(-(range of the transitions))`` and grows by no more than the number of labels. That tells beforehand how many
steps may go by until messages must be scaled back to one (``every``), and no step needs to look for underflow.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Sums may be taken in any order and fused with products; nothing here relies on signed zeros, infinities or NaN.
FAST = {"contract", "reassoc", "nsz"}

# Steps of the way back that are held until they are counted by one matrix product.
BLOCK = 128

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
    messages: np.ndarray, factors: np.ndarray, strength: np.ndarray, back: np.ndarray, rows: np.ndarray, every: int
) -> float:
    """Forward messages of one chain, shape (length, width); the logarithm of its normaliser but for the shifts."""
    width, last = strength.shape[1], rows.shape[0] - 1
    first, start = messages[0], strength[rows[0]]
    for s in range(width):
        first[s] = start[s]
    if last == 0:
        return np.log(scaled(first))
    logarithm = 0.0
    for t in range(1, last + 1):
        message = messages[t]
        times(message, back, messages[t - 1], strength[rows[t]])
        if t % every == 0 or t == last:
            total = scaled(message)
            factors[t] = 1.0 / total
            logarithm += np.log(total)
    return logarithm


@compiled
def go_back(
    messages: np.ndarray,
    factors: np.ndarray,
    strength: np.ndarray,
    forth: np.ndarray,
    rows: np.ndarray,
    places: np.ndarray,
    every: int,
    marginals: np.ndarray,
    counts: np.ndarray,
    held: np.ndarray,
    squared: bool,
) -> None:
    """Add the marginals of one chain to rows ``places`` of ``marginals``, and its transitions to ``counts``.

    Backward messages take over the factors of the forward ones, so that the products of the two sum to one at every
    step as they stand. Transitions are counted short of the factor ``forth``. ``squared`` sums squares of
    probabilities instead.
    """
    width, length = strength.shape[1], rows.shape[0]
    message, ones = np.ones(width), np.ones(width)
    end = length
    while end > 0:
        begin = max(end - held.shape[0], 0)
        for t in range(end - 1, begin - 1, -1):
            ahead, here, mass, sent = messages[t], strength[rows[t]], marginals[places[t]], held[t - begin]
            if squared:
                for s in range(width):
                    probability = ahead[s] * message[s]
                    mass[s] += probability * probability
            else:
                for s in range(width):
                    mass[s] += ahead[s] * message[s]
            if t == 0:
                break
            for s in range(width):
                sent[s] = here[s] * message[s]
            if t % every == 0 or t == length - 1:
                for s in range(width):
                    sent[s] *= factors[t]
            times(message, forth, sent, ones)
        first = max(begin, 1)
        if end > first:
            ahead, sent = messages[first - 1 : end - 1], held[first - begin : end - begin]
            if squared:
                ahead, sent = ahead * ahead, sent * sent
            counts += np.dot(ahead.T, sent)
        end = begin


@compiled
def normalisers(
    strength: np.ndarray, back: np.ndarray, rows: np.ndarray, bounds: np.ndarray, every: int, totals: np.ndarray
) -> None:
    """The way forth alone, over several chains; ``totals`` takes the logarithms of their normalisers."""
    longest = 0
    for i in range(bounds.shape[0] - 1):
        longest = max(longest, bounds[i + 1] - bounds[i])
    messages, factors = np.empty((longest, strength.shape[1])), np.empty(longest)
    for i in range(bounds.shape[0] - 1):
        totals[i] = go_forth(messages, factors, strength, back, rows[bounds[i] : bounds[i + 1]], every)


@compiled
def both_ways(
    strength: np.ndarray,
    forth: np.ndarray,
    back: np.ndarray,
    rows: np.ndarray,
    places: np.ndarray,
    bounds: np.ndarray,
    every: int,
    totals: np.ndarray,
    marginals: np.ndarray,
    counts: np.ndarray,
    squared: bool,
) -> None:
    """There and back over several chains."""
    longest = 0
    for i in range(bounds.shape[0] - 1):
        longest = max(longest, bounds[i + 1] - bounds[i])
    messages, factors = np.empty((longest, strength.shape[1])), np.empty(longest)
    held = np.empty((BLOCK, strength.shape[1]))
    for i in range(bounds.shape[0] - 1):
        here = slice(bounds[i], bounds[i + 1])
        totals[i] = go_forth(messages, factors, strength, back, rows[here], every)
        go_back(messages, factors, strength, forth, rows[here], places[here], every, marginals, counts, held, squared)


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
    bounds: np.ndarray,
    totals: np.ndarray,
    marginals: np.ndarray,
    counts: np.ndarray,
    squared: bool,
) -> None:
    """There and back in logarithms, many times slower: for transitions so far apart that messages cannot be scaled.

    Messages are shifted to sums of one at every step all the same: small numbers keep more digits.
    """
    n, longest = scores.shape[1], 0
    for i in range(bounds.shape[0] - 1):
        longest = max(longest, bounds[i + 1] - bounds[i])
    messages, message, sent, work = np.empty((longest, n)), np.empty(n), np.empty(n), np.empty(n)
    for i in range(bounds.shape[0] - 1):
        first, length = bounds[i], bounds[i + 1] - bounds[i]
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
    scores: np.ndarray, transitions: np.ndarray, rows: np.ndarray, bounds: np.ndarray, labels: np.ndarray
) -> None:
    """Viterbi's algorithm over several chains; ties go to the lowest label."""
    n, longest = scores.shape[1], 0
    for i in range(bounds.shape[0] - 1):
        longest = max(longest, bounds[i + 1] - bounds[i])
    came_from = np.empty((longest, n), dtype=np.int32)
    best, following = np.empty(n), np.empty(n)
    for i in range(bounds.shape[0] - 1):
        first, length = bounds[i], bounds[i + 1] - bounds[i]
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
