"""Compiled refits and previews of models of one output are those of NumPy, to rounding."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from pauca.compiled import kernels_used
from pauca.losses import Gamma, GammaInverseLink, LogLoss, NegativeBinomial, Poisson, Tweedie
from pauca.objectives.approximate_refits import PREVIEWS, FittedModel
from pauca.objectives.merged_rows import Rows
from pauca.objectives.newton_at_ridges import minimise_at_ridges
from pauca.objectives.newton_one_output import REFITS, OneOutput
from pauca.solvers.newton import EXACT, Accuracy

pytest.importorskip("numba")

N, Q, B = 203, 6, 5


def targets(loss, scores, rng):
    mean = np.exp(np.clip(scores, -3, 3))
    if isinstance(loss, LogLoss):
        return np.where(rng.random(N) < mean / (1 + mean), 1.0, -1.0)
    if isinstance(loss, Poisson | NegativeBinomial | Tweedie):
        return rng.poisson(mean).astype(float)
    return rng.gamma(2.0, mean / 2)


LOSSES = {
    "log_loss": LogLoss(),
    "poisson": Poisson(),
    "gamma": Gamma(),
    "gamma, inverse link": GammaInverseLink(),
    "tweedie": Tweedie(1.4),
    "negative binomial": NegativeBinomial(0.7),
}


@cache
def problem(name, scale=1.0):
    """Rows with weights, columns of which the first is an intercept, a ridge, and further columns."""
    rng, loss = np.random.default_rng(7), LOSSES[name]
    columns = np.vstack([np.ones(N), rng.standard_normal((Q - 1, N))])
    weights = rng.random(N)
    y = targets(loss, scale * rng.normal(0, 0.5, Q) @ columns, rng)
    penalty = np.concatenate([[0.0], rng.uniform(0.001, 0.01, Q - 1)])
    return loss, y, weights / weights.sum(), columns, penalty, rng.standard_normal((B, N)), rng.uniform(0.001, 0.01, B)


def start(loss):
    coef = np.zeros((1, Q))
    coef[0, 0] = 0.5 if isinstance(loss, GammaInverseLink) else 0.1
    return coef


def minimum(name, accuracy=EXACT, hessian=None, begin=None, scale=1.0):
    loss, y, weights, columns, penalty, *_ = problem(name, scale)
    objective = OneOutput(loss, y, weights, columns, penalty)
    begin = start(loss) if begin is None else begin
    about = objective.value(begin, objective.scores(begin))
    return objective.minimise(begin, None, hessian, about, accuracy)


def both(question):
    """The answer of NumPy and of the kernels."""
    with kernels_used("never"):
        numpy_answer = question()
    with kernels_used("always"):
        assert PREVIEWS.single.module is not None
        assert REFITS.single.module is not None
        return numpy_answer, question()


def assert_same_minimum(found, expected, rtol=1e-9):
    assert found.converged == expected.converged
    assert found.value == pytest.approx(expected.value, rel=1e-13)
    np.testing.assert_allclose(found.coef, expected.coef, rtol=rtol, atol=1e-11)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=rtol, atol=1e-10)
    np.testing.assert_allclose(found.hessian, expected.hessian, rtol=1e-7, atol=1e-12)
    assert found.predicted == pytest.approx(expected.predicted, rel=1e-6, abs=1e-16)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("cheap", [True, False])
def test_minima_are_the_same(name, cheap, monkeypatch):
    monkeypatch.setattr("pauca.objectives.newton_one_output.has_cheap_hessian", lambda *_: cheap)
    expected, found = both(lambda: minimum(name))
    assert expected is not None
    assert expected.converged
    assert_same_minimum(found, expected)


@pytest.mark.parametrize("name", LOSSES)
def test_steps_that_end_early_end_at_the_same_point(name, monkeypatch):
    monkeypatch.setattr("pauca.objectives.newton_one_output.has_cheap_hessian", lambda *_: False)
    exact = minimum(name)
    for accuracy in (
        Accuracy(within=1e-12, most_steps=1),
        Accuracy(within=1e-12, most_steps=2, renewed=False),
        replace(EXACT, unless_above=exact.value * (1 - 1e-3)),
    ):
        hessian = 1.5 * exact.hessian[0] + 0.01 * np.eye(Q)
        expected, found = both(lambda accuracy=accuracy, hessian=hessian: minimum(name, accuracy, hessian))
        assert not expected.converged
        assert_same_minimum(found, expected)


@pytest.mark.parametrize("name", LOSSES)
def test_rough_minima_end_at_the_same_step(name, monkeypatch):
    monkeypatch.setattr("pauca.objectives.newton_one_output.has_cheap_hessian", lambda *_: False)
    # Steps of a Hessian that is far too large are lengthened, those of one that is about right corrected.
    for factor in (1.2, 30.0):
        hessian = factor * minimum(name).hessian[0]
        expected, found = both(lambda hessian=hessian: minimum(name, Accuracy(within=1e-3), hessian))
        assert expected.converged
        assert_same_minimum(found, expected)
    monkeypatch.setattr("pauca.objectives.newton_one_output.MOST_STEPS", 1)
    assert both(lambda: minimum(name)) == (None, None)


@pytest.mark.parametrize("name", ["log_loss", "poisson"])
@pytest.mark.parametrize("cheap", [True, False])
def test_long_steps_are_shortened_in_the_same_way(name, cheap, monkeypatch):
    monkeypatch.setattr("pauca.objectives.newton_one_output.has_cheap_hessian", lambda *_: cheap)
    far = start(LOSSES[name]) + 3.0
    expected, found = both(lambda: minimum(name, begin=far))
    assert (found is None) == (expected is None)
    assert_same_minimum(found, expected)


def test_steps_that_lead_nowhere_return_nothing():
    far = start(LOSSES["poisson"]) + 800.0  # e^800 is infinite
    expected, found = both(lambda: minimum("poisson", begin=far))
    assert expected is None
    assert found is None


@cache
def model(name, scale=1.0):
    loss, y, weights, columns, penalty, *_ = problem(name, scale)
    fitted = minimum(name, scale=scale)
    rows = Rows(y[None], weights)
    inverse = np.linalg.inv(fitted.hessian[0])
    return FittedModel(loss, rows, columns, penalty, fitted.coef, fitted.scores, fitted.value, inverse)


# Of nearly separated classes steps are long.
@pytest.mark.parametrize(("name", "scale"), [*((name, 1.0) for name in LOSSES), ("log_loss", 30.0)])
@pytest.mark.parametrize(
    "accuracy", [Accuracy(1e-3, 6, renewed=False), Accuracy(1e-9, 3, renewed=True), Accuracy(1e-9, 0, renewed=False)]
)
def test_previews_are_the_same(name, accuracy, scale):
    _, y, _, columns, _, new, penalty = problem(name, scale)
    fitted = model(name, scale)
    # One more column of about what is left is predicted to gain more than there is, one that is there already little.
    new = np.vstack([new, scale * (y - fitted.scores), columns[2]])
    penalty = np.append(penalty, [1e-6, 1e-3])
    for question in (
        lambda: fitted.with_each(new, penalty, accuracy),
        lambda: fitted.without_each(np.array([1, 3, 5]), accuracy),
    ):
        expected, found = both(question)
        assert found.coef.shape == expected.coef.shape
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-12)
        np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(
            found.inverse, expected.inverse, rtol=1e-7, atol=1e-9 * np.abs(expected.inverse).max()
        )
        np.testing.assert_allclose(found.predicted, expected.predicted, rtol=1e-6, atol=1e-15)
        np.testing.assert_allclose(found.removal_costs(), expected.removal_costs(), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("cheap", [0, 1 << 30])
def test_minima_at_several_ridges_are_the_same(name, cheap, monkeypatch):
    monkeypatch.setattr("pauca.objectives.newton_at_ridges.CHEAP_HESSIANS", cheap)
    loss, y, weights, columns, penalty, *_ = problem(name)
    penalties, begin = np.outer([0.3, 3.0, 30.0], penalty), np.tile(start(loss), (3, 1))
    expected, found = both(lambda: minimise_at_ridges(loss, y, weights, columns, penalties, begin, 1e-11))
    np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-5, atol=1e-6)
    if cheap:  # else they are those of earlier steps, corrected
        np.testing.assert_allclose(found.hessian, expected.hessian, rtol=1e-2, atol=1e-3)
    assert (begin == start(loss)).all()


def test_without_a_minimum_there_is_none_at_any_ridge():
    loss, y, weights, columns, penalty, *_ = problem("log_loss")
    columns = np.where(np.arange(Q)[:, None] == 2, np.nan, columns)
    arguments = (loss, y, weights, columns, np.tile(penalty, (2, 1)), np.tile(start(loss), (2, 1)), 1e-9)
    assert both(lambda: minimise_at_ridges(*arguments)) == (None, None)


def test_losses_without_a_form_are_not_compiled():
    class Mine(LogLoss):
        def derivative(self, y, a):
            return 3.0 * super().derivative(y, a)

        def slopes(self, y, a):
            derivative, curvature = super().slopes(y, a)
            return type(super().slopes(y, a))(3.0 * derivative, 3.0 * curvature)

        def value(self, y, a):
            return 3.0 * super().value(y, a)

    _, y, weights, columns, penalty, *_ = problem("log_loss")
    with kernels_used("always"):
        mine = OneOutput(Mine(), y, weights, columns, 3.0 * penalty).minimise(start(LogLoss()), None, None, 2.1, EXACT)
    assert mine.value == pytest.approx(3.0 * minimum("log_loss").value, rel=1e-12)
