"""A time limit reaches into what is computed for all columns at once, and what was found before stays."""

import numpy as np
import pytest

import pauca
from pauca.clock import OutOfTime, limited_until
from pauca.relaxations import diagonal

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 20))
Y = X[:, :4].sum(axis=1) + RNG.standard_normal(60)


def test_diagonals_that_are_not_improved_in_time_prove_what_they_prove(monkeypatch):
    def out_of_time(*_):
        raise OutOfTime

    model = pauca.SparseRegressor(k=4, ridge=0.05).fit(X, Y)
    whole = model.certify()
    monkeypatch.setattr(diagonal, "_ascend", out_of_time)
    cut = model.certify()
    for size, bound in cut.lower_bound.items():
        assert bound <= whole.proofs[size].objective * (1 + 1e-12)
    assert set(cut.lower_bound) == set(whole.lower_bound)


@pytest.mark.filterwarnings("ignore")
def test_gains_along_columns_are_given_up_in_time():
    model = pauca.SparseOrdinalClassifier(k=2, time_limit=1e-9).fit(X, np.digitize(Y, [-1, 1]))
    assert model.stop_ == "time"
    with limited_until(-np.inf), pytest.raises(OutOfTime):
        diagonal._ascend(np.eye(3), np.full((1, 3), 0.5), np.ones((1, 3)), np.zeros((1, 3), dtype=bool))
