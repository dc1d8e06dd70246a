"""Laws every loss obeys. A new loss is under them by one row in LOSSES."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import nbinom

from pauca import SparseClassifier, SparseRegressor
from pauca.losses import (
    AbsoluteError,
    Envelope,
    Gamma,
    GammaInverseLink,
    Hinge,
    Huber,
    LogLoss,
    Loss,
    Multinomial,
    NegativeBinomial,
    Poisson,
    Quantile,
    SquaredError,
    SquaredHinge,
    Tweedie,
    resolve,
)
from pauca.losses.offset import with_offset, without_offset

NUMBERS, COUNTS, SIGNS = (-2.3, 0.0, 0.7, 5.0), (0.0, 1.0, 3.0, 40.0), (-1.0, 1.0)
AMOUNTS = (0.2, 1.0, 5.0, 40.0)


class LogCosh(Loss):
    """A user's own loss: three methods and nothing else."""

    def value(self, y, a):
        return np.logaddexp(a - y, y - a) - np.log(2)

    def derivative(self, y, a):
        return np.tanh(a - y)

    def curvature(self, y, a):
        return 1 - np.tanh(a - y) ** 2


class OwnForClasses(LogCosh):
    classifies = True


@dataclass(frozen=True)
class Row:
    """A loss, valid targets, and its properties from the literature, independent of its code."""

    loss: Loss
    targets: tuple
    kinks: object = lambda y: ()
    """Scores where the derivative or the curvature jumps."""
    domain: object = None
    """Ends of the interval on which the conjugate is finite; None where the loss does not know its conjugate."""
    positive: bool = False
    """Whether only positive scores have a finite loss."""


def everywhere(y):
    return -np.inf, np.inf


def bounded(low, high, *, signed=False):
    return lambda y: tuple(sorted((y * low, y * high))) if signed else (low, high)


PIECEWISE = {
    "absolute_error": Row(AbsoluteError(), NUMBERS, lambda y: (y,), bounded(-1, 1)),
    "quantile 0.1": Row(Quantile(0.1), NUMBERS, lambda y: (y,), bounded(-0.1, 0.9)),
    "quantile 0.5": Row(Quantile(0.5), NUMBERS, lambda y: (y,), bounded(-0.5, 0.5)),
    "quantile 0.9": Row(Quantile(0.9), NUMBERS, lambda y: (y,), bounded(-0.9, 1 - 0.9)),
    "hinge": Row(Hinge(), SIGNS, lambda y: (y,), bounded(-1, 0, signed=True)),
}
BETAS = (0.2, 1.0, 37.0)


def envelope(row, beta):
    def kinks(y):
        low, high = row.domain(y)
        return y + low / beta, y + high / beta

    return Row(Envelope(row.loss, beta), row.targets, kinks, row.domain)


ENVELOPES = {f"{name} at {beta}": envelope(row, beta) for name, row in PIECEWISE.items() for beta in BETAS}
LOSSES = {
    "squared_error": Row(SquaredError(), NUMBERS, domain=everywhere),
    "huber": Row(Huber(1.3), NUMBERS, lambda y: (y - 1.3, y + 1.3), bounded(-1.3, 1.3)),
    "poisson": Row(Poisson(), COUNTS, domain=lambda y: (-y, np.inf)),
    "gamma": Row(Gamma(), AMOUNTS, domain=bounded(-np.inf, 1.0)),
    "gamma, inverse link": Row(GammaInverseLink(), AMOUNTS, domain=lambda y: (-np.inf, y), positive=True),
    "tweedie": Row(Tweedie(1.3), COUNTS, domain=lambda y: (-np.inf if y else 0.0, np.inf)),
    "negative binomial": Row(NegativeBinomial(0.4), COUNTS, domain=lambda y: (-y, 2.5)),
    "log_loss": Row(LogLoss(), SIGNS, domain=bounded(-1, 0, signed=True)),
    "squared hinge": Row(SquaredHinge(), SIGNS, lambda y: (y,), bounded(-np.inf, 0, signed=True)),
    "own": Row(LogCosh(), NUMBERS),
    **PIECEWISE,
    **ENVELOPES,
}
CASES = [pytest.param(row, y, id=f"{name}, y={y:g}") for name, row in LOSSES.items() for y in row.targets]
STEP = 1e-4


def scores_for(row, y):
    """Scores on both sides of every kink, none so near to one that differences would straddle it."""
    a = np.linspace(0.8, 7, 401) if row.positive else np.linspace(-7, 7, 401)
    for kink in row.kinks(y):
        a = np.concatenate([a, kink + np.array([-0.5, -0.01, 0.01, 0.5])])
    for kink in row.kinks(y):
        a = a[np.abs(a - kink) > 2 * STEP]
    return np.sort(a)


