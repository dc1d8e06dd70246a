"""Sequences: the conditional random field against CRFsuite, and how many sensors a given error takes."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from sklearn.model_selection import KFold

from benchmarks.activities import Home, house_d, kasteren, made_up
from benchmarks.report import Figure
from benchmarks.rival_crf import train
from pauca import PaucaWarning, Progress, SparseTagger
from pauca.own import Problem
from pauca.own.refits import Rest, minimise
from pauca.sequences import ChainField, Observations

C2 = 1.0
K = 15

# Numbers of sensors at which errors are told, and by how much the error of all sensors may be missed.
FEW = (3, 5, 8, 12)
WITHIN = 0.01

# Strengths of the L1 penalty, as shares of the number of positions.
PENALTIES = np.geomspace(3e-2, 1e-4, 10)

LOADING = """
import numba
import numpy as np
from time import perf_counter
from pauca.sequences import Observations, Passes
from pauca.sequences.passes import kernels
passes = Passes(Observations.plain(np.zeros((5, 1)), np.array([0, 5])), 3)
start = perf_counter()
kernels()
passes.sums(np.zeros((5, 3)), np.zeros((3, 3)))
print(perf_counter() - start)
"""


def crf(quick: bool) -> Iterator[Figure]:
    """270 thousand steps, 14 labels, 40 binary sensors in 90 sequences: values, a full fit, and a path to 15 sensors.

    Everything runs on one thread but the path, which has two. Times are those of the processor, as CRFsuite tells its
    own; that of the path is told by the clock as well. The full fit goes to the objective that CRFsuite (L-BFGS, with
    c2 = 1) has after 300 iterations, or where it ends before. Ours is the same function of the weights: CRFsuite takes
    biases for weights of a sensor that is always on, so that their squares are in it here, and nowhere else.
    """
    home = made_up(*((30, 600) if quick else (90, 3000)))
    iterations = 60 if quick else 300
    y = np.concatenate(home.y)
    bounds = np.concatenate([[0], np.cumsum([len(one) for one in home.y])])
    n, shape = len(y), f"{len(y)} x 14 labels x 40 sensors"
    ridge = 2.0 * C2 / n
    rival = train(home, c2=C2, iterations=iterations)

    def field() -> ChainField:
        return ChainField(Observations.gather(np.vstack(home.X), bounds), y, 14, ridge=ridge, ridge_transitions=ridge)

    posed = field()
    w = posed.start
    posed.value_and_gradient(w)
    ours = min(_processor(lambda: posed.value_and_gradient(w)) for _ in range(30))
    yield Figure(shape, "patterns of rows", posed.observations.matrix.shape[0], digits=0)
    yield Figure(shape, "value and gradient", 1e3 * ours, unit=" ms", digits=1)
    yield Figure(shape, "CRFsuite over ours", rival.per_evaluation / ours, 2.5, at_least=True, unit=" x", digits=1)
    seconds, value, evaluations = _full_fit(field, ridge, rival.losses[-1] / n)
    yield Figure(shape, f"CRFsuite, {len(rival.losses)} iterations", rival.seconds, unit=" s", digits=1)
    yield Figure(shape, "its objective", rival.losses[-1] / n, digits=6)
    yield Figure(shape, "ours", value, rival.losses[-1] / n, digits=6)
    yield Figure(shape, "our values and gradients", evaluations, digits=0)
    yield Figure(shape, "full fit: sooner by", rival.seconds / seconds, 4, at_least=True, unit=" x", digits=1)
    start, on_clock = process_time(), perf_counter()
    model = SparseTagger(k=K, n_jobs=2).fit(home.X, home.y)
    on_clock = perf_counter() - on_clock
    yield Figure(shape, f"path to {model.k_} sensors, two threads", on_clock, rival.seconds, unit=" s", digits=1)
    yield Figure(shape, "the same on the processor", process_time() - start, unit=" s", digits=1)
    loads = [float(subprocess.check_output([sys.executable, "-c", LOADING])) for _ in range(4)]
    yield Figure("kernels", "cached load", min(loads), 0.3, unit=" s")


def sensors(quick: bool, data: Path) -> Iterator[Figure]:
    """Error on sequences held out (mean and standard error over folds) by number of sensors.

    A sensor counts as used if any weight of it is. "L1" takes the sensors to which CRFsuite with an L1 penalty gives a
    weight, at ten strengths of it, and refits all their weights. Days are held out in turn. Sensors needed: the fewest
    with an error within one point of that of all sensors.
    """
    homes = [made_up(40, 500, seed=1), kasteren(data), house_d(data)]
    for home in homes:
        yield from _by_sensors(home, 3 if quick else 5, FEW[:3] if quick else FEW)


class _WithBiases:
    """A field with the squares of its biases; counts its values."""

    def __init__(self, field: ChainField, ridge: float) -> None:
        self.n_coords = field.n_coords
        self.calls = 0
        self._field = field
        self._ridge = ridge
        self._biases = np.array([field.weights(along)[2] for along in np.eye(field.n_coords)])

    def value(self, w: np.ndarray) -> float:
        return self.value_and_gradient(w)[0]

    def gradient(self, w: np.ndarray) -> np.ndarray:
        return self.value_and_gradient(w)[1]

    def value_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        self.calls += 1
        value, gradient = self._field.value_and_gradient(w)
        biases = w @ self._biases
        return value + 0.5 * self._ridge * float(biases @ biases), gradient + self._ridge * (self._biases @ biases)

    def curvature(self, w: np.ndarray) -> np.ndarray:
        return self._field.curvature(w) + self._ridge * np.sum(self._biases**2, axis=1)


def _full_fit(make: Callable[[], ChainField], ridge: float, goal: float) -> tuple[float, float, int]:
    """Seconds until an objective is reached with all sensors, from the data on; the objective, and what it took."""
    start = process_time()
    field = make()
    posed = _WithBiases(field, ridge)
    value, gradient = posed.value_and_gradient(field.start)
    begin = Rest(field.start, value, gradient, np.diag(1.0 / posed.curvature(field.start)), np.inf)
    everything = np.arange(field.n_coords)
    found = minimise(Problem(posed), everything, begin, lambda reached: np.inf if reached <= goal else 0.0)
    return process_time() - start, found.value, posed.calls


def _processor(run: Callable[[], object]) -> float:
    start = process_time()
    run()
    return process_time() - start


Errors = dict[int, float]
"""Error on sequences held out, by number of sensors."""


def _by_sensors(home: Home, n_folds: int, sizes: tuple[int, ...]) -> Iterator[Figure]:
    ways: dict[str, Callable[[Home, Home, int], Errors]] = {
        "forward": lambda fit, test, most: _path_errors(fit, test, SparseTagger(k=most, method="forward")),
        "FoBa": lambda fit, test, most: _path_errors(fit, test, SparseTagger(k=most)),
        "forward by weight": _by_weight,
        "L1 refitted": _l1,
    }
    found: dict[str, list[Errors]] = {name: [] for name in ways}
    full: list[float] = []
    for train_days, test_days in KFold(n_folds, shuffle=True, random_state=0).split(home.X):
        fit, test = (Home(home.name, [home.X[i] for i in d], [home.y[i] for i in d]) for d in (train_days, test_days))
        for name, way in ways.items():
            found[name].append(way(fit, test, max(sizes)))
        everything = SparseTagger(k=home.X[0].shape[1], always=list(range(home.X[0].shape[1])))
        full.append(_error(everything, fit, test))
    positions = sum(len(one) for one in home.y)
    about = f"{home.name}, {positions} x {len(np.unique(np.concatenate(home.y)))} x {home.X[0].shape[1]}"
    yield Figure(about, f"error of all sensors (± {_deviation(full):.1f})", 100 * float(np.mean(full)), unit=" %")
    for name, folds in found.items():
        for size in sizes:
            errors = [_at_most(one, size) for one in folds]
            mean = 100 * float(np.mean(errors))
            yield Figure(
                f"{home.name}, {name}", f"error of {size} sensors (± {_deviation(errors):.1f})", mean, unit=" %"
            )
        needed = [_needed(one, all_of_them) for one, all_of_them in zip(folds, full, strict=True)]
        reached = [one for one in needed if one is not None]
        name_of = f"sensors needed in {len(reached)} of {n_folds} folds that get there"
        if reached:
            yield Figure(f"{home.name}, {name}", name_of, float(np.mean(reached)), digits=1)
    behind = [
        np.mean([_at_most(ours, size) - _at_most(theirs, size) for size in sizes])
        for ours, theirs in zip(found["FoBa"], found["L1 refitted"], strict=True)
    ]
    noise = 2 * _deviation(behind)
    yield Figure(f"{home.name}, FoBa", "points behind L1 refitted", 100 * float(np.mean(behind)), max(noise, 0.1))


def _path_errors(fit: Home, test: Home, tagger: SparseTagger) -> Errors:
    tagger = _fitted(tagger, fit)
    errors: Errors = {}
    for size in tagger.path_.sizes:
        model = tagger.at(size)
        errors[len(model.support_)] = 1.0 - model.score(test.X, test.y)
    return errors


def _by_weight(fit: Home, test: Home, most: int) -> Errors:
    """Single weights until so many sensors are used; the last model with each number of sensors counts."""
    used: set[int] = set()
    n_labels = len(np.unique(np.concatenate(fit.y)))

    def watch(progress: Progress) -> bool:
        used.add(int(progress.event[1]) // n_labels)  # type: ignore[arg-type]
        return len(used) >= most

    return _path_errors(fit, test, SparseTagger(k=4 * most, unit="weight", method="forward", callback=watch))


def _l1(fit: Home, test: Home, most: int) -> Errors:
    errors: Errors = {}
    n = sum(len(one) for one in fit.y)
    for strength in PENALTIES:
        chosen = train(fit, c1=strength * n, iterations=100).sensors
        if 0 < len(chosen) <= most and len(chosen) not in errors:
            errors[len(chosen)] = _error(SparseTagger(k=len(chosen), always=chosen.tolist()), fit, test)
    return errors


def _error(tagger: SparseTagger, fit: Home, test: Home) -> float:
    return 1.0 - _fitted(tagger, fit).score(test.X, test.y)


def _fitted(tagger: SparseTagger, home: Home) -> SparseTagger:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaucaWarning)
        return tagger.fit(home.X, home.y)


def _at_most(errors: Errors, size: int) -> float:
    """The error of the largest model of no more than so many sensors; of the smallest there is, if all are larger."""
    known = [one for one in errors if one <= size]
    return errors[max(known)] if known else errors[min(errors)]


def _needed(errors: Errors, full: float) -> int | None:
    good = [size for size, error in errors.items() if error <= full + WITHIN]
    return min(good) if good else None


def _deviation(errors: list[float]) -> float:
    """The standard error of a mean, in points."""
    return 100 * float(np.std(errors, ddof=1)) / len(errors) ** 0.5
