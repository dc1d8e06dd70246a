"""How well the default predicts on simulated tables, against rivals tuned on the same folds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import ElasticNetCV, LassoCV, LogisticRegressionCV, RidgeCV, lasso_path
from sklearn.model_selection import KFold, StratifiedKFold

from benchmarks.kept_runs import kept_run
from benchmarks.report import Figure
from pauca import SparseClassifier, SparseRegressor

SETTINGS = ((500, 100, 5), (100, 1000, 10), (50, 1000, 5))
"""Rows, columns and true features of Hastie, Tibshirani and Tibshirani (2020)."""

CORRELATIONS = (0.0, 0.35, 0.7)
RATIOS = (0.05, 0.25, 0.71, 2.07, 6.0)
"""Signal to noise."""

FIRST_SEED = 7000
"""No seed from here on was used to find the rule."""

FOLDS = KFold(5, shuffle=True, random_state=0)
STRATIFIED = StratifiedKFold(5, shuffle=True, random_state=0)
RIDGES = np.logspace(-3, 4, 15)
GAMMAS = np.linspace(0, 1, 6)

OURS = "pauca"
LASSO, RELAXED = "lasso", "relaxed lasso"
L1 = "l1"
ELASTIC_NET = "elastic net"


class Cell(NamedTuple):
    """A setting of the simulation."""

    n: int
    p: int
    s: int
    rho: float
    snr: float

    @property
    def covariance(self) -> np.ndarray:
        """Correlations of the columns."""
        return self.rho ** np.abs(np.subtract.outer(np.arange(self.p), np.arange(self.p)))

    @property
    def coef(self) -> np.ndarray:
        """Ones at equal distances (the first type of the paper); without signal none."""
        coef = np.zeros(self.p)
        coef[np.linspace(0, self.p - 1, self.s).round().astype(int)] = float(self.snr > 0)
        return coef

    def __str__(self) -> str:
        return f"n={self.n} p={self.p} rho={self.rho:g} snr={self.snr:g}"


CELLS = [Cell(*setting, rho, snr) for setting, rho, snr in product(SETTINGS, CORRELATIONS, RATIOS)]


class Linear(NamedTuple):
    """A fitted linear model."""

    coef: np.ndarray
    intercept: float

    @property
    def size(self) -> int:
        """Number of features."""
        return int(np.count_nonzero(self.coef))


Fit = Callable[[np.ndarray, np.ndarray], Linear]


def draw(cell: Cell, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows, targets and the variance of the noise."""
    rng = np.random.default_rng([seed, cell.n, cell.p, round(100 * cell.rho), round(100 * cell.snr)])
    noise = rng.standard_normal((cell.n, cell.p))
    X = noise.copy()
    for column in range(1, cell.p):  # an autoregression along the columns has the covariance rho^|i-j|
        X[:, column] = cell.rho * X[:, column - 1] + np.sqrt(1 - cell.rho**2) * noise[:, column]
    variance = 1.0 if cell.snr == 0 else float(cell.coef @ cell.covariance @ cell.coef) / cell.snr
    return X, X @ cell.coef + np.sqrt(variance) * rng.standard_normal(cell.n), variance


def relative_test_error(cell: Cell, model: Linear, variance: float) -> float:
    """Expected squared error on new rows over that of the truth."""
    off = model.coef - cell.coef
    return float(1.0 + (off @ cell.covariance @ off + model.intercept**2) / variance)


def linear(model: Any) -> Linear:
    """The coefficients of a fitted model."""
    return Linear(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]))


def relaxed_lasso(X: np.ndarray, y: np.ndarray) -> Linear:
    """Mixtures of the lasso and of least squares on its features (Meinshausen 2007), penalty and mixture by folds."""
    centred = X - X.mean(axis=0)
    alphas = lasso_path(centred, y - y.mean(), n_alphas=50, eps=1e-2)[0]
    error = np.zeros((len(alphas), len(GAMMAS)))
    for train, test in FOLDS.split(X):
        coef, intercept = _relaxed_path(X[train], y[train], alphas)
        error += ((y[test][:, None, None] - np.tensordot(X[test], coef, 1) - intercept) ** 2).sum(axis=0)
    place = np.unravel_index(int(error.argmin()), error.shape)
    coef, intercept = _relaxed_path(X, y, alphas)
    return Linear(coef[:, place[0], place[1]], float(intercept[place]))


