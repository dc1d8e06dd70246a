"""Radius, learning rate and first epoch of a stream, chosen on rows held out from the first ones."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from pauca.clock import OutOfTime, check_time
from pauca.losses import Loss
from pauca.sgd.epoch_sgd import OneVsRestSGD, SGDSettings
from pauca.sgd.reservoir import Samples

# Every so many-th row is held out; of fewer rows than this none is.
HELD_OUT_EVERY = 5
FEWEST_ROWS = 10

# Learning rates are tried by factors of this, radii by factors of the other.
RATE_FACTOR = 4.0
RADIUS_FACTOR = 2.0

# At most so many learning rates and radii are tried in each direction.
MOST_TRIALS = 10

# A radius that should not bind is so many times the norm reached without one: more rows may lead further.
NOT_BINDING_FACTOR = 4.0

# A radius that no iterate comes near unless it diverges; divergence is checked every so many rows.
UNBOUNDED = 1e150
DIVERGED = 1e100
CHECK_EVERY = 128

# An epoch of this many rows never ends; a float holds the number exactly.
ONE_EPOCH = 2**53

# Epochs within the rows available, where the length of the first is not given: 1 + 2 + 4 = 7 parts.
PARTS = 7


def parse_first_epoch(value: int | str | None) -> int | None:
    """The length of the first epoch, "all" being one that never ends."""
    return ONE_EPOCH if isinstance(value, str) else value


@dataclass(frozen=True)
class GivenSettings:
    """The settings that the user has given; None where they are to be chosen."""

    radius: float | None = None
    learning_rate: float | None = None
    first_epoch: int | None = None

    @property
    def complete(self) -> SGDSettings | None:
        """The settings, where all are given."""
        if self.radius is None or self.learning_rate is None or self.first_epoch is None:
            return None
        return SGDSettings(self.radius, self.learning_rate, self.first_epoch)


class SettingsSearch:
    """Held-out losses of settings, each learned once.

    ``loss`` is that of the first stage; ``final_loss`` is that of the final model, if a function computes it from the
    learner and the rows to refit and to evaluate on, and the same as ``loss`` otherwise.
    """

    def __init__(
        self,
        samples: Samples,
        make: Callable[[SGDSettings], OneVsRestSGD],
        loss: Loss,
        passes: int,
        final_loss: Callable[[OneVsRestSGD, Samples, Samples], float] | None = None,
    ) -> None:
        rows = np.arange(len(samples))
        held = rows % HELD_OUT_EVERY == HELD_OUT_EVERY - 1
        if len(samples) < FEWEST_ROWS or not samples.weights[held].any() or not samples.weights[~held].any():
            self._train = self._held_out = samples
        else:
            self._train, self._held_out = samples.take(rows[~held]), samples.take(rows[held])
        self._make, self._loss, self._passes, self._evaluate_final = make, loss, passes, final_loss
        self._first_stage: dict[SGDSettings, tuple[float, float]] = {}
        self._final: dict[SGDSettings, float] = {}

    @property
    def n_steps(self) -> int:
        """Number of rows a trial learns, each as often as there are passes."""
        return self._passes * len(self._train)

    def loss(self, settings: SGDSettings) -> float:
        """Mean held-out loss after the first stage."""
        return self._loss_and_norm(settings)[0]

    def norm(self, settings: SGDSettings) -> float:
        """l1 norm after the first stage, the largest over the outputs."""
        return self._loss_and_norm(settings)[1]

    def final_loss(self, settings: SGDSettings) -> float:
        """Mean held-out loss of the final model."""
        if self._evaluate_final is None:
            return self.loss(settings)
        if settings not in self._final:
            learner = self._learn(settings)
            found = np.inf if learner is None else self._evaluate_final(learner, self._train, self._held_out)
            self._final[settings] = found if np.isfinite(found) else np.inf
        return self._final[settings]

    def _loss_and_norm(self, settings: SGDSettings) -> tuple[float, float]:
        if settings not in self._first_stage:
            learner = self._learn(settings)
            self._first_stage[settings] = (np.inf, np.inf) if learner is None else self._evaluate(learner)
        return self._first_stage[settings]

    def _evaluate(self, learner: OneVsRestSGD) -> tuple[float, float]:
        coef, intercept = learner.solution()
        weights = self._held_out.weights
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray((self._held_out.X @ coef.T).T + intercept[:, None])
            losses = self._loss.value(learner.encode(self._held_out.y), scores)
            loss = float(np.sum(losses @ weights) / weights.sum())
        return loss if np.isfinite(loss) else np.inf, float(np.abs(coef).sum(axis=1).max())

    def _learn(self, settings: SGDSettings) -> OneVsRestSGD | None:
        """A learner of the rows that are not held out; None if the learning rate was so large that it diverged."""
        learner, rows = self._make(settings), np.arange(len(self._train))
        for _ in range(self._passes):
            for start in range(0, len(rows), CHECK_EVERY):
                check_time()
                learner.learn(self._train, rows[start : start + CHECK_EVERY])
                if not learner.norm < DIVERGED:
                    return None
        return learner


def choose_settings(
    trials: SettingsSearch, given: GivenSettings, learning_rate: float, *, search: bool = True
) -> SGDSettings:
    """The settings with the least held-out loss, chosen one after the other; those found so far if time is up.

    First the learning rate, without any ball, by the loss of the first stage, starting at ``learning_rate``. Then, by
    the loss of the final model: radii, from the norm that was reached downwards; the learning rate again, within the
    ball; the length of the first epoch. Without ``search``, they are those with which this begins.
    """
    first_epoch = given.first_epoch or max(1, trials.n_steps // PARTS)
    best = SGDSettings(given.radius or UNBOUNDED, given.learning_rate or learning_rate, first_epoch)
    with contextlib.suppress(OutOfTime):
        for better in _better_settings(trials, given, best) if search else ():
            best = better
    return best


def _better_settings(search: SettingsSearch, given: GivenSettings, best: SGDSettings) -> Iterator[SGDSettings]:
    """Settings that are better and better, one after each step of the choice."""
    if given.learning_rate is None:
        yield (best := _choose_learning_rate(search, best))
    if given.radius is None:
        yield (best := _choose_radius(search, best))
    if given.learning_rate is None:
        yield (best := _best(search, best, [replace(best, learning_rate=best.learning_rate * f) for f in (0.5, 2.0)]))
    if given.first_epoch is None:
        lengths = {max(1, int(best.first_epoch * f)) for f in (0.25, 4.0)}
        yield _best(search, best, [replace(best, first_epoch=length) for length in sorted(lengths)])


def row_scale(samples: Samples) -> float:
    """Root mean square of the norms of rows: the scale of steps."""
    return float(np.sqrt(np.vdot(samples.X.data, samples.X.data) / max(1, len(samples)))) or 1.0


def initial_learning_rate(scale: float, loss: Loss, encoded: np.ndarray) -> float:
    """With it a row, with the intercept, moves its own score by about the size of its error."""
    norm = 2.0 * scale**2
    if loss.smoothness is not None:
        return 1.0 / (loss.smoothness * norm)
    return max(float(np.std(encoded)), 1e-6) / norm


def _choose_learning_rate(search: SettingsSearch, start: SGDSettings) -> SGDSettings:
    """Larger ones as long as that helps; if it does not help at all, smaller ones."""
    best = start
    for _ in range(MOST_TRIALS):  # the first may be too large for rows that are far larger than most
        if search.loss(best) < np.inf:
            break
        best = start = replace(best, learning_rate=best.learning_rate / RATE_FACTOR**2)
    for factor in (RATE_FACTOR, 1.0 / RATE_FACTOR):
        for _ in range(MOST_TRIALS):
            other = replace(best, learning_rate=best.learning_rate * factor)
            if not search.loss(other) < search.loss(best):
                break
            best = other
        if best is not start:
            break
    return best


def _choose_radius(search: SettingsSearch, free: SGDSettings) -> SGDSettings:
    """The best radius below the norm reached without a ball, if any helps."""
    norm = search.norm(free)
    if norm == 0 or not norm < DIVERGED:
        return replace(free, radius=1.0)
    best = replace(free, radius=NOT_BINDING_FACTOR * norm)
    misses, radius = 0, norm
    for _ in range(MOST_TRIALS):
        other = replace(free, radius=radius)
        if search.final_loss(other) < search.final_loss(best):
            best, misses = other, 0
        else:
            misses += 1
        if misses == 2:
            break
        radius /= RADIUS_FACTOR
    return best


def _best(search: SettingsSearch, best: SGDSettings, others: list[SGDSettings]) -> SGDSettings:
    return min([best, *others], key=search.final_loss)