def at(loss, y, a):
    """Value, derivative and curvature at scores a for one target."""
    y = np.full_like(a, y)
    return loss.value(y, a), loss.derivative(y, a), loss.curvature(y, a)


def least(function, low, high):
    """The minimum of a convex function between two points, by grids that close in on it."""
    for _ in range(6):
        points = np.linspace(low, high, 1001)
        best = int(np.argmin(function(points)))
        low, high = points[max(best - 1, 0)], points[min(best + 1, 1000)]
    return float(np.min(function(np.linspace(low, high, 3))))


def slopes_inside(row, y):
    """Arguments of the conjugate: both ends of its domain, if it has any, and what lies between."""
    low, high = row.domain(y)
    # The score of slope y is infinite under the inverse link.
    return np.linspace(max(low, -6.0), min(high - 0.05 * row.positive, 6.0), 13)


@pytest.mark.parametrize(("row", "y"), CASES)
def test_derivative_and_curvature_by_differences(row, y):
    a = scores_for(row, y)
    value, derivative, curvature = at(row.loss, y, a)
    above, below = at(row.loss, y, a + STEP), at(row.loss, y, a - STEP)
    size = 1 + np.abs(value)
    assert np.all(np.abs((above[0] - below[0]) / (2 * STEP) - derivative) <= 1e-7 * size)
    assert np.all(np.abs((above[1] - below[1]) / (2 * STEP) - curvature) <= 1e-7 * size)


@pytest.mark.parametrize(("row", "y"), CASES)
def test_convex_on_chords_and_not_negative(row, y):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.01 if row.positive else -9, 9, (2, 2000))
    a, b = np.concatenate([a, a + 0.05 * b]), np.concatenate([b, a])
    share = rng.random(len(a))
    (at_a, *_), (at_b, *_) = at(row.loss, y, a), at(row.loss, y, b)
    between, derivative, curvature = at(row.loss, y, share * a + (1 - share) * b)
    assert np.all(between >= 0)
    assert np.all(curvature >= 0)
    assert np.all(between <= (share * at_a + (1 - share) * at_b) * (1 + 1e-12) + 1e-12)
    assert np.all(at_a >= between + derivative * (1 - share) * (a - b) - 1e-12 * (1 + at_a + between))


@pytest.mark.parametrize(("row", "y"), CASES)
def test_the_minimum_is_zero_and_attained_unless_it_may_diverge(row, y):
    a = np.append(np.linspace(-40, 40, 1601), [y, *([np.log(y), 1 / y] if y > 0 else [])])
    value = at(row.loss, y, a)[0]
    assert value.min() == pytest.approx(0, abs=1e-9)
    if not row.loss.may_diverge:
        assert value.min() <= 1e-15
    elif row.targets is not COUNTS or y == 0:
        assert np.all(value > 0)


@pytest.mark.parametrize(("row", "y"), CASES)
def test_slopes_are_derivative_and_curvature_in_any_shape_and_arguments_are_unchanged(row, y):
    a = scores_for(row, y)[:400].reshape(4, 100)
    targets = np.full_like(a, y)
    a.flags.writeable = targets.flags.writeable = False
    slopes = row.loss.slopes(targets, a)
    value, derivative, curvature = at(row.loss, y, a.ravel())
    np.testing.assert_allclose(row.loss.value(targets, a), value.reshape(a.shape), rtol=1e-14)
    for found, expected in [(slopes.derivative, derivative), (slopes.curvature, curvature)]:
        assert found.shape == a.shape
        np.testing.assert_allclose(found, expected.reshape(a.shape), rtol=1e-14)


@pytest.mark.parametrize(("row", "y"), CASES)
def test_stated_bounds_hold(row, y):
    loss, a = row.loss, scores_for(row, y)
    _, derivative, curvature = at(loss, y, a)
    if loss.smoothness is not None:
        assert curvature.max() <= loss.smoothness * (1 + 1e-12)
        # Between neighbours the derivative may cross a kink; it must not jump.
        assert np.all(np.diff(derivative) <= loss.smoothness * np.diff(a) * (1 + 1e-9) + 1e-12)
    if loss.lipschitz is not None:
        assert np.abs(derivative).max() <= loss.lipschitz * (1 + 1e-12)
    if loss.self_concordance is not None:
        third = (at(loss, y, a + STEP)[2] - at(loss, y, a - STEP)[2]) / (2 * STEP)
        assert np.all(np.abs(third) <= loss.self_concordance * curvature * (1 + 1e-6) + 1e-11)
    if not loss.flat:
        assert np.all(curvature[np.abs(a - y) < 5] > 0)


