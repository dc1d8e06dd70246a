"""Laws every loss obeys. A new loss is under them by one row in LOSSES of loss_rows."""

import pickle

import numpy as np
import pytest
from loss_rows import (
    AMOUNTS,
    BETAS,
    COUNTS,
    ENVELOPES,
    LOSSES,
    PIECEWISE,
    SIGNS,
    STEP,
    LogCosh,
    least,
)

from pauca.losses import (
    AbsoluteError,
    Envelope,
    Hinge,
    Huber,
    LogLoss,
    Multinomial,
    Poisson,
    Quantile,
    SquaredHinge,
)

CASES = [pytest.param(row, y, id=f"{name}, y={y:g}") for name, row in LOSSES.items() for y in row.targets]


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
def test_curvatures_fall_no_faster_than_is_said_of_scores(row, y):
    loss, a = row.loss, scores_for(row, y)
    rate = loss.concordance_at(a)
    if rate is not None:
        there, moved = at(loss, y, a)[2], np.array([-0.3, 0.1, 1.0, 4.0]) * np.abs(a).min()
        for change in moved[np.abs(moved) > 0]:
            assert np.all(at(loss, y, a + change)[2] >= there * np.exp(-rate * abs(change)) * (1 - 1e-9))


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
