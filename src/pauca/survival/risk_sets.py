"""Who is at risk at each event: sums over risk sets by cumulative sums, one pass for any number of score vectors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import sparse

SURVIVAL = np.dtype([("event", np.bool_), ("time", np.float64), ("entry", np.float64), ("stratum", np.intp)])
"""The target of a row: whether its event was seen, the time of that or of the last look, when it came under
observation (minus infinity: from the start), and its stratum, numbered from 0."""


class RiskSets:
    """Rows at risk at the times at which events happen, in every stratum for itself.

    Conventions
    -----------
    n rows; G event times, sorted by stratum and time: those of rows with weight whose event was seen
    A row is at risk at the event times ``begin <= g < end``.
    Sums take values of shape (..., n) to shape (..., G).
    """

    def __init__(self, y: np.ndarray, weights: np.ndarray) -> None:
        self.weights = weights
        self.has_event = y["event"] & (weights > 0)
        self._find_groups(y)
        self._order_rows()

    def _find_groups(self, y: np.ndarray) -> None:
        """Event times, and where each row's time at risk begins and ends among them."""
        stratum = y["stratum"]
        instants, rank = np.unique(np.concatenate([y["time"], y["entry"]]), return_inverse=True)
        last, first = stratum * len(instants) + rank[: len(y)], stratum * len(instants) + rank[len(y) :]
        keys, number = np.unique(last[self.has_event], return_inverse=True)
        strata = np.arange(stratum.max() + 2)
        self.bounds = np.searchsorted(keys, strata * len(instants))
        """Where the event times of each stratum begin, and where the last ends."""
        self.end = np.searchsorted(keys, last, side="right")
        self.begin = np.maximum(np.searchsorted(keys, first, side="right"), self.bounds[stratum])
        self.stratum_begin = self.bounds[stratum]
        self.group = np.zeros(len(y), dtype=np.intp)
        """The event time of each row that has one."""
        self.group[self.has_event] = number
        self.times, self.strata = instants[keys % len(instants)], keys // len(instants)
        self.n_groups = len(keys)

    def _order_rows(self) -> None:
        """Rows by the last event time at which they are at risk, latest first, without those that never are."""
        order = np.lexsort((-self.end, self.stratum_begin))
        order = order[self.end[order] > self.stratum_begin[order]]
        self._latest_first = order
        # Stratum by stratum the rows at risk at an event time are the first ones, up to the last of these.
        begins = np.searchsorted(self.stratum_begin[order], self.bounds)
        self._row_bounds = [(low, high) for low, high in pairwise(begins.tolist()) if low < high]
        group_stratum = np.searchsorted(self.bounds, np.arange(self.n_groups), side="right") - 1
        at_risk = np.bincount(self.end[order] - 1, minlength=self.n_groups)
        left = np.cumsum(at_risk) - at_risk - np.concatenate([[0], np.cumsum(at_risk)])[self.bounds[group_stratum]]
        self._last_at_risk = begins[group_stratum + 1] - 1 - left
        events = np.flatnonzero(self.has_event)
        self.events = events[np.argsort(self.group[events], kind="stable")]
        """Rows with an event, sorted by their event times."""
        self.event_starts = np.searchsorted(self.group[self.events], np.arange(self.n_groups))
        # The last entry of sums over times is a zero, for rows that are never at risk.
        self._last_time = np.where(self.end > self.stratum_begin, self.end - 1, self.n_groups)
        late = np.flatnonzero(self.begin > self.stratum_begin)
        self._late = late if len(late) else None
        if self._late is not None:
            places = (self.begin[late] - 1, late)
            self._not_yet = sparse.csr_array((np.ones(len(late)), places), shape=(self.n_groups, len(self.end)))

    def at_risk(self, values: np.ndarray) -> np.ndarray:
        """Sums over the rows at risk at every event time: additions only, so that no digits are lost."""
        values = np.asarray(values)
        sums = values.take(self._latest_first, axis=-1)
        for low, high in self._row_bounds:
            np.cumsum(sums[..., low:high], axis=-1, out=sums[..., low:high])
        sums = sums.take(self._last_at_risk, axis=-1)
        if self._late is not None:
            flat = values.reshape(-1, values.shape[-1])
            early = (self._not_yet @ flat.T).T.reshape(*values.shape[:-1], self.n_groups)
            sums -= self._from_the_end(early)
        return sums

    def with_event(self, values: np.ndarray) -> np.ndarray:
        """Sums over the rows that have their event at every event time."""
        found = values.take(self.events, axis=-1)
        return found if len(self.events) == self.n_groups else np.add.reduceat(found, self.event_starts, axis=-1)

    def while_at_risk(self, per_time: np.ndarray) -> np.ndarray:
        """For every row the sum over the event times at which it is at risk, shape (..., n)."""
        sums = np.zeros((*per_time.shape[:-1], self.n_groups + 1))
        for low, high in pairwise(self.bounds.tolist()):
            np.cumsum(per_time[..., low:high], axis=-1, out=sums[..., low:high])
        found = sums.take(self._last_time, axis=-1)
        if self._late is not None:
            found[..., self._late] -= sums[..., self.begin[self._late] - 1]
        return found

    def _from_the_end(self, binned: np.ndarray) -> np.ndarray:
        """Cumulative sums within strata from the last event time back."""
        sums = np.empty_like(binned)
        for low, high in pairwise(self.bounds.tolist()):
            sums[..., low:high] = np.cumsum(binned[..., low:high][..., ::-1], axis=-1)[..., ::-1]
        return sums
