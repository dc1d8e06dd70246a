"""Minima in few calls and without Hessians are those of the general solver; previews lie between start and minimum."""

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimise

from pauca.design import make_design
from pauca.losses import LogLoss, Multinomial, Poisson, SquaredError
from pauca.objectives import FittedModel, Restricted, Rows, SmoothObjective, joint_line_gains
from pauca.objectives import newton_joint_outputs as joint_outputs_module
from pauca.objectives import newton_one_output as one_output_module
from pauca.objectives import restricted as restricted_module
from pauca.objectives.newton_joint_outputs import BentRows, JointOutputs, Line
from pauca.objectives.newton_one_output import OneOutput
from pauca.solvers.newton import EXACT, Accuracy, minimise
from pauca.subsets.smooth import SmoothSubset

N, Q = 90, 5
ONE_SCORE = {"logistic": LogLoss(), "poisson": Poisson(), "squares": SquaredError()}
TARGETS = {
    "logistic": lambda rng, a: np.where(a + rng.logistic(size=N) > 0, 1.0, -1.0),
    "poisson": lambda rng, a: rng.poisson(np.exp(0.5 * a)).astype(float),
    "squares": lambda rng, a: a + rng.normal(size=N),
}


def columns_and_weights(rng, scale=1.0):
    columns = np.concatenate([np.ones((1, N)), scale * rng.normal(size=(Q, N))])
    weights = rng.integers(1, 4, N).astype(float)
    return columns, weights / weights.sum()


@pytest.fixture(params=[0, 1 << 30], ids=["corrected", "renewed"])
def cheap(request, monkeypatch):
    """Hessians that are corrected from step to step, or computed at every step."""
    monkeypatch.setattr(one_output_module, "CHEAP_HESSIAN", request.param)


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("name", ONE_SCORE)
@pytest.mark.parametrize("ridge", [1e-6, 0.1])
def test_one_output_is_minimised_as_by_the_general_solver(name, ridge):
    rng = np.random.default_rng(3)
    columns, weights = columns_and_weights(rng)
    y = TARGETS[name](rng, columns[1:].sum(axis=0))
    penalty = np.concatenate([[0.0], np.full(Q, ridge)])
    rows, start = Rows(y[None], weights), np.zeros((1, Q + 1))
    problem = OneOutput(ONE_SCORE[name], y, weights, columns, penalty)
    general = Restricted(ONE_SCORE[name], rows, columns, penalty)
    value = general.value(start, start @ columns)
    near = general.hessian(start @ columns, 0.0)[0]
    for hessian in (None, near):
        found = problem.minimise(start, None, hessian, value, EXACT)
        expected = minimise(general, start)
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-10)
        np.testing.assert_allclose(found.coef, expected.coef, atol=1e-4)
        np.testing.assert_allclose(general.gradient(found.coef, found.scores), 0.0, atol=1e-5)


def test_one_output_that_ends_early_says_what_is_left():
    rng = np.random.default_rng(4)
    columns, weights = columns_and_weights(rng, 3.0)
    y = TARGETS["logistic"](rng, 3.0 * columns[1])
    problem = OneOutput(LogLoss(), y, weights, columns, np.full(Q + 1, 1e-6))
    start = np.zeros((1, Q + 1))
    rough = problem.minimise(start, None, None, np.log(2.0), Accuracy(within=1e-12, most_steps=2))
    exact = problem.minimise(start, None, None, np.log(2.0), EXACT)
    assert not rough.converged
    assert exact.value < rough.value < np.log(2.0)
    assert 0 < rough.predicted < 2 * (rough.value - exact.value)


@pytest.mark.parametrize("ridge", [1e-7, 0.05])
@pytest.mark.parametrize("spread", [0.5, 4.0], ids=["mixed", "nearly separable"])
def test_joint_outputs_are_minimised_as_by_the_general_solver(ridge, spread):
    rng = np.random.default_rng(5)
    columns, weights = columns_and_weights(rng)
    centres = spread * rng.normal(size=(4, Q + 1))
    y = (centres @ columns + rng.gumbel(size=(4, N))).argmax(axis=0)
    penalty = np.concatenate([[0.0], np.full(Q, ridge)])
    rows, start = Rows(y, weights), np.zeros((4, Q + 1))
    general = Restricted(Multinomial(), rows, columns, penalty)
    found = JointOutputs(Multinomial(), rows, columns, penalty).minimise(start, None, np.log(4.0), EXACT)
    expected = minimise(general, start)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-9)
    np.testing.assert_allclose(found.coef.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-3 * np.abs(expected.scores).max())
    np.testing.assert_allclose(general.gradient(found.coef, found.scores), 0.0, atol=1e-5)