@pytest.mark.parametrize(("row", "y"), CASES)
def test_broad_curvature_is_the_curvature_or_fits_longer_steps(row, y):
    loss, a = row.loss, scores_for(row, y)
    targets, weights = np.full_like(a, y), np.full(len(a), 1 / len(a))
    broad = loss.broad_curvature(targets, a, weights)
    assert broad.shape == a.shape
    assert np.all(broad >= 0)
    if not loss.flat:
        np.testing.assert_array_equal(broad, loss.curvature(targets, a))
    elif isinstance(loss, Huber):
        # A parabola of this curvature lies above the loss wherever one goes, and touches it again on the other side.
        for b in np.linspace(-30, 30, 61):
            parabola = loss.value(targets, a) + (b - a) * (loss.derivative(targets, a) + 0.5 * broad * (b - a))
            assert np.all(loss.value(targets, np.full_like(a, b)) <= parabola + 1e-9)
        other = 2 * y - a
        touched = loss.value(targets, a) + (other - a) * (loss.derivative(targets, a) + 0.5 * broad * (other - a))
        np.testing.assert_allclose(touched, loss.value(targets, other), atol=1e-9)
    elif isinstance(loss, Envelope):
        # Slopes change by highest - lowest over a band about the kink that holds at least half of the rows.
        inside = broad > 0
        assert 0 < broad.max() <= loss.smoothness * (1 + 1e-12)
        assert np.all(broad[inside] == broad.max())
        assert np.mean(inside) >= 0.49
        away = np.abs(loss.loss.residual(targets, a))
        assert away[inside].max() <= away[~inside].min(initial=np.inf)
        assert 2 * away[inside].max() * broad.max() <= (loss.loss.highest - loss.loss.lowest) * (1 + 1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_stated_constants_are_those_of_the_literature(name):
    row = LOSSES[name]
    beta, rho, concordance = {
        "squared_error": (1, None, 0),
        "huber": (1, 1.3, None),
        "poisson": (None, None, 1),
        "gamma": (None, None, 1),
        "tweedie": (None, None, 0.7),
        "negative binomial": (None, None, 1),
        "log_loss": (1 / 4, 1, 1),
        "squared hinge": (1, None, None),
        "own": (None, None, None),
    }.get(name, (None, None, None))
    if name in PIECEWISE or name in ENVELOPES:
        rho = max(abs(end) for end in row.domain(row.targets[-1]))
        beta = float(name.split(" at ")[1]) if name in ENVELOPES else None
    stated = row.loss.smoothness, row.loss.lipschitz, row.loss.self_concordance
    assert stated == (beta, pytest.approx(rho), pytest.approx(concordance))
    assert row.loss.classifies == (row.targets is SIGNS)
    assert row.loss.flat == (len(row.kinks(1.0)) > 0)
    assert row.loss.quadratic == (name == "squared_error")


@pytest.mark.parametrize(("row", "y"), [case for case in CASES if case.values[0].domain is not None])
def test_fenchel_young(row, y):
    loss, a = row.loss, scores_for(row, y)
    value, derivative, _ = at(loss, y, a)
    conjugate = loss.conjugate(np.full_like(a, y), derivative)
    size = 1 + np.abs(value) + np.abs(derivative * a)
    assert np.all(np.abs(value + conjugate - derivative * a) <= 1e-12 * size)
    for t in slopes_inside(row, y):
        assert np.all(value + loss.conjugate(np.full_like(a, y), np.full_like(a, t)) >= t * a - 1e-12 * size)


@pytest.mark.parametrize(("row", "y"), [case for case in CASES if case.values[0].domain is not None])
def test_the_conjugate_is_the_largest_gap_and_infinite_outside_its_domain(row, y):
    t = slopes_inside(row, y)
    expected = [-least(lambda a, t=t: at(row.loss, y, a)[0] - t * a, -60.0, 60.0) for t in t]
    np.testing.assert_allclose(row.loss.conjugate(np.full_like(t, y), t), expected, rtol=1e-9, atol=1e-9)
    low, high = row.domain(y)
    outside = np.array([low - 1e-3, low - 2.0, high + 1e-3, high + 2.0])
    outside = outside[np.isfinite(outside)]
    assert np.all(row.loss.conjugate(np.full_like(outside, y), outside) == np.inf)


def test_a_custom_loss_needs_no_conjugate():
    with pytest.raises(NotImplementedError, match="LogCosh"):
        LogCosh().conjugate(np.zeros(1), np.zeros(1))


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("name", PIECEWISE)
def test_the_envelope_is_the_infimal_convolution_and_lies_closely_below(name, beta):
    row = PIECEWISE[name]
    loss, smooth = row.loss, Envelope(row.loss, beta)
    for y in row.targets:
        a = scores_for(ENVELOPES[f"{name} at {beta}"], y)
        value, below = at(loss, y, a)[0], at(smooth, y, a)[0]
        assert np.all(below <= value + 1e-15)
        assert np.all(value - below <= loss.lipschitz**2 / (2 * beta) * (1 + 1e-12))
        assert np.max(value - below) == pytest.approx(loss.lipschitz**2 / (2 * beta))
        some = a[::25]
        width = 2 * loss.lipschitz / beta
        expected = [least(lambda u, a=a, y=y: 0.5 * beta * u * u + at(loss, y, a - u)[0], -width, width) for a in some]
        np.testing.assert_allclose(at(smooth, y, some)[0], expected, atol=1e-9 * width)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("accuracy", [1e-4, 0.1])
@pytest.mark.parametrize("kind", [AbsoluteError, lambda accuracy: Quantile(0.8, accuracy), Hinge])
def test_smoothing_costs_half_of_the_accuracy_at_most(kind, accuracy, outputs, center):
    rng = np.random.default_rng(0)
    loss = kind(accuracy=accuracy)
    y = rng.choice(SIGNS, (outputs, 80), p=[0.3, 0.7]) if loss.classifies else rng.exponential(3.0, (outputs, 80))
    weights = rng.integers(0, 3, 80).astype(float)
    weights /= weights.sum()
    smooth = loss.smoothed(y, weights, center=center)
    null = sum(
        least(lambda c, o=o: loss.value(o[:, None], np.atleast_1d(c)[None]).T @ weights, -20, 20)
        if center
        else weights @ loss.value(o, np.zeros(80))
        for o in y
    )
    gaps = [loss.value(y, a) - smooth.value(y, a) for a in 10 * rng.standard_normal((50, outputs, 80))]
    lost = np.array([np.sum(gap @ weights) for gap in gaps])
    assert np.all(lost >= 0)
    assert lost.max() <= 0.5 * accuracy * null * (1 + 1e-9)
    # The steepest slope everywhere: the bound is tight, so smoothing is as coarse as it may be.
    far = y - 1e6 if not loss.classifies else -1e6 * y
    assert np.sum((loss.value(y, far) - smooth.value(y, far)) @ weights) == pytest.approx(
        0.5 * accuracy * null, rel=1e-3
    )


def test_a_perfect_constant_and_smooth_losses_need_no_smoothing():
    flat = np.full((1, 5), 4.0)
    smooth = AbsoluteError().smoothed(flat, np.full(5, 0.2), center=True)
    assert smooth.smoothness > 0
    assert np.isfinite(smooth.smoothness)
    for name, row in LOSSES.items():
        if name not in PIECEWISE:
            assert row.loss.smoothed(flat, np.full(5, 0.2), center=True) is row.loss


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "own"])
def test_the_constant_is_near_the_best(name):
    rng = np.random.default_rng(1)
    loss, targets = LOSSES[name].loss, LOSSES[name].targets
    if targets is SIGNS:
        y = rng.choice(targets, 60, p=[0.2, 0.8])
    elif targets is AMOUNTS:
        y = rng.exponential(2.0, 60)
    else:
        y = rng.poisson(4.0, 60).astype(float) if targets is COUNTS else rng.exponential(2.0, 60) - 3.0
    weights = rng.integers(0, 3, 60) * rng.random(60)
    weights /= weights.sum()
    low = 1e-3 if LOSSES[name].positive else -12.0
    best = least(lambda c: loss.value(y[:, None], c[None]).T @ weights, low, 12.0)
    start = weights @ loss.value(y, np.full(60, loss.constant(y, weights)))
    # Exact where there is a closed form; the median for Huber's; that of the loss itself for an envelope.
    slack = 0.03 * best if name == "huber" else 0.0
    if name in ENVELOPES:
        slack = loss.lipschitz**2 / (2 * loss.smoothness)
    assert best - 1e-9 <= start <= best + slack + 1e-9


