"""Problems for losses of every kind, and judges that know nothing of the library's own ways to minimise them."""

import contextlib
import signal
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog, minimize

from pauca import SparseClassifier, SparseRegressor
from pauca.losses import (
    AbsoluteError,
    Gamma,
    Hinge,
    Huber,
    LogLoss,
    Loss,
    Multinomial,
    NegativeBinomial,
    Poisson,
    Quantile,
    SquaredError,
    SquaredHinge,
    Tweedie,
)


class LogCosh(Loss):
    """A user's own loss: three methods and nothing else, strict about what it was predicted to be given."""

    def value(self, y, a):
        assert np.shape(y) == np.shape(a), "y and a are arrays of one shape, says Loss"
        return np.logaddexp(a - y, y - a) - np.log(2)

    def derivative(self, y, a):
        assert np.shape(y) == np.shape(a), "y and a are arrays of one shape, says Loss"
        return np.tanh(a - y)

    def curvature(self, y, a):
        assert np.shape(y) == np.shape(a), "y and a are arrays of one shape, says Loss"
        return 1 - np.tanh(a - y) ** 2


class LogCoshOfClasses(LogCosh):
    """The same for classes coded as -1 and 1."""

    classifies = True


@dataclass(frozen=True)
class Kind:
    """A loss with the kind of target it is for."""

    loss: Loss
    target: str
    """numbers, pairs (two outputs), counts, amounts, signs or classes."""

    @property
    def accuracy(self):
        """How far a fit may be from the optimum, as a share of the empty model's objective."""
        return getattr(self.loss, "accuracy", 1e-9)

    @property
    def outputs(self):
        return {"pairs": 2, "classes": 3}.get(self.target, 1)

    def estimator(self, **options):
        """The estimator of this loss; its ridge is on the columns as they are."""
        kind = SparseClassifier if self.target in ("signs", "classes") else SparseRegressor
        return kind(loss=self.loss, standardize=False, **options)

    def tuned(self, y, weights=None, *, center=True):
        """The loss as it is meant for these targets, and what is minimised in its place."""
        v, y = shares(weights, len(y)), self.coded(y)
        outputs = y if y.ndim == 2 else y[None]
        loss = self.loss.tuned(outputs, v)
        return loss, loss.smoothed(outputs, v, center=center)

    def coded(self, y):
        """Targets as losses want them: (C, n), or classes (n,)."""
        y = np.asarray(y, dtype=float)
        if self.loss.joint:
            return y
        if self.target == "classes":
            return np.where(y == np.arange(3)[:, None], 1.0, -1.0)
        return y.T if y.ndim == 2 else y[None]


SMOOTH = {
    "log_loss": Kind(LogLoss(), "signs"),
    "multinomial": Kind(Multinomial(), "classes"),
    "poisson": Kind(Poisson(), "counts"),
    "gamma": Kind(Gamma(), "amounts"),
    "tweedie": Kind(Tweedie(), "counts"),
    "negative binomial": Kind(NegativeBinomial(0.5), "counts"),
    "huber": Kind(Huber(), "numbers"),
    "squared hinge": Kind(SquaredHinge(), "signs"),
    "squared hinge, 3 classes": Kind(SquaredHinge(), "classes"),
    "squared, 2 outputs": Kind(SquaredError(), "pairs"),
}
PIECEWISE = {
    "absolute_error": Kind(AbsoluteError(), "numbers"),
    "quantile 0.2": Kind(Quantile(0.2), "numbers"),
    "hinge": Kind(Hinge(), "signs"),
}
LOSSES = {**SMOOTH, **PIECEWISE}


