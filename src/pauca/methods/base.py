"""What the methods share: how growing methods start and answer, and the choice of the next addition."""

from __future__ import annotations

from pauca.checks import ParameterChecks
from pauca.search.driver import Goal
from pauca.search.history import History, Stop
from pauca.subsets.base import SLACK, Subset


class GrowingMethod:
    """A method that starts from the empty model and answers with the size at which it stopped."""

    def begin(self, subset: Subset) -> None:
        """Start from the empty model."""

    def answer(self, history: History, goal: Goal) -> int:
        """The size at which the run stopped."""
        return history.size


def check_shortlist(check: ParameterChecks, shortlist: float | None) -> None:
    """Check the option of how many candidates are scored."""
    if shortlist is not None and check.number("shortlist", shortlist, positive=True, otherwise=" or None") < 1:
        raise ValueError(check.message("shortlist", "at least 1 or None", shortlist))


def next_addition(subset: Subset, rule: str, tol: float, shortlist: float | None = SLACK) -> int | Stop:
    """The unit to add next, or why there is none.

    The gain compared with ``tol`` is the decrease after refitting, and a unit that gains less is not added (Zhang 2011,
    Figure 4; Figure 1 of the same paper adds it and then stops).
    """
    if subset.value <= subset.perfect_below:
        return Stop.PERFECT
    unit = subset.best_addition(rule, shortlist)
    if unit is None:
        return Stop.LIMITS if subset.held_back() else Stop.EXHAUSTED
    gain = subset.decrease(unit)
    if gain <= subset.negligible:
        return Stop.NO_GAIN
    if gain < tol:
        return Stop.TOLERANCE
    return unit
