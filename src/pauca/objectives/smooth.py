"""Any convex loss, many columns: the objective of everything that has no closed forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pauca.constraints.units import Units
from pauca.design import Design
from pauca.losses import Loss
from pauca.model import Model, Snapshot
from pauca.objectives.restricted import Restricted
from pauca.objectives.warm_start import WarmStart
from pauca.solvers.newton import LAST_STEP_BELOW, Minimum, minimise

# Gains below this share of the empty model's value are rounding, and values below it nothing.
ROUNDING_SHARE = 1e-12

# The same for values of losses that vanish at infinite scores only.
NEARLY_CERTAIN = 1e-6

# The ridge on standardised columns where the user wants none, as a share of the curvature at the empty model: for
# losses whose optimum may lie at infinity, for those with flat pieces, and for all others.
UNSEEN_RIDGE = 1e-8
UNSEEN_ON_FLAT = 1e-8
UNSEEN_ELSEWHERE = 1e-13

Bounds = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class SmoothObjective:
    """``Q(w) = sum_i v_i L(y_i, x_i w + b) + (ridge/2) |w|^2``, summed over outputs if there are several.

    Conventions
    -----------
    Coordinates are those of the standardised columns, as in ``LeastSquares``; the intercept is a further column of
    ones, always in and never counted. ``finish`` carries models back to the user's units.
    """

    design: Design
    units: Units
    loss: Loss
    """The loss as the user means it, in which objectives are reported."""
    smooth: Loss
    """What is minimised: the loss itself, or its envelope."""
    y: np.ndarray
    """Targets of shape (C, n); classes of shape (n,) where all outputs share one loss."""
    n_outputs: int
    ridge: float
    center: bool
    user_bounds: Bounds | None
    """Lower and upper bounds in the user's units, shape (d,) each."""
    idle: np.ndarray | None
    """Rows without weight, if there are any."""

    @classmethod
    def of(
        cls,
        design: Design,
        y: np.ndarray,
        loss: Loss,
        *,
        units: Units | None = None,
        n_outputs: int | None = None,
        ridge: float = 0.0,
        center: bool = True,
        bounds: Bounds | None = None,
    ) -> SmoothObjective:
        """The objective of a design and targets; ``bounds`` are in the user's units."""
        v = design.weights
        outputs = y if y.ndim == 2 else y[None]
        loss = loss.tuned(outputs, v)
        idle = None if np.all(v > 0) else np.flatnonzero(v == 0)
        smooth = loss.smoothed(outputs, v, center=center)
        return cls(
            design,
            (units or Units.columns(design.n_features)).only(design.usable),
            loss,
            smooth,
            y,
            n_outputs or len(outputs),
            ridge,
            center,
            bounds,
            idle,
        )

    @cached_property
    def bounds(self) -> Bounds | None:
        """Lower and upper bounds in standardised coordinates, shape (d,) each."""
        if self.user_bounds is None:
            return None
        lower, upper = (np.where(np.isfinite(b), b, 0.0) * self.design.spread for b in self.user_bounds)
        return (
            np.where(np.isfinite(self.user_bounds[0]), lower, -np.inf),
            np.where(np.isfinite(self.user_bounds[1]), upper, np.inf),
        )

    @cached_property
    def null(self) -> Minimum:
        """The model without features."""
        none = np.zeros(0, dtype=np.intp)
        return self.minimise(np.ones((self.free, self.design.n_rows)), none, self._plain(0))

    def minimise(
        self, columns: np.ndarray, features: np.ndarray, guess: WarmStart, within: float = LAST_STEP_BELOW
    ) -> Minimum:
        """The minimum on the columns ``features``, given as rows of ``columns``.

        Outputs that do not share a loss are minimised one by one. ``within`` is as in
        ``pauca.solvers.newton.minimise``.
        """
        plain = self._plain(len(features))
        if self.smooth.joint or self.n_outputs == 1 or self.smooth.quadratic:
            plain = replace(plain, about=float(np.sum(self._plain_values)))
            return self._minimise(self.restricted(columns, features), self.smooth, guess, plain, within)
        found = []
        for output, value in enumerate(self._plain_values.tolist()):
            problem = self.restricted(columns, features, y=self.y[output : output + 1])
            start = replace(plain.of_output(output), about=value)
            found.append(self._minimise(problem, self.smooth, guess.of_output(output), start, within))
        return Minimum(
            np.concatenate([one.coef for one in found]),
            np.concatenate([one.scores for one in found]),
            sum(one.value for one in found),
            np.concatenate([one.hessian for one in found]),
            all(one.converged for one in found),
        )

    def _minimise(self, problem: Restricted, loss: Loss, guess: WarmStart, plain: WarmStart, within: float) -> Minimum:
        """The minimum near a guess, or from the plain one where that is better."""
        if guess.about is None:
            scores = problem.scores(guess.coef)
            value = problem.value(guess.coef, scores)
            # What served another model may be far off for this one.
            better = plain.about is None or value <= plain.about
            guess = replace(guess, scores=scores, about=value) if better else plain
        hessian = None
        if guess.known is not None and guess.places is not None and guess.known_at is not None:
            hessian = problem.bordered(guess.known_at, guess.known, guess.places)
        found = minimise(problem, guess.coef, scores=guess.scores, about=guess.about, hessian=hessian, within=within)
        easier = None if found.converged else loss.easier()
        if easier is None:
            return found
        smoother = self._minimise(
            problem.with_loss(easier), easier, WarmStart(guess.coef), WarmStart(plain.coef), within
        )
        again = minimise(problem, smoother.coef, within=within)
        return again if again.value <= found.value else found

    def _plain(self, n_features: int) -> WarmStart:
        """The model that makes nothing of its features."""
        coef = np.zeros((self.n_outputs, self.free + n_features))
        start = np.where(np.isfinite(self._constants), self._constants, 0.0)
        coef[:, : self.free] = start - start.mean(axis=0) * self.smooth.joint
        return WarmStart(coef)

    @cached_property
    def _plain_values(self) -> np.ndarray:
        """The value of that model for every output, shape (C,), or (1,) where they share a loss."""
        scores = self._plain(0).coef.sum(axis=1, keepdims=True) + np.zeros(self.design.n_rows)
        return np.atleast_1d(self.smooth.value(self.y, scores) @ self.design.weights)

    @cached_property
    def free_penalty(self) -> np.ndarray:
        """A ridge on the intercept, shape (1,) or (0,): none, unless a class without weight would make it infinite."""
        runs_away = not np.all(np.isfinite(self._constants))
        return np.full(self.free, UNSEEN_RIDGE * (self.smooth.smoothness or 1.0) if runs_away else 0.0)

    @cached_property
    def _constants(self) -> np.ndarray:
        """Intercepts to start from, shape (C, 1), or (C, 0) without an intercept."""
        if not self.center:
            return np.zeros((self.n_outputs, 0))
        return self.smooth.constants(self.y, self.design.weights, self.n_outputs)[:, None]

    @property
    def null_value(self) -> float:
        """Q of the model without features."""
        return self.null.value

    @cached_property
    def penalty(self) -> np.ndarray:
        """The ridge in standardised coordinates, shape (d,).

        Where none is wanted there is one all the same, too small to be seen: it gives a definite answer where the data
        leave it open, as with classes that can be separated, dependent columns in a group, or flat pieces of a loss.
        """
        design = self.design
        if not self.ridge:
            weights = design.weights
            typical = self.smooth.typical_curvature(self.y, self.null.scores, weights)
            share = UNSEEN_ON_FLAT if self.smooth.flat else UNSEEN_ELSEWHERE
            share = UNSEEN_RIDGE if self.smooth.may_diverge else share
            return np.full(design.n_features, share * (typical or 1.0))
        penalty = np.zeros(design.n_features)
        with np.errstate(over="ignore"):
            np.divide(self.ridge, design.spread**2, out=penalty, where=design.usable)
        return penalty

    @property
    def negligible(self) -> float:
        """Gains up to this are taken for zero."""
        return ROUNDING_SHARE * self.null_value

    @property
    def perfect_below(self) -> float:
        """Values up to this are taken for zero.

        Losses that vanish at infinite scores only come no nearer than the ridge that is always there lets them.
        """
        return (NEARLY_CERTAIN if self.smooth.may_diverge else ROUNDING_SHARE) * self.null_value

    @property
    def free(self) -> int:
        """Number of columns before those of the units: one for an intercept."""
        return int(self.center)

    def restricted(
        self,
        columns: np.ndarray,
        features: np.ndarray,
        *,
        offset: np.ndarray | None = None,
        y: np.ndarray | None = None,
    ) -> Restricted:
        """The objective on the columns ``features``, given as rows of ``columns`` (after a row of ones, if any)."""
        free = len(columns) - len(features)
        open_ends = np.full(free, np.inf)
        bounds = None
        if self.bounds is not None:
            lower, upper = self.bounds
            bounds = np.concatenate([-open_ends, lower[features]]), np.concatenate([open_ends, upper[features]])
        return Restricted(
            self.smooth,
            self.y if y is None else y,
            self.design.weights,
            columns,
            np.concatenate([self.free_penalty[:free], self._penalty_of(features)]),
            idle=self.idle,
            bounds=bounds,
            offset=offset,
        )

    def _penalty_of(self, features: np.ndarray) -> np.ndarray:
        # The penalty is set from the empty model, which must be fitted without knowing it.
        return self.penalty[features] if len(features) else np.zeros(0)

    def reported(self, minimum: Minimum, features: np.ndarray) -> float:
        """Q by the loss as the user means it, and with no ridge but the user's."""
        coef = minimum.coef[:, self.free :]
        loss = float(np.sum(self.loss.value(self.y, minimum.scores) @ self.design.weights))
        return loss + (0.5 * float(np.sum(self.penalty[features] * coef * coef)) if self.ridge else 0.0)

    def finish(self, snapshots: Sequence[Snapshot]) -> list[Model]:
        """Models in the user's units."""
        return [self._model(snapshot) for snapshot in snapshots]

    def _model(self, snapshot: Snapshot) -> Model:
        assert snapshot.intercept is not None
        assert snapshot.importance is not None
        assert snapshot.reported is not None
        features = self.units.of(snapshot.support)
        order = np.argsort(features)
        features = features[order]
        coef = snapshot.coef[:, order] / self.design.spread[features]
        if self.user_bounds is not None:
            coef = np.clip(coef, self.user_bounds[0][features], self.user_bounds[1][features])
        intercept = snapshot.intercept - coef @ self.design.mean[features]
        units = np.array(snapshot.support, dtype=np.intp)
        by_unit = np.argsort(units)
        single = self.n_outputs == 1
        return Model(
            support=features,
            coef=coef[0] if single else coef,
            intercept=float(intercept[0]) if single else intercept,
            objective=snapshot.reported,
            importance=snapshot.importance[by_unit],
            units=units[by_unit],
            diverged=snapshot.diverged,
            importance_is_exact=False,
            converged=snapshot.converged,
        )