def test_the_constant_of_a_class_without_weight_is_infinite():
    y, weights = np.array([-1.0, -1.0, 1.0]), np.array([0.5, 0.5, 0.0])
    for loss, best in ((LogLoss(), -np.inf), (SquaredHinge(), -1.0), (Hinge(), -1.0)):
        assert loss.constant(y, weights) == best
        assert loss.constant(-y, weights) == -best
    classes = Multinomial().constants(np.array([0.0, 2.0, 2.0, 1.0]), np.array([0.25, 0.5, 0.25, 0.0]), 3)
    assert classes[1] == -np.inf
    assert classes[2] - classes[0] == pytest.approx(np.log(3))


OVERFLOW = {
    "poisson": lambda a: a < 1e3,
    "gamma": lambda a: a > -700,
    "gamma, inverse link": lambda a: a > 1e-300,
    "tweedie": lambda a: a < 1e3,
}
"""Scores beyond which a loss overflows."""


@pytest.mark.parametrize("name", LOSSES)
def test_extreme_scores_give_numbers_and_no_warnings(name):
    loss, targets = LOSSES[name].loss, LOSSES[name].targets
    y = np.repeat(targets if targets is SIGNS else (*targets, 1e9), 8)
    a = np.tile([-1e3, -700.0, -40.0, 0.0, 1e-300, 40.0, 700.0, 1e3], len(y) // 8)
    # Only e^a and e^-a may overflow; objectives take that for an infinite value (see Restricted).
    finite = OVERFLOW.get(name, lambda a: np.full(len(a), True))(a)
    with np.errstate(all="raise", under="ignore", over="ignore" if name in OVERFLOW else "raise"):
        value, slopes = loss.value(y, a), loss.slopes(y, a)
    assert not np.any(np.isnan([value, slopes.derivative, slopes.curvature]))
    assert np.all(value >= 0)
    assert np.all(slopes.curvature >= 0)
    assert np.all(np.isfinite([value, slopes.derivative, slopes.curvature])[:, finite])
    assert np.all(value[~finite] > 100)


def test_extreme_margins_keep_their_digits():
    y, a = np.array([1.0, 1.0, -1.0, -1.0]), np.array([1e3, 50.0, 50.0, -700.0])
    np.testing.assert_allclose(LogLoss().value(y, a), [0.0, np.exp(-50), 50.0, np.exp(-700)], rtol=1e-12)
    np.testing.assert_allclose(
        LogLoss().derivative(y, a), [0.0, -np.exp(-50), 1.0, np.exp(-700)], rtol=1e-12, atol=1e-300
    )
    np.testing.assert_allclose(LogLoss().curvature(y, a)[1:], [np.exp(-50), np.exp(-50), np.exp(-700)], rtol=1e-12)


def test_large_counts_keep_the_digits_of_their_loss():
    """Near its minimum the loss of a count is about ``y d^2 / 2``, whatever the count."""
    for count in (1e3, 1e6, 1e9):
        d = np.array([-3.0, -1.0, 0.5, 2.0]) / np.sqrt(count)
        y = np.full(4, count)
        expected = count * (d**2 / 2 + d**3 / 6 + d**4 / 24 + d**5 / 120 + d**6 / 720)
        np.testing.assert_allclose(Poisson().value(y, np.log(y) + d), expected, rtol=1e-7)


# The multinomial loss: one loss for all scores of a row.


def multinomial_rows(classes=4, n=12, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, classes, n).astype(float), spread * rng.standard_normal((classes, n))


def moved(a, c, step):
    a = a.copy()
    a[c] += step
    return a


def test_multinomial_derivative_and_hessian_by_differences():
    loss, (y, a) = Multinomial(), multinomial_rows()
    derivative, curvature = loss.slopes(y, a)
    coupling = loss.coupling(curvature)
    np.testing.assert_array_equal(derivative, loss.derivative(y, a))
    np.testing.assert_array_equal(curvature, loss.curvature(y, a))
    p = np.exp(a) / np.exp(a).sum(axis=0)
    np.testing.assert_allclose(loss.probabilities(a), p, rtol=1e-12)
    for c in range(4):
        above, below = moved(a, c, STEP), moved(a, c, -STEP)
        slope = (loss.value(y, above) - loss.value(y, below)) / (2 * STEP)
        np.testing.assert_allclose(derivative[c], slope, atol=1e-8)
        column = (loss.derivative(y, above) - loss.derivative(y, below)) / (2 * STEP)
        stated = np.where(np.arange(4)[:, None] == c, curvature, 0.0) - coupling * coupling[c]
        np.testing.assert_allclose(stated, column, atol=1e-8)
        np.testing.assert_allclose(stated, np.where(np.arange(4)[:, None] == c, p, 0.0) - p * p[c], atol=1e-12)


def test_multinomial_bounds_hold_and_are_nearly_tight():
    loss = Multinomial()
    a = np.concatenate([multinomial_rows(n=500, spread=s, seed=1)[1] for s in (0.1, 3.0, 9.0)], axis=1)
    a[:, 0] = [20.0, 20.0, 0.0, 0.0]
    y = np.arange(a.shape[1]) % 4.0
    p = loss.curvature(y, a)
    hessians = np.einsum("cn,cd->ncd", p, np.eye(4)) - np.einsum("cn,dn->ncd", p, p)
    largest = np.linalg.eigvalsh(hessians)[:, -1].max()
    assert 0.99 * loss.smoothness <= largest <= loss.smoothness * (1 + 1e-12)
    steepest = np.linalg.norm(loss.derivative(y, a), axis=0).max()
    assert 0.99 * loss.lipschitz <= steepest <= loss.lipschitz * (1 + 1e-12)


def test_multinomial_is_convex_and_not_negative():
    loss, (y, a), (_, b) = Multinomial(), multinomial_rows(n=2000), multinomial_rows(n=2000, seed=1)
    share = np.random.default_rng(2).random(2000)
    between = loss.value(y, share * a + (1 - share) * b)
    assert np.all(between <= share * loss.value(y, a) + (1 - share) * loss.value(y, b) + 1e-12)
    assert np.all(between >= 0)
    far = np.array([[1e3, -1e3, 0.0], [0.0, 1e3, 1e3], [-1e3, 40.0, -1e3]])
    with np.errstate(all="raise", under="ignore"):
        value, slopes = loss.value(np.array([0.0, 1.0, 2.0]), far), loss.slopes(np.array([0.0, 1.0, 2.0]), far)
    np.testing.assert_allclose(value, [0.0, 0.0, 2e3], atol=1e-12)
    assert np.all(np.isfinite(slopes))


def test_multinomial_of_two_classes_is_logistic():
    y, a = multinomial_rows(classes=2, n=50)
    signs, margin = 2 * y - 1, a[1] - a[0]
    np.testing.assert_allclose(Multinomial().value(y, a), LogLoss().value(signs, margin), rtol=1e-12)
    np.testing.assert_allclose(Multinomial().derivative(y, a)[1], LogLoss().derivative(signs, margin), rtol=1e-10)
    np.testing.assert_allclose(Multinomial().broad_curvature(y, a, y)[1], LogLoss().curvature(signs, margin), rtol=1e-9)
    np.testing.assert_allclose(Multinomial().probabilities(a), LogLoss().probabilities(margin[None]), rtol=1e-10)
    assert Multinomial().for_classes(2) == LogLoss()
    assert LogLoss().for_classes(3) == Multinomial()
    assert Hinge().for_classes(3) == Hinge()


def test_multinomial_conjugate():
    loss, (y, a) = Multinomial(), multinomial_rows(spread=1.5)
    t = loss.derivative(y, a)
    products = np.einsum("cn,cn->n", t, a)
    np.testing.assert_allclose(loss.value(y, a) + loss.conjugate(y, t), products, rtol=1e-10, atol=1e-10)
    _, b = multinomial_rows(spread=1.5, seed=5)
    assert np.all(loss.value(y, b) + loss.conjugate(y, t) >= np.einsum("cn,cn->n", t, b) - 1e-12)
    for i in range(3):
        found = minimize(
            lambda a, i=i: loss.value(y[[i]], a[:, None])[0] - t[:, i] @ a,
            np.zeros(4),
            jac=lambda a, i=i: loss.derivative(y[[i]], a[:, None])[:, 0] - t[:, i],
            tol=1e-10,
        )
        assert loss.conjugate(y[[i]], t[:, [i]])[0] == pytest.approx(-found.fun, rel=1e-8)
    off = np.zeros((4, 12))
    off[0] = 0.1
    assert np.all(loss.conjugate(y, t + off) == np.inf)
    off[1] = -0.1
    outside = np.min(t + off + (np.arange(4)[:, None] == y), axis=0) < 0
    assert outside.any()
    np.testing.assert_array_equal(loss.conjugate(y, t + off) == np.inf, outside)
    corner = np.array([[-1.0], [1.0], [0.0], [0.0]])
    assert loss.conjugate(np.array([0.0]), corner)[0] == 0


# Options, targets, names.


def test_huber_takes_its_threshold_from_the_target():
    y = np.array([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 100.0]])
    weights = np.full(7, 1 / 7)
    # The median is 3, the deviations from it are 0, 1, 1, 2, 2, 3, 97.
    assert Huber().tuned(y, weights).threshold == pytest.approx(1.345 * 2 / 0.67449, rel=1e-5)
    repeated, count = np.array([[0.0, 1.0, 2.0, 3.0, 9.0]]), np.array([1, 0, 2, 1, 3])
    assert Huber().tuned(repeated, count / 7).threshold == pytest.approx(
        Huber().tuned(np.repeat(repeated, count, axis=1), weights).threshold
    )
    fixed = Huber(2.0)
    assert fixed.tuned(y, weights) is fixed
    mostly = np.array([[5.0, 5.0, 5.0, 5.0, 7.0]])
    assert Huber().tuned(mostly, np.full(5, 0.2)).threshold == pytest.approx(1.345 * np.sqrt(0.8))
    assert Huber().tuned(np.full((1, 3), 5.0), np.full(3, 1 / 3)).threshold == 1.0
    with pytest.raises(ValueError, match="tuned"):
        Huber().value(y, y)


