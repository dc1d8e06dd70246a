"""What must not change a model: the order of rows and columns, units, repetition against weights, how X is stored."""

from __future__ import annotations

import multiprocessing
import warnings

import numpy as np
from data_kinds import ALL_FORMS

import pauca
from pauca.losses import Huber, NegativeBinomial, Quantile

WITHIN = 1e-8
"""How far coefficients may be apart, as a share of the largest."""

WITHIN_KINKED = 0.05

METHODS = ["exchange", "forward", "stepwise", "foba", "backward", "replacement", "exact"]
LOSSES = {
    "SparseRegressor": [
        *("squared_error", "poisson", "gamma", "tweedie", Huber(1.0), NegativeBinomial(0.5)),
        *("absolute_error", Quantile(0.3)),
    ],
    "SparseClassifier": ["log_loss", "log_loss, four classes", "squared_hinge", "hinge"],
    "SparseCox": [None],
    "SparseOrdinalClassifier": [None],
    "L1Regressor": ["squared_error", "poisson"],
    "L1Classifier": ["log_loss"],
    "SparsePrecision": [None],
}
KINKED = ("absolute_error", Quantile(0.3), "hinge")
"""Losses that are minimised up to their ``accuracy``: coefficients are compared as far as that reaches."""
FORMS = ["fortran", "strided", "frame", "polars", "csr", "csc", "memory map", "float32", "big-endian", "chunks", "list"]


