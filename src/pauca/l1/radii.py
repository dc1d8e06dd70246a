"""Choosing the radius of the ball: warm-started searches of larger and larger ones, on all rows and on every fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pauca.design import Design, make_design
from pauca.l1.certificate import BallCertificate, Search, SearchSettings
from pauca.l1.objective import BallObjective, Iterate
from pauca.losses import Loss
from pauca.model import Model
from pauca.model_selection.comparison import weigh_folds
from pauca.model_selection.folds import Fold
from pauca.model_selection.held_out import Measure
from pauca.model_selection.scoring import Models
from pauca.results.choice import Choice, Rule
from pauca.runs.parallel import ParallelRuns
from pauca.runs.problem import Target
from pauca.runs.run import Budget, Stop, ended_early

# The first ball has this share of the length of the best step along a single coordinate, and each further one is so
# much larger than the one before.
FIRST_SHARE = 0.25
GROWTH = 1.5

# So many balls are searched after the best one to confirm it, fewer where they are clearly worse: balls that hold the
# noise as well cost the most. And so many at most.
PATIENCE = 3
MOST_RADII = 64

# Where the loss vanishes the radius is brought down to what that takes, by so many halvings of the last step.
HALVINGS = 5

# Models of folds are scored and thrown away: a gap below this share of the empty model's objective is for nothing.
# Steps towards vertices may need thousands for each digit.
SCORED_WITHIN = 1e-4

STOPPED_EARLY = {Stop.TIME, Stop.CALLBACK, Stop.INTERRUPTED}


@dataclass(frozen=True, eq=False)
class BallProblem:
    """Data, target and settings, all of them checked."""

    X: Any
    target: Target
    measure: Loss
    ridge: float
    center: bool
    standardize: bool
    settings: SearchSettings

    def objective(self, weights: np.ndarray, design: Design | None = None) -> BallObjective:
        """The objective on the rows that have weight; X is shared, never copied."""
        return BallObjective.of(
            design or make_design(self.X, weights, center=self.center),
            self.target.y,
            self.target.loss,
            n_outputs=self.target.n_outputs,
            ridge=self.ridge,
            center=self.center,
            standardize=self.standardize,
        )


class RadiusPath:
    """A search through larger and larger balls on some rows."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.certificates: list[BallCertificate] = []
        self.best_by_size: list[dict[int, tuple[float, Iterate]]] = []
        self._models: list[Model] = []
        self._tested = 0, False

    def advance(self, radii: Sequence[float], budget: Budget) -> None:
        """Go on to further radii, unless something has ended the search."""
        for radius in radii[len(self.certificates) :]:
            if self.stopped_early or self.is_complete:
                return
            before = self.search.iterate
            found = self.search.run(radius, budget)
            self.certificates.append(self._tightened(found, before, budget) if self._fits_perfectly(found) else found)
            self.best_by_size.append(dict(self.search.best_by_size))

    def _tightened(self, large: BallCertificate, before: Iterate, budget: Budget) -> BallCertificate:
        """The certificate of about the smallest ball in which the loss vanishes, from that of a larger one.

        In a larger one it vanishes for many models, and which of them is found is a matter of chance.
        """
        low = self.certificates[-1].radius if self.certificates else large.radius / GROWTH
        for _ in range(HALVINGS):
            if large.stop in STOPPED_EARLY:
                break
            self.search.iterate = before
            found = self.search.run(float(np.sqrt(low * large.radius)), budget)
            if self._fits_perfectly(found) or found.stop in STOPPED_EARLY:
                large = found
            else:
                low, before = found.radius, found.best
        self.search.iterate = large.best
        return large

    def _fits_perfectly(self, found: BallCertificate) -> bool:
        """Whether a model leaves no more of the loss than the tolerance."""
        return found.value <= self.search.settings.required(self.search.objective.null_value)

    @property
    def is_complete(self) -> bool:
        """Whether larger balls hold nothing better: the last does not bind, or the loss vanishes to the tolerance.

        In a tiny ball the tolerance may be met well within the edge, while other columns are still to come.
        """
        if not self.certificates:
            return False
        last = self.certificates[-1]
        if self._fits_perfectly(last):
            return True
        return not last.binding and not (last.stop is Stop.CERTIFIED and self.leaves_signal())

    @property
    def stopped_early(self) -> bool:
        """Whether something other than the search itself ended it."""
        return bool(self.certificates) and self.certificates[-1].stop in STOPPED_EARLY

    def leaves_signal(self) -> bool:
        """Whether some column still goes with what the last ball leaves more closely than noise would.

        In small balls only columns with large entries come in, such as squares: scores may fall there before they rise.
        """
        count = len(self.certificates)
        if self._tested[0] != count:
            objective = self.search.objective
            test = largest_score_test(objective, self.certificates[-1].best) if count else 0.0
            self._tested = count, test > noise_level(objective)
        return self._tested[1]

    def models(self) -> Models:
        """The models of all radii, counted from 1, and the empty one."""
        objective = self.search.objective
        iterates = [objective.null, *(one.best for one in self.certificates)]
        self._models += objective.models(iterates[len(self._models) :])
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