@pytest.mark.parametrize(
    "make",
    [
        *(lambda bad=bad: Huber(bad) for bad in (0.0, -1.0, np.inf, np.nan)),
        *(lambda bad=bad: Tweedie(bad) for bad in (1, 2, 0, np.nan)),
        *(lambda bad=bad: NegativeBinomial(bad) for bad in (0, -1, np.inf, np.nan)),
        *(lambda bad=bad: Quantile(bad) for bad in (0.0, 1.0, -0.5, np.nan)),
        *(
            lambda kind=kind, bad=bad: kind(accuracy=bad)
            for kind in (AbsoluteError, Quantile, Hinge)
            for bad in (0, 1, np.nan)
        ),
    ],
)
def test_invalid_options(make):
    with pytest.raises(ValueError, match="must"):
        make()


@pytest.mark.parametrize(
    ("loss", "good", "bad", "words"),
    [
        *(
            (loss, [-1.0, 1.0], bad, "-1 and 1")
            for loss in (LogLoss(), Hinge(), SquaredHinge(), Envelope(Hinge(), 2.0))
            for bad in ([0.0, 1.0], [-1.0, 2.0], [np.nan, 1.0])
        ),
        (Poisson(), [0.0, 0.5, 3.0], [1.0, -1.0], "its minimum is -1"),
        (Poisson(), [0.0, 1e9], [0.0, 0.0], "positive count"),
        (Gamma(), [0.1, 5.0], [1.0, 0.0], "its minimum is 0.*tweedie"),
        (GammaInverseLink(), [0.1, 5.0], [1.0, -2.0], "its minimum is -2"),
        (Tweedie(), [0.0, 0.1], [1.0, -2.0], "its minimum is -2"),
        (Tweedie(), [0.0, 0.1], [0.0, 0.0], "positive amount"),
        (NegativeBinomial(), [0.0, 3.0], [1.0, 0.5], "y holds 0.5.*exposure"),
        (NegativeBinomial(), [0.0, 3.0], [1.0, -1.0], "its minimum is -1"),
        (Multinomial(), [0.0, 2.0], [-1.0, 0.0], "0, 1, 2"),
        (Multinomial(), [0.0, 2.0], [0.5, 1.0], "0, 1, 2"),
    ],
)
def test_invalid_targets(loss, good, bad, words):
    loss.check_target(np.array(good))
    with pytest.raises(ValueError, match=words):
        loss.check_target(np.array(bad))


