"""Two classes: how long fits take and how good they are, against abess on the same data in the same run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.fits import LinearFit, logistic_objective, pauca_classes_fit
from benchmarks.problems import Problem, Shape, autoregressive_classes
from benchmarks.report import Figure
from benchmarks.rivals import abess_classes_fit
from benchmarks.speed import NOT_ABOVE, times_faster
from benchmarks.timing import Contender, race
from pauca.methods import Exchange, FoBa, Forward
from pauca.runs.run import Method

SHAPES = (Shape(1000, 5000, 20), Shape(20_000, 500, 20))
QUICK_SHAPES = (Shape(500, 1000, 10), Shape(4000, 200, 10))
RHO = 0.5

CORRELATED = Shape(2000, 2000, 20)
QUICK_CORRELATED = Shape(400, 400, 10)
CORRELATED_RHO = 0.9

# Means that differ by less are the same.
BELOW = 1 - 1e-9

EXCHANGE = "Exchange"
ABESS = "abess"
METHODS: dict[str, Method] = {
    "FoBa(rule='gradient')": FoBa(rule="gradient"),
    "Forward(rule='gradient')": Forward(rule="gradient"),
    "Exchange without rivals": Exchange(scouts=(), detour=0),
    "FoBa": FoBa(),
    EXCHANGE: Exchange(),
}


def logistic(quick: bool) -> Iterator[Figure]:
    """Logistic loss with intercept, AR(0.5), against abess, which takes one thread; ours take those of the BLAS."""
    for shape in QUICK_SHAPES if quick else SHAPES:
        yield from _times(shape, quick)
        yield from _objectives_over_abess(shape, 2 if quick else 5)


def correlated_logistic(quick: bool) -> Iterator[Figure]:
    """Logistic loss with intercept, neighbouring columns nearly alike: mean objectives."""
    seeds, shape = (2, QUICK_CORRELATED) if quick else (10, CORRELATED)
    found = _objectives(shape, CORRELATED_RHO, seeds)
    name = f"{shape}, AR({CORRELATED_RHO}), {seeds} seeds"
    for contender, values in found.items():
        yield Figure(name, f"mean objective of {contender}", values.mean(), digits=6)
    for rival in (ABESS, "FoBa"):
        ratio = float(found[EXCHANGE].mean() / found[rival].mean())
        yield Figure(name, f"Exchange over {rival}, means", ratio, BELOW, digits=4)
    for rival in (rival for rival in found if rival != EXCHANGE):
        above = int(np.sum(found[EXCHANGE] > found[rival] * NOT_ABOVE))
        yield Figure(name, f"seeds where Exchange is above {rival}", above, digits=0)


def _times(shape: Shape, quick: bool) -> Iterator[Figure]:
    problem = autoregressive_classes(shape, RHO, seed=0)
    rounds = 2 if quick else 7
    slow = {EXCHANGE: 1 if quick else 3}
    contenders = _contenders(problem, shape.k)
    times = race({name: Contender(fit, slow.get(name, rounds)) for name, fit in contenders.items()})
    for name, timing in times.items():
        yield Figure(f"{shape}, {name}", "best time", timing.seconds, unit=" s", digits=3)
    for name in METHODS:
        yield times_faster(f"{shape}, {name}", times, name, ABESS, 4)
    yield Figure(f"{shape}, {ABESS}", "median over best time (busy machine if well above 1)", times[ABESS].unrest)


def _objectives_over_abess(shape: Shape, seeds: int) -> Iterator[Figure]:
    """The worst of the seeds counts."""
    found = _objectives(shape, RHO, seeds)
    for name in METHODS:
        worst = float(np.max(found[name] / found[ABESS]))
        yield Figure(
            f"{shape}, {name}", f"objective over that of abess, worst of {seeds} seeds", worst, NOT_ABOVE, digits=9
        )


def _objectives(shape: Shape, rho: float, seeds: int) -> dict[str, np.ndarray]:
    """For every contender its objectives, one per seed."""
    rows = []
    for seed in range(seeds):
        problem = autoregressive_classes(shape, rho, seed)
        fits = _contenders(problem, shape.k)
        rows.append({name: logistic_objective(*problem, fit()) for name, fit in fits.items()})
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _contenders(problem: Problem, k: int) -> dict[str, LinearFit]:
    ours = {name: pauca_classes_fit(problem, k, method) for name, method in METHODS.items()}
    return {**ours, ABESS: abess_classes_fit(problem, k)}
