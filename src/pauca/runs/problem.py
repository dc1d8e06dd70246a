"""A checked problem from which any number of runs start: on all rows, or on those of a fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from pauca.constraints.limits import Limits
from pauca.constraints.units import Units
from pauca.design import Design, make_design
from pauca.losses import Loss
from pauca.objectives import LeastSquares, SmoothObjective
from pauca.objectives.least_squares import centred_target
from pauca.runs.run import Method, SearchRun
from pauca.subsets.base import Subset
from pauca.subsets.least_squares import LeastSquaresSubset
from pauca.subsets.smooth import SmoothSubset


@dataclass(frozen=True, eq=False)
class Target:
    """What is to be predicted, in the form losses want it."""

    y: np.ndarray
    """Shape (C, n), or (n,) for classes where all outputs share one loss."""
    loss: Loss
    n_outputs: int


def design_for(
    X: Any, target: Target, weights: np.ndarray, *, center: bool, closed_form: bool, folds: Sequence[np.ndarray] = ()
) -> Design:
    """The design of a search; where its first question is known, the first pass over X answers it too.

    ``folds`` are the row weights of searches that will follow on parts of the rows.
    """
    first = centred_target(target.y[0], weights, center=center)[1] if closed_form else None
    return make_design(X, weights, center=center, target=first, folds=folds)


def has_closed_form(target: Target, units: Units, bounds: Any) -> bool:
    """Whether additions and removals have closed forms: squared error of single columns of one output."""
    return target.loss.quadratic and target.n_outputs == 1 and units.single and bounds is None


class Problem(Protocol):
    """A checked problem: all that a choice of size needs to know of it."""

    def begin(self, weights: np.ndarray, design: Any = None) -> SearchRun:
        """A search that only sees what has weight."""
        ...


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """Data, target and constraints, all of them checked."""

    X: Any
    target: Target
    method: Method
    units: Units
    limits: Limits
    bounds: tuple[np.ndarray, np.ndarray] | None
    ridge: float
    center: bool
    measure: Loss
    """The loss by which models are compared: that of the target, with all its parameters set."""
    standardize: bool = False
    """Whether the ridge is on the coefficients of standardised columns."""
    searches_by_unit: bool = False
    """Whether a search for units of several columns has a ridge ``ridge_by_unit``."""
    ridge_by_unit: bool = False
    """Whether a unit of m columns has m times the ridge, relative to the smallest unit.

    A category with many levels gains by chance in proportion to their number. With the same ridge on all coefficients a
    search takes it before columns that truly help; with this one a unit of noise gains about as much as any other.
    """

    @property
    def closed_form(self) -> bool:
        """Whether additions and removals have closed forms."""
        return has_closed_form(self.target, self.units, self.bounds)

    def at_ridge(self, ridge: float) -> LinearProblem:
        """The same problem with another ridge."""
        return self if ridge == self.ridge else replace(self, ridge=ridge)

    def searched_at(self, ridge: float) -> LinearProblem:
        """The same problem as it is searched with a ridge of the search."""
        return replace(self, ridge=ridge, ridge_by_unit=self.searches_by_unit)

    def differs_from_search(self, search_ridge: float) -> bool:
        """Whether the models of a search are others than those of this problem on the same columns."""
        return self.ridge != search_ridge or (self.searches_by_unit and search_ridge > 0)

    def n_parameters(self, n_columns: int) -> int:
        """How many parameters a model of some columns has for information criteria."""
        return self.measure.n_parameters(n_columns, self.target.n_outputs, center=self.center)

    def ridge_unit(self, weights: np.ndarray, design: Design | None = None) -> float:
        """What a ridge is measured in, so that neither the units of the target nor those of X change what it does.

        The curvature of the loss at the best constant (one for squared error; the scores of classes have no units),
        and without ``standardize`` the mean variance of the columns.
        """
        unit = 1.0
        loss, y, n_outputs = self.target.loss, self.target.y, self.target.n_outputs
        if not (loss.classifies or loss.quadratic):
            smooth = loss.tuned(y, weights).smoothed(y, weights, center=self.center)
            constants = smooth.constants(y, weights, n_outputs) if self.center else np.zeros(n_outputs)
            scores = np.where(np.isfinite(constants), constants, 0.0)[:, None] + np.zeros(len(weights))
            unit = float(smooth.typical_curvature(y, scores, weights)) or 1.0
        if not self.standardize:
            design = design or make_design(self.X, weights, center=self.center)
            unit *= float(np.mean(design.spread[design.usable] ** 2)) if design.usable.any() else 1.0
        return unit

    def begin(self, weights: np.ndarray, design: Design | None = None) -> SearchRun:
        """A search that only sees rows with weight; X is shared, never copied."""
        if design is None:
            closed_form = self.closed_form
            design = design_for(self.X, self.target, weights, center=self.center, closed_form=closed_form)
        limits = self.limits
        if limits.always:
            # What varies over all rows may be constant on some.
            varies = self.units.any(design.usable)
            limits = replace(limits, always=tuple(unit for unit in limits.always if varies[unit]))
        return SearchRun(self.method, design, self._subset(design, limits))

    def _subset(self, design: Design, limits: Limits) -> Subset:
        """The empty model: with closed forms where there are some, with refits elsewhere."""
        y, loss = self.target.y, self.target.loss
        options: Any = {"ridge": self.ridge, "center": self.center, "standardize": self.standardize}
        if self.closed_form:
            return LeastSquaresSubset.start(LeastSquares.of(design, y[0], **options), limits)
        options |= {"units": self.units, "bounds": self.bounds, "ridge_by_unit": self.ridge_by_unit}
        objective = SmoothObjective.of(design, y, loss, n_outputs=self.target.n_outputs, **options)
        if objective.null_value == np.inf:
            raise ValueError(f"The loss {loss!r} is infinite at the best constant. Fit with an intercept.")
        if not objective.null_value >= 0:
            raise ValueError(
                f"The loss {loss!r} has the value {objective.null_value:g} at the best constant; a loss must be a "
                "number that is not negative. Add a constant to it."
            )
        return SmoothSubset.start(objective, limits)
