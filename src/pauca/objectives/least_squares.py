"""Weighted least squares with an optional ridge, an optional intercept, and nothing that changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from pauca.design import Design
from pauca.objectives.gram import GramRows
from pauca.model import Model, Snapshot

# A target whose spread is this small next to its size is rounding noise around a constant.
CONSTANT_TARGET_BELOW = 4 * np.finfo(float).eps

# The coefficients are refined against the residuals until a step changes them by less than this share.
REFINED_BELOW = 1e-9
MOST_REFINEMENTS = 4


@dataclass(frozen=True)
class LeastSquares:
    """``Q(w) = (1/2) sum_i v_i (x_i w + b - y_i)^2 + (ridge/2) |w|^2`` with b minimised out.

    Conventions
    -----------
    Coordinates are those of the standardised columns: ``z_j = spread_j w_j``. In them the Hessian has the diagonal
    ``1 + ridge / spread_j^2`` (``curvature``) and the correlations of the columns elsewhere, whatever the units
    of the data. ``finish`` carries models back to the user's units.
    """

    design: Design
    target: np.ndarray
    """y minus its mean, shape (n,)."""
    intercept: float
    """The weighted mean of y; zero without an intercept."""
    ridge: float
    null_value: float
    """Q of the empty model."""
    slope: np.ndarray
    """Minus the gradient at the empty model, shape (d,)."""
    penalty: np.ndarray
    """The ridge in standardised coordinates, shape (d,)."""

    @classmethod
    def of(cls, design: Design, y: np.ndarray, *, ridge: float = 0.0, center: bool = True) -> LeastSquares:
        """The objective of a design and a target ``y`` of shape (n,)."""
        v = design.weights
        intercept = float(v @ y) if center else 0.0
        target = y - intercept
        if center:
            left = float(v @ target)
            intercept, target = intercept + left, target - left
        value = 0.5 * float(v @ (target * target))
        if value <= 0.5 * (CONSTANT_TARGET_BELOW * intercept) ** 2:
            target, value = np.zeros_like(target), 0.0
        penalty = np.zeros(design.n_features)
        if ridge:
            with np.errstate(over="ignore"):
                np.divide(ridge, design.spread**2, out=penalty, where=design.usable)
        return cls(design, target, intercept, ridge, value, design.correlate(target), penalty)

    @property
    def curvature(self) -> np.ndarray:
        """Diagonal of the Hessian in standardised coordinates, shape (d,)."""
        return 1.0 + self.penalty

    def finish(self, snapshots: Sequence[Snapshot], gram: GramRows) -> list[Model]:
        """Models in the user's units, their coefficients refined against residuals taken from X itself.

        All models are refined together: each round is one pass over the few columns they use. A Newton step with
        the Gram matrix's Cholesky factor and a gradient from true residuals (the corrected seminormal equations)
        gives the accuracy of a QR factorisation; the value is a sum of squared residuals, not a difference.
        """
        used = np.unique(np.concatenate([np.asarray(s.support, dtype=np.intp) for s in snapshots]))
        places = [np.searchsorted(used, s.support) for s in snapshots]
        hessian = gram.rows(used, used)
        hessian[np.diag_indices_from(hessian)] += self.penalty[used]
        coef = np.zeros((len(used), len(snapshots)))
        for column, (place, snapshot) in enumerate(zip(places, snapshots, strict=True)):
            coef[place, column] = snapshot.coef
        for _ in range(MOST_REFINEMENTS):
            step, value = self._newton_steps(used, places, hessian, coef)
            coef += step
            if np.abs(step).max(initial=0.0) <= REFINED_BELOW * np.abs(coef).max(initial=0.0):
                break
        return [
            self._model(used[place], coef[place, column], float(value[column]), hessian[np.ix_(place, place)])
            for column, place in enumerate(places)
        ]

    def _newton_steps(
        self, used: np.ndarray, places: list[np.ndarray], hessian: np.ndarray, coef: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """One step for each model (a column of ``coef``) and the value it leads to."""
        slope = np.zeros_like(coef)
        value = np.zeros(coef.shape[1])
        for rows, block in self.design.blocks(used):
            residual = self.target[rows, None] - block @ coef
            weighted = self.design.weights[rows, None] * residual
            slope += block.T @ weighted
            value += 0.5 * np.einsum("ij,ij->j", residual, weighted)
        slope -= self.penalty[used][:, None] * coef
        value += 0.5 * self.penalty[used] @ coef**2
        step = np.zeros_like(coef)
        for column, place in enumerate(places):
            if len(place):
                _, change, info = lapack.dposv(hessian[np.ix_(place, place)], slope[place, column])
                if info == 0:
                    step[place, column] = change
                    value[column] -= 0.5 * float(slope[place, column] @ change)
        return step, np.maximum(value, 0.0)

    def _model(self, support: np.ndarray, coef: np.ndarray, value: float, hessian: np.ndarray) -> Model:
        order = np.argsort(support)
        scaled = coef / self.design.spread[support]
        inverse = np.linalg.inv(hessian) if len(support) else hessian
        return Model(
            support=support[order],
            coef=scaled[order],
            intercept=self.intercept - float(self.design.mean[support] @ scaled),
            objective=value,
            worth=(0.5 * coef**2 / np.diag(inverse))[order],
        )
