"""Radius, step and first epoch of a stream, found on rows held out from the first ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pauca.losses import Loss
from pauca.sgd.one_vs_rest import Learners, Settings
from pauca.sgd.reservoir import Rows

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

# A radius that no iterate comes near, unless it runs away; that is looked for every so many rows.
UNBOUNDED = 1e150
RAN_AWAY = 1e100
LOOK_EVERY = 128

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


Judge = Callable[[Learners, Rows, Rows], float]
"""The loss on rows held out of what is made of learners in the end, given the rows they have learnt."""


class Trials:
    """Held-out losses of settings, each learnt once.

    The scores are those of all that was learnt, the verdicts those of what is made of it: the few features of the
    second stage, if a judge knows them.
    """

    def __init__(
        self, rows: Rows, make: Callable[[Settings], Learners], loss: Loss, passes: int, judge: Judge | None = None
    ) -> None:
        places = np.arange(len(rows))
        held = places % HELD_OUT_EVERY == HELD_OUT_EVERY - 1
        if len(rows) < FEWEST_ROWS or not rows.weights[held].any() or not rows.weights[~held].any():
            self._train = self._held = rows
        else:
            self._train, self._held = rows.take(places[~held]), rows.take(places[held])
        self._make, self._loss, self._passes, self._judge = make, loss, passes, judge
        self._known: dict[Settings, tuple[float, float]] = {}
        self._judged: dict[Settings, float] = {}

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

    def verdict(self, settings: Settings) -> float:
        """Mean loss of what is made of it in the end, on the rows held out."""
        if self._judge is None:
            return self.score(settings)
        if settings not in self._judged:
            learners = self._learnt(settings)
            found = np.inf if learners is None else self._judge(learners, self._train, self._held)
            self._judged[settings] = found if np.isfinite(found) else np.inf
        return self._judged[settings]

    def _of(self, settings: Settings) -> tuple[float, float]:
        if settings not in self._known:
            learners = self._learnt(settings)
            self._known[settings] = (np.inf, np.inf) if learners is None else self._measured(learners)
        return self._known[settings]

    def _measured(self, learners: Learners) -> tuple[float, float]:
        coef, intercept = learners.answer()
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray((self._held.X @ coef.T).T + intercept[:, None])
            losses = self._loss.value(learners.coded(self._held.y), scores)
            score = float(np.sum(losses @ self._held.weights) / self._held.weights.sum())
        return score if np.isfinite(score) else np.inf, float(np.abs(coef).sum(axis=1).max())

    def _learnt(self, settings: Settings) -> Learners | None:
        """Learners that have learnt the rows; None if the step was so large that they ran away."""
        learners, places = self._make(settings), np.arange(len(self._train))
        for _ in range(self._passes):
            for start in range(0, len(places), LOOK_EVERY):
                learners.learn(self._train, places[start : start + LOOK_EVERY])
                if not learners.norm < RAN_AWAY:
                    return None
        return learners


def choose(trials: Trials, wanted: Wanted, first_step: float) -> Settings:
    """The settings with the least loss on held-out rows, looked for one after the other.

    First the step, without any ball, by all that is learnt; then, by what is made of it in the end, radii, from the
    norm that was reached downwards, the step again, within the ball, and the length of the first epoch.
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
        if trials.verdict(other) < trials.verdict(best):
            best, misses = other, 0
        else:
            misses += 1
        if misses == 2:
            break
        bound /= RADIUS_FACTOR
    return loose if best is loose else best


def _better(trials: Trials, best: Settings, others: list[Settings]) -> Settings:
    return min([best, *others], key=trials.verdict)
