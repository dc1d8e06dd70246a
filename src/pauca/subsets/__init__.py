"""A model kept fitted while units come and go: what changes in a run."""

from __future__ import annotations

import numpy as np

from pauca.constraints.units import Limits, Units
from pauca.design import Design
from pauca.losses import Loss
from pauca.objectives import LeastSquares, SmoothObjective
from pauca.subsets.base import REMOVALS, RULES, OutOfTime, Subset, Swap
from pauca.subsets.least_squares import LeastSquaresSubset
from pauca.subsets.smooth import SmoothSubset

__all__ = ["REMOVALS", "RULES", "LeastSquaresSubset", "OutOfTime", "SmoothSubset", "Subset", "Swap", "make_subset"]


def make_subset(
    design: Design,
    y: np.ndarray,
    loss: Loss,
    *,
    units: Units,
    limits: Limits,
    n_outputs: int = 1,
    ridge: float = 0.0,
    center: bool = True,
    bounds: tuple[np.ndarray, np.ndarray] | None = None,
    standardize: bool = False,
) -> Subset:
    """The subset that a run on these data starts from; ``y`` has shape (C, n), or (n,) for classes.

    Closed forms where there are some, refits elsewhere.
    """
    if loss.quadratic and n_outputs == 1 and units.single and bounds is None:
        closed = LeastSquares.of(design, y[0], ridge=ridge, center=center, standardize=standardize)
        return LeastSquaresSubset.start(closed, limits)
    objective = SmoothObjective.of(
        design,
        y,
        loss,
        units=units,
        n_outputs=n_outputs,
        ridge=ridge,
        center=center,
        bounds=bounds,
        standardize=standardize,
    )
    if objective.null_value == np.inf:
        raise ValueError(f"The loss {loss!r} is infinite at the best constant. Fit with an intercept.")
    if not objective.null_value >= 0:
        raise ValueError(
            f"The loss {loss!r} has the value {objective.null_value:g} at the best constant; a loss must be a number "
            "that is not negative. Add a constant to it."
        )
    return SmoothSubset.start(objective, limits)
