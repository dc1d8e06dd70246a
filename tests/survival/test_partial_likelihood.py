"""The partial likelihood against its definition by loops over risk sets, its derivatives, and the laws of losses."""

import numpy as np
import pytest

from pauca.survival.partial_likelihood import PartialLikelihood
from pauca.survival.risk_sets import SURVIVAL


def rows(n=30, seed=0, *, ties=False, strata=1, entry=False, zeros=True):
    rng = np.random.default_rng(seed)
    y = np.empty(n, dtype=SURVIVAL)
    y["time"] = rng.integers(1, 8, n) if ties else rng.exponential(5.0, n)
    y["event"] = rng.random(n) < 0.6
    y["entry"] = y["time"] * rng.uniform(-0.5, 0.9, n) if entry else -np.inf
    y["stratum"] = rng.integers(0, strata, n)
    weights = rng.integers(0 if zeros else 1, 4, n).astype(float)
    return y, weights / weights.sum()


def by_definition(y, v, a, ties):
    """The sum over events of log risk sums less scores, less that of a perfect order."""
    total = perfect = 0.0
    a = a - a.max()
    for s in np.unique(y["stratum"]):
        here = (y["stratum"] == s) & (v > 0)
        for t in np.unique(y["time"][here & y["event"]]):
            tied = here & y["event"] & (y["time"] == t)
            at_risk = here & (y["time"] >= t) & (y["entry"] < t)
            d, weight = tied.sum(), v[tied].sum()
            top = a[at_risk].max()
            risk, own = v[at_risk] @ np.exp(a[at_risk] - top), v[tied] @ np.exp(a[tied] - top)
            for place in range(d):
                share = place / d if ties == "efron" else 0.0
                total += weight / d * (np.log(risk - share * own) + top)
                perfect += weight / d * np.log(weight * (1 - share))
            total -= v[tied] @ a[tied]
    return total - perfect


def by_hand(y, v, a, z, ties):
    """The first two derivatives along z: means and variances of z over risk sets."""
    slope = curvature = 0.0
    for s in np.unique(y["stratum"]):
        here = (y["stratum"] == s) & (v > 0)
        for t in np.unique(y["time"][here & y["event"]]):
            tied = here & y["event"] & (y["time"] == t)
            at_risk = here & (y["time"] >= t) & (y["entry"] < t)
            hazard = np.where(at_risk, v * np.exp(np.minimum(a - a[at_risk].max(), 0.0)), 0.0)
            for place in range(tied.sum()):
                share = hazard * (1 - tied * (place / tied.sum() if ties == "efron" else 0.0))
                share, weight = share / share.sum(), v[tied].sum() / tied.sum()
                slope += weight * (share @ z)
                curvature += weight * (share @ (z - share @ z) ** 2)
            slope -= v[tied] @ z[tied]
    return slope, curvature


CASES = [
    pytest.param(ties, how, id=f"{ties}, {how}")
    for ties in ("efron", "breslow")
    for how in ({}, {"ties": True}, {"strata": 3}, {"entry": True}, {"ties": True, "strata": 3, "entry": True})
]


@pytest.mark.parametrize(("ties", "how"), CASES)
def test_value_derivative_and_hessian(ties, how):
    y, v = rows(**how)
    rng = np.random.default_rng(1)
    a, columns = rng.standard_normal((4, 30)), rng.standard_normal((3, 30))
    loss = PartialLikelihood(ties).tuned(y[None], v)
    found = loss.value(y[None], a) @ v
    np.testing.assert_allclose(found, [by_definition(y, v, row, ties) for row in a], rtol=1e-11)
    np.testing.assert_allclose(loss.value(y[None], a + 100.0) @ v, found, rtol=1e-9)
    slopes = loss.slopes(y[None], a)
    step = 1e-5
    for j, z in enumerate(columns):
        above, below = loss.value(y[None], a + step * z) @ v, loss.value(y[None], a - step * z) @ v
        np.testing.assert_allclose(slopes.derivative @ (v * z), (above - below) / (2 * step), rtol=1e-5, atol=1e-8)
        above, below = (loss.derivative(y[None], a + s * step * z) @ (v * columns).T for s in (1, -1))
        for i, row in enumerate(a):
            shared = loss.row_coupling(row, columns)
            hessian = (columns * (v * slopes.curvature[i])) @ columns.T - shared @ shared.T
            np.testing.assert_allclose(hessian[j], (above[i] - below[i]) / (2 * step), rtol=1e-5, atol=1e-7)
            assert np.linalg.eigvalsh(hessian)[0] >= -1e-12
            image = loss.coupled_image(row, columns)
            np.testing.assert_allclose(columns @ image.T, shared @ shared.T, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("ties", "how"), CASES)
