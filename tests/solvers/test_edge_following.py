"""Minima of piecewise linear losses judged by linear programs, on data that tie in every way."""

import numpy as np
import pytest
from scipy.optimize import linprog

from pauca import SparseClassifier, SparseRegressor
from pauca.solvers.edge_following import PiecewiseLinearProblem, follow_edges

SLOPES = {"absolute": (-1.0, 1.0), "quantile": (-0.9, 0.1), "hinge": (-1.0, 0.0)}


def least_value(problem):
    q, n = problem.columns.shape
    identity = np.eye(n)
    bound = np.block([[s * problem.columns.T, -identity] for s in (problem.low, problem.high)])
    limit = np.concatenate([s * problem.target for s in (problem.low, problem.high)])
    found = linprog(np.concatenate([np.zeros(q), problem.weights]), bound, limit, bounds=(None, None))
    assert found.success
    return found.fun


def columns_of(kind, q, n, rng):
    if kind == "copied rows":
        few = rng.standard_normal((q, 3 * q))
        return few[:, rng.integers(0, 3 * q, n)]
    return {
        "numbers": lambda: rng.standard_normal((q, n)),
        "integers": lambda: rng.integers(-2, 3, (q, n)).astype(float),
        "rare": lambda: (rng.random((q, n)) < 0.15).astype(float),
        "other units": lambda: rng.standard_normal((q, n)) * 10.0 ** rng.integers(-3, 4, (q, 1)),
    }[kind]()


def random_problem(kind, loss, seed):
    rng = np.random.default_rng(seed)
    n, q = int(rng.integers(20, 70)), int(rng.integers(2, 6))
    columns = columns_of(kind, q, n, rng)
    columns[0] = 1.0
    target = rng.standard_t(2, n) if seed % 2 else rng.integers(0, 3, n).astype(float)
    weights = rng.integers(1, 4, n) if seed % 3 else np.ones(n)
    if loss == "hinge":
        columns, target = columns * np.where(rng.random(n) < 0.4, 1.0, -1.0), np.ones(n)
    return PiecewiseLinearProblem(columns, target, weights / weights.sum(), *SLOPES[loss])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["numbers", "integers", "rare", "copied rows", "other units"])
@pytest.mark.parametrize("loss", SLOPES)
def test_the_minimum_is_that_of_the_linear_program_and_its_slopes_prove_it(loss, kind, seed):
    problem = random_problem(kind, loss, seed)
    q, n = problem.columns.shape
    rng = np.random.default_rng(seed)
    for rows in (np.zeros(0, dtype=np.intp), rng.permutation(n)[: q + 1]):
        found = follow_edges(problem, np.zeros(q), rows)
        assert found is not None
        assert found.value == pytest.approx(least_value(problem), rel=1e-9, abs=1e-12)
        residual = found.coef @ problem.columns - problem.target
        values = np.maximum(problem.low * residual, problem.high * residual)
        assert problem.weights @ values == pytest.approx(found.value, rel=1e-9, abs=1e-12)
        # Slopes between low and high by which the gradient is zero, and the value that of the lines they make.
        assert found.slopes.min() >= problem.low - 1e-12
        assert found.slopes.max() <= problem.high + 1e-12
        scale = np.abs(problem.columns) @ problem.weights
        np.testing.assert_allclose(problem.columns @ (problem.weights * found.slopes) / scale, 0.0, atol=1e-9)
        assert -problem.weights @ (found.slopes * problem.target) == pytest.approx(found.value, rel=1e-9, abs=1e-12)
        np.testing.assert_allclose(residual[found.basis], 0.0, atol=1e-9)


def test_warm_starts_of_any_kind_lead_to_the_same_minimum():
    problem = random_problem("integers", "absolute", 0)
    whole = follow_edges(problem, np.zeros(len(problem.columns)), np.zeros(0, dtype=np.intp))
    part = PiecewiseLinearProblem(
        problem.columns[:-1], *(getattr(problem, a) for a in ("target", "weights", "low", "high"))
    )
    fewer = follow_edges(part, whole.coef[:-1], whole.basis)
    assert fewer.value == pytest.approx(least_value(part), rel=1e-9)
    again = follow_edges(problem, np.append(fewer.coef, 0.0), fewer.basis)
    assert again.value == pytest.approx(whole.value, rel=1e-12)


def test_there_is_no_vertex_of_dependent_columns():
    problem = random_problem("numbers", "absolute", 1)
    twice = np.vstack([problem.columns, problem.columns[-1:] * 2])
    same = PiecewiseLinearProblem(twice, problem.target, problem.weights, problem.low, problem.high)
    assert follow_edges(same, np.zeros(len(twice)), np.zeros(0, dtype=np.intp)) is None


@pytest.mark.parametrize("loss", ["absolute_error", "hinge"])
def test_groups_of_dependent_columns_are_refitted_all_the_same(loss):
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (60, 4)).astype(float)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    signal = X[:, 0] - 0.5 * X[:, 2] + rng.standard_normal(60)
    kind, y = (SparseClassifier, signal > 0) if loss == "hinge" else (SparseRegressor, signal)
    groups = ["a", "a", "b", "c", "a"]
    model = kind(k=2, loss=loss, feature_groups=groups).fit(X, y)
    free = kind(k=2, loss=loss, feature_groups=groups[:4]).fit(X[:, :4], y)
    assert set(model.feature_groups_) == set(free.feature_groups_)
    # Columns that depend on others are refitted through the envelope, to its accuracy.
    assert model.objective_ == pytest.approx(free.objective_, abs=1e-3 * model.path_[0].objective)
    assert model.objective_ >= free.objective_ * (1 - 1e-9)


def test_rows_without_weight_have_no_say():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((50, 3)), rng.standard_normal(50)
    weights = np.arange(50) % 3.0
    some = weights > 0
    wild = np.where(some, y, 1e6)
    model = SparseRegressor(k=2, loss="absolute_error").fit(X, wild, weights)
    same = SparseRegressor(k=2, loss="absolute_error").fit(X[some], y[some], weights[some])
    assert model.objective_ == pytest.approx(same.objective_, rel=1e-9)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-7)


def test_order_and_repetition_of_rows_change_nothing():
    """Where several vertices are best, as with integer targets, the same one is found."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        Z = np.vstack([np.ones(12), rng.integers(0, 3, (2, 12)), rng.standard_normal((1, 12))]).astype(float)
        target, times = rng.integers(0, 3, 12).astype(float), rng.integers(1, 4, 12)
        order, rows = rng.permutation(12), np.repeat(np.arange(12), times)
        weighted = PiecewiseLinearProblem(Z, target, times / times.sum(), -1.0, 1.0)
        shuffled = PiecewiseLinearProblem(Z[:, order], target[order], times[order] / times.sum(), -1.0, 1.0)
        repeated = PiecewiseLinearProblem(Z[:, rows], target[rows], np.full(len(rows), 1 / len(rows)), -1.0, 1.0)
        found = [follow_edges(one, np.zeros(4), np.zeros(0, dtype=np.intp)) for one in (weighted, shuffled, repeated)]
        for other in found[1:]:
            np.testing.assert_allclose(other.coef, found[0].coef, atol=1e-6)
