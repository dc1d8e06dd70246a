"""What a fitted model should be, from its definition alone: objectives, their derivatives, and minima by SciPy.

Written from the docstrings, without any code of the library: a judge that shares code shares its errors.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog, minimize
from scipy.special import expit, log_softmax, xlogy


def row_shares(case):
    """Row weights that sum to one, with those of classes."""
    n = len(case.X)
    weights = np.ones(n) if case.weights is None else np.asarray(case.weights, dtype=float)
    weights = weights / weights.max()
    if case.parameters.get("class_weight") == "balanced":
        # scikit-learn's formula; rows without weight count too.
        _, codes, counts = np.unique(case.y, return_inverse=True, return_counts=True)
        weights = weights * (len(case.y) / (len(counts) * counts))[codes]
    return weights / weights.sum()


def column_scales(case, X, v):
    """What the ridge measures columns by: their standard deviations (root mean squares without an intercept)."""
    if case.family.startswith("L1") or not case.parameters.get("standardize", True):
        return np.ones(X.shape[1])
    centre = v @ X if case.parameters.get("fit_intercept", True) else 0.0
    largest = np.abs(X - centre).max(axis=0)
    largest = np.where(largest > 0, largest, 1.0)
    return largest * np.sqrt(v @ ((X - centre) / largest) ** 2)


def coded_target(case, classes=None):
    """Targets of shape (C, n), or class numbers of shape (n,) for the multinomial loss."""
    if classes is None:
        y = np.asarray(case.y, dtype=float)
        return y.T if y.ndim == 2 else y[None]
    codes = np.searchsorted(classes, case.y)
    if len(classes) == 2:
        return np.where(codes == 1, 1.0, -1.0)[None]
    if case.parameters.get("loss", "log_loss") == "log_loss" and not case.family.startswith("Stream"):
        return codes
    return np.where(codes == np.arange(len(classes))[:, None], 1.0, -1.0)


def mean_loss(case, y, scores, v):
    """The weighted mean loss of scores of shape (C, n), summed over outputs."""
    name = _loss_name(case)
    if name == "log_loss" and y.ndim == 1:
        return float(-v @ log_softmax(scores, axis=0)[y, np.arange(len(y))])
    return float(np.sum(_values(name, y, scores) @ v))


def _loss_name(case):
    return case.parameters.get("loss", "log_loss" if "Classifier" in case.family else "squared_error")


def _values(name, y, a):
    """The loss of every row."""
    return LOSSES[name](y, a)


def _huber(y, a):
    r = np.abs(y - a)
    return np.where(r <= 1, 0.5 * r**2, r - 0.5)


def _tweedie(y, a):
    """Of the power 1.5, half of the unit deviance."""
    return 2 * (2 * np.sqrt(y) + y * np.exp(-a / 2) + np.exp(a / 2)) - 8 * np.sqrt(y)


def _negative_binomial(y, a):
    return xlogy(y, y) - y * a - (y + 2) * (np.log(y + 2) - np.log(np.exp(a) + 2))


LOSSES = {
    "squared_error": lambda y, a: 0.5 * (y - a) ** 2,
    "absolute_error": lambda y, a: np.abs(y - a),
    "Quantile(0.3)": lambda y, a: np.where(y > a, 0.3 * (y - a), 0.7 * (a - y)),
    "Huber(1.0)": _huber,
    "poisson": lambda y, a: np.exp(a) - y * a + xlogy(y, y) - y,
    "gamma": lambda y, a: y * np.exp(-a) + a - 1 - np.log(y),
    "tweedie": _tweedie,
    "NegativeBinomial(0.5)": _negative_binomial,
    "log_loss": lambda y, a: np.logaddexp(0, -y * a),
    "hinge": lambda y, a: np.maximum(0, 1 - y * a),
    "squared_hinge": lambda y, a: 0.5 * np.maximum(0, 1 - y * a) ** 2,
}


# Losses that are differences of terms which may be far larger.
DIFFERENCES = ("poisson", "gamma", "tweedie", "NegativeBinomial(0.5)")


def known_part(case):
    """What is added to the scores of all rows."""
    return np.asarray(case.extra.get("offset", np.zeros(len(case.X))))


def linear_objective(case, X, coef, intercept, *, ridge, classes=None):
    """Q of a linear model, and how far rounding of its scores may move it."""
    v, y = row_shares(case), coded_target(case, classes)
    used = v > 0  # what rows without weight lead to does not matter
    X, v, y = X[used], v[used], y[..., used]
    coef, intercept = np.atleast_2d(coef), np.atleast_1d(intercept).astype(float)
    scores = (X @ coef.T).T + intercept[:, None] + known_part(case)[used]
    rounding = 1e-13 * ((np.abs(X) @ np.abs(coef).T).T + np.abs(intercept)[:, None] + (0 if y.ndim == 1 else np.abs(y)))
    value = mean_loss(case, y, scores, v)
    uncertain = max(abs(mean_loss(case, y, scores + sign * rounding, v) - value) for sign in (-1, 1))
    if _loss_name(case) in DIFFERENCES:
        terms = np.abs(y) * (1 + np.abs(scores)) + np.exp(np.abs(scores)) + np.abs(xlogy(y, y))
        uncertain += 1e-15 * float(np.sum(terms @ v))
    shrinkage = 0.5 * ridge * float(np.sum((column_scales(case, X, v) * coef) ** 2)) if ridge else 0.0
    return value + shrinkage, uncertain


def cox_objective(case, X, coef, *, ridge):
    """Minus the log partial likelihood over the sum of weights, by the textbook's sums over events.

    Less that of a perfect model, in which whoever has an event is alone at risk with those of the same time.
    """
    v = row_shares(case)
    used = v > 0
    X, v, y = X[used], v[used], case.y[used]
    scores, total = X @ coef, 0.0
    entry, strata = y[:, 2:].T if y.shape[1] > 2 else (np.full(len(y), -np.inf), np.zeros(len(y)))
    for time, stratum in np.unique(np.column_stack([y[:, 1], strata])[y[:, 0] == 1], axis=0):
        here = strata == stratum
        at_risk, dying = here & (y[:, 1] >= time) & (entry < time), here & (y[:, 0] == 1) & (y[:, 1] == time)
        top = scores[at_risk].max()
        hazard = v * np.exp(np.where(at_risk, scores - top, -np.inf))
        risk, deaths, count = hazard.sum(), hazard[dying].sum(), int(dying.sum())
        for number in range(count):
            share = number / count if case.parameters["ties"] == "efron" else 0.0
            alone = v[dying].sum() * (1 - share)
            total += v[dying].mean() * (np.log(risk - share * deaths) + top - np.log(alone))
        total -= v[dying] @ scores[dying]
    return total + 0.5 * ridge * float(np.sum((column_scales(case, X, v) * coef) ** 2))


def ordinal_objective(case, X, coef, thresholds, classes, *, ridge):
    """Minus the mean log-likelihood of proportional odds."""
    v, codes = row_shares(case), np.searchsorted(classes, case.y)
    used = v > 0
    X, v, codes = X[used], v[used], codes[used]
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
    scores = X @ coef
    upper, lower = expit(edges[codes + 1] - scores), expit(edges[codes] - scores)
    # Where both are near one, the difference of their complements has more digits.
    other = expit(scores - edges[codes]) - expit(scores - edges[codes + 1])
    chance = np.where(lower > 0.5, other, upper - lower)
    return float(-v @ np.log(chance)) + 0.5 * ridge * float(np.sum((column_scales(case, X, v) * coef) ** 2))


def lowest_on_support(case, X, coef, intercept, support, *, ridge, classes=None):
    """The lowest Q that SciPy finds with the columns of the support, from where the fit ended; None if it cannot say.

    Columns are centred and scaled first: what SciPy finds then depends on the problem, not on its units.
    """
    name, y = _loss_name(case), coded_target(case, classes)
    v = row_shares(case)
    used = v > 0
    columns, v, y = X[used][:, support], v[used], y[..., used]
    bounds, has_intercept = case.parameters.get("bounds"), case.parameters.get("fit_intercept", True)
    if (y.ndim == 2 and len(y) > 1) or y.ndim == 1:
        return None
    centre = v @ columns if has_intercept else np.zeros(len(support))
    spread = np.sqrt(v @ (columns - centre) ** 2)
    if not np.all(spread > 1e-9 * (1 + np.abs(centre))) or not np.all(np.isfinite(spread)):
        return None
    Z = np.column_stack([(columns - centre) / spread, np.full(len(columns), float(has_intercept))])
    penalty = ridge * (column_scales(case, columns, v) / spread) ** 2
    box = [(None, None) if bounds is None else bounds] * len(support)
    box = [tuple(None if end is None else end * s for end in pair) for pair, s in zip(box, spread, strict=True)]
    box.append((None, None))
    if name in ("absolute_error", "Quantile(0.3)", "hinge"):
        return _lowest_of_kinks(name, Z, y[0], v, box) if ridge == 0 and "offset" not in case.extra else None
    known = known_part(case)[used]
    start = np.append(np.atleast_2d(coef)[0, support] * spread, np.atleast_1d(intercept)[0])
    start[-1] += np.atleast_2d(coef)[0, support] @ centre

    def value(u):
        with np.errstate(all="ignore"):
            found = mean_loss(case, y, (Z @ u + known)[None], v) + 0.5 * np.sum(penalty * u[:-1] ** 2)
        return found if np.isfinite(found) else 1e300

    scale = max(abs(value(start)), 1e-300)
    result = minimize(lambda u: value(u) / scale, start, method="L-BFGS-B", bounds=box, options={"ftol": 1e-14})
    return float(result.fun * scale)


def _lowest_of_kinks(name, Z, y, v, box):
    """Mean distances as a linear programme: each row has a part above and a part below."""
    n, m = Z.shape
    up, down = {"absolute_error": (1.0, 1.0), "Quantile(0.3)": (0.3, 0.7), "hinge": (1.0, 0.0)}[name]
    rows, goal = (y[:, None] * Z, np.ones(n)) if name == "hinge" else (Z, y)
    result = linprog(
        np.concatenate([np.zeros(m), up * v, down * v]),
        A_eq=np.hstack([rows, np.eye(n), -np.eye(n)]),
        b_eq=goal,
        bounds=[*box, *[(0, None)] * (2 * n)],
    )
    return float(result.fun) if result.status == 0 else None