@pytest.mark.parametrize("name", ["squared_error", "huber", "absolute_error", "quantile 0.1", "own"])
def test_other_losses_take_any_number(name):
    LOSSES[name].loss.check_target(np.array([-1e9, 0.0, 0.5]))


ALL = {name: row.loss for name, row in LOSSES.items()} | {"multinomial": Multinomial()}


@pytest.mark.parametrize("name", ALL)
def test_losses_are_equal_by_class_and_options(name):
    loss = ALL[name]
    copy = pickle.loads(pickle.dumps(loss))
    assert copy is not loss
    assert copy == loss
    assert hash(copy) == hash(loss)
    assert repr(copy) == repr(loss)
    others = [other for key, other in ALL.items() if key != name]
    assert all(loss != other for other in others)
    assert len({hash(other) for other in ALL.values()}) == len(ALL)
    assert loss != name


@pytest.mark.parametrize("name", [name for name in ALL if name not in ENVELOPES])
def test_the_repr_evaluates_to_an_equal_loss(name):
    kinds = {type(loss).__name__: type(loss) for loss in ALL.values()}
    assert eval(repr(ALL[name]), kinds) == ALL[name]


@pytest.mark.parametrize(
    ("name", "kind", "classes"),
    [
        ("squared_error", SquaredError, False),
        ("huber", Huber, False),
        ("absolute_error", AbsoluteError, False),
        ("quantile", Quantile, False),
        ("poisson", Poisson, False),
        ("gamma", Gamma, False),
        ("tweedie", Tweedie, False),
        ("negative_binomial", NegativeBinomial, False),
        ("log_loss", LogLoss, True),
        ("hinge", Hinge, True),
        ("squared_hinge", SquaredHinge, True),
    ],
)
def test_names_and_objects_are_resolved_and_errors_name_the_other_estimator(name, kind, classes):
    loss = resolve(name, classes=classes)
    assert type(loss) is kind
    assert resolve(loss, classes=classes) is loss
    own = OwnForClasses() if classes else LogCosh()
    assert resolve(own, classes=classes) is own
    right = "SparseClassifier" if classes else "SparseRegressor"
    for wrong in (name, loss, own):
        with pytest.raises(ValueError, match=f"use {right}"):
            resolve(wrong, classes=not classes)


