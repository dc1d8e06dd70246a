"""Sequences: the conditional random field against CRFsuite."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from time import perf_counter, process_time

import numpy as np

from benchmarks.activities import made_up
from benchmarks.report import Figure
from benchmarks.rival_crf import train
from pauca import SparseTagger
from pauca.crf.objective import ChainCRF
from pauca.crf.observations import Observations
from pauca.custom.objective import CustomProblem
from pauca.solvers.quasi_newton import SolverState, minimise

C2 = 1.0
K = 15

LOADING = """
import numba
import numpy as np
from time import perf_counter
from pauca.crf.observations import Observations
from pauca.crf.chain_inference import ChainInference, load_kernels
inference = ChainInference(Observations.from_rows(np.zeros((5, 1)), np.array([0, 5])), 3)
start = perf_counter()
load_kernels()
inference.expectations(np.zeros((5, 3)), np.zeros((3, 3)))
print(perf_counter() - start)
"""


def crf(quick: bool) -> Iterator[Figure]:
    """270 thousand steps, 14 labels, 40 binary sensors in 90 sequences: values, a full fit, and a path to 15 sensors.

    Everything runs on one thread but the path, which has two. Times are processor times, as CRFsuite reports its
    own; that of the path is also measured by the clock. The full fit goes to the objective that CRFsuite (L-BFGS, with
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

    def field() -> ChainCRF:
        return ChainCRF(
            Observations.from_distinct_rows(np.vstack(home.X), bounds), y, 14, ridge=ridge, ridge_transitions=ridge
        )

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
    yield Figure("kernels", "cached load, beside that of Numba", min(loads), 0.3, unit=" s")


class _WithBiases:
    """A field with the squares of its biases; counts its values."""

    def __init__(self, field: ChainCRF, ridge: float) -> None:
        self.n_coords = field.n_coords
        self.calls = 0
        self._field = field
        self._ridge = ridge
        self._biases = np.array([field.parameters(along)[2] for along in np.eye(field.n_coords)])

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


def _full_fit(make: Callable[[], ChainCRF], ridge: float, goal: float) -> tuple[float, float, int]:
    """Seconds until an objective is reached with all sensors, from the data on; the objective, and what it took."""
    start = process_time()
    field = make()
    posed = _WithBiases(field, ridge)
    value, gradient = posed.value_and_gradient(field.start)
    begin = SolverState(field.start, value, gradient, np.diag(1.0 / posed.curvature(field.start)), np.inf)
    everything = np.arange(field.n_coords)
    found = minimise(CustomProblem(posed), everything, begin, lambda reached: np.inf if reached <= goal else 0.0)
    return process_time() - start, found.value, posed.calls


def _processor(run: Callable[[], object]) -> float:
    start = process_time()
    run()
    return process_time() - start
