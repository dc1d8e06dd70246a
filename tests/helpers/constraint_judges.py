"""Judges of models with constraints: objectives from their definitions, minimised by SciPy on one support or on all."""

import itertools

import numpy as np
from scipy.optimize import linprog, lsq_linear, minimize, nnls
from scipy.special import expit, logsumexp, softmax, xlogy

from pauca import SparseClassifier, SparseRegressor

LOSSES = ["squared_error", "log_loss", "absolute_error", "poisson"]


def estimator(loss, **params):
    """The estimator that a loss belongs to; its ridge is on the columns as they are."""
    return (SparseClassifier if loss == "log_loss" else SparseRegressor)(loss=loss, standardize=False, **params)


def uneven(loss, n=80, d=9, seed=0):
    """Columns of very different scales and means, a third of their entries zero, and a target for a loss.

    Returns X, y and the spread of each column: true coefficients are of the size of its inverse.
    """
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, d))
    for j in range(1, d):
        Z[:, j] = 0.5 * Z[:, j - 1] + np.sqrt(0.75) * Z[:, j]
    Z += rng.choice([-3.0, 0.0, 2.0], d)
    Z[rng.random((n, d)) < 1 / 3] = 0
    X = Z * 10.0 ** rng.permutation(np.linspace(-4, 4, d).round())
    spread = X.std(axis=0)
    signal = (X - X.mean(axis=0)) / spread @ (rng.choice([-1, 1], d) * rng.uniform(0.3, 1.2, d))
    return X, target(loss, signal, rng), spread


def target(loss, signal, rng):
    """A target that a loss is made for, from its true scores."""
    if loss == "log_loss":
        return np.where(rng.random(len(signal)) < expit(signal), "yes", "no")
    if loss == "poisson":
        return rng.poisson(np.exp(0.5 * signal)).astype(float)
    return signal + rng.standard_normal(len(signal))


def losses_and_slopes(loss, y, a):
    """The loss of every row and its derivative in the scores, straight from the definitions.

    Scores have shape (n,), or (n, C) for C outputs or classes.
    """
    if loss == "squared_error":
        return 0.5 * (a - y) ** 2, a - y
    if loss == "absolute_error":
        return np.abs(a - y), np.sign(a - y)
    if loss == "poisson":
        return xlogy(y, y) - y + np.exp(a) - y * a, np.exp(a) - y
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) == 2:
        sign = 2.0 * codes - 1.0
        return np.logaddexp(0, -sign * a), -sign * expit(-sign * a)
    own = np.eye(len(classes))[codes]
    return logsumexp(a, axis=1) - a[np.arange(len(a)), codes], softmax(a, axis=1) - own


def value_of(loss, X, y, model, *, weights=None, ridge=0.0):
    """Q of a model of the path, from its coefficients in the user's units."""
    v = _shares(weights, len(X))
    coef = np.asarray(model.coef)
    losses, _ = losses_and_slopes(loss, y, X[:, model.support] @ coef.T + model.intercept)
    return float(np.sum(v @ losses) + 0.5 * ridge * np.sum(coef**2))


def slopes_of(loss, X, y, model, *, weights=None, ridge=0.0):
    """Derivatives of Q in the coefficients, per standard deviation of each column, and in the intercept."""
    v = _shares(weights, len(X))
    columns = X[:, model.support]
    centre, spread = v @ columns, np.sqrt(v @ (columns - v @ columns) ** 2)
    _, slopes = losses_and_slopes(loss, y, columns @ np.asarray(model.coef).T + model.intercept)
    force = (slopes.T * v).T
    along = ((columns - centre) / spread).T @ force + ridge * (np.asarray(model.coef) / spread).T
    return along.T, force.sum(axis=0)


def least(loss, X, y, support, *, weights=None, ridge=0.0, lower=None, upper=None):
    """The least Q on a support, by SciPy; ``lower`` and ``upper`` are in the user's units, over all columns."""
    support = list(support)
    v = _shares(weights, len(X))
    columns = X[:, support]
    centre = v @ columns
    spread = np.sqrt(v @ (columns - centre) ** 2)
    z = (columns - centre) / spread
    low, high = (
        np.full(len(support), end) if bound is None else np.asarray(bound)[support] * spread
        for bound, end in ((lower, -np.inf), (upper, np.inf))
    )
    if loss == "squared_error" and np.ndim(y) == 1:
        return _least_squares(z, y, v, ridge / spread**2, low, high)
    if loss == "absolute_error":
        return _least_absolute(z, y, v, low, high)
    return _least_smooth(loss, z, y, v, ridge / spread**2, low, high)


