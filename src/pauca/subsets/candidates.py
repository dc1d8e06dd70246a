"""What every column would bring to a least-squares model: slopes and residuals, kept up to date."""

from __future__ import annotations

from copy import copy

import numpy as np

from pauca.objectives import LeastSquares
from pauca.tolerances import COPY_ABOVE, DEPENDENT_BELOW

# Slopes and residuals are carried along by rank-one changes; after this many they are made anew.
CHANGES_BEFORE_RENEWAL = 100

# A column that leaves less than this share of the current value completes a perfect fit, to rounding.
COMPLETES_WITHIN = 1e-9

NOT_MADE = np.zeros(0)


class Candidates:
    """Slope and residual of every column, given the chosen ones S.

    Conventions (standardised coordinates, H the Hessian, A the inverse of its block on S)
    -----------
    slope[j]    : minus the gradient of Q in coordinate j
    residual[j] : ``H_jj - H_jS A H_Sj``, what S leaves of column j; minus infinity for chosen columns

    Adding j lowers Q by ``slope_j^2 / (2 residual_j)``. Both are made when somebody first asks for them: a method that
    only drops never does.
    """

    def __init__(self, objective: LeastSquares) -> None:
        self.slope = self.residual = NOT_MADE
        self.curvature = objective.curvature
        self._objective = objective
        self._least_residual = np.where(objective.design.usable, DEPENDENT_BELOW * self.curvature, np.inf)
        self._twins = np.zeros(objective.design.n_features, dtype=np.int32)
        self._changes = 0

    def copy(self) -> Candidates:
        """Candidates that change on their own."""
        twin = copy(self)
        twin.slope, twin.residual, twin._twins = self.slope.copy(), self.residual.copy(), self._twins.copy()
        return twin

    @property
    def made(self) -> bool:
        """Whether slopes and residuals are at hand."""
        return len(self.slope) > 0

    def forget(self) -> None:
        """Leave slopes and residuals to be made when they are next asked for."""
        self.slope = self.residual = NOT_MADE

    def make(self, coef: np.ndarray, rows: np.ndarray, half: np.ndarray, support: list[int]) -> None:
        """Slopes and residuals from the Gram ``rows`` of S and ``half``, whose squares add up to what S explains."""
        self.slope = self._objective.slope - coef @ rows
        self.residual = self.curvature - np.einsum("ij,ij->j", half, half)
        self.residual[support] = -np.inf
        self._changes = 0

    def change(self, direction: np.ndarray, slope: float, residual: float) -> None:
        """Rank-one change that goes with an addition or removal; once in a while all is left to be made anew."""
        self._changes += 1
        if self._changes >= CHANGES_BEFORE_RENEWAL:
            self.forget()
            return
        self.slope += slope * direction
        direction *= direction
        direction *= residual
        self.residual += direction

    def scores(self, rule: str, left: float) -> np.ndarray:
        """Score of every column by ``rule``, minus infinity where it is barred; ``left`` is the current value."""
        thresholds = self.thresholds()
        if rule == "refit":
            scores = self.slope * self.slope / np.maximum(self.residual, thresholds)
            # Columns that would complete a perfect fit gain the same, all that is left, whatever rounding says.
            np.minimum(scores, (2 - COMPLETES_WITHIN) * max(left, 0.0), out=scores)
        elif rule == "objective":
            scores = self.slope * self.slope / self.curvature
        else:
            scores = np.abs(self.slope) * self._objective.design.spread
        return np.where(self.residual > thresholds, scores, -np.inf)

    def thresholds(self) -> np.ndarray:
        """Residuals up to these bar a column: it is constant, depends on the chosen ones, or copies one of them."""
        if not self._objective.ridge:
            return self._least_residual
        return np.where(self._twins > 0, np.inf, self._least_residual)

    def count_twins(self, row: np.ndarray, change: int) -> None:
        """With a ridge a copy of a chosen column leaves a residual; copies are counted to bar them all the same."""
        if self._objective.ridge:
            self._twins += change * (np.abs(row) >= COPY_ABOVE)

    def has_twins(self, gram: np.ndarray) -> bool:
        """Whether some columns of a square Gram matrix are to be barred as copies of others."""
        if not self._objective.ridge:
            return False
        correlation = np.abs(gram)
        np.fill_diagonal(correlation, 0.0)
        return bool(correlation.max(initial=0.0) >= COPY_ABOVE)
