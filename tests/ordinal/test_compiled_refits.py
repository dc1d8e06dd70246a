"""Compiled refits, previews and searches along columns of ordered classes are those of NumPy."""

from functools import cache

import numpy as np
import pytest

from pauca import SparseOrdinalClassifier
from pauca.compiled import kernels_used
from pauca.objectives.approximate_refits import PREVIEWS, FittedModel
from pauca.objectives.merged_rows import Rows
from pauca.objectives.newton_one_output import REFITS, OneOutput
from pauca.ordinal.cumulative_logit import CumulativeLogit
from pauca.solvers.newton import EXACT, Accuracy
from pauca.subsets.compiled_gains import ALONG_COLUMNS, Lines, gains_of_columns

pytest.importorskip("numba")

N, Q, B = 180, 5, 4


@cache
def problem(classes=4):
    """A loss bound to rows with weights, some of them zero, columns with a ridge, and further columns."""
    rng = np.random.default_rng(classes)
    columns, new = rng.standard_normal((Q, N)), rng.standard_normal((B, N))
    scores = rng.normal(0, 1.5, Q) @ columns + new[0] + rng.logistic(size=N)
    y = np.digitize(scores, np.quantile(scores, np.linspace(0, 1, classes + 1)[1:-1])).astype(float)
    weights = rng.integers(0, 4, N) / 6.0
    return CumulativeLogit().tuned(y[None], weights / weights.sum()), y, weights / weights.sum(), columns, new


def minimum(classes, accuracy=EXACT, start=0.1, hessian=None):
    loss, y, weights, columns, _ = problem(classes)
    objective, start = OneOutput(loss, y, weights, columns, np.full(Q, 1e-3)), np.full((1, Q), start)
    return objective.minimise(start, None, hessian, objective.value(start, objective.scores(start)), accuracy)


def both(question):
    """The answer of NumPy and of the kernels."""
    with kernels_used("never"):
        expected = question()
    with kernels_used("always"):
        assert all(kernels.coupled.module is not None for kernels in (PREVIEWS, REFITS, ALONG_COLUMNS))
        return expected, question()


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("start", [0.1, 40.0])
def test_minima_are_the_same(classes, start):
    expected, found = both(lambda: minimum(classes, start=start))
    assert expected.converged
    assert found.converged
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-6)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-6, atol=1e-6)
    loss, y, weights, columns, _ = problem(classes)
    exact = OneOutput(loss, y, weights, columns, np.full(Q, 1e-3)).hessian(found.scores)
    np.testing.assert_allclose(found.hessian, exact, rtol=1e-3, atol=1e-5)  # that of the last step but one


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("accuracy", [Accuracy(1e-3, 6, renewed=False), Accuracy(1e-9, 3, renewed=True)])
def test_previews_are_the_same(classes, accuracy):
    loss, y, weights, columns, new = problem(classes)
    with kernels_used("never"):
        fitted = minimum(classes)
        inverse = np.linalg.inv(OneOutput(loss, y, weights, columns, np.full(Q, 1e-3)).hessian(fitted.scores)[0])
    rows, penalty = Rows(y[None], weights), np.full(Q, 1e-3)
    model = FittedModel(loss, rows, columns, penalty, fitted.coef, fitted.scores, fitted.value, inverse)
    for question in (
        lambda: model.with_each(new, penalty[:B], accuracy),
        lambda: model.without_each(np.array([0, 2, 4]), accuracy),
    ):
        expected, found = both(question)
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-10)
        np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(found.inverse, expected.inverse, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found.predicted, expected.predicted, rtol=1e-4, atol=1e-12)


def test_gains_along_columns_are_those_of_refits_of_one_coefficient():
    loss, y, weights, columns, new = problem(4)
    scores = 0.8 * columns[0]
    slopes = loss.slopes(y, scores)
    lines = Lines(
        -new @ (weights * slopes.derivative),
        new**2 @ (weights * slopes.curvature),
        np.full(B, 1e-3),
        np.full(B, np.nan),
        *np.full((2, B), [[-np.inf], [np.inf]]),
    )
    with kernels_used("always"):
        before = float(loss.value(y, scores) @ weights)
        found = gains_of_columns(loss, (y, weights, scores), new, lines, 1e-9, before)
    steps = np.linspace(-2, 2, 4001)
    for z, gain in zip(new, found, strict=True):
        along = loss.value(y, scores + steps[:, None] * z) @ weights + 0.5e-3 * steps**2
        assert gain == pytest.approx(before - along.min(), rel=1e-4, abs=1e-9)


def test_scores_that_overflow_are_left_to_numpy():
    loss, y, weights, columns, _ = problem(3)
    with kernels_used("always"):
        rows = loss.compiled_rows()
        objective = OneOutput(loss, y, weights, 1e4 * columns, np.full(Q, 1e-3))
        found = objective.minimise(np.full((1, Q), 0.1), None, None, 1e3, EXACT)
    assert rows is not None
    with kernels_used("never"):
        expected = objective.minimise(np.full((1, Q), 0.1), None, None, 1e3, EXACT)
    assert (found is None) == (expected is None)
    if found is not None:
        assert found.value == pytest.approx(expected.value, rel=1e-9)


@pytest.mark.parametrize("classes", [2, 5])
def test_the_path_is_the_same_with_kernels_and_without(classes):
    rng = np.random.default_rng(classes)
    X = rng.standard_normal((250, 30))
    scores = X[:, :6] @ rng.uniform(0.3, 1.0, 6) + rng.logistic(size=250)
    y = np.digitize(scores, np.quantile(scores, np.linspace(0, 1, classes + 1)[1:-1]))
    weights = rng.integers(0, 3, 250)
    expected, found = both(lambda: SparseOrdinalClassifier(k=8).fit(X, y, sample_weight=weights).path_)
    for size in expected.sizes:
        assert found[size].support.tolist() == expected[size].support.tolist()
        assert found[size].objective == pytest.approx(expected[size].objective, rel=1e-10)
