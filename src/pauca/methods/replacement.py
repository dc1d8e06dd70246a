"""Replacement steps after forward selection: Shalev-Shwartz, Srebro and Zhang (2010), Algorithm 4, Theorem 2.9."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pauca.checks import ParameterChecks
from pauca.methods.forward import GrowingMethod, check_shortlist, next_addition
from pauca.runs.run import Goal, History, Move, Stop
from pauca.subsets.base import RULES, SLACK, Subset


@dataclass(frozen=True)
class Replacement(GrowingMethod):
    """Forward selection, then replacement of the smallest coefficient as long as that lowers Q.

    Shalev-Shwartz, Srebro and Zhang (2010), Algorithm 3 up to ``k`` features and then Algorithm 4 at that size: add the
    feature of the next forward step, refit, and remove the feature with the smallest absolute coefficient; accept if Q
    with that coefficient set to zero, before any refit, is below Q before the step. Coefficients are compared in the
    units of the columns, as printed; standardise the columns where these differ. ``Exchange``, the default of the
    estimators, looks at all pairs and at several starts; this method is here to be compared with.

    Guarantee (Theorem 2.9), for losses of bounded curvature, and a ridge if there is one, such as least squares and
    logistic regression with a ridge: with ``k + 1 >= s (1 + 4 (beta / lambda)^2)`` features and ``full=True``, Q ends
    within ``eps`` of that of any model of s features after ``(lambda (k + 1 - s) / (2 beta)) ln((Q(0) - Q(w)) / eps)``
    replacements, where beta is the largest curvature along a coordinate and lambda the smallest along directions of
    ``k + 1 + s`` entries. See ``pauca.theory.replacement_features``, ``replacement_swaps`` and ``replacement_excess``.

    Parameters
    ----------
    full : bool, default=True
        Whether to refit after the addition, before a feature is chosen to go. False: the simpler variant that follows
        Algorithm 4 in the paper, in which the steepest coordinate comes in for the smallest coefficient at once. The
        paper states no test for it; here it is accepted if Q falls after the refit.
    rule : {"objective", "gradient", "refit", "functional"}, default="objective"
        How candidates are ranked, as in ``Forward``; the simple replacement always goes by the gradient.
    max_swaps : int or None, default=None
        The largest number of replacements; None: until none is accepted.
    shortlist : float or None, default=2.0
        How many candidates are scored, as in ``Forward``; None for all, as printed.

    Examples
    --------
    >>> from pauca.methods import Replacement
    >>> Replacement(full=False).full
    False
    """

    swaps: ClassVar[bool] = True
    """Whether features are exchanged at the same size."""

    full: bool = True
    rule: str = "objective"
    max_swaps: int | None = None
    shortlist: float | None = SLACK

    def __post_init__(self) -> None:
        check = ParameterChecks("Replacement")
        check.flag("full", self.full)
        check.one_of("rule", self.rule, RULES)
        if self.max_swaps is not None:
            check.count("max_swaps", self.max_swaps, "or None", least=0)
        check_shortlist(check, self.shortlist)

    def moves(self, subset: Subset, history: History, goal: Goal) -> Generator[Move | None, None, Stop]:
        """Additions up to the size, then replacements."""
        swaps = sum(move[0] == "swap" for move in history.moves)
        ended = Stop.SIZE if goal.reached(subset.size) else Stop.TOLERANCE
        while not swaps and not goal.reached(subset.size):
            step = next_addition(subset, self.rule, goal.tol, self.shortlist)
            if isinstance(step, Stop):
                ended = step
                break
            yield ("add", step)
            ended = Stop.SIZE
        find = self._full_step if self.full else self._simple_step
        while subset.size and (swap := find(subset)) is not None:
            if swaps == self.max_swaps:
                return Stop.STEPS
            swaps += 1
            yield swap
        return ended

    def _full_step(self, subset: Subset) -> Move | None:
        """The replacement of Algorithm 4, if it is accepted."""
        before = subset.value
        with subset.trial():
            into = subset.best_addition(self.rule, self.shortlist)
            if into is None:
                return None
            subset.add(into)
            out = _smallest(subset)
            if out is None or out == into:
                return None
            decrease = before - (subset.value + subset.zero_cost(out))
        return _accepted(subset, out, into, decrease)

    def _simple_step(self, subset: Subset) -> Move | None:
        """The steepest coordinate for the smallest coefficient, if Q falls after the refit."""
        out = _smallest(subset)
        with subset.trial():
            into = subset.best_addition("gradient")
        if out is None or into is None:
            return None
        model = subset.copy()
        model.drop(out)
        decrease = subset.value - model.value + model.decrease(into)
        return _accepted(subset, out, into, decrease)


def _smallest(subset: Subset) -> int | None:
    """The chosen unit with the smallest coefficients, of those that may go; the first in order where some tie."""
    removable = np.asarray(subset.limits.removable(subset.support))
    sizes = np.where(removable, subset.coefficient_sizes(), np.inf)
    if not removable.any():
        return None
    least = sizes.min()
    return min(unit for unit, size in zip(subset.support, sizes, strict=True) if size == least)


def _accepted(subset: Subset, out: int, into: int, decrease: float) -> Move | None:
    after = [unit for unit in subset.support if unit != out] + [into]
    lower = decrease > subset.negligible and subset.limits.allows(after)
    return ("swap", out, into) if lower else None
