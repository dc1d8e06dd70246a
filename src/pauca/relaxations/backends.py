"""How nodes are worked on: by NumPy, all at once, or by compiled code, one by one, where numba is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np

from pauca.relaxations import leaves, perspective
from pauca.relaxations.perspective import Quadratic, Relaxed


class Backend:
    """Vectorised over the nodes of a batch: no compiling, and three to six times slower on large trees."""

    def relax(
        self,
        problem: Quadratic,
        diagonal: np.ndarray,
        pieces: np.ndarray,
        left: np.ndarray,
        cut: np.ndarray,
        most_steps: int = perspective.MOST_STEPS,
    ) -> Relaxed:
        """Solve the relaxation at several nodes."""
        return perspective.relax(problem, diagonal, pieces, left, cut, most_steps)

    def removal_estimates(self, problem: Quadratic, diagonal: np.ndarray, relaxed: Relaxed) -> np.ndarray:
        """For every free column what the relaxation would lose to first order without it."""
        return perspective.removal_estimates(problem, diagonal, relaxed)

    def completions(
        self, problem: Quadratic, inside: np.ndarray, free: np.ndarray, missing: int, below: float, *, every: bool
    ) -> Iterator[tuple[float, list[int]]]:
        """Models of a node of which one or two columns are missing, with a value below ``below``."""
        return leaves.completions(problem, inside, free, missing, below, every=every)


class CompiledBackend(Backend):
    """Compiled by numba."""

    def __init__(self) -> None:
        from pauca.relaxations import kernels

        self._kernels = kernels

    def relax(
        self,
        problem: Quadratic,
        diagonal: np.ndarray,
        pieces: np.ndarray,
        left: np.ndarray,
        cut: np.ndarray,
        most_steps: int = perspective.MOST_STEPS,
    ) -> Relaxed:
        b, m = pieces.shape
        found = Relaxed(np.zeros((b, m)), np.full(b, -np.inf), np.zeros((b, m)), np.zeros(b), pieces.copy())
        options = np.array(
            [
                most_steps,
                perspective.BLOCK_STEPS,
                perspective.SINGLE_AFTER,
                perspective.SOME_SHARE,
                1 - perspective.KEPT_SHARE,
            ]
        )
        self._kernels.relax_rows(
            problem.hessian,
            problem.slope,
            problem.constant,
            diagonal,
            found.pieces,
            left,
            cut,
            options,
            found.u,
            found.bound,
            found.scores,
            found.theta,
        )
        return found

    def removal_estimates(self, problem: Quadratic, diagonal: np.ndarray, relaxed: Relaxed) -> np.ndarray:
        estimates = np.zeros(relaxed.u.shape)
        kept = 1 - perspective.KEPT_SHARE
        self._kernels.estimate_rows(problem.hessian, diagonal, relaxed.pieces, relaxed.u, kept, estimates)
        return estimates

    def completions(
        self, problem: Quadratic, inside: np.ndarray, free: np.ndarray, missing: int, below: float, *, every: bool
    ) -> Iterator[tuple[float, list[int]]]:
        if missing != 2 or every:
            yield from super().completions(problem, inside, free, missing, below, every=every)
            return
        value, first, second = self._kernels.best_pair(
            problem.hessian, problem.slope, problem.constant, inside, free, leaves.DEPENDENT_SHARE
        )
        if value < below:
            yield value, [*inside.tolist(), int(free[first]), int(free[second])]


def loaded_backend() -> Backend:
    """The compiled backend if it is in memory already, which costs nothing; else the other."""
    return CompiledBackend() if "pauca.relaxations.kernels" in sys.modules else Backend()


def compiled_backend() -> CompiledBackend | None:
    """The compiled backend, or None where numba is not installed."""
    return CompiledBackend() if find_spec("numba") is not None else None
