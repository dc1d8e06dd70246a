"""How well two stages predict star ratings of film reviews, against Ridge and Lasso tuned on rows held out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.linear_model import Lasso, LinearRegression, Ridge

from benchmarks.problems import Problem
from benchmarks.report import Figure
from benchmarks.reviews import WORDS, reviews
from pauca import StreamRegressor

RIDGES = 2.0 ** np.arange(-4, 5)
LASSOS = 0.02 * 2.0 ** -np.arange(9.0)
HELD_OUT_EVERY = 5
SIZES = (100, 500)
NAME = "reviews, words"


def two_stage(quick: bool, data: Path) -> Iterator[Figure]:
    """Star ratings of 25,000 film reviews by their words, RMSE on 25,000 others.

    Ridge and Lasso are tuned on a fifth of the training reviews and fitted to all of them; StreamRegressor holds out
    rows by itself. Few words: Lasso is taken where it has at most so many, and refitted by least squares.
    """
    train, test = reviews(data, WORDS), reviews(data, WORDS, "test")
    if quick:
        train = Problem(train.X[:5000], train.y[:5000])
    rivals = {
        "Ridge": _rmse(_tuned(train, [Ridge(alpha, solver="sparse_cg") for alpha in RIDGES]), test),
        "Lasso": _rmse(_tuned(train, [Lasso(alpha, max_iter=300, tol=1e-3) for alpha in LASSOS]), test),
    }
    for name, rmse in rivals.items():
        yield Figure(NAME, f"{name}, RMSE", rmse, digits=3)
    start = perf_counter()
    full = StreamRegressor(k=None).fit(train.X, train.y)
    seconds = perf_counter() - start
    yield Figure(NAME, f"5 passes, radius chosen ({full.radius_:.0f}), RMSE", _rmse(full, test), digits=3)
    last = _root_mean_square(test.X @ full.last_iterate_[0] + full.last_iterate_[1] - test.y)
    yield Figure(NAME, "the same, last iterate, RMSE", last, digits=3)
    yield Figure(NAME, "RMSE over the better rival's", _rmse(full, test) / min(rivals.values()), 1.02, digits=3)
    yield Figure(NAME, "time of that fit, settings chosen", seconds, unit=" s")
    for k in SIZES:
        few = StreamRegressor(k=k).fit(train.X, train.y)
        columns = _lasso_support(train, k)
        rival = LinearRegression().fit(train.X[:, columns].toarray(), train.y)
        rmse = _rmse(rival, test, columns)
        yield Figure(NAME, f"k = {k}, RMSE of Lasso's {len(columns)} words refitted", rmse, digits=3)
        yield Figure(NAME, f"k = {k}, RMSE of two stages, {few.k_} words", _rmse(few, test), rmse, digits=3)
        for truncation in ("systematic", "moments", "magnitude"):
            drawn = few.set_params(truncation=truncation).finish(train.X, train.y)
            yield Figure(NAME, f"k = {k}, by {truncation}, {drawn.k_} words", _rmse(drawn, test), digits=3)


def _tuned(train: Problem, candidates: list[Any]) -> Any:
    held = np.arange(len(train.y)) % HELD_OUT_EVERY == 0
    part, rest = Problem(train.X[~held], train.y[~held]), Problem(train.X[held], train.y[held])
    errors = [_rmse(candidate.fit(part.X, part.y), rest) for candidate in candidates]
    return candidates[int(np.argmin(errors))].fit(train.X, train.y)


def _lasso_support(train: Problem, k: int) -> np.ndarray:
    """The columns of the Lasso with the smallest penalty that takes no more than ``k``."""
    low, high = 0.0, float(np.abs(train.X.T @ (train.y - train.y.mean())).max() / len(train.y))
    best = np.zeros(0, dtype=np.intp)
    for _ in range(12):
        alpha = 0.5 * (low + high)
        support = np.flatnonzero(Lasso(alpha, max_iter=300, tol=1e-3).fit(train.X, train.y).coef_)
        if len(support) <= k:
            best, high = (support, alpha) if len(support) >= len(best) else (best, alpha)
        else:
            low = alpha
        if len(best) == k:
            break
    return best


def _rmse(model: Any, rows: Problem, columns: np.ndarray | None = None) -> float:
    X = rows.X if columns is None else rows.X[:, columns].toarray()
    return _root_mean_square(model.predict(X) - rows.y)


def _root_mean_square(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))
