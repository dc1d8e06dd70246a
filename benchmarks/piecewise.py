"""Losses with kinks, which pauca smooths: how far its fits are above the optimum that a linear program finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, vstack

from benchmarks.fits import Linear
from benchmarks.problems import Problem, Shape, autoregressive, autoregressive_classes
from benchmarks.report import Figure
from pauca import SparseClassifier, SparseRegressor
from pauca.losses import AbsoluteError, Hinge, PiecewiseLinear, Quantile

SHAPE = Shape(500, 50, 10)
RHO = 0.5
SNR = 5.0

LOSSES: dict[str, PiecewiseLinear] = {
    "hinge": Hinge(),
    "absolute_error": AbsoluteError(),
    "Quantile(0.9)": Quantile(0.9),
}


class Lines(NamedTuple):
    """A loss ``max(low r, high r)`` of residuals ``r = direction * score - offset``, one per row."""

    low: float
    high: float
    direction: np.ndarray
    offset: np.ndarray

    def mean(self, scores: np.ndarray) -> float:
        """The mean loss."""
        r = self.direction * scores - self.offset
        return float(np.mean(np.maximum(self.low * r, self.high * r)))


def lp(quick: bool) -> Iterator[Figure]:
    """Excess of our refit over the linear program on the same columns, as a share of the accuracy each loss states."""
    seeds = 2 if quick else 10
    for name, loss in LOSSES.items():
        excesses = [_excess(name, loss, seed) for seed in range(seeds)]
        problem = f"{name}, {SHAPE}, accuracy {loss.accuracy:g}"
        yield Figure(problem, f"excess over stated accuracy, mean of {seeds} seeds", float(np.mean(excesses)), digits=3)
        yield Figure(problem, f"excess over stated accuracy, worst of {seeds} seeds", max(excesses), 1, digits=3)


def least_loss(columns: np.ndarray, lines: Lines) -> float:
    """Least mean loss of a linear model with intercept on ``columns``, shape (n, k), by linear programming.

    The variables are coefficients, intercept, and a bound on the loss of every row, whose mean is minimised.
    """
    n = len(columns)
    rows = csr_array(lines.direction[:, None] * np.hstack([columns, np.ones((n, 1))]))
    sides = [hstack([slope * rows, -eye_array(n)]) for slope in (lines.low, lines.high)]
    limits = np.concatenate([slope * lines.offset for slope in (lines.low, lines.high)])
    cost = np.concatenate([np.zeros(rows.shape[1]), np.full(n, 1 / n)])
    solved = linprog(cost, vstack(sides).tocsr(), limits, bounds=(None, None), method="highs")
    if not solved.success:
        raise RuntimeError(f"the linear program was not solved: {solved.message}")
    return float(solved.fun)


def _excess(name: str, loss: PiecewiseLinear, seed: int) -> float:
    """How far our loss is above the least, over what it may be: its accuracy times the loss of the best constant."""
    problem = _problem(name, seed)
    estimator = SparseClassifier if name == "hinge" else SparseRegressor
    fitted = estimator(SHAPE.k, loss=loss).fit(*problem)
    model, lines = Linear.of(fitted), _lines(name, problem.y)
    least = least_loss(problem.X[:, fitted.support_], lines)
    constant = least_loss(np.zeros((SHAPE.n, 0)), lines)
    return (lines.mean(problem.X @ model.coef + model.intercept) - least) / (loss.accuracy * constant)


def _problem(name: str, seed: int) -> Problem:
    return autoregressive_classes(SHAPE, RHO, seed) if name == "hinge" else autoregressive(SHAPE, RHO, SNR, seed)


def _lines(name: str, y: np.ndarray) -> Lines:
    ones = np.ones(len(y))
    return {
        "hinge": Lines(-1.0, 0.0, y, ones),
        "absolute_error": Lines(-1.0, 1.0, ones, y),
        "Quantile(0.9)": Lines(-0.9, 0.1, ones, y),
    }[name]
