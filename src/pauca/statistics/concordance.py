"""Harrell's concordance: how often, of two rows, the one with the higher score has its event first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

# Where rows come under observation late, pairs are compared one by one, about this many at a time.
PAIRS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class Concordance:
    """The concordance of some rows and its standard error."""

    value: float
    """The share of comparable pairs in which the row with the higher score has its event first; ties count half."""
    standard_error: float

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """A normal interval, cut at 0 and 1."""
        half = float(ndtri(0.5 + confidence / 2)) * self.standard_error
        return max(0.0, self.value - half), min(1.0, self.value + half)


def concordance_index(
    event: np.ndarray, time: np.ndarray, score: np.ndarray, sample_weight: np.ndarray | None = None
) -> float:
    """The share of comparable pairs in which the row with the higher score has its event first (Harrell 1982).

    A pair is comparable if one row had its event while the other was still at risk, or was last seen at the same time.
    Equal scores count one half. It takes ``n log(n)^2`` steps.

    Parameters
    ----------
    event : array of bool, shape (n,)
        Whether the event of a row was seen.
    time : array of shape (n,)
        When, or when the row was last seen.
    score : array of shape (n,)
        Higher for rows whose event is expected earlier.
    sample_weight : array of shape (n,), default=None
        A pair counts by the product of its weights.

    Returns
    -------
    float
        1 for a perfect order, 0.5 for scores that say nothing.

    Examples
    --------
    >>> concordance_index([True, False, True], [1.0, 2.0, 3.0], [0.9, 0.5, 0.1])
    1.0
    """
    weight = np.ones(len(time)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return concordance(np.asarray(event, dtype=bool), np.asarray(time), np.asarray(score), weight).value


def concordance(
    event: np.ndarray,
    time: np.ndarray,
    score: np.ndarray,
    weight: np.ndarray,
    *,
    entry: np.ndarray | None = None,
    stratum: np.ndarray | None = None,
    row: np.ndarray | None = None,
) -> Concordance:
    """The concordance with its standard error by the infinitesimal jackknife.

    Parameters
    ----------
    event, time, score, weight : shape (n,)
    entry : shape (n,) or None
        When each row came under observation: one that was not there at the time of an event is not compared with it.
    stratum : shape (n,) or None
        Only rows of the same stratum are compared.
    row : shape (n,) or None
        The observation that each belongs to, where one is predicted several times.
    """
    # Rows last seen at the time of an event come after it; events at one time are not compared.
    rank = np.unique(np.stack([time, ~event]), axis=1, return_inverse=True)[1].ravel()
    codes: np.ndarray = np.zeros(len(time), dtype=np.intp)
    if stratum is not None:
        codes = np.unique(stratum, return_inverse=True)[1]
    if entry is not None and np.any(entry > -np.inf):
        found = _compared_one_by_one(event, time, score, weight, rank, entry, codes)
    else:
        found = _compared_by_bits(event, score, weight, rank, codes)
    total = float(weight @ found.comparable) / 2  # every pair is met from both sides
    if not total:
        raise ValueError("There are no two rows to compare: no event was seen while another row was at risk.")
    value = float(weight @ found.concordant) / 2 / total
    influence = weight * (found.concordant - value * found.comparable) / total
    of_rows = influence if row is None else np.bincount(row, weights=influence)
    return Concordance(value, float(np.sqrt(np.sum(of_rows**2))))


class _Pairs(NamedTuple):
    """For every row the weights of the rows that it is compared with, and of those in the order of their scores."""

    concordant: np.ndarray
    comparable: np.ndarray


def _compared_by_bits(
    event: np.ndarray, score: np.ndarray, weight: np.ndarray, rank: np.ndarray, stratum: np.ndarray
) -> _Pairs:
    order = np.unique(score, return_inverse=True)[1].ravel()
    found = _Pairs(np.zeros(len(rank)), np.zeros(len(rank)))
    # Two ranks differ first in exactly one bit: there the earlier one has a zero and the later one a one.
    for bit in range(int(rank.max(initial=0)).bit_length()):
        block = stratum * (int(rank.max()) + 1) + (rank >> (bit + 1))
        later = (rank >> bit) & 1 == 1
        earlier = event & ~later
        # Later rows should score lower, and earlier ones higher: the same question, asked from either side.
        for asked, others, sign in ((earlier, later, 1), (later, earlier, -1)):
            below, equal, every = _weights_below(block, sign * order, weight, asked, others)
            found.concordant[asked] += below + 0.5 * equal
            found.comparable[asked] += every
    return found


def _weights_below(
    block: np.ndarray, order: np.ndarray, weight: np.ndarray, asked: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For every row asked, weights of the others of its block: of lower order, of equal order, and of all."""
    order = order - order.min(initial=0)
    n_orders = int(order.max(initial=0)) + 2
    keys = block * n_orders + order
    sorting = np.argsort(keys[others], kind="stable")
    known, sums = keys[others][sorting], np.concatenate([[0.0], np.cumsum(weight[others][sorting])])
    first, last = block[asked] * n_orders, (block[asked] + 1) * n_orders
    start, end = sums[np.searchsorted(known, first)], sums[np.searchsorted(known, last)]
    low, high = sums[np.searchsorted(known, keys[asked])], sums[np.searchsorted(known, keys[asked], side="right")]
    return low - start, high - low, end - start


def _compared_one_by_one(
    event: np.ndarray,
    time: np.ndarray,
    score: np.ndarray,
    weight: np.ndarray,
    rank: np.ndarray,
    entry: np.ndarray,
    stratum: np.ndarray,
) -> _Pairs:
    found, events = _Pairs(np.zeros(len(rank)), np.zeros(len(rank))), np.flatnonzero(event & (weight > 0))
    step = max(1, PAIRS_AT_ONCE // max(1, len(rank)))
    for first in range(0, len(events), step):
        some = events[first : first + step, None]
        pairs = (rank > rank[some]) & (entry < time[some]) & (stratum == stratum[some])
        right = pairs * (0.5 * (score <= score[some]) + 0.5 * (score < score[some]))
        for counted, sums in ((right, found.concordant), (pairs, found.comparable)):
            sums[some[:, 0]] += counted @ weight
            np.add(sums, weight[some[:, 0]] @ counted, out=sums)
    return found
