"""The search in a ball: steps until the duality gap is small enough, or a budget ends it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pauca.clock import GRACE, deadline_after, limited_until
from pauca.l1.corrective import VALUE_ROUNDING, InnerSolver, corrective_steps, make_solver
from pauca.l1.frank_wolfe import frank_wolfe_steps
from pauca.l1.objective import BallObjective, DualityGap, Iterate
from pauca.losses import Loss
from pauca.runs.run import Budget, Move, Progress, Stop, asks_to_stop, ended_early

SOLVERS = ("corrective", "pairwise", "away", "forward")
STEP_RULES = ("line", "closed")
STOPPING = ("bound", "gap")

# Corrective steps begin with a wide envelope, to within this share of the empty model's objective, and make it narrower
# by this factor: each minimum is a good start for the next.
FIRST_ENVELOPE = 0.1
NARROWER = 8.0

# A model whose norm is less than the radius by more than this share is not held back by the ball.
BINDING_FROM = 1 - 1e-6


@dataclass(frozen=True)
class SearchSettings:
    """How to search."""

    solver: str = "corrective"
    step_rule: str = "line"
    tol: float = 1e-3
    """The gap to reach, as a share of the empty model's objective."""
    k: int | None = None
    """No more features than this."""
    max_iter: int = 10_000
    gap_tol: float | None = None
    """The gap to reach in units of the objective; None: by ``tol``."""
    smoothness: float | None = None
    """The curvature of closed steps, and of the envelope of a loss that is not smooth; None: by the data."""
    stopping: str = "bound"
    """Whether the best bounds of all steps are compared, or the gap of each step by itself."""

    def required(self, null_value: float) -> float:
        """The gap to reach, from the objective of the model without features."""
        return self.tol * null_value if self.gap_tol is None else self.gap_tol


@dataclass(frozen=True, eq=False)
class BallCertificate:
    """What is proven of a ball, and the best model found in it."""

    radius: float
    lower: float
    """No model in the ball has an objective below this."""
    value: float
    """The objective of the best model found."""
    best: Iterate
    stop: Stop
    binding: bool
    """Whether the best model touches the edge of the ball."""

    @property
    def gap(self) -> float:
        """By how much any model in the ball may be better."""
        return max(0.0, self.value - self.lower)


