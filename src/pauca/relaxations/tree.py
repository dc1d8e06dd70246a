"""The search tree of one size: its open nodes, in the order of their bounds, and the best model so far.

There is no clock and no random number in here: the same problem gives the same trees.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

# A node is closed if nothing below it is better than the incumbent by more than this share of it.
BETTER_BY = 1e-9

# Bounds closer than this share of the constant are taken in the order of their nodes: what rounding makes of them,
# which differs between processors, must not decide.
TIED_WITHIN = 1e-9

# Nodes of one tree taken at a time, at most; fewer while the tree has few.
MOST_AT_ONCE = 48

# Open nodes of all trees together take about this many bytes at most.
MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class Incumbent:
    """The best known model of a size."""

    size: int
    value: float
    support: tuple[int, ...]


@dataclass(frozen=True)
class Wanted:
    """Which models of a size are sought beside the best one: those within a share of its value, or the ``n_best``."""

    within: float | None = None
    n_best: int | None = None

    @property
    def several(self) -> bool:
        """Whether any are."""
        return self.within is not None or self.n_best is not None


BEST_ONLY = Wanted()


@dataclass(eq=False)
class Tree:
    """The search for the best model of one size."""

    size: int
    value: float
    support: tuple[int, ...]
    """The best model so far, by columns of the whole problem."""
    diagonal: np.ndarray
    slack: float
    wanted: Wanted = BEST_ONLY
    heap: list[tuple[int, int, float, np.ndarray, int]] = field(default_factory=list)
    bound: float = -np.inf
    """The lowest bound of the nodes that are open, without slack; the cut where none is."""
    nodes: int = 0
    always_in: tuple[int, ...] = ()
    never_in: tuple[int, ...] = ()
    """Columns that every, or no, model of this size as good as the best one has, as far as the root proves it."""
    settled: bool = False
    """Whether all open nodes are on the heap: not before the tree is planted, nor while some are looked at. Whoever is
    interrupted there must not find the tree closed."""
    collected: dict[tuple[int, ...], float] = field(default_factory=dict)

    @property
    def cut(self) -> float:
        """Nodes whose bound reaches this are of no interest."""
        if not self.wanted.several:
            return self.value * (1 - BETTER_BY)
        cut = np.inf if self.wanted.within is None else self.value * (1 + self.wanted.within)
        if self.wanted.n_best is not None and len(self.collected) >= self.wanted.n_best:
            cut = min(cut, max(self.collected.values()))
        return cut

    @property
    def screened_above(self) -> float:
        """What is screened is in no model with a value up to this: a tie with the incumbent must not be lost."""
        return max(self.cut, self.tied_below)

    @property
    def tied_below(self) -> float:
        """Up to this, rounding may be all that makes a model worse than the best."""
        return self.value * (1 + BETTER_BY) + 2 * self.slack

    @property
    def open(self) -> bool:
        """Whether some node could hold a better model."""
        return bool(self.heap) or not self.settled

    @property
    def lower_bound(self) -> float:
        """No model of this size has a value below this: the bound, less what rounding can add to it."""
        least = self.value * (1 - BETTER_BY)
        return max(0.0, (min(self.bound, least) if self.open else least) - self.slack)

    def offer(self, value: float, support: Sequence[int]) -> None:
        """Take a model into account."""
        columns = tuple(sorted(int(j) for j in support))
        if value < self.value * (1 - BETTER_BY):
            self.value, self.support = value, columns
        if self.wanted.several and value <= self.cut and columns not in self.collected:
            self.collected[columns] = value
            if self.wanted.n_best is not None and len(self.collected) > self.wanted.n_best:
                del self.collected[max(self.collected, key=lambda known: (self.collected[known], known))]

    def push(self, node: int, bound: float, unit: float, codes: np.ndarray, branch: int) -> None:
        """Add an open node; ``unit`` is what bounds are rounded to for their order."""
        heapq.heappush(self.heap, (int(bound / unit), node, bound, codes, branch))

    def take(self) -> list[tuple[float, np.ndarray, int]]:
        """The nodes to look at next: those with the lowest bounds."""
        count = min(MOST_AT_ONCE, 1 + len(self.heap) // 3)
        taken = [self.pop() for _ in range(min(count, len(self.heap)))]
        return [node for node in taken if node[0] < self.cut]

    def pop(self) -> tuple[float, np.ndarray, int]:
        """Bound, codes and branch of the node with the lowest bound, which is then to be looked at."""
        self.settled = False
        return heapq.heappop(self.heap)[2:]

    def settle(self) -> None:
        """Discard nodes that a better incumbent has closed, and update the bound: all that is open is on the heap."""
        while self.heap and self.heap[0][2] >= self.cut:
            heapq.heappop(self.heap)
        if self.heap:
            self.bound = max(self.bound, min(self.heap[0][2], self.cut))
        self.settled = True