def correlated(kind, n=60, d=8, rho=0.5, seed=0, strength=1.0, k=3):
    """Columns with correlation rho^|i-j| in various units, k of which make the target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    w = np.zeros(d)
    w[rng.choice(d, k, replace=False)] = rng.choice([-1, 1], k) * rng.uniform(0.5, 1.5, k)
    y = target(kind, strength * X @ w, rng)
    return X * 10.0 ** rng.integers(-1, 2, d) + rng.integers(-1, 2, d), y


def target(kind, signal, rng):
    """Targets of a kind that a signal of about unit size makes likely."""
    n = len(signal)
    if kind.target == "counts":
        return rng.poisson(np.exp(0.7 * signal)).astype(float)
    if kind.target == "amounts":
        return rng.gamma(2.0, np.exp(0.7 * signal))
    if kind.target == "signs":
        return np.where(signal + rng.logistic(size=n) > 0, 1.0, -1.0)
    noisy = signal + rng.standard_t(2, n)
    if kind.target == "classes":
        return np.digitize(noisy, np.quantile(noisy, [0.3, 0.7])).astype(float)
    if kind.target == "pairs":
        return np.column_stack([noisy, np.roll(signal, 1) - signal + rng.standard_normal(n)])
    return noisy


def shares(weights, n):
    """Row weights that sum to one."""
    v = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    return v / v.sum()


def scores(model, X):
    """Linear scores of an estimator, shape (C, n), straight from its coefficients."""
    return np.atleast_2d(model.coef_) @ X.T + np.atleast_1d(model.intercept_)[:, None]


def objective(kind, loss, y, a, coef, weights=None, ridge=0.0):
    """Q from its definition, for scores of shape (C, n)."""
    v = shares(weights, a.shape[1])
    some = v > 0
    y = kind.coded(y)
    values = loss.value(y[..., some], a[:, some])
    return float(np.sum(values @ v[some])) + 0.5 * ridge * float(np.sum(np.square(coef)))


def refit(kind, X, y, support, *, weights=None, ridge=0.0, center=True, loss=None):
    """The least Q on the columns ``support`` by scipy, and the scores there; for smooth losses."""
    v, y = shares(weights, len(X)), kind.coded(y)
    loss = kind.tuned(y.T if y.ndim == 2 and kind.target == "pairs" else np.ravel(y), v)[0] if loss is None else loss
    Z = X[v > 0][:, list(support)]
    y, v = y[..., v > 0], v[v > 0]
    spread = np.sqrt(v @ (Z - center * (v @ Z)) ** 2)
    Z, penalty = Z / spread, ridge / spread**2
    if center:
        Z, penalty = np.column_stack([Z - v @ Z, np.ones(len(Z))]), np.append(penalty, 0.0)

    def both(flat):
        w = flat.reshape(kind.outputs, -1)
        a = w @ Z.T
        gradient = (loss.derivative(y, a) * v) @ Z + penalty * w
        return float(np.sum(loss.value(y, a) @ v)) + 0.5 * np.sum(penalty * w * w), gradient.ravel()

    start = np.zeros(kind.outputs * Z.shape[1])
    found = minimize(both, start, jac=True, method="BFGS", options={"gtol": 1e-7, "maxiter": 1000})
    return found.fun, found.x.reshape(kind.outputs, -1) @ Z.T


def linear_program(loss, X, y, *, weights=None, center=True):
    """The least mean of a piecewise linear loss over all coefficients, exactly."""
    n, d = X.shape
    v = shares(weights, n)
    X = np.column_stack([X, np.full(n, float(center))])
    direction = np.broadcast_to(loss.direction(y), n)[:, None]
    # r = up - down, up and down not negative, r = direction a - offset; value = highest up - lowest down.
    rows = np.hstack([direction * X, -np.eye(n), np.eye(n)])
    offset = -loss.residual(y, np.zeros(n))
    cost = np.concatenate([np.zeros(d + 1), loss.highest * v, -loss.lowest * v])
    found = linprog(cost, A_eq=rows, b_eq=offset, bounds=[(None, None)] * (d + 1) + [(0, None)] * (2 * n))
    assert found.success
    return found.fun


@contextlib.contextmanager
def at_most(seconds):
    """Fail, instead of waiting for ever, if something takes longer: in processor time, whatever else is running."""

    def late(*_):
        raise TimeoutError(f"still running after {seconds} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
