"""Compiled forward-backward and Viterbi passes over chains. Imported on first use: Numba takes a while to load.

Conventions
-----------
Labels are padded with zeros to a ``width`` that is a multiple of four, so that sums over them go four at a time without
a remainder. ``emission[r]`` is ``exp(score - largest score)`` of row r, so that its largest entry is one;
``transition[u, s]`` is ``exp`` of the transition from u to s less the largest transition; ``transposed`` its transpose.

With both scaled like that, the sum over labels of a forward message shrinks in a step by no more than
``exp(-(range of the transitions))`` and grows by no more than the number of labels. That bounds in advance how many
steps may pass until messages must be normalized (``interval``), and no step needs to check for underflow.

Chains go in batches of four, longest first: ``messages[i, t]`` and ``factors[i, t]`` are the forward message and its
normalizing factor of chain i at step t, and ``starts[i]`` is the position of its first step. ``rows[position]`` is the
row of the scores, ``outputs[position]`` the row of ``marginals`` that a position adds to.

Most of it is loops: slices that arrays are assigned to, and reductions such as ``max``, take seconds to compile.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Sums may be taken in any order and fused with products; nothing here relies on signed zeros, infinities or NaN.
FAST_MATH = {"contract", "reassoc", "nsz"}

# Steps of the backward pass that are held until one matrix product counts their transitions.
BLOCK = 128

# Chains that are worked on together, so that each row of the transitions is read once for all.
BATCH = 4

fast_math = njit(cache=True, nogil=True, fastmath=FAST_MATH, error_model="numpy")
strict_math = njit(cache=True, nogil=True, error_model="numpy")


@fast_math
def weighted_product(out: np.ndarray, matrix: np.ndarray, vector: np.ndarray, by: np.ndarray) -> None:
    """``out = (matrix @ vector) * by``."""
    for u in range(vector.shape[0]):
        row, total = matrix[u], 0.0
        for s in range(vector.shape[0]):
            total += row[s] * vector[s]
        out[u] = total * by[u]


@fast_math
def weighted_products(
    out: tuple[np.ndarray, ...], matrix: np.ndarray, vectors: tuple[np.ndarray, ...], by: tuple[np.ndarray, ...]
) -> None:
    """``weighted_product`` for four vectors: takes half as long, since each row of the matrix is read once."""
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


@fast_math
def normalize(vector: np.ndarray) -> float:
    """Scale a message to a sum of one, in place; returns the sum."""
    total = 0.0
    for s in range(vector.shape[0]):
        total += vector[s]
    factor = 1.0 / total
    for s in range(vector.shape[0]):
        vector[s] *= factor
    return total


@fast_math
def forward_pass(
    messages: np.ndarray,
    factors: np.ndarray,
    emission: np.ndarray,
    transposed: np.ndarray,
    rows: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    interval: int,
    begin: int,
    end: int,
    log_partitions: np.ndarray,
) -> None:
    """Forward messages of a batch, steps ``begin`` to ``end``; adds logarithms of their sums to ``log_partitions``."""
    batch, width = starts.shape[0], emission.shape[1]
    for t in range(begin, end):
        if t == 0:
            for i in range(batch):
                first, here = messages[i, 0], emission[rows[starts[i]]]
                for s in range(width):
                    first[s] = here[s]
        elif batch == BATCH:
            a, b, c, d = starts
            weighted_products(
                (messages[0, t], messages[1, t], messages[2, t], messages[3, t]),
                transposed,
                (messages[0, t - 1], messages[1, t - 1], messages[2, t - 1], messages[3, t - 1]),
                (emission[rows[a + t]], emission[rows[b + t]], emission[rows[c + t]], emission[rows[d + t]]),
            )
        else:
            for i in range(batch):
                weighted_product(messages[i, t], transposed, messages[i, t - 1], emission[rows[starts[i] + t]])
        for i in range(batch):
            factors[i, t] = 1.0
            if t % interval == 0 or t == lengths[i] - 1:
                total = normalize(messages[i, t])
                factors[i, t] = 1.0 / total
                log_partitions[i] += np.log(total)


@fast_math
def accumulate(
    messages: np.ndarray,
    weighted: np.ndarray,
    posteriors: np.ndarray,
    outputs: np.ndarray,
    first: int,
    end: int,
    marginals: np.ndarray,
    pairs: np.ndarray,
    squared: bool,
) -> None:
    """Add the steps ``first`` to ``end`` of one chain to ``marginals`` and ``pairs``."""
    if squared:
        posteriors *= posteriors
    for t in range(first, end):
        mass, posterior = marginals[outputs[t]], posteriors[t - first]
        for s in range(posterior.shape[0]):
            mass[s] += posterior[s]
    begin = max(first, 1)
    if end > begin:
        forward, weight = messages[begin - 1 : end - 1], weighted[begin - first : end - first]
        if squared:
            forward, weight = forward * forward, weight * weight
        pairs += np.dot(forward.T, weight)


@fast_math
def backward_pass(
    messages: np.ndarray,
    factors: np.ndarray,
    emission: np.ndarray,
    transition: np.ndarray,
    rows: np.ndarray,
    outputs: np.ndarray,
    starts: np.ndarray,
    begin: int,
    end: int,
    backward: np.ndarray,
    weighted: np.ndarray,
    posteriors: np.ndarray,
    marginals: np.ndarray,
    pairs: np.ndarray,
    squared: bool,
) -> None:
    """Backward messages of a batch, steps ``end`` to ``begin``; adds its probabilities to ``marginals`` and ``pairs``.

    Backward messages reuse the factors of the forward ones, so that the products of the two sum to one at every step.
    ``backward`` holds those of step ``end`` and is overwritten. ``pairs`` still lacks the factor ``transition``.
    ``squared`` sums squares of probabilities instead.
    """
    batch, width, ones = starts.shape[0], emission.shape[1], np.ones(emission.shape[1])
    while end > begin:
        first = max(end - BLOCK, begin)
        for t in range(end - 1, first - 1, -1):
            step = t - first
            for i in range(batch):
                forward, message, factor = messages[i, t], backward[i], factors[i, t]
                here, posterior, weight = emission[rows[starts[i] + t]], posteriors[i, step], weighted[i, step]
                for s in range(width):
                    posterior[s] = forward[s] * message[s]
                for s in range(width):
                    weight[s] = here[s] * message[s] * factor
            if t == 0:
                break
            if batch == BATCH:
                weighted_products(
                    (backward[0], backward[1], backward[2], backward[3]),
                    transition,
                    (weighted[0, step], weighted[1, step], weighted[2, step], weighted[3, step]),
                    (ones, ones, ones, ones),
                )
            else:
                for i in range(batch):
                    weighted_product(backward[i], transition, weighted[i, step], ones)
        for i in range(batch):
            steps = (messages[i], weighted[i], posteriors[i], outputs[starts[i] :])
            accumulate(*steps, first, end, marginals, pairs, squared)
        end = first


@fast_math
def forward_backward(
    emission: np.ndarray,
    transition: np.ndarray,
    transposed: np.ndarray,
    rows: np.ndarray,
    outputs: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    interval: int,
    log_partitions: np.ndarray,
    marginals: np.ndarray,
    pairs: np.ndarray,
    squared: bool,
) -> None:
    """Forward-backward over several chains, longest first: a batch goes together as far as its shortest chain."""
    n, width = starts.shape[0], emission.shape[1]
    messages, factors = np.empty((BATCH, lengths[0], width)), np.empty((BATCH, lengths[0]))
    backward, weighted = np.empty((BATCH, width)), np.empty((BATCH, BLOCK, width))
    posteriors, sums = np.empty((BATCH, BLOCK, width)), (marginals, pairs, squared)
    log_partitions[:] = 0.0
    first, zero = 0, int(np.int64(0))  # a literal 0 would be compiled for once more
    while first < n:
        batch = BATCH if first + BATCH <= n else 1
        members, shortest = slice(first, first + batch), lengths[first + batch - 1]
        begins, ends, logs = starts[members], lengths[members], log_partitions[members]
        forward_pass(messages, factors, emission, transposed, rows, begins, ends, interval, zero, shortest, logs)
        backward[:] = 1.0
        for i in range(batch):
            one, end = slice(i, i + 1), ends[i]
            ahead, scales, begin, log = messages[one], factors[one], begins[one], logs[one]
            forward_pass(ahead, scales, emission, transposed, rows, begin, ends[one], interval, shortest, end, log)
            work = (backward[one], weighted[one], posteriors[one])
            backward_pass(ahead, scales, emission, transition, rows, outputs, begin, shortest, end, *work, *sums)
        work = (backward, weighted, posteriors)
        backward_pass(messages, factors, emission, transition, rows, outputs, begins, 0, shortest, *work, *sums)
        first += batch


@strict_math
def log_sum_exp(values: np.ndarray) -> float:
    """``log(sum(exp(values)))``."""
    largest, total = values[0], 0.0
    for s in range(1, values.shape[0]):
        largest = max(largest, values[s])
    for s in range(values.shape[0]):
        total += np.exp(values[s] - largest)
    return largest + np.log(total)


@strict_math
def forward_backward_log(
    scores: np.ndarray,
    transitions: np.ndarray,
    rows: np.ndarray,
    outputs: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    log_partitions: np.ndarray,
    marginals: np.ndarray,
    pairs: np.ndarray,
    squared: bool,
) -> None:
    """Forward-backward in logarithms, many times slower: for transitions too far apart for scaled messages.

    Messages are still shifted to sums of one at every step: small numbers keep more digits.
    """
    n = scores.shape[1]
    messages, message, weighted, work = np.empty((lengths[0], n)), np.empty(n), np.empty(n), np.empty(n)
    for i in range(starts.shape[0]):
        first, length = starts[i], lengths[i]
        log_partitions[i] = 0.0
        for t in range(length):
            for s in range(n):
                messages[t, s] = scores[rows[first + t], s]
                if t > 0:
                    for u in range(n):
                        work[u] = messages[t - 1, u] + transitions[u, s]
                    messages[t, s] += log_sum_exp(work)
            total = log_sum_exp(messages[t])
            for s in range(n):
                messages[t, s] -= total
            log_partitions[i] += total
        for s in range(n):
            message[s] = 0.0
        for t in range(length - 1, -1, -1):
            for s in range(n):
                work[s] = messages[t, s] + message[s]
            total = log_sum_exp(work)
            mass = marginals[outputs[first + t]]
            for s in range(n):
                message[s] -= total
                probability = np.exp(messages[t, s] + message[s])
                mass[s] += probability * probability if squared else probability
            if t == 0:
                break
            for s in range(n):
                weighted[s] = scores[rows[first + t], s] + message[s]
            for u in range(n):
                for s in range(n):
                    work[s] = transitions[u, s] + weighted[s]
                message[u] = log_sum_exp(work)
            for u in range(n):
                work[u] = messages[t - 1, u] + message[u]
            total = log_sum_exp(work)
            for u in range(n):
                for s in range(n):
                    probability = np.exp(messages[t - 1, u] + transitions[u, s] + weighted[s] - total)
                    pairs[u, s] += probability * probability if squared else probability


@strict_math
def viterbi(
    scores: np.ndarray,
    transitions: np.ndarray,
    rows: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    labels: np.ndarray,
) -> None:
    """The most probable labels of several chains (Viterbi's algorithm); ties go to the lowest label."""
    n = scores.shape[1]
    backpointers = np.empty((lengths[0], n), dtype=np.int32)
    best, following = np.empty(n), np.empty(n)
    for i in range(starts.shape[0]):
        first, length = starts[i], lengths[i]
        for s in range(n):
            best[s] = scores[rows[first], s]
        for t in range(1, length):
            for s in range(n):
                previous, value = 0, best[0] + transitions[0, s]
                for u in range(1, n):
                    if best[u] + transitions[u, s] > value:
                        previous, value = u, best[u] + transitions[u, s]
                backpointers[t, s] = previous
                following[s] = value + scores[rows[first + t], s]
            for s in range(n):
                best[s] = following[s]
        label = 0
        for s in range(1, n):
            if best[s] > best[label]:
                label = s
        labels[first + length - 1] = label
        for t in range(length - 1, 0, -1):
            label = backpointers[t, label]
            labels[first + t - 1] = label
