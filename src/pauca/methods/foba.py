"""FoBa, forward-backward greedy selection: Zhang (2011), Figure 4; Liu, Fujimaki and Ye (2014), Algorithm 1."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from pauca.checks import ParameterChecks
from pauca.methods.forward import GrowingMethod, LineStops, check_shortlist, next_addition
from pauca.runs.run import Goal, History, Move, Stop
from pauca.subsets.base import REMOVALS, RULES, SLACK, Subset

COMPARISONS = ("each", "cumulative", "smallest", "fixed")


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
    rule : {"objective", "gradient", "refit", "functional"}, default="objective"
        How candidates are ranked, as in ``Forward``. "objective" and "gradient" are the FoBa-obj and FoBa-gdt of
        Liu et al.
    removal : {"refit", "zero"}, default="refit"
        The cost of a removal: the increase of Q after the others are refitted, or before (as printed in both papers).
    compare : {"each", "cumulative", "smallest", "fixed"}, default="each"
        What the cost of a removal is compared with: "each", the gain of the addition that led to the current size;
        "cumulative", the sum of such gains since the last addition, compared with the sum of the costs (the aggressive
        variant of Zhang); "smallest", the smallest gain of all additions; "fixed", the number ``removal_tol``,
        whatever ``nu``: the classical stepwise search of SAS with which Zhang compares.
    max_steps : int or None, default=None
        The largest number of additions and removals together.
    shortlist : float or None, default=2.0
        How many candidates are scored, as in ``Forward``, and how many removals are computed: for losses other than
        squared loss those that estimates rank first. None for all, as printed.
    removal_tol : float, default=0.0
        For ``compare="fixed"``: features are removed as long as that raises Q by no more than this (epsilon' of Zhang).
        If it is not below the gain of additions, features go as they came; the search ends when it comes back to a
        model that it left before.
    min_line_gain, gradient_tol : float, default=0.0
        Stops before an addition, as in ``Forward``: delta and epsilon of Liu et al., Algorithm 1.

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
    removal_tol: float = 0.0
    min_line_gain: float = 0.0
    gradient_tol: float = 0.0

    def __post_init__(self) -> None:
        check = ParameterChecks("FoBa")
        check.number("nu", self.nu, positive=True, below=1.0)
        check.one_of("rule", self.rule, RULES)
        check.one_of("removal", self.removal, REMOVALS)
        check.one_of("compare", self.compare, COMPARISONS)
        if self.max_steps is not None:
            check.count("max_steps", self.max_steps, "or None")
        for name in ("removal_tol", "min_line_gain", "gradient_tol"):
            check.number(name, getattr(self, name))
        if self.removal_tol and self.compare != "fixed":
            raise ValueError(f"removal_tol goes with compare='fixed'; got compare={self.compare!r}.")
        check_shortlist(check, self.shortlist)

    def moves(self, subset: Subset, history: History, goal: Goal) -> Generator[Move | None, None, Stop]:
        """An addition, then removals as long as they are cheap enough, and so on."""
        stops = LineStops.of(self.min_line_gain, self.gradient_tol)
        spent = self._spent_so_far(subset, history)
        while True:
            while (found := self._removable(subset, history, spent)) is not None:
                spent += found[1]
                yield ("drop", found[0])
            if self.compare == "fixed" and _has_returned(history):
                return Stop.REPEATED
            if goal.reached(subset.size):
                return Stop.SIZE
            step = next_addition(subset, self.rule, goal.tol, self.shortlist, stops)
            if isinstance(step, Stop):
                return step
            if self._out_of_steps(history):
                return Stop.STEPS
            spent = 0.0
            yield ("add", step)

    def _removable(self, subset: Subset, history: History, spent: float) -> tuple[int, float] | None:
        """The unit to remove next and its cost, if it is cheap enough."""
        if subset.size < 2 or self._out_of_steps(history):
            return None
        allowed = self._largest_cost(history, subset.size, spent)
        cheapest = subset.cheapest_removal(self.removal, allowed, self.shortlist)
        return cheapest if cheapest is not None and cheapest[1] <= allowed else None

    def _largest_cost(self, history: History, size: int, spent: float) -> float:
        """The largest cost at which a feature is removed; ``spent`` is what removals since the last addition cost."""
        gain = history.arrivals.get(size, 0.0)
        if self.compare == "fixed":
            return self.removal_tol
        if self.compare == "smallest":
            return self.nu * history.smallest_gain
        if self.compare == "cumulative":
            return self.nu * (history.undone + gain) - spent
        return self.nu * gain

    def _spent_so_far(self, subset: Subset, history: History) -> float:
        """What the removals since the last addition cost by ``removal``, for a run that is taken up after them.

        The history has the increases after refitting; costs before refitting are larger, and are found once more.
        """
        if self.compare != "cumulative" or self.removal == "refit" or not history.undone:
            return history.lost
        dropped: list[int] = []
        for action, unit, *_ in reversed(history.moves):
            if action != "drop":
                break
            dropped.append(unit)  # type: ignore[arg-type]
        model, spent = subset.copy(), 0.0
        for unit in dropped:
            model.add(unit)
        for unit in reversed(dropped):
            spent += model.zero_cost(unit)
            model.drop(unit)
        return spent

    def _out_of_steps(self, history: History) -> bool:
        return self.max_steps is not None and len(history.moves) >= self.max_steps


def _has_returned(history: History) -> bool:
    """Whether the last removals led to a model from which the search has gone on before.

    With a fixed cost the next moves depend on the model alone, so that it would go in circles.
    """
    if not history.moves or history.moves[-1][0] != "drop":
        return False
    changed: set[int] = set()
    met: set[frozenset[int]] = set()
    for action, unit, *_ in history.moves:
        if action == "add":
            met.add(frozenset(changed))
        changed ^= {unit}  # type: ignore[arg-type]
    return frozenset(changed) in met
