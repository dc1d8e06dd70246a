"""Gram rows and weighted least squares with an optional ridge and intercept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pauca.design import Design
from pauca.model import Model, Snapshot

# A pass over X for 32 rows costs about four times as much as for one. More rows would not come cheaper.
ROWS_PER_PASS = 32

# Where many rows are known to be wanted, no guess can go wrong.
KNOWN_ROWS_PER_PASS = 256

# Designs this narrow get the whole Gram matrix in one pass.
WHOLE_UP_TO = 4 * ROWS_PER_PASS

# On data that lie in the cache a pass costs what its arithmetic costs, and a wrong guess is not cheap.
SMALL_BYTES = 1 << 20

# No pass makes more than this many bytes of rows, and the rows kept stay below the larger of this figure
# times two and an eighth of X.
PASS_BYTES = 1 << 26


class GramRows:
    """Rows ``j -> X_j' V X`` of standardised columns, each computed at most once while memory lasts.

    When a row is missing, the pass over X that computes it computes the rows that are likely to be wanted next too.
    """

    def __init__(self, design: Design) -> None:
        self._design = design
        self._rows: dict[int, np.ndarray] = {}
        row_bytes = 8 * design.n_features
        per_pass = ROWS_PER_PASS if design.nbytes > SMALL_BYTES else ROWS_PER_PASS // 8
        self._per_pass = int(np.clip(PASS_BYTES // row_bytes, 1, per_pass))
        self._known_per_pass = int(np.clip(PASS_BYTES // row_bytes, 1, KNOWN_ROWS_PER_PASS))
        self._most_kept = max(4 * self._per_pass, max(2 * PASS_BYTES, design.nbytes // 8) // row_bytes)
        self.passes = 0
        self.computed = 0

    def row(self, feature: int, likely: Callable[[int, int], Iterable[int]] | None = None) -> np.ndarray:
        """The Gram row of ``feature``; ``likely(feature, count)`` says which rows may be wanted after it."""
        row = self._rows.get(feature)
        if row is None:
            self._compute(self._batch(feature, likely))
            row = self._rows[feature]
        return row

    def known(self) -> list[int]:
        """The features whose rows are at hand."""
        return list(self._rows)

    def rows(self, features: Sequence[int] | np.ndarray, columns: np.ndarray | slice = slice(None)) -> np.ndarray:
        """The Gram rows of several features, stacked; ``columns`` keeps only some entries of each."""
        wanted = [int(j) for j in features]
        found = {j: self._rows[j][columns] for j in wanted if j in self._rows}
        missing = [j for j in wanted if j not in found]
        for start in range(0, len(missing), self._known_per_pass):
            batch = missing[start : start + self._known_per_pass]
            found.update(zip(batch, self._compute(batch)[:, columns], strict=True))
        width = self._design.n_features if isinstance(columns, slice) else len(columns)
        return np.stack([found[j] for j in wanted]) if wanted else np.zeros((0, width))

    def _batch(self, feature: int, likely: Callable[[int, int], Iterable[int]] | None) -> list[int]:
        if self._design.n_features <= WHOLE_UP_TO:
            return [j for j in range(self._design.n_features) if j not in self._rows]
        if likely is None or self._per_pass == 1:
            return [feature]
        others = (int(j) for j in likely(feature, self._per_pass - 1))
        # In order: the columns of a row then lie in order too.
        return sorted({feature, *(j for j in others if j not in self._rows)})

    def _compute(self, features: list[int]) -> np.ndarray:
        block = self._design.gram(features)
        self.passes += 1
        self.computed += len(features)
        for j, row in zip(features, block, strict=True):
            self._rows[j] = row
        while len(self._rows) > self._most_kept:
            # Oldest first: dictionaries keep the order of arrival.
            self._rows.pop(next(iter(self._rows)))
        return block


# A target whose spread is this small next to its size is rounding noise around a constant.
CONSTANT_TARGET_BELOW = 4 * np.finfo(float).eps

# Up to this condition number coefficients from the Gram matrix are good to ten digits.
WELL_CONDITIONED = 1e6

# Below this share of the empty model's value, what comes from the Gram matrix is a difference of nearly equal numbers.
LITTLE_LEFT = 1e-6

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

    def little_left(self, value: float) -> bool:
        """Whether a model of this value leaves so little that only residuals taken from X have the digits to go on."""
        return value < LITTLE_LEFT * self.null_value

    def residual(self, support: Sequence[int], coef: np.ndarray) -> np.ndarray:
        """Target minus fit, shape (n,), from the columns of X themselves."""
        residual = self.target.copy()
        for rows, block in self.design.blocks(support):
            residual[rows] -= block @ coef
        return residual

    def finish(self, snapshots: Sequence[Snapshot], gram: GramRows) -> list[Model]:
        """Models in the user's units.

        Snapshots come refined against the Gram matrix, which is enough for models that are well conditioned and leave
        something unexplained. The others are refined against residuals taken from X itself.
        """
        blurred = [s for s in snapshots if s.support and self._needs_residuals(s)]
        if blurred:
            sharp = dict(zip(map(id, blurred), self._refined(blurred, gram), strict=True))
            snapshots = [sharp.get(id(s), s) for s in snapshots]
        return [self._model(snapshot) for snapshot in snapshots]

    def _needs_residuals(self, snapshot: Snapshot) -> bool:
        # The Hessian's trace is about k, so k times its inverse's trace bounds its condition number.
        condition = len(snapshot.support) * snapshot.variance.sum()
        return bool(condition > WELL_CONDITIONED or self.little_left(snapshot.value))

    def _model(self, snapshot: Snapshot) -> Model:
        support = np.array(snapshot.support, dtype=np.intp)
        order = support.argsort()
        support = support[order]
        coef = snapshot.coef[order] / self.design.spread[support]
        return Model(
            support=support,
            coef=coef,
            intercept=self.intercept - float(self.design.mean[support] @ coef),
            objective=float(snapshot.value),
            importance=(0.5 * snapshot.coef**2 / snapshot.variance)[order],
            units=support,
        )

    def _refined(self, snapshots: list[Snapshot], gram: GramRows) -> list[Snapshot]:
        """Snapshots refined together: each round is one pass over the few columns they use.

        A Gram matrix's inverse with a gradient from true residuals (the corrected seminormal equations) gives the
        accuracy of a QR factorisation, and the value is then a sum of squares, not a difference.
        """
        supports = [np.array(s.support, dtype=np.intp) for s in snapshots]
        used = np.unique(np.concatenate(supports))
        places = [np.searchsorted(used, support) for support in supports]
        hessian = gram.rows(used, used)
        hessian.flat[:: len(used) + 1] += self.penalty[used]
        inverses = [np.linalg.inv(hessian[place[:, None], place]) for place in places]
        coef = np.zeros((len(used), len(snapshots)))
        for column, (place, snapshot) in enumerate(zip(places, snapshots, strict=True)):
            coef[place, column] = snapshot.coef
        for _ in range(MOST_REFINEMENTS):
            slope, value = self._slopes_from_residuals(used, coef)
            step = np.zeros_like(coef)
            for column, (place, inverse) in enumerate(zip(places, inverses, strict=True)):
                step[place, column] = inverse @ slope[place, column]
            value -= 0.5 * np.einsum("ij,ij->j", slope, step)
            coef += step
            if np.all(np.abs(step).max(axis=0) <= REFINED_BELOW * np.abs(coef).max(axis=0)):
                break
        return [
            Snapshot(snapshot.support, coef[place, column], max(float(value[column]), 0.0), np.diag(inverses[column]))
            for column, (place, snapshot) in enumerate(zip(places, snapshots, strict=True))
        ]

    def _slopes_from_residuals(self, used: np.ndarray, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Minus the gradient on the columns ``used``, and the value, for each column of ``coef``."""
        slope = -self.penalty[used, None] * coef
        value = 0.5 * self.penalty[used] @ coef**2
        for rows, block in self.design.blocks(used):
            root = np.sqrt(self.design.weights[rows])[:, None]
            np.multiply(block, root, out=block)
            residual = root * self.target[rows, None] - block @ coef
            slope += block.T @ residual
            value += 0.5 * np.einsum("ij,ij->j", residual, residual)
        return slope, value
