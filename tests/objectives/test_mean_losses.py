"""Objectives are those of the coefficients that are returned, whatever the search thought they were."""

from dataclasses import replace

import numpy as np
import pytest

import pauca
from pauca.constraints.limits import Limits
from pauca.constraints.units import Units
from pauca.losses import LogLoss, SquaredError
from pauca.methods import Forward
from pauca.runs.problem import LinearProblem, Target

RNG = np.random.default_rng(3)
X = RNG.standard_normal((40, 5)) * [1.0, 10.0, 0.1, 1.0, 3.0] + [0.0, 50.0, 0.0, -2.0, 0.0]
SIGNAL = X[:, 0] - 0.1 * X[:, 1] + 0.3 * RNG.standard_normal(40)
WEIGHTS = RNG.random(40) * (np.arange(40) > 3)


def snapshot_of(loss, y):
    problem = LinearProblem(X, Target(y, loss, 1), Forward(), Units.columns(5), Limits(), None, 0.1, True, loss)
    subset = problem.begin(WEIGHTS / WEIGHTS.sum()).subset
    subset.add(0)
    subset.add(3)
    return subset, subset.snapshot()


@pytest.mark.parametrize("loss", [SquaredError(), LogLoss()])
def test_a_value_that_the_search_has_wrong_is_not_reported(loss):
    y = (SIGNAL if isinstance(loss, SquaredError) else np.sign(SIGNAL))[None]
    subset, found = snapshot_of(loss, y)
    wrong = replace(found, value=3 * found.value, reported=None if found.reported is None else 3 * found.reported)
    (model,) = subset.finish([wrong], None)
    scores = X[:, model.support] @ model.coef + model.intercept
    expected = loss.value(y, scores[None])[0] @ WEIGHTS / WEIGHTS.sum() + 0.05 * np.sum(model.coef**2)
    assert model.objective == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("model", "y", "loss"),
    [
        (pauca.SparseRegressor(k=2, bounds=(-0.01, 0.02)), SIGNAL, lambda y, a: 0.5 * (y - a) ** 2),
        (pauca.SparseRegressor(k=2, loss="absolute_error"), SIGNAL, lambda y, a: np.abs(y - a)),
        (pauca.SparseRegressor(k=3, loss="poisson"), np.floor(np.exp((SIGNAL + 5) / 2)), None),
        (pauca.L1Regressor(radius=0.5, loss="absolute_error"), SIGNAL, lambda y, a: np.abs(y - a)),
    ],
)
def test_all_sizes_have_the_objective_of_their_coefficients(model, y, loss):
    model.fit(X, y, sample_weight=WEIGHTS)
    if loss is None:

        def loss(y, a):
            return np.exp(a) - y * a + np.where(y > 0, y * np.log(np.maximum(y, 1)), 0.0) - y

    for one in model.path_:
        scores = X[:, one.support] @ one.coef + one.intercept
        assert one.objective == pytest.approx(loss(y, scores) @ WEIGHTS / WEIGHTS.sum(), rel=1e-9)