def largest_score_test(objective: BallObjective, iterate: Iterate) -> float:
    """The largest of the score tests of all coordinates, in standard errors: one pass over X, whatever the units."""
    scores = objective.scores(iterate)
    with np.errstate(over="ignore", invalid="ignore"):
        gradient = np.abs(objective.gradient(objective.loss, scores, iterate)).reshape(objective.n_outputs, -1)
        slopes = objective.loss.derivative(objective.y, scores)
        error = np.sqrt(slopes**2 @ objective.weights * np.sum(objective.weights**2))[:, None] * objective.unit
    tests = np.zeros_like(gradient)
    np.divide(gradient, error, out=tests, where=error > 0)
    return float(tests.max(initial=0.0))


def noise_level(objective: BallObjective) -> float:
    """What the largest of as many score tests hardly exceeds where there is nothing but noise, in standard errors."""
    return float(np.sqrt(2.0 * np.log(2.0 * objective.n_outputs * objective.design.n_features)))


class RadiusSearch:
    """The search for a radius: one path on all rows, and one on the rows of every fold."""

    def __init__(self, problem: BallProblem, weights: np.ndarray, folds: list[Fold], design: Design) -> None:
        self.problem = problem
        self.weights = weights
        self.folds = folds
        self.whole = RadiusPath(Search(problem.objective(weights, design), problem.settings))
        self._paths: dict[int, RadiusPath] = {0: self.whole}
        self.radii: list[float] = []
        self._ended_by: Stop | None = None

    def choose(self, runs: ParallelRuns, weigh: Callable[[RadiusSearch, list[int]], Choice]) -> Choice:
        """Search larger and larger balls until the best is well within them, and what is left looks like noise."""
        radius = first_radius(self.whole.search.objective)
        while True:
            self.radii.append(radius)
            radius *= GROWTH
            self._advance(runs)
            positions, choice = self._comparable(), None
            with ended_early(self._note):
                choice = weigh(self, positions)
            choice = choice or weigh(self, positions)  # it takes little time; a second interrupt ends the fit
            if runs.ended or self.stopped_early or len(self.radii) >= MOST_RADII or self.whole.is_complete:
                return choice
            if _has_turned(choice) and not self.whole.leaves_signal():
                return choice

    @property
    def stopped_early(self) -> Stop | None:
        """What has ended some path early: time, callback or interrupt."""
        ended = [path.certificates[-1].stop for path in self._paths.values() if path.stopped_early]
        return self._ended_by or (ended[0] if ended else None)

    def _note(self, stop: Stop) -> None:
        self._ended_by = stop

    def fold_models(self) -> list[tuple[Fold, Models]]:
        """The folds that have models, and these."""
        paths = ((fold, self._paths.get(position)) for position, fold in enumerate(self.folds, 1))
        return [(fold, path.models()) for fold, path in paths if path is not None and path.certificates]

    def _advance(self, runs: ParallelRuns) -> None:
        def job(position: int) -> Callable[[Budget], None]:
            def work(budget: Budget) -> None:
                if position and budget.time_limit == 0:  # each fold would make a first step all the same
                    self._note(Stop.TIME)
                if position and (runs.ended or budget.time_limit == 0):
                    return
                if position not in self._paths:
                    objective = self.problem.objective(self.folds[position - 1].weights)
                    self._paths[position] = RadiusPath(Search(objective, _scored(self.problem.settings)))
                path = self._paths[position]
                path.advance(self.radii, budget)
                if path.certificates and path.certificates[-1].stop is Stop.INTERRUPTED:
                    runs.ended = True

            return work

        runs.run({position: job(position) for position in range(1 + len(self.folds))}, len(self.folds), has_end=False)

    def _comparable(self) -> list[int]:
        """Positions of the radii, counted from 1, that all paths have searched; at least the last on all rows."""
        # A fold whose path is complete has found the best for larger balls too.
        going = [path for path in self._paths.values() if path is self.whole or not path.is_complete]
        searched = min(len(path.certificates) for path in going)
        if len(self._paths) <= len(self.folds):
            searched = 0
        return list(range(1, searched + 1)) or [len(self.whole.certificates)]


def _scored(settings: SearchSettings) -> SearchSettings:
    """Settings for models that are only scored."""
    return replace(settings, tol=max(settings.tol, SCORED_WITHIN))


def _has_turned(choice: Choice) -> bool:
    """Whether the scores have been below the best for a while, or are so by more than a standard error."""
    best, last = choice.position(choice.best), len(choice.sizes) - 1
    if best is None or best == last or choice.standard_error is None:
        return False
    return bool(last - best >= PATIENCE or choice.mean[last] < choice.mean[best] - choice.standard_error[best])


def by_folds(rule: Rule, measure: Measure) -> Callable[[RadiusSearch, list[int]], Choice]:
    """A choice by scores on held-out rows: a scorer's, or the share of the constant model's loss that is explained."""

    def weigh(search: RadiusSearch, positions: list[int]) -> Choice:
        return weigh_folds(rule, measure, search.fold_models(), positions)

    return weigh