def nearly_separable_classes(rng):
    columns, weights = columns_and_weights(rng)
    y = (4.0 * rng.normal(size=(4, Q + 1)) @ columns + rng.gumbel(size=(4, N))).argmax(axis=0)
    return columns, Rows(y, weights), np.concatenate([[0.0], np.full(Q, 1e-7)])


def test_joint_outputs_give_up_only_above_the_value_that_is_to_be_beaten():
    for seed in range(20):
        columns, rows, penalty = nearly_separable_classes(np.random.default_rng(seed))
        problem, start = JointOutputs(Multinomial(), rows, columns, penalty), np.zeros((4, Q + 1))
        least = problem.minimise(start, None, np.log(4.0), EXACT).value
        beaten = problem.minimise(start, None, np.log(4.0), Accuracy(unless_above=1.01 * least))
        assert beaten.converged
        np.testing.assert_allclose(beaten.value, least, rtol=1e-8)
        hopeless = problem.minimise(start, None, np.log(4.0), Accuracy(unless_above=0.5 * least))
        assert not hopeless.converged
        assert hopeless.value - hopeless.predicted > 0.5 * least


def test_the_clock_is_read_for_every_block_of_joint_outputs(monkeypatch):
    rng = np.random.default_rng(5)
    columns, weights = columns_and_weights(rng)
    rows, penalty = Rows(rng.integers(0, 4, N), weights), np.full(Q + 1, 0.1)
    seen = []
    for module in (joint_outputs_module, restricted_module):
        monkeypatch.setattr(module, "check_time", lambda: seen.append(1))
    monkeypatch.setattr(joint_outputs_module, "INVERTED_WORK", 1)
    solver = JointOutputs(Multinomial(), rows, columns, penalty)
    curvature = np.full((4, N), 0.2)
    inverse = solver._inverse_blocks(BentRows(columns, weights, curvature, np.full((4, N), 0.1)))
    assert len(seen) == 2 * 4
    expected = np.linalg.inv((columns * (0.19 * weights)) @ columns.T + np.diag(penalty))
    np.testing.assert_allclose(inverse, np.broadcast_to(expected, inverse.shape), rtol=1e-6)
    seen.clear()
    Restricted(Multinomial(), rows, columns, penalty).hessian(np.zeros((4, N)), 0.0)
    assert len(seen) > 4


@pytest.mark.parametrize("name", ONE_SCORE)
def test_previews_of_additions_are_near_the_minimum(name):
    rng = np.random.default_rng(6)
    columns, weights = columns_and_weights(rng)
    new = rng.normal(size=(3, N))
    loss, y = ONE_SCORE[name], TARGETS[name](rng, columns[1:].sum(axis=0) + new[0])
    penalty, rows = np.full(Q + 1, 1e-4), Rows(y[None], weights)
    problem = OneOutput(loss, y, weights, columns, penalty)
    start = np.zeros((1, Q + 1))
    fit = problem.minimise(start, None, None, problem.value(start, start @ columns), EXACT)
    inverse = np.linalg.inv(fit.hessian[0])
    model = FittedModel(loss, rows, columns, penalty, fit.coef, fit.scores, fit.value, inverse)
    accuracy = Accuracy(1e-9 if name == "squares" else 1e-3, 6, renewed=False)
    found = model.with_each(new, np.full(3, 1e-4), accuracy)
    for place, column in enumerate(new):
        wider = OneOutput(loss, y, weights, np.vstack([columns, column]), np.full(Q + 2, 1e-4))
        exact = wider.minimise(np.append(fit.coef, 0.0)[None], None, None, fit.value, EXACT)
        assert exact.value - 1e-12 <= found.value[place] <= fit.value + 1e-12
        assert abs(found.value[place] - found.predicted[place] - exact.value) <= 2e-3 * fit.value
        if name == "squares":  # the quadratic is exact, and so is what removals cost to second order
            np.testing.assert_allclose(found.inverse[place], np.linalg.inv(exact.hessian[0]), rtol=1e-6, atol=1e-9)
            without = np.delete(np.vstack([columns, column]), 2, axis=0)
            rest = OneOutput(loss, y, weights, without, np.full(Q + 1, 1e-4))
            cost = rest.minimise(start, None, None, fit.value, EXACT).value - exact.value
            np.testing.assert_allclose(found.removal_costs()[place, 2], cost, rtol=1e-6)


