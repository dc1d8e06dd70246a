"""How good the chosen models are: against the rivals where columns are strongly correlated, and against all subsets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from benchmarks.fits import Fit, objective, pauca_fit
from benchmarks.problems import Problem, Shape, autoregressive
from benchmarks.report import Figure
from benchmarks.rivals import abess_fit, omp_fit
from pauca.methods import FoBa, Forward
from pauca.runs.run import Method

CORRELATED = (Shape(100, 500, 10), Shape(100, 1000, 20), Shape(200, 800, 15), Shape(300, 1000, 20))
CORRELATED_RHOS = (0.9, 0.95)
CORRELATED_SNRS = (5.0, 10.0)

ENUMERABLE = Shape(60, 30, 5)
ENUMERABLE_RHOS = (0.5, 0.8, 0.95)
ENUMERABLE_SNRS = (1.0, 3.0, 10.0)

# Objectives closer than this belong to the same model, or to two that are equally good.
SAME_WITHIN = 1e-9

EXCHANGE = "Exchange"
ABESS = "abess"
OMP = "OMP"

Objectives = dict[str, np.ndarray]
"""For every contender its objectives, one per seed."""


def correlated(quick: bool) -> Iterator[Figure]:
    """Neighbouring columns nearly alike: Exchange against abess, and against our own faster methods."""
    seeds = 3 if quick else 30
    shapes = CORRELATED[:2] if quick else CORRELATED
    cells = [
        (f"{shape}, AR({rho}), SNR {snr:g}", _objectives(shape, rho, snr, seeds))
        for shape, rho, snr in product(shapes, CORRELATED_RHOS, CORRELATED_SNRS)
    ]
    for name, found in cells:
        yield Figure(name, "Exchange over abess, means", _ratio_of_means(found), digits=3)
    together = {name: np.concatenate([found[name] for _, found in cells]) for name in cells[0][1]}
    whole = f"all {len(cells)} together, {seeds} seeds each"
    yield Figure(whole, "Exchange over abess, means", _ratio_of_means(together), 0.88, digits=3)
    yield Figure(whole, "Exchange over abess, mean of ratios", _mean_ratio(together), 0.88, digits=3)
    for name in together:
        if name not in (EXCHANGE, ABESS, OMP):
            yield Figure(whole, f"seeds where Exchange is above {name}", _times_above(together, name), 0, digits=0)
    for rival in (ABESS, OMP):
        yield Figure(whole, f"seeds where Exchange is above {rival}", _times_above(together, rival), digits=0)


def optimum(quick: bool) -> Iterator[Figure]:
    """Few enough columns to try all 142506 subsets: how often each finds the best of them."""
    seeds = 7 if quick else 60
    subsets = np.array(list(combinations(range(ENUMERABLE.d), ENUMERABLE.k)))
    cells = {
        f"AR({rho}), SNR {snr:g}": _optima_found(rho, snr, seeds, subsets)
        for rho, snr in product(ENUMERABLE_RHOS, ENUMERABLE_SNRS)
    }
    name = str(ENUMERABLE)
    for cell, found in cells.items():
        yield Figure(f"{name}, {cell}", "optimum found by Exchange", found[EXCHANGE].mean(), digits=3)
    whole = f"{name}, all {len(cells)} together, {seeds} seeds each"
    for contender in cells[cell]:
        share = np.mean([found[contender] for found in cells.values()])
        limit = 0.8 if contender == EXCHANGE else None
        yield Figure(whole, f"optimum found by {contender}", share, limit, at_least=True, digits=3)


def best_subset_objective(problem: Problem, subsets: np.ndarray) -> float:
    """Lowest objective of all ``subsets``, shape (number, k), from their blocks of the Gram matrix."""
    X = problem.X - problem.X.mean(axis=0)
    y = problem.y - problem.y.mean()
    gram, slope = X.T @ X, X.T @ y
    blocks = gram[subsets[:, :, None], subsets[:, None, :]]
    slopes = slope[subsets]
    coefs = np.linalg.solve(blocks, slopes[:, :, None])[:, :, 0]
    best = np.argmax(np.einsum("ij,ij->i", slopes, coefs))
    return objective(*problem, subsets[best])


def _contenders(problem: Problem, k: int) -> dict[str, Fit]:
    ours: dict[str, str | Method] = {
        EXCHANGE: "exchange",
        "FoBa": "foba",
        "FoBa(rule='refit')": FoBa(rule="refit"),
        "Forward": "forward",
        "Forward(rule='refit')": Forward(rule="refit"),
    }
    fits = {name: pauca_fit(problem, k, method) for name, method in ours.items()}
    return {**fits, ABESS: abess_fit(problem, k), OMP: omp_fit(problem, k)}


def _objectives(shape: Shape, rho: float, snr: float, seeds: int) -> Objectives:
    """Objectives of all contenders on ``seeds`` problems of one kind."""
    rows = []
    for seed in range(seeds):
        problem = autoregressive(shape, rho, snr, seed)
        rows.append({name: objective(*problem, fit()) for name, fit in _contenders(problem, shape.k).items()})
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _optima_found(rho: float, snr: float, seeds: int, subsets: np.ndarray) -> dict[str, np.ndarray]:
    """For every contender whether it found the best subset, one entry per seed."""
    found = _objectives(ENUMERABLE, rho, snr, seeds)
    problems = (autoregressive(ENUMERABLE, rho, snr, seed) for seed in range(seeds))
    best = np.array([best_subset_objective(problem, subsets) for problem in problems])
    return {name: values <= best * (1 + SAME_WITHIN) for name, values in found.items()}


def _ratio_of_means(found: Objectives) -> float:
    return float(found[EXCHANGE].mean() / found[ABESS].mean())


def _mean_ratio(found: Objectives) -> float:
    return float(np.mean(found[EXCHANGE] / found[ABESS]))


def _times_above(found: Objectives, name: str) -> int:
    return int(np.sum(found[EXCHANGE] > found[name] * (1 + SAME_WITHIN)))
