"""Radius, step and first epoch of a stream, found on rows held out from the first ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pauca.losses import Loss
from pauca.stream.kept import Rows
from pauca.stream.learners import Learners, Settings

# Every so many-th row is held out; of fewer rows than this none is.
HELD_OUT_EVERY = 5
FEWEST_ROWS = 10

# Steps are tried by factors of this, radii by factors of the other.
STEP_FACTOR = 4.0
RADIUS_FACTOR = 2.0

# At most so many steps and radii are tried in each direction.
MOST_TRIALS = 10

# A radius that should not bind is so many times the norm reached without one: more rows may lead further.
LOOSE = 4.0

# A radius that no iterate comes near.
UNBOUNDED = 1e150

# Epochs of the rows at hand, where their first length is not given: 1 + 2 + 4 = 7 parts.
PARTS = 7


@dataclass(frozen=True)
class Wanted:
    """What the user has given of the settings; None where it is to be found."""

    bound: float | None = None
    step: float | None = None
    first_epoch: int | None = None

    @property
    def settings(self) -> Settings | None:
        """The settings, where nothing is left to be found."""
        if self.bound is None or self.step is None or self.first_epoch is None:
            return None
        return Settings(self.bound, self.step, self.first_epoch)


class Trials:
    """Held-out losses of settings, each learnt once."""

    def __init__(self, rows: Rows, make: Callable[[Settings], Learners], loss: Loss, passes: int) -> None:
        places = np.arange(len(rows))
        held = places % HELD_OUT_EVERY == HELD_OUT_EVERY - 1
        if len(rows) < FEWEST_ROWS or not rows.weights[held].any() or not rows.weights[~held].any():
            self._train = self._held = rows
        else:
            self._train, self._held = rows.take(places[~held]), rows.take(places[held])
        self._make, self._loss, self._passes = make, loss, passes
        self._known: dict[Settings, tuple[float, float]] = {}

    @property
    def n_steps(self) -> int:
        """Number of rows a trial learns, each as often as there are passes."""
        return self._passes * len(self._train)

    def score(self, settings: Settings) -> float:
        """Mean loss on the rows held out."""
        return self._of(settings)[0]

    def norm(self, settings: Settings) -> float:
        """l1 norm of what was learnt, the largest over the outputs."""
        return self._of(settings)[1]

    def _of(self, settings: Settings) -> tuple[float, float]:
        if settings not in self._known:
            learners = self._make(settings)
            for _ in range(self._passes):
                learners.learn(self._train)
            coef, intercept = learners.answer()
            with np.errstate(over="ignore", invalid="ignore"):
                scores = np.asarray((self._held.X @ coef.T).T + intercept[:, None])
                losses = self._loss.value(learners.coded(self._held.y), scores)
                score = float(np.sum(losses @ self._held.weights) / self._held.weights.sum())
            self._known[settings] = (score if np.isfinite(score) else np.inf, float(np.abs(coef).sum(axis=1).max()))
        return self._known[settings]


def choose(trials: Trials, wanted: Wanted, first_step: float) -> Settings:
    """The settings with the least loss on held-out rows, looked for one after the other.

    First the step, without any ball; then radii, from the norm that was reached downwards; then the step again, within
    the ball, and the length of the first epoch.
    """
    first_epoch = wanted.first_epoch or max(1, trials.n_steps // PARTS)
    best = Settings(wanted.bound or UNBOUNDED, wanted.step or first_step, first_epoch)
    if wanted.step is None:
        best = _descend(trials, best, lambda settings, factor: replace(settings, step=settings.step * factor))
    if wanted.bound is None:
        best = _radius(trials, best)
    if wanted.step is None:
        best = _better(trials, best, [replace(best, step=best.step * f) for f in (0.5, 2.0)])
    if wanted.first_epoch is None:
        lengths = {max(1, int(best.first_epoch * f)) for f in (0.25, 4.0)}
        best = _better(trials, best, [replace(best, first_epoch=length) for length in sorted(lengths)])
    return best


def row_size(rows: Rows) -> float:
    """Root mean square of the norms of rows: what a step is measured by."""
    return float(np.sqrt(np.vdot(rows.X.data, rows.X.data) / max(1, len(rows)))) or 1.0


def first_step(size: float, loss: Loss, coded: np.ndarray) -> float:
    """A step of about the right size: a row, with the intercept, moves its own score by about as much as it is off."""
    norm = 2.0 * size**2
    if loss.smoothness is not None:
        return 1.0 / (loss.smoothness * norm)
    return max(float(np.std(coded)), 1e-6) / norm


def _descend(trials: Trials, start: Settings, moved: Callable[[Settings, float], Settings]) -> Settings:
    """Up as long as that helps; if it does not help at all, down."""
    best = start
    for factor in (STEP_FACTOR, 1.0 / STEP_FACTOR):
        for _ in range(MOST_TRIALS):
            other = moved(best, factor)
            if not trials.score(other) < trials.score(best):
                break
            best = other
        if best is not start:
            break
    return best


def _radius(trials: Trials, free: Settings) -> Settings:
    """The best radius below the norm reached without a ball, if any helps."""
    norm = trials.norm(free)
    if norm == 0:
        return replace(free, bound=1.0)
    best = loose = replace(free, bound=LOOSE * norm)
    misses, bound = 0, norm
    for _ in range(MOST_TRIALS):
        other = replace(free, bound=bound)
        if trials.score(other) < trials.score(best):
            best, misses = other, 0
        else:
            misses += 1
        if misses == 2:
            break
        bound /= RADIUS_FACTOR
    return loose if best is loose else best


def _better(trials: Trials, best: Settings, others: list[Settings]) -> Settings:
    return min([best, *others], key=trials.score)
