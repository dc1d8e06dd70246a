"""What a method may ask of the model on the current subset of features."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import NamedTuple, Protocol

import numpy as np

from pauca.constraints.limits import Limits
from pauca.model import Model, Snapshot
from pauca.tolerances import LEAST_SHARE, TIED_WITHIN

RULES = ("objective", "gradient", "refit")
"""How candidates are ranked: decrease of Q along one coordinate, size of the gradient, decrease after refitting."""

REMOVALS = ("refit", "zero")
"""What a removal is taken to cost: the increase of Q after refitting the others, or before."""


class OutOfTime(Exception):
    """The time a run may take is over, and what it asked for is not done."""


class Swap(NamedTuple):
    """The exchange of one chosen unit for another, and by how much it lowers the value."""

    out: int
    into: int
    decrease: float


class Subset(Protocol):
    """A subset of units kept fitted while units come and go: all that changes in a run.

    A unit is what is chosen: a column, or a group of columns. Additions and exchanges keep the limits.
    """

    support: list[int]
    null: Snapshot
    """The model without units."""
    null_value: float
    negligible: float
    """Gains up to this are taken for zero."""
    perfect_below: float
    """Values up to this are taken for zero."""
    limits: Limits

    @property
    def value(self) -> float:
        """Objective of the current model."""
        ...

    @property
    def size(self) -> int:
        """Number of chosen units."""
        ...

    def expect(self, size: int | None) -> None:
        """Say how many units the run is going for, so that work can be laid out for them."""
        ...

    def allow_until(self, deadline: float) -> None:
        """Say until when the clock may run: a subset whose answers may take long raises ``OutOfTime`` after that."""
        ...

    def best_addition(self, rule: str) -> int | None:
        """The candidate that ``rule`` ranks first, or None if no unit may be added."""
        ...

    def decrease(self, unit: int) -> float:
        """By how much adding ``unit`` and refitting would lower the value."""
        ...

    def cheapest_removal(self, removal: str, at_most: float = np.inf) -> tuple[int, float] | None:
        """The unit whose removal costs least (per price, if there are prices), and by how much it raises the value.

        None if nothing may be removed; a subset may also say None without looking closer where every removal costs far
        more than ``at_most``.
        """
        ...

    def best_swap(self) -> Swap | None:
        """The exchange of one unit that lowers the value most, or None if none does beyond rounding."""
        ...

    def replacements(self, count: int) -> dict[int, list[Swap]]:
        """For every chosen unit the ``count`` best others in its place, best first; a cost is a negative decrease."""
        ...

    def add(self, unit: int) -> None:
        """Take a unit in and refit."""
        ...

    def drop(self, unit: int) -> None:
        """Leave a unit out and refit."""
        ...

    def cheapest_removals(self, size: int | None, limits: Limits) -> list[int]:
        """The units that would go if the one that costs least after refitting were left out again and again.

        Until no more than ``size`` are left, if it is given, and ``limits`` hold.
        """
        ...

    def fill(self) -> None:
        """Start from every usable unit, leaving out those that depend on units before them."""
        ...

    def copy(self) -> Subset:
        """An independent subset on the same objective."""
        ...

    def trial(self) -> AbstractContextManager[None]:
        """A context in which units may be added, whatever budget and places are left.

        When it ends, the subset is as it was before.
        """
        ...

    def restarted(self) -> Subset:
        """The subset a run starts from, on the same objective: the units that are always in."""
        ...

    def snapshot(self) -> Snapshot:
        """The fitted model as it is now."""
        ...

    def finish(self, snapshots: list[Snapshot], answer: int) -> list[Model]:
        """Models in the user's units.

        What the units of the one at place ``answer`` are worth is exact; for the others it may be an estimate.
        """
        ...

    def held_back(self) -> bool:
        """Whether a unit that could be used is left out by the limits alone."""
        ...

    def data_key(self) -> bytes:
        """What tells these data and this objective from others."""
        ...

    def dependent(self) -> np.ndarray:
        """Units that vary but depend linearly on the chosen ones, as far as they were met; ascending indices."""
        ...


def is_lower(value: float, than: float, negligible: float) -> bool:
    """Whether one value is below another by more than rounding."""
    return value < than - LEAST_SHARE * abs(than) - negligible


def first_largest(scores: np.ndarray) -> int:
    """Index of the largest score; of those that tie with it to rounding, the lowest."""
    best = scores.max()
    return int((scores >= best - TIED_WITHIN * abs(best)).argmax())


def first_smallest(costs: np.ndarray, support: list[int]) -> int:
    """Position of the smallest cost; of those that tie with it to rounding, that of the lowest feature."""
    least = costs.min()
    tied = np.flatnonzero(costs <= least + TIED_WITHIN * abs(least))
    return int(min(tied, key=lambda position: support[position]))


def digest(arrays: Iterable[np.ndarray]) -> bytes:
    """A few bytes that stand for arrays."""
    made = blake2b(digest_size=16)
    for array in arrays:
        made.update(np.ascontiguousarray(array).tobytes())
    return made.digest()


def require_memory(needed: int, purpose: str, advice: str = "Use a method that grows, or fewer columns.") -> None:
    """Raise ``MemoryError`` with a sentence if ``needed`` bytes exceed the machine's memory, where that can be told."""
    try:
        there_is = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return
    if needed > there_is:
        raise MemoryError(
            f"{purpose} takes about {needed / 1e9:.0f} GB of memory, and there are {there_is / 1e9:.0f} GB. {advice}"
        )
