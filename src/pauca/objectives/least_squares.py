"""Weighted least squares with an optional ridge, an optional intercept, and nothing that changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pauca.design import Design
from pauca.model import Model, Snapshot
from pauca.objectives.gram import GramRows

# A target whose spread is this small next to its size is rounding noise around a constant.
CONSTANT_TARGET_BELOW = 4 * np.finfo(float).eps

# Up to this condition number coefficients from the Gram matrix are good to ten digits.
WELL_CONDITIONED = 1e6

# Below this share of the empty model's value, a value from the Gram matrix would be a difference of nearly equal
# numbers.
LITTLE_LEFT = 1e-5

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

    def residual(self, support: Sequence[int], coef: np.ndarray) -> np.ndarray:
        """Target minus fit, shape (n,), from the columns of X themselves."""
        residual = self.target.copy()
        for rows, block in self.design.blocks(support):
            residual[rows] -= block @ coef
        return residual

    def finish(self, snapshots: Sequence[Snapshot], gram: GramRows) -> list[Model]:
        """Models in the user's units, with coefficients refined beyond what the search needed.

        A Newton step against the Gram matrix is enough for models that are well conditioned and leave something
        unexplained. Otherwise all models are refined together against residuals taken from X itself, each round one
        pass over the few columns they use. A Gram matrix's inverse with a gradient from true residuals (the
        corrected seminormal equations) gives the accuracy of a QR factorisation, and the value is then a sum of
        squares, not a difference.
        """
        supports = [np.array(s.support, dtype=np.intp) for s in snapshots]
        used = np.array(sorted({j for s in snapshots for j in s.support}), dtype=np.intp)
        coef = np.zeros((len(used), len(snapshots)))
        for column, (support, snapshot) in enumerate(zip(supports, snapshots, strict=True)):
            coef[np.searchsorted(used, support), column] = snapshot.coef
        places = [np.searchsorted(used, np.sort(support)) for support in supports]
        hessian = gram.rows(used, used)
        hessian.flat[:: len(used) + 1] += self.penalty[used]
        inverses = [np.linalg.inv(hessian[place[:, None], place]) for place in places]
        step, value = self._steps(places, inverses, *self._slopes_from_gram(used, hessian, coef))
        coef += step
        if self._ill_conditioned(inverses) or value.min() < LITTLE_LEFT * self.null_value:
            for _ in range(MOST_REFINEMENTS):
                step, value = self._steps(places, inverses, *self._slopes_from_residuals(used, coef))
                coef += step
                if np.abs(step).max(initial=0.0) <= REFINED_BELOW * np.abs(coef).max(initial=0.0):
                    break
        return self._models(used, places, inverses, coef, value)

    @staticmethod
    def _ill_conditioned(inverses: list[np.ndarray]) -> bool:
        """Whether solving with some Gram matrix loses too many digits; its trace is about k, so this bounds them."""
        return any(len(inverse) * np.trace(inverse) > WELL_CONDITIONED for inverse in inverses)

    def _slopes_from_gram(
        self, used: np.ndarray, hessian: np.ndarray, coef: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Minus the gradient, and the value, for each column of ``coef``."""
        curved = hessian @ coef
        slope = self.slope[used, None]
        return slope - curved, self.null_value + np.einsum("ij,ij->j", coef, 0.5 * curved - slope)

    def _slopes_from_residuals(self, used: np.ndarray, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same from one pass over the columns ``used`` of X."""
        slope = -self.penalty[used, None] * coef
        value = 0.5 * self.penalty[used] @ coef**2
        for rows, block in self.design.blocks(used):
            root = np.sqrt(self.design.weights[rows])[:, None]
            np.multiply(block, root, out=block)
            residual = root * self.target[rows, None] - block @ coef
            slope += block.T @ residual
            value += 0.5 * np.einsum("ij,ij->j", residual, residual)
        return slope, value

    @staticmethod
    def _steps(
        places: list[np.ndarray], inverses: list[np.ndarray], slope: np.ndarray, value: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A Newton step for each model on its own support, and the value it leads to."""
        step = np.zeros_like(slope)
        for column, (place, inverse) in enumerate(zip(places, inverses, strict=True)):
            step[place, column] = inverse @ slope[place, column]
        return step, np.maximum(value - 0.5 * np.einsum("ij,ij->j", slope, step), 0.0)

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