@pytest.mark.parametrize("classes", [True, False])
@pytest.mark.parametrize("wrong", ["squares", "", None, 3, np.abs, ["log_loss"]], ids=repr)
def test_errors_about_unknown_losses_list_the_names(wrong, classes):
    name = "log_loss" if classes else "squared_error"
    with pytest.raises(ValueError, match=f"loss must be one of .*'{name}'"):
        resolve(wrong, classes=classes)


def test_multinomial_is_for_classification():
    assert resolve(Multinomial(), classes=True) == Multinomial()
    with pytest.raises(ValueError, match="use SparseClassifier"):
        resolve(Multinomial(), classes=False)


def test_estimators_raise_the_same_errors():
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match="use SparseRegressor"):
        SparseClassifier(k=1, loss="poisson").fit(X, y)
    with pytest.raises(ValueError, match="use SparseClassifier"):
        SparseRegressor(k=1, loss=Hinge()).fit(X, y)
    with pytest.raises(ValueError, match="must not be negative"):
        SparseRegressor(k=1, loss="poisson").fit(X, y - 1)


@pytest.mark.parametrize("wrong", [Huber, LogLoss])
def test_errors_about_a_class_instead_of_an_object(wrong):
    with pytest.raises(ValueError, match=rf"an object, not a class: write {wrong.__name__}\(\)"):
        resolve(wrong, classes=True)


