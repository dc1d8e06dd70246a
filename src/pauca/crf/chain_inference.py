"""Inference on chains: label probabilities and most probable labels, by compiled kernels and in several threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType

import numpy as np

from pauca.clock import interrupts_held
from pauca.crf.observations import Observations

# Messages may shrink or grow by exp of this much before they are normalized: half the range of doubles is left to the
# products that are made of them.
LARGEST_EXPONENT = 230.0
LONGEST_INTERVAL = 64

# Sequences are split into parts, each summed on its own and the sums added in a fixed order: results do not depend on
# the number of threads. There are at most so many parts, fewer where distinct rows are many, since every part has sums
# for each, and each has at least one batch of sequences, or is the only one.
MOST_PARTS = 16
POSITIONS_PER_ROW = 2
SEQUENCES_PER_PART = 4

# With fewer products than this, starting threads costs more than they save.
LEAST_WORK_FOR_THREADS = 1 << 21


def load_kernels() -> ModuleType:
    """The compiled kernels, loaded when they are first needed."""
    try:
        with interrupts_held():
            from pauca.crf import kernels
    except ImportError as error:
        raise ImportError("Sequences need Numba: pip install numba") from error
    return kernels


def compile_kernels() -> None:
    """Run every kernel once: loading or compiling it may take longer than a fit's time limit, and is no part of it."""
    chain, scores = ChainInference(Observations.from_rows(np.zeros((2, 1)), np.array([0, 2])), 2), np.zeros((2, 2))
    for transitions in (scores, np.diag([0.0, 2.0 * LARGEST_EXPONENT])):
        chain.expectations(scores, transitions)
        chain.viterbi(scores, transitions)


