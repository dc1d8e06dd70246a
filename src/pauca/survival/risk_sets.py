"""Who is at risk at each event: sums over risk sets by cumulative sums, one pass for any number of score vectors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

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
        waits = self.begin > self.stratum_begin
        # The last entry of sums over times is a zero, for rows that are not at risk from the start.
        self._last_time = np.where((self.end > self.stratum_begin) & ~waits, self.end - 1, self.n_groups)
        self._places_of_late = np.flatnonzero(waits[order])
        late = np.flatnonzero(waits & (self.begin < self.end))
        self._late = _Intervals(late, self.begin[late], self.end[late], self.n_groups) if len(late) else None
        """Rows that come under observation after the first event of their stratum."""

    def at_risk(self, values: np.ndarray, add: np.ufunc = np.add) -> np.ndarray:
        """Sums over the rows at risk at every event time: additions only, so that no digits are lost.

        With ``np.logaddexp`` the values are logarithms of numbers, and so are their sums.
        """
        values = np.asarray(values)
        sums = values.take(self._latest_first, axis=-1)
        if len(self._places_of_late):
            sums[..., self._places_of_late] = add.identity
        for low, high in self._row_bounds:
            add.accumulate(sums[..., low:high], axis=-1, out=sums[..., low:high])
        sums = sums.take(self._last_at_risk, axis=-1)
        return sums if self._late is None else add(sums, self._late.over(values, add))

    def with_event(self, values: np.ndarray) -> np.ndarray:
        """Sums over the rows that have their event at every event time."""
        found = values.take(self.events, axis=-1)
        return found if len(self.events) == self.n_groups else np.add.reduceat(found, self.event_starts, axis=-1)

    def while_at_risk(self, per_time: np.ndarray, add: np.ufunc = np.add) -> np.ndarray:
        """For every row the sum over the event times at which it is at risk, shape (..., n)."""
        sums = np.full((*per_time.shape[:-1], self.n_groups + 1), float(add.identity))
        for low, high in pairwise(self.bounds.tolist()):
            add.accumulate(per_time[..., low:high], axis=-1, out=sums[..., low:high])
        found = sums.take(self._last_time, axis=-1)
        if self._late is not None:
            found[..., self._late.rows] = self._late.within(per_time, add)
        return found


class _Intervals:
    """Sums over intervals by a binary tree of event times: additions only, where a difference of sums loses digits.

    An interval is a few nodes of the tree, two of each level at most, and an event time lies in one node of each level.

    Conventions
    -----------
    S leaves, a power of two; node 1 is the root, 2i and 2i + 1 lie below node i, and S + g is event time g
    P pairs of an interval and one of its nodes
    """

    def __init__(self, rows: np.ndarray, begin: np.ndarray, end: np.ndarray, n_times: int) -> None:
        self.rows = rows
        self._n_times, self._n_levels = n_times, max(1, n_times - 1).bit_length() + 1
        self._n_leaves = 1 << (self._n_levels - 1)
        number, node = self._pairs(begin + self._n_leaves, end + self._n_leaves)
        by_row, by_node = np.argsort(number, kind="stable"), np.argsort(node, kind="stable")
        self._nodes, self._row_starts = node[by_row], np.searchsorted(number[by_row], np.arange(len(rows)))
        self._rows_by_node = rows[number[by_node]]
        self._used, self._node_starts = np.unique(node[by_node], return_index=True)

    @staticmethod
    def _pairs(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The intervals' numbers and nodes, from their leaves ``low <= leaf < high``."""
        numbers, nodes = [], []
        while np.any(low < high):
            for ends, some in ((low, (low < high) & (low % 2 == 1)), (high - 1, (low < high) & (high % 2 == 1))):
                numbers.append(np.flatnonzero(some))
                nodes.append(ends[some])
            low, high = (low + 1) // 2, high // 2
        return np.concatenate(numbers), np.concatenate(nodes)

    def over(self, values: np.ndarray, add: np.ufunc) -> np.ndarray:
        """For every event time the sum over the intervals that hold it, from values of shape (..., n)."""
        nodes = np.full((*values.shape[:-1], 2 * self._n_leaves), float(add.identity))
        nodes[..., self._used] = add.reduceat(values.take(self._rows_by_node, axis=-1), self._node_starts, axis=-1)
        # Every node hands its sum down to the two below it.
        for level in range(self._n_levels - 1):
            first, last = 1 << level, 2 << level
            above, below = nodes[..., first:last], nodes[..., last : 2 * last]
            add(below[..., ::2], above, out=below[..., ::2])
            add(below[..., 1::2], above, out=below[..., 1::2])
        return nodes[..., self._n_leaves : self._n_leaves + self._n_times]

    def within(self, per_time: np.ndarray, add: np.ufunc) -> np.ndarray:
        """For every interval the sum over its event times, from values of shape (..., G)."""
        nodes = np.full((*per_time.shape[:-1], 2 * self._n_leaves), float(add.identity))
        nodes[..., self._n_leaves : self._n_leaves + self._n_times] = per_time
        for level in range(self._n_levels - 2, -1, -1):
            first, last = 1 << level, 2 << level
            below = nodes[..., last : 2 * last]
            add(below[..., ::2], below[..., 1::2], out=nodes[..., first:last])
        return np.asarray(add.reduceat(nodes.take(self._nodes, axis=-1), self._row_starts, axis=-1))
