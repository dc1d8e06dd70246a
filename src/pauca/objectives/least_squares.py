"""Weighted least squares with an optional ridge, an optional intercept, and nothing that changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
        the inverse of the Gram matrix and a gradient from true residuals (the corrected seminormal equations)
        gives the accuracy of a QR factorisation; the value is a sum of squared residuals, not a difference.
        """
        supports = [np.array(s.support, dtype=np.intp) for s in snapshots]
        used = np.unique(np.concatenate(supports))
        coef = np.zeros((len(used), len(snapshots)))
        for column, (support, snapshot) in enumerate(zip(supports, snapshots, strict=True)):
            coef[np.searchsorted(used, support), column] = snapshot.coef
        places = [np.searchsorted(used, np.sort(support)) for support in supports]
        hessian = gram.rows(used, used)
        hessian[np.diag_indices_from(hessian)] += self.penalty[used]
        inverses = [np.linalg.inv(hessian[place[:, None], place]) for place in places]
        for _ in range(MOST_REFINEMENTS):
            step, value = self._newton_steps(used, places, inverses, coef)
            coef += step
            if np.abs(step).max(initial=0.0) <= REFINED_BELOW * np.abs(coef).max(initial=0.0):
                break
        return self._models(used, places, inverses, coef, value)

    def _newton_steps(
        self, used: np.ndarray, places: list[np.ndarray], inverses: list[np.ndarray], coef: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """One step for each model (a column of ``coef``) and the value it leads to."""
        slope = np.zeros_like(coef)
        value = np.zeros(coef.shape[1])
        for rows, block in self.design.blocks(used):
            block *= np.sqrt(self.design.weights[rows, None])
            residual = block @ coef
            np.subtract((np.sqrt(self.design.weights[rows]) * self.target[rows])[:, None], residual, out=residual)
            slope += block.T @ residual
            value += 0.5 * np.einsum("ij,ij->j", residual, residual)
        slope -= self.penalty[used, None] * coef
        value += 0.5 * self.penalty[used] @ coef**2
        step = np.zeros_like(coef)
        for column, (place, inverse) in enumerate(zip(places, inverses, strict=True)):
            step[place, column] = inverse @ slope[place, column]
        value -= 0.5 * np.einsum("ij,ij->j", slope, step)
        return step, np.maximum(value, 0.0)

    def _models(
        self,
        used: np.ndarray,
        places: list[np.ndarray],
        inverses: list[np.ndarray],
        coef: np.ndarray,
        value: np.ndarray,
    ) -> list[Model]:
        """The columns of ``coef`` as models in the user's units."""
        scaled = coef / self.design.spread[used, None]
        intercept = self.intercept - self.design.mean[used] @ scaled
        return [
            Model(
                support=used[place],
                coef=scaled[place, column],
                intercept=float(intercept[column]),
                objective=float(value[column]),
                worth=0.5 * coef[place, column] ** 2 / np.diag(inverse),
            )
            for column, (place, inverse) in enumerate(zip(places, inverses, strict=True))
        ]