# Offsets.


@pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie", "negative binomial", "log_loss", "own", "huber"])
def test_an_offset_is_added_to_the_score(name):
    rng = np.random.default_rng(3)
    row = LOSSES[name]
    y, a = rng.choice(row.targets, (2, 40)), rng.standard_normal((2, 40))
    offset, weights = rng.standard_normal(40), np.full(40, 1 / 40)
    loss, pairs = with_offset(row.loss, y, offset)
    np.testing.assert_allclose(loss.value(pairs, a), row.loss.value(y, a + offset), rtol=1e-12, atol=1e-14)
    for found, expected in zip(loss.slopes(pairs, a), row.loss.slopes(y, a + offset), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(loss.held_out(pairs, a), row.loss.held_out(y, a + offset), rtol=1e-12, atol=1e-14)
    if row.domain is not None:
        t = loss.derivative(pairs, a)
        np.testing.assert_allclose(loss.value(pairs, a) + loss.conjugate(pairs, t), t * a, atol=1e-9)
    best = least(lambda c: loss.value(np.repeat(pairs[:1].T, len(c), 1), c[None]).T @ weights, -15.0, 15.0)
    start = weights @ loss.value(pairs[0], np.full(40, loss.constant(pairs[0], weights)))
    if name not in ("own", "huber"):
        assert start == pytest.approx(best, abs=1e-9)
    assert without_offset(loss) == row.loss
    assert loss.flat == row.loss.flat
    assert loss.may_diverge == row.loss.may_diverge
    assert pickle.loads(pickle.dumps(loss)) == loss


def test_the_dispersion_is_the_likeliest_one():
    rng = np.random.default_rng(0)
    mean = np.exp(rng.standard_normal(4000))
    y = rng.negative_binomial(2.0, 2.0 / (2.0 + mean)).astype(float)[None]
    weights = rng.random(4000)
    weights /= weights.sum()
    found = NegativeBinomial().tuned_at(y, np.log(mean)[None], weights).dispersion

    def likelihood(d):
        return -weights @ nbinom.logpmf(y[0], 1 / d, 1 / (1 + d * mean))

    assert found == pytest.approx(0.5, abs=0.1)
    assert likelihood(found) <= min(likelihood(found * 1.001), likelihood(found / 1.001))
    exact = NegativeBinomial(0.7)
    assert exact.tuned_at(y, np.log(mean)[None], weights) is exact
    # Counts that vary less than Poisson's have next to no dispersion, and those of an offset that explains them.
    assert NegativeBinomial().tuned(np.array([[3.0, 4.0, 5.0]]), np.full(3, 1 / 3)).dispersion == 1e-5
    loss, pairs = with_offset(NegativeBinomial(), np.round(1000 * mean)[None], np.log(mean))
    assert loss.tuned(pairs, weights).loss.dispersion == 1e-5
    with pytest.raises(ValueError, match="tuned"):
        NegativeBinomial().value(y, y)
