"""How well the default predicts: against rivals tuned on the same folds, on simulated and on real tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import ElasticNetCV, LassoCV, LogisticRegressionCV, RidgeCV, lasso_path
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

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


def _of(model: Any) -> Linear:
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
        OURS: lambda X, y: _of(SparseRegressor(cv=FOLDS).fit(X, y)),
        LASSO: lambda X, y: _of(LassoCV(cv=FOLDS).fit(X, y)),
        RELAXED: relaxed_lasso,
        "elastic net": lambda X, y: _of(ElasticNetCV(l1_ratio=[0.1, 0.5, 0.9], cv=FOLDS).fit(X, y)),
        "ridge": lambda X, y: _of(RidgeCV(RIDGES * len(y), cv=FOLDS).fit(X, y)),
        "abess": lambda X, y: _of(abess(cv=5).fit(X, y)),
    }


class Result(NamedTuple):
    """Errors and sizes of all methods, shape (methods, seeds)."""

    error: np.ndarray
    size: np.ndarray


def run_cell(cell: Cell, fits: dict[str, Fit], seeds: range) -> Result:
    """Every method on every seed of a cell."""
    found = np.zeros((2, len(fits), len(seeds)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for column, seed in enumerate(seeds):
            X, y, variance = draw(cell, seed)
            for row, fit in enumerate(fits.values()):
                model = fit(X, y)
                found[:, row, column] = relative_test_error(cell, model, variance), model.size
    return Result(*found)


def regret(results: dict[Cell, Result]) -> np.ndarray:
    """Mean error of every method over that of the best rival, shape (cells, methods)."""
    means = np.array([result.error.mean(axis=1) for result in results.values()])
    return means / means[:, 1:].min(axis=1, keepdims=True)


def prediction(quick: bool) -> Iterator[Figure]:
    """Settings of Hastie, Tibshirani and Tibshirani (2020): test error over that of the best rival in hindsight.

    All methods are tuned on the same five folds; the seeds chose nothing.
    """
    fits = regressors()
    seeds = range(FIRST_SEED, FIRST_SEED + (2 if quick else 20))
    results = {cell: run_cell(cell, fits, seeds) for cell in CELLS}
    ratio = regret(results)
    sizes = np.array([result.size.mean(axis=1) for result in results.values()])
    names = list(fits)
    for row, name in enumerate(names):
        ours = name == OURS
        yield Figure(f"45 cells, {name}", "mean regret", float(ratio[:, row].mean()), 1.005 if ours else None, digits=3)
        yield Figure(f"45 cells, {name}", "worst cell", float(ratio[:, row].max()), 1.10 if ours else None, digits=3)
        share = float((sizes[:, row] / sizes[:, names.index(LASSO)]).mean())
        yield Figure(f"45 cells, {name}", "features / lasso's", share, 0.5 if ours else None, digits=2)
    yield from pure_noise(10 if quick else 200, fits)


def pure_noise(runs: int, fits: dict[str, Fit]) -> Iterator[Figure]:
    """How often no feature is chosen where there is no signal."""
    seeds = range(FIRST_SEED, FIRST_SEED + max(1, runs // len(SETTINGS)))
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
        OURS: lambda X, y: _of(SparseClassifier(cv=STRATIFIED).fit(X, y)),
        L1: lambda X, y: _of(_logistic("liblinear", 1.0).fit(X, y)),
        "l2": lambda X, y: _of(_logistic("lbfgs", 0.0).fit(X, y)),
        "abess": lambda X, y: _of(abess(cv=5).fit(X, y.astype(int))),
    }


def _logistic(solver: str, l1_ratio: float) -> LogisticRegressionCV:
    return LogisticRegressionCV(
        Cs=np.logspace(-3, 2, 15), cv=STRATIFIED, solver=solver, l1_ratios=[l1_ratio], scoring="neg_log_loss", tol=1e-3
    )


def log_loss_of(model: Linear, X: np.ndarray, y: np.ndarray) -> float:
    """Mean logistic loss of signs."""
    return float(np.logaddexp(0.0, -np.where(y, 1.0, -1.0) * (X @ model.coef + model.intercept)).mean())


def prediction_classes(quick: bool) -> Iterator[Figure]:
    """Signs of the same targets: deviance on 4000 new rows over that of the best of l1, l2 and abess in hindsight."""
    fits = classifiers()
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if quick else 10))
    errors = np.zeros((len(TWINS), len(fits), len(seeds)))
    sizes = np.zeros_like(errors)
    for row, cell in enumerate(TWINS):
        for column, seed in enumerate(seeds):
            X, y, _ = draw(cell, seed)
            new, truth, _ = draw(cell._replace(n=TEST_ROWS), seed + 1)
            for place, fit in enumerate(fits.values()):
                model = _quietly(fit, X, y > 0)
                errors[row, place, column], sizes[row, place, column] = log_loss_of(model, new, truth > 0), model.size
    means = errors.mean(axis=2)
    ratio = means / means[:, 1:].min(axis=1, keepdims=True)
    share = sizes.mean(axis=2) / np.maximum(sizes.mean(axis=2)[:, 1:2], 1.0)
    for place, name in enumerate(fits):
        ours = name == OURS
        worst = float(ratio[:, place].max())
        yield Figure(f"8 cells, {name}", "mean ratio", float(ratio[:, place].mean()), 1.01 if ours else None, digits=3)
        yield Figure(f"8 cells, {name}", "worst cell", worst, 1.06 if ours else None, digits=3)
        yield Figure(f"8 cells, {name}", "features / l1's", float(share[:, place].mean()), digits=2)


def _quietly(fit: Fit, X: np.ndarray, y: np.ndarray) -> Linear:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(X, y)


class Table(NamedTuple):
    """A real table; classes are booleans."""

    name: str
    X: np.ndarray
    y: np.ndarray

    @property
    def classes(self) -> bool:
        """Whether the target is a class."""
        return self.y.dtype == bool


def tables(folder: Path) -> Iterator[Table]:
    """Genes, and tables with squares and products of their columns."""
    golub, riboflavin = (np.load(folder / "highdim" / f"{name}.npz") for name in ("golub", "riboflavin"))
    yield Table("golub", golub["X"].astype(float), golub["y"] == "AML")
    yield Table("riboflavin", riboflavin["X"], riboflavin["y"])
    diabetes, cancer, wine = (load(return_X_y=True) for load in (load_diabetes, load_breast_cancer, load_wine))
    yield Table("diabetes, degree 2", _degree_2(diabetes[0]), diabetes[1])
    yield Table("breast cancer", cancer[0], cancer[1] == 1)
    yield Table("wine, first class", wine[0], wine[1] == 0)
    boston = np.loadtxt(folder / "small" / "boston_house_prices.csv", delimiter=",", skiprows=2)
    yield Table("Boston, degree 2", _degree_2(boston[:, :-1]), boston[:, -1])
    spam = np.loadtxt(folder / "risk" / "spambase_data.csv.gz", delimiter=",", skiprows=1)
    yield Table("spambase, 1000 rows", spam[::4][:1000, 1:], spam[::4][:1000, 0] > 0)


def _degree_2(X: np.ndarray) -> np.ndarray:
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    return PolynomialFeatures(2, include_bias=False).fit_transform(Z)


def prediction_real(quick: bool, folder: Path) -> Iterator[Figure]:
    """Held-out deviance on a quarter of the rows over that of the lasso or l1, tuned on standardised columns."""
    splits = 2 if quick else 10
    for table in tables(folder):
        loss, sizes = np.zeros((2, splits)), np.zeros((2, splits))
        for number in range(splits):
            stratify = table.y if table.classes else None
            train, test = train_test_split(
                np.arange(len(table.y)), test_size=0.25, random_state=number, stratify=stratify
            )
            scaler = StandardScaler().fit(table.X[train])
            X, new = scaler.transform(table.X[train]), scaler.transform(table.X[test])
            fits = classifiers() if table.classes else regressors()
            for place, name in enumerate((OURS, L1 if table.classes else LASSO)):
                model = _quietly(fits[name], X, table.y[train])
                error = log_loss_of(model, new, table.y[test]) if table.classes else _squared(model, new, table.y[test])
                loss[place, number], sizes[place, number] = error, model.size
        ratio = loss[0].mean() / loss[1].mean()
        yield Figure(f"{table.name}, {len(table.y)} x {table.X.shape[1]}", "loss / l1's", float(ratio), 1.05, digits=3)
        features = float(sizes[0].mean())
        yield Figure(f"{table.name}", f"features (l1: {sizes[1].mean():.0f})", features, digits=1)


def _squared(model: Linear, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((y - X @ model.coef - model.intercept) ** 2))
