"""Gaussian graphs with few edges: SparsePrecision against the graphical lasso tuned to the same number of edges."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import NamedTuple

import numpy as np
from sklearn.covariance import empirical_covariance, graphical_lasso, log_likelihood
from sklearn.exceptions import ConvergenceWarning

from benchmarks.report import Figure
from benchmarks.timing import Contender, race
from pauca import SparsePrecision
from pauca.graphical.objective import GaussianGraph

COLUMNS, ROWS, HELD_OUT = 200, 500, 2000
MANY_COLUMNS = 1000

# A graph of many columns has twice as many rows and as many edges; in quick mode it is smaller.
LARGE, LARGE_IF_QUICK = MANY_COLUMNS, 300

# Halvings of the range of penalties; the one whose number of edges is nearest to the truth counts.
HALVINGS = 14

LASSO, REFITTED = "graphical lasso", "graphical lasso, refitted"

# Above means more than rounding.
ABOVE = 1e-9


class Truth(NamedTuple):
    """A precision matrix, and rows that were drawn with it."""

    edges: np.ndarray
    """Mask of the upper triangle, row by row."""
    X: np.ndarray
    held_out: np.ndarray


class Found(NamedTuple):
    """How well one contender has found the truth."""

    f1: float
    likelihood: float
    seconds: float = np.nan
    converged: bool = True


def graphs(quick: bool) -> Iterator[Figure]:
    """A chain and random graphs of 200 columns, 500 rows, as many edges as the truth has.

    F1 is the harmonic mean of the shares of edges that are right among those found, and found among those that are
    right. The likelihood is the mean log-likelihood of 2000 further rows. The graphical lasso of scikit-learn sees
    correlations, and its penalty is bisected until it leaves the true number of edges. It has no seconds here: where
    its 200 iterations do not suffice, which is counted, they say nothing of a fit that ends. Refitted: its edges,
    fitted without a penalty. Standard errors are those of the mean over seeds. At last a random
    graph of a thousand columns, two thousand rows and a thousand edges: the whole path up to them.
    """
    seeds = 2 if quick else 10
    for name, make in (("chain", _chain), ("random", _random)):
        found = [_contest(_drawn(make, seed)) for seed in range(seeds)]
        whole = f"{name}, {COLUMNS} columns, {ROWS} rows, {seeds} seeds"
        for contender in found[0]:
            yield Figure(whole, f"F1 of {contender}", _mean(found, contender, "f1"), digits=3)
        yield from _above(whole, found, "f1", LASSO, ABOVE)
        for contender in found[0]:
            yield Figure(whole, f"likelihood of {contender}", _mean(found, contender, "likelihood"), digits=3)
        yield from _above(whole, found, "likelihood", LASSO, ABOVE)
        yield from _above(whole, found, "likelihood", REFITTED, ABOVE)
        unfinished = sum(not one[LASSO].converged for one in found)
        yield Figure(whole, f"{LASSO}: fits that did not converge", unfinished, digits=0)
        for contender in ("foba", "forward"):
            yield Figure(whole, f"time of {contender}", _mean(found, contender, "seconds"), unit=" s")
    yield _gains(3 if quick else 15)
    yield from _large(LARGE_IF_QUICK if quick else LARGE)


def _gains(rounds: int) -> Figure:
    """Time to score all edges once."""
    rng = np.random.default_rng(0)
    graph = GaussianGraph(empirical_covariance(rng.standard_normal((2 * MANY_COLUMNS, MANY_COLUMNS))))
    sigma = np.eye(MANY_COLUMNS)
    timing = race({"gains": Contender(lambda: graph.edge_gains(sigma), rounds)})["gains"]
    return Figure(
        f"{len(graph.edges)} edges of {MANY_COLUMNS} columns", "gains of all", timing.seconds, 0.1, unit=" s", digits=4
    )


def _large(columns: int) -> Iterator[Figure]:
    """The path of a random graph up to as many edges as columns."""
    rng = np.random.default_rng(0)
    theta = _random(rng, columns)
    X = rng.standard_normal((2 * columns, columns)) @ np.linalg.cholesky(np.linalg.inv(theta)).T
    true = theta[np.triu_indices(columns, 1)] != 0
    for method in ("foba", "forward"):
        start = perf_counter()
        model = SparsePrecision(columns, method=method).fit(X)
        seconds = perf_counter() - start
        whole = f"random, {columns} columns, {2 * columns} rows, {columns} edges"
        yield Figure(whole, f"time of {method}", seconds, 120.0 if columns == LARGE else None, unit=" s", digits=1)
        yield Figure(whole, f"F1 of {method}", _f1(model.precision_, true), digits=3)


def _chain(rng: np.random.Generator) -> np.ndarray:
    """Every column depends on two neighbours."""
    theta = np.eye(COLUMNS)
    _put(theta, np.arange(COLUMNS - 1), np.arange(1, COLUMNS), rng.uniform(0.25, 0.45, COLUMNS - 1), rng)
    return theta


def _random(rng: np.random.Generator, columns: int = COLUMNS) -> np.ndarray:
    """As many edges as columns, anywhere."""
    first, second = np.triu_indices(columns, 1)
    chosen = rng.choice(len(first), columns, replace=False)
    theta = np.zeros((columns, columns))
    _put(theta, first[chosen], second[chosen], rng.uniform(0.3, 0.7, columns), rng)
    np.fill_diagonal(theta, np.abs(theta).sum(axis=0) + 0.2)
    return theta


def _put(theta: np.ndarray, first: np.ndarray, second: np.ndarray, sizes: np.ndarray, rng: np.random.Generator) -> None:
    entries = sizes * rng.choice([-1.0, 1.0], len(sizes))
    theta[first, second] = theta[second, first] = entries


def _drawn(make: Callable[[np.random.Generator], np.ndarray], seed: int) -> Truth:
    rng = np.random.default_rng(seed)
    theta = make(rng)
    X = rng.standard_normal((ROWS + HELD_OUT, COLUMNS)) @ np.linalg.cholesky(np.linalg.inv(theta)).T
    return Truth(theta[np.triu_indices(COLUMNS, 1)] != 0, X[:ROWS], X[ROWS:])


def _contest(truth: Truth) -> dict[str, Found]:
    k = int(truth.edges.sum())
    found = {}
    for method in ("foba", "forward"):
        start = perf_counter()
        model = SparsePrecision(k, method=method).fit(truth.X)
        seconds = perf_counter() - start
        found[method] = _judged(truth, model.precision_)._replace(seconds=seconds)
    graph = GaussianGraph(empirical_covariance(truth.X))
    theta, converged = _lasso(graph.correlation, k)
    scale = np.multiply.outer(graph.spread, graph.spread)
    found[LASSO] = _judged(truth, theta / scale)._replace(converged=converged)
    edges = np.flatnonzero(theta[np.triu_indices(COLUMNS, 1)])
    refitted = graph.mle.fit(edges, lambda: np.eye(COLUMNS)).theta(COLUMNS)
    found[REFITTED] = _judged(truth, refitted / scale)
    return found


def _judged(truth: Truth, precision: np.ndarray) -> Found:
    seen = empirical_covariance(truth.held_out - truth.X.mean(axis=0), assume_centered=True)
    return Found(_f1(precision, truth.edges), float(log_likelihood(seen, precision)))


def _f1(precision: np.ndarray, true: np.ndarray) -> float:
    edges = precision[np.triu_indices(len(precision), 1)] != 0
    return float(2 * np.sum(edges & true) / (edges.sum() + true.sum()))


def _lasso(correlation: np.ndarray, k: int) -> tuple[np.ndarray, bool]:
    """The precision matrix of the graphical lasso whose number of edges is nearest to k, and whether it converged."""
    sizes = np.sort(np.abs(correlation[np.triu_indices(COLUMNS, 1)]))
    # About as many edges are left as correlations are above the penalty; far below, each fit takes minutes.
    low, high = float(sizes[-4 * k]), float(sizes[-1])
    best, converged, off = np.eye(COLUMNS), False, k + 1
    for _ in range(HALVINGS):
        alpha = 0.5 * (low + high)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            theta = graphical_lasso(correlation, alpha, max_iter=200)[1]
        count = np.count_nonzero(np.triu(theta, 1))
        if abs(count - k) < off:
            ended = not any(issubclass(one.category, ConvergenceWarning) for one in caught)
            best, converged, off = theta, ended, abs(count - k)
        low, high = (alpha, high) if count > k else (low, alpha)
        if count == k:
            break
    return best, converged


def _mean(found: list[dict[str, Found]], contender: str, figure: str) -> float:
    return float(np.mean([getattr(one[contender], figure) for one in found]))


def _above(problem: str, found: list[dict[str, Found]], figure: str, rival: str, limit: float) -> Iterator[Figure]:
    above = np.array([getattr(one["foba"], figure) - getattr(one[rival], figure) for one in found])
    yield Figure(problem, f"{figure} of foba above {rival}", above.mean(), limit, at_least=True, digits=3)
    error = above.std(ddof=1) / np.sqrt(len(above))
    yield Figure(problem, f"{figure} of foba above {rival}, standard error", error, digits=3)
