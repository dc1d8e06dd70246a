"""Fitted models, and what a few steps have shown of the models around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pauca.objectives import Previews, Rows
from pauca.solvers.factorisation import inverse_or_nearest
from pauca.solvers.newton import Minimum


@dataclass(frozen=True, eq=False)
class Fit:
    """The minimiser on a set of units."""

    units: tuple[int, ...]
    """Ascending; the coefficients are in the order of their columns."""
    coef: np.ndarray
    """Shape (C, q), that of the intercept first."""
    value: float
    converged: bool = True
    """Whether the solver converged."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A minimum, or what a few steps towards it have reached, with the rows it was found on."""

    units: tuple[int, ...]
    rows: Rows
    split_by: frozenset[int]
    """Units on whose columns the rows are constant: those of the model, and perhaps some more."""
    minimum: Minimum
    origin: Solution | None = None
    """Of a preview made together with others: the model it started from, whose rows are split by fewer columns."""
    inverse: np.ndarray | None = None
    """About the inverse Hessian, where it tells what removals change but serves no further steps: (C q, C q)."""

    @property
    def value(self) -> float:
        """The value, less what the next step predicted."""
        return self.minimum.value - self.minimum.predicted


class Preview:
    """A preview of a model near a fit, made together with those of others."""

    __slots__ = ("_place", "_together", "by_newton", "reached", "removal_costs", "value")

    def __init__(
        self, together: PreviewsTogether, place: int, value: float, removal_costs: np.ndarray | None, *, reached: bool
    ) -> None:
        self._together, self._place = together, place
        self.value = value
        """The value, less what the next step predicted."""
        self.reached = reached
        """Whether it has come as near to its minimum as required, by the predicted decrease of the next step."""
        self.by_newton: Solution | None = None
        """Where Newton's steps have led instead, if they were taken."""
        self.removal_costs = removal_costs
        """Of an addition: by how much the value would rise without each unit of the fit, to second order."""

    def solution(self) -> Solution:
        """What the steps have reached, as a start for others."""
        return self._together.solution(self._place)


@dataclass(frozen=True, eq=False)
class PreviewsTogether:
    """Previews of a fit with each of some units added, or without each of some of its own."""

    origin: Solution
    units: Sequence[int]
    """Those added or removed."""
    rows: Rows
    found: Previews
    gather: Callable[[Sequence[int], Rows], np.ndarray]
    """Columns of some units on some rows."""
    free: int
    added: bool
    hands_on_hessian: bool
    """Whether refits start with a Hessian that is known."""

    def each(self, within: float) -> list[Preview]:
        """The previews one by one, in the order of the units; they should be ``within`` this share of their minima."""
        values, predicted = self.found.value, self.found.predicted
        both = zip((values - predicted).tolist(), (predicted <= within * values).tolist(), strict=True)
        costs = self.found.removal_costs()[:, self.free : -1] if self.added else [None] * len(values)
        return [Preview(self, at, value, costs[at], reached=reached) for at, (value, reached) in enumerate(both)]

    def solution(self, place: int) -> Solution:
        """One of the previews, with the coefficients in the order of its columns."""
        found, before, changed = self.found, self.origin, self.units[place]
        units = [*before.units, changed] if self.added else list(before.units)
        order = [at for at in sorted(range(len(units)), key=units.__getitem__) if self.added or units[at] != changed]
        kept = np.concatenate([np.arange(self.free), self.free + np.array(order, dtype=np.intp)])
        outputs, size = found.coef[place].shape
        in_all = (np.arange(outputs)[:, None] * size + kept).ravel()
        inverse = found.inverse[place][in_all[:, None], in_all]
        hessian = inverse_or_nearest(inverse)[None] if self.hands_on_hessian else None
        value, predicted = float(found.value[place]), float(found.predicted[place])
        coef, chosen = found.coef[place][:, kept], tuple(units[at] for at in order)
        scores = coef @ self.gather(chosen, self.rows) if found.scores is None else found.scores[place]
        minimum = Minimum(coef, scores, value, hessian, False, predicted)
        split_by = before.split_by | frozenset(self.units) if self.added else before.split_by
        return Solution(chosen, self.rows, split_by, minimum, before, inverse)