def _relaxed_path(X: np.ndarray, y: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean, level = X.mean(axis=0), y.mean()
    lasso = lasso_path(X - mean, y - level, alphas=alphas)[1]
    refitted = np.zeros_like(lasso)
    for column in range(lasso.shape[1]):
        support = np.flatnonzero(lasso[:, column])
        if len(support):
            refitted[support, column] = np.linalg.lstsq(X[:, support] - mean[support], y - level, rcond=None)[0]
    coef = lasso[:, :, None] * GAMMAS + refitted[:, :, None] * (1 - GAMMAS)
    return coef, level - np.tensordot(mean, coef, 1)


def regressors() -> dict[str, Fit]:
    """Ours first, then rivals on the same folds."""
    abess = import_module("abess.linear").LinearRegression
    return {
        OURS: lambda X, y: linear(SparseRegressor(cv=FOLDS).fit(X, y)),
        LASSO: lambda X, y: linear(LassoCV(cv=FOLDS).fit(X, y)),
        RELAXED: relaxed_lasso,
        ELASTIC_NET: lambda X, y: linear(ElasticNetCV(l1_ratio=[0.1, 0.5, 0.9], cv=FOLDS).fit(X, y)),
        "ridge": lambda X, y: linear(RidgeCV(RIDGES * len(y), cv=FOLDS).fit(X, y)),
        "abess": lambda X, y: linear(abess(cv=5).fit(X, y)),
    }


class Result(NamedTuple):
    """Errors and sizes of all methods, shape (methods, seeds)."""

    error: np.ndarray
    size: np.ndarray


def run_cell(cell: Cell, fits: dict[str, Fit], seeds: Sequence[int]) -> Result:
    """Every method on every seed of a cell."""
    runs = np.array([[one_run(cell, name, fit, seed) for seed in seeds] for name, fit in fits.items()])
    return Result(runs[:, :, 0], runs[:, :, 1])


def one_run(cell: Cell, name: str, fit: Fit, seed: int) -> tuple[float, ...]:
    """Error and size of one method on one seed."""

    def run() -> tuple[float, float]:
        X, y, variance = draw(cell, seed)
        model = quietly(fit, X, y)
        return relative_test_error(cell, model, variance), model.size

    return kept_run(name, key(cell, seed), run)


def key(cell: Cell, seed: int) -> str:
    """What a run is kept as."""
    return f"{cell} seed={seed}"


def regret(results: dict[Cell, Result]) -> np.ndarray:
    """Mean error of every method over that of the best rival, shape (cells, methods)."""
    means = np.array([result.error.mean(axis=1) for result in results.values()])
    return means / means[:, 1:].min(axis=1, keepdims=True)


def beyond_chance(result: Result, limit: float) -> bool:
    """Whether our mean error exceeds ``limit`` times the best rival's by more than two paired standard errors."""
    best = 1 + int(result.error[1:].mean(axis=1).argmin())
    excess = result.error[0] - limit * result.error[best]
    return bool(excess.mean() > 2 * excess.std(ddof=1) / np.sqrt(len(excess)))


def prediction(quick: bool) -> Iterator[Figure]:
    """Settings of Hastie, Tibshirani and Tibshirani (2020): test error over that of the best rival in hindsight.

    All methods are tuned on the same five folds; the seeds chose nothing.
    """
    fits = regressors()
    seeds = range(FIRST_SEED, FIRST_SEED + (2 if quick else 20))
    for seed, cell in product(seeds, CELLS):  # seed by seed: what is kept of a run that was cut off covers all cells
        run_cell(cell, fits, [seed])
    results = {cell: run_cell(cell, fits, seeds) for cell in CELLS}
    ratio = regret(results)
    sizes = np.array([result.size.mean(axis=1) for result in results.values()])
    names = list(fits)
    for row, name in enumerate(names):
        ours = name == OURS
        yield Figure(f"45 cells, {name}", "mean regret", float(ratio[:, row].mean()), 1.005 if ours else None, digits=3)
        yield Figure(f"45 cells, {name}", "worst cell", float(ratio[:, row].max()), None, digits=3)
        share = float((sizes[:, row] / np.maximum(sizes[:, names.index(LASSO)], 1.0)).mean())
        yield Figure(f"45 cells, {name}", "features / lasso's", share, 0.5 if ours else None, digits=2)
    missed = sum(beyond_chance(result, 1.10) for result in results.values())
    yield Figure("45 cells, pauca", "above 1.10 beyond two standard errors", missed, 0, digits=0)
    for cell, row in zip(CELLS, ratio, strict=True):
        yield Figure(str(cell), "regret", float(row[0]), None, digits=3)
    yield from pure_noise(10 if quick else 200, fits)


def pure_noise(runs: int, fits: dict[str, Fit]) -> Iterator[Figure]:
    """How often no feature is chosen where there is no signal."""
    seeds = range(FIRST_SEED, FIRST_SEED + max(1, round(runs / len(SETTINGS))))
    empty = np.zeros(2)
    for setting in SETTINGS:
        result = run_cell(Cell(*setting, 0.35, 0.0), {name: fits[name] for name in (OURS, LASSO)}, seeds)
        empty += (result.size == 0).mean(axis=1) / len(SETTINGS)
    yield Figure("pure noise, pauca", "share of size 0", float(empty[0]), float(empty[1]), at_least=True, digits=2)
    yield Figure("pure noise, lasso", "share of size 0", float(empty[1]), digits=2)


TEST_ROWS = 4000
TWINS = [Cell(*setting, rho, snr) for setting, rho, snr in product(SETTINGS[:2], (0.0, 0.7), (0.71, 6.0))]


def classifiers() -> dict[str, Fit]:
    """Ours first, then rivals on the same folds: l1, l2 and abess."""
    abess = import_module("abess.linear").LogisticRegression
    return {
        OURS: lambda X, y: linear(SparseClassifier(cv=STRATIFIED).fit(X, y)),
        L1: lambda X, y: linear(logistic_model("liblinear", 1.0).fit(X, y)),
        "l2": lambda X, y: linear(logistic_model("lbfgs", 0.0).fit(X, y)),
        "abess": lambda X, y: linear(abess(cv=5).fit(X, y.astype(int))),
    }


def logistic_model(solver: str, l1_ratio: float, tol: float = 1e-3) -> LogisticRegressionCV:
    """A penalised logistic regression, its penalty chosen on the same folds.

    The order in which liblinear visits the columns is random, and where it stops early the model depends on it.
    """
    return LogisticRegressionCV(
        Cs=np.logspace(-3, 2, 15),
        cv=STRATIFIED,
        solver=solver,
        l1_ratios=[l1_ratio],
        scoring="neg_log_loss",
        tol=tol,
        random_state=0,
    )


def log_loss_of(model: Linear, X: np.ndarray, y: np.ndarray) -> float:
    """Mean logistic loss of signs."""
    return float(np.logaddexp(0.0, -np.where(y, 1.0, -1.0) * (X @ model.coef + model.intercept)).mean())


def prediction_classes(quick: bool) -> Iterator[Figure]:
    """Signs of the same targets: deviance on 4000 new rows over that of the best of l1, l2 and abess in hindsight."""
    fits = classifiers()
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if quick else 10))
    for seed, cell in product(seeds, TWINS):
        run_twin(cell, fits, [seed])
    results = [run_twin(cell, fits, seeds) for cell in TWINS]
    means = np.array([result.error.mean(axis=1) for result in results])
    sizes = np.array([result.size.mean(axis=1) for result in results])
    ratio = means / means[:, 1:].min(axis=1, keepdims=True)
    share = sizes / np.maximum(sizes[:, 1:2], 1.0)
    for place, name in enumerate(fits):
        ours = name == OURS
        worst = float(ratio[:, place].max())
        yield Figure(f"8 cells, {name}", "mean ratio", float(ratio[:, place].mean()), 1.01 if ours else None, digits=3)
        yield Figure(f"8 cells, {name}", "worst cell", worst, 1.06 if ours else None, digits=3)
        yield Figure(f"8 cells, {name}", "features / l1's", float(share[:, place].mean()), digits=2)


def run_twin(cell: Cell, fits: dict[str, Fit], seeds: Sequence[int]) -> Result:
    """Every method on every seed of a cell with signs for targets."""
    runs = np.array([[_one_twin(cell, name, fit, seed) for seed in seeds] for name, fit in fits.items()])
    return Result(runs[:, :, 0], runs[:, :, 1])


def _one_twin(cell: Cell, name: str, fit: Fit, seed: int) -> tuple[float, ...]:
    def run() -> tuple[float, float]:
        X, y, _ = draw(cell, seed)
        new, truth, _ = draw(cell._replace(n=TEST_ROWS), seed + 1)
        model = quietly(fit, X, y > 0)
        return log_loss_of(model, new, truth > 0), model.size

    return kept_run(name, f"signs {cell} seed={seed}", run)


def quietly(fit: Fit, X: np.ndarray, y: np.ndarray) -> Linear:
    """A fit without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(X, y)
