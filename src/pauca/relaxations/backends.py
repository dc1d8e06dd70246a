"""How nodes are worked on: by NumPy, all at once, or by compiled code, one by one, where numba is installed.

A node is relaxed; where few columns are missing, its models are known by formulas.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from pauca.clock import interrupts_held, seconds_left
from pauca.compiled import was_compiled
from pauca.relaxations import perspective
from pauca.relaxations.perspective import Quadratic, Relaxed
from pauca.tolerances import DEPENDENT_BELOW

# With two columns missing all pairs are tried among at most so many, before a node is relaxed and after it: beyond, it
# costs more than some branching. Compiled code has no table of them: with 150 after the relaxation, three features of a
# table with 4088 columns were 7 % short of a proof after ten seconds, and with 5000 they are proved in four. Of three
# it tries all triples: five features of 300 columns with correlations 0.9^|i - j| are then 4 to 6 % short of a proof
# after ten seconds, and 25 to 31 % without.
MOST_PAIRED_AT_ONCE, MOST_PAIRED = 30, 150
COMPILED_AT_ONCE, COMPILED_AFTER = {2: 300, 3: 50}, {2: 5000, 3: 300}

# Kernels are compiled once on a machine, which may take so long; where a limit leaves less, NumPy goes on.
COMPILING_SECONDS = 60.0


class Backend:
    """Vectorised over the nodes of a batch: no compiling, and three to six times slower on large trees."""

    at_once: Mapping[int, int] = {2: MOST_PAIRED_AT_ONCE}
    after: Mapping[int, int] = {2: MOST_PAIRED}
    """How many free columns a node may have for its best model to be found without branching, by the number of columns
    missing: before the node is relaxed, and after that."""

    compiled = False
    """Whether compiled code is at hand."""

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
        """Models of ``inside`` and ``missing`` of the ``free`` columns with a value below a limit.

        Pairs of value and columns: the best only, or all of them.
        """
        value, slope, own, cross = _complements(problem, inside, free)
        usable = own > DEPENDENT_BELOW * np.diag(problem.hessian)[free]
        if missing == 1:
            gains = np.where(usable, slope**2 / np.where(usable, own, 1.0), -np.inf)
        else:
            gains = _pair_gains(slope, own, problem.hessian[np.ix_(free, free)] - cross.T @ cross, usable)
        values = value - 0.5 * gains
        if not every:
            places = [np.unravel_index(int(values.argmin()), values.shape)]
        else:
            places = list(zip(*np.nonzero(values < below), strict=True))
        for place in places:
            if values[place] < below:
                yield float(values[place]), [*inside.tolist(), *(int(free[i]) for i in place)]


class CompiledBackend(Backend):
    """Compiled by numba."""

    at_once: Mapping[int, int] = COMPILED_AT_ONCE
    after: Mapping[int, int] = COMPILED_AFTER
    compiled = True

    def __init__(self) -> None:
        with interrupts_held():
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
                perspective.MOST_SQUARES,
                perspective.ADMITTED,
                perspective.LEAST_ADMITTED,
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
        if missing < 2 or every:
            yield from super().completions(problem, inside, free, missing, below, every=every)
            return
        best = self._kernels.best_pair if missing == 2 else self._kernels.best_triple
        value, places = best(problem.hessian, problem.slope, problem.constant, inside, free, below, DEPENDENT_BELOW)
        if places[0] >= 0:
            yield value, [*inside.tolist(), *free[places].tolist()]


def loaded_backend() -> Backend:
    """The compiled backend if it was used before, so that it is compiled and costs nothing; else the other."""
    kernels = sys.modules.get("pauca.relaxations.kernels")
    return CompiledBackend() if kernels is not None and kernels.best_pair.signatures else Backend()


def compiled_backend() -> CompiledBackend | None:
    """The compiled backend; None where numba is not installed, or there is no time to compile."""
    return CompiledBackend() if can_compile() else None


def can_compile(*, depth_first: bool = False) -> bool:
    """Whether kernels were compiled before on this machine, or numba is installed and there is time to compile them."""
    if find_spec("numba") is None:
        return False
    if seconds_left() >= COMPILING_SECONDS:
        return True
    with interrupts_held():
        from pauca.relaxations import depth_first_kernels, kernels

    last: Any = depth_first_kernels.search if depth_first else kernels.best_pair
    return was_compiled(last)


def _complements(
    problem: Quadratic, inside: np.ndarray, free: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Value of the model of ``inside``, slopes and squares of the ``free`` columns given it, and their part in it.

    What is left of the products of free columns is H less those of the columns of the last.
    """
    hessian, slope = problem.hessian, problem.slope
    if not len(inside):
        return problem.constant, slope[free], np.diag(hessian)[free], np.zeros((0, len(free)))
    factor = np.linalg.cholesky(hessian[np.ix_(inside, inside)])
    right = np.column_stack([hessian[np.ix_(inside, free)], slope[inside]])
    half = solve_triangular(factor, right, lower=True, check_finite=False)
    fitted, cross = half[:, -1], half[:, :-1]
    value = problem.constant - 0.5 * float(fitted @ fitted)
    return value, slope[free] - fitted @ cross, np.diag(hessian)[free] - np.sum(cross**2, axis=0), cross


def _pair_gains(slope: np.ndarray, own: np.ndarray, left: np.ndarray, usable: np.ndarray) -> np.ndarray:
    """Twice what every pair of columns gains, above the diagonal; elsewhere minus infinity."""
    determinant = own[:, None] * own - left * left
    numerator = slope[:, None] ** 2 * own + (slope**2) * own[:, None] - 2 * left * slope[:, None] * slope
    fine = np.triu(usable[:, None] & usable & (determinant > DEPENDENT_BELOW * own[:, None] * own), 1)
    return np.where(fine, numerator / np.where(fine, determinant, 1.0), -np.inf)
