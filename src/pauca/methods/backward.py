"""Backward greedy elimination: Zhang (2011), Figure 3."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

from pauca.checks import ParameterChecks
from pauca.methods.forward import check_shortlist
from pauca.runs.run import Goal, History, Method, Move, Stop
from pauca.subsets.base import REMOVALS, SLACK, Subset


@dataclass(frozen=True)
class Backward(Method):
    """Start from all features and remove one at a time, refitting the others.

    Zhang (2011), Figure 3. Useful with fewer columns than rows: where columns outnumber rows, the full model fits
    perfectly and the first removals are arbitrary. The whole Gram matrix is needed, so memory grows with the square of
    the number of columns. Columns that depend linearly on columns before them are left out at the start.

    With ``k`` given, the path goes down to a single feature, so that it holds every size up to ``k``; without it,
    features are removed as long as the cheapest removal raises Q by no more than ``tol``.

    Parameters
    ----------
    removal : {"refit", "zero"}, default="refit"
        The cost of a removal: the increase of Q after the others are refitted, or before.
    shortlist : float or None, default=2.0
        Where a cost takes a refit, as for losses other than squared loss, only the three removals that estimates rank
        first are computed, and none whose estimate is above this many times the least cost. None computes all of them,
        as printed.

    Examples
    --------
    >>> from pauca.methods import Backward
    >>> Backward()
    Backward(removal='refit', shortlist=2.0)
    """

    starts_full: ClassVar[bool] = True
    """Whether a search begins with all features."""

    removal: str = "refit"
    shortlist: float | None = SLACK

    def __post_init__(self) -> None:
        check = ParameterChecks("Backward")
        check.one_of("removal", self.removal, REMOVALS)
        check_shortlist(check, self.shortlist)

    def begin(self, subset: Subset) -> None:
        """Start from all usable columns, or from none if the empty model is perfect."""
        if subset.null_value > subset.perfect_below:
            subset.fill()

    def moves(self, subset: Subset, history: History, goal: Goal) -> Generator[Move | None, None, Stop]:
        """Removals down to one feature, or while they cost at most ``tol``."""
        if subset.null_value <= subset.perfect_below:
            return Stop.PERFECT
        while subset.size > (0 if goal.k is None else 1):
            cheapest = subset.cheapest_removal(self.removal, slack=self.shortlist)
            if cheapest is None:
                break
            unit, cost = cheapest
            if goal.k is None and subset.limits.allows(subset.support) and cost > max(goal.tol, subset.negligible):
                return Stop.TOLERANCE
            yield ("drop", unit)
        if goal.k is None or max(history.best) >= goal.k:
            return Stop.SIZE
        return Stop.EXHAUSTED if subset.limits.trivial else Stop.LIMITS

    def answer(self, history: History, goal: Goal) -> int:
        """The size ``goal.k``, or the largest there is; the size at which the run stopped if it is still larger."""
        ended_above = goal.k is None or history.size > goal.k
        return history.size if ended_above and history.size in history.best else max(history.best)
