"""Proofs against enumeration: no subset that may be chosen has an objective below what was proved of its size."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from references import column_scales, lowest_on_support, row_shares

MOST_SUBSETS = 15
"""So many subsets of a size are fitted by SciPy; those of squared error, which take no time, are all fitted."""

WITHIN = 1e-9
"""How far a subset may be below a bound, as a share of the empty model's objective: rounding."""

WITHIN_COPIES = 1e-4
"""The same for near copies of columns: certificates say that one stands for the others."""

KNOWN = {
    *("k", "method", "cv", "selection_rule", "ridge", "search_ridge", "n_jobs", "loss", "time_limit", "never"),
    *("standardize", "fit_intercept", "class_weight", "costs", "budget", "tol"),
}
"""Parameters with which every subset of columns that are not ruled out has the same objective as here."""

SMOOTH = ("squared_error", "log_loss", "squared_hinge", "Huber(1.0)", "poisson", "gamma", "tweedie")


def judge_proof(case, model, X, ridge, verdict):
    """Compare bounds of all sizes with the subsets of as many columns."""
    certificate = getattr(model, "certificate_", None)
    if certificate is None or not certificate.proofs:
        return
    for size, proof in certificate.proofs.items():
        if np.isnan(proof.lower_bound) or proof.lower_bound > proof.objective + WITHIN * abs(proof.objective):
            verdict.found("proof", f"size {size}: bound {proof.lower_bound!r}, objective {proof.objective!r}")
    if (
        not set(case.parameters) <= KNOWN
        or "offset" in case.extra
        or np.ndim(case.y) > 1
        or X.shape[1] > 8
        or not _measurable(case, X)
    ):
        return
    ridge = ridge if certificate.search_ridge is None else certificate.search_ridge
    squared = _loss(case) == "squared_error"
    fitted = _by_least_squares(case, X, ridge) if squared else _by_scipy(case, model, X, ridge)
    if fitted is None:
        return
    (fit, null), copied = fitted, _copies(case, X)
    doubled = {column for pair in copied for column in pair}
    for size, proof in certificate.proofs.items():
        subsets = [one for one in combinations(range(X.shape[1]), size) if _allowed(case, one)]
        subsets = [one for one in subsets if not copied & set(combinations(one, 2))]
        if not np.isfinite(proof.lower_bound):
            continue
        if not squared:
            some = np.random.default_rng(case.seed).permutation(len(subsets))[:MOST_SUBSETS]
            subsets = [subsets[position] for position in some]
        for columns in subsets:
            value = fit(columns)
            within = WITHIN_COPIES if doubled & set(columns) else WITHIN
            if value is not None and value < proof.lower_bound - within * null:
                verdict.found("false proof", f"{columns} has {value!r}, below {proof.lower_bound!r}")
                return


def _loss(case):
    return case.parameters.get("loss", "log_loss" if "Classifier" in case.family else "squared_error")


def _allowed(case, columns):
    given = case.parameters
    within = "budget" not in given or sum(given["costs"][j] for j in columns) <= given["budget"]
    return within and not set(given.get("never", ())) & set(columns)


def _copies(case, X):
    """Pairs of columns that are the same up to their units: certificates say that no model has both."""
    v = row_shares(case)
    Z = np.sqrt(v)[:, None] * (X - v @ X if case.parameters.get("fit_intercept", True) else X)
    Z = Z / np.linalg.norm(Z, axis=0)
    alike = np.abs(Z.T @ Z) > 1 - 1e-9
    return {pair for pair in combinations(range(X.shape[1]), 2) if alike[pair]}


def _measurable(case, X):
    """Whether columns vary by more than rounding: what a bound means for others is a matter of conventions."""
    v = row_shares(case)
    spread = np.sqrt(v @ (X - v @ X) ** 2)
    return bool(np.all(np.isfinite(spread)) and np.all(spread > 1e-9 * (1 + np.abs(X).max())))


def _by_least_squares(case, X, ridge):
    """The least squared error of given columns as a function of them, and that of none."""
    v, y = row_shares(case), np.asarray(case.y, dtype=float)
    scale = column_scales(case, X, v)
    if case.parameters.get("fit_intercept", True):
        X, y = X - v @ X, y - v @ y
    Z = np.sqrt(v)[:, None] * X

    def fit(columns):
        A = np.vstack([Z[:, columns], np.diag(np.sqrt(ridge) * scale[list(columns)])])
        b = np.concatenate([np.sqrt(v) * y, np.zeros(len(columns))])
        w, *_ = np.linalg.lstsq(A, b, rcond=None)
        return 0.5 * float(np.sum((A @ w - b) ** 2))

    return fit, float(v @ y**2) / 2


def _by_scipy(case, model, X, ridge):
    """The same for other smooth losses of one output; None for the others."""
    classes = getattr(model, "classes_", None)
    if _loss(case) not in SMOOTH or (classes is not None and len(classes) > 2):
        return None
    plain = replace(case, parameters={name: value for name, value in case.parameters.items() if name != "bounds"})

    def fit(columns):
        start = np.zeros((1, X.shape[1])), np.zeros(1)
        return lowest_on_support(plain, X, *start, np.array(columns), ridge=ridge, classes=classes)

    return fit, abs(model.path_[0].objective)
