"""Passes over all chains: what is set up for the compiled kernels, and several threads at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType

import numpy as np

from pauca.crf.observations import Observations

# Messages may shrink or grow by exp of this much before they are scaled back: half the range of doubles is left to the
# products that are made of them.
LARGEST_EXPONENT = 230.0
LONGEST_RUN = 64

# Sequences are split into parts, each summed on its own and the sums added in a fixed order: results do not depend on
# the number of threads. There are at most so many, fewer where patterns are many, since every part has sums for each,
# and each has as many sequences as are worked on together, or is the only one.
MOST_PARTS = 16
ROWS_PER_PATTERN = 2
SEQUENCES_PER_PART = 4

# Below so many products, starting threads costs more than they save.
WORTH_THREADS = 1 << 21


def kernels() -> ModuleType:
    """The compiled kernels, loaded when they are first needed."""
    try:
        from pauca.crf import kernels as module
    except ImportError as error:
        raise ImportError('Sequences need Numba: pip install "pauca[compiled]"') from error
    return module


@dataclass(frozen=True, eq=False)
class Sums:
    """What a pass finds.

    ``log_normalisers`` has an entry for each sequence; ``marginals`` of shape (m, C) sums the probabilities of labels
    over the positions of each row, ``transitions`` of shape (C, C) those of pairs of labels over neighbours.
    """

    log_normalisers: np.ndarray
    marginals: np.ndarray
    transitions: np.ndarray


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the sequences, longest first: their numbers, where they start, and how long they are."""

    sequences: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


class Passes:
    """Passes over the chains of some observations.

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
        worth = observations.n_positions * width * width >= WORTH_THREADS
        self._threads = threads if worth else 1
        m, n = observations.matrix.shape[0], observations.n_positions
        most = min(MOST_PARTS, n // (ROWS_PER_PATTERN * m)) if observations.gathered else MOST_PARTS
        most = min(most, (len(observations.bounds) - 1) // SEQUENCES_PER_PART) if worth else 1
        self._parts = _split(observations.bounds, most)

    def sums(
        self, scores: np.ndarray, transitions: np.ndarray, *, by_position: bool = False, squared: bool = False
    ) -> Sums:
        """Marginals by row, or by position; ``squared`` sums squares of probabilities."""
        data, every = self.observations, self._every(transitions)
        places = np.arange(data.n_positions, dtype=np.int32) if by_position else data.rows
        # Where no two positions share a row, all parts may write to one array.
        shared = by_position or not data.gathered
        n_parts, width = len(self._parts), self._width if every else self.n_labels
        n_rows = data.n_positions if by_position else data.matrix.shape[0]
        marginals = np.zeros((1 if shared else n_parts, n_rows, width))
        counts = np.zeros((n_parts, width, width))
        totals = np.empty(len(data.bounds) - 1)
        if every:
            strength, shifts, forth = self._scaled(scores, transitions)
            back = np.ascontiguousarray(forth.T)

        def work(part: Part, place: int) -> None:
            found = np.empty(len(part.sequences))
            out = (found, marginals[0 if shared else place], counts[place], squared)
            where = (data.rows, places, part.starts, part.lengths)
            if every:
                kernels().both_ways(strength, forth, back, *where, every, *out)
            else:
                kernels().in_logarithms(scores, transitions, *where, *out)
            totals[part.sequences] = found

        self._each(work)
        mass, count = _added(marginals), _added(counts)
        if every:
            totals += self._shifts(shifts, transitions)
            count = count * (forth * forth if squared else forth)
        n = self.n_labels
        return Sums(totals, mass[:, :n], count[:n, :n])

    def best_labels(self, scores: np.ndarray, transitions: np.ndarray) -> np.ndarray:
        """The most probable labels of every sequence together, shape (n,)."""
        labels = np.empty(self.observations.n_positions, dtype=np.intp)

        def work(part: Part, place: int) -> None:
            kernels().best_labels(scores, transitions, self.observations.rows, part.starts, part.lengths, labels)

        self._each(work)
        return labels

    def _every(self, transitions: np.ndarray) -> int:
        """After how many steps messages must be scaled; 0 where scaling cannot save them."""
        exponent = float(np.ptp(transitions)) + math.log(self.n_labels)
        if not exponent <= LARGEST_EXPONENT:
            return 0
        return LONGEST_RUN if exponent == 0 else min(LONGEST_RUN, int(LARGEST_EXPONENT / exponent))

    def _scaled(self, scores: np.ndarray, transitions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Padded exponentials of scores and transitions, and by how much the scores of each row were shifted."""
        n, width = self.n_labels, self._width
        shifts = scores.max(axis=1)
        strength, forth = np.zeros((len(scores), width)), np.zeros((width, width))
        np.subtract(scores, shifts[:, None], out=strength[:, :n])
        np.exp(strength, out=strength)  # of all at once: twice as fast as of every row but its padding
        strength[:, n:] = 0.0
        forth[:n, :n] = np.exp(transitions - transitions.max())
        return strength, shifts, forth

    def _shifts(self, shifts: np.ndarray, transitions: np.ndarray) -> np.ndarray:
        """What was taken from the scores and transitions of each sequence."""
        bounds = self.observations.bounds
        of_steps = (np.diff(bounds) - 1) * transitions.max()
        return np.add.reduceat(shifts[self.observations.rows], bounds[:-1]) + of_steps if shifts.any() else of_steps

    def _each(self, work: Callable[[Part, int], None]) -> None:
        if self._threads == 1 or len(self._parts) == 1:
            for place, part in enumerate(self._parts):
                work(part, place)
            return
        with ThreadPoolExecutor(min(self._threads, len(self._parts))) as pool:
            for done in [pool.submit(work, part, place) for place, part in enumerate(self._parts)]:
                done.result()


def _split(bounds: np.ndarray, most: int) -> list[Part]:
    """Runs of whole sequences with about equally many positions, their number a power of two: threads share them."""
    parts = 1 << (max(1, most).bit_length() - 1)
    goals = bounds[-1] * np.arange(1, parts) / parts
    ends = np.unique([0, *np.searchsorted(bounds, goals), len(bounds) - 1])
    lengths = np.diff(bounds)
    runs = [first + np.argsort(-lengths[first:end], kind="stable") for first, end in pairwise(ends)]
    return [Part(run, bounds[run], lengths[run]) for run in runs]


def _added(parts: np.ndarray) -> np.ndarray:
    """The sum over the first axis, from first to last."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total
