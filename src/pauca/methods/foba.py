"""FoBa, forward-backward greedy selection: Zhang (2011), Figure 4; Liu, Fujimaki and Ye (2014), Algorithm 1."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from pauca.checks import ParameterChecks
from pauca.methods.base import GrowingMethod, check_shortlist, next_addition
from pauca.search.driver import Goal
from pauca.search.history import History, Move, Stop
from pauca.subsets.base import REMOVALS, RULES, SLACK, Subset

COMPARISONS = ("each", "cumulative", "smallest")


@dataclass(frozen=True)
class FoBa(GrowingMethod):
    """Adaptive forward-backward greedy selection.

    Zhang (2011), Figure 4, for squared loss; Liu, Fujimaki and Ye (2014), Algorithm 1, for smooth convex losses.
    After each addition, features are removed as long as that raises Q by no more than ``nu`` times the gain of an
    addition.

    It terminates: an addition at tolerance ``tol`` lowers ``Q + nu * (gains of the additions not yet undone)`` by
    ``(1 - nu) * tol`` and no removal raises it, so there are at most ``1 + Q(0) / ((1 - nu) tol)`` additions
    (Proposition 3.1 of Zhang, there with nu = 1/2) and no more removals than additions.

    The model of a size is the best one found at that size. Zhang takes the last; the two differ when a path passes a
    size several times.

    Parameters
    ----------
    nu : float, default=0.5
        The largest ratio of a removal's cost to a gain, strictly between 0 and 1. Near 0 this is forward selection.
    rule : {"objective", "gradient", "refit"}, default="objective"
        How candidates are ranked, as in ``Forward``. "objective" and "gradient" are the FoBa-obj and FoBa-gdt of
        Liu et al.
    removal : {"refit", "zero"}, default="refit"
        The cost of a removal: the increase of Q after the others are refitted, or before (as printed in both papers).
    compare : {"each", "cumulative", "smallest"}, default="each"
        What the cost of a removal is compared with: "each", the gain of the addition that led to the current size;
        "cumulative", the sum of such gains since the last addition, compared with the sum of the costs; "smallest", the
        smallest gain of all additions.
    max_steps : int or None, default=None
        The largest number of additions and removals together.
    shortlist : float or None, default=2.0
        How many candidates are scored, as in ``Forward``; None for all.

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
    shortlist: float | None = SLACK

    def __post_init__(self) -> None:
        check = ParameterChecks("FoBa")
        check.number("nu", self.nu, positive=True, below=1.0)
        check.one_of("rule", self.rule, RULES)
        check.one_of("removal", self.removal, REMOVALS)
        check.one_of("compare", self.compare, COMPARISONS)
        if self.max_steps is not None:
            check.count("max_steps", self.max_steps, "or None")
        check_shortlist(check, self.shortlist)

    def moves(self, subset: Subset, history: History, goal: Goal) -> Generator[Move | None, None, Stop]:
        """An addition, then removals as long as they are cheap enough, and so on."""
        while True:
            while (unit := self._removable(subset, history)) is not None:
                yield ("drop", unit)
            if goal.reached(subset.size):
                return Stop.SIZE
            step = next_addition(subset, self.rule, goal.tol, self.shortlist)
            if isinstance(step, Stop):
                return step
            if self._out_of_steps(history):
                return Stop.STEPS
            yield ("add", step)

    def _removable(self, subset: Subset, history: History) -> int | None:
        if subset.size < 2 or self._out_of_steps(history):
            return None
        allowed = self._largest_cost(history, subset.size)
        cheapest = subset.cheapest_removal(self.removal, allowed)
        if cheapest is None:
            return None
        unit, cost = cheapest
        return unit if cost <= allowed else None

    def _largest_cost(self, history: History, size: int) -> float:
        """The largest cost at which a feature is removed."""
        gain = history.arrivals.get(size, 0.0)
        if self.compare == "smallest":
            return self.nu * history.smallest_gain
        if self.compare == "cumulative":
            return self.nu * (history.undone + gain) - history.lost
        return self.nu * gain

    def _out_of_steps(self, history: History) -> bool:
        return self.max_steps is not None and len(history.moves) >= self.max_steps