def trial(seed):
    """Fit a problem with a unique best model in two ways."""
    rng = np.random.default_rng([10, seed])
    family = list(LOSSES)[int(rng.integers(len(LOSSES)))]
    loss = LOSSES[family][int(rng.integers(len(LOSSES[family])))]
    X, y = _problem(rng, family, loss)
    given = {"radius": 1.0, "standardize": True, "tol": 1e-10} if family.startswith("L1") else _searched(rng)
    if family == "SparsePrecision":
        given = {"k": given["k"], "method": given["method"].replace("exact", "exchange").replace("replacement", "foba")}
    if loss is not None:
        given["loss"] = loss.partition(",")[0] if isinstance(loss, str) else loss
    weights = rng.integers(1, 4, len(X)).astype(float) if rng.random() < 0.5 else np.ones(len(X))
    name = list(CHANGES)[int(rng.integers(len(CHANGES)))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = _coefficients(family, given, X, y, weights)
        try:
            other, back = CHANGES[name](rng, family, given, X, y, weights)
        except (ValueError, TypeError) as error:
            if "chunks" in str(error) or "sparse" in str(error).lower():  # no such form for this estimator
                return "refused", []
            raise
    second = back(other)
    within = WITHIN_KINKED if loss in KINKED else WITHIN
    scale = np.abs(first).max() or 1.0
    text = f"{name}: {family}({given}) on {X.shape}: {first.tolist()} and {second.tolist()}"
    if not np.array_equal(first != 0, second != 0):
        return "compared", [("support", text[:400])]
    if np.abs(first - second).max() > within * scale:
        return "compared", [("coefficients", f"by {np.abs(first - second).max() / scale:.1e} {text}"[:400])]
    return "compared", []


def _searched(rng):
    return {
        "k": int(rng.integers(1, 4)),
        "method": METHODS[int(rng.integers(len(METHODS)))],
        "ridge": float(rng.choice([0.01, 0.1])),
    }


def _problem(rng, family, loss):
    """Three columns matter, by so much that no other model comes near."""
    X = rng.standard_normal((60, 6))
    if family == "SparsePrecision":  # a chain, whose edges are strong and far apart in strength
        for j, strength in enumerate((2.0, 1.0, 0.6)):
            X[:, j + 1] += strength * X[:, j]
    X = np.round(X * 64) / 64  # single precision has these numbers too
    return X, _target(rng, family, loss, X, X[:, :3] @ np.array([1.5, -1.0, 0.7]))


def _target(rng, family, loss, X, signal):
    if family == "SparseCox":
        times = np.exp(-signal) * rng.exponential(size=60)
        return np.array(list(zip(rng.random(60) < 0.8, times, strict=True)), dtype=[("event", bool), ("time", float)])
    makers = {
        "SparsePrecision": lambda: None,
        "SparseOrdinalClassifier": lambda: np.digitize(signal + rng.logistic(size=60), [-1.0, 1.0]),
        "SparseClassifier": lambda: (signal + rng.logistic(size=60) > 0).astype(int),
        "L1Classifier": lambda: (signal + rng.logistic(size=60) > 0).astype(int),
        "gamma": lambda: rng.gamma(3.0, np.exp(np.clip(signal, -4, 4))),
        "poisson": lambda: rng.poisson(np.exp(np.clip(signal, -4, 3))).astype(float),
        "log_loss, four classes": lambda: np.argmax(
            np.stack([signal, -signal, X[:, 1] + X[:, 2], 0 * signal]) + rng.gumbel(size=(4, 60)), axis=0
        ),
    }
    kind = "poisson" if loss in ("tweedie", NegativeBinomial(0.5)) else loss
    make = makers.get(kind) or makers.get(family)
    return signal + 0.3 * rng.standard_normal(60) if make is None else make()


def _coefficients(family, given, X, y, weights):
    estimator = getattr(pauca, family)(**given)
    if family == "SparsePrecision":
        return estimator.fit(X, sample_weight=weights).precision_
    return np.atleast_2d(estimator.fit(X, y, sample_weight=weights).coef_)


def _by_column(change):
    """A change of coefficients by column, for those of a graph by row and column."""
    return lambda found: change(change(found).T).T if found.shape[0] == found.shape[1] else change(found)


def _rows_permuted(rng, family, given, X, y, weights):
    order = rng.permutation(len(X))
    return _coefficients(family, given, X[order], _rows_of(y, order), weights[order]), lambda coef: coef


def _columns_permuted(rng, family, given, X, y, weights):
    order = rng.permutation(X.shape[1])
    return _coefficients(family, given, X[:, order], y, weights), _by_column(lambda coef: coef[:, np.argsort(order)])


def _columns_scaled(rng, family, given, X, y, weights):
    units = 10.0 ** rng.integers(-6, 7, X.shape[1]) * rng.choice([-1.0, 1.0], X.shape[1])
    return _coefficients(family, given, X * units, y, weights), _by_column(lambda coef: coef * units)


def _columns_shifted(rng, family, given, X, y, weights):
    return _coefficients(family, given, X + rng.integers(-100, 100, X.shape[1]), y, weights), lambda coef: coef


def _rows_repeated(rng, family, given, X, y, weights):
    rows = np.repeat(np.arange(len(X)), weights.astype(int))
    if family == "SparseCox":
        given = given | {"ties": "breslow"}  # Efron's terms of a tie depend on how many rows it has
        changed = _coefficients(family, given, X[rows], y[rows], None)
        return (
            changed - _coefficients(family, given, X, y, weights),
            lambda difference: (
                difference
                + _coefficients(family, {key: value for key, value in given.items() if key != "ties"}, X, y, weights)
            ),
        )
    return _coefficients(family, given, X[rows], _rows_of(y, rows), None), lambda coef: coef


def _rows_of(y, rows):
    return None if y is None else y[rows]


def _weights_scaled(rng, family, given, X, y, weights):
    return _coefficients(family, given, X, y, weights * 10.0 ** rng.uniform(-100, 100)), lambda coef: coef


def _stored(rng, family, given, X, y, weights):
    form = FORMS[int(rng.integers(len(FORMS)))]
    return _coefficients(family, given, ALL_FORMS[form](X), y, weights), lambda coef: coef


def _in_threads(rng, family, given, X, y, weights):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: _coefficients(family, given, X, y, weights), range(3)))
    return found[int(np.argmax([np.abs(one - found[0]).max() for one in found]))], lambda coef: coef


def _in_a_process(rng, family, given, X, y, weights):
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(_coefficients(family, given, X, y, weights)))
    child.start()
    found = receiver.recv()
    child.join()
    return found, lambda coef: coef


CHANGES = {
    "rows permuted": _rows_permuted,
    "columns permuted": _columns_permuted,
    "columns scaled": _columns_scaled,
    "columns shifted": _columns_shifted,
    "rows repeated": _rows_repeated,
    "weights scaled": _weights_scaled,
    "stored otherwise": _stored,
    "in threads": _in_threads,
    "in a process": _in_a_process,
}
