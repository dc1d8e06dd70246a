import numpy as np
import pytest

from pauca.losses import LogLoss, Poisson
from pauca.objectives import newton_at_ridges
from pauca.objectives.newton_at_ridges import NearbyHessians, _Batch, _Directions, minimise_at_ridges


@pytest.fixture(autouse=True, params=["new Hessians", "kept Hessians"])
def _hessians(request, monkeypatch):
    """Small problems compute Hessians at every step, large ones keep them: every test takes both ways."""
    if request.param == "kept Hessians":
        monkeypatch.setattr(newton_at_ridges, "CHEAP_HESSIANS", 0)


def problem(loss, seed=0, n=60, q=5):
    rng = np.random.default_rng(seed)
    columns = np.vstack([np.ones(n), rng.standard_normal((q - 1, n))])
    scores = rng.standard_normal(q) @ columns
    y = np.sign(scores + rng.logistic(size=n)) if isinstance(loss, LogLoss) else rng.poisson(np.exp(scores)) * 1.0
    weights = rng.uniform(0.5, 1.5, n)
    return y, weights / weights.sum(), columns


@pytest.mark.parametrize("loss", [LogLoss(), Poisson()])
def test_every_row_is_a_minimum_of_its_own_problem(loss):
    for seed in range(10):
        y, weights, columns = problem(loss, seed)
        penalty = np.outer([1e-4, 1e-2, 1.0], [0, 1, 1, 1, 1])
        found = minimise_at_ridges(loss, y, weights, columns, penalty, np.zeros((3, 5)), 1e-11).coef
        for coef, ridge in zip(found, penalty, strict=True):
            gradient = (loss.derivative(y, coef @ columns) * weights) @ columns.T + ridge * coef
            np.testing.assert_allclose(gradient, 0.0, atol=1e-5)


def test_separable_classes_and_far_starts_end_where_the_ridge_is():
    y, weights, columns = problem(LogLoss())
    y = np.sign(columns[1])
    penalty = np.full((2, 5), [[1e-4], [1e-1]])
    near, far = (
        minimise_at_ridges(LogLoss(), y, weights, columns, penalty, start * np.ones((2, 5)), 1e-10).coef
        for start in (0.0, 30.0)
    )
    np.testing.assert_allclose(near, far, rtol=1e-4, atol=1e-5)


def test_rough_minima_of_separated_classes_are_rough_by_their_own_value():
    """It is a hundredth of what the start has, or less."""
    _, weights, columns = problem(LogLoss(), n=200, q=4)
    y, penalty, values = np.sign(columns[1]), np.outer([1e-8, 1e-6], [0, 1, 1, 1]), []
    for within in (1e-3, 1e-12):
        coef = minimise_at_ridges(LogLoss(), y, weights, columns, penalty, np.zeros((2, 4)), within).coef
        values.append(LogLoss().value(y, coef @ columns) @ weights + 0.5 * np.vecdot(penalty * coef, coef))
    assert (values[1] < 0.01).all()
    np.testing.assert_allclose(*values, rtol=1e-3)


def test_without_a_minimum_there_is_none():
    y, weights, columns = problem(LogLoss())
    columns[2] = np.nan
    assert minimise_at_ridges(LogLoss(), y, weights, columns, np.ones((2, 5)), np.zeros((2, 5)), 1e-7) is None


@pytest.mark.parametrize("loss", [LogLoss(), Poisson()])
def test_hessians_of_fewer_columns_lead_to_the_same_minima(loss):
    y, weights, columns = problem(loss, 3)
    penalty = np.outer([1e-4, 1e-2, 1.0], [0, 1, 1, 1, 1])
    fewer = minimise_at_ridges(loss, y, weights, columns[:4], penalty[:, :4], np.zeros((3, 4)), 1e-11)
    start = np.column_stack([fewer.coef, np.zeros(3)])
    nearby = NearbyHessians(fewer.hessian, np.arange(4))
    found = minimise_at_ridges(loss, y, weights, columns, penalty, start, 1e-11, nearby)
    fresh = minimise_at_ridges(loss, y, weights, columns, penalty, np.zeros((3, 5)), 1e-11)
    np.testing.assert_allclose(found.coef, fresh.coef, rtol=1e-4, atol=1e-5)


def test_corrected_inverses_fulfil_the_secant_equation():
    rng = np.random.default_rng(0)
    problem = _Batch(LogLoss(), np.ones(5), np.full(5, 0.2), rng.standard_normal((3, 5)))
    directions, rows = _Directions(problem, 2, None), np.arange(2)
    directions._inverse[:] = np.eye(3)
    points, gradients = rng.standard_normal((2, 2, 3)), rng.standard_normal((2, 2, 3))
    gradients[1] = gradients[0] + 2.0 * (points[1] - points[0])
    gradients[1, 1] = gradients[0, 1] - (points[1, 1] - points[0, 1])  # no positive curvature: no correction
    for coef, gradient in zip(points, gradients, strict=True):
        directions._correct(rows, coef, gradient)
    change = gradients[1] - gradients[0]
    np.testing.assert_allclose(directions._inverse[0] @ change[0], points[1, 0] - points[0, 0])
    np.testing.assert_array_equal(directions._inverse[1], np.eye(3))