@pytest.mark.parametrize("name", ONE_SCORE)
def test_previews_of_removals_are_near_the_minimum(name):
    rng = np.random.default_rng(8)
    columns, weights = columns_and_weights(rng)
    loss, y = ONE_SCORE[name], TARGETS[name](rng, columns[1:].sum(axis=0))
    penalty, rows = np.full(Q + 1, 1e-4), Rows(y[None], weights)
    problem = OneOutput(loss, y, weights, columns, penalty)
    start = np.zeros((1, Q + 1))
    fit = problem.minimise(start, None, None, problem.value(start, start @ columns), EXACT)
    model = FittedModel(loss, rows, columns, penalty, fit.coef, fit.scores, fit.value, np.linalg.inv(fit.hessian[0]))
    positions = np.arange(1, Q + 1)
    found = model.without_each(positions, Accuracy(1e-9, 30, renewed=False))
    for place, position in enumerate(positions):
        rest = OneOutput(loss, y, weights, np.delete(columns, position, axis=0), np.full(Q, 1e-4))
        exact = rest.minimise(start[:, :Q], None, None, fit.value, EXACT)
        assert found.coef[place, 0, position] == 0.0
        np.testing.assert_allclose(found.value[place], exact.value, rtol=1e-7)
        np.testing.assert_allclose(np.delete(found.coef[place, 0], position), exact.coef[0], atol=1e-3)


def test_previews_of_classes_are_near_the_minimum():
    rng = np.random.default_rng(9)
    columns, weights = columns_and_weights(rng)
    new = rng.normal(size=(3, N))
    signal = rng.normal(size=(4, Q + 1)) @ columns + rng.normal(size=(4, 1)) * new[0]
    y = (signal + rng.gumbel(size=(4, N))).argmax(axis=0)
    penalty, rows, loss = np.full(Q + 1, 1e-3), Rows(y, weights), Multinomial()
    restricted = Restricted(loss, rows, columns, penalty)
    fit = minimise(restricted, np.zeros((4, Q + 1)))
    inverse = np.linalg.inv(restricted.hessian(fit.scores, 0.0)[0])
    model = FittedModel(loss, rows, columns, penalty, fit.coef, fit.scores, fit.value, inverse)
    thorough = Accuracy(1e-9, 40, renewed=False)
    found = model.with_each(new, np.full(3, 1e-3), thorough)
    for place, column in enumerate(new):
        wider = Restricted(loss, rows, np.vstack([columns, column]), np.full(Q + 2, 1e-3))
        exact = minimise(wider, np.zeros((4, Q + 2)))
        np.testing.assert_allclose(found.value[place], exact.value, rtol=1e-7)
        np.testing.assert_allclose(found.scores[place], found.coef[place] @ np.vstack([columns, column]), atol=1e-8)
        # The quadratic around the start, before any step: bordered as if the whole Hessian had been inverted.
        border = model.with_each(new, np.full(3, 1e-3), Accuracy(1e-9, 0, renewed=False)).inverse[place]
        whole = wider.hessian(fit.scores, 0.0)[0]
        np.testing.assert_allclose(border @ whole, np.eye(len(whole)), atol=1e-6)
        costs = 0.5 * np.array([_cost(found.inverse[place], found.coef[place], i) for i in range(Q + 2)])
        np.testing.assert_allclose(found.removal_costs()[place], costs, rtol=1e-6)
    without = model.without_each(np.array([2]), thorough)
    rest = minimise(Restricted(loss, rows, np.delete(columns, 2, axis=0), penalty[1:]), np.zeros((4, Q)))
    np.testing.assert_allclose(without.value[0], rest.value, rtol=1e-7)


def _cost(inverse, coef, position):
    """``w' A^-1 w`` for the coefficients of one column in all outputs."""
    outputs, size = coef.shape
    places = np.arange(outputs) * size + position
    return coef[:, position] @ np.linalg.solve(inverse[np.ix_(places, places)], coef[:, position])


def test_an_exchange_is_the_same_as_removals_and_additions():
    rng = np.random.default_rng(7)
    X, weights = rng.normal(size=(N, 8)), np.full(N, 1.0 / N)
    y = TARGETS["logistic"](rng, X[:, 0] - X[:, 5])[None]
    objective = SmoothObjective.of(make_design(X, weights, center=True), y, LogLoss())
    first, second = (SmoothSubset.start(objective) for _ in range(2))
    for subset in (first, second):
        subset.exchange((), (0, 1, 2))
    first.exchange((1, 2), (5, 6))
    for unit in (1, 2):
        second.drop(unit)
    for unit in (5, 6):
        second.add(unit)
    assert first.support == second.support == [0, 5, 6]
    np.testing.assert_allclose(first.value, second.value, rtol=1e-12)


