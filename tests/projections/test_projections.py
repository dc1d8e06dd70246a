"""Projections: nearest points, judged by a solver, by optimality conditions and by a sort."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from pauca.projections import (
    ActiveSet,
    active_onto_l1_and_l2_balls,
    active_onto_l1_ball,
    l1_ball,
    onto_l1_and_l2_balls,
    onto_l1_ball,
)

SEEDS = range(6)
ENTRIES = st.floats(-1e6, 1e6, allow_subnormal=False)
RADII = st.floats(1e-3, 1e6)


def by_sorting(z, radius):
    """The textbook way, which nothing in the package goes."""
    magnitudes = np.abs(z)
    if magnitudes.sum() <= radius:
        return z
    descending = np.sort(magnitudes)[::-1]
    thetas = (np.cumsum(descending) - radius) / np.arange(1, len(z) + 1)
    theta = thetas[np.flatnonzero(descending > thetas)[-1]]
    return np.sign(z) * np.maximum(magnitudes - theta, 0)


def by_halving(z, radius, center, center_radius):
    """Li et al., Algorithm 3, as printed but for its tolerance."""
    w = by_sorting(z, radius)
    low, high = 0.0, 1.0
    while np.linalg.norm(w - center) > center_radius:
        high, middle = (low + high) / 2, (low + high) / 2
        w = by_sorting(middle * z + (1 - middle) * center, radius)
    low = high if high < 1 else 1.0
    high = min(2 * low, 1.0)
    for _ in range(80):
        middle = (low + high) / 2
        trial = by_sorting(middle * z + (1 - middle) * center, radius)
        if np.linalg.norm(trial - center) <= center_radius:
            low, w = middle, trial
        else:
            high = middle
    return w


def by_solver(z, radius, weights=None, ball=None):
    """A quadratic program in the positive and negative parts of w, by SLSQP."""
    d = len(z)
    s = np.ones(d) if weights is None else weights
    rules = [{"type": "ineq", "fun": lambda u: radius - np.r_[s, s] @ u, "jac": lambda u: -np.r_[s, s]}]
    if ball is not None:
        center, r = ball

        def room(u):
            step = u[:d] - u[d:] - center
            return r**2 - step @ step

        def slope(u):
            step = u[:d] - u[d:] - center
            return np.r_[-2 * step, 2 * step]

        rules.append({"type": "ineq", "fun": room, "jac": slope})
    start = np.zeros(2 * d) if ball is None else np.r_[np.maximum(ball[0], 0), np.maximum(-ball[0], 0)]

    def gradient(u):
        away = u[:d] - u[d:] - z
        return np.r_[away, -away]

    found = minimize(
        lambda u: 0.5 * np.sum((u[:d] - u[d:] - z) ** 2),
        start,
        jac=gradient,
        bounds=[(0, None)] * (2 * d),
        constraints=rules,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return found.x[:d] - found.x[d:]


def problem(seed, d=8):
    """A point, a radius, a center in the ball and the radius of a ball about it that cuts the way."""
    rng = np.random.default_rng(seed)
    radius = 10 ** rng.uniform(-0.5, 0.5)
    center = by_sorting(rng.standard_normal(d), radius * rng.uniform(0.3, 1))
    z = rng.standard_normal(d) * 10 ** rng.uniform(0, 1)
    away = np.linalg.norm(by_sorting(z, radius) - center)
    return z, radius, center, away * rng.uniform(0.2, 0.9)


def scattered(active, d):
    w = np.zeros(d)
    w[active.indices] = active.values
    return w


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_l1_ball_is_a_quadratic_program(seed, weighted):
    z, radius, *_ = problem(seed)
    weights = np.random.default_rng(seed).uniform(0.2, 3, len(z)) if weighted else None
    np.testing.assert_allclose(onto_l1_ball(z, radius, weights), by_solver(z, radius, weights), atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_both_balls_are_a_quadratic_program(seed):
    z, radius, center, r = problem(seed)
    w = onto_l1_and_l2_balls(z, radius, center, r)
    np.testing.assert_allclose(w, by_solver(z, radius, ball=(center, r)), atol=1e-5)
    np.testing.assert_allclose(w, by_halving(z, radius, center, r), atol=1e-11)
    assert np.isclose(np.linalg.norm(w - center), r, rtol=1e-12, atol=0)


@settings(deadline=None, max_examples=100)
@given(st.lists(ENTRIES, min_size=1, max_size=40), RADII, st.integers(0, 2**32 - 1), st.booleans())
def test_l1_ball_conditions(entries, radius, seed, weighted):
    """Outside the ball the norm is the radius, and all entries are drawn in by one amount, or are zero sooner."""
    z = np.array(entries)
    weights = 10 ** np.random.default_rng(seed).uniform(-2, 2, len(z)) if weighted else np.ones(len(z))
    w = onto_l1_ball(z, radius, weights if weighted else None)
    if weights @ np.abs(z) <= radius:
        np.testing.assert_array_equal(w, z)
        return
    tiny = 1e-12 * (np.abs(z).max() + radius) * weights.max() / weights.min()
    assert abs(weights @ np.abs(w) - radius) <= 1e-9 * radius
    assert np.all(w * z >= 0)
    drawn = (np.abs(z) - np.abs(w)) / weights
    amount = drawn[w != 0]
    assert np.ptp(amount) <= tiny
    assert np.all(drawn[w == 0] <= amount.max() + tiny)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.booleans())
def test_both_balls_conditions(seed, d, ties):
    """In both balls, and at an obtuse angle to every point of both: that is what it takes to be the nearest."""
    z, radius, center, r = problem(seed, d)
    z = np.round(z) if ties else z
    w = onto_l1_and_l2_balls(z, radius, center, r)
    assert np.abs(w).sum() <= radius * (1 + 1e-12)
    assert np.linalg.norm(w - center) <= r * (1 + 1e-12)
    rng = np.random.default_rng(seed + 1)
    for _ in range(4):
        other = by_halving(w + rng.standard_normal(d) * rng.uniform(0, 3), radius, center, r)
        assert (z - w) @ (other - w) <= 1e-9 * (1 + np.linalg.norm(z)) * radius
    again = onto_l1_and_l2_balls(w, radius, center, r)
    np.testing.assert_allclose(again, w, atol=1e-13 * radius)


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), RADII)
def test_nothing_is_pushed_apart(seed, d, radius):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, d)) * 10 ** rng.uniform(-3, 3) * radius
    center = by_sorting(rng.standard_normal(d), radius)
    r = radius * rng.uniform(0.01, 1)
    apart = np.linalg.norm(a - b) * (1 + 1e-9) + 1e-12 * radius
    assert np.linalg.norm(onto_l1_ball(a, radius) - onto_l1_ball(b, radius)) <= apart
    both = onto_l1_and_l2_balls(a, radius, center, r) - onto_l1_and_l2_balls(b, radius, center, r)
    assert np.linalg.norm(both) <= apart
    w = onto_l1_ball(a, radius)
    np.testing.assert_allclose(onto_l1_ball(w, radius), w, atol=1e-13 * radius)


@pytest.mark.parametrize("seed", SEEDS)
def test_active_sets(seed):
    """Entries far apart in a vector too long to be held, in any order, give what the vector gives."""
    z, radius, center, r = problem(seed, d=12)
    rng = np.random.default_rng(seed)
    z[rng.permutation(12)[:5]], center[rng.permutation(12)[:5]] = 0, 0
    far = np.sort(rng.choice(2**50, 12, replace=False))
    order = rng.permutation(np.flatnonzero(z))
    points = far[order], z[order]
    middles = far[center != 0], center[center != 0]

    def back(active):
        assert np.all(active.values != 0)
        return scattered(ActiveSet(np.searchsorted(far, active.indices), active.values), 12)

    np.testing.assert_allclose(back(active_onto_l1_ball(points, radius)), onto_l1_ball(z, radius), atol=1e-14)
    weights = rng.uniform(0.5, 2, 12)
    weighted = active_onto_l1_ball(points, radius, weights[order])
    np.testing.assert_allclose(back(weighted), onto_l1_ball(z, radius, weights), atol=1e-14)
    both = active_onto_l1_and_l2_balls(points, radius, middles, r)
    assert np.all(np.diff(both.indices) > 0)
    np.testing.assert_allclose(back(both), onto_l1_and_l2_balls(z, radius, center, r), atol=1e-14)


def test_points_inside_are_copied():
    z, center = np.array([0.5, -0.0, -0.25]), np.zeros(3)
    for w in (onto_l1_ball(z, 0.75), onto_l1_ball(z, 2.0, [1, 5, 6]), onto_l1_and_l2_balls(z, 1, center, 1)):
        np.testing.assert_array_equal(w, z)
        assert not np.shares_memory(w, z)
    indices, values = np.array([9, 3, 5]), np.array([0.5, 0.0, -0.25])
    for w in (
        active_onto_l1_ball((indices, values), 0.75),
        active_onto_l1_and_l2_balls((indices, values), 1.0, ([4], [0.1]), 1.0),
    ):
        np.testing.assert_array_equal(w.indices, indices)
        np.testing.assert_array_equal(w.values, values)
        assert not np.shares_memory(w.indices, indices)
        assert not np.shares_memory(w.values, values)


@pytest.mark.parametrize("unit", [1e-150, 1e-30, 1e150, 1e300])
def test_units(unit):
    z, radius, center, r = problem(3)
    expected = onto_l1_ball(z, radius)
    np.testing.assert_allclose(onto_l1_ball(unit * z, unit * radius) / unit, expected, atol=1e-14)
    weights = np.linspace(0.5, 2, len(z))
    expected = onto_l1_ball(z, radius, weights)
    np.testing.assert_allclose(onto_l1_ball(unit * z, unit * radius, weights) / unit, expected, atol=1e-14)
    np.testing.assert_allclose(onto_l1_ball(z, unit * radius, unit * weights), expected, atol=1e-14)
    expected = onto_l1_and_l2_balls(z, radius, center, r)
    found = onto_l1_and_l2_balls(unit * z, unit * radius, unit * center, unit * r)
    np.testing.assert_allclose(found / unit, expected, atol=1e-13)


def test_points_far_outside():
    """Only differences between entries count there, and they are not lost beside the entries themselves."""
    np.testing.assert_array_equal(onto_l1_ball([1e150, -1e150, 1.0], 1.0), [0.5, -0.5, 0.0])
    np.testing.assert_array_equal(onto_l1_ball([1e300, 0.0], 1e-300), [1e-300, 0.0])
    np.testing.assert_allclose(onto_l1_ball([1e308, 1.7e308], 1.5e308), [4e307, 1.1e308])
    np.testing.assert_array_equal(onto_l1_ball([1e200, 0.0], 1e-200, [1.0, 2.0]), [0.0, 0.0])
    z = 2.0**60 + np.array([0.0, 256.0, -512.0])
    np.testing.assert_array_equal(onto_l1_ball(z, 1024.0), [384.0, 640.0, 0.0])
    found = onto_l1_and_l2_balls([1e200, -1e200], 3.0, [1.0, 0.0], 1.0)
    np.testing.assert_allclose(found, [1 + np.sqrt(0.5), -np.sqrt(0.5)], rtol=1e-12)


def test_ties():
    np.testing.assert_allclose(onto_l1_ball([2.0, -2.0, 2.0, 0.0], 1.5), [0.5, -0.5, 0.5, 0.0])
    np.testing.assert_allclose(onto_l1_ball(np.ones(1000), 1.0), np.full(1000, 1e-3))
    assert not np.signbit(onto_l1_ball([5.0, -1.0], 1.0)[1])


def test_kinds_of_input():
    assert onto_l1_ball(np.array([3, -1], dtype=np.int8), 2).dtype == np.float64
    np.testing.assert_array_equal(onto_l1_ball([3, -1], 2), [2.0, 0.0])
    z32 = np.random.default_rng(0).standard_normal(500).astype(np.float32)
    w32 = onto_l1_ball(z32, 5.0)
    assert w32.dtype == np.float32
    np.testing.assert_array_equal(w32, by_sorting(z32.astype(float), 5.0).astype(np.float32))
    both = onto_l1_and_l2_balls(z32, 5.0, w32 / 2, 0.1)
    assert both.dtype == np.float32
    assert np.linalg.norm(both - w32 / 2) <= 0.1 * (1 + 1e-6)
    assert active_onto_l1_ball((range(500), z32), 5.0).values.dtype == np.float32
    assert active_onto_l1_and_l2_balls((range(500), z32), 5.0, ([], []), 0.1).values.dtype == np.float32
    mixed = active_onto_l1_and_l2_balls((np.array([7], np.uint64), [3.0]), 2.0, (np.array([1]), [1.0]), 1.0)
    np.testing.assert_array_equal(mixed.indices, [1, 7])
    assert mixed.indices.dtype.kind == "i"
    frozen = np.array([3.0, -1.0])
    frozen.flags.writeable = False
    onto_l1_ball(frozen, 1.0)
    onto_l1_and_l2_balls(frozen, 1.0, frozen / 8, 0.1)


def test_nothing_to_project():
    assert onto_l1_ball([], 1.0).shape == (0,)
    assert onto_l1_ball([], 1.0, []).shape == (0,)
    assert onto_l1_and_l2_balls([], 1.0, [], 1.0).shape == (0,)
    empty = active_onto_l1_ball(([], []), 1.0)
    assert len(empty.indices) == len(empty.values) == 0
    np.testing.assert_array_equal(onto_l1_ball([0.0, 0.0], 1.0), [0.0, 0.0])
    away = active_onto_l1_and_l2_balls(([], []), 1.0, ([7], [1.0]), 0.25)
    np.testing.assert_array_equal(away.indices, [7])
    np.testing.assert_allclose(away.values, [0.75])


def test_balls_of_radius_zero_are_points():
    z, weights, center = [3.0, -1.0, 0.0], [1.0, 2.0, 3.0], np.array([0.5, 0.0, -0.25])
    for found in (onto_l1_ball(z, 0), onto_l1_ball(z, 0.0, weights), onto_l1_and_l2_balls(z, 0, [0.0] * 3, 1.0)):
        np.testing.assert_array_equal(found, np.zeros(3))
    assert onto_l1_ball(np.zeros(2, np.float32), 0).dtype == np.float32
    assert len(active_onto_l1_ball(([4, 9], [3.0, -1.0]), 0).indices) == 0
    for room in (0, 5e-324):
        np.testing.assert_array_equal(onto_l1_and_l2_balls(z, 1.0, center, room), center)
    at_center = active_onto_l1_and_l2_balls(([4], [3.0]), 1.0, ([9], [0.5]), 0)
    np.testing.assert_array_equal(at_center.indices, [9])
    np.testing.assert_array_equal(at_center.values, [0.5])


def test_a_center_out_of_the_ball_by_rounding_will_do():
    center = np.full(3, 1 / 3) * (1 + 1e-7)
    for room in (0.1, 1e-9):
        w = onto_l1_and_l2_balls([5.0, 0.0, 0.0], 1.0, center, room)
        assert np.abs(w).sum() <= 1 + 1e-12
        assert np.isclose(np.linalg.norm(w - np.full(3, 1 / 3)), room, rtol=1e-3)


WAYS = {
    "dense": onto_l1_ball,
    "active": lambda z, radius: active_onto_l1_ball((range(len(z)), z), radius),
    "both": lambda z, radius: onto_l1_and_l2_balls(z, radius, np.zeros(len(z)), 1.0),
    "both active": lambda z, radius: active_onto_l1_and_l2_balls((range(len(z)), z), radius, ([], []), 1.0),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_bad_points_and_radii_are_refused(way):
    for radius in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"'radius' parameter of .* must be a float in the range \[0, inf\)\. Got"):
            way([1.0, 2.0], radius)
    for radius in ("1", None, True, [1.0]):
        with pytest.raises(TypeError, match=r"'radius' parameter of .* must be a float in the range \[0, inf\)\. Got"):
            way([1.0, 2.0], radius)
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match=f"z must be finite; entry 1 is {value}"):
            way([1.0, value], 1.0)
    with pytest.raises(ValueError, match=r"z must be a vector; got an array of shape \(1, 2\)"):
        way(np.ones((1, 2)), 1.0)
    for z in (["a", "b"], [1j, 0], np.array([1.0, 2.0], dtype=object)):
        with pytest.raises(TypeError, match="z must hold real numbers"):
            way(z, 1.0)


def test_bad_centers_are_refused():
    with pytest.raises(ValueError, match=r"center must lie in the l1 ball of radius 1; its l1 norm is 1\.5\."):
        onto_l1_and_l2_balls([1.0, 2.0], 1.0, [1.0, -0.5], 1.0)
    with pytest.raises(ValueError, match=r"center must lie in the l1 ball of radius 1; its l1 norm is 3\."):
        active_onto_l1_and_l2_balls(([0], [1.0]), 1.0, ([5], [3.0]), 1.0)
    with pytest.raises(ValueError, match="center must be as long as z: got 3 and 2 entries"):
        onto_l1_and_l2_balls([1.0, 2.0], 1.0, [0.0] * 3, 1.0)
    with pytest.raises(ValueError, match="center must be finite; entry 0 is nan"):
        onto_l1_and_l2_balls([1.0, 2.0], 1.0, [np.nan, 0.0], 1.0)
    with pytest.raises(ValueError, match=r"'center_radius' parameter of onto_l1_and_l2_balls must be .* Got -1"):
        onto_l1_and_l2_balls([1.0, 2.0], 1.0, [0.0, 0.0], -1)
    with pytest.raises(ValueError, match="center must lie in the l1 ball of radius 0"):
        onto_l1_and_l2_balls([1.0, 2.0], 0, [0.0, 1e-9], 1.0)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "one weight for each entry: got 1 weights for 2 entries"),
        ([1.0, 0.0], "weights must be positive; that of entry 1 is 0.0"),
        ([1.0, np.nan], "weights must be finite; entry 1 is nan"),
        ([1.0, 1e120], "within a factor of 1e\\+100"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    for project in (lambda w: onto_l1_ball([1.0, 2.0], 1.0, w), lambda w: active_onto_l1_ball(([4, 9], [1, 2]), 1, w)):
        with pytest.raises(ValueError, match=message):
            project(weights)


@pytest.mark.parametrize(
    ("pair", "error", "message"),
    [
        (([0, 1], [1.0]), ValueError, "must be vectors of one length"),
        (([0, 0], [1.0, 2.0]), ValueError, "must differ from one another"),
        (([-1, 0], [1.0, 2.0]), ValueError, "must not be negative; got -1"),
        (([0.0, 1.0], [1.0, 2.0]), TypeError, "must be integers"),
        (5, TypeError, "must be a pair: indices and values"),
        (([1], [1.0], [2]), TypeError, "must be a pair: indices and values"),
    ],
)
def test_bad_active_sets_are_refused(pair, error, message):
    with pytest.raises(error, match=f"z {message}"):
        active_onto_l1_ball(pair, 1.0)
    with pytest.raises(error, match=f"center {message}"):
        active_onto_l1_and_l2_balls(([0], [3.0]), 1.0, pair, 1.0)


HARD = {
    "normal": np.random.default_rng(0).standard_normal(20_000),
    # Each round of dropping what lies below the level of all others drops next to nothing here.
    "geometric": 0.999 ** np.arange(20_000),
    "powers": 1.0 / np.arange(1, 20_001) ** 0.5,
    "ties": np.repeat(np.arange(1.0, 201.0), 100),
}


@pytest.mark.parametrize("z", HARD.values(), ids=HARD)
@pytest.mark.parametrize("share", [1e-4, 0.1, 0.9])
@pytest.mark.parametrize("cheap_rounds", [0, l1_ball.CHEAP_ROUNDS])
def test_time_is_linear(z, share, cheap_rounds, monkeypatch):
    """No sort, and medians of at most twice as many entries as there are: halves of halves."""
    sizes, partition = [], np.partition

    def counted(entries, place):
        sizes.append(len(entries))
        return partition(entries, place)

    def refused(*args, **kwargs):
        raise AssertionError("a sort")

    expected = by_sorting(z, share * np.abs(z).sum())
    monkeypatch.setattr(l1_ball, "CHEAP_ROUNDS", cheap_rounds)
    monkeypatch.setattr(np, "partition", counted)
    for sort in ("sort", "argsort", "argpartition", "unique"):
        monkeypatch.setattr(np, sort, refused)
    found = onto_l1_ball(z, share * np.abs(z).sum())
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(z).max())
    assert all(later <= earlier // 2 for earlier, later in pairwise(sizes))
    assert sum(sizes) <= 2 * len(z)
    assert sizes or cheap_rounds


def test_few_halvings(monkeypatch):
    """Bisection ends on a straight piece of the way, long before it is down to rounding."""
    calls = []

    def counted(*args):
        calls.append(args)
        return l1_ball.nearest(*args)

    monkeypatch.setattr("pauca.projections.intersection.nearest", counted)
    for seed in range(100):
        onto_l1_and_l2_balls(*problem(seed, d=50))
    assert 0 < len(calls) <= 100 * 15
