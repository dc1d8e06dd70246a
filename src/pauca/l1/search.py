"""The search in a ball: steps until what is proven suffices, or a budget ends it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pauca.l1.certificate import Look
from pauca.l1.corrective import Solver, corrective, make_solver
from pauca.l1.frank_wolfe import vertices
from pauca.l1.objective import BallObjective, Iterate
from pauca.losses import Loss
from pauca.search.driver import Budget, Progress, interrupted_once
from pauca.search.history import Move, Stop

METHODS = ("corrective", "pairwise", "away", "forward")
STEPS = ("line", "closed")

# Corrective steps begin with a wide envelope, to within this share of the empty model's objective, and make it narrower
# by this factor: each minimum is a good start for the next.
FIRST_ENVELOPE = 0.1
NARROWER = 8.0


@dataclass(frozen=True)
class Settings:
    """How to search."""

    method: str = "corrective"
    step: str = "line"
    tol: float = 1e-3
    """The gap to reach, as a share of the empty model's objective."""
    k: int | None = None
    """No more features than this."""
    max_iter: int = 10_000


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is proven of a ball."""

    bound: float
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
    """A search that may go on to larger balls from where it stands."""

    def __init__(self, objective: BallObjective, settings: Settings) -> None:
        self.objective = objective
        self.settings = settings
        self.moves: list[Move] = []
        self.n_iter = 0
        self.met: dict[int, tuple[float, Iterate]] = {}
        """The best iterate of every size, with its objective."""
        self.at = objective.null
        """Where the search stands; the next ball must hold it."""
        self._solvers: dict[Loss, Solver] = {}

    def go(self, bound: float, budget: Budget | None = None) -> Certificate:
        """Search the ball of a radius no smaller than before."""
        budget, began = budget or Budget(), time.monotonic()
        wanted = self.settings.tol * self.objective.null_value
        proof = _Proof()
        try:
            stop = self._drive(bound, wanted, proof, budget, began)
        except KeyboardInterrupt:
            interrupted_once()
            stop = Stop.INTERRUPTED
        best = self.objective.null if proof.best is None else proof.best
        value = self.objective.null_value if proof.best is None else proof.value
        self.at = best
        return Certificate(bound, max(proof.lower, 0.0), value, best, stop, best.norm >= (1 - 1e-6) * bound)

    def polished(self, found: Certificate) -> Certificate:
        """The best model with the coefficients in use minimised over to rounding, which costs little at the end.

        Of corrective steps on smooth losses: what is found then does not hang on where the steps happened to end.
        """
        objective, loss, at = self.objective, self.objective.loss, found.best
        done = found.stop in {Stop.CERTIFIED, Stop.SIZE} and self.settings.method == "corrective"
        if not done or loss.quadratic or loss.flat or not len(at.places):
            return found
        at, scores = objective.settled(loss, at)
        gradient = objective.gradient(loss, scores, at)
        at, scores = self._solver(loss).solve(at.places, at, scores, gradient, found.bound, 0.0)
        value = objective.value(loss, scores, at)
        return replace(found, best=at, value=value) if value <= found.value else found

    def _solver(self, loss: Loss) -> Solver:
        return self._solvers.setdefault(loss, make_solver(self.objective, loss))

    def _drive(self, bound: float, wanted: float, proof: _Proof, budget: Budget, began: float) -> Stop:
        k, support = self.settings.k, self.objective.support(self.at)
        for count, seen in enumerate(self._looks(bound, wanted), 1):
            self.n_iter += 1
            now = self.objective.support(seen.at)
            if k is not None and len(now) > k:
                return Stop.SIZE
            proof.take(seen)
            self._keep(len(now), seen)
            move: Move = ("swap", _without(support, now), _without(now, support))
            if any(move[1:]):
                self.moves.append(move)
            support = now
            if proof.value - proof.lower <= wanted:
                return Stop.CERTIFIED
            if count >= self.settings.max_iter:
                return Stop.STEPS
            elapsed = time.monotonic() - began
            if budget.callback is not None:
                told = Progress(move, len(now), k, seen.value, self.objective.null_value, elapsed)
                answer = budget.callback(told)
                if isinstance(answer, bool | np.bool_) and answer:
                    return Stop.CALLBACK
            # A step is always made: searches that are taken up again and again get on.
            if count > 1 and budget.time_limit is not None and elapsed >= budget.time_limit:
                return Stop.TIME
        return Stop.SIZE if k is not None and len(support) >= k else Stop.NO_GAIN

    def _looks(self, bound: float, wanted: float) -> Iterator[Look]:
        """Looks along the way; for losses that are not smooth, by envelopes.

        The envelope of ``beta = lipschitz^2 / eps`` lies at most ``eps / 2`` below the loss, and leaves as much for the
        steps (Shalev-Shwartz, Srebro and Zhang 2010, Corollary 2.6, whose eps is 1.5 eps).
        """
        settings, at = self.settings, self.at
        if settings.method != "corrective":
            loss = self._smooth(wanted)
            yield from vertices(self.objective, loss, bound, at, settings.method, closed=settings.step == "closed")
            return
        for accuracy in self._accuracies(wanted):
            loss = self._smooth(accuracy)
            enough = wanted if loss is self.objective.loss else 0.5 * accuracy
            for seen in corrective(self.objective, loss, self._solver(loss), bound, at, enough, settings.k):
                at = seen.at
                yield seen
                if seen.gap <= enough and accuracy > wanted:
                    break

    def _accuracies(self, wanted: float) -> list[float]:
        """The accuracies of envelopes, from coarse to fine; smooth losses have one."""
        found = [wanted]
        if self._smooth(wanted) is not self.objective.loss:
            while found[-1] * NARROWER < FIRST_ENVELOPE * self.objective.null_value:
                found.append(found[-1] * NARROWER)
        return found[::-1]

    def _smooth(self, accuracy: float) -> Loss:
        loss, rho = self.objective.loss, self.objective.loss.lipschitz
        if rho is None or not accuracy > 0:
            return loss
        return loss.envelope(self.objective.n_outputs * rho**2 / accuracy)

    def _keep(self, size: int, seen: Look) -> None:
        known = self.met.get(size)
        if known is None or seen.value < known[0]:
            self.met[size] = seen.value, seen.at


def _without(these: np.ndarray, those: np.ndarray) -> tuple[int, ...]:
    return tuple(sorted(set(these.tolist()).difference(those.tolist())))


class _Proof:
    """The best iterate so far, and the best lower bound, which need not come from it."""

    def __init__(self) -> None:
        self.value = np.inf
        self.lower = 0.0  # no loss is negative
        self.best: Iterate | None = None

    def take(self, seen: Look) -> None:
        """Make use of a look."""
        if seen.value < self.value:
            self.value, self.best = seen.value, seen.at
        self.lower = max(self.lower, seen.lower)