class Search:
    """A search that may go on to larger balls from where it has ended."""

    def __init__(self, objective: BallObjective, settings: SearchSettings) -> None:
        self.objective = objective
        self.settings = settings
        self.moves: list[Move] = []
        self.n_iter = 0
        self.best_by_size: dict[int, tuple[float, Iterate]] = {}
        """The best iterate of every size, with its objective."""
        self.iterate = objective.null
        """Where the next search starts; its ball must hold it."""
        self._solvers: dict[Loss, InnerSolver] = {}

    def run(self, radius: float, budget: Budget | None = None) -> BallCertificate:
        """Search the ball of a radius no smaller than before."""
        budget, began = budget or Budget(), time.monotonic()
        deadline = deadline_after(budget.time_limit)
        required = self.settings.required(self.objective.null_value)
        bounds = _Bounds(self.objective.null)
        stops: list[Stop] = []
        with ended_early(stops.append), limited_until(deadline + GRACE):
            stops.append(self._step_until_done(radius, required, bounds, budget, began))
        stop, best = stops[0], bounds.best
        value, null_value = bounds.value, self.objective.null_value
        if value > null_value:
            # Nothing was found, or the smoothing of a loss with kinks has cost more than the features gain.
            value, best = null_value, self.objective.null
        self.iterate = best
        # Where the fit is perfect, rounding may put a bound above it.
        lower = min(max(bounds.lower, 0.0), value)
        return BallCertificate(radius, lower, value, best, stop, best.norm >= BINDING_FROM * radius)

    def polish(self, found: BallCertificate) -> BallCertificate:
        """The best model with the coefficients in use minimised over to rounding, which costs little at the end.

        Of corrective steps on smooth losses: the answer then does not depend on where the steps happened to end.
        """
        objective, loss, iterate = self.objective, self.objective.loss, found.best
        done = found.stop in {Stop.CERTIFIED, Stop.SIZE} and self.settings.solver == "corrective"
        if not done or loss.quadratic or loss.flat or not len(iterate.coords):
            return found
        with ended_early(lambda _: None):
            iterate, scores = objective.minimise_intercepts(loss, iterate)
            gradient = objective.gradient(loss, scores, iterate)
            iterate = self._solver(loss).solve(iterate.coords, iterate, scores, gradient, found.radius, 0.0)
            value = objective.value(loss, objective.scores(iterate), iterate)
            # Its gradient is closer to zero; a value that is higher by rounding says nothing against it.
            if value <= found.value + VALUE_ROUNDING * abs(found.value):
                return replace(found, best=iterate, value=value, lower=min(found.lower, value))
        return found

    def _solver(self, loss: Loss) -> InnerSolver:
        return self._solvers.setdefault(loss, make_solver(self.objective, loss))

    def _step_until_done(self, radius: float, required: float, bounds: _Bounds, budget: Budget, began: float) -> Stop:
        k, support = self.settings.k, self.objective.support(self.iterate)
        for count, found in enumerate(self._steps(radius, required), 1):
            self.n_iter += 1
            now = self.objective.support(found.iterate)
            if k is not None and len(now) > k:
                return Stop.SIZE
            bounds.improve(found, take=self.settings.stopping == "gap")
            self._keep(len(now), found)
            move: Move = ("swap", _difference(support, now), _difference(now, support))
            if any(move[1:]):
                self.moves.append(move)
            support = now
            left = found.gap if self.settings.stopping == "gap" else bounds.value - bounds.lower
            if left <= required:
                return Stop.CERTIFIED
            if count >= self.settings.max_iter:
                return Stop.STEPS
            elapsed = time.monotonic() - began
            if budget.callback is not None:
                progress = Progress(move, len(now), k, found.value, self.objective.null_value, elapsed)
                if asks_to_stop(budget.callback, progress):
                    return Stop.CALLBACK
            # One step is always made: searches that are resumed again and again make progress.
            if count > 1 and budget.time_limit is not None and elapsed >= budget.time_limit:
                return Stop.TIME
        return Stop.SIZE if k is not None and len(support) >= k else Stop.STALLED

    def _steps(self, radius: float, required: float) -> Iterator[DualityGap]:
        """Iterates with their duality gaps; for losses that are not smooth, by envelopes.

        The envelope of ``beta = lipschitz^2 / eps`` lies at most ``eps / 2`` below the loss, and leaves as much for the
        steps (Shalev-Shwartz, Srebro and Zhang 2010, Corollary 2.6, whose eps is 1.5 eps).
        """
        settings, iterate = self.settings, self.iterate
        if settings.solver != "corrective":
            loss = self._smooth(required)
            smoothness = settings.smoothness or self.objective.smoothness(loss)
            closed = smoothness if settings.step_rule == "closed" else None
            yield from frank_wolfe_steps(self.objective, loss, radius, iterate, settings.solver, smoothness=closed)
            return
        for accuracy in self._accuracies(required):
            loss = self._smooth(accuracy)
            enough = required if loss is self.objective.loss else 0.5 * accuracy
            solver = self._solver(loss)
            for found in corrective_steps(self.objective, loss, solver, radius, iterate, enough, settings.k):
                iterate = found.iterate
                yield found
                if found.gap <= enough and accuracy > required:
                    break

    def _accuracies(self, required: float) -> list[float]:
        """The accuracies of envelopes, from coarse to fine; smooth losses have one."""
        found = [required]
        if self._smooth(required) is not self.objective.loss:
            while found[-1] * NARROWER < FIRST_ENVELOPE * self.objective.null_value:
                found.append(found[-1] * NARROWER)
        return found[::-1]

    def _smooth(self, accuracy: float) -> Loss:
        loss, rho = self.objective.loss, self.objective.loss.lipschitz
        if rho is None or not accuracy > 0:
            return loss
        if self.settings.smoothness is not None:
            return loss.envelope(self.settings.smoothness)
        return loss.envelope(self.objective.n_outputs * rho**2 / accuracy)

    def _keep(self, size: int, found: DualityGap) -> None:
        known = self.best_by_size.get(size)
        if known is None or found.value < known[0]:
            self.best_by_size[size] = found.value, found.iterate


def _difference(features: np.ndarray, others: np.ndarray) -> tuple[int, ...]:
    return tuple(sorted(set(features.tolist()).difference(others.tolist())))


class _Bounds:
    """The best iterate so far, and the best lower bound, which need not come from it."""

    def __init__(self, best: Iterate) -> None:
        self.value = np.inf
        self.lower = 0.0  # no loss is negative
        self.best = best

    def improve(self, found: DualityGap, *, take: bool = False) -> None:
        """Take in what an iterate proves, and the iterate itself if it is better, or always with ``take``."""
        if take or found.value < self.value:
            self.value, self.best = found.value, found.iterate
        self.lower = max(self.lower, found.lower)