@pytest.mark.parametrize("spread", [50.0, 3000.0])
def test_scores_may_be_far_apart(ties, how, spread):
    """Hazards of some risk sets are then nothing next to those of others, and below all doubles for 3000."""
    y, v = rows(**how)
    rng = np.random.default_rng(1)
    a, columns = rng.standard_normal((3, 30)), rng.standard_normal((3, 30))
    a[:2] += spread * rng.standard_normal((2, 30)).round()
    loss = PartialLikelihood(ties).tuned(y[None], v)
    np.testing.assert_allclose(loss.value(y[None], a) @ v, [by_definition(y, v, row, ties) for row in a], rtol=1e-11)
    slopes = loss.slopes(y[None], a)
    for row, derivative, curvature in zip(a, slopes.derivative, slopes.curvature, strict=True):
        expected = np.array([by_hand(y, v, row, column, ties) for column in columns])
        np.testing.assert_allclose(derivative @ (v * columns).T, expected[:, 0], rtol=1e-7, atol=1e-10)
        shared = loss.row_coupling(row, columns)
        found = (columns**2) @ (v * curvature) - np.sum(shared**2, axis=1)
        np.testing.assert_allclose(found, expected[:, 1], rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(
            columns @ loss.coupled_image(row, columns).T, shared @ shared.T, rtol=1e-8, atol=1e-10
        )


@pytest.mark.parametrize(("ties", "how"), CASES)
def test_rows_without_weight_may_have_any_score(ties, how):
    y, v = rows(**how)
    a, columns = np.random.default_rng(1).standard_normal((2, 3, 30))
    beyond = a + np.where(v == 0, 1e59, 0.0)
    assert np.any(v == 0)
    loss = PartialLikelihood(ties).tuned(y[None], v)
    np.testing.assert_allclose(loss.value(y[None], beyond) @ v, loss.value(y[None], a) @ v, rtol=1e-12)
    slopes, expected = loss.slopes(y[None], beyond), loss.slopes(y[None], a)
    np.testing.assert_allclose(slopes.derivative * v, expected.derivative * v, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(slopes.curvature * v, expected.curvature * v, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        loss.row_coupling(beyond[0], columns), loss.row_coupling(a[0], columns), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("how", [{}, {"ties": True, "strata": 2}])
def test_a_weight_is_a_repetition(how):
    """With Breslow's ties; Efron's see a repeated row as a tie."""
    y, v = rows(**how)
    counts = np.round(v / v[v > 0].min()).astype(int)
    again, a = np.repeat(y, counts), np.random.default_rng(1).standard_normal(30)
    one = PartialLikelihood("breslow").tuned(y[None], v).value(y[None], a) @ v
    even = np.full(len(again), 1 / len(again))
    two = PartialLikelihood("breslow").tuned(again[None], even).value(again[None], np.repeat(a, counts)) @ even
    assert one == pytest.approx(two, rel=1e-12)


def test_a_perfect_order_is_zero_and_the_curvature_changes_no_faster_than_stated():
    y, v = rows(ties=True, zeros=False)
    y["event"] = True
    loss = PartialLikelihood().tuned(y[None], v)
    assert loss.value(y[None], -50.0 * y["time"]) @ v == pytest.approx(0.0, abs=1e-9)
    z = np.random.default_rng(2).standard_normal(30)

    def curvature(t):
        a = 0.3 * z + t * z
        shared = loss.row_coupling(a, z)
        return (v * loss.curvature(y[None], a)) @ (z * z) - shared @ shared

    t = np.linspace(-4, 4, 401)
    bent = np.array([curvature(one) for one in t])
    assert np.all(np.abs(np.diff(np.log(bent))) <= 2 * np.abs(z).max() * np.diff(t))


@pytest.mark.parametrize(("ties", "how"), CASES)
def test_losses_of_rows_held_out_add_up_to_the_cross_validated_likelihood(ties, how):
    y, v = rows(zeros=False, **how)
    rng = np.random.default_rng(1)
    a, test = rng.standard_normal((2, 30)), rng.choice(30, 9, replace=False)
    fit = v.copy()
    fit[test] = 0.0
    fitted = PartialLikelihood(ties).tuned(y[None], fit / fit.sum())
    losses = fitted.held_out_losses(y[None], v, test)
    assert losses(a).shape == (2, 9)
    for spread in (0.0, 3000.0):
        a += spread * rng.standard_normal((2, 30)).round()
        expected = [by_definition(y, v, row, ties) - by_definition(y, fit, row, ties) for row in a]
        np.testing.assert_allclose(losses(a) @ v[test], expected, rtol=1e-10)


def test_invalid():
    with pytest.raises(ValueError, match="'efron' or 'breslow'"):
        PartialLikelihood("exact")
    with pytest.raises(ValueError, match="tuned"):
        PartialLikelihood().slopes(np.zeros(3), np.zeros(3))


def test_no_constant_is_looked_for_as_none_changes_anything(monkeypatch):
    monkeypatch.setattr(PartialLikelihood, "derivative", lambda *_: pytest.fail("the slope is rounding"))
    assert PartialLikelihood().constant(np.zeros(3), np.full(3, 1 / 3)) == 0


def test_a_loss_is_bound_to_the_weights_that_it_is_given():
    y, v = rows(entry=True)
    loss, a = PartialLikelihood(), np.linspace(-1.0, 1.0, len(y))
    before = loss.tuned(y[None], v).value(y, a) @ v
    assert loss.tuned(y[None], v.copy()).value(y, a) @ v == before
    v[:10] = 0.0  # in place
    found = loss.tuned(y[None], v).value(y, a) @ v
    assert found == pytest.approx(by_definition(y, v, a, "efron"), rel=1e-10)
    assert found != pytest.approx(before)
    assert loss == PartialLikelihood()
    assert repr(loss) == "PartialLikelihood(ties='efron')"


def test_a_loss_that_folds_in_other_threads_bind_meanwhile_is_bound_to_its_own_rows(monkeypatch):
    y, v = rows(entry=True)
    y, loss, equal = y[None], PartialLikelihood(), np.array_equal
    own = loss.tuned(y, v)

    def other_fold_meanwhile(one, other):
        monkeypatch.undo()
        loss.tuned(y, np.where(np.arange(len(v)) < 10, 0.0, v))
        return equal(one, other)

    monkeypatch.setattr(np, "array_equal", other_fold_meanwhile)
    assert loss.tuned(y, v) is own