@pytest.mark.parametrize("ridge", [1e-6, 0.1])
def test_gains_along_columns_of_joint_outputs_are_those_of_minimisation(ridge):
    rng = np.random.default_rng(8)
    columns, weights = columns_and_weights(rng)
    centres = 1.5 * rng.normal(size=(3, Q + 1))
    y = (centres @ columns + rng.gumbel(size=(3, N))).argmax(axis=0)
    rows, scores = Rows(y, weights), 0.3 * rng.normal(size=(3, N))
    found = joint_line_gains(Multinomial(), rows, scores, columns[1:], np.full(Q, ridge))
    before = Multinomial().value(y, scores) @ weights
    for gain, column in zip(found, columns[1:], strict=True):

        def value(t, column=column):
            return Multinomial().value(y, scores + np.outer(t, column)) @ weights + 0.5 * ridge * t @ t

        lowest = scipy_minimise(value, np.zeros(3), tol=1e-12).fun
        np.testing.assert_allclose(gain, before - lowest, rtol=1e-6)
        assert before - gain <= lowest + 1e-12


def nearly_separable(rng):
    """Three classes of which a few rows lie on the wrong side, and coefficients that are certain of most rows."""
    columns = np.concatenate([np.ones((1, 300)), rng.normal(size=(3, 300))])
    classes = np.argmax(columns[1:], axis=0)
    wrong = rng.choice(300, 4, replace=False)
    classes[wrong] = (classes[wrong] + 1) % 3
    rows = Rows(classes, np.full(300, 1 / 300))
    return rows, columns, np.hstack([np.zeros((3, 1)), 60.0 * np.eye(3)])


def test_slopes_along_a_step_are_those_of_all_rows():
    rng = np.random.default_rng(1)
    rows, columns, coef = nearly_separable(rng)
    penalty = np.array([0.0, 1e-4, 1e-4, 1e-4])
    problem = JointOutputs(Multinomial(), rows, columns, penalty)
    general = Restricted(Multinomial(), rows, columns, penalty)
    at = problem._point(1.0, coef, coef @ columns)
    step = -0.9 * coef + rng.normal(size=coef.shape)
    change = step @ columns
    ridge = float(np.sum(penalty * coef * step)), float(np.sum(penalty * step * step))
    line = Line(Multinomial(), rows, at, change, ridge, 1e-4)
    low, high = 0.0, 2.2
    for _ in range(15):
        length = 0.5 * (low + high)
        there = coef + length * step
        expected = float(np.vdot(general.gradient(there, there @ columns), step))
        np.testing.assert_allclose(line.slope(length), expected, atol=1e-3)
        low, high = (length, high) if expected < 0 else (low, length)
    assert low > 0
    assert line.open_rows < 200


def test_rows_without_curvature_are_left_out_of_products():
    rng = np.random.default_rng(2)
    rows, columns, coef = nearly_separable(rng)
    penalty = np.array([0.0, 1e-4, 1e-4, 1e-4])
    problem = JointOutputs(Multinomial(), rows, columns, penalty)
    general = Restricted(Multinomial(), rows, columns, penalty)
    at, step = problem._point(1.0, coef, coef @ columns), rng.normal(size=coef.shape)
    step -= step.mean(axis=0)
    bent, kept = problem._bent(at)
    assert 0 < len(kept) < 200
    hessian = general.hessian(at.scores, 0.0)[0]
    np.testing.assert_allclose(problem._product(step, bent).ravel(), hessian @ step.ravel(), atol=1e-6)
    inverse = problem._inverse_hessian(at, bent, kept)[0]
    np.testing.assert_allclose(hessian @ inverse @ step.ravel(), step.ravel(), atol=1e-2)


def test_previews_do_not_depend_on_what_is_previewed_beside_them():
    """Some steps are too long and shortened, others are not."""
    rng = np.random.default_rng(5)
    rows, columns, coef = nearly_separable(rng)
    penalty = np.array([0.0, 1e-6, 1e-6, 1e-6])
    loss = Multinomial()
    general = Restricted(loss, rows, columns, penalty)
    fit = minimise(general, 0.01 * coef)
    inverse = np.linalg.inv(general.hessian(fit.scores, 0.0)[0])
    model = FittedModel(loss, rows, columns, penalty, fit.coef, fit.scores, fit.value, inverse)
    accuracy = Accuracy(1e-3, 6, renewed=False)
    together = model.without_each(np.array([1, 2, 3]), accuracy)
    new = np.concatenate([rng.normal(size=(2, 300)), (rng.random((2, 300)) < 0.01).astype(float)])
    added = model.with_each(new, np.full(4, 1e-6), accuracy)
    for place in range(3):
        alone = model.without_each(np.array([place + 1]), accuracy)
        np.testing.assert_allclose(alone.value[0], together.value[place], rtol=1e-9)
    for place in range(4):
        alone = model.with_each(new[place : place + 1], np.full(1, 1e-6), accuracy)
        np.testing.assert_allclose(alone.value[0], added.value[place], rtol=1e-9)
        np.testing.assert_allclose(alone.inverse[0], added.inverse[place], rtol=1e-6, atol=1e-6)
