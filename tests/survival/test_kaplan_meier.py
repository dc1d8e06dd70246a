"""Kaplan and Meier's estimate against its definition."""

import numpy as np
import pytest

from pauca.survival.kaplan_meier import KaplanMeier

ROW = [("event", bool), ("time", float), ("entry", float), ("stratum", int)]


@pytest.mark.parametrize("late", [False, True])
def test_the_product_of_the_shares_left_whatever_the_strata(late):
    rng = np.random.default_rng(0)
    y, weights = np.zeros(40, dtype=ROW), rng.integers(0, 4, 40) / 7
    y["time"], y["event"], y["stratum"] = rng.integers(2, 9, 40), rng.random(40) < 0.6, rng.integers(0, 3, 40)
    y["entry"] = np.where(rng.random(40) < 0.5, rng.integers(0, 2, 40), -np.inf) if late else -np.inf
    found, free = KaplanMeier.of(y, weights), 1.0
    assert found.times.tolist() == np.unique(y["time"][y["event"] & (weights > 0)]).tolist()
    for place, time in enumerate(found.times):
        at_risk = weights[(y["entry"] < time) & (y["time"] >= time)]
        free *= 1 - weights[y["event"] & (y["time"] == time)].sum() / at_risk.sum()
        assert found.free[place] == pytest.approx(free, rel=1e-12, abs=1e-12)
        assert found.n_effective[place] == pytest.approx(at_risk.sum() ** 2 / (at_risk**2).sum(), rel=1e-12)
    first = found.times[0]
    assert found.free_at(np.array([first - 0.5, first, first + 0.5])).tolist() == [1.0, found.free[0], found.free[0]]


def test_nobody_is_left_where_all_at_risk_have_their_event():
    """Also where the two sums are rounded apart."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = np.zeros(31, dtype=ROW)
        y["time"], y["event"], y["entry"] = np.where(np.arange(31) < 9, 1.0, 2.0), True, rng.random(31) - 1.0
        assert KaplanMeier.of(y, rng.random(31)).free[-1] == 0.0
