"""Backward greedy elimination."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from pauca.methods._steps import check_removal
from pauca.path.driver import Goal
from pauca.path.stop import Stop
from pauca.path.trail import Event, Trail
from pauca.subset import Subset


@dataclass(frozen=True)
class Backward:
    """Start from all features and take one away at a time, refitting the others.

    Zhang (2011), Figure 3. Useful with fewer columns than rows: where columns outnumber rows any start
    fits perfectly and the first removals are arbitrary. The whole Gram matrix is needed, so memory grows with the
    square of the number of columns. Columns that depend linearly on columns before them are left out at the start.

    With ``k`` given, the path goes down to a single feature, so that every size up to ``k`` can be looked at;
    without it, features are removed as long as the cheapest costs no more than ``tol``.

    Parameters
    ----------
    removal : {"refit", "zero"}, default="refit"
        What taking a feature away is taken to cost: the increase of Q after the others are refitted, or before.

    Examples
    --------
    >>> from pauca.methods import Backward
    >>> Backward()
    Backward(removal='refit')
    """

    removal: str = "refit"

    def __post_init__(self) -> None:
        check_removal(self.removal)

    def begin(self, subset: Subset) -> None:
        """Start from every usable column, or from none if there is nothing to explain."""
        if subset.null_value > subset.perfect_below:
            subset.fill()

    def moves(self, subset: Subset, trail: Trail, goal: Goal) -> Generator[Event | None, None, Stop]:
        """Removals down to one feature, or while they cost next to nothing."""
        if subset.null_value <= subset.perfect_below:
            return Stop.PERFECT
        while subset.size > (0 if goal.k is None else 1):
            cheapest = subset.cheapest_removal(self.removal)
            if cheapest is None:
                break
            unit, cost = cheapest
            if goal.k is None and subset.limits.allows(subset.support) and cost > max(goal.tol, subset.negligible):
                return Stop.TOLERANCE
            yield ("drop", unit)
        if goal.k is None or max(trail.best) >= goal.k:
            return Stop.SIZE
        return Stop.EXHAUSTED if subset.limits.trivial else Stop.LIMITS

    def answer(self, trail: Trail, goal: Goal) -> int:
        """The size asked for, or the largest there is; where the run ended if it did not get down to it."""
        ended_above = goal.k is None or trail.size > goal.k
        return trail.size if ended_above and trail.size in trail.best else max(trail.best)
