"""FoBa: forward steps, and backward steps whenever they cost less than a share of what a forward step gained."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from pauca.methods.base import check_count, check_removal, check_rule, check_share, next_addition, one_of
from pauca.search.driver import Goal
from pauca.search.history import History, Move, Stop
from pauca.subsets.base import Subset

COMPARISONS = ("each", "cumulative", "smallest")


@dataclass(frozen=True)
class FoBa:
    """Adaptive forward-backward greedy selection.

    Zhang (2011), Figure 4, for squared loss; Liu, Fujimaki and Ye (2014), Algorithm 1, for smooth convex losses.
    After each addition, features are taken away as long as that raises Q by no more than ``nu`` times what an
    addition gained.

    It ends by itself: an addition at tolerance ``tol`` lowers ``Q + nu * (gains standing)`` by ``(1 - nu) * tol``
    and no removal raises it, so there are at most ``1 + Q(0) / ((1 - nu) tol)`` additions (Proposition 3.1 of
    Zhang, there with nu = 1/2) and no more removals than additions.

    The model of a size is the best one met at that size. Zhang takes the last; the two differ when a path dips below
    a size and climbs again.

    Parameters
    ----------
    nu : float, default=0.5
        The share, strictly between 0 and 1. Near 0 this is forward selection.
    rule : {"objective", "gradient", "refit"}, default="objective"
        How candidates are ranked, as in ``Forward``. "objective" and "gradient" are the FoBa-obj and FoBa-gdt of
        Liu et al.
    removal : {"refit", "zero"}, default="refit"
        What taking a feature away is taken to cost: the increase of Q after the others are refitted, or before (as
        printed in both papers).
    compare : {"each", "cumulative", "smallest"}, default="each"
        What a removal is held against: the gain of the addition that led to the current size; the sum of the removals
        since the last addition against the sum of the gains they stand against; or the smallest gain of all additions.
    max_steps : int or None, default=None
        The largest number of additions and removals together.

    Examples
    --------
    >>> from pauca.methods import FoBa
    >>> FoBa(nu=0.3, compare="cumulative").compare
    'cumulative'
    """

    nu: float = 0.5
    rule: str = "objective"
    removal: str = "refit"
    compare: str = "each"
    max_steps: int | None = None

    def __post_init__(self) -> None:
        check_share("nu", self.nu)
        check_rule(self.rule)
        check_removal(self.removal)
        one_of("compare", self.compare, COMPARISONS)
        if self.max_steps is not None:
            check_count("max_steps", self.max_steps, 1)

    def begin(self, subset: Subset) -> None:
        """Start from the empty model."""

    def moves(self, subset: Subset, history: History, goal: Goal) -> Generator[Move | None, None, Stop]:
        """An addition, then as many removals as are cheap enough, and again."""
        while True:
            while (unit := self._removable(subset, history)) is not None:
                yield ("drop", unit)
            if goal.reached(subset.size):
                return Stop.SIZE
            step = next_addition(subset, self.rule, goal.tol)
            if isinstance(step, Stop):
                return step
            if self._out_of_steps(history):
                return Stop.STEPS
            yield ("add", step)

    def answer(self, history: History, goal: Goal) -> int:
        """The size the run ended at."""
        return history.size

    def _removable(self, subset: Subset, history: History) -> int | None:
        if subset.size < 2 or self._out_of_steps(history):
            return None
        payable = self._payable(history, subset.size)
        cheapest = subset.cheapest_removal(self.removal, payable)
        if cheapest is None:
            return None
        unit, cost = cheapest
        return unit if cost <= payable else None

    def _payable(self, history: History, size: int) -> float:
        """The most that a removal may cost."""
        gain = history.arrivals.get(size, 0.0)
        if self.compare == "smallest":
            return self.nu * history.smallest_gain
        if self.compare == "cumulative":
            return self.nu * (history.undone + gain) - history.lost
        return self.nu * gain

    def _out_of_steps(self, history: History) -> bool:
        return self.max_steps is not None and len(history.moves) >= self.max_steps
