"""The multinomial loss: one loss for all scores of a row."""

import numpy as np
import pytest
from loss_rows import STEP
from scipy.optimize import minimize

from pauca.losses import (
    Hinge,
    LogLoss,
    Multinomial,
)

# The multinomial loss: one loss for all scores of a row.


def multinomial_rows(classes=4, n=12, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, classes, n).astype(float), spread * rng.standard_normal((classes, n))


def moved(a, c, step):
    a = a.copy()
    a[c] += step
    return a


def test_multinomial_derivative_and_hessian_by_differences():
    loss, (y, a) = Multinomial(), multinomial_rows()
    derivative, curvature = loss.slopes(y, a)
    coupling = loss.coupling(curvature)
    np.testing.assert_array_equal(derivative, loss.derivative(y, a))
    np.testing.assert_array_equal(curvature, loss.curvature(y, a))
    p = np.exp(a) / np.exp(a).sum(axis=0)
    np.testing.assert_allclose(loss.probabilities(a), p, rtol=1e-12)
    for c in range(4):
        above, below = moved(a, c, STEP), moved(a, c, -STEP)
        slope = (loss.value(y, above) - loss.value(y, below)) / (2 * STEP)
        np.testing.assert_allclose(derivative[c], slope, atol=1e-8)
        column = (loss.derivative(y, above) - loss.derivative(y, below)) / (2 * STEP)
        stated = np.where(np.arange(4)[:, None] == c, curvature, 0.0) - coupling * coupling[c]
        np.testing.assert_allclose(stated, column, atol=1e-8)
        np.testing.assert_allclose(stated, np.where(np.arange(4)[:, None] == c, p, 0.0) - p * p[c], atol=1e-12)


def test_multinomial_bounds_hold_and_are_nearly_tight():
    loss = Multinomial()
    a = np.concatenate([multinomial_rows(n=500, spread=s, seed=1)[1] for s in (0.1, 3.0, 9.0)], axis=1)
    a[:, 0] = [20.0, 20.0, 0.0, 0.0]
    y = np.arange(a.shape[1]) % 4.0
    p = loss.curvature(y, a)
    hessians = np.einsum("cn,cd->ncd", p, np.eye(4)) - np.einsum("cn,dn->ncd", p, p)
    largest = np.linalg.eigvalsh(hessians)[:, -1].max()
    assert 0.99 * loss.smoothness <= largest <= loss.smoothness * (1 + 1e-12)
    steepest = np.linalg.norm(loss.derivative(y, a), axis=0).max()
    assert 0.99 * loss.lipschitz <= steepest <= loss.lipschitz * (1 + 1e-12)


def test_multinomial_is_convex_and_not_negative():
    loss, (y, a), (_, b) = Multinomial(), multinomial_rows(n=2000), multinomial_rows(n=2000, seed=1)
    share = np.random.default_rng(2).random(2000)
    between = loss.value(y, share * a + (1 - share) * b)
    assert np.all(between <= share * loss.value(y, a) + (1 - share) * loss.value(y, b) + 1e-12)
    assert np.all(between >= 0)
    far = np.array([[1e3, -1e3, 0.0], [0.0, 1e3, 1e3], [-1e3, 40.0, -1e3]])
    with np.errstate(all="raise", under="ignore"):
        value, slopes = loss.value(np.array([0.0, 1.0, 2.0]), far), loss.slopes(np.array([0.0, 1.0, 2.0]), far)
    np.testing.assert_allclose(value, [0.0, 0.0, 2e3], atol=1e-12)
    assert np.all(np.isfinite(slopes))


def test_multinomial_of_two_classes_is_logistic():
    y, a = multinomial_rows(classes=2, n=50)
    signs, margin = 2 * y - 1, a[1] - a[0]
    np.testing.assert_allclose(Multinomial().value(y, a), LogLoss().value(signs, margin), rtol=1e-12)
    np.testing.assert_allclose(Multinomial().derivative(y, a)[1], LogLoss().derivative(signs, margin), rtol=1e-10)
    np.testing.assert_allclose(Multinomial().broad_curvature(y, a, y)[1], LogLoss().curvature(signs, margin), rtol=1e-9)
    np.testing.assert_allclose(Multinomial().probabilities(a), LogLoss().probabilities(margin[None]), rtol=1e-10)
    assert Multinomial().for_classes(2) == LogLoss()
    assert LogLoss().for_classes(3) == Multinomial()
    assert Hinge().for_classes(3) == Hinge()


def test_multinomial_conjugate():
    loss, (y, a) = Multinomial(), multinomial_rows(spread=1.5)
    t = loss.derivative(y, a)
    products = np.einsum("cn,cn->n", t, a)
    np.testing.assert_allclose(loss.value(y, a) + loss.conjugate(y, t), products, rtol=1e-10, atol=1e-10)
    _, b = multinomial_rows(spread=1.5, seed=5)
    assert np.all(loss.value(y, b) + loss.conjugate(y, t) >= np.einsum("cn,cn->n", t, b) - 1e-12)
    for i in range(3):
        found = minimize(
            lambda a, i=i: loss.value(y[[i]], a[:, None])[0] - t[:, i] @ a,
            np.zeros(4),
            jac=lambda a, i=i: loss.derivative(y[[i]], a[:, None])[:, 0] - t[:, i],
            tol=1e-10,
        )
        assert loss.conjugate(y[[i]], t[:, [i]])[0] == pytest.approx(-found.fun, rel=1e-8)
    off = np.zeros((4, 12))
    off[0] = 0.1
    assert np.all(loss.conjugate(y, t + off) == np.inf)
    off[1] = -0.1
    outside = np.min(t + off + (np.arange(4)[:, None] == y), axis=0) < 0
    assert outside.any()
    np.testing.assert_array_equal(loss.conjugate(y, t + off) == np.inf, outside)
    corner = np.array([[-1.0], [1.0], [0.0], [0.0]])
    assert loss.conjugate(np.array([0.0]), corner)[0] == 0
