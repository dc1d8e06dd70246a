"""The protocol of subsets: what methods may call on the model of the chosen features."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import NamedTuple, Protocol

import numpy as np

from pauca.constraints.limits import Limits
from pauca.model import Model, Snapshot
from pauca.tolerances import LEAST_SHARE, TIED_WITHIN

RULES = ("objective", "gradient", "refit", "functional")
"""How candidates are ranked: decrease of Q along one coordinate, size of the gradient, decrease after refitting, or how
well a column by itself fits the gradient with respect to the scores."""

REMOVALS = ("refit", "zero")
"""What a removal is taken to cost: the increase of Q after refitting the others, or before."""


SLACK = 2.0
"""How far estimates of gains are trusted: to this factor, unless a method says otherwise."""


class Swap(NamedTuple):
    """The exchange of one chosen unit for another, and by how much it lowers the value."""

    out: int
    into: int
    decrease: float


class Pair(NamedTuple):
    """Two units, and by how much they are expected to lower the value when both are added."""

    first: int
    second: int
    gain: float


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
    closed_form: bool
    """Whether additions and swaps have closed forms, so that many may be tried."""
    joint: bool
    """Whether several outputs, such as classes, share one loss."""

    @property
    def value(self) -> float:
        """Objective of the current model."""
        ...

    @property
    def size(self) -> int:
        """Number of chosen units."""
        ...

    def expect(self, size: int | None) -> None:
        """Announce how many units the run aims for, so that work can be planned."""
        ...

    def best_addition(self, rule: str, slack: float | None = SLACK) -> int | None:
        """The candidate that ``rule`` ranks first, or None if no unit may be added.

        Where a score takes long to compute, candidates are scored in the order of estimates, until ``slack`` times the
        next estimate is below the best score; None: all of them.
        """
        ...

    def best_additions(self, rule: str, count: int, slack: float | None = SLACK) -> list[int]:
        """Up to ``count`` units to add at once, best first; one where there are limits, none where nothing gains.

        Where additions have closed forms each is found after the ones before it; otherwise all from one ranking.
        """
        ...

    def decrease(self, unit: int) -> float:
        """By how much adding ``unit`` and refitting would lower the value."""
        ...

    def gain_alone(self, unit: int) -> float:
        """By how much the value falls if the coefficients of ``unit`` move and all others stay."""
        ...

    def largest_slope(self) -> float:
        """The largest size of the gradient over the units that may be added, in the user's units of the columns."""
        ...

    def zero_cost(self, unit: int) -> float:
        """By how much the value rises if the coefficients of a chosen unit become zero and all others stay."""
        ...

    def coefficient_sizes(self) -> np.ndarray:
        """Length of each chosen unit's coefficients in the user's units, in the order of ``support``."""
        ...

    def cheapest_removal(
        self, removal: str, at_most: float = np.inf, slack: float | None = SLACK
    ) -> tuple[int, float] | None:
        """The unit whose removal costs least (per price, if there are prices), and by how much it raises the value.

        Where a cost takes a refit, only the few that estimates rank first are computed, and none whose estimate is
        above ``slack`` times the least cost; None: all of them. None is returned if nothing may be removed, and with a
        slack also, without refits, where every removal costs far more than ``at_most``.
        """
        ...

    def best_swap(self) -> Swap | None:
        """The exchange of one unit that lowers the value most, or None if none does beyond rounding."""
        ...

    def likely_pair(self) -> Pair | None:
        """The two units that are likely to lower the value most when both are added; None where that is not known."""
        ...

    def replacements(self, count: int) -> dict[int, list[Swap]]:
        """For every chosen unit the ``count`` best others instead of it, best first; a cost is a negative decrease."""
        ...

    def add(self, unit: int) -> None:
        """Add a unit and refit."""
        ...

    def drop(self, unit: int) -> None:
        """Remove a unit and refit."""
        ...

    def exchange(self, out: Sequence[int], into: Sequence[int]) -> None:
        """Remove some units, add others, and refit."""
        ...

    def cheapest_removals(self, size: int | None, limits: Limits) -> list[int]:
        """The units that go if the one that costs least after refitting is removed again and again.

        Until no more than ``size`` remain, if it is given, and ``limits`` hold.
        """
        ...

    def fill(self) -> None:
        """Start from every usable unit but those that depend on units before them."""
        ...

    def copy(self) -> Subset:
        """An independent subset on the same objective."""
        ...

    def trial(self) -> AbstractContextManager[None]:
        """A context in which units may be added beyond the budget and the most of a kind.

        When it ends, the subset is as it was before.
        """
        ...

    def use_products_of(self, other: Subset) -> None:
        """Use what another subset on the same design knows of its columns and their products."""
        ...

    def penalised(self) -> Subset | None:
        """The subset a run starts from with a ridge, where a model without one is so good that estimates fail."""
        ...

    def restarted(self) -> Subset:
        """The subset a run starts from, on the same objective: the units that are always in."""
        ...

    def snapshot(self) -> Snapshot:
        """The fitted model as it is now."""
        ...

    def finish(self, snapshots: list[Snapshot], answer: int | None) -> list[Model]:
        """Models in the user's units.

        Importances in the one at position ``answer`` are exact; in the others they may be estimates. None: all may be,
        and nothing that takes long is done.
        """
        ...

    def held_back(self) -> bool:
        """Whether a unit that could be used is out because of the limits alone."""
        ...

    def data_key(self) -> bytes:
        """A digest that differs between data sets and between objectives."""
        ...

    def dependent(self) -> np.ndarray:
        """Units that vary but depend linearly on the chosen ones, as far as they were met; ascending indices."""
        ...


