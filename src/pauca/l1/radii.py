"""Choosing the radius of the ball: a warm-started way through larger and larger ones, on all rows and on every fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pauca.design import Design, make_design
from pauca.l1.objective import BallObjective, Iterate
from pauca.l1.search import Certificate, Search, Settings
from pauca.losses import Loss
from pauca.model import Model
from pauca.model_selection.folds import Fold
from pauca.model_selection.scoring import Models, Scorer, weigh_folds
from pauca.results.choice import Choice
from pauca.search.driver import Budget
from pauca.search.history import Stop
from pauca.search.parallel import Watch
from pauca.search.problem import Target

# The first ball has this share of the length of the best step along a single coordinate, and each further one is so
# much larger than the one before.
FIRST_SHARE = 0.25
LARGER = 1.5

# So many balls are searched after the best one to see that it was, fewer where they are clearly worse: balls that hold
# the noise as well cost the most. And so many at most.
PATIENCE = 3
MOST = 48

# Where the loss is gone the radius is brought down to what that takes, by so many halvings of the last step.
HALVINGS = 5

EARLY = {Stop.TIME, Stop.CALLBACK, Stop.INTERRUPTED}


@dataclass(frozen=True, eq=False)
class BallProblem:
    """Data, target and wishes, all of them checked."""

    X: Any
    target: Target
    measure: Loss
    ridge: float
    center: bool
    scaled: bool
    settings: Settings

    def objective(self, weights: np.ndarray, design: Design | None = None) -> BallObjective:
        """The objective on the rows that have weight; X is shared, never copied."""
        return BallObjective.of(
            design or make_design(self.X, weights, center=self.center),
            self.target.y,
            self.target.loss,
            n_outputs=self.target.n_outputs,
            ridge=self.ridge,
            center=self.center,
            scaled=self.scaled,
        )


@dataclass(eq=False)
class Walk:
    """A search through larger and larger balls on some rows."""

    search: Search

    def __post_init__(self) -> None:
        self.certificates: list[Certificate] = []
        self.met: list[dict[int, tuple[float, Iterate]]] = []
        self._models: list[Model] = []

    def advance(self, radii: Sequence[float], budget: Budget) -> None:
        """Go on to further radii, unless something has ended the walk."""
        for radius in radii[len(self.certificates) :]:
            if self.stopped_early or self.nothing_left:
                return
            before = self.search.at
            self.certificates.append(self.search.go(radius, budget))
            if self._loss_is_gone:
                self._tighten(before, budget)
            self.met.append(dict(self.search.met))

    def _tighten(self, before: Iterate, budget: Budget) -> None:
        """Make the last ball about as small as it may be for the loss to be gone.

        In a larger one many models take it away, and which is found is a matter of chance.
        """
        large = self.certificates.pop()
        low = self.certificates[-1].bound if self.certificates else large.bound / LARGER
        for _ in range(HALVINGS):
            if large.stop in EARLY:
                break
            self.search.at = before
            found = self.search.go(float(np.sqrt(low * large.bound)), budget)
            self.certificates.append(found)
            gone = self._loss_is_gone
            self.certificates.pop()
            if gone or found.stop in EARLY:
                large = found
            else:
                low, before = found.bound, found.best
        self.search.at = large.best
        self.certificates.append(large)

    @property
    def _loss_is_gone(self) -> bool:
        """Whether the last model leaves no more of the loss than the tolerance."""
        wanted = self.search.settings.tol * self.search.objective.null_value
        return bool(self.certificates) and self.certificates[-1].value <= wanted

    @property
    def nothing_left(self) -> bool:
        """Whether larger balls hold nothing better: the last does not bind, or the loss is gone to the tolerance."""
        return bool(self.certificates) and (not self.certificates[-1].binding or self._loss_is_gone)

    @property
    def stopped_early(self) -> bool:
        """Whether something other than the search itself ended it."""
        return bool(self.certificates) and self.certificates[-1].stop in EARLY

    def models(self) -> Models:
        """The models of all radii, counted from 1, and the empty one."""
        objective = self.search.objective
        iterates = [objective.null, *(one.best for one in self.certificates)]
        self._models += objective.finish(iterates[len(self._models) :])
        return dict(enumerate(self._models))


def first_radius(objective: BallObjective) -> float:
    """A radius so small that one coordinate has all of it."""
    null, loss = objective.null, objective.loss
    scores = objective.scores(null)
    outputs = objective.y if objective.y.ndim == 2 else objective.y[None]
    smooth = loss.smoothed(outputs, objective.weights, center=objective.center)
    gradient = np.abs(objective.gradient(smooth, scores, null))
    best = int(gradient.argmax())
    feature = best % objective.design.n_features
    curvature = smooth.typical_curvature(objective.y, scores, objective.weights) * objective.unit[feature] ** 2
    curvature += objective.penalty[feature]
    return float(FIRST_SHARE * gradient[best] / curvature) if gradient[best] > 0 and curvature > 0 else 1.0


class Radii:
    """The search for a radius: one walk on all rows, and one on the rows of every fold."""

    def __init__(self, problem: BallProblem, weights: np.ndarray, folds: list[Fold], design: Design) -> None:
        self.problem = problem
        self.weights = weights
        self.folds = folds
        self.whole = Walk(Search(problem.objective(weights, design), problem.settings))
        self._walks: dict[int, Walk] = {0: self.whole}
        self.radii: list[float] = []

    def choose(self, watch: Watch, weigh: Callable[[Radii, list[int]], Choice]) -> Choice:
        """Look at larger and larger balls until the best is well within them."""
        radius = first_radius(self.whole.search.objective)
        while True:
            self.radii.append(radius)
            radius *= LARGER
            self._advance(watch)
            choice = weigh(self, self._comparable())
            if watch.ended or self.stopped_early or len(self.radii) >= MOST or self.whole.nothing_left:
                return choice
            if _has_turned(choice):
                return choice

    @property
    def stopped_early(self) -> Stop | None:
        """What has ended some walk before its end: time, callback or interrupt."""
        ended = [walk.certificates[-1].stop for walk in self._walks.values() if walk.stopped_early]
        return ended[0] if ended else None

    def fold_models(self) -> list[tuple[Fold, Models]]:
        """The folds that have got anywhere, and their models."""
        walks = ((fold, self._walks.get(place)) for place, fold in enumerate(self.folds, 1))
        return [(fold, walk.models()) for fold, walk in walks if walk is not None and walk.certificates]

    def _advance(self, watch: Watch) -> None:
        def job(place: int) -> Callable[[Budget], None]:
            def work(budget: Budget) -> None:
                if watch.ended and place:
                    return
                if place not in self._walks:
                    objective = self.problem.objective(self.folds[place - 1].weights)
                    self._walks[place] = Walk(Search(objective, self.problem.settings))
                walk = self._walks[place]
                walk.advance(self.radii, budget)
                if walk.certificates and walk.certificates[-1].stop is Stop.INTERRUPTED:
                    watch.ended = True

            return work

        watch.run([job(place) for place in range(1 + len(self.folds))])

    def _comparable(self) -> list[int]:
        """Places of the radii, counted from 1, that all walks have come to; at least the last of the whole."""
        # A fold that has found all there is to find has found it for larger balls too.
        going = [walk for walk in self._walks.values() if walk is self.whole or not walk.nothing_left]
        come_to = min(len(walk.certificates) for walk in going)
        if len(self._walks) <= len(self.folds):
            come_to = 0
        return list(range(1, come_to + 1)) or [len(self.whole.certificates)]


def _has_turned(choice: Choice) -> bool:
    """Whether the scores have been lower than the best for a while, or are by more than a standard error."""
    best, last = choice.position(choice.best), len(choice.sizes) - 1
    if best is None or best == last or choice.standard_error is None:
        return False
    return bool(last - best >= PATIENCE or choice.mean[last] < choice.mean[best] - choice.standard_error[best])


def by_folds(rule: str, scorer: Scorer | None, y: np.ndarray) -> Callable[[Radii, list[int]], Choice]:
    """A choice by scores on rows held out: a scorer's, or the share of the constant model's loss that is gone."""

    def weigh(radii: Radii, places: list[int]) -> Choice:
        return weigh_folds(rule, scorer, radii.problem, radii.weights, y, radii.fold_models(), places)

    return weigh
