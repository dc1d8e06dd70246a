"""The objective of any smooth convex loss, minimised by Newton's method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pauca.constraints.units import Units
from pauca.design import ChunkedDesign, Design
from pauca.losses import Loss
from pauca.model import Model, Snapshot
from pauca.objectives.approximate_refits import SHRUNK_BY
from pauca.objectives.least_squares import ridge_penalty
from pauca.objectives.mean_losses import Coefficients, mean_losses
from pauca.objectives.merged_rows import Rows
from pauca.objectives.newton_joint_outputs import JointOutputs
from pauca.objectives.newton_one_output import OneOutput
from pauca.objectives.piecewise_refit import exact_minimum
from pauca.objectives.restricted import Restricted, WarmStart
from pauca.solvers.newton import EXACT, Accuracy, Minimum, joined, minimise
from pauca.tolerances import TIED_WITHIN

# Gains and values below this share of the empty model's value are rounding: Newton's method leaves about as much.
ROUNDING_SHARE = 1e-12

# The same for values of losses that vanish at infinite scores only, which a small ridge keeps away from zero.
NEARLY_CERTAIN = 1e-6

# The ridge on standardised columns for ridge=0, as a share of the curvature at the empty model; a larger one for losses
# whose optimum may lie at infinity, or that have flat parts. Too small to change reported digits, it makes the minimum
# unique.
DEFAULT_RIDGE = 1e-13
LARGER_DEFAULT_RIDGE = 1e-8

# Outputs with a joint loss are minimised without their Hessian from this many coefficients on. Previews of models,
# which need no Hessian of their own, go on with that of the model before up to a larger number: corrected by the steps
# it tells better what removals cost (with 10 classes of digits one of eight sizes was 1.2 % above without).
JOINT_FROM = 48
PREVIEWED_FROM = 320

# Targets are taken from zero where they are this many times as far from it as from each other.
FAR_FROM_ZERO = 1e5

Bounds = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class SmoothObjective:
    """``Q(w) = sum_i v_i L(y_i, x_i w + b) + (ridge/2) |w|^2``, summed over outputs if there are several.

    With ``standardize`` the ridge is on standardised coefficients: ``(ridge/2) sum_j (spread_j w_j)^2``.

    Conventions
    -----------
    Coordinates are those of the standardised columns, as in ``LeastSquares``; the intercept is a further column of
    ones, always in and never counted. ``finish`` converts models to the user's units.
    """

    design: Design
    units: Units
    loss: Loss
    """The loss that the user chose, in which objectives are reported."""
    smooth: Loss
    """What is minimised: the loss itself, or its envelope."""
    y: np.ndarray
    """Targets of shape (C, n); classes of shape (n,) for a joint loss."""
    n_outputs: int
    ridge: float
    center: bool
    user_bounds: Bounds | None
    """Lower and upper bounds in the user's units, shape (d,) each."""
    rows: Rows
    """The rows as the model without features sees them."""
    standardize: bool = False
    ridge_by_unit: bool = False
    """Whether a unit of m columns has m times the ridge, relative to the smallest unit: see ``LinearProblem``."""
    origin: float = 0.0
    """What was taken from the user's targets, and is added to intercepts."""

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
        standardize: bool = False,
        ridge_by_unit: bool = False,
    ) -> SmoothObjective:
        """The objective of a design and targets; ``bounds`` are in the user's units."""
        v = design.weights
        outputs = y if y.ndim == 2 else y[None]
        origin = target_origin(loss, outputs, v) if center else 0.0
        if origin:
            y = outputs = outputs - origin
        loss = loss.tuned(outputs, v)
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
            Rows(y, v) if loss.coupled else Rows.of(y, v),
            standardize,
            ridge_by_unit,
            origin,
        )

    @property
    def unmerged_rows(self) -> Rows:
        """All rows that have weight; all rows, if they are coupled by their loss."""
        if self.loss.coupled:
            return self.rows
        return Rows.unmerged(self.y, self.design.weights)

    @property
    def exact(self) -> bool:
        """Whether refits are exact minima of a piecewise linear loss, and values are those of the loss itself."""
        return self.loss.has_lines and not self.ridge and self.user_bounds is None

    @property
    def measured(self) -> Loss:
        """The loss whose values fits have: the smooth one, or the user's where fits are exact."""
        return self.loss if self.exact else self.smooth

    @cached_property
    def may_diverge(self) -> bool:
        """Whether the infimum may lie at infinite scores."""
        return self.smooth.diverges_for(self.rows.y)

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
        return self.minimise(self.rows, np.ones((self.free, len(self.rows.weights))), none, self._null_start(0))

    def minimise(
        self, rows: Rows, columns: np.ndarray, features: np.ndarray, start: WarmStart, accuracy: Accuracy = EXACT
    ) -> Minimum:
        """The minimum on the columns ``features``, given as rows of ``columns`` of shape (q, G).

        Outputs without a joint loss are minimised one by one.
        """
        if not self.exact:
            return self._smooth_minimum(rows, columns, features, start, accuracy)
        width = 1.0 / (self.smooth.smoothness or np.inf)
        outputs = range(self.n_outputs)
        found = [exact_minimum(self.loss, rows, output, columns, start.of_output(output), width) for output in outputs]
        minima = [one for one in found if one is not None]
        if len(minima) == len(found):
            return joined(minima)
        # The value is that of the loss itself, as of the fits that are exact.
        rounded = self._smooth_minimum(rows, columns, features, start, accuracy)
        return replace(
            rounded, value=float(np.sum(self.loss.value(rows.y, rounded.scores) @ rows.weights)), predicted=0.0
        )

    def _smooth_minimum(
        self, rows: Rows, columns: np.ndarray, features: np.ndarray, start: WarmStart, accuracy: Accuracy
    ) -> Minimum:
        """The minimum of the smooth loss."""
        found = self._quick_minimum(rows, columns, features, start, accuracy)
        if found is not None:
            return found
        null_start = self._null_start(len(features))
        if self.smooth.joint or self.n_outputs == 1 or self.smooth.quadratic:
            null_start = replace(null_start, value=self._null_start_value)
            return self._minimise(self.restricted(rows, columns, features), self.smooth, start, null_start, accuracy)
        minima = []
        for output, value in enumerate(self._null_start_values.tolist()):
            problem = self.restricted(replace(rows, y=rows.y[output : output + 1]), columns, features)
            without = replace(null_start.of_output(output), value=value)
            minima.append(self._minimise(problem, self.smooth, start.of_output(output), without, accuracy))
        return joined(minima)

    def _quick_minimum(
        self, rows: Rows, columns: np.ndarray, features: np.ndarray, start: WarmStart, accuracy: Accuracy
    ) -> Minimum | None:
        """The minimum by the steps that suit the number of outputs; None where they lead nowhere or there are none."""
        if self.user_bounds is not None or self.smooth.flat:
            return None
        if self.n_outputs == 1 and not self.smooth.joint:
            return self._one_output(rows, columns, features, start, accuracy)
        if self.smooth.joint and start.coef.size >= (JOINT_FROM if accuracy.renewed else PREVIEWED_FROM):
            together = JointOutputs(self.smooth, rows, columns, self.full_penalty(features))
            start = self._better_start(together, start)
            assert start.value is not None
            hessian = self._known_hessian(rows, columns, features, start)
            return together.minimise(start.coef, start.scores, start.value, accuracy, hessian)
        return None

    def hessian(self, rows: Rows, columns: np.ndarray, features: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """The Hessian at some scores, blocks (C, q, q), or (1, C q, C q) where outputs share a loss."""
        if self.n_outputs == 1 and not self.smooth.joint and not self.smooth.quadratic:
            penalty = self.full_penalty(features)
            return OneOutput(self.smooth, rows.y[0], rows.weights, columns, penalty).hessian(scores)
        return self.restricted(rows, columns, features).hessian(scores, 0.0)

    def _one_output(
        self, rows: Rows, columns: np.ndarray, features: np.ndarray, start: WarmStart, accuracy: Accuracy
    ) -> Minimum | None:
        problem = OneOutput(self.smooth, rows.y[0], rows.weights, columns, self.full_penalty(features))
        start = self._better_start(problem, start)
        assert start.value is not None
        hessian = None if problem.cheap else self._known_hessian(rows, columns, features, start)
        return problem.minimise(start.coef, start.scores, hessian, start.value, accuracy)

    def _known_hessian(
        self, rows: Rows, columns: np.ndarray, features: np.ndarray, start: WarmStart
    ) -> np.ndarray | None:
        """The Hessian near a start as far as it is known, completed."""
        if start.hessian is None:
            return None
        assert start.positions is not None
        assert start.hessian_scores is not None
        if self.smooth.joint and 2 * len(start.positions) < start.coef.shape[1]:
            return None  # to complete it would be nearly all of the work that it saves
        whole: np.ndarray = self.restricted(rows, columns, features).bordered(
            start.hessian_scores, start.hessian, start.positions
        )[0]
        return whole

    def _minimise(
        self, problem: Restricted, loss: Loss, start: WarmStart, null_start: WarmStart, accuracy: Accuracy
    ) -> Minimum:
        """The minimum near a warm start, or from the null start where that has a lower value."""
        if not start.valued:
            start = _lowest_start(problem, start, null_start.value) or null_start
        hessian = None
        if start.hessian is not None and start.positions is not None and start.hessian_scores is not None:
            hessian = problem.bordered(start.hessian_scores, start.hessian, start.positions)
        found = minimise(
            problem, start.coef, scores=start.scores, about=start.value, hessian=hessian, accuracy=accuracy
        )
        easier = None if found.converged else loss.easier()
        if easier is None:
            return found
        smoother = self._minimise(
            problem.with_loss(easier), easier, WarmStart(start.coef), WarmStart(null_start.coef), accuracy
        )
        if not smoother.converged:
            return found  # nor does the way back from there, with as many steps for every loss on it
        again = minimise(problem, smoother.coef, accuracy=accuracy)
        return again if again.value <= found.value else found

    def _null_start(self, n_features: int) -> WarmStart:
        """A start with coefficients of zero and constant scores."""
        coef = np.zeros((self.n_outputs, self.free + n_features))
        start = np.where(np.isfinite(self._constants), self._constants, 0.0)
        coef[:, : self.free] = start - start.mean(axis=0) * self.smooth.joint
        return WarmStart(coef)

    def _better_start(self, problem: OneOutput | JointOutputs, start: WarmStart) -> WarmStart:
        """A start with its value, or the null start where that has a lower one."""
        if start.valued:
            return start
        better = _lowest_start(problem, start, self._null_start_value)
        if better is not None:
            return better
        return replace(self._null_start(start.coef.shape[1] - self.free), value=self._null_start_value)

    @cached_property
    def _null_start_value(self) -> float:
        """The value of the null start, of all outputs."""
        return float(np.sum(self._null_start_values))

    @cached_property
    def _null_start_values(self) -> np.ndarray:
        """The value of the null start for every output, shape (C,), or (1,) for a joint loss."""
        scores = self._null_start(0).coef.sum(axis=1, keepdims=True) + np.zeros(len(self.rows.weights))
        return np.atleast_1d(self.smooth.value(self.rows.y, scores) @ self.rows.weights)

    @cached_property
    def free_penalty(self) -> np.ndarray:
        """A ridge on the intercept, shape (1,) or (0,): none, unless a class without weight would make it infinite."""
        diverges = not np.all(np.isfinite(self._constants))
        return np.full(self.free, LARGER_DEFAULT_RIDGE * (self.smooth.smoothness or 1.0) if diverges else 0.0)

    @cached_property
    def _constants(self) -> np.ndarray:
        """Intercepts to start from, shape (C, 1), or (C, 0) without an intercept."""
        if not self.free:
            return np.zeros((self.n_outputs, 0))
        return self.smooth.constants(self.y, self.design.weights, self.n_outputs)[:, None]

    @property
    def null_value(self) -> float:
        """Q of the model without features."""
        return self.null.value

    @cached_property
    def penalty(self) -> np.ndarray:
        """The ridge in standardised coordinates, shape (d,).

        For ``ridge=0`` there is one too small to matter: it makes the minimum unique for separable classes, dependent
        columns in a group, or flat parts of a loss.
        """
        design = self.design
        if not self.ridge:
            typical = self.smooth.typical_curvature(self.rows.y, self.null.scores, self.rows.weights)
            share = LARGER_DEFAULT_RIDGE if self.smooth.flat or self.may_diverge else DEFAULT_RIDGE
            return np.full(design.n_features, share * (typical or 1.0))
        penalty = ridge_penalty(design, self.ridge, standardize=self.standardize)
        return penalty * self.units.relative_sizes()[self.units.owner] if self.ridge_by_unit else penalty

    @property
    def negligible(self) -> float:
        """Gains up to this are rounding."""
        return ROUNDING_SHARE * self.null_value

    @property
    def perfect_below(self) -> float:
        """Values up to this are a perfect fit.

        Losses that vanish at infinite scores only are kept above zero by the small ridge. Without another one classes
        are perfectly separated as soon as no row can be on the wrong side, and larger scores lead on to zero.
        """
        share = (NEARLY_CERTAIN if self.may_diverge else ROUNDING_SHARE) * self.null_value
        if self.ridge or self.user_bounds is not None:
            return share
        weights = self.design.weights
        return max(share, self.smooth.undecided * float(weights[weights > 0].min()))

    @cached_property
    def free(self) -> int:
        """Number of columns before those of the units: one for an intercept."""
        return int(self.center and not self.smooth.shift_invariant)

    def restricted(
        self, rows: Rows, columns: np.ndarray, features: np.ndarray, *, offset: np.ndarray | None = None
    ) -> Restricted:
        """The objective on the columns ``features``, given as rows of ``columns`` (after a row of ones, if any)."""
        free = len(columns) - len(features)
        unbounded = np.full(free, np.inf)
        bounds = None
        if self.bounds is not None:
            lower, upper = self.bounds
            bounds = np.concatenate([-unbounded, lower[features]]), np.concatenate([unbounded, upper[features]])
        return Restricted(
            self.smooth,
            rows,
            columns,
            self.full_penalty(features)[self.free - free :],
            bounds=bounds,
            offset=offset,
        )

    def full_penalty(self, features: np.ndarray) -> np.ndarray:
        """The ridge of the intercept, if there is one, and of the columns ``features``."""
        # The penalty depends on the empty model, which must be fitted without it.
        return np.concatenate([self.free_penalty, self.penalty[features] if len(features) else np.zeros(0)])

    def reported(self, rows: Rows, minimum: Minimum, features: np.ndarray) -> float:
        """Q with the loss and the ridge that the user chose."""
        if self.exact:
            return minimum.value
        coef = minimum.coef[:, self.free :]
        loss = float(np.sum(self.loss.value(rows.y, minimum.scores) @ rows.weights))
        return loss + self._shrinkage(features, coef)

    def _shrinkage(self, features: np.ndarray, coef: np.ndarray) -> float:
        """What the user's ridge adds to Q, for coefficients of shape (C, q) in the search's coordinates."""
        return 0.5 * float(np.sum(self.penalty[features] * coef * coef)) if self.ridge else 0.0

    def finish(self, snapshots: Sequence[Snapshot]) -> list[Model]:
        """Models in the user's units, with the objectives of the coefficients that are returned."""
        returned = [self._returned(snapshot) for snapshot in snapshots]
        if not isinstance(self.design, ChunkedDesign):  # rows in chunks are not read again
            losses = mean_losses(self.design, self.loss, self.y, returned)
            snapshots = [
                replace(snapshot, reported=loss + self._shrinkage(one.features, one.coef))
                for snapshot, one, loss in zip(snapshots, returned, losses, strict=True)
            ]
        return [self._model(snapshot) for snapshot in snapshots]

    def _returned(self, snapshot: Snapshot) -> Coefficients:
        """What a snapshot becomes, in the coordinates of the design."""
        assert snapshot.intercept is not None
        features = self.units.of(snapshot.support)
        coef = self._in_user_units(snapshot.coef, features) * self.design.spread[features]
        return Coefficients(features, coef, snapshot.intercept)

    def _in_user_units(self, coef: np.ndarray, features: np.ndarray) -> np.ndarray:
        coef = coef / self.design.spread[features]
        if self.user_bounds is not None:
            coef = np.clip(coef, self.user_bounds[0][features], self.user_bounds[1][features])
        return coef

    def _no_worse_than_empty(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot, or with coefficients of zero where the smoothing of a loss has cost more than they gain."""
        assert snapshot.reported is not None
        empty = self.reported(self.rows, self.null, np.zeros(0, dtype=np.intp))
        features = self.units.of(snapshot.support)
        if snapshot.reported <= empty or not self._may_be_zero(features):
            return snapshot
        intercept = self.null.coef[:, 0] if self.free else np.zeros(self.n_outputs)
        return replace(snapshot, coef=np.zeros_like(snapshot.coef), intercept=intercept, reported=empty)

    def _may_be_zero(self, features: np.ndarray) -> bool:
        if self.user_bounds is None:
            return True
        lower, upper = (bounds[features] for bounds in self.user_bounds)
        return bool(np.all((lower <= 0) & (upper >= 0)))

    def _model(self, snapshot: Snapshot) -> Model:
        snapshot = self._no_worse_than_empty(snapshot)
        assert snapshot.intercept is not None
        assert snapshot.importance is not None
        assert snapshot.reported is not None
        features = self.units.of(snapshot.support)
        order = np.argsort(features)
        features = features[order]
        coef = self._in_user_units(snapshot.coef[:, order], features)
        intercept = snapshot.intercept - coef @ self.design.mean[features] + self.origin
        units = np.array(snapshot.support, dtype=np.intp)
        by_unit = np.argsort(units)
        single = self.n_outputs == 1
        at_bound = self._at_bound(coef, features)
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
            shrinkage=self._shrinkage(features, snapshot.coef[:, order]),
            at_bound=at_bound if at_bound is None or not single else at_bound[0],
        )

    def _at_bound(self, coef: np.ndarray, features: np.ndarray) -> np.ndarray | None:
        """Which coefficients in the user's units are at a bound, shape (C, m); None if none is."""
        if self.user_bounds is None:
            return None
        ends = [bound[features] for bound in self.user_bounds]
        found = np.any([np.isclose(coef, end, rtol=TIED_WITHIN, atol=0.0) for end in ends], axis=0)
        return found if found.any() else None


def _lowest_start(
    problem: OneOutput | JointOutputs | Restricted, start: WarmStart, null_value: float | None
) -> WarmStart | None:
    """A start with its value: coefficients of another model may be far off for this one, and others are better.

    None where all of them are above ``null_value``.
    """
    known = [(coef, problem.scores(coef)) for coef in (start.coef, start.unchanged) if coef is not None]
    if isinstance(problem, JointOutputs):
        known += [(share * coef, share * scores) for share in SHRUNK_BY for coef, scores in known]
    values = [problem.value(*one) for one in known]
    best = min(range(len(values)), key=lambda place: np.inf if math.isnan(values[place]) else values[place])
    if null_value is not None and not values[best] <= null_value:
        return None
    known_of_hessian = start.hessian, start.hessian_scores, start.positions
    return WarmStart(*known[best], values[best], *known_of_hessian, start.basis, start.unchanged)


def target_origin(loss: Loss, y: np.ndarray, weights: np.ndarray) -> float:
    """A target near all others, to be subtracted if they are so far from zero that scores would be rounded; else 0."""
    if not loss.of_residuals:
        return 0.0
    used = y[:, weights > 0]
    origin = float(np.median(used))
    return origin if abs(origin) > FAR_FROM_ZERO * float(np.abs(used - origin).max()) else 0.0