def is_lower(value: float, than: float, negligible: float) -> bool:
    """Whether one value is below another by more than rounding."""
    return value < than - LEAST_SHARE * abs(than) - negligible


def first_largest(scores: np.ndarray) -> int:
    """Index of the largest score; of those that tie with it to rounding, the lowest."""
    first = int(scores.argmax())
    best = float(scores[first])
    if not math.isfinite(best):
        return first
    return int((scores >= best - TIED_WITHIN * abs(best)).argmax())


def first_smallest(costs: np.ndarray, support: list[int]) -> int:
    """Position of the smallest cost; of those that tie with it to rounding, that of the lowest feature."""
    first = int(costs.argmin())
    least = float(costs[first])
    tied = costs <= least + TIED_WITHIN * abs(least)
    if np.count_nonzero(tied) <= 1:
        return first
    return min(tied.nonzero()[0].tolist(), key=lambda position: support[position])


def highest_scores(scores: np.ndarray, count: int) -> list[int]:
    """Indices of the ``count`` highest scores above minus infinity, highest first, ties in order."""
    if not min(count, len(scores)):
        return []
    # No score below the ``count`` highest of the maxima of parts is among them: this saves to sort all.
    most = np.fmax.reduceat(scores, np.arange(0, len(scores), max(1, len(scores) // (16 * count))))
    most[np.isnan(most)] = -np.inf
    least = np.partition(most, -count)[-count] if count <= len(most) else -np.inf
    (some,) = ((scores >= least) & (scores > -np.inf)).nonzero()
    return np.asarray(some[np.argsort(-scores[some], kind="stable")][:count]).tolist()


def digest(arrays: Iterable[np.ndarray]) -> bytes:
    """A digest of some arrays."""
    hashed = sha256()  # processors have instructions for it
    for array in arrays:
        hashed.update(np.ascontiguousarray(array).data)
    return hashed.digest()


def require_memory(needed: int, purpose: str, advice: str = "Use a method that grows, or fewer columns.") -> None:
    """Raise ``MemoryError`` if ``needed`` bytes exceed the machine's memory, where its size is known."""
    try:
        available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return
    if needed > available:
        raise MemoryError(
            f"{purpose} takes about {needed / 1e9:.0f} GB of memory, and there are {available / 1e9:.0f} GB. {advice}"
        )
