"""Objectives as users write them, with and without what they may offer beyond a gradient."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from pauca import PaucaWarning
from pauca.constraints.limits import Limits
from pauca.custom.objective import CustomProblem
from pauca.custom.subset import CustomSubset
from problems import ar_problem


class Linear:
    """A mean loss of linear scores; coordinate 0 is the intercept, which is free."""

    free = (0,)

    def __init__(self, X, y):
        self.Z, self.y = np.column_stack([np.ones(len(X)), X]), y
        self.n_coords = self.Z.shape[1]

    def value(self, w):
        return float(np.mean(self.loss(self.Z @ w)))

    def gradient(self, w):
        return self.Z.T @ self.slope(self.Z @ w) / len(self.y)


class Squares(Linear):
    def loss(self, a):
        return 0.5 * (a - self.y) ** 2

    def slope(self, a):
        return a - self.y

    def bend(self, a):
        return np.ones_like(a)


class Logits(Linear):
    def loss(self, a):
        return np.logaddexp(0, -self.y * a)

    def slope(self, a):
        return -self.y / (1 + np.exp(self.y * a))

    def bend(self, a):
        return 1 / (2 + 2 * np.cosh(a))


class Scaled:
    """Squares with a scale t = 1 / sigma that is fitted too: ``mean (t y - X w)^2 / 2 - log t``, convex for t > 0.

    Given the coordinates, the minimum is ``(1 + log RSS) / 2``: negative for good fits.
    """

    free = (0,)

    def __init__(self, X, y, *, outside=np.inf):
        self.X, self.y, self.outside = X, y, outside
        self.n_coords = 1 + X.shape[1]
        self.start = np.eye(self.n_coords)[0]

    def value(self, w):
        if w[0] <= 0:
            return self.outside
        return 0.5 * np.mean((w[0] * self.y - self.X @ w[1:]) ** 2) - np.log(w[0])

    def gradient(self, w):
        residual = w[0] * self.y - self.X @ w[1:]
        return np.concatenate([[np.mean(residual * self.y) - 1 / w[0]], -self.X.T @ residual / len(self.y)])


def with_both(self, w):
    return self.value(w), self.gradient(w)


def with_curvature(self, w):
    return self.bend(self.Z @ w) @ self.Z**2 / len(self.y)


def with_hessian(self, w, coords):
    Z = self.Z[:, coords]
    return (Z.T * self.bend(self.Z @ w)) @ Z / len(self.y)


def with_gains(self, w):
    def along(j):
        step = np.eye(self.n_coords)[j]
        return self.value(w) - minimize_scalar(lambda t: self.value(w + t * step), tol=1e-10).fun

    return np.array([along(j) if w[j] == 0 else -np.inf for j in range(self.n_coords)])


def with_removal_costs(self, w, units):
    return np.array([self.value(np.where(np.arange(len(w)) == unit, 0, w)) - self.value(w) for unit in units])


def with_refit(self, coords, start, tol):
    return restricted(self, coords, start)[1]


HOOKS = {
    "value_and_gradient": with_both,
    "curvature": with_curvature,
    "hessian": with_hessian,
    "gains": with_gains,
    "removal_costs": with_removal_costs,
    "refit": with_refit,
}


def restricted(objective, coords, start=None):
    """The minimum over some coordinates, and where it is, by scipy."""
    w = np.zeros(objective.n_coords) if start is None else np.array(start)

    def put(part):
        there = w.copy()
        there[coords] = part
        return there

    def both(part):
        return objective.value(put(part)), objective.gradient(put(part))[coords]

    found = minimize(both, w[coords], jac=True, method="BFGS", options={"gtol": 1e-9})
    return found.fun, put(found.x)


def numbers(d=12, seed=0):
    """Centred columns: a unit that moves alone then leaves the intercept where it is best."""
    X, y = ar_problem(80, d, 4, rho=0.7, seed=seed)
    return X - X.mean(axis=0), y


def signs(d=12, seed=0):
    X, y = numbers(d, seed)
    return X, np.where(y + np.random.default_rng(seed).logistic(size=len(y)) > 0, 1.0, -1.0)


def assert_same(path, other, *, shift=0, within=1e-8, sizes=None):
    for size in sizes or other.sizes:
        assert path[size].support.tolist() == (other[size].support + shift).tolist(), size
        assert path[size].objective == pytest.approx(other[size].objective, abs=within), size


def subset_of(objective, units=(), **options):
    subset = CustomSubset.start(CustomProblem(objective, **options), Limits())
    for unit in units:
        subset.add(unit)
    return subset


def warned_of(call):
    """What a call returns, and what its one warning says; nothing if there is none."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
    assert all(warning.category is PaucaWarning and warning.filename == call.__code__.co_filename for warning in found)
    assert len(found) <= 1
    return result, "".join(str(warning.message) for warning in found)


class Half:
    """A sound objective; each one below breaks one thing of it."""

    n_coords = 6

    def value(self, w):
        return 0.5 * np.sum((w - np.arange(6)) ** 2)

    def gradient(self, w):
        return w - np.arange(6)
