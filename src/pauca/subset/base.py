"""What a method may ask of the model on the current subset of features."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import numpy as np

from pauca.model import Snapshot

RULES = ("objective", "gradient", "refit")
"""How candidates are ranked: decrease of Q along one coordinate, size of the gradient, decrease after refitting."""

REMOVALS = ("refit", "zero")
"""What a removal is taken to cost: the increase of Q after refitting the others, or before."""

# A value is taken to be zero below this share of the empty model's value: the gains down there are rounding.
NEGLIGIBLE = 1e-14

# An exchange must lower the value by this share of it as well, so that rounding cannot make a run go in circles.
LEAST_SHARE = 1e-10

# A column is a linear combination of chosen ones if they leave less than this share of its variance.
DEPENDENT_BELOW = 1e-10

# Scores closer than this are the same number to all but rounding; the lowest index wins.
TIED_WITHIN = 1e-9


class Swap(NamedTuple):
    """The exchange of one chosen feature for another, and by how much it lowers the value."""

    out: int
    into: int
    decrease: float


class Subset(Protocol):
    """A subset of features kept fitted while features come and go: all that changes in a run.

    Vectors over candidates have shape (d,), vectors over the chosen features are in the order of ``support``.
    """

    support: list[int]
    value: float
    null_value: float

    @property
    def size(self) -> int:
        """Number of chosen features."""
        ...

    def expect(self, size: int | None) -> None:
        """Say how many features the run is going for, so that work can be laid out for them."""
        ...

    def best_addition(self, rule: str) -> int | None:
        """The candidate that ``rule`` ranks first, or None if no column may be added."""
        ...

    def decrease(self, feature: int) -> float:
        """By how much adding ``feature`` and refitting would lower the value."""
        ...

    def removal_costs(self, removal: str) -> np.ndarray:
        """What removing each chosen feature would cost, shape (k,)."""
        ...

    def best_swap(self) -> Swap | None:
        """The exchange of one feature that lowers the value most, or None if none does beyond rounding."""
        ...

    def add(self, feature: int) -> None:
        """Take a feature in and refit."""
        ...

    def drop(self, feature: int) -> None:
        """Leave a feature out and refit."""
        ...

    def cheapest_removals(self, count: int) -> list[int]:
        """The features that would go if the one that costs least after refitting were left out, ``count`` times."""
        ...

    def fill(self) -> None:
        """Start from every usable column, leaving out those that depend on columns before them."""
        ...

    def copy(self) -> Subset:
        """An independent subset on the same objective."""
        ...

    def trial(self) -> AbstractContextManager[None]:
        """A context in which features may be added; when it ends, the subset is as it was before."""
        ...

    def empty(self) -> Subset:
        """The empty subset on the same objective."""
        ...

    def snapshot(self) -> Snapshot:
        """The fitted model as it is now."""
        ...

    def dependent(self) -> np.ndarray:
        """Columns that vary but depend linearly on the chosen ones, ascending indices."""
        ...


def is_lower(value: float, than: float, null_value: float) -> bool:
    """Whether one value is below another by more than rounding."""
    return value < than - LEAST_SHARE * than - NEGLIGIBLE * null_value


def first_largest(scores: np.ndarray) -> int:
    """Index of the largest score; of those that tie with it to rounding, the lowest."""
    best = scores.max()
    return int((scores >= best - TIED_WITHIN * abs(best)).argmax())


def first_smallest(costs: np.ndarray, support: list[int]) -> int:
    """Position of the smallest cost; of those that tie with it to rounding, that of the lowest feature."""
    least = costs.min()
    tied = np.flatnonzero(costs <= least + TIED_WITHIN * abs(least))
    return int(min(tied, key=lambda position: support[position]))
