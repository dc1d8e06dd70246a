"""Gains along single columns by compiled kernels are those of NumPy."""

import numpy as np
import pytest
from loss_rows import LOSSES
from scipy import sparse

from pauca.compiled import kernels_used
from pauca.design import make_design
from pauca.losses import Poisson
from pauca.losses.compiled_curves import compiled_curve
from pauca.objectives import SmoothObjective
from pauca.subsets.column_entries import ColumnEntries
from pauca.subsets.compiled_gains import ALONG_COLUMNS, ALONG_ENTRIES
from pauca.subsets.coordinate_gains import CoordinateSearch

pytest.importorskip("numba")

COMPILED = {name: row.loss for name, row in LOSSES.items() if compiled_curve(row.loss)}
N, D = 180, 12


def problem(name, *, bounds=None, merged=False, seed=5):
    """Columns from bell-shaped over skewed to rare, and targets that some of them separate; a third has no weight."""
    rng, row = np.random.default_rng(seed), LOSSES[name]
    X = rng.standard_normal((N, D))
    X[:, 3:6] = np.exp(1.5 * X[:, 3:6])
    X[:, 6:] = np.where(rng.random((N, 6)) < np.linspace(0.02, 0.4, 6), 1.0 if merged else X[:, 6:], 0.0)
    signal = X[:, 0] + X[:, 3] + 4.0 * X[:, 6] - 2.0 * X[:, 9] + rng.logistic(0, 0.2, N)
    place = np.searchsorted(np.quantile(signal, np.linspace(0, 1, len(row.targets) + 1)[1:-1]), signal)
    y = np.array(sorted(row.targets))[place]
    weights = np.where(rng.random(N) < 0.33, 0.0, rng.random(N))
    design = make_design(X, weights / weights.sum(), center=True)
    return SmoothObjective.of(design, y[None], row.loss, bounds=bounds)


def search(objective):
    """The gains of all columns from the model without any, and how they were asked for."""
    null, columns = objective.null, ColumnEntries(objective.design)
    scores = objective.rows.to_data(null.scores)
    force = objective.smooth.derivative(objective.y, scores) * objective.design.weights
    slope = -objective.design.products(force)[0]
    bent = objective.smooth.curvature(objective.y, scores) * objective.design.weights
    curvature = objective.design.squares(bent)[0] + objective.penalty
    found = CoordinateSearch(objective, columns, objective.rows, null.scores[0])
    return lambda within: found.gains(np.arange(D), slope, np.maximum(curvature, 1e-12), within)


def both(objective, within=1e-10):
    with kernels_used("never"):
        expected = search(objective)(within)
    with kernels_used("always"):
        assert ALONG_COLUMNS.single.module is not None
        assert ALONG_ENTRIES.module is not None
        return search(objective)(within), expected


@pytest.mark.parametrize("name", COMPILED)
def test_gains_are_the_same_for_every_loss_and_kind_of_column(name):
    found, expected = both(problem(name))
    assert np.count_nonzero(expected) >= D - 2
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("name", ["log_loss", "poisson", "huber"])
def test_rough_gains_end_at_the_same_steps(name):
    found, expected = both(problem(name, merged=True), within=1e-2)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("name", ["log_loss", "poisson", "squared hinge"])
@pytest.mark.parametrize("bounds", [(0.0, np.inf), (-np.inf, 0.05), (-0.1, 0.1)])
def test_gains_within_bounds_are_the_same(name, bounds):
    found, expected = both(problem(name, bounds=tuple(np.full(D, bound) for bound in bounds)))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-13)


def test_steps_of_columns_that_separate_the_classes_go_outward():
    objective = problem("log_loss")
    X = np.zeros((N, D))
    X[:, 0] = np.where(objective.y[0] > 0, np.exp(np.linspace(-3, 3, N)), 0.0)
    X[:, 1:] = np.random.default_rng(0).standard_normal((N, D - 1))
    design = make_design(X, objective.design.weights, center=False)
    found, expected = both(SmoothObjective.of(design, objective.y, objective.loss, center=False))
    assert expected[0] > 0.1
    np.testing.assert_allclose(found, expected, rtol=1e-7)


@pytest.mark.parametrize("mode", ["never", "always"])
def test_stored_entries_of_rows_without_weight_may_be_anything(mode):
    rng, weights, found = np.random.default_rng(0), np.repeat([0.0, 1 / (N - 20)], [20, N - 20]), []
    X, y = np.where(rng.random((N, D)) < 0.2, rng.standard_normal((N, D)), 0.0), rng.poisson(1.0, N).astype(float)
    for anything in (0.0, 1e149):
        X[:20, ::2] = anything
        objective = SmoothObjective.of(make_design(sparse.csc_array(X), weights, center=True), y[None], Poisson())
        with kernels_used(mode):
            found.append(search(objective)(1e-10))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)
