"""About the minima of models near a fitted one, many at once: with one column more, or without one of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pauca.compiled import plain
from pauca.design.base import CACHED_NUMBERS
from pauca.losses import Loss
from pauca.losses.compiled_curves import LossKernels
from pauca.objectives.merged_rows import Rows
from pauca.solvers.factorisation import inverse_or_nearest
from pauca.solvers.newton import SMOOTH_RISE, Accuracy
from pauca.solvers.quasi_newton import correct_inverses
from pauca.tolerances import DEPENDENT_BELOW, TINY

# A step whose slope has risen too far is shortened at most so many times: what has not come near its minimum by then is
# no candidate.
MOST_SHORTENINGS = 5

# Multiples of a model's coefficients that are tried where a unit of many classes is removed. Of classes that are nearly
# separated the coefficients without a unit may be far smaller: without these three of the sizes to 20 of ten digits
# were up to twice as far from zero.
SHRUNK_BY = (0.5, 0.2, 0.1)

# Models are taken together while their scores stay in the cache, and their inverse Hessians are no more than so many
# numbers.
BATCH_INVERSE_NUMBERS = 1 << 20

# Scores of a model that are more numbers than this are not kept: a product with its columns takes far less time than
# the steps, and those of many models more memory than all else.
LONG_SCORES = 1 << 17

PREVIEWS = LossKernels("pauca.objectives.kernels", "preview")

NO_COLUMNS, NO_PENALTY, NO_POSITIONS = np.zeros((0, 0)), np.zeros(0), np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A model at its minimum on rows that may be merged.

    Conventions
    -----------
    C outputs, q columns (an intercept is a column of ones), G rows; C is 1 unless all outputs share one loss
    """

    loss: Loss
    rows: Rows
    columns: np.ndarray
    """Shape (q, G)."""
    penalty: np.ndarray
    """Shape (q,), the same for all outputs."""
    coef: np.ndarray
    """Shape (C, q)."""
    scores: np.ndarray
    """Shape (C, G)."""
    value: float
    inverse: np.ndarray
    """The inverse Hessian, shape (C q, C q), one output after the other."""

    def with_each(self, new: np.ndarray, penalty: np.ndarray, accuracy: Accuracy) -> Previews:
        """A few quasi-Newton steps to the minimum with each of some further columns, of shape (b, G).

        The inverse Hessian is bordered by the new column and corrected by the steps.
        """
        batches = self._batches(len(new), len(self.columns) + 1)
        return Previews.joined([self._some(new[some], penalty[some], NO_POSITIONS, accuracy) for some in batches])

    def without_each(self, positions: np.ndarray, accuracy: Accuracy) -> Previews:
        """The same without each of some of its columns, whose coefficients are zero in what is returned."""
        batches = self._batches(len(positions), len(self.columns))
        return Previews.joined([self._some(NO_COLUMNS, NO_PENALTY, positions[some], accuracy) for some in batches])

    def _some(self, new: np.ndarray, penalty: np.ndarray, positions: np.ndarray, accuracy: Accuracy) -> Previews:
        """With each new column or, if there is none, without each of some positions."""
        found = self._compiled(new, penalty, positions, accuracy)
        if found is None:
            steps = _Steps.added(self, new, penalty) if len(new) else _Steps.removed(self, positions)
            found = steps.run(accuracy)
        # Scores that would take much memory are not kept.
        return replace(found, scores=None) if self.scores.size > LONG_SCORES else found

    def _compiled(
        self, new: np.ndarray, penalty: np.ndarray, positions: np.ndarray, accuracy: Accuracy
    ) -> Previews | None:
        """The same by compiled kernels; None where they are not used, or there are none for the loss."""
        (q, n), rows = self.columns.shape, self.rows
        b, p = (len(new), q + 1) if len(new) else (len(positions), q)
        if not q:
            return None
        given = PREVIEWS.given(self.loss, rows.y[0], rows.weights, self.columns, self.scores[0], instead_of=b * n)
        if given is None:
            return None
        coef, scores, inverse = np.empty((b, 1, p)), np.empty((b, 1, n)), np.empty((b, p, p))
        value, predicted = np.empty((2, b))
        given.kernels.preview(
            given.data,
            plain(self.penalty),
            plain(self.coef[0]),
            float(self.value),
            plain(self.inverse),
            given.in_order(new) if len(new) else new,
            plain(penalty),
            positions,
            float(accuracy.within),
            accuracy.most_steps,
            accuracy.renewed,
            coef[:, 0],
            scores[:, 0],
            value,
            inverse,
            predicted,
        )
        return Previews(coef, given.of_data(scores), value, inverse, predicted) if given.kept() else None

    def _batches(self, count: int, size: int) -> list[slice]:
        outputs = len(self.coef)
        by_scores = CACHED_NUMBERS // (outputs * self.columns.shape[1])
        at_once = max(1, min(by_scores, BATCH_INVERSE_NUMBERS // (outputs * size) ** 2))
        return [slice(start, start + at_once) for start in range(0, count, at_once)]


@dataclass(frozen=True, eq=False)
class Previews:
    """Where some steps have led b models to.

    Conventions
    -----------
    coef : (b, C, q), a column of a model's own last; scores : (b, C, G)
    """

    coef: np.ndarray
    scores: np.ndarray | None
    """None where they would take much memory, and are to be computed again."""
    value: np.ndarray
    """Values there, shape (b,)."""
    inverse: np.ndarray | list[np.ndarray]
    """About the inverse Hessians, b of shape (C q, C q), one output after the other."""
    predicted: np.ndarray
    """What one more step would gain, shape (b,)."""

    @classmethod
    def joined(cls, parts: list[Previews]) -> Previews:
        """Several batches as one; inverse Hessians, which may be large, are not copied for it."""
        if len(parts) == 1:
            return parts[0]
        scores = [part.scores for part in parts if part.scores is not None]
        return cls(
            np.concatenate([part.coef for part in parts]),
            np.concatenate(scores) if scores else None,
            np.concatenate([part.value for part in parts]),
            [inverse for part in parts for inverse in part.inverse],
            np.concatenate([part.predicted for part in parts]),
        )

    def removal_costs(self) -> np.ndarray:
        """By how much each value would rise without each column, to second order, shape (b, q).

        That is ``w_i' (A_ii)^-1 w_i / 2`` with A the inverse Hessian.
        """
        _, outputs, size = self.coef.shape
        if outputs == 1:
            variance = np.einsum("bii->bi", np.asarray(self.inverse))
            return 0.5 * self.coef[:, 0] ** 2 / np.maximum(variance, TINY)
        blocks = (inverse.reshape(outputs, size, outputs, size) for inverse in self.inverse)
        own = np.array([np.einsum("cidi->icd", block) for block in blocks])
        coef = self.coef.transpose(0, 2, 1)
        return 0.5 * np.einsum("bic,bic->bi", coef, _solved(own, coef))


class _Steps:
    """Steps of several models at a time, which share q columns; each may have one of its own, and lack a shared one.

    Conventions
    -----------
    coef, gradient : (b, p), those of the shared columns first, one output after the other, then of a column of its own
    scores : (C, b, G); inverse : (b, p, p), zero for coefficients that stay zero
    """

    def __init__(
        self,
        model: FittedModel,
        coef: np.ndarray,
        inverse: np.ndarray,
        new: np.ndarray | None = None,
        new_penalty: np.ndarray | None = None,
    ) -> None:
        b, outputs, rows = len(coef), len(model.coef), model.rows
        self._loss, self._columns, self._weights, self._value = model.loss, model.columns, rows.weights, model.value
        self._new = new
        self._shape = outputs, b, len(rows.weights)
        # Targets of all models, as the loss takes them: one line, or a line for each model.
        self._y = np.tile(rows.y, b) if model.loss.joint else np.broadcast_to(rows.y[0], (b, len(rows.weights)))
        self._coef, self._inverse = coef, inverse
        self._penalty = np.empty_like(coef)
        self._penalty[:, : model.coef.size] = np.concatenate([model.penalty] * outputs)
        if new_penalty is not None:
            self._penalty[:, model.coef.size :] = new_penalty[:, None]

    @classmethod
    def added(cls, model: FittedModel, new: np.ndarray, penalty: np.ndarray) -> _Steps:
        """From the minimum of a model towards those with one more column each."""
        outputs, size = model.coef.shape
        coef = np.zeros((len(new), outputs * (size + 1)))
        coef[:, : outputs * size] = model.coef.ravel()
        derivative, curvature = model.loss.slopes(model.rows.y if model.loss.joint else model.rows.y[0], _own(model))
        steps = cls(model, coef, _bordered(model, curvature, new, penalty), new, penalty)
        steps._scores = np.broadcast_to(model.scores[:, None], steps._shape)
        steps._gradient = np.zeros_like(coef)
        steps._gradient[:, outputs * size :] = new @ np.atleast_2d(model.rows.weights * derivative).T
        return steps

    @classmethod
    def removed(cls, model: FittedModel, positions: np.ndarray) -> _Steps:
        """From where the quadratic around a minimum has its own minimum without a column."""
        outputs, size = model.coef.shape
        out = np.arange(outputs) * size + positions[:, None]
        across = model.inverse[:, out].transpose(1, 0, 2)
        ratio = _solved(across[np.arange(len(out))[:, None], out], across.transpose(0, 2, 1)).transpose(0, 2, 1)
        coef = model.coef.ravel() - np.einsum("bpc,bc->bp", ratio, model.coef.ravel()[out])
        inverse = model.inverse - np.matmul(ratio, across.transpose(0, 2, 1))
        each = np.arange(len(out))[:, None]
        coef[each, out], inverse[each, out], inverse[each, :, out] = 0.0, 0.0, 0.0
        steps = cls(model, coef, inverse)
        steps._scores = steps._scores_of(coef)
        if model.loss.joint:
            steps._shrink()
        with np.errstate(over="ignore", invalid="ignore"):  # the quadratic may lead out of the domain of the loss
            steps._gradient = steps._gradient_at(steps._coef, steps._scores)
        return steps

    _scores: np.ndarray
    _gradient: np.ndarray

    def _shrink(self) -> None:
        """Take the best of a few multiples of the coefficients: without a unit a model is less certain of its classes.

        Where these were nearly separated, the quadratic leads to scores that are certain of the wrong ones.
        """
        coef, scores, least = self._coef, self._scores, self._values()
        best = np.ones(len(coef))
        for share in SHRUNK_BY:
            self._coef, self._scores = share * coef, share * scores
            values = self._values()
            lower = values < least
            best[lower], least = share, np.where(lower, values, least)
        self._coef, self._scores = best[:, None] * coef, best[:, None] * scores

    def run(self, accuracy: Accuracy) -> Previews:
        """Steps until each is predicted to gain little, and what the next step is predicted to gain."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            stuck = np.zeros(len(self._coef), dtype=bool)
            for taken in range(accuracy.most_steps + 1):
                step = -np.matmul(self._inverse, self._gradient[:, :, None])[:, :, 0]
                predicted = -0.5 * np.vecdot(self._gradient, step)
                (going,) = ((predicted > accuracy.within * self._value) & ~stuck).nonzero()
                if taken == accuracy.most_steps or not len(going):
                    break
                every = len(going) == len(step)
                stuck[self._move(going, *((step, predicted) if every else (step[going], predicted[going])))] = True
            values = self._values()
            if accuracy.renewed:
                predicted = np.fmax(predicted, self._gain_of_one())
        most = 0.5 * values
        if self._loss.joint and self._new is not None:
            # Where classes are nearly separated, steps may be short and predict far more than all of them gain.
            most = np.minimum(most, np.maximum(self._value - values, 0.0))
        predicted = np.where(predicted > 0, np.minimum(predicted, most), 0.0)
        return self._previews(values, predicted)

    def _gain_of_one(self) -> np.ndarray:
        """What a step of the one best coefficient would gain, shape (b,), by the curvature there.

        An inverse Hessian that is far off predicts too little; this does not depend on it.
        """
        b, shared = len(self._coef), self._shape[0] * len(self._columns)
        curved = self._loss.curvature(self._targets(b), self._lines(self._scores)).reshape(self._shape) * self._weights
        own = (curved @ (self._columns * self._columns).T).transpose(1, 0, 2).reshape(b, -1) + self._penalty[:, :shared]
        moves = np.einsum("bii->bi", self._inverse)[:, :shared] > 0
        gains = 0.5 * self._gradient[:, :shared] ** 2 / own
        return np.max(np.where(moves & (own > 0), gains, 0.0), axis=1, initial=0.0)

    def _previews(self, values: np.ndarray, predicted: np.ndarray) -> Previews:
        """What has been reached, each coefficient of a column of its own beside those of the same output."""
        outputs, b, _ = self._shape
        coef = self._coef
        if self._new is not None and outputs > 1:
            order = np.arange(len(coef[0]))
            order = np.hstack([order[:-outputs].reshape(outputs, -1), order[-outputs:, None]]).ravel()
            coef, self._inverse = coef[:, order], self._inverse[:, order[:, None], order]
        scores = self._scores.transpose(1, 0, 2)
        return Previews(coef.reshape(b, outputs, -1), scores, values, self._inverse, predicted)

    def _move(self, going: np.ndarray, step: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """Some models along their steps, each as far as the slope does not rise too much.

        Returns those for which no length will do: they stay where they are, and every further step would too.
        """
        every = len(going) == len(self._coef)
        some: slice | np.ndarray = slice(None) if every else going
        change, before, start = self._scores_of(step, some), self._coef[some], self._scores[:, some]
        coef, scores = before + step, start + change
        gradient = self._gradient_at(coef, scores, some)
        stuck = self._shorten(_Moving(going, step, change, predicted, before, start), coef, scores, gradient)
        gradient_before, inverse = self._gradient[some], self._inverse[some]
        if len(stuck):
            coef[stuck], scores[:, stuck], gradient[stuck] = before[stuck], start[:, stuck], gradient_before[stuck]
        correct_inverses(inverse, coef - before, gradient - gradient_before)
        if every:
            self._coef, self._scores, self._gradient = coef, scores, gradient
        else:
            self._coef[going], self._gradient[going], self._inverse[going] = coef, gradient, inverse
            self._scores = self._scores if self._scores.flags.writeable else self._scores.copy()
            self._scores[:, going] = scores
        return going[stuck]

    def _shorten(self, moving: _Moving, coef: np.ndarray, scores: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Shorten the steps at whose ends the slope is too high, in place; returns those that are still too long."""
        slope, twice = np.vecdot(gradient, moving.step), 2 * moving.predicted
        (open_,) = (~(slope <= SMOOTH_RISE * twice)).nonzero()
        slope, twice, reach = slope[open_], twice[open_], np.ones((len(open_), 1))
        for _ in range(MOST_SHORTENINGS):
            if not len(open_):
                break
            # The secant's zero, between the start and here.
            share = np.where(np.isfinite(slope), twice / (slope + twice), 0.1)
            reach *= np.minimum(np.maximum(share, 0.1), 0.7)[:, None]
            step = moving.step[open_]
            there = moving.before[open_] + reach * step
            coef[open_], scores_there = there, moving.start[:, open_] + reach * moving.change[:, open_]
            scores[:, open_] = scores_there
            gradient[open_] = slopes = self._gradient_at(there, scores_there, moving.places[open_])
            slope = np.vecdot(slopes, step)
            (far,) = (~(slope <= SMOOTH_RISE * twice)).nonzero()
            open_, slope, twice, reach = open_[far], slope[far], twice[far], reach[far]
        return open_

    def _scores_of(self, coef: np.ndarray, some: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Scores of some of the models, shape (C, b, G)."""
        outputs, shared = self._shape[0], self._shape[0] * len(self._columns)
        scores = coef[:, :shared].reshape(len(coef), outputs, -1).transpose(1, 0, 2) @ self._columns
        if self._new is not None:
            scores += coef[:, shared:].T[:, :, None] * self._new[some]
        return scores

    def _gradient_at(self, coef: np.ndarray, scores: np.ndarray, some: np.ndarray | slice = slice(None)) -> np.ndarray:
        b, shared = len(coef), self._shape[0] * len(self._columns)
        weighted = self._loss.derivative(self._targets(b), self._lines(scores)).reshape(scores.shape) * self._weights
        gradient = self._penalty[some] * coef
        gradient[:, :shared] += (weighted @ self._columns.T).transpose(1, 0, 2).reshape(b, -1)
        if self._new is not None:
            gradient[:, shared:] += np.vecdot(weighted, self._new[some]).T
        return gradient

    def _values(self) -> np.ndarray:
        losses = self._loss.value(self._targets(len(self._coef)), self._lines(self._scores)).reshape(self._shape[1:])
        return losses @ self._weights + 0.5 * np.vecdot(self._penalty * self._coef, self._coef)

    def _targets(self, count: int) -> np.ndarray:
        """Targets of all rows of so many models, which are alike for all."""
        return self._y[: count * self._shape[2]] if self._loss.joint else self._y[:count]

    def _lines(self, scores: np.ndarray) -> np.ndarray:
        """Scores as the loss takes them: all models in one line for each output, or a line for each model."""
        return scores.reshape(self._shape[0], -1) if self._loss.joint else scores[0]


class _Moving(NamedTuple):
    """Models on their way along a step."""

    places: np.ndarray
    """Which of all models these are, shape (b,)."""
    step: np.ndarray
    change: np.ndarray
    """What the steps change of the scores."""
    predicted: np.ndarray
    before: np.ndarray
    """Their coefficients at the start."""
    start: np.ndarray
    """Their scores at the start."""


def _own(model: FittedModel) -> np.ndarray:
    """The scores of a model as its loss takes them."""
    return model.scores if model.loss.joint else model.scores[0]


def _bordered(model: FittedModel, curvature: np.ndarray, new: np.ndarray, penalty: np.ndarray) -> np.ndarray:
    """Inverse Hessians with the rows and columns of one more column each, by what the model leaves of it."""
    across, own = (_joint_border if model.loss.joint else _border)(model, curvature, new)
    b, old, outputs = across.shape
    places = np.arange(outputs)
    own[:, places, places] += penalty[:, None]
    regressed = model.inverse @ across
    left = own - across.transpose(0, 2, 1) @ regressed
    diagonal = own[:, places, places]
    if outputs == 1:
        left = 1.0 / np.maximum(left, DEPENDENT_BELOW * own)
    else:
        left[:, places, places] += DEPENDENT_BELOW * diagonal
        left = inverse_or_nearest(left)
    whole = np.empty((b, old + outputs, old + outputs))
    share = regressed @ left
    np.matmul(share, regressed.transpose(0, 2, 1), out=whole[:, :old, :old])
    whole[:, :old, :old] += model.inverse
    whole[:, :old, old:] = -share
    whole[:, old:, :old] = -share.transpose(0, 2, 1)
    whole[:, old:, old:] = left
    return whole


def _border(model: FittedModel, curvature: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The Hessian between the columns of a model and each new one, (b, q, 1), and of each with itself, (b, 1, 1)."""
    weighted = new * (model.rows.weights * curvature)
    image = model.loss.coupled_image(model.scores[0], new)
    if image is not None:
        weighted -= image
    own = np.vecdot(weighted, new)
    return (weighted @ model.columns.T)[:, :, None], own[:, None, None]


def _joint_border(model: FittedModel, curvature: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same where C outputs share a loss, shapes (b, C q, C) and (b, C, C).

    The Hessian of a row is ``diag(h) - u u'``. As in the Hessian of the model, the curvature of equal changes of all
    outputs, along which the loss is constant, is that of the columns.
    """
    coupling = model.loss.coupling(curvature)
    assert coupling is not None
    weights, columns = model.rows.weights, model.columns
    (b, n_rows), outputs, size = new.shape, len(coupling), len(columns)
    weighted = new * weights
    alike = (weighted @ columns.T) / outputs
    by_output = (coupling[:, None] * weighted).reshape(outputs * b, n_rows)
    across = np.empty((b, outputs, size, outputs))
    for output in range(outputs):
        mixed = (by_output @ (columns * coupling[output]).T).reshape(outputs, b, size)
        across[:, output] = alike[:, :, None] - mixed.transpose(1, 2, 0)
        across[:, output, :, output] += (weighted * curvature[output]) @ columns.T
    squares = weighted * new
    own = -(squares @ (coupling[:, None] * coupling).reshape(-1, n_rows).T).reshape(b, outputs, outputs)
    own += squares.sum(axis=1)[:, None, None] / outputs
    own[:, np.arange(outputs), np.arange(outputs)] += squares @ curvature.T
    return across.reshape(b, outputs * size, outputs), own


def _solved(blocks: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solutions of many small systems, for right sides of shape (..., C) or (..., C, m)."""
    lines = right.ndim < blocks.ndim
    right = right[..., None] if lines else right
    solved = right / np.maximum(blocks, TINY) if blocks.shape[-1] == 1 else inverse_or_nearest(blocks) @ right
    return solved[..., 0] if lines else solved
