"""Models in an l1 ball: how long a proof takes, beside a Lasso of the same norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.problems import Problem, Shape, autoregressive
from benchmarks.report import Figure
from benchmarks.rivals import celer_fit
from benchmarks.timing import Contender, race, read
from pauca import L1Regressor

SHAPE = Shape(2000, 10000, 50)
RHO = 0.5
SNR = 5.0

# The true coefficients have a norm of about 60: a ball that shrinks much, and one that shrinks little.
NORMS = (40.0, 60.0)
GAP = 1e-3

# The reference is proven to be this near to the best model, and is only needed to one more digit than the gap.
REFERENCE = 1e-7


def ball(quick: bool) -> Iterator[Figure]:
    """Squared loss to a relative gap of 1e-3: time and support beside celer's Lasso at the same l1 norm.

    The penalty of the Lasso is read off a reference in the same ball, which is no part of the time. Its own tolerance
    is on the gap of the penalised problem, as a share of the same objective. Both read the same X, in rows; celer makes
    a copy in columns.
    """
    problem = autoregressive(SHAPE, RHO, SNR, seed=0)
    rounds = 2 if quick else 7
    for norm in NORMS:
        yield from _beside_lasso(problem, norm, rounds)
    yield from _gaps_hold(problem)


def _beside_lasso(problem: Problem, norm: float, rounds: int) -> Iterator[Figure]:
    reference = L1Regressor(radius=norm, tol=REFERENCE).fit(*problem)
    residual = problem.y - reference.predict(problem.X)
    alpha = float(np.abs(problem.X.T @ (residual - residual.mean())).max()) / len(problem.y)
    times = race(
        {
            "read": read(problem, rounds),
            "ours": Contender(_fit(problem, norm), rounds),
            "celer": Contender(celer_fit(problem, alpha, GAP), rounds),
        }
    )
    ours, theirs = times["ours"].result, times["celer"].result
    name = f"dense {SHAPE}, l1 norm {norm:g}"
    yield Figure(name, "passes over X to the proof", ours.n_iter_, digits=0)
    yield Figure(name, "reads", times["ours"].seconds / times["read"].seconds, digits=1)
    yield Figure(name, "reads of celer", times["celer"].seconds / times["read"].seconds, digits=1)
    ratio = times["celer"].seconds / times["ours"].seconds
    yield Figure(name, "times faster than celer", ratio, 1, at_least=True)
    yield Figure(name, "features", ours.k_, digits=0)
    yield Figure(name, "features of celer", np.count_nonzero(theirs.coef_), digits=0)
    yield Figure(name, "features of the reference", reference.k_, digits=0)
    yield Figure(name, "l1 norm of celer", float(np.abs(theirs.coef_).sum()))
    null = ours.path_[0].objective
    yield Figure(name, "proven gap, relative", 1e3 * ours.gap_ / null, 1e3 * GAP, unit="e-3", digits=4)


def _gaps_hold(problem: Problem) -> Iterator[Figure]:
    """The true distance from the best model over the proven one, for every way to step; above one would be wrong."""
    for norm in NORMS:
        reference = L1Regressor(radius=norm, tol=REFERENCE).fit(*problem)
        for solver in ("corrective", "pairwise", "away", "forward"):
            model = L1Regressor(radius=norm, tol=GAP, solver=solver, max_iter=300).fit(*problem)
            slack = REFERENCE * model.path_[0].objective
            true = max(0.0, model.objective_ - reference.objective_)
            share = true / (model.gap_ + slack)
            yield Figure(f"l1 norm {norm:g}, {solver}", "true distance over the proven gap", share, 1, digits=4)


def _fit(problem: Problem, norm: float) -> Callable[[], Any]:
    return lambda: L1Regressor(radius=norm, tol=GAP).fit(problem.X, problem.y)
