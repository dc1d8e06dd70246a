"""Dense models made sparse: whether draws cost what they should, and which way to draw is best after the refit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from sklearn.linear_model import Ridge

from benchmarks.problems import Shape, autoregressive
from benchmarks.report import Figure
from pauca import SparseRegressor, sparsify

SHAPE = Shape(1000, 400, 60)
DRAWN = ("magnitude", "moments", "systematic")
DRAWS = 200

# Penalties of the dense model and of Q, the latter per row.
ALPHAS = (1.0, 300.0)

SIZES = (10, 30, 100)


def sampling(quick: bool) -> Iterator[Figure]:
    """A ridge regression on columns of unequal scale, neighbours correlated by 0.9.

    First the mean excess of 200 draws of 30 against the exact expectation, in standard errors. Then the objective after
    the refit, over that of the dense model: means over seeds. For draws with replacement k counts draws.
    """
    for alpha, weighted in product(ALPHAS, (False, True)):
        X, y = _problem(seed=0)
        v = np.random.default_rng(1).uniform(size=SHAPE.n) if weighted else None
        dense = Ridge(alpha=alpha).fit(X, y, sample_weight=v)
        words = f"ridge {alpha:g}{', row weights' if weighted else ''}"
        for truncation in DRAWN:
            found = sparsify(
                dense,
                X,
                y,
                k=30,
                truncation=truncation,
                refit=False,
                ridge=alpha / SHAPE.n,
                sample_weight=v,
                repeats=DRAWS,
                random_state=0,
            )
            assert found.expected_excess is not None
            assert found.bound is not None
            error = found.measured.std(ddof=1) / np.sqrt(DRAWS)
            off = abs(float(found.measured.mean()) - found.expected_excess) / error
            yield Figure(f"{words}, {truncation}", "mean excess off the formula, standard errors", off, 4)
            share = found.expected_excess / found.dense_objective
            yield Figure(f"{words}, {truncation}", "expected excess over the dense objective", share)
            yield Figure(
                f"{words}, {truncation}", "bound over the expected excess", found.bound / found.expected_excess
            )
    yield from _refitted(2 if quick else 10)


def _refitted(seeds: int) -> Iterator[Figure]:
    for k in SIZES:
        found: dict[str, list[tuple[float, int]]] = {}
        for seed in range(seeds):
            X, y = _problem(seed)
            dense = Ridge(alpha=ALPHAS[0]).fit(X, y)
            for truncation in (*DRAWN, "truncate"):
                one = sparsify(dense, X, y, k=k, truncation=truncation, random_state=seed)
                found.setdefault(truncation, []).append((one.objective_ / one.dense_objective, one.k_))
            best = SparseRegressor(k=k, method="forward").fit(X, y)
            found.setdefault("forward selection", []).append((best.objective_ / one.dense_objective, best.k_))
        for name, pairs in found.items():
            ratio, size = np.mean(pairs, axis=0)
            words = f"k = {k}, {name}, {size:.0f} features"
            yield Figure(words, "objective after the refit over the dense one", float(ratio))


def _problem(seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = autoregressive(SHAPE, rho=0.9, snr=5.0, seed=seed)
    scale = np.exp(np.random.default_rng(seed).normal(size=SHAPE.d))
    return X * scale, y