def _shares(weights, n):
    return np.full(n, 1 / n) if weights is None else np.asarray(weights) / np.sum(weights)


def _least_squares(z, y, v, penalty, low, high):
    y = y - v @ y
    # A coefficient held at zero is no coefficient; lsq_linear wants room between its bounds.
    room = high > low
    if not room.any():
        return 0.5 * v @ y**2
    A = np.vstack([np.sqrt(v)[:, None] * z, np.diag(np.sqrt(penalty))])
    b = np.concatenate([np.sqrt(v) * y, np.zeros(z.shape[1])])
    return lsq_linear(A[:, room], b, (low[room], high[room]), method="bvls", tol=1e-13).cost


def _least_absolute(z, y, v, low, high):
    n, m = z.shape
    price = np.concatenate([np.zeros(m + 1), v, v])
    columns = np.hstack([z, np.ones((n, 1)), np.eye(n), -np.eye(n)])
    bounds = [*zip(low, high, strict=True), (None, None), *[(0, None)] * (2 * n)]
    return linprog(price, A_eq=columns, b_eq=y, bounds=bounds).fun


def _least_smooth(loss, z, y, v, penalty, low, high):
    outputs = len(np.unique(y)) if loss == "log_loss" else (np.shape(y)[1] if np.ndim(y) == 2 else 1)
    outputs = 1 if loss == "log_loss" and outputs == 2 else outputs
    n, m = z.shape

    def q(flat):
        coef = flat.reshape(m + 1, outputs)
        scores = z @ coef[:m] + coef[m]
        losses, slopes = losses_and_slopes(loss, y, scores[:, 0] if outputs == 1 else scores)
        force = (slopes.T * v).T.reshape(n, outputs)
        gradient = np.vstack([z.T @ force + penalty[:, None] * coef[:m], force.sum(axis=0)])
        return np.sum(v @ losses) + 0.5 * np.sum(penalty[:, None] * coef[:m] ** 2), gradient.ravel()

    bounds = [pair for pair in zip(low, high, strict=True) for _ in range(outputs)] + [(None, None)] * outputs
    start = np.zeros((m + 1) * outputs)
    options = {"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-9}
    return minimize(q, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).fun


def subsets(d, largest=None):
    """All subsets of 0, ..., d - 1 up to a size, the empty one included."""
    largest = d if largest is None else min(largest, d)
    return [S for size in range(largest + 1) for S in itertools.combinations(range(d), size)]


def all_least_squares(X, y, groups=None):
    """Least Q of squared loss for every subset of columns, or of groups, as a dict; y may have several outputs."""
    X, Y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean(axis=0)).reshape(len(y), -1)
    gram, cross = X.T @ X / len(X), X.T @ Y / len(X)
    members = [[j] for j in range(X.shape[1])] if groups is None else groups
    null = 0.5 * np.mean(Y**2, axis=0).sum()
    values = {(): float(null)}
    by_width = {}
    for S in subsets(len(members))[1:]:
        columns = [j for g in S for j in members[g]]
        by_width.setdefault(len(columns), []).append((S, columns))
    for some in by_width.values():
        columns = np.array([c for _, c in some])
        coef = np.linalg.solve(gram[columns[:, :, None], columns[:, None, :]], cross[columns])
        explained = 0.5 * np.sum(coef * cross[columns], axis=(1, 2))
        values.update((S, float(null - gain)) for (S, _), gain in zip(some, explained, strict=True))
    return values


def all_signed_least_squares(X, y, sign, largest):
    """The same with signs (0 for either) and up to a size, by nnls: a column of either sign is two columns."""
    X, y = X - X.mean(axis=0), y - y.mean()
    values = {(): 0.5 * np.mean(y**2)}
    for S in subsets(X.shape[1], largest)[1:]:
        columns = [X[:, j] * s for j in S for s in ((1, -1) if sign[j] == 0 else (sign[j],))]
        values[S] = 0.5 * nnls(np.column_stack(columns), y)[1] ** 2 / len(y)
    return values


def optimum(values, allowed=None, size=None):
    """The least value over the subsets that are allowed, of one size or of any, the empty one aside."""
    return min(q for S, q in values.items() if S and size in {None, len(S)} and (allowed is None or allowed(S)))