@dataclass(frozen=True, eq=False)
class Expectations:
    """Expected counts under the model.

    ``log_partitions`` has an entry for each sequence; ``marginals`` of shape (m, C) sums the probabilities of labels
    over the positions of each row, ``transitions`` of shape (C, C) those of pairs of labels over neighbours.
    """

    log_partitions: np.ndarray
    marginals: np.ndarray
    transitions: np.ndarray


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the sequences, longest first: their indices, first positions and lengths."""

    sequences: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


class ChainInference:
    """Forward-backward and Viterbi passes over the chains of some observations.

    Parameters
    ----------
    observations : Observations
    n_labels : int
    threads : int
        How many parts are worked on at a time.
    """

    def __init__(self, observations: Observations, n_labels: int, threads: int = 1) -> None:
        self.observations = observations
        self.n_labels = n_labels
        width = 4 * math.ceil(n_labels / 4)
        self._width = width
        large = observations.n_positions * width * width >= LEAST_WORK_FOR_THREADS
        self._threads = threads if large else 1
        m, n = observations.matrix.shape[0], observations.n_positions
        most = min(MOST_PARTS, n // (POSITIONS_PER_ROW * m)) if observations.rows_repeat else MOST_PARTS
        most = min(most, (len(observations.bounds) - 1) // SEQUENCES_PER_PART) if large else 1
        self._parts = _split(observations.bounds, most)

    def expectations(
        self, scores: np.ndarray, transitions: np.ndarray, *, by_position: bool = False, squared: bool = False
    ) -> Expectations:
        """Marginals by row, or by position; ``squared`` sums squares of probabilities."""
        data, interval = self.observations, self._interval(transitions)
        outputs = np.arange(data.n_positions, dtype=np.int32) if by_position else data.rows
        # Where no two positions share a row, all parts may write to one array.
        shared = by_position or not data.rows_repeat
        n_parts, width = len(self._parts), self._width if interval else self.n_labels
        n_rows = data.n_positions if by_position else data.matrix.shape[0]
        marginals = np.zeros((1 if shared else n_parts, n_rows, width))
        pairs = np.zeros((n_parts, width, width))
        log_partitions = np.empty(len(data.bounds) - 1)
        if interval:
            emission, shifts, transition = self._exponentials(scores, transitions)
            transposed = np.ascontiguousarray(transition.T)

        def work(part: Part, index: int) -> None:
            logs = np.empty(len(part.sequences))
            sums = (logs, marginals[0 if shared else index], pairs[index], squared)
            chains = (data.rows, outputs, part.starts, part.lengths)
            if interval:
                load_kernels().forward_backward(emission, transition, transposed, *chains, interval, *sums)
            else:
                load_kernels().forward_backward_log(scores, transitions, *chains, *sums)
            log_partitions[part.sequences] = logs

        self._run(work)
        by_row, by_pair = _sum(marginals), _sum(pairs)
        if interval:
            log_partitions += self._total_shifts(shifts, transitions)
            by_pair = by_pair * (transition * transition if squared else transition)
        n = self.n_labels
        return Expectations(log_partitions, by_row[:, :n], by_pair[:n, :n])

    def viterbi(self, scores: np.ndarray, transitions: np.ndarray) -> np.ndarray:
        """The most probable labels of every sequence as a whole, shape (n,)."""
        labels = np.empty(self.observations.n_positions, dtype=np.intp)

        def work(part: Part, index: int) -> None:
            load_kernels().viterbi(scores, transitions, self.observations.rows, part.starts, part.lengths, labels)

        self._run(work)
        return labels

    def _interval(self, transitions: np.ndarray) -> int:
        """After how many steps messages must be normalized; 0 where no interval is short enough."""
        exponent = float(np.ptp(transitions)) + math.log(self.n_labels)
        if not exponent <= LARGEST_EXPONENT:
            return 0
        return LONGEST_INTERVAL if exponent == 0 else min(LONGEST_INTERVAL, int(LARGEST_EXPONENT / exponent))

    def _exponentials(self, scores: np.ndarray, transitions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Padded exponentials of scores and transitions, and by how much the scores of each row were shifted."""
        n, width = self.n_labels, self._width
        shifts = scores.max(axis=1)
        emission, transition = np.zeros((len(scores), width)), np.zeros((width, width))
        np.subtract(scores, shifts[:, None], out=emission[:, :n])
        np.exp(emission, out=emission)  # of the whole array: twice as fast as of every row but its padding
        emission[:, n:] = 0.0
        transition[:n, :n] = np.exp(transitions - transitions.max())
        return emission, shifts, transition

    def _total_shifts(self, shifts: np.ndarray, transitions: np.ndarray) -> np.ndarray:
        """What was subtracted from the scores and transitions of each sequence."""
        bounds = self.observations.bounds
        of_steps = (np.diff(bounds) - 1) * transitions.max()
        return np.add.reduceat(shifts[self.observations.rows], bounds[:-1]) + of_steps if shifts.any() else of_steps

    def _run(self, work: Callable[[Part, int], None]) -> None:
        if self._threads == 1 or len(self._parts) == 1:
            for index, part in enumerate(self._parts):
                work(part, index)
            return
        with ThreadPoolExecutor(min(self._threads, len(self._parts))) as pool:
            for done in [pool.submit(work, part, index) for index, part in enumerate(self._parts)]:
                done.result()


def _split(bounds: np.ndarray, most: int) -> list[Part]:
    """Runs of whole sequences with about equally many positions, their number a power of two: threads share them."""
    n_parts = 1 << (max(1, most).bit_length() - 1)
    goals = bounds[-1] * np.arange(1, n_parts) / n_parts
    ends = np.unique([0, *np.searchsorted(bounds, goals), len(bounds) - 1])
    lengths = np.diff(bounds)
    runs = [first + np.argsort(-lengths[first:end], kind="stable") for first, end in pairwise(ends)]
    return [Part(run, bounds[run], lengths[run]) for run in runs]


def _sum(parts: np.ndarray) -> np.ndarray:
    """The sum over the first axis, from first to last."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
