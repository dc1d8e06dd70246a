"""How long fits take: in reads of X, and against the rivals on the same data in the same run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.fits import objective, pauca_classes_fit, pauca_fit
from benchmarks.memory import peak_above_X
from benchmarks.problems import Problem, Shape, autoregressive, bytes_of, sparse_normal
from benchmarks.report import Figure
from benchmarks.rivals import abess_fit, omp_fit
from benchmarks.timing import Contender, Timing, race, read

WIDE = Shape(2000, 10000, 50)
TALL = Shape(100_000, 500, 30)
SMALL = (Shape(100, 500, 5), Shape(100, 500, 20))
SMALL_CLASSES = Shape(500, 30, 5)
SPARSE = Shape(16_000, 150_000, 30)
SPARSE_FILLED = 0.001

RHO = 0.5
SNR = 5.0

# Two supports that are the same model differ by rounding alone.
NOT_ABOVE = 1 + 1e-9

MEGABYTE = 1e6


def wide(quick: bool) -> Iterator[Figure]:
    """Many columns: forward and FoBa against both rivals, Exchange in reads."""
    problem = autoregressive(WIDE, RHO, SNR, seed=0)
    rounds = 3 if quick else 15
    methods = ("forward", "foba", "exchange")
    times = race(
        {
            "read": read(problem, rounds),
            **_ours(problem, WIDE.k, methods, rounds),
            "OMP": Contender(omp_fit(problem, WIDE.k), 3 if quick else 5),
            "abess": Contender(abess_fit(problem, WIDE.k), 2 if quick else 3),
        }
    )
    yield from _the_read(f"dense {WIDE}", times)
    for method, reads in zip(methods, (25, 25, 60), strict=True):
        yield _reads(f"dense {WIDE}, {method}", times, method, reads)
    for method in ("forward", "foba"):
        for rival, faster in (("OMP", 4), ("abess", 5)):
            yield times_faster(f"dense {WIDE}, {method}", times, method, rival, faster)
    yield from _objectives_over_rivals(2 if quick else 5)


def tall(quick: bool) -> Iterator[Figure]:
    """Many rows: forward against OMP."""
    problem = autoregressive(TALL, RHO, SNR, seed=0)
    rounds = 3 if quick else 15
    times = race(
        {
            "read": read(problem, rounds),
            **_ours(problem, TALL.k, ("forward", "exchange"), rounds),
            "OMP": Contender(omp_fit(problem, TALL.k), 3 if quick else 5),
        }
    )
    yield from _the_read(f"dense {TALL}", times)
    yield _reads(f"dense {TALL}, forward", times, "forward", 25)
    yield times_faster(f"dense {TALL}, forward", times, "forward", "OMP", 4)
    yield _reads(f"dense {TALL}, exchange", times, "exchange", None)


def small(quick: bool) -> Iterator[Figure]:
    """So little data that every line of Python counts."""
    rounds = 100 if quick else 500
    methods = ("forward", "exchange")
    for shape in SMALL:
        problem = autoregressive(shape, RHO, SNR, seed=0)
        times = race({**_ours(problem, shape.k, methods, rounds), "OMP": Contender(omp_fit(problem, shape.k), rounds)})
        for name, timing in times.items():
            yield Figure(f"dense {shape}, {name}", "best time", 1e3 * timing.seconds, unit=" ms")
        for method, least in zip(methods, (1, 0.5), strict=True):
            limit = least if shape.k == SMALL[0].k else None
            yield times_faster(f"dense {shape}, {method}", times, method, "OMP", limit)
    classes = autoregressive(SMALL_CLASSES, RHO, SNR, seed=0)
    classes = classes._replace(y=np.sign(classes.y - np.median(classes.y)))
    fits = {method: pauca_classes_fit(classes, SMALL_CLASSES.k, method) for method in methods}
    times = race({method: Contender(fit, rounds // 5) for method, fit in fits.items()})
    for method, limit in zip(methods, (None, 10), strict=True):
        milliseconds = 1e3 * times[method].seconds
        yield Figure(f"two classes {SMALL_CLASSES}, {method}", "best time", milliseconds, limit, unit=" ms")


def large_sparse(quick: bool) -> Iterator[Figure]:
    """Sparse data that would take 19 GB if they were dense."""
    problem = sparse_normal(SPARSE, SPARSE_FILLED, SNR, seed=0)
    rounds = 3 if quick else 10
    methods = ("forward", "exchange")
    times = race({"read": read(problem, rounds), **_ours(problem, SPARSE.k, methods, rounds)})
    size = bytes_of(problem.X) / MEGABYTE
    name = f"CSC {SPARSE}, {SPARSE_FILLED:.1%} full"
    yield from _the_read(name, times)
    yield Figure(name, "X itself", size, unit=" MB", digits=0)
    for method in methods:
        yield Figure(f"{name}, {method}", "best time", times[method].seconds, unit=" s")
        yield _reads(f"{name}, {method}", times, method, 400)
        peak = size + peak_above_X(problem, SPARSE.k, method) / MEGABYTE
        yield Figure(f"{name}, {method}", "peak memory with X", peak, round(1.5 * size + 500), unit=" MB", digits=0)


def times_faster(name: str, times: dict[str, Timing], method: str, rival: str, limit: float | None) -> Figure:
    """How many times faster a method is than a rival, by their best times."""
    ratio = times[rival].seconds / times[method].seconds
    return Figure(name, f"times faster than {rival}", ratio, limit, at_least=True)


def _ours(problem: Problem, k: int, methods: tuple[str, ...], rounds: int) -> dict[str, Contender]:
    return {method: Contender(pauca_fit(problem, k, method), rounds) for method in methods}


def _the_read(name: str, times: dict[str, Timing]) -> Iterator[Figure]:
    yield Figure(name, "one read", 1e3 * times["read"].seconds, unit=" ms")
    yield Figure(name, "median read over best (busy machine if well above 1)", times["read"].unrest)


def _reads(name: str, times: dict[str, Timing], method: str, limit: float | None) -> Figure:
    return Figure(name, "reads", times[method].seconds / times["read"].seconds, limit, digits=1)


def _objectives_over_rivals(seeds: int) -> Iterator[Figure]:
    """Ratios on several problems of the same kind; the worst of the seeds counts."""
    ratios = [ratio for seed in range(seeds) for ratio in _objective_ratios(autoregressive(WIDE, RHO, SNR, seed))]
    for method, rival in product(("forward", "foba"), ("OMP", "abess")):
        worst = max(value for *names, value in ratios if names == [method, rival])
        name = f"objective over that of {rival}, worst of {seeds} seeds"
        yield Figure(f"dense {WIDE}, {method}", name, worst, NOT_ABOVE, digits=6)


def _objective_ratios(problem: Problem) -> Iterator[tuple[str, str, float]]:
    """Triples of method, rival and the objective of the one over that of the other."""
    rivals = {"OMP": omp_fit(problem, WIDE.k), "abess": abess_fit(problem, WIDE.k)}
    theirs = {rival: objective(*problem, fit()) for rival, fit in rivals.items()}
    for method in ("forward", "foba"):
        ours = objective(*problem, pauca_fit(problem, WIDE.k, method)())
        yield from ((method, rival, ours / value) for rival, value in theirs.items())
