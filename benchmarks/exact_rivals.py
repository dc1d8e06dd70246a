"""Solvers that prove optimality, on our problems: OKRidge, l0bnb and El0ps.

All minimise squared error with a ridge, without an intercept, on columns that are centred already. OKRidge is given the
number of features; the others a price for each, at which our model of k features is the best of all sizes.
"""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from statistics import median
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.problems import Problem
from benchmarks.proofs import autoregressive, prove_size, warm_up
from benchmarks.report import Figure
from benchmarks.rivals import module
from pauca import SparseRegressor

K, RIDGE = 10, 1e-3

# Processor seconds for each rival and problem, as for ours, and the relative gap at which all of them may stop.
SECONDS, GAP = 15.0, 1e-4


def proof_rivals(quick: bool) -> Iterator[Figure]:
    """Time to proof of rivals as a multiple of ours, k = 10, ridge 1e-3, processor seconds.

    Ours is the proof after the fit, to a gap of 1e-6; rivals stop at 1e-4. A rival that does not finish in 15 s counts
    with the time it took.
    """
    warm_up()
    ratios: list[float] = []
    for d, rho, snr in itertools.product((100,) if quick else (100, 300), (0.5, 0.9), (5.0, 1.0)):
        problem = autoregressive(1000, d, rho, snr, 0)
        proof, ours = prove_size(problem, K, RIDGE)
        name = f"1000 x {d}, rho {rho}, SNR {snr:g}"
        verdict = "proved" if proof.proved else f"{100 * proof.relative_gap:.2g} % left"
        yield Figure(name, f"pauca ({verdict})", ours, unit=" s", digits=3)
        price = _price(problem)
        for rival, solve in RIVALS.items():
            if find_spec(rival) is None:
                continue
            finished, seconds = _timed(solve, problem, price)
            if finished and proof.proved:
                ratios.append(seconds / ours)
            words = "proved" if finished else "not finished"
            yield Figure(name, f"{rival} ({words}), {seconds:.2f} s", seconds / ours, None, True, "x", 1)
    if ratios:
        yield Figure("what both prove", "rivals' time, median", median(ratios), 5.0, True, "x", 1)
        yield Figure("what both prove", "rivals' time, least", min(ratios), 0.5, True, "x", 1)


def _timed(solve: Callable[[Problem, float], bool], problem: Problem, price: float) -> tuple[bool, float]:
    """Whether a rival has finished, and its time; it is run twice where the first run compiles."""
    with contextlib.redirect_stdout(io.StringIO()):
        if solve in COMPILED:
            small = Problem(problem.X[:50, :5], problem.y[:50])
            solve(small, price)
        start = process_time()
        with patch("time.time", process_time):  # whether a rival finishes must not depend on who else is at work
            finished = solve(problem, price)
    return finished, process_time() - start


def _price(problem: Problem) -> float:
    """A price at which K features are better than one more or one less."""
    path = SparseRegressor(k=K + 1, ridge=RIDGE).fit(*problem).path_
    less, more = path[K - 1].objective - path[K].objective, path[K].objective - path[K + 1].objective
    return float(np.sqrt(less * more))


def _okridge(problem: Problem, _price: float) -> bool:
    tree = module("okridge.tree").BNBTree(problem.X, problem.y, lambda2=len(problem.y) * RIDGE, max_memory_GB=4)
    _, _, gap, _, _ = tree.solve(k=K, gap_tol=GAP, time_limit=SECONDS)
    return bool(gap <= GAP * 1.01)


def _l0bnb(problem: Problem, price: float) -> bool:
    n = len(problem.y)
    if not hasattr(np, "Inf"):
        setattr(np, "Inf", np.inf)  # noqa: B010  # it was written for NumPy 1
    largest = 2 * float(np.abs(SparseRegressor(k=K, ridge=RIDGE).fit(*problem).coef_).max())
    tree = module("l0bnb").BNBTree(problem.X, problem.y)
    result = tree.solve(n * price, n * RIDGE / 2, largest, gap_tol=GAP, time_limit=SECONDS)
    return bool(result.gap <= GAP * 1.01)


def _el0ps(problem: Problem, price: float) -> bool:
    n = len(problem.y)
    datafit = module("el0ps.datafit").Leastsquares(problem.y)
    penalty = module("el0ps.penalty").L2norm(beta=n * RIDGE / 2)
    search = module("pybnb").Solver
    # Without an argument it wants several processes, and a library for them.
    with patch.object(module("pybnb"), "Solver", lambda: search(comm=None)):
        solver: Any = module("el0ps.solver").BnbSolver(relative_gap=GAP, time_limit=SECONDS)
    return str(solver.solve(datafit, penalty, problem.X, n * price).status).lower().endswith("optimal")


RIVALS: dict[str, Callable[[Problem, float], bool]] = {"okridge": _okridge, "l0bnb": _l0bnb, "el0ps": _el0ps}
COMPILED = (_l0bnb, _el0ps)
