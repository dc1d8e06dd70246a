"""Harrell's concordance: how often, of two rows, the one with the higher score has its event first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from pauca.clock import check_time


class NothingToCompare(ValueError):
    """No event was seen while another row was at risk."""


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
    given = {"event": event, "time": time, "score": score}
    if sample_weight is not None:
        given["sample_weight"] = sample_weight
    columns = {name: _checked(name, column) for name, column in given.items()}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"All columns must have the same number of rows, but they have: {told}.")
    if not np.isin(columns["event"], (0.0, 1.0)).all():
        raise ValueError("event must be True or False, or 1 or 0, in every row.")
    weight = columns.get("sample_weight", np.ones(len(columns["time"])))
    if np.any(weight < 0):
        raise ValueError(f"sample_weight must not be negative, but its minimum is {weight.min():g}.")
    return concordance(columns["event"] == 1.0, columns["time"], columns["score"], weight).value


def _checked(name: str, column: Any) -> np.ndarray:
    found = np.asarray(column, dtype=np.float64)
    if found.ndim != 1:
        raise ValueError(f"{name} must have one dimension, but its shape is {found.shape}.")
    if not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite numbers, but row {np.flatnonzero(~np.isfinite(found))[0]} is not.")
    return found


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
    codes: np.ndarray = np.zeros(len(time), dtype=np.intp)
    if stratum is not None:
        codes = np.unique(stratum, return_inverse=True)[1].ravel()
    order = np.unique(score, return_inverse=True)[1].ravel()
    # Rows last seen at the time of an event come after it; events at one time are not compared.
    found = _pairs(event, order, weight, codes, *_ranks((time, ~event), (time, ~event)))
    if entry is not None and np.any(entry > -np.inf):
        # Of those who come after an event, these were not yet there.
        absent = _pairs(
            event, order, weight, codes, *_ranks((time, np.zeros_like(event)), (entry, np.ones_like(event)))
        )
        found = _Pairs(found.concordant - absent.concordant, found.comparable - absent.comparable)
    total = float(weight @ found.comparable) / 2  # every pair is met from both sides
    if not total > 1e-13 * float(weight.sum()) ** 2:  # rounding may leave a little
        raise NothingToCompare("There are no two rows to compare: no event was seen while another row was at risk.")
    value = float(weight @ found.concordant) / 2 / total
    influence = weight * (found.concordant - value * found.comparable) / total
    of_rows = influence if row is None else np.bincount(row, weights=influence)
    return Concordance(value, float(np.sqrt(np.sum(of_rows**2))))


class _Pairs(NamedTuple):
    """For every row the weights of the rows that it is compared with, and of those in the order of their scores."""

    concordant: np.ndarray
    comparable: np.ndarray


def _ranks(first: tuple[np.ndarray, np.ndarray], then: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Common ranks of two lists of instants: times, and whether one comes after others of the same time."""
    both = np.stack([np.concatenate(same) for same in zip(first, then, strict=True)])
    found = np.unique(both, axis=1, return_inverse=True)[1].ravel()
    return found[: len(first[0])], found[len(first[0]) :]


def _pairs(
    event: np.ndarray, order: np.ndarray, weight: np.ndarray, stratum: np.ndarray, first: np.ndarray, then: np.ndarray
) -> _Pairs:
    """Pairs of a row with an event and one of its stratum whose rank in ``then`` is above that of the event."""
    found, most = _Pairs(np.zeros(len(order)), np.zeros(len(order))), int(max(first.max(), then.max()))
    # Two ranks differ first in exactly one bit: there the earlier one has a zero and the later one a one.
    for bit in range(most.bit_length()):
        check_time()
        earlier, later = event & ((first >> bit) & 1 == 0), (then >> bit) & 1 == 1
        blocks = [stratum * (most + 1) + (rank >> (bit + 1)) for rank in (first, then)]
        # Later rows should score lower, and earlier ones higher: the same question, asked from either side.
        for asked, others, block, other_block, sign in (
            (earlier, later, *blocks, 1),
            (later, earlier, *blocks[::-1], -1),
        ):
            below, equal, every = _weights_below(block[asked], other_block[others], sign * order, weight, asked, others)
            found.concordant[asked] += below + 0.5 * equal
            found.comparable[asked] += every
    return found


def _weights_below(
    block: np.ndarray,
    other_block: np.ndarray,
    order: np.ndarray,
    weight: np.ndarray,
    asked: np.ndarray,
    others: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For every row asked, weights of the others of its block: of lower order, of equal order, and of all."""
    order = order - order.min(initial=0)
    n_orders = int(order.max(initial=0)) + 2
    keys, other_keys = block * n_orders + order[asked], other_block * n_orders + order[others]
    sorting = np.argsort(other_keys, kind="stable")
    known, sums = other_keys[sorting], np.concatenate([[0.0], np.cumsum(weight[others][sorting])])
    start, end = sums[np.searchsorted(known, block * n_orders)], sums[np.searchsorted(known, (block + 1) * n_orders)]
    low, high = sums[np.searchsorted(known, keys)], sums[np.searchsorted(known, keys, side="right")]
    return low - start, high - low, end - start
