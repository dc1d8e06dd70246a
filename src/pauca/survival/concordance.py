"""Harrell's concordance: how often, of two rows, the one with the higher score has its event first."""

from __future__ import annotations

import numpy as np


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
    event, time, score = np.asarray(event, dtype=bool), np.asarray(time), np.asarray(score)
    weight = np.ones(len(time)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    # Rows last seen at the time of an event come after it; events at one time are not compared.
    rank = np.unique(np.stack([time, ~event]), axis=1, return_inverse=True)[1].ravel()
    order = np.unique(score, return_inverse=True)[1].ravel()
    below = equal = total = 0.0
    # Two ranks differ first in exactly one bit: there the earlier one has a zero and the later one a one.
    for bit in range(int(rank.max(initial=0)).bit_length()):
        block, upper = rank >> (bit + 1), (rank >> bit) & 1 == 1
        parts = _pairs(block, order, weight, upper, event & ~upper)
        below, equal, total = below + parts[0], equal + parts[1], total + parts[2]
    if not total:
        raise ValueError("There are no two rows to compare: no event was seen while another row was at risk.")
    return float((below + 0.5 * equal) / total)


def _pairs(
    block: np.ndarray, order: np.ndarray, weight: np.ndarray, later: np.ndarray, earlier: np.ndarray
) -> tuple[float, float, float]:
    """Weights of pairs of an earlier and a later row of one block: later below, level with the earlier, and all."""
    n_scores = int(order.max(initial=0)) + 2
    keys = block * n_scores + order
    sorting = np.argsort(keys[later], kind="stable")
    known, sums = keys[later][sorting], np.concatenate([[0.0], np.cumsum(weight[later][sorting])])
    asked, own = keys[earlier], weight[earlier]
    first, last = block[earlier] * n_scores, (block[earlier] + 1) * n_scores
    start, end = sums[np.searchsorted(known, first)], sums[np.searchsorted(known, last)]
    low, high = sums[np.searchsorted(known, asked)], sums[np.searchsorted(known, asked, side="right")]
    return float(own @ (low - start)), float(own @ (high - low)), float(own @ (end - start))
